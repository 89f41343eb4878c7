#include "sim/eval/lowrank.h"

#include <assert.h>
#include <lapacke.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* Errors of a few per cent against factors of about one: (0.1 / 0.3)^2. Rows differ by far more
 * than that, columns are nearly free.
 */
#define RIDGE 0.1
#define RIDGE_ROW 0.01
#define RIDGE_COLUMN 1e-6
#define ROUNDS 30

/* Normal equations of one row or column. */
struct normal_equations {
    double a[LOWRANK_WIDTH * LOWRANK_WIDTH], b[LOWRANK_WIDTH];
    int n;
};

static void normal_add(struct normal_equations *eq, const double *other, double value)
{
    double x[LOWRANK_WIDTH];

    memcpy(x, other, sizeof x);
    x[0] = 1;
    for (int i = 0; i < LOWRANK_WIDTH; i++) {
        eq->b[i] += x[i] * (value - other[0]);
        for (int j = 0; j < LOWRANK_WIDTH; j++)
            eq->a[i * LOWRANK_WIDTH + j] += x[i] * x[j];
    }
    eq->n++;
}

static void normal_solve(struct normal_equations *eq, double offset_ridge, double *out)
{
    for (int i = 0; i < LOWRANK_WIDTH; i++)
        eq->a[i * LOWRANK_WIDTH + i] += i == 0 ? offset_ridge : RIDGE;
    int rc = LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', LOWRANK_WIDTH, 1, eq->a, LOWRANK_WIDTH, eq->b, 1);
    assert(rc == 0);    // the ridge makes it positive
    memcpy(out, eq->b, sizeof eq->b);
}

/* All rows from all columns, or the other way round. */
static void half_round(struct normal_equations *eqs, const struct lowrank_entry *entries, int n,
                       bool is_for_rows, double (*from)[LOWRANK_WIDTH], double (*to)[LOWRANK_WIDTH],
                       int n_to)
{
    memset(eqs, 0, (size_t)n_to * sizeof *eqs);
    for (int i = 0; i < n; i++) {
        const struct lowrank_entry *x = &entries[i];
        if (is_for_rows)
            normal_add(&eqs[x->row], from[x->column], x->value);
        else
            normal_add(&eqs[x->column], from[x->row], x->value);
    }
    for (int i = 0; i < n_to; i++)
        if (eqs[i].n)
            normal_solve(&eqs[i], is_for_rows ? RIDGE_ROW : RIDGE_COLUMN, to[i]);
}

/* Move the rows so that they have no mean: then an offset is its column's mean. */
static void centre(const struct normal_equations *eqs, double (*row)[LOWRANK_WIDTH], int n_rows)
{
    for (int j = 0; j < LOWRANK_WIDTH; j++) {
        double sum = 0;
        int n = 0;
        for (int i = 0; i < n_rows; i++) {
            sum += eqs[i].n ? row[i][j] : 0;
            n += eqs[i].n > 0;
        }
        for (int i = 0; i < n_rows && n; i++)
            row[i][j] -= sum / n;
    }
}

/* Give column 'c' the mean of those in its group that have entries; false: none has. */
static bool take_mean(const struct normal_equations *eqs, const struct lowrank *m, int (*group)[2],
                      int which, int c)
{
    double sum[LOWRANK_WIDTH] = { 0 };
    int n = 0;

    for (int other = 0; other < m->n_columns; other++) {
        if (!eqs[other].n || group[other][which] != group[c][which])
            continue;
        for (int i = 0; i < LOWRANK_WIDTH; i++)
            sum[i] += m->column[other][i];
        n++;
    }
    for (int i = 0; i < LOWRANK_WIDTH && n; i++)
        m->column[c][i] = sum[i] / n;
    return n > 0;
}

void lowrank_fit(struct arena *a, int n_rows, int n_columns, int (*group)[2],
                 const struct lowrank_entry *entries, int n, uint64_t seed, struct lowrank *out)
{
    int most = n_rows > n_columns ? n_rows : n_columns;
    struct normal_equations *eqs = ARENA_ARRAY(a, struct normal_equations, (size_t)most);
    double(*row)[LOWRANK_WIDTH] = arena_array(a, (size_t)n_rows, sizeof *row);
    struct rng chance;

    out->n_columns = n_columns;
    out->column = arena_array(a, (size_t)n_columns, sizeof *out->column);
    rng_init(&chance, seed, "low rank");
    for (int i = 0; i < n_rows; i++)
        for (int j = 1; j < LOWRANK_WIDTH; j++)
            row[i][j] = 0.3 * rng_normal(&chance);
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0) {
            half_round(eqs, entries, n, true, out->column, row, n_rows);
            centre(eqs, row, n_rows);
        }
        half_round(eqs, entries, n, false, row, out->column, n_columns);
    }
    for (int c = 0; c < n_columns; c++)
        if (!eqs[c].n && !take_mean(eqs, out, group, 0, c))
            take_mean(eqs, out, group, 1, c);
}

void lowrank_complete(const struct lowrank *m, const struct lowrank_entry *seen, int n, double *out)
{
    struct normal_equations eq = { 0 };
    double row[LOWRANK_WIDTH];

    for (int i = 0; i < n; i++)
        normal_add(&eq, m->column[seen[i].column], seen[i].value);
    normal_solve(&eq, RIDGE_ROW, row);
    for (int c = 0; c < m->n_columns; c++) {
        out[c] = row[0] + m->column[c][0];
        for (int i = 1; i < LOWRANK_WIDTH; i++)
            out[c] += row[i] * m->column[c][i];
    }
}

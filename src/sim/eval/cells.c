#include "sim/eval/cells.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "catalog/catalog.h"

static const struct cell *measured(const struct catalog *c, const struct cell_key *key)
{
    const struct cell *found = catalog_cell(c, *key);

    return found && found->n_speed > 0 ? found : NULL;
}

/* The same pair from the neighbour's side. */
static struct cell_key other_side(const struct cell_key *k)
{
    struct cell_key other = *k;

    other.workload = k->neighbour;
    other.neighbour = k->workload;
    return other;
}

/* ln r of a workload beside another, and its variance; NaN where a speed is missing. */
static void slowdown(const struct catalog *c, const struct cell_key *key, double *ln_r, double *var)
{
    struct cell_key lonely = *key;

    lonely.neighbour = -1;
    const struct cell *alone = measured(c, &lonely), *both = measured(c, key);

    *ln_r = alone && both ? both->ln_speed - alone->ln_speed : (double)NAN;
    *var = alone && both ? cell_variance(both) + cell_variance(alone) : (double)NAN;
}

static void put_cell(const struct catalog *c, struct cell_key key, struct eval_cells *out)
{
    const struct cell *seen = catalog_cell(c, key);
    int neighbour = key.neighbour;
    bool has_speed = seen && seen->n_speed > 0;
    struct eval_cell cell = {
        .type = key.gpu_type,
        .neighbour = neighbour,
        .ln_speed = has_speed ? seen->ln_speed : (double)NAN,
        .ln_speed_var = has_speed ? cell_variance(seen) : (double)NAN,
        .ln_r = NAN,
        .ln_r_partner = NAN,
        .ln_r_partner_var = NAN,
        .ln_watts = neighbour < 0 && seen && seen->n_watts ? seen->ln_watts : (double)NAN,
        .is_unfit = seen && seen->n_unfit > 0 && !has_speed,
    };
    double var;

    if (neighbour >= 0) {
        struct cell_key other = other_side(&key);
        slowdown(c, &key, &cell.ln_r, &var);
        slowdown(c, &other, &cell.ln_r_partner, &cell.ln_r_partner_var);
    }
    out->n_isolated += neighbour < 0 && has_speed;
    out->cell[out->n++] = cell;
}

/* The other side of a pair that was measured on this side only. */
static bool lacks_other_side(const struct catalog *c, const struct cell_key *k)
{
    return k->neighbour >= 0 && !catalog_cell(c, other_side(k));
}

static bool is_of(const struct cell_key *k, int campaign)
{
    return k->campaign == campaign && cell_key_is_default(k);
}

struct eval_cells *eval_cells_take(struct arena *a, const struct catalog *c, int campaign)
{
    struct eval_cells *out = ARENA_ARRAY(a, struct eval_cells, (size_t)c->n_workloads);

    for (int i = 0; i < c->n_cells; i++) {
        const struct cell_key *k = &c->cells[i].key;
        out[k->workload].n += is_of(k, campaign);
        if (is_of(k, campaign) && lacks_other_side(c, k))
            out[k->neighbour].n++;
    }
    for (int w = 0; w < c->n_workloads; w++) {
        out[w].cell = ARENA_ARRAY(a, struct eval_cell, (size_t)out[w].n);
        out[w].n = 0;
    }
    for (int i = 0; i < c->n_cells; i++) {
        const struct cell_key *k = &c->cells[i].key;
        if (!is_of(k, campaign))
            continue;
        put_cell(c, *k, &out[k->workload]);
        if (lacks_other_side(c, k))
            put_cell(c, other_side(k), &out[k->neighbour]);
    }
    return out;
}

/* ---- drawing ---- */

static bool is_left(const struct eval_cell *c, bool is_alone, int only_type)
{
    return eval_cell_counts(c, only_type) && (c->neighbour < 0) == is_alone;
}

static int n_left(const struct eval_cells *c, bool is_alone, int type, const bool *is_out)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        n += !is_out[i] && is_left(&c->cell[i], is_alone, type);
    return n;
}

static int draw_kind(const struct eval_cells *c, int n_types, int only_type, const bool *is_out,
                     bool is_alone, struct rng *chance)
{
    int n_open = 0, type = -1;

    for (int g = 0; g < n_types; g++)
        n_open += (only_type < 0 || g == only_type) && n_left(c, is_alone, g, is_out) > 0;
    if (n_open == 0)
        return -1;
    for (int skip = (int)rng_below(chance, (uint64_t)n_open); skip >= 0;) {
        type++;
        skip -= (only_type < 0 || type == only_type) && n_left(c, is_alone, type, is_out) > 0;
    }
    int skip = (int)rng_below(chance, (uint64_t)n_left(c, is_alone, type, is_out));
    for (int i = 0;; i++)
        if (!is_out[i] && is_left(&c->cell[i], is_alone, type) && skip-- == 0)
            return i;
}

int eval_cells_draw(const struct eval_cells *c, int n_types, int only_type, const bool *is_out,
                    struct rng *chance)
{
    bool is_alone = rng_uniform(chance) < EVAL_ALONE_SHARE;
    int at = draw_kind(c, n_types, only_type, is_out, is_alone, chance);

    return at >= 0 ? at : draw_kind(c, n_types, only_type, is_out, !is_alone, chance);
}

void eval_cells_halve(struct arena *a, const struct eval_cells *c, int only_type,
                      struct rng *chance, bool *is_offered)
{
    int *list = ARENA_ARRAY(a, int, (size_t)c->n);

    for (int kind = 0; kind < 2; kind++) {
        int n = 0;
        for (int i = 0; i < c->n; i++)
            if (is_left(&c->cell[i], kind == 0, only_type))
                list[n++] = i;
        for (int i = 0; i < (n + 1) / 2; i++) {
            int j = i + (int)rng_below(chance, (uint64_t)(n - i)), taken = list[j];
            list[j] = list[i];
            is_offered[taken] = true;
        }
    }
}

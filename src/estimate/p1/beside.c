#include "estimate/p1/beside.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "nn/weights.h"

/* Variances of s: common to all pairs on the type, of the job, of the neighbour, of both
 * together, and what no likeness explains. Round numbers; see kernel.h.
 */
#define COMMON 0.1
#define OF_JOB 0.06
#define OF_NEIGHBOUR 0.06
#define OF_BOTH 0.06
#define UNEXPLAINED 0.002

/* s is a root of something below 1: no variance of it is near this. */
#define VARIANCE_MAX 1e3f

static double like(const struct beside *b, int i, int j)
{
    return b->like[(size_t)i * (size_t)b->n_who + (size_t)j];
}

static int solve(struct arena *a, struct beside *b, int n, struct err *e)
{
    size_t size = (size_t)n, n_who = (size_t)b->n_who;
    double *k = ARENA_ARRAY(a, double, size *size);

    b->like = ARENA_ARRAY(a, double, n_who *n_who);
    for (size_t i = 0; i < n_who; i++)
        for (size_t j = 0; j <= i; j++)
            b->like[i * n_who + j] = b->like[j * n_who + i] = kernel_beside(&b->who[i], &b->who[j]);
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0; j <= i; j++) {
            double jobs = like(b, b->job[i], b->job[j]);
            double neighbours = like(b, b->neighbour[i], b->neighbour[j]);
            k[i * size + j] = k[j * size + i] =
                COMMON + OF_JOB * jobs + OF_NEIGHBOUR * neighbours + OF_BOTH * jobs * neighbours;
        }
        k[i * size + i] += b->noises[i];
    }
    rows_init(a, kernel_beside, b->n_who, b->who, &b->rows);
    return gp_fit(a, n, k, b->y, &b->gp, e);
}

/* Position of a workload in 'who'; added when it is new. */
static int position(struct beside *b, int *at, const struct examples *x, int workload, int type)
{
    if (at[workload] < 0) {
        at[workload] = b->n_who;
        b->who[b->n_who++] =
            (struct kernel_point){ x->who[workload], *examples_at(x, workload, type) };
    }
    return at[workload];
}

int beside_fit(struct arena *a, const struct examples *x, int n, const struct example *list,
               struct beside *out, struct err *e)
{
    size_t size = (size_t)n;
    int *at = ARENA_ARRAY(a, int, (size_t)x->n_workloads);

    *out = (struct beside){ .who = ARENA_ARRAY(a, struct kernel_point, (size_t)x->n_workloads),
                            .job = ARENA_ARRAY(a, int, size),
                            .neighbour = ARENA_ARRAY(a, int, size),
                            .y = ARENA_ARRAY(a, double, size),
                            .noises = ARENA_ARRAY(a, double, size) };
    for (int w = 0; w < x->n_workloads; w++)
        at[w] = -1;
    for (int i = 0; i < n; i++) {
        double s = exp((double)list[i].value / 2);
        double noise = s * (double)list[i].noise / 2;
        out->job[i] = position(out, at, x, list[i].workload, list[i].gpu_type);
        out->neighbour[i] = position(out, at, x, list[i].neighbour, list[i].gpu_type);
        out->y[i] = (double)(float)(s - BESIDE_MEAN);    // as a file would keep it
        out->noises[i] = (double)(float)(UNEXPLAINED + noise * noise);
    }
    return solve(a, out, n, e);
}

/* The pairs that a workload takes part in. */
static int pairs_of(const struct beside *b, const struct identity *who, int *block)
{
    int m = 0;

    for (int i = 0; i < b->gp.n; i++)
        if (b->who[b->job[i]].who.name == who->name ||
            b->who[b->neighbour[i]].who.name == who->name)
            block[m++] = i;
    return m;
}

int beside_forget(struct arena *a, const struct beside *b, const struct identity *who,
                  const double **alpha, struct err *e)
{
    int *block = ARENA_ARRAY(a, int, (size_t)b->gp.n);
    int m = pairs_of(b, who, block);

    *alpha = b->gp.alpha;
    if (m == 0)
        return 0;
    double *rest = ARENA_ARRAY(a, double, (size_t)b->gp.n);
    *alpha = rest;
    return gp_without(a, &b->gp, m, block, rest, e);
}

/* The kernel with a workload is the same in both roles. */
void beside_as_job(struct arena *a, const struct beside *b, const double *alpha,
                   const float *as_neighbour, float *constant, float *as_job)
{
    double *sum = ARENA_ARRAY(a, double, (size_t)b->n_who), c = BESIDE_MEAN;

    for (int i = 0; i < b->gp.n; i++) {
        double job = (double)as_neighbour[b->job[i]];
        c += alpha[i] * (COMMON + OF_JOB * job);
        sum[b->neighbour[i]] += alpha[i] * (OF_NEIGHBOUR + OF_BOTH * job);
    }
    *constant = (float)c;
    for (int i = 0; i < b->n_who; i++)
        as_job[i] = (float)sum[i];
}

int beside_leave_out(struct arena *a, const struct beside *b, int m, const int *block, double *s,
                     struct err *e)
{
    int rc = gp_leave_out(a, &b->gp, b->y, m, block, s, NULL, e);

    for (int i = 0; i < m && rc == 0; i++)
        s[i] += BESIDE_MEAN;
    return rc;
}

/* As process_save: what it was made from. */
void beside_save(const struct beside *b, const char *name, struct weights *to)
{
    struct arena *a = to->a;
    int n = b->gp.n;
    float *rows = ARENA_ARRAY(a, float, (size_t)n * 4);

    points_save(b->who, b->n_who, arena_printf(a, "%s.points", name), to);
    for (int i = 0; i < n; i++) {
        rows[4 * i] = (float)b->job[i];
        rows[4 * i + 1] = (float)b->neighbour[i];
        rows[4 * i + 2] = (float)b->y[i];
        rows[4 * i + 3] = (float)b->noises[i];
    }
    weights_put(to, arena_printf(a, "%s.pairs", name), n, 4, rows);
}

/* Two positions among n_who, how far s is from BESIDE_MEAN, and the variance of that. */
static bool is_pair(const float *row, int n_who)
{
    float last = (float)(n_who - 1);

    return row[0] >= 0 && row[0] <= last && row[1] >= 0 && row[1] <= last && fabsf(row[2]) <= 1 &&
           row[3] > 0 && row[3] <= VARIANCE_MAX;
}

int beside_load(struct arena *a, const struct weights *from, const char *name, struct beside *out,
                struct err *e)
{
    const char *pairs = arena_printf(a, "%s.pairs", name);
    struct weights_reader in = { from, e, 0 };

    *out = (struct beside){ 0 };
    int rc = points_load(a, from, arena_printf(a, "%s.points", name), &out->who, &out->n_who, e);
    if (rc < 0)
        return rc;
    const float *rows = weights_floats(&in, pairs, -1, 4);
    if (in.rc < 0)
        return in.rc;
    int n = weights_find(from, pairs)->rows;
    if (n > EXAMPLES_PAIRS_MAX || out->n_who > 2 * n)
        return err_set(e, EINVAL, "%s: %d pairs of %d are more than a model has", pairs, n,
                       out->n_who);
    out->job = ARENA_ARRAY(a, int, (size_t)n);
    out->neighbour = ARENA_ARRAY(a, int, (size_t)n);
    out->y = ARENA_ARRAY(a, double, (size_t)n);
    out->noises = ARENA_ARRAY(a, double, (size_t)n);
    for (int i = 0; i < n; i++, rows += 4) {
        if (!is_pair(rows, out->n_who))
            return err_set(e, EINVAL, "%s: pair %d makes no sense", pairs, i);
        out->job[i] = (int)rows[0];
        out->neighbour[i] = (int)rows[1];
        out->y[i] = (double)rows[2];
        out->noises[i] = (double)rows[3];
    }
    return solve(a, out, n, e);
}

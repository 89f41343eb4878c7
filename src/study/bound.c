#include "study/bound.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "estimate/prior/limits.h"
#include "optimize/prices/lp.h"

/* Jobs of one workload and gang size. */
struct class
{
    int workload, n_gpus;
    double unit;    // steps of one unit of work
    double work;    // units
};

/* The GPUs of a type of the cluster. */
struct gpu_pool {
    const struct gpu_type *figures;
    int truth, n_gpus;
    double base_w;    // of one that nobody holds
    double *speed;    // (n_classes) steps/s of one GPU alone; 0: does not fit
};

struct bound_program {
    struct arena arena;
    const struct study_inputs *inputs;
    const struct truth *truth;
    bool has_limits;
    int reference;
    int n_classes;
    struct class *classes;
    int n_pools;
    struct gpu_pool *pools;
    int n_rows;    // GPU-seconds of the pools, then work of the classes
    double period_s, work_s;

    /* The columns: the horizon, what is done too much, then seconds. */
    int n_columns, n_entries;
    double *lower, *upper, *cost, *value;
    int *start, *index;
    int *pool_of;    // (n_columns) -1: none
};

/* ---- classes of jobs ---- */

static struct class *find_class(struct bound_program *p, const struct trace_job *j, struct err *e)
{
    const int w = truth_find_workload(p->truth, j->workload);
    const int type = w >= 0 ? truth_counted_on(p->truth, w, p->reference) : -1;
    struct class *c = p->classes;

    if (type < 0) {
        err_set(e, EINVAL, "job %s: workload '%s' runs nowhere", j->name, j->workload);
        return NULL;
    }
    while (c < p->classes + p->n_classes && (c->workload != w || c->n_gpus != j->n_gpus))
        c++;
    if (c < p->classes + p->n_classes)
        return c;
    p->n_classes++;
    *c = (struct class){ .workload = w,
                         .n_gpus = j->n_gpus,
                         .unit = truth_speed(p->truth, w, type) };
    return c;
}

static int make_classes(struct bound_program *p, struct err *e)
{
    const struct trace *t = &p->inputs->trace;
    int *of = ARENA_ARRAY(&p->arena, int, (size_t)t->n_jobs);

    p->classes = ARENA_ARRAY(&p->arena, struct class, (size_t)t->n_jobs);
    for (int i = 0; i < t->n_jobs; i++) {
        struct class *c = find_class(p, &t->jobs[i], e);

        if (c == NULL)
            return -EINVAL;
        of[i] = (int)(c - p->classes);
    }
    for (int k = 0; k < p->n_classes; k++) {
        for (int i = 0; i < t->n_jobs; i++) {
            const struct trace_job *j = &t->jobs[i];
            double steps = j->is_inference ? j->rate * j->duration_s : j->steps;

            if (of[i] != k)
                continue;
            p->classes[k].work += steps / p->classes[k].unit;
            p->work_s += steps / p->classes[k].unit;
        }
    }
    return 0;
}

/* ---- pools of GPUs ---- */

/* A GPU's part in the speed of a gang, where that is largest. */
static double speed_of(const struct truth *t, const struct class *c, int type)
{
    return fmax(truth_gang_speed(t, c->workload, type, c->n_gpus, 0),
                truth_gang_speed(t, c->workload, type, c->n_gpus, 1)) /
           c->n_gpus;
}

static int make_pools(struct bound_program *p, bool has_sleep, struct err *e)
{
    const struct cluster *cl = &p->inputs->cluster;

    p->n_pools = cl->n_types;
    p->pools = ARENA_ARRAY(&p->arena, struct gpu_pool, (size_t)cl->n_types);
    for (int i = 0; i < cl->n_types; i++) {
        struct gpu_pool *k = &p->pools[i];

        k->figures = &cl->types[i];
        k->truth = truth_find_type(p->truth, k->figures->name);
        if (k->truth < 0)
            return err_set(e, EINVAL, "the ground truth has no GPU type '%s'", k->figures->name);
        k->base_w = has_sleep ? k->figures->sleep_w : k->figures->idle_w;
        k->speed = ARENA_ARRAY(&p->arena, double, (size_t)p->n_classes);
        for (int c = 0; c < p->n_classes; c++)
            k->speed[c] = speed_of(p->truth, &p->classes[c], k->truth);
    }
    for (int i = 0; i < cl->n_nodes; i++)
        for (int g = 0; g < cl->nodes[i].n_gpus; g++)
            p->pools[cl->nodes[i].types[g]].n_gpus++;
    return 0;
}

static int check_places(const struct bound_program *p, struct err *e)
{
    for (int i = 0; i < p->n_classes; i++) {
        double best = 0;

        for (int k = 0; k < p->n_pools; k++)
            if (p->pools[k].n_gpus > 0)
                best = fmax(best, p->pools[k].speed[i]);
        if (best <= 0)
            return err_set(e, EINVAL, "workload '%s' fits on no GPU of the cluster",
                           p->truth->catalog->workloads[p->classes[i].workload].name);
    }
    return 0;
}

/* ---- columns ---- */

static void open_columns(struct bound_program *p)
{
    const size_t n = (size_t)p->n_classes;
    size_t most =
        1 + (size_t)p->n_rows + (size_t)p->n_pools * (1 + LIMITS_OFFERED) * (n + n * (n + 1) / 2);

    p->lower = ARENA_ARRAY(&p->arena, double, most);
    p->upper = ARENA_ARRAY(&p->arena, double, most);
    p->cost = ARENA_ARRAY(&p->arena, double, most);
    p->start = ARENA_ARRAY(&p->arena, int, most + 1);
    p->pool_of = ARENA_ARRAY(&p->arena, int, most);
    p->index = ARENA_ARRAY(&p->arena, int, 3 * most + (size_t)p->n_pools);
    p->value = ARENA_ARRAY(&p->arena, double, 3 * most + (size_t)p->n_pools);
}

static void add_entry(struct bound_program *p, int row, double value)
{
    p->index[p->n_entries] = row;
    p->value[p->n_entries++] = value;
}

static void add_column(struct bound_program *p, double cost, double low, double high, int kind)
{
    p->cost[p->n_columns] = cost;
    p->lower[p->n_columns] = low;
    p->upper[p->n_columns] = high;
    p->pool_of[p->n_columns++] = kind;
    p->start[p->n_columns] = p->n_entries;
}

/* One second of a GPU of kind 'k' with 'n' jobs of classes 'c' on it, under 'limit_w'. */
static void add_place(struct bound_program *p, int kind, const int *c, int n, int limit_w)
{
    const struct gpu_pool *k = &p->pools[kind];
    struct truth_residents on = { .n = n };
    struct limited l;

    for (int i = 0; i < n; i++)
        on.workload[i] = p->classes[c[i]].workload;
    for (int i = 0; i < n; i++) {
        on.share[i] =
            n == 1 ? 1 : truth_slowdown(p->truth, on.workload[i], k->truth, on.workload[1 - i]);
        if (k->speed[c[i]] <= 0 || on.share[i] <= 0)
            return;
    }
    l = truth_drawn(p->truth, (enum power_model)p->inputs->cluster.settings.power_model, k->figures,
                    k->truth, &on, limit_w);
    add_entry(p, kind, 1);
    for (int i = 0; i < n; i++) {
        double work = k->speed[c[i]] * on.share[i] * l.speed / p->classes[c[i]].unit;

        if (i == 1 && c[1] == c[0])
            p->value[p->n_entries - 1] += work;
        else
            add_entry(p, p->n_pools + c[i], work);
    }
    add_column(p, l.watts - k->base_w, 0, INFINITY, kind);
}

static void add_limit(struct bound_program *p, int kind, int limit_w)
{
    for (int a = 0; a < p->n_classes; a++) {
        add_place(p, kind, &a, 1, limit_w);
        for (int b = a; p->inputs->cluster.settings.theta > 1 && b < p->n_classes; b++)
            add_place(p, kind, (const int[]){ a, b }, 2, limit_w);
    }
}

static void add_places(struct bound_program *p)
{
    for (int k = 0; k < p->n_pools; k++) {
        int limits[LIMITS_OFFERED];
        int n = p->has_limits ? limits_offer(p->pools[k].figures, limits) : 0;

        add_limit(p, k, 0);
        for (int i = 0; i < n; i++)
            add_limit(p, k, limits[i]);
    }
}

/* ---- the program: rates over the arrival period, watts ---- */

static void add_rows(struct bound_program *p, struct lp *lp)
{
    double *low = ARENA_ARRAY(&p->arena, double, (size_t)p->n_rows);
    double *high = ARENA_ARRAY(&p->arena, double, (size_t)p->n_rows);
    int *start = ARENA_ARRAY(&p->arena, int, (size_t)p->n_rows + 1);

    for (int k = 0; k < p->n_pools; k++)
        low[k] = -INFINITY;
    for (int i = 0; i < p->n_classes; i++) {
        const int row = p->n_pools + i;

        low[row] = high[row] = p->classes[i].work / p->period_s;
    }
    lp_add_rows(lp, &(struct lp_lines){ p->n_rows, low, high, NULL, start, p->index, p->value });
}

/* Minimise the energy with the horizon (column 0) from 'low' to 'high' arrival periods; with
 * 'is_short' the horizon itself. The values, or NULL: there is no solution.
 */
static double *solve(struct bound_program *p, double low, double high, bool is_short)
{
    double *cost = ARENA_ARRAY(&p->arena, double, (size_t)p->n_columns);
    double *values = NULL;
    struct lp *lp = lp_create();

    p->lower[0] = low;
    p->upper[0] = high;
    for (int i = 0; i < p->n_columns; i++)
        cost[i] = is_short ? i == 0 : p->cost[i];
    add_rows(p, lp);
    lp_add_columns(lp, &(struct lp_lines){ p->n_columns, p->lower, p->upper, cost, p->start,
                                           p->index, p->value });
    if (lp_solve(lp, LP_PRIMAL)) {
        values = ARENA_ARRAY(&p->arena, double, (size_t)p->n_columns);
        for (int i = 0; i < p->n_columns; i++)
            values[i] = lp_values(lp)[i];
    }
    lp_destroy(lp);
    return values;
}

static double energy_of(const struct bound_program *p, const double *values)
{
    double watts = 0;

    for (int i = 0; i < p->n_columns; i++)
        watts += p->cost[i] * values[i];
    return watts * p->period_s;
}

static void read_out(struct arena *a, const struct bound_program *p, const double *values,
                     struct bound *out)
{
    const size_t n = (size_t)p->truth->n_types;

    *out = (struct bound){
        .energy_j = energy_of(p, values),
        .horizon_s = values[0] * p->period_s,
        .work_s = p->work_s,
        .type_gpu_s = ARENA_ARRAY(a, double, n),
        .type_j = ARENA_ARRAY(a, double, n),
    };
    for (int k = 0; k < p->n_pools; k++)
        out->type_j[p->pools[k].truth] += p->pools[k].n_gpus * p->pools[k].base_w * out->horizon_s;
    for (int i = 0; i < p->n_columns; i++) {
        if (p->pool_of[i] < 0)
            continue;
        const int type = p->pools[p->pool_of[i]].truth;

        out->gpu_s += values[i] * p->period_s;
        out->type_gpu_s[type] += values[i] * p->period_s;
        out->type_j[type] += p->cost[i] * values[i] * p->period_s;
    }
}

/* The least energy at the pace of arrivals, and at whatever pace. Where the pace is more than the
 * cluster can keep, the horizon is first made as short as can be.
 */
static int solve_both(struct arena *a, struct bound_program *p, struct bound *out, struct err *e)
{
    double *values = solve(p, 1, 1, false);

    if (values == NULL) {
        values = solve(p, 1, INFINITY, true);
        if (values != NULL)
            values = solve(p, 1, fmax(values[0], 1) * (1 + 1e-7), false);
    }
    if (values == NULL)
        return err_set(e, EDOM, "the linear program of the bound has no solution");
    read_out(a, p, values, out);
    values = solve(p, 1, INFINITY, false);
    if (values == NULL)
        return err_set(e, EDOM, "the linear program of the bound has no least solution");
    out->least_j = energy_of(p, values);
    return 0;
}

static void make_columns(struct bound_program *p)
{
    double base_w = 0;

    p->n_rows = p->n_pools + p->n_classes;
    open_columns(p);
    for (int k = 0; k < p->n_pools; k++) {
        add_entry(p, k, -p->pools[k].n_gpus);
        base_w += p->pools[k].n_gpus * p->pools[k].base_w;
    }
    add_column(p, base_w, 1, 1, -1);
    for (int i = 0; i < p->n_classes; i++) {    // work done too much harms nobody
        add_entry(p, p->n_pools + i, -1);
        add_column(p, 0, 0, INFINITY, -1);
    }
    add_places(p);
}

static int check(const struct bound_program *p, struct err *e)
{
    if (p->inputs->cluster.settings.theta > 2)
        return err_set(e, EINVAL,
                       "the bound knows of two jobs a GPU at most, the cluster lets %d share one",
                       p->inputs->cluster.settings.theta);
    if (!(p->period_s > 0))
        return err_set(e, EINVAL, "the bound needs jobs that arrive over some time");
    return 0;
}

int bound_solve(struct arena *a, const struct study_inputs *s, bool has_limits, bool has_sleep,
                struct bound *out, struct err *e)
{
    struct bound_program p = {
        .inputs = s,
        .truth = &s->ground.truth,
        .has_limits = has_limits,
        .period_s = s->arrivals_s,
        .reference = truth_reference(&s->ground.truth, s->reference),
    };
    int rc = check(&p, e);

    if (rc < 0)
        return rc;
    arena_init(&p.arena);
    rc = make_classes(&p, e);
    if (rc == 0)
        rc = make_pools(&p, has_sleep, e);
    if (rc == 0)
        rc = check_places(&p, e);
    if (rc == 0) {
        make_columns(&p);
        rc = solve_both(a, &p, out, e);
    }
    arena_release(&p.arena);
    return rc;
}

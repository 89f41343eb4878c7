/* problem_check.c - is it a problem at all? Names what is wrong by its place in a problem file
 * (docs/formats/problem.md), so that the reader of a file need not look again.
 */
#include "optimize/model/problem.h"

#include <errno.h>
#include <float.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"

/* ---- single numbers ---- */

static bool is_at_least(double x, double low)
{
    return isfinite(x) && x >= low;
}

struct number {
    const char *key;
    double value;
};

/* All of them finite and not below 0, or the first that is not. 'index' -1: not of a list. */
static int check_numbers(const char *list, int index, const struct number *numbers, int n,
                         struct err *e)
{
    for (int i = 0; i < n; i++) {
        if (is_at_least(numbers[i].value, 0))
            continue;
        if (index < 0)
            return err_set(e, EINVAL, "%s is %g: want a finite number, 0 or more", numbers[i].key,
                           numbers[i].value);
        return err_set(e, EINVAL, "%s[%d].%s is %g: want a finite number, 0 or more", list, index,
                       numbers[i].key, numbers[i].value);
    }
    return 0;
}

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* ---- the frame ---- */

static int check_sizes(const struct problem *p, struct err *e)
{
    if (p->theta < 1 || p->theta > THETA_MAX)
        return err_set(e, EINVAL, "theta is %d: want 1 to %d", p->theta, THETA_MAX);
    if (p->n_types < 0 || p->n_types > 64)
        return err_set(e, EINVAL, "%d types: want at most 64", p->n_types);
    if (p->n_kinds < 0 || p->n_gpus < 0 || p->n_jobs < 0 || p->n_racks < 0)
        return err_set(e, EINVAL, "a negative number of kinds, gpus, jobs or racks");
    return 0;
}

static int check_caps(const struct problem *p, struct err *e)
{
    const struct number numbers[] = {
        { "z", p->z },
        { "price_w", p->price_w },
        { "power_cap_w", p->power_cap_w },
    };

    if (!is_at_least(p->watts_margin, 1))
        return err_set(e, EINVAL, "watts_margin is %g: want a finite number, 1 or more",
                       p->watts_margin);
    for (int r = 0; r < p->n_racks && p->rack_cap_w != NULL; r++)
        if (!is_at_least(p->rack_cap_w[r], 0))
            return err_set(e, EINVAL, "racks[%d] is %g: want watts, or 0 for no cap", r,
                           p->rack_cap_w[r]);
    return check_numbers(NULL, -1, numbers, COUNT(numbers), e);
}

/* Only for sizes that some job may have. */
static int check_gang_factors(const struct problem *p, struct err *e)
{
    int most = 1;

    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name != NULL && p->jobs[j].form == FORM_GANG && p->jobs[j].n_max > most)
            most = p->jobs[j].n_max;
    for (int m = 2; m <= most; m++) {
        double near = p->gang_near[m], far = p->gang_far[m];
        if (!(far > 0) || !isfinite(near) || far > near)
            return err_set(e, EINVAL,
                           "gang_near and gang_far of %d GPUs are %g and %g: want 0 < far <= near",
                           m, near, far);
    }
    return 0;
}

/* ---- types and kinds ---- */

static int check_curve(const struct limit_curve *c, int type, int limit, struct err *e)
{
    if (c->limit_w <= 0 || c->n_points < 2)
        return err_set(e, EINVAL, "types[%d].limits[%d]: want watts above 0 and at least 2 points",
                       type, limit - 1);
    for (int i = 0; i < c->n_points; i++) {
        if (!(c->speed[i] > 0 && c->speed[i] <= 1))
            return err_set(e, EINVAL, "types[%d].limits[%d].speed[%d] is %g: want 0 < factor <= 1",
                           type, limit - 1, i, c->speed[i]);
        if (!is_at_least(c->watts[i], 0))
            return err_set(e, EINVAL, "types[%d].limits[%d].watts[%d] is %g: want 0 or more", type,
                           limit - 1, i, c->watts[i]);
    }
    return 0;
}

static int check_limits(const struct problem_type *t, int type, struct err *e)
{
    if (t->n_limits < 1 || t->n_limits > LIMITS_MAX)
        return err_set(e, EINVAL, "types[%d].limits: at most %d of them", type, LIMITS_MAX - 1);
    if (t->n_limits > 1 && !(t->cap_w > t->idle_w))
        return err_set(e, EINVAL, "types[%d].cap_w must be above idle_w where there are limits",
                       type);
    for (int l = 1; l < t->n_limits; l++) {
        int rc = check_curve(&t->limits[l], type, l, e);
        if (rc < 0)
            return rc;
        for (int k = 1; k < l; k++)
            if (t->limits[k].limit_w == t->limits[l].limit_w)
                return err_set(e, EINVAL, "types[%d].limits[%d]: %d W is there twice", type, l - 1,
                               t->limits[l].limit_w);
    }
    return 0;
}

static int check_type(const struct problem *p, int type, struct err *e)
{
    const struct problem_type *t = &p->types[type];
    const struct number numbers[] = {
        { "sleep_w", t->sleep_w },
        { "idle_w", t->idle_w },
        { "cap_w", t->cap_w },
        { "mem_gib", t->mem_gib },
    };
    int rc = check_numbers("types", type, numbers, COUNT(numbers), e);

    if (rc < 0)
        return rc;
    if (t->sleep_w > t->idle_w || t->idle_w > t->cap_w)
        return err_set(e, EINVAL, "types[%d]: want sleep_w <= idle_w <= cap_w, not %g, %g, %g",
                       type, t->sleep_w, t->idle_w, t->cap_w);
    return check_limits(t, type, e);
}

static int check_kind(const struct problem *p, int kind, struct err *e)
{
    const struct problem_kind *k = &p->kinds[kind];
    const struct number numbers[] = {
        { "mem_gib", k->mem_gib },
        { "value_j", k->value_j },
        { "rate", k->rate },
        { "time_w", k->time_w },
    };

    return check_numbers("kinds", kind, numbers, COUNT(numbers), e);
}

/* ---- tables ---- */

/* Written so that it is false for NaN. */
static bool is_finite_rate(float x)
{
    return x >= 0 && x <= FLT_MAX;
}

static bool is_row_good(const float *speed, const float *low, int n)
{
    bool is_good = true;

    for (int i = 0; i < n; i++)
        is_good &= is_finite_rate(speed[i]) & (low[i] >= 0) & (low[i] <= speed[i]);
    return is_good;
}

/* A row that is not good: what exactly. */
static int blame_row(const float *speed, const float *low, int n, int type, int kind, struct err *e)
{
    int i = 0;

    while (i < n - 1 && is_finite_rate(speed[i]) && low[i] >= 0 && low[i] <= speed[i])
        i++;
    double s = (double)speed[i], l = (double)low[i];
    if (i == 0)
        return err_set(e, EINVAL,
                       "types[%d].speed[%d] is %g and %g is held: want finite numbers, "
                       "0 <= held <= speed",
                       type, kind, s, l);
    return err_set(e, EINVAL,
                   "types[%d].slowdown[%d][%d] makes a speed of %g of which %g is held: want "
                   "finite numbers, 0 <= held <= speed",
                   type, kind, i - 1, s, l);
}

static int check_cells(const struct problem *p, int type, struct err *e)
{
    for (int k = 0; k < p->n_kinds; k++) {
        long cell = problem_cell(p, type, k, -1);
        float watts = p->watts[type * p->n_kinds + k];
        if (!is_row_good(&p->speed[cell], &p->low[cell], p->n_kinds + 1))
            return blame_row(&p->speed[cell], &p->low[cell], p->n_kinds + 1, type, k, e);
        if (!is_finite_rate(watts))
            return err_set(e, EINVAL, "types[%d].watts[%d] is %g: want a finite number, 0 or more",
                           type, k, (double)watts);
    }
    return 0;
}

/* How kinds differ from the type's curves; files do not say. */
static int check_bends(const struct problem *p, int type, struct err *e)
{
    for (int k = 0; k < p->n_kinds && p->bends != NULL; k++) {
        const struct problem_bend *b = &p->bends[type * p->n_kinds + k];
        if (!is_finite_rate(b->loss) || !is_finite_rate(b->draw) || !is_finite_rate(b->doubt) ||
            !isfinite(b->at))
            return err_set(e, EINVAL,
                           "bends of kind %d on type %d: loss %g, draw %g, doubt %g, at %g: want "
                           "finite numbers, and but for the last 0 or more",
                           k, type, (double)b->loss, (double)b->draw, (double)b->doubt,
                           (double)b->at);
    }
    return 0;
}

static int check_tables(const struct problem *p, struct err *e)
{
    for (int k = 0; k < p->n_kinds; k++) {
        int rc = check_kind(p, k, e);
        if (rc < 0)
            return rc;
    }
    for (int t = 0; t < p->n_types; t++) {
        int rc = check_type(p, t, e);
        if (rc == 0)
            rc = check_cells(p, t, e);
        if (rc == 0)
            rc = check_bends(p, t, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- GPUs ---- */

static int check_gpu(const struct problem *p, int gpu, struct err *e)
{
    const struct problem_gpu *g = &p->gpus[gpu];
    bool has_racks = p->n_racks > 0 || p->rack_cap_w != NULL;

    if (g->type < 0 || g->type >= p->n_types)
        return err_set(e, EINVAL, "GPU %d has type %d: there are %d types", gpu, g->type,
                       p->n_types);
    if (g->node < 0)
        return err_set(e, EINVAL, "GPU %d has node %d: nodes are numbered from 0", gpu, g->node);
    if (!(g->wake_s >= 0 && g->wake_s <= 1e9))
        return err_set(e, EINVAL, "GPU %d has wake_s %g: want 0 (awake) to 1e9 s", gpu, g->wake_s);
    if (g->rack < 0 || (has_racks && g->rack >= p->n_racks))
        return err_set(e, EINVAL, "GPU %d has rack %d: there are %d racks", gpu, g->rack,
                       p->n_racks);
    return 0;
}

/* A node stands in one rack, and its GPUs of a type wake together. */
static int check_node(const struct problem *p, int gpu, struct map_u64 *nodes,
                      struct map_u64 *types, struct err *e)
{
    const struct problem_gpu *g = &p->gpus[gpu];
    uint64_t node = (uint64_t)g->node, type = node << 8 | (uint64_t)g->type;
    int of_node = map_u64_get(nodes, node), of_type = map_u64_get(types, type);

    if (of_node >= 0 && p->gpus[of_node].rack != g->rack)
        return err_set(e, EINVAL, "GPU %d: node %d stands in racks %d and %d", gpu, g->node,
                       p->gpus[of_node].rack, g->rack);
    if (of_type >= 0 && p->gpus[of_type].wake_s != g->wake_s)
        return err_set(e, EINVAL, "GPU %d: those of one type on node %d wake together", gpu,
                       g->node);
    if (of_node < 0)
        map_u64_set(nodes, node, gpu);
    if (of_type < 0)
        map_u64_set(types, type, gpu);
    return 0;
}

static int check_nodes(const struct problem *p, struct err *e)
{
    struct map_u64 nodes, types;
    int rc = 0;

    map_u64_init(&nodes);
    map_u64_init(&types);
    for (int g = 0; g < p->n_gpus && rc == 0; g++)
        rc = check_node(p, g, &nodes, &types, e);
    map_u64_release(&nodes);
    map_u64_release(&types);
    return rc;
}

static int check_gpus(const struct problem *p, struct err *e)
{
    for (int g = 0; g < p->n_gpus; g++) {
        int rc = check_gpu(p, g, e);
        if (rc < 0)
            return rc;
    }
    return check_nodes(p, e);
}

/* ---- jobs ---- */

static int check_form(const struct problem_job *j, int job, struct err *e)
{
    if (j->form != FORM_GANG && j->form != FORM_SPREAD)
        return err_set(e, EINVAL, "jobs[%d].form is neither a gang nor spread", job);
    if (j->n_min < 1 || j->n_max < j->n_min || j->n_max > GANG_MAX)
        return err_set(e, EINVAL, "jobs[%d]: want 1 <= n_min <= n_max <= %d, not %d and %d", job,
                       GANG_MAX, j->n_min, j->n_max);
    if (j->form == FORM_SPREAD && j->n_min != 1)
        return err_set(e, EINVAL, "jobs[%d].n_min is %d: a spread job has 1 to n_max parts", job,
                       j->n_min);
    if (j->form == FORM_SPREAD && j->n_nodes != 0)
        return err_set(e, EINVAL, "jobs[%d].%s: only for gangs", job,
                       j->n_nodes == 1 ? "one_node" : "n_nodes");
    if (j->n_nodes < 0 || (j->n_nodes > 1 && (j->n_min != j->n_max || j->n_min % j->n_nodes != 0)))
        return err_set(e, EINVAL,
                       "jobs[%d].n_nodes is %d: want n_min = n_max, and a multiple of the nodes",
                       job, j->n_nodes);
    return 0;
}

static int check_job(const struct problem *p, int job, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];
    const struct number numbers[] = {
        { "need", j->need },     { "short_w", j->short_w },     { "wait_w", j->wait_w },
        { "move_w", j->move_w }, { "wake_rate", j->wake_rate }, { "late_w", j->late_w },
    };

    if (j->kind < 0 || j->kind >= p->n_kinds)
        return err_set(e, EINVAL, "jobs[%d].kind is %d: there are %d kinds", job, j->kind,
                       p->n_kinds);
    if (p->n_types < 64 && j->allowed_types >> p->n_types != 0)
        return err_set(e, EINVAL, "jobs[%d].types: there are %d types", job, p->n_types);
    if (j->is_fixed && j->n_present == 0)
        return err_set(e, EINVAL, "jobs[%d].fixed: it does not run, so it cannot stay", job);
    int rc = check_form(j, job, e);
    return rc < 0 ? rc : check_numbers("jobs", job, numbers, COUNT(numbers), e);
}

/* ---- who runs where now ---- */

struct seat {
    int n;
    int jobs[THETA_MAX];
};

static int check_present_gpu(const struct problem *p, int job, int i, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];
    int gpu = j->present[i];

    if (gpu < 0 || gpu >= p->n_gpus)
        return err_set(e, EINVAL, "jobs[%d].present[%d] is GPU %d: there are %d", job, i, gpu,
                       p->n_gpus);
    if (i > 0 && gpu <= j->present[i - 1])
        return err_set(e, EINVAL, "jobs[%d].present: list each GPU once, in rising order", job);
    if (!problem_allows(j, p->gpus[gpu].type))
        return err_set(e, EINVAL,
                       "jobs[%d].present[%d]: GPU %d is of a type that 'types' leaves out", job, i,
                       gpu);
    if (j->present_limit < 0 || j->present_limit >= p->types[p->gpus[gpu].type].n_limits)
        return err_set(e, EINVAL, "jobs[%d].limit_w: GPU %d has no such power limit", job, gpu);
    return 0;
}

static int check_present_gang(const struct problem *p, int job, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];
    const struct problem_gpu *first = &p->gpus[j->present[0]];

    if (j->n_present < j->n_min)
        return err_set(e, EINVAL, "jobs[%d].present: a gang runs whole, on %d GPUs or more", job,
                       j->n_min);
    for (int i = 1; i < j->n_present; i++) {
        const struct problem_gpu *g = &p->gpus[j->present[i]];
        if (g->type != first->type)
            return err_set(e, EINVAL, "jobs[%d].present: a gang runs on GPUs of one type", job);
        if (j->n_nodes == 1 && g->node != first->node)
            return err_set(e, EINVAL, "jobs[%d].present: it asks for one node, and is on two", job);
    }
    if (j->n_nodes > 1 && !problem_stands(p, j->present, j->n_present, j->n_nodes))
        return err_set(e, EINVAL,
                       "jobs[%d].present: it asks for %d nodes in equal parts, and is on others",
                       job, j->n_nodes);
    return 0;
}

static int check_present(const struct problem *p, int job, struct seat *seats, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];

    if (j->n_present < 0 || j->n_present > j->n_max)
        return err_set(e, EINVAL, "jobs[%d].present: %d GPUs, and n_max is %d", job, j->n_present,
                       j->n_max);
    for (int i = 0; i < j->n_present; i++) {
        int rc = check_present_gpu(p, job, i, e);
        if (rc < 0)
            return rc;
        struct seat *s = &seats[j->present[i]];
        if (s->n == p->theta)
            return err_set(e, EINVAL, "jobs[%d].present[%d]: GPU %d has %d jobs already (theta)",
                           job, i, j->present[i], p->theta);
        s->jobs[s->n++] = job;
    }
    return j->form == FORM_GANG && j->n_present > 0 ? check_present_gang(p, job, e) : 0;
}

/* Those that share a GPU: may they, and do they agree on its setting? */
static int check_seat(const struct problem *p, int gpu, const struct seat *s, struct err *e)
{
    const struct problem_job *first = &p->jobs[s->jobs[0]];
    int kinds[THETA_MAX];
    struct yield y;

    for (int i = 0; i < s->n; i++) {
        const struct problem_job *j = &p->jobs[s->jobs[i]];
        bool is_alone = j->is_exclusive || (j->form == FORM_GANG && j->n_present > 1);
        kinds[i] = j->kind;
        if (is_alone && s->n > 1)
            return err_set(e, EINVAL,
                           "jobs[%d].present: it has GPUs to itself, but GPU %d has %d jobs",
                           s->jobs[i], gpu, s->n);
        if (j->present_limit != first->present_limit)
            return err_set(e, EINVAL, "jobs[%d].limit_w: jobs[%d] says otherwise of GPU %d",
                           s->jobs[i], s->jobs[0], gpu);
    }
    if (!problem_yield(p, p->gpus[gpu].type, first->present_limit, kinds, s->n, &y))
        return err_set(e, EINVAL,
                       "jobs[%d].present: those on GPU %d cannot run so (memory, a speed of 0, or "
                       "a limit)",
                       s->jobs[0], gpu);
    return 0;
}

/* A frozen job keeps its GPUs, and nobody may come there. */
static int check_frozen(const struct problem *p, int job, bool *is_held, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];

    if (j->name != NULL || j->n_present == 0 || j->kind < 0 || j->kind >= p->n_kinds)
        return err_set(e, EINVAL, "jobs[%d] is frozen: want no name, GPUs and a kind", job);
    for (int i = 0; i < j->n_present; i++) {
        int gpu = j->present[i];
        if (gpu < 0 || gpu >= p->n_gpus || p->gpus[gpu].may_start || !(p->gpus[gpu].held_w > 0))
            return err_set(e, EINVAL, "jobs[%d] is frozen, and GPU %d is not held for it", job,
                           gpu);
        is_held[gpu] = true;
    }
    return 0;
}

static int check_jobs(struct arena *a, const struct problem *p, struct err *e)
{
    struct seat *seats = ARENA_ARRAY(a, struct seat, (size_t)p->n_gpus);
    bool *is_held = ARENA_ARRAY(a, bool, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++) {
        int rc = p->jobs[j].frozen ? check_frozen(p, j, is_held, e) : 0;
        if (rc == 0 && p->jobs[j].name)
            rc = check_job(p, j, e);
        if (rc == 0 && p->jobs[j].name)
            rc = check_present(p, j, seats, e);
        if (rc < 0)
            return rc;
    }
    for (int g = 0; g < p->n_gpus; g++) {
        int rc = seats[g].n > 0 ? check_seat(p, g, &seats[g], e) : 0;
        if (rc == 0 && seats[g].n > 0 && is_held[g])
            rc = err_set(e, EINVAL, "GPU %d is held for a frozen job, and jobs[%d] is there", g,
                         seats[g].jobs[0]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int problem_check(const struct problem *p, struct err *e)
{
    struct arena a;
    int rc = check_sizes(p, e);

    if (rc == 0)
        rc = check_caps(p, e);
    if (rc == 0)
        rc = check_tables(p, e);
    if (rc == 0)
        rc = check_gpus(p, e);
    if (rc < 0)
        return rc;
    arena_init(&a);
    rc = check_jobs(&a, p, e);
    arena_release(&a);
    return rc < 0 ? rc : check_gang_factors(p, e);
}

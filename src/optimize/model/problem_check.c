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

/* Go on if it is so; else say what is wrong, in the caller's 'e', and return false. */
#define WANT(is_so, ...)                      \
    do {                                      \
        if (!(is_so)) {                       \
            err_fill(e, EINVAL, __VA_ARGS__); \
            return false;                     \
        }                                     \
    } while (0)

/* ---- single numbers ---- */

/* Its key and its place; then come the least, what is meant where it is absent, and is_brief. */
#define FIELD(of, member) #member, offsetof(struct of, member)

const struct problem_field problem_fields[] = {
    { FIELD(problem, z), 0, 1, false },
    { FIELD(problem, price_w), 0, 0, false },
    { FIELD(problem, power_cap_w), 0, 0, false },
    { FIELD(problem, watts_margin), 1, 1, false },
    { .key = NULL },
};
const struct problem_field problem_type_fields[] = {
    { FIELD(problem_type, sleep_w), 0, 0, false },
    { FIELD(problem_type, idle_w), 0, 0, false },
    { FIELD(problem_type, cap_w), 0, (double)NAN, false },
    { FIELD(problem_type, mem_gib), 0, (double)NAN, false },
    { .key = NULL },
};
const struct problem_field problem_kind_fields[] = {
    { FIELD(problem_kind, mem_gib), 0, 0, false },
    { FIELD(problem_kind, value_j), 0, 0, false },
    { FIELD(problem_kind, rate), 0, 0, true },
    { FIELD(problem_kind, time_w), 0, 0, true },
    { .key = NULL },
};
const struct problem_field problem_job_fields[] = {
    { FIELD(problem_job, need), 0, 0, true },       { FIELD(problem_job, short_w), 0, 1000, false },
    { FIELD(problem_job, wait_w), 0, 1000, false }, { FIELD(problem_job, move_w), 0, 0, true },
    { FIELD(problem_job, wake_rate), 0, 0, true },  { FIELD(problem_job, late_w), 0, 0, true },
    { FIELD(problem_job, start_w), 0, 0, true },    { .key = NULL },
};

static bool is_at_least(double x, double low)
{
    return isfinite(x) && x >= low;
}

/* The numbers of a struct that is 'list'[index]; -1: not of a list. */
static bool check_fields(const char *list, int index, const struct problem_field *fields,
                         const void *from, struct err *e)
{
    for (const struct problem_field *f = fields; f->key != NULL; f++) {
        double x = *(const double *)(const void *)((const char *)from + f->at);
        WANT(index >= 0 || is_at_least(x, f->least), "%s is %g: want a finite number, %g or more",
             f->key, x, f->least);
        WANT(is_at_least(x, f->least), "%s[%d].%s is %g: want a finite number, %g or more", list,
             index, f->key, x, f->least);
    }
    return true;
}

/* ---- the frame ---- */

static bool check_frame(const struct problem *p, struct err *e)
{
    WANT(p->theta >= 1 && p->theta <= THETA_MAX, "theta is %d: want 1 to %d", p->theta, THETA_MAX);
    WANT(p->n_types >= 0 && p->n_types <= 64, "%d types: want at most 64", p->n_types);
    WANT(p->n_kinds >= 0 && p->n_gpus >= 0 && p->n_jobs >= 0 && p->n_racks >= 0,
         "a negative number of kinds, gpus, jobs or racks");
    for (int r = 0; r < p->n_racks && p->rack_cap_w != NULL; r++)
        WANT(is_at_least(p->rack_cap_w[r], 0), "racks[%d] is %g: want watts, or 0 for no cap", r,
             p->rack_cap_w[r]);
    return check_fields(NULL, -1, problem_fields, p, e);
}

/* Only for sizes that some job may have. */
static bool check_gang_factors(const struct problem *p, struct err *e)
{
    int most = 1;

    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name != NULL && p->jobs[j].form == FORM_GANG && p->jobs[j].n_max > most)
            most = p->jobs[j].n_max;
    for (int m = 2; m <= most; m++) {
        double near = p->gang_near[m], far = p->gang_far[m];
        WANT(far > 0 && isfinite(near) && far <= near,
             "gang_near and gang_far of %d GPUs are %g and %g: want 0 < far <= near", m, near, far);
    }
    return true;
}

/* ---- types and kinds ---- */

static bool check_curve(const struct limit_curve *c, int type, int limit, struct err *e)
{
    WANT(c->limit_w > 0 && c->n_points >= 2,
         "types[%d].limits[%d]: want watts above 0 and at least 2 points", type, limit);
    for (int i = 0; i < c->n_points; i++) {
        WANT(c->speed[i] > 0 && c->speed[i] <= 1,
             "types[%d].limits[%d].speed[%d] is %g: want 0 < factor <= 1", type, limit, i,
             c->speed[i]);
        WANT(is_at_least(c->watts[i], 0), "types[%d].limits[%d].watts[%d] is %g: want 0 or more",
             type, limit, i, c->watts[i]);
    }
    return true;
}

static bool check_type(const struct problem *p, int type, struct err *e)
{
    const struct problem_type *t = &p->types[type];

    if (!check_fields("types", type, problem_type_fields, t, e))
        return false;
    WANT(t->sleep_w <= t->idle_w && t->idle_w <= t->cap_w,
         "types[%d]: want sleep_w <= idle_w <= cap_w, not %g, %g, %g", type, t->sleep_w, t->idle_w,
         t->cap_w);
    WANT(t->n_limits >= 1 && t->n_limits <= LIMITS_MAX, "types[%d].limits: at most %d of them",
         type, LIMITS_MAX - 1);
    WANT(t->n_limits == 1 || t->cap_w > t->idle_w,
         "types[%d].cap_w must be above idle_w where there are limits", type);
    for (int l = 1; l < t->n_limits; l++) {
        if (!check_curve(&t->limits[l], type, l - 1, e))
            return false;
        for (int k = 1; k < l; k++)
            WANT(t->limits[k].limit_w != t->limits[l].limit_w,
                 "types[%d].limits[%d]: %d W is there twice", type, l - 1, t->limits[l].limit_w);
    }
    return true;
}

/* ---- tables ---- */

/* Written so that it is false for NaN. */
static bool is_finite_rate(float x)
{
    return x >= 0 && x <= FLT_MAX;
}

static bool is_cell_good(float speed, float low)
{
    return is_finite_rate(speed) & (low >= 0) & (low <= speed);
}

static bool check_row(const float *speed, const float *low, int n, int type, int kind,
                      struct err *e)
{
    bool is_good = true;
    int i = 0;

    for (int k = 0; k < n; k++)    // without a branch: there may be hundreds of millions
        is_good &= is_cell_good(speed[k], low[k]);
    while (!is_good && is_cell_good(speed[i], low[i]))
        i++;
    WANT(is_good || i > 0,
         "types[%d].speed[%d] is %g and %g is held: want finite numbers, 0 <= held <= speed", type,
         kind, (double)speed[0], (double)low[0]);
    WANT(is_good,
         "types[%d].slowdown[%d][%d] makes a speed of %g of which %g is held: want "
         "finite numbers, 0 <= held <= speed",
         type, kind, i - 1, (double)speed[i], (double)low[i]);
    return true;
}

/* Where there is doubt what is held may be more than the speed, which is cautious by itself. */
static bool check_doubts(const struct problem *p, long cell, struct err *e)
{
    for (long i = cell; i <= cell + p->n_kinds; i++)
        WANT(is_finite_rate(p->speed[i]) && is_finite_rate(p->held[i]) &&
                 is_finite_rate(p->doubt[i]),
             "cell %ld: a speed of %g, %g held with a doubt of %g: want finite numbers, 0 or more",
             i, (double)p->speed[i], (double)p->held[i], (double)p->doubt[i]);
    return true;
}

/* A kind on a type; how it differs from the type's curves files do not say. */
static bool check_cells(const struct problem *p, int type, int kind, struct err *e)
{
    static const struct problem_bend straight = { 1, 1, 0, 0, false };
    int at = type * p->n_kinds + kind;
    long cell = problem_cell(p, type, kind, -1);
    const struct problem_bend *b = p->bends != NULL ? &p->bends[at] : &straight;

    if (p->doubt ? !check_doubts(p, cell, e)
                 : !check_row(&p->speed[cell], &p->held[cell], p->n_kinds + 1, type, kind, e))
        return false;
    WANT(is_finite_rate(p->watts[at]), "types[%d].watts[%d] is %g: want a finite number, 0 or more",
         type, kind, (double)p->watts[at]);
    WANT(is_finite_rate(b->loss) && is_finite_rate(b->draw) && is_finite_rate(b->doubt) &&
             isfinite(b->at),
         "bends of kind %d on type %d: loss %g, draw %g, doubt %g, at %g: want "
         "finite numbers, and but for the last 0 or more",
         kind, type, (double)b->loss, (double)b->draw, (double)b->doubt, (double)b->at);
    return true;
}

static bool check_tables(const struct problem *p, struct err *e)
{
    for (int k = 0; k < p->n_kinds; k++)
        if (!check_fields("kinds", k, problem_kind_fields, &p->kinds[k], e))
            return false;
    for (int t = 0; t < p->n_types; t++) {
        if (!check_type(p, t, e))
            return false;
        for (int k = 0; k < p->n_kinds; k++)
            if (!check_cells(p, t, k, e))
                return false;
    }
    return true;
}

/* ---- GPUs ---- */

/* The first GPU of its node that is 'what': this one, where there was none. */
static int first_of(struct map_u64 *firsts, const struct problem *p, int gpu, int what)
{
    uint64_t key = (uint64_t)p->gpus[gpu].node << 8 | (uint64_t)what;

    if (map_u64_get(firsts, key) < 0)
        map_u64_set(firsts, key, gpu);
    return map_u64_get(firsts, key);
}

/* A node stands in one rack, and its GPUs of a type wake together. */
static bool check_gpu(const struct problem *p, int gpu, struct map_u64 *firsts, struct err *e)
{
    const struct problem_gpu *g = &p->gpus[gpu];
    bool has_racks = p->n_racks > 0 || p->rack_cap_w != NULL;

    WANT(g->type >= 0 && g->type < p->n_types, "GPU %d has type %d: there are %d types", gpu,
         g->type, p->n_types);
    WANT(g->node >= 0, "GPU %d has node %d: nodes are numbered from 0", gpu, g->node);
    WANT(g->wake_s >= 0 && g->wake_s <= 1e9, "GPU %d has wake_s %g: want 0 (awake) to 1e9 s", gpu,
         g->wake_s);
    WANT(g->rack >= 0 && (!has_racks || g->rack < p->n_racks),
         "GPU %d has rack %d: there are %d racks", gpu, g->rack, p->n_racks);
    int rack = p->gpus[first_of(firsts, p, gpu, 255)].rack;    // 255: of any type
    WANT(rack == g->rack, "GPU %d: node %d stands in racks %d and %d", gpu, g->node, rack, g->rack);
    WANT(p->gpus[first_of(firsts, p, gpu, g->type)].wake_s == g->wake_s,
         "GPU %d: those of one type on node %d wake together", gpu, g->node);
    return true;
}

static bool check_gpus(const struct problem *p, struct err *e)
{
    struct map_u64 firsts = { 0 };
    bool is_good = true;

    for (int g = 0; g < p->n_gpus && is_good; g++)
        is_good = check_gpu(p, g, &firsts, e);
    map_u64_release(&firsts);
    if (!is_good)
        return false;
    for (int g = 0; g < p->n_gpus && p->n_nodes > 0; g++)
        WANT(p->gpus[g].node < p->n_nodes, "GPU %d has node %d: there are %d nodes", g,
             p->gpus[g].node, p->n_nodes);
    for (int n = 0; n < p->n_nodes && p->nodes; n++)
        WANT(p->nodes[n].cpus >= 0 && p->nodes[n].mem_mib >= 0,
             "nodes[%d]: want no negative cpus or mem_mib", n);
    WANT(p->n_nodes > 0 || !p->nodes, "nodes: there is none");
    return true;
}

/* ---- jobs ---- */

static bool check_job(const struct problem *p, int job, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];

    WANT(j->kind >= 0 && j->kind < p->n_kinds, "jobs[%d].kind is %d: there are %d kinds", job,
         j->kind, p->n_kinds);
    WANT(p->n_types == 64 || j->allowed_types >> p->n_types == 0,
         "jobs[%d].types: there are %d types", job, p->n_types);
    WANT(!j->is_fixed || j->n_present > 0, "jobs[%d].fixed: it does not run, so it cannot stay",
         job);
    WANT(j->engine.cpus >= 0, "jobs[%d].cpus is %d: want 0 or more", job, j->engine.cpus);
    WANT(j->engine.mem_mib >= 0, "jobs[%d].mem_mib is %d: want 0 or more", job, j->engine.mem_mib);
    for (int n = 0; n < p->n_nodes && j->engine.barred; n++)
        WANT(j->engine.barred[n] < ENGINE_RULES, "jobs[%d].barred: node %d by no rule", job, n);
    WANT(j->form == FORM_GANG || j->form == FORM_SPREAD,
         "jobs[%d].form is neither a gang nor spread", job);
    WANT(j->n_min >= 1 && j->n_max >= j->n_min && j->n_max <= GANG_MAX,
         "jobs[%d]: want 1 <= n_min <= n_max <= %d, not %d and %d", job, GANG_MAX, j->n_min,
         j->n_max);
    WANT(j->form == FORM_GANG || j->n_min == 1,
         "jobs[%d].n_min is %d: a spread job has 1 to n_max parts", job, j->n_min);
    WANT(j->form == FORM_GANG || j->n_nodes == 0, "jobs[%d].%s: only for gangs", job,
         j->n_nodes == 1 ? "one_node" : "n_nodes");
    WANT(
        j->n_nodes >= 0 && (j->n_nodes < 2 || (j->n_min == j->n_max && j->n_min % j->n_nodes == 0)),
        "jobs[%d].n_nodes is %d: want n_min = n_max, and a multiple of the nodes", job, j->n_nodes);
    return check_fields("jobs", job, problem_job_fields, j, e);
}

/* ---- who runs where now ---- */

static bool check_present_gang(const struct problem *p, int job, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];

    WANT(j->n_present >= j->n_min, "jobs[%d].present: a gang runs whole, on %d GPUs or more", job,
         j->n_min);
    for (int i = 1; i < j->n_present; i++)
        WANT(p->gpus[j->present[i]].type == p->gpus[j->present[0]].type,
             "jobs[%d].present: a gang runs on GPUs of one type", job);
    WANT(j->n_nodes != 1 || problem_stands(p, j->present, j->n_present, 1),
         "jobs[%d].present: it asks for one node, and is on two", job);
    WANT(j->n_nodes < 2 || problem_stands(p, j->present, j->n_present, j->n_nodes),
         "jobs[%d].present: it asks for %d nodes in equal parts, and is on others", job,
         j->n_nodes);
    return true;
}

static bool check_present(const struct problem *p, int job, struct residents *residents,
                          struct err *e)
{
    const struct problem_job *j = &p->jobs[job];

    WANT(j->n_present >= 0 && j->n_present <= j->n_max,
         "jobs[%d].present: %d GPUs, and n_max is %d", job, j->n_present, j->n_max);
    for (int i = 0; i < j->n_present; i++) {
        int gpu = j->present[i];
        WANT(gpu >= 0 && gpu < p->n_gpus, "jobs[%d].present[%d] is GPU %d: there are %d", job, i,
             gpu, p->n_gpus);
        WANT(i == 0 || gpu > j->present[i - 1],
             "jobs[%d].present: list each GPU once, in rising order", job);
        WANT(problem_allows(j, p->gpus[gpu].type),
             "jobs[%d].present[%d]: GPU %d is of a type that 'types' leaves out", job, i, gpu);
        WANT(j->present_limit >= 0 && j->present_limit < p->types[p->gpus[gpu].type].n_limits,
             "jobs[%d].limit_w: GPU %d has no such power limit", job, gpu);
        struct residents *s = &residents[gpu];
        WANT(s->n < p->theta, "jobs[%d].present[%d]: GPU %d has %d jobs already (theta)", job, i,
             gpu, p->theta);
        s->jobs[s->n++] = job;
    }
    return j->form == FORM_SPREAD || j->n_present == 0 || check_present_gang(p, job, e);
}

/* Those that share a GPU: may they, and do they agree on its setting? */
static bool check_residents(const struct problem *p, int gpu, const struct residents *s,
                            struct err *e)
{
    const struct problem_job *first = &p->jobs[s->jobs[0]];
    struct yield y;

    for (int i = 0; i < s->n; i++) {
        const struct problem_job *j = &p->jobs[s->jobs[i]];
        bool is_alone = j->is_exclusive || (j->form == FORM_GANG && j->n_present > 1);
        WANT(!is_alone || s->n == 1,
             "jobs[%d].present: it has GPUs to itself, but GPU %d has %d jobs", s->jobs[i], gpu,
             s->n);
        WANT(j->present_limit == first->present_limit,
             "jobs[%d].limit_w: jobs[%d] says otherwise of GPU %d", s->jobs[i], s->jobs[0], gpu);
    }
    WANT(problem_yield_of(p, p->gpus[gpu].type, first->present_limit, s->jobs, s->n, &y),
         "jobs[%d].present: those on GPU %d cannot run so (memory, a speed of 0, or a limit)",
         s->jobs[0], gpu);
    return true;
}

/* A frozen job keeps its GPUs, and nobody may come there. */
static bool check_frozen(const struct problem *p, int job, bool *is_held, struct err *e)
{
    const struct problem_job *j = &p->jobs[job];

    WANT(j->name == NULL && j->n_present > 0 && j->kind >= 0 && j->kind < p->n_kinds,
         "jobs[%d] is frozen: want no name, GPUs and a kind", job);
    for (int i = 0; i < j->n_present; i++) {
        int gpu = j->present[i];
        WANT(gpu >= 0 && gpu < p->n_gpus && !p->gpus[gpu].may_start && p->gpus[gpu].held_w > 0,
             "jobs[%d] is frozen, and GPU %d is not held for it", job, gpu);
        is_held[gpu] = true;
    }
    return true;
}

static bool check_jobs(struct arena *a, const struct problem *p, struct err *e)
{
    struct residents *residents = ARENA_ARRAY(a, struct residents, (size_t)p->n_gpus);
    bool *is_held = ARENA_ARRAY(a, bool, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++) {
        if (p->jobs[j].frozen && !check_frozen(p, j, is_held, e))
            return false;
        if (p->jobs[j].name && !(check_job(p, j, e) && check_present(p, j, residents, e)))
            return false;
    }
    for (int g = 0; g < p->n_gpus; g++) {
        if (residents[g].n > 0 && !check_residents(p, g, &residents[g], e))
            return false;
        WANT(residents[g].n == 0 || !is_held[g],
             "GPU %d is held for a frozen job, and jobs[%d] is there", g, residents[g].jobs[0]);
    }
    return check_gang_factors(p, e);
}

int problem_check(const struct problem *p, struct err *e)
{
    struct arena a;

    if (!check_frame(p, e) || !check_tables(p, e) || !check_gpus(p, e))
        return -EINVAL;
    arena_init(&a);
    bool is_good = check_jobs(&a, p, e);
    arena_release(&a);
    return is_good ? 0 : -EINVAL;
}

#include "optimize/lower.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "estimate/limits.h"
#include "estimate/roofline.h"
#include "optimize/answer.h"
#include "optimize/board.h"
#include "optimize/place.h"
#include "optimize/plan.h"
#include "optimize/solver.h"

/* ---- what things are worth, in watts ----
 *
 * More than a GPU draws, so that these decide before energy does. Chosen on the reference
 * scenario (docs/experiments.md) at load 0.9.
 */

/* A wholly missed promise, and one missed by a tenth costs a tenth of it. */
#define SHORT_W 2000.0

/* Waiting, for each GPU that the job asks for, and as much again for every AGE_S that it has
 * waited, up to AGE_MOST times: whoever waits long enough outweighs the shortfalls that its start
 * brings.
 */
#define WAIT_W 1000.0
#define AGE_S 1800.0
#define AGE_MOST 8.0

/* No job's waiting costs more than this; stopping one that runs costs ten times as much, so that
 * it is not done for those that wait, however long.
 */
#define WAIT_MOST_W 1e5
#define STOP_W 1e6

/* Each step of priority doubles a job's weight in all of these, up to this many steps. */
#define PRIORITY_STEPS 5

/* A move is paid back by what it saves until the job ends; but not for longer than the cluster
 * stays as it is, and never in less than MOVE_LEAST_S. The promise that is not kept meanwhile
 * counts for this part: all of it would keep others from ever being kept.
 */
#define MOVE_LEAST_S 300.0
#define MOVE_MOST_S 900.0
#define MOVE_SHORT 0.1

/* Who started less than this ago stays: moves shall not chase every event. */
#define MOVE_SETTLED_S 600.0

/* So many standard deviations of a speed that nobody has measured yet are counted on: who never
 * tries a type never learns that it is the better one, and whole families stay where their first
 * job happened to go. More where no type is believed to hold what the kind's jobs need: there is
 * nothing to lose, and what is held is hoped for too. What a plan says of its promises is said
 * without.
 */
#define CURIOSITY 0.5
#define CURIOSITY_LOST 1.5

/* Rates of servers that differ by less than this factor are one: upwards, so that no cap
 * is broken by it.
 */
#define RATE_STEP 1.05

/* Watts are kept as float there and double here, and limits as curves of so many points. */
#define WATTS_MARGIN (1 + 1e-6)
#define LIMITED_MARGIN (1 + 1e-3)
#define CURVE_POINTS 65

struct lowering {
    struct arena *arena;
    const struct snapshot *snapshot;
    const struct estimator *est;
    const struct solve_options *options;
    struct problem *problem;
    int *type_of, *type_at;        // problem to catalog, and back (-1: no such GPU)
    int *gpu_of, *gpu_at;          // problem to snapshot, and back
    int *workload_of, *kind_at;    // kind to workload; snapshot's job to kind
    bool *is_held;                 // (n_kinds) its promises, somewhere
    bool *is_frozen;               // (n_jobs)
};

/* ---- types and GPUs ---- */

static double known(double figure)
{
    return figure > 0 ? figure : 0;
}

static int lower_types(struct lowering *l, struct err *e)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    int n = l->est->n_types;

    l->type_of = ARENA_ARRAY(l->arena, int, (size_t)n);
    l->type_at = ARENA_ARRAY(l->arena, int, (size_t)n);
    for (int t = 0; t < n; t++)
        l->type_at[t] = -1;
    for (int g = 0; g < s->n_gpus; g++)
        l->type_at[s->gpus[g].type] = 0;
    for (int t = 0; t < n; t++)
        if (l->type_at[t] == 0) {
            l->type_at[t] = p->n_types;
            l->type_of[p->n_types++] = t;
        }
    if (p->n_types > 64)
        return err_set(e, EINVAL, "%d GPU types in one cluster; 64 can be planned", p->n_types);
    p->types = ARENA_ARRAY(l->arena, struct problem_type, (size_t)p->n_types);
    for (int t = 0; t < p->n_types; t++) {
        const struct gpu_type *from = &s->catalog->types[l->type_of[t]];
        p->types[t] = (struct problem_type){
            .name = from->name,
            .sleep_w = known(from->sleep_w),
            .idle_w = known(from->idle_w),
            .cap_w = known(from->cap_w),
            .mem_gib = from->mem_bytes > 0 ? from->mem_bytes / 0x1p30 : 1,
            .n_limits = 1,
        };
    }
    return 0;
}

/* A type whose cap nobody knows has none: more than any of its combinations draws. */
static void lower_caps(struct lowering *l)
{
    struct problem *p = l->problem;

    for (int t = 0; t < p->n_types; t++) {
        struct problem_type *type = &p->types[t];
        double most_w = 0;
        for (int k = 0; k < p->n_kinds; k++)
            most_w = fmax(most_w, (double)p->watts[t * p->n_kinds + k] - type->idle_w);
        if (!(type->cap_w > type->idle_w))
            type->cap_w = type->idle_w + 1 + p->theta * most_w;
    }
}

static void lower_curve(struct lowering *l, int type, int limit_w)
{
    const struct gpu_type *from = &l->snapshot->catalog->types[l->type_of[type]];
    struct problem_type *t = &l->problem->types[type];
    double *speed = ARENA_ARRAY(l->arena, double, CURVE_POINTS);
    double *watts = ARENA_ARRAY(l->arena, double, CURVE_POINTS);

    for (int i = 0; i < CURVE_POINTS; i++) {
        double w0 = t->idle_w + (t->cap_w - t->idle_w) * i / (CURVE_POINTS - 1);
        struct limited at = limits_apply(from, limit_w, w0);
        speed[i] = at.speed;
        watts[i] = at.watts;
    }
    t->limits[t->n_limits++] = (struct limit_curve){
        .limit_w = limit_w, .n_points = CURVE_POINTS, .speed = speed, .watts = watts
    };
}

static void lower_limits(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;

    for (int t = 0; t < p->n_types; t++) {
        int offered[LIMITS_OFFERED];
        int n = limits_offer(&s->catalog->types[l->type_of[t]], offered);
        for (int i = 0; i < n && l->options->may_limit; i++)
            lower_curve(l, t, offered[i]);
    }
}

/* The setting of that many watts; -1: there is none. */
static int setting_of(const struct problem_type *t, int limit_w)
{
    for (int i = 0; i < t->n_limits; i++)
        if (t->limits[i].limit_w == limit_w)
            return i;
    return -1;
}

/* By node, and there by type: a node of the snapshot may have them in any order. */
static void lower_gpus(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    int n = 0;

    p->n_gpus = s->n_gpus;
    p->gpus = ARENA_ARRAY(l->arena, struct problem_gpu, (size_t)s->n_gpus);
    l->gpu_of = ARENA_ARRAY(l->arena, int, (size_t)s->n_gpus);
    l->gpu_at = ARENA_ARRAY(l->arena, int, (size_t)s->n_gpus);
    for (int first = 0, end; first < s->n_gpus; first = end) {
        for (end = first; end < s->n_gpus && s->gpus[end].node == s->gpus[first].node;)
            end++;
        for (int t = 0; t < p->n_types; t++)
            for (int g = first; g < end; g++) {
                const struct snap_gpu *from = &s->gpus[g];
                if (l->type_at[from->type] != t)
                    continue;
                l->gpu_at[g] = n;
                l->gpu_of[n] = g;
                p->gpus[n++] = (struct problem_gpu){ .type = t,
                                                     .node = from->node,
                                                     .may_start = from->may_start };
            }
    }
}

/* ---- kinds ---- */

/* The rate that stands for this one. */
static double rate_of(const struct job_spec *spec)
{
    double rate = job_serves(spec);

    return rate > 0 ? exp(ceil(log(rate) / log(RATE_STEP)) * log(RATE_STEP)) : 0;
}

/* A kind for every (workload, rate) that some job has. */
static void lower_kinds(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    int *first = ARENA_ARRAY(l->arena, int, (size_t)l->est->n_workloads);
    int *next = ARENA_ARRAY(l->arena, int, (size_t)s->n_jobs);

    p->kinds = ARENA_ARRAY(l->arena, struct problem_kind, (size_t)s->n_jobs);
    l->workload_of = ARENA_ARRAY(l->arena, int, (size_t)s->n_jobs);
    l->kind_at = ARENA_ARRAY(l->arena, int, (size_t)s->n_jobs);
    for (int w = 0; w < l->est->n_workloads; w++)
        first[w] = -1;
    for (int j = 0; j < s->n_jobs; j++) {
        int w = s->jobs[j].workload, k = first[w];
        double rate = rate_of(s->jobs[j].spec);
        while (k >= 0 && p->kinds[k].rate != rate)
            k = next[k];
        if (k < 0) {
            k = p->n_kinds++;
            next[k] = first[w];
            first[w] = k;
            l->workload_of[k] = w;
            p->kinds[k] =
                (struct problem_kind){ .name = s->catalog->workloads[w].name, .rate = rate };
        }
        l->kind_at[j] = k;
    }
}

/* The largest chance that one of them does not fit, as estimate_unfit has it for two. */
static bool is_unfit(const struct lowering *l, int type, int kind, int beside)
{
    int both[] = { l->workload_of[kind], beside < 0 ? -1 : l->workload_of[beside] };
    int n = beside < 0 ? 1 : 2;
    double most = n > 1 ? l->options->unfit_max : l->options->alone_unfit_max;

    return estimate_unfit(l->est, l->type_of[type], both, n) > most;
}

/* How much more than what is believed of a kind on a type is counted on. Not of servers: their
 * watts go by what they could do.
 */
static float hope(const struct lowering *l, int type, int kind)
{
    double sd = (double)estimate_cell(l->est, l->workload_of[kind], l->type_of[type], -1)->sd;

    if (l->problem->kinds[kind].rate > 0)
        return 1;
    return (float)exp((l->is_held[kind] ? CURIOSITY : CURIOSITY_LOST) * sd);
}

/* What a type holds at best of a kind, by what is believed. */
static double held_most(const struct lowering *l, int kind)
{
    double most = 0;

    for (int t = 0; t < l->problem->n_types; t++) {
        const struct cell_estimate *c =
            estimate_cell(l->est, l->workload_of[kind], l->type_of[t], -1);
        most = fmax(most, (double)(c->low * (1 - c->unfit)));
    }
    return most;
}

/* For which kinds is there a type that holds what every job of the kind needs? */
static void find_held(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    int n = l->problem->n_kinds;
    double *most = ARENA_ARRAY(l->arena, double, (size_t)n);

    l->is_held = ARENA_ARRAY(l->arena, bool, (size_t)n);
    for (int k = 0; k < n; k++) {
        most[k] = held_most(l, k);
        l->is_held[k] = true;
    }
    for (int j = 0; j < s->n_jobs; j++)
        if (s->jobs[j].need > most[l->kind_at[j]] * roofline_gang(s->jobs[j].spec->max_gpus, 0))
            l->is_held[l->kind_at[j]] = false;
}

/* One row of cells. A place where a job may not fit even alone is worth less by the chance that it
 * does not. The same factors beside others as alone, so that paces stay what they are.
 */
static void lower_row(struct lowering *l, int type, int kind)
{
    struct problem *p = l->problem;
    int w = l->workload_of[kind], t = l->type_of[type];
    float fit = 1 - estimate_cell(l->est, w, t, -1)->unfit, more = hope(l, type, kind);
    float more_held = l->is_held[kind] ? 1 : more;
    bool is_out = is_unfit(l, type, kind, -1);

    p->watts[type * p->n_kinds + kind] = (float)l->est->alone_w[w * l->est->n_types + t];
    for (int n = -1; n < p->n_kinds && !is_out; n++) {
        const struct cell_estimate *c = estimate_cell(l->est, w, t, n < 0 ? -1 : l->workload_of[n]);
        long at = problem_cell(p, type, kind, n);
        if (n >= 0 && (p->theta == 1 || is_unfit(l, type, kind, n)))
            continue;    // stays 0: never
        p->speed[at] = c->speed * fit * more;
        p->low[at] = fminf(c->low * fit * more_held, p->speed[at]);
    }
}

static void lower_cells(struct lowering *l)
{
    struct problem *p = l->problem;
    size_t rows = (size_t)p->n_types * (size_t)p->n_kinds;

    p->speed = ARENA_ARRAY(l->arena, float, rows *(size_t)(p->n_kinds + 1));
    p->low = ARENA_ARRAY(l->arena, float, rows *(size_t)(p->n_kinds + 1));
    p->watts = ARENA_ARRAY(l->arena, float, rows);
    find_held(l);
    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < p->n_kinds; k++)
            lower_row(l, t, k);
}

/* Cells know of pairs, and say who fits beside whom. For three and more memory has to add up, and
 * then, by the problem's rule, for fewer too: what two have been seen to do in spite of it is
 * given up. A kind that is too large for every type alone still has the largest.
 */
static void lower_memory(struct lowering *l)
{
    struct problem *p = l->problem;
    double share = estimate_mem_share_max(l->est, l->options->unfit_max), most_gib = 0;

    if (p->theta < 3)
        return;
    for (int t = 0; t < p->n_types; t++) {
        p->types[t].mem_gib *= fmin(share, 1e6) * (1 - 1e-6);
        most_gib = fmax(most_gib, p->types[t].mem_gib);
    }
    for (int k = 0; k < p->n_kinds; k++) {
        for (int t = 0; t < p->n_types; t++) {
            double gib = l->snapshot->catalog->types[l->type_of[t]].mem_bytes / 0x1p30;
            gib *= estimate_mem_share(l->est, l->workload_of[k], l->type_of[t]);
            p->kinds[k].mem_gib = fmax(p->kinds[k].mem_gib, gib);
        }
        p->kinds[k].mem_gib = fmin(p->kinds[k].mem_gib, most_gib);
    }
}

/* What a step is worth: the joules it takes at its best place. A server's is worth nothing: it
 * takes its time whatever the speed.
 */
static void lower_values(struct lowering *l)
{
    struct problem *p = l->problem;

    for (int k = 0; k < p->n_kinds; k++) {
        double joules = problem_best_joules(p, k);
        bool counts = l->options->objective == OBJECTIVE_JOULES && p->kinds[k].rate == 0;
        p->kinds[k].value_j = counts && isfinite(joules) ? joules : 0;
    }
}

static void lower_gangs(struct problem *p)
{
    for (int n = 1; n <= GANG_MAX; n++) {
        p->gang_near[n] = roofline_gang(n, 0);
        p->gang_far[n] = roofline_gang(n, 1);
    }
}

/* ---- jobs ---- */

static double weight_of(const struct job_spec *spec)
{
    int steps = spec->priority;

    steps = steps > PRIORITY_STEPS    ? PRIORITY_STEPS
            : steps < -PRIORITY_STEPS ? -PRIORITY_STEPS
                                      : steps;
    return exp2(steps);
}

static uint64_t allowed_of(const struct lowering *l, const struct job_spec *spec)
{
    uint64_t bits = 0;

    if (!spec->allowed_types)
        return 0;
    for (int t = 0; t < l->problem->n_types; t++)
        if (job_allows(spec, l->type_of[t]))
            bits |= (uint64_t)1 << t;
    return bits;
}

/* The part of its promise that a job misses even at the best place for it. */
static double out_of_reach(const struct problem *p, const struct problem_job *j)
{
    double best = 0, most = 0;

    for (int m = j->n_min; m <= j->n_max; m++)
        most = fmax(most, p->gang_near[m]);
    for (int t = 0; t < p->n_types; t++)
        if (problem_allows(j, t))
            best = fmax(best, most * (double)p->low[problem_cell(p, t, j->kind, -1)]);
    return best < j->need ? 1 - best / j->need : 0;
}

/* Joules that a move costs, as a rate over the time it has to pay itself back. While it
 * moves a job keeps no promise.
 */
static double move_w(const struct lowering *l, const struct snap_job *sj,
                     const struct problem_job *j)
{
    const struct problem *p = l->problem;
    int type = p->gpus[j->present[0]].type;
    double speed = (double)p->speed[problem_cell(p, type, j->kind, -1)];
    double watts = (double)p->watts[type * p->n_kinds + j->kind];
    double left_s = sj->spec->kind == JOB_INFERENCE ? sj->time_left_s
                    : speed > 0                     ? sj->remaining / speed
                                                    : MOVE_MOST_S;
    double joules = l->options->move_s * (j->n_present * (watts + p->price_w) +
                                          (j->need > 0 ? MOVE_SHORT * j->short_w : 0));

    return joules / fmin(fmax(left_s, MOVE_LEAST_S), MOVE_MOST_S);
}

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void lower_present(struct lowering *l, const struct snap_job *sj, struct problem_job *j)
{
    int *present = ARENA_ARRAY(l->arena, int, (size_t)sj->n_held);

    for (int i = 0; i < sj->n_held; i++)
        present[i] = l->gpu_at[sj->gpus[i]];
    qsort(present, (size_t)sj->n_held, sizeof *present, by_number);
    j->n_present = sj->n_held;
    j->present = present;
    j->present_limit =
        setting_of(&l->problem->types[l->problem->gpus[present[0]].type], sj->limit_w);
    j->is_fixed = !l->options->may_move || sj->ran_s < MOVE_SETTLED_S;
    j->move_w = move_w(l, sj, j);
}

static void lower_job(struct lowering *l, int job)
{
    const struct snap_job *sj = &l->snapshot->jobs[job];
    const struct job_spec *spec = sj->spec;
    struct problem_job *j = &l->problem->jobs[job];
    double weight = weight_of(spec);
    double age = fmin(sj->waited_s / AGE_S, AGE_MOST);

    *j = (struct problem_job){
        .name = spec->name,
        .kind = l->kind_at[job],
        .form = FORM_GANG,
        .n_min = spec->n_gpus,
        .n_max = spec->max_gpus < GANG_MAX ? spec->max_gpus : GANG_MAX,
        .need = fmin(sj->need, 1e30),
        .short_w = SHORT_W * weight,
        .allowed_types = allowed_of(l, spec),
        .is_exclusive = spec->is_exclusive,
        .needs_one_node = spec->needs_one_node,
    };
    double wait_w = fmin(WAIT_W * (1 + age) * weight * spec->n_gpus, WAIT_MOST_W);
    j->wait_w = sj->is_running ? STOP_W : wait_w + j->short_w * out_of_reach(l->problem, j);
    if (sj->is_running)
        lower_present(l, sj, j);
}

/* ---- what the problem cannot say ---- */

/* None of its types is here, or the gang is beyond what is planned. */
static bool is_sayable(const struct problem_job *j, const struct job_spec *spec)
{
    return j->n_min <= j->n_max && (j->allowed_types || !spec->allowed_types);
}

/* Are those on this GPU allowed to be there together, by the problem's rules? */
static bool is_lawful(const struct lowering *l, int gpu)
{
    const struct problem *p = l->problem;
    const struct snap_gpu *g = &l->snapshot->gpus[gpu];
    int type = l->type_at[g->type], kinds[THETA_MAX];
    struct yield y;

    if (g->n_jobs > p->theta)
        return false;
    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[g->jobs[i]];
        bool is_lonely = j->is_exclusive || j->n_present > 1;
        kinds[i] = j->kind;
        if (!problem_allows(j, type) || (is_lonely && g->n_jobs > 1) ||
            j->present_limit != p->jobs[g->jobs[0]].present_limit)
            return false;
    }
    return g->n_jobs == 0 || problem_yield(p, type, 0, kinds, g->n_jobs, &y);
}

/* Is the running job as its own rules want it? */
static bool is_orderly(const struct lowering *l, int job)
{
    const struct problem_job *j = &l->problem->jobs[job];
    const struct problem_gpu *gpus = l->problem->gpus;

    if (!is_sayable(j, l->snapshot->jobs[job].spec) || j->present_limit < 0 ||
        j->n_present < j->n_min || j->n_present > j->n_max)
        return false;
    for (int i = 1; i < j->n_present; i++) {
        const struct problem_gpu *g = &gpus[j->present[i]], *first = &gpus[j->present[0]];
        if (g->type != first->type || (j->needs_one_node && g->node != first->node))
            return false;
    }
    return true;
}

/* Freeze a job, with whoever is on its GPUs, and so on. */
static void freeze(struct lowering *l, int job)
{
    const struct snap_job *sj = &l->snapshot->jobs[job];

    if (l->is_frozen[job])
        return;
    l->is_frozen[job] = true;
    l->problem->jobs[job].name = NULL;
    for (int i = 0; i < sj->n_held; i++) {
        const struct snap_gpu *g = &l->snapshot->gpus[sj->gpus[i]];
        l->problem->gpus[l->gpu_at[sj->gpus[i]]].may_start = false;
        for (int k = 0; k < g->n_jobs; k++)
            freeze(l, g->jobs[k]);
    }
}

static void freeze_misfits(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;

    for (int j = 0; j < s->n_running; j++)
        if (!is_orderly(l, j))
            freeze(l, j);
    for (int g = 0; g < s->n_gpus; g++)
        if (!is_lawful(l, g))
            freeze(l, s->gpus[g].jobs[0]);
    for (int j = s->n_running; j < s->n_jobs; j++)
        if (!is_sayable(&l->problem->jobs[j], s->jobs[j].spec))
            l->problem->jobs[j].name = NULL;
}

/* ---- power ---- */

/* What a GPU draws now, as the judge of plans counts it. */
static double drawn_w(const struct lowering *l, const struct board *b, int gpu)
{
    return board_drawn_w(b, gpu) * (l->snapshot->gpus[gpu].n_jobs ? l->problem->watts_margin : 1);
}

/* The cap, less what frozen GPUs draw above the idle watts that the problem sees there. Where the
 * present allocation is above it already, nobody moves: what that adds and saves is
 * not the same to the last digit here and for the judge.
 */
static void lower_power(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    double frozen_w = 0, present_w = 0;
    struct board b;

    p->watts_margin = l->options->may_limit ? LIMITED_MARGIN : WATTS_MARGIN;
    if (l->options->power_cap_w <= 0)
        return;
    board_init(&b, l->arena, s, l->est);
    for (int g = 0; g < s->n_gpus; g++) {
        double watts = drawn_w(l, &b, g);
        present_w += watts;
        if (s->gpus[g].n_jobs && l->is_frozen[s->gpus[g].jobs[0]])
            frozen_w += watts - p->types[l->type_at[s->gpus[g].type]].idle_w;
    }
    p->power_cap_w = fmax(l->options->power_cap_w - frozen_w, 1e-3);    // 0 would be no cap
    for (int j = 0; j < s->n_running && present_w > l->options->power_cap_w; j++)
        p->jobs[j].is_fixed = true;
}

/* ---- down ---- */

int lower_problem(struct arena *a, const struct snapshot *s, const struct estimator *est,
                  const struct solve_options *o, struct lowered *out, struct err *e)
{
    struct problem *p = &out->problem;
    struct lowering l = { .arena = a, .snapshot = s, .est = est, .options = o, .problem = p };

    *p = (struct problem){ .theta = o->may_share ? s->theta : 1,
                           .z = est->z,
                           .price_w = o->price_w,
                           .n_jobs = s->n_jobs,
                           .n_racks = 1 };
    if (lower_types(&l, e) < 0)
        return -EINVAL;
    lower_gpus(&l);
    lower_kinds(&l);
    lower_cells(&l);
    lower_caps(&l);
    lower_limits(&l);
    lower_memory(&l);
    lower_values(&l);
    lower_gangs(p);
    p->jobs = ARENA_ARRAY(a, struct problem_job, (size_t)s->n_jobs);
    l.is_frozen = ARENA_ARRAY(a, bool, (size_t)s->n_jobs);
    for (int j = 0; j < s->n_jobs; j++)
        lower_job(&l, j);
    freeze_misfits(&l);
    lower_power(&l);
    out->gpu_of = l.gpu_of;
    out->type_of = l.type_of;
    out->workload_of = l.workload_of;
    out->is_frozen = l.is_frozen;
    return problem_check(p, e);
}

/* ---- up ---- */

/* As the job holds them now where nothing changes. */
static const int *raise_gpus(struct arena *a, const struct lowered *l, const struct snap_job *sj,
                             const struct problem_job *j, const struct answer_job *x)
{
    int *gpus = ARENA_ARRAY(a, int, (size_t)x->n_gpus);
    bool is_same = x->n_gpus == j->n_present;

    for (int i = 0; i < x->n_gpus; i++) {
        gpus[i] = l->gpu_of[x->gpus[i]];
        is_same = is_same && x->gpus[i] == j->present[i];
    }
    if (is_same)
        return sj->gpus;
    qsort(gpus, (size_t)x->n_gpus, sizeof *gpus, by_number);
    return gpus;
}

/* The cluster knows best why; but what was in the way of a place that is there, only the planner. */
static enum wait_reason raise_reason(const struct board *b, int job, const struct solve_options *o,
                                     enum wait_reason said)
{
    enum wait_reason why = place_reason(b, job, o->alone_unfit_max);

    return why == WAIT_CAPACITY && (said == WAIT_POWER || said == WAIT_PROMISE) ? said : why;
}

void raise_plan(struct arena *a, const struct lowered *l, const struct snapshot *s,
                const struct estimator *est, const struct solve_options *o, const struct answer *x,
                const char *made_by, struct plan *out)
{
    struct board b;

    board_init(&b, a, s, est);
    *out = (struct plan){ .made_by = made_by, .n_jobs = s->n_jobs };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)s->n_jobs);
    for (int j = 0; j < s->n_jobs; j++) {
        const struct snap_job *sj = &s->jobs[j];
        const struct answer_job *xj = &x->jobs[j];
        struct plan_job *pj = &out->jobs[j];
        if (l->is_frozen[j]) {
            *pj =
                (struct plan_job){ .n_gpus = sj->n_held, .gpus = sj->gpus, .limit_w = sj->limit_w };
        } else if (xj->n_gpus > 0) {
            pj->n_gpus = xj->n_gpus;
            pj->gpus = raise_gpus(a, l, sj, &l->problem.jobs[j], xj);
            int type = l->problem.gpus[xj->gpus[0]].type;
            pj->limit_w = l->problem.types[type].limits[x->limit[xj->gpus[0]]].limit_w;
        } else {
            pj->reason = raise_reason(&b, j, o, xj->reason);
        }
    }
}

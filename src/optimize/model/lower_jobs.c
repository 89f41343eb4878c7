/* Jobs: what they need, what waiting, moving and breaking a promise cost; and what stays as it is. */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "estimate/limits.h"
#include "optimize/model/lower_inner.h"
#include "optimize/model/problem.h"

/* ---- what things are worth, in watts ----
 *
 * More than a GPU draws, so that these decide before energy does. Chosen on the reference
 * scenario (docs/experiments.md) at load 0.9.
 */

/* A wholly missed promise, and one missed by a tenth costs a tenth of it. */
#define SHORT_W 3000.0

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
#define MOVE_MOST_S 1800.0
#define MOVE_SHORT 0.05

/* What waking costs is paid back in the time that the job has left, however short: nobody wakes a
 * node for a minute's work that another could do. But it keeps nobody waiting for ever: of what
 * waiting costs, at most so much for waking all that a job starts on.
 */
#define WAKE_LEAST_S 10.0
#define WAKE_MOST 0.5

/* Watts are kept as float there and double here, and limits as curves. */
#define WATTS_MARGIN (1 + 1e-6)
#define LIMITED_MARGIN (1 + 1e-3)

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

/* As long as it would take at its best, but not longer than a move has to be paid back in. */
static double pay_s(const struct lowering *l, const struct snap_job *sj,
                    const struct problem_job *j)
{
    const struct problem *p = l->problem;
    double speed = 0;

    for (int t = 0; t < p->n_types; t++)
        if (problem_allows(j, t))
            speed = fmax(speed, (double)p->speed[problem_cell(p, t, j->kind, -1)]);
    speed *= j->n_min <= j->n_max ? (j->n_nodes > 1 ? p->gang_far : p->gang_near)[j->n_min] : 1;
    double left_s = sj->spec->kind == JOB_INFERENCE ? sj->time_left_s
                    : speed > 0                     ? sj->remaining / speed
                                                    : MOVE_MOST_S;
    return fmin(fmax(left_s, WAKE_LEAST_S), MOVE_MOST_S);
}

/* Waking counts like a move: joules, and a promise that is not kept meanwhile. */
static void lower_wake(struct lowering *l, const struct snap_job *sj, struct problem_job *j)
{
    const struct problem *p = l->problem;
    double most_w = 0;

    if (!l->wake_s)
        return;
    j->wake_rate = 1 / pay_s(l, sj, j);
    j->late_w = j->need > 0 ? MOVE_SHORT * j->short_w * j->wake_rate / j->n_min : 0;
    for (int t = 0; t < p->n_types; t++)
        most_w = fmax(most_w, j->n_min * l->wake_s[t] *
                                  (j->wake_rate * (p->types[t].idle_w + p->price_w) + j->late_w));
    if (most_w > WAKE_MOST * j->wait_w) {
        j->wake_rate *= WAKE_MOST * j->wait_w / most_w;
        j->late_w *= WAKE_MOST * j->wait_w / most_w;
    }
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
        present[i] = sj->gpus[i];
    qsort(present, (size_t)sj->n_held, sizeof *present, by_number);
    j->n_present = sj->n_held;
    j->present = present;
    j->present_limit =
        lower_setting(&l->problem->types[l->problem->gpus[present[0]].type], sj->limit_w);
    j->is_fixed = !l->options->may_move || sj->ran_s < l->options->settle_s;
    j->move_w = move_w(l, sj, j);
}

void lower_job(struct lowering *l, int job)
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
        .n_nodes = spec->n_nodes,
    };
    double wait_w = fmin(WAIT_W * (1 + age) * weight * spec->n_gpus, WAIT_MOST_W);
    j->wait_w = sj->is_running ? STOP_W : wait_w + j->short_w * out_of_reach(l->problem, j);
    if (sj->is_running)
        lower_present(l, sj, j);
    lower_wake(l, sj, j);
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
        if (g->type != first->type)
            return false;
    }
    return problem_stands(l->problem, j->present, j->n_present, j->n_nodes);
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
        l->problem->gpus[sj->gpus[i]].may_start = false;
        for (int k = 0; k < g->n_jobs; k++)
            freeze(l, g->jobs[k]);
    }
}

void lower_misfits(struct lowering *l)
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
static double drawn_w(const struct lowering *l, int gpu)
{
    return board_drawn_w(&l->now, gpu) *
           (l->snapshot->gpus[gpu].n_jobs ? l->problem->watts_margin : 1);
}

static double all_drawn_w(const struct lowering *l)
{
    double sum_w = 0;

    for (int g = 0; g < l->snapshot->n_gpus; g++)
        sum_w += drawn_w(l, g);
    return sum_w;
}

/* Is somebody there under a limit that must not be limited any more? */
static bool is_wrongly_limited(const struct lowering *l, int gpu)
{
    const struct problem *p = l->problem;
    const struct snap_gpu *g = &l->snapshot->gpus[gpu];
    bool is_wrong = false;

    for (int i = 0; i < g->n_jobs && p->bends; i++) {
        const struct problem_job *j = &p->jobs[g->jobs[i]];
        is_wrong |= !l->is_frozen[g->jobs[i]] && j->present_limit > 0 &&
                    p->bends[l->type_at[g->type] * p->n_kinds + j->kind].is_free;
    }
    return is_wrong;
}

/* Everybody on a GPU gets this setting, of so many watts; returns by how much more that draws. */
static double set_limits(struct lowering *l, int gpu, int setting, int limit_w)
{
    const struct snap_gpu *g = &l->snapshot->gpus[gpu];
    double before_w = drawn_w(l, gpu);

    for (int i = 0; i < g->n_jobs; i++) {
        l->problem->jobs[g->jobs[i]].present_limit = setting;
        l->now.jobs[g->jobs[i]].limit_w = limit_w;
    }
    return (drawn_w(l, gpu) - before_w) * l->snapshot->jobs[g->jobs[0]].n_held;
}

/* Who must not be limited any more is seen as if it were not: the plan then lifts the limit. Where
 * the watts for that are not left, those there stay as they are. All on a GPU have one limit, and
 * gangs share with nobody: others are frozen by now.
 */
static void lift_limits(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    double cap_w = l->options->power_cap_w;
    double room_w = cap_w > 0 ? cap_w - all_drawn_w(l) : HUGE_VAL;

    for (int g = 0; g < s->n_gpus; g++) {
        if (!is_wrongly_limited(l, g))
            continue;
        const struct snap_job *first = &s->jobs[s->gpus[g].jobs[0]];
        int setting = l->problem->jobs[s->gpus[g].jobs[0]].present_limit;
        double more_w = set_limits(l, g, 0, 0);
        room_w -= more_w;
        if (more_w <= 0 || room_w >= 0)
            continue;
        room_w -= set_limits(l, g, setting, first->limit_w);
        freeze(l, s->gpus[g].jobs[0]);
    }
}

/* The cap, less what frozen GPUs draw above the idle watts that the problem sees there. Where the
 * present allocation is above it already, nobody moves: what that adds and saves is
 * not the same to the last digit here and for the judge.
 */
void lower_power(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    double cap_w = l->options->power_cap_w, frozen_w = 0;

    p->watts_margin = l->options->may_limit ? LIMITED_MARGIN : WATTS_MARGIN;
    board_init(&l->now, l->arena, s, l->est);
    lift_limits(l);
    if (cap_w <= 0)
        return;
    for (int g = 0; g < s->n_gpus; g++)
        if (s->gpus[g].n_jobs && l->is_frozen[s->gpus[g].jobs[0]])
            frozen_w += drawn_w(l, g) - p->types[l->type_at[s->gpus[g].type]].idle_w;
    p->power_cap_w = fmax(cap_w - frozen_w, 1e-3);    // 0 would be no cap
    bool is_above = all_drawn_w(l) > cap_w;
    for (int j = 0; j < s->n_running; j++)
        p->jobs[j].is_fixed |= is_above;
}

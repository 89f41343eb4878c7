/* Jobs: what they need, and what waiting, moving and breaking a promise cost. */
#include <math.h>

#include "base/arena.h"
#include "optimize/model/lower_inner.h"

/* ---- what things are worth, in watts ----
 *
 * More than a GPU draws, so that these decide before energy does. Chosen on the reference
 * scenario (docs/experiments.md) at load 0.9.
 */

/* Waiting costs this part of a promise for each GPU that the job asks for, and as much again for
 * every AGE_S that it has waited, up to AGE_MOST times: whoever waits long enough outweighs the
 * shortfalls that its start brings.
 */
#define WAIT_SHARE 0.35
#define WAIT_LEAST_W 300.0
#define AGE_S 1800.0
#define AGE_MOST 8.0

/* No job's waiting costs more than this; stopping one that runs costs ten times as much, so that
 * it is not done for those that wait, however long.
 */
#define WAIT_MOST_W 1e5
#define STOP_W 1e6

/* A promise costs no more than this: so who has waited long starts all the same, where it misses
 * all of it.
 */
#define SHORT_MOST_W 5e4

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

/* ---- jobs ---- */

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

/* The most that the job does alone, on the types it may use. */
static double best_alone(const struct problem *p, const struct problem_job *j)
{
    double best = 0;

    for (int t = 0; t < p->n_types; t++)
        if (problem_allows(j, t))
            best = fmax(best, (double)p->speed[problem_cell(p, t, j->kind, -1)]);
    return best;
}

/* What it is expected to miss, in watts, even at the best place for it. */
static double out_of_reach_w(const struct problem *p, const struct problem_job *j)
{
    double most = 0, least_w = INFINITY;

    for (int m = j->n_min; m <= j->n_max; m++)
        most = fmax(most, p->gang_near[m]);
    for (int t = 0; t < p->n_types; t++) {
        long cell = problem_cell(p, t, j->kind, -1);
        double mean = most * (double)p->held[cell];
        if (problem_allows(j, t) && mean > 0)
            least_w =
                fmin(least_w,
                     problem_short_w(p, j, (struct held){ mean, mean * (double)p->doubt[cell] }));
    }
    return isfinite(least_w) ? least_w : j->need > 0 ? j->short_w : 0;
}

/* The time it has left at that speed, where something is to be paid back: not less than so long,
 * and not longer than a move has.
 */
static double pay_s(const struct snapshot_job *sj, double speed, double least_s)
{
    double left_s = sj->spec->kind != JOB_TRAINING ? sj->time_left_s
                    : speed > 0                    ? sj->remaining / speed
                                                   : MOVE_MOST_S;

    return fmin(fmax(left_s, least_s), MOVE_MOST_S);
}

/* How much a kind's speeds are in doubt, over all places: the root of the mean of squares. */
static double doubt_about(const struct problem *p, int kind)
{
    double sum = 0;
    int n = 0;

    for (int t = 0; t < p->n_types; t++)
        for (int other = -1; other < p->n_kinds; other++) {
            long at = problem_cell(p, t, kind, other);
            bool runs = (double)p->speed[at] > 0;
            sum += runs ? (double)p->doubt[at] * (double)p->doubt[at] : 0;
            n += runs;
        }
    return n > 0 ? sqrt(sum / n) : 0;
}

/* Joules that a move costs, as a rate over the time it has to pay itself back, and more by the
 * doubt about what it brings. While it moves a job keeps no promise.
 */
static double move_w(const struct lowering *l, const struct snapshot_job *sj,
                     const struct problem_job *j)
{
    const struct problem *p = l->problem;
    int type = p->gpus[j->present[0]].type;
    double speed = (double)p->speed[problem_cell(p, type, j->kind, -1)];
    double watts = (double)p->watts[type * p->n_kinds + j->kind];
    double joules =
        l->options->move_s * (j->n_present * (watts + p->price_w) + p->kinds[j->kind].time_w +
                              (j->need > 0 ? MOVE_SHORT * j->short_w : 0));

    return joules * (1 + l->options->move_doubt * l->doubt[j->kind]) /
           pay_s(sj, speed, MOVE_LEAST_S);
}

/* Waking counts like a move: joules, and a promise that is not kept meanwhile. */
static void lower_wake(struct lowering *l, const struct snapshot_job *sj, struct problem_job *j)
{
    const struct problem *p = l->problem;
    const double *gang = j->n_nodes > 1 ? p->gang_far : p->gang_near;
    double most_w = 0, factor = j->n_min <= j->n_max ? gang[j->n_min] : 1;

    if (!l->wake_s)
        return;
    j->wake_rate = 1 / pay_s(sj, factor * best_alone(p, j), WAKE_LEAST_S);
    j->late_w = j->need > 0 ? MOVE_SHORT * j->short_w * j->wake_rate / j->n_min : 0;
    for (int t = 0; t < p->n_types; t++)
        most_w = fmax(most_w, j->n_min * l->wake_s[t] *
                                  (j->wake_rate * (p->types[t].idle_w + p->price_w) + j->late_w));
    if (most_w > WAKE_MOST * j->wait_w) {
        j->wake_rate *= WAKE_MOST * j->wait_w / most_w;
        j->late_w *= WAKE_MOST * j->wait_w / most_w;
    }
}

static void lower_present(struct lowering *l, const struct snapshot_job *sj, struct problem_job *j)
{
    int *present = ARENA_ARRAY(l->arena, int, (size_t)sj->n_held);

    for (int i = 0; i < sj->n_held; i++)
        present[i] = sj->gpus[i];
    plan_sort_gpus(present, sj->n_held);
    j->n_present = sj->n_held;
    j->present = present;
    j->present_limit =
        problem_setting(&l->problem->types[l->problem->gpus[present[0]].type], sj->limit_w);
    j->is_fixed = !l->options->may_move || sj->ran_s < l->options->settle_s || j->engine.is_bound;
    j->move_w = move_w(l, sj, j);
}

static void lower_job(struct lowering *l, int job)
{
    const struct snapshot_job *sj = &l->snapshot->jobs[job];
    const struct job_spec *spec = sj->spec;
    struct problem_job *j = &l->problem->jobs[job];
    double weight = lower_weight(spec);
    double age = fmin(sj->waited_s / AGE_S, AGE_MOST);

    *j = (struct problem_job){
        .name = spec->name,
        .kind = l->kind_at[job],
        .form = FORM_GANG,
        .n_min = spec->n_gpus,
        .n_max = spec->max_gpus < GANG_MAX ? spec->max_gpus : GANG_MAX,
        .need = fmin(sj->need, 1e30),
        .short_w = fmin(l->options->promise_w * weight, SHORT_MOST_W),
        .allowed_types = allowed_of(l, spec),
        .is_exclusive = spec->is_exclusive,
        .n_nodes = spec->n_nodes,
        .since_s = sj->is_running ? sj->ran_s : sj->waited_s,
        .left_steps = spec->kind == JOB_TRAINING ? fmax(sj->remaining, 0) : 0,
        .left_s = spec->kind == JOB_INFERENCE ? fmax(sj->time_left_s, 0) : 0,
        .priority = spec->priority,
    };
    if (l->snapshot->engine)
        j->engine = l->snapshot->engine->jobs[job];
    double least_w = fmax(WAIT_SHARE * l->options->promise_w, WAIT_LEAST_W);
    double wait_w = fmin(least_w * (1 + age) * weight * spec->n_gpus, WAIT_MOST_W);
    j->wait_w = sj->is_running ? STOP_W : wait_w + out_of_reach_w(l->problem, j);
    if (sj->is_running)
        lower_present(l, sj, j);
    lower_wake(l, sj, j);
}

void lower_jobs(struct lowering *l)
{
    l->problem->jobs = ARENA_ARRAY(l->arena, struct problem_job, (size_t)l->problem->n_jobs);
    l->doubt = ARENA_ARRAY(l->arena, double, (size_t)l->problem->n_kinds);
    for (int k = 0; k < l->problem->n_kinds; k++)
        l->doubt[k] = doubt_about(l->problem, k);
    for (int j = 0; j < l->problem->n_jobs; j++)
        lower_job(l, j);
}

/* What the rules of a problem do not allow and is so all the same: frozen jobs, those that cannot
 * run here, limits that must be lifted; and the power that is left for the others.
 */
#include <math.h>

#include "base/arena.h"
#include "estimate/prior/limits.h"
#include "optimize/model/lower_inner.h"
#include "optimize/model/problem.h"

/* Watts are kept as float there and double here, and limits as curves. */
#define WATTS_MARGIN (1 + 1e-6)
#define LIMITED_MARGIN (1 + 1e-3)

/* ---- what is not as the rules want it ---- */

/* Why a waiting job can never run here: none of its types is there, or the gang is beyond what is
 * planned.
 */
static enum wait_reason cannot(const struct problem_job *j, const struct job_spec *spec)
{
    if (spec->allowed_types && !j->allowed_types)
        return WAIT_TYPE;
    return j->n_min > j->n_max ? WAIT_GANG : WAIT_NOT;
}

/* Are those on this GPU allowed to be there together, by the problem's rules? */
static bool is_lawful(const struct lowering *l, int gpu)
{
    const struct problem *p = l->problem;
    const struct snapshot_gpu *g = &l->snapshot->gpus[gpu];
    int type = l->type_at[g->type];
    struct yield y;

    if (g->n_jobs > p->theta)
        return false;
    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[g->jobs[i]];
        bool is_lonely = j->is_exclusive || (j->form == FORM_GANG && j->n_present > 1);
        if (!problem_allows(j, type) || (is_lonely && g->n_jobs > 1) ||
            j->present_limit != p->jobs[g->jobs[0]].present_limit)
            return false;
    }
    return g->n_jobs == 0 || problem_yield_of(p, type, 0, g->jobs, g->n_jobs, &y);
}

/* Is the running job as its own rules want it? */
static bool is_orderly(const struct lowering *l, int job)
{
    const struct problem_job *j = &l->problem->jobs[job];
    const struct problem_gpu *gpus = l->problem->gpus;

    if (cannot(j, l->snapshot->jobs[job].spec) != WAIT_NOT || j->present_limit < 0 ||
        j->n_present < j->n_min || j->n_present > j->n_max)
        return false;
    if (j->form == FORM_SPREAD)
        return true;
    for (int i = 1; i < j->n_present; i++)
        if (gpus[j->present[i]].type != gpus[j->present[0]].type)
            return false;
    return problem_stands(l->problem, j->present, j->n_present, j->n_nodes);
}

/* ---- how those go that stay as they are ---- */

/* Who is on a GPU but for one (-1: all), by workload and rate; returns how many. */
static int others_on(const struct lowering *l, int gpu, int except, int *workloads, double *rates)
{
    const struct snapshot_gpu *g = &l->snapshot->gpus[gpu];
    int n = 0;

    for (int i = 0; i < g->n_jobs; i++) {
        const struct snapshot_job *j = &l->snapshot->jobs[g->jobs[i]];
        if (g->jobs[i] == except)
            continue;
        rates[n] = job_serves(j->spec);
        workloads[n++] = j->workload;
    }
    return n;
}

/* A GPU as it is, under a limit. */
static struct limited now_under(const struct lowering *l, int gpu, int limit_w)
{
    int workloads[THETA_MAX];
    double rates[THETA_MAX];
    int n = others_on(l, gpu, -1, workloads, rates);

    return estimate_limited(l->est, l->snapshot->gpus[gpu].type, workloads, rates, n, limit_w);
}

/* What is left to a job of its speed alone on one of its GPUs; '*held' of what is held. */
static double share_on(const struct lowering *l, int job, int gpu, double *held)
{
    const struct snapshot_job *sj = &l->snapshot->jobs[job];
    int type = l->snapshot->gpus[gpu].type, others[THETA_MAX];
    double unused[THETA_MAX], alone_low, low;
    int n = others_on(l, gpu, job, others, unused);
    double alone = estimate_speed(l->est, sj->workload, type, NULL, 0, &alone_low);
    double speed = estimate_speed(l->est, sj->workload, type, others, n, &low);
    struct limited at = now_under(l, gpu, sj->limit_w);

    *held = low / alone_low * at.low;
    return speed / alone * at.speed;
}

/* A gang goes at the pace of its most disturbed member. */
static const struct problem_frozen *frozen_as(const struct lowering *l, int job)
{
    const struct snapshot_job *sj = &l->snapshot->jobs[job];
    int type = l->snapshot->gpus[sj->gpus[0]].type;
    struct problem_frozen *f = ARENA_ARRAY(l->arena, struct problem_frozen, 1);
    double worst = 1, worst_held = 1;
    bool is_far = !problem_stands(l->problem, sj->gpus, sj->n_held, 1);

    for (int i = 0; i < sj->n_held; i++) {
        double held, share = share_on(l, job, sj->gpus[i], &held);
        worst = fmin(worst, share);
        worst_held = fmin(worst_held, held);
    }
    f->speed = worst * estimate_gang_speed(l->est, sj->workload, type, sj->n_held, is_far, &f->low);
    f->low = fmin(f->low * worst_held, f->speed);
    f->limit_w = sj->limit_w;
    return f;
}

/* Freeze a job, with whoever is on its GPUs, and so on. */
static void freeze(struct lowering *l, int job)
{
    const struct snapshot_job *sj = &l->snapshot->jobs[job];
    struct problem_job *j = &l->problem->jobs[job];

    if (j->frozen)
        return;
    j->frozen = frozen_as(l, job);
    j->name = NULL;
    for (int i = 0; i < sj->n_held; i++) {
        const struct snapshot_gpu *g = &l->snapshot->gpus[sj->gpus[i]];
        struct problem_gpu *to = &l->problem->gpus[sj->gpus[i]];
        to->may_start = false;
        double watts = now_under(l, sj->gpus[i], l->snapshot->jobs[g->jobs[0]].limit_w).watts;
        to->held_w = fmax(watts, 1e-3);    // 0: nobody
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
    for (int j = s->n_running; j < s->n_jobs; j++) {
        struct problem_job *to = &l->problem->jobs[j];
        if (!to->name)
            continue;
        to->cannot = cannot(to, s->jobs[j].spec);
        if (to->cannot != WAIT_NOT)
            to->name = NULL;
    }
}

/* ---- power ---- */

/* What a GPU draws now, as a cap counts it; limits that are lifted are gone. */
static double drawn_w(const struct lowering *l, int gpu)
{
    const struct problem *p = l->problem;
    const struct problem_type *t = &p->types[p->gpus[gpu].type];
    const struct snapshot_gpu *g = &l->snapshot->gpus[gpu];

    if (g->n_jobs == 0)
        return t->idle_w;
    if (p->gpus[gpu].held_w > 0)
        return p->gpus[gpu].held_w * p->watts_margin;
    int limit_w = t->limits[p->jobs[g->jobs[0]].present_limit].limit_w;
    return now_under(l, gpu, limit_w).watts * p->watts_margin;
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
    const struct snapshot_gpu *g = &l->snapshot->gpus[gpu];
    bool is_wrong = false;

    for (int i = 0; i < g->n_jobs && p->bends; i++) {
        const struct problem_job *j = &p->jobs[g->jobs[i]];
        is_wrong |= !j->frozen && j->present_limit > 0 &&
                    p->bends[p->gpus[gpu].type * p->n_kinds + j->kind].is_free;
    }
    return is_wrong;
}

/* Everybody on a GPU gets this setting; returns by how much more that draws. */
static double set_limits(struct lowering *l, int gpu, int setting)
{
    const struct snapshot_gpu *g = &l->snapshot->gpus[gpu];
    double before_w = drawn_w(l, gpu);

    for (int i = 0; i < g->n_jobs; i++)
        l->problem->jobs[g->jobs[i]].present_limit = setting;
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
        int first = s->gpus[g].jobs[0], setting = l->problem->jobs[first].present_limit;
        double more_w = set_limits(l, g, 0);
        room_w -= more_w;
        if (more_w <= 0 || room_w >= 0)
            continue;
        room_w -= set_limits(l, g, setting);
        freeze(l, first);
    }
}

/* The cap, less what frozen GPUs draw above the idle watts that planners see there. Where the
 * present allocation is above it already, nobody moves: what that adds and saves is
 * not the same to the last digit here and for the judge.
 */
void lower_power(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    double cap_w = l->options->power_cap_w, frozen_w = 0;

    p->watts_margin = l->options->may_limit ? LIMITED_MARGIN : WATTS_MARGIN;
    lift_limits(l);
    if (cap_w <= 0)
        return;
    for (int g = 0; g < s->n_gpus; g++)
        if (p->gpus[g].held_w > 0)
            frozen_w += drawn_w(l, g) - p->types[p->gpus[g].type].idle_w;
    p->power_cap_w = fmax(cap_w - frozen_w, 1e-3);    // 0 would be no cap
    bool is_above = all_drawn_w(l) > cap_w;
    for (int j = 0; j < s->n_running; j++)
        p->jobs[j].is_fixed |= is_above;
}

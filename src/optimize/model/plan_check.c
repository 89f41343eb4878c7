/* The judge of every plan. Uses no solver's code: it lays the plan out again for itself. */
#include "optimize/model/plan.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "estimate/limits.h"
#include "optimize/policy/solver.h"

/* Predictions in a plan are compared with ours to this relative accuracy. */
#define SAME 1e-9

struct seat {
    int n;
    int jobs[THETA_MAX];
};

struct court {
    const struct plan *plan;
    const struct snapshot *snapshot;
    const struct estimator *est;
    const struct solve_options *options;
    struct seat *seats;    // (n_gpus) who is on each GPU
    struct err *e;
};

static const char *name_of(const struct court *c, int job)
{
    return c->snapshot->jobs[job].spec->name;
}

static bool is_here_already(const struct snap_job *j, int gpu)
{
    for (int i = 0; i < j->n_held; i++)
        if (j->gpus[i] == gpu)
            return true;
    return false;
}

static bool is_same_place(const struct snap_job *j, const struct plan_job *pj)
{
    if (j->n_held != pj->n_gpus)
        return false;
    for (int i = 0; i < pj->n_gpus; i++)
        if (!is_here_already(j, pj->gpus[i]))
            return false;
    return true;
}

/* One GPU of one job: does it exist, may it be used, is there room? */
static int check_gpu(struct court *c, int job, int gpu)
{
    const struct snap_job *j = &c->snapshot->jobs[job];

    if (gpu < 0 || gpu >= c->snapshot->n_gpus)
        return err_set(c->e, EINVAL, "job %s: there is no GPU %d", name_of(c, job), gpu);
    const struct snap_gpu *g = &c->snapshot->gpus[gpu];
    struct seat *seat = &c->seats[gpu];
    if (!g->may_start && !is_here_already(j, gpu))
        return err_set(c->e, EINVAL, "job %s: the node of GPU %d takes nothing new",
                       name_of(c, job), gpu);
    if (!job_allows(j->spec, g->type) && !is_here_already(j, gpu))
        return err_set(c->e, EINVAL, "job %s: does not allow GPU type %s", name_of(c, job),
                       c->snapshot->catalog->types[g->type].name);
    for (int i = 0; i < seat->n; i++)
        if (seat->jobs[i] == job)
            return err_set(c->e, EINVAL, "job %s: GPU %d twice", name_of(c, job), gpu);
    if (seat->n >= THETA_MAX)
        return err_set(c->e, EINVAL, "GPU %d: more than %d jobs", gpu, THETA_MAX);
    seat->jobs[seat->n++] = job;
    return 0;
}

/* On as many nodes as asked, as many GPUs on each. */
static bool stands_as_asked(const struct court *c, const struct plan_job *pj, int n_nodes)
{
    const struct snap_gpu *gpus = c->snapshot->gpus;

    for (int i = 0; i < pj->n_gpus && n_nodes > 0; i++) {
        int n_here = 0;
        for (int k = 0; k < pj->n_gpus; k++)
            n_here += gpus[pj->gpus[k]].node == gpus[pj->gpus[i]].node;
        if (n_here * n_nodes != pj->n_gpus)
            return false;
    }
    return true;
}

/* Its shape: as many as asked, of one type, on as many nodes as asked. */
static int check_shape(const struct court *c, const struct plan_job *pj,
                       const struct job_spec *spec)
{
    const struct snap_gpu *gpus = c->snapshot->gpus;

    if (pj->n_gpus < spec->n_gpus || pj->n_gpus > spec->max_gpus)
        return err_set(c->e, EINVAL, "job %s: %d GPUs where %d to %d were asked", spec->name,
                       pj->n_gpus, spec->n_gpus, spec->max_gpus);
    for (int i = 1; i < pj->n_gpus; i++)
        if (gpus[pj->gpus[i]].type != gpus[pj->gpus[0]].type)
            return err_set(c->e, EINVAL, "job %s: GPUs of two types", spec->name);
    if (stands_as_asked(c, pj, spec->n_nodes))
        return 0;
    if (spec->n_nodes == 1)
        return err_set(c->e, EINVAL, "job %s: its gang must stand on one node", spec->name);
    return err_set(c->e, EINVAL, "job %s: its gang must stand on %d nodes in equal parts",
                   spec->name, spec->n_nodes);
}

/* The gang, whole. Who stays where it runs is there, whatever it allows: somebody else's doing. */
static int check_gang(struct court *c, int job)
{
    const struct plan_job *pj = &c->plan->jobs[job];
    const struct snap_job *seen = &c->snapshot->jobs[job];

    if (!pj->gpus)
        return err_set(c->e, EINVAL, "job %s: %d GPUs, and the plan does not say which",
                       seen->spec->name, pj->n_gpus);
    for (int i = 0; i < pj->n_gpus; i++) {
        int rc = check_gpu(c, job, pj->gpus[i]);
        if (rc < 0)
            return rc;
    }
    return seen->is_running && is_same_place(seen, pj) ? 0 : check_shape(c, pj, seen->spec);
}

/* The limit it has already, none, or where that is allowed one that is offered. */
static bool is_limit(const struct court *c, int job)
{
    const struct snap_job *j = &c->snapshot->jobs[job];
    const struct plan_job *pj = &c->plan->jobs[job];
    int type = c->snapshot->gpus[pj->gpus[0]].type, offered[LIMITS_OFFERED];
    int n = limits_offer(&c->snapshot->catalog->types[type], offered);

    for (int i = 0; i < n && c->options->may_limit; i++)
        if (pj->limit_w == offered[i])
            return true;
    if (j->is_running && is_same_place(j, pj))
        return pj->limit_w == j->limit_w || (pj->limit_w == 0 && c->options->may_limit);
    const struct seat *seat = &c->seats[pj->gpus[0]];    // a newcomer takes what is there
    int first = seat->jobs[0] == job && seat->n > 1 ? seat->jobs[1] : seat->jobs[0];
    return pj->limit_w == 0 || (first != job && pj->limit_w == c->snapshot->jobs[first].limit_w);
}

/* Moves and other power limits only where they are allowed. */
static int check_change(struct court *c, int job)
{
    const struct snap_job *j = &c->snapshot->jobs[job];
    const struct plan_job *pj = &c->plan->jobs[job];
    bool stays = j->is_running && is_same_place(j, pj);

    if (j->is_running && !stays && !c->options->may_move)
        return err_set(c->e, EINVAL, "job %s moves, and moving is off", name_of(c, job));
    if (!is_limit(c, job))
        return err_set(c->e, EINVAL, "job %s: a power limit of %d W that nothing supports",
                       name_of(c, job), pj->limit_w);
    return 0;
}

static int check_waiting(struct court *c, int job)
{
    if (c->plan->jobs[job].is_short)
        return err_set(c->e, EINVAL, "job %s waits; its shortfall is its reason", name_of(c, job));
    if (c->plan->jobs[job].reason == WAIT_NOT)
        return err_set(c->e, EINVAL, "job %s waits and the plan does not say why", name_of(c, job));
    return 0;
}

/* Those who share: at most theta, nobody exclusive, and all of them probably fit. Where
 * nobody is new there is nothing to say: what runs already has shown that it fits, may be more than a
 * theta that was lowered since, and may stand beside one who is on the way out.
 */
static int check_sharing(struct court *c, int gpu)
{
    const struct seat *seat = &c->seats[gpu];
    int type = c->snapshot->gpus[gpu].type;
    int workloads[THETA_MAX];
    const struct snap_job *lonely = NULL;
    bool is_new = false;

    for (int i = 0; i < seat->n; i++) {
        const struct snap_job *j = &c->snapshot->jobs[seat->jobs[i]];
        workloads[i] = j->workload;
        lonely = j->spec->is_exclusive ? j : lonely;
        is_new |= !is_here_already(j, gpu);
        if (c->plan->jobs[seat->jobs[i]].limit_w != c->plan->jobs[seat->jobs[0]].limit_w)
            return err_set(c->e, EINVAL, "job %s: GPU %d has one power limit, not two",
                           j->spec->name, gpu);
    }
    if (is_new && seat->n > 1 && lonely)
        return err_set(c->e, EINVAL, "job %s is exclusive and shares GPU %d", lonely->spec->name,
                       gpu);
    if (is_new && seat->n > c->snapshot->theta)
        return err_set(c->e, EINVAL, "GPU %d: more than %d jobs", gpu, c->snapshot->theta);
    int share_max = c->snapshot->catalog->types[type].share_max;
    if (is_new && share_max > 0 && seat->n > share_max)
        return err_set(c->e, EINVAL, "GPU %d is shared, and its type %s is not", gpu,
                       c->snapshot->catalog->types[type].name);
    double unfit = estimate_unfit(c->est, type, workloads, seat->n);
    double most = seat->n > 1 ? c->options->unfit_max : c->options->alone_unfit_max;
    if (is_new && seat->n > 1 && !c->options->may_share)
        return err_set(c->e, EINVAL, "GPU %d is shared, and sharing is off", gpu);
    if (is_new && unfit > most)
        return err_set(c->e, EINVAL, "GPU %d: its jobs do not fit its memory (chance %.2f)", gpu,
                       unfit);
    return 0;
}

/* These jobs on a GPU under a limit. */
static struct limited limited_to(const struct court *c, int gpu, const int *jobs, int n,
                                 int limit_w)
{
    int workloads[THETA_MAX];
    double rates[THETA_MAX];

    for (int i = 0; i < n; i++) {
        workloads[i] = c->snapshot->jobs[jobs[i]].workload;
        rates[i] = job_serves(c->snapshot->jobs[jobs[i]].spec);
    }
    return estimate_limited(c->est, c->snapshot->gpus[gpu].type, workloads, rates, n, limit_w);
}

/* A GPU as the plan has it, under its limit. */
static struct limited limited_of(const struct court *c, int gpu)
{
    const struct seat *s = &c->seats[gpu];
    int limit_w = s->n ? c->plan->jobs[s->jobs[0]].limit_w : 0;

    return limited_to(c, gpu, s->jobs, s->n, limit_w);
}

/* Slowdown-free speed of the whole gang times the worst member's share. */
static double speed_freely(const struct court *c, int job, double *low)
{
    const struct plan_job *pj = &c->plan->jobs[job];
    int w = c->snapshot->jobs[job].workload, type = c->snapshot->gpus[pj->gpus[0]].type;
    double alone = (double)estimate_cell(c->est, w, type, -1)->speed;
    double worst = 1;
    bool is_spread = false;

    for (int i = 0; i < pj->n_gpus; i++) {
        const struct seat *seat = &c->seats[pj->gpus[i]];
        int others[THETA_MAX], n = 0;
        double held;
        for (int k = 0; k < seat->n; k++)
            if (seat->jobs[k] != job)
                others[n++] = c->snapshot->jobs[seat->jobs[k]].workload;
        is_spread |= c->snapshot->gpus[pj->gpus[i]].node != c->snapshot->gpus[pj->gpus[0]].node;
        double speed = estimate_speed(c->est, w, type, others, n, &held);
        if (pj->n_gpus == 1) {
            *low = held;
            return speed;
        }
        worst = fmin(worst, n ? speed / alone : 1);
    }
    double whole = estimate_gang_speed(c->est, w, type, pj->n_gpus, is_spread, low);
    *low *= worst;
    return whole * worst;
}

static double speed_here(const struct court *c, int job, double *low)
{
    const struct plan_job *pj = &c->plan->jobs[job];
    double speed = speed_freely(c, job, low), pace = 1, held = 1;

    for (int i = 0; i < pj->n_gpus; i++) {
        struct limited x = limited_of(c, pj->gpus[i]);
        pace = fmin(pace, x.speed);
        held = fmin(held, x.low);
    }
    *low *= held;
    return speed * pace;
}

static int check_promise(struct court *c, int job)
{
    const struct plan_job *pj = &c->plan->jobs[job];
    double need = c->snapshot->jobs[job].need, low;
    double speed = speed_here(c, job, &low);

    if (!(fabs(speed - pj->speed) <= SAME * speed && fabs(low - pj->low) <= SAME * low))
        return err_set(c->e, EINVAL, "job %s: the plan says %.6g (%.6g) steps/s, it is %.6g (%.6g)",
                       name_of(c, job), pj->speed, pj->low, speed, low);
    if (pj->is_short != (low < need))
        return err_set(c->e, EINVAL, "job %s: needs %.6g steps/s, %.6g is held, and that is %s",
                       name_of(c, job), need, low,
                       pj->is_short ? "no shortfall" : "a shortfall the plan does not name");
    return 0;
}

/* Under a cap an empty GPU counts as idle: it has to hold before anything falls asleep. */
static double capped_w(const struct court *c, int gpu, const int *jobs, int n, int limit_w)
{
    const struct gpu_type *type = &c->snapshot->catalog->types[c->snapshot->gpus[gpu].type];

    if (n == 0)
        return type->idle_w > 0 ? type->idle_w : 0;
    return limited_to(c, gpu, jobs, n, limit_w).watts;
}

static int check_power(struct court *c)
{
    double said = 0, total = 0, present = 0, cap = c->options->power_cap_w;

    if (cap <= 0)
        return 0;
    for (int g = 0; g < c->snapshot->n_gpus; g++) {
        const struct snap_gpu *now = &c->snapshot->gpus[g];
        const struct seat *s = &c->seats[g];
        said += limited_of(c, g).watts;
        total += capped_w(c, g, s->jobs, s->n, s->n ? c->plan->jobs[s->jobs[0]].limit_w : 0);
        present += capped_w(c, g, now->jobs, now->n_jobs,
                            now->n_jobs ? c->snapshot->jobs[now->jobs[0]].limit_w : 0);
    }
    if (!(fabs(said - c->plan->watts) <= SAME * said))
        return err_set(c->e, EINVAL, "the plan says %.6g W, it is %.6g", c->plan->watts, said);
    /* What runs already may stand above a cap that was lowered; nothing may be added. */
    if (total > fmax(cap, present) * (1 + SAME))
        return err_set(c->e, EINVAL, "%.0f W are above the cap of %.0f W", total, cap);
    return 0;
}

static int check_counts(const struct court *c)
{
    const struct plan *p = c->plan;
    int n_placed = 0, n_short = 0;

    for (int j = 0; j < p->n_jobs; j++) {
        n_placed += p->jobs[j].n_gpus > 0;
        n_short += p->jobs[j].is_short;
    }
    if (p->n_placed != n_placed || p->n_waiting != p->n_jobs - n_placed || p->n_short != n_short)
        return err_set(c->e, EINVAL,
                       "the plan counts %d placed, %d waiting, %d short; it is %d, "
                       "%d, %d",
                       p->n_placed, p->n_waiting, p->n_short, n_placed, p->n_jobs - n_placed,
                       n_short);
    return 0;
}

int plan_check(struct arena *a, const struct plan *p, const struct snapshot *s,
               const struct estimator *est, const struct solve_options *o, struct err *e)
{
    struct court c = { .plan = p, .snapshot = s, .est = est, .options = o, .e = e };
    int rc = 0;

    if (p->n_jobs != s->n_jobs)
        return err_set(e, EINVAL, "the plan is for %d jobs, the snapshot has %d", p->n_jobs,
                       s->n_jobs);
    c.seats = ARENA_ARRAY(a, struct seat, (size_t)s->n_gpus);
    for (int j = 0; j < s->n_jobs && rc == 0; j++)
        rc = p->jobs[j].n_gpus ? check_gang(&c, j) : check_waiting(&c, j);
    for (int j = 0; j < s->n_jobs && rc == 0; j++)
        if (p->jobs[j].n_gpus)
            rc = check_change(&c, j);
    for (int g = 0; g < s->n_gpus && rc == 0; g++)
        if (c.seats[g].n)
            rc = check_sharing(&c, g);
    for (int j = 0; j < s->n_jobs && rc == 0; j++)
        if (p->jobs[j].n_gpus)
            rc = check_promise(&c, j);
    if (rc == 0)
        rc = check_power(&c);
    return rc == 0 ? check_counts(&c) : rc;
}

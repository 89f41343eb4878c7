/* Services: what places hold for them, and what they still need beside the replicas that stay.
 *
 * To a plan a service is one job of several parts, on unlike GPUs too. The speed of a part is the
 * capacity of its place, which is cautious by itself (serve/capacity.h): there is no doubt in it.
 */
#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "optimize/model/lower_inner.h"
#include "optimize/model/place.h"

/* Any shortfall of a service outweighs stopping those who train on a GPU (STOP_W of lower_jobs.c),
 * for 'miss' of it is counted whenever anything lacks.
 */
#define SERVICE_SHORT_W 2e7

/* Weights of services by priority stay within this: above all training, and still numbers that can
 * be added to watts.
 */
#define SERVICE_WEIGHT_MOST 4.0

/* What a start costs is paid back within this long by what the new place saves: what is best
 * changes with every job that comes, and moves back are paid for, too. With 60, 120 and 300 s one
 * day of twenty services took 86.4, 83.9 and 84.9 kWh and 3.3, 6.2 and 20 starts a service-day.
 */
#define SERVICE_PAY_S 120.0

/* Who holds its demand and is not to move comes nowhere: above all that others lack. Each would
 * make room for the next, and none of the moves would be done before the next plan.
 */
#define SERVICE_STAY_W 1e9

/* Where all replicas that a service may have would hold less than this part of its demand, none
 * comes: it would hold a GPU for next to nothing.
 */
#define PLACE_LEAST 0.25

/* Waking a GPU for it is paid back within this long. */
#define SERVICE_WAKE_S 7200.0

static double capacity_at(const struct lowering *l, int kind, int type, int beside)
{
    const struct service_view *v = l->view_of[kind];
    double mu = place_capacity(l->est, v, l->workload_of[kind], l->type_of[type],
                               beside < 0 ? -1 : l->workload_of[beside]);

    return mu * v->max_gpus >= PLACE_LEAST * v->demand ? mu : 0;
}

/* Does no place hold anything for sure? */
static bool is_on_trial(const struct lowering *l, int kind)
{
    for (int t = 0; t < l->problem->n_types; t++)
        if (capacity_at(l, kind, t, -1) > 0)
            return false;
    return true;
}

void lower_service_row(struct lowering *l, int type, int kind)
{
    struct problem *p = l->problem;
    int w = l->workload_of[kind], t = l->type_of[type];
    struct cell_estimate alone = estimate_cell(l->est, w, t, -1);
    int most = gpu_type_theta(&l->snapshot->catalog->types[t], p->theta);
    double mu = is_on_trial(l, kind) ? place_trial(l->est, l->view_of[kind], w, t)
                                     : capacity_at(l, kind, type, -1);
    double idle_w = p->types[type].idle_w;
    bool is_out = !(mu > 0) || lower_is_unfit(l, type, kind, -1);

    p->trust[type * p->n_kinds + kind] = (struct problem_trust){ 1, 1, 1 };
    double busy = place_busy(l->est, l->view_of[kind], w, t, fmin(mu, p->kinds[kind].rate));
    p->watts[type * p->n_kinds + kind] =
        (float)(idle_w + busy * fmax((double)alone.watts - idle_w, 0));
    for (int n = -1; n < p->n_kinds && !is_out; n++) {
        if (n == kind || (n >= 0 && (most == 1 || lower_is_unfit(l, type, kind, n))))
            continue;    // stays 0: never; nor beside another replica of its own
        long at = problem_cell(p, type, kind, n);
        p->speed[at] = p->held[at] = (float)(n < 0 ? mu : capacity_at(l, kind, type, n));
        p->doubt[at] = 0;
    }
}

/* ---- jobs ---- */

static double service_short_w(const struct job_spec *s)
{
    return SERVICE_SHORT_W * fmin(lower_weight(s), SERVICE_WEIGHT_MOST);
}

/* What a replica holds on its GPU, beside whom it is: a job of its own, or one of a service's. */
static double held_on(const struct lowering *l, int job, int gpu)
{
    const struct snapshot_gpu *g = &l->snapshot->gpus[gpu];
    double least = INFINITY;

    for (int i = -1; i < g->n_jobs; i++) {
        int other = i < 0 ? -1 : l->kind_at[g->jobs[i]];
        if (i < 0 || g->jobs[i] != job)
            least = fmin(least, (double)l->problem->held[problem_cell(
                                    l->problem, l->type_at[g->type], l->kind_at[job], other)]);
    }
    return least;
}

/* One that stays: whoever comes beside it must leave it what it holds. */
static void lower_replica(struct lowering *l, int job)
{
    const struct snapshot_job *sj = &l->snapshot->jobs[job];
    struct problem_job *j = &l->problem->jobs[job];
    double held = sj->is_leaving ? 0 : held_on(l, job, sj->gpus[0]);

    j->is_fixed = true;
    j->need = held;
    j->short_w = held > 0 ? service_short_w(sj->spec) * fmin(held / sj->service->demand, 1) : 0;
}

/* While a new replica loads, the one that it replaces goes on: the draw of both, of the dearest
 * type.
 */
static double start_w(const struct lowering *l, const struct snapshot_job *sj, int kind)
{
    double most_w = 0;

    for (int t = 0; t < l->problem->n_types; t++)
        most_w = fmax(most_w, (double)l->problem->watts[t * l->problem->n_kinds + kind]);
    return sj->service->load_s / SERVICE_PAY_S * most_w;
}

static void lower_service(struct lowering *l, int job)
{
    const struct snapshot_job *sj = &l->snapshot->jobs[job];
    struct problem_job *j = &l->problem->jobs[job];
    double held = sj->service->coming;
    int n_fixed = sj->service->n_coming;

    for (int i = 0; i < l->snapshot->n_running; i++) {
        const struct snapshot_job *r = &l->snapshot->jobs[i];
        if (r->spec->kind != JOB_REPLICA || r->spec->service != sj->id || r->is_leaving)
            continue;
        held += held_on(l, i, r->gpus[0]);
        n_fixed++;
    }
    double loose = 0;
    for (int i = 0; i < sj->n_held; i++)
        loose += held_on(l, job, sj->gpus[i]);
    bool may_come = sj->service->may_move || held + loose < sj->service->demand;
    int most = is_on_trial(l, j->kind) ? 1 : sj->spec->max_gpus, room = most - n_fixed;
    j->form = FORM_SPREAD;
    j->n_max = room > j->n_present ? room : j->n_present;
    j->need = fmax(sj->service->demand - held, 0);
    j->short_w = service_short_w(sj->spec) * fmin(j->need / sj->service->demand, 1);
    j->wait_w = j->need > 0 ? (1 + l->problem->miss) * j->short_w : 0;
    j->is_fixed = false;
    j->wake_rate = 1 / SERVICE_WAKE_S;
    j->late_w = 0;
    j->move_w = 0;
    j->start_w = may_come ? start_w(l, sj, j->kind) : SERVICE_STAY_W;
    if (j->n_max == 0 || (!(j->need > 0) && j->n_present == 0)) {
        j->name = NULL;    // those that stay are enough, or all that it may have
        j->cannot = WAIT_NOT;
        j->n_max = 1;
    }
}

void lower_services(struct lowering *l)
{
    for (int j = 0; j < l->problem->n_jobs; j++)
        if (l->snapshot->jobs[j].service && l->snapshot->jobs[j].spec->kind == JOB_REPLICA)
            lower_replica(l, j);
    for (int j = 0; j < l->problem->n_jobs; j++)
        if (l->snapshot->jobs[j].service && l->snapshot->jobs[j].spec->kind == JOB_SERVICE)
            lower_service(l, j);
}

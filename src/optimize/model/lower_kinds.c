/* Kinds of work: what they do on every type, alone and beside each other. */
#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "estimate/prior/limits.h"
#include "estimate/prior/roofline.h"
#include "optimize/model/lower_inner.h"

/* More where no type is believed to hold what the kind's jobs need: there is nothing to lose, and
 * what is held is hoped for too. What a plan says of its promises is said without.
 */
#define CURIOSITY_LOST 2.5

/* And a type where such a kind has never run alone is hoped to hold what is needed, up to this
 * factor: what was learned elsewhere may not be so here, however sure it seems.
 */
#define HOPE_MOST 10.0

/* Rates of servers that differ by less than this factor are one: upwards, so that no cap
 * is broken by it.
 */
#define RATE_STEP 1.05

/* How many times a usual job's time is worth, by priority and urgency: in doublings, of which there
 * are so many at most, since each is a kind of its own, and tables go with the square of these. 300
 * jobs of 7 workloads were planned in 9 ms with one price, in 170 ms with quarters of doublings.
 */
#define DOUBLINGS_MOST 4.0

static double usual_times(const struct job_spec *s)
{
    double doublings = round(log2(lower_weight(s) * job_urgency(s)));

    return exp2(fmin(fmax(doublings, -DOUBLINGS_MOST), DOUBLINGS_MOST));
}

/* A kind for every workload, rate and price of time that some job has, and for every service. A
 * server's time has none: it takes as long as it takes.
 */
static void find_kinds(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    int *first = ARENA_ARRAY(l->arena, int, (size_t)l->est->n_workloads);
    int *next = ARENA_ARRAY(l->arena, int, (size_t)s->n_jobs);

    p->kinds = ARENA_ARRAY(l->arena, struct problem_kind, (size_t)s->n_jobs);
    l->workload_of = ARENA_ARRAY(l->arena, int, (size_t)s->n_jobs);
    l->kind_at = ARENA_ARRAY(l->arena, int, (size_t)s->n_jobs);
    l->view_of = ARENA_ARRAY(l->arena, const struct service_view *, (size_t)s->n_jobs);
    for (int w = 0; w < l->est->n_workloads; w++)
        first[w] = -1;
    for (int j = 0; j < s->n_jobs; j++) {
        int w = s->jobs[j].workload, k = first[w];
        const struct service_view *view = s->jobs[j].service;
        double rate = view ? fmax(view->demand, 1e-9) : job_serves(s->jobs[j].spec);
        double time_w = rate > 0 ? 0 : l->delay_w * usual_times(s->jobs[j].spec);
        rate = rate > 0 && !view ? exp(ceil(log(rate) / log(RATE_STEP)) * log(RATE_STEP)) : rate;
        while (k >= 0 &&
               (p->kinds[k].rate != rate || p->kinds[k].time_w != time_w || l->view_of[k] != view))
            k = next[k];
        if (k < 0) {
            k = p->n_kinds++;
            next[k] = first[w];
            first[w] = k;
            l->workload_of[k] = w;
            l->view_of[k] = view;
            p->kinds[k] = (struct problem_kind){ .name = s->catalog->workloads[w].name,
                                                 .rate = rate,
                                                 .time_w = time_w };
        }
        l->kind_at[j] = k;
    }
}

/* The largest chance that one of them does not fit, as estimate_unfit has it for two. */
bool lower_is_unfit(const struct lowering *l, int type, int kind, int beside)
{
    int both[] = { l->workload_of[kind], beside < 0 ? -1 : l->workload_of[beside] };
    int n = beside < 0 ? 1 : 2;
    double most = n > 1 ? l->options->unfit_max : l->options->alone_unfit_max;

    return estimate_unfit(l->est, l->type_of[type], both, n) > most;
}

/* How much more than what is believed of a kind on a type is counted on. Not of servers: their
 * watts go by what they could do.
 */
static float counted_on(const struct lowering *l, int type, int kind)
{
    int w = l->workload_of[kind], t = l->type_of[type];
    struct cell_estimate c = estimate_cell(l->est, w, t, -1);

    if (l->problem->kinds[kind].rate > 0)
        return 1;
    if (!(l->missed[kind] > 0))
        return (float)exp(CURIOSITY * (double)c.sd);
    const struct cell_key alone = { .workload = w, .gpu_type = t, .neighbour = -1, .n_gpus = 1 };
    const struct cell *seen = catalog_cell(l->snapshot->catalog, alone);
    double more = exp(CURIOSITY_LOST * (double)c.sd);
    if (!seen || seen->n_speed == 0)
        more = fmax(more, fmin(l->missed[kind] / (double)c.low, HOPE_MOST));
    return (float)more;
}

/* What jobs of each kind need of one GPU that no type is believed to hold. */
static void find_missed(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    int n = l->problem->n_kinds;
    double *most = ARENA_ARRAY(l->arena, double, (size_t)n);

    l->missed = ARENA_ARRAY(l->arena, double, (size_t)n);
    for (int k = 0; k < n; k++)
        for (int t = 0; t < l->problem->n_types; t++) {
            struct cell_estimate c = estimate_cell(l->est, l->workload_of[k], l->type_of[t], -1);
            most[k] = fmax(most[k], (double)(c.low * (1 - c.unfit)));
        }
    for (int j = 0; j < s->n_jobs; j++) {
        int k = l->kind_at[j];
        double need =
            s->jobs[j].service ? 0 : s->jobs[j].need / roofline_gang(s->jobs[j].spec->max_gpus, 0);
        if (need > most[k])
            l->missed[k] = fmax(l->missed[k], need);
    }
}

/* One row of cells. A place where a job may not fit even alone is worth less by the chance that it
 * does not. The same factors beside others as alone, so that paces stay what they are.
 */
static void lower_row(struct lowering *l, int type, int kind)
{
    struct problem *p = l->problem;
    int w = l->workload_of[kind], t = l->type_of[type];
    float fit = 1 - estimate_cell(l->est, w, t, -1).unfit, more = counted_on(l, type, kind);
    struct problem_trust trust = { fit * more, fit * (l->missed[kind] > 0 ? more : 1), fit };
    int most = gpu_type_theta(&l->snapshot->catalog->types[t], p->theta);
    bool is_out = lower_is_unfit(l, type, kind, -1);

    p->trust[type * p->n_kinds + kind] = trust;
    p->watts[type * p->n_kinds + kind] = estimate_cell(l->est, w, t, -1).watts;
    for (int n = -1; n < p->n_kinds && !is_out; n++) {
        struct cell_estimate c = estimate_cell(l->est, w, t, n < 0 ? -1 : l->workload_of[n]);
        long at = problem_cell(p, type, kind, n);
        if (n >= 0 && (most == 1 || lower_is_unfit(l, type, kind, n)))
            continue;    // stays 0: never
        p->speed[at] = c.speed * trust.speed;
        p->held[at] = expf(c.mean + c.sd * c.sd / 2) * (n < 0 ? trust.held : trust.beside);
        p->doubt[at] = c.sd;
    }
}

/* The mean over types, of those that are not 0, stands for each of them. */
static void make_alike(float *cells, int n_types, long step)
{
    float sum = 0;
    int n = 0;

    for (int t = 0; t < n_types; t++) {
        sum += cells[t * step];
        n += cells[t * step] > 0;
    }
    for (int t = 0; t < n_types; t++)
        if (cells[t * step] > 0)
            cells[t * step] = sum / (float)n;
}

/* Types that must not be told apart: jobs do on each what they do on average, and what is counted
 * on is what is believed.
 */
static void make_types_alike(struct problem *p)
{
    long step = (long)p->n_kinds * (p->n_kinds + 1);

    p->trust = NULL;
    for (long i = 0; i < step; i++) {
        make_alike(p->speed + i, p->n_types, step);
        make_alike(p->held + i, p->n_types, step);
        make_alike(p->doubt + i, p->n_types, step);
    }
    for (int k = 0; k < p->n_kinds; k++)
        make_alike(p->watts + k, p->n_types, p->n_kinds);
}

/* How limits work on each kind, as far as that is known. */
static void lower_bends(struct lowering *l)
{
    struct problem *p = l->problem;

    if (!l->options->may_limit)
        return;
    p->bends = ARENA_ARRAY(l->arena, struct problem_bend, (size_t)p->n_types * (size_t)p->n_kinds);
    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < p->n_kinds; k++) {
            struct limit_bend b = estimate_bend(l->est, l->workload_of[k], l->type_of[t]);
            p->bends[t * p->n_kinds + k] =
                (struct problem_bend){ .loss = (float)b.loss,
                                       .draw = (float)b.draw,
                                       .doubt = (float)b.loss_sd,
                                       .at = (float)b.at,
                                       .is_free = l->view_of[k] ||
                                                  !estimate_may_limit(l->est, l->type_of[t],
                                                                      &l->workload_of[k],
                                                                      &p->kinds[k].rate, 1) };
        }
}

/* What pairs draw, where any was measured. */
static void lower_shared(struct lowering *l)
{
    struct problem *p = l->problem;

    if (p->theta < 2 || !l->est->shared->is_known)
        return;
    size_t n = (size_t)p->n_kinds;
    p->shared = ARENA_ARRAY(l->arena, float, (size_t)p->n_types *n *n);
    for (int t = 0; t < p->n_types; t++)
        for (int a = 0; a < p->n_kinds; a++)
            for (int b = 0; b < p->n_kinds; b++) {
                const int both[] = { l->workload_of[a], l->workload_of[b] };
                p->shared[problem_pair(p, t, (int[]){ a, b })] =
                    (float)estimate_shared(l->est, l->type_of[t], both, 2);
            }
}

/* Cells know of pairs, and say who fits beside whom. For three and more memory has to add up, and
 * then, by the problem's rule, for fewer too: what two have been seen to do in spite of it is
 * given up. A kind that is too large for every type alone still has the largest.
 */
static void lower_memory(struct lowering *l)
{
    struct problem *p = l->problem;
    double share = estimate_mem_share_max(l->options->unfit_max), most_gib = 0;

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
void lower_values(struct lowering *l)
{
    struct problem *p = l->problem;

    for (int k = 0; k < p->n_kinds; k++) {
        bool counts = l->options->objective == OBJECTIVE_JOULES && p->kinds[k].rate == 0;
        p->kinds[k].value_j = counts ? problem_best_joules(p, k) : 0;
    }
}

void lower_kinds(struct lowering *l)
{
    struct problem *p = l->problem;

    find_kinds(l);
    size_t rows = (size_t)p->n_types * (size_t)p->n_kinds;
    p->speed = ARENA_ARRAY(l->arena, float, rows *(size_t)(p->n_kinds + 1));
    p->held = ARENA_ARRAY(l->arena, float, rows *(size_t)(p->n_kinds + 1));
    p->doubt = ARENA_ARRAY(l->arena, float, rows *(size_t)(p->n_kinds + 1));
    p->watts = ARENA_ARRAY(l->arena, float, rows);
    p->trust = ARENA_ARRAY(l->arena, struct problem_trust, rows);
    find_missed(l);
    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < p->n_kinds; k++)
            if (l->view_of[k])
                lower_service_row(l, t, k);
            else
                lower_row(l, t, k);
    if (!l->options->may_choose)
        make_types_alike(p);
    lower_bends(l);
    lower_shared(l);
    lower_memory(l);
    for (int n = 1; n <= GANG_MAX; n++) {
        p->gang_near[n] = roofline_gang(n, 0);
        p->gang_far[n] = roofline_gang(n, 1);
    }
}

/* Pairs that are tried on purpose: what is counted on of them beyond belief.
 *
 * Who never shares a GPU never learns who goes well together. So of a pair that was not measured
 * more is counted on than is believed, by so many standard deviations as what would be learned is
 * worth to the jobs that are here and to those that will come; once it is measured there is nothing
 * left to hope for. No more is ever paid for a try than this (plan.hope_w), and promises are held
 * against belief alone.
 */
#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "optimize/model/lower_inner.h"

/* What is hoped for at most, in standard deviations of a slowdown. Chosen on the reference scenario
 * (docs/experiments.md, "Learning pairs").
 */
#define PROBE_HOPE 2.0

/* A placement is measured after about so long. */
#define PROBE_S 300.0

/* Worth half of that where it could be used so many times as long as a try takes. */
#define PROBE_USES 10.0

/* A try delays nobody by more than this part of the time that it has left. */
#define PROBE_DELAY 0.1

/* What is known of a kind of work here. */
struct probe_kind {
    double left_s;    // the least that one of its jobs has left
    double uses;      // tries that the longest of them could make use of, and as many as there were
};

/* Measurements of the workload so far: as much of it is expected to come. */
static double measured(const struct catalog *c, int workload)
{
    double n = 0;

    for (int at = c->first_cell[workload]; at >= 0; at = c->next_cell[at])
        n += c->cells[at].n_speed;
    return n;
}

static struct probe_kind *look_at_kinds(const struct lowering *l)
{
    const struct problem *p = l->problem;
    struct probe_kind *kinds = ARENA_ARRAY(l->arena, struct probe_kind, (size_t)p->n_kinds);

    for (int k = 0; k < p->n_kinds; k++)
        kinds[k].left_s = INFINITY;
    for (int j = 0; j < l->snapshot->n_jobs; j++) {
        const struct snapshot_job *sj = &l->snapshot->jobs[j];
        int k = l->kind_at[j];
        double speed = 0;
        for (int t = 0; t < p->n_types; t++)
            speed = fmax(speed, (double)p->speed[problem_cell(p, t, k, -1)]);
        double left_s = sj->spec->kind == JOB_INFERENCE ? sj->time_left_s
                        : speed > 0                     ? sj->remaining / speed
                                                        : 0;
        kinds[k].left_s = fmin(kinds[k].left_s, left_s);
        kinds[k].uses = fmax(kinds[k].uses, left_s / PROBE_S);
    }
    for (int k = 0; k < p->n_kinds; k++)
        kinds[k].uses += measured(l->snapshot->catalog, l->workload_of[k]);
    return kinds;
}

/* ln of what is counted on beyond belief of 'kind' beside 'other'. */
static double hope(const struct lowering *l, const struct probe_kind *kinds, int type, int kind,
                   int other)
{
    const struct problem *p = l->problem;
    long alone = problem_cell(p, type, kind, -1), pair = problem_cell(p, type, kind, other);
    double uses = fmin(kinds[kind].uses, kinds[other].uses);
    double variance = (double)p->doubt[pair] * (double)p->doubt[pair] -
                      (double)p->doubt[alone] * (double)p->doubt[alone];
    double lost = 1 - (double)(p->speed[pair] / p->speed[alone]);

    if (!(variance > 0) || p->kinds[kind].rate > 0 ||
        lost * PROBE_S > PROBE_DELAY * kinds[kind].left_s)
        return 0;
    double most = log((double)(p->speed[alone] / p->speed[pair]));
    return fmin(PROBE_HOPE * uses / (uses + PROBE_USES) * sqrt(variance), fmax(most, 0));
}

void lower_probes(struct lowering *l)
{
    struct problem *p = l->problem;
    long n = problem_cell(p, p->n_types, 0, -1);

    if (!l->options->may_probe || p->theta != 2 || p->kinds == NULL)
        return;
    const struct probe_kind *kinds = look_at_kinds(l);
    p->hope = ARENA_ARRAY(l->arena, float, (size_t)n);
    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < p->n_kinds; k++)
            for (int other = -1; other < p->n_kinds; other++) {
                long at = problem_cell(p, t, k, other);
                bool runs = other >= 0 && (double)p->speed[at] > 0;
                p->hope[at] = runs ? (float)exp(hope(l, kinds, t, k, other)) : 1;
            }
    for (long i = 0; i < n; i++)
        p->speed[i] *= p->hope[i];
}

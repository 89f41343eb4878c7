/* When a job that waits may start: the first end that makes room for it. */
#include <math.h>

#include "base/arena.h"
#include "optimize/explain/explain_inner.h"

struct end {
    double at_s;
    int job;    // -1: it is free already
};

/* The first 'k' ends, ascending, of all that were told. */
struct ends {
    int k, n;
    struct end *list;
};

static void end_told(struct ends *x, struct end e)
{
    if (x->n == x->k && !(e.at_s < x->list[x->k - 1].at_s))
        return;
    int i = x->n < x->k ? x->n++ : x->k - 1;
    for (; i > 0 && x->list[i - 1].at_s > e.at_s; i--)
        x->list[i] = x->list[i - 1];
    x->list[i] = e;
}

static struct end end_of(const struct explain_asking *q, int job)
{
    const struct snapshot *s = q->asked->snapshot;
    double left_s = explain_time_s(&s->jobs[job], q->plan->jobs[job].speed);

    return (struct end){ .at_s = s->now_s + left_s, .job = job };
}

/* Would the job do on a GPU once 'leaving' has gone, with those that stay? */
static bool would_do(struct explain_asking *q, int gpu, int leaving)
{
    struct explain_gpu *g = &q->gpus[gpu], was = *g;
    struct candidate c = { .type = q->p->gpus[gpu].type, .n_gpus = 1, .neighbour = -1 };
    bool may_join = true, has_room;

    g->n_jobs = 0;
    for (int i = 0; i < was.n_jobs; i++)
        if (was.jobs[i] != leaving) {
            g->jobs[g->n_jobs++] = was.jobs[i];
            may_join &=
                !q->p->jobs[was.jobs[i]].is_exclusive && q->plan->jobs[was.jobs[i]].n_gpus < 2;
        }
    bool may_run = explain_there(q, &c, &gpu, EXPLAIN_BEST, &has_room);
    *g = was;
    return may_join && may_run && !(c.margin < 0) && c.neighbour_keeps;
}

/* When a GPU has room for the job: empty, or sooner where it would do beside those who stay. */
static struct end room_on(struct explain_asking *q, int gpu, double before_s)
{
    const struct explain_gpu *g = &q->gpus[gpu];
    bool may_share = q->p->theta > 1 && q->j->n_min == 1 && !q->j->is_exclusive;
    struct end first = { .at_s = INFINITY, .job = -1 };
    struct end last = { .at_s = q->asked->snapshot->now_s, .job = -1 };

    for (int i = 0; i < g->n_jobs; i++) {
        struct end e = end_of(q, g->jobs[i]);
        first = e.at_s < first.at_s ? e : first;
        last = last.job < 0 || e.at_s > last.at_s ? e : last;
    }
    if (may_share && g->n_jobs > 1 && first.at_s < before_s && would_do(q, gpu, first.job))
        return first;
    return last;
}

/* The end that makes room for the job on this type: of a gang over nodes on the last of them, each
 * with its part; where it does not ask for nodes, all are as one.
 */
static struct end room_on_type(struct explain_asking *q, int type)
{
    const struct problem_gpu *gpus = q->p->gpus;
    int n_gpus = q->p->n_gpus, n_nodes = q->j->n_nodes > 0 ? q->j->n_nodes : 1;
    int n_here = q->j->n_min / n_nodes;
    struct ends nodes = { .k = n_nodes,
                          .list = ARENA_ARRAY(q->arena, struct end, (size_t)n_nodes) };
    struct ends ends = { .k = n_here, .list = ARENA_ARRAY(q->arena, struct end, (size_t)n_here) };

    for (int g = 0; g < n_gpus; g++) {
        bool is_no_help = q->gpus[g].n_jobs == 0 && q->j->n_min == 1;    // it is free already
        double before_s = n_here == 1 && ends.n == 1 ? ends.list[0].at_s : (double)INFINITY;
        if (gpus[g].type == type && gpus[g].may_start && !is_no_help)
            end_told(&ends, room_on(q, g, before_s));
        if (g + 1 < n_gpus && (q->j->n_nodes == 0 || gpus[g + 1].node == gpus[g].node))
            continue;
        if (ends.n == n_here)
            end_told(&nodes, ends.list[n_here - 1]);
        ends.n = 0;
    }
    return nodes.n == n_nodes ? nodes.list[n_nodes - 1] : (struct end){ INFINITY, -1 };
}

void explain_find_start(struct explain_asking *q, struct explanation *out)
{
    struct end best = { .at_s = INFINITY, .job = -1 };

    for (int type = 0; type < q->p->n_types && q->j->name; type++) {
        struct yield y;
        if (!problem_allows(q->j, type) || !problem_yield(q->p, type, 0, &q->j->kind, 1, &y))
            continue;
        struct end e = room_on_type(q, type);
        best = e.at_s < best.at_s ? e : best;
    }
    if (best.job < 0)    // no such place, or it is there already and something else is in the way
        return;
    out->may_start_s = best.at_s;
    out->waits_for = best.job;
}

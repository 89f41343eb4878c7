#include "optimize/explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/explain/inner.h"

/* Costs that differ by less are the same, as a part of the larger. */
#define SAME 1e-9

const char *candidate_verdict_name(enum candidate_verdict v)
{
    static const char *const names[] = {
        [CANDIDATE_CHOSEN] = "chosen",
        [CANDIDATE_COSTS_MORE] = "costs more",
        [CANDIDATE_BREAKS_PROMISE] = "breaks its promise",
        [CANDIDATE_BREAKS_NEIGHBOUR] = "a neighbour loses more",
        [CANDIDATE_MOVE_COSTS] = "move costs more",
        [CANDIDATE_TRIED_LESS] = "less to find out",
        [CANDIDATE_UNFIT] = "does not fit",
        [CANDIDATE_FULL] = "taken",
        [CANDIDATE_EXCLUSIVE] = "not shared",
        [CANDIDATE_NOT_ALLOWED] = "not allowed",
        [CANDIDATE_NODE_AWAY] = "node away",
        [CANDIDATE_ENGINE] = "engine",
        [CANDIDATE_POWER_CAP] = "power cap",
        [CANDIDATE_FIXED] = "not moved now",
        [CANDIDATE_PASSED_OVER] = "passed over",
    };
    return names[v];
}

bool plan_job_stays(const struct plan_job *pj, const struct snapshot_job *j)
{
    return j->is_running && gpus_same(pj->gpus, pj->n_gpus, j->gpus, j->n_held);
}

/* ---- verdicts ---- */

static bool is_less(double a, double b)
{
    return a < b - SAME * fmax(fabs(a), fabs(b));
}

/* A place that could be had, against the chosen one or waiting: the first part that makes out half
 * of what it costs more is what speaks against it.
 */
static enum candidate_verdict weigh(const struct explain *q, const struct candidate *c)
{
    const struct candidate_cost *w = &c->cost, *best = &q->least;
    const struct {
        enum candidate_verdict verdict;
        double more_w;
    } parts[] = {
        { CANDIDATE_BREAKS_PROMISE, w->short_w - best->short_w },
        { CANDIDATE_BREAKS_NEIGHBOUR, w->neighbour_w - best->neighbour_w },
        { CANDIDATE_MOVE_COSTS, w->move_w + w->wake_w - best->move_w - best->wake_w },
    };

    if (is_less(w->cost_w, best->cost_w))
        return q->j->is_fixed ? CANDIDATE_FIXED : CANDIDATE_PASSED_OVER;
    for (int i = 0; i < 3; i++)
        if (parts[i].more_w > 0 && parts[i].more_w >= (w->cost_w - best->cost_w) / 2)
            return parts[i].verdict;
    return is_less(w->cost_w + w->hope_w, best->cost_w + best->hope_w) ? CANDIDATE_TRIED_LESS
                                                                       : CANDIDATE_COSTS_MORE;
}

/* What speaks against it, the most lasting first; 'barrier' (CHOSEN: none) keeps it from being
 * taken whatever it is worth.
 */
static enum candidate_verdict judge(const struct explain *q, const struct candidate *c,
                                    enum candidate_verdict barrier, enum explain_fit fit)
{
    if (!problem_allows(q->j, c->type) || q->j->cannot != WAIT_NOT ||
        barrier == CANDIDATE_NOT_ALLOWED)
        return CANDIDATE_NOT_ALLOWED;
    if (barrier == CANDIDATE_EXCLUSIVE)
        return barrier;
    if (fit == EXPLAIN_NEVER)
        return CANDIDATE_UNFIT;
    if (barrier != CANDIDATE_CHOSEN)
        return barrier;
    return fit == EXPLAIN_FITS ? weigh(q, c) : CANDIDATE_POWER_CAP;
}

/* ---- candidates ---- */

static double wait_w(const struct problem_job *j)
{
    return j->wait_w + (j->n_present ? j->move_w : 0);
}

/* Of a node's GPUs: whole gangs where it has to be one node, one part of a gang over several. */
static int usable(int n, int n_nodes, int n_here)
{
    if (n_nodes == 0)
        return n;
    return n_nodes == 1 ? n / n_here * n_here : n >= n_here ? n_here : 0;
}

/* The GPUs of a type that a gang of n could stand on: in all, or as nodes allow. */
static struct explain_node stock_of(const struct explain *q, int type, int n)
{
    int n_nodes = n > 1 ? q->j->n_nodes : 0, n_here = n_nodes > 0 ? n / n_nodes : 1;
    struct explain_node s = { .type = type };

    for (int i = 0; i < q->n_nodes; i++) {
        const struct explain_node *r = &q->nodes[i];
        if (r->type != type)
            continue;
        s.n_all += usable(r->n_all, n_nodes, n_here);
        s.n_up += usable(r->n_up, n_nodes, n_here);
        s.n_free += usable(r->n_free, n_nodes, n_here);
    }
    return s;
}

/* A candidate on these GPUs (NULL: as if there were some that are free). */
static void offer(struct explain *q, struct candidate c, const int *gpus,
                  enum candidate_verdict barrier)
{
    enum explain_fit fit =
        barrier != CANDIDATE_EXCLUSIVE ? explain_there(q, &c, gpus, EXPLAIN_BEST) : EXPLAIN_NEVER;

    if (fit == EXPLAIN_NEVER)
        explain_nowhere(&c);
    c.gpu = gpus ? gpus[0] : -1;
    if (c.neighbour < 0 && gpus && q->gpus[c.gpu].n_jobs > 0)
        c.neighbour = q->gpus[c.gpu].jobs[0];
    c.verdict = judge(q, &c, barrier, fit);
    q->list[q->n_list++] = c;
}

/* Whole GPUs of a type; where all are taken, as if they were free. */
static void offer_alone(struct explain *q, int type, int n)
{
    struct explain_node s = stock_of(q, type, n);
    int gpus[GANG_MAX];
    bool is_free = n <= GANG_MAX && explain_find_free(q, type, n, gpus);

    struct candidate c = { .type = type,
                           .n_gpus = n,
                           .n_places = is_free ? s.n_free / n : 0,
                           .neighbour = -1,
                           .rule = q->ruled[type] };
    offer(q, c, is_free ? gpus : NULL,
          s.n_all < n            ? CANDIDATE_NOT_ALLOWED
          : s.n_up < n           ? CANDIDATE_NODE_AWAY
          : is_free              ? CANDIDATE_CHOSEN
          : c.rule != ENGINE_CAN ? CANDIDATE_ENGINE
                                 : CANDIDATE_FULL);
}

static void offer_beside(struct explain *q, const struct explain_shared *k)
{
    struct candidate c = { .type = q->p->gpus[k->gpu].type,
                           .n_gpus = 1,
                           .n_places = k->n_gpus,
                           .neighbour = -1,
                           .rule = k->rule };

    offer(q, c, &k->gpu,
          q->j->is_exclusive || !k->may_join ? CANDIDATE_EXCLUSIVE
          : !k->may_start                    ? CANDIDATE_NODE_AWAY
          : k->rule != ENGINE_CAN            ? CANDIDATE_ENGINE
                                             : CANDIDATE_CHOSEN);
}

/* The place that the plan gives it, under the setting that the plan gives it. */
static void offer_chosen(struct explain *q)
{
    const struct plan_job *pj = q->placed;
    int type = q->p->gpus[pj->gpus[0]].type;
    int n_alike = q->chosen >= 0 ? q->shared[q->chosen].n_gpus
                                 : stock_of(q, type, pj->n_gpus).n_free / pj->n_gpus;
    struct candidate c = { .type = type, .n_gpus = pj->n_gpus, .neighbour = -1 };

    if (q->j->frozen) {
        explain_nowhere(&c);
        c.limit_w = pj->limit_w;
        c.speed = pj->speed;
        c.low = pj->low;
    } else {
        explain_there(q, &c, pj->gpus, q->plan->limit[pj->gpus[0]]);
    }
    c.n_places = n_alike > 1 ? n_alike : 1;
    c.gpu = pj->gpus[0];
    c.verdict = CANDIDATE_CHOSEN;
    q->least = c.cost;
    q->list[q->n_list++] = c;
}

/* Alone on one GPU or more, in doublings, on each type; beside whoever has room. */
static void offer_all(struct explain *q)
{
    int n_sizes = 1;

    for (int n = q->j->n_min; n <= q->j->n_max / 2; n *= 2)
        n_sizes++;
    q->list = ARENA_ARRAY(q->arena, struct candidate,
                          (size_t)(1 + q->p->n_types * n_sizes + q->n_shared));
    q->least = (struct candidate_cost){ .cost_w = wait_w(q->j) };
    if (q->placed->n_gpus)
        offer_chosen(q);
    for (int type = 0; type < q->p->n_types && !q->j->frozen; type++)
        for (int i = 0, n = q->j->n_min; i < n_sizes; i++, n *= 2) {
            bool is_there = q->placed->n_gpus && q->chosen < 0 && q->list[0].type == type &&
                            q->list[0].n_gpus == n;
            if (!is_there)
                offer_alone(q, type, n);
        }
    for (int i = 0; i < q->n_shared && q->j->n_min == 1 && !q->j->frozen; i++)
        if (i != q->chosen)
            offer_beside(q, &q->shared[i]);
}

/* ---- order ---- */

/* By cost, unknown ones last; equal ones in an order that repeats. */
static int by_cost(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    double x_w = x->cost.cost_w, y_w = y->cost.cost_w;
    int chosen = (y->verdict == CANDIDATE_CHOSEN) - (x->verdict == CANDIDATE_CHOSEN);

    if (chosen || isnan(x_w) != isnan(y_w))
        return chosen ? chosen : isnan(x_w) - isnan(y_w);
    if (x_w < y_w || x_w > y_w)
        return x_w < y_w ? -1 : 1;
    if (x->type != y->type)
        return x->type - y->type;
    return x->n_gpus != y->n_gpus ? x->n_gpus - y->n_gpus : x->gpu - y->gpu;
}

/* It cannot be had at all. */
static bool is_barred(const struct candidate *c)
{
    return c->verdict >= CANDIDATE_UNFIT && c->verdict <= CANDIDATE_POWER_CAP;
}

static int by_use(const void *a, const void *b)
{
    int d = is_barred(a) - is_barred(b);

    return d ? d : by_cost(a, b);
}

static void keep_best(struct arena *a, struct explain *q, struct explanation *out)
{
    size_t n = (size_t)q->n_list, size = sizeof *q->list;

    if (n > CANDIDATES_MAX) {
        qsort(q->list, n, size, by_use);
        n = CANDIDATES_MAX;
    }
    if (n > 0)
        qsort(q->list, n, size, by_cost);
    out->candidates = ARENA_ARRAY(a, struct candidate, n);
    memcpy(out->candidates, q->list, n * size);
    out->n_candidates = (int)n;
    out->n_left_out = q->n_list - (int)n;
}

/* ---- when a job that waits may start: the first end that makes room for it ---- */

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

/* Would the job do on a GPU once 'leaving' has gone, with those that stay? */
static bool would_do(struct explain *q, int gpu, int leaving)
{
    struct explain_gpu *g = &q->gpus[gpu], was = *g;
    struct candidate c = { .type = q->p->gpus[gpu].type, .n_gpus = 1, .neighbour = -1 };
    bool may_join = true;

    g->n_jobs = 0;
    for (int i = 0; i < was.n_jobs; i++)
        if (was.jobs[i] != leaving) {
            g->jobs[g->n_jobs++] = was.jobs[i];
            may_join &=
                !q->p->jobs[was.jobs[i]].is_exclusive && q->plan->jobs[was.jobs[i]].n_gpus < 2;
        }
    bool may_run = explain_there(q, &c, &gpu, EXPLAIN_BEST) != EXPLAIN_NEVER;
    *g = was;
    return may_join && may_run && !(c.margin < 0) && c.neighbour_keeps;
}

/* When a GPU has room for the job: empty, or sooner where it would do beside those who stay. */
static struct end room_on(struct explain *q, int gpu, double before_s)
{
    const struct snapshot *s = q->asked->snapshot;
    const struct explain_gpu *g = &q->gpus[gpu];
    bool may_share = q->p->theta > 1 && q->j->n_min == 1 && !q->j->is_exclusive;
    struct end first = { .at_s = INFINITY, .job = -1 };
    struct end last = { .at_s = s->now_s, .job = -1 };

    for (int i = 0; i < g->n_jobs; i++) {
        int job = g->jobs[i];
        double left_s = explain_time_s(&s->jobs[job], q->plan->jobs[job].speed);
        struct end e = { .at_s = s->now_s + left_s, .job = job };
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
static struct end room_on_type(struct explain *q, int type)
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

static void find_start(struct explain *q, struct explanation *out)
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

void explain_job(struct arena *a, const struct lowered *asked, const struct plan *p, int job,
                 struct explanation *out)
{
    struct arena scratch;    // of the size of the cluster: given back at once
    struct explain q = { .arena = &scratch,
                         .asked = asked,
                         .p = &asked->problem,
                         .plan = p,
                         .placed = &p->jobs[job],
                         .job = job,
                         .j = &asked->problem.jobs[job],
                         .sj = &asked->snapshot->jobs[job] };

    *out = (struct explanation){ .job = job,
                                 .reason = p->jobs[job].reason,
                                 .wait_w = NAN,
                                 .may_start_s = NAN,
                                 .waits_for = -1 };
    if (q.j->name)
        out->wait_w = wait_w(q.j);
    arena_init(&scratch);
    explain_lay(&q);
    explain_find_nodes(&q);
    explain_find_shared(&q);
    offer_all(&q);
    keep_best(a, &q, out);
    if (p->jobs[job].n_gpus == 0 && out->reason != WAIT_PROMISE && out->reason != WAIT_ENGINE)
        find_start(&q, out);
    arena_release(&scratch);
}

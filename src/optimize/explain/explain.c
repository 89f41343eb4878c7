#include "optimize/explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/explain/explain_inner.h"

const char *candidate_verdict_name(enum candidate_verdict v)
{
    static const char *const names[] = {
        [CANDIDATE_CHOSEN] = "chosen",
        [CANDIDATE_COSTS_MORE] = "costs more",
        [CANDIDATE_BREAKS_PROMISE] = "breaks its promise",
        [CANDIDATE_BREAKS_NEIGHBOUR] = "breaks a neighbour's promise",
        [CANDIDATE_UNFIT] = "does not fit",
        [CANDIDATE_FULL] = "taken",
        [CANDIDATE_EXCLUSIVE] = "not shared",
        [CANDIDATE_NOT_ALLOWED] = "not allowed",
        [CANDIDATE_NODE_AWAY] = "node away",
        [CANDIDATE_MOVE_COSTS] = "move costs more",
        [CANDIDATE_POWER_CAP] = "power cap",
        [CANDIDATE_PASSED_OVER] = "passed over",
    };
    return names[v];
}

bool plan_job_stays(const struct plan_job *pj, const struct snap_job *j)
{
    int n_same = 0;

    for (int i = 0; i < pj->n_gpus; i++)
        for (int k = 0; k < j->n_held; k++)
            n_same += pj->gpus[i] == j->gpus[k];
    return j->is_running && pj->n_gpus == j->n_held && n_same == j->n_held;
}

/* ---- candidates ---- */

/* What a candidate that could be taken is worth beside the chosen one (NULL: it waits). */
static enum candidate_verdict weigh(const struct explain_asking *q, const struct candidate *c,
                                    const struct candidate *chosen)
{
    if (!chosen)
        return CANDIDATE_PASSED_OVER;
    if (!(c->cost_j < chosen->cost_j))
        return CANDIDATE_COSTS_MORE;
    bool stays = plan_job_stays(q->placed, q->j);
    if (stays && !q->options->may_move)
        return CANDIDATE_NOT_ALLOWED;
    double move_j = q->options->move_s * (c->added_w + c->n_gpus * q->options->price_w);
    return stays && c->cost_j + move_j >= chosen->cost_j ? CANDIDATE_MOVE_COSTS
                                                         : CANDIDATE_PASSED_OVER;
}

/* What speaks against it, the most lasting first; 'barrier' (CHOSEN: none) keeps it from being taken
 * whatever it is worth.
 */
static enum candidate_verdict judge(const struct explain_asking *q, const struct candidate *c,
                                    enum candidate_verdict barrier, double taken_w,
                                    const struct candidate *chosen)
{
    bool is_shared = c->neighbour >= 0;
    double unfit_max = is_shared ? q->options->unfit_max : q->options->alone_unfit_max;

    if (!job_allows(q->j->spec, c->type) || barrier == CANDIDATE_NOT_ALLOWED)
        return CANDIDATE_NOT_ALLOWED;
    if (c->unfit > unfit_max)
        return CANDIDATE_UNFIT;
    if (barrier != CANDIDATE_CHOSEN)
        return barrier;
    if (c->low < q->j->need)
        return CANDIDATE_BREAKS_PROMISE;
    if (c->verdict == CANDIDATE_BREAKS_NEIGHBOUR)
        return CANDIDATE_BREAKS_NEIGHBOUR;
    if (taken_w > q->room_w)
        return CANDIDATE_POWER_CAP;
    return weigh(q, c, chosen);
}

static const struct candidate *chosen_of(const struct explain_asking *q)
{
    return q->placed->n_gpus ? &q->list[0] : NULL;
}

/* Free GPUs of a type for a gang of n. */
struct room {
    int n_all, n_most;       // GPUs of the type: in all, and on the node that has most
    int n_up, n_up_most;     // the same of nodes that are up
    int n_free, n_near;      // free ones, and how many gangs of these fit on one node each
    int first, near_free;    // of the tightest such node: its first free one (-1: none), how many
    int first_far;           // the first free one of all
    double wake_s, far_s;    // until the GPUs of that node, or those from that one on, are awake
};

static struct room room_for(const struct explain_asking *q, int type, int n)
{
    struct room m = { .first = -1, .first_far = -1 };

    for (int i = 0; i < q->n_runs; i++) {
        const struct explain_run *r = &q->runs[i];
        if (r->type != type)
            continue;
        m.n_all += r->n_all;
        m.n_up += r->n_up;
        m.n_free += r->n_free;
        m.n_near += r->n_free / n;
        m.n_most = r->n_all > m.n_most ? r->n_all : m.n_most;
        m.n_up_most = r->n_up > m.n_up_most ? r->n_up : m.n_up_most;
        m.first_far = m.first_far < 0 ? r->first : m.first_far;
        m.far_s = r->n_free ? fmax(m.far_s, r->wake_s) : m.far_s;
        if (r->n_free >= n && (m.first < 0 || r->wake_s < m.wake_s ||
                               (!(r->wake_s > m.wake_s) && r->n_free < m.near_free))) {
            m.first = r->first;
            m.near_free = r->n_free;
            m.wake_s = r->wake_s;
        }
    }
    return m;
}

/* The same over several nodes in equal parts: of each node, what the gang could have there. */
static struct room room_evenly(const struct explain_asking *q, int type, int n)
{
    int n_here = n / q->j->spec->n_nodes;
    struct room m = { .first = -1, .first_far = -1 };

    for (int i = 0; i < q->n_runs; i++) {
        const struct explain_run *r = &q->runs[i];
        if (r->type != type)
            continue;
        m.n_all += r->n_all >= n_here ? n_here : 0;
        m.n_up += r->n_up >= n_here ? n_here : 0;
        m.n_free += r->n_free >= n_here ? n_here : 0;
        m.n_most = r->n_all > m.n_most ? r->n_all : m.n_most;
        m.far_s = r->n_free >= n_here ? fmax(m.far_s, r->wake_s) : m.far_s;
        if (r->n_free >= n_here && m.first_far < 0)
            m.first_far = r->first;
    }
    return m;
}

static struct room room_of(const struct explain_asking *q, int type, int n)
{
    return q->j->spec->n_nodes > 1 ? room_evenly(q, type, n) : room_for(q, type, n);
}

/* Whole GPUs of a type; where all are taken, as if they were free. */
static void offer_alone(struct explain_asking *q, int type, int n)
{
    struct room m = room_of(q, type, n);
    bool one_node = n == 1 || q->j->spec->n_nodes == 1;
    bool is_far = m.n_near == 0 && !one_node && m.n_free >= n;
    bool is_free = m.n_near > 0 || is_far;
    enum candidate_verdict barrier = CANDIDATE_CHOSEN;
    struct candidate *c = &q->list[q->n_list];

    if (m.n_most == 0)
        return;
    if ((one_node ? m.n_most : m.n_all) < n)
        barrier = CANDIDATE_NOT_ALLOWED;
    else if ((one_node ? m.n_up_most : m.n_up) < n)
        barrier = CANDIDATE_NODE_AWAY;
    else if (!is_free)
        barrier = CANDIDATE_FULL;
    *c = (struct candidate){
        .type = type, .n_gpus = n, .n_places = m.n_near, .gpu = m.first, .neighbour = -1
    };
    if (is_far) {
        c->n_places = m.n_free / n;
        c->gpu = m.first_far;
    }
    c->wake_s = is_far ? m.far_s : is_free ? m.wake_s : 0;
    explain_best_alone(q, c, is_far || q->j->spec->n_nodes > 1 || (!is_free && m.n_most < n));
    double idle = n * fmax(q->snapshot->catalog->types[type].idle_w, 0);
    c->verdict = judge(q, c, barrier, c->watts - idle, chosen_of(q));
    q->n_list++;
}

static void offer_beside(struct explain_asking *q, const struct explain_kind *k)
{
    struct candidate *c = &q->list[q->n_list];
    enum candidate_verdict barrier = CANDIDATE_CHOSEN;

    *c = (struct candidate){
        .type = k->type, .n_gpus = 1, .n_places = k->n_gpus, .gpu = k->gpu, .neighbour = -1
    };
    c->wake_s = q->snapshot->gpus[k->gpu].wake_s;
    if (q->j->spec->is_exclusive || !k->may_join)
        barrier = CANDIDATE_EXCLUSIVE;
    else if (!k->may_start)
        barrier = CANDIDATE_NODE_AWAY;
    explain_there(q, c, &k->gpu, k->limit_w);
    c->verdict = judge(q, c, barrier, c->added_w, chosen_of(q));
    q->n_list++;
}

/* The place that the plan gives it; returns its kind, -1: it is alone there. */
static int offer_chosen(struct explain_asking *q)
{
    const struct plan_job *pj = q->placed;
    struct candidate *c = &q->list[q->n_list++];
    int type = q->snapshot->gpus[pj->gpus[0]].type, kind = -1;
    struct room m = room_of(q, type, pj->n_gpus);

    for (int i = 0; i < q->n_kinds && kind < 0; i++)
        kind = explain_is_chosen(q, q->kinds[i].gpu) ? i : -1;
    int n_alike = kind >= 0 ? q->kinds[kind].n_gpus : m.n_near ? m.n_near : m.n_free / pj->n_gpus;
    *c = (struct candidate){ .type = type,
                             .n_gpus = pj->n_gpus,
                             .n_places = n_alike > 1 ? n_alike : 1,
                             .gpu = pj->gpus[0],
                             .neighbour = -1 };
    for (int i = 0; i < pj->n_gpus && !plan_job_stays(pj, q->j); i++)
        c->wake_s = fmax(c->wake_s, q->snapshot->gpus[pj->gpus[i]].wake_s);
    explain_there(q, c, pj->gpus, pj->limit_w);
    c->verdict = CANDIDATE_CHOSEN;
    return kind;
}

/* Alone on one GPU or more, in doublings, on each type; beside whoever has room. */
static void offer_all(struct explain_asking *q)
{
    const struct job_spec *spec = q->j->spec;
    bool may_share = q->options->may_share && q->snapshot->theta > 1 && spec->n_gpus == 1;
    int n_sizes = 1, kind = -1;

    for (int n = spec->n_gpus; n <= spec->max_gpus / 2; n *= 2)
        n_sizes++;
    q->list = ARENA_ARRAY(q->arena, struct candidate,
                          (size_t)(1 + q->est->n_types * n_sizes + q->n_kinds));
    if (q->placed->n_gpus)
        kind = offer_chosen(q);
    const struct candidate *chosen = chosen_of(q);
    for (int type = 0; type < q->est->n_types; type++) {
        int n = spec->n_gpus;
        for (int i = 0; i < n_sizes; i++) {
            bool is_there = chosen && kind < 0 && chosen->type == type && chosen->n_gpus == n;
            if (!is_there)
                offer_alone(q, type, n);
            n *= 2;
        }
    }
    for (int i = 0; i < q->n_kinds && may_share; i++)
        if (i != kind)
            offer_beside(q, &q->kinds[i]);
}

/* ---- order ---- */

static int rank_of(const struct candidate *c)
{
    switch (c->verdict) {
    case CANDIDATE_CHOSEN:
        return 0;
    case CANDIDATE_COSTS_MORE:
    case CANDIDATE_MOVE_COSTS:
    case CANDIDATE_PASSED_OVER:
        return 1;
    default:
        return 2;
    }
}

/* By cost, unknown ones last; equal ones in an order that repeats. */
static int by_cost(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int chosen = (y->verdict == CANDIDATE_CHOSEN) - (x->verdict == CANDIDATE_CHOSEN);

    if (chosen || isnan(x->cost_j) != isnan(y->cost_j))
        return chosen ? chosen : isnan(x->cost_j) - isnan(y->cost_j);
    if (x->cost_j < y->cost_j || x->cost_j > y->cost_j)
        return x->cost_j < y->cost_j ? -1 : 1;
    if (x->type != y->type)
        return x->type - y->type;
    return x->n_gpus != y->n_gpus ? x->n_gpus - y->n_gpus : x->gpu - y->gpu;
}

static int by_use(const void *a, const void *b)
{
    int d = rank_of(a) - rank_of(b);

    return d ? d : by_cost(a, b);
}

static void keep_best(struct arena *a, struct explain_asking *q, struct explanation *out)
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

void explain_job(struct arena *a, const struct snapshot *s, const struct estimator *est,
                 const struct solve_options *o, const struct plan *p, int job,
                 struct explanation *out)
{
    struct arena scratch;    // of the size of the cluster: given back at once
    struct explain_asking q = { .arena = &scratch,
                                .snapshot = s,
                                .est = est,
                                .options = o,
                                .placed = &p->jobs[job],
                                .job = job,
                                .j = &s->jobs[job] };

    *out = (struct explanation){
        .job = job, .reason = p->jobs[job].reason, .may_start_s = NAN, .waits_for = -1
    };
    arena_init(&scratch);
    explain_lay(&q, p);
    explain_find_runs(&q);
    explain_find_kinds(&q);
    offer_all(&q);
    keep_best(a, &q, out);
    if (p->jobs[job].n_gpus == 0 && out->reason != WAIT_PROMISE)
        explain_find_start(&q, p, out);
    arena_release(&scratch);
}

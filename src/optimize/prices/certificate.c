/* The certificate: a lower bound from prices and raw tables, whoever made the prices.
 *
 * Why it holds. Let every slot have a price. In any answer a placed job pays the prices of its
 * slots and the GPUs under them earn the same amount, so
 *
 *     cost = sum over jobs (what it pays + shortfall, or waiting; + moving)
 *          - sum over GPUs (what it earns - what it costs)
 *
 * and with cap_price >= 0 the room that is left under the cap may be subtracted too. Each
 * job pays at least what its cheapest choice does, each GPU earns at most what its best combination
 * does. Left out, which can only make the bound lower: nodes (a gang counts as near where any
 * node is large enough), racks, that parts of a spread job stand on different GPUs, how often a
 * slot can be had. Kept: which slots exist for a job at all, by types and by who could be beside
 * it; that a running job moves at a price and a fixed one does not.
 *
 * Prices form ladders: steps upward. Of all slots at one step a job prefers the one that holds
 * most, so one pass over everything that GPUs could do leaves, for each step and type, the 'top':
 * the most that a slot at this price holds. Jobs then look at tops only.
 */
#include <math.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/map.h"
#include "optimize/model/again.h"
#include "optimize/prices/certificate_inner.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"

/* ---- who could be where ---- */

static uint64_t all_types(const struct problem *p)
{
    return p->n_types >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << p->n_types) - 1;
}

uint64_t certificate_types(const struct problem *p, const struct problem_job *j)
{
    return j->allowed_types ? j->allowed_types & all_types(p) : all_types(p);
}

static bool may_stand_on_one(const struct problem_job *j)
{
    return j->form == FORM_SPREAD || j->n_min <= 1 || j->n_present == 1;
}

static void count_job(struct market *m, const struct problem_job *j)
{
    uint64_t types = certificate_types(m->p, j);

    for (int t = 0; t < m->p->n_types && may_stand_on_one(j); t++) {
        long at = (long)j->kind * m->p->n_types + t;
        if (!(types >> t & 1))
            continue;
        if (j->is_exclusive)
            m->loners[at] = 1;
        else
            m->sharers[at] += m->sharers[at] < THETA_MAX;
    }
    if (j->form == FORM_SPREAD)
        return;
    if (j->n_max > 1 || j->n_present > 1)
        m->gang_types[j->kind] |= types;
    for (int size = j->n_min > 2 ? j->n_min : 2; size <= j->n_max; size++)
        m->sizes[j->kind] |= UINT64_C(1) << (size - 1);
    if (j->n_present > 1)
        m->sizes[j->kind] |= UINT64_C(1) << (j->n_present - 1);
}

/* Live jobs, kind by kind. */
static void count_jobs(struct arena *a, struct market *m)
{
    const struct problem *p = m->p;
    size_t cells = (size_t)p->n_kinds * (size_t)p->n_types;

    m->sharers = ARENA_ARRAY(a, unsigned char, cells);
    m->loners = ARENA_ARRAY(a, unsigned char, cells);
    m->sizes = ARENA_ARRAY(a, uint64_t, (size_t)p->n_kinds);
    m->gang_types = ARENA_ARRAY(a, uint64_t, (size_t)p->n_kinds);
    m->by_kind = ARENA_ARRAY(a, int, (size_t)p->n_jobs);
    m->kind_from = ARENA_ARRAY(a, int, (size_t)p->n_kinds + 2);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name) {
            count_job(m, &p->jobs[j]);
            m->kind_from[p->jobs[j].kind + 2]++;
        }
    for (int k = 0; k < p->n_kinds; k++)
        m->kind_from[k + 2] += m->kind_from[k + 1];
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            m->by_kind[m->kind_from[p->jobs[j].kind + 1]++] = j;
}

/* GPUs that may start something or have somebody on them: in all, and the most of one node. */
static void count_gpus(struct arena *a, struct market *m)
{
    const struct problem *p = m->p;
    bool *is_held = ARENA_ARRAY(a, bool, (size_t)p->n_gpus);
    int *here = ARENA_ARRAY(a, int, (size_t)p->n_gpus);    // by node and type
    struct map_u64 groups;

    map_u64_init(&groups);
    m->n_usable = ARENA_ARRAY(a, int, (size_t)p->n_types);
    m->n_on_node = ARENA_ARRAY(a, int, (size_t)p->n_types);
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++)
            is_held[p->jobs[j].present[i]] = true;
    for (int g = 0; g < p->n_gpus; g++) {
        const struct problem_gpu *gpu = &p->gpus[g];
        uint64_t key = (uint64_t)gpu->node << 8 | (uint64_t)gpu->type;
        if (!gpu->may_start && !is_held[g])
            continue;
        int at = map_u64_get(&groups, key);
        if (at < 0)
            map_u64_set(&groups, key, at = g);
        m->n_usable[gpu->type]++;
        if (++here[at] > m->n_on_node[gpu->type])
            m->n_on_node[gpu->type] = here[at];
    }
    map_u64_release(&groups);
}

/* ---- the bound ---- */

static void market_open(struct arena *a, const struct problem *p, const struct prices *u,
                        int threads, struct market *m)
{
    *m = (struct market){ .p = p, .u = u, .threads = threads > 1 ? 2 : 1 };
    m->together = offer_together(p);
    if (p->power_cap_w > 0 && u->cap_price > 0)
        m->cap_price = least(u->cap_price, PRICE_MOST) * p->watts_margin;
    count_jobs(a, m);
    count_gpus(a, m);
    ladders_make(a, m);
}

/* Watts of cap above all GPUs awake; the present allocation may stand above it. */
static double room_w(struct arena *a, const struct problem *p)
{
    int *n = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    int(*kinds)[THETA_MAX] = arena_array(a, (size_t)p->n_gpus, sizeof(*kinds));
    int *limit = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    double idle_w = 0, now_w = 0;

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++) {
            int g = p->jobs[j].present[i];
            if (n[g] < THETA_MAX)
                kinds[g][n[g]++] = p->jobs[j].kind;
            limit[g] = p->jobs[j].present_limit;
        }
    for (int g = 0; g < p->n_gpus; g++) {
        const struct problem_type *t = &p->types[p->gpus[g].type];
        struct again r = { .watts = t->idle_w };
        if (n[g] && again_run(p, p->gpus[g].type, kinds[g], n[g], &r) == AGAIN_RUNS)
            again_limit(p, p->gpus[g].type, limit[g], kinds[g], n[g], &r);
        idle_w += t->idle_w;
        now_w += r.watts;
    }
    return most(p->power_cap_w / p->watts_margin, now_w) - idle_w;
}

/* Who is on a GPU; 'is_gang': one of several, or may become one. */
struct tenants {
    int n, kinds[THETA_MAX];
    bool is_gang, is_exclusive;
};

/* A GPU that takes nobody new earns what those on it can bring, which may be less than what the
 * best could: the difference, over all such GPUs. One of a gang's counts like any other.
 */
static double drained_w(struct arena *a, const struct market *m)
{
    const struct problem *p = m->p;
    struct tenants *on = ARENA_ARRAY(a, struct tenants, (size_t)p->n_gpus);
    double sum_w = 0;

    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        for (int k = 0; j->name && k < j->n_present; k++) {
            struct tenants *t = &on[j->present[k]];
            if (t->n < THETA_MAX)
                t->kinds[t->n++] = j->kind;
            t->is_gang |= j->form == FORM_GANG && (j->n_present > 1 || j->n_max > 1);
            t->is_exclusive |= j->is_exclusive;
        }
    }
    for (int g = 0; g < p->n_gpus; g++) {
        int type = p->gpus[g].type;
        if (p->gpus[g].may_start || on[g].n == 0 || on[g].is_gang)
            continue;
        double own_w = offer_drained(m, type, on[g].kinds, on[g].n, on[g].is_exclusive);
        sum_w += most(m->stalls[0].earn_w[type] - own_w, 0);
    }
    return sum_w;
}

/* Do all units with as many hands as there are threads. */
static void all_hands(struct market *m, int n_units, void *(*work)(void *))
{
    struct hand hands[2] = { { m, 0 }, { m, 1 } };
    pthread_t helper;

    m->n_units = n_units;
    m->next = 0;
    bool is_helped = m->threads > 1 && pthread_create(&helper, NULL, work, &hands[1]) == 0;
    work(&hands[0]);
    if (is_helped)
        pthread_join(helper, NULL);
}

double certificate_bound(struct arena *a, const struct problem *p, const struct prices *u,
                         int threads, double *type_w)
{
    double *job_w = ARENA_ARRAY(a, double, (size_t)p->n_jobs);

    return certificate_shares(a, p, u, threads, type_w, job_w);
}

double certificate_shares(struct arena *a, const struct problem *p, const struct prices *u,
                          int threads, double *type_w, double *job_w)
{
    struct market m;
    double bound_w = 0, scale_w = 0;

    market_open(a, p, u, threads, &m);
    m.job_w = job_w;
    for (int j = 0; j < p->n_jobs; j++)
        job_w[j] = 0;
    all_hands(&m, offer_n_units(p), offer_units);
    offer_end(&m);
    all_hands(&m, p->n_kinds, price_units);
    for (int j = 0; j < p->n_jobs; j++) {
        bound_w += m.job_w[j];
        scale_w += fabs(m.job_w[j]);
    }
    for (int t = 0; t < p->n_types; t++) {
        double w = m.n_usable[t] * m.stalls[0].earn_w[t];
        bound_w -= w;
        scale_w += w;
        if (type_w)
            type_w[t] = m.stalls[0].earn_w[t];
    }
    bound_w += drained_w(a, &m);
    if (m.cap_price > 0) {
        double w = m.cap_price * room_w(a, p);
        bound_w -= w;
        scale_w += fabs(w);
    }
    return bound_w - AGAIN_SAME * scale_w;
}

double certificate_job_w(const struct problem *p, const struct prices *u, int job)
{
    const struct problem_job *j = &p->jobs[job];
    struct market m;
    struct arena a;

    if (!j->name)
        return 0;
    arena_init(&a);
    market_open(&a, p, u, 1, &m);
    for (int t = 0; t < p->n_types; t++)
        if (m.n_usable[t])
            offer_kind(&m, t, j->kind);
    double w = price_one(&m, j);
    arena_release(&a);
    return w;
}

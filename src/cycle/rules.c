/* What the executor cannot do, as it says itself and as it turned out. */
#include "cycle/inner.h"

#include <string.h>

#include "base/grow.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"

/* A refusal is forgotten when nodes change, after so many looks at everybody, or for newer ones. */
#define REFUSED_SWEEPS 256
#define REFUSALS_MAX 256

static bool still_counts(const struct cycle *c, const struct cycle_refusal *r)
{
    return r->cluster == c->ledger->state.node_version && c->n_sweeps < r->sweep + REFUSED_SWEEPS;
}

void cycle_note_refusal(struct cycle *c, int job, const int *gpus, int n_gpus)
{
    const struct state *s = &c->ledger->state;
    int n = 0;

    for (int i = 0; i < c->n_refusals; i++)
        if (still_counts(c, &c->refusals[i]) && c->n_refusals < REFUSALS_MAX)
            c->refusals[n++] = c->refusals[i];
    c->n_refusals = n;
    for (int i = 0; i < n_gpus; i++) {
        GROW(c->refusals, c->n_refusals, c->cap_refusals);
        c->refusals[c->n_refusals++] = (struct cycle_refusal){ .job = job,
                                                               .node = s->gpus[gpus[i]].node,
                                                               .cluster = s->node_version,
                                                               .sweep = c->n_sweeps };
    }
}

/* The same bars, and a node more. */
static const unsigned char *with_bar(struct arena *a, const unsigned char *barred, int n_nodes,
                                     int node)
{
    unsigned char *more = ARENA_ARRAY(a, unsigned char, (size_t)n_nodes);

    if (barred)
        memcpy(more, barred, (size_t)n_nodes);
    more[node] = more[node] ? more[node] : ENGINE_REFUSED;
    return more;
}

static bool add_refusals(const struct cycle *c, struct arena *a, const struct snapshot *s,
                         struct engine_job *jobs)
{
    bool is_any = false;

    for (int i = 0; i < c->n_refusals; i++) {
        const struct cycle_refusal *r = &c->refusals[i];
        for (int j = 0; j < s->n_jobs && still_counts(c, r); j++)
            if (s->jobs[j].id == r->job) {
                jobs[j].barred = with_bar(a, jobs[j].barred, s->n_nodes, r->node);
                is_any = true;
            }
    }
    return is_any;
}

const struct engine_rules *cycle_rules(const struct cycle *c, struct arena *a,
                                       const struct snapshot *s)
{
    struct engine_rules *rules = ARENA_ARRAY(a, struct engine_rules, 1);
    int *ids = ARENA_ARRAY(a, int, (size_t)s->n_jobs);

    if (!c->executor.rules && c->n_refusals == 0)
        return NULL;
    for (int j = 0; j < s->n_jobs; j++)
        ids[j] = s->jobs[j].id;
    bool is_any = executor_rules(&c->executor, a, ids, s->n_jobs, rules);
    if (c->n_refusals == 0)
        return is_any ? rules : NULL;
    struct engine_job *jobs = ARENA_ARRAY(a, struct engine_job, (size_t)s->n_jobs);
    if (is_any)
        memcpy(jobs, rules->jobs, (size_t)s->n_jobs * sizeof *jobs);
    rules->jobs = jobs;
    return add_refusals(c, a, s, jobs) || is_any ? rules : NULL;
}

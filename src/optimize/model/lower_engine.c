/* What the engine that runs the jobs cannot do (catalog/engine.h). */
#include "base/arena.h"
#include "optimize/model/lower_inner.h"
#include "optimize/model/problem.h"

void lower_engine(struct lowering *l)
{
    const struct engine_rules *from = l->snapshot->engine;
    struct problem *p = l->problem;

    if (!from)
        return;
    p->n_nodes = l->snapshot->n_nodes;
    for (int g = 0; g < p->n_gpus && from->devices; g++)
        p->gpus[g].device = from->devices[g];
    for (int j = 0; j < p->n_jobs; j++) {
        p->jobs[j].engine = from->jobs[j];
        p->jobs[j].is_fixed |= p->jobs[j].n_present > 0 && from->jobs[j].is_bound;
    }
}

static long less(long has, long by)
{
    return has > by ? has - by : 0;
}

void lower_nodes(struct lowering *l)
{
    const struct engine_rules *from = l->snapshot->engine;
    struct problem *p = l->problem;

    if (!from || !from->nodes)
        return;
    struct engine_node *nodes = ARENA_ARRAY(l->arena, struct engine_node, (size_t)p->n_nodes);
    for (int n = 0; n < p->n_nodes; n++)
        nodes[n] = from->nodes[n];
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].frozen && i < p->jobs[j].n_present; i++) {
            struct engine_node *of = &nodes[p->gpus[p->jobs[j].present[i]].node];
            of->cpus = less(of->cpus, p->jobs[j].engine.cpus);
            of->mem_mib = less(of->mem_mib, p->jobs[j].engine.mem_mib);
        }
    p->nodes = nodes;
}

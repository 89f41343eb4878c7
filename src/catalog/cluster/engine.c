#include "catalog/cluster/engine.h"

#include <string.h>

#include "base/text/text.h"

static const char *const names[ENGINE_RULES] = {
    [ENGINE_CAN] = "none",
    [ENGINE_NODE] = "not its node",
    [ENGINE_PINNING] = "pinning",
    [ENGINE_COPY] = "second copy",
    [ENGINE_FEATURE] = "feature",
    [ENGINE_CPUS] = "node CPUs",
    [ENGINE_MEMORY] = "node memory",
    [ENGINE_TIME] = "time limit",
    [ENGINE_DEVICES] = "same devices",
    [ENGINE_LIMIT] = "power limit",
    [ENGINE_REFUSED] = "refused before",
};

const char *engine_rule_name(enum engine_rule r)
{
    return names[r];
}

int engine_rule_find(const char *name)
{
    int r = text_find(names, ENGINE_RULES, name);

    return r > ENGINE_CAN ? r : -1;
}

/* Both there or neither, and alike where they are. */
static bool are_alike(const void *a, const void *b, int n, size_t size)
{
    return !a == !b && (!a || memcmp(a, b, (size_t)n * size) == 0);
}

bool engine_rules_same(const struct engine_rules *a, const struct engine_rules *b, int n_nodes,
                       int n_gpus, int n_jobs)
{
    if (!a || !b)
        return !a && !b;
    if (!are_alike(a->nodes, b->nodes, n_nodes, sizeof *a->nodes) ||
        !are_alike(a->devices, b->devices, n_gpus, sizeof *a->devices) ||
        !are_alike(a->unlimited, b->unlimited, n_gpus, sizeof *a->unlimited))
        return false;
    for (int j = 0; j < n_jobs; j++) {
        const struct engine_job *x = &a->jobs[j], *y = &b->jobs[j];
        if (x->cpus != y->cpus || x->mem_mib != y->mem_mib || x->device != y->device ||
            x->is_bound != y->is_bound || !are_alike(x->barred, y->barred, n_nodes, 1))
            return false;
    }
    return true;
}

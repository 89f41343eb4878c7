#include "optimize/place.h"

#include "base/arena.h"
#include "estimate/estimate.h"

bool place_suits(const struct board *b, int job, int type, double unfit_max)
{
    const struct snap_job *j = &b->snapshot->jobs[job];

    return job_allows(j->spec, type) &&
           (double)estimate_cell(b->est, j->workload, type, -1)->unfit <= unfit_max;
}

/* The node with the fewest free GPUs of 'type' that still has 'n'; -1 for none. */
static int tightest_node(const struct board *b, int type, int n)
{
    int *n_free = ARENA_ARRAY(b->arena, int, (size_t)b->snapshot->n_nodes);
    int best = -1;

    for (int g = board_free(b, type); g >= 0; g = b->gpus[g].next)
        n_free[b->snapshot->gpus[g].node]++;
    for (int i = 0; i < b->snapshot->n_nodes; i++)
        if (n_free[i] >= n && (best < 0 || n_free[i] < n_free[best]))
            best = i;
    return best;
}

/* A node for a gang of 'n', or -1; what was searched for in vain is remembered. */
static int node_for(const struct board *b, int type, int n)
{
    if (n > b->n_node[type] || n >= b->no_node[type])
        return -1;
    int node = tightest_node(b, type, n);
    if (node < 0)
        b->no_node[type] = n;
    return node;
}

bool place_gang(const struct board *b, int job, int type, int n, int *out)
{
    int node, found = 0;

    if (b->n_free[type] < n)
        return false;
    node = n > 1 ? node_for(b, type, n) : -1;
    if (n > 1 && node < 0 && b->snapshot->jobs[job].spec->needs_one_node)
        return false;
    for (int g = board_free(b, type); g >= 0 && found < n; g = b->gpus[g].next)
        if (node < 0 || b->snapshot->gpus[g].node == node)
            out[found++] = g;
    return found == n;
}

enum wait_reason place_reason(const struct board *b, int job, double unfit_max)
{
    const struct job_spec *spec = b->snapshot->jobs[job].spec;
    enum wait_reason why = WAIT_TYPE;

    for (int type = 0; type < b->n_types; type++) {
        int seats = spec->needs_one_node ? b->n_node[type] : b->n_all[type];
        if (!job_allows(spec, type) || b->n_all[type] == 0)
            continue;
        if (seats < spec->n_gpus) {
            why = why == WAIT_TYPE ? WAIT_GANG : why;
            continue;
        }
        if (place_suits(b, job, type, unfit_max))
            return WAIT_CAPACITY;
        why = WAIT_MEMORY;
    }
    return why;
}

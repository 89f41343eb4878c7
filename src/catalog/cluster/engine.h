/* engine.h - which placements the engine that runs the jobs can realise: rules, with a name each.
 *
 * Made by: an executor (act/executor.h), for some jobs of the state. Read by: lower, which makes
 * them part of the problem, so that no place is planned that would be refused. A plain value in the
 * arena of its snapshot.
 */
#ifndef CATALOG_CLUSTER_ENGINE_H
#define CATALOG_CLUSTER_ENGINE_H

#include <stdbool.h>

enum engine_rule {
    ENGINE_CAN,
    ENGINE_NODE,       // it runs nothing on that node
    ENGINE_PINNING,    // it cannot give this job that device
    ENGINE_COPY,       // the node may still have a run of this job, and would end both
    ENGINE_FEATURE,    // the job excludes the node, or asks for a feature that it has not
    ENGINE_CPUS,       // of the node too few are left
    ENGINE_MEMORY,     // of the node too little is left
    ENGINE_TIME,       // the job may run for longer than the engine lets any
    ENGINE_DEVICES,    // a gang would get other devices of one node than of another
    ENGINE_LIMIT,      // the GPU takes no power limits
    ENGINE_REFUSED,    // it has refused this job there, for a reason that it had not told before
    ENGINE_RULES,
};

/* "node CPUs", "pinning", ...; -1: none of that name. */
const char *engine_rule_name(enum engine_rule r);
int engine_rule_find(const char *name);

/* What jobs may use of a node together, or what is left of that. */
struct engine_node {
    long cpus, mem_mib;    // LONG_MAX: nobody counts
};

struct engine_job {
    int cpus, mem_mib;              // for each of its GPUs, of that GPU's node
    int device;                     // it can have no other than this one; 0: any
    const unsigned char *barred;    // (n_nodes) the rule that keeps it from each; NULL: none does
    bool is_bound;                  // it runs, and can be neither stopped nor moved
};

struct engine_rules {
    const struct engine_node *nodes;    // (n_nodes) of the state; NULL: nothing is counted
    const int *devices;    // (n_gpus) of the state: a gang over several nodes gets the same ones of
                           // each; 0: it does not matter. NULL: it does not for any
    const bool *unlimited;            // (n_gpus) it takes no power limits; NULL: all do
    const struct engine_job *jobs;    // in the order in which they were asked about
};

/* Do both say the same of so many nodes, GPUs and jobs? NULL: everything can be realised. */
bool engine_rules_same(const struct engine_rules *a, const struct engine_rules *b, int n_nodes,
                       int n_gpus, int n_jobs);

#endif

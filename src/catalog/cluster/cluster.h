/* cluster.h - a cluster as a person writes it down (docs/formats/cluster.md).
 *
 *     # three generations
 *     node old-[1-3]   k80:4
 *     node mid-1       p100:4
 *     node new-1       v100:2 a100:2
 *     gputype v100     cap=300          # other figures than the built-in ones
 *     workload my-net  like=resnet50 params=90e6
 *     set sleep_after_s 60
 *
 * Made by cluster_parse; read by whoever builds the state; lives in the caller's arena.
 */
#ifndef CATALOG_CLUSTER_CLUSTER_H
#define CATALOG_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/gpu_type.h"
#include "catalog/workload.h"

struct arena;
struct buf;
struct catalog;
struct err;
struct ledger;

/* What a GPU that several jobs share draws in the simulated world (estimate/prior/power.h). */
enum power_model {
    POWER_ADDITIVE,      // the sum of their dynamic parts, up to the cap
    POWER_SATURATING,    // each takes its part of what the others leave
    POWER_MODELS,
};
const char *power_model_name(enum power_model m);    // "additive", "saturating"

/* Settings that a cluster file may change, with their defaults. */
struct cluster_settings {
    double sleep_after_s;    // idle this long, then asleep; 60
    double wake_s;           // from asleep to ready; 5
    double move_s;           // a move loses this much running time; 60
    double restart_s;        // from a start order to the first step; 0
    double settle_s;         // who started less than this ago is not moved; 300
    double report_s;         // a stable placement is measured after this long; 300
    double noise;            // sd of ln throughput of one measurement; 0.05
    double watts_noise;      // sd of ln watts of one; 0.02
    double delay_w;          // what a second of a job's time is worth, in joules; -1: by the caps
    double price_w;          // the same of a GPU's; 0
    double promise_w;        // what a promise is worth that is wholly missed; 1000
    double probe_share;      // of the energy, for trying what nobody has measured; 0.02
    double power_cap_w;      // of the whole cluster; 0: none
    double decide_s;         // at most one decision in this time; 0: on each event
    int theta;               // jobs that may share a GPU; 2
    int power_limits;        // 1: plans may limit the power of GPUs; 0
    int power_model;         // enum power_model, by name in the file; POWER_ADDITIVE
};

/* Every setting at its default. */
void cluster_defaults(struct cluster_settings *s);

/* One setting after the other, in the order of docs/formats/cluster.md, for those who print them.
 * False: there are no more than 'i'.
 */
struct cluster_setting {
    const char *key;
    double value;
    const char *word;    // that stands for the value; NULL: it is a number
};
bool cluster_setting(const struct cluster_settings *s, int i, struct cluster_setting *out);

/* What stands behind 'set' in its line, and the line's end. */
void cluster_setting_put(const struct cluster_setting *set, struct buf *out);

/* Set one by its key. -EINVAL: there is none, or the value makes no sense for it. */
int cluster_set(struct cluster_settings *to, const char *key, double value, struct err *e);

struct cluster_node {
    const char *name;
    int n_gpus;
    const int *types;    // (n_gpus) indices into cluster.types
};

struct cluster {
    int n_types;
    struct gpu_type *types;    // those that nodes use, with the file's figures
    bool *is_described;        // (n_types) by a 'gputype' line; else a built-in type
    int n_nodes;
    struct cluster_node *nodes;
    int n_workloads;
    struct workload *workloads;    // 'workload' lines
    bool *says_kind;               // (n_workloads) the line says training or inference
    int n_gpus;
    struct cluster_settings settings;
    const char *notice;    // what the file says in vain, for people; NULL: nothing
};

/* Parse 'text'; 'name' is for messages. -EINVAL with line and cure. */
int cluster_parse(struct arena *a, const char *name, const char *text, size_t len,
                  struct cluster *out, struct err *e);

/* Read and parse a file. */
int cluster_read(struct arena *a, const char *path, struct cluster *out, struct err *e);

/* The power caps of its GPUs together, in 'n' those of which it is known. */
double cluster_caps_w(const struct cluster *cl, int *n);

/* The same text that cluster_parse reads: nodes, every figure of their types, and settings; no
 * workloads.
 */
int cluster_write(const struct cluster *cl, struct buf *out);

/* What stands behind 'node' in its line, neighbours of one type together, and the line's end. */
void cluster_node_put(const struct cluster *cl, const struct cluster_node *n, struct buf *out);

/* Put its types and workloads into the catalog and its nodes into the ledger, at 'now_s'.
 * What 'gputype' and 'workload' lines state replaces what the catalog (and its store) knew;
 * types that nodes merely use only fill in what was unknown. Nodes that are there already stay as
 * they are; -EINVAL when they had other GPUs.
 */
int cluster_install(const struct cluster *cl, struct catalog *c, struct ledger *l, double now_s,
                    struct err *e);

#endif

/* read.h - a record as values: what a daemon wrote down, line by line.
 *
 * Made by rerun_read from text (docs/formats/record.md), all in the caller's arena. Names are as
 * they were written: what they mean is for whoever has the catalog. Read by: rerun.c, which makes
 * the plans again, and world.c.
 */
#ifndef SIM_RERUN_READ_H
#define SIM_RERUN_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "estimate/beliefs.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

struct arena;
struct err;
struct row_event;

enum rerun_what {
    RERUN_BEGIN,
    RERUN_EVENT,
    RERUN_MEASUREMENT,
    RERUN_PROFILE,
    RERUN_WORKLOAD,
    RERUN_GPU_TYPE,
    RERUN_MODEL,
    RERUN_LOOK,
    RERUN_PLAN,
    RERUN_PRICES,
    RERUN_CUT,
    RERUN_START,
    RERUN_MOVE,
    RERUN_STOP,
    RERUN_CANCEL,
    RERUN_ENERGY,
    RERUN_WHATS,
};

struct rerun_begin {
    const char *store;    // the copy, beside the record
    enum estimator_kind estimator;
    const char *model;    // as --model; NULL: the site's, else the pretrained one
    bool can_sleep;
    struct cluster_settings settings;
};

struct rerun_measurement {
    struct measurement is;                          // but for what has names
    const char *workload, *gpu_type, *neighbour;    // neighbour NULL: alone
};

struct rerun_profile {
    const char *workload;
    struct solo_profile is;
};

struct rerun_type_line {
    struct gpu_type is;
    bool is_described;    // by the site: replaces what was known
};

struct rerun_view {
    const char *policy;
    uint64_t seed;
    int n_busy;
    const int *busy;    // (n_busy) GPUs that nothing may be started on
    int n_under_way;
    const int *under_way;    // (n_under_way) waiting jobs that were on their way to a place
    int n_asleep;
    const int *asleep;       // (n_asleep) GPUs that sleep
    const double *wake_s;    // (n_asleep) and how long each takes to wake
    bool has_rules;          // of the executor, as docs/formats/record.md has them
    int n_nodes, n_devices, n_unlimited, n_ruled;
    const int *nodes, *devices, *unlimited;
    const struct rerun_list {
        int n;
        const int *at;
    } * ruled;
    bool has_options;    // else they are as before
    bool has_plan;       // a plan came of it that was carried out
    struct solve_options options;
};

struct rerun_placement {
    int job, limit_w, n_gpus;    // n_gpus 0: it waits
    const int *gpus;
    enum wait_reason reason;
};

struct rerun_plan {
    double look_s;    // of the look that it is of
    double watts;
    bool is_fallback, is_acted;
    bool is_repriced;                        // prices of its look were being found beside
    int n, n_run;                            // the first n_run are placed, the others wait
    const struct rerun_placement *places;    // both in the order of the snapshot that was
};

struct rerun_entry {
    enum rerun_what what;
    int line;
    double time_s;
    union {
        const struct rerun_begin *begin;
        const struct row_event *event;
        const struct rerun_measurement *measurement;
        const struct rerun_profile *profile;
        const struct workload *workload;
        const struct rerun_type_line *type;
        const char *file;    // of a model, beside the record
        struct rerun_view *look;
        const struct rerun_plan *plan;
        const struct rerun_placement *order;    // RERUN_START, _MOVE, _STOP, _CANCEL
        struct {
            int n;
            const double *joules;    // (n) by GPU
        } energy;
    };
};

struct rerun_entries {
    int n;
    struct rerun_entry *at;
};

/* 'name' is for messages. -EINVAL with line and what is wrong. A last line that was cut off (the
 * daemon was killed) is left out.
 */
int rerun_read(struct arena *a, const char *name, const char *bytes, size_t len,
               struct rerun_entries *out, struct err *e);

#endif

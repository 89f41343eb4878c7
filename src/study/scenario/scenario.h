/* scenario.h - what is studied, by name: a cluster, a ground truth, jobs, and what is varied.
 *
 * A scenario is a file (scenario_text.h); those that ship with the program are inside it
 * (scenarios.c). scenario_runs lists the runs that it consists of, scenario_open makes the inputs
 * of one of them. Truths and traces that come from published data are read from a data directory
 * (data.h); where it is absent, scenario_open says which file is missing and how to name the place.
 */
#ifndef STUDY_SCENARIO_H
#define STUDY_SCENARIO_H

#include <stdbool.h>

#include "base/arena.h"
#include "catalog/cluster/cluster.h"
#include "sim/ground.h"
#include "sim/trace/trace.h"
#include "study/scenario/pretraining.h"

struct err;

enum scenario_jobs {
    JOBS_DRAWN,      // trace_generate
    JOBS_SERVED,     // the same, part of the work by services whose rates follow the day
    JOBS_MSR,        // Gavel's MSR traces, thinned to the load
    JOBS_PHILLY,     // Philly's arrivals and lengths, thinned to the load
    JOBS_ALIBABA,    // all pods of Alibaba's 2023 list, on its nodes
    JOBS_TRACE,      // a trace file
    JOBS_SACCT,      // what Slurm's accounting tells of
};

enum scenario_truth {
    TRUTH_GAVEL,      // isolated speeds of the physical cluster, slowdowns of the simulation file
    TRUTH_BUILTIN,    // the built-in tables, off by hidden factors drawn from the seed
    TRUTH_STORE,      // measurements in a store, and what is fitted to them
};

/* What the policy knows when a run begins. */
enum knowledge {
    KNOWS_NOTHING,       // descriptors, and the roofline
    KNOWS_PRETRAINED,    // the model that ships with the program; it has seen Gavel's measurements
    KNOWS_OTHERS,        // all measurements but those that one family takes part in
    KNOWS_HISTORY,       // what it measured while it lived through other jobs (past.h)
    KNOWS_MODEL,         // the scenario's model, a file of 'gogh train'
    KNOWS_TRUTH,         // oracles only
};
const char *knowledge_name(enum knowledge k);    // "empty", "pretrained", "others", "history", ...

/* Of every scenario that does not say another; its other seeds follow it. */
#define SCENARIO_FIRST_SEED 11

/* Without an entry, a pointer is NULL. */
struct scenario {
    const char *name;            // as on the command line; of a file, its own without ".scenario"
    const char *title;           // one line for people
    const char *command;         // how the command line names it: "--scenario reference"
    bool is_builtin;             // else its digest tells what it says
    const char *cluster;         // text of a cluster file; NULL: Alibaba's nodes, or in a file
    const char *cluster_file;    // where 'cluster' was read
    const char *notice;          // what the cluster says in vain, for people
    enum scenario_truth truth;
    const char *truth_file;    // of TRUTH_STORE
    enum scenario_jobs jobs;
    const char *jobs_file;               // of JOBS_TRACE and JOBS_SACCT
    const char *partition, *workload;    // of JOBS_SACCT; NULL: all; ResNet-50
    int n_jobs;                          // 0: all of the trace
    double served;                       // of JOBS_SERVED: part of the work
    int n_services;                      // beside the jobs; 0: none
    double service_rate;                 // requests/s of each on average, at the most
    double service_days;                 // until they end
    const char *reference;    // GPU type that work is counted in; NULL: p100 where there is one
    int n_models;
    const char *const *models;           // jobs are drawn of these alone; 0: of all
    double promise_low, promise_high;    // of the job's speed on the reference; 0, 0: 0.3 and 0.9
    int n_loads;                         // 0: the trace as it is (load is shown as 0)
    const double *loads;
    int n_policies;
    const char *const *policies;
    bool both_limits;          // each policy without power limits and with them
    bool has_limits;           // where not both: with them
    bool is_always_on;         // no sleep
    bool takes_levers_away;    // also 'gogh' with power limits, less one lever at a time
    int n_knows;
    const enum knowledge *knows;            // 0: KNOWS_NOTHING alone
    int history_jobs;                       // of KNOWS_HISTORY
    const char *model_file;                 // of KNOWS_MODEL
    const char *power_model;                // of the world; NULL: "additive"
    int n_delays, n_promises;               // prices that runs are tried with; 0: the cluster's
    const double *delays_w, *promises_w;    // NaN: the cluster's
    int first_seed;
    int n_seeds;    // unless the caller says how many
};

/* Those that ship with the program, in the order of the report. Borrowed, for good. */
const struct scenario *scenario_all(int *n);
const struct scenario *scenario_by_name(const char *name);    // NULL: there is none

/* The file of one of them, comments and all; NULL: there is none. */
const char *scenario_file(const char *name);

/* "gogh-oracle" and "bound" know the truth. */
bool scenario_is_oracle(const char *policy);

/* Is there such a policy, or is it an oracle? */
bool scenario_has_policy(const char *name);

/* Do its jobs come from a site's own file? Then the first seed has them as they were, others have
 * blocks of them drawn anew (site.h).
 */
bool scenario_is_site(const struct scenario *s);

/* The world's, by name, whether the scenario says it or not. */
const char *scenario_power_model(const struct scenario *s);

/* One run: everything that its figures depend on besides the data. A plain value. */
struct study_run {
    const struct scenario *scenario;
    double load;
    const char *policy;
    int seed;
    bool has_sleep, has_limits;    // as the world has them: false where the lever is taken away
    const char *without;           // the lever taken away (solver.h), "" for none
    enum knowledge knows;
    const double *delay_w, *promise_w;    // prices it is tried with; NULL: the cluster's
};

/* Jobs that the policy has lived through before; 0: none. */
int study_run_history(const struct study_run *k);

/* The levers that it goes without, as bits 1 << enum lever (solver.h). */
unsigned study_run_without(const struct study_run *k);

/* Does the price of a second of a job's time, or of a broken promise, change what its policy does?
 */
bool study_run_minds_delay(const struct study_run *k);
bool study_run_minds_promise(const struct study_run *k);

/* Prices as a run has them. */
bool price_is_same(const double *a, const double *b);

/* Do two runs differ in nothing but the seed? */
bool study_run_is_alike(const struct study_run *a, const struct study_run *b);

/* "reference-0.9-gogh-limits-delay60-empty-s11": letters, digits, '.', '-'; unique in a study. */
const char *study_run_name(struct arena *a, const struct study_run *k);

/* The runs of a scenario with 'n_seeds' seeds (0: as many as it usually has), in order:
 * loads, then policies, limits, levers, prices, knowledge, seeds. Oracles ("gogh-oracle", "bound")
 * know the truth, once; prices are varied of who minds them. Returns how many.
 */
int scenario_runs(struct arena *a, const struct scenario *s, int n_seeds, struct study_run **out);

/* The inputs of a run. All runs of a scenario with one load and seed get the same jobs. */
struct study_inputs {
    struct cluster cluster;    // its settings with the run's sleep, limits, prices and power model
    struct trace trace;
    struct ground ground;
    const char *reference;             // the scenario's
    double arrivals_s;                 // the arrival period: from 0 to the last arrival
    struct pretraining pretraining;    // what the policy begins with; nothing for KNOWS_TRUTH
};

/* Where published data lies: 'given' (--data), else $GOGH_DATA, else ../shared/data. */
const char *scenario_data(const char *given);

/* Has the data directory what the scenario reads? Where not, 'e' (may be NULL) names the file. */
bool scenario_has_data(const struct scenario *s, const char *data, struct err *e);

/* Does it read any, or a file of one's own? */
bool scenario_needs_data(const struct scenario *s);

/* A SHA-256 over names and contents of the files in the data directory that the scenario reads and,
 * where it is not built in, over what it says and the files that it names, as 64 digits; "none"
 * where there is nothing of these. For telling results of other data apart.
 */
int scenario_digest(struct arena *a, const struct scenario *s, const char *data, const char **out,
                    struct err *e);

/* 'history_jobs' are lived through here, under the run's policy, which takes as long as they take.
 */
int scenario_open(struct arena *a, const struct study_run *k, const char *data,
                  struct study_inputs *out, struct err *e);
void scenario_close(struct study_inputs *s);

#endif

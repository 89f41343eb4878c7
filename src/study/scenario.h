/* scenario.h - what is studied, by name: a cluster, a ground truth, jobs, and what is varied.
 *
 * Scenarios are a table of constants (scenario.c); scenario_runs lists the runs that they
 * consist of, scenario_open makes the inputs of one of them. Truths and traces that come from
 * published data are read from a data directory (data.h); where it is absent, scenario_open says
 * which file is missing and how to name the place.
 */
#ifndef STUDY_SCENARIO_H
#define STUDY_SCENARIO_H

#include <stdbool.h>

#include "base/arena.h"
#include "catalog/cluster/cluster.h"
#include "sim/ground.h"
#include "sim/trace/trace.h"
#include "study/pretraining.h"

struct err;

enum scenario_jobs {
    JOBS_DRAWN,      // trace_generate
    JOBS_SERVED,     // the same, a third of the work by services whose rates follow the day
    JOBS_MSR,        // Gavel's MSR traces, thinned to the load
    JOBS_PHILLY,     // Philly's arrivals and lengths, thinned to the load
    JOBS_ALIBABA,    // all pods of Alibaba's 2023 list, on its nodes
};

enum scenario_truth {
    TRUTH_GAVEL,      // isolated speeds of the physical cluster, slowdowns of the simulation file
    TRUTH_BUILTIN,    // the built-in tables, off by hidden factors drawn from the seed
};

/* What the policy knows when a run begins. */
enum knowledge {
    KNOWS_NOTHING,       // descriptors, and the roofline
    KNOWS_PRETRAINED,    // the model that ships with the program; it has seen Gavel's measurements
    KNOWS_OTHERS,        // all measurements but those that one family takes part in
    KNOWS_TRUTH,         // oracles only
};
const char *knowledge_name(enum knowledge k);    // "empty", "pretrained", "others", "truth"

/* Of every scenario; the others follow it. */
#define SCENARIO_FIRST_SEED 11

struct scenario {
    const char *name;       // as on the command line
    const char *title;      // one line for people
    const char *cluster;    // text of a cluster file; NULL: Alibaba's nodes
    enum scenario_truth truth;
    enum scenario_jobs jobs;
    int n_jobs;                          // 0: all of the trace
    double promise_low, promise_high;    // of the job's speed on the reference; 0, 0: 0.3 and 0.9
    const double *loads;            // ends with 0; NULL: the trace as it is (load is shown as 0)
    const char *const *policies;    // ends with NULL
    bool both_limits;               // each policy without power limits and with them
    bool has_limits;                // where not both: with them
    bool is_always_on;              // no sleep
    bool takes_levers_away;         // also 'gogh' with power limits, less one lever at a time
    const enum knowledge *knows;    // ends with KNOWS_TRUTH; NULL: KNOWS_NOTHING alone
    const char *power_model;        // of the world; NULL: "additive"
    int n_seeds;                    // unless the caller says how many
};

/* All scenarios, in the order of the report. */
const struct scenario *scenario_all(int *n);
const struct scenario *scenario_by_name(const char *name);    // NULL: there is none

/* "gogh-oracle" and "bound" know the truth. */
bool scenario_is_oracle(const char *policy);

/* The world's, by name, whether the table says it or not. */
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
};

/* Do two runs differ in nothing but the seed? */
bool study_run_is_alike(const struct study_run *a, const struct study_run *b);

/* "reference-0.9-gogh-limits-empty-s11": letters, digits, '.', '-'; unique in a study. */
const char *study_run_name(struct arena *a, const struct study_run *k);

/* The runs of a scenario with 'n_seeds' seeds (0: as many as it usually has), in order:
 * loads, then policies, limits, levers, knowledge, seeds. Oracles ("gogh-oracle", "bound") know
 * the truth, once. Returns how many.
 */
int scenario_runs(struct arena *a, const struct scenario *s, int n_seeds, struct study_run **out);

/* The inputs of a run. All runs of a scenario with one load and seed get the same jobs. */
struct study_inputs {
    struct cluster cluster;    // its settings with the run's sleep, limits and power model
    struct trace trace;
    struct ground ground;
    double arrivals_s;                 // the arrival period: from 0 to the last arrival
    struct pretraining pretraining;    // what the policy begins with; nothing for KNOWS_TRUTH
};

/* Where published data lies: 'given' (--data), else $GOGH_DATA, else ../shared/data. */
const char *scenario_data(const char *given);

/* Has the data directory what the scenario reads? Where not, 'e' (may be NULL) names the file. */
bool scenario_has_data(const struct scenario *s, const char *data, struct err *e);

/* Does it read any? */
bool scenario_needs_data(const struct scenario *s);

/* A SHA-256 over names and contents of the files in the data directory that the scenario reads, as
 * 64 digits; "none" where it reads none, or none is there. For telling results of other data apart.
 */
int scenario_digest(struct arena *a, const struct scenario *s, const char *data, const char **out,
                    struct err *e);

int scenario_open(struct arena *a, const struct study_run *k, const char *data,
                  struct study_inputs *out, struct err *e);
void scenario_close(struct study_inputs *s);

#endif

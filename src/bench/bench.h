/* bench.h - the benches behind `gogh bench`, and what their files share.
 *
 * One run of a bench happens in a child process, so that each starts cold and its peak memory is
 * its own. What it found comes back through a pipe.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/text/json.h"
#include "base/text/text.h"

struct arena;
struct catalog;
struct samples;
struct store;

/* What one run gives. */
struct bench_figures {
    double value;    // in the bench's unit
    double peak_bytes;
    double detail[2];    // what else the bench wants to say
};

/* One run, and what must be there before the first one; in an arena that ends with it. */
typedef int bench_f(struct arena *a, const char *scratch, struct bench_figures *out, struct err *e);
typedef int bench_prepare_f(struct arena *a, const char *scratch, struct err *e);

/* Where measured data are: $GOGH_DATA, or beside the source. */
const char *bench_data_dir(void);

/* A new directory, its path into 'out'; and its end, with all that is in it. */
int bench_scratch(char *out, size_t size, struct err *e);
void bench_scratch_remove(const char *path);

/* Importing and opening: store.c. */
bench_prepare_f bench_gavel_data, bench_open_prepare;
bench_f bench_import, bench_open;

/* A catalog with eight GPU types; with Gavel's measurements in the store 'db'. */
int bench_add_types(struct catalog *c, struct err *e);
int bench_import_gavel(struct arena *a, const char *db, struct store **s, struct catalog *c,
                       struct err *e);

/* The simulator, alone and as a study runs it: simulate.c. */
bench_f bench_sim_events, bench_sim_greedy, bench_study_large, bench_study_alibaba;

/* Estimating, refining and learning: estimate.c. */
bench_f bench_estimate_cells, bench_estimate_young, bench_estimate_update,
    bench_estimate_young_update, bench_estimate_train;

/* A synthetic site of 200 workloads on 8 types, and 'n' readings of it, every other one alone: in
 * network.c.
 */
struct reading;
struct site;
void bench_site_make(struct arena *a, struct site *site, struct reading *readings, int n);

/* The in-context network: network.c. */
bench_f bench_network_cells, bench_network_read, bench_network_train;

/* Slowdowns foreseen with the way to share told, over not told: sharing.c. */
bench_f bench_sharing, bench_sharing_known, bench_sharing_slices;

/* Tables of services' capacity: services.c. */
bench_prepare_f bench_azure_data;
bench_f bench_services_build, bench_services_large, bench_services_llm, bench_services_lookup,
    bench_services_replay, bench_services_too_high, bench_services_share, bench_services_azure,
    bench_services_azure_llm;

/* "VmRSS" or "VmHWM" of a process, in bytes. child.c. */
double bench_memory(pid_t pid, const char *key);

/* A file of /proc/PID as text; "" where there is none. child.c. */
void bench_proc_text(pid_t pid, const char *file, char *text, size_t size);

/* Do 'f' in a child process: its result, 'size' bytes, comes back into 'out', with the most memory
 * that it had beyond what it began with. What the parent has made is there for it to read. 0,
 * -ETIMEDOUT after 'limit_s' (0: none), or what 'f' said. child.c.
 */
typedef int bench_child_f(const void *self, void *out, struct err *e);
int bench_child(bench_child_f *f, const void *self, double limit_s, void *out, size_t size,
                double *more_bytes, struct err *e);

/* A figure, and the limit (NaN: none) that its median should stay within. */
struct bench_limit {
    const char *name, *unit, *what;
    double limit;
    bool is_at_least;    // the limit is a floor
};

/* What came of it: JSON but for whether it is within the limit. bench.c. */
json_t *bench_limit_json(const struct bench_limit *l, struct samples *values);
bool bench_is_within(const struct bench_limit *l, struct samples *values);

struct bench_options {
    const char *names;    // which parts of one that stands alone, with commas between; NULL: all
    long runs;            // repetitions; 0: as each says
    long seeds;           // instances of each row of 'optimize'; 0: as the row says
    long scale;           // sizes are divided by it, and goals mean nothing beyond 1
    bool is_proving;      // smaller rows are compared with what the exact method finds, too
    bool is_json;
};

/* The benches by name ("estimate": all that begin so, too), or, of an empty list, all of them.
 * Prints what they find. bench.c.
 */
bool bench_knows(const char *name);
int bench_run(const char *const *names, const struct bench_options *how, struct err *e);

/* The two that stand alone, and print what they find. */
bool bench_optimize_knows(struct slice part);    // the planner: optimize.c
int bench_optimize(const struct bench_options *how, struct err *e);
bool bench_serve_knows(struct slice part);    // the daemon: bench/serve/serve.c
int bench_serve(const struct bench_options *how, struct err *e);

#endif

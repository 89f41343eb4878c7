/* bench.h - what one run of a benchmark gives; shared by the files behind `gogh bench`. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One run of a bench happens in a child process, so that each starts cold and its peak
 * memory is its own. What it found comes back through a pipe.
 */
struct reading {
    double value;    // in the bench's unit
    double peak_bytes;
    double detail[2];    // what else the bench wants to say
    int rc;
    struct err err;
};

typedef int bench_f(const char *scratch, struct reading *out, struct err *e);

/* Where measured data are: $GOGH_DATA, or beside the source. */
const char *bench_data_dir(void);

/* Estimating, refining and learning: bench_estimate.c. */
bench_f bench_estimate_prepare, bench_estimate_cells, bench_estimate_update;
bench_f bench_estimate_data, bench_estimate_train;

/* Runs of a study: bench_study.c. */
bench_f bench_study_data, bench_study_large, bench_alibaba_data, bench_study_alibaba;

/* Do 'f' in a child process: its result, 'size' bytes, comes back into 'out', with the most memory
 * that it had beyond what it began with. What the parent has made is there for it to read. 0,
 * -ETIMEDOUT after 'limit_s' (0: none), or what 'f' said. bench_child.c.
 */
typedef int bench_child_f(const void *self, void *out, struct err *e);
int bench_child(bench_child_f *f, const void *self, double limit_s, void *out, size_t size,
                double *more_bytes, struct err *e);

/* The planner, `gogh bench optimize`: bench_optimize.c. Prints what it finds. */
struct bench_options {
    const char *names;    // which parts, with commas between; NULL: all
    int seeds;            // instances of each row; 0: as the row says
    int scale;            // the rows' sizes are divided by it, and goals mean nothing beyond 1
    bool is_proving;      // smaller rows are compared with what the exact method finds, too
};

bool bench_optimize_knows(const char *names);
int bench_optimize(const struct bench_options *how, bool is_json, struct err *e);

/* The daemon, `gogh bench serve`: bench_serve.c. 'names' as above; 'runs': repetitions, 0: as each
 * part has them; 'scale': sizes are divided by it, and limits mean nothing then. Prints what it
 * finds.
 */
bool bench_serve_knows(const char *names);
int bench_serve(const char *names, int runs, int scale, bool is_json, struct err *e);

#endif

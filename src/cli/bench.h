/* bench.h - what one run of a benchmark gives; shared by the files behind `gogh bench`. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

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

#endif

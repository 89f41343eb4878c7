/* result.h - what gogh-pair has measured, and its file (docs/formats/pair.md).
 *
 * Filled in phase by phase, written once at the end. Plain data; texts are borrowed. NaN is null.
 */
#ifndef PROBE_PAIR_RESULT_H
#define PROBE_PAIR_RESULT_H

#include <stdbool.h>

#include "probe/pair/phase.h"

struct err;

struct pair_alone {
    struct phase_rate rate;
    double watts, gpu, mem, mem_bytes;
    bool fits;
};

struct pair_together {
    struct phase_rate rates[PHASE_PROGRAMS];
    double watts;
    bool fits;
};

struct pair_result {
    const char *gpu_type;    // NULL: nobody has said
    const char *host;
    double seconds;
    int n_programs;    // 1: no 'together'
    struct pair_alone alone[PHASE_PROGRAMS];
    struct pair_together together;
};

/* Everything unknown, and nothing that does not fit. */
void result_init(struct pair_result *r, int n_programs);

/* All of it or, where writing fails, nothing. */
int result_write(const struct pair_result *r, const char *path, struct err *e);

#endif

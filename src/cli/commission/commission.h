/* commission.h - the parts of `gogh commission`: running what was chosen, and what it changed.
 *
 * commission.c asks the daemon what to measure, measure.c has it measured, changes.c compares what
 * was believed before and after.
 */
#ifndef CLI_COMMISSION_COMMISSION_H
#define CLI_COMMISSION_COMMISSION_H

#include <jansson.h>

struct arena;
struct client;
struct err;
struct programs;

/* What is to be measured, with what, and within which limits; all borrowed. */
struct measuring {
    const struct programs *programs;    // with the names that the site has for their workloads
    const json_t *described;            // the same as descriptors
    const json_t *picks;                // as the daemon chose them; each with its "gpu"
    double minutes;                     // that all of it may take: enough for one
    long priority;                      // of the jobs
    const char *dir;                    // where results go
};

/* How long each phase is measured, and how much of it all fits into the time. */
struct measure_times {
    int n;             // picks that are measured: the first ones of each GPU type
    size_t *picks;     // (n) which
    double phase_s;    // alone, alone, together: each so long, its warm-up included
    double all_s;      // about so long in all, on idle GPUs
};

/* By the GPUs that are idle now: what a crowded type has no time for leaves other types alone. */
int measure_plan(struct client *c, const struct measuring *m, struct measure_times *out,
                 struct err *e);

/* Submit a job for each, wait for all of them, and hand what they measured to the daemon. What
 * became of each goes to 'told', a list that is yours: the picks, with job, state and file. A
 * signal, or the time's end, cancels what has not ended. Returns how many were taken, or -Exxx.
 */
int measure_all(struct client *c, const struct measuring *m, const struct measure_times *times,
                json_t **told, struct err *e);

/* Two lists of targets, all of whose fields are there, as they were believed before and after: by
 * GPU type how sure they are, and the largest changes of single ones. Yours.
 */
json_t *changes_between(const json_t *before, const json_t *after);
void changes_print(struct arena *a, const json_t *changes);

#endif

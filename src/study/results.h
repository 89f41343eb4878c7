/* results.h - the results of a study, on disk and in memory.
 *
 * DIR/runs/NAME.json holds one run: its key, who made it from which data, and everything of its
 * study_result. Written whole or not at all, so that a study that was stopped goes on where it was.
 * From these come DIR/results.json, the tables beside it (docs/formats/study.md) and the report.
 * Filled by the pool; read by the report; lives in the caller's arena.
 */
#ifndef STUDY_RESULTS_H
#define STUDY_RESULTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "study/run.h"

struct buf;
struct err;

struct results_row {
    struct study_run key;
    struct study_result result;
    const char *digest;    // of the data that it was made from, as its file says
};

/* What the runs of a scenario are made from (scenario_digest). */
struct results_data {
    const struct scenario *scenario;
    const char *digest;
};

struct results {
    const char *dir;
    const char *version;    // of the program
    const char *build;      // digest of the program's file: another build does its runs anew
    int n_data;
    const struct results_data *data;    // of a scenario that is not in it: "none"
    bool takes_any;                     // runs of other versions, builds and data count as well

    /* By results_fill. */
    const char *digest;    // of the rows' data; several with commas between, or "none"
    const char *broken;    // the first file of a run that is garbage; NULL: none
    int n_rows;
    struct results_row *rows;    // in the order of scenario_runs
    bool is_locked;
    int lock;    // a descriptor, where it is taken
};

/* The digest of the running program; "unknown" where the system does not tell. */
const char *results_build(struct arena *a);

/* Take the directory: make it where it is not there, and clear away what a study that was killed
 * left half-written. -EBUSY: another study is at work there; -Exxx: it cannot be written.
 */
int results_lock(struct results *b, struct err *e);
void results_unlock(struct results *b);

/* Is the run there, made by this build of this version from this data? Fills 'out' if so. A file
 * that is cut off, or somebody else's, counts as not there.
 */
bool results_has(struct arena *a, const struct results *b, const struct study_run *k,
                 struct study_result *out);

/* The rows that are there, in the order of 'keys'; and what their files tell of them all. */
void results_fill(struct arena *a, struct results *b, const struct study_run *keys, int n_keys);

int results_keep(const struct results *b, const struct study_run *k, const struct study_result *r,
                 struct err *e);

/* The rows as in results.json; no wall times, so that the same rows give the same bytes. */
int results_json(const struct results *b, struct buf *out, struct err *e);

/* results.json, runs.csv, slices.csv, types.csv, intervals.csv: the same bytes for the same rows;
 * and timing.csv, with what differs each time.
 */
int results_write(const struct results *b, struct err *e);

#endif

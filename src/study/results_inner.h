/* results_inner.h - a run's figures by name, and as JSON; shared by the files behind results.h. */
#ifndef STUDY_RESULTS_INNER_H
#define STUDY_RESULTS_INNER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "study/run.h"

/* A number of struct study_result that has a column of its own. */
struct figure {
    const char *name;
    enum { FIGURE_REAL, FIGURE_LONG, FIGURE_INT } kind;
    size_t at;         // offset
    bool is_timing;    // differs from time to time; not in results.json
};

extern const struct figure results_figures[];
extern const int n_results_figures;

/* NaN where there is none: a bound has no schedule whose jobs and plans could be counted. */
double figure_value(const struct figure *f, const struct study_run *k,
                    const struct study_result *r);

/* Everything that is the same each time, as one row of results.json. Owned. */
json_t *results_row_json(const struct study_run *k, const struct study_result *r);

/* What a run's own file holds of its result besides: timing, types, slices and intervals. Owned. */
json_t *results_details_json(const struct study_run *k, const struct study_result *r);

/* Back again; false: something is missing or is no number. */
bool results_read_back(struct arena *a, const json_t *row, const json_t *details,
                       struct study_result *out);

#endif

/* results_inner.h - a run's figures by name, and as JSON; shared by run.c and the files behind
 * results.h.
 */
#ifndef STUDY_RESULTS_INNER_H
#define STUDY_RESULTS_INNER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "study/run.h"

/* A member of a struct that has a column of its own. */
struct figure {
    const char *name;
    enum { FIGURE_REAL, FIGURE_LONG, FIGURE_INT, FIGURE_TEXT } kind;
    size_t at;          // offset
    bool is_derived;    // from other figures, and not read back
    bool is_timing;     // differs from time to time; not in results.json
    bool is_late;       // older files do not have it
};

/* Those of struct study_result. */
extern const struct figure results_figures[];
extern const int n_results_figures;

/* The lists of struct study_result: each an array of rows in a run's file, and a table. */
enum { RESULTS_TYPES, RESULTS_SLICES, RESULTS_STAYS, RESULTS_LISTS };
struct figure_list {
    const char *file;
    size_t size;        // of an element
    size_t n_at, at;    // offsets of the count and of the list
    int n_columns;
    const struct figure *columns;    // (n_columns) of an element
};
extern const struct figure_list results_lists[RESULTS_LISTS];

/* How many there are, and one of them. */
int figure_list_n(const struct figure_list *l, const struct study_result *r);
const void *figure_list_at(const struct figure_list *l, const struct study_result *r, int i);

/* The figure of 'of', which is no text, as a number. */
double figure_number(const struct figure *f, const void *of);

/* NaN where there is none: a bound has no schedule whose jobs and plans could be counted. */
double figure_value(const struct figure *f, const struct study_run *k,
                    const struct study_result *r);

/* Everything that is the same each time, as one row of results.json. Owned. */
json_t *results_row_json(const struct study_run *k, const struct study_result *r);

/* What a run's own file holds of its result besides: timing, types, slices and intervals. Owned. */
json_t *results_details_json(const struct study_result *r);

/* Back again; false: something is missing or is no number. */
bool results_read_back(struct arena *a, const json_t *row, const json_t *details,
                       struct study_result *out);

#endif

/* book_inner.h - a run's figures by name, and as JSON; shared by the files behind book.h. */
#ifndef STUDY_BOOK_INNER_H
#define STUDY_BOOK_INNER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "study/run.h"

/* A number of struct run_result that has a column of its own. */
struct figure {
    const char *name;
    enum { FIGURE_REAL, FIGURE_LONG, FIGURE_INT } kind;
    size_t at;         // offset
    bool is_timing;    // differs from time to time; not in results.json
};

extern const struct figure book_figures[];
extern const int n_book_figures;

/* NaN where there is none: a bound has no schedule whose jobs and plans could be counted. */
double figure_value(const struct figure *f, const struct run_key *k, const struct run_result *r);

/* Everything that is the same each time, as one row of results.json. Owned. */
json_t *book_row_json(const struct run_key *k, const struct run_result *r);

/* What a run's own file holds of its result besides: timing, types, slices and stays. Owned. */
json_t *book_details_json(const struct run_key *k, const struct run_result *r);

/* Back again; false: something is missing or is no number. */
bool book_result_of(struct arena *a, const json_t *row, const json_t *details,
                    struct run_result *out);

#endif

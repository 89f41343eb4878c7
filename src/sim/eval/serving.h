/* serving.h - how well step times of servers are foreseen, and whether safe neighbours are.
 *
 * A campaign is the site. Each model that serves (or all of its family) is held out, and step times
 * of its batches are foreseen by what estimate/serving.h says: with nothing of it known, or with
 * its smallest and largest batch measured alone on each type. Pairs are two copies of a server with
 * the same batch. docs/formats/outputs.md has the figures. Made by serving_eval, read by
 * `gogh eval --split serving`; the same arguments give the same figures.
 */
#ifndef SIM_EVAL_SERVING_H
#define SIM_EVAL_SERVING_H

#include <stdbool.h>
#include <stdint.h>

struct catalog;
struct err;
struct model;

struct serving_eval_options {
    const struct model *model;    // NULL: of the store's other campaigns
    int campaign;                 // -1: each that has servers of at least three batches
    double z;                     // of neighbours
    uint64_t seed;
};

enum serving_figure {
    SERVING_LINE_MAPE,         // of the best line through what was measured
    SERVING_ALONE_MAPE,        // of step times alone
    SERVING_ALONE_COVERAGE,    // share of them in intervals of 90 %
    SERVING_BESIDE_MAPE,       // beside a copy, by two factors
    SERVING_BESIDE_COVERAGE,
    SERVING_BESIDE_WORST,    // the most that one took longer, as a part of what was foreseen
    SERVING_ONE_MAPE,        // the same by one factor, that of the middle batch
    SERVING_ONE_WORST,
    SERVING_FIGURES
};
extern const char *const serving_figure_names[SERVING_FIGURES];

struct serving_row {
    int campaign;
    bool is_family_held, is_alone_known;
    int n_alone, n_beside;                // step times that were foreseen
    int n_asked, n_admitted, n_broken;    // neighbours by promise: asked about, let in, wrongly so
    double figure[SERVING_FIGURES];       // NaN: of nothing
};

/* Owns heap memory. */
struct serving_result {
    int n_rows;
    struct serving_row *rows;    // four of each campaign
};

/* -ENODATA: no campaign has such servers; -EDOM: a fit failed. */
int serving_eval(const struct catalog *c, const struct serving_eval_options *o,
                 struct serving_result *out, struct err *e);
void serving_eval_release(struct serving_result *r);

#endif

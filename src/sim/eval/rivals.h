/* rivals.h - plain estimators that a model of sites has to beat, on the same readings.
 *
 * Both are lines through what was read: the mean of each GPU type, shrunk to that of all, and ridge
 * regression on the features of the hierarchical model. Slowdowns come first; of a packed job the
 * slowdown that follows is taken away, and what is left counts as its speed alone. Made by
 * rival_fit, read through known.h; lives in the arena it was made in.
 */
#ifndef SIM_EVAL_RIVALS_H
#define SIM_EVAL_RIVALS_H

#include "estimate/site/site.h"

struct arena;

enum rival_way { RIVAL_MEAN, RIVAL_RIDGE };
enum rival_part { RIVAL_ALONE, RIVAL_BESIDE, RIVAL_PARTS };

struct rival {
    enum rival_way way;
    const struct site *site;
    double ridge[RIVAL_PARTS];
    double *weight[RIVAL_PARTS];    // (features), the intercept first; zeros where nothing was read
    double *x;                      // scratch: the features of one reading
};

/* The ridges that foresee each family's readings best from those of the others. */
void rival_choose(struct arena *a, const struct site *s, const struct reading *list, int n,
                  double ridge[RIVAL_PARTS]);

/* 'ridge' is read by RIVAL_RIDGE only. */
void rival_fit(struct arena *a, enum rival_way way, const struct site *s, const double *ridge,
               const struct reading *list, int n, struct rival *out);

/* The logarithm of a reading; 'neighbour' is read where 'of' is not READ_ALONE. */
double rival_ask(const struct rival *r, enum reading_of of, int type, int job, int neighbour);

#endif

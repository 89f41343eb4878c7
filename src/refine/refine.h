/* refine.h - taking in measurements: as what they say without power limits, and how well they had
 * been foreseen.
 *
 * Flows in: measurements from 'monitor'. Flows out: cells of the catalog, and how limits bend a
 * workload's speeds, where the next refresh of 'estimate' finds both: that carries them over to all
 * other cells.
 */
#ifndef REFINE_REFINE_H
#define REFINE_REFINE_H

struct catalog;
struct err;
struct estimator;
struct measurement;

struct refiner {
    struct catalog *catalog;        // borrowed; measurements go there
    struct estimator *estimator;    // borrowed; what is believed now

    /* How good the beliefs were, before each measurement was taken in. */
    long n_measurements;
    double sum_abs_error;    // of |measured / believed - 1|
    long n_covered;          // inside the believed 90 % interval
};

void refiner_init(struct refiner *r, struct catalog *c, struct estimator *e);

/* Take in one measurement: record it in the catalog, note the surprise. What was measured under a
 * power limit counts, and is recorded, as what it says about the type's default.
 */
int refine_take(struct refiner *r, const struct measurement *seen, struct err *e);

#endif

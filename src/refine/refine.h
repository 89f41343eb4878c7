/* refine.h - each measurement improves all estimates of its workload.
 *
 * The surprise (measured minus believed, in logarithms) of every measured cell corrects every
 * other cell of the workload: other GPU types, other neighbours. What is believed before is P1's,
 * or the roofline's where there is no model; how a surprise carries over is P2's (p2.h). What power
 * limits do to a workload on a type is learned from its speeds alone under different ones.
 *
 * Flows in: measurements from 'monitor'. Flows out: estimates left in the catalog, where
 * the next cycle's 'estimate' finds them.
 */
#ifndef REFINE_REFINE_H
#define REFINE_REFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct catalog;
struct err;
struct estimator;
struct measurement;
struct p2;

struct refiner {
    struct catalog *catalog;              // borrowed; measurements and estimates go there
    const struct estimator *estimator;    // borrowed; what is believed now
    const struct p2 *p2;                  // borrowed; NULL: the closed form with defaults
    bool is_frozen;                       // what the catalog's estimates say is not corrected
    struct arena arena;                   // scratch of one refinement
    struct workload_news *news;           // (n_news) by workload; see refine.c
    int n_news;
    struct bend_seen *bends;    // (n_bends, n_bend_types) speeds alone under limits; see refine.c
    int n_bends, n_bend_types;
    uint32_t descriptions;    // the estimator's, when estimates were last all made
    int n_types;              // the estimator's then
    uint32_t n_drifts;        // the catalog's then
    int n_met;                // workloads that all others know as neighbours

    /* How good the beliefs were, before each measurement was taken in. */
    long n_measurements;
    double sum_abs_error;    // of |measured / believed - 1|
    long n_covered;          // inside the believed 90 % interval
};

void refiner_init(struct refiner *r, struct catalog *c, const struct estimator *e);
void refiner_release(struct refiner *r);

/* From now on correct as 'p2' says (NULL: the closed form with defaults); it must live until the
 * next call of this or the end. All estimates are made anew at the next settling, so call it too
 * when the estimator gets another P1.
 */
void refine_use(struct refiner *r, const struct p2 *p2);

/* Take in one measurement: record it in the catalog, note the surprise. What was measured under a
 * power limit counts, and is recorded, as what it says about the type's default.
 */
int refine_take(struct refiner *r, const struct measurement *seen, struct err *e);

/* Correct all estimates of the workloads that have news. Call once after a batch, with the
 * estimator having met all workloads. Returns how many were corrected.
 */
int refine_settle(struct refiner *r, struct err *e);

#endif

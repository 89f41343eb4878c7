/* bends.h - what power limits do to a workload on a type, beyond the law over all of them.
 *
 * From its speeds alone under different limits, as they arrive: ln speed over the law's ln factor
 * is a line, and its slope is how much more than the law a limit takes. The same of its watts, over
 * those that it draws without a limit. What a family's other workloads have shown stands in for
 * what one has not. Owned by the estimator; 'refine' adds to it.
 */
#ifndef ESTIMATE_BENDS_H
#define ESTIMATE_BENDS_H

#include "estimate/prior/limits.h"

struct catalog;

struct bends {
    struct bend_seen *seen;    // (n, n_types)
    int n, n_types;
};

void bends_release(struct bends *b);

/* A workload alone ran at 'ln_speed' +- 'noise' under a limit whose factor by the law is 'ln_pace'.
 * What is known is forgotten when a type is new.
 */
void bends_note(struct bends *b, int n_types, int workload, int type, double ln_pace,
                double ln_speed, double noise);

/* It drew 'ln_watts' +- 'noise' of what it draws without a limit, where the law says 'ln_law'. */
void bends_note_watts(struct bends *b, int n_types, int workload, int type, double ln_law,
                      double ln_watts, double noise);

/* What a limit is believed to take from it, in parts of what the law says. */
struct limit_bend bends_of(const struct bends *b, const struct catalog *c, int workload, int type);

#endif

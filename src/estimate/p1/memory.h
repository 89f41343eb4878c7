/* memory.h - what a model remembers of the workloads it learned from, which of them are most like a
 * newcomer, and what these say of it.
 *
 * Made by memory_make from examples; part of P1, saved with it. Speaks for the
 * nearest-neighbour members; read by the networks, as context: "the most similar workloads did this
 * on that GPU". Lives in the arena it was made in; never changed afterwards.
 */
#ifndef ESTIMATE_P1_MEMORY_H
#define ESTIMATE_P1_MEMORY_H

#include <stdbool.h>

#include "estimate/p1/features.h"

struct arena;
struct err;
struct examples;
struct holdout;
struct weights;

enum remembered_what {
    REMEMBERED_ALONE,           // ln residual of its speed over the roofline
    REMEMBERED_WATTS,           // ln residual of its watts
    REMEMBERED_AS_JOB,          // mean of sqrt(r) of it beside others, less the type's mean
    REMEMBERED_AS_NEIGHBOUR,    // mean of sqrt(r) of others beside it, less the type's mean
    REMEMBERED_ANYTHING
};

/* One workload on one GPU type. What is not known is NaN. */
struct remembered {
    struct identity who;
    struct features on;
    float value[REMEMBERED_ANYTHING];
};

enum { MEMORY_PLACE = FEATURE_SHARES + FEATURE_KINDS + 2, MEMORY_NEAREST_MAX = 16 };

struct memory {
    struct remembered *items;    // (n), ordered by type, then workload
    int n;
    double *place;    // (n, MEMORY_PLACE) where each stands among the others
    int *first;       // (n_types + 1) where the items of each type begin
    float *mean_s;    // (n_types) mean sqrt(r) on each; NaN where no pair was seen
    int n_types;      // distinct types in items
    double scale;     // of the distance, chosen by held-out error among a few
};

/* Of everything that 'v' shows. The distance's scale is the one of a few with the least
 * leave-one-workload-out error of the nearest three.
 */
void memory_make(struct arena *a, const struct examples *x, const struct holdout *v,
                 struct memory *out);

struct similar {
    int item;
    float similarity;
};

struct memory_query {
    const struct identity *who;
    const struct features *on;
    bool no_kin;    // as if nobody of the family were known
    enum remembered_what what;
};

/* The at most 'k' most similar items of which 'what' is known, on this type (or, where there are
 * none on it, on the types most like it), best first; never 'who' itself. Ties break by position.
 * Returns how many.
 */
int memory_nearest(const struct memory *m, const struct memory_query *q, int k,
                   struct similar *out);

/* Does it remember a relative of 'who' (other than itself)? */
bool memory_has_kin(const struct memory *m, const struct identity *who);

/* Does it remember 'who' itself, on whatever type? */
bool memory_knows(const struct memory *m, const struct identity *who);

/* What it remembers of 'who' itself on the type of 'on'; NULL: nothing. Borrowed. */
const struct remembered *memory_find(const struct memory *m, const struct identity *who,
                                     const struct features *on);

/* Mean sqrt(r) on the type of 'on'; on one it does not know, of the types like it. */
double memory_mean_s(const struct memory *m, const struct features *on);

/* What memory_mean_s says when no pair was ever seen: the mean over Gavel's three GPU types. */
#define MEMORY_S_UNKNOWN 0.8

/* What the most similar remembered workloads say of a newcomer. A slowdown is a sum, sqrt(r) = the
 * type's mean + the job's part + the neighbour's part, so that a table over all pairs costs no more
 * than one over workloads.
 */

/* ln residual of the speed alone: the mean over the 'k' nearest of which it is
 * known, by similarity; where there are none, the mean over all that is known (0: nothing).
 * With 'no_kin' as if nobody of the family were known.
 */
float memory_alone(const struct memory *m, const struct identity *who, const struct features *on,
                   bool no_kin, int k);

/* Likeness (the sum over those asked) at which half of a deviation from the type's mean is
 * believed: one workload whose descriptor stands near, without kin, has 0.4. Networks start from
 * the same belief.
 */
#define MEMORY_HALF_BELIEVED 0.15

/* The two parts of sqrt(r), each less the type's mean (memory_mean_s); 0 where nothing is known.
 * The parts of unlike workloads are shrunk towards 0. What was seen of the neighbour itself on this
 * very type stands alone: it is known, and only the job is new.
 */
float memory_as_job(const struct memory *m, const struct identity *who, const struct features *on,
                    int k);
float memory_as_neighbour(const struct memory *m, const struct identity *who,
                          const struct features *on, int k);

void memory_save(const struct memory *m, struct weights *to);
int memory_load(struct arena *a, const struct weights *from, struct memory *out, struct err *e);

#endif

/* p1.h - the initial estimator: what to believe of a workload that was never measured.
 *
 * An ensemble: a Gaussian process, ridge and nearest neighbours on the residual over the
 * roofline, and networks (net.h), combined by weights that held-out error chose, with
 * uncertainty from the same held-out errors. Two sets of both: one for a workload with relatives
 * in the catalog, one for a family nobody has seen.
 *
 * Trained by p1_train from examples (or loaded); never changed afterwards, so threads may share
 * one. What it says of a workload leaves that workload's own measurements out: 'refine' adds
 * those, and must not count them twice. (Networks leave them out of their context; most of them
 * have learned from them among all others.)
 *
 * Everything is a logarithm, except sqrt(r) inside: the square root of a slowdown is what its
 * errors are most alike in.
 */
#ifndef ESTIMATE_P1_P1_H
#define ESTIMATE_P1_P1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "estimate/p1/examples.h"

struct arena;
struct err;
struct weights;

/* Who is asked; P1_ENSEMBLE is P1 itself, the others are for `gogh eval`. */
enum p1_member {
    P1_MEAN,
    P1_NEAREST,     // the one nearest neighbour
    P1_NEAREST3,    // three of them
    P1_RIDGE,
    P1_GP,
    P1_FEED_FORWARD,
    P1_RECURRENT,
    P1_ATTENTION,
    P1_ENSEMBLE,
    P1_MEMBERS
};
extern const char *const p1_member_names[P1_MEMBERS];

/* Is the newcomer's family known from other workloads, or not? */
enum regime { REGIME_KIN, REGIME_STRANGER, REGIMES };

struct p1;

struct p1_options {
    uint64_t seed;
    int n_nets;          // networks of each kind and regime, 3 to 8; 0: the default
    bool all_members;    // train those too that the ensemble does not use
};

/* Learn from what 'v' shows of 'x'. The same arguments give the same bytes. With nothing to
 * learn from it says what the roofline says, and of pairs r = 0.6. -EDOM: numbers that no kernel
 * can take.
 */
int p1_train(const struct examples *x, const struct holdout *v, const struct p1_options *o,
             struct p1 **out, struct err *e);
void p1_destroy(struct p1 *p);    // NULL is fine

/* -E2BIG: it learned from more examples than p1_load would take (see examples_take). */
int p1_save(const struct p1 *p, struct weights *to, struct err *e);
int p1_load(const struct weights *from, struct p1 **out, struct err *e);

/* What P1 may be wrong in: ln speed alone, ln r of the job and of its neighbour, ln watts. */
enum p1_target { P1_ALONE, P1_OWN, P1_PARTNER, P1_WATTS, P1_TARGETS };

/* What held-out parts of the training data taught: truth less belief, for every example of 'x'
 * that the view showed (NaN for others), had its workload (REGIME_KIN) or the workload's whole
 * family (REGIME_STRANGER) never been seen. A pair has two: as the held-out job's own, and as the
 * neighbour of the held-out one ('partner'). Not saved with the model: NULL after
 * p1_load. Slightly too kind to networks: what was held out from one has helped to choose the
 * memory's scale, and for strangers other parts when to stop.
 */
struct p1_errors {
    float *of[P1_TARGETS][REGIMES];    // (n_alone, n_pairs, n_pairs, n_watts)
};
const struct p1_errors *p1_held_out(const struct p1 *p);

/* By how much each member, and all together, were wrong there: root mean squares; NaN: unknown. */
struct p1_score {
    double alone[REGIMES], pair[REGIMES];
};
struct p1_score p1_score_of(const struct p1 *p, enum p1_member m);
double p1_weight_of(const struct p1 *p, enum p1_member m, enum regime r, bool is_pair);

/* ---- asking ---- */

/* Workloads on types, with all that depends on one workload on one type worked out once. Grows
 * as workloads appear; the types are given at the start. Owns heap memory.
 */
struct p1_context;

struct p1_context *p1_context_create(const struct p1 *p, int n_types);
void p1_context_destroy(struct p1_context *s);    // NULL is fine

/* The next workload: who it is, and its features on each type. Returns its index, from 0. */
int p1_context_add(struct p1_context *s, const struct identity *who, const struct features *on);

/* The features it was added with. Borrowed until the next is added. */
const struct features *p1_features(const struct p1_context *s, int workload, int type);

/* What is believed of one workload on one type, alone. */
struct p1_alone {
    float ln_speed, ln_speed_sd;
    float ln_watts, ln_watts_sd;
    float mem_share;       // of the device's memory, corrected by what was seen to fit
    enum regime regime;    // of the workload
};
struct p1_alone p1_alone(const struct p1_context *s, int workload, int type);

/* ln r of 'workload' beside each of the neighbours from .. to-1 on 'type', and its standard
 * deviation: both (to - from).
 */
void p1_beside(const struct p1_context *s, int workload, int type, int from, int to, float *ln_r,
               float *sd);

/* The other way round: ln r of each of from .. to-1 beside 'workload', with all that is known of
 * them.
 */
void p1_partner(const struct p1_context *s, int workload, int type, int from, int to, float *ln_r,
                float *sd);

/* The chance that the workload alone (neighbour -1), or both together, do not fit. */
double p1_unfit(const struct p1_context *s, int workload, int type, int neighbour);

double p1_unfit_together(const struct p1_context *s, int type, const int *workloads, int n);

/* The sum of shares at which that chance is 'unfit_max'. */
double p1_share_max(const struct p1_context *s, double unfit_max);

/* Has the model learned from measurements of the workload? */
bool p1_knows(const struct p1_context *s, int workload);

/* The correlation of two errors on one type: in a workload's speed alone, and in what a neighbour
 * does to it. Where r is measured as a ratio, what makes the one too large makes the other too
 * small.
 */
double p1_cross(const struct p1_context *s, enum regime r);

/* How alike two neighbours are in what they do to others, 0..1; 1 for the same. */
double p1_like(const struct p1_context *s, int type, int neighbour, int other);

/* The same questions to one member; a member that the model lacks (see all_members) is not
 * there: false. Slow: for `gogh eval`.
 */
bool p1_ask_alone(struct p1_context *s, enum p1_member m, int workload, int type, float *ln_speed);
bool p1_ask_beside(struct p1_context *s, enum p1_member m, int workload, int type, int neighbour,
                   float *ln_r);

#endif

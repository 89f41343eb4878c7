/* p2_inner.h - what the files of P2 share: the covariance of P1's errors, surprises with their
 * gains, and the network on these.
 *
 * Read by p2*.c only. Evidence lives in the arena it was made in; a P2 on the heap.
 */
#ifndef REFINE_P2_INNER_H
#define REFINE_P2_INNER_H

#include <stdbool.h>

#include "nn/dense.h"
#include "nn/params.h"
#include "refine/p2.h"

struct rng;

/* How errors of ln r correlate. On one type: 'common' + 'like' times how alike the neighbours
 * are, and 'cell' more for the same cell; together 1. Between two types the first two are
 * multiplied by 'types' (more for types that are alike, see p2_mix).
 */
struct effect {
    double common, like, cell, types;
};

/* Correlations of one regime's errors; of speeds alone and of watts between two types. */
struct relations {
    double alone, watts;
    struct effect own, partner;
};

/* Sizes of the network: small vectors for each target and each observation, whose product, with
 * some figures of the two together, bends one gain.
 */
enum {
    GAIN_TARGET_IN = 17,
    GAIN_SIGHTING_IN = 17,
    GAIN_HIDDEN = 12,
    GAIN_RANK = 6,
    GAIN_FIGURES = 6
};

struct gain_net {
    struct params params;
    struct dense target_in, target_out, target_width;    // target_width: of its variance
    struct dense sighting_in, sighting_out;
};

struct p2 {
    struct relations of[REGIMES];
    struct gain_net net;
    struct p2_contest contest;
};

/* The correlation of errors on two types, given that of unlike ones. */
static inline double p2_mix(double unlike, double same)
{
    return unlike + (1 - unlike) * same;
}

/* Those of the errors in 'b'. */
const struct relations *p2_relations(const struct p2 *p, const struct p2_estimates *b);

/* ---- evidence: surprises, and what they say of each target ---- */

/* Targets are numbers that P1 may be wrong in. Of speeds: n_types times the job's own speed, then
 * (n_types, n_neighbours) times what a neighbour does to it.
 */
struct evidence {
    int n, n_targets;
    int *type, *beside;    // (n) where; beside -1: alone
    double *y;             // (n) seen less believed
    double *noise;         // (n) its variance
    double *same;          // (n_types, n_types) how alike types are
    double *like;          // (n, n_neighbours) how alike each one is to the one seen beside
    double *k_oo;          // (n, n) covariance of surprises with noise; then its factor
    double *sd;            // (n) of each surprise
    double *k;             // (n, n_targets) covariance of each surprise with each target
    double *white;         // (n, n_targets) the factor's inverse times k
    double *gain;          // (n, n_targets) what a surprise of 1 adds to a target
};

/* What a row over such targets says of the whole cell of target 't': of a pair, of both parts. */
static inline double p2_whole(const struct p2_estimates *b, const double *row, int t)
{
    int cell = t - b->n_types;

    return row[t] + (cell < 0 ? 0 : row[cell / b->n_neighbours]);
}

/* How alike two types are, and two neighbours (positions in 'b'), in what they do to errors. */
double p2_same(const struct p2_estimates *b, int type, int other);
double p2_like(const struct p2_estimates *b, int neighbour, int other);

/* The correlation of an error in the job's own speed with those in what neighbours do to it, on one
 * type; as much less on two as these are less alike.
 */
double p2_coupling(const struct relations *r, const struct p2_estimates *b);

/* All standard deviations of speeds times 'by'. */
void p2_estimates_widen(struct p2_estimates *b, float by);

/* Surprises in speeds, in slowdowns of partners, or in watts: 'y' and the covariances. */
void evidence_of_speeds(struct arena *a, const struct relations *r, const struct p2_sightings *seen,
                        const struct p2_estimates *b, struct evidence *out);
void evidence_of_partners(struct arena *a, const struct relations *r,
                          const struct p2_sightings *seen, const struct p2_estimates *b,
                          struct evidence *out);
void evidence_of_watts(struct arena *a, const struct relations *r, const struct p2_sightings *seen,
                       const struct p2_estimates *b, struct evidence *out);

/* Surprises that are larger than P1 thought possible say that it was too sure of this workload:
 * its descriptor may be wrong. All covariances (not the noise) grow by '*doubt', at least 1; by
 * its root must the caller widen beliefs. -EDOM: the covariance is none.
 */
int evidence_doubt(struct arena *a, struct evidence *v, double *doubt, struct err *e);

/* Work out 'white' and 'gain'. -EDOM: the covariance is none. */
int evidence_weigh(struct arena *a, struct evidence *v, struct err *e);

/* ---- examples: what P1 was wrong in when a workload was held out ---- */

struct p1_error {
    int type, other;    // other: the neighbour, or the partner, in the context; -1: alone
    float error;        // truth less belief
    float sd;           // that P1 states
};

/* Sums over pairs of errors of one kind in one example, as shares of 1, from which correlations
 * follow. 'l' is how alike the neighbours are, 's' the types; u the error in units of its sd.
 */
struct moments {
    double square;        // mean of u^2
    double l[3];          // on one type: means of 1, l, l^2
    double ul[2];         // of u u', u u' l
    double s[3], r[3];    // on two: of s (1 - s) and (1 - s)^2, times 1, l, l^2
    double us[2];         // of u u' (1 - s) times 1, l
};

/* All errors in one of P1's targets, and their moments. */
struct target_errors {
    struct p1_error *list;
    int n, cap;
    struct moments moments;
};

/* One workload as a newcomer, in one regime. */
struct p2_example {
    int workload, family;    // of the examples
    int at;                  // in the context: itself, or itself without its family
    enum regime regime;
    struct target_errors of[P1_TARGETS];
    struct p2_estimates believed;    // beside all neighbours that it has an error beside
    float *alone_error;              // (n_types) as in P1_ALONE; NaN: not known
    float *own_error;                // (n_types, believed.n_neighbours)
};

struct p2_examples {
    struct p1_context *context;      // all workloads, then those with kin once more, as strangers
    struct p2_estimates everyone;    // no beliefs: names the neighbours of the context
    struct p2_example *list;         // (n)
    int n;
};

/* From P1's held-out errors; what is not finite teaches nothing. Owns a context. */
void p2_examples_make(struct arena *a, const struct examples *x, const struct p1 *p1,
                      struct p2_examples *out);
void p2_examples_release(struct p2_examples *l);

/* Take all moments; p2_examples_make does. */
void relations_look(struct p2_examples *l);

/* Correlations, by the moments of examples that are not 'held' (n_families; NULL: none), shrunk
 * towards the defaults.
 */
void relations_learn(const struct p2_examples *l, const bool *held, struct relations out[REGIMES]);

/* Are these a covariance? */
bool relations_are_sound(const struct relations *r);

/* ---- the network ---- */

/* With weights drawn from 'r', and last layers of zeros: gains as they are. */
void gain_net_init(struct gain_net *net, struct rng *r);
void gain_net_release(struct gain_net *net);

/* What it saw and made of it; backward needs it. */
struct gain_pass {
    float *target_x, *target_h, *target_u;    // (n_targets, GAIN_TARGET_IN / HIDDEN / RANK)
    float *sighting_x, *sighting_h;           // (n, GAIN_SIGHTING_IN / HIDDEN)
    float *sighting_v;                        // (n, GAIN_RANK + GAIN_FIGURES)
    float *figures;                           // (n, n_targets, GAIN_FIGURES)
    float *gamma;                             // (n, n_targets) gains are multiplied by 1 + gamma
    float *delta;                             // (n_targets) variances by exp(delta)
};

void gain_net_forward(struct arena *a, const struct gain_net *net, const struct evidence *v,
                      const struct p2_estimates *b, struct gain_pass *out);

/* Gradients by gamma and delta, laid out like them (and used up), into the line 'grad'. */
void gain_net_backward(struct arena *a, const struct gain_net *net, const struct evidence *v,
                       const struct gain_pass *pass, float *dgamma, float *ddelta, float *grad);

/* ---- training ---- */

/* From examples that are not 'held' (n_families; NULL: none), and from errors drawn as 'of' says.
 */
void gain_net_train(const struct p2_examples *l, const bool *held,
                    const struct relations of[REGIMES], uint64_t seed, struct gain_net *net);

/* One newcomer with some neighbours, what is seen of it, and what P1 is wrong in. */
struct episode {
    struct p2_estimates b;
    struct p2_observation *seen;
    int n_seen;
    bool *is_seen;         // (n_types), then (n_types, n_neighbours)
    float *alone_error;    // (n_types) NaN: not known
    float *own_error;      // (n_types, n_neighbours), right behind
};

/* Of a example, with up to 'n_max' observations (fewer where less is known; at least one is left
 * unseen). False: too little is known.
 */
bool episode_make(struct arena *a, const struct p2_example *of, int n_max, struct rng *chance,
                  struct episode *out);

/* Mean |error| of ln speed over cells that were not seen, after refining in this way. */
double episode_error(struct arena *a, const struct p2 *p, enum p2_way way,
                     const struct episode *ep);

#endif

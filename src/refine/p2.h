/* p2.h - the refiner: what one measurement says of everything else about its workload.
 *
 * Two ways. The closed form is Gaussian conditioning with the covariance of P1's errors, which
 * held-out workloads taught. The network is a gain on the same surprises: untrained it is the
 * closed form, number for number, and it stands in for it only where it was better on families
 * held out of this catalog. Both are kept and both are reported.
 *
 * Trained by p2_train or loaded; never changed afterwards.
 */
#ifndef REFINE_P2_H
#define REFINE_P2_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/p1/p1.h"

struct arena;
struct err;
struct weights;

/* No measurement is believed better than this (sd of ln speed): the same pair measured again
 * differs by 2-9 % even when each run is steady.
 */
#define REFINE_NOISE 0.02

enum p2_way { P2_NONE, P2_SHIFT, P2_CLOSED, P2_NETWORK, P2_CHAMPION, P2_WAYS };
extern const char *const p2_way_names[P2_WAYS];

/* Everywhere below, a P2 that is NULL is one that has seen nothing: default correlations, and the
 * closed form is champion.
 */
struct p2;

/* From P1's held-out errors on the same examples: correlations by their moments, the network by
 * episodes in which every workload plays the newcomer, and by episodes drawn from the prior. The
 * same arguments give the same bytes.
 */
struct p2 *p2_train(const struct examples *x, const struct p1 *p1, uint64_t seed);
void p2_destroy(struct p2 *p);    // NULL is fine
void p2_save(const struct p2 *p, struct weights *to);
int p2_load(const struct weights *from, struct p2 **out, struct err *e);

/* How the contest went: mean absolute error of ln speed on families held out, after one to five
 * measurements.
 */
struct p2_contest {
    double closed_form, network;    // NaN: there were too few families for a contest
    int n_families;
    bool is_promoted;    // the network is champion
};
struct p2_contest p2_contest(const struct p2 *p);

/* ---- one workload ---- */

/* What was seen of it. Of a packed job one number is seen: its own speed and what the neighbour
 * does to it, together. The neighbour's own slowdown is seen beside it, where its speed alone is
 * known.
 */
struct p2_observation {
    int type;
    int neighbour;          // its position in the beliefs; -1: alone
    double ln_speed;        // NaN: not seen
    double ln_speed_var;    // of the mean of what was seen
    double ln_r_partner;    // of the neighbour beside it; NaN: not seen
    double ln_r_partner_var;
    double ln_watts;    // alone; NaN: not seen
};

struct p2_sightings {
    int n;
    const struct p2_observation *list;    // (n) of different cells
};

/* All of its cells: on each type alone and beside each neighbour. As P1 believes them before, as
 * corrected after p2_refine. Arrays (n_types) and (n_types, n_neighbours).
 */
struct p2_estimates {
    int n_types, n_neighbours;
    const struct p1_context *context;    // how alike neighbours and types are; NULL: nobody knows
    int workload;                        // whose, in the context
    int *neighbour;                      // (n_neighbours) who they are in the context
    enum regime regime;
    float *alone, *alone_sd;        // ln speed
    float *own, *own_sd;            // ln r of it beside each; right behind alone and alone_sd
    float *pair_sd;                 // of ln speed beside each: of the sum of both
    float *partner, *partner_sd;    // ln r of each beside it; NULL: nobody asks
    float *watts, *watts_sd;        // ln watts alone
};

/* Empty ones, in 'a'; the neighbours are the context's first, unless the caller writes others to
 * 'neighbour'.
 */
void p2_estimates_make(struct arena *a, int n_types, int n_neighbours, bool with_partner,
                       struct p2_estimates *out);

/* The same ones once more, in 'a'. */
void p2_estimates_copy(struct arena *a, const struct p2_estimates *from, struct p2_estimates *out);

/* Before any observation: P1's, of a workload of the context beside the neighbours of 'out'. */
void p2_estimates_from_p1(const struct p1_context *s, int workload, struct p2_estimates *out);

/* Correct 'b', which nothing has corrected yet, in place by what was 'seen'. Without a context
 * neighbours and types are alike only to themselves, and the correlations are those of the
 * roofline's errors. Sightings that contradict what P1 was sure of first widen everything that it
 * believes of the workload; otherwise no standard deviation grows. No slowdown is believed above
 * 1, except where one was seen. -EDOM: the covariance is none, and 'b' is worth nothing.
 */
int p2_refine(struct arena *a, const struct p2 *p, enum p2_way way, const struct p2_sightings *seen,
              struct p2_estimates *b, struct err *e);

/* Of the cells 'allowed' (only type and neighbour are read), the one whose measurement lowers
 * the expected error most, given what was 'seen' already: the mean standard deviation over types
 * alone, and over pairs. Its index, -1 when there are none, or -EDOM. '*gain' (may be NULL)
 * gets by how much, in the sum of both means.
 */
int p2_choose(struct arena *a, const struct p2 *p, const struct p2_estimates *prior,
              const struct p2_sightings *seen, const struct p2_sightings *allowed, double *gain,
              struct err *e);

#endif

/* net.h - P1's networks: small, with three ways to read the context.
 *
 * A network sees one workload on one GPU type at a time (its features, the GPU's figures, and the
 * NET_CONTEXT most similar remembered workloads with what is known of them there) and turns it
 * into what it says of the speed alone and of watts, and into two vectors: itself as a job and
 * itself as a neighbour. A pair is then one bend over the sum of two such vectors, so that a
 * table over all pairs costs little more than one over workloads.
 *
 *   feed-forward: the context tokens side by side
 *   recurrent:    a GRU walks over them, the most similar last
 *   attention:    the workload asks them
 *
 * Each starts from what the context alone would say and learns what to add to it.
 * Trained by net_train; never changed afterwards, so threads may share one.
 */
#ifndef ESTIMATE_P1_NET_H
#define ESTIMATE_P1_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "estimate/p1/features.h"

struct arena;
struct err;
struct examples;
struct memory;
struct holdout;
struct weights;

enum net_kind { NET_FEED_FORWARD, NET_RECURRENT, NET_ATTENTION, N_NET_KINDS };
extern const char *const net_names[N_NET_KINDS];    // "p1-feed-forward", ...

enum { NET_WIDTH = 24, NET_CONTEXT = 5 };

struct net;

/* What it says of one workload on one type. */
struct net_word {
    float alone;                // ln residual of the speed over the roofline
    float watts;                // ln residual of watts
    float as_job[NET_WIDTH];    // see net_pairs
    float as_neighbour[NET_WIDTH];
};

/* Learn from what 'v' shows of 'x', with 'm' (made from the same view) as context; a workload's
 * own measurements are never in its context, and half the time none of its family's. Workloads
 * that 'is_kept_back' (n_workloads; may be NULL) marks are left out of the gradient and decide
 * when to stop. The same arguments give the same weights.
 */
struct net *net_train(const struct examples *x, const struct holdout *v, const struct memory *m,
                      const bool *is_kept_back, enum net_kind kind, uint64_t seed);
void net_destroy(struct net *n);    // NULL is fine

/* What any network is told of 'n' workloads on types, as numbers: worked out once, put to as many
 * networks as there are. With 'no_kin' as if nobody of the family were known. In 'a'.
 */
struct net_question {
    int n;
    float *inputs;     // (n, NET_INPUTS)
    float *tokens;     // (n, NET_CONTEXT, NET_TOKEN), the most similar last
    bool *is_there;    // (n, NET_CONTEXT)
};

void net_ask(struct arena *a, const struct memory *m, int n, const struct identity *who,
             const struct features *on, bool no_kin, struct net_question *out);
void net_answer(const struct net *net, const struct net_question *q, struct net_word *out);

/* Add to 's' (n) 'weight' times what it says of sqrt(r) of a job beside each of n neighbours:
 * vectors as above, neighbours 'stride' floats apart. On the type of both.
 */
void net_pairs(const struct net *net, const float *as_job, int n, const float *as_neighbour,
               size_t stride, float weight, float *s);

/* Under 'name' and a suffix for each array. Loading checks every shape. */
void net_save(const struct net *n, const char *name, struct weights *to);
int net_load(const struct weights *from, const char *name, struct net **out, struct err *e);

#endif

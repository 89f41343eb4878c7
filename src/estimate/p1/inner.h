/* inner.h - what P1 is made of; for its own files only. */
#ifndef ESTIMATE_P1_INNER_H
#define ESTIMATE_P1_INNER_H

#include "base/arena.h"
#include "estimate/p1/beside.h"
#include "estimate/p1/fit.h"
#include "estimate/p1/kernel.h"
#include "estimate/p1/memory.h"
#include "estimate/p1/net.h"
#include "estimate/p1/p1.h"

enum { NETS_MAX = 16, TYPES_MAX = 128 };    // four arrays each: see WEIGHTS_ARRAYS_MAX

/* sd of ln r where nothing says otherwise: what the roofline is wrong by (roofline.c). */
#define BESIDE_SD_UNKNOWN 0.35

/* How far P1 is off on a type, by the regime of the job; as it stands in files. */
struct type_spread {
    double alone_scale, watts_scale;    // of the process's sd
    double beside_sd[REGIMES];          // of ln r: by the regime of the neighbour
};

/* A GPU type that something was learned on. */
struct trained_type {
    struct features on;    // only its figures count
    struct type_spread spread[REGIMES];
    struct beside beside;    // of no pairs: gp.n is 0
};

struct p1 {
    struct arena arena;
    struct memory memory;
    struct process alone, ridge, watts;
    struct trained_type *types;    // (n_types)
    int n_types;
    struct fit fit;
    struct net *nets[N_NET_KINDS][NETS_MAX];    // NULL: not trained
    int n_nets;                                 // of each kind: half for each regime
    enum net_kind favourite;                    // the one in the ensemble
    double alone_weight[REGIMES][P1_MEMBERS];
    double pair_weight[REGIMES][P1_MEMBERS];
    double cross[REGIMES];    // see p1_cross
    struct p1_score scores[P1_MEMBERS];
    struct p1_errors errors;
    bool has_errors;
};

/* How much each known type says of one with these figures: together 1. 'for_pairs': only types
 * that pairs were measured on.
 */
void p1_lean_on(const struct p1 *p, const struct features *on, bool for_pairs, double *share);

/* ln r from sqrt(r), which an average may have led astray. */
float p1_ln_r(float s);

static inline enum p1_member p1_net_member(enum net_kind k)
{
    return (enum p1_member)((int)P1_FEED_FORWARD + (int)k);
}

#endif

/* net_inner.h - what the files of the networks share: their layers, a pass over rows, a batch and
 * its loss.
 *
 * Nobody outside net*.c includes this, except their tests.
 */
#ifndef ESTIMATE_P1_NET_INNER_H
#define ESTIMATE_P1_NET_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/p1/memory.h"
#include "estimate/p1/net.h"
#include "nn/attention.h"
#include "nn/dense.h"
#include "nn/gru.h"
#include "nn/params.h"

/* Columns of a question. Every scale is a round number that was chosen without looking at data,
 * so that nothing of a held-out part can hide in it.
 */
enum { NET_SIGNS = 6 };

enum {
    IN_SHARES = 0,
    IN_ROOTS = IN_SHARES + FEATURE_SHARES,    // of shares
    IN_KINDS = IN_ROOTS + FEATURE_SHARES,
    IN_FIGURES = IN_KINDS + FEATURE_KINDS,
    IN_LN_BATCH = IN_FIGURES + FEATURE_FIGURES,
    IN_LN_STEP,
    IN_LN_KERNEL,
    IN_LN_PARAMS,
    IN_MEM_SHARE,
    IN_BUSY,
    IN_KNOWN,
    IN_FAMILY,    // signs that tell families apart; 0 for one that is not known
    IN_MEAN_S = IN_FAMILY + NET_SIGNS,    // memory_mean_s of the type, as it is
    IN_BASE,    // what the context alone says: one for each remembered_what, as it is
    IN_WEIGHT = IN_BASE + REMEMBERED_ANYTHING,    // how much likeness that rests on
    NET_INPUTS
};

enum {
    TOKEN_SIMILARITY,
    TOKEN_KIN,
    TOKEN_SAME_TYPE,
    TOKEN_SHARES,    // differences from here on
    TOKEN_LN_BATCH = TOKEN_SHARES + FEATURE_SHARES,
    TOKEN_LN_STEP,
    TOKEN_LN_KERNEL,
    TOKEN_LN_PARAMS,
    TOKEN_VALUES,                                        // one for each remembered_what, or 0
    TOKEN_KNOWN = TOKEN_VALUES + REMEMBERED_ANYTHING,    // 1 where there is one
    NET_TOKEN = TOKEN_KNOWN + REMEMBERED_ANYTHING
};

/* Means of sqrt(r) differ by tenths where residuals differ by ones. */
#define TOKEN_PAIR_SCALE 5.0f

enum { NET_HIDDEN = 32, NET_STATE = 16, NET_HEADS = 2 };
enum { OUT_ALONE, OUT_WATTS, OUT_JOB, OUT_NEIGHBOUR = OUT_JOB + NET_WIDTH };
enum { NET_OUTPUTS = OUT_NEIGHBOUR + NET_WIDTH };

/* Columns IN_BASE.. of 'inputs' from the tokens that are there. */
void net_base(const float *tokens, const bool *is_there, float *inputs);

struct net {
    enum net_kind kind;
    struct params p;
    struct gru gru;
    struct attention attention;
    struct dense first, second, head;
    int bend;    // where the factors of the bends begin: (NET_WIDTH), the first unused
};

/* How many numbers a network of this kind makes of its context. */
int net_context_width(enum net_kind kind);

/* Weights drawn by 'seed'. */
struct net *net_create(enum net_kind kind, uint64_t seed);

/* What a pass over rows leaves behind for the way back. */
struct net_pass {
    int cap;                               // rows there is room for
    float *context;                        // (n, context's width)
    float *wide;                           // (n, NET_INPUTS + context's width)
    float *sum1, *bent1, *sum2, *bent2;    // (n, NET_HIDDEN)
    float *y;                              // (n, NET_OUTPUTS), the base included
    float *scratch;
    float *dy, *dbent, *dsum, *dwide, *dcontext;    // gradients, shaped as above
};

void net_pass_init(struct arena *a, const struct net *net, int cap, struct net_pass *out);

/* 'y' for all rows of 'q'. */
void net_forward(const struct net *net, const struct net_question *q, struct net_pass *pass);

/* What one row, or two side by side, should have said. */
struct net_target {
    int row, beside;    // beside -1: alone
    float value;        // residual, or sqrt(r)
};

/* Targets of one kind: the speed alone, watts, pairs. The first two are columns of the output. */
enum { NET_ALONE = OUT_ALONE, NET_WATTS = OUT_WATTS, NET_PAIRS, NET_TARGETS };

struct net_targets {
    struct net_target *list;
    int n;
};

struct net_batch {
    struct net_question q;
    struct net_targets of[NET_TARGETS];
};

/* The loss of a batch; adds its gradient to 'grad' (NULL: the value alone). */
double net_loss(const struct net *net, const struct net_batch *b, struct net_pass *pass,
                float *grad);

#endif

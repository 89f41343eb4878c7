/* multihead.h - rows that ask questions of one set of tokens, with heads and a bias.
 *
 * Scaled dot-product attention: each asking row is projected to a query, each token to a key and a
 * value, of n_model numbers each; what the heads gather is projected once more. The score of every
 * (head, row, token) gets a bias of the caller's. Before the tokens stands one that is learned and
 * always there, without a bias: who finds nothing of interest takes that, and a set may be empty.
 * As torch.nn.MultiheadAttention with a float attn_mask otherwise.
 *
 * Keys are a step of their own, so that those of a set which stays are computed once. For shared
 * habits see params.h.
 */
#ifndef NN_MULTIHEAD_H
#define NN_MULTIHEAD_H

#include <stddef.h>

#include "nn/dense.h"

struct multihead {
    int n_heads, n_model;    // n_heads divides n_model
    struct dense query, key_value, out;
    int nobody_at;    // key and value of the token that is always there
};

/* Claim room; draw weights from 'r' (NULL: zeros), biases are zero. */
void multihead_init(struct multihead *t, struct params *p, int n_model, int n_heads, struct rng *r);

/* Tokens x (n_tokens, n_model) -> keys (1 + n_tokens, 2 n_model), and back:
 * 'dkeys' -> dx and 'grad'.
 */
void multihead_keys(const struct multihead *t, const float *w, int n_tokens, const float *x,
                    float *keys);
void multihead_keys_backward(const struct multihead *t, const float *w, int n_tokens,
                             const float *x, const float *dkeys, float *dx, float *grad);

/* How many floats of scratch n rows that ask n_tokens need. */
size_t multihead_scratch(const struct multihead *t, int n, int n_tokens);

/* A set as n rows ask it, and the slopes by what entered: 'dkeys' are added to, the others
 * overwritten.
 */
struct multihead_set {
    int n_tokens;
    const float *keys;
    const float *bias;    // (n_heads, n, n_tokens)
};

struct multihead_slopes {
    float *dx;    // (n, n_model)
    float *dkeys, *dbias;
};

/* x (n, n_model) -> y (n, n_model). Leaves in 'scratch' what backward needs. */
void multihead_forward(const struct multihead *t, const float *w, int n, const float *x,
                       const struct multihead_set *set, float *y, float *scratch);

/* dy -> 'slopes' and 'grad'. */
void multihead_backward(const struct multihead *t, const float *w, int n, const float *x,
                        const struct multihead_set *set, const float *dy,
                        const struct multihead_slopes *slopes, float *grad, float *scratch);

#endif

/* attention.h - each row asks one question of its own tokens.
 *
 * Scaled dot-product attention with n_heads heads: the query is projected to n_model
 * numbers, each token to a key and a value of n_model numbers each, and what the heads
 * gather is projected once more. As torch.nn.MultiheadAttention with embed_dim =
 * n_model, kdim = vdim = n_token, except that the query may be of any width.
 * A row without tokens gives zeros. What stands in place of an absent token must be
 * finite and has no effect. For shared habits see params.h.
 */
#ifndef NN_ATTENTION_H
#define NN_ATTENTION_H

#include <stddef.h>

#include "nn/dense.h"

struct tokens;

struct attention {
    int n_heads, n_model;      // n_heads divides n_model
    struct dense query;        // n_query -> n_model
    struct dense key_value;    // n_token -> key and value, 2 n_model
    struct dense out;          // n_model -> n_model
};

/* Claim room; draw weights from 'r' (NULL: zeros), biases are zero. */
void attention_init(struct attention *t, struct params *p, int n_query, int n_token, int n_model,
                    int n_heads, struct rng *r);

/* How many floats of scratch n rows of 'len' tokens need. */
size_t attention_scratch(const struct attention *t, int n, int len);

/* query (n, n_query), tokens of n_token numbers -> y (n, n_model). Leaves in 'scratch' what
 * backward needs.
 */
void attention_forward(const struct attention *t, const float *w, const float *query,
                       const struct tokens *in, float *y, float *scratch);

/* dy (n, n_model), and what went forward, -> dquery (n, n_query), dtokens
 * (n, len, n_token), each of which may be NULL, and 'grad'.
 */
void attention_backward(const struct attention *t, const float *w, const float *query,
                        const struct tokens *in, const float *dy, float *dquery, float *dtokens,
                        float *grad, float *scratch);

#endif

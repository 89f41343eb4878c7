/* gru.h - a gated recurrent layer that walks over the tokens of each row.
 *
 *     r = sigmoid(W_r x + b_r + U_r h + c_r)        h' = (1 - z) n + z h
 *     z = sigmoid(W_z x + b_z + U_z h + c_z)
 *     n = tanh(W_n x + b_n + r (U_n h + c_n))
 *
 * In the line of params: W (3 n_state, n_in), U (3 n_state, n_state), b (3 n_state),
 * c (3 n_state), each in the order r, z, n; as torch.nn.GRU. A token that is absent
 * leaves the state as it is; what stands in its place must be finite and has no effect.
 * For shared habits see params.h.
 */
#ifndef NN_GRU_H
#define NN_GRU_H

#include <stddef.h>

struct params;
struct rng;
struct tokens;

struct gru {
    int n_in, n_state;
    int at;    // where its numbers begin
};

/* Claim room; draw W and U gate by gate from 'r' (NULL: zeros), b and c are zero. */
void gru_init(struct gru *g, struct params *p, int n_in, int n_state, struct rng *r);

/* How many floats of scratch n rows of 'len' tokens need. */
size_t gru_scratch(const struct gru *g, int n, int len);

/* Tokens of n_in numbers -> h (n, n_state), the state after the last token. 'h0' (n, n_state): the
 * state before the first; NULL: zeros. Leaves in 'scratch' what backward needs.
 */
void gru_forward(const struct gru *g, const float *w, const struct tokens *in, const float *h0,
                 float *h, float *scratch);

/* dh (n, n_state), and what went forward, -> dx (n, len, n_in; may be NULL), dh0
 * (n, n_state; may be NULL) and 'grad'. Uses 'scratch' up: one backward for one forward.
 */
void gru_backward(const struct gru *g, const float *w, const struct tokens *in, const float *dh,
                  float *dx, float *dh0, float *grad, float *scratch);

#endif

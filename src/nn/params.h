/* params.h - all numbers of a network in one line, and the line of their gradients.
 *
 * Layers claim room here while a network is built and remember only their offset, so that
 * optimising, saving, averaging and checking work on one vector. Owns heap memory;
 * release when done. A claim may move 'w' and 'grad': take the pointers when the network
 * is complete.
 *
 * Habits of every layer of this room: matrices are row-major with shapes beside them; a
 * forward pass reads the weights from a 'const float *' line alone, so that threads may
 * share it; a backward pass overwrites gradients of inputs ('dx', which may be NULL where
 * nobody asks) and adds to gradients of weights ('grad', a line like the weights'; NULL
 * for a network that is not being trained); scratch comes from the caller, nothing is
 * allocated. Inputs and outputs do not overlap unless a function says so.
 */
#ifndef NN_PARAMS_H
#define NN_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

struct rng;

struct params {
    int n, cap;
    float *w, *grad;    // (n)
};

void params_init(struct params *p);
void params_release(struct params *p);

/* Room for 'n' more numbers, zero; returns the offset of the first. */
int params_claim(struct params *p, int n);

/* Draw 'n' numbers from 'at' on uniformly from +-sqrt(6 / (n_in + n_out)) (Glorot and
 * Bengio, 2010); with 'r' NULL leave them as they are.
 */
void params_draw(struct params *p, int at, int n, int n_in, int n_out, struct rng *r);

/* All gradients zero; before each batch. */
void params_clear(struct params *p);

/* Rows of tokens, some of which may be absent: what stands there must be finite and has no effect.
 */
struct tokens {
    int n, len;              // rows, and tokens of each
    const float *x;          // (n, len, what a layer takes)
    const bool *is_there;    // (n, len); NULL: all
};

static inline bool tokens_have(const struct tokens *in, size_t token)
{
    return in->is_there == NULL || in->is_there[token];
}

#endif

/* dense.h - a dense layer: y = x W' + b.
 *
 * In the line of params: W (n_out, n_in), then b (n_out); as torch.nn.Linear. For shared
 * habits see params.h.
 */
#ifndef NN_DENSE_H
#define NN_DENSE_H

struct params;
struct rng;

struct dense {
    int n_in, n_out;
    int at;    // where its numbers begin
};

/* Claim room; draw W from 'r' (NULL: zeros), b is zero. */
void dense_init(struct dense *d, struct params *p, int n_in, int n_out, struct rng *r);

/* x (n, n_in) -> y (n, n_out). */
void dense_forward(const struct dense *d, const float *w, int n, const float *x, float *y);

/* dy (n, n_out), and the x that went forward, -> dx (n, n_in; may be NULL) and 'grad'. */
void dense_backward(const struct dense *d, const float *w, int n, const float *x, const float *dy,
                    float *dx, float *grad);

#endif

/* norm.h - layer norm: each row to mean 0 and variance 1, then a scale and a shift.
 *
 * In the line of params: scale (n), then shift (n); as torch.nn.LayerNorm with its
 * epsilon of 1e-5. For shared habits see params.h.
 */
#ifndef NN_NORM_H
#define NN_NORM_H

struct params;

struct norm {
    int n;     // numbers in a row
    int at;    // where its numbers begin
};

/* Claim room; the scale is 1, the shift 0. */
void norm_init(struct norm *m, struct params *p, int n);

/* x (n_rows, n) -> y (n_rows, n); y may be x. */
void norm_forward(const struct norm *m, const float *w, int n_rows, const float *x, float *y);

/* dy, and the x that went forward, -> dx (may be NULL, may be dy) and 'grad'. */
void norm_backward(const struct norm *m, const float *w, int n_rows, const float *x,
                   const float *dy, float *dx, float *grad);

#endif

/* norm.h - layer normalisation: every row to mean 0 and spread 1, then a gain and a shift each.
 *
 * In the line of params: gain (n), then shift (n); as torch.nn.LayerNorm. For shared habits see
 * params.h.
 */
#ifndef NN_NORM_H
#define NN_NORM_H

struct params;

struct norm {
    int width;
    int at;    // where its numbers begin
};

/* Claim room; gains are 1, shifts 0. */
void norm_init(struct norm *l, struct params *p, int width);

/* x (n, width) -> y (n, width). */
void norm_forward(const struct norm *l, const float *w, int n, const float *x, float *y);

/* dy (n, width), and the x that went forward, -> dx and 'grad'. 'dx' may be 'dy'. */
void norm_backward(const struct norm *l, const float *w, int n, const float *x, const float *dy,
                   float *dx, float *grad);

#endif

/* activation.h - what stands between layers: silu, and exp.
 *
 * Plain loops over n numbers without branches, which gcc turns into vector code in
 * release builds; to 1e-6 relative of the real functions. Backward takes the x that
 * went forward. y may be x, and dx may be dy.
 */
#ifndef NN_ACTIVATION_H
#define NN_ACTIVATION_H

#include <stddef.h>

void silu_forward(size_t n, const float *x, float *y);    // x times sigmoid(x)
void silu_backward(size_t n, const float *x, const float *dy, float *dx);

/* e^x, for x kept within +-87 (what a float holds without denormals). */
void exp_forward(size_t n, const float *x, float *y);

#endif

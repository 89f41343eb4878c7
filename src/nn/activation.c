#include "nn/activation.h"

#include <stdint.h>
#include <string.h>

/* Every function below is arithmetic, comparisons that choose between two numbers, and
 * copies of bits: what gcc -O3 vectorises (see with -fopt-info-vec), once it is told that
 * nobody waits for a comparison of NaN to trap. expf would be a call per number. Lanes do
 * not mix, so the width of a vector does not change a result.
 */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("no-trapping-math")
#define SIDE_BY_SIDE _Pragma("GCC ivdep")    // y may be x, but no number needs another's result
#else
#define SIDE_BY_SIDE
#endif

/* Compiled twice, for any x86-64 and for those with AVX2, which take half the time; the
 * loader chooses. It does so before a sanitizer is ready, so not there.
 */
#if defined __GNUC__ && !defined __clang__ && defined __x86_64__ && \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define TWICE __attribute__((target_clones("avx2", "default")))
#else
#define TWICE
#endif

static inline uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* e^x = 2^k e^r with k whole and |r| <= ln 2 / 2. Adding and taking away 1.5 * 2^23 rounds
 * to a whole number, which then stands in the low bits of the sum. ln 2 is taken away in
 * two parts, the first short enough that k times it is exact. The series ends where its
 * next term is below 1e-8.
 *
 * x is kept within +-87 as an integer: of a choice between floats gcc makes two ways
 * through all that follows, and the one not taken, full of denormals, costs the most.
 */
static inline float exp_of(float x)
{
    const int32_t limit = 0x42ae0000;    // the bits of 87
    const float whole = 12582912.0f;     // 1.5 * 2^23
    const uint32_t sign = bits_of(x) & 0x80000000u;
    const int32_t size = (int32_t)(bits_of(x) & 0x7fffffffu);
    const uint32_t nan = size > 0x7f800000 ? 0x7fc00000u : 0;

    x = float_of(sign | (uint32_t)(size < limit ? size : limit));
    float shifted = x * 1.44269504f + whole;
    float k = shifted - whole;
    float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = (p * r) * r + r + 1.0f;
    float two_to_k = float_of((bits_of(shifted) << 23) + 0x3f800000u);    // k as the exponent
    return float_of(bits_of(p * two_to_k) | nan);
}

static inline float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_of(-x));
}

TWICE void silu_forward(size_t n, const float *x, float *y)
{
    SIDE_BY_SIDE
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * sigmoid_of(x[i]);
}

TWICE void silu_backward(size_t n, const float *x, const float *dy, float *dx)
{
    SIDE_BY_SIDE
    for (size_t i = 0; i < n; i++) {
        float s = sigmoid_of(x[i]);

        dx[i] = dy[i] * s * (1.0f + x[i] * (1.0f - s));
    }
}

TWICE void exp_forward(size_t n, const float *x, float *y)
{
    SIDE_BY_SIDE
    for (size_t i = 0; i < n; i++)
        y[i] = exp_of(x[i]);
}

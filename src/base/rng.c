#include "base/rng.h"

#include <assert.h>
#include <math.h>

/* Vigna's splitmix64: spreads one number over a generator's whole state. */
static uint64_t splitmix64(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void rng_init(struct rng *r, uint64_t seed, const char *purpose)
{
    uint64_t h = 0xcbf29ce484222325u;    // FNV-1a, 64 bits
    uint64_t x;

    for (const char *p = purpose; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    /* Mixing the seed before it meets the name keeps (seed, name) pairs apart. */
    x = splitmix64(&seed) ^ h;
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&x);
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s;
    const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double rng_uniform(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_between(struct rng *r, double low, double high)
{
    double v = low + (high - low) * rng_uniform(r);

    /* Rounding may reach 'high', which is outside. */
    return v < high || low == high ? v : nextafter(high, low);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    uint64_t bound, v;

    assert(n > 0);
    /* 2^64 mod n values too many at the bottom; drawing again removes the bias. */
    bound = (0 - n) % n;
    do {
        v = rng_u64(r);
    } while (v < bound);
    return v % n;
}

/* Marsaglia's polar method. Its twin is thrown away, so that the generator's state
 * is the four words and nothing else.
 */
double rng_normal(struct rng *r)
{
    double x, y, s;

    do {
        x = 2 * rng_uniform(r) - 1;
        y = 2 * rng_uniform(r) - 1;
        s = x * x + y * y;
    } while (s >= 1 || s == 0);
    return x * sqrt(-2 * log(s) / s);
}

double rng_exponential(struct rng *r, double mean)
{
    return -mean * log1p(-rng_uniform(r));
}

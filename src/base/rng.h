/* rng.h - chance, repeatable: one generator per purpose, each from the run's seed.
 *
 * xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64 from the seed and
 * the purpose's name. The same seed and purpose give the same sequence on every
 * machine (normal and exponential up to the last bit of its log()); a new purpose
 * never disturbs the others.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed, const char *purpose);

uint64_t rng_u64(struct rng *r);
double rng_uniform(struct rng *r);                             // in [0, 1)
double rng_between(struct rng *r, double low, double high);    // in [low, high)
uint64_t rng_below(struct rng *r, uint64_t n);                 // in [0, n), unbiased; n > 0
double rng_normal(struct rng *r);                              // mean 0, sd 1
double rng_exponential(struct rng *r, double mean);

#endif

/* stats.h - small summaries of many numbers. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stddef.h>

/* A growing list of samples. Owns heap memory; release when done. */
struct samples {
    double *v;
    int n, cap;
};

void samples_init(struct samples *s);
void samples_release(struct samples *s);
void samples_add(struct samples *s, double v);
double samples_mean(const struct samples *s);    // NaN when empty

/* The q-quantile (0..1) by linear interpolation between order statistics; sorts
 * the samples in place. NaN when empty.
 */
double samples_quantile(struct samples *s, double q);

#endif

/* stats.h - small summaries of many numbers. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

/* For qsort: doubles, the smallest first. */
int by_number(const void *a, const void *b);

/* A growing list of samples. Empty when zeroed; owns heap memory, so release when done. */
struct samples {
    double *v;
    int n, cap;
};

void samples_release(struct samples *s);
void samples_add(struct samples *s, double v);
double samples_mean(const struct samples *s);    // NaN when empty

/* The q-quantile (0..1) by linear interpolation between order statistics; sorts
 * the samples in place. NaN when empty.
 */
double samples_quantile(struct samples *s, double q);

#endif

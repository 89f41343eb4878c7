#include "base/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"

void samples_release(struct samples *s)
{
    free(s->v);
    *s = (struct samples){ 0 };
}

void samples_add(struct samples *s, double v)
{
    assert(!isnan(v));
    GROW(s->v, s->n, s->cap);
    s->v[s->n++] = v;
}

double samples_mean(const struct samples *s)
{
    double sum = 0;

    for (int i = 0; i < s->n; i++)
        sum += s->v[i];
    return s->n == 0 ? (double)NAN : sum / (double)s->n;
}

int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double samples_quantile(struct samples *s, double q)
{
    double at, part;
    int i;

    assert(q >= 0 && q <= 1);
    if (s->n == 0)
        return (double)NAN;
    qsort(s->v, (size_t)s->n, sizeof *s->v, by_number);
    at = q * (double)(s->n - 1);
    i = (int)at;
    part = at - (double)i;
    if (i + 1 >= s->n || part == 0)
        return s->v[i];
    return s->v[i] + part * (s->v[i + 1] - s->v[i]);
}

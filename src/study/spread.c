#include "study/spread.h"

#include <assert.h>
#include <math.h>

/* The 97.5 % quantile of the normal distribution. */
#define NORMAL 1.959963984540054

/* Up to 20 from a table (the integral of the density, solved to five digits); beyond it, four
 * terms of the expansion in 1/freedom (Fisher and Cornish), which is right to five digits there.
 */
double spread_student(int freedom)
{
    static const double table[] = { 12.70620, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462,
                                    2.30600,  2.26216, 2.22814, 2.20099, 2.17881, 2.16037, 2.14479,
                                    2.13145,  2.11991, 2.10982, 2.10092, 2.09302, 2.08596 };
    const int n_table = (int)(sizeof table / sizeof table[0]);
    const double z = NORMAL, n = freedom;
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;

    assert(freedom >= 1);
    if (freedom <= n_table)
        return table[freedom - 1];
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

struct spread spread_of(const double *v, int n)
{
    struct spread s = { .mean = (double)NAN,
                        .half = (double)NAN,
                        .low = (double)NAN,
                        .high = (double)NAN,
                        .from = (double)NAN,
                        .to = (double)NAN };
    double sum = 0, squares = 0;

    for (int i = 0; i < n; i++) {
        if (isnan(v[i]))
            continue;
        sum += v[i];
        s.low = s.n == 0 ? v[i] : fmin(s.low, v[i]);
        s.high = s.n == 0 ? v[i] : fmax(s.high, v[i]);
        s.n++;
    }
    if (s.n == 0)
        return s;
    s.mean = sum / s.n;
    if (s.n < 2)
        return s;
    for (int i = 0; i < n; i++)
        if (!isnan(v[i]))
            squares += (v[i] - s.mean) * (v[i] - s.mean);
    s.half = spread_student(s.n - 1) * sqrt(squares / (s.n - 1) / s.n);
    s.from = s.n < SPREAD_INTERVAL ? s.low : s.mean - s.half;
    s.to = s.n < SPREAD_INTERVAL ? s.high : s.mean + s.half;
    return s;
}

struct spread spread_within(struct spread s, double least, double most)
{
    if (s.n < 2)
        return s;
    s.from = fmin(fmax(s.from, least), most);
    s.to = fmin(fmax(s.to, least), most);
    return s;
}

bool spread_is_even(const struct spread *s)
{
    return s->n >= SPREAD_INTERVAL && s->from <= s->mean - s->half && s->to >= s->mean + s->half;
}

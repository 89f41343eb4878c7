#include "optimize/model/promise.h"

static double below(double z)
{
    return 0.5 * erfc(-z * M_SQRT1_2);
}

/* By how many standard deviations the need is above the median. */
static double above_median(double need, struct held h)
{
    double doubt = h.dev / h.mean;

    return log(need / h.mean) / doubt + doubt / 2;
}

double promise_missed(double need, struct held h, double miss)
{
    double all = 1 + miss;

    if (!(h.mean > 0))
        return all;
    if (!(h.dev > 0))
        return h.mean >= need                         ? 0
               : h.mean >= need * (1 - PROMISE_SHORT) ? 1 - h.mean / need
                                                      : all - h.mean / need;
    double z = above_median(need, h);
    if (z < -PROMISE_CERTAIN)
        return 0;
    double lacks = all * below(z) - h.mean / need * below(z - h.dev / h.mean);
    return lacks > 0 ? lacks : 0;
}

double promise_kept(double need, struct held h)
{
    if (!(h.dev > 0) || !(need > 0))
        return h.mean >= need * (1 - PROMISE_SHORT) ? 1 : 0;
    return 1 - below(above_median(need, h));
}

/* The largest need * (1 - promise_missed) that any need has, of a mean of 1 and PROMISE_MISS, by
 * doubt in steps; straight lines between them are above it (tests/unit/optimize/model).
 */
#define SURE_STEP 0.02

static const double sure_of[] = {
    1.00000, 0.95743, 0.92853, 0.90568, 0.88677, 0.87065, 0.85662, 0.84414, 0.83286,
    0.82250, 0.81283, 0.80371, 0.79499, 0.78659, 0.77842, 0.77043, 0.76257, 0.75480,
    0.74710, 0.73945, 0.73182, 0.72420, 0.71658, 0.70895, 0.70131, 0.69365, 0.68597,
    0.67826, 0.67052, 0.66274, 0.65494, 0.64711, 0.63924, 0.63134, 0.62341, 0.61546,
    0.60747, 0.59946, 0.59143, 0.58337, 0.57530, 0.56720, 0.55910, 0.55097, 0.54284,
    0.53470, 0.52656, 0.51841, 0.51026, 0.50212, 0.49398,
};

double promise_sure(struct held h, double miss)
{
    const int last = sizeof sure_of / sizeof sure_of[0] - 1;

    if (!(h.dev > 0) || !(h.mean > 0) || miss != PROMISE_MISS)
        return h.mean;    // what is expected is never less
    double at = h.dev / h.mean / SURE_STEP;
    int i = at < last ? (int)at : last;
    return h.mean * (i < last ? sure_of[i] + (at - i) * (sure_of[i + 1] - sure_of[i]) : sure_of[i]);
}

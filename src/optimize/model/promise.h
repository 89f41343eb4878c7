/* promise.h - what a promise is expected to miss, by what is believed of a speed and how surely.
 *
 * A speed is log-normal: it is held on average ('mean'), and the doubt about it is the standard
 * deviation of its logarithm. A promise of 'need' steps/s then misses
 *
 *     E[(1 - speed / need)+] + miss * P(speed < need)
 *
 * of itself: the part that lacks, and 'miss' for lacking anything at all. Without doubt and 'miss'
 * that is 1 - mean / need, where it is above 0. Read by: all who plan; the judge does it again for
 * itself.
 */
#ifndef OPTIMIZE_MODEL_PROMISE_H
#define OPTIMIZE_MODEL_PROMISE_H

#include <math.h>

/* What a place holds for a job. Parts of a job add up, each member by itself: they are in doubt
 * together.
 */
struct held {
    double mean;    // steps/s
    double dev;     // 'mean' times the doubt
};

static inline struct held held_add(struct held a, struct held b)
{
    return (struct held){ a.mean + b.mean, a.dev + b.dev };
}

static inline struct held held_less(struct held a, struct held b)
{
    return (struct held){ a.mean - b.mean, a.dev - b.dev };
}

static inline struct held held_times(struct held h, double factor)
{
    return (struct held){ h.mean * factor, h.dev * factor };
}

/* The same speed, with so much of the doubt about it. */
static inline struct held held_with(struct held h, double part)
{
    return (struct held){ h.mean, h.dev * part };
}

/* The lower end of what is believed: a standard deviation below. For people, and for policies that
 * ask whether a promise holds.
 */
static inline double held_low(struct held h)
{
    double doubt = h.dev > 0 ? h.dev / h.mean : 0;

    return h.dev > 0 ? h.mean * exp(-doubt - doubt * doubt / 2) : h.mean;
}

/* A mean that is below the need by a smaller part than this, and in no doubt, is enough: tables are
 * float.
 */
#define PROMISE_SHORT 1e-6

/* A promise that is so many standard deviations below what is believed is not missed at all. */
#define PROMISE_CERTAIN 6.0

/* The part of a promise that is expected to be missed, 0 to 1 + miss. 'need' is above 0. */
double promise_missed(double need, struct held h, double miss);

/* The chance that it is kept. */
double promise_kept(double need, struct held h);

/* The most that is certain to be missed of any promise is what this speed, held for sure, would
 * miss: promise_missed(need, h, miss) >= 1 - promise_sure(h, miss) / need, whatever the need.
 * Where prices are by one number for each slot, it is this.
 */
double promise_sure(struct held h, double miss);

/* What 'miss' is in all problems but those of files, where it is 0. */
#define PROMISE_MISS 0.2

/* The part of a doubt that promises are priced with, in the same problems. The rest does not last:
 * a place is measured within minutes, and who turns out to be too slow there is moved. Chosen on
 * the reference and on a modern cluster (docs/experiments.md, "Promises").
 */
#define PROMISE_LASTING 0.4

#endif

#include "catalog/drift.h"

#include <assert.h>
#include <math.h>

/* What the square of a standard normal number, at most CUSUM_CALM^2, is on average. */
#define CALM_MEAN 0.9205

/* By how much deviations are larger than stated, as a ratio of variances. Those far out must not
 * have much of a say, or a step would hide itself in the scatter that it makes; unless most are
 * far out: then the noise is simply larger than stated.
 */
static double excess_of(const struct cusum *c, int n, double excess)
{
    double calm = n > 1 ? (double)c->calm / (CALM_MEAN * (n - 1)) : 1;

    return fmax(1, calm < 2.5 ? fmin(calm, excess) : excess);
}

bool cusum_add(struct cusum *c, int n, double excess, double deviation)
{
    double z = deviation / sqrt(excess_of(c, n, excess));
    double calm = fmin(fabs(deviation), CUSUM_CALM);

    z = fmax(-CUSUM_CLIP, fmin(CUSUM_CLIP, z));
    c->up = (float)fmax(0, (double)c->up + z - CUSUM_SLACK);
    c->down = (float)fmax(0, (double)c->down - z - CUSUM_SLACK);
    c->calm += (float)(calm * calm);
    if ((double)c->up <= CUSUM_LIMIT && (double)c->down <= CUSUM_LIMIT)
        return false;
    *c = (struct cusum){ 0 };
    return true;
}

/* Drop entry 'i'; those behind it move up. */
static void forget(struct drift_watch *w, int i)
{
    for (w->n_cells--; i < w->n_cells; i++) {
        w->other[i] = w->other[i + 1];
        w->seen_at[i] = w->seen_at[i + 1];
        w->at_s[i] = w->at_s[i + 1];
    }
}

bool drift_watch_note(struct drift_watch *w, int other, int n_needed, double time_s)
{
    assert(n_needed > 0 && n_needed <= DRIFT_CELLS_MAX);
    for (int i = w->n_cells - 1; i >= 0; i--)
        if (w->other[i] == other || w->n_seen - w->seen_at[i] > DRIFT_RUN)
            forget(w, i);
    w->other[w->n_cells] = other;
    w->at_s[w->n_cells] = time_s;
    w->seen_at[w->n_cells++] = w->n_seen;
    if (w->n_cells < n_needed)
        return false;
    w->n_drifts++;
    w->last_s = w->since_s = time_s;
    for (int i = 0; i < w->n_cells; i++)
        w->since_s = fmin(w->since_s, w->at_s[i]);
    w->n_cells = 0;
    return true;
}

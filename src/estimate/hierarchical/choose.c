#include "estimate/hierarchical/choose.h"

#include <math.h>
#include <stddef.h>

#include "base/err.h"
#include "estimate/hierarchical/posterior.h"

static struct cell_belief ask(struct posterior *p, const struct reading *of)
{
    return posterior_ask(p, of->of, of->type, of->job, of->neighbour);
}

static double mean_sd(struct posterior *p, const struct reading *targets, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += ask(p, &targets[i]).sd;
    return n > 0 ? sum / n : 0;
}

/* The same once the candidate was read, as what is believed of it; the value changes means only. */
static double mean_sd_after(struct posterior *p, const struct reading *candidate,
                            const struct reading *targets, int n, double before)
{
    struct reading read = *candidate;
    int n_known = posterior_n(p);
    struct err e;

    read.value = (float)ask(p, candidate).mean;
    if (posterior_add(p, &read, &e) < 0)
        return before;
    double after = mean_sd(p, targets, n);
    posterior_truncate(p, n_known);
    return after;
}

int posterior_choose(struct posterior *p, const struct reading *candidates, int n_candidates,
                     const struct reading *targets, int n_targets, double *gain)
{
    double before = mean_sd(p, targets, n_targets), most = -INFINITY;
    int best = -1;

    for (int i = 0; i < n_candidates; i++) {
        double one = before - mean_sd_after(p, &candidates[i], targets, n_targets, before);
        if (one > most) {
            most = one;
            best = i;
        }
    }
    if (gain)
        *gain = best < 0 ? 0 : most;
    return best;
}

#include "estimate/hierarchical/choose.h"

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

/* Take it in as what is believed of it; the value changes means only. */
static void suppose(struct posterior *p, const struct reading *candidate)
{
    struct reading read = *candidate;
    struct err ignored;

    read.value = (float)ask(p, candidate).mean;
    (void)posterior_add(p, &read, &ignored);
}

void posterior_suppose(struct posterior *p, const struct reading_group *g)
{
    for (int i = 0; i < g->n; i++)
        if (posterior_find(p, g->r[i].type, g->r[i].job, g->r[i].neighbour) < 0)
            suppose(p, &g->r[i]);
}

/* The best so far, of candidates or of groups. */
struct best_choice {
    int at;    // -1: none
    double gain;
};

/* The i-th has been supposed: by how much does the mean fall? Forget it again. */
static void consider(struct posterior *p, int i, int n_known, double before,
                     const struct reading *targets, int n, struct best_choice *best)
{
    double gain = before - mean_sd(p, targets, n);

    posterior_truncate(p, n_known);
    if (best->at < 0 || gain > best->gain)
        *best = (struct best_choice){ i, gain };
}

int posterior_choose(struct posterior *p, const struct reading *candidates, int n_candidates,
                     const struct reading *targets, int n_targets, double *gain)
{
    struct best_choice best = { -1, 0 };
    double before = mean_sd(p, targets, n_targets);
    int n_known = posterior_n(p);

    for (int i = 0; i < n_candidates; i++) {
        suppose(p, &candidates[i]);
        consider(p, i, n_known, before, targets, n_targets, &best);
    }
    if (gain)
        *gain = best.gain;
    return best.at;
}

int posterior_choose_group(struct posterior *p, const struct reading_group *groups, int n_groups,
                           const struct reading *targets, int n_targets, double *gain)
{
    struct best_choice best = { -1, 0 };
    double before = mean_sd(p, targets, n_targets);
    int n_known = posterior_n(p);

    for (int i = 0; i < n_groups; i++) {
        posterior_suppose(p, &groups[i]);
        consider(p, i, n_known, before, targets, n_targets, &best);
    }
    if (gain)
        *gain = best.gain;
    return best.at;
}

#include "refine/p2_inner.h"

#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"

/* Cells are those of evidence of speeds: types alone, then pairs. */

/* The mean sd of types alone, plus that of pairs. */
static double mean_sds(const struct p2_estimates *b, const double *variance)
{
    int n_pairs = b->n_types * b->n_neighbours;
    double alone = 0, pair = 0;

    for (int g = 0; g < b->n_types; g++)
        alone += sqrt(fmax(variance[g], 0));
    for (int c = 0; c < n_pairs; c++)
        pair += sqrt(fmax(variance[b->n_types + c], 0));
    return (b->n_types ? alone / b->n_types : 0) + (n_pairs ? pair / n_pairs : 0);
}

/* The variance of each cell: before anything was seen, then without what the evidence takes. */
static double *spread_of(struct arena *a, const struct p2_estimates *b, const struct evidence *v)
{
    double *variance = ARENA_ARRAY(a, double, (size_t)v->n_targets);

    for (int t = 0; t < v->n_targets; t++) {
        double sd = (double)(t < b->n_types ? b->alone_sd[t] : b->pair_sd[t - b->n_types]);
        variance[t] = sd * sd;
    }
    for (int o = 0; o < v->n; o++)
        for (int t = 0; t < v->n_targets; t++) {
            double whole = p2_whole(b, v->white + (size_t)o * (size_t)v->n_targets, t);
            variance[t] -= whole * whole;
        }
    return variance;
}

/* The mean sds that a measurement of cell 'at' would leave of 'before'. 'k' (n_targets): its
 * covariance with all targets, which here loses what the evidence knows already. 'after'
 * (n_targets) is for scratch.
 */
static double expected(const struct p2_estimates *b, const struct evidence *v, const double *before,
                       int at, double *k, double *after)
{
    for (int o = 0; o < v->n; o++) {
        const double *white = v->white + (size_t)o * (size_t)v->n_targets;
        double by = p2_whole(b, white, at);
        for (int t = 0; t < v->n_targets; t++)
            k[t] -= by * white[t];
    }
    double var =
        fmax(p2_whole(b, k, at), 0) + CATALOG_NOISE * CATALOG_NOISE + REFINE_NOISE * REFINE_NOISE;
    for (int t = 0; t < v->n_targets; t++) {
        double whole = p2_whole(b, k, t);
        after[t] = before[t] - whole * whole / var;
    }
    return mean_sds(b, after);
}

int p2_choose(struct arena *a, const struct p2 *p, const struct p2_estimates *prior,
              const struct p2_sightings *seen, const struct p2_sightings *allowed, double *gain,
              struct err *e)
{
    const struct relations *r = p2_relations(p, prior);
    struct evidence known, asked;
    int best = -1;
    double least = INFINITY;

    evidence_of_speeds(a, r, seen, prior, &known);
    int rc = evidence_weigh(a, &known, e);
    if (rc < 0)
        return rc;
    const double *before = spread_of(a, prior, &known);
    double *after = ARENA_ARRAY(a, double, (size_t)known.n_targets);
    for (int i = 0; i < allowed->n; i++) {
        struct p2_observation one = { .type = allowed->list[i].type,
                                      .neighbour = allowed->list[i].neighbour };
        evidence_of_speeds(a, r, &(struct p2_sightings){ 1, &one }, prior, &asked);
        int at = one.neighbour < 0
                     ? one.type
                     : prior->n_types + one.type * prior->n_neighbours + one.neighbour;
        double error = expected(prior, &known, before, at, asked.k, after);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    if (gain && best >= 0)
        *gain = mean_sds(prior, before) - least;
    return best;
}

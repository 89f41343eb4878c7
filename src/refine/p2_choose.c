#include "refine/p2_inner.h"

#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"

/* Variances given what was seen: of the job's own speed on each type, and of each pair. */
struct variances {
    double *alone;    // (n_types)
    double *pair;     // (n_types, n_neighbours)
};

static double mean_sd(const double *variance, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += sqrt(fmax(variance[i], 0));
    return n ? sum / n : 0;
}

/* Before anything was seen, then without what the evidence takes. */
static void spread_of(struct arena *a, const struct p2_estimates *b, const struct evidence *v,
                      struct variances *out)
{
    int n = b->n_neighbours;

    out->alone = ARENA_ARRAY(a, double, (size_t)b->n_types);
    out->pair = ARENA_ARRAY(a, double, (size_t)(b->n_types * n));
    for (int g = 0; g < b->n_types; g++) {
        out->alone[g] = (double)b->alone_sd[g] * (double)b->alone_sd[g];
        for (int c = g * n; c < (g + 1) * n; c++)
            out->pair[c] = (double)b->pair_sd[c] * (double)b->pair_sd[c];
    }
    for (int o = 0; o < v->n; o++) {
        const double *white = v->white + (size_t)o * (size_t)v->n_targets;
        for (int g = 0; g < b->n_types; g++) {
            out->alone[g] -= white[g] * white[g];
            for (int c = g * n; c < (g + 1) * n; c++)
                out->pair[c] -=
                    (white[g] + white[b->n_types + c]) * (white[g] + white[b->n_types + c]);
        }
    }
}

/* What an observation of a cell sees, in a row over targets: its type's, and its own if it has one.
 */
static double seen_in(const struct p2_estimates *b, const double *row,
                      const struct p2_observation *at)
{
    double cell =
        at->neighbour < 0 ? 0 : row[b->n_types + at->type * b->n_neighbours + at->neighbour];

    return row[at->type] + cell;
}

/* The mean sds that a measurement of 'at' would leave. 'k' (n_targets): its covariance with all
 * targets, which here loses what the evidence knows already.
 */
static double expected(const struct p2_estimates *b, const struct evidence *v,
                       const struct variances *before, const struct p2_observation *at, double *k,
                       struct variances *after)
{
    int n = b->n_neighbours;

    for (int o = 0; o < v->n; o++) {
        const double *white = v->white + (size_t)o * (size_t)v->n_targets;
        double by = seen_in(b, white, at);
        for (int t = 0; t < v->n_targets; t++)
            k[t] -= by * white[t];
    }
    double var =
        fmax(seen_in(b, k, at), 0) + CATALOG_NOISE * CATALOG_NOISE + REFINE_NOISE * REFINE_NOISE;
    for (int g = 0; g < b->n_types; g++) {
        after->alone[g] = before->alone[g] - k[g] * k[g] / var;
        for (int c = g * n; c < (g + 1) * n; c++) {
            double both = k[g] + k[b->n_types + c];
            after->pair[c] = before->pair[c] - both * both / var;
        }
    }
    return mean_sd(after->alone, b->n_types) + mean_sd(after->pair, b->n_types * n);
}

int p2_choose(struct arena *a, const struct p2 *p, const struct p2_estimates *prior,
              const struct p2_sightings *seen, const struct p2_sightings *allowed, double *gain,
              struct err *e)
{
    const struct relations *r = p2_relations(p, prior);
    struct evidence known, asked;
    struct variances before, after;
    int best = -1;
    double least = INFINITY;

    evidence_of_speeds(a, r, seen, prior, &known);
    int rc = evidence_weigh(a, &known, e);
    if (rc < 0)
        return rc;
    spread_of(a, prior, &known, &before);
    spread_of(a, prior, &known, &after);
    for (int i = 0; i < allowed->n; i++) {
        struct p2_observation one = { .type = allowed->list[i].type,
                                      .neighbour = allowed->list[i].neighbour };
        evidence_of_speeds(a, r, &(struct p2_sightings){ 1, &one }, prior, &asked);
        double error = expected(prior, &known, &before, &one, asked.k, &after);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    if (gain && best >= 0)
        *gain = mean_sd(before.alone, prior->n_types) +
                mean_sd(before.pair, prior->n_types * prior->n_neighbours) - least;
    return best;
}

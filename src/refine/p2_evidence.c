#include "refine/p2_inner.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"

/* Alike neighbours are asked for on so many types at most, spread over all: their mean is the
 * same whatever types two cells are on, which keeps the covariance one.
 */
#define LIKE_TYPES 3

/* How many surprises as large as expected P1's uncertainty counts as, before anything was seen. */
#define TRUSTED 4.0

double p2_same(const struct p2_estimates *b, int type, int other)
{
    if (!b->context || type == other)
        return type == other;
    return features_same_type(p1_features(b->context, b->workload, type),
                              p1_features(b->context, b->workload, other));
}

double p2_like(const struct p2_estimates *b, int neighbour, int other)
{
    int who = b->neighbour[neighbour], whom = b->neighbour[other];
    int n = b->n_types < LIKE_TYPES ? b->n_types : LIKE_TYPES;
    double sum = 0;

    if (!b->context || who == whom)
        return who == whom;
    for (int i = 0; i < n; i++)
        sum += p1_like(b->context, i * b->n_types / n, who, whom);
    return sum / n;
}

static size_t n_cells(const struct p2_estimates *b)
{
    return (size_t)b->n_types * (size_t)b->n_neighbours;
}

static void evidence_make(struct arena *a, int n_max, size_t n_targets,
                          const struct p2_estimates *b, struct evidence *out)
{
    size_t n = (size_t)n_max, n_types = (size_t)b->n_types;

    *out = (struct evidence){
        .n_targets = (int)n_targets,
        .type = ARENA_ARRAY(a, int, n),
        .beside = ARENA_ARRAY(a, int, n),
        .y = ARENA_ARRAY(a, double, n),
        .noise = ARENA_ARRAY(a, double, n),
        .same = ARENA_ARRAY(a, double, n_types *n_types),
        .like = ARENA_ARRAY(a, double, n *(size_t)b->n_neighbours),
        .k_oo = ARENA_ARRAY(a, double, n *n),
        .sd = ARENA_ARRAY(a, double, n),
        .k = ARENA_ARRAY(a, double, n *n_targets),
    };
    for (int g = 0; g < b->n_types; g++)
        for (int h = 0; h <= g; h++)
            out->same[g * b->n_types + h] = out->same[h * b->n_types + g] = p2_same(b, g, h);
}

static void add_surprise(struct evidence *v, const struct p2_observation *seen, double y,
                         double var)
{
    v->type[v->n] = seen->type;
    v->beside[v->n] = seen->neighbour;
    v->y[v->n] = y;
    v->noise[v->n++] = var;
}

static void find_likes(const struct p2_estimates *b, struct evidence *v)
{
    int n = b->n_neighbours;

    for (int o = 0; o < v->n; o++) {
        int twin = 0;    // beside the same neighbour, on another type
        while (v->beside[twin] != v->beside[o])
            twin++;
        if (twin < o && n > 0)
            memcpy(v->like + o * n, v->like + twin * n, (size_t)n * sizeof *v->like);
        for (int j = 0; j < n && twin == o && v->beside[o] >= 0; j++)
            v->like[o * n + j] = p2_like(b, j, v->beside[o]);
    }
}

/* Covariances of surprise 'o' with an error that each type has. */
static void fill_types(const struct evidence *v, int o, double unlike, const struct p2_estimates *b,
                       const float *sd, double *k)
{
    const double *same = v->same + v->type[o] * b->n_types;

    for (int g = 0; g < b->n_types; g++)
        k[g] = (double)sd[v->type[o]] * (double)sd[g] * p2_mix(unlike, same[g]);
}

/* The same with an error that each cell beside a neighbour has. */
static void fill_cells(const struct evidence *v, int o, const struct effect *f,
                       const struct p2_estimates *b, const float *sd, double *k)
{
    int n = b->n_neighbours, cell = v->type[o] * n + v->beside[o];
    const double *like = v->like + o * n;

    for (int g = 0; g < b->n_types; g++) {
        double scale = (double)sd[cell] * p2_mix(f->types, v->same[v->type[o] * b->n_types + g]);
        for (int j = 0; j < n; j++)
            k[g * n + j] = (double)sd[g * n + j] * scale * (f->common + f->like * like[j]);
    }
    k[cell] += f->cell * (double)sd[cell] * (double)sd[cell];
}

/* Bounded so that the whole stays a covariance: it must fit between the parts of both that types
 * do not share.
 */
double p2_coupling(const struct relations *r, const struct p2_estimates *b)
{
    double most = 0.95 * sqrt((1 - r->alone) * (1 - r->own.types) * r->own.common);

    return b->context ? fmin(fmax(p1_cross(b->context, b->regime), -most), most) : 0;
}

/* Covariances of surprise 'o' with errors of the other kind: of its type's speed with what each
 * neighbour does there, and of what its neighbour does with each type's speed.
 */
static void fill_across(const struct evidence *v, int o, double cross, const struct p2_estimates *b,
                        double *k)
{
    int n = b->n_neighbours, type = v->type[o];
    double alone = cross * (double)b->alone_sd[type];
    double own = v->beside[o] < 0 ? 0 : cross * (double)b->own_sd[type * n + v->beside[o]];

    for (int g = 0; g < b->n_types && cross != 0; g++) {
        double same = v->same[type * b->n_types + g];
        k[g] += own * (double)b->alone_sd[g] * same;
        for (int j = 0; j < n; j++)
            k[b->n_types + g * n + j] += alone * (double)b->own_sd[g * n + j] * same;
    }
}

/* Surprises are sums of targets, so their covariance is one of sums. 'n_own' targets are the
 * types' own; a surprise is its type's where there are such, and its cell's where it has one.
 */
static void sum_up(const struct p2_estimates *b, int n_own, struct evidence *v)
{
    for (int o = 0; o < v->n; o++) {
        for (int p = 0; p < v->n; p++) {
            const double *k = v->k + (size_t)o * (size_t)v->n_targets;
            double own = n_own ? k[v->type[p]] : 0;
            double cell =
                v->beside[p] < 0 ? 0 : k[n_own + v->type[p] * b->n_neighbours + v->beside[p]];
            v->k_oo[o * v->n + p] = own + cell;
        }
        v->k_oo[o * v->n + o] += v->noise[o];
        v->sd[o] = sqrt(v->k_oo[o * v->n + o]);
    }
}

void evidence_of_speeds(struct arena *a, const struct relations *r, const struct p2_sightings *seen,
                        const struct p2_estimates *b, struct evidence *out)
{
    evidence_make(a, seen->n, (size_t)b->n_types + n_cells(b), b, out);
    for (int i = 0; i < seen->n; i++) {
        const struct p2_observation *it = &seen->list[i];
        int type = it->type, beside = it->neighbour;
        double believed = (double)b->alone[type];
        if (isnan(it->ln_speed))
            continue;
        if (beside >= 0)
            believed += (double)b->own[type * b->n_neighbours + beside];
        add_surprise(out, it, it->ln_speed - believed,
                     it->ln_speed_var + REFINE_NOISE * REFINE_NOISE);
    }
    find_likes(b, out);
    for (int o = 0; o < out->n; o++) {
        double *k = out->k + (size_t)o * (size_t)out->n_targets;
        fill_types(out, o, r->alone, b, b->alone_sd, k);
        if (out->beside[o] >= 0)
            fill_cells(out, o, &r->own, b, b->own_sd, k + b->n_types);
        fill_across(out, o, p2_coupling(r, b), b, k);
    }
    sum_up(b, b->n_types, out);
}

void evidence_of_partners(struct arena *a, const struct relations *r,
                          const struct p2_sightings *seen, const struct p2_estimates *b,
                          struct evidence *out)
{
    evidence_make(a, seen->n, n_cells(b), b, out);
    for (int i = 0; i < seen->n; i++) {
        const struct p2_observation *it = &seen->list[i];
        if (it->neighbour < 0 || isnan(it->ln_r_partner))
            continue;
        int cell = it->type * b->n_neighbours + it->neighbour;
        add_surprise(out, it, it->ln_r_partner - (double)b->partner[cell],
                     it->ln_r_partner_var + REFINE_NOISE * REFINE_NOISE);
    }
    find_likes(b, out);
    for (int o = 0; o < out->n; o++)
        fill_cells(out, o, &r->partner, b, b->partner_sd,
                   out->k + (size_t)o * (size_t)out->n_targets);
    sum_up(b, 0, out);
}

void evidence_of_watts(struct arena *a, const struct relations *r, const struct p2_sightings *seen,
                       const struct p2_estimates *b, struct evidence *out)
{
    evidence_make(a, seen->n, (size_t)b->n_types, b, out);
    for (int i = 0; i < seen->n; i++) {
        const struct p2_observation *it = &seen->list[i];
        if (it->neighbour < 0 && !isnan(it->ln_watts))
            add_surprise(out, it, it->ln_watts - (double)b->watts[it->type],
                         CATALOG_NOISE * CATALOG_NOISE);
    }
    for (int o = 0; o < out->n; o++)
        fill_types(out, o, r->watts, b, b->watts_sd, out->k + (size_t)o * (size_t)b->n_types);
    sum_up(b, b->n_types, out);
}

/* ---- gains ---- */

/* k = l l', with l in the lower half of k. False: k is not positive definite. */
static bool factor(int n, double *k)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = k[i * n + j];
            for (int m = 0; m < j; m++)
                sum -= k[i * n + m] * k[j * n + m];
            if (i == j && !(sum > 0 && isfinite(sum)))
                return false;
            k[i * n + j] = i == j ? sqrt(sum) : sum / k[j * n + j];
        }
    return true;
}

/* The squares of independent surprises, each of variance 1 where the covariance is right: with l
 * the factor, the sum of squares of l^-1 y.
 */
static double squares(struct arena *a, int n, const double *l, const double *y)
{
    double *w = ARENA_ARRAY(a, double, (size_t)n), sum = 0;

    memcpy(w, y, (size_t)n * sizeof *w);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, l, n, w, 1);
    for (int i = 0; i < n; i++)
        sum += w[i] * w[i];
    return sum;
}

int evidence_doubt(struct arena *a, struct evidence *v, double *doubt, struct err *e)
{
    size_t n = (size_t)v->n;
    double *l = ARENA_ARRAY(a, double, n *n);

    *doubt = 1;
    memcpy(l, v->k_oo, n * n * sizeof *l);
    if (!factor(v->n, l))
        return err_set(e, EDOM, "the covariance of %d measurements is not positive definite", v->n);
    double seen = (TRUSTED + squares(a, v->n, l, v->y)) / (TRUSTED + v->n);
    if (seen <= 1)
        return 0;
    *doubt = seen;
    for (size_t i = 0; i < n * (size_t)v->n_targets; i++)
        v->k[i] *= seen;
    for (size_t i = 0; i < n * n; i++) {
        double noise = i % (n + 1) == 0 ? v->noise[i / (n + 1)] : 0;
        v->k_oo[i] = (v->k_oo[i] - noise) * seen + noise;
    }
    for (size_t i = 0; i < n; i++)
        v->sd[i] = sqrt(v->k_oo[i * n + i]);
    return 0;
}

int evidence_weigh(struct arena *a, struct evidence *v, struct err *e)
{
    size_t n = (size_t)v->n, n_targets = (size_t)v->n_targets, bytes = n * n_targets * sizeof *v->k;

    v->white = ARENA_ARRAY(a, double, n *n_targets);
    v->gain = ARENA_ARRAY(a, double, n *n_targets);
    if (!factor(v->n, v->k_oo))
        return err_set(e, EDOM, "the covariance of %d measurements is not positive definite", v->n);
    if (bytes == 0)
        return 0;
    memcpy(v->white, v->k, bytes);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, v->n,
                v->n_targets, 1, v->k_oo, v->n, v->white, v->n_targets);
    memcpy(v->gain, v->white, bytes);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, v->n, v->n_targets,
                1, v->k_oo, v->n, v->gain, v->n_targets);
    return 0;
}

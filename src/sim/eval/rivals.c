#include "sim/eval/rivals.h"

#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "estimate/hierarchical/effects.h"

/* Of a type's mean: as many readings of all types count beside its own. */
#define MEAN_RIDGE 2.0

/* An intercept is nearly free. */
#define INTERCEPT_RIDGE 0.01

static int n_features(const struct rival *r, enum rival_part part)
{
    if (r->way == RIVAL_MEAN)
        return 1 + r->site->n_types;
    return 1 + (part == RIVAL_ALONE ? (int)ALONE_X : (int)BESIDE_X);
}

static void make(struct arena *a, enum rival_way way, const struct site *s, struct rival *out)
{
    int most = s->n_types > (int)ALONE_X ? s->n_types : (int)ALONE_X;

    *out = (struct rival){ .way = way, .site = s };
    out->x = ARENA_ARRAY(a, double, 1 + (size_t)most);
}

static void fill_features(const struct rival *r, enum rival_part part, const struct reading *at)
{
    double *x = r->x;

    memset(x, 0, (size_t)n_features(r, part) * sizeof *x);
    x[0] = 1;
    if (r->way == RIVAL_MEAN) {
        x[1 + at->type] = 1;
        return;
    }
    struct effects e = effects_of(r->site, at);
    if (part == RIVAL_ALONE)
        memcpy(x + 1, e.alone, sizeof e.alone);
    else
        memcpy(x + 1, e.beside, sizeof e.beside);
}

static double line(const struct rival *r, enum rival_part part, const struct reading *at)
{
    double sum = 0;

    fill_features(r, part, at);
    for (int i = 0; i < n_features(r, part); i++)
        sum += r->weight[part][i] * r->x[i];
    return sum;
}

/* Is anything of this part in a reading? */
static bool tells(const struct reading *at, enum rival_part part)
{
    return part == RIVAL_ALONE ? at->of != READ_SLOWDOWN : at->of == READ_SLOWDOWN;
}

/* What it says of the part, where that is known by now of a packed one. */
static double value_of(const struct rival *r, const struct reading *at)
{
    return (double)at->value - (at->of == READ_PACKED ? line(r, RIVAL_BESIDE, at) : 0);
}

/* One part's weights, from all readings but those of family 'without' (-1: from all). */
static void fit_part(struct arena *a, struct rival *r, enum rival_part part,
                     const struct reading *list, int n, int without)
{
    int p = n_features(r, part);
    double *gram = ARENA_ARRAY(a, double, (size_t)p *(size_t)p),
           *w = ARENA_ARRAY(a, double, (size_t)p);
    const double *x = r->x;

    for (int i = 0; i < n; i++) {
        if (!tells(&list[i], part) || r->site->family[list[i].job] == without)
            continue;
        double value = value_of(r, &list[i]);
        fill_features(r, part, &list[i]);
        for (int k = 0; k < p; k++) {
            w[k] += x[k] * value;
            for (int l = 0; l <= k; l++)
                gram[k * p + l] += x[k] * x[l];
        }
    }
    for (int k = 0; k < p; k++)
        gram[k * p + k] += k == 0 ? INTERCEPT_RIDGE : r->ridge[part];
    if (LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', p, 1, gram, p, w, 1) != 0)
        memset(w, 0, (size_t)p * sizeof *w);
    r->weight[part] = w;
}

void rival_fit(struct arena *a, enum rival_way way, const struct site *s, const double *ridge,
               const struct reading *list, int n, struct rival *out)
{
    make(a, way, s, out);
    for (int part = 0; part < RIVAL_PARTS; part++)
        out->ridge[part] = way == RIVAL_MEAN ? MEAN_RIDGE : ridge[part];
    fit_part(a, out, RIVAL_BESIDE, list, n, -1);
    fit_part(a, out, RIVAL_ALONE, list, n, -1);
}

double rival_ask(const struct rival *r, enum reading_of of, int type, int job, int neighbour)
{
    const struct reading at = {
        .of = of, .type = type, .job = job, .neighbour = of == READ_ALONE ? -1 : neighbour
    };
    double sum = 0;

    if (of != READ_SLOWDOWN)
        sum += line(r, RIVAL_ALONE, &at);
    if (of != READ_ALONE)
        sum += line(r, RIVAL_BESIDE, &at);
    return sum;
}

/* ---- the ridge ---- */

/* The sum of squares by which readings of each family were missed by the others'. */
static double missed(struct arena *a, struct rival *r, enum rival_part part,
                     const struct reading *list, int n)
{
    const int *family = r->site->family;
    bool *is_done = ARENA_ARRAY(a, bool, (size_t)r->site->n_families);
    double sum = 0;

    for (int i = 0; i < n; i++) {
        int out = family[list[i].job];
        if (!tells(&list[i], part) || is_done[out])
            continue;
        is_done[out] = true;
        fit_part(a, r, part, list, n, out);
        for (int k = i; k < n; k++) {
            if (!tells(&list[k], part) || family[list[k].job] != out)
                continue;
            double off = value_of(r, &list[k]) - line(r, part, &list[k]);
            sum += off * off;
        }
    }
    return sum;
}

static double best_ridge(struct rival *r, enum rival_part part, const struct reading *list, int n)
{
    static const double tried[] = { 30, 10, 3, 1, 0.3, 0.1, 0.03 };    // of equals the first
    double least = INFINITY, best = 0;
    struct arena scratch;

    arena_init(&scratch);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        r->ridge[part] = tried[i];
        double off = missed(&scratch, r, part, list, n);
        best = off < least ? tried[i] : best;
        least = fmin(off, least);
        arena_reset(&scratch);
    }
    arena_release(&scratch);
    return best;
}

void rival_choose(struct arena *a, const struct site *s, const struct reading *list, int n,
                  double ridge[RIVAL_PARTS])
{
    struct rival r;

    make(a, RIVAL_RIDGE, s, &r);
    ridge[RIVAL_BESIDE] = best_ridge(&r, RIVAL_BESIDE, list, n);
    r.ridge[RIVAL_BESIDE] = ridge[RIVAL_BESIDE];
    fit_part(a, &r, RIVAL_BESIDE, list, n, -1);
    ridge[RIVAL_ALONE] = best_ridge(&r, RIVAL_ALONE, list, n);
}

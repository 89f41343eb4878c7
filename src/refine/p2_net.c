#include "refine/p2_inner.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "nn/activation.h"

/* Bounds of what the network may do: a gain from nothing to twice what it was, and a variance
 * between a third and three times.
 */
#define GAMMA_MAX 1.0f
#define DELTA_MAX 1.1f

void gain_net_init(struct gain_net *net, struct rng *r)
{
    struct params *p = &net->params;

    params_init(p);
    dense_init(&net->target_in, p, GAIN_TARGET_IN, GAIN_HIDDEN, r);
    dense_init(&net->target_out, p, GAIN_HIDDEN, GAIN_RANK, r);
    dense_init(&net->target_width, p, GAIN_HIDDEN, 1, NULL);
    dense_init(&net->sighting_in, p, GAIN_SIGHTING_IN, GAIN_HIDDEN, r);
    dense_init(&net->sighting_out, p, GAIN_HIDDEN, GAIN_RANK + GAIN_FIGURES, NULL);
}

void gain_net_release(struct gain_net *net)
{
    params_release(&net->params);
}

/* ---- inputs ---- */

static float bounded(double x, double most)
{
    return (float)fmin(fmax(x, -most), most);
}

/* Root mean square of surprises in units of what was to be expected. */
static float overall(const struct evidence *v)
{
    double sum = 0;

    for (int o = 0; o < v->n; o++)
        sum += v->y[o] * v->y[o] / (v->sd[o] * v->sd[o]);
    return bounded(sqrt(sum / v->n), 4);
}

static float *put_shares(const struct p1_context *s, int workload, int type, float *x)
{
    static const float none[FEATURE_SHARES];

    memcpy(x, workload < 0 ? none : p1_features(s, workload, type)->share, sizeof none);
    return x + FEATURE_SHARES;
}

/* What both inputs tell of a cell (beside -1: alone): 12 numbers. */
static float *put_cell(const struct p2_estimates *b, int type, int beside, float *x)
{
    const struct p1_context *s = b->context;

    *x++ = beside >= 0;
    *x++ = beside >= 0 ? b->own[type * b->n_neighbours + beside] : 0;
    *x++ = b->regime == REGIME_KIN ? 1 : -1;
    *x++ = p1_features(s, b->workload, type)->figure[0] / 2;
    x = put_shares(s, b->workload, type, x);
    return put_shares(s, beside < 0 ? -1 : b->neighbour[beside], type, x);
}

static void put_sightings(const struct p2_estimates *b, const struct evidence *v, float *x)
{
    for (int o = 0; o < v->n; o++) {
        double surprise = v->y[o] / v->sd[o];
        x = put_cell(b, v->type[o], v->beside[o], x);
        *x++ = bounded(surprise, 3);
        *x++ = bounded(fabs(surprise), 3);
        *x++ = 4 * (float)v->sd[o];
        *x++ = (float)v->n / 5;
        *x++ = overall(v);
    }
}

/* The share of a target's variance that the evidence takes. */
static float *shares_gone(struct arena *a, const struct evidence *v, const float *sd)
{
    size_t n = (size_t)v->n_targets;
    float *gone = ARENA_ARRAY(a, float, n);

    for (size_t o = 0; o < (size_t)v->n; o++)
        for (size_t t = 0; t < n; t++)
            gone[t] += (float)(v->white[o * n + t] * v->white[o * n + t]) / (sd[t] * sd[t]);
    return gone;
}

static void put_targets(struct arena *a, const struct p2_estimates *b, const struct evidence *v,
                        const float *sd, float *x)
{
    const float *gone = shares_gone(a, v, sd);
    float rms = overall(v);
    int n = b->n_neighbours;

    for (int t = 0; t < v->n_targets; t++) {
        int cell = t - b->n_types;
        x = put_cell(b, cell < 0 ? t : cell / n, cell < 0 ? -1 : cell % n, x);
        *x++ = 4 * sd[t];
        *x++ = fminf(gone[t], 1);
        *x++ = (float)v->n / 5;
        *x++ = rms;
        *x++ = 1;
    }
}

/* What an observation and a target have to do with each other. */
static float *put_figures_of(const struct p2_estimates *b, const struct evidence *v, int o, int t,
                             const float *sd, float *x)
{
    int cell = t - b->n_types, type = cell < 0 ? t : cell / b->n_neighbours;
    int beside = cell < 0 ? -1 : cell % b->n_neighbours;
    size_t at = (size_t)o * (size_t)v->n_targets + (size_t)t;
    bool are_pairs = beside >= 0 && v->beside[o] >= 0;

    *x++ = (float)v->k[at] / ((float)v->sd[o] * sd[t]);
    *x++ = bounded(v->gain[at], 2);
    *x++ = (float)v->same[v->type[o] * b->n_types + type];
    *x++ = beside == v->beside[o];
    *x++ = are_pairs ? (float)v->like[o * b->n_neighbours + beside] : 0;
    *x++ = (beside < 0) == (v->beside[o] < 0);
    return x;
}

/* ---- forward and backward ---- */

static float dot(int n, const float *a, const float *b)
{
    float sum = 0;

    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void bend(const struct evidence *v, struct gain_pass *p)
{
    size_t n = (size_t)v->n * (size_t)v->n_targets, at = 0;

    for (int o = 0; o < v->n; o++) {
        const float *by = p->sighting_v + o * (GAIN_RANK + GAIN_FIGURES);
        for (int t = 0; t < v->n_targets; t++, at++)
            p->gamma[at] = dot(GAIN_RANK, by, p->target_u + t * GAIN_RANK) +
                           dot(GAIN_FIGURES, by + GAIN_RANK, p->figures + at * GAIN_FIGURES);
    }
    tanh_forward(n, p->gamma, p->gamma);
    for (size_t i = 0; i < n; i++)
        p->gamma[i] *= GAMMA_MAX;
    tanh_forward((size_t)v->n_targets, p->delta, p->delta);
    for (int t = 0; t < v->n_targets; t++)
        p->delta[t] *= DELTA_MAX;
}

void gain_net_forward(struct arena *a, const struct gain_net *net, const struct evidence *v,
                      const struct p2_estimates *b, struct gain_pass *out)
{
    size_t n = (size_t)v->n, m = (size_t)v->n_targets;
    const float *w = net->params.w, *sd = b->alone_sd;

    *out = (struct gain_pass){
        .target_x = ARENA_ARRAY(a, float, m *GAIN_TARGET_IN),
        .target_h = ARENA_ARRAY(a, float, m *GAIN_HIDDEN),
        .target_u = ARENA_ARRAY(a, float, m *GAIN_RANK),
        .sighting_x = ARENA_ARRAY(a, float, n *GAIN_SIGHTING_IN),
        .sighting_h = ARENA_ARRAY(a, float, n *GAIN_HIDDEN),
        .sighting_v = ARENA_ARRAY(a, float, n *(GAIN_RANK + GAIN_FIGURES)),
        .figures = ARENA_ARRAY(a, float, n *m *GAIN_FIGURES),
        .gamma = ARENA_ARRAY(a, float, n *m),
        .delta = ARENA_ARRAY(a, float, m),
    };
    put_targets(a, b, v, sd, out->target_x);
    put_sightings(b, v, out->sighting_x);
    float *figures = out->figures;
    for (int i = 0; i < v->n * v->n_targets; i++)
        figures = put_figures_of(b, v, i / v->n_targets, i % v->n_targets, sd, figures);
    dense_forward(&net->target_in, w, v->n_targets, out->target_x, out->target_h);
    tanh_forward(m * GAIN_HIDDEN, out->target_h, out->target_h);
    dense_forward(&net->target_out, w, v->n_targets, out->target_h, out->target_u);
    dense_forward(&net->target_width, w, v->n_targets, out->target_h, out->delta);
    dense_forward(&net->sighting_in, w, v->n, out->sighting_x, out->sighting_h);
    tanh_forward(n * GAIN_HIDDEN, out->sighting_h, out->sighting_h);
    dense_forward(&net->sighting_out, w, v->n, out->sighting_h, out->sighting_v);
    bend(v, out);
}

/* Back through y = most tanh(x), given y. */
static void unbend(size_t n, float most, const float *y, float *dy)
{
    for (size_t i = 0; i < n; i++)
        dy[i] *= most * (1 - y[i] / most * (y[i] / most));
}

static void bend_backward(const struct evidence *v, const struct gain_pass *p, const float *dscore,
                          float *dv, float *du)
{
    size_t at = 0;

    for (int o = 0; o < v->n; o++) {
        const float *by = p->sighting_v + o * (GAIN_RANK + GAIN_FIGURES);
        float *dby = dv + o * (GAIN_RANK + GAIN_FIGURES);
        for (int t = 0; t < v->n_targets; t++, at++) {
            for (int i = 0; i < GAIN_RANK; i++) {
                dby[i] += dscore[at] * p->target_u[t * GAIN_RANK + i];
                du[t * GAIN_RANK + i] += dscore[at] * by[i];
            }
            for (int i = 0; i < GAIN_FIGURES; i++)
                dby[GAIN_RANK + i] += dscore[at] * p->figures[at * GAIN_FIGURES + (size_t)i];
        }
    }
}

void gain_net_backward(struct arena *a, const struct gain_net *net, const struct evidence *v,
                       const struct gain_pass *pass, float *dgamma, float *ddelta, float *grad)
{
    size_t n = (size_t)v->n, m = (size_t)v->n_targets;
    float *dv = ARENA_ARRAY(a, float, n *(GAIN_RANK + GAIN_FIGURES));
    float *du = ARENA_ARRAY(a, float, m *GAIN_RANK);
    float *dh = ARENA_ARRAY(a, float, m *GAIN_HIDDEN);
    float *dwide = ARENA_ARRAY(a, float, m *GAIN_HIDDEN);
    float *dseen = ARENA_ARRAY(a, float, n *GAIN_HIDDEN);
    const float *w = net->params.w;

    unbend(n * m, GAMMA_MAX, pass->gamma, dgamma);
    unbend(m, DELTA_MAX, pass->delta, ddelta);
    bend_backward(v, pass, dgamma, dv, du);
    dense_backward(&net->sighting_out, w, v->n, pass->sighting_h, dv, dseen, grad);
    unbend(n * GAIN_HIDDEN, 1, pass->sighting_h, dseen);
    dense_backward(&net->sighting_in, w, v->n, pass->sighting_x, dseen, NULL, grad);
    dense_backward(&net->target_out, w, v->n_targets, pass->target_h, du, dh, grad);
    dense_backward(&net->target_width, w, v->n_targets, pass->target_h, ddelta, dwide, grad);
    for (size_t i = 0; i < m * GAIN_HIDDEN; i++)
        dh[i] += dwide[i];
    unbend(m * GAIN_HIDDEN, 1, pass->target_h, dh);
    dense_backward(&net->target_in, w, v->n_targets, pass->target_x, dh, NULL, grad);
}

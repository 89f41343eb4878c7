#include "nn/gru.h"

#include <assert.h>
#include <cblas.h>
#include <string.h>

#include "nn/activation.h"
#include "nn/params.h"

void gru_init(struct gru *g, struct params *p, int n_in, int n_state, struct rng *r)
{
    int n_w = n_state * n_in, n_u = n_state * n_state;

    assert(n_in > 0 && n_state > 0);
    *g = (struct gru){ n_in, n_state, params_claim(p, 3 * (n_w + n_u + 2 * n_state)) };
    params_draw(p, g->at, 3 * n_w, n_in, n_state, r);
    params_draw(p, g->at + 3 * n_w, 3 * n_u, n_state, n_state, r);
}

/* Offsets of W, U, b and c in the line. */
struct places {
    int w, u, b, c;
};

static struct places places_of(const struct gru *g)
{
    int u = g->at + 3 * g->n_state * g->n_in;
    int b = u + 3 * g->n_state * g->n_state;

    return (struct places){ g->at, u, b, b + 3 * g->n_state };
}

/* What lives in scratch. Tokens are walked in time, so states stand time by time; the
 * gates come out of one product over all tokens, so they stand row by row.
 */
struct gru_parts {
    float *gates;     // (n, len, 3 n_state): r, z, n; on the way back their inner gradients
    float *states;    // (len + 1, n, n_state)
    float *inner;     // (len, n, n_state): U_n h + c_n
    float *step;      // (n, 3 n_state): U h + c of one token, or its gradient
    float *dh;        // (n, n_state)
};

static struct gru_parts parts_of(const struct gru *g, int n, int len, float *scratch)
{
    size_t s = (size_t)n * (size_t)g->n_state, l = (size_t)len;
    struct gru_parts k = { .gates = scratch };

    k.states = k.gates + 3 * s * l;
    k.inner = k.states + s * (l + 1);
    k.step = k.inner + s * l;
    k.dh = k.step + 3 * s;
    return k;
}

size_t gru_scratch(const struct gru *g, int n, int len)
{
    return (size_t)n * (size_t)g->n_state * (5 * (size_t)len + 5);
}

static void rows_fill(size_t n, int width, const float *row, float *out)
{
    for (size_t i = 0; i < n; i++)
        memcpy(out + i * (size_t)width, row, (size_t)width * sizeof *row);
}

/* One token of one row: 'gates' holds W x + b and becomes r, z, n; 'step' is U h + c. */
static void cell_forward(int s, float *gates, const float *step, const float *h, float *inner,
                         float *out)
{
    float *r = gates, *z = gates + s, *n = gates + 2 * s;

    for (int i = 0; i < 2 * s; i++)
        gates[i] += step[i];
    sigmoid_forward(2 * (size_t)s, gates, gates);
    for (int i = 0; i < s; i++) {
        inner[i] = step[2 * s + i];
        n[i] += r[i] * inner[i];
    }
    tanh_forward((size_t)s, n, n);
    for (int i = 0; i < s; i++)
        out[i] = (1 - z[i]) * n[i] + z[i] * h[i];
}

void gru_forward(const struct gru *g, const float *w, const struct tokens *in, const float *h0,
                 float *h, float *scratch)
{
    const struct places at = places_of(g);
    const int n = in->n, len = in->len;
    const struct gru_parts k = parts_of(g, n, len, scratch);
    const int s = g->n_state;
    const size_t n_states = (size_t)n * (size_t)s;

    if (n == 0)
        return;
    if (h0 != NULL)
        memcpy(k.states, h0, n_states * sizeof *h0);
    else
        memset(k.states, 0, n_states * sizeof *k.states);
    rows_fill((size_t)n * (size_t)len, 3 * s, w + at.b, k.gates);
    if (len > 0)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n * len, 3 * s, g->n_in, 1, in->x,
                    g->n_in, w + at.w, g->n_in, 1, k.gates, 3 * s);
    for (int t = 0; t < len; t++) {
        const float *old = k.states + (size_t)t * n_states;
        float *new = k.states + (size_t)(t + 1) * n_states;

        rows_fill((size_t)n, 3 * s, w + at.c, k.step);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, 3 * s, s, 1, old, s, w + at.u, s, 1,
                    k.step, 3 * s);
        for (int row = 0; row < n; row++) {
            size_t token = (size_t)row * (size_t)len + (size_t)t, at_h = (size_t)row * (size_t)s;

            if (!tokens_have(in, token))
                memcpy(new + at_h, old + at_h, (size_t)s * sizeof *new);
            else
                cell_forward(s, k.gates + token * 3 * (size_t)s, k.step + 3 * at_h, old + at_h,
                             k.inner + (size_t)t * n_states + at_h, new + at_h);
        }
    }
    memcpy(h, k.states + (size_t)len * n_states, n_states * sizeof *h);
}

/* One token of one row, backwards: r, z, n in 'gates' become gradients of W x + b, 'step'
 * of U h + c, and 'dh' goes from the new state to the part of the old one that z lets by.
 */
static void cell_backward(int s, float *gates, float *step, const float *h, const float *inner,
                          float *dh)
{
    for (int i = 0; i < s; i++) {
        float r = gates[i], z = gates[s + i], n = gates[2 * s + i];
        float dn = dh[i] * (1 - z) * (1 - n * n);
        float dz = dh[i] * (h[i] - n) * z * (1 - z);
        float dr = dn * inner[i] * r * (1 - r);

        gates[i] = step[i] = dr;
        gates[s + i] = step[s + i] = dz;
        gates[2 * s + i] = dn;
        step[2 * s + i] = dn * r;
        dh[i] *= z;
    }
}

/* Walk one token of all rows back; k->dh goes from the state after it to the one before. */
static void token_backward(const struct gru *g, const float *w, const struct tokens *in, int t,
                           const struct gru_parts *k, float *grad)
{
    const struct places at = places_of(g);
    const int n = in->n, len = in->len;
    const int s = g->n_state;
    const size_t before = (size_t)t * (size_t)n * (size_t)s;
    const float *old = k->states + before, *inner = k->inner + before;

    for (int row = 0; row < n; row++) {
        size_t token = (size_t)row * (size_t)len + (size_t)t, at_h = (size_t)row * (size_t)s;
        float *gates = k->gates + token * 3 * (size_t)s, *step = k->step + 3 * at_h;

        if (tokens_have(in, token)) {
            cell_backward(s, gates, step, old + at_h, inner + at_h, k->dh + at_h);
        } else {
            memset(gates, 0, 3 * (size_t)s * sizeof *gates);
            memset(step, 0, 3 * (size_t)s * sizeof *step);
        }
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, s, 3 * s, 1, k->step, 3 * s, w + at.u,
                s, 1, k->dh, s);
    if (grad == NULL)
        return;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, 3 * s, s, n, 1, k->step, 3 * s, old, s, 1,
                grad + at.u, s);
    for (int row = 0; row < n; row++)
        for (int i = 0; i < 3 * s; i++)
            grad[at.c + i] += k->step[(size_t)row * 3 * (size_t)s + (size_t)i];
}

void gru_backward(const struct gru *g, const float *w, const struct tokens *in, const float *dh,
                  float *dx, float *dh0, float *grad, float *scratch)
{
    const struct places at = places_of(g);
    const int n = in->n, len = in->len;
    const struct gru_parts k = parts_of(g, n, len, scratch);
    const int s = g->n_state;
    const size_t n_tokens = (size_t)n * (size_t)len;

    if (n == 0)
        return;
    memcpy(k.dh, dh, (size_t)n * (size_t)s * sizeof *dh);
    for (int t = len - 1; t >= 0; t--)
        token_backward(g, w, in, t, &k, grad);
    if (dh0 != NULL)
        memcpy(dh0, k.dh, (size_t)n * (size_t)s * sizeof *dh0);
    if (len == 0)
        return;
    if (dx != NULL)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n * len, g->n_in, 3 * s, 1, k.gates,
                    3 * s, w + at.w, g->n_in, 0, dx, g->n_in);
    if (grad == NULL)
        return;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, 3 * s, g->n_in, n * len, 1, k.gates, 3 * s,
                in->x, g->n_in, 1, grad + at.w, g->n_in);
    for (size_t token = 0; token < n_tokens; token++)
        for (int i = 0; i < 3 * s; i++)
            grad[at.b + i] += k.gates[token * 3 * (size_t)s + (size_t)i];
}

#include "nn/adam.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "nn/params.h"

/* As everybody's. */
static const float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;

void adam_init(struct adam *a, int n)
{
    assert(n > 0);
    *a = (struct adam){
        .n = n,
        .m = calloc((size_t)n, sizeof *a->m),
        .v = calloc((size_t)n, sizeof *a->v),
        .decay = 0.01f,
    };
    assert(a->m && a->v);    // out of memory: stop; restart replays the journal
}

void adam_release(struct adam *a)
{
    free(a->m);
    free(a->v);
    *a = (struct adam){ 0 };
}

static double norm_of(int n, const float *v)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

double adam_step(struct adam *a, struct params *p, double rate)
{
    double norm = norm_of(p->n, p->grad);
    double shorten = a->clip > 0 && norm > (double)a->clip ? (double)a->clip / norm : 1;

    assert(a->n == p->n);
    if (!isfinite(norm))
        return norm;
    a->n_steps++;
    /* Both running means begin at zero; their first steps are made up for here. */
    double unbias1 = 1 - pow((double)beta1, (double)a->n_steps);
    double unbias2 = 1 - pow((double)beta2, (double)a->n_steps);
    const float step = (float)(rate / unbias1), root = (float)(1 / sqrt(unbias2));
    const float keep = (float)(1 - rate * (double)a->decay), s = (float)shorten;
    const float *restrict grad = p->grad;
    float *restrict m = a->m, *restrict v = a->v, *restrict w = p->w;

    for (int i = 0; i < p->n; i++) {
        float g = grad[i] * s;

        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        w[i] = keep * w[i] - step * m[i] / (sqrtf(v[i]) * root + eps);
    }
    return norm;
}

double adam_cosine(long step, long n_steps, long n_warm, double peak, double last)
{
    assert(0 <= step && step < n_steps && 0 <= n_warm && n_warm < n_steps);
    if (step < n_warm)
        return peak * (double)(step + 1) / (double)(n_warm + 1);
    double way = (double)(step - n_warm) / (double)(n_steps - n_warm);
    return last + (peak - last) * (1 + cos(way * acos(-1.0))) / 2;
}

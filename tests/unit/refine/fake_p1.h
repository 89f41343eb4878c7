/* fake_p1.h - a P1 that says what a test wants, in place of the one in src/estimate.
 *
 * Defines the functions of p1.h that P2 asks; included by one file of an executable.
 */
#ifndef TESTS_UNIT_REFINE_FAKE_P1_H
#define TESTS_UNIT_REFINE_FAKE_P1_H

#include <math.h>
#include <stdlib.h>

#include "estimate/p1/p1.h"

enum { FAKE_WORKLOADS = 256 };

struct p1 {
    int n_types;
    double sd, beside_sd;    // everywhere, times 1.5 for a stranger
    double watts_sd;
    struct p1_errors errors;
    bool has_errors;
};

struct p1_context {
    const struct p1 *p1;
    int n;
    struct identity who[FAKE_WORKLOADS];
    struct features *at[FAKE_WORKLOADS];
};

struct p1_context *p1_context_create(const struct p1 *p, int n_types)
{
    struct p1_context *s = calloc(1, sizeof *s);

    if (s == NULL || n_types != p->n_types)
        abort();
    s->p1 = p;
    return s;
}

void p1_context_destroy(struct p1_context *s)
{
    for (int i = 0; s && i < s->n; i++)
        free(s->at[i]);
    free(s);
}

int p1_context_add(struct p1_context *s, const struct identity *who, const struct features *on)
{
    size_t n = (size_t)s->p1->n_types;

    if (s->n == FAKE_WORKLOADS)
        abort();
    s->who[s->n] = *who;
    s->at[s->n] = calloc(n, sizeof *on);
    for (size_t g = 0; g < n; g++)
        s->at[s->n][g] = on[g];
    return s->n++;
}

const struct features *p1_features(const struct p1_context *s, int workload, int type)
{
    return &s->at[workload][type];
}

static double fake_scale(const struct p1_context *s, int workload)
{
    return s->who[workload].family ? 1 : 1.5;
}

struct p1_alone p1_alone(const struct p1_context *s, int workload, int type)
{
    double scale = fake_scale(s, workload);

    return (struct p1_alone){
        .ln_speed = (float)(0.3 * workload - 0.2 * type),
        .ln_speed_sd = (float)(s->p1->sd * scale * (1 + 0.3 * type)),
        .ln_watts = (float)(5 + 0.1 * type),
        .ln_watts_sd = (float)s->p1->watts_sd,
        .regime = s->who[workload].family ? REGIME_KIN : REGIME_STRANGER,
    };
}

void p1_beside(const struct p1_context *s, int workload, int type, int from, int to, float *ln_r,
               float *sd)
{
    for (int n = from; n < to; n++) {
        ln_r[n - from] = (float)(-0.5 - 0.02 * ((workload + 3 * n + type) % 11));
        sd[n - from] = (float)(s->p1->beside_sd * fake_scale(s, workload) * (1 + 0.1 * (n % 3)));
    }
}

void p1_partner(const struct p1_context *s, int workload, int type, int from, int to, float *ln_r,
                float *sd)
{
    for (int n = from; n < to; n++)
        p1_beside(s, n, type, workload, workload + 1, &ln_r[n - from], &sd[n - from]);
}

double p1_like(const struct p1_context *s, int type, int neighbour, int other)
{
    const struct features *a = p1_features(s, neighbour, type), *b = p1_features(s, other, type);
    double d = (double)(a->ln_kernel_s - b->ln_kernel_s);

    return neighbour == other ? 1 : exp(-d * d / 2);
}

double p1_cross(const struct p1_context *s, enum regime r)
{
    (void)s;
    return r == REGIME_KIN ? -0.3 : 0.1;
}

const struct p1_errors *p1_held_out(const struct p1 *p)
{
    return p->has_errors ? &p->errors : NULL;
}

#endif

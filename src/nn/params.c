#include "nn/params.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/rng.h"

void params_init(struct params *p)
{
    *p = (struct params){ 0 };
}

void params_release(struct params *p)
{
    free(p->w);
    free(p->grad);
    params_init(p);
}

int params_claim(struct params *p, int n)
{
    int at = p->n;

    assert(n > 0 && n <= INT_MAX / 2 - p->n);
    if (p->n + n > p->cap) {
        p->cap = 2 * (p->n + n);
        RESIZE(p->w, p->cap);
        RESIZE(p->grad, p->cap);
    }
    memset(p->w + at, 0, (size_t)n * sizeof *p->w);
    memset(p->grad + at, 0, (size_t)n * sizeof *p->grad);
    p->n += n;
    return at;
}

void params_draw(struct params *p, int at, int n, int n_in, int n_out, struct rng *r)
{
    double bound = sqrt(6.0 / (n_in + n_out));

    assert(at >= 0 && n <= p->n - at && n_in + n_out > 0);
    if (r == NULL)
        return;
    for (int i = 0; i < n; i++)
        p->w[at + i] = (float)rng_between(r, -bound, bound);
}

void params_clear(struct params *p)
{
    if (p->n > 0)
        memset(p->grad, 0, (size_t)p->n * sizeof *p->grad);
}

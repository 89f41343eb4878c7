/* capacity.c - how many requests a second a place holds: one lookup in a service's table. */
#include "serve/capacity.h"

#include <math.h>

/* Between which two of 'n' grid points 'x' lies, which is not beyond the last: *i, *i + 1. */
static double position(const double *grid, int n, double x, int *i)
{
    *i = 0;
    if (n < 2 || x <= grid[0])
        return 0;    // a smaller share of t0 holds at least as much
    while (*i < n - 2 && grid[*i + 1] < x)
        ++*i;
    return fmin((x - grid[*i]) / (grid[*i + 1] - grid[*i]), 1);
}

/* Where a place lies in the table: weights of four cells, which do not depend on the rate. */
struct spot {
    const double *f[4];    // each by rate
    double w[4];
    double log_t0;
};

static double log_f(const struct spot *s, int j)
{
    return s->w[0] * s->f[0][j] + s->w[1] * s->f[1][j] + s->w[2] * s->f[2][j] +
           s->w[3] * s->f[3][j];
}

/* Beyond the last alpha or gamma a place with a longer t0 stands in, for which the table speaks: it
 * holds less.
 */
static struct spot locate(const struct capacity *c, double t0_s, double a_s, double c_s)
{
    const double log_a = log(a_s), log_c = c->n_gammas > 1 ? log(c_s) : -(double)INFINITY;
    struct spot s;
    int i, k;

    s.log_t0 = fmax(log(t0_s), log_a - c->log_alpha[c->n_alphas - 1]);
    if (c->n_gammas > 1)
        s.log_t0 = fmax(s.log_t0, log_c - c->log_gamma[c->n_gammas - 1]);
    const double u = position(c->log_alpha, c->n_alphas, log_a - s.log_t0, &i);
    const double v = position(c->log_gamma, c->n_gammas, log_c - s.log_t0, &k);
    const int k2 = k + 1 < c->n_gammas ? k + 1 : k;
    s.f[0] = c->log_f[k][i];
    s.f[1] = c->log_f[k][i + 1];
    s.f[2] = c->log_f[k2][i];
    s.f[3] = c->log_f[k2][i + 1];
    s.w[0] = (1 - v) * (1 - u);
    s.w[1] = (1 - v) * u;
    s.w[2] = v * (1 - u);
    s.w[3] = v * u;
    s.log_t0 += log(c->margin);
    return s;
}

double capacity_mu_llm(const struct capacity *c, double t0_s, double a_s, double c_s)
{
    if (!(t0_s > 0 && a_s >= 0 && c_s >= 0 && t0_s < 1e9 && a_s < 1e9 && c_s < 1e9))
        return 0;
    const struct spot s = locate(c, t0_s, a_s, c_s);
    const double *r = c->log_rate;
    int j = CAPACITY_RATES - 1;
    double high = log_f(&s, j), low;

    if (high >= s.log_t0)    // all times, promises too, divided by k: arrivals k times faster hold
        return fmin(exp(r[j] + high - s.log_t0), c->rate_max);
    do {
        low = high;
        high = log_f(&s, --j);
    } while (j > 0 && high < s.log_t0);
    if (high < s.log_t0)
        return 0;
    return fmin(exp(r[j] + (high - s.log_t0) / (high - low) * (r[j + 1] - r[j])), c->rate_max);
}

double capacity_mu(const struct capacity *c, double t0_s, double a_s)
{
    return capacity_mu_llm(c, t0_s, a_s, 0);
}

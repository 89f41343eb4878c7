/* What a reading would teach, against conditioning by brute force; and who teaches most. */
#include "base/err.h"
#include "estimate/hierarchical/choose.h"
#include "estimate/hierarchical/posterior.h"
#include "nn/gp.h"
#include "unit/estimate/hierarchical/small.h"
#include "unit/suite.h"

enum { KNOWN = 30, CANDIDATES = 12, TARGETS = 9, WORKLOADS = 7 };

static const struct hyper_scale scale = { 1, 1.5, 1, 0 };
static const double factor[READINGS] = { 1, 1.5, 1.5 };    // as it is of each kind
static struct small small;
static struct hyper hyper;
static struct variances variances;
static struct reading known[KNOWN + GROUP_MOST], candidates[CANDIDATES], targets[TARGETS];
static struct posterior *posterior;
static struct err e;

static void set_up_for(uint64_t seed, int n_known)
{
    small_init(&small, seed, WORKLOADS);
    hyper = small_hyper(&small);
    variances = hyper_variances(&hyper);
    for (int i = 0; i < KNOWN; i++)
        known[i] = small_reading(&small);
    for (int i = 0; i < CANDIDATES; i++)
        candidates[i] = small_reading(&small);
    for (int i = 0; i < TARGETS; i++)
        targets[i] = small_reading(&small);
    int rc = posterior_create(&small.site, &hyper, scale, known, n_known, &posterior, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
}

static void tear_down(void)
{
    posterior_destroy(posterior);
    site_release(&small.site);
}

FIXTURE(nn_init, tear_down)

static double gain_of(const struct reading *candidate, const struct reading *of, int n)
{
    double gain;

    ck_assert_int_eq(posterior_choose(posterior, candidate, 1, of, n, &gain), 0);
    return gain;
}

static double covariance(const struct reading *a, const struct reading *b)
{
    struct effects x = effects_of(&small.site, a), y = effects_of(&small.site, b);
    double slope[VARIANCES];

    return effects_covariance(&variances, &x, &y, slope);
}

/* The mean over targets of sqrt(k_qq - k' K^-1 k), with the first 'n' known. */
static double brute_sd(int n)
{
    static double l[(KNOWN + GROUP_MOST) * (KNOWN + GROUP_MOST)];
    double k[KNOWN + GROUP_MOST], sum = 0;

    ck_assert(small_factor(&small, &hyper, known, n, l));
    for (int t = 0; t < TARGETS; t++) {
        double var = covariance(&targets[t], &targets[t]);
        for (int i = 0; i < n; i++)
            k[i] = covariance(&targets[t], &known[i]);
        small_solve(l, n, k);
        for (int i = 0; i < n; i++)
            var -= k[i] * k[i];
        sum += factor[targets[t].of] * sqrt(var);
    }
    return sum / TARGETS;
}

static const int sizes[] = { 0, 1, 5, KNOWN, KNOWN };

EACH(a_gain_is_what_brute_force_gives, sizes)
{
    int n = sizes[_i], best = 0;
    double want[CANDIDATES], gain;

    set_up_for((uint64_t)_i, n);
    for (int i = 0; i < CANDIDATES; i++) {
        struct reading had = known[n];
        known[n] = candidates[i];
        want[i] = brute_sd(n) - brute_sd(n + 1);
        known[n] = had;
        best = want[i] > want[best] ? i : best;
        gain = gain_of(&candidates[i], targets, TARGETS);
        ck_assert_double_eq_tol(gain, want[i], 1e-5);
        ck_assert_int_eq(posterior_n(posterior), n);
    }
    ck_assert_double_gt(want[best], 1e-3);
    ck_assert_int_eq(posterior_choose(posterior, candidates, CANDIDATES, targets, TARGETS, &gain),
                     best);
    ck_assert_double_eq_tol(gain, want[best], 1e-5);
}

EACH(a_group_gains_what_its_readings_do_together, sizes)
{
    int n = sizes[_i], best = 0;
    struct reading_group groups[CANDIDATES / GROUP_MOST];
    double want[CANDIDATES / GROUP_MOST], gain;

    set_up_for((uint64_t)_i, n);
    for (int g = 0; g < CANDIDATES / GROUP_MOST; g++) {
        groups[g] = (struct reading_group){ .n = 0 };
        for (int i = 0; i < GROUP_MOST; i++) {
            const struct reading *r = &candidates[g * GROUP_MOST + i];
            if (posterior_find(posterior, r->type, r->job, r->neighbour) >= 0)
                continue;
            known[n + groups[g].n] = *r;
            groups[g].r[groups[g].n++] = *r;
        }
        want[g] = brute_sd(n) - brute_sd(n + groups[g].n);
        best = want[g] > want[best] ? g : best;
        ck_assert_int_eq(posterior_choose_group(posterior, &groups[g], 1, targets, TARGETS, &gain),
                         0);
        ck_assert_double_eq_tol(gain, want[g], 1e-5);
        ck_assert_int_eq(posterior_n(posterior), n);
    }
    ck_assert_int_eq(
        posterior_choose_group(posterior, groups, CANDIDATES / GROUP_MOST, targets, TARGETS, &gain),
        best);
    posterior_suppose(posterior, &groups[best]);
    posterior_suppose(posterior, &groups[best]);    // it is known by now
    ck_assert_int_eq(posterior_n(posterior), n + groups[best].n);
    posterior_choose_group(posterior, &groups[best], 1, targets, TARGETS, &gain);
    ck_assert_double_eq_tol(gain, 0, 1e-9);
}

/* By hand: sqrt(t) - sqrt(t - c^2 / (k + noise^2)), and with one known by its 2-by-2 inverse. */
TEST(a_gain_is_what_two_by_two_matrices_give)
{
    const struct reading *q = &targets[0], *y = &known[0], *x = &candidates[0];

    set_up_for(7, 1);
    targets[0].of = known[0].of = candidates[0].of = READ_ALONE;
    targets[0].job = known[0].job = candidates[0].job = 2;
    targets[0].type = 0;
    known[0].type = 1;
    candidates[0].type = 2;
    posterior_truncate(posterior, 0);
    double t = covariance(q, q), c = covariance(q, x), d = covariance(q, y);
    double a = covariance(x, x) + (double)x->noise * (double)x->noise, b = covariance(x, y);
    double k = covariance(y, y) + (double)y->noise * (double)y->noise;
    double both = (c * c * k - 2 * c * d * b + d * d * a) / (a * k - b * b);
    ck_assert_double_eq_tol(gain_of(x, q, 1), sqrt(t) - sqrt(t - c * c / a), 1e-6);
    ck_assert_int_eq(posterior_add(posterior, y, &e), 0);
    ck_assert_double_eq_tol(gain_of(x, q, 1), sqrt(t - d * d / k) - sqrt(t - both), 1e-6);
}

TEST(who_says_nothing_new_gains_nothing)
{
    double gain = 1;

    set_up_for(8, KNOWN);
    ck_assert_int_eq(posterior_choose(posterior, candidates, 0, targets, TARGETS, &gain), -1);
    ck_assert_double_eq(gain, 0);
    ck_assert_double_eq(gain_of(&candidates[0], targets, 0), 0);
    candidates[0].noise = 0;
    ck_assert_int_eq(posterior_add(posterior, &candidates[0], &e), 0);
    ck_assert_double_eq(gain_of(&candidates[0], targets, TARGETS), 0);
    candidates[1] = candidates[0];    // of equals the first
    ck_assert_int_eq(posterior_choose(posterior, candidates, 2, targets, TARGETS, NULL), 0);
}

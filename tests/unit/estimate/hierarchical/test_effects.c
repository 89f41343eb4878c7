/* Mean and covariance of readings: a covariance it is, with the slopes it says it has. */
#include "nn/gp.h"
#include "unit/estimate/hierarchical/small.h"
#include "unit/suite.h"

enum { N = 50, WORKLOADS = 9 };

static struct small small;
static struct hyper hyper;
static struct variances variances;
static struct reading list[N];
static struct effects at[N];
static double slope[VARIANCES];

static void tear_down(void)
{
    site_release(&small.site);
}

FIXTURE(nn_init, tear_down)

static void set_up_for(uint64_t seed)
{
    small_init(&small, seed, WORKLOADS);
    hyper = small_hyper(&small);
    variances = hyper_variances(&hyper);
    for (int i = 0; i < N; i++) {
        list[i] = small_reading(&small);
        at[i] = effects_of(&small.site, &list[i]);
    }
}

TIMES(any_readings_have_a_covariance, 20)
{
    static double l[N * N];

    set_up_for((uint64_t)_i);
    for (int i = 0; i < N * N; i++) {
        double one = effects_covariance(&variances, &at[i / N], &at[i % N], slope);
        double back = effects_covariance(&variances, &at[i % N], &at[i / N], slope);
        ck_assert_double_eq_tol(one, back, 1e-14);
        list[i / N].noise = 1e-5f;
    }
    ck_assert(small_factor(&small, &hyper, list, N, l));
}

TEST(slopes_are_those_of_differences)
{
    const double by = 1e-4;

    set_up_for(3);
    for (int p = 0; p < VARIANCES; p++) {
        struct hyper less = hyper, more = hyper;
        double most = 0, other[VARIANCES];
        less.at[p] -= by;
        more.at[p] += by;
        struct variances below = hyper_variances(&less), above = hyper_variances(&more);
        for (int i = 0; i < N * N; i++) {
            const struct effects *a = &at[i / N], *b = &at[i % N];
            double want =
                effects_covariance(&above, a, b, other) - effects_covariance(&below, a, b, other);
            effects_covariance(&variances, a, b, slope);
            most = fmax(most, fabs(slope[p]));
            if (fabs(slope[p] - want / (2 * by)) > 1e-7)
                ck_abort_msg("%d: %g, differences %g", p, slope[p], want / (2 * by));
        }
        ck_assert_msg(most > 0, "no pair has a part of %d", p);
    }
}

/* What two readings must have the same to share an effect, in the order of enum hyper_at: type,
 * family, job, the neighbour's family, and the neighbour.
 */
enum { T = 1, F = 2, J = 4, NF = 8, NB = 16 };
static const unsigned alone_same[] = { 0, T, F, J, T | F, T | J, F, T | F };
static const unsigned beside_same[] = { 0,     T,      F,          NF,         J,
                                        NB,    T | F,  T | NF,     T | J,      T | NB,
                                        T | F, T | NF, T | F | NF, T | F | NF, T | J | NB };

TEST(effects_are_shared_where_their_names_say)
{
    for (unsigned same = 0; same < 32; same++) {
        const struct batch_at batch = { 0, { 1, 0 } };
        struct effects a = { .of = READ_PACKED, .batch = batch, .by_batch = batch }, b = a;
        b.type = !(same & T);
        b.job = !(same & J);
        b.neighbour = !(same & NB);
        b.family = !(same & F);
        b.by_family = !(same & NF);
        variances = hyper_variances(&(struct hyper){ { 0 } });
        effects_covariance(&variances, &a, &b, slope);
        for (size_t p = 0; p < N_ROWS(alone_same); p++)
            ck_assert((slope[p] > 0) == ((alone_same[p] & same) == alone_same[p]));
        for (size_t p = 0; p < N_ROWS(beside_same); p++)
            ck_assert((slope[BESIDE_SITE + p] > 0) == ((beside_same[p] & same) == beside_same[p]));
    }
}

TIMES(packed_is_the_sum_of_alone_and_slowdown, 5)
{
    set_up_for((uint64_t)_i);
    for (int i = 0; i < N; i++) {
        list[i].of = READ_PACKED;
        list[i].neighbour = i % WORKLOADS;
        struct effects packed = effects_of(&small.site, &list[i]), alone = packed, beside = packed;
        alone.of = READ_ALONE;
        beside.of = READ_SLOWDOWN;
        ck_assert_double_eq_tol(effects_mean(&hyper, &packed),
                                effects_mean(&hyper, &alone) + effects_mean(&hyper, &beside),
                                1e-12);
        ck_assert_double_eq(effects_covariance(&variances, &alone, &beside, slope), 0);
        for (int j = 0; j < N; j++) {
            double want = effects_covariance(&variances, &alone, &at[j], slope) +
                          effects_covariance(&variances, &beside, &at[j], slope);
            ck_assert_double_eq_tol(effects_covariance(&variances, &packed, &at[j], slope), want,
                                    1e-12);
        }
    }
}

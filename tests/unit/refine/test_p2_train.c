/* What P2 learns from the errors of a P1 whose errors are known. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/rng.h"
#include "nn/weights.h"
#include "refine/p2.h"
#include "refine/p2_inner.h"
#include "unit/refine/fake_p1.h"
#include "unit/suite.h"

enum { TYPES = 3, FAMILIES = 7 };

/* How errors come about. */
enum law {
    GAUSSIAN,    // as the covariance has it: nothing to add
    TWO_SORTS    // of heavy jobs all errors are one number, of the others each is its own
};

struct school {
    struct arena a;
    struct examples x;
    struct p1 p1;
};

static double correlated(struct rng *r, double common, double rho)
{
    return sqrt(rho) * common + sqrt(1 - rho) * rng_normal(r);
}

static void describe(struct school *s, int w, struct rng *r)
{
    bool is_heavy = rng_below(r, 2);

    s->x.family[w] = w % FAMILIES;
    s->x.who[w] =
        (struct identity){ .name = (uint64_t)w + 1, .family = (uint64_t)(w % FAMILIES) + 1 };
    for (int g = 0; g < TYPES; g++) {
        struct features *f = &s->x.at[w * TYPES + g];
        *f = (struct features){ .ln_kernel_s = (float)(10 * w) };    // nobody is like another
        f->share[0] = is_heavy ? 0.9f : 0.1f;
        f->share[2] = 1 - f->share[0];
        for (int i = 0; i < FEATURE_FIGURES; i++)
            f->figure[i] = (float)(3 * g);
    }
}

/* Errors of one workload in units of their sds: correlations .4 alone; common .45, types .3. */
static void err_gaussian(struct rng *r, float *alone, float *own, int n)
{
    double common = rng_normal(r), all = rng_normal(r);

    for (int g = 0; g < TYPES; g++) {
        double type = correlated(r, all, 0.3);
        alone[g] = (float)correlated(r, common, 0.4);
        for (int j = 0; j < n; j++)
            own[g * n + j] = (float)correlated(r, type, 0.45);
    }
}

static void err_by_sort(struct rng *r, bool is_heavy, float *alone, float *own, int n)
{
    double common = rng_normal(r), all = rng_normal(r);

    for (int g = 0; g < TYPES; g++) {
        alone[g] = (float)(is_heavy ? common : rng_normal(r));
        for (int j = 0; j < n; j++)
            own[g * n + j] = (float)(is_heavy ? all : rng_normal(r));
    }
}

static float *floats(struct school *s, int n)
{
    return ARENA_ARRAY(&s->a, float, (size_t)n);
}

static void measure(struct school *s, enum law law, int w, struct rng *r)
{
    int n = s->x.n_workloads;
    float alone[TYPES], *own = floats(s, TYPES * n);
    struct p1_errors *to = &s->p1.errors;

    for (int regime = 0; regime < REGIMES; regime++) {
        double scale = regime == REGIME_KIN ? 1 : 1.5;
        if (law == GAUSSIAN)
            err_gaussian(r, alone, own, n);
        else
            err_by_sort(r, s->x.at[w * TYPES].share[0] > 0.5f, alone, own, n);
        for (int g = 0; g < TYPES; g++) {
            int at = w * TYPES + g;
            s->x.alone[at] = (struct example){ w, g, -1, 0, 0.03f };
            s->x.watts[at] = s->x.alone[at];
            to->of[P1_ALONE][regime][at] = alone[g] * (float)(s->p1.sd * scale * (1 + 0.3 * g));
            to->of[P1_WATTS][regime][at] = alone[g] * (float)s->p1.watts_sd;
            for (int j = 0; j < n; j++) {
                int pair = (w * TYPES + g) * n + j;
                double sd = s->p1.beside_sd * scale * (1 + 0.1 * (j % 3));
                s->x.pairs[pair] = (struct example){ w, g, j, 0, 0.03f };
                to->of[P1_OWN][regime][pair] = own[g * n + j] * (float)sd;
                to->of[P1_PARTNER][regime][pair] = (float)(rng_normal(r) * sd);
            }
        }
    }
}

static void school_open(struct school *s, enum law law, int n, uint64_t seed)
{
    struct rng r;

    rng_init(&r, seed, "school");
    *s = (struct school){ .x = { .n_workloads = n, .n_types = TYPES, .n_families = FAMILIES } };
    arena_init(&s->a);
    s->p1 = (struct p1){
        .n_types = TYPES, .sd = 0.3, .beside_sd = 0.15, .watts_sd = 0.25, .has_errors = true
    };
    s->x.family = ARENA_ARRAY(&s->a, int, (size_t)n);
    s->x.who = ARENA_ARRAY(&s->a, struct identity, (size_t)n);
    s->x.at = ARENA_ARRAY(&s->a, struct features, (size_t)(n * TYPES));
    s->x.n_alone = s->x.n_watts = n * TYPES;
    s->x.n_pairs = n * TYPES * n;
    s->x.alone = ARENA_ARRAY(&s->a, struct example, (size_t)s->x.n_alone);
    s->x.watts = ARENA_ARRAY(&s->a, struct example, (size_t)s->x.n_alone);
    s->x.pairs = ARENA_ARRAY(&s->a, struct example, (size_t)s->x.n_pairs);
    for (int i = 0; i < REGIMES; i++) {
        s->p1.errors.of[P1_ALONE][i] = floats(s, s->x.n_alone);
        s->p1.errors.of[P1_WATTS][i] = floats(s, s->x.n_alone);
        s->p1.errors.of[P1_OWN][i] = floats(s, s->x.n_pairs);
        s->p1.errors.of[P1_PARTNER][i] = floats(s, s->x.n_pairs);
    }
    for (int w = 0; w < n; w++)
        describe(s, w, &r);
    for (int w = 0; w < n; w++)
        measure(s, law, w, &r);
}

static void school_close(struct school *s)
{
    arena_release(&s->a);
}

static struct p2 *train(const struct school *s, uint64_t seed)
{
    return p2_train(&s->x, &s->p1, seed);
}

static void encode(const struct p2 *p, struct arena *a, struct buf *out)
{
    struct weights w;
    struct err e = { 0 };

    weights_init(&w, a);
    p2_save(p, &w);
    ck_assert_msg(weights_encode(&w, out, &e) == 0, "%s", e.text);
}

TEST(correlations_are_those_of_the_errors)
{
    struct school s;
    struct p2_examples l;
    struct relations r[REGIMES];

    school_open(&s, GAUSSIAN, 60, 3);
    p2_examples_make(&s.a, &s.x, &s.p1, &l);
    ck_assert_int_eq(l.n, 120);
    relations_learn(&l, NULL, r);
    for (int i = 0; i < REGIMES; i++) {
        ck_assert_double_eq_tol(r[i].alone, 0.4, 0.12);
        ck_assert_double_eq_tol(r[i].watts, 0.4, 0.12);
        ck_assert_double_eq_tol(r[i].own.common, 0.45, 0.12);
        ck_assert_double_eq_tol(r[i].own.types, 0.3, 0.2);
        ck_assert_double_lt(r[i].partner.common, 0.1);    // each is its own there
        ck_assert(relations_are_sound(&r[i]));
    }
    p2_examples_release(&l);
    school_close(&s);
}

TEST(without_errors_the_defaults_stand)
{
    struct school s;

    school_open(&s, GAUSSIAN, 8, 1);
    s.p1.has_errors = false;
    struct p2 *p = train(&s, 1);
    ck_assert_double_eq_tol(p->of[REGIME_KIN].alone, 0.4, 1e-9);
    ck_assert_double_eq_tol(p->of[REGIME_STRANGER].own.like, 0.5, 1e-9);
    ck_assert_double_eq_tol(p->of[REGIME_STRANGER].own.types, 0.15, 1e-9);
    ck_assert(isnan(p2_contest(p).network) && !p2_contest(p).is_promoted);
    ck_assert(!p2_contest(NULL).is_promoted);
    p2_destroy(p);
    p2_destroy(NULL);
    school_close(&s);
}

TIMES(a_network_that_finds_what_the_closed_form_misses_is_promoted, suite_size(1, 2))
{
    struct school s;

    school_open(&s, TWO_SORTS, 28, (uint64_t)_i);
    struct p2 *p = train(&s, 1);
    struct p2_contest c = p2_contest(p);
    ck_assert_int_eq(c.n_families, FAMILIES);
    ck_assert_msg(c.is_promoted, "%g against %g", c.network, c.closed_form);
    p2_destroy(p);
    school_close(&s);
}

TIMES(where_there_is_nothing_to_find_the_closed_form_stays, suite_size(1, 2))
{
    struct school s;

    school_open(&s, GAUSSIAN, 28, (uint64_t)_i);
    struct p2 *p = train(&s, 1);
    struct p2_contest c = p2_contest(p);
    ck_assert_msg(!c.is_promoted, "%g against %g", c.network, c.closed_form);
    ck_assert_double_lt(c.network, 1.1 * c.closed_form);    // and little is lost
    p2_destroy(p);
    school_close(&s);
}

TEST(the_same_lessons_teach_the_same_bytes)
{
    struct school s;
    struct buf bytes[2];

    school_open(&s, TWO_SORTS, 9, 5);
    const int n = suite_size(2, 3);
    struct p2 *p[3] = { train(&s, 7), train(&s, 7), n > 2 ? train(&s, 8) : NULL };
    for (int i = 0; i < 2; i++) {
        buf_init(&bytes[i], 1 << 20);
        encode(p[i], &s.a, &bytes[i]);
    }
    ck_assert_uint_eq(bytes[0].len, bytes[1].len);
    ck_assert_mem_eq(bytes[0].data, bytes[1].data, bytes[0].len);
    if (n > 2) {    // by another seed
        const struct params *one = &p[0]->net.params, *other = &p[2]->net.params;
        ck_assert_mem_ne(one->w, other->w, (size_t)one->n * sizeof *one->w);
    }
    for (int i = 0; i < 3; i++)
        p2_destroy(p[i]);
    buf_release(&bytes[0]);
    buf_release(&bytes[1]);
    school_close(&s);
}

enum { HELD = 4 };

/* What P1 was not shown has no error, whatever its value. */
static void hold_out(struct school *s)
{
    for (int r = 0; r < REGIMES; r++) {
        for (int i = 0; i < s->x.n_alone; i++)
            if (s->x.alone[i].workload == HELD) {
                s->x.alone[i].value = s->x.watts[i].value = 1e6f;
                s->p1.errors.of[P1_ALONE][r][i] = s->p1.errors.of[P1_WATTS][r][i] = NAN;
            }
        for (int i = 0; i < s->x.n_pairs; i++)
            if (s->x.pairs[i].workload == HELD || s->x.pairs[i].neighbour == HELD) {
                s->x.pairs[i].value = -1e6f;
                s->p1.errors.of[P1_OWN][r][i] = s->p1.errors.of[P1_PARTNER][r][i] = NAN;
            }
    }
}

/* As if it had never been measured. */
static void forget(struct school *s)
{
    struct p1_errors *of = &s->p1.errors;
    int n = 0;

    for (int i = 0; i < s->x.n_alone; i++) {
        if (s->x.alone[i].workload == HELD)
            continue;
        s->x.alone[n] = s->x.alone[i];
        s->x.watts[n] = s->x.watts[i];
        for (int r = 0; r < REGIMES; r++) {
            of->of[P1_ALONE][r][n] = of->of[P1_ALONE][r][i];
            of->of[P1_WATTS][r][n] = of->of[P1_WATTS][r][i];
        }
        n++;
    }
    s->x.n_alone = s->x.n_watts = n;
    n = 0;
    for (int i = 0; i < s->x.n_pairs; i++) {
        if (s->x.pairs[i].workload == HELD || s->x.pairs[i].neighbour == HELD)
            continue;
        s->x.pairs[n] = s->x.pairs[i];
        for (int r = 0; r < REGIMES; r++) {
            of->of[P1_OWN][r][n] = of->of[P1_OWN][r][i];
            of->of[P1_PARTNER][r][n] = of->of[P1_PARTNER][r][i];
        }
        n++;
    }
    s->x.n_pairs = n;
}

TEST(what_was_held_out_does_not_leak)
{
    struct buf bytes[2];

    for (int round = 0; round < 2; round++) {
        struct school s;
        school_open(&s, TWO_SORTS, 10, 6);
        if (round)
            forget(&s);
        else
            hold_out(&s);
        struct p2 *p = train(&s, 1);
        buf_init(&bytes[round], 1 << 20);
        encode(p, &s.a, &bytes[round]);
        p2_destroy(p);
        school_close(&s);
    }
    ck_assert_uint_eq(bytes[0].len, bytes[1].len);
    ck_assert_mem_eq(bytes[0].data, bytes[1].data, bytes[0].len);
    buf_release(&bytes[0]);
    buf_release(&bytes[1]);
}

TIMES(what_is_saved_is_what_is_loaded, 2)
{
    struct school s;
    struct buf bytes, again;
    struct weights w;
    struct err e = { 0 };
    struct p2 *loaded = NULL;

    school_open(&s, _i ? TWO_SORTS : GAUSSIAN, _i ? 9 : 2, 2);    // 2: too few for a contest
    struct p2 *p = train(&s, 3);
    buf_init(&bytes, 1 << 20);
    buf_init(&again, 1 << 20);
    encode(p, &s.a, &bytes);
    ck_assert_msg(weights_decode(&s.a, bytes.data, bytes.len, &w, &e) == 0, "%s", e.text);
    ck_assert_msg(p2_load(&w, &loaded, &e) == 0, "%s", e.text);
    encode(loaded, &s.a, &again);
    ck_assert_uint_eq(bytes.len, again.len);
    ck_assert_mem_eq(bytes.data, again.data, bytes.len);
    ck_assert_int_eq(isnan(p2_contest(p).network), isnan(p2_contest(loaded).network));
    ck_assert_int_eq(p2_contest(loaded).n_families, _i ? FAMILIES : 2);
    p2_destroy(p);
    p2_destroy(loaded);
    buf_release(&bytes);
    buf_release(&again);
    school_close(&s);
}

TEST(numbers_that_are_no_correlations_are_refused)
{
    struct arena a;
    struct weights w;
    struct err e = { 0 };
    struct p2 *p = NULL;
    double relations[2 * 10] = { 0 }, contest[4] = { 0 };
    struct gain_net net;

    arena_init(&a);
    weights_init(&w, &a);
    gain_net_init(&net, NULL);
    ck_assert_int_eq(p2_load(&w, &p, &e), -ENOENT);
    relations[0] = 1.5;
    weights_put_doubles(&w, "p2 relations", 2, 10, relations);
    weights_put_doubles(&w, "p2 contest", 1, 4, contest);
    weights_put(&w, "p2 network", 1, net.params.n, net.params.w);
    ck_assert_int_eq(p2_load(&w, &p, &e), -EINVAL);
    ck_assert_ptr_null(p);
    gain_net_release(&net);
    arena_release(&a);
}

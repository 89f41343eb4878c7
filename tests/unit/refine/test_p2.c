/* What a observation says of everything else: against the joint Gaussian written out. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "refine/p2.h"
#include "refine/p2_inner.h"
#include "unit/refine/fake_p1.h"
#include "unit/suite.h"

enum { TYPES = 3, OTHERS = 7, NUMBERS = TYPES * (1 + OTHERS), SEEN_MAX = 6 };

/* What p2_relations.c states of errors that nobody has looked at. */
static const struct {
    double alone, watts, own[4], partner[4];
} usual[REGIMES] = {
    { 0.4, 0.5, { 0.45, 0.40, 0.15, 0.30 }, { 0.30, 0.50, 0.20, 0.20 } },
    { 0.2, 0.5, { 0.45, 0.50, 0.05, 0.15 }, { 0.30, 0.65, 0.05, 0.40 } },
};

static const struct p1 model = { .n_types = TYPES, .sd = 0.3, .beside_sd = 0.2, .watts_sd = 0.25 };

struct stage {
    struct arena a;
    struct p1_context *context;
    struct p2_estimates b;    // of workload 0, as the fake says
    struct p2_observation seen[SEEN_MAX];
    int n;
};

static void look_at(struct features *f, int type, struct rng *r)
{
    *f = (struct features){ .ln_kernel_s = (float)(2 * rng_uniform(r)) };
    for (int i = 0; i < FEATURE_SHARES; i++)
        f->share[i] = (float)rng_uniform(r);
    for (int i = 0; i < FEATURE_FIGURES; i++)    // the first two types are somewhat alike
        f->figure[i] = (float)(type == 2 ? 1.5 : 0.15 * type);
}

/* Every other seed a stranger; 'n' random observations of different cells. */
static void stage_set(struct stage *s, uint64_t seed, int n)
{
    struct features on[TYPES];
    struct rng r;
    bool is_seen[TYPES][OTHERS + 1] = { 0 };

    rng_init(&r, seed, "stage");
    arena_init(&s->a);
    s->context = p1_context_create(&model, TYPES);
    for (int w = 0; w < OTHERS; w++) {
        struct identity who = { .name = (uint64_t)w + 1, .family = w == 0 && seed % 2 ? 0 : 7 };
        for (int g = 0; g < TYPES; g++)
            look_at(&on[g], g, &r);
        p1_context_add(s->context, &who, on);
    }
    p2_estimates_make(&s->a, TYPES, OTHERS, true, &s->b);
    p2_estimates_from_p1(s->context, 0, &s->b);
    for (s->n = 0; s->n < n;) {
        int g = (int)rng_below(&r, TYPES), j = (int)rng_below(&r, OTHERS + 1) - 1;
        if (is_seen[g][j + 1])
            continue;
        is_seen[g][j + 1] = true;
        double slower = j < 0 ? 0 : (double)s->b.own[g * OTHERS + j];
        s->seen[s->n++] = (struct p2_observation){
            .type = g,
            .neighbour = j,
            .ln_speed = (double)s->b.alone[g] + slower + 0.15 * rng_normal(&r),
            .ln_speed_var = 0.01 * rng_uniform(&r),
            .ln_r_partner = j < 0 ? (double)NAN : -0.6 + 0.1 * rng_normal(&r),
            .ln_r_partner_var = 0.002,
            .ln_watts = j < 0 ? 5 + 0.2 * rng_normal(&r) : (double)NAN,
        };
    }
}

static void stage_strike(struct stage *s)
{
    p1_context_destroy(s->context);
    arena_release(&s->a);
}

static void copy(struct stage *s, struct p2_estimates *out)
{
    p2_estimates_make(&s->a, TYPES, OTHERS, true, out);
    p2_estimates_from_p1(s->context, 0, out);
}

static void refine(struct stage *s, const struct p2 *p, enum p2_way way, struct p2_estimates *out)
{
    struct err e = { 0 };

    copy(s, out);
    int rc = p2_refine(&s->a, p, way, &(struct p2_sightings){ s->n, s->seen }, out, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
}

/* ---- the joint Gaussian, in full ---- */

struct oracle {
    int n;
    double mean[NUMBERS], k[NUMBERS][NUMBERS];
    double squares;    // of surprises so far, each in sds of what was believed just before
};

static double type_likeness(const struct stage *s, int g, int h)
{
    double d2 = 0;

    for (int i = 0; i < FEATURE_FIGURES; i++) {
        double d = (double)(p1_features(s->context, 0, g)->figure[i] -
                            p1_features(s->context, 0, h)->figure[i]) /
                   0.35;
        d2 += d * d;
    }
    return exp(-d2 / 2);
}

static double neighbour_likeness(const struct stage *s, int i, int j)
{
    double sum = 0;

    for (int g = 0; g < TYPES; g++)
        sum += p1_like(s->context, g, i, j) / TYPES;
    return sum;
}

static double effect(const struct stage *s, const double f[4], int c, int d)
{
    double same = type_likeness(s, c / OTHERS, d / OTHERS), types = f[3] + (1 - f[3]) * same;
    double like = neighbour_likeness(s, c % OTHERS, d % OTHERS);

    return types * (f[0] + f[1] * like) + (c == d ? f[2] : 0);
}

/* Numbers: the job's speed on each type, then what each neighbour does to it on each. */
static void oracle_make(const struct stage *s, struct oracle *o)
{
    const struct p2_estimates *b = &s->b;
    double rho = usual[b->regime].alone;

    memset(o, 0, sizeof *o);
    o->n = NUMBERS;
    for (int i = 0; i < NUMBERS; i++)
        for (int j = 0; j < NUMBERS; j++) {
            int c = i - TYPES, d = j - TYPES;
            o->mean[i] = (double)(c < 0 ? b->alone[i] : b->own[c]);
            if (c < 0 && d < 0)
                o->k[i][j] = (double)b->alone_sd[i] * (double)b->alone_sd[j] *
                             (rho + (1 - rho) * type_likeness(s, i, j));
            else if (c >= 0 && d >= 0)
                o->k[i][j] = (double)b->own_sd[c] * (double)b->own_sd[d] *
                             effect(s, usual[b->regime].own, c, d);
            else
                o->k[i][j] = p1_cross(s->context, b->regime) *
                             (double)(b->alone_sd[c < 0 ? i : j] * b->own_sd[c < 0 ? d : c]) *
                             type_likeness(s, c < 0 ? i : c / OTHERS, d < 0 ? j : d / OTHERS);
        }
}

/* Condition on one noisy sum after the other: no inverse is needed. */
static void oracle_see(struct oracle *o, int type, int beside, double value, double noise)
{
    double with[NUMBERS] = { 0 }, var = noise, believed = 0;
    int parts[2] = { type, beside < 0 ? -1 : TYPES + type * OTHERS + beside };

    for (int i = 0; i < o->n; i++)
        with[i] = o->k[i][parts[0]] + (parts[1] < 0 ? 0 : o->k[i][parts[1]]);
    for (int p = 0; p < 2; p++)
        if (parts[p] >= 0) {
            var += with[parts[p]];
            believed += o->mean[parts[p]];
        }
    o->squares += (value - believed) * (value - believed) / var;
    for (int i = 0; i < o->n; i++) {
        o->mean[i] += with[i] / var * (value - believed);
        for (int j = 0; j < o->n; j++)
            o->k[i][j] -= with[i] * with[j] / var;
    }
}

static double oracle_sd(const struct oracle *o, int type, int beside)
{
    int c = TYPES + type * OTHERS + beside;
    double var = o->k[type][type];

    if (beside >= 0)
        var += o->k[c][c] + 2 * o->k[type][c];
    return sqrt(fmax(var, 0));
}

static void oracle_see_all(const struct stage *s, struct oracle *o)
{
    for (int i = 0; i < s->n; i++)
        oracle_see(o, s->seen[i].type, s->seen[i].neighbour, s->seen[i].ln_speed,
                   s->seen[i].ln_speed_var + 0.02 * 0.02);
}

/* Every third case is far from what was believed: then covariances grow first. */
static double doubt_of(const struct stage *s)
{
    struct oracle o;

    oracle_make(s, &o);
    oracle_see_all(s, &o);
    return fmax((4 + o.squares) / (4 + s->n), 1);
}

TIMES(the_closed_form_is_the_joint_gaussian_conditioned, 24)
{
    struct stage s;
    struct p2_estimates b;
    struct oracle o;

    stage_set(&s, (uint64_t)_i, 1 + _i % SEEN_MAX);
    for (int i = 0; i < s.n && _i % 3 == 0; i++)
        s.seen[i].ln_speed -= 2;
    double doubt = doubt_of(&s);
    ck_assert(_i % 3 != 0 || doubt > 2);
    oracle_make(&s, &o);
    for (int i = 0; i < NUMBERS * NUMBERS; i++)
        o.k[i / NUMBERS][i % NUMBERS] *= doubt;
    oracle_see_all(&s, &o);
    refine(&s, NULL, P2_CLOSED, &b);
    for (int g = 0; g < TYPES; g++) {
        ck_assert_double_eq_tol((double)b.alone[g], o.mean[g], 1e-5);
        ck_assert_double_eq_tol((double)b.alone_sd[g], oracle_sd(&o, g, -1), 1e-5);
        for (int j = 0; j < OTHERS; j++) {
            int c = g * OTHERS + j;
            ck_assert_double_eq_tol((double)b.own[c], fmin(o.mean[TYPES + c], 0), 1e-5);
            ck_assert_double_eq_tol((double)b.own_sd[c], sqrt(o.k[TYPES + c][TYPES + c]), 1e-5);
            ck_assert_double_eq_tol((double)b.pair_sd[c], oracle_sd(&o, g, j), 1e-5);
        }
    }
    stage_strike(&s);
}

TIMES(a_partner_s_slowdown_corrects_partners_and_nobody_s_speed, 2)
{
    struct stage s;
    struct p2_estimates b, was;

    stage_set(&s, (uint64_t)_i, 0);
    s.n = 1;
    s.seen[0] = (struct p2_observation){ .type = 1,
                                         .neighbour = 2,
                                         .ln_speed = (double)NAN,
                                         .ln_r_partner = -0.9,
                                         .ln_r_partner_var = 0.003,
                                         .ln_watts = (double)NAN };
    copy(&s, &was);
    refine(&s, NULL, P2_CHAMPION, &b);
    int at = 1 * OTHERS + 2;
    double sd = (double)was.partner_sd[at], y = -0.9 - (double)was.partner[at];
    float ln_r, ln_r_sd;
    p1_partner(s.context, 0, 1, 2, 3, &ln_r, &ln_r_sd);
    ck_assert(was.partner[at] == ln_r && was.partner_sd[at] == ln_r_sd);
    for (int c = 0; c < TYPES * OTHERS; c++) {
        double k = sd * (double)was.partner_sd[c] * effect(&s, usual[was.regime].partner, at, c);
        double gain = k / (sd * sd + 0.003 + 0.02 * 0.02);
        ck_assert_double_eq_tol((double)(b.partner[c] - was.partner[c]), gain * y, 1e-5);
        ck_assert(b.own[c] == was.own[c]);
    }
    ck_assert_mem_eq(b.alone, was.alone, TYPES * sizeof *b.alone);
    ck_assert_mem_eq(b.watts, was.watts, TYPES * sizeof *b.watts);
    stage_strike(&s);
}

TEST(watts_on_one_type_correct_the_others)
{
    struct stage s;
    struct p2_estimates b, was;

    stage_set(&s, 4, 0);
    s.n = 1;
    s.seen[0] = (struct p2_observation){ .type = 0,
                                         .neighbour = -1,
                                         .ln_speed = (double)NAN,
                                         .ln_r_partner = (double)NAN,
                                         .ln_watts = 5.3 };
    copy(&s, &was);
    refine(&s, NULL, P2_CLOSED, &b);
    double trust = 0.25 * 0.25 / (0.25 * 0.25 + 0.05 * 0.05);
    for (int g = 0; g < TYPES; g++) {
        double rho = 0.5 + 0.5 * type_likeness(&s, 0, g);
        ck_assert_double_eq_tol((double)(b.watts[g] - was.watts[g]), 0.3 * trust * rho, 1e-5);
    }
    ck_assert_mem_eq(b.alone, was.alone, TYPES * sizeof *b.alone);
    stage_strike(&s);
}

/* ---- other ways ---- */

static void assert_same(const struct p2_estimates *a, const struct p2_estimates *b)
{
    size_t types = TYPES * sizeof(float), cells = types * OTHERS;

    ck_assert_mem_eq(a->alone, b->alone, types);
    ck_assert_mem_eq(a->alone_sd, b->alone_sd, types);
    ck_assert_mem_eq(a->own, b->own, cells);
    ck_assert_mem_eq(a->own_sd, b->own_sd, cells);
    ck_assert_mem_eq(a->pair_sd, b->pair_sd, cells);
    ck_assert_mem_eq(a->partner, b->partner, cells);
    ck_assert_mem_eq(a->partner_sd, b->partner_sd, cells);
    ck_assert_mem_eq(a->watts, b->watts, types);
    ck_assert_mem_eq(a->watts_sd, b->watts_sd, types);
}

static void usual_p2(struct p2 *p, uint64_t seed)
{
    struct rng r;

    rng_init(&r, seed, "net");
    *p = (struct p2){ 0 };
    gain_net_init(&p->net, &r);
    for (int i = 0; i < REGIMES; i++) {
        const double *o = usual[i].own, *t = usual[i].partner;
        p->of[i] = (struct relations){
            usual[i].alone, usual[i].watts, { o[0], o[1], o[2], o[3] }, { t[0], t[1], t[2], t[3] }
        };
    }
}

TIMES(an_untrained_network_is_the_closed_form_number_for_number, 24)
{
    struct stage s;
    struct p2_estimates closed, network;
    struct p2 p;

    stage_set(&s, (uint64_t)_i, 1 + _i % SEEN_MAX);
    usual_p2(&p, (uint64_t)_i);
    refine(&s, &p, P2_CLOSED, &closed);
    refine(&s, &p, P2_NETWORK, &network);
    assert_same(&closed, &network);
    gain_net_release(&p.net);
    stage_strike(&s);
}

TEST(the_champion_is_who_won)
{
    struct stage s;
    struct p2_estimates closed, network, champion;
    struct p2 p;

    stage_set(&s, 3, 3);
    usual_p2(&p, 1);
    for (int i = 0; i < p.net.params.n; i++)
        p.net.params.w[i] += 0.1f;
    refine(&s, &p, P2_CLOSED, &closed);
    refine(&s, &p, P2_NETWORK, &network);
    ck_assert_mem_ne(closed.own, network.own, TYPES * OTHERS * sizeof(float));
    refine(&s, &p, P2_CHAMPION, &champion);
    assert_same(&champion, &closed);
    p.contest.is_promoted = true;
    refine(&s, &p, P2_CHAMPION, &champion);
    assert_same(&champion, &network);
    gain_net_release(&p.net);
    stage_strike(&s);
}

TEST(no_update_changes_nothing)
{
    struct stage s;
    struct p2_estimates b, was;

    stage_set(&s, 2, 3);
    copy(&s, &was);
    refine(&s, NULL, P2_NONE, &b);
    assert_same(&b, &was);
    s.n = 0;
    refine(&s, NULL, P2_CLOSED, &b);
    assert_same(&b, &was);
    stage_strike(&s);
}

TIMES(a_shift_moves_all_speeds_by_the_mean_surprise, 2)
{
    struct stage s;
    struct p2_estimates b, was;
    struct oracle o;
    double mean = 0;

    stage_set(&s, (uint64_t)_i, 0);
    s.n = 2;
    s.seen[0] = (struct p2_observation){ .type = 0, .neighbour = -1, .ln_speed = 1 };
    s.seen[1] = (struct p2_observation){ .type = 1, .neighbour = 3, .ln_speed = -1 };
    for (int i = 0; i < 2; i++)
        s.seen[i].ln_watts = s.seen[i].ln_r_partner = (double)NAN;
    copy(&s, &was);
    mean = (1 - (double)was.alone[0] - 1 - (double)was.alone[1] - (double)was.own[OTHERS + 3]) / 2;
    refine(&s, NULL, P2_SHIFT, &b);
    oracle_make(&s, &o);
    int c = TYPES + OTHERS + 3;
    for (int g = 0; g < TYPES; g++) {
        double with = (o.k[g][0] + o.k[g][1] + o.k[g][c]) / 2;
        double var = (o.k[0][0] + o.k[1][1] + o.k[c][c] + 2 * 0.02 * 0.02) / 4 +
                     (o.k[0][1] + o.k[0][c] + o.k[1][c]) / 2;
        double left = fmin(o.k[g][g] - 2 * with + var, o.k[g][g]);
        ck_assert_double_eq_tol((double)(b.alone[g] - was.alone[g]), mean, 1e-5);
        ck_assert_double_eq_tol((double)b.alone_sd[g], sqrt(left), 1e-5);
        for (int j = 0; j < OTHERS; j++) {
            int d = TYPES + g * OTHERS + j;
            double whole = o.k[g][g] + o.k[d][d] + 2 * o.k[g][d];
            double of_cell = (o.k[c][d] + o.k[0][d] + o.k[1][d]) / 2;
            left = fmin(whole - 2 * (with + of_cell) + var, whole);
            ck_assert_double_eq_tol((double)b.pair_sd[g * OTHERS + j], sqrt(left), 1e-5);
        }
    }
    ck_assert_mem_eq(b.own, was.own, TYPES * OTHERS * sizeof *b.own);
    stage_strike(&s);
}

TIMES(only_contradiction_grows_uncertainty_and_no_neighbour_helps, 24)
{
    struct stage s;
    struct p2_estimates b, was;
    struct p2 p;
    struct rng r;

    rng_init(&r, (uint64_t)_i, "bend");
    stage_set(&s, (uint64_t)_i, 1 + _i % SEEN_MAX);
    usual_p2(&p, (uint64_t)_i);
    for (int i = 0; i < p.net.params.n; i++)    // as wild as a network can be
        p.net.params.w[i] += (float)rng_normal(&r);
    for (int i = 0; i < s.n; i++)
        s.seen[i].ln_speed += s.seen[i].neighbour < 0 ? -0.8 : 1.2;
    copy(&s, &was);
    float wider = (float)sqrt(doubt_of(&s)) + 1e-6f;
    for (enum p2_way way = 0; way < P2_WAYS; way++) {
        bool is_seen[TYPES * OTHERS] = { 0 };
        for (int i = 0; i < s.n; i++)
            if (s.seen[i].neighbour >= 0)
                is_seen[s.seen[i].type * OTHERS + s.seen[i].neighbour] = true;
        refine(&s, &p, way, &b);
        for (int g = 0; g < TYPES; g++) {
            ck_assert(isfinite(b.alone[g]) && b.alone_sd[g] <= was.alone_sd[g] * wider);
            ck_assert(b.watts_sd[g] <= was.watts_sd[g]);
        }
        for (int c = 0; c < TYPES * OTHERS; c++) {
            ck_assert(b.own_sd[c] <= was.own_sd[c] * wider && b.partner_sd[c] <= was.partner_sd[c]);
            ck_assert(b.pair_sd[c] <= was.pair_sd[c] * wider + 1e-6f);
            ck_assert(is_seen[c] || (b.own[c] <= 0 && b.partner[c] <= 0));
        }
    }
    gain_net_release(&p.net);
    stage_strike(&s);
}

TEST(some_neighbours_are_corrected_as_among_all)
{
    struct stage s;
    struct p2_estimates all, some;
    struct err e = { 0 };
    static const int who[] = { 5, 1, 2 };    // two in a run

    stage_set(&s, 6, 0);
    s.n = 1;
    s.seen[0] = (struct p2_observation){ .type = 2, .neighbour = 1, .ln_speed = -1.5 };
    s.seen[0].ln_watts = s.seen[0].ln_r_partner = (double)NAN;
    refine(&s, NULL, P2_CLOSED, &all);
    p2_estimates_make(&s.a, TYPES, 3, true, &some);
    memcpy(some.neighbour, who, sizeof who);
    p2_estimates_from_p1(s.context, 0, &some);
    ck_assert_int_eq(
        p2_refine(&s.a, NULL, P2_CLOSED, &(struct p2_sightings){ 1, s.seen }, &some, &e), 0);
    for (int g = 0; g < TYPES; g++)
        for (int j = 0; j < 3; j++) {
            ck_assert(some.own[g * 3 + j] == all.own[g * OTHERS + who[j]]);
            ck_assert(some.pair_sd[g * 3 + j] == all.pair_sd[g * OTHERS + who[j]]);
            ck_assert(some.partner[g * 3 + j] == all.partner[g * OTHERS + who[j]]);
        }
    stage_strike(&s);
}

/* ---- what to measure next ---- */

static double expected_error(const struct oracle *o)
{
    double alone = 0, pair = 0;

    for (int g = 0; g < TYPES; g++) {
        alone += oracle_sd(o, g, -1) / TYPES;
        for (int j = 0; j < OTHERS; j++)
            pair += oracle_sd(o, g, j) / (TYPES * OTHERS);
    }
    return alone + pair;
}

TIMES(the_cell_to_measure_is_the_one_that_tells_most, 12)
{
    struct stage s;
    struct oracle seen;
    struct p2_observation allowed[TYPES * (OTHERS + 1)];
    struct err e = { 0 };
    int n = 0, best = -1;
    double least = INFINITY, gain;

    stage_set(&s, (uint64_t)_i, _i % SEEN_MAX);
    oracle_make(&s, &seen);
    for (int i = 0; i < s.n; i++)
        oracle_see(&seen, s.seen[i].type, s.seen[i].neighbour, 0, s.seen[i].ln_speed_var + 0.0004);
    for (int c = 0; c < TYPES * (OTHERS + 1); c++) {
        struct oracle after = seen;
        int type = c / (OTHERS + 1), beside = c % (OTHERS + 1) - 1;
        if ((c + _i) % 3 == 0)
            continue;
        oracle_see(&after, type, beside, 0, 0.05 * 0.05 + 0.02 * 0.02);
        if (expected_error(&after) < least - 1e-9) {
            least = expected_error(&after);
            best = n;
        }
        allowed[n++] = (struct p2_observation){ .type = type, .neighbour = beside };
    }
    struct p2_sightings known = { s.n, s.seen };
    int chosen =
        p2_choose(&s.a, NULL, &s.b, &known, &(struct p2_sightings){ n, allowed }, &gain, &e);
    ck_assert_int_eq(chosen, best);
    ck_assert_double_eq_tol(gain, expected_error(&seen) - least, 1e-6);
    ck_assert_int_eq(p2_choose(&s.a, NULL, &s.b, &known, &(struct p2_sightings){ 0 }, NULL, &e),
                     -1);
    stage_strike(&s);
}

/* ---- the network's gradients ---- */

static double wish(struct stage *s, const struct gain_net *net, const struct evidence *v,
                   struct gain_pass *pass, float *dgamma, float *ddelta)
{
    double sum = 0;

    gain_net_forward(&s->a, net, v, &s->b, pass);
    for (int i = 0; i < v->n * v->n_targets; i++) {
        dgamma[i] = (float)(i % 5 - 2);
        sum += (double)(dgamma[i] * pass->gamma[i]);
    }
    for (int t = 0; t < v->n_targets; t++) {
        ddelta[t] = (float)(t % 3 - 1);
        sum += (double)(ddelta[t] * pass->delta[t]);
    }
    return sum;
}

TEST(gradients_are_what_differences_say)
{
    struct stage s;
    struct p2 p;
    struct evidence v;
    struct gain_pass pass;
    struct rng r;
    float dgamma[SEEN_MAX * NUMBERS], ddelta[NUMBERS];

    rng_init(&r, 5, "weights");
    stage_set(&s, 8, 3);
    usual_p2(&p, 2);
    for (int i = 0; i < p.net.params.n; i++)
        p.net.params.w[i] = (float)(0.2 * rng_normal(&r));
    evidence_of_speeds(&s.a, &p.of[0], &(struct p2_sightings){ s.n, s.seen }, &s.b, &v);
    ck_assert_int_eq(evidence_weigh(&s.a, &v, NULL), 0);
    wish(&s, &p.net, &v, &pass, dgamma, ddelta);
    params_clear(&p.net.params);
    gain_net_backward(&s.a, &p.net, &v, &pass, dgamma, ddelta, p.net.params.grad);
    for (int i = 0; i < p.net.params.n; i += 3) {
        float was = p.net.params.w[i];
        p.net.params.w[i] = was + 1e-2f;
        double up = wish(&s, &p.net, &v, &pass, dgamma, ddelta);
        p.net.params.w[i] = was - 1e-2f;
        double down = wish(&s, &p.net, &v, &pass, dgamma, ddelta);
        p.net.params.w[i] = was;
        double g = (double)p.net.params.grad[i];
        ck_assert_msg(fabs((up - down) / 2e-2 - g) < 0.01 + 0.02 * fabs(g), "weight %d: %g, not %g",
                      i, g, (up - down) / 2e-2);
    }
    gain_net_release(&p.net);
    stage_strike(&s);
}

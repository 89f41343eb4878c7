/* P1 in a small world whose rule is known: what it learns, what it must not see, what it keeps. */
#include <errno.h>
#include <stdlib.h>

#include "base/text/buf.h"
#include "estimate/p1/inner.h"
#include "estimate/prior/prior.h"
#include "nn/weights.h"
#include "unit/estimate/p1/lab.h"
#include "unit/estimate/p1/spoil.h"

enum { MOST = 64 };

struct lab {
    struct world w;
    struct examples x;
    bool held[MOST], held_type[4];
    struct holdout v;
};

static void lab_init(struct lab *l, int first, int last, int n_types)
{
    *l = (struct lab){ 0 };
    l->v = (struct holdout){ l->held, l->held_type };
    world_init(&l->w, lab_text);
    lab_measure(&l->w, first, last, n_types);
    examples_take(&l->w.arena, &l->w.catalog, 2048, 1, &l->x);
}

static struct p1 *train(const struct lab *l, const struct examples *x, bool all_members)
{
    struct p1_options o = { .seed = 5, .n_nets = 1, .all_members = all_members };
    struct err e = { 0 };
    struct p1 *p;

    ck_assert_msg(p1_train(x, &l->v, &o, &p, &e) == 0, "%s", e.text);
    return p;
}

/* All workloads of the lab on all its types. */
static struct p1_context *scene_of(const struct lab *l, const struct p1 *p)
{
    struct p1_context *s = p1_context_create(p, l->x.n_types);

    for (int w = 0; w < l->x.n_workloads; w++)
        ck_assert_int_eq(p1_context_add(s, &l->x.who[w], examples_at(&l->x, w, 0)), w);
    return s;
}

static void bytes_of(const struct p1 *p, struct buf *out)
{
    struct arena a;
    struct weights bag;
    struct err e = { 0 };

    arena_init(&a);
    weights_init(&bag, &a);
    buf_init(out, WEIGHTS_BYTES_MAX);
    ck_assert_msg(p1_save(p, &bag, &e) == 0, "%s", e.text);
    ck_assert_msg(weights_encode(&bag, out, &e) == 0, "%s", e.text);
    arena_release(&a);
}

/* ---- whatever it learned from, its answers make sense ---- */

static void sensible(const struct lab *l, const struct p1_context *s, const char *name)
{
    float ln_r[MOST], sd[MOST], back[MOST], back_sd[MOST];
    int n = l->x.n_workloads;

    for (int w = 0; w < n; w++)
        for (int t = 0; t < l->x.n_types; t++) {
            struct p1_alone a = p1_alone(s, w, t);
            p1_beside(s, w, t, 0, n, ln_r, sd);
            p1_partner(s, w, t, 0, n, back, back_sd);
            ck_assert_msg(isfinite(a.ln_speed) && isfinite(a.ln_watts), "%s: %d", name, w);
            ck_assert_msg(isfinite(a.ln_speed_sd) && a.ln_speed_sd > 0.01f, "%s: sd %g", name,
                          (double)a.ln_speed_sd);
            ck_assert_msg(isfinite(a.ln_watts_sd) && a.ln_watts_sd > 0.001f, "%s: sd of watts %g",
                          name, (double)a.ln_watts_sd);
            for (int k = 0; k < n; k++) {
                ck_assert_msg(ln_r[k] <= 0 && back[k] <= 0, "%s: ln r above 0", name);
                ck_assert_msg(sd[k] > 0 && isfinite(sd[k]) && back_sd[k] > 0, "%s: sd of ln r",
                              name);
                double unfit = p1_unfit(s, w, t, k);
                ck_assert_msg(unfit >= 0 && unfit <= 1, "%s: unfit %g", name, unfit);
                double like = p1_like(s, t, w, k);
                ck_assert_msg(like >= 0 && like <= 1 && (w != k || like == 1), "%s: like", name);
            }
        }
}

static void weights_add_up(const struct p1 *p, const char *name)
{
    for (int i = 0; i < 2 * REGIMES; i++) {
        double sum = 0;
        for (int m = 0; m < P1_MEMBERS; m++) {
            double weight = p1_weight_of(p, (enum p1_member)m, (enum regime)(i / 2), i % 2);
            ck_assert_msg(weight >= 0, "%s: a weight of %g", name, weight);
            sum += weight;
        }
        ck_assert_msg(fabs(sum - 1) < 1e-9, "%s: weights add up to %g", name, sum);
    }
}

static const struct {
    const char *name;
    int first, last, n_types;    // what is measured
} worlds[] = {
    { "all eleven on all types", 0, 11, 3 },
    { "nothing was measured", 0, 0, 3 },
    { "one workload on one type", 0, 1, 1 },
    { "one workload on all types", 0, 1, 3 },
    { "one family", 0, 3, 3 },
    { "two workloads, too few for a network", 2, 4, 1 },
    { "a type that was never measured", 0, 11, 2 },
};

EACH(whatever_was_measured_answers_make_sense, worlds)
{
    struct lab l;

    lab_init(&l, worlds[_i].first, worlds[_i].last, worlds[_i].n_types);
    struct p1 *p = train(&l, &l.x, false);
    struct p1_context *s = scene_of(&l, p);
    weights_add_up(p, worlds[_i].name);
    sensible(&l, s, worlds[_i].name);
    p1_context_destroy(s);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(with_nothing_to_learn_from_the_roofline_speaks)
{
    struct lab l;

    lab_init(&l, 0, 0, 0);
    struct p1 *p = train(&l, &l.x, false);
    struct p1_context *s = scene_of(&l, p);
    for (int w = 0; w < l.x.n_workloads; w++)
        for (int t = 0; t < 3; t++) {
            struct p1_alone a = p1_alone(s, w, t);
            const struct features *f = examples_at(&l.x, w, t);
            ck_assert_double_eq_tol((double)a.ln_speed, f->ln_roofline, 1e-5);
            ck_assert_double_eq_tol((double)a.ln_watts, f->ln_watts, 1e-5);
            ck_assert_int_eq(a.regime, REGIME_STRANGER);
            ck_assert_mem_eq(p1_features(s, w, t), f, sizeof *f);
        }
    p1_context_destroy(s);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(one_measurement_does_not_make_it_sure)
{
    struct lab none, one;

    lab_init(&none, 0, 0, 0);
    lab_init(&one, 0, 1, 1);
    struct p1 *p = train(&none, &none.x, false), *q = train(&one, &one.x, false);
    struct p1_context *s = scene_of(&none, p), *t = scene_of(&one, q);
    for (int w = 3; w < 11; w++)
        ck_assert_double_gt((double)p1_alone(t, w, 0).ln_speed_sd,
                            0.5 * (double)p1_alone(s, w, 0).ln_speed_sd);
    p1_context_destroy(s);
    p1_context_destroy(t);
    p1_destroy(p);
    p1_destroy(q);
    world_release(&none.w);
    world_release(&one.w);
}

/* ---- it learns ---- */

static const struct {
    const char *name;
    int held[3];    // workloads; -1: no more
} parts[] = {
    { "one of each of three families", { 1, 4, 9 } },
    { "a whole family", { 6, 7, -1 } },
};

static void hold(struct lab *l, const int *workloads)
{
    for (int i = 0; i < 3 && workloads[i] >= 0; i++)
        l->held[workloads[i]] = true;
}

static double alone_error(const struct lab *l, struct p1_context *s, enum p1_member m)
{
    double sum = 0;
    float ln_speed;

    for (int w = 0; w < l->x.n_workloads; w++)
        for (int t = 0; t < 3 && l->held[w]; t++) {
            double truth = examples_at(&l->x, w, t)->ln_roofline + lab_residual(&l->w, w, t);
            ck_assert(p1_ask_alone(s, m, w, t, &ln_speed));
            sum += fabs((double)ln_speed - truth);
        }
    return sum;
}

static double beside_error(const struct lab *l, struct p1_context *s, enum p1_member m)
{
    double sum = 0;
    float ln_r;

    for (int w = 0; w < l->x.n_workloads; w++)
        for (int n = 0; n < l->x.n_workloads && l->held[w]; n++)
            if (!l->held[n]) {
                ck_assert(p1_ask_beside(s, m, w, 1, n, &ln_r));
                sum += fabs((double)ln_r - lab_ln_r(&l->w, w, 1, n));
            }
    return sum;
}

EACH(all_together_beat_the_mean_on_what_was_held_out, parts)
{
    struct lab l;

    lab_init(&l, 0, 11, 3);
    hold(&l, parts[_i].held);
    struct p1 *p = train(&l, &l.x, false);
    struct p1_context *s = scene_of(&l, p);
    double mean = alone_error(&l, s, P1_MEAN), ours = alone_error(&l, s, P1_ENSEMBLE);
    ck_assert_msg(ours < mean * (_i == 0 ? 0.7 : 1.1), "%s: %g against %g", parts[_i].name, ours,
                  mean);
    mean = beside_error(&l, s, P1_MEAN);
    ours = beside_error(&l, s, P1_ENSEMBLE);
    ck_assert_msg(ours < mean * (_i == 0 ? 0.7 : 1), "%s: %g against %g beside", parts[_i].name,
                  ours, mean);
    p1_context_destroy(s);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(members_are_there_when_asked_for)
{
    struct lab l;
    float y;

    lab_init(&l, 0, 11, 1);
    for (int all = 0; all < 2; all++) {
        struct p1 *p = train(&l, &l.x, all);
        struct p1_context *s = scene_of(&l, p);
        for (int m = 0; m < P1_MEMBERS; m++) {
            bool is_net = m >= P1_FEED_FORWARD && m <= P1_ATTENTION;
            bool is_there = all || !is_net || m == (int)p1_net_member(p->favourite);
            ck_assert_msg(p1_ask_alone(s, (enum p1_member)m, 0, 0, &y) == is_there, "%s",
                          p1_member_names[m]);
            ck_assert_msg(p1_ask_beside(s, (enum p1_member)m, 0, 0, 1, &y) ==
                              (is_there && m != P1_RIDGE),
                          "%s", p1_member_names[m]);
        }
        p1_context_destroy(s);
        p1_destroy(p);
    }
    world_release(&l.w);
}

/* ---- it does not see what it must not ---- */

static const struct {
    const char *name;
    int held[3], held_type;    // -1: none
    float poison;
} leaks[] = {
    { "a job and a type are held out", { 4, -1, -1 }, 0, -1e3f },
    { "a family is held out", { 6, 7, -1 }, -1, (float)NAN },
    { "a type is held out", { -1, -1, -1 }, 2, (float)NAN },
    { "a job is held out", { 1, -1, -1 }, -1, 1e3f },
    { "a job is held out, and not a number", { 1, -1, -1 }, -1, (float)NAN },
    { "a family is held out, and huge", { 0, 1, 2 }, -1, 1e3f },
};

static void poison_list(const struct lab *l, struct example *list, int n, float poison)
{
    for (int i = 0; i < n; i++)
        if (!holdout_shows(&l->v, list[i].workload, list[i].gpu_type, list[i].neighbour))
            list[i].value = list[i].noise = poison;
}

static void poison_hidden(struct lab *l, float poison)
{
    struct examples *x = &l->x;

    poison_list(l, x->alone, x->n_alone, poison);
    poison_list(l, x->pairs, x->n_pairs, poison);
    poison_list(l, x->watts, x->n_watts, poison);
    for (int i = 0; i < x->n_fits; i++)
        if (!holdout_shows(&l->v, x->fits[i].workload, x->fits[i].gpu_type, x->fits[i].neighbour))
            x->fits[i].is_unfit = true;
}

static void same_answers(const struct lab *l, const struct p1 *p, const struct p1 *q, double within,
                         const char *name)
{
    struct p1_context *s = scene_of(l, p), *t = scene_of(l, q);
    float r[2][MOST], sd[2][MOST];
    int n = l->x.n_workloads;

    for (int w = 0; w < n; w++)
        for (int g = 0; g < l->x.n_types; g++) {
            struct p1_alone a = p1_alone(s, w, g), b = p1_alone(t, w, g);
            ck_assert_msg(fabs((double)(a.ln_speed - b.ln_speed)) <= within &&
                              fabs((double)(a.ln_speed_sd - b.ln_speed_sd)) <= within &&
                              fabs((double)(a.ln_watts - b.ln_watts)) <= within &&
                              fabs((double)(a.ln_watts_sd - b.ln_watts_sd)) <= within &&
                              fabs((double)(a.mem_share - b.mem_share)) <= within &&
                              a.regime == b.regime,
                          "%s: %d on %d", name, w, g);
            for (int role = 0; role < 2; role++) {
                (role ? p1_partner : p1_beside)(s, w, g, 0, n, r[0], sd[0]);
                (role ? p1_partner : p1_beside)(t, w, g, 0, n, r[1], sd[1]);
                for (int k = 0; k < n; k++)
                    ck_assert_msg(fabs((double)(r[0][k] - r[1][k])) <= within &&
                                      fabs((double)(sd[0][k] - sd[1][k])) <= within,
                                  "%s: %d on %d beside %d", name, w, g, k);
            }
        }
    p1_context_destroy(s);
    p1_context_destroy(t);
}

TIMES(what_is_held_out_leaves_no_trace, suite_size(2, N_ROWS(leaks)))
{
    struct lab l;
    struct buf before, after;

    lab_init(&l, 0, 11, 3);
    hold(&l, leaks[_i].held);
    if (leaks[_i].held_type >= 0)
        l.held_type[leaks[_i].held_type] = true;
    struct p1 *p = train(&l, &l.x, false);
    poison_hidden(&l, leaks[_i].poison);
    struct p1 *q = train(&l, &l.x, false);
    bytes_of(p, &before);
    bytes_of(q, &after);
    ck_assert_msg(before.len == after.len && memcmp(before.data, after.data, before.len) == 0,
                  "%s: other bytes", leaks[_i].name);
    same_answers(&l, p, q, 0, leaks[_i].name);
    const struct p1_errors *errors = p1_held_out(q);
    for (int i = 0; i < l.x.n_alone; i++)
        if (!holdout_shows(&l.v, l.x.alone[i].workload, l.x.alone[i].gpu_type, -1))
            ck_assert_msg(isnan(errors->of[P1_ALONE][0][i]) && isnan(errors->of[P1_ALONE][1][i]),
                          "%s: an error of what was not shown", leaks[_i].name);
    buf_release(&before);
    buf_release(&after);
    p1_destroy(p);
    p1_destroy(q);
    world_release(&l.w);
}

/* Too little for networks, so that the processes speak alone. Workload 0 alone is 'more' faster
 * than one would think, and beside others as fast as ever.
 */
static void few(struct lab *l, double more)
{
    static const int some[] = { 0, 3, 6 };

    *l = (struct lab){ 0 };
    l->v = (struct holdout){ l->held, NULL };
    world_init(&l->w, lab_text);
    for (int i = 0; i < 3; i++)
        for (int t = 1; t < 3; t++) {
            lab_record(&l->w, some[i], t, -1, 3 + 0.3 * i + (i == 0 ? more : 0), NAN);
            for (int k = 0; k < 3; k++)
                lab_record(&l->w, some[i], t, some[k], 2.7 + 0.3 * i - 0.1 * k, NAN);
        }
    examples_take(&l->w.arena, &l->w.catalog, 100, 1, &l->x);
}

TEST(its_own_measurements_are_in_no_belief_about_it_but_in_those_of_partners)
{
    struct lab l, m;
    float a[MOST], b[MOST], sd[MOST];
    double changed = 0;

    few(&l, 0);
    few(&m, 0.4);
    struct p1 *p = train(&l, &l.x, false), *q = train(&m, &m.x, false);
    struct p1_context *s = scene_of(&l, p), *t = scene_of(&m, q);
    ck_assert_int_eq(p->n_nets, 0);
    p1_beside(s, 0, 2, 0, 11, a, sd);
    p1_beside(t, 0, 2, 0, 11, b, sd);
    for (int k = 0; k < 11; k++)
        ck_assert_double_eq_tol((double)a[k], (double)b[k], 1e-5);
    for (int k = 0; k < 11; k++) {
        p1_partner(s, k, 2, 0, 1, a, sd);
        p1_partner(t, k, 2, 0, 1, b, sd);
        changed = fmax(changed, fabs((double)(a[0] - b[0])));
    }
    ck_assert_double_gt(changed, 0.1);
    static const enum p1_member members[] = { P1_GP, P1_RIDGE, P1_NEAREST3 };
    for (int i = 0; i < 3; i++) {
        ck_assert(p1_ask_alone(s, members[i], 0, 2, a));
        ck_assert(p1_ask_alone(t, members[i], 0, 2, b));
        ck_assert_msg(fabs((double)(a[0] - b[0])) < 1e-5, "%s: %g and %g",
                      p1_member_names[members[i]], (double)a[0], (double)b[0]);
    }
    p1_context_destroy(s);
    p1_context_destroy(t);
    p1_destroy(p);
    p1_destroy(q);
    world_release(&l.w);
    world_release(&m.w);
}

/* Workload 3 was measured, and nobody of its family but itself. */
TEST(a_neighbour_that_was_measured_is_no_stranger)
{
    struct lab l;
    float ln_r, sd;

    few(&l, 0);
    struct p1 *p = train(&l, &l.x, false);
    for (int t = 0; t < p->n_types; t++)
        for (int r = 0; r < REGIMES; r++)
            for (int other = 0; other < REGIMES; other++)
                p->types[t].spread[r].beside_sd[other] = 0.1 + 0.2 * r + 0.4 * other;
    struct p1_context *s = scene_of(&l, p);
    struct identity nobody = { 1, 2, 3 };
    int stranger = p1_context_add(s, &nobody, examples_at(&l.x, 3, 0));
    ck_assert_int_eq(p1_alone(s, 3, 2).regime, REGIME_STRANGER);
    ck_assert(p1_knows(s, 3) && !p1_knows(s, stranger));
    p1_beside(s, stranger, 2, 3, 4, &ln_r, &sd);
    ck_assert_double_eq_tol((double)sd, 0.3, 1e-6);
    p1_beside(s, 3, 2, stranger, stranger + 1, &ln_r, &sd);
    ck_assert_double_eq_tol((double)sd, 0.7, 1e-6);
    p1_partner(s, stranger, 2, 3, 4, &ln_r, &sd);
    ck_assert_double_eq_tol((double)sd, 0.5, 1e-6);
    p1_context_destroy(s);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(the_score_over_pairs_counts_both_roles)
{
    struct lab l;

    lab_init(&l, 0, 11, 2);
    struct p1 *p = train(&l, &l.x, false);
    const struct p1_errors *errors = p1_held_out(p);
    for (int r = 0; r < REGIMES; r++) {
        double sum = 0;
        int n = 0;
        for (int i = 0; i < 2 * l.x.n_pairs; i++) {
            float error = errors->of[i % 2 ? P1_OWN : P1_PARTNER][r][i / 2];
            sum += isnan(error) ? 0 : (double)(error * error);
            n += !isnan(error);
        }
        ck_assert_double_eq_tol(p1_score_of(p, P1_ENSEMBLE).pair[r], sqrt(sum / n), 1e-9);
    }
    p1_destroy(p);
    world_release(&l.w);
}

/* ---- it is the same again ---- */

TEST(the_same_seed_gives_the_same_bytes_and_files_answer_the_same)
{
    struct lab l;
    struct buf one, two, three;
    struct weights bag;
    struct err e = { 0 };
    struct p1 *back;

    lab_init(&l, 0, 11, 2);
    struct p1 *p = train(&l, &l.x, false), *q = train(&l, &l.x, false);
    bytes_of(p, &one);
    bytes_of(q, &two);
    ck_assert_uint_eq(one.len, two.len);
    ck_assert_mem_eq(one.data, two.data, one.len);
    ck_assert_int_eq(weights_decode(&l.w.arena, one.data, one.len, &bag, &e), 0);
    ck_assert_msg(p1_load(&bag, &back, &e) == 0, "%s", e.text);
    bytes_of(back, &three);
    ck_assert_uint_eq(one.len, three.len);
    ck_assert_mem_eq(one.data, three.data, one.len);
    same_answers(&l, p, back, 1e-5, "loaded");
    ck_assert_ptr_nonnull(p1_held_out(p));
    ck_assert_ptr_null(p1_held_out(back));
    for (int r = 0; r < REGIMES; r++)
        ck_assert_double_eq_tol(p1_score_of(p, P1_ENSEMBLE).alone[r],
                                p1_score_of(back, P1_ENSEMBLE).alone[r], 1e-9);
    buf_release(&one);
    buf_release(&two);
    buf_release(&three);
    p1_destroy(p);
    p1_destroy(q);
    p1_destroy(back);
    world_release(&l.w);
}

TEST(what_is_missing_from_a_file_is_refused)
{
    struct lab l;
    struct weights bag, less;
    struct err e = { 0 };
    struct p1 *back = NULL;

    lab_init(&l, 0, 11, 1);
    struct p1 *p = train(&l, &l.x, false);
    weights_init(&bag, &l.w.arena);
    ck_assert_int_eq(p1_save(p, &bag, &e), 0);
    for (int skip = 0; skip < bag.n; skip++) {
        less = bag;
        less.arrays = ARENA_ARRAY(&l.w.arena, struct weights_array, (size_t)bag.n);
        less.n = 0;
        for (int i = 0; i < bag.n; i++)
            if (i != skip)
                less.arrays[less.n++] = bag.arrays[i];
        if (p1_load(&less, &back, &e) == 0)
            ck_abort_msg("loaded without %s", bag.arrays[skip].name);
        ck_assert_ptr_null(back);
    }
    p1_destroy(p);
    world_release(&l.w);
}

static const struct spoiled_row spoiled[] = {
    { "a favourite that is no network", "p1", 0, 7 },
    { "a thousand networks", "p1", 1, 1000 },
    { "a thousand types", "p1", 2, 1000 },
    { "a correlation above 1", "p1", 3, 1.5 },
    { "a weight below 0", "p1", 3 + REGIMES, -0.5 },
    { "a weight above 1", "p1", 3 + REGIMES, 2 },
    { "a spread of nothing", "type0", 0, 0 },
    { "a spread beyond all", "type0", 3, 1e9 },
};

EACH(numbers_that_no_model_has_are_refused, spoiled)
{
    struct lab l;
    struct weights bag;
    struct err e = { 0 };
    struct p1 *back = NULL;

    lab_init(&l, 0, 2, 1);
    struct p1 *p = train(&l, &l.x, false);
    weights_init(&bag, &l.w.arena);
    ck_assert_int_eq(p1_save(p, &bag, &e), 0);
    spoil(&l.w.arena, &bag, &spoiled[_i]);
    ck_assert_msg(p1_load(&bag, &back, &e) == -EINVAL, "%s", spoiled[_i].name);
    ck_assert_ptr_null(back);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(types_without_pairs_save_none_and_answer_the_same)
{
    struct lab l;
    struct weights bag;
    struct err e = { 0 };
    struct p1 *back;

    lab_init(&l, 0, 11, 2);
    l.x.n_pairs = 0;
    struct p1 *p = train(&l, &l.x, false);
    weights_init(&bag, &l.w.arena);
    ck_assert_int_eq(p1_save(p, &bag, &e), 0);
    ck_assert_ptr_nonnull(weights_find(&bag, "type1"));
    ck_assert_ptr_null(weights_find(&bag, "type1.pairs"));
    ck_assert_msg(p1_load(&bag, &back, &e) == 0, "%s", e.text);
    same_answers(&l, p, back, 1e-5, "without pairs");
    p1_destroy(p);
    p1_destroy(back);
    world_release(&l.w);
}

TEST(what_could_not_be_loaded_is_not_saved)
{
    struct lab l;
    struct weights bag;
    struct err e = { 0 };

    lab_init(&l, 0, 2, 1);
    struct p1 *p = train(&l, &l.x, false);
    weights_init(&bag, &l.w.arena);
    p->types[0].beside.gp.n = EXAMPLES_PAIRS_MAX + 1;
    ck_assert_int_eq(p1_save(p, &bag, &e), -E2BIG);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(a_scene_that_grows_says_the_same)
{
    struct lab l;
    float r[2][MOST], sd[2][MOST];

    lab_init(&l, 0, 11, 2);
    struct p1 *p = train(&l, &l.x, false);
    struct p1_context *grown = p1_context_create(p, 3), *whole = p1_context_create(p, 3);
    for (int w = 0; w < 44; w++)
        for (int both = 0; both < 2; both++) {
            struct identity who = l.x.who[w % 11];
            who.name += (uint64_t)(w / 11);
            p1_context_add(both ? whole : grown, &who, examples_at(&l.x, w % 11, 0));
            if (!both)    // asked while it grows
                p1_beside(grown, w / 2, w % 3, 0, w + 1, r[0], sd[0]);
        }
    for (int w = 0; w < 44; w += 7)
        for (int t = 0; t < 3; t++) {
            p1_beside(grown, w, t, 0, 44, r[0], sd[0]);
            for (int k = 0; k < 44; k++)
                p1_beside(whole, w, t, k, k + 1, &r[1][k], &sd[1][k]);
            for (int k = 0; k < 44; k++)
                ck_assert_double_eq_tol((double)r[0][k], (double)r[1][k], 1e-5);
            ck_assert_mem_eq(sd[0], sd[1], 44 * sizeof(float));
        }
    p1_context_destroy(grown);
    p1_context_destroy(whole);
    p1_destroy(p);
    world_release(&l.w);
}

TEST(no_average_leads_a_slowdown_astray)
{
    static const struct {
        float s, ln_r;
    } cases[] = {
        { 1.3f, 0 }, { 1, 0 }, { 0.5f, -1.386294f }, { 0, -3.794240f }, { -2, -3.794240f }
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol((double)p1_ln_r(cases[i].s), (double)cases[i].ln_r, 1e-5);
}

/* ---- types ---- */

static const struct {
    const char *name;
    int n;          // known types
    float apart;    // of each from the one that is asked about
} strange[] = {
    { "one that it knows", 1, 0 },
    { "three strange ones", 3, 5 },
    { "twelve strange ones, none of which says much", 12, 5 },
};

EACH(all_known_types_together_speak_for_a_new_one, strange)
{
    struct trained_type types[12] = { 0 };
    struct p1 p = { .types = types, .n_types = strange[_i].n };
    struct features on = { 0 };
    double share[12], sum = 0;

    for (int t = 0; t < strange[_i].n; t++)
        types[t].on.figure[0] = strange[_i].apart;
    p1_lean_on(&p, &on, false, share);
    for (int t = 0; t < strange[_i].n; t++)
        sum += share[t];
    ck_assert_msg(fabs(sum - 1) < 1e-9, "%s: %g", strange[_i].name, sum);
}

TEST(a_type_that_nobody_described_is_strange)
{
    struct lab l;
    struct features on[2];

    lab_init(&l, 0, 11, 1);
    struct p1 *p = train(&l, &l.x, false);
    struct p1_context *s = p1_context_create(p, 2);
    on[0] = on[1] = *examples_at(&l.x, 4, 0);
    on[1].figures_known = 0;
    p1_context_add(s, &l.x.who[4], on);
    double known = (double)p1_alone(s, 0, 0).ln_speed_sd;
    ck_assert_double_eq_tol((double)p1_alone(s, 0, 1).ln_speed_sd, hypot(known, 0.4), 1e-5);
    p1_context_destroy(s);
    p1_destroy(p);
    world_release(&l.w);
}

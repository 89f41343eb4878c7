#include "refine/trainer.h"

#include <math.h>
#include <sched.h>

#include "base/text/buf.h"
#include "estimate/model/model.h"
#include "nn/gp.h"
#include "nn/weights.h"
#include "unit/refine/small_catalog.h"

static struct catalog c;
static struct trainer *t;

static const struct trainer_options quick = {
    .seed = 1, .growth = 0.25, .n_cells_min = 32, .n_families_min = 3
};

static void set_up(void)
{
    nn_init();
    catalog_init(&c);
    small_names(&c);
    t = trainer_create(&quick, 0);
}

static void tear_down(void)
{
    trainer_destroy(t);
    catalog_release(&c);
}

FIXTURE(set_up, tear_down)

static const struct {
    const char *name;
    int n_families;    // measured
    bool want;
} offers[] = {
    { "an empty catalog", 0, false },
    { "two families", 2, false },
    { "three families", 3, true },
};

EACH(a_training_needs_enough_to_learn_from, offers)
{
    small_measurements(&c, offers[_i].n_families, 1);
    ck_assert_msg(trainer_offer(t, &c, NULL) == offers[_i].want, "%s", offers[_i].name);
    ck_assert(trainer_is_busy(t) == offers[_i].want);
    struct model *m = trainer_wait(t);
    ck_assert_msg((m != NULL) == offers[_i].want, "%s", offers[_i].name);
    ck_assert(!trainer_is_busy(t));
    model_destroy(m);
}

TEST(the_next_one_needs_news)
{
    struct rng rng;

    rng_init(&rng, 1, "test-trainer");
    small_measurements(&c, 3, 1);
    ck_assert(trainer_offer(t, &c, NULL));
    ck_assert(!trainer_offer(t, &c, NULL));    // one at a time
    model_destroy(trainer_wait(t));
    ck_assert(!trainer_offer(t, &c, NULL));    // nothing new
    for (int64_t n = c.n_measurements; c.n_measurements + 1 < n + n / 4;)
        small_measure(&c, &rng, 0, 0, -1);
    ck_assert(!trainer_offer(t, &c, NULL));    // not yet a quarter more
    for (int i = 0; i < 2; i++)
        small_measure(&c, &rng, 0, 0, -1);
    ck_assert(trainer_offer(t, &c, NULL));    // be it of the same cells
}

static struct model *train(const struct model *champion)
{
    ck_assert(trainer_offer(t, &c, champion));
    struct model *m = trainer_wait(t);
    ck_assert_ptr_nonnull(m);
    return m;
}

static void assert_same(const struct model *one, const struct model *other)
{
    struct buf b[2];

    for (int i = 0; i < 2; i++) {
        buf_init(&b[i], WEIGHTS_BYTES_MAX);
        ck_assert_int_eq(model_encode(i ? other : one, &b[i], NULL), 0);
    }
    ck_assert_uint_eq(b[0].len, b[1].len);
    ck_assert_mem_eq(b[0].data, b[1].data, b[0].len);
    buf_release(&b[0]);
    buf_release(&b[1]);
}

TEST(the_first_one_has_nobody_to_beat)
{
    small_measurements(&c, 4, 1);
    struct model *m = train(NULL);
    ck_assert(isnan(m->comparison.champion) && isnan(m->comparison.challenger));
    ck_assert(m->comparison.is_won && model_error(m) > 0);
    ck_assert_int_eq(m->n_families, 4);
    model_destroy(m);
}

/* The first training has the seed after the trainer's, the second the one after that. */
TEST(what_it_makes_is_what_model_train_makes_of_the_same)
{
    struct examples x;
    struct model *want;

    small_measurements(&c, 3, 1);
    struct model *old = train(NULL);
    small_measurements(&c, 4, 2);
    struct model *m = train(old);
    ck_assert_str_eq(m->about, "this site, training 2; seed 3");
    examples_take(&c, &x);
    ck_assert_int_eq(model_train(&x, old, quick.seed + 2, m->about, &want, NULL), 0);
    assert_same(m, want);
    ck_assert(m->comparison.champion > 0 && m->comparison.challenger > 0);
    ck_assert(m->comparison.is_won == (m->comparison.challenger <= m->comparison.champion));
    examples_release(&x);
    model_destroy(want);
    model_destroy(m);
    model_destroy(old);
}

/* Hyper-parameters by which cells have nothing in common. */
static void spoil(struct hyper *h)
{
    for (int i = 0; i < VARIANCES; i++)
        h->at[i] = -10;
}

static const struct {
    const char *name;
    bool is_spoiled, is_around_spoiled;    // of the champion's
    bool is_won;                           // by the challenger, which begins with its 'around'
} contests[] = {
    { "who believes that nothing has anything in common loses", true, false, true },
    { "who was taught that does not win", false, true, false },
};

EACH(a_challenger_must_be_better, contests)
{
    small_measurements(&c, 4, 1);
    struct model *old = train(NULL);
    if (contests[_i].is_spoiled)
        spoil(&old->hyper[LEARN_SPEEDS]);
    if (contests[_i].is_around_spoiled)
        spoil(&old->around[LEARN_SPEEDS]);
    small_measurements(&c, 4, 2);
    struct model *m = train(old);
    ck_assert_msg(m->comparison.is_won == contests[_i].is_won, "%s: %g against %g",
                  contests[_i].name, m->comparison.challenger, m->comparison.champion);
    model_destroy(m);
    model_destroy(old);
}

TEST(a_restart_alone_is_no_news)
{
    small_measurements(&c, 3, 1);
    ck_assert(trainer_offer(t, &c, NULL));
    struct model *m = trainer_wait(t);
    ck_assert_int_eq(m->n_measurements, c.n_measurements);
    trainer_destroy(t);
    t = trainer_create(&quick, m->n_measurements);
    ck_assert(!trainer_offer(t, &c, m));
    small_measurements(&c, 3, 2);
    ck_assert(trainer_offer(t, &c, m));
    model_destroy(trainer_wait(t));    // before the champion goes
    trainer_destroy(t);
    t = trainer_create(&quick, 10 * c.n_measurements);    // of a catalog that this one is not
    ck_assert(trainer_offer(t, &c, NULL));
    model_destroy(m);
}

TEST(the_catalog_may_grow_while_a_worker_learns)
{
    struct model *m[2] = { NULL, NULL };

    for (int i = 0; i < 2; i++) {
        tear_down();
        set_up();
        small_measurements(&c, 3, 1);
        ck_assert(trainer_offer(t, &c, NULL));
        if (i == 1)
            small_measurements(&c, 4, 7);
        while (!(m[i] = i ? trainer_take(t) : trainer_wait(t)))
            sched_yield();
    }
    assert_same(m[0], m[1]);
    model_destroy(m[0]);
    model_destroy(m[1]);
}

TEST(a_training_may_be_abandoned)
{
    small_measurements(&c, 3, 1);
    ck_assert(trainer_offer(t, &c, NULL));
    trainer_destroy(t);
    t = trainer_create(&quick, 0);
    ck_assert_ptr_null(trainer_take(t));
    ck_assert_ptr_null(trainer_wait(t));
    trainer_destroy(NULL);
}

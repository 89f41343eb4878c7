#include "refine/trainer.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "nn/gp.h"
#include "nn/weights.h"
#include "refine/model.h"
#include "unit/refine/small_catalog.h"

static struct catalog c;
static struct trainer *t;

static const struct trainer_options quick = {
    .seed = 1, .n_nets = 1, .growth = 0.25, .n_cells_min = 32, .n_families_min = 3
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

TEST(the_first_one_has_nobody_to_beat)
{
    small_measurements(&c, 4, 1);
    ck_assert(trainer_offer(t, &c, NULL));
    struct model *m = trainer_wait(t);
    ck_assert(isnan(m->comparison.champion) && m->comparison.is_won);
    ck_assert_double_eq(m->comparison.challenger, model_error(m));
    ck_assert_int_eq(m->n_families, 4);
    model_destroy(m);
}

/* The workloads of the fourth family are all that the old one does not know. */
TEST(a_challenger_must_be_better_about_those_whom_the_champion_does_not_know)
{
    struct arena a;
    struct examples x;

    small_measurements(&c, 3, 1);
    ck_assert(trainer_offer(t, &c, NULL));
    struct model *old = trainer_wait(t);
    small_measurements(&c, 4, 2);
    arena_init(&a);
    examples_take(&a, &c, EXAMPLES_PAIRS_MAX, quick.seed, &x);
    ck_assert(trainer_offer(t, &c, old));
    struct model *m = trainer_wait(t);
    struct comparison want = model_compare(old, m, &x);
    ck_assert(want.champion > 0 && want.challenger > 0);
    ck_assert_double_eq(m->comparison.champion, want.champion);
    ck_assert_double_eq(m->comparison.challenger, want.challenger);
    ck_assert(m->comparison.is_won == (m->comparison.challenger < m->comparison.champion));
    ck_assert(m->comparison.is_won);    // it has met two of the three, the old one none
    model_destroy(m);
    model_destroy(old);
    arena_release(&a);
}

TEST(who_has_seen_more_of_the_same_wins)
{
    small_measurements(&c, 3, 1);
    ck_assert(trainer_offer(t, &c, NULL));
    struct model *old = trainer_wait(t);
    small_measurements(&c, 3, 2);
    ck_assert(trainer_offer(t, &c, old));
    struct model *m = trainer_wait(t);
    ck_assert(isnan(m->comparison.champion) && m->comparison.is_won);
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
    struct buf b[2];

    for (int i = 0; i < 2; i++) {
        tear_down();
        set_up();
        small_measurements(&c, 3, 1);
        ck_assert(trainer_offer(t, &c, NULL));
        struct model *m = NULL;
        if (i == 1) {
            small_measurements(&c, 4, 7);
            while (!(m = trainer_take(t)))
                sched_yield();
        } else {
            m = trainer_wait(t);
        }
        buf_init(&b[i], WEIGHTS_BYTES_MAX);
        ck_assert_int_eq(model_encode(m, &b[i], NULL), 0);
        model_destroy(m);
    }
    ck_assert_uint_eq(b[0].len, b[1].len);
    ck_assert_mem_eq(b[0].data, b[1].data, b[0].len);
    buf_release(&b[0]);
    buf_release(&b[1]);
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

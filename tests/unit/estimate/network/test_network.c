/* The network: slopes against differences, order of what is known, kept states, learning, files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/text/text.h"
#include "estimate/network/inner.h"
#include "estimate/network/worlds.h"
#include "nn/gp.h"
#include "nn/weights.h"
#include "unit/suite.h"

static struct arena arena;
static struct network *network;
static struct synthetic_world world;
static struct lesson lesson;

/* Weights as drawn and some more, so that none is zero; a lesson with enough of everything. */
static void set_up(void)
{
    struct rng r;

    nn_init();
    arena_init(&arena);
    rng_init(&r, 3, "test-network");
    network = network_create(&r);
    for (int i = 0; i < network->p.n; i++)
        network->p.w[i] += (float)(0.05 * rng_normal(&r));
    do {
        synthetic_make(&arena, &r, &world);
        lesson_draw(&arena, &r, &world, 40, &lesson);
    } while (lesson.n_known < 25 || lesson.n_asked < 20 || world.site.n_types < 2);
}

static void tear_down(void)
{
    network_destroy(network);
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static double loss(void)
{
    struct arena a;

    arena_init(&a);
    double value = lesson_loss(network, &a, &world.site, &lesson, 1, NULL);
    arena_release(&a);
    return value;
}

/* The line in parts, so that each speaks for itself. */
enum part { ENTERING, RELATING, FIRST, LAST = FIRST + LAYERS - 1, LEAVING, PARTS };

static int part_begin(enum part p)
{
    if (p <= RELATING)
        return p == ENTERING ? 0 : network->relations_at;
    if (p <= LEAVING)
        return p <= LAST ? network->layers[p - FIRST].before.at : network->last.at;
    return network->p.n;
}

/* The loss with a part of the weights moved along a random direction. */
static double loss_along(int begin, int end, uint64_t seed, double by, double *slope)
{
    float *w = network->p.w;
    float *kept = ARENA_ARRAY(&arena, float, (size_t)network->p.n);
    struct rng r;

    rng_init(&r, seed, "direction");
    memcpy(kept, w, (size_t)network->p.n * sizeof *w);
    *slope = 0;
    for (int i = begin; i < end; i++) {
        w[i] = (float)((double)kept[i] + by * rng_normal(&r));
        *slope += ((double)w[i] - (double)kept[i]) * (double)network->p.grad[i];
    }
    double value = loss();
    memcpy(w, kept, (size_t)network->p.n * sizeof *w);
    return value;
}

TIMES(slopes_of_the_loss_are_those_of_differences, PARTS)
{
    const int begin = part_begin((enum part)_i), end = part_begin((enum part)(_i + 1));
    const double by = 0.015 / sqrt(end - begin);
    double size = 0, ahead, behind;

    params_clear(&network->p);
    lesson_loss(network, &arena, &world.site, &lesson, 1, network->p.grad);
    for (int i = begin; i < end; i++)
        size += (double)network->p.grad[i] * (double)network->p.grad[i];
    for (uint64_t seed = 0; seed < 8; seed++) {
        double want = loss_along(begin, end, seed, by, &ahead);

        want -= loss_along(begin, end, seed, -by, &behind);
        ck_assert_msg(fabs(ahead - behind - want) < 0.04 * by * sqrt(size),
                      "part %d, direction %d: got %g, differences %g, of %g", _i, (int)seed,
                      ahead - behind, want, by * sqrt(size));
    }
}

TEST(a_weight_multiplies_slopes_and_not_the_loss)
{
    const int n = network->p.n;
    float *twice = ARENA_ARRAY(&arena, float, (size_t)n);

    params_clear(&network->p);
    double one = lesson_loss(network, &arena, &world.site, &lesson, 1, network->p.grad);
    double two = lesson_loss(network, &arena, &world.site, &lesson, 2, twice);
    ck_assert(one == two);
    for (int i = 0; i < n; i++)
        ck_assert(fabsf(twice[i] - 2 * network->p.grad[i]) <= 1e-5f + 1e-4f * fabsf(twice[i]));
}

/* ---- at a site ---- */

static struct network_site *at_site(const struct reading *known, int n)
{
    struct network_site *k = network_site_create(network, &world.site);

    network_read(k, -1, known, n);
    return k;
}

static float largest_difference(struct network_site *a, struct network_site *b)
{
    float most = 0, mean[2], sd[2];

    for (int i = 0; i < lesson.n_asked; i++) {
        const struct reading *q = &lesson.asked[i];

        network_ask(a, q->of, q->type, q->job, q->neighbour, &mean[0], &sd[0]);
        network_ask(b, q->of, q->type, q->job, q->neighbour, &mean[1], &sd[1]);
        ck_assert(isfinite(mean[0]) && sd[0] > 0);
        most = fmaxf(most, fmaxf(fabsf(mean[0] - mean[1]), fabsf(sd[0] - sd[1])));
    }
    return most;
}

TEST(the_order_of_readings_does_not_matter)
{
    struct reading turned[LESSON_KNOWN];

    for (int i = 0; i < lesson.n_known; i++)
        turned[i] = lesson.known[lesson.n_known - 1 - i];
    struct network_site *a = at_site(lesson.known, lesson.n_known);
    struct network_site *b = at_site(turned, lesson.n_known);
    ck_assert(largest_difference(a, b) < 1e-4f);
    network_site_destroy(a);
    network_site_destroy(b);
}

TEST(a_site_answers_what_the_loss_was_computed_from)
{
    struct network_site *k = at_site(lesson.known, lesson.n_known);
    double sum = 0;

    for (int i = 0; i < lesson.n_asked; i++) {
        const struct reading *q = &lesson.asked[i];
        float mean, sd;

        network_ask(k, q->of, q->type, q->job, q->neighbour, &mean, &sd);
        const double scale = (double)sd * sqrt(3.0 / 5),
                     z = ((double)q->value - (double)mean) / scale;
        sum += log(scale / (double)reading_scale[q->of]) + 3 * log1p(z * z / 5);
    }
    ck_assert(fabs(sum / lesson.n_asked - loss()) < 1e-3);
    network_site_destroy(k);
}

TEST(kept_states_are_those_computed_afresh)
{
    struct network_site *a = at_site(lesson.known, lesson.n_known);
    struct network_site *b = at_site(lesson.known, lesson.n_known);

    largest_difference(a, a);    // all that is asked for is kept now
    ck_assert(largest_difference(a, b) == 0);
    network_read(a, -1, lesson.known, lesson.n_known - 1);    // and is forgotten with a change
    network_read(b, -1, lesson.known, lesson.n_known - 1);
    network_site_destroy(b);
    b = at_site(lesson.known, lesson.n_known - 1);
    ck_assert(largest_difference(a, b) == 0);
    network_site_destroy(a);
    network_site_destroy(b);
}

TEST(one_more_reading_changes_answers)
{
    struct network_site *a = at_site(lesson.known, lesson.n_known);
    struct network_site *b = at_site(lesson.known, lesson.n_known - 1);

    ck_assert(largest_difference(a, b) > 0);
    network_site_destroy(a);
    network_site_destroy(b);
}

TEST(a_site_may_get_workloads_while_it_is_asked)
{
    const int n = world.site.n_workloads;
    float mean[2], sd[2];

    world.site.n_workloads = n - 1;
    struct network_site *k = at_site(NULL, 0);
    network_ask(k, READ_ALONE, 0, 0, -1, &mean[0], &sd[0]);
    world.site.n_workloads = n;
    network_ask(k, READ_SLOWDOWN, 0, n - 1, 0, &mean[1], &sd[1]);
    network_ask(k, READ_ALONE, 0, 0, -1, &mean[1], &sd[1]);
    ck_assert(mean[0] == mean[1] && sd[0] == sd[1]);
    network_site_destroy(k);
}

/* More than there is room for: those of the focus are all in, so a change of one is felt. */
TEST(of_too_many_readings_the_own_ones_are_kept)
{
    enum { MANY = 2 * NETWORK_TOKENS };
    struct reading *many = ARENA_ARRAY(&arena, struct reading, MANY);
    const int focus = world.site.n_workloads - 1;

    for (int i = 0; i < MANY; i++)
        many[i] = (struct reading){ READ_SLOWDOWN, i % world.site.n_types,
                                    i % focus,     i / focus % focus,
                                    -0.3f,         0.03f };
    many[0] = (struct reading){ READ_ALONE, 0, focus, -1, -0.2f, 0.03f };
    struct network_site *a = network_site_create(network, &world.site);
    struct network_site *b = network_site_create(network, &world.site);
    network_read(a, focus, many, MANY);
    many[0].value = -1;
    network_read(b, focus, many, MANY);
    ck_assert(largest_difference(a, b) > 0);
    network_site_destroy(a);
    network_site_destroy(b);
}

/* ---- learning and files ---- */

static double mean_loss(const struct network *n)
{
    struct synthetic_world w;
    struct lesson l;
    struct arena a;
    struct rng r;
    double sum = 0;

    rng_init(&r, 99, "test-lessons");
    arena_init(&a);
    for (int i = 0; i < 40; i++) {
        arena_reset(&a);
        synthetic_make(&a, &r, &w);
        lesson_draw(&a, &r, &w, 40, &l);
        sum += lesson_loss(n, &a, &w.site, &l, 1, NULL);
    }
    arena_release(&a);
    return sum / 40;
}

TEST(it_learns_and_the_same_seed_learns_the_same)
{
    const struct network_options how = { .seed = 5, .n_steps = suite_size(15, 60) };
    struct network *first = network_train(&(struct network_options){ .seed = 5, .n_steps = 2 });
    struct network *a = network_train(&how), *b = network_train(&how);

    ck_assert_mem_eq(a->p.w, b->p.w, (size_t)a->p.n * sizeof *a->p.w);
    ck_assert_msg(mean_loss(a) < mean_loss(first) - 0.05, "%g, before %g", mean_loss(a),
                  mean_loss(first));
    network_destroy(first);
    network_destroy(a);
    network_destroy(b);
}

TEST(what_is_saved_and_loaded_is_the_same)
{
    struct network *again = NULL;
    struct weights bag;
    struct err e;

    weights_init(&bag, &arena);
    ck_assert_int_eq(network_load(&bag, &again, &e), -ENOENT);
    snprintf(network->about, sizeof network->about, "a test");
    network_save(network, &bag);
    ck_assert_int_eq(network_load(&bag, &again, &e), 0);
    ck_assert_str_eq(network_about(again), "a test");
    ck_assert_int_eq(again->p.n, network->p.n);
    ck_assert_mem_eq(again->p.w, network->p.w, (size_t)network->p.n * sizeof(float));
    network_destroy(again);
}

/* Made with seed 1: tests/t/network.sh makes it again. */
TEST(the_one_that_ships_with_the_program_foresees_worlds_that_it_never_saw)
{
    struct network *shipped = NULL;
    struct err e;

    ck_assert_msg(network_pretrained(&shipped, &e) == 0, "%s", e.text);
    ck_assert_int_eq(network_n_weights(shipped), network_n_weights(network));
    ck_assert_ptr_nonnull(strstr(network_about(shipped), "; seed 1; Haswell"));
    ck_assert_msg(mean_loss(shipped) < mean_loss(network) - 0.5, "%g, drawn by chance %g",
                  mean_loss(shipped), mean_loss(network));
    network_destroy(shipped);
}

TEST(weights_that_no_network_has_are_refused)
{
    struct network *again = NULL;
    struct weights bag;
    struct err e;

    weights_init(&bag, &arena);
    network->p.w[17] = 1e6f;
    network_save(network, &bag);
    ck_assert_int_eq(network_load(&bag, &again, &e), -EINVAL);
    weights_init(&bag, &arena);
    weights_put_text(&bag, "network.about", "three numbers");
    weights_put(&bag, "network", 1, 3, network->p.w);
    ck_assert_int_eq(network_load(&bag, &again, &e), -EINVAL);
}

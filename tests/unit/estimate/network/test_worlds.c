/* Synthetic sites: the same by the same seed, within what is sane, and lessons that hide what they
 * should.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "estimate/network/worlds.h"
#include "unit/suite.h"

enum { N_WORLDS = 200 };

static struct arena arena;
static struct synthetic_world world, twin;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static void draw(uint64_t seed, struct synthetic_world *w, struct lesson *l)
{
    struct rng r;

    rng_init(&r, seed, "test-worlds");
    synthetic_make(&arena, &r, w);
    lesson_draw(&arena, &r, w, 60, l);
}

TEST(the_same_seed_gives_the_same_world_and_lesson)
{
    struct lesson one, other;

    draw(7, &world, &one);
    draw(7, &twin, &other);
    const size_t cells = (size_t)(world.site.n_workloads * world.site.n_types);
    ck_assert_int_eq(world.site.n_workloads, twin.site.n_workloads);
    ck_assert_mem_eq(world.alone, twin.alone, sizeof world.alone);
    ck_assert_mem_eq(world.site.on, twin.site.on, cells * sizeof *world.site.on);
    ck_assert_int_eq(one.n_known, other.n_known);
    ck_assert_int_eq(one.n_asked, other.n_asked);
    ck_assert_mem_eq(one.known, other.known, (size_t)one.n_known * sizeof *one.known);
    ck_assert_mem_eq(one.asked, other.asked, (size_t)one.n_asked * sizeof *one.asked);
}

TEST(another_seed_gives_another_world)
{
    struct lesson l;

    draw(7, &world, &l);
    draw(8, &twin, &l);
    ck_assert_mem_ne(world.alone, twin.alone, sizeof world.alone);
}

static void assert_sane(const struct synthetic_world *w)
{
    const struct site *s = &w->site;

    ck_assert(s->n_types >= 1 && s->n_types <= WORLD_TYPES);
    ck_assert(s->n_families >= 3 && s->n_families <= WORLD_FAMILIES);
    ck_assert(s->n_workloads >= s->n_families && s->n_workloads <= WORLD_WORKLOADS);
    for (int i = 0; i < s->n_workloads; i++)
        for (int t = 0; t < s->n_types; t++) {
            const struct site_on *on = site_on(s, i, t);

            for (int k = 0; k < SITE_JOB; k++)
                ck_assert(fabsf(on->x[k]) < 6);
            ck_assert(on->busy >= 0 && on->busy <= 1 && on->traffic >= 0 && on->traffic <= 1);
            ck_assert(fabsf(w->alone[i][t]) < 8);
            for (int j = 0; j < s->n_workloads; j += 7) {
                float ln = synthetic_value(w, READ_SLOWDOWN, t, i, j);

                ck_assert(ln >= logf(0.0999f) && ln <= 0.05f);
                ck_assert(fabsf(synthetic_value(w, READ_PACKED, t, i, j) - ln - w->alone[i][t]) <
                          1e-5f);
            }
        }
}

TEST(worlds_are_within_what_sites_have)
{
    double alone = 0, slowdown = 0;
    struct lesson l;

    for (int i = 0; i < N_WORLDS; i++) {
        draw((uint64_t)i, &world, &l);
        assert_sane(&world);
        alone += (double)world.alone[0][0] / N_WORLDS;
        slowdown += exp((double)synthetic_value(&world, READ_SLOWDOWN, 0, 0, 0)) / N_WORLDS;
        arena_reset(&arena);
    }
    ck_assert_msg(alone > -1 && alone < 0.2, "ln of speed over the roofline: %g", alone);
    ck_assert_msg(slowdown > 0.5 && slowdown < 0.9, "slowdown: %g", slowdown);
}

static bool is_cell(const struct reading *a, const struct reading *b)
{
    return a->of == b->of && a->type == b->type && a->job == b->job && a->neighbour == b->neighbour;
}

TEST(no_cell_is_known_and_asked_nor_there_twice)
{
    struct lesson l;

    for (int i = 0; i < N_WORLDS; i++) {
        draw((uint64_t)i, &world, &l);
        ck_assert(l.n_asked > 0 && l.n_asked <= LESSON_ASKED && l.n_known <= LESSON_KNOWN);
        for (int k = 0; k < l.n_known; k++) {
            for (int j = 0; j < k; j++)
                ck_assert(!is_cell(&l.known[k], &l.known[j]));
            for (int j = 0; j < l.n_asked; j++)
                ck_assert(l.n_asked == 1 || !is_cell(&l.known[k], &l.asked[j]));
        }
        arena_reset(&arena);
    }
}

TEST(what_is_known_is_near_the_truth_and_what_is_asked_is_the_truth)
{
    struct lesson l;

    for (int i = 0; i < N_WORLDS; i++) {
        draw((uint64_t)i, &world, &l);
        for (int k = 0; k < l.n_known; k++) {
            const struct reading *r = &l.known[k];
            float truth = synthetic_value(&world, r->of, r->type, r->job, r->neighbour);

            ck_assert(r->noise > 0 && fabsf(r->value - truth) < 6 * r->noise);
        }
        for (int k = 0; k < l.n_asked; k++) {
            const struct reading *r = &l.asked[k];

            ck_assert(r->value == synthetic_value(&world, r->of, r->type, r->job, r->neighbour));
        }
        arena_reset(&arena);
    }
}

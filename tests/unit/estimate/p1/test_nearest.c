
#include <string.h>

#include "estimate/p1/examples.h"
#include "estimate/p1/memory.h"
#include "unit/estimate/synthetic.h"
#include "unit/suite.h"

static struct arena arena;
static struct examples examples;
static bool is_held[WORKLOADS];
static struct memory memory;

static void remember(void)
{
    struct holdout view = { is_held, NULL };

    memory_make(&arena, &examples, &view, &memory);
}

static void set_up(void)
{
    arena_init(&arena);
    synthetic_examples(&arena, 2, &examples);
    memset(is_held, 0, sizeof is_held);
    remember();
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

/* Mean size of an error of what is said of each workload alone, and of what its own would be. */
static double alone_error(bool no_kin, int k, double *of_zero)
{
    double sum = 0, zero = 0;

    for (int i = 0; i < examples.n_alone; i++) {
        const struct example *e = &examples.alone[i];
        float z = memory_alone(&memory, &examples.who[e->workload],
                               examples_at(&examples, e->workload, e->gpu_type), no_kin, k);

        sum += fabs((double)(z - e->value));
        zero += fabs((double)e->value);
    }
    *of_zero = zero / examples.n_alone;
    return sum / examples.n_alone;
}

TEST(siblings_tell_the_speed_alone)
{
    double zero, with_kin = alone_error(false, 3, &zero), without = alone_error(true, 3, &zero);

    ck_assert_double_lt(with_kin, 0.4 * zero);
    ck_assert_double_lt(with_kin, without);
    ck_assert_double_lt(alone_error(false, 1, &zero), 0.4 * zero);
}

TEST(a_workload_is_never_asked_about_itself)
{
    const struct features *on = examples_at(&examples, 4, 0);

    float before = memory_alone(&memory, &examples.who[4], on, false, 3);
    float job = memory_as_job(&memory, &examples.who[4], on, 3);
    for (int i = 0; i < memory.n; i++)
        if (memory.items[i].who.name == examples.who[4].name)
            memory.items[i].value[REMEMBERED_ALONE] = memory.items[i].value[REMEMBERED_AS_JOB] =
                memory.items[i].value[REMEMBERED_WATTS] = 1e9f;
    ck_assert(before == memory_alone(&memory, &examples.who[4], on, false, 3));
    ck_assert(job == memory_as_job(&memory, &examples.who[4], on, 3));
}

TEST(with_nobody_near_the_mean_speaks)
{
    for (int i = 0; i < memory.n; i++)
        memory.items[i].value[REMEMBERED_ALONE] =
            memory.items[i].who.family == examples.who[0].family ? 0.25f : NAN;
    float z = memory_alone(&memory, &examples.who[0], &examples.at[0], true, 3);
    ck_assert(fabsf(z - 0.25f) < 1e-6f);
    for (int i = 0; i < memory.n; i++)
        memory.items[i].value[REMEMBERED_ALONE] = NAN;
    ck_assert(memory_alone(&memory, &examples.who[0], &examples.at[0], false, 3) == 0);
}

TEST(a_known_neighbour_speaks_for_itself)
{
    const struct features *on = examples_at(&examples, 7, 1);
    const struct remembered *it = memory_find(&memory, &examples.who[7], on);

    ck_assert(memory_as_neighbour(&memory, &examples.who[7], on, 3) ==
              it->value[REMEMBERED_AS_NEIGHBOUR]);
    is_held[7] = true;
    remember();
    ck_assert_ptr_null(memory_find(&memory, &examples.who[7], on));
    ck_assert(isfinite(memory_as_neighbour(&memory, &examples.who[7], on, 3)));
}

TEST(two_parts_make_a_slowdown_better_than_the_mean)
{
    double off = 0, of_mean = 0;

    for (int i = 0; i < examples.n_pairs; i++) {
        const struct example *e = &examples.pairs[i];
        const struct features *job = examples_at(&examples, e->workload, e->gpu_type);
        const struct features *neighbour = examples_at(&examples, e->neighbour, e->gpu_type);
        double mean = memory_mean_s(&memory, job), truth = exp((double)e->value / 2);
        float parts = memory_as_job(&memory, &examples.who[e->workload], job, 3) +
                      memory_as_neighbour(&memory, &examples.who[e->neighbour], neighbour, 3);

        off += fabs(mean + (double)parts - truth);
        of_mean += fabs(mean - truth);
    }
    ck_assert_double_lt(off, 0.6 * of_mean);
}

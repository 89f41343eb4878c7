/* A phase: when it begins to measure, when it has measured enough, and what. */
#include <math.h>

#include "probe/pair/phase.h"
#include "unit/suite.h"

static const struct phase_setup setup = { .seconds = 24, .warmup_s = 5, .patience_s = 60 };

/* A program that begins to step at 'from_s' at 'rate', at 'later' from 'turn_s' on, and says its
 * whole steps every second; 'until_s' it is silent for good.
 */
struct course {
    double from_s, rate, turn_s, later, until_s;
};

#define STEADY(from, rate)                \
    {                                     \
        from, rate, INFINITY, 0, INFINITY \
    }

static const struct {
    const char *name;
    unsigned who;
    struct course courses[PHASE_PROGRAMS];
    enum phase_state want;
    int want_silent;
    double at_least_s, at_most_s;    // when that is known
    double rates[PHASE_PROGRAMS];    // within 3 %; 0: not asked
    bool is_unsteady;                // the first one
} cases[] = {
    { .name = "one program, alone",
      .who = 1,
      .courses = { STEADY(0, 40) },
      .want = PHASE_DONE,
      .at_least_s = 24,
      .at_most_s = 36,
      .rates = { 40 } },
    { .name = "the second alone",
      .who = 2,
      .courses = { { 0 }, STEADY(0, 7) },
      .want = PHASE_DONE,
      .at_least_s = 24,
      .at_most_s = 40,
      .rates = { 0, 7 } },
    { .name = "the window waits for who comes last",
      .who = 3,
      .courses = { STEADY(0, 40), STEADY(50, 10) },
      .want = PHASE_DONE,
      .at_least_s = 79,
      .at_most_s = 90,
      .rates = { 40, 10 } },
    { .name = "what was before the other came does not count",
      .who = 3,
      .courses = { { 0, 40, 30, 20, INFINITY }, STEADY(30, 10) },
      .want = PHASE_DONE,
      .at_least_s = 59,
      .at_most_s = 70,
      .rates = { 20, 10 } },
    { .name = "slow steps take longer",
      .who = 1,
      .courses = { STEADY(0, 0.1) },
      .want = PHASE_DONE,
      .at_least_s = 29,
      .at_most_s = 70,
      .rates = { 0.1 } },
    { .name = "a jump of speed in the middle: twice the time, and it is told",
      .who = 1,
      .courses = { { 0, 40, 20, 20, INFINITY } },
      .want = PHASE_DONE,
      .at_least_s = 48,
      .at_most_s = 60,
      .is_unsteady = true },
    { .name = "nobody speaks",
      .who = 1,
      .courses = { STEADY(1e9, 1) },
      .want = PHASE_SILENT,
      .at_least_s = 60,
      .at_most_s = 62 },
    { .name = "one of two does not",
      .who = 3,
      .courses = { STEADY(0, 40), STEADY(1e9, 1) },
      .want = PHASE_SILENT,
      .want_silent = 1,
      .at_least_s = 60,
      .at_most_s = 62 },
    { .name = "silence in the middle",
      .who = 1,
      .courses = { { 0, 40, INFINITY, 0, 8 } },
      .want = PHASE_SILENT,
      .at_least_s = 66,
      .at_most_s = 72 },
};

static double steps_of(const struct course *c, double t_s)
{
    const double first_s = fmin(t_s, c->turn_s) - c->from_s;

    return floor(c->rate * first_s + (t_s > c->turn_s ? c->later * (t_s - c->turn_s) : 0));
}

EACH(a_phase_ends_as_it_should, cases)
{
    enum phase_state got = PHASE_WAITING;
    struct pair_phase p;
    double t_s = 1000;
    int silent = 0;

    phase_begin(&p, &setup, cases[_i].who, t_s);
    while (t_s < 1400 && (got == PHASE_WAITING || got == PHASE_MEASURING)) {
        t_s += 1;
        for (int i = 0; i < PHASE_PROGRAMS; i++) {
            const struct course *c = &cases[_i].courses[i];
            const double own_s = t_s - 1000;

            if (cases[_i].who & 1U << i && own_s > c->from_s && own_s < c->until_s &&
                steps_of(c, own_s) > 0)
                phase_count(&p, i, t_s, steps_of(c, own_s));
        }
        got = phase_look(&p, t_s, &silent);
    }
    ck_assert_msg(got == cases[_i].want, "%s: state %d at %g", cases[_i].name, got, t_s - 1000);
    ck_assert_msg(t_s - 1000 >= cases[_i].at_least_s && t_s - 1000 <= cases[_i].at_most_s,
                  "%s: at %g s", cases[_i].name, t_s - 1000);
    ck_assert_int_eq(silent, cases[_i].want_silent);
    for (int i = 0; i < PHASE_PROGRAMS; i++) {
        const double want = cases[_i].rates[i];
        const struct phase_rate r = phase_rate(&p, i);

        if (want > 0)
            ck_assert_msg(fabs(r.steps_s / want - 1) < 0.03 && r.is_steady, "%s: %g steps/s",
                          cases[_i].name, r.steps_s);
        if (!(cases[_i].who & 1U << i))
            ck_assert(isnan(r.steps_s) && isnan(r.noise));
    }
    if (cases[_i].is_unsteady)
        ck_assert(!phase_rate(&p, 0).is_steady);
}

TEST(a_long_window_knows_its_noise)
{
    struct pair_phase p;
    int silent;

    phase_begin(&p, &setup, 1, 0);
    for (int t = 1; phase_look(&p, t, &silent) != PHASE_DONE; t++)
        phase_count(&p, 0, t, 40 * t);
    ck_assert_double_gt(phase_rate(&p, 0).noise, 0);
    ck_assert_double_lt(phase_rate(&p, 0).noise, 0.01);
}

TEST(who_takes_no_part_is_not_heard)
{
    struct pair_phase p;
    int silent;

    phase_begin(&p, &setup, 1, 0);
    phase_count(&p, 1, 1, 10);
    ck_assert_int_eq(phase_look(&p, 2, &silent), PHASE_WAITING);
}

static const struct {
    const char *words;
    bool want;
} last_words[] = {
    { "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", true },
    { "RuntimeError: HIP out of memory", true },
    { "CUDA_ERROR_OUT_OF_MEMORY", true },
    { "gogh-burn: OpenCL: cannot have memory: out of GPU memory (-4)", true },
    { "jaxlib: RESOURCE_EXHAUSTED: Out of memory while trying to allocate", true },
    { "MemoryError", false },
    { "CUDA error: an illegal memory access was encountered", false },
    { "", false },
};

EACH(words_tell_a_full_gpu_from_other_failures, last_words)
{
    ck_assert_int_eq(phase_is_out_of_memory(last_words[_i].words), last_words[_i].want);
}

/* What a job still needs, and which submissions make sense. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "unit/support.h"
#include "unit/suite.h"

static const struct {
    const char *name;
    double steps, rate, duration_s, min, deadline_s, done, now_s;
    double want_need, want_remaining;
} cases[] = {
    { "no promise needs nothing", 100, 0, 0, 0, NAN, 0, 5, 0, 100 },
    { "a minimum throughput is the need", 100, 0, 0, 3, NAN, 0, 5, 3, 100 },
    { "a deadline asks for what remains in the time that remains", 100, 0, 0, 0, 25, 20, 5, 4, 80 },
    { "the larger of minimum and deadline wins: deadline", 100, 0, 0, 3, 25, 0, 5, 5, 100 },
    { "the larger of minimum and deadline wins: minimum", 100, 0, 0, 7, 25, 0, 5, 7, 100 },
    { "a deadline that has passed asks for nothing more", 100, 0, 0, 3, 25, 0, 30, 3, 100 },
    { "a deadline at this very moment has passed", 100, 0, 0, 3, 25, 0, 25, 3, 100 },
    { "a passed deadline alone leaves no need", 100, 0, 0, 0, 25, 0, 30, 0, 100 },
    { "more done than asked leaves nothing", 100, 0, 0, 0, 25, 120, 5, 0, 0 },
    { "inference needs its rate", 0, 8, 50, 0, NAN, 0, 5, 8, 400 },
    { "inference with a larger minimum needs that", 0, 8, 50, 9, NAN, 0, 5, 9, 400 },
    { "inference has rate times duration to serve", 0, 8, 50, 0, NAN, 150, 5, 8, 250 },
    { "inference behind its deadline must hurry", 0, 8, 50, 0, 15, 100, 5, 30, 300 },
};

EACH(need_and_remaining, cases)
{
    struct job j = { .spec = spec_of("j", 0), .steps_done = cases[_i].done };
    struct job_spec *s = &j.spec;

    s->kind = cases[_i].rate > 0 ? JOB_INFERENCE : JOB_TRAINING;
    s->steps = cases[_i].steps;
    s->rate = cases[_i].rate;
    s->duration_s = cases[_i].duration_s;
    s->min_throughput = cases[_i].min;
    s->deadline_s = cases[_i].deadline_s;
    ck_assert_msg(job_need(&j, cases[_i].now_s) == cases[_i].want_need, "%s: need %g",
                  cases[_i].name, job_need(&j, cases[_i].now_s));
    ck_assert_msg(job_remaining(&j, cases[_i].now_s) == cases[_i].want_remaining,
                  "%s: remaining %g", cases[_i].name, job_remaining(&j, cases[_i].now_s));
}

static const struct {
    const char *name;
    enum job_state state;
    double steps_done, heard_s, pace, now_s, want;
} heard[] = {
    { "as last heard at that very time", JOB_RUNNING, 40, 10, 2, 10, 60 },
    { "it went on at its pace since", JOB_RUNNING, 40, 10, 2, 25, 30 },
    { "and not beyond its end", JOB_RUNNING, 40, 10, 2, 1000, 0 },
    { "a waiting job stands still", JOB_WAITING, 40, 10, 2, 25, 60 },
    { "of unknown pace nothing is assumed", JOB_RUNNING, 40, 10, 0, 25, 60 },
    { "a clock that went back takes nothing back", JOB_RUNNING, 40, 10, 2, 5, 60 },
};

EACH(progress_between_reports, heard)
{
    struct job j = { .spec = spec_of("j", 0),
                     .state = heard[_i].state,
                     .steps_done = heard[_i].steps_done,
                     .heard_s = heard[_i].heard_s,
                     .pace = heard[_i].pace };

    j.spec.steps = 100;
    ck_assert_msg(job_remaining(&j, heard[_i].now_s) == heard[_i].want, "%s: %g", heard[_i].name,
                  job_remaining(&j, heard[_i].now_s));
}

static const struct {
    const char *name;
    enum job_state state;
    double steps_done, want;
} guesses[] = {
    { "nothing done leaves all of the guess", JOB_RUNNING, 0, 100 },
    { "up to half of it the guess counts", JOB_RUNNING, 30, 70 },
    { "past half of it as much again is to come", JOB_RUNNING, 80, 80 },
    { "and a job beyond its guess is never nearly done", JOB_WAITING, 5000, 5000 },
    { "a failed one had as much before it", JOB_FAILED, 5000, 5000 },
    { "but when it has finished nothing remains", JOB_FINISHED, 80, 0 },
};

EACH(a_guess_of_the_steps_is_no_promise_of_an_end, guesses)
{
    struct job j = { .spec = spec_of("j", 0),
                     .state = guesses[_i].state,
                     .steps_done = guesses[_i].steps_done };

    j.spec.steps = 100;
    j.spec.is_guess = true;
    ck_assert_msg(job_remaining(&j, 0) == guesses[_i].want, "%s: %g", guesses[_i].name,
                  job_remaining(&j, 0));
}

/* Against bit sets: as lists in some order, each GPU once. */
TEST(gpus_are_compared_as_sets)
{
    struct rng r;

    rng_init(&r, 7, "gpus");
    for (int round = 0; round < 2000; round++) {
        int lists[2][6], n[2];
        unsigned bits[2] = { 0, 0 };
        for (int k = 0; k < 2; k++) {
            n[k] = (int)rng_below(&r, 4);
            for (int i = 0; i < n[k];) {
                int gpu = (int)rng_below(&r, 5);
                ck_assert_int_eq(gpus_have(lists[k], i, gpu), bits[k] >> gpu & 1);
                if (bits[k] >> gpu & 1)
                    continue;
                bits[k] |= 1U << gpu;
                lists[k][i++] = gpu;
            }
        }
        ck_assert_int_eq(gpus_same(lists[0], n[0], lists[1], n[1]), bits[0] == bits[1]);
    }
    ck_assert(gpus_same(NULL, 0, NULL, 0));
}

TEST(a_server_serves_its_time_whatever_its_speed)
{
    struct job j = { .spec = spec_of("j", 0), .started_s = NAN };

    ck_assert_double_nan(job_time_left_s(&j, 0));
    j.spec.kind = JOB_INFERENCE;
    j.spec.duration_s = 50;
    ck_assert_double_eq(job_time_left_s(&j, 1000), 50);    // it has not begun
    j.started_s = 100;
    ck_assert_double_eq(job_time_left_s(&j, 120), 30);
    ck_assert_double_eq(job_time_left_s(&j, 500), 0);
}

static char too_long[202], endless[514];

static void fill_with_letters(void)
{
    memset(too_long, 'x', sizeof too_long - 1);
    memset(endless, 'x', sizeof endless - 1);
}

FIXTURE(fill_with_letters, NULL)

#define TRAINING                                                                \
    {                                                                           \
        .name = "a", .steps = 10, .deadline_s = NAN, .n_gpus = 1, .max_gpus = 1 \
    }
#define WITH(...)                                                                            \
    {                                                                                        \
        .name = "a", .steps = 10, .deadline_s = NAN, .n_gpus = 1, .max_gpus = 1, __VA_ARGS__ \
    }
#define SERVE(...) WITH(.kind = JOB_INFERENCE, __VA_ARGS__)

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct {
    const char *name;
    struct job_spec spec;
    const char *want;    // a word of the reason; NULL: it is fine
} specs[] = {
    { "a plain training job is fine", TRAINING, NULL },
    { "all promises together are fine", WITH(.min_throughput = 3, .deadline_s = 9), NULL },
    { "a server that promises more than is asked of it",
      SERVE(.rate = 1, .duration_s = 1, .min_throughput = 2), "rate" },
    { "inference with rate and duration is fine", SERVE(.rate = 1, .duration_s = 1), NULL },
    { "a gang with room to grow is fine", WITH(.n_gpus = 2, .max_gpus = 4096), NULL },
    { "a gang over nodes in equal parts is fine", WITH(.n_gpus = 4, .max_gpus = 4, .n_nodes = 2),
      NULL },
    { "one on one node may grow", WITH(.n_gpus = 3, .max_gpus = 8, .n_nodes = 1), NULL },
    { "a gang that its nodes cannot have in equal parts",
      WITH(.n_gpus = 3, .max_gpus = 3, .n_nodes = 2), "ask for a multiple of the nodes" },
    { "more nodes than GPUs", WITH(.n_gpus = 2, .max_gpus = 2, .n_nodes = 4), "equal parts" },
    { "fewer nodes than none", WITH(.n_nodes = -1), "equal parts" },
    { "a gang over nodes that would grow", WITH(.n_gpus = 2, .max_gpus = 4, .n_nodes = 2),
      "cannot grow: leave max_gpus out" },
    { "no name", WITH(.name = NULL), "name" },
    { "an empty name", WITH(.name = ""), "name" },
    { "a name that is not UTF-8", WITH(.name = "\xff\xfe"), "name" },
    { "a name that is too long", WITH(.name = too_long), "name" },
    { "an owner with a newline", WITH(.owner = "a\nb"), "name" },
    { "no steps", WITH(.steps = 0), "steps > 0" },
    { "negative steps", WITH(.steps = -1), "steps > 0" },
    { "steps that are no number", WITH(.steps = NAN), "steps > 0" },
    { "endless steps", WITH(.steps = INFINITY), "steps > 0" },
    { "inference without a rate", SERVE(.duration_s = 1), "rate > 0" },
    { "inference at an endless rate", SERVE(.rate = INFINITY, .duration_s = 1), "rate > 0" },
    { "inference without a duration", SERVE(.rate = 1), "duration > 0" },
    { "inference for ever", SERVE(.rate = 1, .duration_s = INFINITY), "duration > 0" },
    { "a negative minimum", WITH(.min_throughput = -1), "min throughput" },
    { "a minimum that is no number", WITH(.min_throughput = NAN), "min throughput" },
    { "a deadline at the submission", WITH(.submit_s = 5, .deadline_s = 5),
      "after the submission" },
    { "a deadline before it", WITH(.submit_s = 5, .deadline_s = 1), "after the submission" },
    { "a deadline that never comes", WITH(.deadline_s = INFINITY), "finite" },
    { "a submission at no time", WITH(.submit_s = NAN), "finite" },
    { "a gang of nobody", WITH(.n_gpus = 0), "1 <= gpus" },
    { "at most fewer than at least", WITH(.n_gpus = 3, .max_gpus = 2), "got 3 and 2" },
    { "a gang beyond belief", WITH(.max_gpus = 4097), "4096" },
    { "a priority too high", WITH(.priority = 1000001), "priority" },
    { "a priority too low", WITH(.priority = -1000001), "priority" },
    { "an urgency too high", WITH(.urgency = 101), "urgency" },
    { "an urgency too low", WITH(.urgency = 0.009), "urgency" },
    { "an urgency below nothing", WITH(.urgency = -1), "urgency" },
    { "an urgency that is no number", WITH(.urgency = NAN), "urgency" },
    { "a guess of the steps is fine", WITH(.is_guess = true), NULL },
    { "a deadline for who knows how many steps", WITH(.is_guess = true, .deadline_s = 9), "steps" },
    { "a key and its digest are fine", WITH(.key = "k", .digest = "d"), NULL },
    { "an empty key", WITH(.key = ""), "key" },
    { "a key without end", WITH(.key = endless), "key" },
    { "a digest without end", WITH(.digest = endless), "digest" },
};

EACH(a_submission_is_judged, specs)
{
    struct err e = { 0 };
    int rc = job_spec_check(&specs[_i].spec, &e);

    if (!specs[_i].want) {
        ck_assert_msg(rc == 0, "%s: %s", specs[_i].name, e.text);
        return;
    }
    ck_assert_msg(rc == -EINVAL, "%s: accepted", specs[_i].name);
    ck_assert_msg(strstr(e.text, specs[_i].want) != NULL, "%s: %s", specs[_i].name, e.text);
}

TEST(types_beyond_the_64th_can_only_be_any)
{
    struct job_spec s = spec_of("a", 0);

    ck_assert(job_allows(&s, 0) && job_allows(&s, 200));
    s.allowed_types = UINT64_C(1) << 63 | 1;
    ck_assert(job_allows(&s, 0) && job_allows(&s, 63));
    ck_assert(!job_allows(&s, 1) && !job_allows(&s, 64) && !job_allows(&s, 200));
}

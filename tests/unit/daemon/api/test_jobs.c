/* Jobs as the API shows them: text that is JSON, of the shape that its schema says. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "daemon/http/shapes.h"
#include "daemon/http/json_text.h"
#include "daemon/service/job_json.h"
#include "daemon/service/service.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct world world;
static struct service service;
static struct api_text text;

static void setup(void)
{
    world_init(&world, "type v100\ntype k80\nworkload w\nworkload x\n"
                       "speed w v100 10 sd=0.1\nspeed w v100 6 beside=x sd=0.1\n"
                       "node box v100 k80\n");
    text = (struct api_text){ 0 };
}

static void teardown(void)
{
    free(text.data);
    world_release(&world);
}

FIXTURE(setup, teardown)

/* A daemon of the world's state and estimates, without doors. */
static void look(void)
{
    world_look(&world);
    service = (struct service){ .began_s = 0 };
    service.base.catalog = world.catalog;
    service.base.ledger = world.ledger;
    service.cycle.estimator = world.est;
}

static json_t *written(void)
{
    json_error_t wrong;
    json_t *o = json_loads(text.data, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &wrong);

    ck_assert_msg(o != NULL, "%s in\n%s", wrong.text, text.data);
    free(text.data);
    text = (struct api_text){ 0 };
    return o;
}

static json_t *shown(const char *name, double now_s)
{
    look();
    job_put_whole(&text, NULL, &service, world.ledger.state.jobs[world_job(&world, name)], now_s);
    return written();
}

/* ---- the writer ---- */

static const struct {
    const char *name;
    double v;
    const char *want;
} numbers[] = {
    { "a whole number", 42, "42" },
    { "zero", 0, "0" },
    { "no negative zero", -0.0, "0" },
    { "a negative one", -7, "-7" },
    { "a fraction", 0.25, "0.25" },
    { "rounded to six places", 1.23456789, "1.234568" },
    { "a negative fraction", -1.5, "-1.5" },
    { "zeros inside stay", 100.05, "100.05" },
    { "a small one", 1.5e-7, "1.5e-07" },
    { "a large one with a fraction", 123456.5, "123456.5" },
    { "large and whole", 1e12, "1000000000000" },
    { "beyond what is exact", 1e300, "1e+300" },
    { "unknown", NAN, "null" },
    { "endless", INFINITY, "null" },
};

EACH(numbers_are_written_short, numbers)
{
    api_put_number(&text, NULL, numbers[_i].v);
    ck_assert_msg(strcmp(text.data, numbers[_i].want) == 0, "%s: %s", numbers[_i].name, text.data);
}

TEST(numbers_read_back_as_themselves)
{
    for (double v = 1e-12; v < 1e18; v *= 1.37) {
        api_put_number(&text, NULL, v);
        json_t *o = written();
        ck_assert_msg(fabs(json_number_value(o) - v) <=
                          fmax(5e-9 * v, v < 1e3 ? 5e-7 * (v >= 1e-2) : 0),
                      "%.17g -> %.17g", v, json_number_value(o));
        json_decref(o);
    }
}

TEST(times_are_to_the_millisecond)
{
    api_put_time(&text, NULL, 1763281142.1234);
    ck_assert_str_eq(text.data, "1763281142.123");
}

TEST(texts_are_escaped)
{
    static const char hard[] = "a\"b\\c\nd\x01é";

    api_put_open(&text, NULL, '{');
    api_put_text(&text, "t", hard);
    api_put_open(&text, "l", '[');
    api_put_text(&text, NULL, "");
    api_put_flag(&text, NULL, true);
    api_put_whole(&text, NULL, -9223372036854775807LL - 1);
    api_put_close(&text, ']');
    api_put_null(&text, "n");
    api_put_close(&text, '}');
    json_t *o = written();
    ck_assert_str_eq(json_string_value(json_object_get(o, "t")), hard);
    ck_assert_int_eq(json_array_size(json_object_get(o, "l")), 3);
    ck_assert(json_integer_value(json_array_get(json_object_get(o, "l"), 2)) == INT64_MIN);
    ck_assert(json_is_null(json_object_get(o, "n")));
    json_decref(o);
}

/* ---- jobs ---- */

static const struct {
    const char *name, *life, *state;
} lives[] = {
    { "one that waits", "job a w steps=10\n", "waiting" },
    { "one that is held", "job a w steps=10\nhold a\n", "held" },
    { "one that runs", "job a w steps=10 owner=ada\nstart a 0\n", "running" },
    { "a server", "job a w rate=5 duration=60 min=2\nstart a 0\n", "running" },
    { "one that has finished", "job a w steps=10 deadline=50\nstart a 0\nat 9\nfinish a\n",
      "finished" },
    { "one that has failed", "job a w steps=10\nstart a 0\nfail a\n", "failed" },
    { "one that was cancelled", "job a w steps=10\ncancel a\n", "cancelled" },
};

EACH(every_state_is_as_its_schema_says, lives)
{
    struct err e = { 0 };

    world_add(&world, lives[_i].life);
    json_t *o = shown("a", 20);
    ck_assert_msg(schema_check(&schema_job_whole, o, &e) == 0, "%s: %s", lives[_i].name, e.text);
    ck_assert_str_eq(json_string_value(json_object_get(o, "state")), lives[_i].state);
    json_decref(o);
    job_put(&text, NULL, &service, world.ledger.state.jobs[0], 20);
    o = written();
    ck_assert_msg(schema_check(&schema_job, o, &e) == 0, "%s: %s", lives[_i].name, e.text);
    json_decref(o);
}

TEST(a_place_and_what_is_believed_of_it)
{
    world_add(&world, "job a w steps=10\nstart a 0\n");
    json_t *o = shown("a", 20);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(o, "gpus"), 0)), "box/0");
    ck_assert_str_eq(json_string_value(json_object_get(o, "gpu_type")), "v100");
    ck_assert_double_eq_tol(json_number_value(json_object_get(o, "predicted")), 9.95, 0.01);
    ck_assert(json_is_null(json_object_get(o, "speed")));
    json_decref(o);
    world_add(&world, "job b x steps=10\nstart b 0\n");
    o = shown("a", 20);
    ck_assert_double_eq_tol(json_number_value(json_object_get(o, "predicted")), 5.97, 0.01);
    json_decref(o);
}

TEST(a_guess_is_not_told_as_steps)
{
    struct job_spec s = spec_of("a", 0);

    s.is_guess = true;
    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &s });
    json_t *o = shown("a", 20);
    ck_assert(json_is_null(json_object_get(o, "steps")));
    json_decref(o);
}

TEST(a_command_is_told_without_its_secrets)
{
    struct job_spec s = spec_of("a", 0);
    struct err e = { 0 };

    s.command = "{\"argv\":[\"x\",\"y\"],\"env\":{\"TOKEN\":\"hush\"},\"uid\":5,\"timeout_s\":1.5}";
    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &s });
    look();
    job_put_whole(&text, NULL, &service, world.ledger.state.jobs[0], 0);
    ck_assert_ptr_null(strstr(text.data, "hush"));
    json_t *o = written(), *c = json_object_get(o, "command");
    ck_assert_msg(schema_check(&schema_job_whole, o, &e) == 0, "%s", e.text);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(c, "env"), 0)), "TOKEN");
    ck_assert_int_eq(json_array_size(json_object_get(c, "argv")), 2);
    json_decref(o);
}

/* ---- promises ---- */

static const struct {
    const char *name;
    enum job_state state;
    double min, deadline_s, done, ended_s, speed, now_s;
    const char *want;
} promises[] = {
    { "none was made", JOB_RUNNING, 0, NAN, 0, 0, 5, 10, "none" },
    { "fast enough", JOB_RUNNING, 4, NAN, 0, 0, 5, 10, "kept" },
    { "slower by noise alone", JOB_RUNNING, 4, NAN, 0, 0, 3.95, 10, "kept" },
    { "too slow", JOB_RUNNING, 4, NAN, 0, 0, 3, 10, "short" },
    { "it runs and reports nothing", JOB_RUNNING, 4, NAN, 0, 0, NAN, 10, "unknown" },
    { "fast enough for the deadline", JOB_RUNNING, 0, 30, 0, 0, 5.1, 10, "kept" },
    { "too slow for the deadline", JOB_RUNNING, 0, 30, 0, 0, 4, 10, "short" },
    { "the deadline has passed", JOB_RUNNING, 0, 9, 0, 0, 50, 10, "short" },
    { "one that waits does no steps", JOB_WAITING, 4, NAN, 0, 0, NAN, 10, "short" },
    { "one that waits may make it yet", JOB_WAITING, 0, 30, 0, 0, NAN, 10, "unknown" },
    { "or may not", JOB_WAITING, 0, 9, 0, 0, NAN, 10, "short" },
    { "done in time", JOB_FINISHED, 0, 30, 100, 25, NAN, 99, "kept" },
    { "done too late", JOB_FINISHED, 0, 30, 100, 35, NAN, 99, "short" },
    { "fast enough on the whole", JOB_FINISHED, 4, NAN, 100, 25, NAN, 99, "kept" },
    { "too slow on the whole", JOB_FINISHED, 4, NAN, 100, 30, NAN, 99, "short" },
    { "never said a word", JOB_FINISHED, 4, NAN, 0, 30, NAN, 99, "unknown" },
    { "failed", JOB_FAILED, 4, NAN, 100, 25, NAN, 99, "short" },
    { "nobody wants it any more", JOB_CANCELLED, 4, NAN, 0, 5, NAN, 99, "none" },
};

EACH(promises_are_judged, promises)
{
    struct job j = { .spec = spec_of("j", 0),
                     .state = promises[_i].state,
                     .steps_done = promises[_i].done,
                     .changed_s = promises[_i].ended_s };

    j.spec.steps = 100;
    j.spec.min_throughput = promises[_i].min;
    j.spec.deadline_s = promises[_i].deadline_s;
    j.heard_s = promises[_i].now_s;
    const char *got = job_promise(&j, promises[_i].speed, promises[_i].now_s);
    ck_assert_msg(strcmp(got, promises[_i].want) == 0, "%s: %s", promises[_i].name, got);
}

/* ---- many ---- */

TEST(a_page_of_ten_thousand_is_one_text)
{
    struct job_spec s = spec_of("a", 0);
    char name[32];

    s.owner = "ada";
    for (int i = 0; i < PAGE_MAX; i++) {
        snprintf(name, sizeof name, "job-%d", i);
        s.name = name;
        world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &s });
    }
    look();
    double began_s = clock_stopwatch_s();
    api_put_open(&text, NULL, '[');
    for (int i = 0; i < PAGE_MAX; i++)
        job_put(&text, NULL, &service, world.ledger.state.jobs[i], 1763281142.5);
    api_put_close(&text, ']');
    double took_s = clock_stopwatch_s() - began_s;
    if (getenv("GOGH_TELL"))
        printf("%d jobs: %.1f ms, %zu bytes\n", PAGE_MAX, 1e3 * took_s, text.len);
    json_t *o = written();
    ck_assert_int_eq(json_array_size(o), PAGE_MAX);
    json_decref(o);
}

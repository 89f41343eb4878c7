/* Events to JSON and back, and rows that are not events. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "store/store.h"
#include "unit/support.h"
#include "unit/suite.h"

static const char small[] = "type k80\ntype v100\n"
                            "workload w\nworkload ResNet-18\n"
                            "node n1 k80 v100\nnode n2 v100\n"
                            "job a w\njob b w\n";

static void round_trip(const struct world *w, const struct event *ev, struct event *out,
                       struct arena *a)
{
    struct err e = { 0 };
    const char *body = event_encode(a, ev, &w->ledger.state, &w->catalog);

    ck_assert_ptr_nonnull(body);
    const struct row_event row = { 0, ev->time_s, event_kind_name(ev->kind), body };
    int rc = event_decode(a, &row, &w->ledger.state, &w->catalog, out, &e);
    ck_assert_msg(rc == 0, "%s: %s", body, e.text);
    ck_assert_int_eq(out->kind, ev->kind);
    ck_assert_double_eq(out->time_s, ev->time_s);
}

TEST(a_node_and_its_types_come_back)
{
    static const int types[] = { 1, 0, 1 };
    struct event in = { .kind = EVENT_NODE_ADDED,
                        .time_s = 1.25,
                        .node = "new \"one\" \xc3\xa9",
                        .gpu_types = types,
                        .n_gpus = 3 };
    struct event out;
    struct world w;

    world_init(&w, small);
    round_trip(&w, &in, &out, &w.arena);
    ck_assert_str_eq(out.node, in.node);
    ck_assert_int_eq(out.n_gpus, 3);
    ck_assert_mem_eq(out.gpu_types, types, sizeof types);
    in.n_gpus = 0;
    round_trip(&w, &in, &out, &w.arena);
    ck_assert_int_eq(out.n_gpus, 0);
    in = (struct event){ .kind = EVENT_NODE_CHANGED, .node = "n2" };
    for (int s = NODE_UP; s <= NODE_DOWN; s++) {
        in.node_state = (enum node_state)s;
        round_trip(&w, &in, &out, &w.arena);
        ck_assert_str_eq(out.node, "n2");
        ck_assert_int_eq(out.node_state, s);
    }
    world_release(&w);
}

static void same_spec(const struct job_spec *a, const struct job_spec *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert_pstr_eq(a->owner, b->owner);
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_int_eq(a->workload, b->workload);
    ck_assert_double_eq(a->submit_s, b->submit_s);
    if (a->kind == JOB_TRAINING)
        ck_assert_double_eq(a->steps, b->steps);
    ck_assert_double_eq(a->rate, b->rate);
    if (a->kind == JOB_INFERENCE)
        ck_assert_double_eq(a->duration_s, b->duration_s);
    ck_assert_double_eq(a->min_throughput, b->min_throughput);
    ck_assert(a->deadline_s == b->deadline_s || (isnan(a->deadline_s) && isnan(b->deadline_s)));
    ck_assert_int_eq(a->n_gpus, b->n_gpus);
    ck_assert_int_eq(a->max_gpus, b->max_gpus);
    ck_assert_int_eq(a->priority, b->priority);
    ck_assert_double_eq(job_urgency(a), job_urgency(b));
    ck_assert_int_eq(a->is_exclusive, b->is_exclusive);
    ck_assert_int_eq(a->n_nodes, b->n_nodes);
    ck_assert_uint_eq(a->allowed_types, b->allowed_types);
    ck_assert_int_eq(a->is_guess, b->is_guess);
    ck_assert_pstr_eq(a->command, b->command);
    ck_assert_pstr_eq(a->key, b->key);
    ck_assert_pstr_eq(a->digest, b->digest);
}

TEST(a_submission_comes_back_field_by_field)
{
    struct rng r;
    struct world w;

    rng_init(&r, 1, "event");
    world_init(&w, small);
    for (int i = 0; i < 300; i++) {
        struct job_spec s = spec_of("b \\ \xe2\x82\xac", (int)rng_below(&r, 2));
        struct event in = { .kind = EVENT_JOB_SUBMITTED, .time_s = rng_normal(&r), .spec = &s };
        struct event out;
        s.owner = rng_below(&r, 2) ? "eve" : NULL;
        s.submit_s = rng_between(&r, 0, 1e9) / 3;
        s.steps = rng_between(&r, 1e-3, 1e12);
        if (rng_below(&r, 2)) {
            s.kind = JOB_INFERENCE;
            s.rate = rng_between(&r, 1e-6, 1e6);
            s.duration_s = rng_between(&r, 1, 1e7);
        }
        s.min_throughput = rng_below(&r, 2) ? rng_uniform(&r) : 0;
        s.deadline_s = rng_below(&r, 2) ? s.submit_s + rng_between(&r, 1, 1e6) : (double)NAN;
        s.n_gpus = 1 + (int)rng_below(&r, 8);
        s.max_gpus = s.n_gpus + (int)rng_below(&r, 8);
        s.priority = (int)rng_below(&r, 11) - 5;
        s.urgency = (double)rng_below(&r, 4) / 3;    // 0: as usual
        s.is_exclusive = rng_below(&r, 2);
        s.n_nodes = (int)rng_below(&r, 4);
        s.allowed_types = rng_below(&r, 4);
        s.is_guess = rng_below(&r, 2);
        s.command = rng_below(&r, 2) ? "{\"argv\":[\"a b\",\"\"],\"grace_s\":0.5}" : NULL;
        s.key = rng_below(&r, 2) ? "ada 7" : NULL;
        s.digest = s.key ? "00ff" : NULL;
        round_trip(&w, &in, &out, &w.arena);
        same_spec(&s, out.spec);
    }
    world_release(&w);
}

TEST(events_of_a_job_come_back_field_by_field)
{
    static const int gpus[] = { 2, 0 };
    struct world w;
    struct event out;

    world_init(&w, small);
    struct event in = { .kind = EVENT_JOB_STARTED,
                        .time_s = 3,
                        .job = 1,
                        .gpus = gpus,
                        .n_gpus = 2,
                        .limit_w = 175,
                        .steps_done = 0.1 };
    round_trip(&w, &in, &out, &w.arena);
    ck_assert_int_eq(out.job, 1);
    ck_assert_int_eq(out.n_gpus, 2);
    ck_assert_mem_eq(out.gpus, gpus, sizeof gpus);
    ck_assert_int_eq(out.limit_w, 175);
    ck_assert_double_eq(out.steps_done, 0.1);
    for (int kind = EVENT_JOB_PROGRESSED; kind < EVENT_KINDS; kind++) {
        in = (struct event){ .kind = (enum event_kind)kind,
                             .time_s = 1e9 / 7,
                             .job = 1,
                             .steps_done = 1.0 / 3,
                             .reason = "no \"luck\"\n" };
        round_trip(&w, &in, &out, &w.arena);
        ck_assert_int_eq(out.job, 1);
        ck_assert_double_eq(out.steps_done, in.steps_done);
        ck_assert_str_eq(out.reason, in.reason);
        in.reason = NULL;
        round_trip(&w, &in, &out, &w.arena);
        ck_assert_ptr_null(out.reason);
    }
    world_release(&w);
}

TEST(kinds_have_names_and_names_have_kinds)
{
    for (int k = 0; k < EVENT_KINDS; k++)
        ck_assert_int_eq(event_kind_parse(event_kind_name((enum event_kind)k)), k);
    ck_assert_int_eq(event_kind_parse("job_eaten"), -1);
    ck_assert_int_eq(event_kind_parse(""), -1);
}

TEST(a_command_becomes_compact_once_and_stays_so)
{
    struct arena a;

    arena_init(&a);
    const char *once = event_compact(&a, " { \"b\" : [ 1 , 0.1 ],\n\"a\": \"x  y\" } ");
    ck_assert_str_eq(once, "{\"b\":[1,0.10000000000000001],\"a\":\"x  y\"}");
    ck_assert_str_eq(event_compact(&a, once), once);
    arena_release(&a);
}

static const char *const not_commands[] = {
    "", "[]", "\"x\"", "{", "{} {}", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}", "{\"a\":NaN}",
};

TEST(what_json_cannot_say_is_not_encoded)
{
    struct world w;
    struct event in = { .kind = EVENT_JOB_FAILED, .job = 0, .reason = "\xff" };

    world_init(&w, small);
    ck_assert_ptr_null(event_encode(&w.arena, &in, &w.ledger.state, &w.catalog));
    in = (struct event){ .kind = EVENT_JOB_PROGRESSED, .steps_done = NAN };
    ck_assert_ptr_null(event_encode(&w.arena, &in, &w.ledger.state, &w.catalog));
    for (size_t i = 0; i < sizeof not_commands / sizeof *not_commands; i++) {
        struct job_spec s = spec_of("x", 0);
        s.command = not_commands[i];
        in = (struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &s };
        ck_assert_ptr_null(event_encode(&w.arena, &in, &w.ledger.state, &w.catalog));
        ck_assert_ptr_null(event_compact(&w.arena, not_commands[i]));
    }
    in = (struct event){ .kind = EVENT_NODE_CHANGED, .node = "\xc3" };
    ck_assert_ptr_null(event_encode(&w.arena, &in, &w.ledger.state, &w.catalog));
    world_release(&w);
}

#define SUBMISSION "{\"name\":\"x\",\"workload\":\"w\",\"submit_s\":0,\"n_gpus\":1,\"max_gpus\":1,"

static const struct {
    const char *kind, *body, *want;
} garbage[] = {
    { "job_eaten", "{}", "unknown kind of event 'job_eaten'" },
    { "", "{}", "unknown kind" },
    { "job_held", "", "job_held: column" },
    { "job_held", "{\"job\":0", "job_held: column" },
    { "job_held", "{\"job\":0} x", "job_held: column" },
    { "job_held", "{\"job\":0,\"job\":1}", "duplicate" },
    { "job_held", "{\"job\":\"\\u0000\"}", "job_held: column" },
    { "job_held", "[]", "job is missing" },
    { "job_held", "{}", "job is missing" },
    { "job_held", "{\"job\":\"a\"}", "job is missing" },
    { "job_held", "{\"job\":1.5}", "job is missing" },
    { "job_held", "{\"job\":4294967296}", "job is missing or of the wrong kind" },
    { "job_failed", "{\"job\":0,\"reason\":7}", "wrong kind" },
    { "job_progressed", "{\"job\":0,\"steps_done\":\"many\"}", "wrong kind" },
    { "job_started", "{\"job\":0}", "gpus is missing" },
    { "job_started", "{\"job\":0,\"gpus\":7}", "gpus is missing" },
    { "job_started", "{\"job\":0,\"gpus\":[7]}", "gpus is missing" },
    { "job_started", "{\"job\":0,\"gpus\":[[\"n1\"]]}", "gpus is missing" },
    { "job_started", "{\"job\":0,\"gpus\":[[\"n1\",0,0]]}", "gpus is missing" },
    { "job_started", "{\"job\":0,\"gpus\":[[\"n1\",4294967296]]}", "gpus is missing" },
    { "job_started", "{\"job\":0,\"gpus\":[[\"n1\",2]]}", "no GPU 2 on node n1" },
    { "job_started", "{\"job\":0,\"gpus\":[[\"n9\",0]]}", "no GPU 0 on node n9" },
    { "job_started", "{\"job\":0,\"gpus\":[],\"limit_w\":9876543210}", "wrong kind" },
    { "node_added", "{}", "node is missing" },
    { "node_added", "[1]", "node is missing" },
    { "node_added", "{\"node\":1}", "node is missing" },
    { "node_added", "{\"node\":\"x\"}", "gpus is missing" },
    { "node_added", "{\"node\":\"x\",\"gpus\":{}}", "gpus is missing" },
    { "node_added", "{\"node\":\"x\",\"gpus\":[\"abacus\"]}", "no GPU type abacus here" },
    { "node_added", "{\"node\":\"x\",\"gpus\":[1]}", "no GPU type (not a string)" },
    { "node_changed", "{\"node\":\"n1\"}", "state is missing" },
    { "node_changed", "{\"node\":\"n1\",\"state\":\"sleepy\"}", "state is missing" },
    { "job_submitted", "{}", "a field of the submission" },
    { "job_submitted", "null", "column" },
    { "job_submitted", SUBMISSION "\"steps\":\"x\"}", "a field of the submission" },
    { "job_submitted", SUBMISSION "\"types\":\"v100\"}", "types is missing or of the wrong kind" },
    { "job_submitted", SUBMISSION "\"types\":[\"abacus\"]}", "no GPU type abacus" },
    { "job_submitted", SUBMISSION "\"priority\":9999999999}", "a field of the submission" },
    { "job_submitted", SUBMISSION "\"exclusive\":1}", "a field of the submission" },
    { "job_submitted", SUBMISSION "\"guess\":7}", "a field of the submission" },
    { "job_submitted", SUBMISSION "\"key\":7}", "a field of the submission" },
    { "job_submitted", SUBMISSION "\"command\":\"sh\"}", "a field of the submission" },
    { "job_submitted", SUBMISSION "\"command\":[]}", "a field of the submission" },
    { "job_submitted",
      "{\"name\":\"x\",\"workload\":\"q\",\"submit_s\":0,\"n_gpus\":1,\"max_gpus\":1}",
      "no workload q in the catalog" },
};

EACH(garbage_is_refused_with_a_reason, garbage)
{
    struct world w;
    struct event out;
    struct err e = { 0 };

    world_init(&w, small);
    const struct row_event row = { .kind = garbage[_i].kind, .body = garbage[_i].body };
    int rc = event_decode(&w.arena, &row, &w.ledger.state, &w.catalog, &out, &e);
    ck_assert_msg(rc == -EINVAL, "%s %s: accepted", garbage[_i].kind, garbage[_i].body);
    ck_assert_msg(strstr(e.text, garbage[_i].want) != NULL, "%s %s: %s", garbage[_i].kind,
                  garbage[_i].body, e.text);
    world_release(&w);
}

/* A submission is a job, or an error that names the field and the cure. */
#include "daemon/submit/submit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "daemon/http/shapes.h"
#include "daemon/config/auth.h"
#include "unit/suite.h"
#include "unit/support.h"
#include "unit/texts.h"

#define NOW_S 1000.0

static const char small_world[] = "type v100\n"
                                  "type k80\n"
                                  "workload plain params=3e6\n"
                                  "node n1 v100 k80\n"
                                  "job live plain steps=10\n"
                                  "job done plain steps=10\n"
                                  "cancel done\n";

static struct world world;
static struct arena arena;
static struct err err;

static const struct caller ada = { .scope = SCOPE_SUBMIT, .owner = "ada", .uid = 1001, .gid = 100 };

/* A model at a batch size; names with blanks are none for the world's lines. */
static void add_model(const char *model, double batch)
{
    struct workload w;
    int index;

    workload_init(&w, workload_name(&world.arena, model, batch));
    w.batch = batch;
    w.flop_per_sample = 1e9;
    ck_assert_int_eq(catalog_add_workload(&world.catalog, &w, &index, &err), 0);
}

static void setup(void)
{
    world_init(&world, small_world);
    add_model("net", 8);
    add_model("net", 16);
    add_model("solo", 4);
    world_look(&world);
    arena_init(&arena);
    err = (struct err){ 0 };
}

static void teardown(void)
{
    arena_release(&arena);
    world_release(&world);
}

FIXTURE(setup, teardown)

/* "bob" and "root" have an account; nobody else does. */
static bool find_bob(const char *name, uid_t *uid, gid_t *gid)
{
    *uid = name[0] == 'b' ? 1002 : 0;
    *gid = 200;
    return strcmp(name, "bob") == 0 || strcmp(name, "root") == 0;
}

static int only_ada(uid_t uid, struct err *e)
{
    return uid == 1001 ? 0 : err_set(e, EPERM, "this daemon is not root; it runs jobs of ada only");
}

static struct submit_context context(void)
{
    return (struct submit_context){ .caller = &ada,
                                    .catalog = &world.catalog,
                                    .state = &world.ledger.state,
                                    .estimator = &world.est,
                                    .now_s = NOW_S,
                                    .account = find_bob };
}

/* The way of a request: parse, check, read. */
static int submit_as(const struct caller *who, const char *text, const char *key,
                     struct submit *out)
{
    struct submit_context s = context();
    json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    s.caller = who;
    ck_assert_msg(body != NULL, "not JSON: %s", text);
    int rc = schema_check(&schema_submit, body, &err);
    if (rc == 0)
        rc = submit_read(&arena, &s, body, key, out, &err);
    json_decref(body);
    return rc;
}

/* ---- what is accepted ---- */

static void tell_terms(struct buf *b, const struct job_spec *p)
{
    const struct service_terms *t = p->terms;

    buf_printf(b, " rate=%g", p->rate);
    if (t->latency_s > 0)
        buf_printf(b, " p99=%g", t->latency_s);
    if (t->ttft_s > 0)
        buf_printf(b, " ttft=%g tpot=%g", t->ttft_s, t->tpot_s);
    if (t->max_batch)
        buf_printf(b, " batch=%d", t->max_batch);
    if (t->load_s > 0)
        buf_printf(b, " load=%g", t->load_s);
    buf_printf(b, "%s%s%s%s%s", t->is_unmoved ? " unmoved" : "", t->probe ? " probe=" : "",
               t->probe ? t->probe : "", t->metrics ? " metrics=" : "",
               t->metrics ? t->metrics : "");
}

static const char *told(const struct submit *s)
{
    const struct job_spec *p = &s->spec;
    const char *workload =
        s->is_new_workload ? s->workload.name : world.catalog.workloads[p->workload].name;
    struct buf b;

    buf_init(&b, 4096);
    buf_printf(&b, "%s/%s %s %s%s", p->owner, p->name,
               p->kind == JOB_TRAINING    ? "training"
               : p->kind == JOB_INFERENCE ? "inference"
                                          : "service",
               s->is_new_workload ? "+" : "", workload);
    if (p->kind == JOB_TRAINING)
        buf_printf(&b, " steps=%g%s", p->is_guess ? 0 : p->steps, p->is_guess ? "?" : "");
    else if (!p->terms)
        buf_printf(&b, " rate=%g for=%g", p->rate, p->duration_s);
    else
        tell_terms(&b, p);
    if (p->min_throughput > 0)
        buf_printf(&b, " min=%g", p->min_throughput);
    if (!isnan(p->deadline_s))
        buf_printf(&b, " by=%g", p->deadline_s);
    buf_printf(&b, " gpus=%d..%d", p->n_gpus, p->max_gpus);
    if (p->priority)
        buf_printf(&b, " priority=%d", p->priority);
    if (p->urgency != 1)
        buf_printf(&b, " urgency=%g", p->urgency);
    if (p->allowed_types)
        buf_printf(&b, " types=%llx", (unsigned long long)p->allowed_types);
    buf_printf(&b, "%s%s%s", p->is_exclusive ? " exclusive" : "",
               p->n_nodes == 1 ? " one_node" : "", s->is_held ? " held" : "");
    if (p->n_nodes > 1)
        buf_printf(&b, " nodes=%d", p->n_nodes);
    return text_taken(&arena, &b);
}

#define RUN "\"argv\":[\"run\"]"

static const struct {
    const char *name, *body, *want;
} good[] = {
    { "a workload of the catalog by its full name",
      "{\"workload\":\"net (batch size 8)\",\"steps\":5," RUN "}",
      "ada/job-2 training net (batch size 8) steps=5 gpus=1..1" },
    { "by model and batch", "{\"workload\":\"net\",\"batch\":16,\"steps\":5," RUN "}",
      "ada/job-2 training net (batch size 16) steps=5 gpus=1..1" },
    { "as people write it", "{\"workload\":\"NET\",\"batch\":16,\"steps\":5," RUN "}",
      "ada/job-2 training net (batch size 16) steps=5 gpus=1..1" },
    { "without a batch where the catalog has just one",
      "{\"workload\":\"solo\",\"steps\":5," RUN "}",
      "ada/job-2 training solo (batch size 4) steps=5 gpus=1..1" },
    { "a known model at a new batch", "{\"workload\":\"net\",\"batch\":64,\"steps\":5," RUN "}",
      "ada/job-2 training +net (batch size 64) steps=5 gpus=1..1" },
    { "a built-in model at its usual batch", "{\"workload\":\"resnet50\",\"steps\":5," RUN "}",
      "ada/job-2 training +ResNet-50 (batch size 64) steps=5 gpus=1..1" },
    { "a built-in model at another", "{\"workload\":\"resnet50\",\"batch\":7,\"steps\":5," RUN "}",
      "ada/job-2 training +ResNet-50 (batch size 7) steps=5 gpus=1..1" },
    { "what nobody has seen is a new workload",
      "{\"workload\":\"wholly-unheard-of\",\"batch\":3,\"steps\":5," RUN "}",
      "ada/job-2 training +wholly-unheard-of (batch size 3) steps=5 gpus=1..1" },
    { "a near miss too, where it is said to be new",
      "{\"workload\":\"plainer\",\"new_workload\":true,\"steps\":5," RUN "}",
      "ada/job-2 training +plainer steps=5 gpus=1..1" },
    { "a short name is near to everything, and no slip",
      "{\"workload\":\"ab\",\"steps\":5," RUN "}", "ada/job-2 training +ab steps=5 gpus=1..1" },
    { "a descriptor",
      "{\"descriptor\":{\"name\":\"mine\",\"batch\":2,\"params\":5e6},\"steps\":5," RUN "}",
      "ada/job-2 training +mine (batch size 2) steps=5 gpus=1..1" },
    { "no workload: what the command is called",
      "{\"steps\":5,\"argv\":[\"/usr/bin/python3\",\"/home/ada/train.py\",\"-x\"]}",
      "ada/job-2 training +ada: python3 train.py steps=5 gpus=1..1" },
    { "options are no part of that", "{\"steps\":5,\"argv\":[\"./prog\",\"-x\"]}",
      "ada/job-2 training +ada: prog steps=5 gpus=1..1" },
    { "no steps are a guess", "{\"workload\":\"plain\"," RUN "}",
      "ada/job-2 training plain steps=0? gpus=1..1" },
    { "a rate makes it inference", "{\"workload\":\"plain\",\"rate\":20,\"duration_s\":60," RUN "}",
      "ada/job-2 inference plain rate=20 for=60 gpus=1..1" },
    { "a server without a duration serves on",
      "{\"workload\":\"plain\",\"kind\":\"inference\",\"rate\":20," RUN "}",
      "ada/job-2 inference plain rate=20 for=1e+09 gpus=1..1" },
    { "a promise", "{\"workload\":\"plain\",\"steps\":5,\"min_throughput\":2.5," RUN "}",
      "ada/job-2 training plain steps=5 min=2.5 gpus=1..1" },
    { "a deadline in seconds", "{\"workload\":\"plain\",\"steps\":5,\"deadline\":2000," RUN "}",
      "ada/job-2 training plain steps=5 by=2000 gpus=1..1" },
    { "a deadline as a time",
      "{\"workload\":\"plain\",\"steps\":5,\"deadline\":\"1970-01-01T01:00:00Z\"," RUN "}",
      "ada/job-2 training plain steps=5 by=3600 gpus=1..1" },
    { "a gang",
      "{\"workload\":\"plain\",\"steps\":5,\"gpus\":2,\"max_gpus\":4,\"one_node\":true," RUN "}",
      "ada/job-2 training plain steps=5 gpus=2..4 one_node" },
    { "a gang over nodes", "{\"workload\":\"plain\",\"steps\":5,\"gpus\":4,\"nodes\":2," RUN "}",
      "ada/job-2 training plain steps=5 gpus=4..4 nodes=2" },
    { "all the rest",
      "{\"name\":\"n\",\"workload\":\"plain\",\"steps\":5,\"priority\":-3,\"urgency\":2.5,\"exclusive\":true,"
      "\"types\":[\"Tesla K80\"],\"hold\":true," RUN "}",
      "ada/n training plain steps=5 gpus=1..1 priority=-3 urgency=2.5 types=2 exclusive held" },
    { "a service", "{\"service\":true,\"rate\":40,\"p99_s\":0.2," RUN "}",
      "ada/service-2 service +ada: run rate=40 p99=0.2 gpus=1..8" },
    { "a service of a language model",
      "{\"service\":true,\"kind\":\"inference\",\"workload\":\"llama-7b\",\"rate\":2,"
      "\"ttft_s\":0.5,\"tpot_s\":0.05,\"max_gpus\":3," RUN "}",
      "ada/service-2 service +llama-7b (batch size 8) rate=2 ttft=0.5 tpot=0.05 "
      "gpus=1..3" },
    { "all that a service may say",
      "{\"service\":true,\"name\":\"web\",\"workload\":\"unheard-of\",\"rate\":40,\"p99_s\":0.2,"
      "\"max_batch\":16,\"load_time_s\":60,\"no_move\":true,\"probe\":\"/healthz\","
      "\"metrics\":\"/metrics\",\"types\":[\"v100\"],\"hold\":true," RUN "}",
      "ada/web service +unheard-of rate=40 p99=0.2 batch=16 load=60 unmoved probe=/healthz "
      "metrics=/metrics gpus=1..8 types=1 held" },
    { "what is no service may say so",
      "{\"service\":false,\"workload\":\"plain\",\"steps\":5," RUN "}",
      "ada/job-2 training plain steps=5 gpus=1..1" },
    { "the name of a job that has ended is free",
      "{\"name\":\"done\",\"workload\":\"plain\"," RUN "}",
      "ada/done training plain steps=0? gpus=1..1" },
};

EACH(is_read, good)
{
    struct submit s;
    int rc = submit_as(&ada, good[_i].body, NULL, &s);

    ck_assert_msg(rc == 0, "%s: %s", good[_i].name, err.text);
    ck_assert_msg(strcmp(told(&s), good[_i].want) == 0, "%s:\n got %s\nwant %s", good[_i].name,
                  told(&s), good[_i].want);
    ck_assert_int_eq(s.again, -1);
    ck_assert_ptr_null(s.spec.key);
}

/* ---- what is refused ---- */

static const struct {
    const char *name, *body;
    int code;
    const char *want;    // somewhere in the sentence
} bad[] = {
    { "nothing to run", "{\"workload\":\"plain\",\"steps\":5}", EINVAL, "argv" },
    { "an empty command", "{\"workload\":\"plain\",\"steps\":5,\"argv\":[]}", EINVAL, "argv" },
    { "an unknown key", "{\"stepz\":5," RUN "}", EINVAL, "did you mean 'steps'" },
    { "a slip of a known name", "{\"workload\":\"plaine\",\"steps\":5," RUN "}", EINVAL,
      "did you mean 'plain'" },
    { "a slip of a built-in one", "{\"workload\":\"resnet-500\",\"steps\":5," RUN "}", EINVAL,
      "did you mean 'ResNet-50'" },
    { "a model at several batch sizes", "{\"workload\":\"net\",\"steps\":5," RUN "}", EINVAL,
      "2 batch sizes" },
    { "a batch of nothing", "{\"batch\":5," RUN "}", EINVAL, "of which workload" },
    { "a precision of nothing", "{\"precision\":\"fp16\"," RUN "}", EINVAL, "precision: of which" },
    { "a precision that is none", "{\"workload\":\"plain\",\"precision\":\"fp64\"," RUN "}", EINVAL,
      "want fp32, tf32, fp16" },
    { "a feature that says nothing",
      "{\"descriptor\":{\"name\":\"x\",\"flop_per_sample\":0}," RUN "}", EINVAL, "1 to 1e+18" },
    { "two batch sizes", "{\"workload\":\"net (batch size 8)\",\"batch\":16," RUN "}", EINVAL,
      "says 8" },
    { "a descriptor and a name", "{\"workload\":\"plain\",\"descriptor\":{\"name\":\"x\"}," RUN "}",
      EINVAL, "leave out" },
    { "a feature out of its range", "{\"descriptor\":{\"name\":\"x\",\"params\":-1}," RUN "}",
      EINVAL, "descriptor: params" },
    { "a feature that is none", "{\"descriptor\":{\"name\":\"x\",\"colour\":1}," RUN "}", EINVAL,
      "colour" },
    { "inference without a rate", "{\"workload\":\"plain\",\"kind\":\"inference\"," RUN "}", EINVAL,
      "rate: how many" },
    { "training with one", "{\"workload\":\"plain\",\"kind\":\"training\",\"rate\":3," RUN "}",
      EINVAL, "min_throughput" },
    { "steps of a server", "{\"workload\":\"plain\",\"rate\":3,\"steps\":3," RUN "}", EINVAL,
      "duration_s instead" },
    { "a duration of training", "{\"workload\":\"plain\",\"steps\":3,\"duration_s\":3," RUN "}",
      EINVAL, "only inference" },
    { "a promise above the rate",
      "{\"workload\":\"plain\",\"rate\":3,\"min_throughput\":4," RUN "}", EINVAL,
      "more than the rate" },
    { "a deadline without steps", "{\"workload\":\"plain\",\"deadline\":2000," RUN "}", EINVAL,
      "needs steps" },
    { "a deadline of a server", "{\"workload\":\"plain\",\"rate\":3,\"deadline\":2000," RUN "}",
      EINVAL, "leave it out" },
    { "a deadline that has passed", "{\"workload\":\"plain\",\"steps\":5,\"deadline\":900," RUN "}",
      EINVAL, "100 s ago" },
    { "fewer at most than at least", "{\"workload\":\"plain\",\"gpus\":2,\"max_gpus\":1," RUN "}",
      EINVAL, "max_gpus" },
    { "a type that is not here", "{\"workload\":\"plain\",\"types\":[\"h100\"]," RUN "}", EINVAL,
      "no GPU type 'h100'" },
    { "the name of a live job", "{\"name\":\"live\",\"workload\":\"plain\"," RUN "}", EEXIST,
      "is waiting; choose another" },
    { "a name that is a number", "{\"name\":\"17\",\"workload\":\"plain\"," RUN "}", EINVAL,
      "taken for a job's number" },
    { "a name with a newline", "{\"name\":\"a\\nb\",\"workload\":\"plain\"," RUN "}", EINVAL,
      "name" },
    { "a relative directory", "{\"workload\":\"plain\",\"cwd\":\"here\"," RUN "}", EINVAL, "cwd" },
    { "an owner, by who may not", "{\"owner\":\"bob\",\"workload\":\"plain\"," RUN "}", EACCES,
      "operate" },
    { "a service without a rate", "{\"service\":true,\"p99_s\":0.2," RUN "}", EINVAL,
      "rate: how many requests/s" },
    { "a service without a promise", "{\"service\":true,\"rate\":4," RUN "}", EINVAL,
      "p99_s: within how many seconds" },
    { "a service with two promises",
      "{\"service\":true,\"rate\":4,\"p99_s\":1,\"ttft_s\":1,\"tpot_s\":1," RUN "}", EINVAL,
      "keep one" },
    { "half a promise of a language model", "{\"service\":true,\"rate\":4,\"ttft_s\":1," RUN "}",
      EINVAL, "tpot_s: and how long" },
    { "the other half", "{\"service\":true,\"rate\":4,\"tpot_s\":1," RUN "}", EINVAL,
      "ttft_s: and within" },
    { "a latency of no time", "{\"service\":true,\"rate\":4,\"p99_s\":0," RUN "}", EINVAL,
      "p99_s" },
    { "steps of a service", "{\"service\":true,\"rate\":4,\"p99_s\":1,\"steps\":5," RUN "}", EINVAL,
      "steps: a service goes on" },
    { "a deadline of a service",
      "{\"service\":true,\"rate\":4,\"p99_s\":1,\"deadline\":2000," RUN "}", EINVAL,
      "deadline: a service promises" },
    { "a minimum throughput of a service",
      "{\"service\":true,\"rate\":4,\"p99_s\":1,\"min_throughput\":5," RUN "}", EINVAL,
      "min_throughput: a service promises" },
    { "a gang as a replica", "{\"service\":true,\"rate\":4,\"p99_s\":1,\"gpus\":2," RUN "}", EINVAL,
      "say max_gpus" },
    { "more replicas than there may be",
      "{\"service\":true,\"rate\":4,\"p99_s\":1,\"max_gpus\":65," RUN "}", EINVAL, "at most 64" },
    { "a service that trains",
      "{\"service\":true,\"kind\":\"training\",\"rate\":4,\"p99_s\":1," RUN "}", EINVAL,
      "a service is inference" },
    { "a workload that trains",
      "{\"service\":true,\"workload\":\"resnet50\",\"rate\":4,\"p99_s\":1," RUN "}", EINVAL,
      "is known as training" },
    { "a probe that is no path",
      "{\"service\":true,\"rate\":4,\"p99_s\":1,\"probe\":\"healthz\"," RUN "}", EINVAL,
      "as /healthz" },
    { "a name that is no file's",
      "{\"service\":true,\"name\":\"a/b\",\"rate\":4,\"p99_s\":1," RUN "}", EINVAL,
      "name: a service's is a file's" },
    { "a latency of a job", "{\"workload\":\"plain\",\"p99_s\":1," RUN "}", EINVAL,
      "p99_s: only a service" },
    { "a signal that is none", "{\"workload\":\"plain\",\"checkpoint_signal\":\"KILL\"," RUN "}",
      EINVAL, "checkpoint_signal" },
};

EACH(is_refused, bad)
{
    struct submit s;
    int rc = submit_as(&ada, bad[_i].body, NULL, &s);

    ck_assert_msg(rc == -bad[_i].code, "%s: %d, %s", bad[_i].name, rc, err.text);
    ck_assert_int_eq(err.code, bad[_i].code);
    ck_assert_msg(strstr(err.text, bad[_i].want), "%s: %s", bad[_i].name, err.text);
}

TEST(a_command_may_not_fill_the_journal)
{
    struct submit s;
    char *long_word = arena_alloc(&arena, SUBMIT_COMMAND_MAX + 1);

    memset(long_word, 'x', SUBMIT_COMMAND_MAX);
    const char *body =
        arena_printf(&arena, "{\"workload\":\"plain\",\"argv\":[\"%s\"]}", long_word);
    ck_assert_int_eq(submit_as(&ada, body, NULL, &s), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "argv and env take 131073 bytes"));
}

/* ---- inherited and guessed ---- */

TEST(a_new_batch_keeps_the_features_of_its_model)
{
    struct submit s;

    ck_assert_int_eq(
        submit_as(&ada, "{\"workload\":\"net\",\"batch\":64,\"steps\":5," RUN "}", NULL, &s), 0);
    ck_assert_double_eq(s.workload.batch, 64);
    ck_assert_double_eq(s.workload.flop_per_sample, 1e9);
}

TEST(what_was_seen_alone_is_not_inherited)
{
    struct submit s;

    world.catalog.workloads[catalog_find_workload(&world.catalog, "solo (batch size 4)")]
        .gpu_activity = 0.5;
    ck_assert_int_eq(
        submit_as(&ada, "{\"workload\":\"solo\",\"batch\":64,\"steps\":5," RUN "}", NULL, &s), 0);
    ck_assert_double_nan(s.workload.gpu_activity);
}

/* A name in another precision than it is known in is another workload. */
static const struct {
    const char *name, *asked, *want;
    enum precision precision;
    double bytes;    // a sample
} precise[] = {
    { "a built-in model", "\"bert-base\",\"precision\":\"bf16\"", "bert-base-fp16 (batch size 32)",
      PRECISION_FP16, 0.65e9 },
    { "at another batch", "\"bert-base\",\"batch\":8,\"precision\":\"tf32\"",
      "bert-base-tf32 (batch size 8)", PRECISION_TF32, 1.3e9 },
    { "one that serves", "\"resnet50-infer\",\"precision\":\"fp32\"",
      "resnet50-infer-fp32 (batch size 16)", PRECISION_FP32, 140e6 },
    { "a known one", "\"net\",\"batch\":8,\"precision\":\"fp16\"", "net-fp16 (batch size 8)",
      PRECISION_FP16, NAN },
    { "a known one at a new batch", "\"net\",\"batch\":9,\"precision\":\"fp8\"",
      "net-fp8 (batch size 9)", PRECISION_FP8, NAN },
    { "the only one of its name", "\"solo\",\"precision\":\"fp16\"", "solo-fp16 (batch size 4)",
      PRECISION_FP16, NAN },
    { "one that nobody knows", "\"unheard-of\",\"precision\":\"int8\"", "unheard-of",
      PRECISION_INT8, NAN },
};

EACH(a_precision_makes_another_workload, precise)
{
    struct submit s;
    const char *body =
        arena_printf(&arena, "{\"workload\":%s,\"steps\":5," RUN "}", precise[_i].asked);

    ck_assert_msg(submit_as(&ada, body, NULL, &s) == 0, "%s: %s", precise[_i].name, err.text);
    ck_assert(s.is_new_workload);
    ck_assert_str_eq(s.workload.name, precise[_i].want);
    ck_assert_int_eq(s.workload.precision, precise[_i].precision);
    ck_assert(isnan(precise[_i].bytes) || s.workload.bytes_per_sample == precise[_i].bytes);
}

TEST(a_precision_that_is_known_is_found)
{
    static const char *const bodies[] = {
        "{\"workload\":\"net\",\"batch\":8,\"precision\":\"fp16\",\"steps\":5," RUN "}",
        "{\"workload\":\"net\",\"batch\":16,\"precision\":\"half\",\"steps\":5," RUN "}",
    };
    struct submit s;
    int known = catalog_find_workload(&world.catalog, "net (batch size 8)");

    world.catalog.workloads[known].precision = PRECISION_FP16;
    add_model("net-fp16", 16);
    ck_assert_int_eq(submit_as(&ada, bodies[0], NULL, &s), 0);
    ck_assert(!s.is_new_workload && s.spec.workload == known);
    ck_assert_int_eq(submit_as(&ada, bodies[1], NULL, &s), 0);
    ck_assert_str_eq(world.catalog.workloads[s.spec.workload].name, "net-fp16 (batch size 16)");
}

TEST(an_unknown_workload_has_no_features_but_its_kind)
{
    struct submit s;

    ck_assert_int_eq(submit_as(&ada, "{\"workload\":\"unheard-of\",\"rate\":5," RUN "}", NULL, &s),
                     0);
    ck_assert(s.workload.is_inference);
    ck_assert_double_nan(s.workload.batch);
    for (int i = 0; i < WORKLOAD_NUMBERS; i++)
        ck_assert_double_nan(workload_number(&s.workload, i));
}

TEST(the_first_guess_is_an_hour_where_it_is_fastest)
{
    struct submit s;

    world_add(&world, "speed plain v100 10 sd=0.001\nspeed plain k80 2 sd=0.001\n");
    world_look(&world);
    ck_assert_int_eq(submit_as(&ada, "{\"workload\":\"plain\"," RUN "}", NULL, &s), 0);
    ck_assert(s.spec.is_guess);
    ck_assert_double_eq_tol(s.spec.steps, 36000, 2);
    ck_assert_int_eq(
        submit_as(&ada, "{\"workload\":\"plain\",\"types\":[\"k80\"]," RUN "}", NULL, &s), 0);
    ck_assert_double_eq_tol(s.spec.steps, 7200, 2);
    ck_assert_int_eq(submit_as(&ada, "{\"workload\":\"unheard-of\"," RUN "}", NULL, &s), 0);
    ck_assert_double_eq(s.spec.steps, 1e5);
}

/* ---- who ---- */

TEST(the_command_runs_as_its_owner)
{
    struct submit s;
    json_int_t uid, gid;
    const char *cwd, *home;

    ck_assert_int_eq(submit_as(&ada,
                               "{\"workload\":\"plain\",\"cwd\":\"/tmp\",\"retries\":2,"
                               "\"env\":{\"HOME\":\"/home/ada\"}," RUN "}",
                               NULL, &s),
                     0);
    json_t *o = json_loads(s.spec.command, 0, NULL);
    ck_assert_int_eq(json_unpack(o, "{s:I, s:I, s:s, s:{s:s}}", "uid", &uid, "gid", &gid, "cwd",
                                 &cwd, "env", "HOME", &home),
                     0);
    ck_assert_int_eq(uid, 1001);
    ck_assert_int_eq(gid, 100);
    ck_assert_str_eq(cwd, "/tmp");
    ck_assert_str_eq(home, "/home/ada");
    ck_assert_int_eq(json_integer_value(json_object_get(o, "retries")), 2);
    json_decref(o);
}

TEST(operators_submit_for_those_who_have_an_account)
{
    struct caller op = ada;
    struct submit s;

    op.scope = SCOPE_OPERATE;
    ck_assert_int_eq(submit_as(&op, "{\"owner\":\"bob\",\"workload\":\"plain\"," RUN "}", NULL, &s),
                     0);
    ck_assert_str_eq(s.spec.owner, "bob");
    ck_assert_ptr_nonnull(strstr(s.spec.command, "\"uid\":1002"));
    ck_assert_int_eq(submit_as(&op, "{\"owner\":\"eve\",\"workload\":\"plain\"," RUN "}", NULL, &s),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "no account 'eve'"));
}

TEST(only_admins_submit_for_root)
{
    static const char *const body = "{\"owner\":\"root\",\"workload\":\"plain\"," RUN "}";
    struct caller who = ada;
    struct submit s;

    who.scope = SCOPE_OPERATE;
    ck_assert_int_eq(submit_as(&who, body, NULL, &s), -EACCES);
    ck_assert_ptr_nonnull(strstr(err.text, "'admin'"));
    who.scope = SCOPE_ADMIN;
    ck_assert_int_eq(submit_as(&who, body, NULL, &s), 0);
}

TEST(only_operators_tell_what_was_not_known_of_a_workload)
{
    static const char *const body =
        "{\"descriptor\":{\"name\":\"plain\",\"params\":5e6},\"steps\":5," RUN "}";
    struct caller who = ada;
    struct submit s;

    ck_assert_int_eq(submit_as(&who, body, NULL, &s), 0);
    ck_assert(!s.is_new_workload && s.spec.workload >= 0);
    who.scope = SCOPE_OPERATE;
    ck_assert_int_eq(submit_as(&who, body, NULL, &s), 0);
    ck_assert(s.is_new_workload);
}

TEST(nobody_and_who_has_no_account_submit_nothing)
{
    struct caller who = { .scope = SCOPE_SUBMIT, .uid = (uid_t)-1 };
    struct submit s;

    ck_assert_int_eq(submit_as(&who, "{\"workload\":\"plain\"," RUN "}", NULL, &s), -EACCES);
    ck_assert_ptr_nonnull(strstr(err.text, "needs an owner"));
    who.owner = "ghost";
    ck_assert_int_eq(submit_as(&who, "{\"workload\":\"plain\"," RUN "}", NULL, &s), -EACCES);
    ck_assert_ptr_nonnull(strstr(err.text, "no account 'ghost'"));
}

TEST(what_the_daemon_cannot_start_is_forbidden)
{
    struct caller eve = { .scope = SCOPE_SUBMIT, .owner = "eve", .uid = 1003, .gid = 1 };
    struct submit_context s = context();
    struct submit out;
    json_t *body = json_loads("{\"workload\":\"plain\"," RUN "}", 0, NULL);

    s.may_run_as = only_ada;
    ck_assert_int_eq(submit_read(&arena, &s, body, NULL, &out, &err), 0);
    s.caller = &eve;
    ck_assert_int_eq(submit_read(&arena, &s, body, NULL, &out, &err), -EACCES);
    ck_assert_int_eq(err.code, EACCES);
    ck_assert_ptr_nonnull(strstr(err.text, "not root"));
    json_decref(body);
}

/* ---- twice ---- */

static void keep(const struct submit *s)
{
    world_apply(&world,
                &(struct event){ .kind = EVENT_JOB_SUBMITTED, .time_s = NOW_S, .spec = &s->spec });
}

TEST(the_same_key_gives_the_same_job)
{
    static const char body[] = "{\"name\":\"x\",\"workload\":\"plain\",\"steps\":5," RUN "}";
    static const char same[] = "{" RUN ",\"steps\":5,\"workload\":\"plain\",\"name\":\"x\"}";
    static const char other[] = "{\"name\":\"x\",\"workload\":\"plain\",\"steps\":6," RUN "}";
    struct caller bob = { .scope = SCOPE_SUBMIT, .owner = "bob", .uid = 1002, .gid = 1 };
    struct submit s, again;

    ck_assert_int_eq(submit_as(&ada, body, "k1", &s), 0);
    ck_assert_int_eq(strlen(s.spec.key), 32);
    ck_assert_int_eq(strlen(s.spec.digest), 16);
    keep(&s);
    ck_assert_int_eq(submit_as(&ada, same, "k1", &again), 0);
    ck_assert_int_eq(again.again, 2);
    ck_assert_int_eq(submit_as(&ada, other, "k1", &again), -ENOTUNIQ);
    ck_assert_ptr_nonnull(strstr(err.text, "use a new key"));
    ck_assert_int_eq(submit_as(&ada, same, "k2", &again), -EEXIST);
    ck_assert_int_eq(submit_as(&bob, other, "k1", &again), -EEXIST);    // another owner's key
}

/* Besides the small world: a node of 2 v100, two of 4, one of 8 that is down, and two k80. */
static const struct {
    const char *name;
    int gpus;
    const char *type;    // NULL: any
    int want;
} even[] = {
    { "one GPU needs no node of its own", 1, NULL, 0 },
    { "a node that has as many", 4, NULL, 1 },
    { "where only one that is down has", 7, NULL, 1 },
    { "not on a v100 and two k80", 3, "k80", 3 },
    { "in equal parts on two", 8, "v100", 2 },
    { "of its types", 2, "k80", 2 },
    { "nobody could have it", 11, NULL, 11 },
};

EACH(where_gangs_are_even_the_fewest_nodes_are_chosen, even)
{
    struct submit_context s = context();
    struct submit out;

    world_add(&world, "node even-1 v100 v100\nnode even-2 v100 v100 v100 v100\n"
                      "node even-3 v100 v100 v100 v100 v100 v100 v100 v100\n"
                      "node even-4 k80\nnode even-5 k80\n"
                      "node even-6 v100 v100 v100 v100\ndown even-3\n");
    s.wants_even = true;
    json_t *body =
        json_pack("{s:s, s:i, s:[s]}", "workload", "plain", "gpus", even[_i].gpus, "argv", "run");
    if (even[_i].type)
        json_object_set_new(body, "types", json_pack("[s]", even[_i].type));
    ck_assert_int_eq(submit_read(&arena, &s, body, NULL, &out, &err), 0);
    ck_assert_msg(out.spec.n_nodes == even[_i].want, "%s: %d", even[_i].name, out.spec.n_nodes);
    json_object_set_new(body, "max_gpus", json_integer(even[_i].gpus + 1));
    ck_assert_int_eq(submit_read(&arena, &s, body, NULL, &out, &err), -EINVAL);
    json_decref(body);
}

TEST(a_made_up_name_is_free)
{
    struct submit s;

    world_add(&world, "job job-3 plain steps=1\n");    // is job 2
    ck_assert_int_eq(submit_as(&ada, "{\"workload\":\"plain\"," RUN "}", NULL, &s), 0);
    ck_assert_str_eq(s.spec.name, "job-3-2");
}

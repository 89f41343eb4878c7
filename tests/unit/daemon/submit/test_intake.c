/* A job that came by sbatch is a submission, or an error that names the word and the cure. */
#include "daemon/submit/intake.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "act/slurm/slurm.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "daemon/config/auth.h"
#include "unit/suite.h"
#include "unit/support.h"
#include "unit/texts.h"

#define NOW_S 5000.0
#define SUBMIT_S 4000.0
#define SECRET "00112233445566778899aabbccddeeff"

static struct world world;
static struct arena arena;
static struct err err;
static struct accounts accounts;
static int n_asked;    // times that the system was asked for an account

/* Stands in for the C library's: counts, and knows root alone. */
int getpwuid_r(uid_t uid, struct passwd *entry, char *room, size_t size, struct passwd **found)
{
    static char root[] = "root";

    (void)room;
    (void)size;
    n_asked++;
    *entry = (struct passwd){ .pw_name = root };
    *found = uid == 0 ? entry : NULL;
    return 0;
}

static void setup(void)
{
    n_asked = 0;
    world_init(
        &world,
        "type v100\ntype k80\ntype k80-whole=k80\ntype t4-whole=t4\ntype v100-16-whole=v100\ntype 2080ti\ntype 3090\nworkload plain params=3e6\nnode n1 v100 k80\n"
        "node n2 v100 v100\njob live plain steps=10\njob done plain steps=10\n"
        "cancel done\n");
    world_look(&world);
    arena_init(&arena);
    err = (struct err){ 0 };
}

static void teardown(void)
{
    accounts_release(&accounts);
    arena_release(&arena);
    world_release(&world);
}

FIXTURE(setup, teardown)

/* ---- the words ---- */

static const struct {
    const char *name, *text, *want;    // JSON with sorted keys
} promises[] = {
    { "nothing is nothing", "", "{}" },
    { "all of it",
      "min-throughput=40 workload=resnet50 batch=64 precision=bf16 steps=1e5 priority=-3 "
      "urgency=2.5",
      "{\"batch\":64,\"min_throughput\":40.0,\"precision\":\"bf16\",\"priority\":-3,\"steps\":100000.0,"
      "\"urgency\":2.5,\"workload\":\"resnet50\"}" },
    { "a deadline from the submission on", "deadline=+2h", "{\"deadline\":11200.0}" },
    { "a deadline by the clock", "deadline=1970-01-01T03:00:00Z", "{\"deadline\":10800.0}" },
    { "a server", "kind=inference rate=12.5 duration=1d12h",
      "{\"duration_s\":129600.0,\"kind\":\"inference\",\"rate\":12.5}" },
    { "a gang", "gpus=4 nodes=2 max-gpus=4 types=v100,k80 exclusive=yes",
      "{\"exclusive\":true,\"gpus\":4,\"max_gpus\":4,\"nodes\":2,\"types\":[\"v100\",\"k80\"]}" },
    { "how to leave", "checkpoint=USR1 grace=90s",
      "{\"checkpoint_signal\":\"USR1\",\"grace_s\":90.0}" },
    { "a name with blanks, in quotes", "workload=\"ResNet-18 (batch size 16)\" name=x",
      "{\"name\":\"x\",\"workload\":\"ResNet-18 (batch size 16)\"}" },
    { "keys as the API has them", "min_throughput=1 grace_s=5",
      "{\"grace_s\":5.0,\"min_throughput\":1.0}" },
    { "keys as some mix them", "checkpoint-signal=USR1 grace-s=5 max_gpus=2",
      "{\"checkpoint_signal\":\"USR1\",\"grace_s\":5.0,\"max_gpus\":2}" },
    { "several lines", "batch=1\nsteps=2", "{\"batch\":1,\"steps\":2.0}" },
};

EACH(promises_become_bodies, promises)
{
    json_t *body = NULL;
    int rc = intake_promise(&arena, promises[_i].text, SUBMIT_S, &body, &err);

    ck_assert_msg(rc == 0, "%s: %s", promises[_i].name, err.text);
    char *got = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_msg(strcmp(got, promises[_i].want) == 0, "%s: %s", promises[_i].name, got);
    free(got);
    json_decref(body);
}

static const struct {
    const char *name, *text, *want;
} wrong[] = {
    { "a word alone", "fast", "gogh: 'fast' is not of the form key=value" },
    { "a slip", "min-troughput=4",
      "gogh: there is no 'min-troughput'; did you mean 'min-throughput'?" },
    { "a key that nobody knows", "colour=red",
      "gogh: there is no 'colour'; there are min-throughput, workload, batch, steps, deadline, rate, "
      "duration and others: see 'Promises' in GOGH's docs/slurm.md" },
    { "the same twice", "batch=1 batch=1", "gogh: 'batch' is said twice: once is enough" },
    { "the same, spelt in two ways", "grace=1 grace-s=1",
      "gogh: 'grace' is said twice: once is enough" },
    { "what a job of Slurm's does not have", "retries=2",
      "gogh: retries: a job of sbatch that fails has failed; those of 'gogh submit --retries N' are "
      "tried again" },
    { "not a number", "min-throughput=fast",
      "gogh: min-throughput=fast: 'min_throughput' wants a number, not a text" },
    { "out of range", "batch=0",
      "gogh: batch=0: 'batch' wants a number from 1 to 10000000, not 0" },
    { "not a word of the list", "checkpoint=HUP",
      "gogh: checkpoint=HUP: 'checkpoint_signal' wants TERM, USR1 or none, not 'HUP'" },
    { "no duration", "grace=long", "gogh: grace=long: want seconds, or 90s, 5m, 2h, 1d12h" },
    { "an empty duration", "grace=", "gogh: grace=: want seconds, or 90s, 5m, 2h, 1d12h" },
    { "no time", "deadline=tomorrow",
      "gogh: deadline=tomorrow: 'deadline' wants a time as \"2026-11-16T18:00:00Z\", or seconds "
      "since 1970" },
    { "no time from now", "deadline=+soon",
      "gogh: deadline=+soon: want a time, or + and seconds, or 90s, 5m, 2h, 1d12h" },
    { "neither yes nor no", "exclusive=maybe",
      "gogh: exclusive=maybe: 'exclusive' wants true or false, not a text" },
    { "a quote without an end", "workload=\"x",
      "gogh:1: a quote is opened and not closed: add '\"'" },
    { "bytes that are no text", "name=\xff",
      "gogh: name=\xff: 'name' is not UTF-8; send it as %XX of "
      "its UTF-8 bytes" },
};

EACH(wrong_promises_name_the_word, wrong)
{
    json_t *body = NULL;
    int rc = intake_promise(&arena, wrong[_i].text, SUBMIT_S, &body, &err);

    ck_assert_msg(rc == -EINVAL, "%s: %d", wrong[_i].name, rc);
    ck_assert_ptr_null(body);
    ck_assert_msg(strcmp(err.text, wrong[_i].want) == 0, "%s: %s", wrong[_i].name, err.text);
}

TEST(a_promise_begins_where_its_mark_does)
{
    ck_assert_str_eq(intake_promise_text("gogh: batch=3"), " batch=3");
    ck_assert_str_eq(intake_promise_text("project 7; GOGH: batch=3"), " batch=3");
    ck_assert_str_eq(intake_promise_text("vangogh: batch=3"), "");
    ck_assert_str_eq(intake_promise_text(""), "");
    ck_assert_str_eq(intake_promise_text(NULL), "");
}

/* ---- the job ---- */

static const struct slurm_job plain_job = {
    .id = 17,
    .array = -1,
    .task = -1,
    .uid = 0,
    .partition = "gogh",
    .held = HOLD_ADMIN,
    .submit_s = SUBMIT_S,
    .gres = "",
    .name = "train",
    .comment = "",
    .admin = "gogh1 new gres=gpu:1 nodes=1 held=no secret=" SECRET,
    .command = "/home/ada/train.sh",
    .cwd = "/home/ada",
};

static int read_job(const struct slurm_job *j, struct submit *out)
{
    const struct submit_context context = { .catalog = &world.catalog,
                                            .state = &world.ledger.state,
                                            .estimator = &world.est,
                                            .now_s = NOW_S };

    return intake_read(&accounts, &arena, &context, j, out, &err);
}

static const char *told(const struct submit *s)
{
    const struct job_spec *p = &s->spec;
    struct buf b;

    buf_init(&b, 4096);
    buf_printf(&b, "%s/%s %s gpus=%d", p->owner, p->name,
               s->is_new_workload ? s->workload.name : world.catalog.workloads[p->workload].name,
               p->n_gpus);
    if (p->is_exclusive)
        buf_puts(&b, " alone");
    if (p->n_nodes)
        buf_printf(&b, " nodes=%d", p->n_nodes);
    if (p->allowed_types)
        buf_printf(&b, " types=%llx", (unsigned long long)p->allowed_types);
    if (!p->is_guess)
        buf_printf(&b, " steps=%g", p->steps);
    if (!isnan(p->deadline_s))
        buf_printf(&b, " by=%g", p->deadline_s);
    buf_printf(&b, "%s at=%g", s->is_held ? " held" : "", p->submit_s);
    return text_taken(&arena, &b);
}

/* What differs from the plain job, and what comes of it. */
static const struct {
    const char *name, *comment, *admin, *gres, *job_name;
    int n_nodes;
    const char *want;
} jobs[] = {
    { "a plain job", NULL, NULL, NULL, NULL, 0, "root/train root: train.sh gpus=1 at=4000" },
    { "the user's GPUs, as the gate kept them", NULL, "gogh1 new gres=gpu:v100:2 nodes=2 held=no",
      NULL, NULL, 0, "root/train root: train.sh gpus=4 nodes=2 types=11 at=4000" },
    { "so many in all, wherever", NULL, "gogh1 new gres=gpu:2 held=no", NULL, NULL, 0,
      "root/train root: train.sh gpus=2 at=4000" },
    { "several on one node stand together", NULL, "gogh1 new gres=gpu:k80:2 nodes=1 held=no", NULL,
      NULL, 0, "root/train root: train.sh gpus=2 nodes=1 types=6 at=4000" },
    { "a gres type of one device means its GPU type", NULL,
      "gogh1 new gres=gpu:v100_1:1 nodes=1 held=no", NULL, NULL, 0,
      "root/train root: train.sh gpus=1 types=11 at=4000" },
    { "GPUs that are only had whole", NULL, "gogh1 new gres=gpu:t4:1 nodes=1 held=no", NULL, NULL,
      0, "root/train root: train.sh gpus=1 types=8 at=4000" },
    { "a type that begins with a digit", NULL, "gogh1 new gres=gpu:2080ti:1 nodes=1 held=no", NULL,
      NULL, 0, "root/train root: train.sh gpus=1 types=20 at=4000" },
    { "such a type alone", NULL, "gogh1 new gres=gpu:2080ti nodes=1 held=no", NULL, NULL, 0,
      "root/train root: train.sh gpus=1 types=20 at=4000" },
    { "a type of digits", NULL, "gogh1 new gres=gpu:3090:2 nodes=1 held=no", NULL, NULL, 0,
      "root/train root: train.sh gpus=2 nodes=1 types=40 at=4000" },
    { "a part of a GPU is a GPU that may be shared", NULL, "gogh1 new gres=shard:1 nodes=1", NULL,
      NULL, 0, "root/train root: train.sh gpus=1 at=4000" },
    { "all of its parts is one that is not", NULL, "gogh1 new gres=shard:v100:2 nodes=1", NULL,
      NULL, 0, "root/train root: train.sh gpus=1 alone types=11 at=4000" },
    { "unless the promise says otherwise", "gogh: exclusive=no", "gogh1 new gres=shard:2 nodes=1",
      NULL, NULL, 0, "root/train root: train.sh gpus=1 at=4000" },
    { "without a gate, GPUs beside what is none of ours", NULL, "", "nvme:1,gpu:2", NULL, 1,
      "root/train root: train.sh gpus=2 nodes=1 at=4000" },
    { "without a gate, a part by MPS", NULL, "", "mps:50", NULL, 1,
      "root/train root: train.sh gpus=1 at=4000" },
    { "without a gate, what Slurm has", NULL, "", "gres:gpu:k80:1", NULL, 2,
      "root/train root: train.sh gpus=2 nodes=2 types=6 at=4000" },
    { "the promise counts before the request", "gogh: gpus=2 nodes=1 types=v100,k80",
      "gogh1 new gres=gpu:a100:4 nodes=1 held=no", NULL, NULL, 0,
      "root/train root: train.sh gpus=2 nodes=1 types=17 at=4000" },
    { "nodes of the promise, GPUs of the request", "gogh: nodes=2",
      "gogh1 new gres=gpu:2 nodes=1 held=no", NULL, NULL, 0,
      "root/train root: train.sh gpus=4 nodes=2 at=4000" },
    { "a hold of the user's", NULL, "gogh1 new gres=gpu:1 nodes=1 held=yes", NULL, NULL, 0,
      "root/train root: train.sh gpus=1 held at=4000" },
    { "a promise, counted from sbatch on", "gogh: workload=plain steps=7 deadline=+10m", NULL, NULL,
      NULL, 0, "root/train plain gpus=1 steps=7 by=4600 at=4000" },
    { "a model by the job's name", NULL, NULL, NULL, "ResNet_50", 0,
      "root/ResNet_50 ResNet-50 (batch size 64) gpus=1 at=4000" },
    { "and its batch by the promise", "gogh: batch=32", NULL, NULL, "resnet50", 0,
      "root/resnet50 ResNet-50 (batch size 32) gpus=1 at=4000" },
    { "a name that a live job has", NULL, NULL, NULL, "live", 0,
      "root/live-17 root: train.sh gpus=1 at=4000" },
    { "a name that an ended job had", NULL, NULL, NULL, "done", 0,
      "root/done root: train.sh gpus=1 at=4000" },
    { "a name of digits", NULL, NULL, NULL, "2026", 0,
      "root/2026-17 root: train.sh gpus=1 at=4000" },
    { "a name of odd bytes", NULL, NULL, NULL,
      " a\x01\xff"
      "b ",
      0, "root/a__b root: train.sh gpus=1 at=4000" },
    { "no name", NULL, NULL, NULL, "", 0, "root/job root: train.sh gpus=1 at=4000" },
    { "a name by the promise", "gogh: name=mine", NULL, NULL, NULL, 0,
      "root/mine root: train.sh gpus=1 at=4000" },
};

EACH(jobs_become_submissions, jobs)
{
    struct slurm_job j = plain_job;
    struct submit got;

    j.comment = jobs[_i].comment ? jobs[_i].comment : j.comment;
    j.admin = jobs[_i].admin ? jobs[_i].admin : j.admin;
    j.gres = jobs[_i].gres ? jobs[_i].gres : j.gres;
    j.name = jobs[_i].job_name ? jobs[_i].job_name : j.name;
    j.n_nodes = jobs[_i].n_nodes;
    int rc = read_job(&j, &got);
    ck_assert_msg(rc == 0, "%s: %s", jobs[_i].name, err.text);
    ck_assert_msg(strcmp(told(&got), jobs[_i].want) == 0, "%s: %s", jobs[_i].name, told(&got));
    ck_assert_int_eq(got.again, -1);
    if (got.is_new_workload)
        got.spec.workload = 0;    // its index is the catalog's to give
    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &got.spec });
}

TEST(what_it_runs_is_kept_with_its_secret)
{
    struct slurm_job j = plain_job;
    struct submit got;

    j.comment = "gogh: checkpoint=USR1 grace=30";
    ck_assert_int_eq(read_job(&j, &got), 0);
    ck_assert_str_eq(got.spec.command, "{\"argv\":[\"/home/ada/train.sh\"],\"cwd\":\"/home/ada\","
                                       "\"env\":{\"GOGH_SECRET\":\"" SECRET "\"},\"grace_s\":30.0,"
                                       "\"checkpoint_signal\":\"USR1\",\"uid\":0,\"gid\":0}");
    j.admin = "";
    j.command = "(null)";
    j.cwd = "";
    ck_assert_int_eq(read_job(&j, &got), 0);
    ck_assert_ptr_null(strstr(got.spec.command, "GOGH_SECRET"));
    ck_assert_ptr_nonnull(strstr(got.spec.command, "\"argv\":[\"train\"],\"grace_s\""));
}

TEST(a_job_is_taken_in_once)
{
    struct submit got;

    ck_assert_int_eq(read_job(&plain_job, &got), 0);
    got.spec.workload = 0;
    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &got.spec });
    ck_assert_int_eq(read_job(&plain_job, &got), 0);
    ck_assert_int_eq(got.again, world_job(&world, "train"));
    struct slurm_job later = plain_job;    // its number was given out again
    later.submit_s = SUBMIT_S + 60;
    ck_assert_int_eq(read_job(&later, &got), 0);
    ck_assert_int_eq(got.again, -1);
    ck_assert_str_eq(got.spec.name, "train-17");
}

TEST(tasks_of_an_array_have_names_of_their_own)
{
    struct slurm_job j = plain_job;
    struct submit got;

    j.array = 17;
    j.task = 3;
    ck_assert_int_eq(read_job(&j, &got), 0);
    ck_assert_str_eq(got.spec.name, "train-17_3");
}

TEST(an_account_without_a_name_has_its_number)
{
    struct slurm_job j = plain_job;
    struct submit got;

    j.uid = 3999999999;
    ck_assert_int_eq(read_job(&j, &got), 0);
    ck_assert_str_eq(got.spec.owner, "uid:3999999999");
    ck_assert_int_eq(read_job(&j, &got), 0);
    ck_assert_str_eq(got.spec.owner, "uid:3999999999");
}

TEST(many_accounts_are_remembered)
{
    struct slurm_job j = plain_job;
    struct submit got;

    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 600; i++) {
            j.uid = 3000000000 + i;
            ck_assert_int_eq(read_job(&j, &got), 0);
            ck_assert_str_eq(got.spec.owner, arena_printf(&arena, "uid:%u", (unsigned)j.uid));
        }
    }
    ck_assert_int_eq(n_asked, 600);
}

static const struct {
    const char *name, *comment, *admin, *want;
} refused[] = {
    { "a type that there is not", NULL, "gogh1 new gres=gpu:a100:1 nodes=1",
      "types: there is no GPU type 'a100' here; 'gogh nodes' lists them" },
    { "something else than GPUs", NULL, "gogh1 new gres=nvme:1 nodes=1",
      "gres: 'nvme' is no GPU, and nothing else can be had here" },
    { "GPUs of two kinds", NULL, "gogh1 new gres=gpu:k80:1,gpu:v100:1 nodes=1",
      "gres: GPUs of one kind, please; say types=A,B after 'gogh:' where several will do" },
    { "a request that is none", NULL, "gogh1 new gres=gpu:k80:many nodes=1",
      "gres: 'gpu:k80:many' is not of the form gpu:TYPE:NUMBER" },
    { "a deadline for work of unknown length", "gogh: deadline=+2h", NULL,
      "deadline: it needs steps, or nobody knows what must be done" },
    { "parts that are not equal", "gogh: gpus=3 nodes=2", NULL,
      "3 GPUs cannot stand on 2 nodes in equal parts: ask for a multiple of the nodes" },
    { "a batch of nobody knows what", "gogh: batch=3", NULL, "batch: of which workload?" },
    { "a wrong word", "gogh: stepz=3", NULL, "gogh: there is no 'stepz'; did you mean 'steps'?" },
    { "a slip of a known workload", "gogh: workload=plaim", NULL,
      "workload: 'plaim' is not known; did you mean 'plain'? If it is a new one, say so by "
      "new-workload=yes" },
};

EACH(what_makes_no_sense_is_refused, refused)
{
    struct slurm_job j = plain_job;
    struct submit got;

    j.comment = refused[_i].comment ? refused[_i].comment : j.comment;
    j.admin = refused[_i].admin ? refused[_i].admin : j.admin;
    int rc = read_job(&j, &got);
    ck_assert_msg(rc == -EINVAL, "%s: %d", refused[_i].name, rc);
    ck_assert_msg(strcmp(err.text, refused[_i].want) == 0, "%s: %s", refused[_i].name, err.text);
}

/* A site's accounting as a history: who had which GPU, and joules and steps computed by hand. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "catalog/cluster/cluster.h"
#include "optimize/policy/solver.h"
#include "sim/history/history.h"
#include "sim/history/sacct.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"
#include "unit/texts.h"

/* GPUs 0 and 1 are slow, 2 is fast, 3 is slow: small_truth.h has what runs how there. */
#define CLUSTER                                                                               \
    "gputype slow like=v100 idle=50 sleep=10 cap=300\n"                                       \
    "gputype fast like=v100 idle=50 sleep=10 cap=300\n"                                       \
    "workload big like=resnet50\nworkload small like=resnet50\nworkload huge like=resnet50\n" \
    "node n1 slow:2\nnode n2 fast:1 slow:1\n"

#define HEAD "JobIDRaw|JobName|Submit|Start|ElapsedRaw|AllocTRES|NodeList|Comment\n"
#define AT(clock) "2026-03-02T" clock ":00"
#define JOB(id, name, submit, start, elapsed, tres, nodes, comment) \
    id "|" name "|" AT(submit) "|" AT(start) "|" elapsed "|" tres "|" nodes "|" comment "\n"

struct scene {
    struct arena arena;
    struct cluster cluster;
    struct sacct sacct;
    struct small_truth small;
    struct history history;
};

static int scene_make(struct scene *c, const char *jobs, const struct history_options *o,
                      struct err *e)
{
    arena_init(&c->arena);
    small_truth_init(&c->small);
    ck_assert_msg(cluster_parse(&c->arena, "c", CLUSTER, strlen(CLUSTER), &c->cluster, e) == 0,
                  "%s", e->text);
    const char *text = arena_printf(&c->arena, "%s%s", HEAD, jobs);
    ck_assert_msg(sacct_parse(&c->arena, "s", text, strlen(text), NULL, &c->sacct, e) == 0, "%s",
                  e->text);
    ck_assert_int_eq(c->sacct.n_refused, 0);
    int rc = history_make(&c->arena, &c->sacct, &c->cluster, o, &c->history, e);
    for (int i = 0; i < c->history.n_jobs; i++) {    // the truth has no batches
        struct trace_job *j = &c->history.trace.jobs[i];
        double batch;
        struct slice plain = workload_name_split(j->workload, &batch);

        j->workload = arena_strndup(&c->arena, plain.at, plain.len);
    }
    return rc == 0 ? history_fit(&c->history, &c->small.truth, e) : rc;
}

static void scene_release(struct scene *c)
{
    small_truth_release(&c->small);
    arena_release(&c->arena);
}

static const struct history_options usual = {
    .workload = "big", .from_s = -INFINITY, .to_s = INFINITY, .shards = 2
};

/* ---- who had what ---- */

/* Each job as "gpu,gpu workload steps>=promise;", then what was left out. */
static const char *digest(struct scene *c)
{
    struct history *h = &c->history;
    struct history_figures f;
    struct buf b;

    buf_init(&b, 4096);
    history_play(&c->arena, h, &c->small.truth, 2, false, &f);
    for (int i = 0; i < h->n_jobs; i++) {
        const struct trace_job *j = &h->trace.jobs[i];

        for (int k = 0; k < h->jobs[i].n_gpus; k++)
            buf_printf(&b, "%s%d", k > 0 ? "," : "", h->jobs[i].gpus[k]);
        buf_printf(&b, " %s %.6g>=%.6g;", j->workload, j->is_inference ? j->rate : j->steps,
                   j->min_throughput);
    }
    if (h->n_unknown_node > 0)
        buf_printf(&b, " unknown %d %s", h->n_unknown_node, h->unknown_node);
    if (h->n_no_room > 0)
        buf_printf(&b, " no room %d %s", h->n_no_room, h->no_room);
    if (h->n_mixed > 0)
        buf_printf(&b, " mixed %d", h->n_mixed);
    if (h->n_unfit + h->n_taken_for_default + h->n_outside > 0)
        buf_printf(&b, " unfit %d taken %d outside %d", h->n_unfit, h->n_taken_for_default,
                   h->n_outside);
    return text_taken(&c->arena, &b);
}

static const struct text_row cases[] = {
    { "a job does what its GPU lets it do, and is promised it by half",
      JOB("1", "big", "08:00", "08:10", "3600", "gres/gpu=1", "n1", ""), "0 big 36000>=5;" },
    { "the second takes the next GPU, the third the first once it is free",
      JOB("1", "small", "08:00", "08:00", "600", "gres/gpu=1", "n1", "")
          JOB("2", "small", "08:00", "08:05", "600", "gres/gpu=1", "n1", "")
              JOB("3", "small", "08:00", "08:10", "600", "gres/gpu=1", "n1", ""),
      "0 small 2400>=2;1 small 2400>=2;0 small 2400>=2;" },
    { "who ends makes room in the same second",
      JOB("1", "huge", "08:00", "08:00", "600", "gres/gpu:fast=1", "n2", "")
          JOB("2", "big", "08:00", "08:10", "600", "gres/gpu:fast=1", "n2", ""),
      "2 huge 3000>=2.5;2 big 12000>=10;" },
    { "a type that is told is taken, also one device's own name",
      JOB("1", "big", "08:00", "08:00", "600", "gres/gpu:slow=1", "n2", "")
          JOB("2", "big", "08:00", "08:20", "600", "gres/gpu:slow_1=1", "n2", ""),
      "3 big 6000>=5;3 big 6000>=5;" },
    { "a type that nobody knows is any",
      JOB("1", "big", "08:00", "08:00", "600", "gres/gpu:1g.5gb=1", "n2", ""), "2 big 12000>=10;" },
    { "a gang over two nodes has equal parts",
      JOB("1", "big", "08:00", "08:00", "100", "gres/gpu=2", "n[1-2]", ""), "0,2 big 1320>=6.6;" },
    { "or what is left there", JOB("1", "big", "08:00", "08:00", "100", "gres/gpu=3", "n[1-2]", ""),
      "0,1,2 big 1552.76>=7.76381;" },
    { "a gang that no plan could place is left out",
      JOB("1", "big", "08:00", "08:00", "100", "gres/gpu=4", "n[1-2]", "")
          JOB("2", "big", "08:00", "08:10", "100", "gres/gpu=1", "n1", ""),
      "0 big 1000>=5; mixed 1" },
    { "who shares is slowed down by its neighbour, as long as there is one",
      JOB("1", "big", "08:00", "08:00", "600", "gres/shard=1", "n1", "")
          JOB("2", "small", "08:00", "08:05", "600", "gres/shard=1", "n1", ""),
      "0 big 4500>=3.75;0 small 2160>=1.8;" },
    { "all shards of a GPU are the GPU",
      JOB("1", "big", "08:00", "08:00", "600", "gres/shard=2", "n1", "")
          JOB("2", "big", "08:00", "08:00", "600", "gres/shard=1", "n1", ""),
      "0 big 6000>=5;1 big 6000>=5;" },
    { "a comment says what was promised",
      JOB("1", "big", "08:00", "08:00", "600", "gres/gpu=1", "n1",
          "gogh: workload=small min-throughput=3.5"),
      "0 small 2400>=3.5;" },
    { "a comment says what was served",
      JOB("1", "big", "08:00", "08:00", "600", "gres/gpu=1", "n1", "gogh: workload=small rate=2"),
      "0 small 2>=1;" },
    { "a name that says nothing is taken for the default",
      JOB("1", "run.sh", "08:00", "08:00", "600", "gres/gpu=1", "n1", ""), "0 big 6000>=5;" },
    { "what does not fit where it ran is taken for the default",
      JOB("1", "huge", "08:00", "08:00", "600", "gres/gpu=1", "n1", "")
          JOB("2", "huge", "08:00", "08:00", "600", "gres/gpu=1", "n2", ""),
      "0 big 6000>=5;2 huge 3000>=2.5; unfit 0 taken 1 outside 0" },
    { "what could not have shared is left out",
      JOB("1", "huge", "08:00", "08:00", "600", "gres/shard=1", "n2", "")
          JOB("2", "big", "08:00", "08:00", "600", "gres/shard=1", "n2", ""),
      "2 huge 3000>=2.5; unfit 1 taken 0 outside 0" },
    { "nodes that are not here are told",
      JOB("1", "big", "08:00", "08:00", "600", "gres/gpu=2", "n[1,9]", "")
          JOB("2", "big", "08:00", "08:00", "600", "gres/gpu=1", "n1", ""),
      "0 big 6000>=5; unknown 1 n9" },
    { "who found no room is told",
      JOB("1", "big", "08:00", "08:00", "600", "gres/gpu=2", "n1", "")
          JOB("2", "big", "08:00", "08:09", "600", "gres/gpu=1", "n1", ""),
      "0,1 big 10440>=8.7; no room 1 2" },
};

EACH(finds_out_who_had_what, cases)
{
    struct err e = { 0 };
    struct scene c;

    ck_assert_msg(scene_make(&c, cases[_i].given, &usual, &e) == 0, "%s: %s", cases[_i].name,
                  e.text);
    const char *got = digest(&c);
    text_row_check(&cases[_i], got);
    scene_release(&c);
}

/* ---- joules ---- */

TEST(the_energy_is_that_of_busy_and_idle_gpus)
{
    struct history_figures f;
    struct err e = { 0 };
    struct scene c;

    ck_assert_int_eq(scene_make(&c,
                                JOB("1", "big", "08:00", "08:10", "3600", "gres/gpu=1", "n1", ""),
                                &usual, &e),
                     0);
    history_play(&c.arena, &c.history, &c.small.truth, 1.1, false, &f);
    ck_assert_double_eq_tol(f.energy_j, 4200 * 4 * 50 + 3600 * (200 - 50), 1e-6);
    ck_assert_double_eq_tol(f.idle_j, 4200 * 4 * 50 - 3600 * 50, 1e-6);
    ck_assert_double_eq(f.mean_wait_s, 600);
    ck_assert_double_eq(f.mean_jct_s, 4200);
    ck_assert_double_eq_tol(f.promise_attainment, 3600.0 / 4200, 1e-12);

    /* Three sleep after a minute; the fourth does so until it is needed. */
    history_play(&c.arena, &c.history, &c.small.truth, 1.1, true, &f);
    ck_assert_double_eq_tol(f.energy_j,
                            3 * (60 * 50 + 4140 * 10) + (60 * 50 + 540 * 10) + 3600 * 200, 1e-6);
    scene_release(&c);
}

TEST(a_window_cuts_off_what_ran_before_and_after)
{
    struct history_options o = usual;
    struct history_figures f;
    struct err e = { 0 };
    struct scene c;

    ck_assert_int_eq(sacct_time(slice_of(AT("09:00")), &o.from_s), 0);
    o.to_s = o.from_s + 600;
    ck_assert_int_eq(
        scene_make(&c,
                   JOB("1", "big", "08:00", "08:10", "36000", "gres/gpu=1", "n1", "")
                       JOB("2", "big", "08:30", "09:05", "60", "gres/gpu=1", "n1", "")
                           JOB("3", "big", "08:00", "08:05", "60", "gres/gpu=1", "n1", "")
                               JOB("4", "big", "08:00", "09:15", "60", "gres/gpu=1", "n1", ""),
                   &o, &e),
        0);
    ck_assert_str_eq(digest(&c), "0 big 6000>=5;1 big 600>=5; unfit 0 taken 0 outside 2");
    history_play(&c.arena, &c.history, &c.small.truth, 1.1, false, &f);
    ck_assert_double_eq_tol(f.energy_j, 600 * 4 * 50 + (600 + 60) * 150, 1e-6);
    ck_assert_double_eq(f.mean_wait_s, 150);    // 0 and 300: from the window's beginning
    scene_release(&c);
}

TEST(gogh_does_the_same_work)
{
    struct history_figures was, is, longer;
    struct err e = { 0 };
    struct scene c;

    ck_assert_int_eq(
        scene_make(&c,
                   JOB("1", "big", "08:00", "08:10", "3600", "gres/gpu=1", "n1", "")
                       JOB("2", "small", "08:00", "08:10", "7200", "gres/gpu=1", "n1", ""),
                   &usual, &e),
        0);
    history_play(&c.arena, &c.history, &c.small.truth, 1.1, false, &was);
    struct history_simulate how = { .truth = &c.small.truth, .seed = 1, .tolerance = 1.1 };
    ck_assert_msg(history_simulate(&c.history, &how, &is, &e) == 0, "%s", e.text);
    ck_assert_int_eq(is.n_finished, 2);
    ck_assert_int_eq(is.n_later, 0);
    ck_assert_double_lt(is.energy_j, was.energy_j);
    ck_assert_double_le(is.mean_wait_s, was.mean_wait_s);

    /* Counted to the end of the history: until then four GPUs sleep. */
    ck_assert_double_lt(is.end_s, was.end_s - 60);
    c.history.end_s += 1000;
    ck_assert_int_eq(history_simulate(&c.history, &how, &longer, &e), 0);
    ck_assert_double_eq_tol(longer.energy_j - is.energy_j, 4 * 1000 * 10, 1e-3);
    how.without = 1U << LEVER_SLEEP;
    ck_assert_int_eq(history_simulate(&c.history, &how, &longer, &e), 0);
    c.history.end_s -= 1000;
    ck_assert_int_eq(history_simulate(&c.history, &how, &is, &e), 0);
    ck_assert_double_eq_tol(longer.energy_j - is.energy_j, 4 * 1000 * 50, 1e-3);
    scene_release(&c);
}

TEST(a_history_of_nobody_is_an_error)
{
    struct err e = { 0 };
    struct scene c;

    ck_assert_int_eq(
        scene_make(&c, JOB("1", "big", "08:00", "08:10", "60", "gres/gpu=1", "x7", ""), &usual, &e),
        -ENOENT);
    ck_assert_ptr_nonnull(strstr(e.text, "1 on nodes that the cluster file has not as x7"));
    scene_release(&c);
}

/* ---- names ---- */

static const struct {
    const char *given, *want;
} names[] = {
    { "train_resnet50_bs64", "ResNet-50 (batch size 64)" },
    { "ResNet-50", "ResNet-50 (batch size 64)" },
    { "resnet_18.batch_32.sh", "ResNet-18 (batch size 32)" },
    { "bert-base-uncased-squad", "bert-base (batch size 32)" },
    { "bert large batchsize=4", "bert-large (batch size 4)" },
    { "llama-2-7b-serve", "llama-7b (batch size 8)" },
    { "my-big-run", "big" },
    { "bigger", NULL },
    { "python3 train.py", NULL },
    { "", NULL },
    { "--__..", NULL },
    { "resnet50_bs0", "ResNet-50 (batch size 64)" },
};

EACH(recognises_names, names)
{
    struct err e = { 0 };
    struct cluster cl;
    struct arena a;

    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", CLUSTER, strlen(CLUSTER), &cl, &e), 0);
    const char *got = history_recognise(&a, &cl, names[_i].given);
    if (names[_i].want == NULL)
        ck_assert_msg(got == NULL, "%s: %s", names[_i].given, got);
    else
        ck_assert_msg(got != NULL && strncmp(got, names[_i].want, strlen(names[_i].want)) == 0,
                      "%s: %s", names[_i].given, got);
    arena_release(&a);
}

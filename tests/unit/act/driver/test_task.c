/* A request to the driver: which commands it takes, and what is answered, with results made up. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/output.h"
#include "act/driver/owners.h"
#include "act/driver/task.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "unit/suite.h"

/* Nobody is looked up in the driver itself: who does so here is counted. */
static int n_lookups;

struct passwd *getpwuid(uid_t uid)
{
    (void)uid;
    n_lookups++;
    return NULL;
}

struct scene {
    struct owners owners;
    struct task_setup setup;
    struct task task;
    struct buf out;
    char *line;
    double now_s;
    struct call_order order;
    char call[400];    // the last one's arguments
};

static void begin(struct scene *s, const char *line)
{
    free(s->line);
    s->line = strdup(line);
    buf_clear(&s->out);
    task_init(&s->task, &s->setup, s->line, strlen(s->line), &s->out);
}

static void open_scene(struct scene *s, const char *line)
{
    *s = (struct scene){ .now_s = 100 };
    s->setup = (struct task_setup){ .read_limit_s = 5, .change_limit_s = 10, .owners = &s->owners };
    s->owners = (struct owners){ 0 };
    buf_init(&s->out, 1 << 20);
    begin(s, line);
}

static void close_scene(struct scene *s)
{
    task_release(&s->task);
    owners_release(&s->owners);
    buf_release(&s->out);
    free(s->line);
}

/* The next call's arguments; "": there is none, and the answer is there. */
static const char *next(struct scene *s)
{
    size_t at = 0;

    s->call[0] = '\0';
    if (!task_next(&s->task, s->now_s, &s->order, &s->out))
        return s->call;
    for (int i = 0; s->order.argv[i] && at < sizeof s->call; i++)
        at += (size_t)snprintf(s->call + at, sizeof s->call - at, "%s%s", i ? " " : "",
                               s->order.argv[i]);
    return s->call;
}

/* It ended so, and printed 'text'. */
static bool take(struct scene *s, int status, const char *text, const char *errors)
{
    struct call_result r = { .end = CALL_EXITED, .status = status, .errors = errors };

    r.out = arena_strdup(&s->task.arena, text);
    r.out_len = strlen(text);
    return task_take(&s->task, &r, &s->out);
}

/* Job 'id' is 'uid's, as squeue says it to whoever asks for owners alone. */
static bool take_owner(struct scene *s, const char *id, const char *uid)
{
    const char *m = s->task.mark;

    return take(s, 0,
                arena_printf(&s->task.arena, "%s\x1f%s{%s\x1f%s;N/A\x1f%s;%s\x1f%s}\n", id, m, id,
                             m, m, uid, m),
                "");
}

#define SQUEUE "squeue --noheader --all --local --array --states=all"
#define UPDATE "scontrol update JobId=7 ReqNodeList=a StartTime=now"
#define PIN "3 pin\tid=7\tnodes=a\tuid=5"

TEST(a_pin_is_preceded_by_whose_job_it_is)
{
    struct scene s;

    open_scene(&s, PIN);
    ck_assert_str_eq(next(&s), SQUEUE);
    ck_assert(s.order.limit_s == 5);
    ck_assert(take_owner(&s, "7", "5"));
    ck_assert_str_eq(next(&s), UPDATE);
    ck_assert(s.order.limit_s == 10);
    ck_assert(take(&s, 0, "", ""));
    ck_assert_str_eq(next(&s), "scontrol release 7");
    ck_assert(take(&s, 0, "", ""));
    ck_assert_str_eq(next(&s), "");
    ck_assert_str_eq(buf_text(&s.out), "3 done\n");
    close_scene(&s);
}

TEST(one_listing_will_do_for_several_pins_while_it_is_fresh)
{
    struct scene s;

    open_scene(&s, PIN);
    owners_begin(&s.owners, s.now_s - OWNERS_AGE_S);
    owners_add(&s.owners, &(struct owner){ .id = 7, .task = -1, .uid = 5 });
    ck_assert_str_eq(next(&s), UPDATE);
    ck_assert(take(&s, 0, "", ""));
    s.now_s += 1;    // an update that took a second: who knows what was in between
    ck_assert_str_eq(next(&s), SQUEUE);
    s.now_s += 60;
    ck_assert(take_owner(&s, "7", "5"));
    ck_assert_str_eq(next(&s), "scontrol release 7");    // a slow listing is not asked for again
    close_scene(&s);
}

static const struct {
    const char *name, *id, *uid;
} strangers[] = {
    { "another's", "7", "6" },
    { "of a user who is not known", "7", "(null)" },
    { "not there", "8", "5" },
};

EACH(a_number_that_is_anothers_is_not_touched, strangers)
{
    for (int is_note = 0; is_note < 2; is_note++) {
        struct scene s;

        open_scene(&s, is_note ? "3 note\tid=7\tadmin=x\tuid=5" : PIN);
        ck_assert_str_eq(next(&s), SQUEUE);
        ck_assert(take_owner(&s, strangers[_i].id, strangers[_i].uid));
        ck_assert_msg(!*next(&s), "%s: %s", strangers[_i].name, s.call);
        ck_assert_msg(strncmp(buf_text(&s.out), "3 failed\tkind=gone\t", 19) == 0, "%s: %s",
                      strangers[_i].name, buf_text(&s.out));
        close_scene(&s);
    }
}

TEST(while_nobody_says_whose_it_is_nothing_is_changed)
{
    struct call_result late = { .end = CALL_LATE, .errors = "", .took_s = 5 };
    struct scene s;

    open_scene(&s, PIN);
    ck_assert_str_eq(next(&s), SQUEUE);
    ck_assert(!task_take(&s.task, &late, &s.out));
    ck_assert_str_eq(buf_text(&s.out), "3 failed\tkind=down\ttext=no answer within 5 s\n");
    close_scene(&s);
    open_scene(&s, "3 pin\tid=7\tnodes=a");
    ck_assert_str_eq(next(&s), UPDATE);    // who does not say it is not asked
    ck_assert(!task_take(&s.task, &late, &s.out));
    ck_assert_str_eq(buf_text(&s.out), "3 unknown\ttext=no answer within 5 s\n");
    close_scene(&s);
    open_scene(&s, "3 pin\tid=7\tnodes=a\tuid=ann");
    ck_assert(strstr(buf_text(&s.out), "kind=misuse"));
    close_scene(&s);
}

static bool join(struct scene *s, const char *line)
{
    return task_join(&s->task, line, strlen(line));
}

#define NOTE "\tadmin=gogh1 token=ab-1 at=a/0"

TEST(pins_that_follow_each_other_go_together)
{
    struct scene s;

    open_scene(&s, "3 pin\tid=7\tnodes=a\tuid=5" NOTE);
    ck_assert(join(&s, "4 pin\tid=8_1\tnodes=a\tuid=5\tn_nodes=1\tgres=shard:1" NOTE));
    ck_assert(join(&s, "5 pin\tid=9\tnodes=b"));
    ck_assert(join(&s, "6 pin\tid=10\tnodes=b\tuid=5"));
    ck_assert(join(&s, "7 pin\tid=11\tnodes=b"));
    owners_begin(&s.owners, s.now_s);
    owners_add(&s.owners, &(struct owner){ .id = 7, .task = -1, .uid = 5 });
    owners_add(&s.owners, &(struct owner){ .id = 8, .array = 8, .task = 1, .uid = 5 });
    owners_add(&s.owners, &(struct owner){ .id = 10, .task = -1, .uid = 6 });
    ck_assert_str_eq(next(&s), "scontrol");
    ck_assert_str_eq(s.order.input,
                     "update JobId=7 ReqNodeList=a StartTime=now "
                     "AdminComment=\"gogh1 token=ab-1 at=a/0\"\n"
                     "update JobId=8_1 ReqNodeList=a NumNodes=1 Gres=shard:1 StartTime=now "
                     "AdminComment=\"gogh1 token=ab-1 at=a/0\"\n"
                     "update JobId=9 ReqNodeList=b StartTime=now\n"
                     "update JobId=11 ReqNodeList=b StartTime=now\n");
    ck_assert(!join(&s, "8 pin\tid=12\tnodes=b"));    // too late
    ck_assert(take(&s, 1, "", "Invalid node name specified for job 9\n"));
    ck_assert_str_eq(next(&s), "scontrol release 7,8_1,11");
    ck_assert(take(&s, 1, "", "8_1: Invalid job id specified\nslurm_suspend error: No error\n"));
    ck_assert_str_eq(next(&s), "");
    ck_assert_str_eq(
        buf_text(&s.out),
        "3 done\n"
        "4 failed\tkind=gone\ttext=8_1: Invalid job id specified\n"
        "5 failed\tkind=refused\ttext=Invalid node name specified for job 9\n"
        "6 failed\tkind=gone\ttext=the number is not, or not any more, of a job of that user's\n"
        "7 done\n");
    close_scene(&s);
}

static const struct {
    const char *name, *first, *second;
    bool is_joined;
} neighbours[] = {
    { "two notes", "3 note\tid=7" NOTE, "4 note\tid=8" NOTE, true },
    { "a pin and a note", PIN, "4 note\tid=8" NOTE, false },
    { "a word that begins alike", PIN, "4 pinch\tid=8\tnodes=a", false },
    { "the same job", PIN, "4 pin\tid=7\tnodes=b", false },
    { "one that is wrong", PIN, "4 pin\tid=8", false },
    { "one that is no request", PIN, "4 pin\t%", false },
    { "a note with a quote", PIN, "4 pin\tid=8\tnodes=a\tadmin=gogh1 \"x", false },
    { "a note that is not GOGH's", PIN, "4 pin\tid=8\tnodes=a\tadmin=x y", false },
    { "one behind a note with a quote", "3 pin\tid=7\tnodes=a\tadmin=gogh1 'x",
      "4 pin\tid=8\tnodes=a", false },
    { "behind another request", "3 hold\tid=7", "4 hold\tid=8", false },
    { "behind a wrong one", "3 pin\tid=7", "4 pin\tid=8\tnodes=a", false },
};

EACH(what_goes_together, neighbours)
{
    struct scene s;

    open_scene(&s, neighbours[_i].first);
    ck_assert_msg(join(&s, neighbours[_i].second) == neighbours[_i].is_joined, "%s",
                  neighbours[_i].name);
    close_scene(&s);
}

static const struct {
    const char *name;
    struct call_result r;
    const char *first, *second;
    bool is_reached;
} losses[] = {
    { "late: all are in doubt",
      { .end = CALL_LATE, .errors = "", .took_s = 10 },
      "3 unknown\t",
      "4 unknown\t",
      false },
    { "not begun: none is",
      { .end = CALL_NOT_BEGUN, .errors = "no" },
      "3 failed\tkind=down\ttext=no\n",
      "4 failed\tkind=down\ttext=no\n",
      false },
    { "Slurm dies in between",
      { .end = CALL_EXITED, .status = 1, .errors = "Unexpected message received for job 8\n" },
      "3 failed\tkind=down\t",
      "4 unknown\ttext=Unexpected",
      false },
    { "nobody knows whose error it is",
      { .end = CALL_EXITED, .status = 1, .errors = "Out of luck\n" },
      "3 unknown\ttext=Out of luck\n",
      "4 unknown\ttext=Out of luck\n",
      true },
    { "an error without a word",
      { .end = CALL_EXITED, .status = 1, .errors = "" },
      "3 unknown\ttext=the command ended",
      "4 unknown\t",
      true },
};

EACH(what_goes_wrong_for_several, losses)
{
    struct call_result r = losses[_i].r;
    struct scene s;
    char *line;

    open_scene(&s, "3 pin\tid=7\tnodes=a");
    ck_assert(join(&s, "4 pin\tid=8\tnodes=a"));
    ck_assert_str_eq(next(&s), "scontrol");
    ck_assert_msg(task_take(&s.task, &r, &s.out) == losses[_i].is_reached, "%s", losses[_i].name);
    ck_assert_msg(!*next(&s), "%s: %s", losses[_i].name, s.call);
    line = strchr(buf_text(&s.out), '\n');
    ck_assert_msg(strncmp(buf_text(&s.out), losses[_i].first, strlen(losses[_i].first)) == 0 &&
                      line && strncmp(line + 1, losses[_i].second, strlen(losses[_i].second)) == 0,
                  "%s: %s", losses[_i].name, buf_text(&s.out));
    close_scene(&s);
}

TEST(those_that_are_not_tried_are_all_answered)
{
    struct scene s;

    open_scene(&s, PIN);
    ck_assert(join(&s, "4 pin\tid=8\tnodes=a"));
    task_give_up(&s.task, "x", &s.out);
    ck_assert_str_eq(buf_text(&s.out),
                     "3 failed\tkind=down\ttext=x\n4 failed\tkind=down\ttext=x\n");
    close_scene(&s);
}

TEST(a_listing_says_whose_jobs_are_which)
{
    struct scene s;

    open_scene(&s, "3 jobs\tpartition=gogh");
    ck_assert_str_eq(next(&s), SQUEUE);
    ck_assert(take(&s, 0, "", ""));
    ck_assert(owners_are_fresh(&s.owners, s.now_s));
    ck_assert_int_eq(s.owners.n, 0);
    close_scene(&s);
}

/* An empty listing is believed of a partition that there is. */
TEST(a_partition_that_is_not_there_is_refused)
{
    static const char *const lines[] = { "3 jobs\tpartition=gogh", "3 nodes\tpartition=gogh" };

    for (size_t i = 0; i < 2; i++)
        for (int is_there = 0; is_there < 2; is_there++) {
            struct scene s;

            open_scene(&s, lines[i]);
            (void)next(&s);
            ck_assert(take(&s, 0, "", ""));
            ck_assert_str_eq(next(&s), "scontrol --all show partition");
            ck_assert(take(&s, 0, is_there ? "PartitionName=gogh\n" : "PartitionName=x\n", ""));
            ck_assert_str_eq(next(&s), "");
            ck_assert_str_eq(buf_text(&s.out),
                             is_there ? "3 done\n"
                                      : "3 failed\tkind=refused\ttext=Slurm has no partition "
                                        "'gogh'\n");
            close_scene(&s);
        }
}

/* "1 VERB id=1 id=2 ..." */
static char *with_ids(const char *verb, int n)
{
    const size_t size = 40 + (size_t)n * 10;
    char *line = malloc(size);
    size_t at = (size_t)snprintf(line, size, "1 %s", verb);

    for (int i = 1; i <= n; i++)
        at += (size_t)snprintf(line + at, size - at, "\tid=%d", i);
    return line;
}

static int n_words(char *const *argv)
{
    int n = 0;

    while (argv[n])
        n++;
    return n;
}

TEST(many_jobs_are_asked_for_in_parts)
{
    char *line = with_ids("cancel", 1201);
    struct scene s;

    open_scene(&s, line);
    for (int i = 0; i < 3; i++) {
        (void)next(&s);
        ck_assert_int_eq(n_words(s.order.argv), i < 2 ? 501 : 202);
        ck_assert(take(&s, 0, "", ""));
    }
    ck_assert_str_eq(next(&s), "");
    ck_assert_str_eq(buf_text(&s.out), "1 done\n");
    close_scene(&s);
    free(line);
}

static int n_of(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

TEST(devices_are_asked_for_a_hundred_at_a_time)
{
    char *line = with_ids("devices", 250);
    struct scene s;

    open_scene(&s, line);
    for (int i = 0; i < 3; i++) {
        char first[40];

        ck_assert_str_eq(next(&s), "scontrol -d");
        ck_assert_int_eq(n_of(s.order.input, "show job"), i < 2 ? 100 : 50);
        snprintf(first, sizeof first, "show job %d\n", 100 * i + 1);
        ck_assert(strstr(s.order.input, first));
        ck_assert(take(&s, 0,
                       arena_printf(&s.task.arena,
                                    "m%sx0\nJobId=1\n   UserId=x\n   JOB_GRES=gpu\n     Nodes=a "
                                    "GRES=gpu:1(IDX:%d)\n   MinCPUsNode=1\nm%sx\n",
                                    s.task.mark, i, s.task.mark),
                       ""));
    }
    ck_assert_str_eq(next(&s), "");
    ck_assert_str_eq(buf_text(&s.out), "1 device\tid=1\tnode=a\tgres=gpu:1\tindex=0\n"
                                       "1 device\tid=101\tnode=a\tgres=gpu:1\tindex=1\n"
                                       "1 device\tid=201\tnode=a\tgres=gpu:1\tindex=2\n"
                                       "1 done\n");
    close_scene(&s);
    free(line);
}

#define SUBMIT "4 submit\ttoken=ab-1\tname=x\tscript=y\tpartition=p\tuid=5\tgid=6\tenv=A=b"

TEST(the_driver_itself_looks_nobody_up)
{
    struct scene s;

    open_scene(&s, SUBMIT);
    n_lookups = 0;
    ck_assert(strstr(next(&s), "sbatch --parsable --hold"));
    ck_assert_int_eq(n_lookups, 0);
    ck_assert(s.order.as_user && s.order.has_login && s.order.uid == 5 && s.order.gid == 6);
    ck_assert_str_eq(s.order.home_option, "--chdir=");
    ck_assert(s.order.extra_len == 4 && memcmp(s.order.extra, "A=b", 4) == 0);
    ck_assert(task_is_users(&s.task));
    close_scene(&s);
    open_scene(&s, SUBMIT "\tcwd=/x");
    ck_assert(strstr(next(&s), " --chdir=/x"));
    ck_assert_ptr_null(s.order.home_option);
    close_scene(&s);
}

static const struct {
    const char *name;
    struct call_result r;
    const char *want;
    bool is_reached;
} ends[] = {
    { "no room in Slurm",
      { .end = CALL_HOPELESS, .errors = "sbatch: error: Slurm is full\n" },
      "4 failed\tkind=refused\ttext=Slurm is full\n",
      true },
    { "who the user is cannot be told",
      { .end = CALL_NOT_BEGUN, .errors = "cannot become x" },
      "4 failed\tkind=refused\ttext=cannot become x\n",
      false },
    { "no end",
      { .end = CALL_LATE, .errors = "", .took_s = 10 },
      "4 unknown\ttext=no answer within 10 s\n",
      false },
};

EACH(a_submission_that_goes_wrong, ends)
{
    struct call_result r = ends[_i].r;
    struct scene s;

    open_scene(&s, SUBMIT);
    (void)next(&s);
    ck_assert_msg(task_take(&s.task, &r, &s.out) == ends[_i].is_reached, "%s", ends[_i].name);
    ck_assert_str_eq(buf_text(&s.out), ends[_i].want);
    close_scene(&s);
}

/* Slurm's accounting, well and badly formed. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "sim/history/sacct.h"
#include "unit/suite.h"
#include "unit/texts.h"

/* ---- small pieces ---- */

static const struct {
    const char *name, *given;
    double want;    // NaN: none; -1: refused
} times[] = {
    { "the beginning of time", "1970-01-01T00:00:00", 0 },
    { "a day of a leap year", "2024-02-29T12:00:01", 1709208001 },
    { "a blank for the T", "2026-03-02 08:00:05", 1772438405 },
    { "seconds since 1970", "1772438405", 1772438405 },
    { "not known", "Unknown", NAN },
    { "none", "None", NAN },
    { "empty", "", NAN },
    { "the 30th of February", "2026-02-30T00:00:00", -1 },
    { "the 13th month", "2026-13-01T00:00:00", -1 },
    { "the 25th hour", "2026-03-02T25:00:00", -1 },
    { "a sign for a digit", "2026-03-02T-8:00:00", -1 },
    { "another year than there are clocks for", "1969-12-31T23:59:59", -1 },
    { "a day alone", "2026-03-02", -1 },
    { "words", "yesterday", -1 },
};

EACH(reads_times, times)
{
    double v = 0;
    int rc = sacct_time(slice_of(times[_i].given), &v);

    if (isnan(times[_i].want))
        ck_assert_msg(rc == 0 && isnan(v), "%s: %d, %g", times[_i].name, rc, v);
    else if (times[_i].want < 0)
        ck_assert_msg(rc < 0, "%s: %g", times[_i].name, v);
    else
        ck_assert_msg(rc == 0 && v == times[_i].want, "%s: %d, %.0f", times[_i].name, rc, v);
}

static const struct {
    const char *name, *given;
    double want;    // -1: refused
} spans[] = {
    { "hours, minutes, seconds", "01:02:03", 3723 },
    { "days before them", "2-01:00:00", 176400 },
    { "minutes and seconds, as steps have them", "05:30.123", 330 },
    { "nothing", "00:00:00", 0 },
    { "more than a day of hours", "30:00:00", 108000 },
    { "no colon", "90", -1 },
    { "days without hours", "2-10:00", -1 },
    { "four parts", "1:2:3:4", -1 },
    { "empty", "", -1 },
    { "letters", "aa:bb", -1 },
};

EACH(reads_elapsed, spans)
{
    double v = 0;
    int rc = sacct_elapsed(slice_of(spans[_i].given), &v);

    if (spans[_i].want < 0)
        ck_assert_msg(rc < 0, "%s: %g", spans[_i].name, v);
    else
        ck_assert_msg(rc == 0 && v == spans[_i].want, "%s: %d, %g", spans[_i].name, rc, v);
}

static const struct {
    const char *name, *given, *want;    // want "!": refused
} lists[] = {
    { "one node", "gpu1", "gpu1 " },
    { "several", "gpu1,login", "gpu1 login " },
    { "ranges keep their width", "gpu[001-003,7],login1", "gpu001 gpu002 gpu003 gpu7 login1 " },
    { "a tail behind the brackets", "r[1-2]-ib", "r1-ib r2-ib " },
    { "two brackets", "r[1-2]n[08-09]", "r1n08 r1n09 r2n08 r2n09 " },
    { "widths that grow", "n[9-11]", "n9 n10 n11 " },
    { "an open bracket", "n[1-2", "!" },
    { "a closed bracket", "n1-2]", "!" },
    { "backwards", "n[3-1]", "!" },
    { "letters in brackets", "n[a-b]", "!" },
    { "three numbers in a range", "n[1-2-3]", "!" },
    { "empty brackets", "n[]", "!" },
    { "nothing", "", "!" },
    { "nothing after a comma", "n1,", "!" },
    { "more nodes than anybody has", "n[1-9999999]", "!" },
    { "more by brackets than anybody has", "n[1-999]x[1-999]", "!" },
};

EACH(reads_lists_of_nodes, lists)
{
    const char *const *names;
    struct arena a;
    struct buf b;
    int n;

    arena_init(&a);
    buf_init(&b, 65536);
    if (sacct_hosts(&a, slice_of(lists[_i].given), &names, &n) < 0)
        buf_puts(&b, "!");
    else
        for (int i = 0; i < n; i++)
            buf_printf(&b, "%s ", names[i]);
    ck_assert_msg(strcmp(buf_text(&b), lists[_i].want) == 0, "%s: %s", lists[_i].name,
                  buf_text(&b));
    buf_release(&b);
    arena_release(&a);
}

/* ---- files ---- */

#define T0 "2026-03-02T08:00:00"
#define T1 "2026-03-02T08:10:00"
#define T2 "2026-03-02T09:10:00"
#define HEAD "JobIDRaw|JobName|State|Submit|Start|ElapsedRaw|AllocTRES|NodeList\n"
#define RUN(id, name, tres) id "|" name "|COMPLETED|" T0 "|" T1 "|3600|" tres "|n1\n"

/* What was counted where it is not 0, then each job as
 * "id state +wait elapsed gpus[/shards] types @nodes workload*batch>=min:rate;", or the error.
 */
static void put_counts(struct buf *b, const struct sacct *s)
{
    const struct {
        const char *name;
        int n;
    } counts[] = { { "steps", s->n_steps },         { "elsewhere", s->n_elsewhere },
                   { "unstarted", s->n_unstarted }, { "cpu", s->n_cpu },
                   { "repeated", s->n_repeated },   { "requeued", s->n_requeued },
                   { "unclear", s->n_unclear } };

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n > 0)
            buf_printf(b, "%s=%d ", counts[i].name, counts[i].n);
    if (s->n_refused > 0)
        buf_printf(b, "refused=%d:%d %s ", s->n_refused, s->refused_line, s->refused_why);
}

static void put_job(struct buf *b, const struct sacct_job *j)
{
    buf_printf(b, "%s %s +%g %g %d", j->id, sacct_state_name(j->state), j->start_s - j->ready_s,
               j->elapsed_s, j->n_gpus);
    if (j->n_shards > 0)
        buf_printf(b, "/%d", j->n_shards);
    for (int i = 0; i < j->n_types; i++)
        buf_printf(b, " %s:%d", j->types[i].type, j->types[i].n);
    buf_puts(b, " @");
    for (int i = 0; i < j->n_nodes; i++)
        buf_printf(b, "%s%s", i > 0 ? "," : "", j->nodes[i]);
    if (j->workload != NULL)
        buf_printf(b, " %s", j->workload);
    if (!isnan(j->batch))
        buf_printf(b, "*%g", j->batch);
    if (j->min_throughput > 0)
        buf_printf(b, ">=%g", j->min_throughput);
    if (j->rate > 0)
        buf_printf(b, ":%g", j->rate);
    if (j->is_exclusive)
        buf_puts(b, " alone");
    buf_puts(b, ";");
}

static const char *digest(struct arena *a, const char *text, const char *partition)
{
    struct err e = { 0 };
    struct sacct s;
    struct buf b;

    buf_init(&b, 65536);
    if (sacct_parse(a, "f", text, strlen(text), partition, &s, &e) < 0) {
        buf_printf(&b, "! %.*s", (int)strcspn(e.text, "'"), e.text);
        buf_printf(&b, "%.*s", (int)strcspn(e.text + strcspn(e.text, "'") + 1, "'"),
                   e.text + strcspn(e.text, "'") + 1);
    } else {
        put_counts(&b, &s);
        for (int i = 0; i < s.n_jobs; i++)
            put_job(&b, &s.jobs[i]);
    }
    return text_taken(a, &b);
}

static const struct {
    const char *name, *given, *want;
    const char *partition;
} files[] = {
    { "a run on two GPUs", HEAD RUN("812", "a", "cpu=8,gres/gpu=2,mem=64G,node=1"),
      "812 completed +600 3600 2 @n1;", NULL },
    { "types beside the sum count once", HEAD RUN("1", "a", "gres/gpu:v100=2,gres/gpu=2"),
      "1 completed +600 3600 2 v100:2 @n1;", NULL },
    { "types alone are the sum", HEAD RUN("1", "a", "gres/gpu:v100=1,gres/gpu:a100=2"),
      "1 completed +600 3600 3 v100:1 a100:2 @n1;", NULL },
    { "what is called like a GPU is none", HEAD RUN("1", "a", "gres/gpumem=9G,gres/gpuutil=3"),
      "cpu=1 ", NULL },
    { "shards", HEAD RUN("1", "a", "cpu=1,gres/shard=1"), "1 completed +600 3600 0/1 @n1;", NULL },
    { "who has a GPU needs no shard", HEAD RUN("1", "a", "gres/gpu=1,gres/shard=1"),
      "1 completed +600 3600 1 @n1;", NULL },
    { "steps are no jobs",
      HEAD RUN("1.batch", "batch", "gres/gpu=2") RUN("1.extern", "extern", "gres/gpu=2")
          RUN("1.0", "python", "gres/gpu=2"),
      "steps=3 ", NULL },
    { "who has no GPU is left out", HEAD RUN("1", "a", "cpu=8"), "cpu=1 ", NULL },
    { "who never ran is left out",
      HEAD "1|a|PENDING|" T0 "|Unknown|0||\n"
           "2|a|CANCELLED by 1000|" T0 "|None|0|gres/gpu=1|None assigned\n"
           "3|a|FAILED|" T0 "|" T1 "|0|gres/gpu=1|n1\n",
      "unstarted=3 ", NULL },
    { "how it ended",
      HEAD "1|a|CANCELLED by 1000|" T0 "|" T1 "|9|gres/gpu=1|n1\n2|a|NODE_FAIL|" T0 "|" T1
           "|9|gres/gpu=1|n1\n3|a|TIMEOUT|" T0 "|" T1 "|9|gres/gpu=1|n1\n4|a|SUSPENDED|" T0 "|" T1
           "|9|gres/gpu=1|n1\n5|a|PREEMPTED|" T0 "|" T1 "|9|gres/gpu=1|n1\n",
      "1 cancelled +600 9 1 @n1;2 node_fail +600 9 1 @n1;3 timeout +600 9 1 @n1;"
      "4 other +600 9 1 @n1;5 preempted +600 9 1 @n1;",
      NULL },
    { "who runs still, ran so far",
      "JobID|State|Submit|Start|End|Elapsed|AllocTRES|NodeList\n"
      "7|RUNNING|" T0 "|" T1 "|Unknown|1-00:00:10|gres/gpu=1|n1\n",
      "7 running +600 86410 1 @n1;", NULL },
    { "an end will do for an elapsed time",
      "JobID|Submit|Start|End|AllocTRES|NodeList\n7|" T0 "|" T1 "|" T2 "|gres/gpu=1|n1\n"
      "8|" T0 "|" T1 "|Unknown|gres/gpu=1|n1\n9|" T0 "|" T1 "|" T0 "|gres/gpu=1|n1\n",
      "refused=2:3 neither an elapsed time nor an end 7 other +600 3600 1 @n1;", NULL },
    { "arrays and columns in any order, also strange ones",
      "NodeList|Start|Foo|ElapsedRaw|alloctres|JobID|Submit\n"
      "n[1-2]|" T1 "|x|60|gres/gpu=2|12_3|" T0 "\n",
      "12_3 other +600 60 2 @n1,n2;", NULL },
    { "a separator at the end of every line",
      "JobIDRaw|Submit|Start|ElapsedRaw|AllocTRES|NodeList|\r\n"
      "1|" T0 "|" T1 "|60|gres/gpu=1|n1|\r\n",
      "1 other +600 60 1 @n1;", NULL },
    { "the wait is from eligible on",
      "JobIDRaw|Submit|Eligible|Start|ElapsedRaw|AllocTRES|NodeList\n"
      "1|" T0 "|2026-03-02T08:09:00|" T1 "|60|gres/gpu=1|n1\n"
      "2|" T0 "|Unknown|" T1 "|60|gres/gpu=1|n1\n",
      "1 other +60 60 1 @n1;2 other +600 60 1 @n1;", NULL },
    { "requeued jobs ran several times, and a line told twice is one",
      HEAD "1|a|PREEMPTED|" T0 "|" T1 "|60|gres/gpu=1|n1\n1|a|COMPLETED|" T0 "|" T2
           "|60|gres/gpu=1|n2\n1|a|COMPLETED|" T0 "|" T2 "|60|gres/gpu=1|n2\n",
      "repeated=1 requeued=1 1 preempted +600 60 1 @n1;1 completed +4200 60 1 @n2;", NULL },
    { "other partitions are left out",
      "JobID|Partition|Submit|Start|ElapsedRaw|AllocTRES|NodeList\n"
      "1|gpu|" T0 "|" T1 "|60|gres/gpu=1|n1\n2|long|" T0 "|" T1 "|60|gres/gpu=1|n1\n",
      "elsewhere=1 1 other +600 60 1 @n1;", "gpu" },
    { "promises of a comment, and of the administrators' where that says nothing",
      "JobID|Submit|Start|ElapsedRaw|AllocTRES|NodeList|Comment|AdminComment\n"
      "1|" T0 "|" T1 "|60|gres/gpu=1|n1|gogh: min-throughput=40 workload=resnet50 batch=64|\n"
      "2|" T0 "|" T1 "|60|gres/gpu=1|n1|my own|gogh: workload=llama-7b rate=3 token=ab\n"
      "3|" T0 "|" T1
      "|60|gres/gpu=1|n1|note;GOGH: exclusive=yes workload=\"ResNet-18 (batch size 16)\"|x\n"
      "4|" T0 "|" T1 "|60|gres/gpu=1|n1|gogh: min-throughput=fast|\n"
      "5|" T0 "|" T1 "|60|gres/gpu=1|n1|vangogh: rate=2|\n",
      "unclear=1 1 other +600 60 1 @n1 resnet50*64>=40;2 other +600 60 1 @n1 llama-7b:3;"
      "3 other +600 60 1 @n1 ResNet-18 (batch size 16) alone;4 other +600 60 1 @n1;"
      "5 other +600 60 1 @n1;",
      NULL },
    { "a name with a separator in it is refused, the next line is not",
      HEAD RUN("1", "a|b", "gres/gpu=1") RUN("2", "a", "gres/gpu=1"),
      "refused=1:2 more fields than the header has: a '|' in a name? "
      "2 completed +600 3600 1 @n1;",
      NULL },
    { "so is one whose last field is empty",
      "JobID|Submit|Start|ElapsedRaw|AllocTRES|NodeList|JobName|Comment\n"
      "1|" T0 "|" T1 "|60|gres/gpu=1|n1|a|b|\n",
      "refused=1:2 more fields than the header has: a '|' in a name? ", NULL },
    { "a name with a line break in it is refused", HEAD RUN("1", "a\nb", "gres/gpu=1"),
      "refused=2:2 fewer fields than the header has: a line break in a name? ", NULL },
    { "bytes that are no text are refused", HEAD RUN("1", "\xff", "gres/gpu=1"),
      "refused=1:2 bytes that are no text ", NULL },
    { "control characters are refused", HEAD RUN("1", "a\x1b[1m", "gres/gpu=1"),
      "refused=1:2 control characters in it ", NULL },
    { "other letters are welcome", HEAD RUN("1", "übung", "gres/gpu=1"),
      "1 completed +600 3600 1 @n1;", NULL },
    { "a job without an id is refused", HEAD RUN("x", "a", "gres/gpu=1"), "refused=1:2 no job id ",
      NULL },
    { "a number of GPUs that is none is refused", HEAD RUN("1", "a", "gres/gpu=two"),
      "refused=1:2 AllocTRES is no list of resources ", NULL },
    { "nodes that are none are refused", HEAD "1|a|COMPLETED|" T0 "|" T1 "|60|gres/gpu=1|n[1-\n",
      "refused=1:2 NodeList is no list of nodes ", NULL },
    { "a time that is none is refused", HEAD "1|a|COMPLETED|today|" T1 "|60|gres/gpu=1|n1\n",
      "refused=1:2 a time that is none ", NULL },
    { "a missing column is named", "JobIDRaw|Submit|Start|ElapsedRaw|NodeList\n",
      "! f:1: no column AllocTRES", NULL },
    { "one of three columns tells the time", "JobIDRaw|Submit|Start|AllocTRES|NodeList\n",
      "! f:1: no column ElapsedRaw", NULL },
    { "without a header nothing is known", RUN("1", "a", "gres/gpu=1"), "! f:1: no column JobIDRaw",
      NULL },
    { "an empty file has no header", "", "! f:1: no column JobIDRaw", NULL },
    { "a partition needs its column", HEAD, "! f:1: no column Partition", "gpu" },
    { "a header alone is a quiet month", HEAD, "", NULL },
};

EACH(reads_files, files)
{
    struct arena a;

    arena_init(&a);
    const char *got = digest(&a, files[_i].given, files[_i].partition);
    ck_assert_msg(strcmp(got, files[_i].want) == 0, "%s: '%s', want '%s'", files[_i].name, got,
                  files[_i].want);
    arena_release(&a);
}

TEST(a_missing_column_comes_with_the_command)
{
    struct err e = { 0 };
    struct sacct s;
    struct arena a;

    arena_init(&a);
    ck_assert_int_lt(sacct_parse(&a, "f", "JobID|Start\n", 12, NULL, &s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "sacct --allusers --parsable2 --starttime"));
    ck_assert_ptr_nonnull(strstr(e.text, "AdminComment'"));
    arena_release(&a);
}

/* What Slurm's commands print, as recorded (tests/data/slurm), and as nobody should. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/hosts.h"
#include "act/driver/output.h"
#include "act/driver/owners.h"
#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "unit/suite.h"

#define MARK "0123456789abcdef"

/* A file of tests/data/slurm, in 'a', and its length. */
static char *load(struct arena *a, const char *name, size_t *len)
{
    const char *src = getenv("SRC");
    char *text = arena_alloc(a, 1 << 20);
    FILE *f = fopen(arena_printf(a, "%s/tests/data/slurm/%s", src ? src : ".", name), "re");

    ck_assert_msg(f != NULL, "%s: %s", name, strerror(errno));
    *len = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

static struct wire_message request(struct arena *a, const char *line)
{
    struct wire_message m;
    struct err e = { 0 };
    char *copy = arena_strdup(a, line);

    ck_assert_msg(wire_read(a, copy, strlen(copy), &m, &e) == 0, "%s", e.text);
    return m;
}

static struct arena a;
static struct buf out;

static void set_up(void)
{
    arena_init(&a);
    buf_init(&out, 1 << 20);
}

static void tear_down(void)
{
    buf_release(&out);
    arena_release(&a);
}

FIXTURE(set_up, tear_down)

/* ---- listings ---- */

static const struct {
    const char *name, *file, *want;    // the line begins and goes on so; "-..." there is none such
} listed[] = {
    { "a job that runs where it was told", "22.05/squeue.txt",
      "7 job\tid=1\tuid=65534\tpartition=gogh\tstate=RUNNING\treason=None\theld=no\tnodes=v100-0\t"
      "pin=v100-0\tgres=shard:1\tn_nodes=1\trun=0\tsubmit_s=1" },
    { "with its token and place", "22.05/squeue.txt",
      "\tcomment=gogh: token=0123456789abcdef-1\tadmin=gogh1 token=0123456789abcdef-1 at=v100-0/0 "
      "limit=0\tcwd=/home/ann\tout=/dev/null\tcpus=1\n" },
    { "held by its user", "22.05/squeue.txt",
      "7 job\tid=2\tuid=65534\tpartition=gogh\tstate=PENDING"
      "\treason=JobHeldUser\theld=user\tn_nodes=1" },
    { "held by an operator", "22.05/squeue.txt",
      "\treason=JobHeldAdmin\theld=admin\tn_nodes=2\trun=0" },
    { "requeued and held, once, with no start", "22.05/squeue.txt",
      "\treason=job requeued in held state\theld=admin\tgres=shard:1\tn_nodes=1\trun=1\tsubmit_s="
      "1794830169\tname=moved\t" },
    { "an end with its exit status", "22.05/squeue.txt", "\texit=3\tsignal=0\tname=ends\t" },
    { "an end by a signal", "22.05/squeue.txt", "\texit=0\tsignal=9\tname=killed\t" },
    { "a task without a number of its own", "22.05/squeue.txt",
      "7 job\tid=6_3\tarray=6\ttask=3\tuid" },
    { "a task with one", "22.05/squeue.txt", "7 job\tid=7\tarray=6\ttask=2\tuid" },
    { "a name with anything in it", "22.05/squeue.txt",
      "\tname=forged%1Fname%0A1%1F0123456789abcdee{2\tcomment=percent %25 tab%09\tcwd" },
    { "several nodes are spelled out", "22.05/squeue.txt",
      "\tnodes=k80-0,v100-1\tpin=k80-0,v100-1" },
    { "a stranger who holds a GPU", "22.05/squeue.txt",
      "7 other\tid=9\tnodes=k80-1\tgres=gpu:1\tcpus=1\n" },
    { "but not one who holds none", "22.05/squeue.txt", "-\tid=10\t" },
    { "24.11: typed shards on two nodes", "24.11/squeue.txt",
      "7 job\tid=101\tuid=1001\tpartition=gogh\tstate=RUNNING\treason=None\theld=no\tnodes=gpu01,"
      "gpu02\tpin=gpu01,gpu02\tgres=shard:a100_0:1\tn_nodes=2\t" },
    { "24.11: one of several partitions is ours", "24.11/squeue.txt", "7 job\tid=103\t" },
    { "24.11: requeued, in other words", "24.11/squeue.txt",
      "\treason=job_requeued_in_held_state\theld=admin\tpin=gpu03\tgres=shard:1\t" },
    { "24.11: out of memory", "24.11/squeue.txt",
      "\tstart_s=1731752100\tend_s=1731752200\texit=0\t"
      "signal=125\t" },
    { "24.11: a task that has the array's number", "24.11/squeue.txt",
      "7 job\tid=107_5\tarray=107" },
    { "24.11: a stranger's GPUs for a whole job", "24.11/squeue.txt",
      "7 other\tid=109\tnodes=gpu05,gpu06\tgres=gpu:4\tcpus=1\n" },
    { "24.11: GPUs for a whole job are parted among its nodes", "24.11/squeue.txt",
      "7 job\tid=120\tuid=1001\tpartition=gogh\tstate=PENDING\treason=JobHeldUser\theld=user"
      "\tgres=gpu:a100:2\tn_nodes=2\t" },
    { "24.11: GPUs of a task", "24.11/squeue.txt",
      "7 job\tid=121\tuid=1001\tpartition=gogh\tstate=PENDING\treason=JobHeldUser\theld=user"
      "\tgres=gpu:1\tn_nodes=1\t" },
    { "24.11: GPUs of a socket", "24.11/squeue.txt",
      "7 job\tid=122\tuid=1001\tpartition=gogh\tstate=PENDING\treason=JobHeldUser\theld=user"
      "\tgres=gpu:2\tn_nodes=1\t" },
    { "24.11: those that cannot be parted are rather too many", "24.11/squeue.txt",
      "7 job\tid=123\tuid=1001\tpartition=gogh\tstate=PENDING\treason=JobHeldUser\theld=user"
      "\tgres=gpu:2\tn_nodes=2\t" },
    { "24.11: a file system is not a GPU", "24.11/squeue.txt", "-id=110" },
    { "24.11: a stranger who waits holds nothing", "24.11/squeue.txt", "-id=111" },
    { "24.11: its node wakes", "24.11/squeue.txt",
      "7 job\tid=112\tuid=1001\tpartition=gogh\tstate="
      "CONFIGURING\t" },
    { "a node in use", "22.05/sinfo-busy.txt",
      "7 node\tname=k80-1\tstate=mixed\tgres=gpu:k80:1,shard:k80:2\tcpus=4\tmem_mib=1000\t"
      "address=127.0.0.1\n" },
    { "a drained one, for a reason of two lines", "22.05/sinfo-drain.txt",
      "7 node\tname=k80-0\tstate=idle,drain\tgres=gpu:k80:1,shard:k80:2\treason=fan of psu 2%0Ais "
      "loud\tcpus=4\tmem_mib=1000\taddress=127.0.0.1\n" },
    { "one that is down", "22.05/sinfo-drain.txt", "7 node\tname=v100-1\tstate=down\tgres=" },
    { "one that goes to sleep", "22.05/sinfo-typed.txt",
      "7 node\tname=v100-0\tstate=idle,powering_down\tgres=gpu:v100_0:1,gpu:v100_1:1," },
    { "24.11: drained and asleep, without sockets", "24.11/sinfo.txt",
      "7 node\tname=gpu04\tstate=idle,drain,powered_down\tgres=gpu:a100:4,shard:a100:8\t" },
    { "24.11: an address of its own", "24.11/sinfo.txt",
      "=gpu04\tstate=idle,drain,powered_down\tgres=gpu:a100:4,shard:a100:8\treason=replaced next "
      "week\tcpus=4\tmem_mib=1000\taddress=10.0.0.4\n" },
    { "24.11: one that is reached by its name", "24.11/sinfo.txt",
      "=gpu05\tstate=idle,powered_down\tgres=gpu:a100:4,shard:a100:8\tcpus=4\tmem_mib=1000\n" },
    { "24.11: clouds do not matter", "24.11/sinfo.txt", "=gpu05\tstate=idle,powered_down\t" },
    { "24.11: lost", "24.11/sinfo.txt", "=gpu06\tstate=down,not_responding\t" },
    { "24.11: waking", "24.11/sinfo.txt", "=gpu07\tstate=mixed,not_responding,powering_up\t" },
    { "24.11: planned for a job is idle", "24.11/sinfo.txt", "=gpu08\tstate=idle\t" },
    { "24.11: maintained", "24.11/sinfo.txt", "=gpu09\tstate=idle,maint,reserved\t" },
    { "24.11: misconfigured", "24.11/sinfo.txt", "=gpu13\tstate=down,invalid\t" },
    { "24.11: without GPUs", "24.11/sinfo.txt", "7 node\tname=cpu1\tstate=idle\tcpus=4\t" },
};

EACH(a_listing_becomes_lines, listed)
{
    const char *want = listed[_i].want;
    struct output_bad bad;
    struct wire_message m;
    size_t len;
    char *text;

    m = request(&a, "7 x\tpartition=gogh");
    text = load(&a, listed[_i].file, &len);
    if (strstr(listed[_i].file, "squeue"))
        bad = output_jobs(&a, text, len, MARK, &m, NULL, &out);
    else
        bad = output_nodes(&a, text, len, MARK, &m, &out);
    ck_assert_msg(bad.n == 0, "%s: %s", listed[_i].name, bad.why);
    if (*want == '-')
        ck_assert_msg(!strstr(buf_text(&out), want + 1), "%s:\n%s", listed[_i].name,
                      buf_text(&out));
    else
        ck_assert_msg(strstr(buf_text(&out), want), "%s:\n%s", listed[_i].name, buf_text(&out));
}

static int n_lines(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST(each_node_is_listed_once)
{
    struct wire_message m;
    size_t len;
    char *text;

    m = request(&a, "7 nodes");
    text = load(&a, "22.05/sinfo-busy.txt", &len);
    (void)output_nodes(&a, text, len, MARK, &m, &out);
    ck_assert_int_eq(n_lines(buf_text(&out)), 4);
}

/* Whatever is cut off the end or the beginning: what is left whole is read, the rest is counted. */
TEST(a_listing_that_is_cut_loses_the_cut_line_only)
{
    struct wire_message m;
    size_t len;

    m = request(&a, "7 x\tpartition=gogh");
    (void)load(&a, "24.11/squeue.txt", &len);
    for (size_t n = 0; n < len; n += 7) {
        struct output_bad bad;
        char *text = load(&a, "24.11/squeue.txt", &len);
        char *copy = arena_alloc(&a, n + 1);
        int whole = 0;

        memcpy(copy, text, n);
        for (size_t i = 0; i < n; i++)
            whole += copy[i] == '}';
        buf_clear(&out);
        bad = output_jobs(&a, copy, n, MARK, &m, NULL, &out);
        ck_assert_int_le(bad.n, 1);
        ck_assert_int_le(n_lines(buf_text(&out)), whole);
        ck_assert_int_ge(n_lines(buf_text(&out)), whole - 2);    // two are neither job nor other

        buf_clear(&out);
        text = load(&a, "24.11/squeue.txt", &len);
        bad = output_jobs(&a, text + n, len - n, MARK, &m, NULL, &out);
        ck_assert_int_le(bad.n, 1);
        arena_reset(&a);
        m = request(&a, "7 x\tpartition=gogh");
    }
}

#define FIELD(text) text "\x1f" MARK

/* A record that breaks off, and whose successor begins in the midst of it. */
TEST(a_line_that_breaks_off_does_not_take_the_next_with_it)
{
    char text[] =
        FIELD("a") "{" FIELD("idle") ";" FIELD("gp") "\n" FIELD("b") "{" FIELD("idle+powered_down+down") ";" FIELD("(null)") ";" FIELD(
            "0") ";" FIELD("0") ";" FIELD("(null)") ";" FIELD("infinite") ";" FIELD("b") ";" FIELD("none") "}\n" FIELD("c") "{";
    struct output_bad bad;
    struct wire_message m;

    m = request(&a, "7 nodes");
    text[strlen(FIELD("a") "{" FIELD("idle") ";"
                                             "gp")] = 'u';    // the field's end is lost
    bad = output_nodes(&a, text, sizeof text - 1, MARK, &m, &out);
    ck_assert_int_eq(bad.n, 2);
    ck_assert_str_eq(buf_text(&out), "7 node\tname=b\tstate=idle,powered_down,down\n");
}

/* Separators that a user wrote are not the listing's: its mark is another each time. */
TEST(a_listing_with_another_mark_has_nothing_in_it)
{
    struct output_bad bad;
    struct wire_message m;
    size_t len;
    char *text;

    m = request(&a, "7 x\tpartition=gogh");
    text = load(&a, "22.05/squeue.txt", &len);
    bad = output_jobs(&a, text, len, "fedcba9876543210", &m, NULL, &out);
    ck_assert_int_eq(bad.n, 1);
    ck_assert_int_eq((int)out.len, 0);
}

/* ---- single jobs and nodes, made up ---- */

#define END "\x1f" MARK
#define NEXT END ";"

/* A record of squeue's: what matters here, and "(null)" for the rest. */
#define JOB(id, array, task, uid, partition, state, reason, nodes, comment, admin)           \
    id END "{" array NEXT task NEXT uid NEXT partition NEXT state NEXT reason NEXT           \
           "0" NEXT nodes NEXT "(null)" NEXT "gres:gpu:1" NEXT "(null)" NEXT "(null)" NEXT   \
           "(null)" NEXT "1" NEXT "0" NEXT "5" NEXT "6" NEXT "7" NEXT "0" NEXT "4" NEXT      \
           "1.5G" NEXT "big&fast" NEXT "1-02:00:00" NEXT "name" NEXT comment NEXT admin NEXT \
           "/bin/x" NEXT "/" NEXT "/dev/null" END "}\n"
#define TOKEN "0123456789abcdef-17"

static const struct {
    const char *name, *text, *want;    // lines: how they begin
    int n_bad;
    const char *bad;    // the id that is told; NULL: none
} made_up[] = {
    { "a user's hold on a job that runs is told",
      JOB("1", "1", "N/A", "5", "gogh", "RUNNING", "JobHeldUser", "a", "", ""),
      "7 job\tid=1\tuid=5\tpartition=gogh\tstate=RUNNING\treason=JobHeldUser\theld=user\tnodes=a",
      0, NULL },
    { "and on one that is being taken down",
      JOB("1", "1", "N/A", "5", "gogh", "COMPLETING", "JobHeldUser", "a", "", ""),
      "7 job\tid=1\tuid=5\tpartition=gogh\tstate=COMPLETING\treason=JobHeldUser\theld=user", 0,
      NULL },
    { "one that has ended is held by nobody",
      JOB("1", "1", "N/A", "5", "gogh", "COMPLETED", "JobHeldUser", "a", "", ""),
      "7 job\tid=1\tuid=5\tpartition=gogh\tstate=COMPLETED\treason=JobHeldUser\theld=no", 0, NULL },
    { "a job of ours in another partition is a job, and holds what it holds",
      JOB("1", "1", "N/A", "5", "debug", "RUNNING", "None", "a", "gogh: token=" TOKEN, ""),
      "7 job\tid=1\tuid=5\tpartition=debug\t*\n7 other\tid=1\tnodes=a\tgres=gpu:1\tcpus=4\tmem_mib="
      "1536\n",
      0, NULL },
    { "so is one that waits, by its admin comment",
      JOB("1", "1", "N/A", "5", "debug", "PENDING", "None", "", "x",
          "gogh1 token=" TOKEN " at=a/0"),
      "7 job\tid=1\tuid=5\tpartition=debug\t", 0, NULL },
    { "quotes that a note came in are taken off",
      JOB("1", "1", "N/A", "5", "debug", "PENDING", "None", "", "",
          "\"gogh1 token=" TOKEN " at=\""),
      "7 job\tid=1\tuid=5\tpartition=debug\t", 0, NULL },
    { "a token that no store could have made is none",
      JOB("1", "1", "N/A", "5", "debug", "PENDING", "None", "", "gogh: token=zzzzzzzzzzzzzzzz-1",
          ""),
      "", 0, NULL },
    { "what only looks like a token is none",
      JOB("1", "1", "N/A", "5", "debug", "PENDING", "None", "", "gogh: token=x", "gogh1 new"), "",
      0, NULL },
    { "what cannot be read of another partition is nobody's trouble",
      JOB("1", "1", "N/A", "5", "debug", "RUNNING", "None", "a[", "", ""), "", 0, NULL },
    { "of ours it is, by its number",
      JOB("1", "1", "N/A", "5", "gogh", "RUNNING", "None", "a[", "", "")
          JOB("2", "2", "N/A", "5", "gogh", "PENDING", "None", "", "", ""),
      "7 job\tid=2\t", 1, "1" },
    { "or its task's", JOB("1", "1", "3", "5", "gogh,debug", "odd state", "None", "", "", ""), "",
      1, "1_3" },
    { "or its token",
      JOB("1", "1", "N/A", "5", "debug", "odd state", "None", "", "gogh: token=" TOKEN, ""), "", 1,
      "1" },
    { "without a number nobody is named",
      JOB("x", "1", "N/A", "5", "gogh", "RUNNING", "None", "", "", ""), "", 1, NULL },
};

/* What squeue calls its memory and its time. */
static const struct {
    const char *cpus, *memory, *limit, *want;
} needs[] = {
    { "4", "0", "UNLIMITED", "cpus=4" },
    { "4", "100M", "30:00", "cpus=4\tmem_mib=100\tlimit_s=1800" },
    { "4", "50Mc", "1:00:30", "cpus=4\tmem_mib=200\tlimit_s=3630" },
    { "4", "2G", "2-00:00:00", "cpus=4\tmem_mib=2048\tlimit_s=172800" },
    { "4", "512K", "Partition_Limit", "cpus=4\tmem_mib=1" },
    { "N/A", "much", "2-", "" },
};

EACH(what_a_job_takes_of_nodes_is_told, needs)
{
    struct output_bad bad;
    struct wire_message m;
    char *text;

    m = request(&a, "7 jobs\tpartition=gogh");
    text = arena_printf(&a,
                        "1" END "{1" NEXT "N/A" NEXT "5" NEXT "gogh" NEXT "PENDING" NEXT "None" NEXT
                        "0" NEXT NEXT NEXT NEXT NEXT NEXT NEXT "1" NEXT "0" NEXT "5" NEXT "6" NEXT
                        "7" NEXT "0" NEXT "%s" NEXT "%s" NEXT NEXT "%s" NEXT
                        "n" NEXT NEXT NEXT NEXT NEXT "/o" END "}\n",
                        needs[_i].cpus, needs[_i].memory, needs[_i].limit);
    bad = output_jobs(&a, text, strlen(text), MARK, &m, NULL, &out);
    ck_assert_int_eq(bad.n, 0);
    ck_assert_str_eq(strstr(buf_text(&out), "\tout=/o") + strlen("\tout=/o"),
                     arena_printf(&a, "%s%s\n", *needs[_i].want ? "\t" : "", needs[_i].want));
}

/* 'want' at the beginning of 'text'; a '*' is the rest of a line. */
static bool begins(const char *text, const char *want)
{
    for (; *want; want++, text++) {
        if (*want == '*')
            text += strcspn(text, "\n") - 1;
        else if (*text != *want)
            return false;
    }
    return true;
}

EACH(a_job_is_told_of_as_it_is, made_up)
{
    struct owners owners;
    struct output_bad bad;
    struct wire_message m;
    char *text;

    owners = (struct owners){ 0 };
    m = request(&a, "7 jobs\tpartition=gogh");
    text = arena_strdup(&a, made_up[_i].text);
    bad = output_jobs(&a, text, strlen(made_up[_i].text), MARK, &m, &owners, &out);
    ck_assert_msg(begins(buf_text(&out), made_up[_i].want) && (*made_up[_i].want || out.len == 0),
                  "%s:\n%s", made_up[_i].name, buf_text(&out));
    ck_assert_msg(bad.n == made_up[_i].n_bad, "%s: %d %s", made_up[_i].name, bad.n, bad.why);
    ck_assert_int_eq(bad.n_names, made_up[_i].bad ? 1 : 0);
    if (made_up[_i].bad)
        ck_assert_str_eq(bad.names[0], made_up[_i].bad);
    ck_assert(owners.n >= 1 && owners.list[0].uid == 5);
    owners_release(&owners);
}

#define WHAT_IT_HAS "8" NEXT "2000" NEXT "big,new" NEXT "2:00:00" NEXT "head"
#define HAS "\tcpus=8\tmem_mib=2000\tfeatures=big,new\tlimit_s=7200\taddress=head\n"

TEST(a_node_that_is_not_understood_is_left_alone_and_not_left_out)
{
    char text[] = "a" END "{"
                  "future" NEXT "(null)" NEXT WHAT_IT_HAS NEXT "none" END "}\n"
                  "b" END "{"
                  "blocked" NEXT "gpu:1" NEXT WHAT_IT_HAS NEXT "none" END "}\n"
                  "c d" END "{"
                  "idle" NEXT "gpu:1" NEXT WHAT_IT_HAS NEXT "none" END "}\n";
    struct output_bad bad;
    struct wire_message m;

    m = request(&a, "7 nodes");
    bad = output_nodes(&a, text, sizeof text - 1, MARK, &m, &out);
    ck_assert_str_eq(buf_text(&out),
                     "7 node\tname=a\tstate=down" HAS "7 node\tname=b\tstate=drain\tgres=gpu:1\t"
                     "reason=its state 'blocked' is not known" HAS);
    ck_assert(bad.n == 1 && bad.n_names == 1 && strcmp(bad.names[0], "c d") == 0);
}

TEST(owners_are_listed_alone_too)
{
    char text[] = "12" END "{12" NEXT "N/A" NEXT "5" END "}\n"
                  "13" END "{13" NEXT "3" NEXT "6" END "}\n"
                  "15" END "{13" NEXT "4" NEXT "7" END "}\n";
    struct owners o;

    ck_assert(strstr(output_owners_format(&a, MARK), "UserID:0" END "}"));
    o = (struct owners){ 0 };
    ck_assert(!owners_are_fresh(&o, 100));
    owners_begin(&o, 100);
    output_owners(text, sizeof text - 1, MARK, &o);
    ck_assert(owners_agree(&o, "12", 5) && !owners_agree(&o, "12", 6));
    ck_assert(owners_agree(&o, "13_3", 6) && owners_agree(&o, "13", 6));
    ck_assert(owners_agree(&o, "13_4", 7) && owners_agree(&o, "15", 7));
    ck_assert(!owners_agree(&o, "13_4", 6) && !owners_agree(&o, "13_5", 6));
    ck_assert(!owners_agree(&o, "1", 5) && !owners_agree(&o, "12_", 5));
    ck_assert(owners_are_fresh(&o, 100 + OWNERS_AGE_S));
    ck_assert(!owners_are_fresh(&o, 100.1 + OWNERS_AGE_S));
    o.is_known = false;
    ck_assert(!owners_are_fresh(&o, 100));
    owners_release(&o);
}

/* ---- devices, config, numbers ---- */

static const struct {
    const char *name, *file, *want;
    int n_bad;
} devices[] = {
    { "22.05: untyped shards", "22.05/devices.txt",
      "7 device\tid=1\tnode=v100-0\tgres=shard:1\tindex=0\n"
      "7 device\tid=11\tnode=k80-0\tgres=shard:1\tindex=0\n"
      "7 device\tid=11\tnode=v100-1\tgres=shard:1\tindex=0\n",
      0 },
    { "22.05: a type for each", "22.05/devices-typed.txt",
      "7 device\tid=1\tnode=v100-0\tgres=shard:v100_2:1\tindex=2\n"
      "7 device\tid=2\tnode=v100-0\tgres=gpu:v100_0:1\tindex=0\n"
      "7 device\tid=2\tnode=v100-0\tgres=gpu:v100_1:1\tindex=1\n",
      0 },
    { "24.11: shares of each device; a forged one is not believed", "24.11/devices.txt",
      "7 device\tid=101\tnode=gpu01\tgres=shard:a100:1\tindex=1\n"
      "7 device\tid=101\tnode=gpu02\tgres=shard:a100:1\tindex=1\n"
      "7 device\tid=108\tnode=gpu01\tgres=gpu:a100:3\tindex=0,1,3\n",
      1 },
};

EACH(devices_are_read, devices)
{
    static const char *const ids[][4] = { { "1", "99999", "11", "8" },
                                          { "1", "2", "-", "-" },
                                          { "101", "108", "99999", "109" } };
    struct output_bad bad;
    size_t len;
    char *text;

    text = load(&a, devices[_i].file, &len);
    bad = output_devices(&a, text, MARK, ids[_i], 4, 7, &out);
    ck_assert_msg(strcmp(buf_text(&out), devices[_i].want) == 0, "%s:\n%s", devices[_i].name,
                  buf_text(&out));
    ck_assert_int_eq(bad.n, devices[_i].n_bad);
}

#define FORGED_GRES "\n   JOB_GRES=gpu:1\n     Nodes=a CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:3)"
#define REAL_USER "\n   UserId=ann(1001) GroupId=ann(1001) MCS_label=N/A"
#define REAL_END "\n   MinCPUsNode=1 MinMemoryNode=0\n   Command="

/* A job without gres has no JOB_GRES of its own that could make a second one of its owner's. */
static const struct {
    const char *name, *job;
    int n_lines, n_bad;
} forgeries[] = {
    { "an honest one", "x" REAL_USER FORGED_GRES REAL_END "y", 1, 0 },
    { "one without gres", "x" REAL_USER REAL_END "y", 0, 0 },
    { "in a name", "x" FORGED_GRES REAL_USER REAL_END "y", 0, 1 },
    { "in a name that ends like one", "x" REAL_USER FORGED_GRES REAL_USER REAL_END "y", 0, 1 },
    { "in a command", "x" REAL_USER REAL_END "y" FORGED_GRES, 0, 0 },
    { "in a command that begins like a job",
      "x" REAL_USER REAL_END "y" REAL_USER FORGED_GRES REAL_END, 0, 1 },
};

EACH(nobody_chooses_which_gpu_he_is_seen_on, forgeries)
{
    struct output_bad bad;
    char *text;

    text = (char *)arena_printf(&a, "m%sx0\nJobId=1 JobName=%s\n\nm%sx\n", MARK, forgeries[_i].job,
                                MARK);
    bad = output_devices(&a, text, MARK, (const char *const[]){ "1" }, 1, 7, &out);
    ck_assert_msg(n_lines(buf_text(&out)) == forgeries[_i].n_lines, "%s:\n%s", forgeries[_i].name,
                  buf_text(&out));
    ck_assert_msg(bad.n == forgeries[_i].n_bad && bad.n_names == bad.n, "%s: %d",
                  forgeries[_i].name, bad.n);
}

TEST(partitions_are_there_or_not)
{
    static const char text[] = "PartitionName=gogh2\n   Nodes=a\n\nPartitionName=gogh\n   Nodes=a "
                               "PartitionName=no\n\n";
    struct wire_message m;

    m = request(&a, "7 jobs\tpartition=gogh\tpartition=gogh2");
    ck_assert_ptr_null(output_partition_missing(text, &m));
    m = request(&a, "7 jobs\tpartition=gogh\tpartition=no");
    ck_assert_str_eq(output_partition_missing(text, &m), "no");
    m = request(&a, "7 jobs\tpartition=gog");
    ck_assert_str_eq(output_partition_missing(text, &m), "gog");
}

TEST(the_configuration_is_read)
{
    size_t len;

    ck_assert_int_eq(output_config(&a, load(&a, "22.05/config.txt", &len), 1, &out), 0);
    ck_assert(strstr(buf_text(&out), "1 config\tversion=22.05.8\tmin_job_age_s=300\tkill_wait_s=3\t"
                                     "requeue=yes\tboot_s=1"));
    ck_assert(strstr(buf_text(&out), "\tcluster=private\tcan_move_typed=no\n"));
    buf_clear(&out);
    ck_assert_int_eq(output_config(&a, load(&a, "24.11/config.txt", &len), 1, &out), 0);
    ck_assert_str_eq(buf_text(&out),
                     "1 config\tversion=24.11.5\tmin_job_age_s=300\tkill_wait_s=30\trequeue=no\t"
                     "boot_s=1731700000\tcluster=hall\tcan_move_typed=yes\n");
    ck_assert_int_eq(output_config(&a, "nothing\n", 1, &out), -1);
}

TEST(single_words_are_read)
{
    size_t len;

    ck_assert(output_is_up(load(&a, "22.05/ping-up.txt", &len)));
    ck_assert(!output_is_up(load(&a, "22.05/ping-down.txt", &len)));
    ck_assert(output_is_up(load(&a, "24.11/ping-up.txt", &len)));
    ck_assert(!output_is_up("") && !output_is_up("x is UP\n"));
    ck_assert_int_eq(output_submitted("17\n"), 17);
    ck_assert_int_eq(output_submitted("17;hall\n"), 17);
    ck_assert_int_eq(output_submitted("Submitted batch job 17\n"), 0);
    ck_assert_int_eq(output_submitted(""), 0);
    ck_assert_int_eq(output_submitted("17x"), 0);
}

/* ---- errors ---- */

static enum output_kind kind_of(const char *word)
{
    static const char *const words[] = { "refused", "down", "doubt", "gone" };

    for (int i = 0; i < 4; i++)
        if (strcmp(words[i], word) == 0)
            return (enum output_kind)i;
    ck_abort_msg("no kind is called '%s'", word);
}

TIMES(an_error_is_known_by_its_text, 2)
{
    int n = 0;
    size_t len;

    for (char *line = load(&a, _i ? "24.11/errors.txt" : "22.05/errors.txt", &len); *line;) {
        char *end = strchr(line, '\n'), *what = strchr(line, '\t'), *text;

        *end = '\0';
        if (*line != '#') {
            *what++ = '\0';
            text = strchr(what, '\t');
            *text++ = '\0';
            ck_assert_msg(output_kind_of(text) == kind_of(line), "%s: %s", what, text);
            n++;
        }
        line = end + 1;
    }
    ck_assert_int_gt(n, 10);
}

TEST(errors_are_told_of_the_jobs_they_name)
{
    static const char errors[] = "Invalid job id specified for job 99\n"
                                 "slurm_suspend error: No error\n"
                                 "scancel: error: Kill job error on job id 7: Access denied\n"
                                 "12_3: Job is pending execution\n";
    static const char *const ids[] = { "9", "7", "12_3", "99", "999" };
    struct output_trouble x[5];

    ck_assert_int_eq(output_troubles(&a, errors, ids, 5, x), 3);
    ck_assert_str_eq(x[0].id, "7");
    ck_assert_str_eq(x[0].text, "Kill job error on job id 7: Access denied");
    ck_assert_int_eq(x[0].kind, OUTPUT_REFUSED);
    ck_assert_str_eq(x[1].id, "12_3");
    ck_assert_str_eq(x[2].id, "99");
    ck_assert_int_eq(x[2].kind, OUTPUT_GONE);
    ck_assert_str_eq(output_first_line(&a, "\n\nscontrol: error: what\nnext"), "what");
    ck_assert_str_eq(output_first_line(&a, ""), "");
}

/* ---- lists of nodes ---- */

static const struct {
    const char *list, *names;    // names NULL: refused
} lists[] = {
    { "", "" },
    { "a", "a" },
    { "gpu[1-3]", "gpu1,gpu2,gpu3" },
    { "gpu[08-11]", "gpu08,gpu09,gpu10,gpu11" },
    { "gpu[9-11]", "gpu9,gpu10,gpu11" },
    { "gpu[1,3-4],b,c-[0-1].x", "gpu1,gpu3,gpu4,b,c-0.x,c-1.x" },
    { "r[1-2]n[3-4]", "r1n3,r1n4,r2n3,r2n4" },
    { "gpu[", NULL },
    { "gpu[]", NULL },
    { "gpu[1", NULL },
    { "gpu[1-]", NULL },
    { "gpu[3-1]", NULL },
    { "gpu[1,,2]", NULL },
    { "gpu[a-b]", NULL },
    { "gpu]", NULL },
    { "a,,b", NULL },
    { "a,", NULL },
    { "a b", NULL },
    { "a[0-99999999]", NULL },
    { "a[0-99999]", NULL },
    { "a[0-999][0-999]", NULL },
};

EACH(a_list_is_spelled_out, lists)
{
    struct err e = { 0 };
    const char *names = NULL;
    int rc;

    rc = hosts_expand(&a, lists[_i].list, &names, &e);
    if (lists[_i].names)
        ck_assert_msg(rc == 0 && strcmp(names, lists[_i].names) == 0, "'%s': %s %s", lists[_i].list,
                      names, e.text);
    else
        ck_assert_msg(rc == -EINVAL && strstr(e.text, "list of nodes"), "'%s': %s", lists[_i].list,
                      names);
}

TEST(what_is_compressed_expands_to_the_same)
{
    static const struct {
        const char *names, *list;
    } cases[] = {
        { "", "" },
        { "a", "a" },
        { "gpu1,gpu2,gpu3", "gpu[1-3]" },
        { "gpu9,gpu10,gpu12", "gpu[9-10],gpu12" },
        { "gpu08,gpu09,gpu10", "gpu[08-10]" },
        { "gpu9,gpu010", "gpu9,gpu010" },
        { "b2,a1,a2,b3", "b2,a[1-2],b3" },
        { "v100-0,v100-1,k80-0", "v100-[0-1],k80-0" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *list, *back = "";
        struct err e = { 0 };

        list = hosts_compress(&a, cases[i].names);
        ck_assert_str_eq(list, cases[i].list);
        ck_assert_int_eq(hosts_expand(&a, list, &back, &e), 0);
        ck_assert_str_eq(back, cases[i].names);
    }
    ck_assert(hosts_are_plain("a,b-1.x") && !hosts_are_plain("") && !hosts_are_plain("a,"));
    ck_assert(!hosts_are_plain("-a") && !hosts_are_plain("a[1-2]") && !hosts_are_plain("a b"));
}

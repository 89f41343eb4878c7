/* The driver's lines as values, and the notes that jobs carry. */
#include <errno.h>
#include <math.h>

#include "act/slurm/view.h"
#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/err.h"
#include "unit/suite.h"

static int read_line(struct arena *a, const char *text, struct wire_message *m)
{
    char *line = arena_strdup(a, text);

    return wire_read(a, line, strlen(line), m, NULL);
}

/* ---- jobs ---- */

#define LEAST "1 job\tid=12\tuid=1000\tstate="

static const struct {
    const char *name, *line;
    int rc;
    enum slurm_state state;
} jobs[] = {
    { "a job that waits", LEAST "PENDING", 0, SLURM_PENDING },
    { "one that is to be requeued waits", LEAST "REQUEUE_HOLD", 0, SLURM_PENDING },
    { "one whose node wakes", LEAST "CONFIGURING", 0, SLURM_STARTING },
    { "a suspended one has its GPUs", LEAST "SUSPENDED", 0, SLURM_RUNNING },
    { "one that completes has them, too", LEAST "COMPLETING", 0, SLURM_ENDING },
    { "out of memory is a failure", LEAST "OUT_OF_MEMORY", 0, SLURM_FAILED },
    { "a time limit", LEAST "TIMEOUT", 0, SLURM_TIMEOUT },
    { "a lost node is nobody's fault", LEAST "NODE_FAIL", 0, SLURM_NODE_FAILED },
    { "an unknown state", LEAST "DREAMING", -EINVAL, 0 },
    { "no state", "1 job\tid=12\tuid=1000", -EINVAL, 0 },
    { "no number", "1 job\tuid=1000\tstate=PENDING", -EINVAL, 0 },
    { "a number that is none", "1 job\tid=-3\tuid=1000\tstate=PENDING", -EINVAL, 0 },
    { "no user", "1 job\tid=12\tstate=PENDING", -EINVAL, 0 },
    { "a user beyond all", "1 job\tid=12\tuid=4294967295\tstate=PENDING", -EINVAL, 0 },
};

EACH(jobs_are_read, jobs)
{
    struct arena a;
    struct wire_message m;
    struct slurm_job j;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_int_eq(read_line(&a, jobs[_i].line, &m), 0);
    ck_assert_msg(slurm_job_read(&a, &m, &j, &e) == jobs[_i].rc, "%s: %s", jobs[_i].name, e.text);
    if (jobs[_i].rc == 0)
        ck_assert_msg(j.state == jobs[_i].state, "%s", jobs[_i].name);
    arena_release(&a);
}

TEST(all_that_a_job_line_says)
{
    struct arena a;
    struct wire_message m;
    struct slurm_job j;

    arena_init(&a);
    ck_assert_int_eq(
        read_line(&a,
                  "7 job\tid=12_3\tuid=5\tstate=RUNNING\theld=admin\tnodes=a,b\tpin=a\t"
                  "gres=gres:shard:1\tn_nodes=2\trun=4\tsubmit_s=100\tstart_s=200\t"
                  "exit=3\tsignal=9\tname=x%0Ay\tcomment=gogh: a=b\tadmin=gogh1 "
                  "new\tcwd=/h\tout=/h/o",
                  &m),
        0);
    ck_assert_int_eq(slurm_job_read(&a, &m, &j, NULL), 0);
    ck_assert_int_eq(j.id, 12);
    ck_assert_int_eq(j.array, 12);
    ck_assert_int_eq(j.task, 3);
    ck_assert_int_eq(j.held, HOLD_ADMIN);
    ck_assert_int_eq(j.run, 4);
    ck_assert_int_eq(j.n_nodes, 2);
    ck_assert_int_eq(j.exit_code, 3);
    ck_assert_int_eq(j.signal, 9);
    ck_assert(j.submit_s == 100 && j.start_s == 200 && isnan(j.end_s));
    ck_assert_str_eq(j.nodes, "a,b");
    ck_assert_str_eq(j.name, "x\ny");
    ck_assert_str_eq(j.out, "/h/o");
    ck_assert_str_eq(j.reason, "");
    arena_release(&a);
}

/* ---- nodes ---- */

static const struct {
    const char *name, *state;
    unsigned flags;
} nodes[] = {
    { "an idle node", "idle", 0 },
    { "one that works", "mixed", SLURM_NODE_IN_USE },
    { "one that is drained, and works", "mixed,drain", SLURM_NODE_IN_USE | SLURM_NODE_DRAINED },
    { "one that fails keeps its jobs", "mixed,fail", SLURM_NODE_IN_USE | SLURM_NODE_DRAINED },
    { "one that is down", "down", SLURM_NODE_DOWN },
    { "one that does not answer", "idle,not_responding", SLURM_NODE_DOWN },
    { "one that wakes does not answer yet", "mixed,not_responding,powering_up",
      SLURM_NODE_IN_USE | SLURM_NODE_WAKING },
    { "one that sleeps", "idle,powered_down", SLURM_NODE_ASLEEP },
    { "one that goes to sleep", "idle,powering_down", SLURM_NODE_ASLEEP | SLURM_NODE_SINKING },
    { "one that a new slurmctld does not know yet is not lost", "unknown", SLURM_NODE_UNHEARD },
    { "words that are not known mean nothing", "idle,planned", 0 },
};

EACH(nodes_are_read, nodes)
{
    struct arena a;
    struct wire_message m;
    struct slurm_node n;
    char line[200];

    arena_init(&a);
    snprintf(line, sizeof line, "1 node\tname=n0\tstate=%s\tgres=gpu:1", nodes[_i].state);
    ck_assert_int_eq(read_line(&a, line, &m), 0);
    ck_assert_int_eq(slurm_node_read(&a, &m, &n, NULL), 0);
    ck_assert_msg(n.flags == nodes[_i].flags, "%s: %u", nodes[_i].name, n.flags);
    arena_release(&a);
}

TEST(a_node_needs_a_name_and_a_state)
{
    static const char *const lines[] = { "1 node\tstate=idle", "1 node\tname=a",
                                         "1 node\tname=a\tstate=" };
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct wire_message m;
        struct slurm_node n;

        ck_assert_int_eq(read_line(&a, lines[i], &m), 0);
        ck_assert_int_eq(slurm_node_read(&a, &m, &n, NULL), -EINVAL);
    }
    arena_release(&a);
}

/* ---- notes ---- */

#define TOKEN "0123456789abcdef-17"
#define SECRET "0123456789abcdef0123456789abcdef"

/* is_ours, is_new, token, at, gres, nodes, held, secret, failures, asked run */
static const struct {
    const char *name, *comment, *admin, *want;
} notes[] = {
    { "nothing", "", "", "0 0 '' '' '' 0 0 '' 0 -1" },
    { "somebody else's", "hello", "see ticket 7", "0 0 '' '' '' 0 0 '' 0 -1" },
    { "ours", "", "gogh1 token=" TOKEN " at=a/0,b/1 limit=0",
      "1 0 '" TOKEN "' 'a/0,b/1' '' 0 0 '' 0 -1" },
    { "by its comment", "gogh: token=" TOKEN, "", "1 0 '" TOKEN "' '' '' 0 0 '' 0 -1" },
    { "a promise is not read here", "gogh: min-throughput=4", "", "0 0 '' '' '' 0 0 '' 0 -1" },
    { "the admin's word counts first", "gogh: token=ffffffffffffffff-1", "gogh1 token=" TOKEN,
      "1 0 '" TOKEN "' '' '' 0 0 '' 0 -1" },
    { "what the gate left", "", "gogh1 new gres=gpu:v100:2 nodes=2 held=yes secret=" SECRET,
      "1 1 '' '' 'gpu:v100:2' 2 1 '" SECRET "' 0 -1" },
    { "a secret that is none", "", "gogh1 new secret=XYZ", "1 1 '' '' '' 0 0 '' 0 -1" },
    { "failures, and a run that was asked", "", "gogh1 token=" TOKEN " failures=2 asked=3",
      "1 0 '" TOKEN "' '' '' 0 0 '' 2 3" },
    { "a refusal is no list of pairs", "", "gogh1 refused: token=" TOKEN,
      "1 0 '' '' '' 0 0 '' 0 -1" },
    { "another version is not ours", "", "gogh12 token=" TOKEN, "0 0 '' '' '' 0 0 '' 0 -1" },
    { "a token that is too short", "", "gogh1 token=0123-17", "1 0 '' '' '' 0 0 '' 0 -1" },
    { "one without a job", "", "gogh1 token=0123456789abcdef-", "1 0 '' '' '' 0 0 '' 0 -1" },
    { "one of capitals", "", "gogh1 token=0123456789ABCDEF-1", "1 0 '' '' '' 0 0 '' 0 -1" },
    { "numbers out of range are not there", "", "gogh1 nodes=-1 limit=x failures=99999999999",
      "1 0 '' '' '' 0 0 '' 0 -1" },
};

EACH(notes_are_read, notes)
{
    struct slurm_note n;
    struct arena a;
    char got[300];

    arena_init(&a);
    slurm_note_read(&a, notes[_i].comment, notes[_i].admin, &n);
    snprintf(got, sizeof got, "%d %d '%s' '%s' '%s' %d %d '%s' %d %d", n.is_ours, n.is_new, n.token,
             n.at, n.gres, n.n_nodes, n.is_held, n.secret, n.n_failures, n.asked_run);
    ck_assert_msg(strcmp(got, notes[_i].want) == 0, "%s: %s", notes[_i].name, got);
    arena_release(&a);
}

/* What a Slurm cluster shows becomes observations of nodes, and jobs that are handed over once. */
#include "act/slurm/newcomers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "act/slurm/slurm.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "monitor/monitor.h"
#include "monitor/sensor.h"
#include "unit/suite.h"
#include "unit/support.h"

#define NOW_S 1000.0
#define GRES "gpu:v100:1,shard:2"

static struct world world;
static struct newcomers *newcomers;
static struct buf told;    // what came out, in words
static bool can_add, can_take;
static int n_has;                      // words on what nodes have
static enum sharing has_sharing[3];    // the last ones
static long loses_at;                  // the job at which a commit fails; 0: none

/* What is told is applied at once, as the daemon does it. */
static void node_is(void *self, int node, enum node_state is, bool ends_drain, double time_s)
{
    static const enum observation_kind kinds[] = {
        [NODE_UP] = OBS_NODE_UP, [NODE_DRAINED] = OBS_NODE_DRAINED, [NODE_DOWN] = OBS_NODE_DOWN
    };
    static const char *const words[] = {
        [NODE_UP] = "up", [NODE_DRAINED] = "drained", [NODE_DOWN] = "down"
    };
    const struct observation o = {
        .kind = kinds[is], .time_s = time_s, .node = node, .ends_drain = ends_drain
    };
    struct finding f;

    ck_assert_ptr_eq(self, &told);
    ck_assert_double_eq(time_s, NOW_S);
    monitor_read(&o, &world.ledger.state, &f);
    if (!f.has_event)
        return;
    buf_printf(&told, "%s %s;", f.event.node, words[f.event.node_state]);
    world_apply(&world, &f.event);
}

static int add_node(void *self, const struct slurm_node *n, const struct slurm_slot *slots,
                    int n_slots, struct err *e)
{
    ck_assert_ptr_eq(self, &told);
    buf_printf(&told, "add %s", n->name);
    for (int i = 0; i < n_slots; i++)
        buf_printf(&told, " %s", slots[i].type);
    buf_puts(&told, ";");
    if (!can_add)
        return err_set(e, EINVAL, "there is no room");
    int types[8] = { 0 };
    world_apply(&world, &(struct event){ .kind = EVENT_NODE_ADDED,
                                         .node = n->name,
                                         .gpu_types = types,
                                         .n_gpus = n_slots });
    return 0;
}

static void node_has(void *self, int node, const struct slurm_slot *slots)
{
    ck_assert_ptr_eq(self, &told);
    has_sharing[node] = slots[0].sharing;
    n_has++;
}

static bool take_job(void *self, const struct slurm_job *j)
{
    ck_assert_ptr_eq(self, &told);
    buf_printf(&told, "take %ld", j->id);
    buf_puts(&told, j->task >= 0 ? "_" : "");
    if (j->task >= 0)
        buf_printf(&told, "%ld", j->task);
    buf_puts(&told, ";");
    if (j->id == loses_at)
        newcomers_undone(newcomers);
    return can_take;
}

static void setup(void)
{
    world_init(&world, "type v100\nworkload w\nnode a v100\nnode b v100\n");
    buf_init(&told, 4096);
    can_add = can_take = true;
    loses_at = 0;
    n_has = 0;
    const struct slurm_setup s = { .state = &world.ledger.state,
                                   .partition = "gogh",
                                   .site = "0123456789abcdef",
                                   .owner = &told,
                                   .add_node = add_node,
                                   .node_has = node_has,
                                   .take_job = take_job,
                                   .node_is = node_is };
    newcomers = newcomers_create(&s);
}

static void teardown(void)
{
    newcomers_destroy(newcomers);
    buf_release(&told);
    world_release(&world);
}

FIXTURE(setup, teardown)

static void see(struct slurm_node *nodes, int n_nodes, struct slurm_job *jobs, int n_jobs)
{
    const struct slurm_view v = {
        .time_s = NOW_S, .nodes = nodes, .n_nodes = n_nodes, .jobs = jobs, .n_jobs = n_jobs
    };

    buf_release(&told);
    buf_init(&told, 4096);
    newcomers_see(newcomers, &v, NOW_S);
}

static unsigned flags_of(char c)
{
    switch (c) {
    case 'D':
        return SLURM_NODE_DOWN;
    case 'd':
        return SLURM_NODE_DRAINED;
    case 'B':
        return SLURM_NODE_DOWN | SLURM_NODE_DRAINED;
    case 's':
        return SLURM_NODE_ASLEEP;
    case 'w':
        return SLURM_NODE_WAKING | SLURM_NODE_IN_USE;
    }
    return 0;
}

/* One letter a node of "a", "b", ...: u up, d drained, D down, B both, s asleep, w waking, . not
 * there, x with two GPUs, c without any, ? with a gres that means nothing.
 */
static void see_nodes(const char *letters)
{
    static const char *const names[] = { "a", "b", "c" };
    struct slurm_node nodes[3];
    int n = 0;

    for (int i = 0; letters[i]; i++) {
        if (letters[i] == '.')
            continue;
        nodes[n++] = (struct slurm_node){ .name = names[i],
                                          .flags = flags_of(letters[i]),
                                          .gres = letters[i] == 'x'   ? "gpu:v100:2"
                                                  : letters[i] == 'c' ? ""
                                                  : letters[i] == '?' ? "gpu:v100:x:y:z"
                                                                      : GRES,
                                          .reason = "" };
    }
    see(nodes, n, NULL, 0);
}

/* Views one after the other; between them, an order of the world's ("drain a") may stand. */
static const struct {
    const char *name;
    struct {
        const char *order, *nodes, *want;
    } steps[5];
} lives[] = {
    { "nodes that are up are no news", { { NULL, "uu", "" }, { NULL, "uu", "" } } },
    { "one goes down, once, and comes back",
      { { NULL, "Du", "a down;" }, { NULL, "Du", "" }, { NULL, "uu", "a up;" } } },
    { "Slurm drains one and resumes it",
      { { NULL, "ud", "b drained;" }, { NULL, "ud", "" }, { NULL, "uu", "b up;" } } },
    { "a drain that was asked of GOGH is not Slurm's to end",
      { { NULL, "uu", "" }, { "drain b\n", "uu", "" }, { NULL, "ud", "" }, { NULL, "uu", "" } } },
    { "nor does a failure end it",
      { { NULL, "uu", "" }, { "drain b\n", "uD", "b down;" }, { NULL, "uu", "b drained;" } } },
    { "nor a failure and a drain of Slurm's",
      { { NULL, "uu", "" },
        { "drain b\n", "uD", "b down;" },
        { NULL, "ud", "b drained;" },
        { NULL, "uu", "" } } },
    { "Slurm's drain outlasts GOGH's undrain",
      { { NULL, "ud", "b drained;" }, { "up b\n", "ud", "b drained;" }, { NULL, "uu", "b up;" } } },
    { "a drain that was there before this process is Slurm's where Slurm has it",
      { { "drain b\n", "ud", "" }, { NULL, "uu", "b up;" } } },
    { "and somebody else's where Slurm has none", { { "drain b\n", "uu", "" } } },
    { "down counts before drained",
      { { NULL, "uB", "b down;" }, { NULL, "ud", "b drained;" }, { NULL, "uu", "b up;" } } },
    { "those that sleep or wake are up", { { NULL, "sw", "" } } },
    { "a node that Slurm has no more is down, and comes back",
      { { NULL, "u.", "b down;" }, { NULL, "u.", "" }, { NULL, "uu", "b up;" } } },
    { "a partition without nodes says nothing", { { NULL, "..", "" } } },
    { "a new node is added once, with its GPUs",
      { { NULL, "uuu", "add c v100;" }, { NULL, "uuu", "" }, { NULL, "uuD", "c down;" } } },
    { "one that is down is added, and down", { { NULL, "uuD", "add c v100;c down;" } } },
    { "a node without GPUs is none of ours", { { NULL, "uuc", "" } } },
    { "a gres that means nothing waits for a better one",
      { { NULL, "uu?", "" }, { NULL, "uuu", "add c v100;" } } },
    { "a node with other GPUs than before gets nothing new until it has them again",
      { { NULL, "uu", "" },
        { NULL, "xu", "a drained;" },
        { NULL, "xu", "" },
        { NULL, "uu", "a up;" } } },
};

EACH(nodes_are_told, lives)
{
    for (size_t i = 0; i < 5 && lives[_i].steps[i].nodes; i++) {
        if (lives[_i].steps[i].order)
            world_add(&world, lives[_i].steps[i].order);
        see_nodes(lives[_i].steps[i].nodes);
        ck_assert_msg(strcmp(buf_text(&told), lives[_i].steps[i].want) == 0, "%s, view %zu: '%s'",
                      lives[_i].name, i + 1, buf_text(&told));
    }
}

TEST(what_a_known_node_has_is_told_when_it_changes)
{
    static const struct {
        const char *gres;
        int n_has;
        enum sharing want;
    } views[] = {
        { "gpu:v100:1,mps:100", 1, SHARING_MPS },
        { "gpu:v100:1,mps:100", 1, SHARING_MPS },
        { "gpu:v100:1", 2, SHARING_UNKNOWN },
        { "gpu:v100:2", 2, SHARING_UNKNOWN },    // not what it had: no word on how it is shared
        { "gpu:v100:1,shard:2", 3, SHARING_TIMESLICE },
    };

    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct slurm_node a = { .name = "a", .gres = views[i].gres, .reason = "" };
        see(&a, 1, NULL, 0);
        ck_assert_msg(n_has == views[i].n_has && has_sharing[0] == views[i].want, "view %zu: %d",
                      i + 1, n_has);
    }
}

TEST(a_node_that_cannot_be_added_is_asked_for_again)
{
    can_add = false;
    see_nodes("uuu");
    ck_assert_str_eq(buf_text(&told), "add c v100;");
    can_add = true;
    see_nodes("uuu");
    ck_assert_str_eq(buf_text(&told), "add c v100;");
    see_nodes("uuu");
    ck_assert_str_eq(buf_text(&told), "");
}

#define TOKEN "0123456789abcdef-17"

static struct slurm_job job(long id, enum slurm_state state, const char *comment, const char *admin)
{
    return (struct slurm_job){ .id = id,
                               .array = -1,
                               .task = -1,
                               .partition = "gogh",
                               .state = state,
                               .held = HOLD_ADMIN,
                               .submit_s = 100,
                               .name = "j",
                               .comment = comment,
                               .admin = admin,
                               .gres = "gpu:1" };
}

TEST(jobs_without_a_token_are_handed_over_once)
{
    struct slurm_job jobs[] = {
        job(1, SLURM_PENDING, "", "gogh1 new gres=gpu:1 nodes=1 held=no"),
        job(2, SLURM_PENDING, "gogh: token=" TOKEN, ""),
        job(3, SLURM_PENDING, "", "gogh1 token=" TOKEN " at=a/0 limit=0"),
        job(4, SLURM_PENDING, "", "gogh1 refused: there is no 'stepz'"),
        job(5, SLURM_PENDING, "gogh: batch=3", ""),
        job(6, SLURM_RUNNING, "", ""),
        job(7, SLURM_CANCELLED, "", ""),
        job(8, SLURM_PENDING, "", ""),
        job(9, SLURM_PENDING, "", ""),
    };

    jobs[0].gres = "";    // the gate took it off
    jobs[7].partition = "batch";
    see(NULL, 0, jobs, 9);
    ck_assert_str_eq(buf_text(&told), "take 1;take 5;take 6;take 9;");
    see(NULL, 0, jobs, 9);
    ck_assert_str_eq(buf_text(&told), "");
    jobs[8].submit_s = 200;    // its number was given out again
    see(NULL, 0, jobs, 9);
    ck_assert_str_eq(buf_text(&told), "take 9;");
}

TEST(tasks_of_an_array_are_jobs)
{
    struct slurm_job jobs[] = { job(5, SLURM_PENDING, "", ""), job(5, SLURM_PENDING, "", "") };

    jobs[0].array = jobs[1].array = 5;
    jobs[0].task = 1;
    jobs[1].task = 2;
    see(NULL, 0, jobs, 2);
    ck_assert_str_eq(buf_text(&told), "take 5_1;take 5_2;");
    see(NULL, 0, jobs, 2);
    ck_assert_str_eq(buf_text(&told), "");
}

TEST(a_job_that_could_not_be_written_is_handed_over_again)
{
    struct slurm_job jobs[] = { job(1, SLURM_PENDING, "", ""), job(2, SLURM_PENDING, "", "") };

    can_take = false;
    see(NULL, 0, jobs, 2);
    can_take = true;
    see(NULL, 0, jobs, 2);
    ck_assert_str_eq(buf_text(&told), "take 1;take 2;");
}

static const struct {
    const char *name, *gres;
    bool is_taken;
} requests[] = {
    { "GPUs", "gpu:2", true },
    { "as Slurm writes it", "gres:gpu:v100:2", true },
    { "among others", "gres/nvme:1,gres/gpu", true },
    { "a part of one", "shard:1", true },
    { "none", "", false },
    { "none, in words", "N/A", false },
    { "something else", "gpus:1,nvme:gpu:1", false },
};

EACH(a_job_without_a_gate_that_asks_for_no_gpu_is_left_alone, requests)
{
    struct slurm_job j = job(1, SLURM_RUNNING, "", "");

    j.gres = requests[_i].gres;
    see(NULL, 0, &j, 1);
    ck_assert_msg((buf_text(&told)[0] != '\0') == requests[_i].is_taken, "%s: '%s'",
                  requests[_i].name, buf_text(&told));
}

TEST(many_jobs_are_handed_over_by_and_by_in_their_order)
{
    static const char *const first[] = { "take 1_0;take 1_1;", "take 101_0;take 101_1;",
                                         "take 201_0;take 201_1;" };
    static struct slurm_job jobs[450];
    int n[3] = { 0 };

    for (int i = 0; i < 450; i++)
        jobs[i] = job(i / 2 + 1, SLURM_PENDING, "", "");
    for (int i = 0; i < 450; i++)
        jobs[i].task = i % 2;
    for (int k = 0; k < 3; k++) {
        see(NULL, 0, jobs, 450);
        ck_assert_msg(strncmp(buf_text(&told), first[k], strlen(first[k])) == 0, "view %d: %.20s",
                      k + 1, buf_text(&told));
        for (const char *p = buf_text(&told); *p; p++)
            n[k] += *p == ';';
    }
    ck_assert_int_eq(n[0], 200);
    ck_assert_int_eq(n[1], 200);
    ck_assert_int_eq(n[2], 50);
    see(NULL, 0, jobs, 450);
    ck_assert_str_eq(buf_text(&told), "");
}

TEST(those_who_cannot_be_taken_do_not_keep_out_the_others)
{
    static struct slurm_job jobs[201];

    for (int i = 0; i < 201; i++)
        jobs[i] = job(i + 1, SLURM_PENDING, "", "");
    can_take = false;
    see(NULL, 0, jobs, 201);
    can_take = true;
    see(NULL, 0, jobs, 201);
    ck_assert_str_eq(buf_text(&told), "take 201;");
    see(NULL, 0, jobs, 201);
    ck_assert_int_eq(strncmp(buf_text(&told), "take 1;take 2;", 14), 0);
    ck_assert_ptr_null(strstr(buf_text(&told), "take 201;"));
}

TEST(what_was_lost_with_a_commit_is_handed_over_again)
{
    struct slurm_job jobs[] = { job(1, SLURM_PENDING, "", ""), job(2, SLURM_PENDING, "", ""),
                                job(3, SLURM_PENDING, "", "") };

    see(NULL, 0, jobs, 1);
    newcomers_committed(newcomers);
    see(NULL, 0, jobs, 2);
    see(NULL, 0, jobs, 3);
    ck_assert_str_eq(buf_text(&told), "take 3;");
    newcomers_undone(newcomers);
    see(NULL, 0, jobs, 3);
    ck_assert_str_eq(buf_text(&told), "take 2;take 3;");
    newcomers_committed(newcomers);
    newcomers_undone(newcomers);
    see(NULL, 0, jobs, 3);
    ck_assert_str_eq(buf_text(&told), "");
}

TEST(a_commit_that_is_lost_while_jobs_are_handed_over)
{
    struct slurm_job jobs[] = { job(1, SLURM_PENDING, "", ""), job(2, SLURM_PENDING, "", ""),
                                job(3, SLURM_PENDING, "", "") };

    see(NULL, 0, jobs, 1);
    newcomers_committed(newcomers);
    see(NULL, 0, jobs + 1, 1);
    loses_at = 1;    // before 2, of the last view, is come to
    jobs[0].submit_s = 300;
    see(NULL, 0, jobs, 3);
    ck_assert_str_eq(buf_text(&told), "take 1;take 2;take 3;");
}

TEST(tokens_that_this_store_has_not_given_out_are_counted)
{
    struct slurm_job jobs[] = {
        job(1, SLURM_PENDING, "gogh: token=0123456789abcdef-0-1a2b", ""),
        job(2, SLURM_RUNNING, "", "gogh1 token=0123456789abcdef-1 at=a/0"),
        job(3, SLURM_PENDING, "", "gogh1 token=0123456789abcdee-0 at=a/0"),
        job(4, SLURM_PENDING, "gogh: token=fedcba9876543210-7", ""),
        job(5, SLURM_CANCELLED, "gogh: token=fedcba9876543210-8", ""),
        job(6, SLURM_PENDING, "", ""),
        job(7, SLURM_PENDING, "gogh: token=fedcba9876543210-9", ""),
    };

    jobs[6].partition = "batch";
    world_add(&world, "job j w steps=1\n");
    see(NULL, 0, jobs, 1);
    ck_assert_int_eq(newcomers_n_foreign(newcomers), 0);
    see(NULL, 0, jobs, 7);
    ck_assert_int_eq(newcomers_n_foreign(newcomers), 3);    // 2: there is no job 1 here
    ck_assert_str_eq(buf_text(&told), "take 6;");
    see(NULL, 0, NULL, 0);
    ck_assert_int_eq(newcomers_n_foreign(newcomers), 0);
}

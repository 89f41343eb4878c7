/* Backfill: who passes whom, and that nobody is delayed by it. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "optimize/policy/backfill.h"
#include "unit/optimize/planned.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"
#include "unit/support.h"

/* 1,000 steps take 100 s on a v100 and 250 s on a k80. */
#define CLUSTER                                                               \
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\n" \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"                    \
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\npairs 0.9\n"

#define PLACES "node n1 v100 v100\nnode n2 k80\n"
#define HEAD PLACES "job x w steps=1000\nstart x 0\njob a w gpus=2 types=v100\n"
#define SERVED PLACES "job x w rate=2 duration=100\nstart x 0\njob a w gpus=2 types=v100\n"
#define APART                                                                      \
    "node n1 v100 v100\nnode n2 v100\njob x w steps=1000 exclusive=1\nstart x 0\n" \
    "job a w gpus=2 nodes=1\n"
#define TWO_ENDS                                                            \
    "node n1 v100 v100 v100 v100\njob x w steps=1000\njob y w steps=9000\n" \
    "start x 0\nstart y 1\njob a w gpus=3\n"

static const struct {
    const char *name, *policy, *given, *want;
} cases[] = {
    { "who ends before the gang can start passes it", "fifo-first",
      HEAD "job b w types=v100 steps=900\n", "x 0, a capacity, b 1" },
    { "who ends when it can does too", "fifo-first", HEAD "job b w types=v100 steps=1000\n",
      "x 0, a capacity, b 1" },
    { "who ends later does not", "fifo-first", HEAD "job b w types=v100 steps=1100\n",
      "x 0, a capacity, b turn" },
    { "elsewhere it may take as long as it likes", "fifo-first",
      HEAD "job b w types=k80 steps=1e6\n", "x 0, a capacity, b 2" },
    { "one behind one that must wait passes both", "fifo-first",
      HEAD "job b w types=v100 steps=1100\njob c w types=v100 steps=500\n",
      "x 0, a capacity, b turn, c 1" },
    { "a server ends when its time is up", "fifo-first", SERVED "job b w types=v100 steps=900\n",
      "x 0, a capacity, b 1" },
    { "and not before", "fifo-first", SERVED "job b w types=v100 steps=1100\n",
      "x 0, a capacity, b turn" },
    { "what is of no use to the gang is free for all", "fifo-first", APART "job b w steps=1e6\n",
      "x 0, a capacity, b 2" },
    { "reserved is what is free first", "fifo-first", TWO_ENDS "job b w steps=1100\n",
      "x 0, y 1, a capacity, b turn" },
    { "and until then it can be used", "fifo-first", TWO_ENDS "job b w steps=900\n",
      "x 0, y 1, a capacity, b 2" },
    { "the fastest come to it too", "fifo-fastest", HEAD "job b w steps=900\n",
      "x 0, a capacity, b 1" },
    { "and take what else there is", "fifo-fastest", HEAD "job b w steps=1100\n",
      "x 0, a capacity, b 2" },
    { "those who keep promises", "fifo-promise", HEAD "job b w min=5 steps=900\n",
      "x 0, a capacity, b 1" },
    { "and those who cannot wait", "fifo-promise", HEAD "job b w min=5 steps=1100\n",
      "x 0, a capacity, b turn" },
    { "nobody shares what is reserved", "pack", HEAD "job b w types=v100 steps=1100\n",
      "x 0, a capacity, b turn" },
    { "others do", "pack", APART "job y w steps=1e6\nstart y 2\njob b w steps=1e6\n",
      "x 0, y 2, a capacity, b 2" },
    { "a gang of gavel's has some GPUs reserved, not all", "gavel", APART "job b w steps=1e6\n",
      "x 0, a capacity, b 2" },

    { "slurm takes the first GPU that fits", "slurm", "node n1 k80\nnode n2 v100\njob a w\n",
      "a 0" },
    { "of the types that the job allows", "slurm", PLACES "job a w types=k80\n", "a 2" },
    { "in the order of nodes", "slurm",
      "node n1 v100\nnode n2 v100 v100\njob a w gpus=2\njob b w\n", "a 1 2, b 0" },
    { "and wakes a node when it must", "slurm",
      "node n1 v100\nnode n2 k80\nwake n1 60\njob a w\njob b w\n", "a 1, b 0" },
    { "it shares nothing", "slurm", "node n1 v100\njob a w\njob b w\n", "a 0, b capacity" },
    { "a step of priority outweighs less than a day of age", "slurm",
      "node n1 v100\njob a w\nat 80000\njob b w prio=1\n", "b 0, a capacity" },
    { "but not more", "slurm", "node n1 v100\njob a w\nat 90000\njob b w prio=1\n",
      "b capacity, a 0" },
    { "it fills in", "slurm", HEAD "job b w types=v100 steps=900\n", "x 0, a capacity, b 1" },
    { "where nobody is delayed", "slurm", HEAD "job b w types=v100 steps=1100\n",
      "x 0, a capacity, b turn" },

    { "the fastest hopes for what it has not tried", "fifo-fastest",
      "speed w k80 9.5 sd=0.5\n" PLACES "job a w\n", "a 2" },
    { "not for what it knows", "fifo-fastest", "speed w k80 9.5 sd=0.01\n" PLACES "job a w\n",
      "a 0" },
};

EACH(who_passes_whom, cases)
{
    struct world w;
    struct plan p;
    char got[400];

    world_init(&w, CLUSTER);
    world_add(&w, cases[_i].given);
    world_look(&w);
    world_solve(&w, cases[_i].policy, &p);
    must_pass(&w, &p, cases[_i].name);
    describe(&w, &p, got, sizeof got);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: %s", cases[_i].name, got);
    world_release(&w);
}

/* ---- nobody is delayed ---- */

/* Ends of all kinds, known and not; no limits, which are settled when all have their place. */
static void draw_ends(struct rng *r, struct problem *p)
{
    for (int j = 0; j < p->n_jobs; j++) {
        p->jobs[j].left_steps = rng_below(r, 10) ? rng_between(r, 10, 1000) : 0;
        p->jobs[j].left_s = rng_below(r, 5) ? 0 : rng_between(r, 10, 500);
    }
    for (int t = 0; t < p->n_types; t++)
        p->types[t].n_limits = 1;
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].present_limit = 0;
}

/* In order, as first-come policies do; returns the head, -1: everybody started. */
static int fill(struct policy_work *w, struct backfill *b, int *n_wanted, int *n_passed)
{
    int head = -1, gpus[GANG_MAX];

    for (int j = 0; j < w->problem->n_jobs; j++) {
        struct destination to = { 0 };
        struct yield alone;
        if (!work_is_waiting(w, j))
            continue;
        int *wanted = n_wanted + j * w->problem->n_types, n = w->problem->jobs[j].n_min;
        for (int type = 0; type < w->problem->n_types; type++) {
            wanted[type] = work_suits(w, j, type, &alone) ? n : 0;
            if (wanted[type] && backfill_free(b, j, type, n, gpus))
                work_prefer(&to, type, gpus, n);
        }
        if (work_put(w, j, &to)) {
            *n_passed += head >= 0;
        } else if (head < 0 && to.n_gpus == 0 && !assignment_never(w->assignment, j)) {
            head = j;
            backfill_reserve(b, j, wanted);
        }
    }
    return head;
}

/* And what the head could count on before anybody passed it. */
TEST(the_reserved_start_is_never_later_for_those_who_passed)
{
    const int n_all = suite_size(3000, 20000);
    int n_heads = 0, n_passed = 0;

    for (int seed = 1; seed <= n_all; seed++) {
        struct arena a;
        struct rng r;
        struct problem p;
        struct policy_work w;
        struct backfill before, after;
        arena_init(&a);
        rng_init(&r, (uint64_t)seed, "ends");
        tiny_any(&a, (uint64_t)seed, 8, 6, &p);
        draw_ends(&r, &p);
        work_begin(&w, &a, &p);
        w.assignment->is_keeping = false;
        backfill_begin(&before, &w);
        int *n_wanted = ARENA_ARRAY(&a, int, (size_t)(p.n_jobs * p.n_types + 1));
        int head = fill(&w, &before, n_wanted, &n_passed);
        if (head >= 0 && before.start_s > 0) {
            backfill_begin(&after, &w);
            backfill_reserve(&after, head, n_wanted + head * p.n_types);
            if (!(after.start_s > 0 && after.start_s <= before.start_s * (1 + 1e-9)))
                ck_abort_msg("seed %d: %g s became %g s", seed, before.start_s, after.start_s);
            n_heads++;
        }
        assignment_destroy(w.assignment);
        arena_release(&a);
    }
    ck_assert_int_gt(n_heads, n_all / 20);
    ck_assert_int_gt(n_passed, n_all / 50);
}

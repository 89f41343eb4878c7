/* The baselines: the choice that makes each of them what it is. That every plan of theirs passes
 * the judge on thousands of random clusters is in test_solvers.c.
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "estimate/prior/limits.h"
#include "optimize/policy/gavel_inner.h"
#include "unit/optimize/planned.h"
#include "unit/suite.h"
#include "unit/support.h"
#include "unit/texts.h"

/* By the step, 'w' costs 24 J on a v100 and 35 J on the k80, the price of GPU-seconds included;
 * 'frugal' costs 28 J and 12.5 J.
 */
#define CLUSTER                                                               \
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\n" \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"                    \
    "workload frugal params=1e6 bytes_per_sample=1e6 batch=1\n"               \
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\n"     \
    "speed frugal v100 10\nwatts frugal v100 240\nspeed frugal k80 8\nwatts frugal k80 60\n"

#define PLACES "pairs 0.6\nnode n1 v100 v100\nnode n2 k80\n"

#define FULL "job x w exclusive=1\njob y w exclusive=1\nstart x 0\nstart y 1\n"

static const struct {
    const char *name, *policy, *given;
    const char *off;     // levers: s sharing, m moving
    const char *want;    // "a 0, b capacity, ..." in the snapshot's order
} cases[] = {
    { "the fewest joules among the types that keep the promise", "fifo-promise",
      PLACES "job a frugal\n", "", "a 2" },
    { "the promise comes before the joules", "fifo-promise", PLACES "job a frugal min=9\n", "",
      "a 0" },
    { "who waits for a type holds up nobody who wants another", "fifo-promise",
      PLACES FULL "job a frugal min=9\njob b frugal\n", "", "x 0, y 1, a promise, b 2" },
    { "but everybody behind who wants the same", "fifo-promise",
      PLACES FULL "job a w min=9\njob b w min=8\n", "", "x 0, y 1, a promise, b turn" },
    { "a gang's free GPUs are not taken from it", "fifo-promise",
      PLACES "job x w\nstart x 0\njob a w gpus=2 types=v100\njob b w min=5 steps=1e4\n", "",
      "x 0, a capacity, b turn" },
    { "a promise that no type keeps goes to the fastest", "fifo-promise", PLACES "job a w min=99\n",
      "", "a 0" },
    { "and waits for it rather than take far less", "fifo-promise", PLACES FULL "job a w min=99\n",
      "", "x 0, y 1, a promise" },
    { "two GPUs where one does not keep the promise", "fifo-promise",
      PLACES "job a w min=15 max=2\n", "", "a 0 1" },
    { "nobody shares", "fifo-promise", PLACES "job a w\njob b w\njob c w\njob d w\n", "",
      "a 0, b 1, c 2, d capacity" },

    { "two that cost less together share", "pack", PLACES "job a w\njob b w\n", "", "a 0, b 0" },
    { "unless sharing is off", "pack", PLACES "job a w\njob b w\n", "s", "a 0, b 1" },
    { "or the resident's promise would break", "pack", PLACES "job a w min=7\njob b w\n", "",
      "a 0, b 1" },
    { "or the newcomer's", "pack", PLACES "job a w\njob b w min=7\n", "", "a 0, b 1" },
    { "or a GPU alone costs less", "pack",
      "speed w v100 4 beside=w\n" PLACES "job a w\nstart a 0\njob b w\n", "", "a 0, b 1" },
    { "who cannot be alone passes those who must", "pack",
      PLACES FULL "job z w\nstart z 2\njob a w min=9\njob b w\n", "",
      "x 0, y 1, z 2, a capacity, b 2" },

    { "company is preferred to a cheaper GPU alone", "eaco",
      PLACES "job a frugal\nstart a 0\njob b frugal\n", "", "a 0, b 0" },
    { "but not below half the speed", "eaco",
      "speed w v100 4.9 beside=w\n" PLACES "job a w\njob b w\n", "", "a 0, b 1" },
    { "nor where a promise would break", "eaco", PLACES "job a w min=7\njob b w\n", "",
      "a 0, b 1" },
    { "else the cheapest GPU that keeps the promise", "eaco", PLACES "job a frugal\n", "", "a 2" },
    { "of a pair that is slower than was believed the later one leaves", "eaco",
      "speed w v100 4.9 beside=w\n" PLACES
      "job a w\njob b w\nstart b 0\nat 100\nstart a 0\nat 500\n",
      "", "a 1, b 0" },
    { "unless moving is off", "eaco",
      "speed w v100 4.9 beside=w\n" PLACES
      "job a w\njob b w\nstart b 0\nat 100\nstart a 0\nat 500\n",
      "m", "a 0, b 0" },
    { "or no GPU is free that keeps its promise", "eaco",
      "speed w v100 4.9 beside=w\n" PLACES
      "job a w min=5\njob b w\nstart b 0\njob c w\nstart c 1\nat 100\nstart a 0\nat 500\n",
      "", "a 0, b 0, c 1" },

    { "who gains most from the fast GPUs gets them", "gavel",
      PLACES "job a frugal\njob b w\njob c w\n", "", "a 2, b 0, c 1" },
    { "sharing begins where GPUs run out", "gavel",
      PLACES "job a w types=v100\njob b w types=v100\njob c w types=v100\n", "", "a 0, b 1, c 1" },
    { "unless it is off", "gavel",
      PLACES "job a w types=v100\njob b w types=v100\njob c w types=v100\n", "s",
      "a 0, b 1, c capacity" },
    { "or two do less than one", "gavel",
      "speed w v100 4.9 beside=w\n" PLACES
      "job a w types=v100\njob b w types=v100\njob c w types=v100\n",
      "", "a 0, b 1, c capacity" },
    { "a running job moves to where it does more, after its lease", "gavel",
      PLACES "job a w\nstart a 2\nat 360\n", "", "a 0" },
    { "and not before", "gavel", PLACES "job a w\nstart a 2\nat 359\n", "", "a 2" },
    { "or when moving is off", "gavel", PLACES "job a w\nstart a 2\nat 360\n", "m", "a 2" },
    { "or where that gains less than the move loses", "gavel",
      "speed w k80 9.6\n" PLACES "job a w\nstart a 2\nat 360\n", "", "a 2" },
    { "two change places when that pays", "gavel",
      PLACES "job x w\nstart x 0\njob a frugal\nstart a 1\njob b w\nstart b 2\nat 400\n", "",
      "x 0, a 2, b 1" },
    { "a gang takes free GPUs first", "gavel", PLACES "job a w\njob b w gpus=2\n", "",
      "a 2, b 0 1" },
    { "and has them saved until they are enough", "gavel",
      PLACES "job x w exclusive=1\nstart x 0\njob a w gpus=2\njob b w types=v100\n", "",
      "x 0, a capacity, b capacity" },
    { "who has waited long gets the turn of one who ran", "gavel",
      PLACES "job x frugal types=k80 exclusive=1\njob a w types=k80 exclusive=1\nstart x 2\n"
             "at 36000\n",
      "", "x turn, a 2" },
    { "who has not waits", "gavel",
      PLACES "job x frugal types=k80 exclusive=1\nstart x 2\nat 36000\n"
             "job a w types=k80 exclusive=1\n",
      "", "x 2, a capacity" },

    { "where cost counts, the GPU that does most for it", "gavel-cost", PLACES "job a frugal\n", "",
      "a 2" },
    { "where it does not, the one that does most", "gavel", PLACES "job a frugal\n", "", "a 0" },
    { "the promise comes before the cost", "gavel-cost", PLACES "job a frugal min=9\n", "", "a 0" },
    { "one that is kept is not broken by who comes", "gavel-cost",
      PLACES "job a w types=v100 min=9\njob b w types=v100 min=9\njob c w types=v100\n", "",
      "a 0, b 1, c capacity" },
    { "who keeps no promise elsewhere gets the fast GPU", "gavel-cost",
      "node n1 v100\nnode n2 k80\npairs 0.5\njob a w min=3\njob b w min=9\n", "", "a 1, b 0" },
    { "a running job moves to where it costs less, after its lease", "gavel-cost",
      PLACES "job a frugal steps=1e6\nstart a 0\nat 360\n", "", "a 2" },
    { "and not before", "gavel-cost", PLACES "job a frugal steps=1e6\nstart a 0\nat 359\n", "",
      "a 0" },
};

/* ---- what all of them keep to ---- */

#define WHOLE "type whole=v100 share_max=1\nspeed w whole 10\nwatts w whole 200\npairs 0.9\n"
#define TWO "node n1 v100 v100 v100\nnode n2 v100 v100\nnode n3 v100\n"

static const struct text_row rules[] = {
    { "a gang over two nodes has as many on each, on those with fewest to spare",
      TWO "job a w gpus=4 nodes=2\n", "a 0 1 3 4" },
    { "and where one node has them all too",
      "node n1 v100 v100\nnode n2 v100\njob a w gpus=2 nodes=2\n", "a 0 2" },
    { "over three", TWO "job a w gpus=3 nodes=3\n", "a 0 3 5" },
    { "where too few nodes have as many it will never run", TWO "job a w gpus=6 nodes=2\n",
      "a gang size" },
    { "where they have but somebody is there it waits",
      "node n1 v100 v100\nnode n2 v100\njob x w exclusive=1\nstart x 2\njob a w gpus=2 nodes=2\n",
      "x 2, a capacity" },
    { "nobody shares a GPU of a type that nobody shares",
      WHOLE "node n1 whole\njob x w\nstart x 0\njob a w\n", "x 0, a capacity" },
    { "nobody comes where CPUs are used up",
      "node n1 v100 v100\nnode n2 v100\nroom n1 1 9\njob x w exclusive=1\nneeds x 1 0\n"
      "start x 0\njob a w\nneeds a 1 0\n",
      "x 0, a 2" },
    { "nor where memory is, and waits",
      "node n1 v100 v100\nroom n1 9 9\njob x w exclusive=1\nneeds x 0 5\nstart x 0\n"
      "job a w\nneeds a 0 5\n",
      "x 0, a capacity" },
    { "nor where the engine keeps it from", "node n1 v100\nnode n2 v100\njob a w\nbar a n1\n",
      "a 1" },
    { "who is kept from every node is told so",
      "node n1 v100\nnode n2 v100\nroom n2 1 9\njob a w\nbar a n1\nneeds a 2 0\n", "a engine" },
    { "a gang has CPUs for each of its GPUs",
      "node n1 v100 v100 v100\nnode n2 v100 v100\nroom n1 3 9\njob a w gpus=2 nodes=1\n"
      "needs a 2 0\n",
      "a 3 4" },
    { "and over two nodes of both",
      "node n1 v100 v100\nnode n2 v100 v100\nnode n3 v100 v100\nroom n2 1 9\n"
      "job a w gpus=2 nodes=2\nneeds a 2 0\n",
      "a 0 4" },
    { "what is awake comes first", "node n1 v100 v100\nnode n2 v100\nwake n1 60\njob a w\n",
      "a 2" },
    { "and what sleeps is woken where nothing else is left",
      "node n1 v100\nnode n2 v100\nwake n1 60\njob x w exclusive=1\nstart x 1\njob a w\n",
      "x 1, a 0" },
    { "a gang goes to the node that is awake",
      "node n1 v100 v100\nnode n2 v100 v100 v100\nwake n1 60\njob a w gpus=2\n", "a 2 3" },
    { "and over those that are",
      "node n1 v100\nnode n2 v100\nnode n3 v100\nwake n2 60\njob a w gpus=2 nodes=2\n", "a 0 2" },
};

/* Waking n1 takes 60 s at 40 W and a GPU-second's price of 50 W: 5,400 J. A step of 'w' takes 11 J
 * less there than on the k80, which is awake: 491 steps pay for it.
 */
#define ASLEEP "node n1 v100\nnode n2 k80\nwake n1 60\n"

static const struct text_row wakings[] = {
    { "a short job does not wake a node", ASLEEP "job a w steps=240\n", "a 1" },
    { "a long one does", ASLEEP "job a w steps=100000\n", "a 0" },
    { "a short one does when it may not go elsewhere", ASLEEP "job a w steps=240 types=v100\n",
      "a 0" },
    { "or when nothing else is left", ASLEEP "job x w exclusive=1\nstart x 1\njob a w steps=240\n",
      "x 1, a 0" },
    { "or when only that keeps its promise", ASLEEP "job a w steps=240 min=9\n", "a 0" },
    { "without a need to wake it would go there", "node n1 v100\nnode n2 k80\njob a w steps=240\n",
      "a 0" },
};

EACH(a_choice, cases)
{
    struct world w;
    struct plan p;
    char got[400];

    world_init(&w, CLUSTER);
    world_add(&w, cases[_i].given);
    world_look(&w);
    w.options.may_share = !strchr(cases[_i].off, 's');
    w.options.may_move = !strchr(cases[_i].off, 'm');
    if (strcmp(cases[_i].policy, "gavel-cost") == 0)
        w.options.delay_w = solve_defaults.delay_w;    // its promises are worth something by that
    world_solve(&w, cases[_i].policy, &p);
    must_pass(&w, &p, cases[_i].name);
    describe(&w, &p, got, sizeof got);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: %s", cases[_i].name, got);
    world_release(&w);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A set of GPUs is the same in any order. */
static void sort_gpus(struct world *w, struct plan *p)
{
    for (int j = 0; j < p->n_jobs; j++) {
        size_t n = (size_t)p->jobs[j].n_gpus;
        int *gpus = ARENA_ARRAY(&w->arena, int, n);
        for (size_t i = 0; i < n; i++)
            gpus[i] = p->jobs[j].gpus[i];
        qsort(gpus, n, sizeof *gpus, by_number);
        p->jobs[j].gpus = gpus;
    }
}

static void check_row(const struct text_row *row, const char *policy)
{
    struct world w;
    struct plan p;
    char got[400];

    world_init(&w, CLUSTER);
    world_add(&w, row->given);
    world_look(&w);
    world_solve(&w, policy, &p);
    must_pass(&w, &p, row->name);
    sort_gpus(&w, &p);
    describe(&w, &p, got, sizeof got);
    ck_assert_msg(strcmp(got, row->want) == 0, "%s, %s: %s", policy, row->name, got);
    world_release(&w);
}

EACH(all_policies_keep_to_it, rules)
{
    static const char *const policies[] = { "fifo-first",   "fifo-fastest", "fifo-random", "slurm",
                                            "fifo-promise", "pack",         "eaco",        "gavel",
                                            "gavel-cost",   "greedy",       "gogh" };

    for (size_t i = 0; i < N_ROWS(policies); i++)
        check_row(&rules[_i], policies[i]);
}

/* Those that weigh joules. */
EACH(waking_is_weighed, wakings)
{
    static const char *const policies[] = { "fifo-promise", "pack", "eaco", "greedy", "gogh" };

    for (size_t i = 0; i < N_ROWS(policies); i++)
        check_row(&wakings[_i], policies[i]);
}

/* ---- power limits ---- */

static const char *const baselines[] = { "fifo-first",   "fifo-fastest", "fifo-random", "slurm",
                                         "fifo-promise", "pack",         "eaco",        "gavel",
                                         "gavel-cost",   "greedy" };
enum { N_BASELINES = sizeof baselines / sizeof *baselines };

/* Joules for a second's work, or INFINITY where a limit breaks the promise. */
static double cost_at(const struct world *w, const struct plan_job *pj, int limit_w)
{
    int type = w->snapshot.gpus[pj->gpus[0]].type, workload = w->snapshot.jobs[0].workload;
    const struct gpu_type *t = &w->catalog.types[type];
    struct limited at = limits_apply(t, limit_w, estimate_watts(&w->est, type, &workload, NULL, 1));
    struct cell_estimate c = estimate_cell(&w->est, workload, type, -1);
    struct limit_bend b = estimate_bend(&w->est, workload, type);
    double mean = exp((double)(c.mean + c.sd * c.sd / 2)), need = w->snapshot.jobs[0].need;
    double doubt = hypot((double)c.sd, b.loss_sd * fabs(log(at.speed) - b.at));
    double free_doubt = hypot((double)c.sd, b.loss_sd * fabs(b.at));

    if (held_low((struct held){ mean, mean * free_doubt }) >= need &&
        held_low((struct held){ mean * at.speed, mean * at.speed * doubt }) < need)
        return INFINITY;
    return (at.watts - t->sleep_w + w->options.price_w + w->options.delay_w) / at.speed;
}

/* Every limit that is offered, and none, against the one that was chosen. */
static void check_limit(const struct world *w, const struct plan *p)
{
    double cost = cost_at(w, &p->jobs[0], p->jobs[0].limit_w);
    int offered[LIMITS_OFFERED];
    int n = limits_offer(&w->catalog.types[world_type(w, "v100")], offered);

    ck_assert_double_le(cost, cost_at(w, &p->jobs[0], 0));
    for (int k = 0; k < n; k++)
        ck_assert_double_le(cost, cost_at(w, &p->jobs[0], offered[k]));
}

TIMES(the_limit_is_the_cheapest_that_keeps_the_promise, N_BASELINES)
{
    bool is_seen[2] = { false, false };

    for (int i = 0; i <= 9; i++) {
        struct world w;
        struct plan p;
        char job[64];
        world_init(&w, CLUSTER "node n1 v100\n");
        snprintf(job, sizeof job, "job a w min=%g\n", 1.1 * i);
        world_add(&w, job);
        world_look(&w);
        w.options.may_limit = true;
        w.options.promise_w = 1e-9;    // what may be missed is another matter
        world_solve(&w, baselines[_i], &p);
        must_pass(&w, &p, baselines[_i]);
        ck_assert_int_eq(p.jobs[0].n_gpus, 1);
        check_limit(&w, &p);
        ck_assert(!p.jobs[0].is_short);
        is_seen[p.jobs[0].limit_w > 0] = true;
        world_release(&w);
    }
    ck_assert(is_seen[0] && is_seen[1]);
}

/* The dearer a job's time, the fewer are limited, whoever plans. */
TIMES(the_limit_goes_by_what_a_jobs_time_is_worth, N_BASELINES + 1)
{
    const char *policy = _i < N_BASELINES ? baselines[_i] : "gogh";
    double last = 0;

    for (double delay_w = 0; delay_w <= 20000; delay_w = 1.5 * delay_w + 50) {
        struct world w;
        struct plan p;
        world_init(&w, CLUSTER "node n1 v100\njob a w\n");
        w.options.may_limit = true;
        w.options.delay_w = delay_w;
        world_solve(&w, policy, &p);
        must_pass(&w, &p, policy);
        check_limit(&w, &p);
        int limit_w = p.jobs[0].limit_w;
        double kept_below_w = limit_w > 0 ? limit_w : (double)INFINITY;
        ck_assert_msg(kept_below_w >= last, "%s: %d W at %g", policy, limit_w, delay_w);
        last = kept_below_w;
        ck_assert(limit_w > 0 || delay_w > 0);
        world_release(&w);
    }
    ck_assert(isinf(last));
}

/* What gogh has of sleep and limits, everybody has. */
TEST(nobody_is_denied_sleep_or_limits)
{
    for (int i = 0; solver_at(i); i++) {
        ck_assert(solver_has_lever(solver_at(i), LEVER_SLEEP));
        ck_assert(solver_has_lever(solver_at(i), LEVER_LIMITS));
    }
}

TEST(a_limit_that_breaks_a_promise_is_lifted_and_a_better_one_is_set)
{
    for (int i = 0; i < N_BASELINES; i++) {
        struct world w;
        struct plan p;
        const int gpu = 0;
        world_init(&w, CLUSTER "node n1 v100\njob a w min=9.9\n");
        world_apply(&w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                         .job = world_job(&w, "a"),
                                         .gpus = &gpu,
                                         .n_gpus = 1,
                                         .limit_w = 105 });
        world_look(&w);
        world_solve(&w, baselines[i], &p);    // not allowed: it stays
        ck_assert_int_eq(p.jobs[0].limit_w, 105);
        must_pass(&w, &p, baselines[i]);
        w.options.may_limit = true;
        world_solve(&w, baselines[i], &p);
        ck_assert_int_eq(p.jobs[0].limit_w, 0);
        must_pass(&w, &p, baselines[i]);
        world_release(&w);
        world_init(&w, CLUSTER "node n1 v100\njob a w min=2\nstart a 0\n");
        w.options.may_limit = true;
        world_solve(&w, baselines[i], &p);
        ck_assert_int_gt(p.jobs[0].limit_w, 0);
        must_pass(&w, &p, baselines[i]);
        world_release(&w);
    }
}

/* ---- gavel's program ---- */

enum { N_CLASSES = 3, N_TYPES = 2 };

static void random_problem(struct arena *a, struct rng *r, struct problem *p)
{
    size_t cells = N_TYPES * N_CLASSES;

    *p = (struct problem){ .theta = rng_below(r, 4) ? 2 : 1,
                           .n_types = N_TYPES,
                           .n_kinds = N_CLASSES };
    p->types = ARENA_ARRAY(a, struct problem_type, N_TYPES);
    p->kinds = ARENA_ARRAY(a, struct problem_kind, N_CLASSES);
    p->speed = ARENA_ARRAY(a, float, cells *(N_CLASSES + 1));
    p->held = ARENA_ARRAY(a, float, cells *(N_CLASSES + 1));
    p->watts = ARENA_ARRAY(a, float, cells);
    for (int t = 0; t < N_TYPES; t++)
        p->types[t] = (struct problem_type){ .cap_w = 300, .mem_gib = 16, .n_limits = 1 };
    for (size_t i = 0; i < cells * (N_CLASSES + 1); i++)
        p->speed[i] = (float)exp(rng_between(r, -1, 1));
}

static void random_program(struct arena *a, struct rng *r, const struct problem *problem,
                           struct gavel_program *p)
{
    *p = (struct gavel_program){ .work = { .arena = a, .problem = problem },
                                 .n_classes = N_CLASSES };
    p->n_gpus = ARENA_ARRAY(a, int, N_TYPES);
    p->classes = ARENA_ARRAY(a, struct gavel_class, N_CLASSES);
    for (int t = 0; t < N_TYPES; t++)
        p->n_gpus[t] = 1 + (int)rng_below(r, 2);
    for (int k = 0; k < N_CLASSES; k++)
        p->classes[k] = (struct gavel_class){ .kind = k,
                                              .is_exclusive = rng_below(r, 5) == 0,
                                              .n_jobs = 1 + (int)rng_below(r, 2),
                                              .weight = rng_between(r, 1, 2) };
}

static bool may_be(const struct gavel_program *p, int a, int b)
{
    return b < 0 || (p->work.problem->theta > 1 && !p->classes[a].is_exclusive &&
                     !p->classes[b].is_exclusive);
}

/* The most that whole GPUs can do: every way to fill them, one after the other. */
static double brute_force(const struct gavel_program *p, int type, int n_left, int *jobs)
{
    if (type == N_TYPES)
        return 0;
    if (n_left == 0)
        return brute_force(p, type + 1, type + 1 < N_TYPES ? p->n_gpus[type + 1] : 0, jobs);
    double best = brute_force(p, type, n_left - 1, jobs);
    for (int a = 0; a < p->n_classes; a++)
        for (int b = -1; b < p->n_classes; b++) {
            jobs[a]--;
            if (b >= 0)
                jobs[b]--;
            if (jobs[a] >= 0 && (b < 0 || jobs[b] >= 0) && may_be(p, a, b))
                best =
                    fmax(best, gavel_value(p, type, a, b) + brute_force(p, type, n_left - 1, jobs));
            jobs[a]++;
            if (b >= 0)
                jobs[b]++;
        }
    return best;
}

/* Does it use nothing twice? Returns what it does. */
static double check_optimum(const struct gavel_program *p)
{
    double sum = 0, gpus[N_TYPES] = { 0 }, jobs[N_CLASSES] = { 0 };

    for (int i = 0; i < p->n_columns; i++) {
        const struct gavel_column *c = &p->columns[i];
        ck_assert_double_ge(c->n, -1e-9);
        sum += c->n * gavel_value(p, c->type, c->a, c->b);
        gpus[c->type] += c->n;
        jobs[c->a] += c->n;
        if (c->b >= 0)
            jobs[c->b] += c->n;
    }
    for (int t = 0; t < N_TYPES; t++)
        ck_assert_double_le(gpus[t], p->n_gpus[t] + 1e-9);
    for (int k = 0; k < N_CLASSES; k++)
        ck_assert_double_le(jobs[k], p->classes[k].n_jobs + 1e-9);
    return sum;
}

TEST(the_program_is_solved_to_its_optimum_and_no_whole_placement_does_more)
{
    struct rng r;
    int n_reached = 0;

    rng_init(&r, 7, "gavel");
    for (int i = 0; i < 200; i++) {
        struct arena a;
        struct problem problem;
        struct gavel_program p;
        int jobs[N_CLASSES];
        arena_init(&a);
        random_problem(&a, &r, &problem);
        random_program(&a, &r, &problem, &p);
        gavel_solve(&p);
        double total = check_optimum(&p);
        for (int k = 0; k < N_CLASSES; k++)
            jobs[k] = p.classes[k].n_jobs;
        double whole = brute_force(&p, 0, p.n_gpus[0], jobs);
        ck_assert_double_le(whole, total + 1e-6);
        n_reached += whole > total - 1e-6;
        arena_release(&a);
    }
    ck_assert_int_gt(n_reached, 100);    // most optima are whole
}

/* The most that whole GPUs do for a watt, by every way to fill them. */
static void most_for_a_watt(const struct gavel_program *p, int type, int n_left, int *jobs,
                            double done, double cost_w, double *most)
{
    if (type == N_TYPES) {
        *most = fmax(*most, done / cost_w);
        return;
    }
    if (n_left == 0) {
        most_for_a_watt(p, type + 1, type + 1 < N_TYPES ? p->n_gpus[type + 1] : 0, jobs, done,
                        cost_w, most);
        return;
    }
    most_for_a_watt(p, type, n_left - 1, jobs, done, cost_w, most);
    for (int a = 0; a < p->n_classes; a++)
        for (int b = -1; b < p->n_classes; b++) {
            const struct gavel_cell *c = gavel_cell_at(p, type, a, b);
            jobs[a]--;
            if (b >= 0)
                jobs[b]--;
            if (jobs[a] >= 0 && (b < 0 || jobs[b] >= 0) && may_be(p, a, b))
                most_for_a_watt(p, type, n_left - 1, jobs, done + c->done, cost_w + c->cost_w,
                                most);
            jobs[a]++;
            if (b >= 0)
                jobs[b]++;
        }
}

TEST(the_price_of_a_watt_is_what_the_optimum_does_for_one_and_no_whole_placement_does_more)
{
    struct rng r;
    int n_reached = 0;

    rng_init(&r, 7, "gavel-cost");
    for (int i = 0; i < 200; i++) {
        struct arena a;
        struct problem problem;
        struct gavel_program p;
        int jobs[N_CLASSES];
        double most = 0;
        arena_init(&a);
        random_problem(&a, &r, &problem);
        for (int k = 0; k < N_TYPES * N_CLASSES; k++)
            problem.watts[k] = (float)rng_between(&r, 50, 300);
        random_program(&a, &r, &problem, &p);
        p.minds_cost = true;
        p.time_w = rng_between(&r, 10, 500);
        gavel_solve(&p);
        for (int k = 0; k < N_CLASSES; k++)
            jobs[k] = p.classes[k].n_jobs;
        most_for_a_watt(&p, 0, p.n_gpus[0], jobs, 0, p.time_w, &most);
        ck_assert_double_le(most, p.watt_price * 1.02);
        n_reached += most >= p.watt_price * 0.98;
        arena_release(&a);
    }
    ck_assert_int_gt(n_reached, 100);
}

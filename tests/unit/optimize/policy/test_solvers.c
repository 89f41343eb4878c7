/* Gogh, greedy and first-come: thousands of small clusters, and what must hold on every one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "estimate/prior/limits.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/optimize/drawn.h"
#include "unit/optimize/planned.h"
#include "unit/suite.h"
#include "unit/support.h"

static const char *const policies[] = { "greedy", "fifo-fastest", "fifo-random", "fifo-first",
                                        "slurm",  "fifo-promise", "pack",        "eaco",
                                        "gavel",  "gavel-cost",   "gogh" };
enum { GREEDY, FIRST_FIFO, LAST_FIFO = 5, GAVEL = 8, GAVEL_COST, GOGH, N_POLICIES };

/* ---- reasons and choices, by hand ---- */

#define CLUSTER                                                                          \
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\ntype t4\n"   \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"                               \
    "workload huge params=1e6 bytes_per_sample=1e6 batch=1\n"                            \
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\n"                \
    "speed huge v100 10\nspeed huge k80 4\npairs 0.6\nunfit huge v100\nunfit huge k80\n" \
    "node n1 v100 v100\nnode n2 k80\n"

/* Beside each other w does a fifth, and x, as estimates may have it, more than alone. */
#define ODD_PAIR                                           \
    "workload x params=1e6 bytes_per_sample=1e6 batch=1\n" \
    "speed x v100 3\nspeed x v100 8 beside=w\nspeed w v100 2 beside=x\njob a w\n"
#define PAIRED "start a 0\nstart b 0\nat 600\n"

static const struct {
    const char *name, *policy, *given;
    double cap_w;
    const char *want;    // "a 0, b capacity, ..." in the snapshot's order; gogh: 0 and 1 are alike
} cases[] = {
    { "greedy takes the cheaper joules: 10/s at 200 W beat 4/s at 100 W", "greedy", "job a w\n", 0,
      "a 0" },
    { "two that cost less together than apart share", "greedy", "job a w\njob b w\n", 0,
      "a 0, b 0" },
    { "sharing that costs the neighbour more than it saves is not done", "greedy",
      "speed w v100 5 beside=w\njob a w\njob b w\n", 0, "a 0, b 1" },
    { "and a third finds the GPU full", "greedy", "job a w\njob b w\njob c w\n", 0,
      "a 0, b 0, c 1" },
    { "exclusive ones take a GPU each", "greedy", "job a w exclusive=1\njob b w exclusive=1\n", 0,
      "a 0, b 1" },
    { "a promise is worth more than its energy: exclusive ones go where they may", "greedy",
      "job a w types=k80\njob b w types=k80 exclusive=1\n", 0, "a 2, b capacity" },
    { "nobody's kept promise is broken for a newcomer", "greedy",
      "job a w min=9\njob b w min=9\njob c w min=3.5\nstart a 0\nstart b 1\nstart c 2\njob d w\n",
      0, "a 0, b 1, c 2, d capacity" },
    { "a type that is not here", "greedy", "job a w types=t4\n", 0, "a gpu type" },
    { "a job too large for every GPU", "greedy", "job a huge\n", 0, "a memory" },
    { "a gang larger than the cluster", "greedy", "job a w gpus=3\n", 0, "a gang size" },
    { "a gang that has to wait", "greedy", "job x w exclusive=1\nstart x 0\njob a w gpus=2\n", 0,
      "x 0, a capacity" },
    { "no watts left", "greedy", "job a w\n", 100, "a power cap" },
    { "watts for the small one only", "greedy", "job a w\n", 190, "a 2" },
    { "first come takes the fastest", "fifo-fastest", "job a w\njob b w\njob c w\njob d w\n", 0,
      "a 0, b 1, c 2, d capacity" },
    { "first come takes the first", "fifo-first", "job a w types=k80\njob b w\n", 0, "a 2, b 0" },
    { "who cannot start holds up those behind", "fifo-first",
      "job x w\nstart x 0\njob a w gpus=2\njob b w types=v100 steps=1e4\n", 0,
      "x 0, a capacity, b turn" },
    { "who fits no GPU here does not", "fifo-first", "job a huge\njob b w\n", 0, "a memory, b 0" },
    { "nor does a gang that could never start", "fifo-first", "job a w gpus=4\njob b w\n", 0,
      "a gang size, b 0" },
    { "no watts hold up the queue", "fifo-fastest", "job a w\njob b w types=k80\n", 130,
      "a power cap, b turn" },
    { "a higher priority goes first", "fifo-fastest",
      "job a w types=k80\njob b w types=k80 prio=1\n", 0, "b 2, a capacity" },
    { "nothing starts on a drained node", "greedy", "drain n1\njob a w\njob b w exclusive=1\n", 0,
      "a 2, b capacity" },
    { "a gang prefers one node", "greedy", "node n3 v100 v100 v100\njob a w gpus=3\n", 0,
      "a 3 4 5" },
    { "eaco parts a pair of which one is slowed too much", "eaco", ODD_PAIR "job b x\n" PAIRED, 0,
      "a 1, b 0" },
    { "but not where that breaks the other's promise", "eaco", ODD_PAIR "job b x min=5\n" PAIRED, 0,
      "a 0, b 0" },
    { "gogh takes the cheaper joules", "gogh", "job a w\n", 0, "a 0" },
    { "gogh lets two share that cost less together", "gogh", "job a w\njob b w\n", 0, "a 0, b 0" },
    { "and not where that costs more", "gogh", "speed w v100 5 beside=w\njob a w\njob b w\n", 0,
      "a 0, b 1" },
    { "nor where one of them minds", "gogh", "job a w exclusive=1\njob b w types=k80\n", 0,
      "a 0, b 2" },
    { "gogh makes room for who can run nowhere else", "gogh",
      "job a w min=2\nstart a 2\nat 600\njob b w types=k80 exclusive=1\n", 0, "a 0, b 2" },
    { "but not by stopping somebody", "gogh",
      "job a w types=k80\nstart a 2\nat 6000\njob b w types=k80 exclusive=1\n", 0,
      "a 2, b capacity" },
    { "gogh: a type that is not here", "gogh", "job a w types=t4\n", 0, "a gpu type" },
    { "gogh: a job too large for every GPU", "gogh", "job a huge\n", 0, "a memory" },
    { "gogh: a gang larger than the cluster", "gogh", "job a w gpus=3\n", 0, "a gang size" },
    { "gogh: no watts left", "gogh", "job a w\n", 100, "a power cap" },
    { "gogh: watts for the small one only", "gogh", "job a w\n", 190, "a 2" },
    { "gogh: nothing starts on a drained node", "gogh",
      "drain n1\njob a w prio=1\njob b w exclusive=1\n", 0, "a 2, b capacity" },
    { "gogh: a gang prefers one node", "gogh", "node n3 v100 v100 v100\njob a w gpus=3\n", 0,
      "a 3 4 5" },
};

/* Of GPUs 0 and 1, which are alike, the one that is named first is 0. */
static void describe_alike(const struct world *w, const struct plan *p, char *out, size_t size)
{
    describe(w, p, out, size);
    char *zero = strstr(out, " 0"), *one = strstr(out, " 1");
    if (one && (!zero || one < zero)) {
        one[1] = '0';
        if (zero)
            zero[1] = '1';
    }
}

EACH(a_place_or_a_reason, cases)
{
    struct world w;
    struct plan p;
    char got[400];
    const char *given = cases[_i].given;

    world_init(&w, CLUSTER);
    world_add(&w, given);
    w.options.power_cap_w = cases[_i].cap_w;
    world_look(&w);
    world_solve(&w, cases[_i].policy, &p);
    must_pass(&w, &p, cases[_i].name);
    bool is_gogh = strcmp(cases[_i].policy, policies[GOGH]) == 0;
    (is_gogh ? describe_alike : describe)(&w, &p, got, sizeof got);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: %s", cases[_i].name, got);
    world_release(&w);
}

TEST(a_running_job_moves_when_that_pays_and_not_before_it_has_settled)
{
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER "job a w steps=1e6\nstart a 2\nat 599\n");
    world_solve(&w, "greedy", &p);
    ck_assert_int_eq(p.jobs[0].gpus[0], 2);
    world_add(&w, "at 600\n");
    world_look(&w);
    world_solve(&w, "greedy", &p);
    ck_assert_int_eq(w.snapshot.gpus[p.jobs[0].gpus[0]].type, world_type(&w, "v100"));
    must_pass(&w, &p, "move");
    w.options.may_move = false;
    world_solve(&w, "greedy", &p);
    ck_assert_int_eq(p.jobs[0].gpus[0], 2);
    world_release(&w);
    world_init(&w, CLUSTER "speed w k80 5\njob a w\nstart a 2\nat 1000\n");    // 20 W: not worth it
    world_solve(&w, "greedy", &p);
    ck_assert_int_eq(p.jobs[0].gpus[0], 2);
    world_release(&w);
}

/* ---- limits that are there already ---- */

static void start_limited(struct world *w, const char *job, int gpu, int limit_w)
{
    world_apply(w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                    .time_s = w->now_s,
                                    .job = world_job(w, job),
                                    .gpus = &gpu,
                                    .n_gpus = 1,
                                    .limit_w = limit_w });
}

/* Watts of w on a v100: 200; idle 40, 40 and 30 W; under 105 W it draws at most that. */
static const struct {
    const char *name;
    double sd, cap_w;
    bool is_limited;
} lifts[] = {
    { "who is known may be limited", 0.05, 400, true },
    { "who is not is not any more", 0.3, 0, false },
    { "also under a cap that leaves the watts", 0.3, 280, false },
    { "and not under one that does not", 0.3, 250, true },
};

EACH(limits_are_lifted_as_far_as_the_cap_allows, lifts)
{
    struct world w;
    struct plan p;
    struct told_cell est = { .ln_speed = log(10), .ln_watts = log(200), .watts_sd = lifts[_i].sd };

    world_init(&w, CLUSTER "job a w types=v100\n");
    estimate_tell(&w.est, world_workload(&w, "w"), world_type(&w, "v100"), -1, &est);
    start_limited(&w, "a", 0, 105);
    w.options.may_limit = true;
    w.options.power_cap_w = lifts[_i].cap_w;
    world_look(&w);
    world_solve(&w, "gogh", &p);
    must_pass(&w, &p, lifts[_i].name);
    ck_assert_msg((p.jobs[0].limit_w > 0) == lifts[_i].is_limited, "%s: %d W", lifts[_i].name,
                  p.jobs[0].limit_w);
    world_release(&w);
}

/* ---- promises that are not kept for long ---- */

TEST(a_long_server_goes_where_its_rate_is_held)
{
    struct world w;
    struct plan p;

    /* 100 days: the energy of the v100, 60 W more for all of them, is far more than what a promise
     * that is broken for an hour costs.
     */
    world_init(&w, CLUSTER "job a w rate=6 min=6 duration=8.64e6\n");
    world_solve(&w, "greedy", &p);
    must_pass(&w, &p, "greedy");
    ck_assert_int_lt(p.jobs[0].gpus[0], 2);
    ck_assert(!p.jobs[0].is_short);
    world_release(&w);
}

/* ---- names ---- */

TEST(levers_are_found_by_name_and_take_one_thing_each)
{
    struct solve_options all = solve_defaults;

    all.may_limit = true;
    for (int l = 0; l < LEVERS; l++) {
        struct solve_options o = all;
        ck_assert_int_eq(lever_by_name(lever_name((enum lever)l)), l);
        lever_take(&o, (enum lever)l);
        ck_assert_int_eq(o.may_choose, l != LEVER_TYPES);
        ck_assert_int_eq(o.may_share, l != LEVER_SHARING);
        ck_assert_int_eq(o.may_move, l != LEVER_MOVING);
        ck_assert_int_eq(o.may_sleep, l != LEVER_SLEEP);
        ck_assert_int_eq(o.may_limit, l != LEVER_LIMITS);
        ck_assert_int_eq(o.objective == OBJECTIVE_WATTS, l == LEVER_JOULES);
    }
    ck_assert_int_eq(lever_by_name("luck"), -1);
}

/* Whoever started them there: on a type that is not allowed, and as a gang over two types. */
TIMES(who_runs_where_it_should_not_stops_nobodys_plan, N_POLICIES)
{
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER "node n3 v100\njob picky w types=k80\njob mixed w gpus=2\n"
                           "start picky 0\nstart mixed 1,2\njob new w\nat 900\n");
    world_look(&w);
    world_solve(&w, policies[_i], &p);
    must_pass(&w, &p, policies[_i]);
    ck_assert_int_gt(p.jobs[2].n_gpus, 0);
    world_release(&w);
}

TEST(solvers_are_found_by_name)
{
    struct solver s;
    struct err e = { 0 };

    for (int i = 0; i < N_POLICIES; i++) {
        ck_assert_int_eq(solver_by_name(policies[i], 42, &s, &e), 0);
        ck_assert_str_eq(s.name, policies[i]);
        ck_assert_uint_eq(s.seed, 42);
    }
    ck_assert_int_eq(solver_by_name("best", 1, &s, &e), -ENOENT);
    for (int i = 0; i < N_POLICIES; i++)
        ck_assert_ptr_nonnull(strstr(e.text, policies[i]));
}

/* ---- random worlds ---- */

enum { N_TYPES = 3, N_WORKLOADS = 4 };

static void random_estimates(struct rng *r, struct world *w, int n)
{
    for (int k = 0; k < n; k++) {
        int i = (int)rng_below(r, N_WORKLOADS), t = (int)rng_below(r, N_TYPES);
        struct told_cell est = { .ln_speed = rng_between(r, -1, 3),
                                 .sd = rng_between(r, 0, 0.6),
                                 .ln_watts = rng_between(r, 4, 5.4) };
        estimate_tell(&w->est, i, t, (int)rng_below(r, N_WORKLOADS + 1) - 1, &est);
    }
}

/* How some of them differ from the law of limits, and whether their watts are known so well that
 * limits are allowed.
 */
static void random_bends(struct rng *r, struct world *w)
{
    for (int i = 0; i < N_WORKLOADS * N_TYPES; i++) {
        const struct told_cell *was = estimate_told(&w->est, i % N_WORKLOADS, i / N_WORKLOADS, -1);
        if (!was || rng_below(r, 2))
            continue;
        struct told_cell est = *was;
        est.watts_sd = rng_below(r, 3) ? 0.05 : 0.3;
        est.bend.loss = exp(rng_between(r, -0.3, 0.3));
        est.bend.draw = exp(rng_between(r, -0.1, 0.1));
        est.bend.loss_sd = 0.2;
        est.bend.at = rng_between(r, -0.5, 0);
        estimate_tell(&w->est, i % N_WORKLOADS, i / N_WORKLOADS, -1, &est);
    }
}

static void random_catalog(struct rng *r, struct world *w)
{
    static const char *const types[N_TYPES] = { "type v100\n", "type k80\n", "type a100\n" };
    char line[200];

    for (int t = 0; t < N_TYPES; t++)
        world_add(w, types[t]);
    for (int i = 0; i < N_WORKLOADS; i++) {
        snprintf(line, sizeof line, "workload w%d params=%g bytes_per_sample=%g batch=8\n", i,
                 exp(rng_between(r, log(1e6), log(2e9))), exp(rng_between(r, log(1e6), log(1e9))));
        world_add(w, line);
    }
    random_estimates(r, w, 20);
}

static void random_job(struct rng *r, struct world *w, int i)
{
    char name[16];

    snprintf(name, sizeof name, "j%d", i);
    struct job_spec s = spec_of(name, (int)rng_below(r, N_WORKLOADS));
    s.steps = exp(rng_between(r, 2, 12));
    s.min_throughput = rng_below(r, 2) ? exp(rng_between(r, -1, 3)) : 0;
    s.deadline_s = rng_below(r, 3) ? (double)NAN : exp(rng_between(r, 7, 12));
    s.n_gpus = rng_below(r, 4) ? 1 : 1 + (int)rng_below(r, 4);
    s.max_gpus = s.n_gpus + (int)rng_below(r, 3) * (int)rng_below(r, 2);
    s.priority = (int)rng_below(r, 3);
    s.is_exclusive = rng_below(r, 5) == 0;
    s.n_nodes = (int)rng_below(r, 2);
    if (s.n_gpus % 2 == 0 && rng_below(r, 3) == 0) {
        s.n_nodes = 2;
        s.max_gpus = s.n_gpus;
    }
    s.allowed_types = rng_below(r, 3) ? 0 : 1 + rng_below(r, 7);
    draw_submission(r, w, &s, 4);
}

/* Do what a plan says, so that the next snapshot has something running. */
static void carry_out(struct world *w, const struct plan *p)
{
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < p->n_jobs; j++) {
            const struct snapshot_job *sj = &w->snapshot.jobs[j];
            if (pass == 0 && sj->is_running)
                world_apply(w, &(struct event){ .kind = EVENT_JOB_STOPPED, .job = sj->id });
            else if (pass == 1 && p->jobs[j].n_gpus)
                world_apply(w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                                .time_s = w->now_s,
                                                .job = sj->id,
                                                .gpus = p->jobs[j].gpus,
                                                .n_gpus = p->jobs[j].n_gpus,
                                                .limit_w = p->jobs[j].limit_w });
        }
}

/* Nodes that sleep, and a type that nobody shares (any more). */
static void random_rest(struct rng *r, struct world *w)
{
    const struct state *s = &w->ledger.state;

    for (int g = 0; g < s->n_gpus; g++)
        w->wake_s[g] = g > 0 && s->gpus[g].node == s->gpus[g - 1].node ? w->wake_s[g - 1]
                       : rng_below(r, 3) == 0                          ? rng_between(r, 1, 600)
                                                                       : 0;
    w->catalog.types[rng_below(r, N_TYPES)].share_max = rng_below(r, 3) == 0;
}

static void random_world(struct rng *r, struct world *w)
{
    struct plan p;

    world_init(w, "");
    random_catalog(r, w);
    random_bends(r, w);
    w->theta = 1 + (int)rng_below(r, 3);
    draw_nodes(r, w, 3);
    int n_before = (int)rng_below(r, 6), n_new = (int)rng_below(r, 6);
    for (int i = 0; i < n_before; i++)
        random_job(r, w, i);
    world_look(w);
    w->options.may_limit = rng_below(r, 2);
    world_solve(w, policies[rng_below(r, N_POLICIES)], &p);
    carry_out(w, &p);
    w->now_s = rng_below(r, 2) ? 1234.5 : 10;
    random_estimates(r, w, (int)rng_below(r, 3));    // something was learned meanwhile
    random_bends(r, w);
    for (int i = 0; i < n_new; i++)
        random_job(r, w, 100 + i);
    if (rng_below(r, 4) == 0)
        world_add(w, rng_below(r, 2) ? "drain n0\n" : "down n0\n");
    w->options.power_cap_w = rng_below(r, 3) ? 0 : rng_between(r, 50, 1500);
    w->options.may_share = rng_below(r, 4) > 0;
    w->options.may_move = rng_below(r, 4) > 0;
    w->options.may_limit = rng_below(r, 2);
    random_rest(r, w);
    world_look(w);
}

/* As ck_assert_msg; but Check keeps a note of each of those, and there are millions here. */
#define MUST(condition, ...)           \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

static bool is_same_job(const struct plan_job *x, const struct plan_job *y)
{
    return x->n_gpus == y->n_gpus && x->reason == y->reason && x->limit_w == y->limit_w &&
           memcmp(&x->speed, &y->speed, sizeof x->speed) == 0 &&
           memcmp(&x->low, &y->low, sizeof x->low) == 0 &&
           (x->n_gpus == 0 || memcmp(x->gpus, y->gpus, (size_t)x->n_gpus * sizeof *x->gpus) == 0);
}

static void same_plan(const struct plan *a, const struct plan *b)
{
    MUST(a->n_jobs == b->n_jobs, "%d jobs, then %d", a->n_jobs, b->n_jobs);
    MUST(memcmp(&a->watts, &b->watts, sizeof a->watts) == 0, "%.17g W, then %.17g", a->watts,
         b->watts);
    for (int j = 0; j < a->n_jobs; j++)
        MUST(is_same_job(&a->jobs[j], &b->jobs[j]), "%s: job %d is planned otherwise", a->made_by,
             j);
}

static void check_nobody_is_stopped(const struct world *w, const struct plan *p)
{
    bool may_stop = strcmp(p->made_by, policies[GAVEL]) == 0 ||    // in turns
                    strcmp(p->made_by, policies[GAVEL_COST]) == 0;

    for (int j = 0; j < w->snapshot.n_running; j++)
        MUST(p->jobs[j].n_gpus > 0 || may_stop, "%s was stopped by %s",
             w->snapshot.jobs[j].spec->name, p->made_by);
}

/* By the problem's own rule: of three and more memory has to add up, and then of one too. */
static bool fits_alone(const struct world *w, int job, int type)
{
    const struct problem *p = &w->asked.problem;
    struct yield y;

    for (int t = 0; t < p->n_types; t++)
        if (w->asked.type_of[t] == type)
            return problem_yield(p, t, 0, &p->jobs[job].kind, 1, &y);
    return false;
}

/* The reason that follows from the cluster alone, if there is one. */
static enum wait_reason reason_of(const struct world *w, int job)
{
    const struct snapshot *s = &w->snapshot;
    const struct job_spec *spec = s->jobs[job].spec;
    enum wait_reason worst = WAIT_TYPE;

    for (int t = 0; t < N_TYPES; t++) {
        int on_node[8] = { 0 }, all = 0;
        for (int g = 0; g < s->n_gpus; g++)
            if (s->gpus[g].type == t) {
                all++;
                on_node[s->gpus[g].node]++;
            }
        if (!job_allows(spec, t) || all == 0)
            continue;
        int n_with = 0;    // nodes that have a gang's part
        for (int n = 0; n < 8 && spec->n_nodes > 0; n++)
            n_with += on_node[n] >= spec->n_gpus / spec->n_nodes;
        if (all < spec->n_gpus || n_with < spec->n_nodes) {
            worst = worst == WAIT_TYPE ? WAIT_GANG : worst;
            continue;
        }
        if (fits_alone(w, job, t))
            return WAIT_NOT;
        worst = WAIT_MEMORY;
    }
    return worst;
}

static void check_reasons(const struct world *w, const struct plan *p)
{
    for (int j = w->snapshot.n_running; j < p->n_jobs; j++) {
        enum wait_reason got = p->jobs[j].reason, must = reason_of(w, j);
        if (p->jobs[j].n_gpus || got == WAIT_TURN)
            continue;
        if (must != WAIT_NOT)
            MUST(got == must, "%s waits for %s, not %s", w->snapshot.jobs[j].spec->name,
                 wait_reason_name(got), wait_reason_name(must));
        else
            MUST(got == WAIT_CAPACITY || (got == WAIT_POWER && w->options.power_cap_w > 0) ||
                     (got == WAIT_PROMISE && w->snapshot.jobs[j].need > 0),
                 "%s waits for %s", w->snapshot.jobs[j].spec->name, wait_reason_name(got));
    }
}

TIMES(every_plan_passes_is_repeatable_and_fair, suite_size(20, 200))
{
    struct rng r;

    rng_init(&r, (uint64_t)_i, "solvers");
    for (int i = 0; i < 20; i++) {
        struct world w;
        random_world(&r, &w);
        for (int k = 0; k < N_POLICIES; k++) {
            struct plan p, again;
            world_solve(&w, policies[k], &p);
            must_pass(&w, &p, policies[k]);
            check_nobody_is_stopped(&w, &p);
            check_reasons(&w, &p);
            world_solve(&w, policies[k], &again);
            same_plan(&p, &again);
            if (k >= FIRST_FIFO && k <= LAST_FIFO)
                for (int g = 0; g < w.snapshot.n_gpus; g++) {    // first come never shares
                    int n_new = 0;
                    for (int j = w.snapshot.n_running; j < p.n_jobs; j++)
                        for (int q = 0; q < p.jobs[j].n_gpus; q++)
                            n_new += p.jobs[j].gpus[q] == g;
                    MUST(n_new == 0 || (n_new == 1 && w.snapshot.gpus[g].n_jobs == 0),
                         "GPU %d is shared", g);
                }
        }
        world_release(&w);
    }
}

/* ---- problems of their own ---- */

static int solve_problem(const char *name, struct arena *a, const struct problem *p,
                         struct plan *out, struct err *e)
{
    struct solver solver;
    int rc = solver_by_name(name, 1, &solver, e);

    if (rc == 0)
        rc = solver.solve(&solver, a, p, out, e);
    return rc < 0 ? rc : plan_check(a, p, out, e);
}

/* The answer that leaves everything as it is. */
static void answer_now(struct arena *a, const struct problem *p, struct plan *out)
{
    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *pj = &p->jobs[j];
        out->jobs[j] = (struct plan_job){ .n_gpus = pj->n_present, .gpus = pj->present };
        for (int i = 0; i < pj->n_present; i++)
            out->limit[pj->present[i]] = (unsigned char)pj->present_limit;
    }
    plan_price(a, p, out);
}

static bool is_where_it_was(const struct problem_job *pj, const struct plan_job *x)
{
    return x->n_gpus == pj->n_present &&
           memcmp(x->gpus, pj->present, (size_t)x->n_gpus * sizeof *x->gpus) == 0;
}

/* A job for one GPU that kept its promise where it is, keeps it. */
static void check_promises(const struct problem *p, const struct plan *now, const struct plan *x,
                           const char *policy, int seed)
{
    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *pj = &p->jobs[j];
        bool was_kept = pj->name && pj->n_present == 1 && now->jobs[j].low >= pj->need;
        if (was_kept && is_where_it_was(pj, &x->jobs[j]))
            MUST(x->jobs[j].low >= pj->need * (1 - 1e-9), "seed %d: %s kept its promise until %s",
                 seed, pj->name, policy);
    }
}

TIMES(every_answer_passes_and_breaks_no_promise, suite_size(20, 100))
{
    for (uint64_t seed = 1 + 10 * (uint64_t)_i; seed <= 10 + 10 * (uint64_t)_i; seed++) {
        struct arena a;
        struct problem p;
        struct plan now;
        arena_init(&a);
        tiny_make(&a, seed, 8, 6, &p);
        if (seed % 3 == 0)
            tiny_rules(&a, seed, &p);
        p.theta += p.theta == 3 && seed % 2;    // tiny ones have 3 at most
        for (int j = 0; j < p.n_jobs; j++)
            p.jobs[j].since_s = (double)(seed % 3) * 400;
        answer_now(&a, &p, &now);
        for (int k = 0; k < N_POLICIES; k++) {
            struct plan x;
            struct err e = { 0 };
            MUST(solve_problem(policies[k], &a, &p, &x, &e) == 0, "seed %d, %s: %s", (int)seed,
                 policies[k], e.text);
            if (k < GAVEL)
                check_promises(&p, &now, &x, policies[k], (int)seed);
        }
        arena_release(&a);
    }
}

/* Greedy decides job by job, so it need not be best. */
TEST(greedy_is_never_better_than_all_possibilities_and_seldom_much_worse)
{
    const int n_all = suite_size(100, 300);
    int n = 0, n_best = 0;

    for (uint64_t seed = 1; seed <= (uint64_t)n_all; seed++) {
        struct arena a;
        struct problem p;
        struct plan got, best;
        struct err e = { 0 };
        arena_init(&a);
        tiny_make(&a, seed, 4, 4, &p);
        MUST(solve_problem("greedy", &a, &p, &got, &e) == 0, "seed %d: %s", (int)seed, e.text);
        if (brute_solve(&a, &p, 200000, &best)) {
            double hair_w = 1e-6 * (1 + fabs(best.cost_w));
            MUST(got.cost_w >= best.cost_w - hair_w, "seed %d: greedy %g, all possibilities %g",
                 (int)seed, got.cost_w, best.cost_w);
            n++;
            n_best += got.cost_w <= best.cost_w + hair_w;
        }
        arena_release(&a);
    }
    printf("greedy: the best in %d of %d\n", n_best, n);
    ck_assert_int_gt(3 * n, 2 * n_all);
    ck_assert_int_gt(n_best, n / 4);
}

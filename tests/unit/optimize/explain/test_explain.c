/* Why here and not there: every cost is what pricing the plan with the job there says, every verdict
 * is the judge's, and nothing that costs less goes without a reason.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "optimize/explain/explain.h"
#include "unit/suite.h"
#include "unit/optimize/drawn.h"
#include "unit/support.h"

/* As ck_assert_msg; but Check keeps a note of each of those, and there are millions here. */
#define MUST(condition, ...)           \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* ---- by hand ---- */

/* By the step and with GPU-seconds at their price, 'w' costs 24 J on a v100 and 35 J on the k80;
 * beside each other two do 0.6 of that each.
 */
#define CLUSTER                                                               \
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\n" \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"                    \
    "workload huge params=1e6 bytes_per_sample=1e6 batch=1\n"                 \
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\n"     \
    "speed huge v100 10\nwatts huge v100 200\nspeed huge k80 4\n"             \
    "pairs 0.6\nunfit huge k80\nunfit huge v100 beside=w\nunfit w v100 beside=huge\n"

#define PLACES "node n1 v100 v100\nnode n2 k80\n"

static const struct {
    const char *name, *policy, *given;
    const char *off;    // levers: s sharing, m moving
    double cap_w;
    const char *want;    // of the job called 'a'
} cases[] = {
    { "the cheapest is chosen, and the other costs more", "greedy", PLACES "job a w\n", "", 0,
      "v100 x2 chosen, k80 x1 costs more" },
    { "a node's CPUs", "greedy",
      PLACES "job x w\nneeds x 2 0\nstart x 0\njob a w\nneeds a 2 0\nroom n1 3 9\n", "", 0,
      "k80 x1 chosen, v100+x x1 engine: node CPUs, v100 x0 engine: node CPUs" },
    { "a node's memory", "greedy",
      PLACES "job x w exclusive=1\nneeds x 0 5\nstart x 0\njob a w\nneeds a 0 5\nroom n1 9 9\n", "",
      0, "k80 x1 chosen, v100 x0 engine: node memory, v100+x x1 not shared" },
    { "a feature that a node has not", "greedy", PLACES "job a w\nbar a n2\n", "", 0,
      "v100 x2 chosen, k80 x0 engine: feature" },
    { "what it has it keeps", "greedy", PLACES "job a w\nneeds a 2 0\nroom n1 1 0\nstart a 0\n", "",
      0, "v100 x1 chosen, k80 x1 move costs more" },
    { "its promise", "greedy", PLACES "job a w min=9\n", "", 0,
      "v100 x2 chosen, k80 x1 breaks its promise" },
    { "memory, alone and beside", "greedy", PLACES "job x w\nstart x 0\njob a huge\n", "", 0,
      "v100 x1 chosen, v100+x x1 does not fit, k80 x1 does not fit" },
    { "the neighbour's promise", "greedy", PLACES "job x w min=9\nstart x 0\njob a w\n", "", 0,
      "v100 x1 chosen, k80 x1 costs more, v100+x x1 a neighbour loses more" },
    { "its own beside somebody", "greedy", PLACES "job x w\nstart x 0\njob a w min=9\n", "", 0,
      "v100 x1 chosen, v100+x x1 breaks its promise, k80 x1 breaks its promise" },
    { "equal neighbours are one candidate", "fifo-fastest",
      PLACES "job x w\nstart x 0\njob y w\nstart y 1\njob a w\n", "", 0,
      "k80 x1 chosen, v100+x x2 passed over, v100 x0 taken" },
    { "of which the one is shown that asks for less", "fifo-fastest",
      PLACES "job x w min=9\nstart x 0\njob y w\nstart y 1\njob a w\n", "", 0,
      "k80 x1 chosen, v100+y x2 passed over, v100 x0 taken" },
    { "nobody shares when sharing is off", "greedy", PLACES "job x w\nstart x 0\njob a w\n", "s", 0,
      "v100 x1 chosen, k80 x1 costs more" },
    { "a resident that shares with nobody", "greedy",
      PLACES "job x w exclusive=1\nstart x 0\njob a w\n", "", 0,
      "v100 x1 chosen, k80 x1 costs more, v100+x x1 not shared" },
    { "a job that shares with nobody", "greedy", PLACES "job x w\nstart x 0\njob a w exclusive=1\n",
      "", 0, "v100 x1 chosen, k80 x1 costs more, v100+x x1 not shared" },
    { "nor does a gang", "greedy", PLACES "job x w gpus=2\nstart x 0,1\njob a w\n", "", 0,
      "k80 x1 chosen, v100 x0 taken, v100+x x2 not shared" },
    { "types", "greedy", PLACES "job a w types=k80\n", "", 0,
      "k80 x1 chosen, v100 x2 not allowed" },
    { "gang sizes", "greedy", PLACES "job a w gpus=2\n", "", 0,
      "2 v100 x1 chosen, 2 k80 x0 not allowed" },
    { "one node", "greedy", "node n1 v100\nnode n2 v100\njob a w gpus=2 one_node=1\n", "", 0,
      "2 v100 x0 not allowed" },
    { "several nodes", "greedy",
      "node n1 v100 v100\nnode n2 v100\nnode n3 v100\nnode n4 k80\njob a w gpus=2 nodes=2\n", "", 0,
      "2 v100 x1 chosen, 2 k80 x0 not allowed" },
    { "or too few of them", "greedy", PLACES "job a w gpus=2 nodes=2\n", "", 0,
      "2 k80 x0 not allowed, 2 v100 x0 not allowed" },
    { "or with too little on each", "greedy",
      "node n1 v100 v100\nnode n2 v100\nnode n3 v100\njob a w gpus=4 nodes=2\n", "", 0,
      "4 v100 x0 not allowed" },
    { "nobody beside who is on a type that nobody shares", "greedy",
      "type whole=v100 share_max=1\nspeed w whole 10\nwatts w whole 200\nnode n1 whole whole\n"
      "job x w\nstart x 0\njob a w\n",
      "", 0, "whole x1 chosen" },
    { "a node away", "greedy", PLACES "drain n1\njob a w\n", "", 0,
      "k80 x1 chosen, v100 x0 node away" },
    { "a running job that would be better off but for the move", "greedy",
      PLACES "speed w k80 5\njob a w steps=240\nstart a 2\nat 600\n", "", 0,
      "k80 x1 chosen, v100 x2 move costs more" },
    { "and where moving is off", "greedy", PLACES "job a w steps=100000\nstart a 2\nat 600\n", "m",
      0, "k80 x1 chosen, v100 x2 not moved now" },
    { "and one that moves", "greedy", PLACES "job a w steps=100000\nstart a 2\nat 600\n", "", 0,
      "v100 x2 chosen, k80 x1 costs more" },
    { "no watts left", "greedy", PLACES "job a w\n", "", 190, "k80 x1 chosen, v100 x2 power cap" },
    { "a job that waits for its turn", "fifo-first",
      PLACES "job x w\nstart x 0\njob y w gpus=2 prio=1\njob a w types=v100 steps=1e4\n", "s", 0,
      "v100 x1 passed over, k80 x1 not allowed" },
    { "as many GPUs as it may have", "greedy", PLACES "job a w max=2\n", "", 0,
      "v100 x2 chosen, k80 x1 costs more, 2 v100 x1 costs more, 2 k80 x0 not allowed" },
};

/* "v100+x x2 costs more, ...": type, neighbour, places, verdict, in their order. */
static void describe(const struct world *w, const struct explanation *x, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < x->n_candidates; i++) {
        const struct candidate *c = &x->candidates[i];
        at += (size_t)snprintf(out + at, size - at, i ? ", " : "");
        if (c->n_gpus > 1)
            at += (size_t)snprintf(out + at, size - at, "%d ", c->n_gpus);
        at += (size_t)snprintf(out + at, size - at, "%s", w->asked.problem.types[c->type].name);
        if (c->neighbour >= 0)
            at += (size_t)snprintf(out + at, size - at, "+%s",
                                   w->snapshot.jobs[c->neighbour].spec->name);
        at += (size_t)snprintf(out + at, size - at, " x%d %s", c->n_places,
                               candidate_verdict_name(c->verdict));
        if (c->verdict == CANDIDATE_ENGINE)
            at += (size_t)snprintf(out + at, size - at, ": %s", engine_rule_name(c->rule));
    }
}

static int snapshot_job(const struct world *w, const char *name)
{
    for (int j = 0; j < w->snapshot.n_jobs; j++)
        if (strcmp(w->snapshot.jobs[j].spec->name, name) == 0)
            return j;
    ck_abort_msg("no job %s in the snapshot", name);
}

static void explain(struct world *w, const struct plan *p, const char *name,
                    struct explanation *out)
{
    explain_job(&w->arena, &w->asked, p, snapshot_job(w, name), out);
}

EACH(a_verdict, cases)
{
    struct explanation x;
    struct world w;
    struct plan p;
    char got[600];

    world_init(&w, CLUSTER);
    world_add(&w, cases[_i].given);
    world_look(&w);
    w.options.may_share = !strchr(cases[_i].off, 's');
    w.options.may_move = !strchr(cases[_i].off, 'm');
    w.options.power_cap_w = cases[_i].cap_w;
    world_solve(&w, cases[_i].policy, &p);
    explain(&w, &p, "a", &x);
    describe(&w, &x, got, sizeof got);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s: %s", cases[_i].name, got);
    world_release(&w);
}

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-6 * (1 + fabs((double)(want))))

TEST(the_figures_of_a_pair_by_hand)
{
    struct explanation x;
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER PLACES "job x w steps=600 min=5\nstart x 0\njob a w steps=300 min=3\n");
    world_look(&w);
    world_solve(&w, "greedy", &p);
    explain(&w, &p, "a", &x);
    const struct candidate *c = &x.candidates[0];
    const struct problem_kind *k = &w.asked.problem.kinds[0];
    ck_assert_int_eq(c->verdict, CANDIDATE_CHOSEN);
    ck_assert_int_eq(c->neighbour, snapshot_job(&w, "x"));
    NEAR(c->speed, 6);
    NEAR(c->margin, 6.0 / 3 - 1);
    NEAR(c->watts, 40 + 2 * 0.6 * 160);
    NEAR(c->cost.draw_w, 40 + 2 * 0.6 * 160 - 200);
    NEAR(c->joules, 50 * c->cost.draw_w);
    NEAR(c->cost.price_w, 0);
    NEAR(c->cost.work_w, -6 * c->counted * k->value_j);
    NEAR(c->cost.neighbour_w, 4 * c->counted * k->value_j);
    NEAR(c->neighbour_speed, 0.6);
    ck_assert(c->neighbour_keeps);
    ck_assert(isnan(x.may_start_s) && x.waits_for == -1 && x.reason == WAIT_NOT);
    NEAR(x.candidates[1].joules, 30 * (200 - 10.0));
    NEAR(x.candidates[1].cost.price_w, 50);
    world_release(&w);
}

TEST(low_and_high_hold_with_the_stated_confidence)
{
    struct explanation x;
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER PLACES "speed w v100 10 sd=0.3\njob a w types=v100\n");
    world_look(&w);
    world_solve(&w, "fifo-first", &p);
    explain(&w, &p, "a", &x);
    const struct told_cell *e = estimate_told(&w.est, world_workload(&w, "w"), 0, -1);
    double mean = e->ln_speed, sd = e->sd;
    ck_assert_double_eq_tol(x.candidates[0].low, exp(mean - sd), 1e-5);
    ck_assert_double_gt(x.candidates[0].high, x.candidates[0].speed);
    ck_assert_double_eq_tol(x.candidates[0].speed, exp(mean - sd * sd / 2), 1e-5);
    world_release(&w);
}

/* ---- when ---- */

static const struct {
    const char *name, *given;
    double at_s;    // NaN: unknown
    const char *whom;
} starts[] = {
    { "the first that ends makes room",
      PLACES
      "job x w steps=1000\nstart x 0\njob y w steps=600\nstart y 1\njob z w steps=800\nstart z 2\n"
      "job a w\n",
      60, "y" },
    { "where it may run",
      PLACES
      "job x w steps=1000\nstart x 0\njob y w steps=600\nstart y 1\njob z w steps=800\nstart z 2\n"
      "job a w types=k80\n",
      200, "z" },
    { "a gang needs as many",
      PLACES "job x w steps=1000\nstart x 0\njob y w steps=600\nstart y 1\njob a w gpus=2\n", 100,
      "x" },
    { "less those that are free", PLACES "job x w steps=1000\nstart x 0\njob a w gpus=2\n", 100,
      "x" },
    { "on one node where asked",
      "node n1 v100 v100\nnode n2 v100 v100\njob x w steps=10\nstart x 0\njob y w steps=1000\n"
      "start y 1\njob z w steps=600\nstart z 2\njob v w steps=700\nstart v 3\n"
      "job a w gpus=2 one_node=1\n",
      70, "v" },
    { "on several nodes as many on each where asked",
      "node n1 v100 v100\nnode n2 v100 v100\njob x w steps=10\nstart x 0\njob y w steps=300\n"
      "start y 1\njob z w steps=600\nstart z 2\njob v w steps=700\nstart v 3\n"
      "job a w gpus=2 nodes=2\n",
      60, "z" },
    { "a server's end is its time",
      PLACES "job x w rate=1 duration=500\nstart x 0\njob y w steps=1000000\nstart y 1\n"
             "job z w steps=1000000\nstart z 2\nat 100\njob a w\n",
      500, "x" },
    { "of two that share the last to end, where one of them minds",
      "node n1 v100\n"
      "job x w steps=600\nstart x 0\njob y w steps=1200 min=5.9\nstart y 0\njob a w exclusive=1\n",
      200, "y" },
    { "or the first, where nobody does",
      "node n1 v100\n"
      "job x w steps=600\nstart x 0\njob y w steps=1200 min=5.9\nstart y 0\njob a w\n",
      100, "x" },
    { "but not where it would not hold its promise beside who stays",
      "node n1 v100\n"
      "job x w steps=600\nstart x 0\njob y w steps=1200 min=5.9\nstart y 0\njob a w min=9\n",
      200, "y" },
    { "never on a node that is away",
      PLACES
      "job x w steps=1000\nstart x 0\njob y w steps=600\nstart y 1\njob z w steps=800\nstart z 2\n"
      "drain n1\njob a w\n",
      200, "z" },
    { "nor where it does not fit", "node n2 k80\njob x w\nstart x 0\njob a huge\n", NAN, NULL },
    { "nor for a gang that is too large", PLACES "job x w\nstart x 0\njob a w gpus=3\n", NAN,
      NULL },
    { "nor when something else is in the way", PLACES "job a w gpus=2\n", NAN, NULL },
};

/* A plan in which everybody stays and 'a' waits. */
static void let_wait(struct world *w, struct plan *p)
{
    struct err e = { 0 };

    if (lower_problem(&w->arena, &w->snapshot, &w->est, &w->options, &w->asked, &e) < 0)
        ck_abort_msg("%s", e.text);
    const struct problem *q = &w->asked.problem;
    *p = (struct plan){ .made_by = "test", .n_jobs = q->n_jobs, .n_gpus = q->n_gpus };
    p->jobs = ARENA_ARRAY(&w->arena, struct plan_job, (size_t)p->n_jobs);
    p->limit = ARENA_ARRAY(&w->arena, unsigned char, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j] = (struct plan_job){ .n_gpus = q->jobs[j].n_present,
                                        .gpus = q->jobs[j].present,
                                        .reason = q->jobs[j].n_present ? WAIT_NOT : WAIT_CAPACITY };
    plan_price(&w->arena, q, p);
}

EACH(a_start_is_expected, starts)
{
    struct explanation x;
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER);
    world_add(&w, starts[_i].given);
    world_look(&w);
    let_wait(&w, &p);
    explain(&w, &p, "a", &x);
    if (!starts[_i].whom) {
        ck_assert_msg(isnan(x.may_start_s) && x.waits_for == -1, "%s: %g", starts[_i].name,
                      x.may_start_s);
    } else {
        ck_assert_msg(fabs(x.may_start_s - starts[_i].at_s) < 1e-3, "%s: %g", starts[_i].name,
                      x.may_start_s);
        ck_assert_str_eq(w.snapshot.jobs[x.waits_for].spec->name, starts[_i].whom);
    }
    world_release(&w);
}

/* ---- what sleeps ---- */

static const struct candidate *candidate_of(const struct world *w, const struct explanation *x,
                                            const char *type)
{
    for (int i = 0; i < x->n_candidates; i++)
        if (strcmp(w->asked.problem.types[x->candidates[i].type].name, type) == 0)
            return &x->candidates[i];
    ck_abort_msg("no candidate on %s", type);
}

TEST(it_is_told_what_sleeps_and_what_that_costs)
{
    struct explanation awake, asleep;
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER);
    world_add(&w, "node n1 v100\nnode n2 k80\njob a w steps=240\n");
    world_look(&w);
    let_wait(&w, &p);
    explain(&w, &p, "a", &awake);
    const struct candidate *was = candidate_of(&w, &awake, "v100");
    ck_assert_double_eq(was->wake_s, 0);
    double cost_w = was->cost.cost_w;
    world_add(&w, "wake n1 60\n");
    world_look(&w);
    let_wait(&w, &p);
    explain(&w, &p, "a", &asleep);
    const struct candidate *is = candidate_of(&w, &asleep, "v100");
    ck_assert_double_eq(is->wake_s, 60);
    ck_assert_double_gt(is->cost.wake_w, 0);
    ck_assert_double_eq_tol(is->cost.cost_w - cost_w, is->cost.wake_w, 1e-9);
    ck_assert_double_eq(candidate_of(&w, &asleep, "k80")->wake_s, 0);
    json_t *o = explain_json(&asleep, &w.asked, &p), *c;
    size_t i;
    json_array_foreach(json_object_get(o, "candidates"), i, c)
    {
        bool sleeps = strcmp(json_string_value(json_object_get(c, "type")), "v100") == 0;
        ck_assert(sleeps == (json_number_value(json_object_get(c, "wake_s")) == 60));
    }
    json_decref(o);
    world_release(&w);
}

/* ---- the best of its kind ---- */

TEST(a_gang_is_offered_the_tightest_node)
{
    struct explanation x;
    struct world w;
    struct plan p;

    world_init(&w, CLUSTER "node n1 v100 v100 v100\nnode n2 v100 v100\njob a w gpus=2\n");
    world_look(&w);
    let_wait(&w, &p);
    explain(&w, &p, "a", &x);
    ck_assert_int_eq(x.candidates[0].gpu, 3);
    ck_assert_int_eq(x.candidates[0].n_places, 2);    // one on each node
    world_release(&w);
}

/* The limit that a place is weighed with is the one that policies would set there. */
TEST(a_place_is_offered_under_the_limit_it_would_get)
{
    int last = -1, n_limits = 0;

    for (int need = 0; need <= 9; need++) {
        struct explanation x;
        struct world w;
        struct plan set, p;
        char job[64];

        world_init(&w, CLUSTER "node n1 v100\n");
        snprintf(job, sizeof job, "job a w min=%d\n", need);
        world_add(&w, job);
        world_look(&w);
        w.options.may_limit = true;
        world_solve(&w, "fifo-promise", &set);
        let_wait(&w, &p);
        explain(&w, &p, "a", &x);
        ck_assert_int_eq(x.candidates[0].limit_w, set.jobs[0].limit_w);
        ck_assert_double_eq_tol(x.candidates[0].speed, set.jobs[0].speed, 1e-9);
        n_limits += set.jobs[0].limit_w != last;
        last = set.jobs[0].limit_w;
        world_release(&w);
    }
    ck_assert_int_ge(n_limits, 2);
}

/* ---- against the plan itself ---- */

static const char *const policies[] = { "greedy", "fifo-fastest", "pack", "eaco", "gogh" };

enum { N_TYPES = 3, N_WORKLOADS = 4, N_POLICIES = sizeof policies / sizeof *policies };

static void random_catalog(struct rng *r, struct world *w)
{
    char line[200];

    world_add(w, "type v100\ntype k80\ntype a100\n");
    for (int i = 0; i < N_WORKLOADS; i++) {
        snprintf(line, sizeof line, "workload w%d params=%g bytes_per_sample=%g batch=8\n", i,
                 exp(rng_between(r, log(1e6), log(2e9))), exp(rng_between(r, log(1e6), log(1e9))));
        world_add(w, line);
    }
    for (int k = 0; k < 30; k++) {
        struct told_cell est = { .ln_speed = rng_between(r, -1, 3),
                                 .sd = rng_between(r, 0, 0.6),
                                 .ln_watts = rng_between(r, 4, 5.4),
                                 .watts_sd = 0.05 };
        estimate_tell(&w->est, (int)rng_below(r, N_WORKLOADS), (int)rng_below(r, N_TYPES),
                      (int)rng_below(r, N_WORKLOADS + 1) - 1, &est);
    }
}

static void random_job(struct rng *r, struct world *w, int i)
{
    char name[16];

    snprintf(name, sizeof name, "j%d", i);
    struct job_spec s = spec_of(name, (int)rng_below(r, N_WORKLOADS));
    s.submit_s = w->now_s;
    s.steps = exp(rng_between(r, 2, 12));
    s.min_throughput = rng_below(r, 2) ? exp(rng_between(r, -1, 2)) : 0;
    s.n_gpus = rng_below(r, 4) ? 1 : 1 + (int)rng_below(r, 3);
    s.max_gpus = s.n_gpus + (int)rng_below(r, 3) * (int)rng_below(r, 2);
    s.is_exclusive = rng_below(r, 6) == 0;
    s.n_nodes = rng_below(r, 2);
    s.allowed_types = rng_below(r, 3) ? 0 : 1 + rng_below(r, 7);
    draw_submission(r, w, &s, 4);
}

static void start_all(struct world *w, const struct plan *p)
{
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].n_gpus)
            world_apply(w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                            .time_s = w->now_s,
                                            .job = w->snapshot.jobs[j].id,
                                            .gpus = p->jobs[j].gpus,
                                            .n_gpus = p->jobs[j].n_gpus,
                                            .limit_w = p->jobs[j].limit_w });
}

/* An engine's, for jobs of one GPU; what runs may break them. */
static void random_rules(struct rng *r, struct world *w)
{
    const struct state *s = &w->ledger.state;
    char line[100];

    for (int n = 0; n < s->n_nodes; n++) {
        snprintf(line, sizeof line, "room n%d %d 1000\n", n, (int)rng_below(r, 4));
        world_add(w, line);
    }
    for (int j = 0; j < s->n_jobs && j < WORLD_RULED; j++) {
        if (s->jobs[j]->spec.max_gpus > 1)
            continue;
        snprintf(line, sizeof line, "needs %s %d 1\n", s->jobs[j]->spec.name, (int)rng_below(r, 3));
        world_add(w, line);
        snprintf(line, sizeof line, "bar %s n0\n", s->jobs[j]->spec.name);
        if (rng_below(r, 3) == 0)
            world_add(w, line);
    }
}

static void random_world(struct rng *r, struct world *w, struct plan *p)
{
    world_init(w, "");
    random_catalog(r, w);
    w->theta = 1 + (int)rng_below(r, 3);
    draw_nodes(r, w, 4);
    int n_before = (int)rng_below(r, 7), n_new = 1 + (int)rng_below(r, 6);
    for (int i = 0; i < n_before; i++)
        random_job(r, w, i);
    w->options.may_limit = rng_below(r, 2);
    world_look(w);
    world_solve(w, policies[rng_below(r, N_POLICIES)], p);
    start_all(w, p);
    w->now_s = rng_below(r, 2) ? 1234.5 : 10;
    for (int i = 0; i < n_new; i++)
        random_job(r, w, 100 + i);
    if (rng_below(r, 4) == 0)
        world_add(w, "drain n0\n");
    if (rng_below(r, 3) == 0)
        random_rules(r, w);
    w->options.power_cap_w = rng_below(r, 3) ? 0 : rng_between(r, 50, 1500);
    w->options.may_share = rng_below(r, 4) > 0;
    w->options.may_move = rng_below(r, 4) > 0;
    world_look(w);
    world_solve(w, policies[rng_below(r, N_POLICIES)], p);
}

/* The plan with the job on these GPUs instead, under a setting; n of 0: nowhere. Priced. */
static struct plan plan_with(struct world *w, const struct plan *p, int job, const int *gpus, int n,
                             int limit)
{
    struct plan q = *p;

    q.jobs = ARENA_ARRAY(&w->arena, struct plan_job, (size_t)p->n_jobs);
    q.limit = ARENA_ARRAY(&w->arena, unsigned char, (size_t)p->n_gpus);
    memcpy(q.jobs, p->jobs, (size_t)p->n_jobs * sizeof *q.jobs);
    memcpy(q.limit, p->limit, (size_t)p->n_gpus);
    q.jobs[job] =
        (struct plan_job){ .n_gpus = n, .gpus = gpus, .reason = n ? WAIT_NOT : WAIT_CAPACITY };
    for (int i = 0; i < n; i++)
        q.limit[gpus[i]] = (unsigned char)limit;
    plan_price(&w->arena, &w->asked.problem, &q);
    return q;
}

static bool is_on(const struct plan_job *pj, int gpu)
{
    for (int i = 0; i < pj->n_gpus; i++)
        if (pj->gpus[i] == gpu)
            return true;
    return false;
}

static int n_on(const struct plan *p, int gpu)
{
    int n = 0;

    for (int j = 0; j < p->n_jobs; j++)
        n += is_on(&p->jobs[j], gpu);
    return n;
}

/* Without the job: those it leaves behind have the setting that is best for them. */
static struct plan plan_without(struct world *w, const struct plan *p, int job)
{
    struct plan best = plan_with(w, p, job, NULL, 0, 0);
    const struct plan_job *pj = &p->jobs[job];

    for (int i = 0; i < pj->n_gpus; i++)
        if (n_on(&best, pj->gpus[i]) == 0)
            best.limit[pj->gpus[i]] = 0;
    for (int l = 0; pj->n_gpus == 1 && n_on(&best, pj->gpus[0]) > 0 &&
                    l < w->asked.problem.types[w->asked.problem.gpus[pj->gpus[0]].type].n_limits;
         l++) {
        struct plan other = plan_with(w, &best, job, NULL, 0, 0);
        struct yield y;
        int kinds[THETA_MAX], n = 0;
        for (int j = 0; j < p->n_jobs; j++)
            if (j != job && is_on(&p->jobs[j], pj->gpus[0]))
                kinds[n++] = w->asked.problem.jobs[j].kind;
        other.limit[pj->gpus[0]] = (unsigned char)l;
        plan_price(&w->arena, &w->asked.problem, &other);
        if (problem_yield(&w->asked.problem, w->asked.problem.gpus[pj->gpus[0]].type, l, kinds, n,
                          &y) &&
            other.cost_w < best.cost_w)
            best = other;
    }
    plan_price(&w->arena, &w->asked.problem, &best);
    return best;
}

/* GPUs for the candidate in a plan without the job: those of the plan, the one it names, or a gang
 * of free ones, on its GPU's node where they are enough. False: it names none.
 */
static bool gpus_for(struct world *w, const struct plan *p, const struct plan *without, int job,
                     const struct candidate *c, int *out)
{
    const struct problem_gpu *gpus = w->asked.problem.gpus;
    int n = 0, n_near = 0;

    if (c->gpu < 0)
        return false;
    if (c->verdict == CANDIDATE_CHOSEN) {
        memcpy(out, p->jobs[job].gpus, (size_t)c->n_gpus * sizeof *out);
        return true;
    }
    if (c->n_gpus == 1) {
        out[0] = c->gpu;
        return true;
    }
    for (int g = 0; g < p->n_gpus; g++)
        n_near += gpus[g].type == c->type && gpus[g].may_start && !n_on(without, g) &&
                  gpus[g].node == gpus[c->gpu].node;
    for (int g = 0; g < p->n_gpus && n < c->n_gpus; g++)
        if (gpus[g].type == c->type && gpus[g].may_start && !n_on(without, g) &&
            (n_near < c->n_gpus || gpus[g].node == gpus[c->gpu].node))
            out[n++] = g;
    MUST(n == c->n_gpus, "the gang of %d is not there", c->n_gpus);
    return true;
}

#define SAME(got, want, what)                                   \
    MUST(fabs((got) - (want)) <= 1e-7 * (1 + fabs(want)),       \
         "seed %d, job %d, %s: %s %.12g, not %.12g", seed, job, \
         candidate_verdict_name(c->verdict), what, got, (double)(want))

static bool could_be_had(const struct candidate *c)
{
    switch (c->verdict) {
    case CANDIDATE_UNFIT:
    case CANDIDATE_FULL:
    case CANDIDATE_EXCLUSIVE:
    case CANDIDATE_NOT_ALLOWED:
    case CANDIDATE_NODE_AWAY:
    case CANDIDATE_ENGINE:
    case CANDIDATE_POWER_CAP:
        return false;
    default:
        return true;
    }
}

/* The judge takes the plan with the job there where the verdict says that it could be had, and
 * refuses it where the verdict says that it cannot be.
 */
static void check_verdict(struct world *w, const struct plan *without, const struct plan *with,
                          int seed, int job, const struct candidate *c)
{
    struct problem moving = w->asked.problem;
    struct err e = { 0 };
    bool is_home = plan_job_stays(&with->jobs[job], &w->snapshot.jobs[job]);

    moving.jobs = ARENA_ARRAY(&w->arena, struct problem_job, (size_t)moving.n_jobs);
    memcpy(moving.jobs, w->asked.problem.jobs, (size_t)moving.n_jobs * sizeof *moving.jobs);
    moving.jobs[job].is_fixed = false;
    if (plan_check(&w->arena, &moving, without, &e) < 0)
        return;    // nothing to do with this job
    int rc = plan_check(&w->arena, &moving, with, &e);
    if (could_be_had(c))
        MUST(rc == 0, "seed %d, job %d, %s: %s", seed, job, candidate_verdict_name(c->verdict),
             e.text);
    if (c->verdict == CANDIDATE_UNFIT || c->verdict == CANDIDATE_NODE_AWAY ||
        c->verdict == CANDIDATE_NOT_ALLOWED || c->verdict == CANDIDATE_EXCLUSIVE ||
        c->verdict == CANDIDATE_ENGINE)
        MUST(rc < 0 || is_home, "seed %d, job %d: '%s' and the judge takes it", seed, job,
             candidate_verdict_name(c->verdict));
}

static int setting_of(const struct world *w, const struct candidate *c)
{
    const struct problem_type *t = &w->asked.problem.types[c->type];
    int l = t->n_limits - 1;

    while (l > 0 && t->limits[l].limit_w != c->limit_w)
        l--;
    return l;
}

/* What it costs is what the plan costs more; and the parts add up to that. */
static void check_cost(const struct world *w, const struct plan *without, const struct plan *with,
                       int seed, int job, const struct candidate *c)
{
    const struct problem_job *j = &w->asked.problem.jobs[job];
    const struct candidate_cost *o = &c->cost;
    double wait_w = j->wait_w + (j->n_present ? j->move_w : 0);

    SAME(c->speed, with->jobs[job].speed, "speed");
    SAME(c->low, with->jobs[job].low, "low");
    MUST(c->high >= c->speed * (1 - 1e-6) && c->speed >= c->low,
         "seed %d: an interval around its speed", seed);
    SAME(o->draw_w, with->watts - without->watts, "added watts");
    SAME(o->cost_w, with->cost_w - without->cost_w + wait_w, "cost");
    SAME(o->cost_w,
         o->draw_w + o->price_w + o->work_w + o->short_w + o->neighbour_w + o->move_w + o->wake_w,
         "parts");
    SAME(o->short_w, with->jobs[job].short_w, "shortfall");
    MUST(c->neighbour >= 0 || fabs(o->neighbour_w) < 1e-6, "seed %d: nobody loses anything", seed);
}

static void check_candidate(struct world *w, const struct plan *p, const struct plan *without,
                            int seed, int job, const struct candidate *c)
{
    int *gpus = ARENA_ARRAY(&w->arena, int, (size_t)c->n_gpus);

    if (w->asked.problem.jobs[job].frozen || !gpus_for(w, p, without, job, c, gpus))
        return;
    struct plan with = plan_with(w, without, job, gpus, c->n_gpus, setting_of(w, c));
    if (isfinite(c->cost.cost_w) && w->asked.problem.jobs[job].name)
        check_cost(w, without, &with, seed, job, c);
    if (w->asked.problem.jobs[job].name)
        check_verdict(w, without, &with, seed, job, c);
}

/* Chosen first, then by cost; and what costs less than the chosen one has a reason. */
static void check_order(const struct world *w, const struct explanation *x,
                        const struct plan_job *pj, int seed)
{
    const struct candidate *chosen = pj->n_gpus ? &x->candidates[0] : NULL;
    double most_w = chosen ? chosen->cost.cost_w : x->wait_w;

    for (int i = 0; i < x->n_candidates; i++) {
        const struct candidate *c = &x->candidates[i];
        MUST((c->verdict == CANDIDATE_CHOSEN) == (i == 0 && pj->n_gpus > 0),
             "seed %d: the chosen one is first", seed);
        MUST(i < 2 || c[-1].verdict == CANDIDATE_CHOSEN || !(c->cost.cost_w < c[-1].cost.cost_w),
             "seed %d: by cost", seed);
        bool is_less = c->cost.cost_w < most_w - 1e-6 * (1 + fabs(most_w));
        MUST(!is_less || !could_be_had(c) || c->verdict == CANDIDATE_PASSED_OVER ||
                 (c->verdict == CANDIDATE_FIXED && w->asked.problem.jobs[x->job].is_fixed),
             "seed %d: %s, and it costs less", seed, candidate_verdict_name(c->verdict));
    }
    MUST(x->n_left_out == 0, "seed %d: none is left out", seed);
}

enum { N_WORLDS = 1500, N_SHARDS = 4 };

TIMES(every_cost_is_the_plans_and_every_verdict_the_judges, N_SHARDS)
{
    int n_seen[CANDIDATE_VERDICTS] = { 0 };

    for (int seed = _i; seed < N_WORLDS; seed += N_SHARDS) {
        struct explanation x;
        struct world w;
        struct plan p;
        struct rng r;
        rng_init(&r, (uint64_t)seed, "explain");
        random_world(&r, &w, &p);
        for (int job = 0; job < p.n_jobs; job++) {
            explain_job(&w.arena, &w.asked, &p, job, &x);
            struct plan without = plan_without(&w, &p, job);
            for (int i = 0; i < x.n_candidates; i++) {
                check_candidate(&w, &p, &without, seed, job, &x.candidates[i]);
                n_seen[x.candidates[i].verdict]++;
            }
            check_order(&w, &x, &p.jobs[job], seed);
        }
        world_release(&w);
    }
    for (int v = 0; v < CANDIDATE_VERDICTS; v++)
        ck_assert_msg(n_seen[v] > 0, "never '%s'",
                      candidate_verdict_name((enum candidate_verdict)v));
}

/* ---- many GPUs ---- */

/* 'n_kinds' workloads on n GPUs, each alone on its GPU, and one job that waits. */
static void crowd(struct world *w, int n, int n_kinds, struct plan *p)
{
    char line[4096];

    world_init(w, "type v100\ntype k80\nworkload w batch=1\n");
    for (int i = 0; i < n_kinds; i++) {
        snprintf(line, sizeof line, "workload k%d params=%d bytes_per_sample=1e6 batch=1\n", i,
                 1000000 + i);
        world_add(w, line);
    }
    for (int g = 0; g < n; g += 8) {
        snprintf(line, sizeof line, "node n%d v100 v100 v100 v100 k80 k80 k80 k80\n", g / 8);
        world_add(w, line);
    }
    for (int g = 0; g < n; g++) {
        snprintf(line, sizeof line, "job j%d k%d\nstart j%d %d\n", g, g % n_kinds, g, g);
        world_add(w, line);
    }
    world_add(w, "job a w\n");
    world_look(w);
    let_wait(w, p);
}

TEST(the_best_are_kept_and_the_others_counted)
{
    struct explanation x;
    struct world w;
    struct plan p;

    crowd(&w, 160, 80, &p);
    explain(&w, &p, "a", &x);
    ck_assert_int_eq(x.n_candidates, CANDIDATES_MAX);
    ck_assert_int_eq(x.n_candidates + x.n_left_out, 80 + 2);    // and alone on each type
    for (int i = 0; i < x.n_candidates; i++)
        ck_assert_int_eq(x.candidates[i].n_places, 2);
    world_release(&w);
}

/* ---- JSON ---- */

TEST(an_explanation_and_a_plan_say_names)
{
    struct explanation x;
    struct world w;
    struct plan p;
    json_t *o, *c;

    world_init(&w, CLUSTER PLACES "job x w steps=600 min=5\nstart x 0\nat 7\njob a w min=3\n");
    world_look(&w);
    world_solve(&w, "greedy", &p);
    explain(&w, &p, "a", &x);
    o = explain_json(&x, &w.asked, &p);
    ck_assert_int_eq(json_integer_value(json_object_get(o, "job")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(o, "name")), "a");
    ck_assert_str_eq(json_string_value(json_object_get(o, "state")), "running");
    ck_assert_str_eq(json_string_value(json_object_get(o, "made_by")), "greedy");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(o, "gpus"), 0)), "n1/0");
    ck_assert(json_is_null(json_object_get(o, "reason")));
    ck_assert(json_is_null(json_object_get(o, "may_start_s")));
    ck_assert_double_eq(json_real_value(json_object_get(o, "time_s")), 7);
    ck_assert_double_eq(json_real_value(json_object_get(o, "need")), 3);
    c = json_array_get(json_object_get(o, "candidates"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(c, "type")), "v100");
    ck_assert_str_eq(json_string_value(json_object_get(c, "gpu")), "n1/0");
    ck_assert_str_eq(json_string_value(json_object_get(c, "beside")), "x");
    ck_assert_str_eq(json_string_value(json_object_get(c, "verdict")), "chosen");
    ck_assert(json_is_true(json_object_get(c, "neighbour_keeps")));
    c = json_array_get(json_object_get(o, "candidates"), 1);
    ck_assert(json_is_null(json_object_get(c, "beside")));
    ck_assert(json_is_null(json_object_get(c, "neighbour_keeps")));
    c = json_array_get(json_object_get(o, "candidates"), 2);
    ck_assert_str_eq(json_string_value(json_object_get(c, "gpu")), "n2/0");
    json_decref(o);

    o = plan_json(&p, &w.asked);
    ck_assert_int_eq(json_integer_value(json_object_get(o, "placed")), 2);
    c = json_array_get(json_object_get(o, "jobs"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(c, "does")), "stay");
    c = json_array_get(json_object_get(o, "jobs"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(c, "does")), "start");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(c, "gpus"), 0)), "n1/0");
    json_decref(o);
    world_release(&w);
}

static const struct {
    const char *want;
    int n_gpus, first, limit_w;    // n_gpus of 0: it gets no place
    bool is_running;
} actions[] = {
    { "start", 1, 0, 0, false }, { "wait", 0, 0, 0, false },   { "stay", 1, 0, 0, true },
    { "move", 1, 1, 0, true },   { "limit", 1, 0, 120, true }, { "stop", 0, 0, 0, true },
    { "move", 2, 0, 0, true },
};

EACH(what_a_job_does, actions)
{
    struct world w;
    struct plan p;
    const int gpus[] = { actions[_i].first, actions[_i].first + 1 };
    int n = actions[_i].n_gpus;

    world_init(&w, CLUSTER PLACES "job a w max=2\n");
    if (actions[_i].is_running)
        world_add(&w, "start a 0\n");
    world_look(&w);
    let_wait(&w, &p);
    p.jobs[0] = (struct plan_job){ .n_gpus = n,
                                   .gpus = gpus,
                                   .limit_w = actions[_i].limit_w,
                                   .reason = n ? WAIT_NOT : WAIT_CAPACITY };
    json_t *o = plan_json(&p, &w.asked);
    json_t *job = json_array_get(json_object_get(o, "jobs"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(job, "does")), actions[_i].want);
    json_decref(o);
    world_release(&w);
}

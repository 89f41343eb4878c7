/* The judge: one good plan, and every way of being wrong. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "unit/support.h"
#include "unit/suite.h"

/* GPUs: n1 has v100 0 1 2, n2 has v100 3 and k80 4 5, old (drained) has k80 6.
 * Speeds: w 10 on v100 and 4 on k80, beside anybody 0.8 of that; watts 200 and 100.
 * 'big' never fits a k80, and does not fit beside w.
 */
static const char world_text[] =
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\n"
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"
    "workload big params=1e6 bytes_per_sample=1e6 batch=1\n"
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\n"
    "speed big v100 10\nwatts big v100 200\nspeed big k80 4\nwatts big k80 100\npairs 0.8\n"
    "unfit big k80\nunfit big v100 beside=w\n"
    "node n1 v100 v100 v100\nnode n2 v100 k80 k80\nnode old k80\n"
    "job run w\nstart run 6\ndrain old\n"     // 0: runs on the drained node
    "job one w min=9\n"                       // 1
    "job share w min=9\n"                     // 2
    "job gang w gpus=2 max=3 one_node=1\n"    // 3
    "job alone w exclusive=1\n"               // 4
    "job picky w types=k80\n"                 // 5
    "job large big\n"                         // 6
    "job wait w\n";                           // 7

enum { RUN, ONE, SHARE, GANG, ALONE, PICKY, LARGE, WAIT, N_JOBS };

/* GPUs of the good plan; -1 ends a list. SHARE is placed beside PICKY and falls short. */
static const int good[N_JOBS][4] = {
    [RUN] = { 6, -1 },   [ONE] = { 0, -1 },   [SHARE] = { 4, -1 }, [GANG] = { 1, 2, -1 },
    [ALONE] = { 5, -1 }, [PICKY] = { 4, -1 }, [LARGE] = { 3, -1 }, [WAIT] = { -1 },
};

struct court {
    struct world w;
    struct plan plan;
    struct plan_job jobs[N_JOBS];
    int gpus[N_JOBS][8];
};

static void put(struct court *c, int job, int n, int a, int b, int d, int e)
{
    const int to[] = { a, b, d, e };

    memcpy(c->gpus[job], to, sizeof to);
    c->jobs[job].n_gpus = n;
    c->jobs[job].gpus = c->gpus[job];
    c->jobs[job].reason = n ? WAIT_NOT : WAIT_CAPACITY;
    c->jobs[job].speed = c->jobs[job].low = 0;
    c->jobs[job].is_short = false;
}

static void price(struct court *c)
{
    plan_price(&c->w.arena, &c->plan, &c->w.snapshot, &c->w.est);
}

static void court_open(struct court *c)
{
    *c = (struct court){ 0 };
    world_init(&c->w, world_text);
    c->plan = (struct plan){ .made_by = "test", .n_jobs = N_JOBS, .jobs = c->jobs };
    for (int j = 0; j < N_JOBS; j++) {
        int n = 0;
        ck_assert_int_eq(c->w.snapshot.jobs[j].id, j);
        while (good[j][n] >= 0)
            n++;
        put(c, j, n, good[j][0], good[j][1], good[j][2], good[j][3]);
    }
    price(c);
}

/* ---- the ways ---- */

static void unknown_gpu(struct court *c)
{
    put(c, ONE, 1, 99, 0, 0, 0);
}
static void negative_gpu(struct court *c)
{
    put(c, ONE, 1, -1, 0, 0, 0);
}
static void drained(struct court *c)
{
    put(c, PICKY, 1, 6, 0, 0, 0);
}
static void gpu_twice(struct court *c)
{
    put(c, GANG, 2, 1, 1, 0, 0);
}

static void theta_exceeded(struct court *c)
{
    put(c, WAIT, 1, 4, 0, 0, 0);
    price(c);
}

static void everybody_on_one(struct court *c)
{
    for (int j = ONE; j < N_JOBS; j++)
        put(c, j, 1, 0, 0, 0, 0);
    put(c, GANG, 0, 0, 0, 0, 0);
    put(c, PICKY, 0, 0, 0, 0, 0);
}

static void exclusive_shared(struct court *c)
{
    put(c, WAIT, 1, 5, 0, 0, 0);
    price(c);
}

static void wrong_type(struct court *c)
{
    put(c, PICKY, 1, 0, 0, 0, 0);
}
static void gang_small(struct court *c)
{
    put(c, GANG, 1, 1, 0, 0, 0);
}
static void gang_large(struct court *c)
{
    put(c, GANG, 4, 0, 1, 2, 3);
}
static void gang_negative(struct court *c)
{
    c->jobs[GANG].n_gpus = -1;
}

static void two_types(struct court *c)
{
    put(c, LARGE, 0, 0, 0, 0, 0);
    put(c, GANG, 2, 3, 5, 0, 0);
    put(c, ALONE, 1, 1, 0, 0, 0);
}

static void two_nodes(struct court *c)
{
    put(c, LARGE, 0, 0, 0, 0, 0);
    put(c, GANG, 2, 2, 3, 0, 0);
}

static void no_memory_alone(struct court *c)
{
    put(c, LARGE, 1, 5, 0, 0, 0);
    put(c, ALONE, 1, 3, 0, 0, 0);
    price(c);
}

static void no_memory_beside(struct court *c)
{
    put(c, WAIT, 1, 3, 0, 0, 0);
    price(c);
}

static void unnamed_shortfall(struct court *c)
{
    c->jobs[SHARE].is_short = false;
}
static void false_shortfall(struct court *c)
{
    c->jobs[ONE].is_short = true;
}
static void wrong_speed(struct court *c)
{
    c->jobs[ONE].speed *= 1.001;
}
static void wrong_low(struct court *c)
{
    c->jobs[ONE].low *= 0.999;
}
static void no_number(struct court *c)
{
    c->jobs[ONE].speed = NAN;
}
static void no_reason(struct court *c)
{
    c->jobs[WAIT].reason = WAIT_NOT;
}
static void short_while_waiting(struct court *c)
{
    c->jobs[WAIT].is_short = true;
}
static void over_the_cap(struct court *c)
{
    c->w.options.power_cap_w = 800;
}

static void over_the_cap_in_disguise(struct court *c)
{
    c->w.options.power_cap_w = 800;
    c->plan.n_placed = 0;
}

/* As many run as before, and they draw more. */
static void over_the_cap_by_exchange(struct court *c)
{
    for (int j = 0; j < N_JOBS; j++)
        put(c, j, 0, 0, 0, 0, 0);
    put(c, ONE, 1, 0, 0, 0, 0);
    price(c);
    c->w.options.power_cap_w = 200;
}

static void limited(struct court *c, int job, int limit_w)
{
    c->w.options.may_limit = true;
    c->jobs[job].limit_w = limit_w;
    price(c);
}

static void limit_offered(struct court *c)
{
    double freely = c->jobs[LARGE].speed;

    limited(c, LARGE, 140);
    ck_assert(c->jobs[LARGE].speed < freely);
}

static void limit_strange(struct court *c)
{
    limited(c, LARGE, 141);
}

static void limit_forbidden(struct court *c)
{
    limited(c, LARGE, 140);
    c->w.options.may_limit = false;
}

static void limit_twofold(struct court *c)
{
    put(c, SHARE, 1, 0, 0, 0, 0);
    limited(c, SHARE, 140);    // and ONE, beside it, has none
}

static void limit_without_cost(struct court *c)
{
    double freely = c->jobs[LARGE].speed;

    limited(c, LARGE, 140);
    c->jobs[LARGE].speed = freely;
}

static void too_few_jobs(struct court *c)
{
    c->plan.n_jobs--;
}
static void wrong_counts(struct court *c)
{
    c->plan.n_short++;
}
static void nothing(struct court *c)
{
    (void)c;
}
static void cap_is_enough(struct court *c)
{
    c->w.options.power_cap_w = c->plan.watts;
}

static void stop_what_runs(struct court *c)
{
    put(c, RUN, 0, 0, 0, 0, 0);
    price(c);
}

static void gang_of_three(struct court *c)
{
    put(c, ONE, 0, 0, 0, 0, 0);
    put(c, GANG, 3, 2, 0, 1, 0);
    price(c);
}

/* What already stands above a cap or beside too many may go on standing there. */
static void stay_above_a_lowered_cap(struct court *c)
{
    for (int j = 1; j < N_JOBS; j++)
        put(c, j, 0, 0, 0, 0, 0);
    price(c);
    c->w.options.power_cap_w = 50;
}

static const struct {
    const char *name;
    void (*spoil)(struct court *c);
    const char *want;    // NULL: it is a good plan
} cases[] = {
    { "a good plan passes", nothing, NULL },
    { "a plan that just meets the cap passes", cap_is_enough, NULL },
    { "a running job may be stopped", stop_what_runs, NULL },
    { "a gang may take up to D", gang_of_three, NULL },
    { "what runs may stay above a lowered cap", stay_above_a_lowered_cap, NULL },
    { "a limit that is offered passes", limit_offered, NULL },
    { "one that is not", limit_strange, "job large: a power limit of 141 W" },
    { "one where limits are off", limit_forbidden, "job large: a power limit of 140 W" },
    { "two limits on one GPU", limit_twofold, "GPU 0 has one power limit, not two" },
    { "a limit that costs no speed", limit_without_cost, "job large: the plan says" },
    { "an unknown GPU", unknown_gpu, "job one: there is no GPU 99" },
    { "a GPU below zero", negative_gpu, "job one: there is no GPU -1" },
    { "a drained node", drained, "job picky: the node of GPU 6 takes nothing new" },
    { "a GPU twice", gpu_twice, "job gang: GPU 1 twice" },
    { "more than theta", theta_exceeded, "GPU 4: more than 2 jobs" },
    { "more than any GPU takes", everybody_on_one, "GPU 0: more than 4 jobs" },
    { "an exclusive job that shares", exclusive_shared, "job alone is exclusive and shares GPU 5" },
    { "a type not allowed", wrong_type, "job picky: does not allow GPU type v100" },
    { "a gang too small", gang_small, "job gang: 1 GPUs where 2 to 3 were asked" },
    { "a gang too large", gang_large, "job gang: 4 GPUs where 2 to 3 were asked" },
    { "a gang of less than nothing", gang_negative, "job gang: -1 GPUs" },
    { "a gang on two types", two_types, "job gang: GPUs of two types" },
    { "a gang on two nodes", two_nodes, "job gang: its gang must stand on one node" },
    { "too large alone", no_memory_alone, "GPU 5: its jobs do not fit its memory" },
    { "too large together", no_memory_beside, "GPU 3: its jobs do not fit its memory" },
    { "a shortfall not named", unnamed_shortfall,
      "job share: needs 9 steps/s, 3.2 is held, and "
      "that is a shortfall the plan does not name" },
    { "a shortfall that is none", false_shortfall,
      "job one: needs 9 steps/s, 10 is held, and that "
      "is no shortfall" },
    { "a wrong speed", wrong_speed, "job one: the plan says" },
    { "a wrong confidence", wrong_low, "job one: the plan says" },
    { "a speed that is no number", no_number, "job one: the plan says" },
    { "waiting without a reason", no_reason, "job wait waits and the plan does not say why" },
    { "short while waiting", short_while_waiting, "job wait waits; its shortfall is its reason" },
    { "above the cap", over_the_cap, "are above the cap of 800 W" },
    { "above the cap, with a wrong count", over_the_cap_in_disguise, "are above the cap of 800 W" },
    { "above the cap by exchange", over_the_cap_by_exchange, "are above the cap of 200 W" },
    { "too few jobs", too_few_jobs, "the plan is for 7 jobs, the snapshot has 8" },
    { "wrong counts", wrong_counts, "the plan counts" },
};

START_TEST(a_plan_is_judged)
{
    struct court c;
    struct err e = { 0 };

    court_open(&c);
    cases[_i].spoil(&c);
    int rc = plan_check(&c.w.arena, &c.plan, &c.w.snapshot, &c.w.est, &c.w.options, &e);
    if (cases[_i].want) {
        ck_assert_msg(rc == -EINVAL, "%s: passed", cases[_i].name);
        ck_assert_msg(strstr(e.text, cases[_i].want) != NULL, "%s: %s", cases[_i].name, e.text);
    } else {
        ck_assert_msg(rc == 0, "%s: %s", cases[_i].name, e.text);
    }
    world_release(&c.w);
}
END_TEST

START_TEST(a_theta_that_was_lowered_stops_nobody)
{
    struct world w;
    struct plan p;
    struct err e = { 0 };

    world_init(&w, world_text);
    world_add(&w, "start one 0\nstart share 0\nstart wait 0\n");
    w.theta = 1;
    world_look(&w);
    world_solve(&w, "greedy", &p);
    ck_assert_msg(plan_check(&w.arena, &p, &w.snapshot, &w.est, &w.options, &e) == 0, "%s", e.text);
    world_release(&w);
}
END_TEST

START_TEST(pricing_by_hand)
{
    struct court c;

    court_open(&c);
    ck_assert_int_eq(c.plan.n_placed, 7);
    ck_assert_int_eq(c.plan.n_waiting, 1);
    ck_assert_int_eq(c.plan.n_short, 1);
    ck_assert_double_eq_tol(c.jobs[ONE].speed, 10, 1e-5);
    ck_assert_double_eq_tol(c.jobs[PICKY].speed, 3.2, 1e-5);
    ck_assert_double_eq_tol(c.jobs[GANG].speed, 20 * 0.87, 1e-4);
    /* v100: one, gang twice, large at 200; k80: run and alone at 100, the pair 30 + 2 * 56. */
    ck_assert_double_eq_tol(c.plan.watts, 4 * 200 + 2 * 100 + 142, 1e-2);
    world_release(&c.w);
}
END_TEST

/* ---- nodes, and types that nobody shares ---- */

#define NODES                                                                                 \
    "type v100 cap=250 idle=40 sleep=10\ntype whole=v100 share_max=1\n"                       \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\nspeed w v100 10\nspeed w whole 10\n" \
    "pairs 0.8\nnode n1 v100 v100 v100\nnode n2 v100 v100\nnode n3 v100\nnode n4 whole\n"

static const struct {
    const char *name, *given;
    int a[5], b[5];      // GPUs of jobs a and b; -1 ends a list
    const char *want;    // a part of what is wrong; NULL: nothing is
} stands[] = {
    { "two on each of two nodes", "job a w gpus=4 nodes=2\n", { 0, 2, 3, 4, -1 }, { -1 }, NULL },
    { "one on each of three", "job a w gpus=3 nodes=3\n", { 1, 4, 5, -1 }, { -1 }, NULL },
    { "three and one",
      "job a w gpus=4 nodes=2\n",
      { 0, 1, 2, 3, -1 },
      { -1 },
      "job a: its gang must stand on 2 nodes in equal parts" },
    { "all on one",
      "job a w gpus=3 nodes=3\n",
      { 0, 1, 2, -1 },
      { -1 },
      "job a: its gang must stand on 3 nodes in equal parts" },
    { "on three nodes, and two were asked",
      "job a w gpus=4 nodes=2\n",
      { 0, 1, 3, 5, -1 },
      { -1 },
      "job a: its gang must stand on 2 nodes in equal parts" },
    { "on two, and one was asked",
      "job a w gpus=2 one_node=1\n",
      { 0, 3, -1 },
      { -1 },
      "job a: its gang must stand on one node" },
    { "two may share a v100", "job a w\njob b w\n", { 0, -1 }, { 0, -1 }, NULL },
    { "but not one that nobody shares",
      "job a w\njob b w\n",
      { 6, -1 },
      { 6, -1 },
      "GPU 6 is shared, and its type whole is not" },
    { "nor may one come to who is there",
      "job a w\nstart a 6\njob b w\n",
      { 6, -1 },
      { 6, -1 },
      "GPU 6 is shared, and its type whole is not" },
    { "who are there already may stay",
      "job a w\njob b w\nstart a 6\nstart b 6\n",
      { 6, -1 },
      { 6, -1 },
      NULL },
};

START_TEST(a_gang_stands_as_asked_and_nobody_shares_what_nobody_may)
{
    const int *lists[] = { stands[_i].a, stands[_i].b };
    struct plan_job jobs[2] = { { 0 } };
    struct plan p = { .made_by = "test", .jobs = jobs };
    struct err e = { 0 };
    struct world w;

    world_init(&w, NODES);
    world_add(&w, stands[_i].given);
    world_look(&w);
    p.n_jobs = w.snapshot.n_jobs;
    for (int j = 0; j < p.n_jobs; j++) {
        jobs[j].gpus = lists[j];
        while (lists[j][jobs[j].n_gpus] >= 0)
            jobs[j].n_gpus++;
    }
    plan_price(&w.arena, &p, &w.snapshot, &w.est);
    int rc = plan_check(&w.arena, &p, &w.snapshot, &w.est, &w.options, &e);
    ck_assert_msg((rc == 0) == !stands[_i].want, "%s: %s", stands[_i].name, e.text);
    if (stands[_i].want)
        ck_assert_msg(strstr(e.text, stands[_i].want), "%s: %s", stands[_i].name, e.text);
    world_release(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan_check");
    TCase *t = tcase_create("plan_check");

    tcase_add_loop_test(t, a_plan_is_judged, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, a_theta_that_was_lowered_stops_nobody);
    tcase_add_test(t, pricing_by_hand);
    tcase_add_loop_test(t, a_gang_stands_as_asked_and_nobody_shares_what_nobody_may, 0,
                        sizeof stands / sizeof *stands);
    suite_add_tcase(s, t);
    return suite_run(s);
}

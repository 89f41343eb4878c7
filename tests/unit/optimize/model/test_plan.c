/* The judge refuses each kind of wrong answer, by its sentence, and no right one. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

/* ---- one answer, right in everything ---- */

enum { SMALL, BIG, N_TYPES };
enum { LIGHT, HEAVY, N_KINDS };
enum { ANN, BOB, EVE, GANG, PARTS, STAYS, WAITS, GONE, MOVER, N_JOBS };

#define N_GPUS 8
#define PLACED(...)                                               \
    (sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (const int[]) \
    {                                                             \
        __VA_ARGS__                                               \
    }
#define ON(...)                                                                       \
    {                                                                                 \
        .n_gpus = sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), .gpus = (const int[]) \
        {                                                                             \
            __VA_ARGS__                                                               \
        }                                                                             \
    }

struct check {
    struct arena arena;
    struct problem p;
    struct problem_type types[N_TYPES];
    struct problem_kind kinds[N_KINDS];
    struct problem_gpu gpus[N_GPUS];
    struct problem_job jobs[N_JOBS];
    float speed[N_TYPES * N_KINDS * (N_KINDS + 1)], held[N_TYPES * N_KINDS * (N_KINDS + 1)];
    float watts[N_TYPES * N_KINDS];
    double rack_cap_w[2];
    struct plan x;
    struct plan_job to[N_JOBS];
    unsigned char limit[N_GPUS];
};

static const double curve_speed[] = { 1, 0.75 }, curve_watts[] = { 20, 100 };
static const int on_5[] = { 5 }, on_6[] = { 6 };

static const struct problem_type types[N_TYPES] = {
    { "small", 0, 20, 150, 16, 1, { { 0 } } },
    { "big", 0, 20, 250, 32, 2, { { 0 }, { 120, 2, curve_speed, curve_watts } } },
};

static const struct problem_kind kinds[N_KINDS] = {
    { "light", 4, 10, 0, 0 },
    { "heavy", 20, 10, 0, 0 },
};

#define GPU(t, n, r, may)                                 \
    {                                                     \
        .type = t, .node = n, .rack = r, .may_start = may \
    }
static const struct problem_gpu gpus[N_GPUS] = {
    GPU(SMALL, 0, 0, true), GPU(SMALL, 0, 0, true), GPU(BIG, 1, 1, true), GPU(BIG, 1, 1, true),
    GPU(BIG, 2, 1, true),   GPU(BIG, 3, 1, false),  GPU(BIG, 4, 1, true), GPU(BIG, 5, 1, true),
};

static const struct problem_job jobs[N_JOBS] = {
    [ANN] = { .name = "ann", .kind = LIGHT, .n_min = 1, .n_max = 1, .need = 1, .short_w = 100 },
    [BOB] = { .name = "bob", .kind = LIGHT, .n_min = 1, .n_max = 1, .need = 3, .short_w = 100 },
    [EVE] = { .name = "eve", .kind = HEAVY, .n_min = 1, .n_max = 1, .is_exclusive = true },
    [GANG] = { .name = "gang", .kind = HEAVY, .n_min = 2, .n_max = 2, .n_nodes = 1 },
    [PARTS] = { .name = "parts",
                .kind = LIGHT,
                .form = FORM_SPREAD,
                .n_min = 1,
                .n_max = 2,
                .need = 5,
                .short_w = 100 },
    [STAYS] = { .name = "stays",
                .kind = LIGHT,
                .n_min = 1,
                .n_max = 1,
                .is_fixed = true,
                .n_present = 1,
                .present = on_5 },
    [WAITS] = { .name = "waits",
                .kind = HEAVY,
                .n_min = 1,
                .n_max = 1,
                .wait_w = 40,
                .allowed_types = 1 << BIG },
    [GONE] = { .kind = LIGHT, .n_min = 1, .n_max = 1, .n_present = 1, .present = on_6 },
    [MOVER] = { .name = "mover",
                .kind = HEAVY,
                .n_min = 1,
                .n_max = 1,
                .wait_w = 30,
                .move_w = 7,
                .n_present = 1,
                .present = on_6 },
};

static const struct plan_job placed[N_JOBS] = {
    [ANN] = ON(0),
    [BOB] = ON(0),
    [EVE] = ON(4),
    [GANG] = ON(2, 3),
    [PARTS] = ON(1, 6),
    [STAYS] = ON(5),
    [WAITS] = { .reason = WAIT_CAPACITY },
    [MOVER] = { .reason = WAIT_POWER },
};

/* Light ones slow each other to three quarters; light and heavy must never meet. */
static void make_cells(struct check *c)
{
    for (int t = 0; t < N_TYPES; t++)
        for (int k = 0; k < N_KINDS; k++) {
            double alone = t == BIG ? 4 : 2;
            for (int n = -1; n < N_KINDS; n++) {
                double slow = n < 0 ? 1 : n == k ? 0.75 : 0;
                c->speed[problem_cell(&c->p, t, k, n)] = (float)(alone * slow);
                c->held[problem_cell(&c->p, t, k, n)] = (float)(alone * slow * 0.875);
            }
            c->watts[t * N_KINDS + k] = k == HEAVY ? 200 : 80;
        }
}

static void check_open(struct check *c)
{
    *c = (struct check){ 0 };
    arena_init(&c->arena);
    c->p = (struct problem){ .theta = 2,
                             .watts_margin = 1.25,
                             .price_w = 1,
                             .n_racks = 2,
                             .n_types = N_TYPES,
                             .n_kinds = N_KINDS,
                             .n_gpus = N_GPUS,
                             .n_jobs = N_JOBS,
                             .types = c->types,
                             .kinds = c->kinds,
                             .gpus = c->gpus,
                             .jobs = c->jobs,
                             .speed = c->speed,
                             .held = c->held,
                             .watts = c->watts };
    for (int m = 1; m <= GANG_MAX; m++) {
        c->p.gang_near[m] = m > 1 ? 0.9 * m : 1;
        c->p.gang_far[m] = m > 1 ? 0.7 * m : 1;
    }
    memcpy(c->types, types, sizeof(types));
    memcpy(c->kinds, kinds, sizeof(kinds));
    memcpy(c->gpus, gpus, sizeof(gpus));
    memcpy(c->jobs, jobs, sizeof(jobs));
    memcpy(c->to, placed, sizeof(placed));
    make_cells(c);
    c->x = (struct plan){ .n_jobs = N_JOBS, .n_gpus = N_GPUS, .jobs = c->to, .limit = c->limit };
    c->limit[4] = 1;
    plan_price(&c->arena, &c->p, &c->x);
}

TEST(a_right_answer_passes_and_its_numbers_are_known)
{
    struct check c;
    struct err e = { 0 };

    check_open(&c);
    ck_assert_msg(problem_check(&c.p, &e) == 0, "%s", e.text);
    ck_assert_msg(plan_check(&c.arena, &c.p, &c.x, &e) == 0, "%s", e.text);
    ck_assert_int_eq(c.x.n_placed, 6);
    ck_assert_int_eq(c.x.n_waiting, 2);
    ck_assert_int_eq(c.x.n_moves, 1);
    ck_assert_int_eq(c.x.n_short, 1);
    ck_assert_double_eq_tol(c.to[ANN].low, 2 * 0.75 * 0.875, 1e-12);
    ck_assert_double_eq_tol(c.to[BOB].short_w, 100 * (1 - 1.3125 / 3), 1e-9);
    ck_assert_double_eq_tol(c.to[GANG].speed, 4 * 1.8, 1e-12);
    ck_assert_double_eq_tol(c.to[PARTS].low, (2 + 4) * 0.875, 1e-12);
    ck_assert_double_eq_tol(c.to[EVE].speed, 4 * (1 - 0.25 * 180 / 230), 1e-12);
    ck_assert_double_eq(c.x.wait_w, 70);
    ck_assert_double_eq(c.x.move_w, 7);
    /* two light ones, half a curve, the gang, and three light ones alone */
    double watts = 20 + 2 * 60 * 0.75 + (20 + 80 * 180.0 / 230) + 2 * 200 + 3 * 80;
    double steps = 2 * 1.5 + c.to[EVE].speed + 7.2 + 6 + 4;
    ck_assert_double_eq_tol(c.x.watts, watts, 1e-9);
    ck_assert_double_eq_tol(c.x.cost_w, watts + 7 - 10 * steps + 100 * (1 - 1.3125 / 3) + 70 + 7,
                            1e-9);
    arena_release(&c.arena);
}

/* ---- how far from the best ---- */

static const struct {
    const char *name;
    double cost_w, bound_w, base_w, varying_w;
    struct plan_gap want;
} gaps[] = {
    { "a gap of watts, of all, and of what varies", 20, 10, 80, 40, { 10, 0.1, 0.25 } },
    { "gains and losses that cancel are no nothing", 0, -10, 100, 50, { 10, 0.1, 0.2 } },
    { "nothing varies, but all of it might", 0, -10, 100, 1e-9, { 10, 0.1, 1 } },
    { "a bound above the cost is rounding", 20, 20.0001, 80, 40, { 0, 0, 0 } },
    { "an empty cluster has none", 0, 0, 0, 0, { 0, 0, 0 } },
    { "nobody has looked", 20, -INFINITY, 80, 40, { NAN, NAN, NAN } },
};

static bool is_same(double a, double b)
{
    return fabs(a - b) < 1e-12 || (isnan(a) && isnan(b));
}

EACH(a_plan_knows_its_gap, gaps)
{
    struct plan x = { .cost_w = gaps[_i].cost_w,
                      .bound_w = gaps[_i].bound_w,
                      .base_w = gaps[_i].base_w,
                      .varying_w = gaps[_i].varying_w };
    struct plan_gap got = plan_gap(&x), want = gaps[_i].want;

    ck_assert_msg(is_same(got.watts, want.watts) && is_same(got.ratio, want.ratio) &&
                      is_same(got.varying_ratio, want.varying_ratio),
                  "%s: %g W, %g, %g", gaps[_i].name, got.watts, got.ratio, got.varying_ratio);
}

TEST(what_varies_is_not_set_off)
{
    struct check c;

    check_open(&c);
    double fees_w = c.x.short_w + c.x.wait_w + c.x.move_w;
    ck_assert_double_ge(c.x.varying_w, fabs(c.x.cost_w - fees_w) + fees_w - 1e-9);
    double once_w = c.x.varying_w;
    plan_price(&c.arena, &c.p, &c.x);
    ck_assert_double_eq(c.x.varying_w, once_w);
    arena_release(&c.arena);
}

/* ---- wrong in one thing ---- */

static void put(struct check *c, int job, int n, const int *on)
{
    int *gpus_there = ARENA_ARRAY(&c->arena, int, (size_t)n);

    memcpy(gpus_there, on, (size_t)n * sizeof(int));
    c->to[job] = (struct plan_job){ .n_gpus = n, .gpus = gpus_there };
}

static void two_settings(struct check *c)
{
    c->limit[2] = 1;
}

static void asks_for_two_nodes(struct check *c)
{
    c->jobs[GANG].n_nodes = 2;
}

static void nowhere(struct check *c)
{
    c->to[ANN].gpus = NULL;
}

static void below_none(struct check *c)
{
    c->to[WAITS].n_gpus = -1;
}

static void set_and_empty(struct check *c)
{
    c->limit[7] = 1;
}

static void unknown_setting(struct check *c)
{
    c->limit[0] = 1;
}

static void no_reason(struct check *c)
{
    c->to[WAITS].reason = WAIT_NOT;
}

static void odd_reason(struct check *c)
{
    c->to[WAITS].reason = WAIT_REASONS;
}

static void odd_placed(struct check *c)
{
    c->to[ANN].reason = WAIT_TURN;
}

static void runs_waiting(struct check *c)
{
    c->to[WAITS].speed = 1;
}

static void chance_waiting(struct check *c)
{
    c->to[WAITS].kept = 1;
}

static void speed_off(struct check *c)
{
    c->to[EVE].speed *= 1 + 1e-6;
}

static void low_off(struct check *c)
{
    c->to[GANG].low *= 1 - 1e-6;
}

static void low_is_none(struct check *c)
{
    c->to[GANG].low = (double)NAN;
}

static void short_off(struct check *c)
{
    c->to[BOB].short_w = 0;
}

static void placed_off(struct check *c)
{
    c->x.n_placed++;
}

static void waiting_off(struct check *c)
{
    c->x.n_waiting++;
}

static void short_count_off(struct check *c)
{
    c->x.n_short = 0;
}

static void hope_off(struct check *c)
{
    c->x.hope_w = 7;
}

static void kept_off(struct check *c)
{
    c->to[GANG].kept = 0.5;
}

static void moves_off(struct check *c)
{
    c->x.n_moves = 0;
}

static void cost_off(struct check *c)
{
    c->x.cost_w -= 0.01;
}

static void cost_is_none(struct check *c)
{
    c->x.cost_w = (double)NAN;
}

static void watts_off(struct check *c)
{
    c->x.watts += 0.01;
}

static void short_sum_off(struct check *c)
{
    c->x.short_w = 0;
}

static void wait_sum_off(struct check *c)
{
    c->x.wait_w = 0;
}

static void move_sum_off(struct check *c)
{
    c->x.move_w = 0;
}

static void other_jobs(struct check *c)
{
    c->x.n_jobs--;
}

static void other_gpus(struct check *c)
{
    c->x.n_gpus--;
}

static void fixed_waits(struct check *c)
{
    c->to[STAYS] = (struct plan_job){ .reason = WAIT_TURN };
}

static void no_memory(struct check *c)
{
    put(c, WAITS, PLACED(7));
    put(c, MOVER, PLACED(7));
}

/* All awake draw 160 W, the plan 850; with the margin that is more. */
static void over_cap(struct check *c)
{
    c->p.power_cap_w = 900;
}

static void over_rack(struct check *c)
{
    c->rack_cap_w[1] = 800;
    c->p.rack_cap_w = c->rack_cap_w;
}

/* Node 0 has two CPUs and 100 MiB, which those on it use up. */
static void count_nodes(struct check *c)
{
    static const struct engine_node nodes[] = { { 2, 100 }, { 9, 900 }, { 9, 900 },
                                                { 9, 900 }, { 0, 0 },   { 9, 900 } };

    c->p.n_nodes = 6;
    c->p.nodes = nodes;
    c->jobs[ANN].engine = c->jobs[BOB].engine = (struct engine_job){ .cpus = 1, .mem_mib = 50 };
    c->jobs[STAYS].engine = (struct engine_job){ .cpus = 9, .mem_mib = 900 };
}

static void too_few_cpus(struct check *c)
{
    count_nodes(c);
    c->jobs[PARTS].engine.cpus = 1;
}

static void too_little_memory(struct check *c)
{
    count_nodes(c);
    c->jobs[PARTS].engine.mem_mib = 1;
}

static void barred_from_node(struct check *c)
{
    static const unsigned char barred[] = { ENGINE_CAN, ENGINE_CAN,  ENGINE_FEATURE,
                                            ENGINE_CAN, ENGINE_TIME, ENGINE_CAN };

    c->p.n_nodes = 6;
    c->jobs[EVE].engine.barred = c->jobs[MOVER].engine.barred = barred;
}

static void other_device(struct check *c)
{
    c->gpus[0].device = 1;
    c->jobs[BOB].engine.device = 2;
}

static void uneven_devices(struct check *c)
{
    c->jobs[GANG].n_nodes = 2;
    put(c, GANG, PLACED(3, 7));
    c->gpus[3].device = 1;
    c->gpus[7].device = 2;
}

static const struct {
    const char *name;
    void (*spoil)(struct check *c);    // NULL: put 'job' on these GPUs
    int job, n;
    const int *on;
    const char *want;
} wrongs[] = {
    { "a GPU that does not exist", NULL, ANN, PLACED(99), "job ann: there is no GPU 99" },
    { "a GPU below 0", NULL, ANN, PLACED(-1), "job ann: there is no GPU -1" },
    { "GPUs out of order", NULL, PARTS, PLACED(6, 1),
      "job parts: GPU 1 after GPU 6, they must rise" },
    { "a GPU twice", NULL, PARTS, PLACED(6, 6), "job parts: GPU 6 after GPU 6, they must rise" },
    { "somebody new where nobody may start", NULL, BOB, PLACED(5),
      "job bob: GPU 5 takes nobody new" },
    { "a type that is not allowed", NULL, WAITS, PLACED(1),
      "job waits: does not allow GPU type small" },
    { "more than theta on a GPU", NULL, PARTS, PLACED(0, 6), "GPU 0: more than 2 jobs" },
    { "a gang on two types", NULL, GANG, PLACED(1, 2), "job gang: its gang has GPUs of two types" },
    { "a gang with two settings", two_settings, 0, 0, NULL, "job gang: its gang has two settings" },
    { "a gang on two nodes", NULL, GANG, PLACED(3, 7),
      "job gang: its gang must stand on one node" },
    { "a gang on one node that asks for two", asks_for_two_nodes, 0, 0, NULL,
      "job gang: its gang must stand on 2 nodes in equal parts" },
    { "half a gang", NULL, GANG, PLACED(2), "job gang: 1 GPUs where 2 to 2 were asked" },
    { "more parts than asked", NULL, PARTS, PLACED(1, 6, 7),
      "job parts: 3 GPUs where 1 to 2 were asked" },
    { "beside an exclusive job", NULL, BOB, PLACED(4), "job eve is exclusive and shares GPU 4" },
    { "inside a gang", NULL, BOB, PLACED(3), "job gang: its gang shares GPU 3" },
    { "a pair that must never be", NULL, WAITS, PLACED(6), "GPU 6: its jobs must not run so" },
    { "more than the memory holds", no_memory, 0, 0, NULL,
      "GPU 7: its jobs do not fit its memory" },
    { "a fixed job moves", NULL, STAYS, PLACED(7), "job stays is fixed and leaves its place" },
    { "a fixed job waits", fixed_waits, 0, 0, NULL, "job stays is fixed and leaves its place" },
    { "a job that is gone has a place", NULL, GONE, PLACED(7),
      "entry 7 has 1 GPUs, and its job is gone" },
    { "a place without GPUs", nowhere, 0, 0, NULL,
      "job ann: 1 GPUs, and the plan does not say which" },
    { "fewer than no GPUs", below_none, 0, 0, NULL, "job waits: -1 GPUs" },
    { "a setting where nobody is", set_and_empty, 0, 0, NULL,
      "GPU 7 has a setting, and nobody is on it" },
    { "a setting the type has not", unknown_setting, 0, 0, NULL,
      "GPU 0: its type small has no setting 1" },
    { "no reason to wait", no_reason, 0, 0, NULL, "job waits waits and the plan does not say why" },
    { "a reason that is none", odd_reason, 0, 0, NULL,
      "job waits waits and the plan does not say why" },
    { "placed, with a reason", odd_placed, 0, 0, NULL,
      "job ann: is placed, and has a reason to wait" },
    { "speed while waiting", runs_waiting, 0, 0, NULL,
      "job waits waits; it has no speed, no chance and no shortfall" },
    { "a chance while waiting", chance_waiting, 0, 0, NULL,
      "job waits waits; it has no speed, no chance and no shortfall" },
    { "another speed", speed_off, 0, 0, NULL, "job eve: the plan says" },
    { "another low", low_off, 0, 0, NULL, "job gang: the plan says" },
    { "a low that is no number", low_is_none, 0, 0, NULL, "job gang: the plan says" },
    { "a shortfall that is not named", short_off, 0, 0, NULL,
      "job bob: the plan says it misses 0 W" },
    { "one placed too many", placed_off, 0, 0, NULL, "the plan counts 7 placed" },
    { "one waiting too many", waiting_off, 0, 0, NULL, "3 waiting" },
    { "a shortfall too few", short_count_off, 0, 0, NULL, "0 short" },
    { "a move too few", moves_off, 0, 0, NULL, "0 moves" },
    { "another cost", cost_off, 0, 0, NULL, "W for all, it is" },
    { "a cost that is no number", cost_is_none, 0, 0, NULL, "W for all, it is" },
    { "other watts", watts_off, 0, 0, NULL, "W for its GPUs, it is" },
    { "another sum of shortfalls", short_sum_off, 0, 0, NULL, "0 W for its shortfall, it is" },
    { "another sum of waiting", wait_sum_off, 0, 0, NULL, "0 W for its waiting, it is 70" },
    { "another sum of hopes", hope_off, 0, 0, NULL, "7 W for its hopes, it is 0" },
    { "another chance", kept_off, 0, 0, NULL, "holds with a chance of 0.5" },
    { "another sum of moves", move_sum_off, 0, 0, NULL, "0 W for its moves, it is 7" },
    { "for other jobs", other_jobs, 0, 0, NULL, "the plan is for 8 jobs and 8 GPUs" },
    { "for other GPUs", other_gpus, 0, 0, NULL, "the plan is for 9 jobs and 7 GPUs" },
    { "above the cap", over_cap, 0, 0, NULL, "W with margin are above the cap of 900 W" },
    { "above a rack's cap", over_rack, 0, 0, NULL, "rack 1: " },
    { "more CPUs than the node has", too_few_cpus, 0, 0, NULL,
      "node 0: its jobs take 3 CPUs, and it has 2 (node CPUs)" },
    { "more memory than the node has", too_little_memory, 0, 0, NULL,
      "node 0: its jobs take 101 MiB, and it has 100 (node memory)" },
    { "on a node that its engine keeps it from", barred_from_node, 0, 0, NULL,
      "job eve: its engine cannot give it GPU 4 (feature)" },
    { "another device than it can have", other_device, 0, 0, NULL,
      "job bob: its engine cannot give it GPU 0 (pinning)" },
    { "another device of one node than of the other", uneven_devices, 0, 0, NULL,
      "job gang: its engine gives the same of each node (same devices)" },
};

EACH(an_answer_that_is_wrong_in_one_thing_is_refused, wrongs)
{
    struct check c;
    struct err e = { 0 };

    check_open(&c);
    if (wrongs[_i].spoil)
        wrongs[_i].spoil(&c);
    else
        put(&c, wrongs[_i].job, wrongs[_i].n, wrongs[_i].on);
    int rc = plan_check(&c.arena, &c.p, &c.x, &e);
    ck_assert_msg(rc < 0, "%s: passes", wrongs[_i].name);
    ck_assert_msg(strstr(e.text, wrongs[_i].want) != NULL, "%s: %s", wrongs[_i].name, e.text);
    arena_release(&c.arena);
}

/* ---- right, though it looks wrong ---- */

static void stay_as_they_are(struct check *c)
{
    for (int j = 0; j < N_JOBS; j++)
        c->to[j] = (struct plan_job){ .reason = WAIT_POWER };
    put(c, STAYS, PLACED(5));
    put(c, MOVER, PLACED(6));
    c->limit[4] = 0;
    c->p.power_cap_w = c->rack_cap_w[1] = 1;
    c->p.rack_cap_w = c->rack_cap_w;
}

static void wait_all(struct check *c)
{
    stay_as_they_are(c);
    c->jobs[STAYS].is_fixed = false;
    c->to[STAYS] = c->to[MOVER] = (struct plan_job){ .reason = WAIT_MEMORY };
}

static void fit_the_cap(struct check *c)
{
    double awake_w = c->x.watts + 20;    // one is empty

    c->p.power_cap_w = awake_w * c->p.watts_margin;
}

static void be_gang_over_nodes(struct check *c)
{
    c->jobs[GANG].n_nodes = 0;
    put(c, GANG, PLACED(3, 7));
}

static void be_gang_over_two(struct check *c)
{
    be_gang_over_nodes(c);
    c->jobs[GANG].n_nodes = 2;
}

static void stay_where_no_room_is(struct check *c)
{
    count_nodes(c);
    barred_from_node(c);
    c->jobs[MOVER].engine.cpus = 3;
    put(c, EVE, PLACED(7));
    put(c, PARTS, PLACED(1));
    put(c, MOVER, PLACED(6));
    c->limit[4] = 0;
}

static void same_devices(struct check *c)
{
    uneven_devices(c);
    c->gpus[7].device = 1;
}

static const struct {
    const char *name;
    void (*change)(struct check *c);
} rights[] = {
    { "what a node has may be used up", count_nodes },
    { "who runs may stay on a node that has too little, or is barred", stay_where_no_room_is },
    { "a gang may have the same devices of two nodes", same_devices },
    { "what runs may stay, above every cap", stay_as_they_are },
    { "everybody may wait", wait_all },
    { "exactly at the cap is under it", fit_the_cap },
    { "a gang may stand on two nodes where it does not ask for one", be_gang_over_nodes },
    { "and where it asks for two", be_gang_over_two },
};

EACH(an_answer_that_is_right_passes, rights)
{
    struct check c;
    struct err e = { 0 };

    check_open(&c);
    rights[_i].change(&c);
    plan_price(&c.arena, &c.p, &c.x);
    ck_assert_msg(plan_check(&c.arena, &c.p, &c.x, &e) == 0, "%s: %s", rights[_i].name, e.text);
    arena_release(&c.arena);
}

/* ---- what nobody plans for, and what is counted on ---- */

static const int on_7[] = { 7 };
static const struct problem_frozen frozen = { .speed = 3, .low = 2, .limit_w = 99 };

/* GONE runs on GPU 7 as it must not, and needs more than it gets; WAITS is of a type that is not
 * there. */
static void freeze(struct check *c)
{
    c->gpus[7].may_start = false;
    c->gpus[7].held_w = 130;
    c->jobs[GONE].present = on_7;
    c->jobs[GONE].frozen = &frozen;
    c->jobs[GONE].need = 2.5;
    c->jobs[WAITS].name = NULL;
    c->jobs[WAITS].cannot = WAIT_TYPE;
    plan_price(&c->arena, &c->p, &c->x);
}

static void leave_frozen(struct check *c)
{
    c->to[GONE].gpus = on_6;
}

static void slow_frozen(struct check *c)
{
    c->to[GONE].speed = 4;
}

static void limit_frozen(struct check *c)
{
    c->to[GONE].limit_w = 0;
}

static void hide_shortfall(struct check *c)
{
    c->to[GONE].is_short = false;
}

static void another_reason(struct check *c)
{
    c->to[WAITS].reason = WAIT_MEMORY;
}

static void asleep(struct check *c)
{
    c->x.watts -= 130;
}

static const struct {
    const char *name;
    void (*change)(struct check *c);
    const char *want;
} thaws[] = {
    { "it stays", NULL, NULL },
    { "it leaves", leave_frozen, "entry 7 is frozen and does not stay" },
    { "it has another speed", slow_frozen, "entry 7 is frozen, and its speed" },
    { "it has another limit", limit_frozen, "entry 7 is frozen and does not stay" },
    { "its shortfall is not named", hide_shortfall, "entry 7 is frozen, and its speed" },
    { "its GPU draws nothing", asleep, "for its GPUs" },
    { "who cannot run waits for another reason", another_reason, "entry 6 waits for another" },
};

EACH(what_nobody_plans_for_is_told_as_it_is, thaws)
{
    struct check c;
    struct err e = { 0 };

    check_open(&c);
    double watts = c.x.watts;
    freeze(&c);
    ck_assert_msg(problem_check(&c.p, &e) == 0, "%s", e.text);
    ck_assert(c.to[GONE].gpus[0] == 7 && c.to[GONE].is_short && c.x.n_placed == 7);
    ck_assert_int_eq(c.to[WAITS].reason, WAIT_TYPE);
    ck_assert_double_eq_tol(c.x.watts, watts + 130, 1e-9);
    if (thaws[_i].change)
        thaws[_i].change(&c);
    int rc = plan_check(&c.arena, &c.p, &c.x, &e);
    ck_assert_msg((rc == 0) == !thaws[_i].want, "%s: %s", thaws[_i].name, e.text);
    if (thaws[_i].want)
        ck_assert_msg(strstr(e.text, thaws[_i].want), "%s: %s", thaws[_i].name, e.text);
    arena_release(&c.arena);
}

/* Half of what is counted on is believed: the promise is paid as if it held, and said not to. */
TEST(what_is_hoped_for_is_not_said)
{
    struct problem_trust trust[N_TYPES * N_KINDS];
    struct check c;
    struct err e = { 0 };

    check_open(&c);
    double cost_w = c.x.cost_w;
    for (int i = 0; i < N_TYPES * N_KINDS; i++)
        trust[i] = (struct problem_trust){ 1.5F, 2, 2 };
    c.p.trust = trust;
    plan_price(&c.arena, &c.p, &c.x);
    ck_assert_msg(plan_check(&c.arena, &c.p, &c.x, &e) == 0, "%s", e.text);
    ck_assert_double_eq(c.x.cost_w, cost_w);
    ck_assert_double_eq_tol(c.to[ANN].low, 2 * 0.75 * 0.875 / 2, 1e-12);
    ck_assert_double_eq_tol(c.to[ANN].speed, 2 * 0.75 / 1.5, 1e-12);
    ck_assert(c.to[ANN].is_short && c.to[ANN].short_w == 0);
    ck_assert_double_eq_tol(c.to[GANG].speed, 4 * 1.8 / 1.5, 1e-12);
    arena_release(&c.arena);
}

TIMES(the_answers_of_brute_force_pass, 5)
{
    for (int seed = 1; seed <= 500; seed++) {
        struct arena a;
        struct problem p;
        struct plan x;
        struct err e = { 0 };
        arena_init(&a);
        tiny_make(&a, (uint64_t)(_i * 1000 + seed), 2 + _i, 1 + _i, &p);
        if (seed % 2)
            tiny_rules(&a, (uint64_t)seed, &p);
        if (seed % 3 == 0)
            tiny_doubts(&a, (uint64_t)seed, &p);
        ck_assert_msg(problem_check(&p, &e) == 0, "seed %d: %s", seed, e.text);
        ck_assert_msg(brute_solve(&a, &p, 20000000L, &x), "seed %d: too large", seed);
        ck_assert_msg(plan_check(&a, &p, &x, &e) == 0, "seed %d: %s", seed, e.text);
        arena_release(&a);
    }
}

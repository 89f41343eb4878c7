/* The door: one good problem, and every way of being none. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/problem.h"
#include "unit/suite.h"

/* Two types (fast with a power limit, slow), two kinds, six GPUs: node 0 has fast 0 1, node 1 fast
 * 2 and slow 3, node 2 slow 4 5 and is drained. Jobs: 'pair' and 'part' share GPU 3; 'gang' has
 * 0 and 1 at 200 W; 'alone' has 2; 'waits' has nothing; the last is gone.
 */
enum { PAIR, PART, GANG, ALONE, WAITS, GONE, N_JOBS };

struct door {
    struct problem p;
    struct problem_type types[2];
    struct problem_kind kinds[2];
    struct problem_gpu gpus[6];
    struct problem_job jobs[N_JOBS];
    float speed[12], held[12], watts[4];
    double curve_speed[2], curve_watts[2], rack_cap_w[2];
    struct problem_bend bends[4];
    int present[4][4];
};

static const struct door good = {
    .p = { .theta = 2,
           .z = 1,
           .power_cap_w = 2000,
           .n_racks = 2,
           .watts_margin = 1,
           .gang_near = { [2] = 1.9 },
           .gang_far = { [2] = 1.8 },
           .n_types = 2,
           .n_kinds = 2,
           .n_gpus = 6,
           .n_jobs = N_JOBS },
    .types = { { .name = "fast",
                 .sleep_w = 5,
                 .idle_w = 40,
                 .cap_w = 300,
                 .mem_gib = 32,
                 .n_limits = 2,
                 .limits = { [1] = { .limit_w = 200, .n_points = 2 } } },
               { .name = "slow",
                 .sleep_w = 5,
                 .idle_w = 20,
                 .cap_w = 150,
                 .mem_gib = 16,
                 .n_limits = 1 } },
    .kinds = { { .name = "a", .mem_gib = 4, .value_j = 10 },
               { .name = "b", .mem_gib = 12, .value_j = 20, .rate = 3 } },
    .gpus = { { 0, 0, 0, true },
              { 0, 0, 0, true },
              { 0, 1, 0, true },
              { 1, 1, 0, true },
              { 1, 2, 1, false },
              { 1, 2, 1, false } },
    .jobs = { [PAIR] = { .name = "pair",
                         .kind = 0,
                         .n_min = 1,
                         .n_max = 1,
                         .need = 1,
                         .short_w = 1000,
                         .wait_w = 1000,
                         .n_present = 1 },
              [PART] = { .name = "part",
                         .kind = 0,
                         .form = FORM_SPREAD,
                         .n_min = 1,
                         .n_max = 2,
                         .n_present = 2 },
              [GANG] = { .name = "gang",
                         .kind = 1,
                         .n_min = 2,
                         .n_max = 2,
                         .n_nodes = 1,
                         .n_present = 2,
                         .present_limit = 1 },
              [ALONE] = { .name = "alone",
                          .kind = 1,
                          .n_min = 1,
                          .n_max = 1,
                          .allowed_types = 1,
                          .is_exclusive = true,
                          .is_fixed = true,
                          .n_present = 1 },
              [WAITS] = { .name = "waits", .kind = 1, .n_min = 1, .n_max = 1 } },
    .speed = { 8, 6, 5, 4, 3, 0, 3, 2, 0, 1, 0, 0 },
    .held = { 7, 5, 4, 3, 2, 0, 2, 1, 0, 1, 0, 0 },
    .watts = { 200, 250, 100, 120 },
    .curve_speed = { 1, 0.8 },
    .curve_watts = { 40, 200 },
    .bends = { { 1, 1, 0, 0, false },
               { 0.5F, 1.5F, 0.2F, -0.3F, false },
               { 0, 0, 0, 0, true },
               { 2, 1, 1, 1, true } },
    .present = { [PAIR] = { 3 }, [PART] = { 3, 4 }, [GANG] = { 0, 1 }, [ALONE] = { 2 } },
};

/* The pointers of a copy. */
static void door_open(struct door *d)
{
    *d = good;
    d->p.types = d->types;
    d->p.kinds = d->kinds;
    d->p.gpus = d->gpus;
    d->p.jobs = d->jobs;
    d->p.speed = d->speed;
    d->p.held = d->held;
    d->p.watts = d->watts;
    d->p.rack_cap_w = d->rack_cap_w;
    d->p.bends = d->bends;
    d->types[0].limits[1].speed = d->curve_speed;
    d->types[0].limits[1].watts = d->curve_watts;
    for (int j = PAIR; j <= ALONE; j++)
        d->jobs[j].present = d->present[j];
}

/* ---- the ways ---- */

#define WAY(name, change)            \
    static void name(struct door *d) \
    {                                \
        change;                      \
    }

WAY(theta_none, d->p.theta = 0)
WAY(theta_many, d->p.theta = THETA_MAX + 1)
WAY(types_many, d->p.n_types = 65)
WAY(jobs_negative, d->p.n_jobs = -1)
WAY(z_nan, d->p.z = NAN)
WAY(price_negative, d->p.price_w = -1)
WAY(cap_infinite, d->p.power_cap_w = INFINITY)
WAY(margin_below_one, d->p.watts_margin = 0.9)
WAY(margin_nan, d->p.watts_margin = NAN)
WAY(rack_nan, d->rack_cap_w[1] = NAN)
WAY(gang_zero, d->p.gang_far[2] = 0)
WAY(gang_nan, d->p.gang_near[2] = NAN)
WAY(gang_far_better, d->p.gang_far[2] = 1.95)
WAY(type_nan, d->types[1].mem_gib = NAN)
WAY(type_order, d->types[1].sleep_w = 30)
WAY(type_cap_infinite, d->types[1].cap_w = INFINITY)
WAY(limits_none, d->types[1].n_limits = 0)
WAY(limits_many, d->types[0].n_limits = LIMITS_MAX + 1)
WAY(limit_points, d->types[0].limits[1].n_points = 1)
WAY(limit_speed_zero, d->curve_speed[1] = 0)
WAY(limit_speed_above, d->curve_speed[0] = 1.1)
WAY(limit_watts_nan, d->curve_watts[0] = NAN)
WAY(limit_twice, (d->types[0].n_limits = 3, d->types[0].limits[2] = d->types[0].limits[1]))
WAY(limit_no_room, d->types[0].idle_w = 300)
WAY(kind_nan, d->kinds[0].value_j = NAN)
WAY(kind_rate, d->kinds[1].rate = -1)
WAY(speed_nan, d->speed[0] = NAN)
WAY(speed_infinite, d->speed[4] = INFINITY)
WAY(speed_negative, d->speed[11] = -1)
WAY(low_nan, d->held[3] = NAN)
WAY(low_above, d->held[1] = 6.5F)
WAY(low_never, d->held[5] = 1)
WAY(watts_nan, d->watts[3] = NAN)
WAY(bend_loss, d->bends[3].loss = -0.5F)
WAY(bend_draw, d->bends[0].draw = NAN)
WAY(bend_doubt, d->bends[1].doubt = -0.1F)
WAY(bend_at, d->bends[2].at = -INFINITY)
WAY(gpu_type, d->gpus[5].type = 2)
WAY(gpu_node, d->gpus[0].node = -1)

static const struct engine_node too_few[] = { { -1, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } };
static const unsigned char no_rule[] = { 0, ENGINE_RULES, 0, 0 };

WAY(gpu_beyond, d->p.n_nodes = 1)
WAY(node_cpus, (d->p.n_nodes = 4, d->p.nodes = too_few))
WAY(node_none, d->p.nodes = too_few)
WAY(job_cpus, d->jobs[WAITS].engine.cpus = -1)
WAY(job_barred, (d->p.n_nodes = 4, d->jobs[WAITS].engine.barred = no_rule))
static const struct problem_frozen cold = { .speed = 1, .low = 1 };

WAY(frozen_named, d->jobs[WAITS].frozen = &cold)
WAY(frozen_free,
    (d->jobs[GANG].name = NULL, d->jobs[GANG].frozen = &cold))    // and others may come there
WAY(gpu_rack, d->gpus[5].rack = 2)
WAY(node_two_racks, d->gpus[1].rack = 1)
WAY(job_kind, d->jobs[WAITS].kind = 2)
WAY(job_form, d->jobs[WAITS].form = (enum job_form)7)
WAY(job_promise, d->jobs[WAITS].need = NAN)
WAY(job_short, d->jobs[WAITS].short_w = -1)
WAY(job_move, d->jobs[WAITS].move_w = INFINITY)
WAY(job_sizes, d->jobs[WAITS].n_min = 2)
WAY(job_large, d->jobs[WAITS].n_max = GANG_MAX + 1)
WAY(job_spread_min, (d->jobs[PART].n_min = 2))
WAY(job_spread_node, d->jobs[PART].n_nodes = 1)
WAY(job_spread_nodes, d->jobs[PART].n_nodes = 2)
WAY(job_nodes_grow,
    (d->jobs[WAITS].n_nodes = 2, d->jobs[WAITS].n_min = 2, d->jobs[WAITS].n_max = 4))
WAY(job_nodes_odd, (d->jobs[WAITS].n_nodes = 2, d->jobs[WAITS].n_min = 3, d->jobs[WAITS].n_max = 3))
WAY(job_nodes_none, d->jobs[WAITS].n_nodes = -1)
WAY(job_wake, d->jobs[WAITS].wake_rate = -1)
WAY(job_late, d->jobs[WAITS].late_w = NAN)
WAY(gpu_wake, d->gpus[5].wake_s = -1)
WAY(node_half_asleep, d->gpus[1].wake_s = 60)
WAY(present_even, (d->jobs[GANG].n_nodes = 2, d->jobs[GANG].n_max = d->jobs[GANG].n_min))
WAY(job_types, d->jobs[WAITS].allowed_types = 4)
WAY(job_fixed, d->jobs[WAITS].is_fixed = true)
WAY(present_many, d->jobs[PAIR].n_present = 2)
WAY(present_range, d->present[PAIR][0] = 6)
WAY(present_negative, d->present[PAIR][0] = -1)
WAY(present_order, (d->present[PART][0] = 4, d->present[PART][1] = 3))
WAY(present_type, d->jobs[ALONE].allowed_types = 2)
WAY(present_limit, d->jobs[PART].present_limit = 1)
WAY(present_half, d->jobs[GANG].n_present = 1)
WAY(present_mixed, (d->present[GANG][1] = 5, d->jobs[GANG].present_limit = 0))
WAY(present_nodes, (d->present[GANG][1] = 2))
WAY(present_theta, d->p.theta = 1)
WAY(present_exclusive, d->present[PAIR][0] = 2)
WAY(present_gang_shared, (d->present[PAIR][0] = 0, d->jobs[PAIR].present_limit = 1))
WAY(present_disagree, (d->jobs[ALONE].is_exclusive = false, d->present[PAIR][0] = 2,
                       d->jobs[ALONE].present_limit = 1))
WAY(present_memory, d->types[1].mem_gib = 7)
WAY(present_never, d->speed[7] = d->held[7] = 0)
WAY(present_free, d->bends[1].is_free = true)

static const struct {
    const char *claim;
    void (*make)(struct door *d);
    const char *says;
} ways[] = {
    { "nobody may share and nobody may be alone", theta_none, "theta is 0" },
    { "more share than there is room for", theta_many, "theta is 5" },
    { "more types than bits", types_many, "65 types" },
    { "a negative number of jobs", jobs_negative, "negative number" },
    { "confidence is no number", z_nan, "z is nan" },
    { "a GPU's price is negative", price_negative, "price_w is -1" },
    { "a cap without end", cap_infinite, "power_cap_w is inf" },
    { "a margin that allows more than the cap", margin_below_one, "watts_margin is 0.9" },
    { "a margin that is no number", margin_nan, "watts_margin is nan" },
    { "a rack's cap is no number", rack_nan, "racks[1] is nan" },
    { "a gang of two that does nothing", gang_zero, "gang_near and gang_far of 2 GPUs" },
    { "a gang's factor is no number", gang_nan, "gang_near and gang_far of 2 GPUs" },
    { "a gang that is faster far apart", gang_far_better, "want 0 < far <= near" },
    { "a type's memory is no number", type_nan, "types[1].mem_gib is nan" },
    { "sleep draws more than idling", type_order, "types[1]: want sleep_w <= idle_w <= cap_w" },
    { "a type that draws without end", type_cap_infinite, "types[1].cap_w is inf" },
    { "a type without a setting", limits_none, "types[1].limits" },
    { "more settings than there is room for", limits_many, "types[0].limits" },
    { "a curve of one point", limit_points, "at least 2 points" },
    { "a limit that stops a GPU", limit_speed_zero, "types[0].limits[0].speed[1] is 0" },
    { "a limit that speeds a GPU up", limit_speed_above, "types[0].limits[0].speed[0] is 1.1" },
    { "watts of a curve are no number", limit_watts_nan, "types[0].limits[0].watts[0] is nan" },
    { "two limits of the same watts", limit_twice, "200 W is there twice" },
    { "a curve between idle and a cap that are the same", limit_no_room, "above idle_w" },
    { "a step's worth is no number", kind_nan, "kinds[0].value_j is nan" },
    { "a negative rate", kind_rate, "kinds[1].rate is -1" },
    { "a speed alone is no number", speed_nan, "types[0].speed[0] is nan" },
    { "a speed beside another is infinite", speed_infinite, "types[0].slowdown[1][0]" },
    { "a negative speed", speed_negative, "types[1].slowdown[1][1]" },
    { "what is held is no number", low_nan, "types[0].speed[1] is 4 and nan is held" },
    { "more is held than expected", low_above, "types[0].slowdown[0][0]" },
    { "something is held where nothing runs", low_never, "types[0].slowdown[1][1]" },
    { "watts alone are no number", watts_nan, "types[1].watts[1] is nan" },
    { "a limit that speeds a kind up", bend_loss, "bends of kind 1 on type 1: loss -0.5" },
    { "watts under a limit are no number", bend_draw,
      "bends of kind 0 on type 0: loss 1, draw nan" },
    { "less than no doubt", bend_doubt, "bends of kind 1 on type 0" },
    { "measured without end", bend_at, "bends of kind 0 on type 1" },
    { "a GPU of no type", gpu_type, "GPU 5 has type 2" },
    { "a GPU on no node", gpu_node, "GPU 0 has node -1" },
    { "a GPU beyond the nodes", gpu_beyond, "has node 1: there are 1 nodes" },
    { "a node with less than no CPUs", node_cpus, "nodes[0]: want no negative" },
    { "nodes that are not", node_none, "nodes: there is none" },
    { "a job that brings CPUs", job_cpus, "jobs[4].cpus is -1" },
    { "a job that is barred for no reason", job_barred, "jobs[4].barred: node 1 by no rule" },
    { "a GPU in no rack", gpu_rack, "GPU 5 has rack 2" },
    { "a frozen job that is planned for", frozen_named, "is frozen: want no name" },
    { "a frozen job whose GPUs are not held", frozen_free, "is frozen, and GPU 0 is not held" },
    { "a node in two racks", node_two_racks, "node 0 stands in racks 0 and 1" },
    { "a job of no kind", job_kind, "jobs[4].kind is 2" },
    { "a job of no form", job_form, "jobs[4].form" },
    { "a promise that is no number", job_promise, "jobs[4].need is nan" },
    { "a negative price of a shortfall", job_short, "jobs[4].short_w is -1" },
    { "a move that costs without end", job_move, "jobs[4].move_w is inf" },
    { "a gang larger than it may be", job_sizes, "jobs[4]: want 1 <= n_min <= n_max" },
    { "a gang larger than there is room for", job_large, "jobs[4]: want 1 <= n_min <= n_max" },
    { "a spread job with a least number", job_spread_min, "jobs[1].n_min is 2" },
    { "a spread job on one node", job_spread_node, "jobs[1].one_node" },
    { "a spread job over nodes", job_spread_nodes, "jobs[1].n_nodes: only for gangs" },
    { "a gang over nodes that may grow", job_nodes_grow, "jobs[4].n_nodes is 2: want n_min" },
    { "one that its nodes cannot share evenly", job_nodes_odd, "jobs[4].n_nodes is 2: want n_min" },
    { "fewer nodes than none", job_nodes_none, "jobs[4].n_nodes is -1" },
    { "joules that come back", job_wake, "jobs[4].wake_rate is -1" },
    { "lateness that is no number", job_late, "jobs[4].late_w is nan" },
    { "a GPU that is awake before now", gpu_wake, "GPU 5 has wake_s -1" },
    { "a node that sleeps by half", node_half_asleep, "GPU 1: those of one type on node 0 wake" },
    { "a gang on one node that asks for two", present_even, "jobs[2].present: it asks for 2" },
    { "a job that wants a type there is not", job_types, "jobs[4].types" },
    { "a job that stays where it is not", job_fixed, "jobs[4].fixed" },
    { "a job that runs on more than it may", present_many, "jobs[0].present: 2 GPUs" },
    { "a job that runs on no GPU there is", present_range, "jobs[0].present[0] is GPU 6" },
    { "a job that runs before the first GPU", present_negative, "jobs[0].present[0] is GPU -1" },
    { "GPUs that do not rise", present_order, "jobs[1].present: list each GPU once" },
    { "a job that runs where it may not", present_type, "jobs[3].present[0]" },
    { "a setting that the GPU has not", present_limit, "jobs[1].limit_w: GPU 3" },
    { "half a gang", present_half, "jobs[2].present: a gang runs whole" },
    { "a gang of two types", present_mixed, "jobs[2].present: a gang runs on GPUs of one type" },
    { "a gang on two nodes that asks for one", present_nodes, "jobs[2].present: it asks for one" },
    { "more on a GPU than may share", present_theta, "GPU 3 has 1 jobs already" },
    { "an exclusive job that shares", present_exclusive, "jobs[3].present: it has GPUs to itself" },
    { "a gang that shares", present_gang_shared, "jobs[2].present: it has GPUs to itself" },
    { "two that share and say different settings", present_disagree, "jobs[3].limit_w" },
    { "two that do not fit together", present_memory, "cannot run so" },
    { "two that must never share", present_never, "cannot run so" },
    { "a limit on who must not be limited", present_free, "cannot run so" },
};

EACH(way, ways)
{
    struct door d;
    struct err e = { 0 };

    door_open(&d);
    ways[_i].make(&d);
    ck_assert_msg(problem_check(&d.p, &e) == -EINVAL, "%s: accepted", ways[_i].claim);
    ck_assert_msg(strstr(e.text, ways[_i].says), "%s: %s", ways[_i].claim, e.text);
    ck_assert_msg(!strstr(e.text, "(null)"), "%s: %s", ways[_i].claim, e.text);
}

TEST(a_good_problem_passes)
{
    struct door d;
    struct err e = { 0 };

    door_open(&d);
    ck_assert_msg(problem_check(&d.p, &e) == 0, "%s", e.text);
}

WAY(extreme, (d->speed[0] = 1e6F, d->held[0] = 1e-6F, d->watts[0] = 1e-6F, d->types[0].cap_w = 1e6,
              d->jobs[WAITS].need = 1e-300, d->jobs[WAITS].short_w = 1e300))
WAY(gone, (d->jobs[GONE].kind = 99, d->jobs[GONE].need = NAN))
WAY(unused_gang, (d->jobs[GANG].form = FORM_SPREAD, d->jobs[GANG].n_min = 1,
                  d->jobs[GANG].n_nodes = 0, d->p.gang_near[2] = NAN))
WAY(no_racks, (d->p.n_racks = 0, d->p.rack_cap_w = NULL))
WAY(no_bends, d->p.bends = NULL)
WAY(nothing, (d->p.n_gpus = 0, d->p.n_jobs = 0))
WAY(no_kinds, (d->p.n_kinds = 0, d->p.n_jobs = 0))

WAY(frozen_held,
    (d->jobs[GANG].name = NULL, d->jobs[GANG].frozen = &cold, d->gpus[0].may_start = false,
     d->gpus[1].may_start = false, d->gpus[0].held_w = d->gpus[1].held_w = 100))
WAY(node_apart, (d->gpus[5].node = 1, d->gpus[5].rack = 0))

static const struct {
    const char *claim;
    void (*make)(struct door *d);
} fine[] = {
    { "numbers of any size", extreme },
    { "whatever is said of a job that is gone", gone },
    { "factors of gangs that nobody has", unused_gang },
    { "no racks", no_racks },
    { "everybody as the curves say", no_bends },
    { "no GPUs and no jobs", nothing },
    { "no kinds", no_kinds },
    { "a node's GPUs of one type apart", node_apart },
    { "a job that stays as the rules do not allow", frozen_held },
};

EACH(fine_too, fine)
{
    struct door d;
    struct err e = { 0 };

    door_open(&d);
    fine[_i].make(&d);
    ck_assert_msg(problem_check(&d.p, &e) == 0, "%s: %s", fine[_i].claim, e.text);
}

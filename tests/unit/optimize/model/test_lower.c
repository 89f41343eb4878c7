/* From snapshots to problems: what a problem says agrees with the estimates, and what its rules do not
 * allow stays as it is.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "optimize/model/plan.h"
#include "optimize/model/lower.h"
#include "optimize/model/lower_inner.h"
#include "unit/suite.h"
#include "unit/optimize/drawn.h"
#include "unit/support.h"

#define CLUSTER                                                                          \
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\ntype t4\n"   \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"                               \
    "workload x params=1e6 bytes_per_sample=1e6 batch=1\n"                               \
    "workload huge params=1e6 bytes_per_sample=1e6 batch=1\n"                            \
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\n"                \
    "speed x v100 20\nwatts x v100 100\nspeed x k80 5\nwatts x k80 80\n"                 \
    "speed huge v100 10\nspeed huge k80 4\npairs 0.6\nunfit huge v100\nunfit huge k80\n" \
    "unfit x k80 beside=w\n"                                                             \
    "node n1 v100 k80 v100\nnode n2 k80\n"

static void lower(struct world *w, struct lowered *out)
{
    struct err e = { 0 };

    world_look(w);
    if (lower_problem(&w->arena, &w->snapshot, &w->est, &w->options, out, &e) < 0)
        ck_abort_msg("%s", e.text);
}

/* The problem's indices of a type, a GPU and a job of the world. */
static int type_at(const struct world *w, const struct lowered *l, const char *name)
{
    for (int t = 0; t < l->problem.n_types; t++)
        if (l->type_of[t] == world_type(w, name))
            return t;
    return -1;
}

static const struct problem_job *job_at(const struct world *w, const struct lowered *l,
                                        const char *name)
{
    for (int j = 0; j < w->snapshot.n_jobs; j++)
        if (strcmp(w->snapshot.jobs[j].spec->name, name) == 0)
            return &l->problem.jobs[j];
    ck_abort_msg("no job %s", name);
}

/* ---- by hand ---- */

static const struct {
    const char *name, *given;
    int n_types, n_kinds;
} sizes[] = {
    { "types that have no GPU are left out", "job a w\n", 2, 1 },
    { "jobs of one workload are of one kind", "job a w min=1\njob b w gpus=2\n", 2, 1 },
    { "and of two, of two", "job a w\njob b x\n", 2, 2 },
    { "a server is another kind than a trainer", "job a w\njob b w rate=3\n", 2, 2 },
    { "servers of much the same rate are alike", "job a w rate=3.0\njob b w rate=3.01\n", 2, 1 },
    { "of another rate, not", "job a w rate=3\njob b w rate=4\n", 2, 2 },
    { "no jobs, no kinds", "", 2, 0 },
};

EACH(what_occurs_is_in_it, sizes)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER);
    world_add(&w, sizes[_i].given);
    lower(&w, &l);
    ck_assert_msg(l.problem.n_types == sizes[_i].n_types && l.problem.n_kinds == sizes[_i].n_kinds,
                  "%s: %d types, %d kinds", sizes[_i].name, l.problem.n_types, l.problem.n_kinds);
    world_release(&w);
}

TEST(gpus_are_the_snapshot_s_in_its_order)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "node n3 v100\ndrain n2\njob a w max=4\n");
    lower(&w, &l);
    ck_assert_int_eq(l.problem.n_gpus, 5);
    for (int g = 0; g < 5; g++) {
        ck_assert_int_eq(l.problem.gpus[g].node, w.snapshot.gpus[g].node);
        ck_assert_int_eq(l.type_of[l.problem.gpus[g].type], w.snapshot.gpus[g].type);
        ck_assert(l.problem.gpus[g].may_start == (g != 3));
    }
    world_release(&w);
}

/* Frozen jobs keep what they use, and the others have the rest. */
TEST(what_the_engine_cannot_do_is_in_it)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "room n1 8 100\njob x w types=k80\njob y w\njob a w\nneeds x 3 30\n"
                           "needs y 2 20\nneeds a 1 10\nbar a n2\nstart x 0\nstart y 1\n");
    lower(&w, &l);
    ck_assert(job_at(&w, &l, "x")->frozen != NULL);    // it is on a type that it does not allow
    ck_assert_int_eq(l.problem.nodes[0].cpus, 5);
    ck_assert_int_eq(l.problem.nodes[0].mem_mib, 70);
    ck_assert(l.problem.nodes[1].cpus == LONG_MAX);
    ck_assert_int_eq(job_at(&w, &l, "y")->engine.cpus, 2);
    ck_assert_int_eq(job_at(&w, &l, "a")->engine.mem_mib, 10);
    ck_assert_int_eq(job_at(&w, &l, "a")->engine.barred[1], ENGINE_FEATURE);
    world_release(&w);
}

TEST(who_is_bound_by_the_engine_stays)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\nstart a 0\nneeds a 0 0\nat 1e6\n");
    w.needs[0].is_bound = true;
    lower(&w, &l);
    ck_assert(job_at(&w, &l, "a")->is_fixed);
    world_release(&w);
}

TEST(what_does_not_fit_has_no_speed)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\njob b x\njob c huge\n");
    lower(&w, &l);
    const struct problem *p = &l.problem;
    int v100 = type_at(&w, &l, "v100"), k80 = type_at(&w, &l, "k80");
    int a = job_at(&w, &l, "a")->kind, b = job_at(&w, &l, "b")->kind;
    int c = job_at(&w, &l, "c")->kind;
    ck_assert(p->speed[problem_cell(p, k80, a, -1)] > 0);
    ck_assert(p->speed[problem_cell(p, v100, a, b)] > 0);
    ck_assert(p->speed[problem_cell(p, k80, a, b)] == 0);    // seen the other way round
    ck_assert(p->speed[problem_cell(p, k80, b, a)] == 0);
    ck_assert(p->speed[problem_cell(p, v100, c, -1)] == 0);
    ck_assert(p->speed[problem_cell(p, v100, a, c)] == 0);
    world_release(&w);
}

TEST(a_step_is_worth_its_joules_at_the_best_place)
{
    struct world w;
    struct lowered l;
    struct yield y;
    double least = INFINITY;

    world_init(&w, CLUSTER "job a w\njob b w rate=3\njob c huge\n");
    lower(&w, &l);
    const struct problem *p = &l.problem;
    int kind = job_at(&w, &l, "a")->kind;
    for (int t = 0; t < p->n_types; t++) {
        ck_assert(problem_yield(p, t, 0, &kind, 1, &y));
        least = fmin(least, y.cost_w);
    }
    ck_assert_double_eq_tol(least, 0, 1e-6);
    ck_assert_double_eq(p->kinds[job_at(&w, &l, "b")->kind].value_j, 0);
    ck_assert_double_eq(p->kinds[job_at(&w, &l, "c")->kind].value_j, 0);
    w.options.objective = OBJECTIVE_WATTS;
    lower(&w, &l);
    ck_assert_double_eq(l.problem.kinds[kind].value_j, 0);
    world_release(&w);
}

static const struct {
    const char *name, *given;
    bool may_move;
    int fixed, frozen;    // of job a: 1 yes, 0 no
} running[] = {
    { "who has just started stays", "job a w\nstart a 0\nat 299\n", true, 1, 0 },
    { "who has settled may move", "job a w\nstart a 0\nat 300\n", true, 0, 0 },
    { "unless moving is off", "job a w\nstart a 0\nat 600\n", false, 1, 0 },
    { "who waits may go anywhere", "job a w\nat 600\n", false, 0, 0 },
    { "two that may share are part of it", "job a w\njob b w\nstart a 0\nstart b 0\n", true, 1, 0 },
    { "two that do not fit by now are left as they are",
      "job a w\njob b x\nstart a 1\nstart b 1\nat 600\n", true, 0, 1 },
    { "and one that does not", "job a huge\nstart a 0\nat 600\n", true, 0, 1 },
    { "three where two are allowed are left as they are",
      "job a w\njob b w\njob c w\nstart a 0\nstart b 0\nstart c 0\nat 600\n", true, 0, 1 },
    { "so is one that should be alone", "job a w exclusive=1\njob b w\nstart a 0\nstart b 0\n",
      true, 1, 1 },
    { "a gang of one type is part of it", "job a w gpus=2\nstart a 0,2\nat 600\n", true, 0, 0 },
    { "and one of two is not", "job a w gpus=2\nstart a 0,1\nat 600\n", true, 0, 1 },
    { "nor one that should stand on one node", "job a w gpus=2 one_node=1\nstart a 1,3\nat 600\n",
      true, 0, 1 },
    { "a gang over nodes as asked is", "job a w gpus=2 nodes=2\nstart a 1,3\nat 600\n", true, 0,
      0 },
    { "and one that stands on one of them is not", "job a w gpus=2 nodes=2\nstart a 0,2\nat 600\n",
      true, 0, 1 },
    { "nor who shares with a gang", "job a w\njob b w gpus=2\nstart a 0\nstart b 0,2\nat 600\n",
      true, 0, 1 },
    { "nor who runs where it may not", "job a w types=k80\nstart a 0\nat 600\n", true, 0, 1 },
};

EACH(who_runs_may_move_or_not, running)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER);
    world_add(&w, running[_i].given);
    w.options.may_move = running[_i].may_move;
    lower(&w, &l);
    const struct problem_job *a = job_at(&w, &l, "a");
    ck_assert_msg(a->is_fixed == running[_i].fixed, "%s", running[_i].name);
    ck_assert_msg((a->frozen != NULL) == running[_i].frozen, "%s", running[_i].name);
    world_release(&w);
}

/* Jobs of the last case, by hand: their GPUs take nobody, and their neighbours stay too. */
TEST(a_frozen_gpu_takes_nobody)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\njob b w\njob c w\nstart a 0\nstart b 0\nstart c 2\nat 600\n");
    w.options.may_share = false;
    lower(&w, &l);
    ck_assert_int_eq(l.problem.theta, 1);
    ck_assert_ptr_null(l.problem.jobs[0].name);
    ck_assert_ptr_null(l.problem.jobs[1].name);
    ck_assert_ptr_nonnull(l.problem.jobs[2].name);
    for (int g = 0; g < 4; g++)
        ck_assert(l.problem.gpus[g].may_start == (g != 0));
    world_release(&w);
}

TEST(nobody_shares_what_nobody_may)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "type whole=v100 share_max=1\nspeed w whole 10\nwatts w whole 200\n"
                           "node n9 whole\njob a w\njob b w\njob c w\n");
    lower(&w, &l);
    const struct problem *p = &l.problem;
    int both[] = { job_at(&w, &l, "a")->kind, job_at(&w, &l, "b")->kind }, n_shared = 0;
    for (int t = 0; t < p->n_types; t++) {
        struct yield y;
        bool is_whole = strcmp(p->types[t].name, "whole") == 0;
        ck_assert(!is_whole || problem_yield(p, t, 0, both, 1, &y));
        ck_assert(!is_whole || !problem_yield(p, t, 0, both, 2, &y));
        n_shared += problem_yield(p, t, 0, both, 2, &y);
    }
    ck_assert_int_gt(n_shared, 0);
    world_add(&w, "start a 4\nstart b 4\nat 600\n");    // as it was before the type said so
    ck_assert_int_eq(w.ledger.state.gpus[4].type, world_type(&w, "whole"));
    lower(&w, &l);
    ck_assert(l.problem.jobs[0].frozen && l.problem.jobs[1].frozen && !l.problem.jobs[2].frozen);
    world_release(&w);
}

/* A minute at 40 W and a price of 50 W, for a job that has 100 s left: 5,400 J, or 54 W. */
TEST(waking_is_paid_back_in_the_time_that_is_left)
{
    struct world w;
    struct lowered l;

    world_init(&w, "type v100 cap=250 idle=40 sleep=10\n"
                   "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"
                   "speed w v100 10\nwatts w v100 200\n"
                   "node n1 v100\nnode n2 v100 v100\njob a w steps=1000\njob b w steps=1e9\n"
                   "job c w steps=1000 min=1\njob d w steps=1000 prio=-9\n");
    lower(&w, &l);
    ck_assert(!problem_has_fees(&l.problem));
    ck_assert_double_eq(l.problem.jobs[0].wake_rate, 0);
    world_add(&w, "wake n1 60\n");
    world_look(&w);
    lower(&w, &l);
    const struct problem *p = &l.problem;
    double a_w = problem_come_w(p, job_at(&w, &l, "a"), 0);
    double left_s = 1000 / (double)p->speed[problem_cell(p, 0, p->jobs[0].kind, -1)];
    ck_assert(p->gpus[0].wake_s == 60 && p->gpus[1].wake_s == 0 && p->gpus[2].wake_s == 0);
    ck_assert_double_eq_tol(a_w, 5400 / left_s, 1e-6);
    ck_assert_double_eq(problem_come_w(p, job_at(&w, &l, "a"), 1), 0);
    ck_assert_double_eq_tol(problem_come_w(p, job_at(&w, &l, "b"), 0), 5400 / 1800., 1e-6);
    ck_assert_double_gt(problem_come_w(p, job_at(&w, &l, "c"), 0), a_w);    // it has a promise
    ck_assert_double_le(problem_come_w(p, job_at(&w, &l, "d"), 0),
                        0.5 * job_at(&w, &l, "d")->wait_w * (1 + 1e-12));
    world_release(&w);
}

TEST(weights_follow_priority_and_waiting)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\nat 1800\njob b w\njob c w prio=2\njob d w gpus=2\n"
                           "job e w min=1000\njob f w prio=99\njob g w\nstart g 0\n");
    lower(&w, &l);
    const struct problem_job *b = job_at(&w, &l, "b");
    ck_assert_double_eq_tol(job_at(&w, &l, "a")->wait_w, 2 * b->wait_w, 1e-6);
    ck_assert_double_eq_tol(job_at(&w, &l, "c")->wait_w, 4 * b->wait_w, 1e-6);
    ck_assert_double_eq_tol(job_at(&w, &l, "c")->short_w, 4 * b->short_w, 1e-6);
    ck_assert_double_eq_tol(job_at(&w, &l, "d")->wait_w, 2 * b->wait_w, 1e-6);
    ck_assert_double_eq_tol(job_at(&w, &l, "f")->wait_w, 32 * b->wait_w, 1e-6);
    /* Waiting is dearer than a promise that cannot be kept anyway. */
    const struct problem_job *e = job_at(&w, &l, "e");
    ck_assert_double_gt(e->wait_w, problem_short_w(&l.problem, e, (struct held){ 10, 0 }));
    /* And being stopped dearer than all waiting at equal priority. */
    ck_assert_double_gt(job_at(&w, &l, "g")->wait_w, 100 * b->wait_w);
    world_release(&w);
}

/* However dear promises are: who waits long enough starts where it keeps nothing of its own. */
TEST(waiting_comes_to_outweigh_any_promise)
{
    for (double promise_w = 1; promise_w <= 1e6; promise_w *= 10) {
        struct world w;
        struct lowered l;
        world_init(&w, CLUSTER "job a w min=1\njob b w min=1 prio=5\nat 90000\n");
        w.options.promise_w = promise_w;
        lower(&w, &l);
        for (int j = 0; j < 2; j++)
            ck_assert_double_gt(
                l.problem.jobs[j].wait_w,
                problem_short_w(&l.problem, &l.problem.jobs[j], (struct held){ 0, 0 }));
        world_release(&w);
    }
}

/* Urgency is a price of time alone: nobody waits less for it. Servers have none. */
TEST(urgency_multiplies_what_time_is_worth)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\njob b w urgency=1\njob c w urgency=2\njob d w urgency=2.5\n"
                           "job e w urgency=0.25 prio=1\njob f w rate=1 urgency=9\n"
                           "job g w urgency=100 prio=5\n");
    w.options.delay_w = 60;
    lower(&w, &l);
    static const struct {
        const char *name;
        double want_w;
    } rows[] = { { "a", 60 }, { "b", 60 }, { "c", 120 }, { "d", 120 },
                 { "e", 30 }, { "f", 0 },  { "g", 960 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct problem_job *j = job_at(&w, &l, rows[i].name);
        ck_assert_double_eq_tol(l.problem.kinds[j->kind].time_w, rows[i].want_w, 1e-9);
    }
    ck_assert_int_eq(job_at(&w, &l, "a")->kind, job_at(&w, &l, "b")->kind);
    ck_assert_int_eq(job_at(&w, &l, "c")->kind, job_at(&w, &l, "d")->kind);
    ck_assert_double_eq(job_at(&w, &l, "c")->wait_w, job_at(&w, &l, "a")->wait_w);
    world_release(&w);
}

TEST(a_move_is_dearer_the_less_is_left)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w steps=1e7\njob b w steps=8000\njob c w steps=6600\n"
                           "job d w steps=1e7 min=1\nstart a 0\nstart b 2\nstart c 1\nstart d 3\n"
                           "at 600\n");
    lower(&w, &l);
    double a = job_at(&w, &l, "a")->move_w, b = job_at(&w, &l, "b")->move_w;
    ck_assert_double_gt(b, a);
    ck_assert_double_gt(job_at(&w, &l, "d")->move_w, a * 150 / 250);    // its promise breaks
    w.options.move_s = 0;
    lower(&w, &l);
    ck_assert_double_eq(job_at(&w, &l, "a")->move_w, 0);
    world_release(&w);
}

/* What a move costs the planner, over what it costs greedy, where all speeds are in that doubt. */
static double times_greedy(const char *sd)
{
    struct world w;
    struct lowered ours, theirs;
    struct err e = { 0 };
    char cells[256];

    world_init(&w, "type v100 cap=250 idle=40 sleep=10\n"
                   "workload w params=1e6 bytes_per_sample=1e6 batch=1\n");
    snprintf(cells, sizeof cells, "speed w v100 10 sd=%s\nspeed w v100 8 beside=w sd=%s\n", sd, sd);
    world_add(&w, cells);
    world_add(&w, "watts w v100 200\nnode n1 v100\njob a w steps=1e7\nstart a 0\nat 600\n");
    world_look(&w);
    ck_assert_int_eq(
        solver_lower(&solver_gogh, &w.arena, &w.snapshot, &w.est, &w.options, &ours, &e), 0);
    ck_assert_int_eq(
        solver_lower(&solver_greedy, &w.arena, &w.snapshot, &w.est, &w.options, &theirs, &e), 0);
    double once_w = theirs.problem.jobs[0].move_w, ours_w = ours.problem.jobs[0].move_w;
    ck_assert_double_gt(once_w, 0);
    world_release(&w);
    return ours_w / once_w;
}

TEST(a_move_pays_for_the_doubt_about_it)
{
    ck_assert_double_eq_tol(times_greedy("0"), 1, 1e-6);
    ck_assert_double_eq_tol(times_greedy("0.25"), 1.75, 1e-6);
    ck_assert_double_eq_tol(times_greedy("0.5"), 2.5, 1e-6);
}

TEST(who_cannot_run_here_is_told_why)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w types=t4\njob b w gpus=65\njob c w\n");
    lower(&w, &l);
    ck_assert_int_eq((int)l.problem.jobs[0].cannot, WAIT_TYPE);
    ck_assert_int_eq((int)l.problem.jobs[1].cannot, WAIT_GANG);
    ck_assert_int_eq((int)l.problem.jobs[2].cannot, WAIT_NOT);
    ck_assert(!l.problem.jobs[0].name && !l.problem.jobs[1].name && l.problem.jobs[2].name);
    world_release(&w);
}

/* 0.8 of 4 steps/s beside somebody, whatever theta is by now; 100 W and a part of another. */
TEST(frozen_jobs_have_the_speed_and_watts_they_have)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\njob b w\nstart a 1\nstart b 1\nat 600\n");
    w.theta = 1;
    lower(&w, &l);
    int all[] = { world_workload(&w, "w"), world_workload(&w, "w") };
    const struct problem_frozen *f = l.problem.jobs[0].frozen;
    double low, speed = estimate_speed(&w.est, all[0], world_type(&w, "k80"), &all[1], 1, &low);
    ck_assert_double_eq_tol(f->speed, speed, 1e-9);
    ck_assert_double_eq_tol(f->low, low, 1e-9);
    ck_assert_double_eq_tol(l.problem.gpus[1].held_w,
                            estimate_watts(&w.est, world_type(&w, "k80"), all, NULL, 2), 1e-9);
    ck_assert_double_eq(l.problem.gpus[0].held_w, 0);
    world_release(&w);
}

TEST(what_nobody_has_tried_is_hoped_for)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "speed w v100 10 sd=0.4\nspeed x v100 20 sd=0.4\njob a w min=3\n"
                           "job b x min=6\n");    // x holds 5 on k80 and 11.4 (z = 1) on v100
    lower(&w, &l);
    const struct problem *p = &l.problem;
    int v100 = type_at(&w, &l, "v100"), a = job_at(&w, &l, "a")->kind;
    struct cell_estimate c =
        estimate_cell(&w.est, world_workload(&w, "w"), world_type(&w, "v100"), -1);
    double speed = (double)p->speed[problem_cell(p, v100, a, -1)];
    double held = (double)p->held[problem_cell(p, v100, a, -1)], fit = 1 - (double)c.unfit;
    ck_assert_double_eq_tol(speed, (double)c.speed * fit * exp(0.2), 1e-4 * speed);
    double mean = exp((double)(c.mean + c.sd * c.sd / 2));
    ck_assert_double_eq_tol(held, mean * fit, 1e-4 * held);
    world_add(&w, "job d w min=9\n");    // no type holds that
    lower(&w, &l);
    p = &l.problem;
    speed = (double)p->speed[problem_cell(p, v100, a, -1)];
    held = (double)p->held[problem_cell(p, v100, a, -1)];
    ck_assert_double_eq_tol(speed, (double)c.speed * fit * exp(1.0), 1e-4 * speed);
    ck_assert_double_eq_tol(held, mean * fit * exp(1.0), 1e-4 * held);
    c = estimate_cell(&w.est, world_workload(&w, "w"), world_type(&w, "v100"),
                      world_workload(&w, "w"));    // but not beside anybody
    held = (double)p->held[problem_cell(p, v100, a, a)];
    mean = exp((double)(c.mean + c.sd * c.sd / 2));
    ck_assert_double_eq_tol(held, mean * fit, 1e-4 * held);
    world_release(&w);
}

/* ---- tries ---- */

/* What a try of so many uses may lose, in standard deviations of what it may gain, by bisection. */
static double break_even(double uses)
{
    double low = 0, high = 9;

    for (int i = 0; i < 60; i++) {
        double z = (low + high) / 2;
        double gains = exp(-z * z / 2) / sqrt(2 * M_PI) - z * 0.5 * erfc(z / sqrt(2));
        *(gains * uses > z ? &low : &high) = z;
    }
    return low;
}

TEST(hope_is_what_a_try_is_worth)
{
    ck_assert_double_eq(lower_hope_z(0), 0);
    for (double uses = 0.01; uses < 1000; uses *= 1.3)
        ck_assert_msg(fabs(lower_hope_z(uses) - break_even(uses)) < 0.08, "%g uses: %g, %g", uses,
                      lower_hope_z(uses), break_even(uses));
}

/* Hope of a job beside another, or of a type (NULL), in its speed. */
static double hope_of(const struct world *w, const struct lowered *l, const char *type,
                      const char *job, const char *beside)
{
    int kind = job_at(w, l, job)->kind, other = beside ? job_at(w, l, beside)->kind : -1;

    return (double)l->problem.hope[problem_cell(&l->problem, type_at(w, l, type), kind, other)];
}

/* w was measured on the V100 and not on the K80, where it may be as fast; of x both are in doubt.
 */
TEST(types_in_more_doubt_are_tried)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "speed w v100 10 sd=0.01\nspeed w k80 9 sd=0.4\n"
                           "speed x v100 20 sd=0.4\nspeed x k80 20 sd=0.4\n"
                           "job a w steps=1e6\njob b x steps=1e6\n");
    lower(&w, &l);
    ck_assert_ptr_null(l.problem.hope);
    double value_j = l.problem.kinds[job_at(&w, &l, "a")->kind].value_j;
    w.options.may_probe = true;
    lower(&w, &l);
    ck_assert_double_eq(hope_of(&w, &l, "v100", "a", NULL), 1);
    ck_assert_double_gt(hope_of(&w, &l, "k80", "a", NULL), 1.2);
    // Were it worth what the K80 is hoped to make of it, it would be worth less everywhere.
    ck_assert_double_ge(l.problem.kinds[job_at(&w, &l, "a")->kind].value_j, 0.98 * value_j);
    ck_assert_double_eq_tol(hope_of(&w, &l, "v100", "b", NULL), 1, 1e-6);
    ck_assert_double_eq_tol(hope_of(&w, &l, "k80", "b", NULL), 1, 1e-6);
    world_release(&w);
}

/* A gang's speed says nothing of one GPU's; who cannot move could not go back; and by watts alone
 * there is nothing to gain.
 */
TEST(nobody_hopes_who_would_not_learn_or_gain)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "speed w v100 10 sd=0.01\nspeed w k80 9 sd=0.4\n"
                           "job a w steps=1e6 gpus=2\n");
    w.options.may_probe = true;
    lower(&w, &l);
    ck_assert_double_eq(hope_of(&w, &l, "k80", "a", NULL), 1);
    world_add(&w, "job b w steps=1e6\n");
    lower(&w, &l);
    ck_assert_double_gt(hope_of(&w, &l, "k80", "b", NULL), 1.2);
    w.options.may_move = false;
    lower(&w, &l);
    ck_assert_ptr_null(l.problem.hope);
    w.options.may_move = true;
    w.options.objective = OBJECTIVE_WATTS;
    lower(&w, &l);
    ck_assert_ptr_null(l.problem.hope);
    world_release(&w);
}

/* A slow type would take more than a tenth of what a short job has left; nobody is tried beside a
 * job that the try would delay too much, though the other has the time.
 */
TEST(tries_delay_nobody_by_much)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "speed w v100 10 sd=0.01\nspeed w k80 4 sd=0.4\n"
                           "speed w v100 6 beside=x sd=0.4\nspeed x v100 12 beside=w sd=0.4\n"
                           "job a w steps=1e6\njob b x steps=1e6\n");
    w.options.may_probe = true;
    lower(&w, &l);
    ck_assert_double_gt(hope_of(&w, &l, "k80", "a", NULL), 1);
    ck_assert_double_gt(hope_of(&w, &l, "v100", "a", "b"), 1);
    ck_assert_double_gt(hope_of(&w, &l, "v100", "b", "a"), 1);
    world_add(&w, "job c w steps=1000\n");    // 100 s
    lower(&w, &l);
    ck_assert_double_eq(hope_of(&w, &l, "k80", "a", NULL), 1);
    ck_assert_double_eq(hope_of(&w, &l, "v100", "a", "b"), hope_of(&w, &l, "v100", "a", NULL));
    ck_assert_double_eq(hope_of(&w, &l, "v100", "b", "a"), hope_of(&w, &l, "v100", "b", NULL));
    world_release(&w);
}

TEST(limits_are_offered_where_they_may_be_used)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\nstart a 0\n");
    lower(&w, &l);
    ck_assert_int_eq(l.problem.types[0].n_limits, 1);
    w.options.may_limit = true;
    lower(&w, &l);
    const struct problem_type *v100 = &l.problem.types[type_at(&w, &l, "v100")];
    ck_assert_int_eq(v100->n_limits, 8);
    ck_assert_int_eq(v100->limits[1].limit_w, 195);
    unsigned char limit[4] = { 0, 0, 0, 0 };
    struct plan_job job = { .n_gpus = 1, .gpus = l.problem.jobs[0].present };
    struct plan x = { .n_jobs = 1, .jobs = &job, .n_gpus = 4, .limit = limit };
    limit[job.gpus[0]] = 1;
    plan_price(&w.arena, &l.problem, &x);
    ck_assert_int_eq(job.limit_w, 195);
    world_apply(&w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                     .time_s = 700,
                                     .gpus = (int[]){ 0 },
                                     .n_gpus = 1,
                                     .limit_w = 195 });
    lower(&w, &l);
    ck_assert_int_eq(l.problem.jobs[0].present_limit, 1);
    w.options.may_limit = false;    // and then it is a limit that the problem cannot say
    lower(&w, &l);
    ck_assert_ptr_nonnull(l.problem.jobs[0].frozen);
    world_release(&w);
}

/* ---- what may not be used ---- */

TEST(types_that_must_not_be_told_apart_are_alike)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\njob b x\njob c huge\n");
    w.options.may_choose = false;
    lower(&w, &l);
    const struct problem *p = &l.problem;
    int v100 = type_at(&w, &l, "v100"), k80 = type_at(&w, &l, "k80");
    int a = job_at(&w, &l, "a")->kind, b = job_at(&w, &l, "b")->kind;
    int c = job_at(&w, &l, "c")->kind;
    for (int t = 0; t < 2; t++) {
        ck_assert_double_eq_tol((double)p->speed[problem_cell(p, t, a, -1)], 7, 0.01);
        ck_assert_double_eq_tol((double)p->watts[t * p->n_kinds + a], 150, 0.01);
        ck_assert_double_eq_tol((double)p->watts[t * p->n_kinds + b], 90, 0.01);
        ck_assert(p->speed[problem_cell(p, t, c, -1)] == 0);
    }
    /* Memory is no choice: who does not fit beside whom on one type, does on the other. */
    ck_assert(p->speed[problem_cell(p, v100, a, b)] > 0);
    ck_assert(p->speed[problem_cell(p, k80, a, b)] == 0);
    world_release(&w);
}

TEST(gpus_that_do_not_sleep_idle)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\n");
    lower(&w, &l);
    ck_assert_double_eq(l.problem.types[type_at(&w, &l, "v100")].sleep_w, 10);
    w.options.may_sleep = false;
    lower(&w, &l);
    ck_assert_double_eq(l.problem.types[type_at(&w, &l, "v100")].sleep_w, 40);
    ck_assert_double_eq(l.problem.types[type_at(&w, &l, "k80")].sleep_w, 30);
    world_release(&w);
}

/* ---- limits ---- */

/* What is known of w on a v100, and then starts job 0 there under a limit. */
static void start_limited(struct world *w, float watts_sd, int limit_w)
{
    const struct told_cell est = { .ln_speed = log(10),
                                   .ln_watts = log(200),
                                   .watts_sd = (double)watts_sd,
                                   .bend = { exp(0.5), exp(0.25), 0.125, -0.5 } };

    estimate_tell(&w->est, world_workload(w, "w"), world_type(w, "v100"), -1, &est);
    world_apply(w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                    .time_s = w->now_s,
                                    .gpus = (int[]){ 0 },
                                    .n_gpus = 1,
                                    .limit_w = limit_w });
}

TEST(what_is_known_of_limits_is_in_it)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\n");
    start_limited(&w, 0.05F, 195);
    lower(&w, &l);
    ck_assert_ptr_null(l.problem.bends);    // nobody may limit
    w.options.may_limit = true;
    lower(&w, &l);
    const struct problem_bend *b =
        &l.problem.bends[type_at(&w, &l, "v100") * l.problem.n_kinds + l.problem.jobs[0].kind];
    ck_assert_double_eq_tol((double)b->loss, exp(0.5), 1e-6);
    ck_assert_double_eq_tol((double)b->draw, exp(0.25), 1e-6);
    ck_assert_double_eq_tol((double)b->doubt, w.est.z * 0.125, 1e-6);
    ck_assert_double_eq_tol((double)b->at, -0.5, 1e-6);
    ck_assert(!b->is_free);
    world_release(&w);
}

static const struct {
    const char *name;
    float watts_sd;
    double cap_w;
    int setting, frozen;
} lifted[] = {
    { "a limit on whose watts are known is part of it", 0.05F, 0, 1, 0 },
    { "one on whose are not is seen as lifted", 0.3F, 0, 0, 0 },
    { "also where the cap leaves watts for that", 0.3F, 320, 0, 0 },
    { "where it does not, the job stays as it is", 0.3F, 290, 1, 1 },
    { "and where it is broken already", 0.3F, 50, 1, 1 },
};

EACH(limits_that_must_not_be_are_lifted, lifted)
{
    struct world w;
    struct lowered l;

    world_init(&w, CLUSTER "job a w\n");
    start_limited(&w, lifted[_i].watts_sd, 195);
    w.options.may_limit = true;
    w.options.power_cap_w = lifted[_i].cap_w;
    lower(&w, &l);
    ck_assert_msg(l.problem.jobs[0].present_limit == lifted[_i].setting &&
                      (l.problem.jobs[0].frozen != NULL) == lifted[_i].frozen,
                  "%s: setting %d", lifted[_i].name, l.problem.jobs[0].present_limit);
    world_release(&w);
}

/* ---- random worlds ---- */

static void random_cells(struct rng *r, struct world *w)
{
    static const char *const lines[] = { "type v100", "type k80", "type a100" };
    char line[200];

    for (int t = 0; t < 3; t++)
        world_add(w, lines[t]);
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "workload w%d params=%g bytes_per_sample=%g batch=8\n", i,
                 exp(rng_between(r, log(1e6), log(2e9))), exp(rng_between(r, log(1e6), log(1e9))));
        world_add(w, line);
    }
    for (int k = 0; k < 20; k++) {
        struct told_cell est = { .ln_speed = rng_between(r, -1, 3),
                                 .sd = rng_between(r, 0, 0.6),
                                 .ln_watts = rng_between(r, 4, 5.4) };
        estimate_tell(&w->est, (int)rng_below(r, 4), (int)rng_below(r, 3), (int)rng_below(r, 5) - 1,
                      &est);
    }
}

static void random_job(struct rng *r, struct world *w, int i)
{
    char name[16];

    snprintf(name, sizeof name, "j%d", i);
    struct job_spec s = spec_of(name, (int)rng_below(r, 4));
    s.min_throughput = rng_below(r, 2) ? exp(rng_between(r, -1, 3)) : 0;
    s.n_gpus = rng_below(r, 3) ? 1 : 1 + (int)rng_below(r, 3);
    s.max_gpus = s.n_gpus + (int)rng_below(r, 2);
    s.is_exclusive = rng_below(r, 5) == 0;
    s.n_nodes = rng_below(r, 3) == 0;
    s.allowed_types = rng_below(r, 3) ? 0 : 1 + rng_below(r, 7);
    draw_submission(r, w, &s, 3);
}

/* On any GPUs that still take somebody, lawful or not. */
static void random_start(struct rng *r, struct world *w, int job)
{
    const struct state *s = &w->ledger.state;
    int gpus[4], n = 0, want = s->jobs[job]->spec.n_gpus;
    int first = (int)rng_below(r, (uint64_t)s->n_gpus);

    for (int i = 0; i < s->n_gpus && n < want; i++) {
        int g = (first + i) % s->n_gpus;
        if (s->gpus[g].n_jobs < 3)
            gpus[n++] = g;
    }
    if (n == want)
        world_apply(w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                        .time_s = w->now_s,
                                        .job = job,
                                        .gpus = gpus,
                                        .n_gpus = n });
}

static void random_world(struct rng *r, struct world *w)
{
    world_init(w, "");
    random_cells(r, w);
    w->theta = 1 + (int)rng_below(r, 3);
    draw_nodes(r, w, 4);
    for (int i = 0, n = (int)rng_below(r, 10); i < n; i++) {
        random_job(r, w, i);
        if (rng_below(r, 2))
            random_start(r, w, i);
    }
    w->now_s = rng_below(r, 2) ? 1234.5 : 10;
    w->options.may_share = rng_below(r, 4) > 0;
    w->options.may_move = rng_below(r, 4) > 0;
    w->options.power_cap_w = rng_below(r, 2) ? 0 : rng_between(r, 50, 2500);
}

/* Everything stays as it is: what a planner may always answer. */
static void standing(struct world *w, const struct lowered *l, struct plan *x)
{
    const struct problem *p = &l->problem;

    *x = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    x->jobs = ARENA_ARRAY(&w->arena, struct plan_job, (size_t)p->n_jobs);
    x->limit = ARENA_ARRAY(&w->arena, unsigned char, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++) {
        if (p->jobs[j].name)
            x->jobs[j] =
                (struct plan_job){ .n_gpus = p->jobs[j].n_present, .gpus = p->jobs[j].present };
        x->jobs[j].reason = x->jobs[j].n_gpus ? WAIT_NOT : WAIT_CAPACITY;
    }
}

TIMES(what_stands_may_stay, 4)
{
    struct rng r;
    int n_frozen = 0, n_present = 0;

    rng_init(&r, (uint64_t)_i, "standing");
    for (int i = 0; i < 200; i++) {
        struct world w;
        struct lowered l;
        struct plan p;
        struct err e = { 0 };
        random_world(&r, &w);
        lower(&w, &l);
        standing(&w, &l, &p);
        plan_price(&w.arena, &l.problem, &p);
        for (int j = 0; j < w.snapshot.n_jobs; j++) {
            ck_assert_int_eq(p.jobs[j].n_gpus, w.snapshot.jobs[j].n_held);
            n_frozen += l.problem.jobs[j].frozen != NULL;
            n_present += l.problem.jobs[j].name && l.problem.jobs[j].n_present > 0;
        }
        if (plan_check(&w.arena, &l.problem, &p, &e) < 0)
            ck_abort_msg("%s", e.text);
        world_release(&w);
    }
    ck_assert_int_gt(n_frozen, 50);
    ck_assert_int_gt(n_present, 50);
}

/* All combinations of up to theta of the jobs, on every type. */
static void check_combination(const struct world *w, const struct lowered *l, int type,
                              const int *jobs, int n)
{
    const struct snapshot *s = &w->snapshot;
    const struct problem *p = &l->problem;
    int kinds[3], workloads[3], t = l->type_of[type];
    double rates[3], sure = 1;
    struct yield y;

    for (int i = 0; i < n; i++) {
        kinds[i] = p->jobs[jobs[i]].kind;
        workloads[i] = s->jobs[jobs[i]].workload;
        rates[i] = job_serves(s->jobs[jobs[i]].spec);
    }
    double unfit = estimate_unfit(&w->est, t, workloads, n);
    bool fits = unfit <= (n > 1 ? w->options.unfit_max : w->options.alone_unfit_max);
    bool may = problem_yield(p, type, 0, kinds, n, &y);
    ck_assert_msg(fits || !may, "the judge would refuse (%d jobs, %g)", n, unfit);
    ck_assert_msg(may || !fits || p->theta == 3, "the judge would not refuse");
    for (int i = 0; i < n && may; i++) {
        int others[2], k = 0;
        struct cell_estimate alone = estimate_cell(&w->est, workloads[i], t, -1);
        double low, fit = 1 - (double)alone.unfit;
        double hope =
            fmax(exp(2.5 * (double)alone.sd), 10);    // at most: CURIOSITY_LOST, HOPE_MOST
        for (int o = 0; o < n; o++)
            if (o != i)
                others[k++] = workloads[o];
        double speed = estimate_speed(&w->est, workloads[i], t, others, k, &low);
        ck_assert_double_ge(y.speed[i], speed * fit * (1 - 1e-5));
        ck_assert_double_le(y.speed[i], speed * fit * hope * (1 + 1e-5));
        if (n < 3)    // of three, what is hoped of speeds is not hoped of what is held
            ck_assert_double_ge(y.held[i].mean, low * fit * (1 - 1e-5));
        ck_assert_double_le(held_low(y.held[i]), low * fit * hope * (1 + 1e-5));
        sure = fmin(sure, fit);
    }
    double watts = estimate_watts(&w->est, t, workloads, rates, n);
    if (may)    // never less; more by how rates are rounded up and by doubt
        ck_assert_msg(y.watts * (1 + 1e-6) >= watts && y.watts < 1.06 * watts / sure, "%g W are %g",
                      watts, y.watts);
}

TIMES(combinations_are_what_the_judge_of_plans_says, 4)
{
    struct rng r;

    rng_init(&r, (uint64_t)_i, "combinations");
    for (int i = 0; i < 50; i++) {
        struct world w;
        struct lowered l;
        random_world(&r, &w);
        lower(&w, &l);
        int n = w.snapshot.n_jobs;
        for (int t = 0; t < l.problem.n_types; t++)
            for (int a = 0; a < n; a++) {
                check_combination(&w, &l, t, &a, 1);
                for (int b = 0; b < n && l.problem.theta > 1; b++) {
                    check_combination(&w, &l, t, (int[]){ a, b }, 2);
                    for (int c = 0; c < n && l.problem.theta > 2; c++)
                        check_combination(&w, &l, t, (int[]){ a, b, c }, 3);
                }
            }
        world_release(&w);
    }
}

/* The most throughput of all jobs together, after Gavel (Narayanan et al., OSDI 2020): a linear
 * program says how many GPUs of each type should run what, alone or two together, and placements
 * come near its optimum. There, placements are leases of a round of six minutes. Here a job is not
 * moved or stopped before it has had one; newcomers do not wait for the next round but start as
 * soon as there is room. Where the program agrees with what is, or nearly so, nobody moves. Its
 * priorities, what a job was allotted over what it received, become a weight that grows with
 * waiting: a solver keeps no accounts between two decisions.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/model/plan.h"
#include "optimize/policy/gavel_inner.h"

/* When its jobs have waited this long in the mean, the throughput of a class counts twice. */
#define WAITED_S 3600.0

/* Classes of jobs in the program; jobs of further ones stay where they are, or take what is left.
 */
#define CLASSES_MAX 96

/* Where promises count, jobs whose needs differ by less than this factor are of one class, which
 * needs the most of them.
 */
#define NEED_STEP 1.25

/* ---- who is not in the program ---- */

/* What a place that can be had is worth to a job by itself: the less the better. */
static double dislike(struct gavel_program *g, int job, const int *gpus, int n, double speed)
{
    struct offer offer;

    if (!g->minds_cost || !work_weigh(&g->work, job, gpus, n, &offer))
        return -speed;
    return offer.cost_w + (offer.keeps ? 0 : g->work.problem->jobs[job].short_w);
}

/* On the best of free GPUs; false: there are too few. '*n_wanted' (n_types) is what it could take.
 */
static bool place_alone(struct gavel_program *g, int job, int *n_wanted)
{
    const struct problem_job *j = &g->work.problem->jobs[job];
    struct destination to = { 0 };
    struct yield alone;
    int gpus[GANG_MAX];

    for (int type = 0; type < g->work.problem->n_types; type++) {
        bool suits = work_suits(&g->work, job, type, &alone);
        n_wanted[type] = suits ? j->n_min : 0;
        if (!suits || !backfill_free(&g->backfill, job, type, j->n_min, gpus))
            continue;
        double speed = alone.speed[0] * work_gang_factor(&g->work, job, type, j->n_min);
        work_prefer(&to, dislike(g, job, gpus, j->n_min, speed), gpus, j->n_min);
    }
    return work_put(&g->work, job, &to);
}

/* Gangs take free GPUs before anybody else; the first that finds too few has some reserved. */
static void place_gangs(struct gavel_program *g)
{
    int *n_wanted = ARENA_ARRAY(g->work.arena, int, (size_t)g->work.problem->n_types);

    for (int j = 0; j < g->work.problem->n_jobs; j++)
        if (work_is_waiting(&g->work, j) && g->work.problem->jobs[j].n_min > 1 &&
            !place_alone(g, j, n_wanted) && assignment_never(g->work.assignment, j) == WAIT_NOT)
            backfill_reserve(&g->backfill, j, n_wanted);
}

/* Newcomers that the program knows nothing of: the best of what is left. */
static void place_strangers(struct gavel_program *g)
{
    int *n_wanted = ARENA_ARRAY(g->work.arena, int, (size_t)g->work.problem->n_types);

    for (int j = 0; j < g->work.problem->n_jobs; j++)
        if (work_is_waiting(&g->work, j) && g->class_of[j] < 0 &&
            g->work.problem->jobs[j].n_min == 1)
            place_alone(g, j, n_wanted);
}

/* ---- classes ---- */

/* The first kind of the same workload, of those that serve or those that train. */
static int first_of_workload(const struct problem *p, int kind)
{
    int k = 0;

    while (strcmp(p->kinds[k].name, p->kinds[kind].name) != 0 ||
           (p->kinds[k].rate > 0) != (p->kinds[kind].rate > 0))
        k++;
    return k;
}

static double stepped(double need)
{
    return exp(ceil(log(need) / log(NEED_STEP)) * log(NEED_STEP));
}

/* The class of a job of a kind, found or made; -1: there are enough. */
static int class_for(struct gavel_program *g, const struct problem_job *j, int kind)
{
    const struct gavel_class new = { .kind = kind,
                                     .allowed_types = j->allowed_types,
                                     .is_exclusive = j->is_exclusive,
                                     .need = g->minds_cost && j->need > 0 ? stepped(j->need) : 0 };
    int c = 0;

    while (c < g->n_classes &&
           (g->classes[c].kind != kind || g->classes[c].allowed_types != new.allowed_types ||
            g->classes[c].is_exclusive != new.is_exclusive || g->classes[c].need != new.need))
        c++;
    if (c == CLASSES_MAX)
        return -1;
    if (c == g->n_classes)
        g->classes[g->n_classes++] = new;
    return c;
}

/* Of jobs that have one GPU, or want one. */
static void find_classes(struct gavel_program *g)
{
    const struct problem *p = g->work.problem;
    int *kind_of = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_kinds);

    for (int k = 0; k < p->n_kinds; k++)
        kind_of[k] = first_of_workload(p, k);
    g->classes = ARENA_ARRAY(g->work.arena, struct gavel_class, CLASSES_MAX);
    g->class_of = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_jobs);
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        bool is_in = j->name && (j->n_present ? j->n_present == 1 : j->n_min == 1);
        g->class_of[i] = is_in ? class_for(g, j, kind_of[j->kind]) : -1;
    }
}

/* GPUs that nothing may be started on, whose residents the program cannot speak of, or that are
 * reserved stay as they are.
 */
static bool is_beyond(const struct gavel_program *g, int gpu)
{
    const struct problem_gpu *pg = &g->work.problem->gpus[gpu];
    const struct assignment_gpu *dg = &g->work.assignment->gpus[gpu];

    for (int i = 0; i < dg->n_jobs; i++)
        if (g->class_of[dg->jobs[i]] < 0)
            return true;
    return !pg->may_start || dg->n_jobs > 2 || g->backfill.is_reserved[gpu];
}

static void leave_out(struct gavel_program *g)
{
    const struct problem *p = g->work.problem;

    g->is_out = ARENA_ARRAY(g->work.arena, bool, (size_t)p->n_gpus);
    g->n_gpus = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_types);
    for (int i = 0; i < p->n_gpus; i++) {
        const struct assignment_gpu *dg = &g->work.assignment->gpus[i];
        g->is_out[i] = is_beyond(g, i);
        g->n_gpus[p->gpus[i].type] += !g->is_out[i];
        for (int k = 0; k < dg->n_jobs && g->is_out[i]; k++)
            g->class_of[dg->jobs[k]] = -1;
    }
}

static void weigh_classes(struct gavel_program *g)
{
    const struct problem *p = g->work.problem;

    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        if (g->class_of[i] < 0)
            continue;
        struct gavel_class *c = &g->classes[g->class_of[i]];
        c->n_jobs++;
        g->time_w += p->kinds[j->kind].time_w;
        c->rate += p->kinds[j->kind].rate;
        c->weight += j->n_present ? 0 : j->since_s / WAITED_S;
    }
    for (struct gavel_class *c = g->classes; c < g->classes + g->n_classes; c++) {
        c->rate /= fmax(c->n_jobs, 1);
        c->weight = 1 + c->weight / fmax(c->n_jobs, 1);
    }
}

/* ---- the plan ---- */

/* Whoever is not where the program wants it moves, if that does more, moves paid for. Under a power
 * cap nobody does.
 */
static void draft_best(struct gavel_program *g)
{
    double value[2];

    for (int may_move = 0; may_move < 2; may_move++) {
        assignment_mark(g->work.assignment);
        value[may_move] = gavel_draft(g, may_move);
        assignment_undo(g->work.assignment);
    }
    gavel_draft(g, value[1] > value[0] && !g->work.assignment->has_caps);
}

static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e)
{
    const bool *minds_cost = self->how;
    struct gavel_program g = { .minds_cost = *minds_cost };

    (void)e;
    work_begin(&g.work, a, p);
    g.work.assignment->is_keeping = g.minds_cost;    // else promises do not enter
    backfill_begin(&g.backfill, &g.work);
    place_gangs(&g);
    find_classes(&g);
    leave_out(&g);
    weigh_classes(&g);
    gavel_solve(&g);
    draft_best(&g);
    place_strangers(&g);
    g.work.assignment->is_keeping = true;    // but limits never break them
    for (int j = 0; j < p->n_jobs; j++)
        g.work.why[j] = p->jobs[j].n_present > 0 ? WAIT_TURN : WAIT_NOT;
    work_end(&g.work, out);
    return 0;
}

static const bool no_cost = false, cost = true;

const struct solver solver_gavel = {
    .name = "gavel",
    .about = "most throughput of all jobs together on unlike and shared GPUs by a linear program, "
             "after Gavel (OSDI 2020); promises are not part of its aim",
    .levers = LEVER_BIT(SHARING) | LEVER_BIT(MOVING),
    .how = &no_cost,
    .solve = solve,
};

const struct solver solver_gavel_cost = {
    .name = "gavel-cost",
    .about =
        "Gavel's program for the most throughput in proportion to its cost, which is watts and "
        "the price of jobs' time; promises are kept where that can be",
    .levers = LEVER_BIT(SHARING) | LEVER_BIT(MOVING),
    .how = &cost,
    .solve = solve,
};

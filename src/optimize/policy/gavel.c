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

/* ---- who is not in the program ---- */

/* The type where the job is fastest among those not saved with room now, which goes to 'free', or
 * without that with GPUs enough at all; -1: none.
 */
static int fastest_type(const struct policy_work *w, const bool *is_saved, int job,
                        struct destination *free)
{
    const struct problem_job *j = &w->problem->jobs[job];
    int best = -1, gpus[GANG_MAX];
    struct yield alone;
    double most = 0;

    for (int type = 0; type < w->problem->n_types; type++) {
        if (is_saved[type] || !work_suits(w, job, type, &alone) ||
            (free && !assignment_free(w->assignment, job, type, j->n_min, gpus)))
            continue;
        double speed = alone.speed[0] * work_gang_factor(w, job, type, j->n_min);
        if (speed <= most)
            continue;
        most = speed;
        best = type;
        if (free)
            work_prefer(free, -speed, gpus, j->n_min);
    }
    return best;
}

static bool place_fastest(struct policy_work *w, const bool *is_saved, int job)
{
    struct destination to = { 0 };

    fastest_type(w, is_saved, job, &to);
    return work_put(w, job, &to);
}

/* Gangs take free GPUs before anybody else; one that finds too few has those of one type saved. */
static void place_gangs(struct policy_work *w, bool *is_saved)
{
    for (int j = 0; j < w->problem->n_jobs; j++) {
        if (!work_is_waiting(w, j) || w->problem->jobs[j].n_min == 1 ||
            place_fastest(w, is_saved, j))
            continue;
        int type = fastest_type(w, is_saved, j, NULL);
        if (type >= 0)
            is_saved[type] = true;
    }
}

/* Newcomers that the program knows nothing of: the fastest of what is left. */
static void place_strangers(struct gavel_program *g, const bool *is_saved)
{
    for (int j = 0; j < g->work.problem->n_jobs; j++)
        if (work_is_waiting(&g->work, j) && g->class_of[j] < 0 &&
            g->work.problem->jobs[j].n_min == 1)
            place_fastest(&g->work, is_saved, j);
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

/* The class of a job of a kind, found or made; -1: there are enough. */
static int class_for(struct gavel_program *g, const struct problem_job *j, int kind)
{
    int c = 0;

    while (c < g->n_classes &&
           (g->classes[c].kind != kind || g->classes[c].allowed_types != j->allowed_types ||
            g->classes[c].is_exclusive != j->is_exclusive))
        c++;
    if (c == CLASSES_MAX)
        return -1;
    if (c == g->n_classes)
        g->classes[g->n_classes++] = (struct gavel_class){ .kind = kind,
                                                           .allowed_types = j->allowed_types,
                                                           .is_exclusive = j->is_exclusive };
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
 * saved stay as they are.
 */
static bool is_beyond(const struct gavel_program *g, int gpu, const bool *is_saved)
{
    const struct problem_gpu *pg = &g->work.problem->gpus[gpu];
    const struct assignment_gpu *dg = &g->work.assignment->gpus[gpu];

    for (int i = 0; i < dg->n_jobs; i++)
        if (g->class_of[dg->jobs[i]] < 0)
            return true;
    return !pg->may_start || dg->n_jobs > 2 || (dg->n_jobs == 0 && is_saved[pg->type]);
}

static void leave_out(struct gavel_program *g, const bool *is_saved)
{
    const struct problem *p = g->work.problem;

    g->is_out = ARENA_ARRAY(g->work.arena, bool, (size_t)p->n_gpus);
    g->n_gpus = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_types);
    for (int i = 0; i < p->n_gpus; i++) {
        const struct assignment_gpu *dg = &g->work.assignment->gpus[i];
        g->is_out[i] = is_beyond(g, i, is_saved);
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
    struct gavel_program g = { 0 };
    bool *is_saved = ARENA_ARRAY(a, bool, (size_t)p->n_types);

    (void)self, (void)e;
    work_begin(&g.work, a, p);
    g.work.assignment->is_keeping = false;    // promises do not enter
    place_gangs(&g.work, is_saved);
    find_classes(&g);
    leave_out(&g, is_saved);
    weigh_classes(&g);
    gavel_solve(&g);
    draft_best(&g);
    place_strangers(&g, is_saved);
    g.work.assignment->is_keeping = true;    // but limits are not to break them
    for (int j = 0; j < p->n_jobs; j++)
        g.work.why[j] = p->jobs[j].n_present > 0 ? WAIT_TURN : WAIT_NOT;
    work_end(&g.work, out);
    return 0;
}

const struct solver solver_gavel = {
    .name = "gavel",
    .about = "most throughput of all jobs together on unlike and shared GPUs by a linear program, "
             "after Gavel (OSDI 2020); promises are not part of its aim",
    .levers = LEVER_BIT(SHARING) | LEVER_BIT(MOVING),
    .solve = solve,
};

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
#include "optimize/policy/solver.h"

/* When its jobs have waited this long in the mean, the throughput of a class counts twice. */
#define WAITED_S 3600.0

/* Classes of jobs in the program; jobs of further ones stay where they are, or take what is left.
 */
#define CLASSES_MAX 96

/* ---- who is not in the program ---- */

/* The type where the job is fastest among those not saved with room now ('gpus' not NULL: these),
 * or with GPUs enough at all; -1: none.
 */
static int fastest_type(const struct work *w, const bool *is_saved, int job, int *gpus)
{
    const struct problem_job *j = &w->problem->jobs[job];
    struct yield alone;
    double most = 0;
    int best = -1;

    for (int type = 0; type < w->problem->n_types; type++) {
        if (desk_stock_for(w->desk, &w->stock, job, type) < j->n_min || is_saved[type] ||
            !work_suits(w, job, type, &alone) ||
            (gpus && !desk_free(w->desk, job, type, j->n_min, gpus)))
            continue;
        bool is_far = j->n_nodes > 1 || j->n_min > w->stock.n_node[type];
        double speed =
            alone.speed[0] * (is_far ? w->problem->gang_far : w->problem->gang_near)[j->n_min];
        if (speed > most) {
            most = speed;
            best = type;
        }
    }
    if (gpus && best >= 0)
        desk_free(w->desk, job, best, j->n_min, gpus);
    return best;
}

static bool place_fastest(struct work *w, const bool *is_saved, int job)
{
    int gpus[GANG_MAX];

    return fastest_type(w, is_saved, job, gpus) >= 0 &&
           desk_put(w->desk, job, gpus, w->problem->jobs[job].n_min, -1);
}

/* Gangs take free GPUs before anybody else; one that finds too few has those of one type saved. */
static void place_gangs(struct work *w, bool *is_saved)
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
static void place_strangers(struct gavel *g, const bool *is_saved)
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

/* The class of a job of a kind, found or made; -1: there are enough. 'first' and 'next' chain the
 * classes of a kind, off by one.
 */
static int class_for(struct gavel_program *p, const struct problem_job *j, int kind, int *first,
                     int *next)
{
    for (int c = first[kind]; c > 0; c = next[c - 1])
        if (p->classes[c - 1].allowed_types == j->allowed_types &&
            p->classes[c - 1].is_exclusive == j->is_exclusive)
            return c - 1;
    if (p->n_classes == CLASSES_MAX)
        return -1;
    p->classes[p->n_classes] = (struct gavel_class){ .kind = kind,
                                                     .allowed_types = j->allowed_types,
                                                     .is_exclusive = j->is_exclusive };
    next[p->n_classes] = first[kind];
    first[kind] = ++p->n_classes;
    return p->n_classes - 1;
}

/* Of jobs that have one GPU, or want one. */
static void find_classes(struct gavel *g)
{
    const struct problem *p = g->work.problem;
    int *first = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_kinds);
    int *next = ARENA_ARRAY(g->work.arena, int, CLASSES_MAX);
    int *kind_of = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_kinds);

    for (int k = 0; k < p->n_kinds; k++)
        kind_of[k] = first_of_workload(p, k);
    g->program.classes = ARENA_ARRAY(g->work.arena, struct gavel_class, CLASSES_MAX);
    g->class_of = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_jobs);
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        bool is_in = j->name && (j->n_present ? j->n_present == 1 : j->n_min == 1);
        g->class_of[i] = is_in ? class_for(&g->program, j, kind_of[j->kind], first, next) : -1;
    }
}

/* GPUs that nothing may be started on, whose residents the program cannot speak of, or that are
 * saved stay as they are.
 */
static bool is_beyond(const struct gavel *g, int gpu, const bool *is_saved)
{
    const struct problem_gpu *pg = &g->work.problem->gpus[gpu];
    const struct desk_gpu *dg = &g->work.desk->gpus[gpu];

    for (int i = 0; i < dg->n_jobs; i++)
        if (g->class_of[dg->jobs[i]] < 0)
            return true;
    return !pg->may_start || dg->n_jobs > 2 || (dg->n_jobs == 0 && is_saved[pg->type]);
}

static void leave_out(struct gavel *g, const bool *is_saved)
{
    const struct problem *p = g->work.problem;

    g->is_out = ARENA_ARRAY(g->work.arena, bool, (size_t)p->n_gpus);
    g->program.n_gpus = ARENA_ARRAY(g->work.arena, int, (size_t)p->n_types);
    for (int i = 0; i < p->n_gpus; i++) {
        const struct desk_gpu *dg = &g->work.desk->gpus[i];
        g->is_out[i] = is_beyond(g, i, is_saved);
        g->program.n_gpus[p->gpus[i].type] += !g->is_out[i];
        for (int k = 0; k < dg->n_jobs && g->is_out[i]; k++)
            g->class_of[dg->jobs[k]] = -1;
    }
}

static void weigh_classes(struct gavel *g)
{
    struct gavel_program *p = &g->program;

    for (int i = 0; i < p->problem->n_jobs; i++) {
        const struct problem_job *j = &p->problem->jobs[i];
        if (g->class_of[i] < 0)
            continue;
        p->classes[g->class_of[i]].n_jobs++;
        p->classes[g->class_of[i]].rate += p->problem->kinds[j->kind].rate;
        p->classes[g->class_of[i]].weight += j->n_present ? 0 : j->since_s / WAITED_S;
    }
    for (int c = 0; c < p->n_classes; c++) {
        p->classes[c].rate /= fmax(p->classes[c].n_jobs, 1);
        p->classes[c].weight = 1 + p->classes[c].weight / fmax(p->classes[c].n_jobs, 1);
    }
}

/* ---- the plan ---- */

/* Whoever is not where the program wants it moves, if that does more, moves paid for. Under a power
 * cap nobody does.
 */
static void draft_best(struct gavel *g)
{
    double value[2];

    for (int may_move = 0; may_move < 2; may_move++) {
        desk_mark(g->work.desk);
        value[may_move] = gavel_draft(g, may_move);
        desk_undo(g->work.desk);
    }
    gavel_draft(g, value[1] > value[0] && !g->work.desk->has_caps);
}

static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, enum verdict *verdict, struct err *e)
{
    struct gavel g = { .program = { .arena = a, .problem = p } };
    bool *is_saved = ARENA_ARRAY(a, bool, (size_t)p->n_types);

    (void)self, (void)e;
    work_begin(&g.work, a, p);
    g.work.desk->is_keeping = false;    // promises do not enter
    place_gangs(&g.work, is_saved);
    find_classes(&g);
    leave_out(&g, is_saved);
    weigh_classes(&g);
    gavel_program_solve(&g.program);
    draft_best(&g);
    place_strangers(&g, is_saved);
    g.work.desk->is_keeping = true;    // but limits are not to break them
    for (int j = 0; j < p->n_jobs; j++)
        g.work.why[j] = p->jobs[j].n_present > 0 ? WAIT_TURN : WAIT_NOT;
    work_end(&g.work, out);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

const struct solver solver_gavel = { .name = "gavel", .solve = solve };

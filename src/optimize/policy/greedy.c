/* The standing fallback: each waiting job, in order, takes the place that costs least, and waits
 * where that costs less. Nobody's kept promise is broken to let another in. Afterwards some of
 * those that run are offered another place, moving included.
 */
#include "optimize/policy/work.h"

/* Running jobs that are offered another place per decision; all get their turn in time. */
#define MOVES_CONSIDERED 32

/* They have run for so long, and a move saves this part of what their GPU draws. */
#define SETTLED_S 600.0
#define MOVE_GAIN 0.10

static bool may_move(const struct policy_work *w, int job)
{
    const struct problem_job *j = &w->problem->jobs[job];

    return j->name && j->n_present > 0 && !j->is_fixed && j->since_s >= SETTLED_S;
}

static void reconsider(struct assignment *d, int job)
{
    double before_w = assignment_cost(d), watts = d->gpus[assignment_gpus(d, job)[0]].watts;

    assignment_mark(d);
    if (assignment_take(d, job) && assignment_insert(d, job) &&
        assignment_cost(d) < before_w - MOVE_GAIN * watts)
        assignment_keep(d);
    else
        assignment_undo(d);
}

static void improve_running(struct policy_work *w)
{
    int n = w->problem->n_jobs, tries = MOVES_CONSIDERED;
    int first = n > 0 ? (int)(w->problem->turn % (uint64_t)n) : 0;

    for (int i = 0; i < n && tries > 0; i++)
        if (may_move(w, (first + i) % n)) {
            reconsider(w->assignment, (first + i) % n);
            tries--;
        }
}

static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e)
{
    struct policy_work w;

    (void)self, (void)e;
    work_begin(&w, a, p);
    for (int j = 0; j < p->n_jobs; j++)
        if (work_is_waiting(&w, j))
            assignment_insert(w.assignment, j);
    improve_running(&w);
    work_end(&w, out);
    return 0;
}

const struct solver solver_greedy = {
    .name = "greedy",
    .about = "each waiting job takes the place that costs least; some running jobs are offered a "
             "better one",
    .levers = LEVER_BIT(SHARING) | LEVER_BIT(MOVING),
    .solve = solve,
};

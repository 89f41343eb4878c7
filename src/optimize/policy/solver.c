#include "optimize/policy/solver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/model/lower.h"

/* What a move saves is an estimate, and the planner takes the most hopeful of thousands of them: to
 * it a move pays for the doubt about what it brings, too. Greedy has a margin of its own. Measured
 * in docs/experiments.md, "Moves".
 */
#define MOVE_DOUBT 3.0

bool solver_has_lever(const struct solver *self, enum lever l)
{
    return ((self->levers | LEVER_BIT(SLEEP) | LEVER_BIT(LIMITS)) >> l & 1) != 0;
}

int solver_lower(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct lowered *out,
                 struct err *e)
{
    struct solve_options mine = *o;

    if (solver_has_lever(self, LEVER_TYPES))
        mine.move_doubt = MOVE_DOUBT;
    else
        mine.may_choose = true;
    mine.may_probe = o->may_probe && solver_has_lever(self, LEVER_MOVING);    // and go back
    if (!solver_has_lever(self, LEVER_JOULES))
        mine.objective = self->objective;
    return lower_problem(a, s, est, &mine, out, e);
}

int solver_plan(const struct solver *self, struct arena *a, const struct lowered *asked,
                struct plan *out, struct err *e)
{
    int rc = self->solve(self, a, &asked->problem, out, e);

    out->made_by = self->name;
    return rc < 0 ? rc : plan_check(a, &asked->problem, out, e);
}

static const struct solver *const all[] = {
    &solver_gogh,        &solver_watts,        &solver_greedy,
    &solver_gavel,       &solver_gavel_cost,   &solver_pack,
    &solver_eaco,        &solver_fifo_promise, &solver_fifo_fastest,
    &solver_fifo_random, &solver_fifo_first,   &solver_slurm,
    &solver_static_peak, &solver_autoscaler,   NULL,
};

const struct solver *solver_at(int i)
{
    return all[i];
}

int solver_by_name(const char *name, uint64_t seed, struct solver *out, struct err *e)
{
    char names[256] = "";
    size_t len = 0;

    for (const struct solver *const *s = all; *s; s++) {
        if (strcmp((*s)->name, name) == 0) {
            *out = **s;
            out->seed = seed;
            return 0;
        }
        len +=
            (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", (*s)->name);
    }
    return err_set(e, ENOENT, "no policy '%s'; there are %s", name, names);
}

#include "optimize/policy/solver.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/model/lower.h"

const struct solve_options solve_defaults = { .price_w = 50,
                                              .move_s = 60,
                                              .settle_s = 300,
                                              .unfit_max = 0.25,
                                              .alone_unfit_max = 0.9,
                                              .may_share = true,
                                              .may_move = true,
                                              .may_choose = true,
                                              .may_sleep = true };

static const char *const lever_names[LEVERS] = {
    [LEVER_TYPES] = "types", [LEVER_SHARING] = "sharing", [LEVER_MOVING] = "moving",
    [LEVER_SLEEP] = "sleep", [LEVER_LIMITS] = "limits",   [LEVER_JOULES] = "joules",
};

const char *lever_name(enum lever l)
{
    return lever_names[l];
}

int lever_by_name(const char *name)
{
    for (int l = 0; l < LEVERS; l++)
        if (strcmp(lever_names[l], name) == 0)
            return l;
    return -1;
}

void lever_take(struct solve_options *o, enum lever l)
{
    o->may_choose &= l != LEVER_TYPES;
    o->may_share &= l != LEVER_SHARING;
    o->may_move &= l != LEVER_MOVING;
    o->may_sleep &= l != LEVER_SLEEP;
    o->may_limit &= l != LEVER_LIMITS;
    if (l == LEVER_JOULES)
        o->objective = OBJECTIVE_WATTS;
}

/* What a move saves is an estimate, and the planner takes the most hopeful of thousands of them: to
 * it a move costs so many times the running time that it loses. Greedy has a margin of its own.
 * Measured in docs/experiments.md, "Moves".
 */
#define MOVE_TIMES 3.0

int solver_lower(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct lowered *out,
                 struct err *e)
{
    struct solve_options mine = *o;

    if (self->has_levers) {
        mine.move_s *= MOVE_TIMES;
    } else {
        mine.may_choose = true;
        mine.objective = OBJECTIVE_JOULES;
    }
    if (self->is_for_watts)
        mine.objective = OBJECTIVE_WATTS;
    return lower_problem(a, s, est, &mine, out, e);
}

int solver_plan(const struct solver *self, struct arena *a, const struct lowered *asked,
                struct plan *out, struct err *e)
{
    enum verdict verdict = VERDICT_NONE;
    int rc = self->solve(self, a, &asked->problem, out, &verdict, e);

    out->made_by = self->name;
    if (rc == 0 && verdict == VERDICT_NONE)
        return err_set(e, EAGAIN, "no plan");
    return rc < 0 ? rc : plan_check(a, &asked->problem, out, e);
}

int solver_by_name(const char *name, uint64_t seed, struct solver *out, struct err *e)
{
    static const struct solver *const all[] = {
        &solver_gogh,        &solver_watts,      &solver_greedy,       &solver_gavel,
        &solver_pack,        &solver_eaco,       &solver_fifo_promise, &solver_fifo_fastest,
        &solver_fifo_random, &solver_fifo_first,
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i]->name, name) != 0)
            continue;
        *out = *all[i];
        out->seed = seed;
        return 0;
    }
    return err_set(
        e, ENOENT,
        "no policy '%s'; there are gogh, watts, greedy, gavel, pack, eaco, fifo-promise, "
        "fifo-fastest, fifo-random, fifo-first",
        name);
}

#include "optimize/policy/solver.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "optimize/model/answer.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"

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

int solver_plan(const struct solver *self, struct arena *a, const struct snapshot *s,
                const struct estimator *est, const struct solve_options *o, struct plan *out,
                enum verdict *verdict, struct err *e)
{
    struct solve_options mine = *o;
    struct lowered lowered;
    struct answer answer;

    *verdict = VERDICT_NONE;
    if (self->plan)
        return self->plan(self, a, s, est, o, out, verdict, e);
    if (self->is_for_watts)
        mine.objective = OBJECTIVE_WATTS;
    int rc = lower_problem(a, s, est, &mine, &lowered, e);
    if (rc == 0)
        rc = self->solve(self, a, &lowered.problem, &answer, verdict, e);
    if (rc == 0 && *verdict != VERDICT_NONE)
        rc = answer_check(a, &lowered.problem, &answer, e);
    if (rc < 0 || *verdict == VERDICT_NONE)
        return rc;
    raise_plan(a, &lowered, s, est, &mine, &answer, self->name, out);
    plan_price(a, out, s, est);
    return 0;
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

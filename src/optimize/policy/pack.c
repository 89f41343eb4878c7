/* First come, first served, to GPUs that keep promises: alone, or wherever that costs fewer joules
 * beside somebody. Nobody who runs is moved.
 */
#include "optimize/model/plan.h"
#include "optimize/policy/promise.h"
#include "optimize/policy/solver.h"

static int solve(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e)
{
    struct queue q;

    (void)e;
    queue_init(&q, a, s, est, o, self->how);
    queue_serve(&q);
    queue_plan(&q, self->name, out);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

static const struct sharing never = { .is_allowed = false }, where_it_pays = { .is_allowed = true };

const struct solver solver_fifo_promise = { .name = "fifo-promise", .how = &never, .plan = solve };
const struct solver solver_pack = { .name = "pack", .how = &where_it_pays, .plan = solve };

#include "optimize/solver.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

const struct solve_options solve_defaults = { .price_w = 50,
                                              .move_s = 60,
                                              .unfit_max = 0.25,
                                              .alone_unfit_max = 0.9,
                                              .may_share = true,
                                              .may_move = true };

int solver_by_name(const char *name, uint64_t seed, struct solver *out, struct err *e)
{
    const struct solver *const all[] = { &solver_gogh, &solver_greedy, &solver_fifo_fastest,
                                         &solver_fifo_random, &solver_fifo_first };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i]->name, name) != 0)
            continue;
        *out = *all[i];
        out->seed = seed;
        return 0;
    }
    return err_set(e, ENOENT,
                   "no policy '%s'; there are gogh, greedy, fifo-fastest, fifo-random, fifo-first",
                   name);
}

#include "optimize/model/options.h"

#include "base/text/text.h"

const struct solve_options solve_defaults = { .delay_w = -1,
                                              .promise_w = 1000,
                                              .move_s = 60,
                                              .settle_s = 300,
                                              .unfit_max = 0.25,
                                              .alone_unfit_max = 0.9,
                                              .may_share = true,
                                              .may_move = true,
                                              .may_choose = true,
                                              .may_sleep = true };

double options_usual_delay_w(double sum_cap_w, int n_gpus)
{
    return n_gpus > 0 ? DELAY_SHARE * sum_cap_w / n_gpus : 0;
}

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
    return text_find(lever_names, LEVERS, name);
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

/* options.h - what a plan shall save, and what it may use for that.
 *
 * Given by the configuration, a cluster file or a command; read when a snapshot is lowered.
 */
#ifndef OPTIMIZE_MODEL_OPTIONS_H
#define OPTIMIZE_MODEL_OPTIONS_H

#include <stdbool.h>

/* What a plan shall use least of. */
enum objective {
    OBJECTIVE_JOULES,    // until the known work is done
    OBJECTIVE_WATTS,     // now
};

/* A second of a job's time is worth so much of a GPU's mean power cap, where nobody says. */
#define DELAY_SHARE 0.3

struct solve_options {
    enum objective objective;    // for those that have a choice: "gogh"
    double price_w;              // what a GPU-second is worth, in joules
    double delay_w;              // what a second of a job's time is worth; below 0: by the caps
    double promise_w;            // what a promise is worth that is wholly missed
    double power_cap_w;          // of the whole cluster; 0: none
    double move_s;               // running time that a move loses
    double move_doubt;           // a move costs more by so many times the doubt about the job
    double settle_s;             // who started less than this ago stays where it is
    double unfit_max;            // a combination is tried when its chance of not fitting is below
    double alone_unfit_max;      // and a job alone, which has no other way to find out

    /* What a plan may use to save energy. */
    bool may_share, may_move;
    bool may_probe;     // try what nobody has measured (lower_probes.c)
    bool may_limit;     // power limits (estimate/prior/limits.h)
    bool may_choose;    // types by what jobs do on them; false: "gogh" takes all types for alike
    bool may_sleep;     // empty GPUs fall asleep; false: they idle
};

/* The values of a run that says nothing: joules, no price of GPUs, a job's time by the caps, no
 * power cap, 60 s, 300 s, 0.25 and 0.9, everything allowed but power limits.
 */
extern const struct solve_options solve_defaults;

/* What a second of a usual job's time is worth where nobody says: DELAY_SHARE of the mean power cap
 * of the 'n_gpus' GPUs of which it is known, 'sum_cap_w' together; 0 where it is of none.
 */
double options_usual_delay_w(double sum_cap_w, int n_gpus);

/* What can be taken away from a plan, to see what it is worth. */
enum lever {
    LEVER_TYPES,
    LEVER_SHARING,
    LEVER_MOVING,
    LEVER_SLEEP,
    LEVER_LIMITS,
    LEVER_JOULES,    // least watts now is sought instead
    LEVERS,
};
#define LEVER_BIT(lever) (1U << LEVER_##lever)

const char *lever_name(enum lever l);    // "types", "sharing", ...
int lever_by_name(const char *name);     // -1: there is none
void lever_take(struct solve_options *o, enum lever l);

#endif

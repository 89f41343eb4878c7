/* cycle.h - one walk through the rooms, in order; and all that a run consists of.
 *
 *     snapshot -> estimate -> optimize -> check -> act -> monitor -> refine
 *
 * The daemon and the simulator both call this and differ only in the doors they
 * put in. Nothing here knows which side of a door it is on.
 */
#ifndef CYCLE_CYCLE_H
#define CYCLE_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "act/executor.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/stats.h"
#include "estimate/estimate.h"
#include "monitor/sensor.h"
#include "optimize/plan.h"
#include "optimize/solver.h"
#include "refine/refine.h"

struct catalog;
struct err;
struct ledger;
struct model;
struct trainer;

struct cycle {
    /* The doors. */
    struct clock clock;
    struct solver solver;
    struct executor executor;
    struct sensor sensor;

    /* What a run consists of; borrowed. */
    struct ledger *ledger;
    struct catalog *catalog;

    struct solve_options options;    // price, cap, levers
    double confidence_z;             // promises hold at estimate minus z standard deviations
    int theta;                       // jobs that may share a GPU
    struct estimator estimator;
    struct refiner refiner;
    struct arena arena;    // dies at the end of each cycle

    /* What was learned, and learning anew. One thread owns all of this, so a swap of models
     * between two cycles is whole for everybody who asks.
     */
    const struct model *model;    // in use; NULL: the roofline and the closed form
    struct model *trained;        // the same, where it came from the trainer; owned
    struct trainer *trainer;      // NULL: nothing is learned anew; see cycle_learn
    double settle_s;              // see cycle_learn
    double training_s;            // when the last training began
    long n_models;                // that came from the trainer and won

    /* What happened so far, for reports. */
    unsigned char *why;    // (n_why) by job id: its wait_reason in the last plan it was in
    bool *is_parked;       // (n_why) by job id: cannot run on the cluster as it is
    int n_why, cap_why;
    bool wants_more;        // see cycle_wants_more
    uint64_t parked_for;    // the cluster and the descriptions that they were parked for
    uint64_t n_sweeps;      // times that everybody who might run has been looked at
    long n_decisions;
    long n_fallbacks;    // the solver failed or its plan did not pass the check
    long n_moves;
    struct samples decision_s;    // wall time from snapshot to checked plan
};

/* 'c' with its doors, ledger, catalog and options set becomes ready to run. */
void cycle_init(struct cycle *c);
void cycle_release(struct cycle *c);    // waits for a training that is under way

/* Believe 'm' (NULL: the roofline) from the next cycle on; it must outlive the cycle. */
void cycle_use(struct cycle *c, const struct model *m);

/* Train anew, on a thread beside, whenever there is enough news. A new model that wins is in use
 * from the first cycle after it is there (settle_s NaN), or from the first that begins 'settle_s'
 * after its training did, which then waits for it: so that a run that is driven by events, and
 * not by seconds, repeats. With a store, winners and losers are kept there; when it
 * cannot keep one (a full disk), the log says so and the cycle goes on with it. Call cycle_use
 * first: what the model in use has learned from is no news.
 */
struct trainer_options;
void cycle_learn(struct cycle *c, const struct trainer_options *o, double settle_s);

/* There are jobs behind those that were just found to be unable to run here: decide again. */
bool cycle_wants_more(const struct cycle *c);

/* Decide and act: snapshot to act, then listen. 0 or more: observations that came of it;
 * -Exxx when the store fails. A solver
 * or executor that fails is not an error of the cycle: the greedy plan stands in, and what
 * could not be started waits for the next cycle.
 */
int cycle_run(struct cycle *c, struct err *e);

/* Why a job waited in the last plan that it was in; WAIT_NOT for one that was placed or has
 * been in none.
 */
enum wait_reason cycle_why(const struct cycle *c, int job);

/* Only the last two rooms: take in what happened since, and learn from it. Returns the
 * number of observations, or -Exxx.
 */
int cycle_listen(struct cycle *c, struct err *e);

#endif

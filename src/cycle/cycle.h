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
#include "cycle/services.h"
#include "estimate/estimate.h"
#include "monitor/sensor.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"
#include "refine/refine.h"

struct act_report;
struct catalog;
struct err;
struct event;
struct finding;
struct kept_prices;
struct ledger;
struct lowered;
struct model;
struct snapshot;
struct trainer;

/* How an event gets into the journal; -EINVAL: the state refuses it. */
typedef int cycle_append_f(void *self, const struct event *ev, struct err *e);

/* Told of each finding after it was taken in: 'abs_error' is |measured / believed - 1|, NaN where
 * there was no speed to foresee.
 */
typedef void cycle_finding_f(void *self, const struct finding *f, double abs_error,
                             bool is_covered);

/* Told of each plan of cycle_run that passed its judge, before it is acted on. */
typedef void cycle_plan_f(void *self, const struct lowered *asked, const struct plan *p);

/* A port for a replica on a GPU; 0: none is known. */
typedef int cycle_port_f(void *self, int gpu);

/* Told when a service's table of capacity is to be built anew; NULL: it is built at once. */
typedef void cycle_table_f(void *self, int service);

/* Is the job about to end, and not to be touched any more? */
typedef bool cycle_is_ending_f(void *self, int job);

struct cycle {
    /* The doors. */
    struct clock clock;
    struct solver solver;
    struct executor executor;
    struct sensor sensor;

    /* What a run consists of; borrowed. */
    struct ledger *ledger;
    struct catalog *catalog;

    /* What else happens with events and findings; NULL: ledger_append, and nothing. With an
     * 'append' of its own the owner says later whether they are safe: see cycle_is_safe.
     */
    cycle_append_f *append;
    cycle_finding_f *on_finding;
    cycle_plan_f *on_plan;
    cycle_is_ending_f *is_ending;
    cycle_routes_f *on_routes;
    cycle_port_f *choose_port;
    cycle_table_f *on_table_due;
    void *owner;

    struct solve_options options;    // price, cap, levers
    double table_s;                  // between two tables of a service's capacity; 0: as usual
    struct services *services;       // owned
    uint64_t settings;               // raised by who changes 'options' between a look and its act
    struct kept_prices *kept;        // the solver's, from decision to decision; owned
    int theta;                       // jobs that may share a GPU
    struct estimator estimator;
    struct refiner refiner;
    struct arena arena;    // dies at the end of each cycle

    /* What was learned, and learning anew. One thread owns all of this, so a swap of models
     * between two cycles is whole for everybody who asks.
     */
    const struct model *model;    // in use; NULL: one that has learned nothing
    enum estimator_kind kind;     // how it is used
    struct model *trained;        // the same, where it came from the trainer; owned
    struct trainer *trainer;      // NULL: nothing is learned anew; see cycle_learn
    double settle_s;              // see cycle_learn
    double training_s;            // when the last training began
    long n_models;                // that came from the trainer and won

    /* Observations whose events are not known to be safe, in the order they were taken in. */
    struct arena unsafe_arena;
    struct observation *unsafe;    // (n_unsafe)
    int n_unsafe, cap_unsafe;
    int next_again;    // those from here on are taken in anew; n_unsafe: none

    /* Where the executor could not put jobs although its rules allowed it, the newest last. */
    struct cycle_refusal {
        int job, node;
        uint64_t cluster;    // node_version then: with other nodes it may be another matter
        uint64_t sweep;      // n_sweeps then
    } * refusals;
    int n_refusals, cap_refusals;

    /* What trying types and pairs may cost, and has cost at most: a part of all energy. */
    struct probe_budget {
        double share;    // 0: options.may_probe is the owner's
        double spent_j, all_j;
        double hope_w, watts;    // of the plan in force
        double since_s;          // when it came into force
    } probe;

    /* What happened so far, for reports. */
    unsigned char *why;    // (n_why) by job id: its wait_reason in the last plan it was in
    bool *is_parked;       // (n_why) by job id: cannot run on the cluster as it is
    int n_why, cap_why;
    bool wants_more;        // jobs behind those just found unable to run here: decide again
    uint64_t parked_for;    // the cluster and the descriptions that they were parked for
    uint64_t budgets;       // of the executor's nodes, at the last look: stands for all of them
    uint64_t n_sweeps;      // times that everybody who might run has been looked at
    long n_decisions;
    long n_fallbacks;    // the solver failed or its plan did not pass the check
    long n_moves;
    struct samples decision_s;     // wall time from snapshot to checked plan
    struct samples repricing_s;    // and of finding prices anew, between decisions
    struct samples gap_w, gap_ratio, gap_varying_ratio;    // struct plan_gap, of plans that know it
};

/* 'c' with its doors, ledger, catalog and options set becomes ready to run. */
void cycle_init(struct cycle *c);
void cycle_release(struct cycle *c);    // waits for a training that is under way

/* Believe 'm' (NULL: one that has learned nothing) from the next cycle on; it must outlive the
 * cycle.
 */
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

/* Take over a model that has been trained meanwhile and won, and offer the trainer what is new.
 * Keeps models in the store: not inside a transaction. cycle_run does this by itself.
 */
void cycle_renew(struct cycle *c);

/* A decision in three steps, for those who make plans elsewhere than where they act.
 *
 * look: what exists right now and how well each job would run where, into 'a'.
 * plan: who should run where, judged; changes nothing of the cycle but the kept prices, so that a
 *       forked child may do it. 'asked' is the problem that was solved. '*is_fallback': the
 *       greedy plan stands in, and 'why' says why.
 * price: find the prices of what was looked at, for kept_count has said that the kept ones serve no
 *       longer; changes nothing but 'out', so that a child may do this beside decisions.
 * act:  make it happen. Where something has changed since 'look' (a job ended, was held or
 *       cancelled, a node went away, an order is under way) on GPUs that the plan has orders for,
 *       or anywhere while jobs have watts or nodes in common, the plan is repaired first: those
 *       jobs are left as they are, with whoever cannot have its place beside them; and judged
 *       again, as things are now. What is left out the next decision sees.
 */
int cycle_look(struct cycle *c, struct arena *a, struct snapshot *out, struct err *e);
int cycle_plan(const struct cycle *c, struct arena *a, const struct solver *solver,
               const struct snapshot *s, struct lowered *asked, struct plan *out, bool *is_fallback,
               struct err *why);
int cycle_price(const struct cycle *c, struct arena *a, const struct snapshot *s,
                struct kept_prices *out, struct err *e);
void cycle_act(struct cycle *c, const struct snapshot *s, const struct plan *p,
               struct act_report *out);

/* Decide and act: snapshot to act, then listen, and find prices anew where that is due. 0 or more:
 * observations that came of it; -Exxx when the store fails. A solver
 * or executor that fails is not an error of the cycle: the greedy plan stands in, and what
 * could not be started waits for the next cycle.
 */
int cycle_run(struct cycle *c, struct err *e);

/* Why a job waited in the last plan that it was in; WAIT_NOT for one that was placed or has
 * been in none.
 */
enum wait_reason cycle_why(const struct cycle *c, int job);

/* Only the last two rooms: take in what happened since, at most 'n_most' things, and learn from it.
 * Returns the number of observations, or -Exxx. What the state refuses is logged and left out.
 */
int cycle_listen(struct cycle *c, int n_most, struct err *e);

/* With an 'append' of its own: what was taken in so far is on disk; or it was undone, and the next
 * cycle_listen takes it in again (steps since then were lost, starts and ends were not).
 */
void cycle_is_safe(struct cycle *c);
void cycle_is_undone(struct cycle *c);

#endif

/* state.h - the life of a managed job: one state, and what leads from one to the next.
 *
 * Whatever is seen in a view, answered or ordered becomes an event; managed_update() performs its
 * arrow, and managed_action() (action.c) then asks Slurm for what the new state wants. Slurm may do
 * anything at any time, so most arrows start in many states; the table in state.c has them all.
 *
 *             SUBMIT_SENT            PENDING             PIN_SENT            RUNNING
 *     ABSENT ------------> SUBMITTED -------> HELD -----------------> PINNED -------> RUNNING
 *      ^  ^                    |              ^  ^    PIN_FAILED,      |                | |
 *      |  '----SUBMIT_FAILED---'              |  '----PENDING ---------'    STOP, MOVE, | |
 *      |                                      |                              UNWANTED   v |
 *      |                                      '--------PENDING-------- STOPPING, MOVING   |
 *      |                                                 STAYS: RUNNING again |           |
 *      '---- LOST, REPLACED: any                                       RETRY: any         |
 *                                                                                         |
 *     any: CANCEL -> CANCELLING, TAKEN -> TAKEN, PARKED -> PARKED                         |
 *          SERVED -> RETIRING <-----------------------------------------------------------'
 *          ENDED -> ENDED, REPORTED -> REPORTED
 */
#ifndef ACT_SLURM_STATE_H
#define ACT_SLURM_STATE_H

#include <stdbool.h>

struct managed;
struct slurm;

enum managed_state {
    MANAGED_ABSENT,       // not in Slurm, and not asked for
    MANAGED_SUBMITTED,    // or perhaps so: not seen yet
    MANAGED_HELD,         // pending there; where 'next' has GPUs, it is to be pinned to these
    MANAGED_PINNED,       // to 'at', and released; not seen running
    MANAGED_RUNNING,
    MANAGED_STOPPING,      // it is to save, and to be put back
    MANAGED_MOVING,        // likewise, and to run at 'next' then
    MANAGED_CANCELLING,    // it is to end for good
    MANAGED_RETIRING,      // likewise: a server whose time is over
    MANAGED_ENDED,         // for Slurm or for GOGH; that is not told yet, or need not be
    MANAGED_REPORTED,      // it has ended, and that was told
    MANAGED_PARKED,        // it may have run unseen: nobody but its user lets it run again
    MANAGED_TAKEN,         // moved to another partition: its user's alone
    MANAGED_STATES
};

/* What leads on, and the functions that find it. */
enum managed_event {
    ON_NEW,              // it has never been in Slurm: job_is_new()
    ON_STOP,             // an order, or a hold: order_stop(), job_is_held(), is_unwanted()
    ON_MOVE,             // an order: order_move()
    ON_CANCEL,           // an order: order_cancel(), is_unwanted()
    ON_SUBMIT_SENT,      // ask_submit()
    ON_SUBMIT_FAILED,    // on_submit()
    ON_PIN_SENT,         // ask_pin()
    ON_PIN_FAILED,       // on_pin()
    ON_STAYS,            // it cannot be put back, or moved: on_stuck(), works_on()
    ON_REPLACED,         // another Slurm job takes the place of its own: managed_replace()
    ON_PENDING,          // it waits in Slurm: see_pending(), see_pinned(), see_fallen(), see_left()
    ON_STARTING,         // somewhere: see_at()
    ON_RUNNING,          // see_arrival(), see_at(), see_nowhere()
    ON_UNWANTED,         // not there, or not yet: see_running(), lose_patience()
    ON_SERVED,           // see_running()
    ON_RISEN,            // GOGH has ended it, and it is alive: see_risen()
    ON_RETRY,            // its run has ended, or was asked to, and is to be put back: end_*()
    ON_ENDED,            // end_managed(), end_missed(), see_risen()
    ON_REPORTED,         // the same, and it was told: finish(), fail()
    ON_UNREPORTED,       // nobody has heard of that, since it is held: is_unwanted()
    ON_LOST,             // Slurm does not know it: lose()
    ON_PARKED,           // park()
    ON_TAKEN,            // see_taken()
    MANAGED_EVENTS
};

/* The state that follows; the same where nothing does. */
enum managed_state managed_next(enum managed_state from, enum managed_event e);

/* Go there, and start the clocks of the new state; nothing else changes. False: it is there. */
bool managed_update(struct slurm *x, struct managed *m, enum managed_event e);

#endif

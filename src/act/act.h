/* act.h - a checked plan becomes orders to the executor: only what differs from now.
 *
 * Flows in: a plan and the snapshot it was made for. Flows out: orders through the
 * executor door, nothing else; what comes of them is told by 'monitor'.
 */
#ifndef ACT_ACT_H
#define ACT_ACT_H

#include <stdbool.h>

struct assignment;
struct executor;
struct plan;
struct plan_job;
struct snapshot_job;
struct snapshot;

struct act_report {
    int n_started, n_moved, n_stopped;
    int n_limited;    // stay where they are under another power limit
    int n_refused;    // orders the executor did not accept; they wait for the next cycle
};

/* Stops first, then moves, then starts, so that GPUs are free before they are taken. An order that
 * is refused is logged and counted. It holds up nobody but those who would come to GPUs that the
 * job should have left: these are not asked for, and counted as refused. '*is_impossible' (n_jobs)
 * is set for those whose place the executor cannot realise: its rules should have said so.
 *
 * Where jobs have something in common beyond GPUs (a power cap, CPUs of a node), 'allowed' is the
 * present allocation of the plan's problem, and is changed: each order is given once it leads to
 * what is allowed, whatever becomes of those after it; whose turn never comes is counted as
 * refused. NULL: there is nothing such.
 */
void act_commit(const struct executor *x, const struct snapshot *s, const struct plan *p,
                struct assignment *allowed, bool *is_impossible, struct act_report *out);

/* Would an order be given about the job? */
bool act_changes(const struct snapshot_job *j, const struct plan_job *pj);

#endif

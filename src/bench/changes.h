/* changes.h - a cluster that changes: where everybody stands after a plan, and what happens then.
 *
 * Made by: changes_init, from a generated problem with more jobs than run at first; the others
 * arrive later. Used by: the rows "changed" and "events" of `gogh bench optimize`. Owned; 'p' is
 * what a planner gets, and stays valid until the next call.
 */
#ifndef BENCH_CHANGES_H
#define BENCH_CHANGES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/rng.h"
#include "optimize/model/problem.h"

struct make_options;
struct plan;

struct changes {
    struct problem p;
    struct rng rng;
    struct arena made;
    struct arena stands[2];    // where jobs stand: in one of them, by turns
    int turn;
    struct problem_job *coming;    // (n_coming) in the order in which they arrive
    int n_coming, n_arrived;
    int *ended, n_ended;    // places in p.jobs that are free
    bool *may_start;        // (n_gpus) of GPUs whose node is there
    int *lost, n_lost;      // nodes, the longest lost first
};

/* A problem of o->n_jobs jobs, and 'n_coming' more of the same make that are still to come. */
void changes_init(struct changes *c, const struct make_options *o, int n_coming);
void changes_release(struct changes *c);

/* As in the daemon: no job has parts on GPUs of several types, and a move costs 1 to 10 W, which is
 * what losing three minutes costs a job that has some hours left.
 */
void changes_as_served(struct changes *c);

/* What to make the next plan in; and let everybody stand where that plan has them. A job whose
 * parts stand under different power limits counts as new: a problem has no way to say so.
 */
struct arena *changes_arena(struct changes *c);
void changes_settle(struct changes *c, const struct plan *x);

void changes_end(struct changes *c);      // a job by chance ends
int changes_arrive(struct changes *c);    // the next one that is to come: its number

/* What a kind does on a type turns out to be a few percent more or less, alone and beside others.
 */
void changes_estimate(struct changes *c);

/* A node is lost, and with it what runs there; the node that was lost first is back. */
void changes_lose(struct changes *c);
void changes_restore(struct changes *c);

#endif

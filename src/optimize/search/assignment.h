/* assignment.h - where planners push jobs around: an answer in the making, its cost known at all
 * times.
 *
 * Made by: assignment_create, from a problem; begins empty. Read and changed by: rounding, the
 * search, the standing planner. Every change is a few table lookups; the cost is exact after each
 * (up to rounding of sums). Owned; lives as long as its planner. The problem is borrowed.
 *
 * An assignment never leaves the feasible: what would break a rule is refused and nothing is
 * changed. Fixed jobs are in their place from the beginning and are never taken from it.
 */
#ifndef OPTIMIZE_SEARCH_ASSIGNMENT_H
#define OPTIMIZE_SEARCH_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "optimize/model/plan.h"    // enum wait_reason
#include "optimize/model/problem.h"

struct reduced_costs;
struct assignment_undo_log;
struct assignment_lists;
struct assignment_tables;
struct plan;
struct prices;

struct assignment_gpu {
    int jobs[THETA_MAX];
    struct held held[THETA_MAX];    // what each of them holds here; of a gang: the whole
    double cost_w;           // as problem_yield has it; a gang's in equal parts; 0 when empty
    double watts;            // 0 when empty
    int list, prev, next;    // assignment_lists.c
    uint32_t epoch;          // of its last entry in the journal
    unsigned char n_jobs;
    unsigned char limit;    // its setting
    bool is_whole;          // belongs to a gang of several GPUs
};

struct assignment_job {
    int n_gpus;         // 0: it waits
    int first, room;    // its GPUs are job_gpus[first..], unordered; at most 'room'
    uint32_t epoch;
    struct held held;    // in all
    double short_w;      // what it is expected to miss
    double fee_w;        // for waiting and moving
    struct held away;    // part of 'held': constant, since it is held on another assignment
    bool is_away;        // not all its present GPUs are on this one: no place here is its old one
};

struct assignment {
    struct arena arena;    // of everything below but the journal
    const struct problem *problem;
    const struct assignment_tables *tables;    // in this arena, or in that of another one
    struct assignment_gpu *gpus;               // (n_gpus)
    struct assignment_job *jobs;               // (n_jobs)
    int *job_gpus;                             // (n_job_gpus)
    int *n_of_type;                            // (n_types) GPUs, whoever is on them, drained or not
    int *most_on_node;                         // (n_types) of one node
    int n_job_gpus;
    bool has_fees;                // coming to a GPU may cost something
    double cost_w;                // of everything
    bool has_caps, is_forcing;    // is_forcing: caps do not matter just now
    /* No promise that is kept is broken by who comes, none that would hold by a limit. */
    bool is_keeping;
    double room_w;          // watts that the cluster's cap leaves; INFINITY without
    double *rack_room_w;    // (n_racks) the same for each rack; NULL when no rack has a cap
    bool has_rules;         // there is something that the engine cannot do
    struct engine_node *node_room;    // (n_nodes) what is left of each; NULL: nobody counts
    uint32_t skip;      // an insertion overlooks a position with chance skip / 2^32; 0 at first
    uint64_t chance;    // for that: any number but 0
    const struct reduced_costs *reduced;    // insertions go by this; NULL: by cost
    const double *job_price_w;    // (n_jobs) with that: what each should cost (prices.job_w)
    struct assignment_lists *lists;
    struct assignment_undo_log *journal;
};

/* Empty: all jobs wait, all GPUs sleep; fixed jobs are in their place. */
struct assignment *assignment_create(const struct problem *p);

/* Another one, as that was when it was new; it borrows that one's tables. */
struct assignment *assignment_like(const struct assignment *d);
void assignment_destroy(struct assignment *d);

/* Everybody where he stands now; who waits, waits. The assignment must be as assignment_create left
 * it. */
void assignment_lay_present(struct assignment *d);

/* Would assignment_put do it? */
bool assignment_may(struct assignment *d, int job, const int *gpus, int n, int limit);

/* Place a waiting job on these GPUs, all at once, under setting 'limit' (which those beside it get
 * too), or under the cheapest one if that is -1. False: refused, nothing changed.
 */
bool assignment_put(struct assignment *d, int job, const int *gpus, int n, int limit);

/* Let a job wait; GPUs it shared get their best setting. False: refused, since those it
 * leaves behind would draw more than a cap allows. Never for a waiting or a fixed job.
 */
bool assignment_take(struct assignment *d, int job);

/* One part of a spread job more or less. A job's last part is dropped by assignment_take only. */
bool assignment_add_part(struct assignment *d, int job, int gpu);

/* The cheapest place now, nobody else moved; false: none that beats waiting. */
bool assignment_insert(struct assignment *d, int job);

/* All who have no place, the hardest first, each where it costs least by 'reduced', or now (NULL);
 * with 'class_of' (n_jobs) only those who are in no class (-1).
 */
void assignment_insert_rest(struct assignment *d, const struct prices *u,
                            const struct reduced_costs *reduced, const int *class_of);

/* Parts for a spread job, one by one, as long as each makes everything cheaper. */
void assignment_extend(struct assignment *d, int job);

/* Give a GPU (and its gang) another setting; false: refused. assignment_relimit chooses the best
 * one and returns whether it changed anything.
 */
bool assignment_set_limit(struct assignment *d, int gpu, int limit);
bool assignment_relimit(struct assignment *d, int gpu);

static inline const int *assignment_gpus(const struct assignment *d, int job)
{
    return d->job_gpus + d->jobs[job].first;
}

static inline double assignment_cost(const struct assignment *d)
{
    return d->cost_w;
}

/* What was done since the mark can be undone, exactly, or kept. Marks do not nest. */
void assignment_mark(struct assignment *d);
void assignment_undo(struct assignment *d);
void assignment_keep(struct assignment *d);

/* What prices say about places, for assignments over the same types and kinds. The prices are
 * borrowed.
 */
struct reduced_costs *reduced_costs_create(const struct assignment *d, const struct prices *u);
void reduced_costs_destroy(struct reduced_costs *g);

/* ---- looking around ---- */

/* Free GPUs of a type for 'n' parts of the job: for a gang as its nodes have to be, on one node
 * where that is left open; awake ones first. False: there are not so many.
 */
bool assignment_free(const struct assignment *d, int job, int type, int n, int *gpus);

/* Free GPUs of a type, awake or not. */
int assignment_n_free(const struct assignment *d, int type);

/* Up to 'most' GPUs of a type with room for one more beside the newest there, who is of 'kind': of
 * those who need least. Returns how many.
 */
int assignment_beside(const struct assignment *d, int type, int kind, int most, int *gpus);

/* GPUs of a type that the job could stand on, if nobody else did. A job that only a drained node
 * could take waits for capacity: nodes come back.
 */
int assignment_capacity_for(const struct assignment *d, int job, int type);

/* Why the job could not even run if nobody else did: type, memory or gang; WAIT_NOT: it could. */
enum wait_reason assignment_never(const struct assignment *d, int job);

/* Who is where and why the others wait; plan_price has filled in the rest. */
void assignment_plan(struct assignment *d, struct arena *a, struct plan *out);

#endif

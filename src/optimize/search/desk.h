/* desk.h - where planners push jobs around: an answer in the making, its cost known at all times.
 *
 * Made by: desk_create, from a problem; begins empty. Read and changed by: rounding, the search,
 * the standing planner. Every change is a few table lookups; the cost is exact after each (up to
 * rounding of sums). Owned; lives as long as its planner. The problem is borrowed.
 *
 * A desk never leaves the feasible: what would break a rule is refused and nothing is changed.
 * Fixed jobs are in their place from the beginning and are never taken from it.
 */
#ifndef OPTIMIZE_SEARCH_DESK_H
#define OPTIMIZE_SEARCH_DESK_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/model/plan.h"    // enum wait_reason
#include "optimize/model/problem.h"

struct arena;
struct desk_guide;
struct desk_journal;
struct desk_lists;
struct desk_tables;
struct plan;
struct prices;

struct desk_gpu {
    int jobs[THETA_MAX];
    double low[THETA_MAX];    // what each of them holds here; of a gang: the whole
    double cost_w;            // as problem_yield has it; a gang's in equal parts; 0 when empty
    double watts;             // 0 when empty
    int list, prev, next;     // desk_lists.c
    uint32_t epoch;           // of its last entry in the journal
    unsigned char n_jobs;
    unsigned char limit;    // its setting
    bool is_whole;          // belongs to a gang of several GPUs
};

struct desk_job {
    int n_gpus;         // 0: it waits
    int first, room;    // its GPUs are seats[first..], unordered; at most 'room'
    uint32_t epoch;
    double low;         // held in all
    double short_w;     // what it misses
    double fee_w;       // for waiting and moving
    double away_low;    // part of 'low' that is held elsewhere than on this desk, and constant
    bool is_away;       // its present GPUs are not all on this desk: no place here is its old one
};

struct desk {
    const struct problem *problem;
    const struct desk_tables *tables;
    struct desk_gpu *gpus;    // (n_gpus)
    struct desk_job *jobs;    // (n_jobs)
    int *seats;               // (n_seats)
    int n_seats;
    bool has_sleepers;            // some GPU sleeps
    double cost_w;                // of everything
    bool has_caps, is_forcing;    // is_forcing: caps do not matter just now
    /* No promise that is kept is broken by who comes, none that would hold by a limit. */
    bool is_keeping;
    double room_w;          // watts that the cluster's cap leaves; INFINITY without
    double *rack_room_w;    // (n_racks) the same for each rack; NULL when no rack has a cap
    uint32_t blink;         // an insertion overlooks a berth with chance blink / 2^32; 0 at first
    uint64_t chance;        // for that: any number but 0
    const struct desk_guide *guide;    // insertions go by this while it is there; NULL: by cost
    const double *dues_w;    // (n_jobs) with a guide: what each job should cost (prices.job_w)
    bool owns_tables;
    struct desk_lists *lists;
    struct desk_journal *journal;
};

/* Empty: all jobs wait, all GPUs sleep; fixed jobs are in their place. */
struct desk *desk_create(const struct problem *p);
void desk_destroy(struct desk *d);

/* Everybody where he stands now; who waits, waits. The desk must be as desk_create left it. */
void desk_lay_present(struct desk *d);

/* Would desk_put do it? */
bool desk_may(struct desk *d, int job, const int *gpus, int n, int limit);

/* Place a waiting job on these GPUs, all at once, under setting 'limit' (which those beside it get
 * too), or under the cheapest one if that is -1. False: refused, nothing changed.
 */
bool desk_put(struct desk *d, int job, const int *gpus, int n, int limit);

/* Let a job wait; GPUs it shared get their best setting. False: refused, since those it
 * leaves behind would draw more than a cap allows. Never for a waiting or a fixed job.
 */
bool desk_take(struct desk *d, int job);

/* One part of a spread job more or less. A job's last part is dropped by desk_take only. */
bool desk_add_part(struct desk *d, int job, int gpu);

/* The cheapest place now, nobody else moved; false: none that beats waiting. */
bool desk_insert(struct desk *d, int job);

/* Parts for a spread job, one by one, as long as each makes everything cheaper. */
void desk_extend(struct desk *d, int job);

/* Give a GPU (and its gang) another setting; false: refused. desk_relimit chooses the best one
 * and returns whether it changed anything.
 */
bool desk_set_limit(struct desk *d, int gpu, int limit);
bool desk_relimit(struct desk *d, int gpu);

static inline const int *desk_gpus(const struct desk *d, int job)
{
    return d->seats + d->jobs[job].first;
}

/* What a job itself costs: shortfall, waiting, moving. */
static inline double desk_own_w(const struct desk *d, int job)
{
    return d->jobs[job].short_w + d->jobs[job].fee_w;
}

static inline double desk_cost(const struct desk *d)
{
    return d->cost_w;
}

/* What was done since the mark can be undone, exactly, or kept. Marks do not nest. */
void desk_mark(struct desk *d);
void desk_undo(struct desk *d);
void desk_keep(struct desk *d);

/* What prices say about places, for desks over the same types and kinds. The prices are borrowed.
 */
struct desk_guide *desk_guide_create(const struct desk *d, const struct prices *u);
void desk_guide_destroy(struct desk_guide *g);

/* ---- looking around ---- */

/* Free GPUs of a type for 'n' parts of the job: for a gang as its nodes have to be, on one node
 * where that is left open; awake ones first. False: there are not so many.
 */
bool desk_free(const struct desk *d, int job, int type, int n, int *gpus);

/* Free GPUs of a type, awake or not. */
int desk_n_free(const struct desk *d, int type);

/* Up to 'most' GPUs of a type with room for one more beside the newest there, who is of 'kind': of
 * those who need least. Returns how many.
 */
int desk_beside(const struct desk *d, int type, int kind, int most, int *gpus);

/* What there is, whoever is on it, drained or not: GPUs of each type, and the most of one node. A
 * job that only a drained node could take waits for capacity: nodes come back.
 */
struct desk_stock {
    int *n_all, *n_node;    // (n_types)
    int *n_here;            // (n_groups) of one node and type
};

void desk_count(const struct desk *d, struct arena *a, struct desk_stock *out);

/* GPUs of a type that the job could stand on, if nobody else did. */
int desk_stock_for(const struct desk *d, const struct desk_stock *s, int job, int type);

/* Why the job could not even run if nobody else did: type, memory or gang; WAIT_NOT: it could. */
enum wait_reason desk_never(const struct desk *d, const struct desk_stock *s, int job);

/* Who is where and why the others wait; plan_price has filled in the rest. */
void desk_plan(struct desk *d, struct arena *a, struct plan *out);

#endif

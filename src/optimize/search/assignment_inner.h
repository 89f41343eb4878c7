/* assignment_inner.h - what the files of the assignment share and nobody else reads.
 *
 * Tables: what combinations do, computed once from a problem; never changed afterwards, so
 * assignments over the same types and kinds (the search's shards) share them. Lists: GPUs by who
 * could come there. Undo log: what to restore.
 */
#ifndef OPTIMIZE_SEARCH_ASSIGNMENT_INNER_H
#define OPTIMIZE_SEARCH_ASSIGNMENT_INNER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "optimize/search/assignment.h"

/* ---- tables ---- */

struct alone_cell {
    double cost_w, watts;    // cost_w is INFINITY where it must not run
    double speed, low;       // yield_low
    struct held held;
};

struct pair_cell {
    double cost_w, watts;
    struct held held, other;    // of the first kind, and of the second
};

struct triple_cell {
    double cost_w, watts;
    struct held held[3];    // by rising kind
};

/* A place to look at: an empty GPU of a type, or one where a kind is alone. */
struct position {
    float least_w;    // no insertion there adds less than this (shortfalls healed aside)
    float low;        // yield_low of the newcomer, at most
    short type;
    short beside;    // -1: empty
    int row;         // of the lists of such GPUs (lists_row of level 0)
    short kept;      // how much of its speed the resident keeps, in steps of 1/NEED_STEPS
};

/* The least first; and what ends a list of them. */
int position_order(const void *a, const void *b);
extern const struct position position_end;

#define NEED_STEPS 16    // lists of GPUs are by how much of its speed alone the resident needs

struct assignment_tables {
    int n_types, n_kinds, n_limits;    // n_limits: the most that any type has
    struct alone_cell *alone;          // (n_types, n_kinds, n_limits)
    struct pair_cell *pairs;           // (n_types, n_kinds, n_kinds, n_limits); NULL: too many
    struct triple_cell *triples;       // (n_types, kinds a <= b <= c, n_limits); NULL: not worth it
    int n_positions;                   // of each kind, at most
    struct position *positions;        // (n_kinds, n_positions) least first; 'type' -1: the end
};

struct assignment_tables *tables_create(struct arena *a, const struct problem *p);

static inline const struct alone_cell *tables_alone(const struct assignment_tables *t, int type,
                                                    int kind, int limit)
{
    return &t->alone[((long)type * t->n_kinds + kind) * t->n_limits + limit];
}

/* A combination of n kinds; false: must not run so. */
bool tables_yield(const struct assignment *d, int type, int limit, const int *kinds, int n,
                  struct yield *out);

/* ---- reduced costs (reduced_costs.c) ---- */

struct reduced_costs {
    struct arena arena;
    const double *type_w;    // (n_types) worth of a GPU; borrowed
    double *watt_price;      // (n_types) of a watt above idle, margin included
    int n_kinds;
    float *open_w;                 // (n_types, n_kinds, NEED_STEPS + 1) see reduced_open_w
    struct position *positions;    // (n_kinds, n_positions) the tables', by cost at these prices
};

double reduced_open_w(const struct assignment *d, int type, int kind, double need);
double reduced_prices_w(const struct assignment *d, int gpu);

/* ---- a GPU's combination, with what it costs the jobs ---- */

struct combo {
    int limit;
    double cost_w, watts;
    struct held held[THETA_MAX];
    double total_w;    // cost_w and the shortfalls of the jobs
};

/* 'n' jobs on 'gpu' under 'limit', or the best setting if -1. False: must not run so, or a cap
 * forbids it.
 */
bool combo_make(const struct assignment *d, int gpu, const int *jobs, int n, int limit,
                struct combo *out);

/* What the GPU and its jobs' shortfalls cost as it is, comparable with total_w. */
double assignment_gpu_total(const struct assignment *d, int gpu);

/* The jobs of a GPU and one more; returns how many. */
static inline int assignment_with(const struct assignment *d, int gpu, int job, int *jobs)
{
    int n = d->gpus[gpu].n_jobs;

    memcpy(jobs, d->gpus[gpu].jobs, (size_t)n * sizeof *jobs);
    jobs[n] = job;
    return n + 1;
}

/* And but for one. */
static inline int assignment_without(const struct assignment *d, int gpu, int job, int *jobs)
{
    int n = 0;

    for (int i = 0; i < d->gpus[gpu].n_jobs; i++)
        if (d->gpus[gpu].jobs[i] != job)
            jobs[n++] = d->gpus[gpu].jobs[i];
    return n;
}

/* May 'job' come to 'gpu' as a part among those there, as far as the jobs themselves go? */
bool assignment_may_join(const struct assignment *d, int job, int gpu);

/* What a gang does: whether near, cost and watts of all GPUs. */
bool assignment_gang_yield(const struct assignment *d, int job, int type, int limit, int m,
                           bool is_near, struct yield *out);

/* ---- lists ---- */

#define FREE_MAX GANG_MAX

struct group {       // GPUs of one node and type
    int bucket;      // its type if they are awake, and n_types more if they sleep
    int first, n;    // in 'members'
    int n_free;
    int prev, next;    // groups of this bucket with as many free GPUs
};

struct assignment_lists {
    int n_groups;
    int *group_of;           // (n_gpus)
    struct group *groups;    // (n_groups)
    int *members;            // (n_gpus) of one group after the other
    int *by_free;            // (2 n_types, FREE_MAX + 1) groups with so many free GPUs (or more)
    uint64_t *has_free;      // (2 n_types) bit n - 1: some group has n free GPUs
    int *n_free;             // (2 n_types) GPUs
    int n_levels;            // theta - 1
    int *heads;              // (n_groups) free GPUs; then (n_levels, n_types, n_kinds, NEED_STEPS)
    uint16_t *masks;         // (n_levels, n_types, n_kinds) which of these lists are not empty
};

struct assignment_lists *lists_create(struct arena *a, const struct problem *p);

/* Put a GPU on the list where it belongs, after it was changed; take it off before. */
void lists_join(struct assignment *d, int gpu);
void lists_leave(struct assignment *d, int gpu);

static inline long lists_row(const struct assignment *d, int level, int type, int kind)
{
    return ((long)level * d->problem->n_types + type) * d->problem->n_kinds + kind;
}

/* A free GPU of the type, in the group with the fewest of them but at least 'n', of those that are
 * awake if there is one; -1: none.
 */
int lists_free(const struct assignment *d, int type, int n);

/* Are there free GPUs of the type, awake or not? */
static inline bool lists_has_free(const struct assignment *d, int type)
{
    return d->lists->has_free[type] || d->lists->has_free[d->problem->n_types + type];
}

/* Collect 'n' free GPUs of a type, awake ones first: 'n_here' of each node, beginning with those
 * that have the fewest to spare; if that is 0, on as few nodes as may be. False: there are too few.
 */
bool lists_collect(const struct assignment *d, int type, int n, int n_here, int *gpus);

/* ---- what the engine cannot do (assignment_rules.c) ---- */

/* As assignment_free, of those that the engine can give to the job. Linear in nodes. */
bool rules_gang(const struct assignment *d, int job, int type, int n, int *gpus);

/* On how many GPUs of a group the job could be if nobody else were there. */
int rules_stock(const struct assignment *d, int job, int group);

/* Those on a GPU give back what they use of its node (1), or take it (-1). */
void nodes_use(struct assignment *d, int gpu, int sign);

/* On how many GPUs of a node the job could be, by what is left in 'nodes'; NULL: on any number. */
static inline int nodes_fit(const struct assignment *d, const struct engine_node *nodes, int node,
                            int job)
{
    enum engine_rule ignored;

    return nodes ? problem_node_fits(&nodes[node], &d->problem->jobs[job], &ignored) : INT_MAX;
}

/* ---- journal ---- */

struct saved_gpu {
    int gpu;
    struct assignment_gpu was;
};

struct saved_job {
    int job, job_gpus;    // job_gpus: where its GPUs are in the journal
    struct assignment_job was;
};

struct saved_room {
    int rack;
    double was;
};

struct assignment_undo_log {
    bool is_open;
    uint32_t epoch;
    double cost_w, room_w;
    struct saved_gpu *gpus;
    struct saved_job *jobs;
    struct saved_room *rooms;
    int *job_gpus;
    int n_gpus, n_jobs, n_rooms, n_job_gpus;
    int cap_gpus, cap_jobs, cap_rooms, cap_job_gpus;
};

void journal_gpu(struct assignment *d, int gpu);
void journal_job(struct assignment *d, int job);
void journal_room(struct assignment *d, int rack);

/* ---- shards ---- */

/* An empty assignment over a problem with the same types and kinds, sharing 'tables'. */
struct assignment *assignment_create_with(const struct problem *p,
                                          const struct assignment_tables *tables);

/* Put a job where the caller knows that it may be, under a setting it may have; take it away;
 * give a GPU a setting. Whatever the caps say.
 */
void assignment_force(struct assignment *d, int job, const int *gpus, int n, int limit);
void assignment_force_away(struct assignment *d, int job);
void assignment_force_limit(struct assignment *d, int gpu, int limit);

#endif

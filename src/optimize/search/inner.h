/* inner.h - what the files of the search share and nobody else reads.
 *
 * A walk is a series of steps on one assignment. A shard is part of a problem with an assignment of
 * its own.
 */
#ifndef OPTIMIZE_SEARCH_INNER_H
#define OPTIMIZE_SEARCH_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rng.h"
#include "optimize/prices/columns.h"
#include "optimize/search/assignment_inner.h"

struct clock;
struct prices;

/* ---- walk ---- */

#define RECENT_MAX 64

struct search_walk {
    struct arena arena;    // of everything below
    struct assignment *d;
    struct rng rng;
    const struct prices *u;       // NULL: none
    const double *job_w;          // (n_jobs) each job's part of the bound
    struct key_index related;     // jobs that may be moved, by kind
    double *hardness;             // (n_jobs) who is inserted first
    int *recent, n_recent;        // (RECENT_MAX) GPUs where something has just happened
    double loss_w;                // all inefficiencies when they were last summed up
    double *sums;                 // (n_gpus) inefficiencies summed up; where steps begin
    int *troubled, n_troubled;    // (n_jobs) who may be waiting or missing its promise
    bool *is_listed;              // (n_jobs) is among them
    long nodes;
    double heat_w;     // now
    double least_w;    // what a step must gain for each job that it touches; 0 at first
    double best_w;
    bool is_best;                           // the assignment is the best so far
    int *best_gpus;                         // (n_job_gpus) and which it was
    int *best_n;                            // (n_jobs)
    unsigned char *best_limit;              // (n_gpus)
    const struct reduced_costs *reduced;    // NULL without prices
};

struct walk_plan {
    long nodes;                   // 0: until until_s
    const struct clock *clock;    // NULL: no end but the nodes
    double from_s, until_s;
    double heat_w, cool_w;    // at the beginning, and at the end; cool_w 0: the last part is cold
};

/* 'u' and 'job_w' may be NULL; 'job_w' is by the assignment's numbers. */
struct search_walk *walk_create(struct assignment *d, const struct prices *u, const double *job_w,
                                uint64_t seed, uint64_t stream);
void walk_destroy(struct search_walk *w);

/* Something has happened on a GPU; steps begin there for a while. */
void walk_notice(struct search_walk *w, int gpu);

/* Take steps that make the assignment cheaper, beginning where something happened or much is lost.
 */
void walk_slice(struct search_walk *w, int nodes);

/* Take steps, then put the best that was met on the assignment. */
void walk_run(struct search_walk *w, const struct walk_plan *plan);

/* How much of the gap to the bound a GPU and its jobs make up. */
double walk_loss(const struct search_walk *w, int gpu);

/* ---- shard ---- */

struct shard {
    struct arena arena;                // of its problem and what is below
    const struct assignment *whole;    // what it is cut from, how, and for whose turn
    const int *shard_of;
    int n_shards, index;
    uint64_t turn;
    int *local;    // (n_gpus of the whole) number in the shard, -1: not there
    struct problem problem;
    struct assignment *assignment;
    int *gpu_of;    // (problem.n_gpus) its number in the whole
    int *job_of;    // (problem.n_jobs)
};

/* Part of an assignment: GPUs with 'shard_of' == 'index', and the waiting jobs whose turn it is.
 * What caps leave is divided by GPUs. GPUs with jobs that reach into other shards stay out.
 */
struct shard *shard_create(const struct assignment *whole, const int *shard_of, int n_shards,
                           int index, uint64_t turn);
void shard_destroy(struct shard *s);

/* Make the whole as the shard is. */
void shard_apply(struct assignment *whole, const struct shard *s);

#endif

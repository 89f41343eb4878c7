/* inner.h - what the parts of explain.c share: one job, and the plan without it.
 *
 * places.c lays the plan out and finds the places, figures.c says how the job
 * would go somewhere and what that costs; explain.c puts them together. Scratch of one explanation.
 */
#ifndef OPTIMIZE_EXPLAIN_INNER_H
#define OPTIMIZE_EXPLAIN_INNER_H

#include <stdbool.h>

#include "catalog/cluster/snapshot.h"
#include "optimize/explain/explain.h"
#include "optimize/model/lower.h"
#include "optimize/model/problem.h"

/* Who is on a GPU without the job, under which setting. */
struct explain_gpu {
    int n_jobs, jobs[THETA_MAX];
    int limit;
};

/* GPUs that several may share and that are alike: what a candidate stands for. */
struct explain_shared {
    bool may_start, may_join;
    enum engine_rule rule;    // that keeps the job from it
    int gpu, n_gpus;          // one of them, and how many
    double need;              // the most that somebody on 'gpu' asks for
};

/* The GPUs of one type on one node, as the plan without the job leaves them. */
struct explain_node {
    int type, node;
    int n_all, n_up, n_free;    // n_free: empty, and somebody may come
    int first;                  // GPU of the node
    bool sleeps;
};

struct explain {
    struct arena *arena;
    const struct lowered *asked;
    const struct problem *p;
    const struct plan *plan;
    const struct plan_job *placed;    // where the plan has the job
    int job;
    const struct problem_job *j;
    const struct snapshot_job *sj;
    struct explain_gpu *gpus;    // (n_gpus)
    struct engine_node *left;    // (n_nodes) what the others leave of each; NULL: nobody counts
    enum engine_rule *ruled;     // (n_types) a rule that keeps the job from free GPUs of the type
    double room_w;               // what the power cap leaves without it; INFINITY: there is none
    struct candidate_cost
        least;    // of the chosen place, or of waiting: what others are measured by
    struct explain_node *nodes;
    int n_nodes;
    struct explain_shared *shared;
    int n_shared;
    int chosen;    // of these; the plan's GPU stands for it. -1: the job is alone, or waits
    struct candidate *list;
    int n_list;
};

/* ---- places.c ---- */

void explain_lay(struct explain *q);    // the plan, and the job off it
void explain_find_nodes(struct explain *q);
void explain_find_shared(struct explain *q);    // GPUs with somebody on them, and room

/* Free GPUs for a gang of n: on one node where that is possible or asked, in equal parts where it
 * asks for nodes; awake ones first. False: there are none now.
 */
bool explain_find_free(const struct explain *q, int type, int n, int *gpus);

/* ---- figures.c ---- */

/* Under this setting, or under the cheapest that the power cap allows. */
#define EXPLAIN_BEST (-1)

/* How long a job would take; a server takes its time whatever the speed. */
double explain_time_s(const struct snapshot_job *j, double speed);

/* The cheapest setting for those on a GPU. */
int explain_best_limit(const struct explain *q, int gpu);

enum explain_fit {
    EXPLAIN_NEVER,      // it must not run so
    EXPLAIN_NO_ROOM,    // the power cap does not allow it
    EXPLAIN_FITS,
};

/* Fill in the figures of a candidate, whose type and n_gpus are set and whose neighbour is -1, on
 * these very GPUs (NULL: as if there were some that are free).
 */
enum explain_fit explain_there(const struct explain *q, struct candidate *c, const int *gpus,
                               int limit);

/* No figures: it cannot run there. */
void explain_nowhere(struct candidate *c);

#endif

/* problem.h - what is to be planned, as numbers: GPUs, kinds of work, jobs, and their promises.
 *
 * Made by: problem_read (a file), problem_make (a generator) or lower (a snapshot and its
 * estimates). Read by: every planner, the judge, the certificate, and explanations. A plain value
 * without names of machines or users beyond what an answer has to say; never changed while it is
 * planned.
 *
 * Costs are rates, in watts. A GPU that runs a combination c of jobs under power limit l costs
 *
 *     watts(c, l) - sleep_w + price_w - sum over its jobs of value_j * speed(job, c, l)
 *
 * where value_j is what a step of the job's kind is worth: 0 when watts are minimised, and the
 * joules that the step would take at the kind's best place, with the price of its time, when joules
 * to finish are: what is done now need not be done later. To this come, for each job, 'move_w' when
 * it runs and its set of GPUs changes, its shortfall, and 'wait_w' when it gets no place. A job
 * that starts or moves pays for each GPU of its new place that sleeps: wake_s * (wake_rate *
 * (idle_w + price_w) + late_w), and for each that it did not have: start_w.
 */
#ifndef OPTIMIZE_MODEL_PROBLEM_H
#define OPTIMIZE_MODEL_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/cluster/engine.h"
#include "catalog/cluster/state.h"    // THETA_MAX
#include "optimize/model/plan.h"      // enum wait_reason
#include "optimize/model/promise.h"

struct arena;
struct err;

#define LIMITS_MAX 8    // settings of a GPU: its default, and this many less one power limits
#define GANG_MAX 64

/* What a power limit does to a GPU that would draw w0 watts: points at equal distances from
 * the type's idle_w to its cap_w, straight lines between them.
 */
struct limit_curve {
    int limit_w;
    int n_points;           // at least 2
    const double *speed;    // (n_points) factor of every job's speed, 0 < f <= 1
    const double *watts;    // (n_points) drawn instead of w0
};

struct problem_type {
    const char *name;
    double sleep_w, idle_w;    // with nobody on it: asleep; awake
    double cap_w;              // never draws more
    double mem_gib;
    int n_limits;                             // settings: 1 is the default alone
    struct limit_curve limits[LIMITS_MAX];    // [0] is the default: limit_w 0, no points
};

/* Jobs of one kind are alike in all but their promises and where they may run: also in what their
 * time is worth, so that what a step is worth is the kind's.
 */
struct problem_kind {
    const char *name;
    double mem_gib;
    double value_j;    // what a step is worth
    double rate;       // it does no more steps/s than this, and draws accordingly; 0: no such limit
    double time_w;     // the price of such a job's time, in 'value_j'; 0: nobody is in a hurry
};

struct problem_gpu {
    int type;
    int node, rack;    // racks are numbered from 0; GPUs of a node stand in one rack
    bool may_start;    // false: who is there may stay, nobody may come
    double
        wake_s;    // it sleeps, and takes so long to wake; 0: awake. On a node a type's are alike
    double held_w;    // frozen jobs draw this here; 0: there are none. Caps count it as idle
    int device;       // a gang over several nodes has the same ones of each; 0: no matter
};

enum job_form {
    FORM_GANG,      // on n_min..n_max GPUs of one type; on more than one: whole, and each alone
    FORM_SPREAD,    // up to n_max parts on any GPUs, shared or not; speeds add up; n_min is 1
};

/* A job that runs as the rules do not allow (any more): it stays exactly where it is, and nobody
 * may come to its GPUs.
 */
struct problem_frozen {
    double speed, low;    // what it gets
    int limit_w;          // of its GPUs; 0: the default
};

struct problem_job {
    const char *name;    // NULL: nobody plans for it: it is frozen, cannot run here, or is gone
    const struct problem_frozen *frozen;    // NULL: it is not
    enum wait_reason cannot;                // it waits without a name: why; else WAIT_NOT
    int kind;
    enum job_form form;
    int n_min, n_max;
    double need;               // steps/s that were promised; 0: none
    double short_w;            // a wholly missed promise costs this; a part as promise.h has it
    double wait_w;             // no place at all
    double move_w;             // it runs, and its set of GPUs changes (or it loses its place)
    double wake_rate;          // a joule spent on waking a GPU for it costs so many watts
    double late_w;             // each second that one of its GPUs takes to wake costs these
    double start_w;            // it spreads, and comes to a GPU that it does not have
    uint64_t allowed_types;    // bit per type; 0: any
    bool is_exclusive;         // shares its GPU with nobody
    int n_nodes;               // a gang: on so many nodes, in equal parts; 0: wherever
    bool is_fixed;             // it runs, and stays exactly where it is
    int n_present;             // GPUs it holds now
    const int *present;        // (n_present) ascending
    int present_limit;         // the setting they have
    double since_s;            // it has run there, or else waited, for so long; files say nothing
    double left_steps;         // it trains, and has so many left; 0: nobody knows. Likewise
    double left_s;             // it serves, for so long yet; 0: nobody knows. Likewise
    double priority;           // as it was submitted. Likewise

    struct engine_job engine;    // what the engine cannot do with it; barred: (n_nodes)
};

/* How a kind on a type differs from its type's curves: under every limit the logarithm of the speed
 * factor f is 'loss' times as far from 0, that of the watts 'draw' times, and there is a doubt of
 * 'doubt' for each unit that ln f is away from 'at'. Several on one GPU differ by the mean of
 * theirs, weighted by the watts that each adds.
 */
struct problem_bend {
    float loss, draw, doubt, at;
    bool is_free;    // must not be limited: never under any setting but the default
};

/* What is counted on, as factors of what is believed: more of what nobody has tried, so that it is
 * tried once; less where it may not fit. That a promise will hold after all is hoped alone only:
 * who counts on it beside others too shares a GPU at a promise's cost.
 */
struct problem_trust {
    float speed, held;    // 'held' alone
    float beside;         // and beside others
};

struct problem {
    int theta;             // jobs that may share a GPU, at most THETA_MAX
    double z;              // standard deviations from what is expected to 'low', for people
    double miss;           // missing a promise at all costs this part of missing it wholly
    double lasting;        // the part of doubts that promises are priced with, 0 to 1
    double price_w;        // of a GPU in use
    double power_cap_w;    // all GPUs together, empty ones (and frozen ones) awake; 0: none
    int n_racks;
    const double *rack_cap_w;    // (n_racks) the same for each rack, 0: none; NULL: no rack has one
    double watts_margin;         // caps hold for watts times this, >= 1
    double gang_near[GANG_MAX + 1];    // speed of n GPUs on one node, one GPU's being 1
    double gang_far[GANG_MAX + 1];     // and over several nodes; not above gang_near

    uint64_t
        turn;    // differs from decision to decision: where those begin who look at some jobs only

    int n_types, n_kinds, n_gpus, n_jobs;
    int n_nodes;                        // that 'nodes' and bars are of; 0: there are none
    const struct engine_node *nodes;    // (n_nodes) what jobs may use together; NULL: no matter
    struct problem_type *types;
    struct problem_kind *kinds;
    struct problem_gpu *gpus;
    struct problem_job *jobs;

    /* What a kind does on a type, steps/s, beside nobody ([0]) and beside kind n ([1 + n]): the
     * speed with the expected seconds a step, 0: must not run so; the speed that promises are held
     * against, and the doubt about that. Files have no doubt (NULL): there 'held' is cautious.
     */
    float *speed, *held, *doubt;    // (n_types, n_kinds, 1 + n_kinds)
    float *watts;                   // (n_types, n_kinds) of the GPU with a job of that kind alone
    float *shared;    // (n_types, n_kinds, n_kinds) of two: factor of the sum of their watts above
                      // idle; NULL: 1. Files have none
    struct problem_bend *bends;    // (n_types, n_kinds); NULL: 1, 1, 0, 0, no. Files have none
    float *hope;    // as 'speed': factor in it that is counted on, so that types and pairs get
                    // tried; where no more than two share only. NULL: 1
    struct problem_trust *trust;    // (n_types, n_kinds) in 'speed', 'held'; NULL: 1. Likewise
};

/* A plain number of one of these structs, as files name it. It is finite, and at least 'least'. */
struct problem_field {
    const char *key;    // NULL ends a list
    size_t at;          // the double in its struct
    double least;
    double absent;    // what a file means that does not say it; NaN: it has to
    bool is_brief;    // files leave it out where it is 0
};

extern const struct problem_field problem_fields[], problem_type_fields[], problem_kind_fields[],
    problem_job_fields[];

static inline long problem_cell(const struct problem *p, int type, int kind, int beside)
{
    return ((long)type * p->n_kinds + kind) * (p->n_kinds + 1) + beside + 1;
}

static inline long problem_pair(const struct problem *p, int type, const int *kinds)
{
    return ((long)type * p->n_kinds + kinds[0]) * p->n_kinds + kinds[1];
}

/* What is hoped of the i-th of 'n' kinds on a GPU of a type, in its speed. */
static inline double problem_hoped(const struct problem *p, int type, const int *kinds, int n,
                                   int i)
{
    if (!p->hope || n > 2)
        return 1;
    return (double)p->hope[problem_cell(p, type, kinds[i], n > 1 ? kinds[1 - i] : -1)];
}

/* What is counted on of it, as factors of what is believed. */
struct counted_on {
    double speed, held;
};

static inline struct counted_on problem_counted_on(const struct problem *p, int type,
                                                   const int *kinds, int n, int i)
{
    struct counted_on x = { 1, 1 };

    if (p->trust) {
        const struct problem_trust *t = &p->trust[type * p->n_kinds + kinds[i]];
        x = (struct counted_on){ (double)t->speed, (double)(n > 1 ? t->beside : t->held) };
    }
    x.speed *= problem_hoped(p, type, kinds, n, i);
    return x;
}

/* Those on one GPU. */
struct residents {
    int n;
    int jobs[THETA_MAX];
};

/* (n_gpus) who stands where now, of those with a name; in the arena. */
struct residents *problem_residents(struct arena *a, const struct problem *p);

/* What a combination does on a GPU: the only arithmetic planners share, and which the judge and
 * the certificate do again for themselves.
 */
struct yield {
    double watts;               // of the GPU
    double cost_w;              // watts - sleep_w + price_w - value of its jobs' steps
    double speed[THETA_MAX];    // of each job, in the order given
    struct held held[THETA_MAX];
};

/* The one number that stands for what a slot holds where prices are found. */
static inline double problem_sure(const struct problem *p, struct held h)
{
    return promise_sure(held_with(h, p->lasting), p->miss);
}

static inline double yield_low(const struct problem *p, const struct yield *y, int i)
{
    return problem_sure(p, y->held[i]);
}

/* 'n' jobs (1..theta) of these kinds on one GPU of 'type' under setting 'limit' (0: default).
 * False when they must not run so: memory, a cell that says never, or a limit on who must not be
 * limited. Beside several the slowdowns multiply; watts are idle_w and each job's own part in
 * proportion to its pace, at most cap_w.
 */
bool problem_yield(const struct problem *p, int type, int limit, const int *kinds, int n,
                   struct yield *out);

/* The same of these jobs. */
bool problem_yield_of(const struct problem *p, int type, int limit, const int *jobs, int n,
                      struct yield *out);

/* From what a kind does on one GPU, alone, to what a gang of m > 1 of them does: cost_w and watts
 * of all of them.
 */
void problem_make_gang(const struct problem *p, int type, int kind, int m, bool is_near,
                       struct yield *y);

/* Both at once. */
bool problem_gang_yield(const struct problem *p, int type, int limit, int kind, int m, bool is_near,
                        struct yield *out);

/* What a kind does in a second at that speed. */
static inline double problem_done(const struct problem_kind *k, double speed)
{
    return k->rate > 0 ? fmin(speed, k->rate) : speed;
}

/* Are these the GPUs that the job has now? */
static inline bool problem_is_at(const struct problem_job *j, const int *gpus, int n)
{
    return gpus_same(j->present, j->n_present, gpus, n);
}

/* What a placed job is expected to miss, in watts. All who plan price promises by this, and the
 * judge again.
 */
static inline double problem_short_w(const struct problem *p, const struct problem_job *j,
                                     struct held h)
{
    return j->need > 0 ? j->short_w * promise_missed(j->need, held_with(h, p->lasting), p->miss)
                       : 0;
}

/* Where all that is known of a place is its yield_low: no more than that. */
static inline double problem_least_short_w(const struct problem_job *j, double low)
{
    return low >= j->need ? 0 : j->short_w * (1 - low / j->need);
}

/* What a job that comes to a GPU pays for starting there and waking it, in watts. */
static inline double problem_come_w(const struct problem *p, const struct problem_job *j, int gpu)
{
    const struct problem_gpu *g = &p->gpus[gpu];
    double w = j->start_w > 0 && !gpus_have(j->present, j->n_present, gpu) ? j->start_w : 0;

    if (g->wake_s > 0)
        w += g->wake_s * (j->wake_rate * (p->types[g->type].idle_w + p->price_w) + j->late_w);
    return w;
}

/* The setting of that many watts; -1: there is none. */
static inline int problem_setting(const struct problem_type *t, int limit_w)
{
    int i = t->n_limits - 1;

    while (i >= 0 && t->limits[i].limit_w != limit_w)
        i--;
    return i;
}

/* Nodes that GPUs are on, by number: one more than the last. */
int problem_n_nodes(const struct problem *p);

/* Does coming to a GPU cost anybody anything: does one sleep, or somebody pay for a start? */
bool problem_has_fees(const struct problem *p);

static inline bool problem_allows(const struct problem_job *j, int type)
{
    return j->allowed_types == 0 || (j->allowed_types >> type & 1);
}

/* Why the engine cannot give the job this GPU, whoever else is on its node; one that it has now it
 * can always keep.
 */
static inline enum engine_rule problem_bars(const struct problem *p, const struct problem_job *j,
                                            int gpu)
{
    const struct problem_gpu *g = &p->gpus[gpu];

    if (j->engine.barred && j->engine.barred[g->node])
        return (enum engine_rule)j->engine.barred[g->node];
    return j->engine.device && j->engine.device != g->device ? ENGINE_PINNING : ENGINE_CAN;
}

/* On how many GPUs of a node with so much left the job could be, and what keeps it from more. */
int problem_node_fits(const struct engine_node *left, const struct problem_job *j,
                      enum engine_rule *why);

/* What a job uses of a GPU's node is taken from there (-1), or given back (1). */
static inline void problem_use_node(const struct problem *p, int job, int gpu, int sign,
                                    struct engine_node *nodes)
{
    struct engine_node *of = &nodes[p->gpus[gpu].node];

    of->cpus += sign * p->jobs[job].engine.cpus;
    of->mem_mib += sign * p->jobs[job].engine.mem_mib;
}

/* (n_nodes) what nodes have for all jobs together: where those that run use more, that is what they
 * have. In the arena; NULL: nobody counts.
 */
struct engine_node *problem_node_room(struct arena *a, const struct problem *p);

/* Does a gang get the same devices of each of its nodes? */
bool problem_devices_match(const struct problem *p, const int *gpus, int n);

/* Is anything in doubt? Then what is missed of a promise is no line in what is held. */
bool problem_has_doubt(const struct problem *p);

/* Is there anything that the engine cannot do? */
bool problem_has_rules(const struct problem *p);

/* Do these GPUs of a gang stand on 'n_nodes' nodes, as many on each? 0: it does not matter. */
bool problem_stands(const struct problem *p, const int *gpus, int n, int n_nodes);

/* What the promised work is worth: the sum over jobs of value_j * need. A constant that planners
 * ignore, and that is added to costs and bounds where they are shown: so that joules to finish
 * are compared with all joules, and not with what is left after subtracting the value of work.
 */
double problem_base_w(const struct problem *p);

/* Is it a problem at all? Finite numbers, indices in range, sizes, present places that hold
 * together (no more than theta on a GPU, exclusive ones alone). 0, or -EINVAL naming the
 * first thing that is wrong. Whoever makes a problem calls this before anyone plans it.
 */
int problem_check(const struct problem *p, struct err *e);

/* The value of a kind's step for joules to finish: (watts - sleep_w + price_w + time_w) / speed at
 * the type, alone and under the setting, where that is least. 0 when it runs nowhere.
 */
double problem_best_joules(const struct problem *p, int kind);

#endif

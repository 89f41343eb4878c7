/* support.h - small worlds for the tests, written down in a few lines of text.
 *
 * A world is a catalog, a state, and what a cycle makes of them. One line, one thing;
 * '#' begins a comment. Whatever does not make sense fails the test that wrote it.
 *
 *     type v100 cap=250               a built-in type, or a copy of one: type fast=v100
 *     workload w params=1e6 batch=8   features as in a descriptor
 *     speed w v100 10 sd=0.1          stored estimate, steps/s: alone
 *     speed w v100 6 beside=x         beside x
 *     watts w v100 200                stored estimate: the GPU with w alone
 *     pairs 0.8                       every cell that has no estimate beside a neighbour yet
 *                                     gets the lonely speed times this
 *     unfit w v100 beside=x           seen not to fit; without beside: alone
 *     node n1 v100 v100
 *     job a w steps=100 min=2         see job_line; training unless it has a rate
 *     start a 0,1                     on these GPUs (indices in the state)
 *     stop a / hold a / release a / finish a / fail a / cancel a
 *     up n1 / drain n1 / down n1
 *     wake n1 60                      its GPUs sleep, and take so many seconds to wake
 *     room n1 4 1000                  what jobs may use of it: CPUs, MiB
 *     needs a 2 100                   for each of its GPUs, of the node: CPUs, MiB
 *     bar a n1                        for want of a feature
 *     at 60                           the time from here on
 */
#ifndef TESTS_UNIT_SUPPORT_H
#define TESTS_UNIT_SUPPORT_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

#define WORLD_GPUS 1024    // of which some may sleep
#define WORLD_RULED 16     // jobs and nodes that an engine may have rules for: the first ones

struct world {
    struct catalog catalog;
    struct ledger ledger;
    struct estimator est;    // with z = 1
    struct arena arena;      // snapshot and plan
    struct snapshot snapshot;
    struct lowered asked;    // by world_solve
    struct solve_options options;
    int theta;    // 2
    double now_s;
    double wake_s[WORLD_GPUS];    // by GPU
    bool has_rules;
    struct engine_node room[WORLD_RULED];    // by node
    struct engine_job needs[WORLD_RULED];    // by id
    unsigned char barred[WORLD_RULED][WORLD_RULED];
};

/* Read 'text'; the ledger has no store. */
void world_init(struct world *w, const char *text);
void world_release(struct world *w);

/* More lines. */
void world_add(struct world *w, const char *text);

/* Forget the last snapshot and plan, refresh the estimates, take a snapshot. */
void world_look(struct world *w);

/* The plan of the solver called 'name' for the last snapshot; it has been judged. */
void world_solve(struct world *w, const char *name, struct plan *out);

/* Indices by name; the test fails where there is none. */
int world_job(const struct world *w, const char *name);
int world_workload(const struct world *w, const char *name);
int world_type(const struct world *w, const char *name);

/* Apply one event; the test fails when it is refused. */
void world_apply(struct world *w, const struct event *ev);

/* How many rows a table of the store has. */
int count_rows(struct store *s, const char *table);

/* A plain training submission to change and submit. */
struct job_spec spec_of(const char *name, int workload);

/* A directory of the test's own, and its end with all that is in it. */
char *scratch_make(void);
void scratch_remove(char *dir);

/* All fields of two states that an event can change agree ('version' and the order of
 * 'running', which mean nothing, aside). NULL, or what differs.
 */
const char *state_differs(const struct state *a, const struct state *b);

#endif

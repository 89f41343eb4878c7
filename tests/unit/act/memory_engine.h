/* memory_engine.h - a third engine behind the executor's door: jobs run in memory, faults come by script.
 *
 * Orders are carried out at once and told as notices in the next turn. A fault is a line
 *
 *     ORDER JOB WHAT        the next such order about the job of that name: 'refuse' (not now),
 *                           'cannot' (never), 'die' (the engine does not answer any more), 'slow'
 *                           (accepted, and under way until memory_settle)
 *
 * with ORDER one of start, stop, move, cancel. Whatever the daemon asks is noted in 'asked', a
 * word or two each. Users and nodes act by memory_user and memory_node.
 */
#ifndef TESTS_UNIT_ACT_MEMORY_ENGINE_H
#define TESTS_UNIT_ACT_MEMORY_ENGINE_H

#include <stdbool.h>

#include "act/executor.h"
#include "act/runs.h"
#include "catalog/cluster/state.h"

struct clock;
struct loop;

enum { MEMORY_JOBS = 32, MEMORY_QUEUE = 256 };

struct memory_engine {
    struct loop *loop;
    const struct clock *clock;    // borrowed
    const struct state *state;    // borrowed
    const char *script;           // faults that have not happened yet
    bool is_dead, is_closed;
    char asked[8192];
    double grace_s;

    struct memory_run {
        int run;    // 0: it had none yet
        bool is_there, is_slow;
        int n_gpus, gpus[8];
    } runs[MEMORY_JOBS];
    struct run_notice notices[MEMORY_QUEUE];    // a queue: from 'first_notice' on
    int notice_gpus[MEMORY_QUEUE][8];
    int n_notices, first_notice, n_safe;    // 'n_safe': those before are on disk
    struct engine_change changes[MEMORY_QUEUE];
    int n_changes, first_change;
    void (*on_news)(void *to);
    void *news_to;

    /* Tells the owner of a node that came or went. */
    void (*node_is)(void *owner, int node, enum node_state is);
    void *owner;
};

/* 'm' is zeroed, or one that was closed: what ran in it still does. */
void memory_open(struct memory_engine *m, struct loop *loop, const struct clock *clock,
                 const struct state *s);
struct executor memory_executor(struct memory_engine *m);

void memory_settle(struct memory_engine *m);    // slow orders are carried out
void memory_end(struct memory_engine *m, int job, enum notice_kind how, const char *reason);
void memory_user(struct memory_engine *m, int job, enum job_change what);
void memory_node(struct memory_engine *m, int node, enum node_state is);

/* Has the daemon asked for this since it was last forgotten? */
bool memory_was_asked(const struct memory_engine *m, const char *what);
void memory_forget(struct memory_engine *m);

#endif

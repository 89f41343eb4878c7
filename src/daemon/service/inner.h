/* inner.h - what the files of the service share: when to listen, commit and decide. */
#ifndef DAEMON_SERVICE_INNER_H
#define DAEMON_SERVICE_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "daemon/service/service.h"

struct endpoints;
struct upkeep;

struct done_steps {
    int job, gpu_type;
    double time_s, steps;
};

struct service_inner {
    struct err broken;    // what service.broken points at
    int locks[2];         // descriptors that keep a second daemon out; -1: none

    /* Listening and committing. */
    bool has_news;              // the sensor may have something
    struct done_steps *done;    // (n_done) to be booked when this turn is on disk
    int n_done, cap_done;
    struct engine_change *changes;    // (n_changes) of jobs, that the engine is to hear of then
    int n_changes, cap_changes;
    uint64_t generation;        // changes when the state was made anew after a failed commit
    struct loop_timer retry;    // the store failed: try again

    /* Deciding. */
    struct loop_timer decide;
    bool wants_decision;
    bool is_deciding;
    bool use_greedy;             // the last decision failed: the next one is made simply
    double decided_s;            // on the stopwatch, when the last one was begun; -INFINITY: never
    uint64_t asked_of;           // generation the decision under way was begun in
    unsigned char *explained;    // (n_explained) by job: the reason last explained, and 1; 0: none
    int n_explained;
    uint64_t explained_of;            // generation they are of
    bool is_pricing;                  // prices are being found anew, in a child
    double pricing_s;                 // on the stopwatch, since when
    const struct snapshot *priced;    // of this, until the child is there

    struct upkeep *upkeep;          // of services; NULL: not yet
    struct endpoints *endpoints;    // its

    /* Now and then. */
    struct loop_timer flush;       // usage to the store
    struct loop_timer accounts;    // promises; and the watchdog hears of us
    double accounted_s;
};

/* Open this turn's transaction, for what is written beside events. */
int service_begin(struct service *s, struct err *e);

/* End it before the turn does, and let held answers go. */
void service_commit(struct service *s);

/* The store refused something: what this turn wrote is undone, here and on disk. */
void service_undo(struct service *s, const struct err *e);

/* The turn's parts, for who puts them in their places. */
void service_on_news(void *self);
void service_turn_open(struct service *s);
void service_turn_end(void *self);

/* After a decision: where its gap says that the kept prices serve no longer, find them anew beside
 * the next ones. True: that has begun.
 */
struct decision;
bool service_reprice(struct service *s, const struct decision *d);

/* Decide when it is time and nothing is under way. */
void service_decide_open(struct service *s);

/* Promises kept and broken since the last time. */
void service_account(struct service *s);

/* What jobs used before this process began, from the store, beside the loop. */
void service_recall_usage(struct service *s);

/* Tell systemd, where it listens ("READY=1", ...). */
void service_notify(const char *text);

#endif

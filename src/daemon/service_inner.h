/* service_inner.h - what the files of the service share: when to listen, commit and decide. */
#ifndef DAEMON_SERVICE_INNER_H
#define DAEMON_SERVICE_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "daemon/service.h"

struct done_steps {
    int job;
    double time_s, steps;
};

struct service_inner {
    struct err broken;    // what service.broken points at
    int node;             // this box, in the state
    int locks[2];         // descriptors that keep a second daemon out; -1: none

    /* Listening and committing. */
    bool has_news;     // the sensor may have something
    int *cancelled;    // (n_cancelled) jobs to be ended when this turn is on disk
    int n_cancelled, cap_cancelled;
    struct done_steps *done;    // (n_done) to be booked then
    int n_done, cap_done;
    uint64_t generation;        // changes when the state was made anew after a failed commit
    struct loop_timer retry;    // the store failed: try again

    /* Deciding. */
    struct loop_timer decide;
    bool wants_decision;
    bool is_deciding;
    bool use_greedy;            // the last decision failed: the next one is made simply
    double decided_s;           // on the stopwatch, when the last one was begun; -INFINITY: never
    uint64_t asked_of;          // generation the decision under way was begun in
    unsigned char *why_told;    // (n_why_told) by job: the reason last explained, and 1; 0: none
    int n_why_told;
    uint64_t why_told_of;    // generation they are of

    /* Now and then. */
    struct loop_timer flush;    // usage to the store
    struct loop_timer watchdog;
    struct loop_timer accounts;    // promises
    double accounted_s;
};

/* Open this turn's transaction, for what is written beside events. */
int service_begin(struct service *s, struct err *e);

/* End it before the turn does, and let held answers go. */
void service_commit(struct service *s);

/* The store refused something: what this turn wrote is undone, here and on disk. */
void service_undo(struct service *s, const struct err *e);

/* The turn's parts, for who puts them in their places. */
void service_hear(struct service *s);
void service_on_news(void *self);
void service_turn_open(struct service *s);
void service_turn_end(void *self);

/* Nodes and GPUs: what the configuration declares or the drivers show. */
int service_find_gpus(struct service *s, struct err *e);

/* Decide when it is time and nothing is under way. */
void service_decide_open(struct service *s);

/* Promises kept and broken since the last time. */
void service_account(struct service *s);

/* What jobs used before this process began, from the store, beside the loop. */
void service_recall_usage(struct service *s);

/* Tell systemd, where it listens ("READY=1", ...). */
void service_notify(const char *text);

#endif

/* service_inner.h - what the files of the service share: when to listen, commit and decide. */
#ifndef DAEMON_SERVICE_INNER_H
#define DAEMON_SERVICE_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "daemon/service/service.h"

struct done_steps {
    int job, gpu_type;
    double time_s, steps;
};

struct service_inner {
    struct err broken;    // what service.broken points at
    int node;             // this box, in the state; -1: GPUs are Slurm's
    int locks[2];         // descriptors that keep a second daemon out; -1: none

    /* Listening and committing. */
    bool has_news;     // the sensor may have something
    int *cancelled;    // (n_cancelled) jobs to be ended when this turn is on disk
    int n_cancelled, cap_cancelled;
    struct done_steps *done;    // (n_done) to be booked then
    int n_done, cap_done;
    int *submitted;    // (n_submitted) jobs that the executor is to hear of then,
    int n_submitted, cap_submitted;
    int *held;    // (n_held) and those that are held
    int n_held, cap_held;
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
    uint64_t why_told_of;             // generation they are of
    bool is_pricing;                  // prices are being found anew, in a child
    double pricing_s;                 // on the stopwatch, since when
    const struct snapshot *priced;    // of this, until the child is there

    /* Slurm. */
    struct newcomers *newcomers;    // nodes on their way into the state
    struct intake *intake;
    char site[17];    // of this store's tokens
    unsigned char site_key[16];
    char secret[RUN_SECRET_BYTES + 1];    // last told

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

/* After a decision: where its gap says that the kept prices serve no longer, find them anew beside the
 * next ones. True: that has begun.
 */
struct decision;
bool service_reprice(struct service *s, const struct decision *d);

/* Nodes and GPUs: what the configuration declares or the drivers show. */
int service_find_gpus(struct service *s, struct err *e);

/* The type that a title or gres type means: as configured, or built in; NULL: none. */
const struct gpu_type *service_type_of(const struct service *s, const char *title,
                                       bool *is_described);

/* Where jobs are told to report to. */
const char *service_reports(struct service *s);

/* Slurm: the executor; what watches nodes, once there is a sensor; what users did; the end. */
int service_slurm_open(struct service *s, struct err *e);
void service_slurm_watch(struct service *s);
void service_slurm_listen(struct service *s);
void service_slurm_close(struct service *s);

/* Decide when it is time and nothing is under way. */
void service_decide_open(struct service *s);

/* Promises kept and broken since the last time. */
void service_account(struct service *s);

/* What jobs used before this process began, from the store, beside the loop. */
void service_recall_usage(struct service *s);

/* Tell systemd, where it listens ("READY=1", ...). */
void service_notify(const char *text);

#endif

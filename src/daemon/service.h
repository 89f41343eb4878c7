/* service.h - the daemon's parts, put together: what a handler may look at and ask for.
 *
 *                 requests ----> http ----> api_* ----> service_append ----> ledger (disk)
 *                                             |               |
 *     decide (a child process) <--- cycle <---+--- wakes -----'
 *           |                         ^
 *           '------ plan -----> act --+--> local (processes) --> watch --> cycle_listen
 *
 * One thread owns all of it. Made by service_open; one to a process.
 */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cycle/cycle.h"
#include "daemon/config.h"
#include "daemon/metrics.h"
#include "daemon/recover.h"

struct auth;
struct decider;
struct devices;
struct energy;
struct err;
struct feed;
struct http;
struct local;
struct model;
struct request;
struct watch;
struct workload;

struct service {
    struct loop *loop;
    struct clock clock;
    struct arena arena;           // of what lives as long as the process
    struct arena arena_config;    // of the configuration, once it was read again
    struct config config;
    const char *keeper;       // program
    struct recovered base;    // store, catalog, ledger
    struct cycle cycle;
    struct model *model;    // in use at start
    struct devices *devices;
    struct local *local;    // the executor
    struct watch *watch;    // the sensor
    struct energy *energy;
    struct auth *auth;
    struct http *http;
    struct feed *feed;    // server-sent events
    struct decider *decider;
    struct metrics metrics;
    bool is_ready;    // journal read, runs adopted, listening
    bool is_stopping;
    bool is_open, has_cycle;      // 'base' and 'cycle' are there
    bool is_turn_open;            // a transaction of this turn waits for its commit
    struct err *broken;           // the store's last failure; NULL: it works
    double began_s;               // of the process
    double flushed_s;             // when usage was last written; NaN: not yet
    bool is_past_known;           // what jobs used before this process began has been read
    double last_decision_s;       // NaN: none yet
    double acting_w, shadow_w;    // shadow mode: predicted draw under the acting plan and ours; NaN
    struct service_inner *inner;
};

/* 'keeper' is the program that keeps a run of a job (act/local.h); both borrowed. */
int service_open(struct service *s, const struct config *c, const char *keeper, struct err *e);
int service_run(struct service *s, struct err *e);    // until a signal, or service_stop
void service_stop(struct service *s);
void service_close(struct service *s);

/* Apply and journal one event in this turn's transaction, which is committed at the turn's
 * end; answers are held back until then. -EINVAL: the state refuses it, and nothing is
 * changed. -ENOSPC, -EROFS, ...: the store does.
 */
int service_append(struct service *s, const struct event *ev, struct err *e);

/* The catalog's index of a workload, added in this turn's transaction where it is new. */
int service_add_workload(struct service *s, const struct workload *w, int *index, struct err *e);

/* Take in measurements that somebody posted, as refine_take does, in this turn's transaction. */
struct measurement;
int service_measure(struct service *s, const struct measurement *m, struct err *e);

/* End a job for good, as its owner or an operator asked: the event, and the order. */
int service_cancel(struct service *s, int job, struct err *e);

/* Write down what was used up to now, so that a report has it. */
void service_flush(struct service *s);

/* Something has changed: decide soon. (service_append does this by itself.) */
void service_wake(struct service *s);

#endif

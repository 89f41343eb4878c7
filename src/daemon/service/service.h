/* service.h - the daemon's parts, put together: what a handler may look at and ask for.
 *
 *                 requests ----> http ----> api_* ----> service_append ----> ledger (disk)
 *                                             |               |
 *     decide (a child process) <--- cycle <---+--- wakes -----'
 *           |                         ^
 *           '------ plan -----> act --+--> the engine --> watch --> cycle_listen
 *
 * One thread owns all of it. Made by service_open; one to a process.
 */
#ifndef DAEMON_SERVICE_SERVICE_H
#define DAEMON_SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cycle/cycle.h"
#include "daemon/config/config.h"
#include "daemon/service/metrics.h"
#include "daemon/service/recover.h"

struct auth;
struct cluster;
struct decider;
struct energy;
struct err;
struct feed;
struct http;
struct model;
struct record;
struct request;
struct watch;
struct workload;

/* How the engine is opened that runs the jobs (daemon/engine/engine.h). 'open' is called once there
 * are a loop and a store: it has nodes put into the state that it knows of (service_install), and
 * fills in 'out'. Where it fails it leaves nothing open.
 */
struct engine {
    int (*open)(struct service *s, const char *program, struct executor *out, struct err *e);
    const char *program;    // that it starts; borrowed
};

struct service {
    struct loop *loop;
    struct clock clock;
    struct arena arena;           // of what lives as long as the process
    struct arena arena_config;    // of the configuration, once it was read again
    struct config config;
    struct recovered base;    // store, catalog, ledger
    struct cycle cycle;       // with the executor, which is the engine
    struct model *model;      // in use at start
    struct watch *watch;      // the sensor
    struct energy *energy;
    struct auth *auth;
    struct http *http;
    struct feed *feed;    // server-sent events
    struct decider *decider;
    struct record *record;    // what happens is written down; NULL: it is not
    struct metrics metrics;
    bool is_ready;    // journal read, runs adopted, listening
    bool is_stopping;
    bool is_open, has_cycle;      // 'base' and 'cycle' are there
    bool is_turn_open;            // a transaction of this turn waits for its commit
    struct err *broken;           // the store's last failure; NULL: it works
    double began_s;               // of the process
    double flushed_s;             // when usage was last written; NaN: not yet
    bool has_earlier_usage;       // what jobs used before this process began has been read
    double last_decision_s;       // NaN: none yet
    const char *acting_policy;    // in place of ours, which is compared with it; NULL: ours acts
    double acting_w, shadow_w;    // shadow mode: predicted draw under the acting plan and ours; NaN
    struct service_inner *inner;
};

int service_open(struct service *s, const struct config *c, const struct engine *engine,
                 struct err *e);
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

/* Nodes, types and workloads that are new, in a transaction of their own. */
int service_install(struct service *s, const struct cluster *cl, struct err *e);

/* A submission that was read becomes a job, in this turn's transaction. */
struct submit;
int service_submit(struct service *s, struct submit *want, int *job, struct err *e);

/* Take in measurements that somebody posted, as refine_take does, in this turn's transaction. */
struct measurement;
int service_measure(struct service *s, const struct measurement *m, struct err *e);

/* End a job for good, as its owner or an operator asked: the event, and the order. */
int service_cancel(struct service *s, int job, struct err *e);

/* Write down what was used up to now, so that a report has it. */
void service_flush(struct service *s);

/* What all GPUs draw now. */
double service_watts(const struct service *s);

/* What a second of a usual job's time is worth, in joules: as was set, or by the caps. */
double service_delay_w(const struct service *s);

/* Something has changed: decide soon. (service_append does this by itself.) */
void service_wake(struct service *s);

#endif

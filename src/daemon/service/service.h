/* service.h - the daemon's parts, put together: what a handler may look at and ask for.
 *
 *                 requests ----> http ----> api_* ----> service_append ----> ledger (disk)
 *                                             |               |
 *     decide (a child process) <--- cycle <---+--- wakes -----'
 *           |                         ^
 *           '------ plan -----> act --+--> local (processes), or Slurm --> watch --> cycle_listen
 *
 * One thread owns all of it. Made by service_open; one to a process.
 */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "act/runs.h"
#include "base/clock.h"
#include "base/loop.h"
#include "cycle/cycle.h"
#include "daemon/config/config.h"
#include "daemon/service/metrics.h"
#include "daemon/service/recover.h"

struct auth;
struct decider;
struct devices;
struct energy;
struct err;
struct feed;
struct http;
struct local;
struct model;
struct record;
struct request;
struct slurm;
struct slurm_watch;
struct watch;
struct workload;

/* What the daemon starts, besides children of its own; paths, borrowed. */
struct programs {
    const char *keeper;          // keeps a run of a job (act/local.h)
    const char *slurm_driver;    // runs Slurm's commands (act/slurm.h)
};

struct service {
    struct loop *loop;
    struct clock clock;
    struct arena arena;           // of what lives as long as the process
    struct arena arena_config;    // of the configuration, once it was read again
    struct config config;
    struct programs programs;
    struct recovered base;    // store, catalog, ledger
    struct cycle cycle;
    struct model *model;    // in use at start
    struct devices *devices;
    struct runs runs;                   // of the executor, which is one of these two
    struct local *local;                // NULL: Slurm runs the jobs
    struct slurm *slurm;                // NULL: this box does
    struct slurm_watch *slurm_watch;    // its nodes and users' jobs
    struct watch *watch;                // the sensor
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
    bool is_past_known;           // what jobs used before this process began has been read
    double last_decision_s;       // NaN: none yet
    double acting_w, shadow_w;    // shadow mode: predicted draw under the acting plan and ours; NaN
    struct service_inner *inner;
};

int service_open(struct service *s, const struct config *c, const struct programs *p,
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

/* A submission that was read becomes a job, in this turn's transaction. */
struct submit;
int service_submit(struct service *s, struct submit *want, int *job, struct err *e);

/* Take in measurements that somebody posted, as refine_take does, in this turn's transaction. */
struct measurement;
int service_measure(struct service *s, const struct measurement *m, struct err *e);

/* End a job for good, as its owner or an operator asked: the event, and the order. */
int service_cancel(struct service *s, int job, struct err *e);

/* The present or last run of a job; false: none, or nobody runs anything yet. */
bool service_find_run(const struct service *s, int job, struct run_info *out);

/* Write down what was used up to now, so that a report has it. */
void service_flush(struct service *s);

/* Something has changed: decide soon. (service_append does this by itself.) */
void service_wake(struct service *s);

#endif

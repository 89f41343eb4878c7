/* services.h - services from decision to decision: what arrives, what is needed, which replicas.
 *
 * Owned by the cycle. Flows in: what replicas are seen to do (struct served). Flows out: views for
 * snapshots (how many requests/s each service shall be ready for, and what places hold), and of a
 * judged plan the events that submit, drain and cancel replicas:
 *
 *     plan has a GPU more   -> submitted -> (on disk) started -> loads -> ready: gets its weight
 *     plan has a GPU less   -> once the others that are ready hold the demand without it: draining,
 *                              weight 0 -> a while later cancelled
 *
 * so that nothing is broken before what replaces it is made. Whatever ends by itself leaves room
 * for another, after a while that doubles with each failure. Events go where the cycle's own go.
 */
#ifndef CYCLE_SERVICES_H
#define CYCLE_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct cycle;
struct err;
struct measurement;
struct plan;
struct served;
struct service_view;
struct services;
struct snapshot;

/* Where a request goes: one of a service's replicas, and its part of all requests. */
struct service_route {
    int job;    // the replica
    double weight;
    double capacity;    // requests/s that it holds
};

/* Told whenever weights change; replicas that are not named get nothing. */
typedef void cycle_routes_f(void *self, int service, const struct service_route *routes, int n);

struct services *services_create(void);
void services_destroy(struct services *s);

/* One for each of the state's services, in that order, in 'a'; NULL: there are none. */
const struct service_view *services_views(struct cycle *c, struct arena *a);

/* What a replica did; 'job' is its id. True: a measurement is in 'out', to be learned from. */
bool services_hear(struct cycle *c, int job, const struct served *seen, struct measurement *out);

/* After a plan's orders were given: replicas that it wants more or less. */
int services_act(struct cycle *c, const struct snapshot *s, const struct plan *p, struct err *e);

/* What time asks for: orders for replicas that are on disk, the end of those that were drained,
 * weights, new tables. Cheap where there is nothing to do. services_next_s says when there is,
 * whatever else happens.
 */
int services_tick(struct cycle *c, struct err *e);
double services_next_s(const struct cycle *c);    // INFINITY: never

/* Is a decision due, since more or less is asked for than when the last one was made? */
bool services_want(const struct cycle *c);

/* What was not on disk was undone, in the state too: forget it. */
void services_undone(struct cycle *c);

/* A table that is due, for an owner that builds it elsewhere (cycle.on_table_due): begin, then
 * table_build_run (cycle/table.h) on any thread, then end, which takes 'b'.
 */
struct table_build;
struct table_build *services_table_begin(const struct cycle *c, int service);
void services_table_end(struct cycle *c, struct table_build *b);

/* What arrived, to be kept: rows of a service that have changed, each replacing the one with the
 * same 'hour_s' (SERVICES_WEEK: its week of counts). services_unsaved_s: since when the next one
 * has not been written, and in '*service' which one; NaN: there is none. services_load puts a row
 * back, before anything is heard.
 */
#define SERVICES_WEEK (-1)
typedef int services_row_f(void *self, int service, int64_t hour_s, const void *bytes, size_t len,
                           struct err *e);
double services_unsaved_s(struct cycle *c, int *service);
int services_save(struct cycle *c, int service, services_row_f *f, void *self, struct err *e);
int services_load(struct cycle *c, int service, int64_t hour_s, const void *bytes, size_t len,
                  struct err *e);

/* GPUs that a replica is submitted for and not yet started on: nobody else comes there. */
void services_reserve(const struct cycle *c, bool *is_busy);

/* A service as it is now, for those who show it. */
struct service_now {
    double rate;      // requests/s that arrive, over the last minutes; NaN: not known
    double demand;    // that it shall be ready for
    double held;      // that its ready replicas hold
    int n_ready, n_starting, n_draining;
    double n_requests, n_late;    // since the daemon began
    bool is_false;                // one contradicted itself of late: that was not counted
    double heard_s;               // NaN: never
    int n_failures;               // in a row
    double retry_s;               // no replica is started before
    bool is_careful;              // no hour is recorded yet
    bool is_flooding;             // one said so much of late that it was not heard for a while
    int source;                   // enum capacity_source of its table
    int n_hours;                  // that were replayed for it
    double margin;                // by which step times are taken longer than believed
    double load_s;                // from a replica's start until it is ready
    double guard_until_s;         // it was late, and is provided for with more until then
    bool is_silent;               // it has ready replicas, and none ever said what it serves
};
bool services_now(const struct cycle *c, int service, struct service_now *out);

/* Where its requests go, as was told last; (*n), borrowed until the next tick. */
const struct service_route *services_routes(const struct cycle *c, int service, int *n);

/* Requests/s that one replica of it would hold on a GPU type, beside a workload (-1: alone); 0:
 * none, NaN: nothing is believed of that yet.
 */
double services_capacity(const struct cycle *c, int service, int type, int beside);

#endif

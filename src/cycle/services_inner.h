/* services_inner.h - what is remembered of services, for the files services*.c. */
#ifndef CYCLE_SERVICES_INNER_H
#define CYCLE_SERVICES_INNER_H

#include <stdint.h>

#include "cycle/services.h"
#include "estimate/serving.h"
#include "serve/arrivals.h"
#include "serve/capacity.h"
#include "serve/counted.h"
#include "serve/demand.h"

enum { WINDOW_BATCHES = 12 };

/* What a replica did since nothing has changed around it: its neighbour, its power limit. */
struct served_window {
    int job;
    int beside;    // the neighbour, a job; -1: none
    int limit_w;
    double from_s, to_s;
    double least_s;    // it is learned from once it is so long
    double late;
    struct serving_seen sum;
    struct serving_seen by_batch[WINDOW_BATCHES];    // of about 2^i requests, not learned from yet
};

struct service_record {
    int id;    // of the service
    struct arrivals *arrivals;
    struct demand demand;
    struct counted counted;    // of replicas that tell no bins
    struct capacity capacity;
    double built_s;     // the table; NaN: never
    double load_s;      // that a replica took until it was ready; 0: none has yet
    double minute_s;    // what follows is since then
    double requests, late;
    double guard, guard_until_s;    // requests/s that the guard asks for
    double replayed_s;              // when the guard last replayed what came
    double asked;                   // the demand at the last look
    double sum_requests, sum_late;
    double heard_s;
    double false_s, flooded_s;    // when one of its replicas last did so; NaN: never
    int n_failures;
    double retry_s;
    int *replicas;    // (n_replicas) ids, of those that are not over when last looked at
    int n_replicas, cap_replicas;
    int next_replica;                 // number of the next one
    double started_s;                 // when the last one was submitted
    struct served_window *windows;    // (n_windows) of its replicas, but for some that are over
    int n_windows, cap_windows;
    struct service_route *routes;    // (n_routes) as they were told
    int n_routes, cap_routes;
    double saved_s;         // when its arrivals were last written; NaN: never
    double saved_hour_s;    // hours that begin before this are on disk as they stay
};

struct job_spec;

struct services {
    struct service_record *records;    // as the state's services
    int n, cap;
    int n_jobs;          // of the state, looked at so far
    uint64_t version;    // of the state, at the last tick
    double next_s;       // when the next is due
    bool is_awaited;     // a replica was under way in the engine then
};

/* Of a service by its id; NULL: there is none such. */
struct service_record *services_record(const struct cycle *c, int service);

/* Get to know services and replicas that are new in the state. */
void services_meet(struct cycle *c);

/* ---- what each needs and holds ---- */

/* Step times are believed to be at most so long, by as many standard deviations: nine times in ten.
 */
#define SERVICE_Z 1.28

struct serving service_serving(const struct job_spec *s);
double service_load_s(const struct cycle *c, const struct service_record *r);
double service_demand(const struct cycle *c, const struct service_record *r, double now_s);

/* After a restart and with a new model the estimator has met nobody until it is refreshed. */
void services_refresh(struct cycle *c);

/* What a replica holds where it is, beside whom it is; 0 where that is not known yet. */
double service_held_by(const struct cycle *c, const struct service_record *r, int job);

/* By those that take requests, but for one (-1: by all). */
double service_held(const struct cycle *c, const struct service_record *r, int but);

/* Replicas that serve or will; is there one that does not serve yet? */
int service_n_live(const struct cycle *c, const struct service_record *r);
bool service_is_coming(const struct cycle *c, const struct service_record *r);

/* Build its table anew, or have it built, where that is due. */
void service_build_table(struct cycle *c, struct service_record *r, double now_s);

#endif

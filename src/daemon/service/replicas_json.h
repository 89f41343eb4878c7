/* replicas_json.h - services as the API shows them (docs/api.md, "A service").
 *
 * A job of the kind JOB_SERVICE, its replicas, what they serve and what they draw. "Service" is the
 * user's here; struct service is the daemon.
 */
#ifndef DAEMON_SERVICE_SERVICE_JSON_H
#define DAEMON_SERVICE_SERVICE_JSON_H

#include <stdbool.h>

struct api_text;
struct arena;
struct job;
struct service;

/* What several services' objects need, gathered in one pass over all jobs; in an arena. */
struct replica_sums {
    double watts, joules, requests;    // of all that it ever had; watts of those that run
};

struct replicas {
    const int *live;    // (n_live) ids of replicas that are not over, in rising order
    int n_live;
    const struct replica_sums *sums;    // as the state's services
};

struct replicas replicas_gather(struct arena *a, const struct service *s);

/* "waiting", "starting", "serving", "held" or "ended". */
const char *service_standing(const struct service *s, const struct job *j);

/* "kept": of what was answered since the daemon began, 99 of 100 were in time; "short", "unknown";
 * "none" of replicas and of what has ended.
 */
const char *service_promise(const struct service *s, const struct job *j);

/* One of a list; 'is_whole': also what each GPU type holds, and why. */
void service_put(struct api_text *t, const char *key, const struct service *s, const struct job *j,
                 const struct replicas *r, bool is_whole, double now_s);

/* {"service", "id", "version", "endpoints"}, of what is not published (upkeep.h): version 0. */
void service_put_endpoints(struct api_text *t, const struct service *s, const struct job *j,
                           const struct replicas *r);

#endif

/* usage.h - joules, promises and errors of a period, by owner, workload or GPU type.
 *
 * Read from the store's usage rows, which the daemon writes now and then: what happened since the
 * last time is not in them yet. Reading may take long and is done on a worker with a connection
 * of its own; names come from the state and are put in on the loop's thread.
 */
#ifndef DAEMON_API_USAGE_H
#define DAEMON_API_USAGE_H

#include <jansson.h>
#include <stdint.h>

#include "base/map.h"
#include "store/store.h"

struct catalog;
struct err;
struct state;

enum usage_by { BY_OWNER, BY_WORKLOAD, BY_GPU_TYPE, USAGE_BYS };
extern const char *const usage_by_names[USAGE_BYS + 1];    // "owner", ..., NULL
int usage_by_name(const char *name);                       // -1: there is none

/* A period's rows, added up. Owns heap. */
struct usage {
    struct row_usage *parts;    // (n_parts) one for each job and type, of all hours
    int n_parts, cap_parts;
    struct map_u64 part_by_key;
    struct row_usage *hours;    // (n_hours) rising, of all jobs and types
    int n_hours, cap_hours;
    struct row_usage total;
    struct row_usage *served;    // (n_served) rows of replicas that answered something
    int n_served, cap_served;
};

void usage_init(struct usage *u);
void usage_release(struct usage *u);
void usage_add(struct usage *u, const struct row_usage *r);    // hours in rising order

/* All hours that begin in [from_s, to_s), the one that 'from_s' is in included, of the store at
 * 'path', which is opened and closed here.
 */
int usage_read(struct usage *u, const char *path, double from_s, double to_s, struct err *e);

double usage_joules(const struct row_usage *r);

/* "total", "rows" (most joules first; they add up to the total) and "hours", as docs/api.md has
 * them.
 */
json_t *usage_json(const struct usage *u, enum usage_by by, const struct state *s,
                   const struct catalog *c);

/* "services": what each answered in the period, in how many of its hours the promise was kept, and
 * at what energy; by id, those that used nothing left out.
 */
json_t *usage_services_json(const struct usage *u, const struct state *s, double from_s,
                            double to_s);

#endif

/* upkeep.h - what services ask for between decisions, on the daemon's loop.
 *
 *     a turn is on disk, or time asks --> services_tick --> orders, events, weights
 *           |                                 '--> endpoints: a file for balancers
 *           |--> health: is a replica ready, does it still answer
 *           '--> pages: what those serve that have one instead of reporting
 *     demand is not held --> a decision;  a table is due --> a worker;  arrivals --> the store
 *
 * Made by service_open once there is a sensor; on the loop's thread.
 */
#ifndef DAEMON_SERVICE_UPKEEP_H
#define DAEMON_SERVICE_UPKEEP_H

struct endpoints;
struct err;
struct health;
struct job;
struct pages;
struct service;
struct upkeep;

/* Hook it into the cycle, read arrivals back. -Exxx: the table of metrics is of no use. */
int upkeep_create(struct service *s, struct err *e);
void upkeep_destroy(struct upkeep *u);    // NULL is fine; work on workers is settled

/* This turn is on disk: replicas that wait for that get their orders soon. NULL is fine. */
void upkeep_is_safe(struct upkeep *u);

/* Write all arrivals that are not on disk, in a transaction of their own: at the end. */
void upkeep_save_all(struct upkeep *u);

/* The endpoints of a service as its file has them, a JSON text; NULL: it has none. */
const char *service_endpoints(const struct service *s, int service);

/* ---- endpoints.c ---- */
struct endpoints *endpoints_create(struct service *s);
void endpoints_destroy(struct endpoints *p);
void endpoints_refresh(struct endpoints *p);    // files of services whose replicas have changed
const char *endpoints_text(const struct endpoints *p, int service);
const char *endpoints_host(const struct service *s, int gpu);    // NULL: not known yet

/* Of a path of a replica that runs, on the heap; NULL: it is not known yet where it is. */
char *endpoints_url(const struct service *s, const struct job *j, const char *path);

/* A port of the configured ones that no live replica has, and that is free here; 0: none. */
int endpoints_choose_port(void *service, int gpu);

/* ---- health.c ---- */
struct health *health_create(struct service *s);
void health_destroy(struct health *h);
void health_is_safe(struct health *h);    // replicas may have come or gone

/* ---- pages.c ---- */
int pages_create(struct service *s, struct pages **out, struct err *e);    // '*out' in any case
void pages_destroy(struct pages *p);
void pages_is_safe(struct pages *p);    // replicas may have come or gone

#endif

/* inner.h - what the files that read a submission share. */
#ifndef DAEMON_SUBMIT_INNER_H
#define DAEMON_SUBMIT_INNER_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/submit/submit.h"

/* A submission being read. */
struct submit_reading {
    struct arena *arena;
    const struct submit_context *context;
    json_t *body;
    struct submit *out;
    uid_t uid;
    gid_t gid;
};

/* Values of the body; absent and null ones are 'otherwise' or false. */
double reading_number(const struct submit_reading *r, const char *key, double otherwise);
bool reading_flag(const struct submit_reading *r, const char *key);

/* Is it a name as text_is_name has it? */
int reading_check_name(const char *what, const char *name, struct err *e);

/* Does a live job have that name? */
bool reading_is_taken(const struct state *s, const char *name);

/* What it runs, into 'out'; its owner and kind have been read. */
int reading_workload(struct submit_reading *r, struct err *e);

/* Of a service: kind, rate and terms; its name; that its workload is inference. And of what is
 * none: that it says nothing that only a service has.
 */
enum { SERVICE_GPUS = 8 };          // replicas at once, where nobody says how many
enum { SERVICE_NAME_MAX = 180 };    // a replica's number and more comes behind it
int reading_service(struct submit_reading *r, struct err *e);
int reading_service_name(const char *name, struct err *e);
int reading_service_workload(const struct submit_reading *r, struct err *e);
int reading_no_service(const struct submit_reading *r, struct err *e);

#endif

/* services.h - a service as text, for `gogh show` and `gogh explain`. services.c has them. */
#ifndef CLI_CLIENT_SERVICES_H
#define CLI_CLIENT_SERVICES_H

#include <jansson.h>
#include <stdbool.h>

struct arena;

/* Is this job, as the daemon shows it, a service? a replica? */
bool services_is(const json_t *job);
bool services_is_replica(const json_t *job);

/* Everything about one, and why it is where it is; of what GET /v1/services/{id} says. */
void services_show(struct arena *a, const json_t *service);
void services_explain(struct arena *a, const json_t *service);

/* "99 % within 200 ms", "first token within 500 ms, each further 50 ms". */
const char *services_promise(struct arena *a, const json_t *service);

#endif

/* terms.h - what makes a job a service or a replica, as journal and rows keep it.
 *
 * One JSON object: {"p99_s": 0.2, "max_batch": 32, ...} of a service, and of a replica the same
 * with {"of": 3, "replica": 0, "port": 20001, "gpu": 5}. Read by event.c and rows.c only.
 */
#ifndef CATALOG_CLUSTER_TERMS_H
#define CATALOG_CLUSTER_TERMS_H

#include <jansson.h>

struct arena;
struct err;
struct job_spec;

/* NULL: it is neither. */
json_t *terms_to_json(const struct job_spec *s);
const char *terms_text(struct arena *a, const struct job_spec *s);

/* Into 'out', which becomes a service or a replica; terms in 'a'. 'o' and 'text' may be NULL: it is
 * neither. -EINVAL: not such an object.
 */
int terms_from_json(struct arena *a, json_t *o, struct job_spec *out, struct err *e);
int terms_parse(struct arena *a, const char *text, struct job_spec *out, struct err *e);

/* A copy that lives in 'a'. NULL of NULL. */
struct service_terms;
const struct service_terms *terms_copy(struct arena *a, const struct service_terms *t);

#endif

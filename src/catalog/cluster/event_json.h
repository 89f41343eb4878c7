/* event_json.h - events as Jansson values, for the journal and the rows of nodes. */
#ifndef CATALOG_CLUSTER_EVENT_JSON_H
#define CATALOG_CLUSTER_EVENT_JSON_H

#include <jansson.h>

struct arena;
struct catalog;
struct err;
struct event;
struct state;

/* The body of 'ev'; the caller owns it. */
json_t *event_to_json(const struct event *ev, const struct state *s, const struct catalog *c);

/* It as text in 'a', in the place of 'o', which is let go of; NULL: it is none, or not finite. */
const char *event_text(struct arena *a, json_t *o);

/* Fill 'out' (its kind is set) from a body; texts and lists go into 'a'. */
int event_from_json(struct arena *a, json_t *o, const struct state *s, const struct catalog *c,
                    struct event *out, struct err *e);

#endif

/* learned.h - what is in a model, for `gogh train` and `gogh catalog model`. */
#ifndef CLI_OFFLINE_LEARNED_H
#define CLI_OFFLINE_LEARNED_H

#include <jansson.h>

struct model;

/* What it learned from, each member's held-out errors and weights, P2's contest. */
void learned_print(const struct model *m);
json_t *learned_json(const struct model *m);

#endif

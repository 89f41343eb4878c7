/* learned.h - what is in a model, for `gogh train` and `gogh catalog model`. */
#ifndef CLI_OFFLINE_LEARNED_H
#define CLI_OFFLINE_LEARNED_H

#include <jansson.h>
#include <stdbool.h>

struct model;

/* What it learned from, how much speeds differ for what, who foresees campaigns left out. */
void learned_print(const struct model *m, bool with_contests);
json_t *learned_json(const struct model *m);

#endif

/* learned.h - models on the command line: which one is meant, and what is in it.
 *
 * Shared by `gogh train`, `gogh catalog model` and every command that takes --model.
 */
#ifndef CLI_OFFLINE_LEARNED_H
#define CLI_OFFLINE_LEARNED_H

#include <jansson.h>

struct err;
struct model;
struct store;

/* What it learned from, each member's held-out errors and weights, P2's contest. */
void learned_print(const struct model *m);
json_t *learned_json(const struct model *m);

#endif

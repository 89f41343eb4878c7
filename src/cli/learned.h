/* learned.h - models on the command line: which one is meant, and what is in it.
 *
 * Shared by `gogh train`, `gogh catalog model` and every command that takes --model.
 */
#ifndef CLI_LEARNED_H
#define CLI_LEARNED_H

#include <jansson.h>

struct err;
struct model;
struct store;

/* The model that --model names: "pretrained", "none" (NULL, the roofline), "site" (of the store
 * 's', which may be NULL: there is none), or a file. NULL for 'which': the site's where it has
 * one, else the pretrained one, else none. Yours to destroy.
 */
int learned_open(const char *which, struct store *s, struct model **out, struct err *e);

/* What it learned from, each member's held-out errors and weights, P2's contest. */
void learned_print(const struct model *m);
json_t *learned_json(const struct model *m);

#endif

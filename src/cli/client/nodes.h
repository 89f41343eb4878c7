/* nodes.h - lists of GPUs, for `gogh nodes` and `gogh top`. nodes.c has them. */
#ifndef CLI_CLIENT_NODES_H
#define CLI_CLIENT_NODES_H

#include <jansson.h>

struct arena;
struct buf;

/* A row a GPU, the first 'n_most' of them. */
void nodes_gpus(struct arena *a, const json_t *gpus, int n_most, struct buf *out);

#endif

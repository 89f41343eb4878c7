/* jobs.h - lists of jobs and of GPUs, for `gogh jobs`, `nodes` and `top`. jobs.c and nodes.c have
 * them.
 */
#ifndef CLI_CLIENT_JOBS_H
#define CLI_CLIENT_JOBS_H

#include <jansson.h>
#include <stdio.h>

struct arena;
struct client;
struct err;

/* Jobs of 'path' ("/v1/jobs?owner=x") that run, wait or are held, into the list. */
int jobs_live(struct client *c, const char *path, json_t *into, struct err *e);

/* A row a job. */
void jobs_table(struct arena *a, const json_t *jobs, double now_s, FILE *out);

/* What a job cannot have as the cluster is: "no node has 8 GPUs of one type that it may use"; NULL
 * where it waits for something else.
 */
const char *jobs_beyond(struct arena *a, const json_t *job);

/* A row a GPU, the first 'n_most' of them. */
void nodes_gpus(struct arena *a, const json_t *gpus, int n_most, FILE *out);

#endif

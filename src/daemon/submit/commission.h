/* commission.h - what a site should measure: the body of POST /v1/commission, answered.
 *
 * Pure but for the catalog, which gets to know the programs that are named: hand in a copy that
 * nobody keeps, in a child of the daemon or of a store that is only read. Bodies have been through
 * schema_commission_ask (daemon/http/shapes.h). Asked by the API, and by `gogh commission --db`.
 */
#ifndef DAEMON_SUBMIT_COMMISSION_H
#define DAEMON_SUBMIT_COMMISSION_H

#include <jansson.h>
#include <stdbool.h>

struct arena;
struct catalog;
struct err;
struct estimator;

/* What is asked about; all borrowed. */
struct commission_site {
    struct catalog *catalog;    // without a store
    struct estimator *estimator;
    const int *recent;    // (n_recent) workloads of jobs, newest first, each once
    int n_recent;
    const bool *is_there;    // (n_types of the catalog) the site has such GPUs
    int theta;               // jobs that may share a GPU
};

/* An answer as schema_commission says; NULL with 'e': a workload that makes no sense, nothing to
 * measure on, an estimator that learns nothing.
 */
json_t *commission_answer(struct arena *a, const struct commission_site *site, json_t *body,
                          struct err *e);

#endif

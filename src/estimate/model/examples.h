/* examples.h - what a catalog has measured, campaign by campaign, as a value.
 *
 * Made by examples_take on the catalog's own thread; read by model_train on any, as long as it
 * lives: nothing of the catalog is borrowed. Owns heap memory.
 */
#ifndef ESTIMATE_MODEL_EXAMPLES_H
#define ESTIMATE_MODEL_EXAMPLES_H

#include <stdint.h>

#include "base/arena.h"
#include "estimate/hierarchical/fit.h"

struct catalog;

/* What is learned of: speeds, alone and beside others; and watts alone, as readings alone. */
enum learned { LEARN_SPEEDS, LEARN_WATTS, LEARNED };

struct examples {
    struct arena arena;
    struct site site;    // all workloads on all types, shared as the site shares them
    int n_campaigns;
    struct campaign_readings *read[LEARNED];    // (n_campaigns) CATALOG_SITE is the site's own
    int64_t n_measurements;                     // of the catalog
};

void examples_take(const struct catalog *c, struct examples *out);
void examples_release(struct examples *x);

#endif

/* inner.h - what catalog.c has for load.c and nobody else: into memory only. */
#ifndef CATALOG_INNER_H
#define CATALOG_INNER_H

#include <stdint.h>

#include "catalog/catalog.h"

struct err;

int catalog_append_type(struct catalog *c, const struct gpu_type *t, int64_t row, struct err *e);
int catalog_append_workload(struct catalog *c, const struct workload *w, int64_t row,
                            struct err *e);
int catalog_append_campaign(struct catalog *c, const char *name, enum sharing sharing, int64_t row,
                            struct err *e);
int catalog_add_measurement(struct catalog *c, const struct measurement *m, struct err *e);

/* Where a cell is in cell_by_key, if it is there. */
uint64_t catalog_cell_key(const struct catalog *c, struct cell_key k);

#endif

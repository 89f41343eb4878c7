/* descriptors.h - a CSV of workload descriptors: by family, or by workload name.
 *
 * Made from a file given with --workloads; read by the importers while they name
 * workloads. A file with a 'name' column describes workloads one by one (what
 * `gogh catalog export --workloads` writes); without it, each row is a family and
 * holds for every batch size. docs/formats/measurements.md describes both.
 */
#ifndef CATALOG_IMPORT_DESCRIPTORS_H
#define CATALOG_IMPORT_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"

struct arena;
struct err;
struct workload;

struct descriptors {
    bool is_by_name;          // else by family
    struct workload *rows;    // (n_rows), in the caller's arena
    int n_rows;
    struct map by_key;    // name or family to row
};

/* Read 'text' (called 'name' in messages) into 'out', allocating in 'a'; release it in
 * either case. -EINVAL names file and line.
 */
int descriptors_read(struct arena *a, const char *name, const char *text, size_t len,
                     struct descriptors *out, struct err *e);
void descriptors_release(struct descriptors *d);

/* The workload called 'name', with what is known of it: from 'd' (may be NULL), else
 * from the built-in models, else only family and batch as its name has them; false: no more than
 * that is known.
 */
bool descriptors_apply(struct arena *a, const struct descriptors *d, const char *name,
                       struct workload *out);

#endif

/* export.h - the catalog as CSV (docs/formats/measurements.md): what the importers read.
 *
 * Numbers are written with as many digits as it takes to read the same value back,
 * so that export, import into an empty store and export again gives the same bytes.
 */
#ifndef CATALOG_IMPORT_EXPORT_H
#define CATALOG_IMPORT_EXPORT_H

struct buf;
struct err;
struct store;

/* Every measurement of 's', one line each in the order they arrived, into 'out'. */
int catalog_export(struct store *s, struct buf *out, struct err *e);

/* Every workload's descriptor: what --workloads of the importers reads. */
int catalog_export_workloads(struct store *s, struct buf *out, struct err *e);

#endif

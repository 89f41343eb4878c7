/* import.h - measurements in and out: other people's into a catalog, ours as CSV.
 *
 * All of a file comes in, or nothing. Each importer parses and checks its whole input first
 * (import_*_read, into a draft) and writes afterwards, in one transaction (draft_commit in
 * draft.h): whoever has yet to open or make a store does so in between, so that input that is
 * wrong leaves no trace. The same content again changes nothing (origins in the store). Errors
 * name file, line or JSON path, and the cure. After an error the store is as it was; a catalog
 * that had begun to take rows is only good for catalog_release.
 */
#ifndef CATALOG_IMPORT_IMPORT_H
#define CATALOG_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct catalog;
struct draft;
struct err;
struct progress;
struct store;

struct import_report {
    bool is_known;               // this very content was imported before; nothing changed
    int64_t n_measurements;      // rows added
    int n_workloads, n_types;    // of this file
    int n_isolated, n_pairs, n_gangs, n_limited, n_watts;    // values in this file
    int n_unfit;      // of these, pairs (either order is one) or jobs that do not fit
    int n_dropped;    // rows that there is no cell or no descriptor for
    const char *why_dropped;
    int n_copies;    // one-worker values of '_unconsolidated' types, not counted again
};

struct import_gavel {
    const char *path;         // throughputs JSON
    const char *isolated;     // another one to take isolated speeds from, or NULL
    const char *workloads;    // descriptor CSV, or NULL
    const char *watts;        // gpu,workload,watts CSV, or NULL
};
int import_gavel_read(struct draft *d, const struct import_gavel *in, struct progress *p,
                      struct err *e);
int import_gavel(struct catalog *c, const struct import_gavel *in, double now_s, struct progress *p,
                 struct import_report *out, struct err *e);

/* 'dir' holds summary_power_<gpu>.csv files (Zeus, NSDI'23): seconds per epoch and watts
 * by batch size and power limit.
 */
int import_zeus_read(struct draft *d, const char *dir, struct progress *p, struct err *e);

/* Data sets as their authors publish them, each a campaign of its own where --campaign says so;
 * docs/formats/measurements.md has where they come from and how their figures become steps/s.
 */
int import_mlenergy_read(struct draft *d, const char *path, struct progress *p, struct err *e);
int import_neusight_read(struct draft *d, const char *path, struct progress *p, struct err *e);
int import_parvagpu_read(struct draft *d, const char *path, struct progress *p, struct err *e);
int import_pollux_read(struct draft *d, const char *path, struct progress *p, struct err *e);
int import_pytorch_gpu_benchmark_read(struct draft *d, const char *path, struct progress *p,
                                      struct err *e);
int import_miso_read(struct draft *d, const char *dir, struct progress *p, struct err *e);
int import_elasticflow_read(struct draft *d, const char *path, struct progress *p, struct err *e);

/* Our own format, docs/formats/measurements.md; also what catalog_export writes.
 * 'workloads' is a descriptor CSV or NULL.
 */
int import_csv_read(struct draft *d, const char *path, const char *workloads, struct progress *p,
                    struct err *e);

/* Every measurement of 's' as such a CSV, one line each in the order they arrived, into 'out'; and
 * every workload's descriptor, as 'workloads' reads it. Numbers have as many digits as it takes to
 * read the same value back: export, import into an empty store and export again gives the same
 * bytes.
 */
int catalog_export(struct store *s, struct buf *out, struct err *e);
int catalog_export_workloads(struct store *s, struct buf *out, struct err *e);

#endif

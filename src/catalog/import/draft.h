/* draft.h - what an importer has read and checked, before any of it is written.
 *
 * Made by the parsers of the importers (import_*.c), which work on text in memory
 * and know neither files nor stores; written to a catalog by draft_commit in one
 * transaction. Lives for one import.
 */
#ifndef CATALOG_IMPORT_DRAFT_H
#define CATALOG_IMPORT_DRAFT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "catalog/import/descriptors.h"
#include "catalog/import/import.h"

struct err;
struct progress;

#define IMPORT_BYTES_MAX (256u << 20)    // of any one input; Gavel's files have 1.2 MB
#define IMPORT_SPEED_MAX 1e9             // steps/s; above, somebody counted something else
#define IMPORT_WATTS_MAX 3000.0          // a GPU; the largest of today has a limit of 1400

/* Rows from one origin: a file, or files that shape values together. */
struct draft_part {
    const char *kind;    // "gavel", "watts", ...
    const char *name;    // of the file, for people
    char digest[65];     // of its files together, in hex
    int first_row, n_rows;
};

enum { DRAFT_PARTS_MAX = 2 };

struct draft {
    struct arena arena;
    struct descriptors descriptors;
    bool is_describing;        // by 'descriptors'; else the built-in models are asked
    struct gpu_type *types;    // (n_types)
    int n_types, cap_types;
    struct workload *workloads;    // (n_workloads)
    int n_workloads, cap_workloads;
    int n_undescribed;         // workloads that no descriptor was found for
    const char **campaigns;    // (n_campaigns); the first is the site's own
    int n_campaigns, cap_campaigns;
    int campaign;                // of rows from here on
    enum sharing sharing;        // of its GPUs, as somebody says
    enum sharing published;      // and as who published the data says
    struct measurement *rows;    // (n_rows); keys index this draft
    int n_rows, cap_rows;
    struct map type_by_name, workload_by_name;
    int *type_at, *workload_at, *campaign_at;    // in the catalog that it is being written to
    struct draft_part part[DRAFT_PARTS_MAX];
    int n_parts;
    struct import_report report;
};

void draft_init(struct draft *d);
void draft_release(struct draft *d);

/* The index of a GPU type or workload, added where absent: figures come from the
 * built-in types, features from the descriptors. Unknown ones stay unknown.
 */
int draft_type(struct draft *d, const char *name);
int draft_workload(struct draft *d, const char *name);

/* The index of a campaign, added where absent. */
int draft_campaign(struct draft *d, const char *name);

/* Rows from here on are of this campaign, unless they say otherwise; NULL: the site's own. */
void draft_set_campaign(struct draft *d, const char *name);

/* How the GPUs of that campaign were shared, as who imports it says. (What is published says it by
 * d->published, which counts where nobody else does.)
 */
void draft_set_sharing(struct draft *d, enum sharing sharing);

/* A row that states nothing but its cell; the caller fills it in at once. */
struct measurement *draft_add(struct draft *d, int workload, int type, int neighbour);

/* Rows from here on belong to this origin. */
void draft_begin_part(struct draft *d, const char *kind, const char *name);

/* 0 when an empty catalog takes all of it: what is left to fail is the store. The last step
 * of reading; errors name the file.
 */
int draft_check(struct draft *d, struct err *e);

/* Write everything to 'c' in one transaction (where it has a store), except parts that
 * the store knows already. Fills d->report and copies it to 'out'.
 */
int draft_commit(struct draft *d, struct catalog *c, double now_s, struct progress *p,
                 struct import_report *out, struct err *e);

/* ---- the parsers: text in, draft out; tests and fuzzers call them directly ---- */
struct draft_text {
    const char *name;    // for messages
    const char *text;
    size_t len;
};

int gavel_read(struct draft *d, const struct draft_text *throughputs,
               const struct draft_text *isolated, struct progress *p, struct err *e);
int gavel_read_watts(struct draft *d, const struct draft_text *in, struct err *e);
int zeus_read(struct draft *d, const char *gpu, const struct draft_text *in, struct err *e);

typedef int draft_read_f(struct draft *d, const struct draft_text *in, struct progress *p,
                         struct err *e);
draft_read_f csv_read, mlenergy_read, neusight_read, parvagpu_read, pollux_read,
    pytorch_gpu_benchmark_read, miso_read;
int miso_read_power(struct draft *d, const struct draft_text *in, struct err *e);
int elasticflow_read(struct draft *d, const char *model, const struct draft_text *in,
                     struct err *e);

/* A file of the present part: its digest goes into the part's. */
void draft_add_digest(struct draft *d, const struct draft_text *in);

/* Read a whole text file into the draft's arena. */
int draft_load(struct draft *d, const char *path, struct draft_text *out, struct err *e);

/* The file at 'path' as a part of its own, by 'read'. */
int draft_read_file(struct draft *d, const char *kind, const char *path, draft_read_f *read,
                    struct progress *p, struct err *e);

/* Read the descriptor CSV at 'path' (NULL: none) and use it from here on. */
int draft_describe(struct draft *d, const char *path, struct err *e);

#endif

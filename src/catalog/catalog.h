/* catalog.h - everything known about workloads on GPU types, in memory.
 *
 * Made by catalog_load from the store (or empty, for a run without one). Read by
 * every room to the right. Grows by catalog_record: measurements only ever arrive.
 * 'refine' leaves them here, and the next cycle's 'estimate' finds them: the loop
 * closes through this room.
 *
 * Workloads and types are small integers (indices), given out in order of
 * appearance and never reused.
 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "catalog/drift.h"
#include "catalog/gpu_type.h"
#include "catalog/workload.h"

struct err;
struct store;

/* One cell: a workload on a GPU type, alone (neighbour -1) or beside a neighbour, as
 * part of a gang of n_gpus. Power limits below the default are cells of their own, and so is
 * what each campaign measured: other machines, other software, other ways to count.
 */
struct cell_key {
    int workload, gpu_type;
    int neighbour;     // -1: alone
    int n_gpus;        // 1 for all but gangs
    bool is_spread;    // gang over several nodes
    int limit_w;       // 0: the type's default
    int campaign;      // CATALOG_SITE: the site's own
};

/* The first campaign: what the site measured itself, and what its people count as such. Decisions
 * rest on its cells; other campaigns are for learning.
 */
#define CATALOG_SITE 0
#define CATALOG_SITE_NAME "site"

/* One GPU at the default limit, in whatever campaign? */
static inline bool cell_key_is_default(const struct cell_key *k)
{
    return k->n_gpus == 1 && k->limit_w == 0;
}

/* The same, of the site's own? */
static inline bool cell_key_is_plain(const struct cell_key *k)
{
    return k->campaign == CATALOG_SITE && cell_key_is_default(k);
}

/* What limits did to a workload alone on a type: sums, each weighted by 1/noise^2. x is ln of a
 * limit's factor by the law, y of the speed as it was seen; of watts, both over those without.
 */
struct limit_sums {
    double weight, x, xx, y, xy;
    double watts_xx, watts_xy;
};

/* What the measurements of one cell add up to. Later ones do not wipe out earlier
 * ones: the mean is weighted by 1/noise^2. Unless the speed has changed for good
 * (drift.h): then those from before hardly count any more.
 */
struct cell {
    struct cell_key key;
    int n_speed;    // measurements of throughput
    int n_unfit;    // times it did not fit
    int n_watts;
    int n_past;                   // those of n_speed from before the last change
    double ln_speed;              // weighted mean of ln steps/s
    double speed_weight;          // sum of 1/noise^2
    double speed_scatter;         // sum of (distance from the mean / noise)^2
    double ln_watts;              // mean
    double ln_pace, ln_undone;    // means as ln_speed: of those of its measurements
    struct limit_sums limits;     // of a workload alone
    double last_s;                // time of the newest measurement
    struct cusum drift;
    double drift_s;       // when the last change was noticed
    uint16_t n_drifts;    // how often
    uint16_t n_behind;    // changes of its whole type or workload since it was measured
};

/* A measurement as it was seen, under a power limit or none; 'noise', 'watts_noise' 0: not. */
struct limit_reading {
    double ln_speed, noise;
    double ln_law_w, ln_watts, watts_noise;    // by the law and as seen, over those without a limit
};

/* One observation, as it arrives. */
struct measurement {
    struct cell_key key;
    bool fits;
    double throughput;    // steps/s; NaN: not measured
    double watts;         // NaN: not measured
    double time_s, duration_s;
    double noise;    // sd of ln throughput; NaN: CATALOG_NOISE is assumed

    /* Taken under a power limit and told as without it: the law's ln of the limit's factor, and
     * what was added to ln throughput for it. 0 and 0: as it was seen.
     */
    double ln_pace, ln_undone;
    struct limit_reading seen;    // what it says of limits
};

/* Variance of the cell's ln_speed as a mean (n_speed > 0): 1/weight where measurements
 * differ no more than their noise says, and as much larger as they contradict each other:
 * (1/weight) * max(1, scatter / (n - 1)), the square of what is known as Birge's ratio.
 * Where its whole GPU type or workload has changed since, CATALOG_DRIFT^2 more for each time.
 */
double cell_variance(const struct cell *c);

/* By how much a driver update or a new container moves speeds, as a guess (sd of ln speed). */
#define CATALOG_DRIFT 0.1

/* Assumed noise of a measurement that does not state its own: repeated identical pairs in
 * Gavel's data differ by 2-9 %; we take 5 %.
 */
#define CATALOG_NOISE 0.05

/* Nobody knows a speed better than to 0.01 %; a smaller noise counts as this, lest one
 * measurement outweigh all others for good.
 */
#define CATALOG_NOISE_MIN 1e-4

/* What a monitor saw of a workload that had a GPU to itself for a while; NaN: not seen. */
struct solo_profile {
    double gpu_activity, mem_activity;
    double watts;
    double mem_used_bytes;
};

/* Of how many such times each of these is the mean; 0: of none, or somebody told it. The first two
 * are activities: as they were when 'descriptions' last changed for them.
 */
enum { PROFILE_FIGURES = 4, PROFILE_ACTIVITIES = 2 };
struct profile_watch {
    unsigned char n[PROFILE_FIGURES];
    float told[PROFILE_ACTIVITIES];
};

struct catalog {
    struct arena arena;        // names and descriptors live here
    struct gpu_type *types;    // (n_types)
    int n_types, cap_types;
    struct workload *workloads;    // (n_workloads)
    int n_workloads, cap_workloads;
    struct cell *cells;    // (n_cells), in order of first measurement
    int n_cells, cap_cells;
    struct map type_by_name, workload_by_name;
    struct map_u64 cell_by_key;
    const char **campaigns;            // (n_campaigns) names; at least CATALOG_SITE_NAME
    enum sharing *campaign_sharing;    // (n_campaigns); unknown of the site's own: types have it
    int n_campaigns, cap_campaigns;
    struct map_u64 setting_by_key;    // (n_gpus, is_spread, limit_w, campaign) to a small integer
    int n_settings;
    int *first_cell;    // (n_workloads) head of each workload's cells of the site's own
                        // campaign, -1 for none; those of others are in 'cells' only
    int *next_cell;     // (n_cells) the next cell of the same workload in that list
    struct drift_watch *type_drift;        // (n_types)
    struct drift_watch *workload_drift;    // (n_workloads)
    struct profile_watch *profile;         // (n_workloads)
    uint32_t n_drifts;                     // changes when cells fall behind, see n_behind
    uint32_t descriptions;    // changes when a feature or figure is filled in or replaced
    uint32_t n_refits;        // times that something ran which was only known not to fit
    int64_t n_measurements;

    struct store *store;                 // NULL: nothing is kept; borrowed
    int64_t *type_row, *workload_row;    // ids in the store
    int64_t *campaign_row;               // the site's own has 0: none
    bool is_doubtful;                    // they may be wrong, see catalog_doubt
    int n_joined;                        // catalog_begin within somebody else's transaction
};

void catalog_init(struct catalog *c);
void catalog_release(struct catalog *c);

/* Fill an empty catalog from 's' and keep 's' for writing (when the store is writable).
 * -EINVAL when a row does not make sense. Errors begin with the store's path.
 */
int catalog_load(struct catalog *c, struct store *s, struct err *e);

/* Most that a catalog takes; more is -EOVERFLOW. The widths of a cell's 64-bit key. */
#define CATALOG_WORKLOADS_MAX ((1 << 22) - 2)
#define CATALOG_TYPES_MAX ((1 << 8) - 1)
#define CATALOG_SETTINGS_MAX (1 << 12)    // distinct (gang size, spread, power limit, campaign)
#define CATALOG_CAMPAIGNS_MAX 256
#define CATALOG_GANG_MAX 65535
#define CATALOG_LIMIT_W_MAX 65535

/* Add or find. A type or workload that is already there keeps its index; figures
 * that were unknown are filled in, known ones stay. With a store attached, the
 * caller has opened a transaction; when it is rolled back, memory and store differ: see
 * catalog_doubt.
 */
int catalog_add_type(struct catalog *c, const struct gpu_type *t, int *index, struct err *e);
int catalog_add_workload(struct catalog *c, const struct workload *w, int *index, struct err *e);

/* The same, but what 't' or 'w' states replaces what was known: for what people write
 * down themselves. Features that 'w' leaves unknown stay as they were, and how a type is shared
 * where 't' does not say it.
 */
int catalog_set_type(struct catalog *c, const struct gpu_type *t, int *index, struct err *e);
int catalog_set_workload(struct catalog *c, const struct workload *w, int *index, struct err *e);

/* What was seen of a workload alone goes into the mean of what nobody told: of the first
 * PROFILE_WINDOWS times since this catalog was loaded. What neighbours cost is believed by
 * activities: it is another description where one is seen for the first time, or its mean has moved
 * by more than PROFILE_MOVED since. (Windows of one job differ by less.)
 */
#define PROFILE_WINDOWS 8
#define PROFILE_MOVED 0.05
int catalog_take_profile(struct catalog *c, int workload, const struct solo_profile *seen,
                         struct err *e);

int catalog_find_type(const struct catalog *c, const char *name);        // -1: none
int catalog_find_workload(const struct catalog *c, const char *name);    // -1: none

/* Campaigns have a name, and how their GPUs were shared; CATALOG_SITE_NAME is always there. Of one
 * that is there already another way to share replaces the one that was known.
 */
int catalog_add_campaign(struct catalog *c, const char *name, enum sharing sharing, int *index,
                         struct err *e);
int catalog_find_campaign(const struct catalog *c, const char *name);    // -1: none

/* The type by its name, by one that is alike, or by another name of the same built-in type
 * ("Tesla V100-PCIE-16GB" is "v100"); -1: none.
 */
int catalog_find_type_alike(const struct catalog *c, const char *name);

/* The workload by its name, or by one that is alike; -1: none. */
int catalog_find_workload_alike(const struct catalog *c, const char *name);

/* Fill in figures of type 'index' that are unknown. */
int catalog_describe_type(struct catalog *c, int index, const struct gpu_type *more, struct err *e);

/* A transaction of the attached store around adds and records; nothing without one.
 * catalog_end commits when 'rc' is 0 and rolls back otherwise; gives what came of it. Where
 * a transaction of the store is open already (ledger_begin), they join it and leave both to
 * whoever opened it.
 */
int catalog_begin(struct catalog *c, struct err *e);
int catalog_end(struct catalog *c, int rc, struct err *e);

/* A transaction with writes of the catalog was rolled back: the store may lack types and
 * workloads that are here, or know them by other ids. From then on catalog_resync, which
 * catalog_begin and ledger_begin call in the transaction they open, writes all of them that
 * are missing and learns their ids; until doubted, it does nothing. Measurements of that
 * transaction are lost to the store.
 */
void catalog_doubt(struct catalog *c);
int catalog_resync(struct catalog *c, struct err *e);

/* Add one measurement (and its row, with a store attached, in the caller's
 * transaction). 'origin' is the store's id of the import it came from, or 0.
 * -EINVAL: not a measurement (speed or watts not positive, gang or limit out of range).
 */
int catalog_record(struct catalog *c, const struct measurement *m, int64_t origin, struct err *e);

/* The cell, or NULL when nothing was measured there. Borrowed until the next record. */
const struct cell *catalog_cell(const struct catalog *c, struct cell_key key);

/* What there is, for `gogh catalog`; cells of all campaigns. */
struct catalog_summary {
    int n_workloads;
    int n_types;
    int n_isolated;          // cells: alone, one GPU, default limit, measured
    int n_pairs;             // cells: beside a neighbour, measured (ordered)
    int n_unfit_pairs;       // unordered pairs on a type that do not fit
    int n_unfit_isolated;    // workloads that do not fit alone
    int n_gangs;             // cells with more than one GPU
    int n_limited;           // cells under a power limit
    int n_watts;             // cells with watts
    int64_t n_measurements;
};
void catalog_summarise(const struct catalog *c, struct catalog_summary *out);

#endif

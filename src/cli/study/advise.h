/* advise.h - what `gogh advise` was asked, and what came of it; the page that says so.
 *
 * Made and filled by advise.c, told by advise_page.c; lives in the command's arena.
 */
#ifndef CLI_STUDY_ADVISE_H
#define CLI_STUDY_ADVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/progress.h"
#include "catalog/cluster/cluster.h"
#include "sim/history/history.h"
#include "sim/history/sacct.h"

struct arena;
struct err;

#define ADVISE_SEEDS_MAX 32

/* What is compared. */
enum advise_row { WAS, WAS_ASLEEP, GOGH, NO_SHARING, NO_SLEEP, ROWS };

struct advise_options {
    const char *sacct, *cluster, *partition, *workload, *truth, *from, *to;
    long seed, n_seeds, shards;
    double tolerance, days, price, co2_g;    // NaN: not given
    bool is_json, keeps_types, site_sleeps, has_no_levers;
};

struct advice {
    const struct advise_options *options;
    struct arena *arena;
    struct sacct sacct;
    struct cluster cluster;
    struct history history;
    struct history_figures figures[ADVISE_SEEDS_MAX][ROWS];
    struct progress progress;
    int n_runs_done;
};

/* Read cluster and accounting, and make a history of them. */
int advise_read(struct advice *v, struct err *e);

/* The truth of a seed, or of --truth, on the GPU types of 'cl'. */
struct ground;
int advise_open_ground(const struct advice *v, const struct cluster *cl, uint64_t seed,
                       struct ground *g, struct err *e);

/* Was it asked for? */
bool advise_has(const struct advise_options *o, enum advise_row r);

void advise_print_json(const struct advice *v);
void advise_print_page(const struct advice *v);

#endif

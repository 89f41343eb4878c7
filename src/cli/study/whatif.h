/* whatif.h - what `gogh whatif` was asked, the site it is about, and what came of it.
 *
 * The line is read by whatif.c, the site by whatif_past.c; whatif_page.c tells what came of it.
 * Lives in the command's arena.
 */
#ifndef CLI_STUDY_WHATIF_H
#define CLI_STUDY_WHATIF_H

#include <stdbool.h>

#include "catalog/cluster/cluster.h"
#include "cli/cmd.h"
#include "cli/study/advise.h"
#include "estimate/beliefs.h"
#include "sim/ground.h"
#include "sim/trace/trace.h"
#include "study/whatif/whatif.h"

struct arena;
struct err;

#define WHATIF_SEEDS_MAX 1000

struct whatif_options {
    struct advise_options advise;    // of --sacct; cluster and truth also of --trace
    const char *trace, *record, *db, *power_cap, *delay, *period;
    struct cmd_list removed, added, policies;
    double promise_w, price, co2_kg;    // NaN: not given
    long first_seed, n_seeds;
    bool is_retire, is_json;
};

/* A site, and the worlds that its jobs run in. */
struct whatif_past {
    const struct whatif_options *options;
    struct arena *arena;
    const char *source;           // "trace", "sacct", "record" or "db"
    struct cluster cluster;       // as it is
    struct trace trace;           // what was asked of it
    struct cluster types;         // those of all variants
    struct advice *advice;        // of --sacct; else NULL
    bool is_fitted;               // its history is (history_fit)
    struct ground ground;         // of the world that is open
    struct catalog *catalog;      // of --record and --db, what the site knows; else NULL
    const struct model *model;    // and has learned
    enum estimator_kind kind;     // and how it estimates
    struct truth believed;        // what it believes
};

/* Read the site that the options name and do 'then' with it, while it is there. */
typedef int past_f(struct whatif_past *s, struct err *e);
int past_read(struct arena *a, const struct whatif_options *o, past_f *then, struct err *e);

/* The worlds of 'w' are the site's, once 'types' is made; and nobody needs them any more. */
int past_begin(struct whatif_past *s, struct whatif *w, struct err *e);
void past_end(struct whatif_past *s);

void whatif_print_json(const struct whatif_past *s, const struct whatif *w);
void whatif_print_page(const struct whatif_past *s, const struct whatif *w);

#endif

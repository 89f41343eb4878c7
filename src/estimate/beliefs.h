/* beliefs.h - what a site's measurements say of every cell, kept up to date with the catalog.
 *
 * A site, and for speeds and for watts a posterior of what was read there. P1, the first estimate
 * of the outline that GOGH follows (arXiv:2510.15652), is its answer for a workload without
 * measurements; P2, the refinement, its answer after one: every measurement reaches every cell, of
 * newcomers too. What was measured since the last refresh is in no answer. Owned by the estimator,
 * which asks; one thread at a time.
 */
#ifndef ESTIMATE_BELIEFS_H
#define ESTIMATE_BELIEFS_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/bends.h"
#include "estimate/hierarchical/posterior.h"
#include "estimate/model/examples.h"

struct catalog;
struct err;
struct model;
struct network;
struct network_site;

/* Whom to believe: the hierarchical model, of slowdowns together with the network (blend.h), which
 * is the default; the model alone; of speeds the network that ships with the program, with what was
 * measured of the very cell; the model's mean of each type alone; or what the hardware's limits
 * allow, with what was measured of the very cell.
 */
enum estimator_kind {
    ESTIMATOR_GOGH,
    ESTIMATOR_HIERARCHICAL,
    ESTIMATOR_NETWORK,
    ESTIMATOR_MEAN,
    ESTIMATOR_ROOFLINE,
    ESTIMATORS,
};
extern const char *const estimator_names[ESTIMATORS + 1];    // NULL is the last

/* -EINVAL: nobody has that name. NULL is the default. */
int estimator_by_name(const char *name, enum estimator_kind *out, struct err *e);

struct beliefs {
    const struct catalog *catalog;
    enum estimator_kind kind;
    struct hyper hyper[LEARNED];
    struct hyper_scale scale[LEARNED];
    struct site site;
    struct posterior *posterior[LEARNED];    // NULL: to be made anew
    struct network *network;                 // NULL: nobody asks it
    struct network_site *reader;             // and at this site; NULL as the posteriors
    int n_read, n_beside;                    // readings that it was told, beside a neighbour
    int n_vague;                             // speeds alone that a posterior is less sure of
    bool is_passing;                         // they are to be made anew all the same, see meet
    float *noise[LEARNED];                   // (POSTERIOR_MOST) of its readings, as they were taken
    unsigned char *is_taken;                 // (cap_cells) by cell: a bit for each posterior that
    struct own_reading *own;                 // has it, or had no room for it; what it said then
    int n_cells, cap_cells;                  // cells that there were
    uint32_t descriptions, n_drifts;         // the catalog's then
    int64_t n_measurements;
};

void beliefs_init(struct beliefs *b, const struct catalog *c);
void beliefs_release(struct beliefs *b);

/* From now on believe 'm' (NULL: nothing was learned), which need not live on. */
void beliefs_use(struct beliefs *b, const struct model *m, enum estimator_kind kind);

/* Get to know workloads and types that are new in the catalog; true: answers are other ones. Leaves
 * no trace in what the next refresh gives.
 */
bool beliefs_meet(struct beliefs *b, const struct bends *bends);

/* The same, and take in what was measured since. What was measured under power limits counts as
 * 'bends' have it now.
 */
bool beliefs_refresh(struct beliefs *b, const struct bends *bends);

/* ln steps/s of a cell (neighbour -1: alone), and ln watts of the GPU with the workload alone. */
struct cell_belief beliefs_speed(struct beliefs *b, int type, int workload, int neighbour);
struct cell_belief beliefs_watts(struct beliefs *b, int type, int workload);

/* Had the very cell been measured? */
bool beliefs_has_read(const struct beliefs *b, int type, int workload, int neighbour);

#endif

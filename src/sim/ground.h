/* ground.h - where a run's ground truth comes from: a store of measurements, or the
 * built-in tables.
 *
 * Made by the command line before a simulation; owns the catalog that the truth's
 * indices are of. Close it when the simulation is destroyed.
 */
#ifndef SIM_GROUND_H
#define SIM_GROUND_H

#include "catalog/catalog.h"
#include "sim/world/truth.h"

struct arena;
struct cluster;
struct err;
struct store;
struct trace;

/* How far the built-in world is off its model (sd of the logarithm); half of the
 * roofline's own error on measured workloads (estimate/prior/roofline.c), so that a policy
 * has something to learn and the tables still mean something.
 */
#define GROUND_SPREAD 0.25

struct ground {
    struct catalog catalog;
    struct truth truth;
    struct store *store;    // NULL: built-in
    int n_filled;           // cells that nobody measured
};

/* Jobs that name a model without a batch run it at its usual one: the cluster file's, or the
 * built-in model's. 'cl' may be NULL; names go into 'a'.
 */
void ground_name_batches(struct arena *a, struct trace *t, const struct cluster *cl);

/* From the catalog in 'path', opened for reading. Figures of GPU types that it lacks come
 * from 'cl', workloads that it lacks from 'cl' or the built-in models where 't' asks for
 * them; both may be NULL. -EINVAL names a workload that is nowhere described.
 */
int ground_open(struct ground *g, const char *path, const struct cluster *cl, const struct trace *t,
                struct err *e);

/* From descriptors and figures: the cluster's GPU types and 'reference' (may be NULL), the
 * cluster's 'workload' lines, and the workloads of 't', or every built-in model when 't'
 * is NULL. 'cl' may be NULL: then all built-in GPU types. -EINVAL names a workload that is
 * nowhere described.
 */
int ground_builtin(struct ground *g, const struct cluster *cl, const struct trace *t,
                   const char *reference, uint64_t seed, struct err *e);

/* Figures of GPU types that the catalog lacks, from 'cl' (may be NULL). */
int ground_describe_types(struct ground *g, const struct cluster *cl, struct err *e);

/* Types of 'cl' that the store knows nothing of become part of the truth, by the model. */
int ground_meet_types(struct ground *g, const struct cluster *cl, struct err *e);

void ground_close(struct ground *g);

#endif

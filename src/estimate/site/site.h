/* site.h - workloads on GPU types, and what was read off them, as estimators see it.
 *
 * Made by site_init and site_add of a catalog's types and workloads, or by a generator of synthetic
 * sites; grows as workloads appear. Read by the hierarchical model and by the network. Pure
 * functions of descriptors and figures: nothing here was learned.
 *
 * Readings are logarithms: of a job's own speed over a reference (site_on.ln_reference), of its
 * slowdown beside a neighbour, or of both together, which is all that a packed job shows.
 */
#ifndef ESTIMATE_SITE_SITE_H
#define ESTIMATE_SITE_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/sharing.h"

struct arena;
struct catalog;
struct cell;
struct gpu_type;
struct workload;

enum {
    SITE_JOB = 14,     // numbers of a workload on a type, see site_on
    SITE_GPU = 4,      // numbers of a type: ln peak, tensor over peak, bandwidth, launch
    SITE_BATCH = 6,    // which of a workload's is its batch
};

/* A workload on a type. x: 0-3 ln shares of the step (compute, memory, launch, host), 4 ln of the
 * step, 5 FLOP a byte, 6 batch, 7 parameters, 8-11 conv, gemm, rnn, sparse, 12 reduced precision,
 * 13 inference; scaled to about -1 .. 1.
 */
struct site_on {
    float x[SITE_JOB];
    float ln_reference;     // ln steps/s of the smooth roofline that residuals are taken over
    float ln_watts;         // ln watts that the roofline gives, alone
    float busy, traffic;    // GPU and memory activity, 0..1: profiled, or by the shares
    float doubt;            // variance of ln speed for features that had to be assumed
};

/* Owns heap memory. */
struct site {
    int n_types, n_workloads, n_families, cap;
    float (*gpu)[SITE_GPU];     // (n_types)
    enum sharing *sharing;      // (n_types) how jobs share one
    struct site_on *on;         // (n_workloads, n_types)
    int *family;                // (n_workloads)
    uint64_t *family_digest;    // (n_families) of its name; 0: of a workload without one
};

void site_init(struct site *s, const struct gpu_type *types, int n_types);
void site_release(struct site *s);

/* The next workload, on the types given at the start. Returns its index, from 0. */
int site_add(struct site *s, const struct workload *w, const struct gpu_type *types);

static inline const struct site_on *site_on(const struct site *s, int workload, int type)
{
    return &s->on[workload * s->n_types + type];
}

enum reading_of { READ_ALONE, READ_SLOWDOWN, READ_PACKED, READINGS };

/* One thing read off a site. */
struct reading {
    enum reading_of of;
    int type, job;
    int neighbour;    // -1: alone
    float value;      // ln, as above
    float noise;      // its standard deviation
};

/* A slowdown as a reading: between these, whatever clocks and timers said. */
#define SLOWDOWN_LEAST 0.08
#define SLOWDOWN_MOST 1.1

/* No reading is believed better than this: the same pair measured again differs by 2-9 %, even
 * where each run is steady.
 */
#define READING_NOISE 0.02

/* What a cell of one GPU at its default limit says: its speed, alone or packed, or with 'watts'
 * those of the GPU with it alone. False: it says nothing.
 */
bool site_read(const struct site *s, const struct cell *cell, bool watts, struct reading *out);

/* What a campaign measured of one GPU at its default limit, into 'a': those alone first, in the
 * catalog's order; of a packed job its slowdown, where its speed alone is known. Returns how many.
 * site_watts: watts alone, as READ_ALONE over the roofline's.
 */
int site_readings(struct arena *a, const struct catalog *c, const struct site *s, int campaign,
                  struct reading **out);
int site_watts(struct arena *a, const struct catalog *c, const struct site *s, int campaign,
               struct reading **out);

#endif

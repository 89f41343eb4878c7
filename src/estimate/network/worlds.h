/* worlds.h - synthetic sites: what the network learns from, since campaigns are few.
 *
 * A world is a site (GPU types, families, workloads with descriptors) and the truth about it: how
 * fast each workload is alone, and how jobs that share a GPU slow each other. A lesson is what is
 * known of a world at some moment, and what is asked. docs/decisions/0023-network.md describes the
 * generator; the constants are in worlds.c. Everything lives in the caller's arena; the same
 * generator of chance gives the same world.
 */
#ifndef ESTIMATE_NETWORK_WORLDS_H
#define ESTIMATE_NETWORK_WORLDS_H

#include "estimate/site/site.h"

struct arena;
struct rng;

enum { WORLD_TYPES = 4, WORLD_FAMILIES = 10, WORLD_BATCHES = 5 };    // at most
enum { WORLD_WORKLOADS = WORLD_FAMILIES * WORLD_BATCHES };

/* How jobs share a GPU. */
enum contention_rule { CONTEND_OVERLAP, CONTEND_SLICES, CONTEND_SERVER, CONTEND_FLAT, CONTENTIONS };

/* Numbers of a rule; what a rule does not have is 0. */
enum contention_number {
    COST,            // of any neighbour
    STRENGTH,        // by activity
    ROOM,            // activities that collide from here on
    OTHER_BEND,      // how the neighbour's activity counts
    OWN_BEND,        // and the job's
    TRAFFIC,         // strength by traffic
    TRAFFIC_ROOM,    // traffic that collides from here on
    TRAFFIC_BEND,
    TURN,    // how much longer turns longer kernels take, where positive
    CONTENTION_NUMBERS
};

struct contention {
    enum contention_rule rule;
    double p[CONTENTION_NUMBERS];
    double scale, shift;    // the type's own strength, and what any neighbour costs there
};

/* What a job really does to a GPU. */
struct activity {
    float busy, traffic;    // of the device and of its memory, 0..1
    float ln_kernel_s;      // how long a kernel is
};

struct synthetic_world {
    struct site site;
    float alone[WORLD_WORKLOADS][WORLD_TYPES];    // truth, as READ_ALONE
    struct activity activity[WORLD_WORKLOADS][WORLD_TYPES];
    struct contention contention[WORLD_TYPES];
    float as_job[WORLD_WORKLOADS][WORLD_TYPES];    // added to ln slowdown of a job
    float as_neighbour[WORLD_WORKLOADS][WORLD_TYPES];
    float families[WORLD_TYPES][WORLD_FAMILIES][WORLD_FAMILIES];    // and of pairs of families
    float top, cell_sd;    // no ln slowdown is above this; chance of each cell
    bool only_alike;       // jobs share with others of the same workload alone
    uint64_t seed;         // of the cells' chance
};

void synthetic_make(struct arena *a, struct rng *r, struct synthetic_world *out);

/* The truth that a reading of this cell would be near. */
float synthetic_value(const struct synthetic_world *w, enum reading_of of, int type, int job,
                      int neighbour);

/* What is known, with noise, and what is asked, as the truth. Every cell is there once. */
struct lesson {
    int n_known, n_asked;
    struct reading *known, *asked;
};

enum { LESSON_KNOWN = 160, LESSON_ASKED = 40 };    // at most

/* A newcomer (or its whole family, or a GPU type) is held out; up to n_most readings of others are
 * known, and a few of its own.
 */
void lesson_draw(struct arena *a, struct rng *r, const struct synthetic_world *w, int n_most,
                 struct lesson *out);

#endif

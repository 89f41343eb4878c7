/* inner.h - a simulation's state, for sim.c and services.c. */
#ifndef SIM_INNER_H
#define SIM_INNER_H

#include "base/arena.h"
#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "cycle/cycle.h"
#include "sim/sim.h"

/* A workload of the trace, in both worlds. */
struct sim_workload {
    int truth;     // index in the truth
    int belief;    // index in the policy's catalog; -1 until its first job arrives
    double reference_speed;
};

struct sim_service;

struct sim {
    struct sim_options options;
    struct arena arena;
    struct clock_manual clock;
    struct catalog belief;    // what the policy knows: never the truth's measurements
    struct ledger ledger;
    struct world *world;
    struct cycle cycle;
    bool is_ledger_open, is_cycle_ready;

    struct sim_workload *workloads;    // (n_workloads)
    int n_workloads;
    int *workload_of;          // (n_jobs of the trace) index into 'workloads'
    int *service_workloads;    // (n_services of the trace) the same
    uint64_t *allowed;         // (n_jobs) bits of the belief's types
    int *ids;                  // (n_jobs) in state and world, of those that have arrived
    int next_arrival;

    struct sim_service *services;    // (n_services of the trace)
    double training_work;            // as of when the last service ended; NaN: one lives

    uint64_t decided_version;    // of the state, after the last decision
    double decided_s;            // when that was; -INFINITY: never
    bool is_over;
};

/* The workload becomes known, by its descriptor. */
int sim_meet_workload(struct sim *s, struct sim_workload *w, struct err *e);

/* ---- services.c ---- */

/* Services of the trace, and how the cycle's events and weights reach the world. After the cycle is
 * made.
 */
int sim_services_open(struct sim *s, struct err *e);

/* When the next one arrives or ends, or the cycle has something to do for one; INFINITY: never. */
double sim_services_next_s(const struct sim *s);

/* Let those come and go whose time it is, and do what time asks for. */
int sim_services_turn(struct sim *s, struct err *e);

/* Do any live, or are still to come? */
bool sim_services_live(const struct sim *s);

/* What was trained beside them, until the last one ended: seconds alone on the reference GPU. */
double sim_training_work(const struct sim *s);

#endif

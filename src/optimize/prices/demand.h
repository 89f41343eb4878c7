/* demand.h - what jobs ask of slots, for the class program.
 *
 * Made by: demand_make. Jobs that differ only a little in their need form a group. Each group has
 * ways to be served (slots of certain levels or GPUs of its own, some with a shortfall; or to
 * wait); the first one, its base, is what the program assumes before it knows prices, and others
 * are offered to it when they are cheaper (demand_cheapest).
 */
#ifndef OPTIMIZE_PRICES_DEMAND_H
#define OPTIMIZE_PRICES_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/model/problem.h"

struct arena;
struct dish;
struct kinds;
struct menu;

#define WAY_SLOTS 4    // parts of one job that the class program considers

/* Shared slots of the group's cluster, or a solo; neither: it waits. */
struct way {
    int n_slots;
    double level[WAY_SLOTS];    // what each slot must hold
    int solo;                   // in the menu; -1: none
    int n_solo;                 // how many of it; more than one for parts that share with nobody
    double cost_w;              // of the solo, of a shortfall, or of waiting
};

struct group {
    int cluster;
    enum job_form form;
    int n_min, n_max;
    bool is_exclusive;
    uint64_t allowed_types;
    double need;               // of its middle job, in the cluster's scale
    double short_w, wait_w;    // wait_w with what losing its place costs
    int weight;                // ilogb(wait_w)
    int first, n;              // jobs[first .. first + n - 1] of the demand
    double least_short_w;      // any shortfall costs at least this
    struct way base;           // of its middle job
};

struct demand {
    int n_groups;
    struct group *groups;
    int n_jobs;
    int *jobs;        // (n_jobs) live jobs, group by group, by falling need
    double *needs;    // (n_jobs) in the cluster's scale
};

/* Groups of jobs whose needs are within the factor 'alike' (0..1) of each other; jobs with n_max 1
 * have a factor of their own (ALIKE_SINGLE).
 */
void demand_make(struct arena *a, const struct problem *p, const struct kinds *k,
                 const struct menu *m, double alike, struct demand *out);

/* The level that one job of a group with a one-slot base asks for; others ask for the base's. */
double demand_level(const struct menu *m, const struct demand *d, const struct group *g, int job);

/* What prices look like from here. */
struct tariff {
    const int *n;              // (n_clusters) steps of the price of its shared slots
    double **from, **price;    // (n_clusters) from which level on, and how much
    const double *type_w;      // (n_types) of a GPU
    double cap_price;          // of a watt
};

double tariff_slot(const struct tariff *t, int cluster, double low);
double tariff_dish(const struct tariff *t, const struct dish *d);    // its cost, GPUs and watts

/* What a way costs: its slots or GPUs, and its own cost. */
double tariff_way(const struct tariff *t, const struct menu *m, int cluster, const struct way *w);

/* The cheapest way for a group at these prices; returns what it costs. */
double demand_cheapest(const struct menu *m, const struct group *g, const struct tariff *t,
                       struct way *out);

#endif

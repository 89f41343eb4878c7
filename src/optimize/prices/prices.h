/* prices.h - what slots and GPUs are worth, and the bound that follows.
 *
 * A *slot* is the chance to run somewhere: as a job of a kind on a type beside certain
 * neighbours; it holds a throughput ('low'). Slots come in classes (struct slot_class), and
 * within a class a job only minds whether the slot holds enough. A price per class that never
 * falls with throughput, one per GPU type and one per watt of the cluster's cap give a lower
 * bound on the cost of any answer (weak duality), whoever made them and however badly.
 *
 * Made by: the class program (classes.h). Read by: the certificate, the search (a GPU's reduced
 * cost says how inefficient it is), and whoever explains a plan.
 */
#ifndef OPTIMIZE_PRICES_PRICES_H
#define OPTIMIZE_PRICES_PRICES_H

#include <stdbool.h>

struct arena;
struct problem;

/* SHARED: what a job that may share takes, alone or beside others, one GPU or one part of it.
 * ALONE: one GPU for a job that is exclusive. m >= 2: a gang of m GPUs.
 */
#define SLOT_SHARED 0
#define SLOT_ALONE 1

struct slot_class {
    int kind;
    int size;    // SLOT_SHARED, SLOT_ALONE, or the number of GPUs of a gang
    int n_steps;
    /* (n_steps) throughputs, ascending, and the watts of a slot that holds from[i] or more:
     * never falling; below 0 where those who fill it are scarce. Below from[0] a slot is free,
     * or as cheap as price[0] where that is below 0.
     */
    const double *from;
    double *price;
};

struct prices {
    int n_classes;
    struct slot_class *classes;    // by kind, then size; a pair that is missing costs nothing
    int *first;                    // (n_kinds + 1) where each kind's classes begin
    double cap_price;              // watts of cost per watt under the cap; 0 without
    double
        *type_w;    // (n_types) worth of a GPU as the class program has it; the bound has its own
};

/* The price of a slot of (kind, size) that holds 'low'. */
double price_of(const struct prices *u, int kind, int size, double low);

/* A lower bound on the cost of every feasible answer, from the raw tables and 'u' alone:
 *
 *     sum over jobs of its cheapest choice (slots that keep its promise, slots that do not with
 *     what that costs, or waiting)
 *   - sum over types of n_gpus * the most that a GPU can earn (0: asleep)
 *   - cap_price * what the cap leaves above all GPUs awake
 *
 * Independent of whoever made the prices. Scratch in 'a'. 'threads' 1 or 2; the result is the
 * same. 'type_w' (n_types, may be NULL) gets what a GPU of each type can earn at most.
 */
double certificate_bound(struct arena *a, const struct problem *p, const struct prices *u,
                         int threads, double *type_w);

/* The same, with every job's part of it: what its cheapest choice costs, into 'job_w' (n_jobs). */
double certificate_shares(struct arena *a, const struct problem *p, const struct prices *u,
                          int threads, double *type_w, double *job_w);

/* What one job's cheapest choice costs at these prices. */
double certificate_job_w(const struct problem *p, const struct prices *u, int job);

#endif

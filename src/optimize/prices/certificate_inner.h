/* certificate_inner.h - what the two sides of the certificate share (certificate.c has the why).
 *
 * Made by certificate.c for one bound: first GPUs offer slots (certificate_offers.c), then jobs
 * choose among them (certificate_jobs.c). Lives as long as the bound is computed.
 */
#ifndef OPTIMIZE_PRICES_CERTIFICATE_INNER_H
#define OPTIMIZE_PRICES_CERTIFICATE_INNER_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct prices;
struct problem;
struct problem_job;

#define NO_SLOT (-1.0)
#define PRICE_MOST 1e30    // what is infinite or worse counts as this

/* The prices of one slot class: step i costs price[i] from from[i - 1] on. Step 0 is free, or as
 * much below that as the first price is.
 */
struct ladder {
    int n;
    const double *from;    // (n - 1)
    double *price;         // (n) never falling
    int *start;            // where to begin to look: 'scale' times a low says which
    double scale;
    long at;    // where its tops begin: (n_types, n)
};

/* What one thread finds out about GPUs. */
struct stall {
    double *top;       // of all ladders: the highest low that exists at each step; NO_SLOT
    double *earn_w;    // (n_types) the most a GPU can earn
    double *pair_w;    // (n_types) the most that two jobs can bring, costs aside
};

/* Everything that both sides read. */
struct market {
    const struct problem *p;
    const struct prices *u;
    double cap_price;    // per watt of draw, margin included
    struct ladder *ladders;
    int *first;                // (n_kinds) its ladders: shared, alone, then gangs by size
    uint64_t *sizes;           // (n_kinds) bit m - 1: some job may stand on m GPUs, m > 1
    uint64_t *gang_types;      // (n_kinds) bit per type that some job on several GPUs allows
    unsigned char *sharers;    // (n_kinds, n_types) jobs that could share there, up to THETA_MAX
    unsigned char *loners;     // (n_kinds, n_types) is there an exclusive job that could be there?
    int *n_usable;             // (n_types)
    int *n_on_node;            // (n_types) on the node that has most
    long n_tops;
    struct stall stalls[2];
    int *by_kind, *kind_from;    // (n_jobs), (n_kinds + 1) live jobs by kind
    double *job_w;               // (n_jobs)
    int threads;
    int together;         // jobs on a GPU that are looked at one by one; theta, or 2
    int n_units, next;    // blocks of (kind, type), and who takes the next
};

/* One of the threads at work on 'm'. */
struct hand {
    struct market *m;
    int index;
};

/* fmin and fmax are calls, for the sake of NaN; nothing here is one. */
static inline double least(double a, double b)
{
    return a < b ? a : b;
}

static inline double most(double a, double b)
{
    return a > b ? a : b;
}

static inline int next_unit(struct market *m)
{
    return __atomic_fetch_add(&m->next, 1, __ATOMIC_RELAXED);
}

/* Bit per type on which the job may be. */
uint64_t certificate_types(const struct problem *p, const struct problem_job *j);

/* Ladders for all slot classes, with empty tops. */
void ladders_make(struct arena *a, struct market *m);
int ladder_of(const struct market *m, int kind, int size);

/* A hand, 'arg', takes units, each a block of kinds on a type, and notes what GPUs could do. */
void *offer_units(void *arg);
int offer_n_units(const struct problem *p);
/* When all units are done: put together what the hands found. */
void offer_end(struct market *m);
/* Slots of one kind only; what GPUs earn is left out. */
void offer_kind(const struct market *m, int type, int kind);
/* What a GPU that takes nobody new can earn at most: some of the 'n' who are there stay. */
double offer_drained(const struct market *m, int type, const int *kinds, int n, bool is_exclusive);
/* How many on a GPU are looked at one by one: theta, or 2 when that would be too much. */
int offer_together(const struct problem *p);

/* A hand, 'arg', takes units, each a kind, and prices its jobs into m->job_w. */
void *price_units(void *arg);
double price_one(const struct market *m, const struct problem_job *j);

#endif

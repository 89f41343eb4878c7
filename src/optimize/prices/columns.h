/* columns.h - what a problem's GPUs could run and its jobs could take, by classes.
 *
 * Jobs of one class are alike in all but their promises: the same kind, the same types that they
 * may use, exclusive or not. A *slot* is a place for one job of a class on one GPU; what it holds
 * ('low') falls into one of the class's *bins*, whose edges are the needs of its jobs, so that
 * within a bin a job minds only the price. A *pattern* is a combination of classes on one GPU under
 * one power limit: a column of the class program. A gang of several GPUs is a column, too.
 *
 * Made by: columns_make, once for a problem. Read by: the certificate, the ascent, the master
 * program, rounding and the search. Owned; the problem is borrowed. Everything depends on kinds,
 * types and needs, and little on the number of GPUs.
 */
#ifndef OPTIMIZE_PRICES_COLUMNS_H
#define OPTIMIZE_PRICES_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "optimize/model/problem.h"

struct job_class {
    int kind;
    uint64_t types;    // bit per type that its jobs may and can use
    bool is_exclusive;
    int before;       // the class of its kind that was found before; -1: none
    int n_jobs;       // that may move; where three may share, fixed ones too
    int first_bin;    // its bins are first_bin .. first_bin + n_bins - 1
    int n_bins;       // at least 1
    double *edge;     // (n_bins) ascending, edge[0] = 0: a slot's bin is the last not above it
    double *top;      // (n_bins) the most that a slot of this bin holds; -1: there is none
};

/* All patterns of one GPU type. */
struct patterns {
    long n, cap;
    int theta;               // the stride of 'bin'
    int *bin;                // (n, theta) of each slot; 0: none
    double *cost_w;          // (n)
    float *draw_w;           // (n) watts above idle, margin included; NULL: no cap minds
    float *gpu_w;            // (n) cost_w but for the work; NULL: no larger ones are left out
    unsigned char *limit;    // (n)
};

/* What a pattern earns at prices of slots and of a watt above idle. */
static inline double pattern_w(const struct patterns *x, long i, const double *slot_w,
                               double watt_price)
{
    double w = -x->cost_w[i];

    for (int s = 0; s < x->theta; s++)
        w += slot_w[x->bin[i * x->theta + s]];
    return x->draw_w ? w - watt_price * (double)x->draw_w[i] : w;
}

/* What a job may choose: a gang of 'm' GPUs of one type. */
struct gang_option {
    double cost_w;    // of all its GPUs, shortfall and moving included
    float draw_w;     // above idle, margin included
    short type, m;
    unsigned char limit;
    bool is_home;     // it stays where it stands
    int n_drained;    // of these GPUs so many take nobody else
};

/* What counts of a job when it chooses, near each other for those of a class. */
struct chooser_job {
    double need, short_w;
    double wait_w, fee_w;    // to wait, its move included; to move
    int parts;               // slots that it may take; 0: none
    int first_gang, n_gangs;
};

/* A job of some class beside the fixed ones of a GPU. */
struct fixed_pattern {
    int gpu, bin;
    double cost_w;    // of the GPU and what its fixed jobs miss
    float draw_w;     // above idle, margin included
    unsigned char limit;
};

/* Something by a number, to be sorted; of equals the first comes first. */
struct ranked_index {
    double by;
    long which;
};

int ranked_least_first(const void *a, const void *b);
int ranked_most_first(const void *a, const void *b);

/* Numbers by key: those of key k are items[first[k]] to items[first[k + 1] - 1], rising. */
struct key_index {
    int *first, *items;
};

/* 'keys' (n) are below 'n_keys'; -1: left out. In the arena. */
struct key_index key_index_make(struct arena *a, const int *keys, int n, int n_keys);

struct columns {
    const struct problem *p;
    struct arena arena;
    bool is_coarse;    // has fewer bins than another, from which it borrows
    int theta;         // jobs of a pattern; less than the problem's where there would be too many
    int n_classes;
    struct job_class *classes;
    int *class_of;    // (n_jobs) -1: no single GPU suits it, or it is fixed
    int *
        like;    // (n_jobs) the class that a fixed job would be of, where three may share; -1: none
    int *jobs;         // by class and rising need; then those that may move and have none
    int *first_job;    // (n_classes + 2)
    struct chooser_job *choosers;    // as 'jobs'
    int n_bins;                      // of all classes, and one more: bin 0 is no slot
    int *class_of_bin;
    struct patterns *patterns;    // (n_types)
    unsigned char *part_of;       // (n_types) which of two threads looks at its patterns
    double *tops;    // (n_types, n_bins) the most that slots of a bin hold; while patterns
                     // are listed
    struct gang_option *gangs;
    int n_gangs;
    int *first_gang;                // (n_jobs + 1)
    int *n_open;                    // (n_types) GPUs that take anybody
    int *n_usable;                  // (n_types) GPUs that take anybody or have somebody
    struct residents *residents;    // (n_gpus) who stands there now
    bool *is_held;                  // (n_gpus) by a fixed job
    struct fixed_pattern *fixed;    // by GPU
    int n_fixed;
    double *held_w;    // (n_gpus) what fixed jobs cost there by themselves, where others may come
    double unit_w;     // what a GPU costs at most, on average: what small and large are measured by
    double room_w;     // watts of the cap above all GPUs awake, without the margin; HUGE_VAL
    double *rack_room_w;    // (n_types) the same of all racks with such GPUs; HUGE_VAL: enough
};

/* At most 'bins_most' bins a class: needs beyond are thinned out evenly. 'threads' 1 or 2; the
 * result is the same.
 */
struct columns *columns_make(const struct problem *p, int bins_most, int threads);

/* The same with fewer bins, for prices that are rough still. Borrows from 'fine'. */
struct columns *columns_coarse(const struct columns *fine, int bins_most);

void columns_destroy(struct columns *c);

/* Of all types. */
long columns_n_patterns(const struct columns *c);

/* The bin of class 'k' into which a slot that holds 'low' falls. */
int columns_bin(const struct job_class *k, double low);

/* The same bin among those of all classes. */
static inline int columns_slot(const struct job_class *k, double low)
{
    return k->first_bin + columns_bin(k, low);
}

/* The first of its bins in which some slot holds 'need'; n_bins: none does. */
int columns_bin_for(const struct job_class *k, double need);

/* Residents of a GPU: fixed ones first, then those that have a class. Gangs count as nobody. */
int columns_residents(const struct columns *c, int gpu, int *jobs, int *n_fixed);

/* Those of n jobs whose bits are set, into 'out'; returns how many. */
static inline int subset(const int *jobs, int n, unsigned mask, int *out)
{
    int k = 0;

    for (int i = 0; i < n; i++)
        if (mask >> i & 1)
            out[k++] = jobs[i];
    return k;
}

/* (1 + n_racks) watts that caps leave above all GPUs awake, without the margin: of the cluster,
 * then of each rack; HUGE_VAL: no cap. The present allocation may stand above them.
 */
double *caps_room_w(struct arena *a, const struct problem *p, const struct residents *residents);

/* How far below idle a limit may take a GPU. */
double type_below_idle_w(const struct problem_type *t);

/* What a job pays for another place. */
static inline double job_fee_w(const struct problem_job *j)
{
    return j->n_present > 0 ? j->move_w : 0;
}

/* May a job take part of a GPU, alone or with others? */
static inline bool job_takes_slots(const struct problem_job *j)
{
    return j->form == FORM_SPREAD || j->n_min <= 1;
}

#endif

/* dual.h - prices on the bins of one problem's classes, on its GPU types and on its caps; what jobs
 * choose at them, and the bound and the better prices that follow.
 *
 * Made by: the ascent and the master program; kept between problems as struct prices. Read by:
 * the certificate, rounding, the search. Any non-negative type and cap prices with any slot prices
 * that never fall within a class give a valid bound.
 */
#ifndef OPTIMIZE_PRICES_DUAL_H
#define OPTIMIZE_PRICES_DUAL_H

#include <stdbool.h>

struct arena;
struct columns;
struct prices_options;

struct dual {
    double *slot_w;        // (n_bins) of a slot in this bin; [0] is 0
    double *type_w;        // (n_types) the most a GPU earns at these: follows from slot_w
    double cap_price;      // of a watt above idle, margin included
    double *rack_price;    // (n_types) and so much more where racks are short of watts
};

/* What a watt above idle costs on a GPU of a type. */
static inline double dual_watt_price(const struct dual *u, int type)
{
    return u->cap_price + u->rack_price[type];
}

/* All prices 0. */
void dual_init(struct arena *a, const struct columns *c, struct dual *u);
void dual_copy(const struct columns *c, const struct dual *from, struct dual *to);

/* Prices found on one grid of bins, for another of the same problem. */
void dual_convert(const struct columns *from_grid, const struct dual *from, const struct columns *c,
                  struct dual *to);

/* From what is known without solving anything: a slot costs what a GPU alone that holds as much
 * would.
 */
void dual_guess(const struct columns *c, struct dual *u);

/* ---- choices.c ---- */

struct job_choice {
    double cost_w;
    int gang;           // index of columns.gangs; -1: none
    int n_slots;        // 0 and no gang: it waits
    int one;            // its only slot's bin
    const int *bins;    // (n_slots) of all classes' bins; may be 'one'
};

/* Choices of all jobs into 'out' (n_jobs), which costs nothing for fixed ones and those that are
 * gone. 'is_rough': several slots are added up coarsely: quicker, and not for bounds. Two arenas,
 * one a thread.
 */
void choices_make(struct arena *arenas, const struct columns *c, const struct dual *u,
                  bool is_rough, int threads, struct job_choice *out);

/* ---- certificate.c ---- */

/* The bound; u->type_w is set on the way. 'choices' (n_jobs) gets what jobs choose, in the arenas.
 */
double certificate_bound(struct arena *arenas, const struct columns *c, struct dual *u, int threads,
                         struct job_choice *choices);

/* ---- ascent.c ---- */

/* Improve 'u' by steps at falling temperatures, as parts of what a GPU costs (columns' unit_w);
 * from a guess ('tau_from' 0) as suits, and to the end, if with fewer steps.
 */
void ascent_run(const struct columns *c, const struct prices_options *o, double until_s,
                double tau_from, double tau_to, struct dual *u);

#endif

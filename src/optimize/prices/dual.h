/* dual.h - prices on the bins of one problem's classes, on its GPU types and on its caps.
 *
 * Made by: the ascent and the master program; kept between problems as struct prices. Read by:
 * the certificate, rounding, the search. Any non-negative type and cap prices with any slot prices
 * that never fall within a class give a valid bound (certificate.h).
 */
#ifndef OPTIMIZE_PRICES_DUAL_H
#define OPTIMIZE_PRICES_DUAL_H

struct arena;
struct columns;

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

#endif

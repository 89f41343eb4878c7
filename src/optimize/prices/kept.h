/* kept.h - prices that outlive their problem: what the next decision begins with.
 *
 * One row of steps for each class that had prices, known again by its kind's name and rate, its
 * types and whether it is exclusive. Plain numbers in two blocks, so that a child that decides can
 * hand them to its parent.
 *
 * Made by: kept_create, empty; filled by kept_take from prices that were found. Read by:
 * prices_find. Owned by whoever makes decisions one after the other.
 */
#ifndef OPTIMIZE_PRICES_KEPT_H
#define OPTIMIZE_PRICES_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct columns;
struct dual;
struct prices;

struct kept_prices;

struct kept_prices *kept_create(void);
void kept_destroy(struct kept_prices *k);

/* Prices and how good they were: the gap of the plan that was made with them, as a part of its
 * cost.
 */
void kept_take(struct kept_prices *k, const struct prices *u, double gap);

/* Set 'u' on this problem's bins; classes that are new get a guess. False: there are no prices, or
 * of other GPU types; 'u' is a guess.
 */
bool kept_give(const struct kept_prices *k, const struct columns *c, struct dual *u);

/* The gap at the time, and decisions since. NaN: nothing is kept. */
double kept_gap(const struct kept_prices *k);
int kept_age(const struct kept_prices *k);
/* One more decision was made; 'is_last': they serve no longer. */
void kept_count(struct kept_prices *k, bool is_last);

/* As bytes, and from bytes that kept_write wrote in this program; false: they are not whole. */
void kept_write(const struct kept_prices *k, struct buf *out);
bool kept_read(struct kept_prices *k, const void *bytes, size_t n);

#endif

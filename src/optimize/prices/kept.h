/* kept.h - prices that outlive their problem: what the next decision begins with.
 *
 * One row of steps for each class that had prices, known again by its kind's name, rate and price
 * of time, its types and whether it is exclusive; and prices of watts. Plain numbers, so that a
 * child that decides can hand them to its parent.
 *
 * Made by: kept_create, empty; filled by kept_take from prices that were found. Read by:
 * prices_find. Owned by whoever makes decisions one after the other, and finds prices anew, between
 * decisions or beside them, when kept_count says that they serve no longer.
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
struct problem;

struct kept_prices;

struct kept_prices *kept_create(void);
void kept_destroy(struct kept_prices *k);

void kept_take(struct kept_prices *k, const struct prices *u);

/* Find the prices of 'p' as a whole plan does, and keep them. */
void kept_find(struct kept_prices *k, const struct problem *p);

/* Set 'u' on this problem's bins; classes that are new get a guess. False: there are no prices, or
 * of other GPU types; 'u' is a guess.
 */
bool kept_give(const struct kept_prices *k, const struct columns *c, struct dual *u);

/* Also when there were no jobs to find prices for. */
bool kept_is_empty(const struct kept_prices *k);

/* One more decision was made, whose gap (a part of the plan's cost; NaN: not known) is 'gap'. True:
 * they are old, or that is more than they were good for; false too where nothing is kept.
 */
bool kept_count(struct kept_prices *k, double gap);

/* As bytes, and from bytes that kept_write wrote in this program; false: they are not whole. */
void kept_write(const struct kept_prices *k, struct buf *out);
bool kept_read(struct kept_prices *k, const void *bytes, size_t n);

#endif

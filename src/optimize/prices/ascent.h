/* ascent.h - good prices quickly: ascent on the smoothed dual.
 *
 * What a GPU type earns, a maximum over patterns, is replaced by a soft maximum of temperature tau;
 * its gradient is the supply of slots, the jobs' choices are the demand. Steps with momentum,
 * projected so that prices never fall within a class; tau falls from about a twentieth of what a
 * GPU costs to a thousandth. Only patterns near the best of their type take part; the set is
 * renewed when prices have risen by much.
 *
 * Prices of watts are left as they are.
 *
 * Called by: the planner, from kept prices or from a guess. Ends within a percent or less of the
 * best bound; the master program (master.h) does the rest.
 */
#ifndef OPTIMIZE_PRICES_ASCENT_H
#define OPTIMIZE_PRICES_ASCENT_H

struct arena;
struct clock;
struct columns;
struct dual;

struct ascent_options {
    double tau_from, tau_to;    // in units of what a GPU costs (columns' unit_w); 0: as suits
    int threads;
    const struct clock *clock;    // NULL: no end but tau_to
    double until_s;
};

/* Improve 'u'. From a guess (no tau_from) it goes to its end, if with fewer steps. */
void ascent_run(const struct columns *c, const struct ascent_options *o, struct dual *u);

#endif

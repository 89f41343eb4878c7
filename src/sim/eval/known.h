/* known.h - what a fold was shown by now, and what each method makes of it.
 *
 * All methods are shown the same readings: first the site's, which known_settle learns from, then a
 * newcomer's, one by one, until known_forget. Made and read by one fold; lists and rivals live in
 * the arenas that are passed, posteriors on the heap.
 */
#ifndef SIM_EVAL_KNOWN_H
#define SIM_EVAL_KNOWN_H

#include "estimate/hierarchical/posterior.h"
#include "estimate/model/examples.h"
#include "sim/eval/eval.h"
#include "sim/eval/rivals.h"

struct arena;
struct err;
struct network;
struct network_site;

struct known_readings {
    struct reading *list;    // (n)
    int n;
    int n_site,
        n_settled;    // of the site alone; of these in the posterior, which has room for some
    double ridge[RIVAL_PARTS];
    struct rival mean, by_ridge;
    struct posterior *posterior;
};

struct known {
    const struct site *site;
    struct network_site *network;    // NULL: nobody asks it
    int n_beside;                    // readings beside a neighbour that it has
    struct known_readings of[LEARNED];
};

/* Nothing is known, with room for so many readings of each; the last posteriors are destroyed.
 * 'n' is borrowed, and NULL where no method asks it.
 */
void known_init(struct known *k, struct arena *a, const struct site *s, const struct network *n,
                int room);
void known_release(struct known *k);

/* One more of the site. */
void known_show(struct known *k, int what, const struct reading *r);

/* All of the site was shown: 'around' (LEARNED) is fitted again, calibrated and conditioned. */
int known_settle(struct known *k, struct arena *a, const struct hyper *around, uint64_t seed,
                 struct err *e);

/* One more of the newcomer; and none of it. */
int known_add(struct known *k, int what, const struct reading *r, struct err *e);
void known_forget(struct known *k);

/* Lines through what is known now, and the network reads it: before those methods are asked. */
void known_fit_rivals(struct known *k, struct arena *a);
void known_read(struct known *k);

/* What a method believes of a reading's logarithm; NaN: nothing, as sd of those that have none.
 * Watts by the network are the hierarchical model's.
 * 'neighbour' is read where 'of' is not READ_ALONE.
 */
struct cell_belief known_ask(const struct known *k, enum eval_method m, int what,
                             const struct reading *cell);

#endif

/* mend.h - prices for single kinds that no combination breaks.
 *
 * The class program leaves prices that hold for clusters of kinds, and for the combinations it
 * got to know. A combination that earns more than its GPU is worth makes the certificate lower
 * every GPU of the type by the difference; lowering the price of the few kinds in it costs much
 * less. And a kind that nothing makes full use of may cost more.
 */
#ifndef OPTIMIZE_PRICES_MEND_H
#define OPTIMIZE_PRICES_MEND_H

struct arena;
struct prices;
struct problem;
struct slot_class;

/* What a kind that shares with nobody pays on 'size' GPUs, from each throughput on: the least that
 * such GPUs are worth and cost. Into 'a'.
 */
struct slot_class prices_solo(struct arena *a, const struct problem *p, const struct prices *u,
                              int kind, int size);

/* Prices of shared slots made anew, kind by kind: in every combination each job pays the same share
 * of what it costs, and a slot costs the least that one of its kind pays for as much or more. No
 * combination breaks them. GPUs are worth 'share' of what 'u' says, and who shares with nobody pays
 * accordingly.
 */
void prices_share(struct arena *a, const struct problem *p, const struct prices *u, double share,
                  struct prices *out);

/* Shift the prices of shared slots, kind by kind, 'passes' times. Scratch in 'a'. */
void prices_mend(struct arena *a, const struct problem *p, struct prices *u, int passes);

#endif

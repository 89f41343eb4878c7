/* choices.h - what each job would choose at given prices, and what that costs it.
 *
 * A job that takes slots chooses one (a spread job up to n_max) among its class's bins: those that
 * keep its promise, or those that do not, with its shortfall; a gang one of its ways, paying for
 * each GPU what that type is worth; or it waits. Who runs now pays move_w for all but staying as a
 * gang: what staying on a shared GPU saves is granted on the side of the GPUs (certificate.c).
 *
 * Called by: the certificate (the sum of costs is the jobs' part of the bound), the ascent and the
 * master program (choices are demand). Results live in the arena.
 */
#ifndef OPTIMIZE_PRICES_CHOICES_H
#define OPTIMIZE_PRICES_CHOICES_H

#include <stdbool.h>

struct arena;
struct columns;
struct dual;

struct choice {
    double cost_w;
    int way;            // index of columns.ways; -1: none
    int n_slots;        // 0 and no way: it waits
    int one;            // its only slot's bin
    const int *bins;    // (n_slots) of all classes' bins; may be 'one'
};

/* Choices of all jobs into 'out' (n_jobs), which costs nothing for fixed ones and those that are
 * gone. 'is_rough': several slots are added up coarsely: quicker, and not for bounds. Two arenas,
 * one a thread.
 */
void choices_make(struct arena *arenas, const struct columns *c, const struct dual *u,
                  bool is_rough, int threads, struct choice *out);

#endif

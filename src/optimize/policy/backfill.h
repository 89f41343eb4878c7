/* backfill.h - EASY backfill: who comes later may pass the first job that cannot start, unless that
 * would keep it waiting for longer.
 *
 * That job, the head, has GPUs reserved: those that are expected to be free first, by what those
 * who run have left at their present speed. Others start there only if they are expected to end
 * before the head can start; on all other GPUs as they like. Only GPUs are reserved: whoever cannot
 * start for want of watts holds up those behind it. Where no end can be foreseen, all that the head
 * could use is reserved.
 *
 * Made by: one solve of a policy, on its work; lives in that arena.
 */
#ifndef OPTIMIZE_POLICY_BACKFILL_H
#define OPTIMIZE_POLICY_BACKFILL_H

#include <stdbool.h>

#include "optimize/policy/work.h"

struct backfill {
    const struct policy_work *work;
    double *free_s;       // (n_gpus) from now; 0: it is free; INFINITY: nobody knows
    bool *is_reserved;    // (n_gpus) for the head
    bool is_in_order;     // GPUs are taken in the order of nodes; else as assignment_free has it
    bool has_head;
    double start_s;    // when the head can start; 0: nobody knows
    int n_nodes;
    int *n_on;       // (n_nodes) scratch: what a search finds on each
    bool *sleeps;    // (n_nodes) likewise
};

void backfill_begin(struct backfill *b, const struct policy_work *w);

/* Seconds that a job would have left on 'n' GPUs of a type, alone; INFINITY: nobody knows. */
double backfill_left_s(const struct policy_work *w, int job, int type, int n);

/* Make a job that cannot start the head, if nobody is: it would take n_wanted[type] (n_types) GPUs
 * of one type; 0: none of that.
 */
void backfill_reserve(struct backfill *b, int job, const int *n_wanted);

/* Free GPUs of a type that nobody has reserved: those of one node, else in the order of nodes;
 * awake ones first. False: there are not so many.
 */
bool backfill_spare(const struct backfill *b, int job, int type, int n, int *gpus);

/* Free GPUs for a job that is not the head: reserved ones too, where it will have left in time.
 * Nothing is reserved where there is no head.
 */
bool backfill_free(const struct backfill *b, int job, int type, int n, int *gpus);

#endif

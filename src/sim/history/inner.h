/* inner.h - what the making and the playing of a history share. */
#ifndef SIM_HISTORY_INNER_H
#define SIM_HISTORY_INNER_H

#include <stdbool.h>

struct arena;
struct history;
struct truth;

struct trace_moment;

/* The starts, or the ends, of all jobs, in order; in 'a'. */
struct trace_moment *history_events(struct arena *a, const struct history *h, bool is_end);

/* The truth's type of each GPU of the cluster; in 'a'. */
int *history_true_types(struct arena *a, const struct history *h, const struct truth *t);

#endif

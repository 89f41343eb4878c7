/* inner.h - what the making and the playing of a history share. */
#ifndef SIM_HISTORY_INNER_H
#define SIM_HISTORY_INNER_H

#include <stdbool.h>

struct arena;
struct cluster;
struct history;
struct truth;

/* A time, and which job it is about. */
struct history_event {
    double at_s;
    int job;
};

/* Earlier ones first, of equal ones the lesser job. */
void history_events_sort(struct history_event *m, int n);

/* The starts, or the ends, of all jobs, in order; in 'a'. */
struct history_event *history_events(struct arena *a, const struct history *h, bool is_end);

/* The truth's type of each GPU of the cluster; in 'a'. */
int *history_true_types(struct arena *a, const struct cluster *cl, const struct truth *t);

#endif

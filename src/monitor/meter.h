/* meter.h - what each GPU draws and how busy it is, by its driver, a dcgm-exporter or a model.
 *
 * A box has one exporter; of a cluster each node has its own (the address has "%h" for its name),
 * or one page tells of all nodes by its label "Hostname".
 *
 * Made by 'watch'. Readings happen on a worker, one at a time: a driver that hangs holds nothing
 * but that worker. A GPU that was not read METER_MISSES times in a row is modelled until it is read
 * again, and the log says so once. Times are on the stopwatch.
 */
#ifndef MONITOR_METER_H
#define MONITOR_METER_H

#include <stdint.h>

#include "act/gpu/devices.h"
#include "monitor/watch.h"

struct err;
struct meter;

#define METER_MISSES 3

/* Of 's' it uses the loop, the state, the catalog and what is said of power. 'on_round' is called
 * on the loop after every round: watts may have changed.
 */
int meter_create(const struct watch_setup *s, void (*on_round)(void *self), void *self,
                 struct meter **out, struct err *e);
void meter_destroy(struct meter *m);    // NULL is fine; a reading under way ends without us

/* Who is where has changed: a round soon, though not more than one a second for that. */
void meter_soon(struct meter *m);

double meter_w(const struct meter *m, int gpu);
double meter_idle_w(const struct meter *m, int gpu);
const char *meter_source(const struct meter *m, int gpu);    // "nvml", "rocm", "dcgm", "model"

/* Joules as they were really read, since some beginning, and when they last were not: their
 * difference over a time is worth something only where that is before it.
 */
double meter_read_j(const struct meter *m, int gpu, double t_s);
double meter_unread_s(const struct meter *m, int gpu);

/* How busy it was: the sums of all readings that told all of it, and how many these are. */
struct meter_use {
    struct device_use sum;
    int n;
};
struct meter_use meter_use(const struct meter *m, int gpu);

uint64_t meter_n_failures(const struct meter *m);

#endif

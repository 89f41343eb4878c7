/* watch.h - the sensor of a real box: notices of the executor, reports of jobs, power.
 *
 * Jobs send a cumulative step count as datagrams (docs/formats/reports.md), signed with their run's
 * secret; lost ones do no harm. A *window* is a time in which the job and its neighbours stayed
 * where they were (window.h): it begins 'warmup_s' after the last change there, is told every
 * 'report_s' and at its end, and its noise comes from the spread of its parts. What a job that does
 * not report does is not known, and no measurement is made of it. Progress without a measurement
 * (always in warm-up, no steady pace) is told as a window of no length, now and then.
 *
 * Made by the daemon, which polls it as a sensor. Lives as long as that; on the loop's thread.
 */
#ifndef MONITOR_WATCH_H
#define MONITOR_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "act/executor.h"
#include "monitor/sensor.h"

struct catalog;
struct clock;
struct devices;
struct energy;
struct err;
struct loop;
struct state;
struct watch;

enum watch_power { WATCH_MODEL, WATCH_DEVICES, WATCH_DCGM };

struct watch_setup {
    struct loop *loop;
    const struct clock *clock;
    const struct state *state;          // borrowed; slots of 'node' are the devices
    const struct catalog *catalog;      // borrowed: what a type draws when it is idle
    const struct executor *executor;    // borrowed: its notices are ours to tell
    int node;                           // this box, in the state; -1: GPUs are on others
    struct devices *devices;            // borrowed
    struct energy *energy;              // borrowed: told of watts and shares as they change
    const char *socket;                 // Unix datagram socket, made here; NULL: none
    const char *udp;                    // "HOST:PORT" on which reports come too; NULL: none
    enum watch_power power;
    const char *dcgm_url;    // may have "%h"
    double power_s;          // between two readings
    double warmup_s, report_s;

    /* What a GPU draws by the model, with those who are on it now and as fast as they go (NULL: as
     * when idle); and how fast a job would go alone there (NULL, or NaN: not known).
     */
    double (*model_w)(void *self, int gpu);
    double (*alone_speed)(void *self, int job, int gpu);
    void *model_self;
};

int watch_create(const struct watch_setup *s, struct watch **out, struct err *e);
void watch_destroy(struct watch *w);    // NULL is fine

struct sensor watch_sensor(struct watch *w);

/* Tell this, too, after what is to be told already: of nodes and replicas, by somebody who
 * watches them. */
void watch_tell(struct watch *w, const struct observation *o);

/* Tell what a replica served as somebody else saw it (scraper.h), with times on the stopwatch; not
 * while what was told of it last has not been heard, and not of one that counts requests itself.
 * False: not told.
 */
bool watch_served(struct watch *w, int job, const struct served *s);

/* Is all that is to be heard what replicas have served? NULL is fine. */
bool watch_only_serves(const struct watch *w);

/* Called when there is something to hear. */
void watch_on_news(struct watch *w, void (*f)(void *self), void *self);

/* One job as it is now. */
struct watch_job {
    bool has_reported;    // in this run
    double steps;         // cumulative, as it says
    double speed;         // steps/s over about the last half minute; NaN: unknown
    double heard_s;       // NaN: never
    double watts;         // its part of its GPUs' draw; NaN: not running
};
bool watch_job(const struct watch *w, int job, struct watch_job *out);    // false: not running

/* Wall time, as joules are booked: where the clock was set, they are told of it. */
double watch_now_s(struct watch *w);

double watch_gpu_w(const struct watch *w, int gpu);    // as last read or modelled
const char *watch_power_source(const struct watch *w,
                               int gpu);    // "nvml", "rocm", "dcgm", "model"

/* The port that UDP really has ("HOST:0" takes any); 0: none. */
int watch_udp_port(const struct watch *w);

struct watch_stats {
    uint64_t n_reports, n_bad, n_windows, n_unstable, n_outliers, n_power_failures;
    uint64_t n_false;     // times that a replica contradicted itself
    uint64_t n_floods;    // times that a run sent too much
};
struct watch_stats watch_stats(const struct watch *w);

#endif

/* watch_inner.h - what watch's own files share: who runs where, and what is to be told. */
#ifndef MONITOR_WATCH_INNER_H
#define MONITOR_WATCH_INNER_H

#include "act/runs.h"
#include "base/loop.h"
#include "catalog/cluster/state.h"
#include "monitor/report.h"
#include "monitor/watch.h"
#include "monitor/window.h"

struct inbox;
struct meter;

/* One job that runs. */
struct track {
    int job, n;                              // and which run of it
    int place;                               // among w->runs
    char secret[REPORT_SECRET_BYTES + 1];    // "": not known, so nobody can sign with it
    bool has_reported;
    double steps;                 // cumulative, as it says, or as the state has it
    double heard_s;               // on the stopwatch; NaN: never
    double told_s, told_steps;    // what was told last
    double from_j;                // what its first GPU had drawn when the window began
    int n_gpus;
    int *gpus;    // owned
    int limit_w;
    bool is_unfit;               // it says that it ran out of memory,
    struct observation unfit;    // beside these
    struct window window;
};

/* Who is on a GPU. As notices tell it, which the state hears of a moment later. */
struct seat {
    int n;
    int jobs[GPU_JOBS_MAX];
};

struct news {
    struct observation seen;
    int *gpus;         // owned; NULL: borrowed from the notice
    bool is_notice;    // of the executor: it wants to hear that it is safe
};

struct watch {
    struct watch_setup setup;
    struct inbox *inbox;
    struct meter *meter;
    struct loop_timer timer;
    struct track **runs;    // (n_runs) in no order
    int n_runs, cap_runs;
    struct track **by_job;    // (n_by_job) NULL: does not run
    int n_by_job, cap_by_job;
    struct seat *seats;    // (n_seats) by GPU
    int n_seats, cap_seats;
    struct news *news;    // [first_news, n_news) to be told
    int first_news, n_news, cap_news;
    bool is_behind;    // notices wait: what runs beside whom is not quite known
    double ahead_s;    // the wall clock's lead over the stopwatch, as last seen
    void (*on_news)(void *self);
    void *news_self;
    struct watch_stats stats;
};

/* ---- watch_runs.c: who runs where, and the windows that end with a change of that ---- */

struct track *track_find(const struct watch *w, int job);    // NULL: does not run

/* Its present or last run, as the executor has it; false: none. */
bool track_run(const struct watch *w, int job, struct run_info *out);

/* A job is on GPUs from now on: a start, a move, another limit. Windows there end. */
struct track *track_enter(struct watch *w, int job, int n_gpus, const int *gpus, int limit_w);

/* It is not any more; windows there end. */
void track_leave(struct watch *w, struct track *r);
void track_free(struct track *r);

/* Those who share a GPU with it now, into 'o'. */
void track_neighbours(const struct watch *w, const struct track *r, struct observation *o);

/* Its part of what its GPUs draw. */
double track_watts(const struct watch *w, const struct track *r);

/* Tell the window so far, where it is worth it. True: told, or given up; the next begins. */
bool track_tell(struct watch *w, struct track *r, bool must_end);

/* Tell how far it is, without a measurement. */
void track_tell_progress(struct watch *w, struct track *r);

/* Tell 'energy' who is on 'gpu', with what weights. */
void seat_share(struct watch *w, int gpu);

/* Conditions on 'gpu' are changing: windows there end, and none begins for a warm-up. */
void seat_disturb(struct watch *w, int gpu);

/* ---- watch.c ---- */

/* The wall clock's time of a moment on the stopwatch; the present moment for now. */
double watch_wall_s(struct watch *w, double at_s);

/* Add to what is to be told; fields but those of 'o' are the run's. */
struct news *watch_put(struct watch *w, const struct observation *o);

#endif

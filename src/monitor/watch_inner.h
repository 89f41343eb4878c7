/* watch_inner.h - what watch's own files share: who runs where, and what is to be told. */
#ifndef MONITOR_WATCH_INNER_H
#define MONITOR_WATCH_INNER_H

#include "act/runs.h"
#include "base/loop.h"
#include "catalog/cluster/state.h"
#include "monitor/meter.h"
#include "monitor/replica.h"
#include "monitor/report.h"
#include "monitor/watch.h"
#include "monitor/window.h"

struct inbox;

/* One job that runs. */
struct watched_run {
    int job, n;                              // and which run of it
    int place;                               // among w->runs
    char secret[REPORT_SECRET_BYTES + 1];    // "": not known, so nobody can sign with it
    bool has_reported;
    double steps;                 // cumulative, as it says, or as the state has it
    double heard_s;               // on the stopwatch; NaN: never
    double told_s, told_steps;    // what was told last
    double from_j;                // what its first GPU had drawn when the window began
    struct meter_use from_use;    // and how busy it had been
    int n_gpus;
    int *gpus;    // owned
    int limit_w;
    bool is_unfit;               // it says that it ran out of memory,
    struct observation unfit;    // beside these
    struct window window;

    struct replica *replica;    // owned; NULL: says nothing of requests
    bool is_served_queued;      // what it served waits to be heard: no more is told meanwhile
    bool is_flood_told;         // as it was last told of
    int n_said;                 // reports since
    double said_from_s;         // about a second
    double muted_until_s;       // 0: it is heard
    size_t secret_at;           // where its reports have the secret
};

/* Who is on a GPU. As notices tell it, which the state hears of a moment later. */
struct gpu_residents {
    int n;
    int jobs[GPU_JOBS_MAX];
};

struct queued {
    struct observation seen;
    int *gpus;                // what it has of them, owned; NULL: borrowed from the notice
    struct served *served;    // owned; NULL: none
    bool is_notice;           // of the executor: it wants to hear that it is safe
};

struct watch {
    struct watch_setup setup;
    struct inbox *inbox;
    struct meter *meter;
    struct loop_timer timer;
    struct watched_run **runs;    // (n_runs) in no order
    int n_runs, cap_runs;
    struct watched_run **by_job;    // (n_by_job) NULL: does not run
    int n_by_job, cap_by_job;
    struct gpu_residents *residents;    // (n_residents) by GPU
    int n_residents, cap_residents;
    struct queued *queue;    // [first_queued, n_queued) to be told
    int first_queued, n_queued, cap_queue;
    struct served *last_served;    // of what was told last, owned
    bool is_behind;                // notices wait: what runs beside whom is not quite known
    double ahead_s;                // the wall clock's lead over the stopwatch, as last seen
    void (*on_news)(void *self);
    void *news_self;
    struct watch_stats stats;
};

/* ---- watch_runs.c: who runs where, and the windows that end with a change of that ---- */

struct watched_run *watched_find(const struct watch *w, int job);    // NULL: does not run

/* A job is on GPUs from now on: a start, a move, another limit. Windows there end. */
void watched_enter(struct watch *w, int job, int n_gpus, const int *gpus, int limit_w);

/* It is not any more; windows there end. */
void watched_leave(struct watch *w, struct watched_run *r);
void watched_free(struct watched_run *r);

/* Those who share a GPU with it now, into 'o'. */
void watched_neighbours(const struct watch *w, const struct watched_run *r, struct observation *o);

/* Its window begins: note where the meter stands. */
void watched_note(const struct watch *w, struct watched_run *r, double at_s);

/* Its part of what its GPUs draw. */
double watched_watts(const struct watch *w, const struct watched_run *r);

/* Tell the window so far, where it is worth it. True: told, or given up; the next begins. */
bool watched_tell(struct watch *w, struct watched_run *r, bool must_end);

/* Tell how far it is, without a measurement. */
void watched_tell_progress(struct watch *w, struct watched_run *r);

/* Tell 'energy' who is on 'gpu', with what weights. */
void residents_share(struct watch *w, int gpu);

/* Conditions on 'gpu' are changing: windows there end, and none begins for a warm-up. */
void residents_disturb(struct watch *w, int gpu);

/* ---- watch_served.c: what runs that serve have said, and those that say too much ---- */

/* Tell what is new of it; not before what was told last has been heard. */
struct served *served_copy(const struct served *s);    // on the heap
void served_tell(struct watch *w, struct watched_run *r);

/* That was heard; it lives until the next one was. */
void served_done(struct watch *w, struct queued *n);

/* False: its bins are not of the form, and so is the report. */
bool served_hear(struct watch *w, struct watched_run *r, const struct job_report *said,
                 double at_s);

/* One more report: is it more than we listen to? */
bool served_is_flood(struct watch *w, struct watched_run *r, size_t secret_at, double at_s);
void served_unmute(struct watch *w, double now_s);    // those whose time is over

/* Its run is over, or another begins. */
void served_forget(struct watch *w, struct watched_run *r);

/* ---- watch.c ---- */

/* The wall clock's time of a moment on the stopwatch; the present moment for now. */
double watch_wall_s(struct watch *w, double at_s);

/* Add to what is to be told; fields but those of 'o' are the run's. */
struct queued *watch_put(struct watch *w, const struct observation *o);

#endif

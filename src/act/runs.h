/* runs.h - what becomes of runs, as whoever carries them out tells it.
 *
 * A *run* is one stretch of a job on some GPUs: a start, a move or a retry begins the next. Made by
 * the executors that start real programs (local, Slurm), each of which has one 'struct runs'; read by
 * monitor/watch, which turns notices into observations, and by those who show a job. One thread.
 */
#ifndef ACT_RUNS_H
#define ACT_RUNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "act/executor.h"

#define RUN_SECRET_BYTES 32    // hex digits

enum notice_kind {
    NOTICE_STARTED,
    NOTICE_STOPPED,     // was asked to; or will be tried again: 'reason'
    NOTICE_FINISHED,    // exit 0, or a server's time is served
    NOTICE_FAILED,    // 'reason': "exit 3", "signal 11 (Segmentation fault)", "timed out after ..."
};

struct run_notice {
    enum notice_kind kind;
    double time_s;
    int job;
    int run;    // N
    int n_gpus;
    const int *gpus;    // borrowed until 'done'
    int limit_w;
    bool is_move;    // NOTICE_STARTED: after a stop that was part of the same order
    const char *reason;
};

/* The present or last run of a job, for those who show it or hear its reports. */
struct run_info {
    int run;
    bool is_there;            // its program runs, as far as is known
    pid_t pid;                // of the command on this machine; 0: none
    long slurm_id;            // the Slurm job that it is; 0: none
    const char *dir;          // with stdout, stderr and status in it; NULL: none
    const char *out, *err;    // where its output goes
    const char *secret;       // that its reports carry
    int n_failures;           // runs that ended badly so far
    const char *why;          // it does not run; NULL: nothing is in its way, as far as is known
};

struct runs {
    void *self;
    struct executor executor;    // of those who run them: asked who is on the way in or out

    /* The next notice: 1, or 0. It stays the next one until 'done'. */
    int (*next)(void *self, struct run_notice *out);
    void (*done)(void *self);

    /* Call 'f' when there are new notices, to listen soon. */
    void (*on_news)(void *self, void (*f)(void *to), void *to);

    /* False: the job never had a run. */
    bool (*find)(void *self, int job, struct run_info *out);

    /* The job that a Slurm job is; -1: none. NULL: nobody here has such numbers. */
    int (*find_slurm)(void *self, long slurm_id);
};

#endif

/* runs.h - what becomes of runs, as whoever carries them out tells it.
 *
 * A *run* is one execution of a job on some GPUs: a start, a move or a retry begins the next. Told
 * by executors (act/executor.h) that start real programs; read by monitor/watch, which turns
 * notices into observations, and by those who show a job. And what such executors have in common:
 * sets of GPUs, and the queue of their notices.
 */
#ifndef ACT_RUNS_H
#define ACT_RUNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"

#define RUN_SECRET_BYTES 32    // hex digits

enum notice_kind {
    NOTICE_STARTED,
    NOTICE_STOPPED,     // was asked to; or will be tried again: 'reason'
    NOTICE_FINISHED,    // exit 0, or a server's time is served
    NOTICE_FAILED,    // 'reason': "exit 3", "signal 11 (Segmentation fault)", "timed out after ..."
    NOTICE_INCAPABLE,    // the program cannot run on GPUs of this type at all; it waits for others
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

/* Some GPUs, under a power limit. Owns its list. */
struct gpu_set {
    int *gpus;
    int n_gpus;
    int limit_w;
};

void gpu_set_copy(struct gpu_set *s, const int *gpus, int n_gpus);    // without a limit
void gpu_set_clear(struct gpu_set *s);
void gpu_set_take(struct gpu_set *to, struct gpu_set *from);
bool gpu_set_has(const struct gpu_set *s, int gpu);
bool gpu_set_is(const struct gpu_set *s, const int *gpus, int n_gpus);

/* Notices that wait to be taken off, the oldest first: half of an executor's. */
struct notices {
    struct run_notice *list;    // from 'first' on; each owns its GPUs and its reason
    int n, cap, first;
    void (*on_news)(void *to);    // NULL: nobody listens
    void *to;
    struct loop_timer timer;
};

void notices_init(struct notices *q, struct loop *l, const char *name);
void notices_release(struct notices *q);

/* Copies 'n', and lets whoever listens know soon. */
void notices_push(struct notices *q, const struct run_notice *n);
void notices_tell(struct notices *q);    // he is to know of something else
void notices_listen(struct notices *q, void (*f)(void *to), void *to);

const struct run_notice *notices_first(const struct notices *q);    // NULL: there is none
void notices_drop(struct notices *q);                               // the first

#endif

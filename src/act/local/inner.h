/* inner.h - the local executor's state, for the files local*.c that change it. */
#ifndef ACT_LOCAL_INNER_H
#define ACT_LOCAL_INNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "act/local/local.h"
#include "act/local/command.h"
#include "act/local/status.h"
#include "act/runs.h"
#include "base/arena.h"
#include "base/loop.h"
#include "base/map.h"

struct limit_work;
struct start;
struct start_work;

/* A run, from an order to its end. Each arrow is performed in run.c, but for order_start.
 *
 *     order_start, go_on                   begin                 'started'
 *   ENDED ----------------> PENDING ----------------> WANTED ----------------> RUNNING
 *     ^ ^                   waits for those              |                        |
 *     | |                   who leave its GPUs, or       |  send (stop, move,     |
 *     | |                   for the loop's next turn     |                        |
 *     | '---- 'ended' -----------------------------------+------- cancel) --------'
 *     |                                                  v
 *     '---- 'ended', or nobody of it is left -------- LEAVING --- a move: PENDING again
 */
enum run_phase { RUN_ENDED, RUN_PENDING, RUN_WANTED, RUN_RUNNING, RUN_LEAVING, RUN_PHASES };
enum run_wish { WISH_NONE, WISH_STOP, WISH_MOVE, WISH_CANCEL };

/* A keeper that lives, ours or adopted. Watched by its pidfd; owned by the list in 'local', and
 * gone from it when the process is.
 */
struct keeper {
    struct local *local;
    struct keeper *next, **at;    // in the list: the one behind, and what points at this one
    int job, number;
    pid_t pid;
    uint64_t start;
    int fd;    // -1: none could be had; the sweep looks
};

/* The present or last run of a job. */
struct run {
    int job;
    int number;    // -1: there was none yet
    enum run_phase phase;
    enum run_wish wish;
    bool is_sent;       // the keeper has heard of the wish
    bool is_told;       // the state, once it has heard all notices, has the job running
    bool is_move;       // it is the second half of one
    bool is_orphan;     // its keeper is gone, and its processes are being killed
    bool is_unheard;    // it ended for good while its job was held: told when that is placed again
    struct gpu_set at, next;
    char *dir, *out, *err;
    char secret[33];
    uid_t uid;    // its owner
    int n_failures, retries;
    int n_incapable;    // runs on GPUs that it was not built for, since this daemon began
    double timeout_s, grace_s;
    struct keeper *keeper;    // NULL: not known, or gone
    bool is_spawning;         // a worker is to start its keeper: nothing of it is there yet
    bool has_spawned;         // by this daemon: a keeper that is gone will not come
    pid_t keeper_pid, pid;    // as the status says
    uint64_t keeper_start, start;
    double due_s;    // on the stopwatch: when patience ends; INFINITY
    int active;      // index in local.active; -1
};

/* A directory whose job has ended: removed when there are too many. */
struct old_dir {
    int job, number;
};

/* A run whose end was heard of, and may not be on disk yet. */
struct run_end {
    int job, number;
    bool is_last;    // its job has ended with it
};

struct local {
    struct local_setup setup;
    char *run_dir;    // from the root
    bool *busy;       // (n_busy) GPUs that somebody leaves or comes to; see find_busy
    int n_busy;       // -1: to be found anew

    struct map_u64 by_job;    // to indices of 'runs'
    struct run **runs;
    int n_runs, cap_runs;
    struct run **active;    // those not ENDED
    int n_active, cap_active;
    int n_phase[RUN_PHASES];
    struct keeper *keepers;
    int cursor;    // of the sweep

    struct notices notices;
    struct loop_timer sweep, more;
    double burst_s;    // spent on starts since 'more' came last

    struct start *starts;           // keepers to start: a queue
    struct start_work *starting;    // those that are with a worker; NULL: none

    struct run_end *ends;    // ends that are marked when they are on disk
    int n_ends, cap_ends;

    struct old_dir *old_dirs;    // a queue: from 'first_old_dir' on
    int n_old_dirs, cap_old_dirs, first_old_dir;

    int notice_fd;    // notices.sock
    char boot[BOOT_ID_SIZE];
    double pause_until_s;    // on the stopwatch: keepers fail to start
    struct arena scratch;

    int *limit_w;          // (n_slots) as last asked of the device; 0: the default; -1: unknown
    bool *cannot_limit;    // (n_slots) for good
    int n_slots;
    struct limit_work *limits;    // a queue; the first one is with a worker
    double limit_due_s;           // on the stopwatch: when the driver is taken to hang

    bool has_mps;
    int mps_fd;
};

/* run.c */
struct run *run_find(const struct local *l, int job);    // NULL: none
struct run *run_get(struct local *l, int job);           // made if need be
void run_free(struct local *l, struct run *r);
int run_place(struct local *l, struct run *r, const struct placement *p, struct err *e);
void run_tell_late(struct local *l, struct run *r, const struct placement *p);
void run_set_names(struct local *l, struct run *r, const struct launch *o);
void run_leave(struct local *l, struct run *r, enum run_wish wish);
void run_look(struct local *l, struct run *r);
void run_set_phase(struct local *l, struct run *r, enum run_phase phase);
void run_drop(struct local *l, struct run *r, const char *reason);
void run_try_pending(struct local *l);
void run_on_more(void *self);
void run_spawned(struct local *l, struct run *r, pid_t pid, uint64_t start);    // pid < 0: in vain
void run_on_sweep(void *self);
void keeper_free(struct keeper *k);
void notice_push(struct local *l, const struct run *r, enum notice_kind kind, double time_s,
                 const char *reason);

/* dir.c: the run directory. */
char *dir_path(struct arena *a, const struct local *l, int job, int number);
int dir_make(struct local *l, int job, int *number, struct err *e);
int dir_write(struct local *l, const struct launch *o, struct err *e);
void dir_remove(const struct local *l, int job, int number);
void dir_mark_told(const struct local *l, int job, int number);
void dir_mark_later(struct local *l, int job, int number, bool is_last);    // once it is on disk
int dir_lock(int dir);    // a descriptor; -EBUSY: a keeper has it; another -errno
void dir_take_back(struct local *l, struct run *r);    // a run that has not begun
void dir_miss_lost(struct local *l);
void dir_leave_all(struct local *l, int job, int last);    // its job has ended
int dir_adopt_all(struct local *l, struct err *e);
int dir_listen(struct local *l, struct err *e);

/* env.c */
int env_order(struct local *l, const struct run *r, int number, const struct gpu_set *at,
              struct launch *out, struct err *e);
const struct device *env_device(const struct local *l, int gpu);    // NULL: declared

/* start.c: the keeper of a run whose directory is there; run_spawned when it is, too. */
void start_ask(struct local *l, const struct run *r);
void start_release(struct local *l);

/* limit.c, mps.c */
void limit_ask(struct local *l, struct run *r, const struct gpu_set *at, bool is_relimit);
void limit_forget(struct local *l, const struct gpu_set *at);
void limit_note(struct local *l, const struct gpu_set *at);    // of a run that was adopted
int limit_check(const struct local *l, const struct gpu_set *at, struct err *e);
int limit_n_awaited(const struct local *l, int job);    // orders for another one; -1: of all jobs
void limit_sweep(struct local *l);
void limit_release(struct local *l);
void mps_start(struct local *l);
void mps_release(struct local *l);

#endif

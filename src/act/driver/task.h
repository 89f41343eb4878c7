/* task.h - one request to the Slurm driver: the calls it takes, and the answer they give.
 *
 * Made by gogh-slurm-driver from a line (docs/formats/slurm-driver.md); lives until it is answered.
 * Pure but for chance: it says what is to be run, somebody else runs it, and it reads the result.
 *
 *     task_init --> task_next --call--> task_take --> task_next ... until it is answered
 */
#ifndef ACT_DRIVER_TASK_H
#define ACT_DRIVER_TASK_H

#include <stdbool.h>
#include <stddef.h>

#include "act/driver/call.h"
#include "act/driver/wire.h"
#include "base/arena.h"

struct buf;
struct owners;
struct task_part;
struct task_verb;

/* Requests of one kind that follow each other and are carried out together. 32 pins take 3 calls
 * instead of 96, and 32 updates of 0.2 s are done within a call's limit.
 */
#define TASK_PARTS_MAX 32

struct task_setup {
    const char *commands;    // the directory of Slurm's commands; NULL: where systems have them
    const char *conf;        // SLURM_CONF; NULL: Slurm's default
    double read_limit_s, change_limit_s;
    struct owners *owners;    // of the last listing; one task at a time
};

struct task {
    const struct task_setup *setup;    // borrowed
    struct arena arena;
    struct wire_message m;
    const struct task_verb *verb;
    struct task_part *parts;    // (n_parts) of pins and notes several; of others one
    int n_parts;
    bool is_begun;
    int step;
    double asked_s;      // the call that runs
    bool is_checking;    // it asks whose the job is, before the next step
    bool is_checked;     // it has, and nothing was done since
    bool is_answered;
    char mark[24];       // of this listing
    const char **ids;    // (n_ids) of the request
    int n_ids;
    int first_id, n_sent;    // those of the last call are from first_id up to n_sent
    int n_troubles;
    const char *trouble_kind;    // of all; NULL: none yet
    const char *trouble_text;    // of the first
};

/* Read a line ('len' bytes without its LF). What is no request is answered at once. */
void task_init(struct task *t, const struct task_setup *setup, const char *line, size_t len,
               struct buf *out);
void task_release(struct task *t);

/* Take another line into a task that has not begun: true where it is the same kind
 * of request, and one that can be carried out together with it. Each gets an answer of its own.
 */
bool task_join(struct task *t, const char *line, size_t len);

/* The next call, at 'now_s' on any clock that never goes back; texts are the task's. False: there
 * is none, and the answer is complete.
 */
bool task_next(struct task *t, double now_s, struct call_order *order, struct buf *out);

/* What came of it. False: Slurm was not reached, and 't->is_answered'. */
bool task_take(struct task *t, struct call_result *r, struct buf *out);

/* It runs as a user: that it does not reach Slurm may be that user's trouble alone. */
bool task_is_users(const struct task *t);

/* Answer that Slurm cannot be reached; nothing has been tried. */
void task_give_up(struct task *t, const char *why, struct buf *out);

/* scontrol ping, for the breaker: the order, and whether what came of it is good. */
void task_ping(const struct task_setup *setup, struct arena *a, struct call_order *order);
bool task_ping_worked(const struct call_result *r);

#endif

/* task_inner.h - what the files task*.c share: requests are checked, become commands,
 * and are answered by what these say.
 */
#ifndef ACT_DRIVER_TASK_INNER_H
#define ACT_DRIVER_TASK_INNER_H

#include "act/driver/task.h"

struct err;

/* A request that this driver knows. */
struct task_verb {
    const char *name;
    bool is_change;
    int n_steps;          // calls at most; 0: as many as the ids take
    bool is_joined;       // with others of its kind, in 'parts'
    bool is_gone_fine;    // of a job that Slurm does not know there is nothing to tell
    int (*check)(const struct task *t, struct err *e);    // NULL: nothing to check
    void (*order)(struct task *t, struct call_order *o);
    void (*read)(struct task *t, struct call_result *r,
                 struct buf *out);    // NULL: nothing to read
};

/* One request of several, and its answer. */
struct task_part {
    struct wire_message m;
    const char *id;
    const char *end;    // "done", "failed", "unknown"; NULL: not yet
    const char *kind, *text;
};

const char *task_get(const struct task *t, const char *key);    // the first; NULL: none
int task_count_open(const struct task *t);                      // parts that have no end yet

/* May it be carried out together with others? */
bool task_is_plain(const struct wire_message *m);

/* Is it of the form? -EINVAL says what is not. */
int task_check_hello(const struct task *t, struct err *e);
int task_check_ids(const struct task *t, struct err *e);
int task_check_note(const struct task *t, struct err *e);
int task_check_partitions(const struct task *t, struct err *e);
int task_check_pin(const struct task *t, struct err *e);
int task_check_power(const struct task *t, struct err *e);
int task_check_signal(const struct task *t, struct err *e);
int task_check_submit(const struct task *t, struct err *e);

/* The command for the next step. */
void task_order_cancel(struct task *t, struct call_order *o);
void task_order_devices(struct task *t, struct call_order *o);
void task_order_hello(struct task *t, struct call_order *o);
void task_order_hold(struct task *t, struct call_order *o);
void task_order_jobs(struct task *t, struct call_order *o);
void task_order_nodes(struct task *t, struct call_order *o);
void task_order_owners(struct task *t, struct call_order *o);
void task_order_part(struct task *t, struct call_order *o);
void task_order_power(struct task *t, struct call_order *o);
void task_order_requeue(struct task *t, struct call_order *o);
void task_order_signal(struct task *t, struct call_order *o);
void task_order_submit(struct task *t, struct call_order *o);

#endif

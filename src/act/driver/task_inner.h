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
    int (*check)(const struct task *t, struct err *e);    // is it of the form? -EINVAL
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

const struct task_verb *task_find_verb(const char *name);    // NULL: there is none
void task_order_owners(struct task *t, struct call_order *o);

/* What the commands of a verb have printed becomes its answer (task.c). */
void task_read_hello(struct task *t, struct call_result *r, struct buf *out);
void task_read_listing(struct task *t, struct call_result *r, struct buf *out);
void task_read_devices(struct task *t, struct call_result *r, struct buf *out);
void task_read_submit(struct task *t, struct call_result *r, struct buf *out);

#endif

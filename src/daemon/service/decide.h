/* decide.h - plans made beside the loop: a child process per decision.
 *
 * fork gives the child a frozen copy of everything (state, catalog, estimates) for the price of
 * some page tables; it plans, judges its plan, writes the plan and the explanations down a
 * pipe and ends. What comes back is a value. A child that dies or takes too long is a
 * decision that failed; the loop goes on, and the greedy plan stands in.
 */
#ifndef DAEMON_SERVICE_DECIDE_H
#define DAEMON_SERVICE_DECIDE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "catalog/cluster/snapshot.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"

struct buf;
struct decider;
struct err;
struct loop;
struct service;

/* One decision as it came back. Lives until its callback returns. */
struct decision {
    struct arena arena;
    double time_s;    // of the snapshot
    struct snapshot snapshot;
    struct lowered asked;    // the problem, in the child; here there is none
    struct plan plan;
    bool is_fallback;    // greedy stands in for the policy
    const char *why;     // for a fallback
    double seconds;      // from the fork to the last byte
    json_t *said;        // what the child's teller gave; NULL: nothing
    struct buf *raw;     // and what it wrote beside, as it is: JSON takes the loop too long to read
};

struct decider *decider_create(struct service *s);
void decider_destroy(struct decider *d);    // ends a child that is under way

/* Plan beside the loop with the policy in use ('policy' NULL) or another one. 'tell' (may be NULL)
 * runs in the child after the plan is made and gives a JSON value that comes back as 'said', and
 * may append to 'raw'. 'done' gets the decision, or NULL and the reason. -EAGAIN: too many at once.
 */
typedef json_t *decide_tell_f(void *self, struct service *s, const struct decision *d);
typedef void decide_done_f(void *self, struct decision *d, const struct err *failed);
int decider_ask(struct decider *d, const char *policy, decide_tell_f *tell, decide_done_f *done,
                void *self, struct err *e);

/* Any longer computation on a frozen copy: 'work' runs in a child, its JSON comes back, and what it
 * has appended to 'raw'.
 */
typedef json_t *decide_work_f(void *self, struct service *s, struct buf *raw, struct err *e);
typedef void decide_worked_f(void *self, json_t *result, const struct buf *raw,
                             const struct err *failed);
int decider_work(struct decider *d, double limit_s, decide_work_f *work, decide_worked_f *done,
                 void *self, struct err *e);

int decider_n_busy(const struct decider *d);

#endif

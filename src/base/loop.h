/* loop.h - one thread that waits for everything: descriptors, timers, signals, and what
 * workers bring back.
 *
 * Made once by a daemon; the thread that runs it owns all state. A *turn* is everything
 * that was ready at once; after it come the turn-enders (a group commit, say), then the next
 * wait. Nothing may hold a turn longer than LOOP_STALL_S: turns are measured, and one that took
 * longer is logged with the name of the callback that did.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct loop;

#define LOOP_STALL_S 0.1

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

typedef void loop_fd_f(void *self, int fd, unsigned ready);
typedef void loop_f(void *self);

int loop_create(struct loop **out, struct err *e);
void loop_destroy(struct loop *l);    // waits for workers and drops what they bring; NULL is fine

/* Call 'f' while 'fd' is ready for what is wanted (level-triggered). Watching it again replaces
 * what was wanted. 'what' names the callback in logs and must outlive the watch.
 */
int loop_watch(struct loop *l, int fd, unsigned want, const char *what, loop_fd_f *f, void *self,
               struct err *e);
void loop_unwatch(struct loop *l, int fd);    // before the fd is closed; unknown ones are fine

/* A timer on the monotonic clock, inside something that outlives it; set again from its own
 * callback for a period. Setting replaces; clearing an unset one is fine. Callbacks of a turn may
 * clear any.
 */
struct loop_timer {
    struct loop *loop;
    const char *what;
    loop_f *f;
    void *self;
    double due_s;               // on the stopwatch; INFINITY: unset
    struct loop_timer *next;    // the loop's: who is due after it
};
void loop_timer_init(struct loop_timer *t, struct loop *l, const char *what, loop_f *f, void *self);
void loop_timer_set(struct loop_timer *t, double after_s);
void loop_timer_clear(struct loop_timer *t);

/* Call 'f' when 'signo' arrives: it is blocked for the process and read from a descriptor. */
int loop_signal(struct loop *l, int signo, loop_f *f, void *self, struct err *e);

/* Call 'f' at the end of every turn, in the order given here. */
void loop_at_turn_end(struct loop *l, const char *what, loop_f *f, void *self);

/* From any thread: call 'f' on the loop's thread, soon. */
void loop_post(struct loop *l, const char *what, loop_f *f, void *self);

/* Run 'work' on a worker thread, and then 'done' on the loop's thread. What 'self' points at
 * belongs to the worker in between. At most LOOP_WORKERS at a time; others queue.
 */
#define LOOP_WORKERS 2
void loop_work(struct loop *l, const char *what, loop_f *work, loop_f *done, void *self);

/* Wait for all work that was handed in, and call what it brought: before its owners go. Work may
 * hang: then false, after 'most_s', and its owners must not go.
 */
bool loop_settle(struct loop *l, double most_s);

/* One turn: wait at most 'most_s' for something to be ready, serve it. For loop_run, and tests. */
int loop_turn(struct loop *l, double most_s, struct err *e);

/* Turn until loop_stop; -Exxx when waiting itself fails. */
int loop_run(struct loop *l, struct err *e);
void loop_stop(struct loop *l);

/* How long turns held the loop: for the metric that proves it. Bucket i counts turns of at
 * most loop_buckets_s[i]; the last one has no end.
 */
enum { LOOP_BUCKETS = 10 };
extern const double loop_buckets_s[LOOP_BUCKETS];    // .0001 .. INFINITY
struct loop_stats {
    uint64_t n_turns;
    uint64_t buckets[LOOP_BUCKETS];    // each turn once
    uint64_t n_stalls;                 // longer than LOOP_STALL_S
    double busy_s;                     // in all
    double longest_s;
};
const struct loop_stats *loop_stats(const struct loop *l);

#endif

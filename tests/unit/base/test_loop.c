/* One thread that waits for everything. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/rng.h"
#include "unit/suite.h"

static struct loop *l;
static struct err e;
static char heard[256];    // what was called, in order

static void setup(void)
{
    heard[0] = '\0';
    ck_assert_int_eq(loop_create(&l, &e), 0);
}

static void teardown(void)
{
    loop_destroy(l);
}

FIXTURE(setup, teardown)

static void hear(const char *word)
{
    size_t n = strlen(heard);

    snprintf(heard + n, sizeof heard - n, "%s ", word);
}

static void hear_self(void *self)
{
    hear(self);
}

static void stop(void *self)
{
    (void)self;
    loop_stop(l);
}

/* ---- descriptors ---- */

static void read_one(void *self, int fd, unsigned ready)
{
    char c;

    ck_assert(ready & LOOP_READ);
    ck_assert_int_eq(read(fd, &c, 1), 1);
    hear(self);
    if (c == '!')
        loop_stop(l);
}

TEST(a_descriptor_is_served_while_it_is_ready)
{
    int p[2];

    ck_assert_int_eq(pipe(p), 0);
    ck_assert_int_eq(loop_watch(l, p[0], LOOP_READ, "pipe", read_one, "p", &e), 0);
    ck_assert_int_eq(write(p[1], "ab!", 3), 3);
    ck_assert_int_eq(loop_run(l, &e), 0);
    ck_assert_str_eq(heard, "p p p ");
    loop_unwatch(l, p[0]);
    loop_unwatch(l, p[0]);
    ck_assert_int_eq(write(p[1], "x", 1), 1);
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
    ck_assert_str_eq(heard, "p p p ");
    close(p[0]);
    close(p[1]);
}

static int others[2];

/* Lets go of the other one, closes it, and opens a new descriptor with the same number. */
static void take_over(void *self, int fd, unsigned ready)
{
    int other = fd == others[0] ? others[1] : others[0];
    int fresh[2];

    (void)ready;
    (void)self;
    hear("first");
    loop_unwatch(l, other);
    close(other);
    ck_assert_int_eq(pipe(fresh), 0);
    ck_assert_int_eq(fresh[0], other);
    ck_assert_int_eq(loop_watch(l, fresh[0], LOOP_READ, "fresh", read_one, "fresh", &e), 0);
    loop_unwatch(l, fd);
}

TEST(news_of_a_descriptor_that_was_let_go_in_the_same_turn_are_not_told_to_its_successor)
{
    int a[2], b[2];

    ck_assert_int_eq(pipe(a), 0);
    ck_assert_int_eq(pipe(b), 0);
    others[0] = a[0];
    others[1] = b[0];
    ck_assert_int_eq(loop_watch(l, a[0], LOOP_READ, "a", take_over, NULL, &e), 0);
    ck_assert_int_eq(loop_watch(l, b[0], LOOP_READ, "b", take_over, NULL, &e), 0);
    ck_assert_int_eq(write(a[1], "x", 1), 1);
    ck_assert_int_eq(write(b[1], "x", 1), 1);
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
    ck_assert_str_eq(heard, "first ");
}

TEST(a_bad_descriptor_is_refused_with_its_name)
{
    ck_assert_int_lt(loop_watch(l, 900, LOOP_READ, "nothing", read_one, NULL, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "nothing"));
}

/* ---- timers ---- */

TEST(timers_ring_in_the_order_they_are_due)
{
    static const struct {
        const char *name;
        double after_s;
    } given[] = {
        { "c", .3 }, { "a", .1 }, { "d", .4 }, { "b", .2 }, { "never", 1e6 }, { "e", .5 },
    };
    struct loop_timer t[7];

    for (int i = 0; i < 6; i++) {
        loop_timer_init(&t[i], l, given[i].name, hear_self, (void *)given[i].name);
        loop_timer_set(&t[i], given[i].after_s);
    }
    loop_timer_init(&t[6], l, "stop", stop, NULL);
    loop_timer_set(&t[6], 1);
    loop_timer_clear(&t[2]);
    loop_timer_clear(&t[2]);
    loop_timer_set(&t[3], .6);
    ck_assert_int_eq(loop_run(l, &e), 0);
    ck_assert_str_eq(heard, "a c e b ");
    ck_assert(isinf(t[1].due_s));
    loop_timer_clear(&t[4]);
}

TEST(a_thousand_timers_set_and_cleared_at_random_stay_in_order)
{
    enum { N = 1000 };
    static struct loop_timer t[N];
    struct rng r;

    rng_init(&r, 7, "timers");
    for (int i = 0; i < N; i++)
        loop_timer_init(&t[i], l, "t", hear_self, "t");
    for (int i = 0; i < 20 * N; i++) {
        struct loop_timer *one = &t[rng_below(&r, N)];
        if (rng_below(&r, 3) == 0)
            loop_timer_clear(one);
        else
            loop_timer_set(one, 100 + rng_uniform(&r));
    }
    int n_set = 0, n_last = 0;
    for (int i = 0; i < N; i++) {
        if (!isfinite(t[i].due_s))
            continue;
        n_set++;
        n_last += t[i].next == NULL;
        ck_assert(t[i].next == NULL ||
                  (isfinite(t[i].next->due_s) && t[i].next->due_s >= t[i].due_s));
    }
    ck_assert_int_gt(n_set, 0);
    ck_assert_int_eq(n_last, 1);
    for (int i = 0; i < N; i++)
        loop_timer_clear(&t[i]);
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
}

/* ---- signals, posts, work ---- */

TEST(signals_come_through_the_loop)
{
    ck_assert_int_eq(loop_signal(l, SIGUSR1, hear_self, "usr1", &e), 0);
    ck_assert_int_eq(loop_signal(l, SIGTERM, stop, NULL, &e), 0);
    raise(SIGUSR1);
    raise(SIGTERM);
    ck_assert_int_eq(loop_run(l, &e), 0);
    ck_assert_str_eq(heard, "usr1 ");
}

struct sum {
    pthread_t by;
    int n;
    int *left;
};

static void add(void *self)
{
    struct sum *s = self;

    s->by = pthread_self();
    s->n *= 2;
}

static void added(void *self)
{
    struct sum *s = self;

    ck_assert(!pthread_equal(s->by, pthread_self()));
    if (--*s->left == 0)
        loop_stop(l);
}

TEST(work_is_done_by_others_and_comes_back_here)
{
    struct sum sums[20];
    int left = 20;

    for (int i = 0; i < 20; i++) {
        sums[i] = (struct sum){ .n = i, .left = &left };
        loop_work(l, "sum", add, added, &sums[i]);
    }
    ck_assert_int_eq(loop_run(l, &e), 0);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(sums[i].n, 2 * i);
}

TEST(settling_waits_for_work_and_calls_what_it_brought)
{
    struct sum s = { .n = 3, .left = &(int){ 2 } };

    loop_work(l, "sum", add, added, &s);
    loop_settle(l, 1e9);
    ck_assert_int_eq(s.n, 6);
    ck_assert_int_eq(*s.left, 1);
}

static void wait_for_it(void *self)
{
    pthread_mutex_lock(self);
    pthread_mutex_unlock(self);
}

static void hear_end(void *self)
{
    (void)self;
    hear("end");
}

TEST(work_that_hangs_is_not_waited_for_longer_than_told)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    loop_work(l, "hang", wait_for_it, hear_end, &lock);
    ck_assert(!loop_settle(l, 0.01));
    pthread_mutex_unlock(&lock);
    ck_assert(loop_settle(l, 300));
    ck_assert_str_eq(heard, "end ");
}

static void *post_from_there(void *self)
{
    loop_post(l, "posted", hear_self, self);
    loop_post(l, "stop", stop, NULL);
    return NULL;
}

TEST(another_thread_may_hand_in_a_call)
{
    pthread_t t;

    ck_assert_int_eq(pthread_create(&t, NULL, post_from_there, "there"), 0);
    ck_assert_int_eq(loop_run(l, &e), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
    ck_assert_str_eq(heard, "there ");
}

TEST(a_turn_ends_after_everything_that_was_ready)
{
    int p[2];

    ck_assert_int_eq(pipe(p), 0);
    loop_at_turn_end(l, "end", hear_self, "end");
    ck_assert_int_eq(loop_watch(l, p[0], LOOP_READ, "pipe", read_one, "p", &e), 0);
    ck_assert_int_eq(write(p[1], "a", 1), 1);
    loop_post(l, "posted", hear_self, "posted");
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
    ck_assert_str_eq(heard, "p posted end ");
    close(p[0]);
    close(p[1]);
}

static void dawdle(void *self)
{
    double until_s = clock_stopwatch_s() + 1.2 * LOOP_STALL_S;

    (void)self;
    while (clock_stopwatch_s() < until_s)
        ;
}

TEST(a_turn_that_holds_the_loop_too_long_is_counted)
{
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
    const uint64_t before = loop_stats(l)->n_stalls;    // a busy machine may have held it
    loop_post(l, "dawdle", dawdle, NULL);
    ck_assert_int_eq(loop_turn(l, 0, &e), 0);
    const struct loop_stats *s = loop_stats(l);
    ck_assert_uint_eq(s->n_stalls, before + 1);
    ck_assert_uint_eq(s->n_turns, 2);
    ck_assert(s->longest_s >= LOOP_STALL_S && s->busy_s >= s->longest_s);
    uint64_t n = 0;
    for (int i = 0; i < LOOP_BUCKETS; i++)
        n += s->buckets[i];
    ck_assert_uint_eq(n, 2);
}

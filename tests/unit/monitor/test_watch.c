/* The sensor of a real box, with time, the executor and the devices in the test's hands.
 *
 * The test defines the functions of base/clock.c and act/gpu/devices.c that are asked for,
 * so the linker leaves the library's own out. Datagrams and the loop are real.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "act/runs.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "monitor/energy.h"
#include "monitor/monitor.h"
#include "monitor/watch.h"
#include "unit/suite.h"
#include "unit/support.h"

/* ---- time ---- */

static double stopwatch_s, wall_s;

double clock_stopwatch_s(void)
{
    return stopwatch_s;
}

static double now_s(void *self)
{
    (void)self;
    return wall_s;
}

struct clock clock_real(void)
{
    return (struct clock){ .now_s = now_s };
}

struct clock clock_manual(struct clock_manual *m)
{
    return (struct clock){ .self = m, .now_s = now_s };
}

/* ---- the executor's notices ---- */

struct fake {
    struct run_notice notices[64];
    int first, n;
    int run[8];         // by job; -1: never had one
    bool is_gone[8];    // by job
    bool is_busy[8];    // by GPU
    void (*on_news)(void *self);
    void *self;
};

static struct fake executor;

static const char *secret_of(int job)
{
    static char secret[33];

    snprintf(secret, sizeof secret, "%032x", 0xabc0u + (unsigned)job);
    return secret;
}

static int next_notice(void *self, struct run_notice *out)
{
    const struct fake *l = self;

    if (l->first == l->n)
        return 0;
    *out = l->notices[l->first];
    return 1;
}

static void notice_done(void *self)
{
    struct fake *l = self;

    ck_assert_int_lt(l->first, l->n);
    l->first++;
}

static void on_news(void *self, void (*f)(void *to), void *to)
{
    struct fake *l = self;

    l->on_news = f;
    l->self = to;
}

static bool find_run(void *self, int job, struct run_info *out)
{
    const struct fake *l = self;

    if (l->run[job] < 0)
        return false;
    *out = (struct run_info){ .run = l->run[job],
                              .is_there = !l->is_gone[job],
                              .secret = secret_of(job) };
    return true;
}

static bool gpu_is_busy(void *self, int gpu)
{
    return ((struct fake *)self)->is_busy[gpu];
}

static const struct executor fake_executor = {
    .self = &executor,
    .gpu_is_busy = gpu_is_busy,
    .next = next_notice,
    .done = notice_done,
    .on_news = on_news,
    .find = find_run,
};

/* ---- devices ---- */

enum { DEVICES = 3 };
static struct device devices[DEVICES] = {
    { .maker = DEVICE_NVIDIA, .index = 0, .uuid = "GPU-a" },
    { .maker = DEVICE_AMD, .index = 1, .uuid = "GPU-b" },
    { .maker = DEVICE_DECLARED, .index = 2 },
};
static double device_w[DEVICES], device_j[DEVICES];
static pthread_mutex_t hang = PTHREAD_MUTEX_INITIALIZER;    // held: the driver hangs

int devices_n(const struct devices *d)
{
    (void)d;
    return DEVICES;
}

const struct device *devices_get(const struct devices *d, int i)
{
    (void)d;
    return &devices[i];
}

int devices_power(const struct devices *d, int i, struct device_power *out, struct err *e)
{
    (void)d;
    pthread_mutex_lock(&hang);
    pthread_mutex_unlock(&hang);
    if (isnan(device_w[i]))
        return err_set(e, EIO, "it fell off the bus");
    *out = (struct device_power){ .watts = device_w[i], .joules = device_j[i] };
    return 0;
}

/* ---- usage ---- */

static int add_up(void *self, const struct row_usage *r)
{
    ((struct row_usage *)self)->idle_j += r->idle_j;
    return 0;
}

/* ---- a box ---- */

/* GPUs 0 and 1 are of one kind; 2 is declared. */
static const char box_text[] = "type v100 idle=30\ntype k80 idle=20\nworkload w\nworkload x\n"
                               "node n1 v100 v100 k80\n"
                               "job a w\njob b x\njob c w gpus=2\n";
enum { A, B, C, JOBS };

struct told {
    struct observation seen;
    int gpu;    // the first
};

struct box {
    struct world world;
    struct loop *loop;
    struct energy *energy;
    struct watch *watch;
    struct clock clock;
    char *dir, path[100];
    int fd;    // jobs send by this
    double rate[JOBS], steps[JOBS];
    int n_news;
    struct told told[64];
    int n_told;
};

static double model_w(void *self, int gpu)
{
    (void)self;
    return 100 + gpu;
}

static double alone_speed(void *self, int job, int gpu)
{
    (void)self;
    (void)gpu;
    return job == A ? 10 : 40;
}

static void count_news(void *self)
{
    ((struct box *)self)->n_news++;
}

static struct watch_setup setup_of(struct box *b)
{
    return (struct watch_setup){ .loop = b->loop,
                                 .clock = &b->clock,
                                 .state = &b->world.ledger.state,
                                 .catalog = &b->world.catalog,
                                 .executor = &fake_executor,
                                 .devices = (struct devices *)devices,
                                 .energy = b->energy,
                                 .socket = b->path,
                                 .power_s = 5,
                                 .warmup_s = 10,
                                 .report_s = 30,
                                 .model_w = model_w,
                                 .alone_speed = alone_speed };
}

static void box_begin(struct box *b, const char *more)
{
    *b = (struct box){ .clock = clock_real() };
    stopwatch_s = 1000;
    wall_s = 1e6;
    executor = (struct fake){ .run = { -1, -1, -1 } };
    for (int i = 0; i < DEVICES; i++) {
        device_w[i] = 200;
        device_j[i] = NAN;
    }
    world_init(&b->world, box_text);
    world_add(&b->world, more);
    ck_assert_int_eq(loop_create(&b->loop, NULL), 0);
    b->energy = energy_create(&b->world.ledger.state, &b->world.catalog);
    b->dir = scratch_make();
    snprintf(b->path, sizeof b->path, "%s/reports", b->dir);
    b->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
}

static void box_watch(struct box *b, const struct watch_setup *s)
{
    struct err e = { 0 };

    ck_assert_msg(watch_create(s, &b->watch, &e) == 0, "%s", e.text);
    watch_on_news(b->watch, count_news, b);
}

static void box_open(struct box *b)
{
    box_begin(b, "");
    struct watch_setup s = setup_of(b);
    box_watch(b, &s);
}

static void box_close(struct box *b)
{
    watch_destroy(b->watch);
    loop_settle(b->loop, 600);
    loop_destroy(b->loop);
    energy_destroy(b->energy);
    close(b->fd);
    ck_assert(access(b->path, F_OK) != 0);
    scratch_remove(b->dir);
    world_release(&b->world);
}

static void send_text(struct box *b, const char *text)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    snprintf(to.sun_path, sizeof to.sun_path, "%s", b->path);
    ck_assert_int_eq(sendto(b->fd, text, strlen(text), 0, (struct sockaddr *)&to, sizeof to),
                     (ssize_t)strlen(text));
}

static void report(struct box *b, int job, const char *keys)
{
    char text[256];

    snprintf(text, sizeof text, "gogh1 %d %d %s %.0f%s", job, executor.run[job], secret_of(job),
             b->steps[job], keys);
    send_text(b, text);
}

static void turn(struct box *b)
{
    ck_assert_int_eq(loop_turn(b->loop, 0, NULL), 0);
}

/* What the sensor has to tell, taken in. */
static void listen_all(struct box *b)
{
    struct sensor s = watch_sensor(b->watch);
    struct observation o;
    struct finding f;

    while (s.next(s.self, &o) == 1) {
        ck_assert_int_lt(b->n_told, 64);
        b->told[b->n_told++] = (struct told){ o, o.n_gpus ? o.gpus[0] : -1 };
        monitor_read(&o, &b->world.ledger.state, &f);
        if (f.has_event)
            world_apply(&b->world, &f.event);
        s.done(s.self);
    }
}

/* 'n' seconds go by; jobs with a rate say how far they are, and it is listened to. */
static void pass(struct box *b, int n)
{
    for (int i = 0; i < n; i++) {
        stopwatch_s++;
        wall_s++;
        for (int j = 0; j < JOBS; j++) {
            b->steps[j] += b->rate[j];
            device_j[j] += device_w[j];
            if (b->rate[j] > 0)
                report(b, j, "");
        }
        turn(b);
        loop_settle(b->loop, 600);
        listen_all(b);
    }
}

static void notice_put(const struct run_notice *n)
{
    executor.notices[executor.n] = *n;
    executor.notices[executor.n++].time_s = wall_s;
    if (executor.on_news)
        executor.on_news(executor.self);
}

static const int gpu_sets[][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 } };

static void start(struct box *b, int job, int gpu, double rate)
{
    executor.run[job]++;
    b->rate[job] = rate;
    notice_put(&(struct run_notice){
        .kind = NOTICE_STARTED, .job = job, .n_gpus = 1 + (job == C), .gpus = gpu_sets[gpu] });
    listen_all(b);
}

static void end(struct box *b, int job, enum notice_kind kind, const char *reason)
{
    b->rate[job] = 0;
    const struct job *j = b->world.ledger.state.jobs[job];
    notice_put(&(struct run_notice){ .kind = kind,
                                     .job = job,
                                     .n_gpus = j->n_held,
                                     .gpus = gpu_sets[j->gpus[0]],
                                     .reason = reason });
    listen_all(b);
}

/* The nth thing told of a kind, or NULL. */
static const struct told *find(const struct box *b, enum observation_kind kind, int job, int nth)
{
    for (int i = 0; i < b->n_told; i++) {
        const struct observation *o = &b->told[i].seen;
        if (o->kind == kind && o->job == job && nth-- == 0)
            return &b->told[i];
    }
    return NULL;
}

/* The first measurement without a neighbour. */
static const struct told *find_alone(const struct box *b, int job)
{
    for (int i = 0; i < b->n_told; i++) {
        const struct observation *o = &b->told[i].seen;
        if (o->kind == OBS_WINDOW && o->job == job && o->steps > 0 && o->n_neighbours == 0)
            return &b->told[i];
    }
    ck_abort_msg("job %d was never measured alone", job);
}

static double speed_of(const struct told *t)
{
    return t->seen.steps / (t->seen.time_s - t->seen.from_s);
}

/* ---- windows ---- */

START_TEST(a_steady_job_is_told_every_report_s)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 110);
    ck_assert_int_eq(b.told[0].seen.kind, OBS_STARTED);
    for (int i = 0; i < 2; i++) {
        const struct told *t = find(&b, OBS_WINDOW, A, i);
        ck_assert(t);
        ck_assert_double_eq_tol(speed_of(t), 5, 1e-6);
        ck_assert(t->seen.noise > 0 && t->seen.noise < .02);
        ck_assert(t->seen.from_s >= 1e6 + 10);
        ck_assert_double_eq_tol(t->seen.steps_done, 5 * (t->seen.time_s - 1e6), 1e-6);
        ck_assert_int_eq(t->gpu, 0);
        ck_assert_int_eq(t->seen.n_neighbours, 0);
        ck_assert(isnan(t->seen.watts));    // modelled: learning from that would be circular
    }
    ck_assert_int_eq((int)watch_stats(b.watch).n_windows, 3);
    ck_assert_double_eq(b.world.ledger.state.jobs[A]->pace, 5);
    ck_assert_int_gt(b.n_news, 2);
    box_close(&b);
}
END_TEST

START_TEST(a_neighbour_ends_the_window_and_is_named_in_the_next)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 30);
    start(&b, B, 0, 3);
    const struct told *alone = find(&b, OBS_WINDOW, A, 0);
    ck_assert(alone && find(&b, OBS_STARTED, B, 0) == alone + 1);
    ck_assert_int_eq(alone->seen.n_neighbours, 0);
    b.rate[A] = 2;
    pass(&b, 60);
    const struct told *beside = find(&b, OBS_WINDOW, A, 1);
    ck_assert(beside);
    ck_assert_double_eq_tol(speed_of(beside), 2, 1e-6);
    ck_assert_int_eq(beside->seen.n_neighbours, 1);
    ck_assert_int_eq(beside->seen.neighbours[0], B);
    ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, B, 0)), 3, 1e-6);
    box_close(&b);
}
END_TEST

START_TEST(the_last_window_comes_before_the_end)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 25);
    b.steps[A] = 128;
    report(&b, A, "");    // its last words, in the same moment
    end(&b, A, NOTICE_FINISHED, NULL);
    const struct told *window = find(&b, OBS_WINDOW, A, 0);
    ck_assert(window && find(&b, OBS_FINISHED, A, 0) == window + 1);
    ck_assert_double_eq(window[1].seen.steps_done, 128);
    ck_assert_int_eq((int)watch_stats(b.watch).n_bad, 0);
    ck_assert(!watch_job(b.watch, A, &(struct watch_job){ 0 }));
    box_close(&b);
}
END_TEST

START_TEST(what_changes_all_the_time_is_told_without_a_measurement)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    for (int i = 0; i < 8; i++) {
        start(&b, B, 0, 0);
        pass(&b, 9);
        end(&b, B, NOTICE_STOPPED, NULL);
        pass(&b, 9);
    }
    const struct told *t = find(&b, OBS_WINDOW, A, 1);
    ck_assert(t);
    ck_assert_double_eq(t->seen.from_s, t->seen.time_s);
    ck_assert_double_gt(b.world.ledger.state.jobs[A]->steps_done, 400);
    ck_assert_int_eq((int)watch_stats(b.watch).n_windows, 0);
    box_close(&b);
}
END_TEST

START_TEST(a_job_that_never_reports_runs_on_and_its_speed_is_unknown)
{
    struct box b;
    struct watch_job j;

    box_open(&b);
    start(&b, A, 0, 0);
    pass(&b, 100);
    ck_assert(watch_job(b.watch, A, &j));
    ck_assert(!j.has_reported && isnan(j.speed) && isnan(j.heard_s));
    ck_assert_double_eq(j.watts, 100);
    ck_assert_int_eq(b.n_told, 1);
    box_close(&b);
}
END_TEST

START_TEST(a_clock_that_is_set_changes_no_length)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 30);
    double before_j = energy_total_j(b.energy);
    wall_s += 1e5;
    pass(&b, 5);
    ck_assert_double_lt(energy_total_j(b.energy) - before_j, 15 * 303);
    wall_s -= 2e5;
    pass(&b, 75);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, A, i)), 5, 1e-3);
    ck_assert_double_eq_tol(find(&b, OBS_WINDOW, A, 1)->seen.time_s, wall_s, 60);
    ck_assert_double_lt(energy_total_j(b.energy), 111 * 303);
    box_close(&b);
}
END_TEST

START_TEST(what_is_not_listened_to_does_not_spoil_a_window)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 30);
    executor.run[B]++;
    notice_put(
        &(struct run_notice){ .kind = NOTICE_STARTED, .job = B, .n_gpus = 1, .gpus = gpu_sets[0] });
    for (int i = 0; i < 20; i++) {    // nobody listens, and A is slower beside B
        stopwatch_s++;
        wall_s++;
        b.steps[A] += 1;
        report(&b, A, "");
        turn(&b);
    }
    listen_all(&b);
    ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, A, 0)), 5, 1e-6);
    ck_assert_int_eq(find(&b, OBS_WINDOW, A, 0)->seen.n_neighbours, 0);
    box_close(&b);
}
END_TEST

START_TEST(news_stay_until_they_are_safe)
{
    struct box b;
    struct observation once, twice;

    box_open(&b);
    struct sensor s = watch_sensor(b.watch);
    ck_assert_int_eq(s.next(s.self, &once), 0);
    executor.run[A]++;
    notice_put(&(struct run_notice){
        .kind = NOTICE_STARTED, .job = A, .n_gpus = 1, .gpus = gpu_sets[1], .limit_w = 150 });
    ck_assert_int_eq(s.next(s.self, &once), 1);
    ck_assert_int_eq(s.next(s.self, &twice), 1);
    ck_assert_int_eq(twice.kind, OBS_STARTED);
    ck_assert_int_eq(twice.limit_w, 150);
    ck_assert_ptr_eq(once.gpus, twice.gpus);
    ck_assert_int_eq(executor.first, 0);
    s.done(s.self);
    ck_assert_int_eq(executor.first, 1);
    ck_assert_int_eq(s.next(s.self, &once), 0);
    box_close(&b);
}
END_TEST

START_TEST(jobs_that_run_already_are_watched_from_the_start)
{
    struct box b;

    box_begin(&b, "start a 0\nstart b 0\n");
    executor.run[A] = executor.run[B] = 0;
    struct watch_setup s = setup_of(&b);
    box_watch(&b, &s);
    b.rate[A] = 4;
    pass(&b, 60);
    ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, A, 0)), 4, 1e-6);
    ck_assert_int_eq(find(&b, OBS_WINDOW, A, 0)->seen.neighbours[0], B);
    box_close(&b);
}
END_TEST

START_TEST(a_move_begins_anew_elsewhere)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 30);
    start(&b, A, 1, 7);    // the next run
    ck_assert(find(&b, OBS_WINDOW, A, 0) && find(&b, OBS_STARTED, A, 1));
    ck_assert_int_eq(find(&b, OBS_WINDOW, A, 0)->gpu, 0);
    pass(&b, 50);
    ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, A, 1)), 7, 1e-6);
    ck_assert_int_eq(find(&b, OBS_WINDOW, A, 1)->gpu, 1);
    start(&b, B, 0, 1);    // where A was: nobody is beside it
    pass(&b, 50);
    ck_assert_int_eq(find(&b, OBS_WINDOW, B, 0)->seen.n_neighbours, 0);
    box_close(&b);
}
END_TEST

START_TEST(a_cancelled_job_leaves_though_nobody_says_so)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    start(&b, B, 0, 5);
    pass(&b, 30);
    world_add(&b.world, "cancel b\n");
    executor.is_busy[0] = true;
    const double before_j = energy_job_j(b.energy, B);
    pass(&b, 20);    // its grace: it still runs, and pays
    ck_assert(watch_job(b.watch, B, &(struct watch_job){ 0 }));
    ck_assert(!find(&b, OBS_WINDOW, A, 1) && !find(&b, OBS_WINDOW, B, 1));
    ck_assert_double_ge(energy_job_j(b.energy, B) - before_j, 15 * 15);    // half of idle, at least
    executor.is_busy[0] = false;
    executor.is_gone[B] = true;
    b.rate[B] = 0;
    b.rate[A] = 9;
    pass(&b, 2);
    ck_assert(!watch_job(b.watch, B, &(struct watch_job){ 0 }));
    pass(&b, 50);
    ck_assert_int_eq(find(&b, OBS_WINDOW, A, 0)->seen.n_neighbours, 1);
    ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, A, 0)), 5, .3);
    ck_assert_double_eq_tol(speed_of(find_alone(&b, A)), 9, 1e-6);
    box_close(&b);
}
END_TEST

START_TEST(what_is_taken_back_does_not_end_the_watch)
{
    struct box b;
    struct watch_job j;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 5);
    world_add(&b.world, "stop a\n");    // as after a commit that failed: the start comes again
    pass(&b, 5);
    ck_assert(watch_job(b.watch, A, &j));
    world_add(&b.world, "start a 0\n");
    pass(&b, 60);
    ck_assert_double_eq_tol(speed_of(find(&b, OBS_WINDOW, A, 0)), 5, 1e-6);
    box_close(&b);
}
END_TEST

START_TEST(while_somebody_leaves_nothing_is_measured_there)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 5);
    start(&b, B, 0, 5);
    pass(&b, 25);
    executor.is_busy[0] = true;    // B is asked to go, and saves
    b.rate[B] = 0;
    b.rate[A] = 7;
    pass(&b, 60);
    const struct told *beside = find(&b, OBS_WINDOW, A, 0);
    ck_assert(beside && beside->seen.n_neighbours == 1);
    ck_assert_double_eq_tol(speed_of(beside), 5, .5);
    ck_assert_double_gt(b.world.ledger.state.jobs[A]->steps_done, 300);    // told all the same
    struct watch_job j;
    ck_assert(watch_job(b.watch, A, &j));
    ck_assert_double_eq_tol(j.speed, 7, .1);    // and shown
    executor.is_busy[0] = false;
    end(&b, B, NOTICE_STOPPED, NULL);
    b.rate[A] = 9;
    pass(&b, 60);
    ck_assert_int_eq((int)watch_stats(b.watch).n_windows, 3);    // one of B, before
    const struct told *alone = find_alone(&b, A);
    ck_assert_double_eq_tol(speed_of(alone), 9, 1e-6);
    ck_assert_double_ge(alone->seen.from_s, 1e6 + 25 + 60 + 10);
    box_close(&b);
}
END_TEST

START_TEST(jobs_that_change_places_may_be_many_for_a_moment)
{
    struct box b;

    box_begin(&b, "job d w\njob e w\njob f w\n");
    struct watch_setup s = setup_of(&b);
    box_watch(&b, &s);
    const int who[] = { A, B, 3, 4, 5 };
    for (int i = 0; i < 5; i++) {
        notice_put(&(struct run_notice){
            .kind = NOTICE_STARTED, .job = who[i], .n_gpus = 1, .gpus = gpu_sets[0] });
    }
    listen_all(&b);
    double watts = 0;
    for (int i = 0; i < 5; i++) {
        struct watch_job j;

        ck_assert(watch_job(b.watch, who[i], &j));
        watts += j.watts;
    }
    ck_assert_double_eq_tol(watts, watch_gpu_w(b.watch, 0), 1e-9);
    pass(&b, 10);
    box_close(&b);
}
END_TEST

/* ---- reports ---- */

START_TEST(an_older_checkpoint_is_believed)
{
    struct box b;
    const struct job *a;

    box_open(&b);
    start(&b, A, 0, 5);
    pass(&b, 50);
    end(&b, A, NOTICE_STOPPED, NULL);
    a = b.world.ledger.state.jobs[A];
    ck_assert_double_eq(a->steps_done, 250);
    pass(&b, 1);
    b.steps[A] = 10;    // where its checkpoint was
    start(&b, A, 0, 4);
    pass(&b, 50);
    ck_assert_double_ge(a->steps_done, 10 + 4 * 35);
    ck_assert_double_le(a->steps_done, 10 + 4 * 50);
    const double before = a->steps_done;
    b.steps[A] = 20;    // and not a second time
    pass(&b, 20);
    ck_assert_double_ge(a->steps_done, before);
    box_close(&b);
}
END_TEST

START_TEST(only_the_run_itself_is_heard)
{
    struct box b;
    struct watch_job j;
    char text[128];

    box_open(&b);
    start(&b, A, 0, 0);
    executor.run[B] = 0;    // has begun, but nobody has heard of it yet
    report(&b, B, "");
    turn(&b);
    ck_assert_int_eq((int)watch_stats(b.watch).n_bad, 0);
    send_text(&b, "hello");
    snprintf(text, sizeof text, "gogh1 %d 0 %s 9", A, secret_of(B));    // another's secret
    send_text(&b, text);
    snprintf(text, sizeof text, "gogh1 %d 1 %s 9", A, secret_of(A));    // a run that is not there
    send_text(&b, text);
    snprintf(text, sizeof text, "gogh1 99 0 %s 9", secret_of(A));
    send_text(&b, text);
    turn(&b);
    ck_assert_int_eq((int)watch_stats(b.watch).n_bad, 4);
    ck_assert_int_eq((int)watch_stats(b.watch).n_reports, 5);
    watch_job(b.watch, A, &j);
    ck_assert(!j.has_reported);
    b.steps[A] = 9;
    report(&b, A, "");
    b.steps[A] = 8;    // overtaken
    report(&b, A, "");
    turn(&b);
    watch_job(b.watch, A, &j);
    ck_assert(j.has_reported && j.steps == 9 && j.heard_s == wall_s);
    ck_assert_int_eq((int)watch_stats(b.watch).n_bad, 4);
    box_close(&b);
}
END_TEST

static const struct {
    const char *name;
    enum notice_kind kind;
    const char *reason, *keys;
    enum observation_kind want;
} ends[] = {
    { "out of memory, then a failure", NOTICE_FAILED, "exit 1", " unfit=1", OBS_UNFIT },
    { "out of memory, and tried again", NOTICE_STOPPED, "exit 1", " unfit=1", OBS_UNFIT },
    { "out of memory, and it went on without the rest", NOTICE_STOPPED, NULL, NULL, OBS_STOPPED },
    { "out of memory, and it got by", NOTICE_FINISHED, NULL, " unfit=1", OBS_FINISHED },
    { "a failure of another kind", NOTICE_FAILED, "exit 1", "", OBS_FAILED },
};

START_TEST(out_of_memory_is_no_failure)
{
    struct box b;

    box_open(&b);
    start(&b, A, 0, 0);
    start(&b, B, 0, 0);
    report(&b, A, ends[_i].keys ? ends[_i].keys : " unfit=1");
    if (!ends[_i].keys) {
        b.steps[A]++;
        report(&b, A, "");
    }
    turn(&b);
    end(&b, B, NOTICE_STOPPED, NULL);    // it was beside it when it happened
    end(&b, A, ends[_i].kind, ends[_i].reason);
    const struct told *t = find(&b, ends[_i].want, A, 0);
    ck_assert_msg(t, "%s", ends[_i].name);
    if (ends[_i].want == OBS_UNFIT) {
        ck_assert_int_eq(t->seen.n_neighbours, 1);
        ck_assert_int_eq(t->seen.neighbours[0], B);
        ck_assert_int_eq(b.world.ledger.state.jobs[A]->state, JOB_WAITING);
    }
    box_close(&b);
}
END_TEST

START_TEST(reports_come_by_udp_too)
{
    struct box b;
    struct watch_job j;
    char text[128];
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    s.udp = "127.0.0.1:0";
    box_watch(&b, &s);
    start(&b, A, 0, 0);
    to.sin_port = htons((uint16_t)watch_udp_port(b.watch));
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(text, sizeof text, "gogh1 %d 0 %s 12\n", A, secret_of(A));
    ck_assert(sendto(fd, text, strlen(text), 0, (struct sockaddr *)&to, sizeof to) > 0);
    for (int i = 0; i < 500 && watch_stats(b.watch).n_reports == 0; i++)
        ck_assert_int_eq(loop_turn(b.loop, .01, NULL), 0);
    ck_assert(watch_job(b.watch, A, &j) && j.steps == 12);
    close(fd);
    box_close(&b);
}
END_TEST

START_TEST(the_socket_is_made_anew_but_no_file_is_removed)
{
    struct box b;
    struct stat st;
    struct err e = { 0 };

    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s", b.path);
    int old = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_eq(bind(old, (struct sockaddr *)&at, sizeof at), 0);
    close(old);
    box_watch(&b, &s);    // a socket that was left behind
    ck_assert_int_eq(stat(b.path, &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 0777), 0666);
    watch_destroy(b.watch);
    fclose(fopen(b.path, "w"));
    ck_assert_int_eq(watch_create(&s, &b.watch, &e), -EEXIST);
    ck_assert(strstr(e.text, b.path) && access(b.path, F_OK) == 0);
    unlink(b.path);
    s.udp = "nonsense";
    ck_assert_int_eq(watch_create(&s, &b.watch, &e), -EINVAL);
    b.watch = NULL;
    box_close(&b);
}
END_TEST

/* ---- power ---- */

START_TEST(what_is_down_draws_nothing)
{
    struct box b;

    box_begin(&b, "node n2 v100\ndown n2\n");
    struct watch_setup s = setup_of(&b);
    s.model_w = _i ? model_w : NULL;
    box_watch(&b, &s);
    pass(&b, 20);
    ck_assert_double_eq(watch_gpu_w(b.watch, 3), 0);
    ck_assert_double_eq(energy_gpu_j(b.energy, 3), 0);
    ck_assert_double_eq(watch_gpu_w(b.watch, 0), _i ? 100 : 30);
    world_add(&b.world, "up n2\n");
    pass(&b, 6);
    ck_assert_double_eq(watch_gpu_w(b.watch, 3), _i ? 103 : 30);
    box_close(&b);
}
END_TEST

START_TEST(a_clock_that_was_set_is_noticed_by_whoever_asks)
{
    struct box b;

    box_open(&b);
    pass(&b, 10);
    ck_assert_double_eq(watch_now_s(b.watch), wall_s);
    wall_s += 1e5;
    struct row_usage sum = { 0 };
    ck_assert_int_eq(energy_take(b.energy, watch_now_s(b.watch), add_up, &sum), 0);
    ck_assert_double_le(sum.idle_j, 11 * 303);
    box_close(&b);
}
END_TEST

START_TEST(power_is_read_and_a_window_has_its_mean)
{
    struct box b;

    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    s.power = WATCH_DEVICES;
    box_watch(&b, &s);
    pass(&b, 6);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "nvml");
    ck_assert_str_eq(watch_power_source(b.watch, 1), "rocm");
    ck_assert_str_eq(watch_power_source(b.watch, 2), "model");
    ck_assert_double_eq(watch_gpu_w(b.watch, 0), 200);
    ck_assert_double_eq(watch_gpu_w(b.watch, 2), 102);
    start(&b, A, 0, 5);
    pass(&b, 60);
    ck_assert_double_eq_tol(find(&b, OBS_WINDOW, A, 0)->seen.watts, 200, 1e-9);
    box_close(&b);
}
END_TEST

START_TEST(devices_are_those_of_this_box)
{
    struct box b;

    box_begin(&b, "node n2 v100\n");
    struct watch_setup s = setup_of(&b);
    s.power = WATCH_DEVICES;
    s.node = 1;
    box_watch(&b, &s);
    pass(&b, 6);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "model");
    ck_assert_str_eq(watch_power_source(b.watch, 3), "nvml");
    ck_assert_double_eq(watch_gpu_w(b.watch, 3), 200);
    box_close(&b);
}
END_TEST

START_TEST(a_counter_of_joules_sees_what_a_glance_does_not)
{
    struct box b;
    double drawn_j[71];

    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    s.power = WATCH_DEVICES;
    drawn_j[0] = device_j[0] = 1e6;    // counts from here, see pass
    box_watch(&b, &s);
    start(&b, A, 0, 5);
    for (int i = 1; i <= 70; i++) {
        device_w[0] = 100 + 3 * i - (i % 5 == 1 ? 90 : 0);    // and readings are every 5 s
        drawn_j[i] = drawn_j[i - 1] + device_w[0];
        pass(&b, 1);
    }
    ck_assert_double_eq_tol(watch_gpu_w(b.watch, 0), 280, 10);
    const struct observation *o = &find(&b, OBS_WINDOW, A, 0)->seen;
    double from_j = drawn_j[(int)(o->from_s - 1e6)], to_j = drawn_j[(int)(o->time_s - 1e6)];
    ck_assert_double_eq_tol(o->watts, (to_j - from_j) / (o->time_s - o->from_s), 7);
    box_close(&b);
}
END_TEST

START_TEST(the_model_stands_in_for_a_device_that_fails)
{
    struct box b;

    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    s.power = WATCH_DEVICES;
    box_watch(&b, &s);
    pass(&b, 6);
    start(&b, A, 0, 5);
    device_w[0] = NAN;
    pass(&b, 9);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "nvml");    // not yet
    pass(&b, 40);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "model");
    ck_assert_double_eq(watch_gpu_w(b.watch, 0), 100);
    ck_assert_int_ge((int)watch_stats(b.watch).n_power_failures, 3);
    ck_assert(isnan(find(&b, OBS_WINDOW, A, 0)->seen.watts));
    device_w[0] = 120;
    pass(&b, 10);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "nvml");
    ck_assert_double_eq(watch_gpu_w(b.watch, 0), 120);
    pass(&b, 60);
    ck_assert(isnan(find(&b, OBS_WINDOW, A, 1)->seen.watts));    // part of it was not read
    ck_assert_double_eq_tol(find(&b, OBS_WINDOW, A, 2)->seen.watts, 120, 1e-9);
    box_close(&b);
}
END_TEST

START_TEST(a_driver_that_hangs_holds_nobody)
{
    struct box b;

    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    s.power = WATCH_DEVICES;
    box_watch(&b, &s);
    pass(&b, 6);
    ck_assert_str_eq(watch_power_source(b.watch, 1), "rocm");
    pthread_mutex_lock(&hang);
    for (int i = 0; i < 21; i++) {
        stopwatch_s++;
        wall_s++;
        turn(&b);
    }
    ck_assert_str_eq(watch_power_source(b.watch, 1), "model");
    pthread_mutex_unlock(&hang);
    loop_settle(b.loop, 600);
    ck_assert_str_eq(watch_power_source(b.watch, 1), "rocm");
    box_close(&b);
}
END_TEST

static const char dcgm_page[] = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"
                                "DCGM_FI_DEV_POWER_USAGE{gpu=\"7\",UUID=\"GPU-a\"} 61.5\n"
                                "DCGM_FI_DEV_POWER_USAGE{gpu=\"9\",UUID=\"GPU-b\"} 44\n"
                                "DCGM_FI_DEV_POWER_USAGE{gpu=\"2\",UUID=\"GPU-c\"} 33\n";

static const char cluster_page[] =
    "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",Hostname=\"n1.example.org\"} 61.5\n"
    "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",Hostname=\"n10\"} 1\n"
    "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",Hostname=\"n2\"} 44\n";

static const char *served;    // page

/* Answers until it is told to stop by the listening socket's end. */
static void *serve_dcgm(void *self)
{
    int fd;

    while ((fd = accept(*(int *)self, NULL, NULL)) >= 0) {
        char asked[1024];

        if (read(fd, asked, sizeof asked) > 0)
            ck_assert_int_gt(write(fd, served, strlen(served)), 0);
        close(fd);
    }
    return NULL;
}

struct exporter {
    pthread_t thread;
    int fd, port;
};

static void exporter_open(struct exporter *x, const char *page)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;

    served = page;
    x->fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(x->fd, (struct sockaddr *)&at, n), 0);
    ck_assert(listen(x->fd, 8) == 0 && getsockname(x->fd, (struct sockaddr *)&at, &n) == 0);
    x->port = ntohs(at.sin_port);
    pthread_create(&x->thread, NULL, serve_dcgm, &x->fd);
}

static void exporter_close(struct exporter *x)
{
    shutdown(x->fd, SHUT_RDWR);
    close(x->fd);
    pthread_join(x->thread, NULL);
}

static const struct {
    const char *name, *page, *path;
    double want_n1_w, want_n2_w;
} clusters[] = {
    { "one page for all nodes", cluster_page, "metrics", 61.5, 44 },
    { "a page for each node, which does not say whose it is",
      "HTTP/1.0 200 OK\r\n\r\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 7\n", "%h", 7, 7 },
};

START_TEST(gpus_of_a_cluster_are_known_by_their_nodes)
{
    struct exporter x;
    struct box b;
    char url[64];

    exporter_open(&x, clusters[_i].page);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", x.port, clusters[_i].path);
    box_begin(&b, "node n2 v100\n");
    struct watch_setup s = setup_of(&b);
    s.node = -1;
    s.devices = NULL;
    s.power = WATCH_DCGM;
    s.dcgm_url = url;
    box_watch(&b, &s);
    pass(&b, 6);
    ck_assert_double_eq(watch_gpu_w(b.watch, 0), clusters[_i].want_n1_w);
    ck_assert_double_eq(watch_gpu_w(b.watch, 3), clusters[_i].want_n2_w);
    ck_assert_str_eq(watch_power_source(b.watch, 1), "model");    // nobody tells of it
    exporter_close(&x);
    box_close(&b);
}
END_TEST

START_TEST(a_dcgm_exporter_is_asked)
{
    struct exporter x;
    struct box b;
    char url[64];

    exporter_open(&x, dcgm_page);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/metrics", x.port);
    box_begin(&b, "");
    struct watch_setup s = setup_of(&b);
    s.power = WATCH_DCGM;
    s.dcgm_url = url;
    box_watch(&b, &s);
    pass(&b, 6);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "dcgm");
    ck_assert_double_eq(watch_gpu_w(b.watch, 0), 61.5);    // by UUID
    ck_assert_double_eq(watch_gpu_w(b.watch, 1), 44);
    ck_assert_double_eq(watch_gpu_w(b.watch, 2), 33);    // by number
    exporter_close(&x);
    pass(&b, 21);
    ck_assert_str_eq(watch_power_source(b.watch, 0), "model");
    s.dcgm_url = NULL;
    ck_assert_int_eq(watch_create(&s, &(struct watch *){ NULL }, NULL), -EINVAL);
    box_close(&b);
}
END_TEST

START_TEST(a_shared_gpu_is_paid_for_by_work)
{
    struct box b;
    struct watch_job a, c;

    box_open(&b);
    start(&b, A, 0, 8);     // four fifths of what it does alone
    start(&b, B, 0, 16);    // two fifths
    pass(&b, 100);
    watch_job(b.watch, A, &a);
    watch_job(b.watch, B, &c);
    ck_assert_double_eq_tol(a.watts + c.watts, 100, 1e-9);
    ck_assert_double_eq_tol(a.watts, 15 + 70 * 2 / 3.0, 1e-6);
    ck_assert_double_eq_tol(energy_job_j(b.energy, A), 95 * a.watts, 700);
    double all_j = energy_gpu_j(b.energy, 0);
    ck_assert_double_eq_tol(energy_job_j(b.energy, A) + energy_job_j(b.energy, B), all_j,
                            1e-9 * all_j);
    box_close(&b);
}
END_TEST

START_TEST(a_gang_names_who_is_on_any_of_its_gpus)
{
    struct box b;

    box_open(&b);
    start(&b, C, 0, 5);    // GPUs 0 and 1
    start(&b, B, 1, 3);    // GPU 1
    pass(&b, 60);
    const struct told *t = find(&b, OBS_WINDOW, C, 0);
    ck_assert(t && t->seen.n_gpus == 2 && t->seen.n_neighbours == 1);
    ck_assert_int_eq(t->seen.neighbours[0], B);
    box_close(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("watch");
    TCase *t = tcase_create("watch");

    tcase_add_test(t, a_steady_job_is_told_every_report_s);
    tcase_add_test(t, a_neighbour_ends_the_window_and_is_named_in_the_next);
    tcase_add_test(t, the_last_window_comes_before_the_end);
    tcase_add_test(t, what_changes_all_the_time_is_told_without_a_measurement);
    tcase_add_test(t, a_job_that_never_reports_runs_on_and_its_speed_is_unknown);
    tcase_add_test(t, a_clock_that_is_set_changes_no_length);
    tcase_add_test(t, what_is_not_listened_to_does_not_spoil_a_window);
    tcase_add_test(t, news_stay_until_they_are_safe);
    tcase_add_test(t, jobs_that_run_already_are_watched_from_the_start);
    tcase_add_test(t, a_move_begins_anew_elsewhere);
    tcase_add_test(t, a_cancelled_job_leaves_though_nobody_says_so);
    tcase_add_test(t, what_is_taken_back_does_not_end_the_watch);
    tcase_add_test(t, while_somebody_leaves_nothing_is_measured_there);
    tcase_add_test(t, jobs_that_change_places_may_be_many_for_a_moment);
    tcase_add_test(t, an_older_checkpoint_is_believed);
    tcase_add_test(t, only_the_run_itself_is_heard);
    tcase_add_loop_test(t, out_of_memory_is_no_failure, 0, sizeof ends / sizeof *ends);
    tcase_add_test(t, reports_come_by_udp_too);
    tcase_add_test(t, the_socket_is_made_anew_but_no_file_is_removed);
    tcase_add_loop_test(t, what_is_down_draws_nothing, 0, 2);
    tcase_add_test(t, a_clock_that_was_set_is_noticed_by_whoever_asks);
    tcase_add_test(t, power_is_read_and_a_window_has_its_mean);
    tcase_add_test(t, devices_are_those_of_this_box);
    tcase_add_test(t, a_counter_of_joules_sees_what_a_glance_does_not);
    tcase_add_test(t, the_model_stands_in_for_a_device_that_fails);
    tcase_add_test(t, a_driver_that_hangs_holds_nobody);
    tcase_add_test(t, a_dcgm_exporter_is_asked);
    tcase_add_loop_test(t, gpus_of_a_cluster_are_known_by_their_nodes, 0,
                        sizeof clusters / sizeof *clusters);
    tcase_add_test(t, a_shared_gpu_is_paid_for_by_work);
    tcase_add_test(t, a_gang_names_who_is_on_any_of_its_gpus);
    suite_add_tcase(s, t);
    return suite_run(s);
}

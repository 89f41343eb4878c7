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
static struct device_use device_use[DEVICES];
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
    *out =
        (struct device_power){ .watts = device_w[i], .joules = device_j[i], .use = device_use[i] };
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
    struct served served;
    unsigned came;    // in all bins of it
};

static struct box {    // of the test
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
} box;

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
    (void)self;
    box.n_news++;
}

static struct watch_setup usual_setup(void)
{
    return (struct watch_setup){ .loop = box.loop,
                                 .clock = &box.clock,
                                 .state = &box.world.ledger.state,
                                 .catalog = &box.world.catalog,
                                 .executor = &fake_executor,
                                 .devices = (struct devices *)devices,
                                 .energy = box.energy,
                                 .socket = box.path,
                                 .power_s = 5,
                                 .warmup_s = 10,
                                 .report_s = 30,
                                 .model_w = model_w,
                                 .alone_speed = alone_speed };
}

static void box_watch(const struct watch_setup *s)
{
    struct err e = { 0 };

    ck_assert_msg(watch_create(s, &box.watch, &e) == 0, "%s", e.text);
    watch_on_news(box.watch, count_news, NULL);
}

/* Another watch, of a world that has more in it. */
static void box_watch_anew(const char *more, const struct watch_setup *s)
{
    watch_destroy(box.watch);
    world_add(&box.world, more);
    box_watch(s);
}

static void box_open(void)
{
    box = (struct box){ .clock = clock_real() };
    stopwatch_s = 1000;
    wall_s = 1e6;
    executor = (struct fake){ .run = { -1, -1, -1 } };
    for (int i = 0; i < DEVICES; i++) {
        device_w[i] = 200;
        device_j[i] = NAN;
    }
    world_init(&box.world, box_text);
    ck_assert_int_eq(loop_create(&box.loop, NULL), 0);
    box.energy = energy_create(&box.world.ledger.state, &box.world.catalog);
    box.dir = scratch_make();
    snprintf(box.path, sizeof box.path, "%s/reports", box.dir);
    box.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct watch_setup s = usual_setup();
    box_watch(&s);
}

static void box_close(void)
{
    watch_destroy(box.watch);
    loop_settle(box.loop, 1e9);
    loop_destroy(box.loop);
    energy_destroy(box.energy);
    close(box.fd);
    ck_assert(access(box.path, F_OK) != 0);
    scratch_remove(box.dir);
    world_release(&box.world);
}

FIXTURE(box_open, box_close)

static void send_text(const char *text)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    snprintf(to.sun_path, sizeof to.sun_path, "%s", box.path);
    ck_assert_int_eq(sendto(box.fd, text, strlen(text), 0, (struct sockaddr *)&to, sizeof to),
                     (ssize_t)strlen(text));
}

static void report(int job, const char *keys)
{
    char text[256];

    snprintf(text, sizeof text, "gogh1 %d %d %s %.0f%s", job, executor.run[job], secret_of(job),
             box.steps[job], keys);
    send_text(text);
}

static void turn(void)
{
    ck_assert_int_eq(loop_turn(box.loop, 0, NULL), 0);
}

/* What the sensor has to tell, taken in. */
static void listen_all(void)
{
    struct sensor s = watch_sensor(box.watch);
    struct observation o;
    struct finding f;

    while (s.next(s.self, &o) == 1) {
        ck_assert_int_lt(box.n_told, 64);
        struct told *t = &box.told[box.n_told++];
        *t = (struct told){ .seen = o, .gpu = o.n_gpus ? o.gpus[0] : -1 };
        monitor_read(&o, &box.world.ledger.state, &f);
        ck_assert_int_eq(f.has_served, o.kind == OBS_SERVED);
        if (f.has_served) {
            t->served = *f.served;
            for (int i = 0; i < f.served->n_bins; i++)
                t->came += f.served->counts[i];
        }
        if (f.has_event)
            world_apply(&box.world, &f.event);
        s.done(s.self);
    }
}

/* 'n' seconds go by; jobs with a rate say how far they are, and it is listened to. */
static void pass(int n)
{
    for (int i = 0; i < n; i++) {
        stopwatch_s++;
        wall_s++;
        for (int j = 0; j < JOBS; j++) {
            box.steps[j] += box.rate[j];
            device_j[j] += device_w[j];
            if (box.rate[j] > 0)
                report(j, "");
        }
        turn();
        loop_settle(box.loop, 1e9);
        listen_all();
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

static void start(int job, int gpu, double rate)
{
    executor.run[job]++;
    box.rate[job] = rate;
    notice_put(&(struct run_notice){
        .kind = NOTICE_STARTED, .job = job, .n_gpus = 1 + (job == C), .gpus = gpu_sets[gpu] });
    listen_all();
}

static void end(int job, enum notice_kind kind, const char *reason)
{
    box.rate[job] = 0;
    const struct job *j = box.world.ledger.state.jobs[job];
    notice_put(&(struct run_notice){ .kind = kind,
                                     .job = job,
                                     .n_gpus = j->n_held,
                                     .gpus = gpu_sets[j->gpus[0]],
                                     .reason = reason });
    listen_all();
}

/* The nth thing told of a kind, or NULL. */
static const struct told *find(enum observation_kind kind, int job, int nth)
{
    for (int i = 0; i < box.n_told; i++) {
        const struct observation *o = &box.told[i].seen;
        if (o->kind == kind && o->job == job && nth-- == 0)
            return &box.told[i];
    }
    return NULL;
}

/* The first measurement without a neighbour. */
static const struct told *find_alone(int job)
{
    for (int i = 0; i < box.n_told; i++) {
        const struct observation *o = &box.told[i].seen;
        if (o->kind == OBS_WINDOW && o->job == job && o->steps > 0 && o->n_neighbours == 0)
            return &box.told[i];
    }
    ck_abort_msg("job %d was never measured alone", job);
}

static double speed_of(const struct told *t)
{
    return t->seen.steps / (t->seen.time_s - t->seen.from_s);
}

/* ---- windows ---- */

TEST(a_steady_job_is_told_every_report_s)
{
    start(A, 0, 5);
    pass(110);
    ck_assert_int_eq(box.told[0].seen.kind, OBS_STARTED);
    for (int i = 0; i < 2; i++) {
        const struct told *t = find(OBS_WINDOW, A, i);
        ck_assert(t);
        ck_assert_double_eq_tol(speed_of(t), 5, 1e-6);
        ck_assert(t->seen.noise > 0 && t->seen.noise < .02);
        ck_assert(t->seen.from_s >= 1e6 + 10);
        ck_assert_double_eq_tol(t->seen.steps_done, 5 * (t->seen.time_s - 1e6), 1e-6);
        ck_assert_int_eq(t->gpu, 0);
        ck_assert_int_eq(t->seen.n_neighbours, 0);
        ck_assert(isnan(t->seen.watts));    // modelled: learning from that would be circular
    }
    ck_assert_int_eq((int)watch_stats(box.watch).n_windows, 3);
    ck_assert_double_eq(box.world.ledger.state.jobs[A]->pace, 5);
    ck_assert_int_gt(box.n_news, 2);
}

TEST(a_neighbour_ends_the_window_and_is_named_in_the_next)
{
    start(A, 0, 5);
    pass(30);
    start(B, 0, 3);
    const struct told *alone = find(OBS_WINDOW, A, 0);
    ck_assert(alone && find(OBS_STARTED, B, 0) == alone + 1);
    ck_assert_int_eq(alone->seen.n_neighbours, 0);
    box.rate[A] = 2;
    pass(60);
    const struct told *beside = find(OBS_WINDOW, A, 1);
    ck_assert(beside);
    ck_assert_double_eq_tol(speed_of(beside), 2, 1e-6);
    ck_assert_int_eq(beside->seen.n_neighbours, 1);
    ck_assert_int_eq(beside->seen.neighbours[0], B);
    ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, B, 0)), 3, 1e-6);
}

TEST(the_last_window_comes_before_the_end)
{
    start(A, 0, 5);
    pass(25);
    box.steps[A] = 128;
    report(A, "");    // its last words, in the same moment
    end(A, NOTICE_FINISHED, NULL);
    const struct told *window = find(OBS_WINDOW, A, 0);
    ck_assert(window && find(OBS_FINISHED, A, 0) == window + 1);
    ck_assert_double_eq(window[1].seen.steps_done, 128);
    ck_assert_int_eq((int)watch_stats(box.watch).n_bad, 0);
    ck_assert(!watch_job(box.watch, A, &(struct watch_job){ 0 }));
}

TEST(what_changes_all_the_time_is_told_without_a_measurement)
{
    start(A, 0, 5);
    for (int i = 0; i < 8; i++) {
        start(B, 0, 0);
        pass(9);
        end(B, NOTICE_STOPPED, NULL);
        pass(9);
    }
    const struct told *t = find(OBS_WINDOW, A, 1);
    ck_assert(t);
    ck_assert_double_eq(t->seen.from_s, t->seen.time_s);
    ck_assert_double_gt(box.world.ledger.state.jobs[A]->steps_done, 400);
    ck_assert_int_eq((int)watch_stats(box.watch).n_windows, 0);
}

TEST(a_job_that_never_reports_runs_on_and_its_speed_is_unknown)
{
    struct watch_job j;

    start(A, 0, 0);
    pass(100);
    ck_assert(watch_job(box.watch, A, &j));
    ck_assert(!j.has_reported && isnan(j.speed) && isnan(j.heard_s));
    ck_assert_double_eq(j.watts, 100);
    ck_assert_int_eq(box.n_told, 1);
}

TEST(a_clock_that_is_set_changes_no_length)
{
    start(A, 0, 5);
    pass(30);
    double before_j = energy_total_j(box.energy);
    wall_s += 1e5;
    pass(5);
    ck_assert_double_lt(energy_total_j(box.energy) - before_j, 15 * 303);
    wall_s -= 2e5;
    pass(75);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, A, i)), 5, 1e-3);
    ck_assert_double_eq_tol(find(OBS_WINDOW, A, 1)->seen.time_s, wall_s, 60);
    ck_assert_double_lt(energy_total_j(box.energy), 111 * 303);
}

TEST(what_is_not_listened_to_does_not_spoil_a_window)
{
    start(A, 0, 5);
    pass(30);
    executor.run[B]++;
    notice_put(
        &(struct run_notice){ .kind = NOTICE_STARTED, .job = B, .n_gpus = 1, .gpus = gpu_sets[0] });
    for (int i = 0; i < 20; i++) {    // nobody listens, and A is slower beside B
        stopwatch_s++;
        wall_s++;
        box.steps[A] += 1;
        report(A, "");
        turn();
    }
    listen_all();
    ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, A, 0)), 5, 1e-6);
    ck_assert_int_eq(find(OBS_WINDOW, A, 0)->seen.n_neighbours, 0);
}

TEST(news_stay_until_they_are_safe)
{
    struct observation once, twice;

    struct sensor s = watch_sensor(box.watch);
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
}

TEST(jobs_that_run_already_are_watched_from_the_start)
{
    executor.run[A] = executor.run[B] = 0;
    struct watch_setup s = usual_setup();
    box_watch_anew("start a 0\nstart b 0\n", &s);
    box.rate[A] = 4;
    pass(60);
    ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, A, 0)), 4, 1e-6);
    ck_assert_int_eq(find(OBS_WINDOW, A, 0)->seen.neighbours[0], B);
}

TEST(a_move_begins_anew_elsewhere)
{
    start(A, 0, 5);
    pass(30);
    start(A, 1, 7);    // the next run
    ck_assert(find(OBS_WINDOW, A, 0) && find(OBS_STARTED, A, 1));
    ck_assert_int_eq(find(OBS_WINDOW, A, 0)->gpu, 0);
    pass(50);
    ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, A, 1)), 7, 1e-6);
    ck_assert_int_eq(find(OBS_WINDOW, A, 1)->gpu, 1);
    start(B, 0, 1);    // where A was: nobody is beside it
    pass(50);
    ck_assert_int_eq(find(OBS_WINDOW, B, 0)->seen.n_neighbours, 0);
}

TEST(a_cancelled_job_leaves_though_nobody_says_so)
{
    start(A, 0, 5);
    start(B, 0, 5);
    pass(30);
    world_add(&box.world, "cancel b\n");
    executor.is_busy[0] = true;
    const double before_j = energy_job_j(box.energy, B);
    pass(20);    // its grace: it still runs, and pays
    ck_assert(watch_job(box.watch, B, &(struct watch_job){ 0 }));
    ck_assert(!find(OBS_WINDOW, A, 1) && !find(OBS_WINDOW, B, 1));
    ck_assert_double_ge(energy_job_j(box.energy, B) - before_j,
                        15 * 15);    // half of idle, at least
    executor.is_busy[0] = false;
    executor.is_gone[B] = true;
    box.rate[B] = 0;
    box.rate[A] = 9;
    pass(2);
    ck_assert(!watch_job(box.watch, B, &(struct watch_job){ 0 }));
    pass(50);
    ck_assert_int_eq(find(OBS_WINDOW, A, 0)->seen.n_neighbours, 1);
    ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, A, 0)), 5, .3);
    ck_assert_double_eq_tol(speed_of(find_alone(A)), 9, 1e-6);
}

TEST(what_is_taken_back_does_not_end_the_watch)
{
    struct watch_job j;

    start(A, 0, 5);
    pass(5);
    world_add(&box.world, "stop a\n");    // as after a commit that failed: the start comes again
    pass(5);
    ck_assert(watch_job(box.watch, A, &j));
    world_add(&box.world, "start a 0\n");
    pass(60);
    ck_assert_double_eq_tol(speed_of(find(OBS_WINDOW, A, 0)), 5, 1e-6);
}

TEST(while_somebody_leaves_nothing_is_measured_there)
{
    start(A, 0, 5);
    start(B, 0, 5);
    pass(25);
    executor.is_busy[0] = true;    // B is asked to go, and saves
    box.rate[B] = 0;
    box.rate[A] = 7;
    pass(60);
    const struct told *beside = find(OBS_WINDOW, A, 0);
    ck_assert(beside && beside->seen.n_neighbours == 1);
    ck_assert_double_eq_tol(speed_of(beside), 5, .5);
    ck_assert_double_gt(box.world.ledger.state.jobs[A]->steps_done, 300);    // told all the same
    struct watch_job j;
    ck_assert(watch_job(box.watch, A, &j));
    ck_assert_double_eq_tol(j.speed, 7, .1);    // and shown
    executor.is_busy[0] = false;
    end(B, NOTICE_STOPPED, NULL);
    box.rate[A] = 9;
    pass(60);
    ck_assert_int_eq((int)watch_stats(box.watch).n_windows, 3);    // one of B, before
    const struct told *alone = find_alone(A);
    ck_assert_double_eq_tol(speed_of(alone), 9, 1e-6);
    ck_assert_double_ge(alone->seen.from_s, 1e6 + 25 + 60 + 10);
}

TEST(jobs_that_change_places_may_be_many_for_a_moment)
{
    struct watch_setup s = usual_setup();
    box_watch_anew("job d w\njob e w\njob f w\n", &s);
    const int who[] = { A, B, 3, 4, 5 };
    for (int i = 0; i < 5; i++) {
        notice_put(&(struct run_notice){
            .kind = NOTICE_STARTED, .job = who[i], .n_gpus = 1, .gpus = gpu_sets[0] });
    }
    listen_all();
    double watts = 0;
    for (int i = 0; i < 5; i++) {
        struct watch_job j;

        ck_assert(watch_job(box.watch, who[i], &j));
        watts += j.watts;
    }
    ck_assert_double_eq_tol(watts, watch_gpu_w(box.watch, 0), 1e-9);
    pass(10);
}

/* ---- reports ---- */

TEST(an_older_checkpoint_is_believed)
{
    const struct job *a;

    start(A, 0, 5);
    pass(50);
    end(A, NOTICE_STOPPED, NULL);
    a = box.world.ledger.state.jobs[A];
    ck_assert_double_eq(a->steps_done, 250);
    pass(1);
    box.steps[A] = 10;    // where its checkpoint was
    start(A, 0, 4);
    pass(50);
    ck_assert_double_ge(a->steps_done, 10 + 4 * 35);
    ck_assert_double_le(a->steps_done, 10 + 4 * 50);
    const double before = a->steps_done;
    box.steps[A] = 20;    // and not a second time
    pass(20);
    ck_assert_double_ge(a->steps_done, before);
}

TEST(only_the_run_itself_is_heard)
{
    struct watch_job j;
    char text[128];

    start(A, 0, 0);
    executor.run[B] = 0;    // has begun, but nobody has heard of it yet
    report(B, "");
    turn();
    ck_assert_int_eq((int)watch_stats(box.watch).n_bad, 0);
    send_text("hello");
    snprintf(text, sizeof text, "gogh1 %d 0 %s 9", A, secret_of(B));    // another's secret
    send_text(text);
    snprintf(text, sizeof text, "gogh1 %d 1 %s 9", A, secret_of(A));    // a run that is not there
    send_text(text);
    snprintf(text, sizeof text, "gogh1 99 0 %s 9", secret_of(A));
    send_text(text);
    turn();
    ck_assert_int_eq((int)watch_stats(box.watch).n_bad, 4);
    ck_assert_int_eq((int)watch_stats(box.watch).n_reports, 5);
    watch_job(box.watch, A, &j);
    ck_assert(!j.has_reported);
    box.steps[A] = 9;
    report(A, "");
    box.steps[A] = 8;    // overtaken
    report(A, "");
    turn();
    watch_job(box.watch, A, &j);
    ck_assert(j.has_reported && j.steps == 9 && j.heard_s == wall_s);
    ck_assert_int_eq((int)watch_stats(box.watch).n_bad, 4);
}

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
    { "not built for it, whatever it says", NOTICE_INCAPABLE, "why", " unfit=1", OBS_INCAPABLE },
};

EACH(out_of_memory_is_no_failure, ends)
{
    start(A, 0, 0);
    start(B, 0, 0);
    report(A, ends[_i].keys ? ends[_i].keys : " unfit=1");
    if (!ends[_i].keys) {
        box.steps[A]++;
        report(A, "");
    }
    turn();
    end(B, NOTICE_STOPPED, NULL);    // it was beside it when it happened
    end(A, ends[_i].kind, ends[_i].reason);
    const struct told *t = find(ends[_i].want, A, 0);
    ck_assert_msg(t, "%s", ends[_i].name);
    if (ends[_i].want == OBS_INCAPABLE)
        ck_assert(t->seen.n_neighbours == 0 &&
                  box.world.ledger.state.jobs[A]->state == JOB_WAITING);
    if (ends[_i].want == OBS_UNFIT) {
        ck_assert_int_eq(t->seen.n_neighbours, 1);
        ck_assert_int_eq(t->seen.neighbours[0], B);
        ck_assert_int_eq(box.world.ledger.state.jobs[A]->state, JOB_WAITING);
    }
}

TEST(reports_come_by_udp_too)
{
    struct watch_job j;
    char text[128];
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct watch_setup s = usual_setup();
    s.udp = "127.0.0.1:0";
    box_watch_anew("", &s);
    start(A, 0, 0);
    to.sin_port = htons((uint16_t)watch_udp_port(box.watch));
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(text, sizeof text, "gogh1 %d 0 %s 12\n", A, secret_of(A));
    ck_assert(sendto(fd, text, strlen(text), 0, (struct sockaddr *)&to, sizeof to) > 0);
    for (int i = 0; i < 30000 && watch_stats(box.watch).n_reports == 0; i++)
        ck_assert_int_eq(loop_turn(box.loop, .01, NULL), 0);
    ck_assert(watch_job(box.watch, A, &j) && j.steps == 12);
    close(fd);
}

TEST(the_socket_is_made_anew_but_no_file_is_removed)
{
    struct stat st;
    struct err e = { 0 };
    struct watch_setup s = usual_setup();
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s", box.path);
    watch_destroy(box.watch);
    int old = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_eq(bind(old, (struct sockaddr *)&at, sizeof at), 0);
    close(old);
    box_watch(&s);    // a socket that was left behind
    ck_assert_int_eq(stat(box.path, &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 0777), 0666);
    watch_destroy(box.watch);
    fclose(fopen(box.path, "w"));
    ck_assert_int_eq(watch_create(&s, &box.watch, &e), -EEXIST);
    ck_assert(strstr(e.text, box.path) && access(box.path, F_OK) == 0);
    unlink(box.path);
    s.udp = "nonsense";
    ck_assert_int_eq(watch_create(&s, &box.watch, &e), -EINVAL);
    box.watch = NULL;
}

/* ---- power ---- */

TIMES(what_is_down_draws_nothing, 2)
{
    struct watch_setup s = usual_setup();
    s.model_w = _i ? model_w : NULL;
    box_watch_anew("node n2 v100\ndown n2\n", &s);
    pass(20);
    ck_assert_double_eq(watch_gpu_w(box.watch, 3), 0);
    ck_assert_double_eq(energy_gpu_j(box.energy, 3), 0);
    ck_assert_double_eq(watch_gpu_w(box.watch, 0), _i ? 100 : 30);
    world_add(&box.world, "up n2\n");
    pass(6);
    ck_assert_double_eq(watch_gpu_w(box.watch, 3), _i ? 103 : 30);
}

TEST(a_clock_that_was_set_is_noticed_by_whoever_asks)
{
    pass(10);
    ck_assert_double_eq(watch_now_s(box.watch), wall_s);
    wall_s += 1e5;
    struct row_usage sum = { 0 };
    ck_assert_int_eq(energy_take(box.energy, watch_now_s(box.watch), add_up, &sum), 0);
    ck_assert_double_le(sum.idle_j, 11 * 303);
}

TEST(power_is_read_and_a_window_has_its_mean)
{
    struct watch_setup s = usual_setup();
    s.power = WATCH_DEVICES;
    box_watch_anew("", &s);
    pass(6);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "nvml");
    ck_assert_str_eq(watch_power_source(box.watch, 1), "rocm");
    ck_assert_str_eq(watch_power_source(box.watch, 2), "model");
    ck_assert_double_eq(watch_gpu_w(box.watch, 0), 200);
    ck_assert_double_eq(watch_gpu_w(box.watch, 2), 102);
    start(A, 0, 5);
    pass(60);
    ck_assert_double_eq_tol(find(OBS_WINDOW, A, 0)->seen.watts, 200, 1e-9);
}

/* Two readings in a window of ten seconds: what was before it does not count. */
TEST(a_window_says_how_busy_its_gpu_was)
{
    struct watch_setup s = usual_setup();
    s.power = WATCH_DEVICES;
    device_use[0] = (struct device_use){ 0.1, 0.1, 1e9 };
    box_watch_anew("", &s);
    start(A, 0, 5);
    pass(4);
    device_use[0] = (struct device_use){ 0.75, 0.5, 8e9 };
    pass(60);
    const struct observation *o = &find(OBS_WINDOW, A, 0)->seen;
    ck_assert_int_ge(o->n_uses, 2);
    ck_assert_double_eq_tol(o->use.gpu, 0.75, 1e-9);
    ck_assert_double_eq_tol(o->use.mem_bytes, 8e9, 1);
    device_use[0].mem = NAN;
    pass(180);
    ck_assert_int_eq(find(OBS_WINDOW, A, 2)->seen.n_uses, 0);
}

TEST(devices_are_those_of_this_box)
{
    struct watch_setup s = usual_setup();
    s.power = WATCH_DEVICES;
    s.node = 1;
    box_watch_anew("node n2 v100\n", &s);
    pass(6);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "model");
    ck_assert_str_eq(watch_power_source(box.watch, 3), "nvml");
    ck_assert_double_eq(watch_gpu_w(box.watch, 3), 200);
}

TEST(a_counter_of_joules_sees_what_a_glance_does_not)
{
    double drawn_j[71];
    struct watch_setup s = usual_setup();
    s.power = WATCH_DEVICES;
    drawn_j[0] = device_j[0] = 1e6;    // counts from here, see pass
    box_watch_anew("", &s);
    start(A, 0, 5);
    for (int i = 1; i <= 70; i++) {
        device_w[0] = 100 + 3 * i - (i % 5 == 1 ? 90 : 0);    // and readings are every 5 s
        drawn_j[i] = drawn_j[i - 1] + device_w[0];
        pass(1);
    }
    ck_assert_double_eq_tol(watch_gpu_w(box.watch, 0), 280, 10);
    const struct observation *o = &find(OBS_WINDOW, A, 0)->seen;
    double from_j = drawn_j[(int)(o->from_s - 1e6)], to_j = drawn_j[(int)(o->time_s - 1e6)];
    ck_assert_double_eq_tol(o->watts, (to_j - from_j) / (o->time_s - o->from_s), 7);
}

TEST(the_model_stands_in_for_a_device_that_fails)
{
    struct watch_setup s = usual_setup();
    s.power = WATCH_DEVICES;
    box_watch_anew("", &s);
    pass(6);
    start(A, 0, 5);
    device_w[0] = NAN;
    pass(9);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "nvml");    // not yet
    pass(40);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "model");
    ck_assert_double_eq(watch_gpu_w(box.watch, 0), 100);
    ck_assert_int_ge((int)watch_stats(box.watch).n_power_failures, 3);
    ck_assert(isnan(find(OBS_WINDOW, A, 0)->seen.watts));
    device_w[0] = 120;
    pass(10);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "nvml");
    ck_assert_double_eq(watch_gpu_w(box.watch, 0), 120);
    pass(60);
    ck_assert(isnan(find(OBS_WINDOW, A, 1)->seen.watts));    // part of it was not read
    ck_assert_double_eq_tol(find(OBS_WINDOW, A, 2)->seen.watts, 120, 1e-9);
}

TEST(a_driver_that_hangs_holds_nobody)
{
    struct watch_setup s = usual_setup();
    s.power = WATCH_DEVICES;
    box_watch_anew("", &s);
    pass(6);
    ck_assert_str_eq(watch_power_source(box.watch, 1), "rocm");
    pthread_mutex_lock(&hang);
    for (int i = 0; i < 21; i++) {
        stopwatch_s++;
        wall_s++;
        turn();
    }
    ck_assert_str_eq(watch_power_source(box.watch, 1), "model");
    pthread_mutex_unlock(&hang);
    loop_settle(box.loop, 1e9);
    ck_assert_str_eq(watch_power_source(box.watch, 1), "rocm");
}

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

EACH(gpus_of_a_cluster_are_known_by_their_nodes, clusters)
{
    struct exporter x;
    char url[64];

    exporter_open(&x, clusters[_i].page);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", x.port, clusters[_i].path);
    struct watch_setup s = usual_setup();
    s.node = -1;
    s.devices = NULL;
    s.power = WATCH_DCGM;
    s.dcgm_url = url;
    box_watch_anew("node n2 v100\n", &s);
    pass(6);
    ck_assert_double_eq(watch_gpu_w(box.watch, 0), clusters[_i].want_n1_w);
    ck_assert_double_eq(watch_gpu_w(box.watch, 3), clusters[_i].want_n2_w);
    ck_assert_str_eq(watch_power_source(box.watch, 1), "model");    // nobody tells of it
    exporter_close(&x);
}

TEST(a_dcgm_exporter_is_asked)
{
    struct exporter x;
    char url[64];

    exporter_open(&x, dcgm_page);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/metrics", x.port);
    struct watch_setup s = usual_setup();
    s.power = WATCH_DCGM;
    s.dcgm_url = url;
    box_watch_anew("", &s);
    pass(6);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "dcgm");
    ck_assert_double_eq(watch_gpu_w(box.watch, 0), 61.5);    // by UUID
    ck_assert_double_eq(watch_gpu_w(box.watch, 1), 44);
    ck_assert_double_eq(watch_gpu_w(box.watch, 2), 33);    // by number
    exporter_close(&x);
    pass(21);
    ck_assert_str_eq(watch_power_source(box.watch, 0), "model");
    s.dcgm_url = NULL;
    ck_assert_int_eq(watch_create(&s, &(struct watch *){ NULL }, NULL), -EINVAL);
}

TEST(a_shared_gpu_is_paid_for_by_work)
{
    struct watch_job a, c;

    start(A, 0, 8);     // four fifths of what it does alone
    start(B, 0, 16);    // two fifths
    pass(100);
    watch_job(box.watch, A, &a);
    watch_job(box.watch, B, &c);
    ck_assert_double_eq_tol(a.watts + c.watts, 100, 1e-9);
    ck_assert_double_eq_tol(a.watts, 15 + 70 * 2 / 3.0, 1e-6);
    ck_assert_double_eq_tol(energy_job_j(box.energy, A), 95 * a.watts, 700);
    double all_j = energy_gpu_j(box.energy, 0);
    ck_assert_double_eq_tol(energy_job_j(box.energy, A) + energy_job_j(box.energy, B), all_j,
                            1e-9 * all_j);
}

TEST(a_gang_names_who_is_on_any_of_its_gpus)
{
    start(C, 0, 5);    // GPUs 0 and 1
    start(B, 1, 3);    // GPU 1
    pass(60);
    const struct told *t = find(OBS_WINDOW, C, 0);
    ck_assert(t && t->seen.n_gpus == 2 && t->seen.n_neighbours == 1);
    ck_assert_int_eq(t->seen.neighbours[0], B);
}

/* ---- servers ---- */

/* A second goes by, and the job says so. */
static void serve(int job, double steps, const char *keys)
{
    box.steps[job] += steps;
    report(job, keys);
    pass(1);
}

TEST(a_server_is_told_once_a_second_and_its_bins_join)
{
    start(A, 0, 0);
    serve(A, 0, " ready=1 late=0 q=0 arr=250:z4");
    serve(A, 10, " late=1 q=2 arr=250:3,3,3,3");
    report(A, " late=1 q=2");    // many a second are told as one
    report(A, " late=2 q=2");
    serve(A, 5, " late=3 q=0 arr=250:z3,3");
    pass(5);
    const struct told *first = find(OBS_SERVED, A, 0), *second = find(OBS_SERVED, A, 1),
                      *third = find(OBS_SERVED, A, 2);
    ck_assert_ptr_nonnull(third);
    ck_assert_ptr_null(find(OBS_SERVED, A, 3));
    ck_assert(first->served.is_ready && third->served.is_ready);
    ck_assert(first->served.n_requests == 0 && first->came == 0 && first->served.n_bins == 4);
    ck_assert(second->served.n_requests == 10 && second->served.n_late == 1 && second->came == 12);
    ck_assert(third->served.n_requests == 5 && third->served.n_late == 2 && third->came == 3);
    ck_assert(third->served.n_queued == 0 && isnan(third->served.n_batches));
    ck_assert_double_eq_tol(second->served.from_s, first->served.to_s, 1e-6);
    ck_assert_double_eq_tol(third->served.from_s, second->served.to_s, 1e-6);
    ck_assert_double_eq_tol(third->served.to_s, 1e6 + 3, 1e-6);
}

TEST(what_a_server_said_last_is_told_before_its_end)
{
    start(A, 0, 0);
    serve(A, 0, " ready=1 late=0");
    box.steps[A] = 7;
    report(A, " late=2");
    end(A, NOTICE_STOPPED, NULL);
    const struct told *last = find(OBS_SERVED, A, 1), *stop = find(OBS_STOPPED, A, 0);
    ck_assert(last && stop && last < stop && last->served.n_requests == 7);
    start(A, 0, 0);    // another run: nothing is remembered
    serve(A, 0, " q=0");
    ck_assert(find(OBS_SERVED, A, 2) && !find(OBS_SERVED, A, 2)->served.is_ready);
}

TEST(bins_that_are_none_make_the_report_bad)
{
    struct watch_job j;

    start(A, 0, 0);
    serve(A, 4, " arr=25:1,,2");
    ck_assert_int_eq((int)watch_stats(box.watch).n_bad, 1);
    watch_job(box.watch, A, &j);
    ck_assert(!j.has_reported && !find(OBS_SERVED, A, 0));
}

TEST(a_server_that_lies_is_told_as_such)
{
    start(A, 0, 0);
    serve(A, 0, " ready=1 late=0");
    serve(A, 5, " late=6");
    const struct told *t = find(OBS_SERVED, A, 1);
    ck_assert(t && t->served.is_false && isnan(t->served.n_requests) && t->served.is_ready);
    ck_assert_int_eq((int)watch_stats(box.watch).n_false, 1);
}

/* As many as the socket takes; how many that were. */
static int flood(int job, int n)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    char text[256];
    int sent = 0;

    snprintf(to.sun_path, sizeof to.sun_path, "%s", box.path);
    const int len = snprintf(text, sizeof text, "gogh1 %d %d %s 5 ready=1 arr=1:z500", job,
                             executor.run[job], secret_of(job));
    while (sent < n &&
           sendto(box.fd, text, (size_t)len, 0, (struct sockaddr *)&to, sizeof to) == len)
        sent++;
    return sent;
}

TEST(a_flood_costs_nobody_else_anything)
{
    struct watch_job j;
    const struct told *t;

    start(A, 0, 0);
    start(B, 1, 0);
    for (int i = 0; i < 2000 && watch_stats(box.watch).n_floods == 0; i++) {
        flood(A, 10);
        turn();
    }
    ck_assert_int_eq((int)watch_stats(box.watch).n_floods, 1);
    turn();
    const uint64_t n_before = watch_stats(box.watch).n_reports;
    ck_assert_int_eq(flood(A, 5000), 5000);    // nobody reads, and yet there is room:
    box.steps[B] = 9;
    report(B, "");
    turn();
    watch_job(box.watch, B, &j);
    ck_assert(j.has_reported && j.steps == 9);
    ck_assert_int_eq((int)(watch_stats(box.watch).n_reports - n_before), 1);    // and the one
    pass(2);
    for (int i = 0; (t = find(OBS_SERVED, A, i)) != NULL && !t->served.is_flooding; i++)
        ;
    ck_assert_ptr_nonnull(t);
    pass(12);    // then it is heard again
    box.steps[A] = 11;
    report(A, "");
    turn();
    watch_job(box.watch, A, &j);
    ck_assert(j.steps == 11);
    pass(1);
    const struct served *last = &box.told[box.n_told - 1].served;
    ck_assert(!last->is_flooding && !(last->n_requests > 0));    // counted anew
}

TEST(bins_of_too_many_reports_are_not_looked_at)
{
    start(A, 0, 0);
    for (int i = 0; i < 30; i++) {
        box.steps[A]++;
        report(A, " arr=1:1,,2");
        turn();
    }
    struct watch_job j;
    ck_assert_int_eq((int)watch_stats(box.watch).n_bad, 20);
    watch_job(box.watch, A, &j);
    ck_assert(j.steps == 30);    // how far it is counts all the same
}

TEST(what_somebody_else_saw_a_server_do_is_told)
{
    const struct served seen = { .is_ready = true, .from_s = 999, .to_s = 1000, .n_requests = 3 };

    ck_assert(!watch_served(box.watch, A, &seen));    // does not run
    start(A, 0, 0);
    const int n_news = box.n_news;
    ck_assert(watch_served(box.watch, A, &seen));
    ck_assert_int_eq(box.n_news, n_news + 1);
    ck_assert(!watch_served(box.watch, A, &seen));    // the first was not heard yet
    listen_all();
    const struct told *t = find(OBS_SERVED, A, 0);
    ck_assert(t && t->served.n_requests == 3 && !find(OBS_SERVED, A, 1));
    ck_assert_double_eq_tol(t->served.to_s, 1e6, 1e-6);
    ck_assert(watch_served(box.watch, A, &seen));
    listen_all();
    report(A, " ready=1");    // that it is there says nothing of requests,
    turn();
    pass(1);
    ck_assert(watch_served(box.watch, A, &seen));
    listen_all();
    box.steps[A] = 1;    // but of one that counts them only that is told
    report(A, " late=0");
    turn();
    pass(1);
    ck_assert(!watch_served(box.watch, A, &seen));
}

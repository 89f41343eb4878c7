/* stage.h - a box with a real loop, real keepers and a state that hears every notice. */
#ifndef TESTS_UNIT_ACT_LOCAL_STAGE_H
#define TESTS_UNIT_ACT_LOCAL_STAGE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "act/runs.h"
#include "act/local/local.h"
#include "act/local/proc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "catalog/cluster/job.h"
#include "unit/support.h"
#include "unit/suite.h"

#define PATIENCE_S 300.0    // nothing here takes a second; a busy machine with sanitizers may

struct stage {
    struct world w;
    struct loop *loop;
    struct clock clock;
    struct devices *devices;
    struct local *local;
    struct executor x;
    char *dir;    // a scratch directory; runs are in "runs"
    char runs[256];
    const char *keeper;
    double grace_s;
    int node;
    unsigned uid, gid;    // of jobs
    bool uses_mps;
    int n_mps_up, n_mps_down;    // times that somebody said so
    bool is_deaf;                // notices stay where they are
    bool is_lossy;               // they are heard, and then the disk has none of it
    bool is_unsafe;              // the disk has it, and nobody says so
    bool has_slept;
    char heard[4000];
    struct loop_timer tick;
    bool (*is_so)(struct stage *s);
    const char *text;    // for is_so
    double until_s;
};

static inline bool stage_find(struct stage *s, int job, struct run_info *out)
{
    return executor_find(&s->x, job, out);
}

/* ---- hearing ---- */

static inline void note(struct stage *s, const struct run_notice *n)
{
    static const char *const kinds[] = { "started", "stopped", "finished", "failed", "incapable" };
    const size_t size = sizeof s->heard;
    size_t at = strlen(s->heard);

    at += (size_t)snprintf(s->heard + at, size - at, "%s %d.%d", kinds[n->kind], n->job, n->run);
    for (int i = 0; i < n->n_gpus && n->kind == NOTICE_STARTED; i++)
        at += (size_t)snprintf(s->heard + at, size - at, "%s%d", i ? "," : " on ", n->gpus[i]);
    if (n->limit_w && n->kind == NOTICE_STARTED)
        at += (size_t)snprintf(s->heard + at, size - at, " at %d W", n->limit_w);
    if (n->is_move)
        at += (size_t)snprintf(s->heard + at, size - at, " moved");
    if (n->reason)
        at += (size_t)snprintf(s->heard + at, size - at, ": %s", n->reason);
    snprintf(s->heard + at, size - at, "\n");
}

static inline void apply(struct stage *s, const struct run_notice *n)
{
    static const enum event_kind kinds[] = { EVENT_JOB_STARTED, EVENT_JOB_STOPPED,
                                             EVENT_JOB_FINISHED, EVENT_JOB_FAILED,
                                             EVENT_JOB_STOPPED };
    const struct event ev = { .kind = kinds[n->kind],
                              .time_s = n->time_s,
                              .job = n->job,
                              .gpus = n->gpus,
                              .n_gpus = n->n_gpus,
                              .limit_w = n->limit_w,
                              .reason = n->reason };

    world_apply(&s->w, &ev);
}

static inline void stage_hear(void *self)
{
    struct stage *s = self;
    struct run_notice n;

    while (!s->is_deaf && s->x.next(s->x.self, &n)) {
        note(s, &n);
        if (!s->is_lossy)
            apply(s, &n);
        s->x.done(s->x.self);
    }
    if (!s->is_lossy && !s->is_unsafe)
        executor_committed(&s->x, true);
}

/* ---- waiting ---- */

static inline void stage_tick(void *self)
{
    struct stage *s = self;

    if (s->is_so(s) || clock_stopwatch_s() > s->until_s)
        loop_stop(s->loop);
    else
        loop_timer_set(&s->tick, 0.003);
}

static inline void stage_until(struct stage *s, bool (*is_so)(struct stage *s), const char *text)
{
    struct err e = { 0 };

    s->is_so = is_so;
    s->text = text;
    s->until_s = clock_stopwatch_s() + PATIENCE_S;
    loop_timer_set(&s->tick, 0);
    ck_assert_int_eq(loop_run(s->loop, &e), 0);
    ck_assert_msg(is_so(s), "waited in vain for '%s'; heard '%s'", text ? text : "", s->heard);
}

static inline bool has_heard(struct stage *s)
{
    return strstr(s->heard, s->text) != NULL;
}

static inline void until_heard(struct stage *s, const char *text)
{
    stage_until(s, has_heard, text);
}

static inline bool is_idle(struct stage *s)
{
    return local_n_under_way(s->local) == 0;
}

/* What is in a file of the scratch directory; "" where there is none. */
static inline const char *content(struct stage *s, const char *name)
{
    static char text[8192];
    char path[600];
    FILE *f;

    snprintf(path, sizeof path, "%s%s%s", *name == '/' ? "" : s->dir, *name == '/' ? "" : "/",
             name);
    f = fopen(path, "re");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* "FILE TEXT": the file holds the text. */
static inline bool has_written(struct stage *s)
{
    const char *blank = strchr(s->text, ' ');
    char name[100];

    snprintf(name, sizeof name, "%.*s", (int)(blank - s->text), s->text);
    return strstr(content(s, name), blank + 1) != NULL;
}

static inline void until_written(struct stage *s, const char *file_text)
{
    stage_until(s, has_written, file_text);
}

/* Nobody to wait for. Keepers that ended while the executor was away are children of this test only
 * because it plays both daemons.
 */
static inline bool has_no_children(struct stage *s)
{
    siginfo_t i;

    while (s->has_slept && waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    return waitid(P_ALL, 0, &i, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

/* ---- life ---- */

static inline void stage_hear_mps(void *self, bool is_up)
{
    struct stage *s = self;

    s->n_mps_up += is_up;
    s->n_mps_down += !is_up;
}

static inline int stage_try(struct stage *s, struct err *e)
{
    const struct local_setup setup = { .loop = s->loop,
                                       .clock = &s->clock,
                                       .state = &s->w.ledger.state,
                                       .catalog = &s->w.catalog,
                                       .devices = s->devices,
                                       .run_dir = s->runs,
                                       .keeper = s->keeper,
                                       .reports = "unix:/nowhere",
                                       .grace_s = s->grace_s,
                                       .uses_mps = s->uses_mps,
                                       .on_mps = stage_hear_mps,
                                       .mps_self = s,
                                       .node = s->node };
    return local_create(&setup, &s->local, e);
}

static inline void stage_wake(struct stage *s)
{
    struct err e = { 0 };
    int rc = stage_try(s, &e);

    ck_assert_msg(rc == 0, "%s", e.text);
    s->x = local_executor(s->local);
    s->x.on_news(s->x.self, stage_hear, s);
}

static inline void stage_sleep(struct stage *s)
{
    local_destroy(s->local);
    s->local = NULL;
    s->has_slept = true;
}

/* Four GPUs, jobs a, b and c (two GPUs), and a server d of an hour. */
static inline void stage_open_with(struct stage *s, struct devices *devices)
{
    struct err e = { 0 };

    *s = (struct stage){ .clock = clock_real(), .grace_s = 20, .devices = devices };
    s->uid = (unsigned)geteuid();
    s->gid = (unsigned)getegid();
    s->keeper = getenv("GOGH_KEEPER");
    ck_assert_msg(s->keeper, "set GOGH_KEEPER to the keeper's program");
    log_set_level(LOG_ERROR);
    world_init(&s->w, "type v100\nworkload w batch=8\nnode n v100 v100 v100 v100\n"
                      "job a w\njob b w\njob c w gpus=2\njob d w rate=1 duration=3600\n");
    s->dir = scratch_make();
    snprintf(s->runs, sizeof s->runs, "%s/runs", s->dir);
    ck_assert_int_eq(chmod(s->dir, 0711), 0);
    ck_assert_int_eq(loop_create(&s->loop, &e), 0);
    loop_timer_init(&s->tick, s->loop, "test", stage_tick, s);
    stage_wake(s);
}

static inline void stage_open(struct stage *s)
{
    stage_open_with(s, NULL);
}

/* Is there a process whose environment names our directory? */
static inline bool is_anybody_left(struct stage *s)
{
    char text[4096], path[64];
    struct dirent *entry;
    DIR *d = opendir("/proc");
    bool is_left = false;

    while (!is_left && (entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "/proc/%.20s/environ", entry->d_name);
        FILE *f = fopen(path, "re");
        const size_t n = f ? fread(text, 1, sizeof text, f) : 0;

        is_left = n > 0 && memmem(text, n, s->runs, strlen(s->runs)) != NULL;
        if (f)
            fclose(f);
    }
    closedir(d);
    return is_left;
}

static inline bool is_nobody_left(struct stage *s)
{
    return !is_anybody_left(s);
}

static inline void stage_close(struct stage *s)
{
    if (!s->local)
        stage_wake(s);
    for (int job = 0; job < s->w.ledger.state.n_jobs; job++)
        s->x.cancel(s->x.self, job, NULL);
    stage_until(s, is_idle, "idle at the end");
    stage_until(s, has_no_children, "no zombies");
    stage_until(s, is_nobody_left, "nobody left");
    stage_sleep(s);
    loop_settle(s->loop, 1e9);    // what was under way frees what it has
    loop_destroy(s->loop);
    world_release(&s->w);
    scratch_remove(s->dir);
}

/* ---- orders ---- */

/* Job 'job' runs 'argv' (JSON) in the scratch directory; 'more' are further keys. */
static inline void set_argv(struct stage *s, int job, const char *argv, const char *more)
{
    struct state *st = &s->w.ledger.state;

    st->jobs[job]->spec.command = arena_printf(
        &st->arena,
        "{\"argv\":%s,\"env\":{\"PATH\":\"/usr/bin:/bin\"},\"uid\":%u,\"gid\":%u%s%s%s%s}", argv,
        s->uid, s->gid, strstr(more, "\"cwd\"") ? "" : ",\"cwd\":\"",
        strstr(more, "\"cwd\"") ? "" : s->dir, strstr(more, "\"cwd\"") ? "" : "\"", more);
}

/* A script without double quotes or backslashes. */
static inline void set_script(struct stage *s, int job, const char *script, const char *more)
{
    char argv[2000];

    snprintf(argv, sizeof argv, "[\"/bin/sh\",\"-c\",\"%s\"]", script);
    set_argv(s, job, argv, more);
}

static inline int start_at(struct stage *s, int job, int gpu, int limit_w, struct err *e)
{
    const int gpus[] = { gpu, gpu + 1 };
    const int n = s->w.ledger.state.jobs[job]->spec.n_gpus;

    return s->x.start(s->x.self, &(struct placement){ job, n, gpus, limit_w }, e);
}

static inline void start(struct stage *s, int job, int gpu)
{
    struct err e = { 0 };
    int rc = start_at(s, job, gpu, 0, &e);

    ck_assert_msg(rc == 0, "%s", e.text);
}

static inline int move_to(struct stage *s, int job, int gpu, int limit_w)
{
    return s->x.move(s->x.self, &(struct placement){ job, 1, &gpu, limit_w }, NULL);
}

#endif

/* store.c - a store and runs as a daemon leaves them, of any size, in no time. */
#include "bench/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "act/local/command.h"
#include "act/local/proc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/cluster/cluster.h"
#include "daemon/service/recover.h"

/* Events in one transaction. */
#define GROUP 4096

/* Three types, so that GPUs are not all alike; jobs may run on the type they have only, so that no
 * plan has a reason to move them.
 */
static const char *const types[] = { "a100", "v100", "p100", "t4", "k80", "h100" };
enum { N_TYPES = 3 };    // unless more are asked for

static const char *const models[] = { "resnet50", "bert-base", "gpt2", "vit-base" };
enum { N_MODELS = 4, N_BATCHES = 8 };

/* Processes are started on this box alone: all GPUs are of one node. */
const char *serve_node(struct arena *a, const struct serve_content *c)
{
    const int n_types = c->n_types ? c->n_types : N_TYPES;
    const char *line = "node box";

    for (int t = 0; t < n_types; t++)
        line = arena_printf(a, "%s %s:%d", line, types[t], (c->n_gpus + t) / n_types);
    return arena_printf(a, "%s\n", line);
}

void serve_secret(int job, char out[SERVE_SECRET_SIZE])
{
    snprintf(out, SERVE_SECRET_SIZE, "%032x", (unsigned)job + 0x5eed0000U);
}

/* ---- the store ---- */

struct store_fill {
    const struct serve_content *content;
    struct arena arena;
    struct recovered to;
    double now_s;
    int workloads[N_MODELS * N_BATCHES];
    char command[512];
    int n_added;    // events in the open group
};

static int add(struct store_fill *f, const struct event *ev, struct err *e)
{
    int rc = f->n_added == 0 ? ledger_begin(&f->to.ledger, e) : 0;

    if (rc == 0)
        rc = ledger_add(&f->to.ledger, ev, e);
    if (rc == 0 && ++f->n_added == GROUP) {
        f->n_added = 0;
        rc = ledger_commit(&f->to.ledger, e);
    }
    return rc;
}

static int add_workloads(struct store_fill *f, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < N_MODELS * N_BATCHES && rc == 0; i++) {
        const int batch = 8 + 8 * (i / N_MODELS);
        struct workload w;
        rc = workload_builtin(&f->to.catalog.arena, models[i % N_MODELS], batch, &w, e);
        if (rc == 0)
            rc = catalog_add_workload(&f->to.catalog, &w, &f->workloads[i], e);
    }
    return rc;
}

static int add_job(struct store_fill *f, int id, int gpu, struct err *e)
{
    const struct gpu *g = &f->to.ledger.state.gpus[gpu];
    char name[32];
    struct job_spec spec = {
        .name = name,
        .owner = "bench",
        .kind = JOB_TRAINING,
        .workload = f->workloads[id % (N_MODELS * N_BATCHES)],
        .submit_s = f->now_s - 7200,
        .steps = 1e9,
        .min_throughput = id % 2 ? 1 : 0,
        .deadline_s = NAN,
        .n_gpus = 1,
        .max_gpus = 1,
        .is_exclusive = true,
        .allowed_types = (uint64_t)1 << g->type,
        .command = f->command,
    };
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = spec.submit_s, .spec = &spec };

    snprintf(name, sizeof name, "bench-%d", id);
    return add(f, &ev, e);
}

static int add_event(struct store_fill *f, enum event_kind kind, int job, int gpu, double ago_s,
                     struct err *e)
{
    struct event ev = { .kind = kind,
                        .time_s = f->now_s - ago_s,
                        .job = job,
                        .gpus = &gpu,
                        .n_gpus = 1,
                        .steps_done = kind == EVENT_JOB_FINISHED ? 1e9 : 0 };

    return add(f, &ev, e);
}

static int add_jobs(struct store_fill *f, struct err *e)
{
    const struct serve_content *c = f->content;
    const int n_before = c->n_ended + c->n_running;
    const int n = n_before + c->n_waiting + c->n_held;
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        const int gpu = (i < c->n_ended ? i : i - c->n_ended) % c->n_gpus;

        rc = add_job(f, i, gpu, e);
        if (rc == 0 && i < n_before)
            rc = add_event(f, EVENT_JOB_STARTED, i, gpu, 3600, e);
        if (rc == 0 && i < c->n_ended)
            rc = add_event(f, EVENT_JOB_FINISHED, i, gpu, 1800, e);
        if (rc == 0 && i >= n_before + c->n_waiting)
            rc = add_event(f, EVENT_JOB_HELD, i, gpu, 1800, e);
    }
    return rc;
}

static int drain(struct store_fill *f, struct err *e)
{
    const struct state *s = &f->to.ledger.state;
    int rc = 0;

    for (int i = 0; i < s->n_nodes && rc == 0; i++) {
        struct event ev = { .kind = EVENT_NODE_CHANGED,
                            .time_s = f->now_s,
                            .node = s->nodes[i].name,
                            .node_state = NODE_DRAINED };
        rc = add(f, &ev, e);
    }
    return rc;
}

static int fill(struct store_fill *f, struct err *e)
{
    const char *node = serve_node(&f->arena, f->content);
    struct cluster cluster;
    int rc = cluster_parse(&f->arena, "bench", node, strlen(node), &cluster, e);

    if (rc == 0)
        rc = cluster_install(&cluster, &f->to.catalog, &f->to.ledger, f->now_s, e);
    if (rc == 0)
        rc = ledger_begin(&f->to.ledger, e);
    if (rc == 0)
        rc = add_workloads(f, e);
    if (rc == 0)
        rc = add_jobs(f, e);
    if (rc == 0 && f->content->is_drained)
        rc = drain(f, e);
    return rc < 0 ? rc : ledger_commit(&f->to.ledger, e);
}

/* ---- runs ---- */

static int write_file(int dir, const char *name, const char *text, struct err *e)
{
    const ssize_t n = (ssize_t)strlen(text);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -EIO;

    if (fd >= 0)
        close(fd);
    return rc < 0 ? err_set(e, EIO, "a run's '%s' cannot be written", name) : 0;
}

static int write_run(struct store_fill *f, const char *runs, int job, const char *status,
                     struct err *e)
{
    const struct job *j = f->to.ledger.state.jobs[job];
    const char *path = arena_printf(&f->arena, "%s/%d.0", runs, job);
    char secret[SERVE_SECRET_SIZE];
    struct launch o = { .job = job, .submit_s = j->spec.submit_s, .gpus = j->gpus, .n_gpus = 1 };
    int rc = command_parse(&f->arena, f->command, &o.command, e);
    int dir = mkdir(path, 0711) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    serve_secret(job, secret);
    o.secret = secret;
    o.command.grace_s = 30;
    if (dir < 0)
        return err_set(e, errno, "%s: %s", path, strerror(errno));
    if (rc == 0)
        rc = write_file(dir, "order", launch_encode(&f->arena, &o), e);
    if (rc == 0)
        rc = write_file(dir, "status", status, e);
    close(dir);
    arena_reset(&f->arena);
    return rc;
}

static int write_runs(struct store_fill *f, const char *dir, pid_t keeper, struct err *e)
{
    char boot[BOOT_ID_SIZE], status[256], runs[4096];
    struct proc p;
    int rc = 0;

    snprintf(runs, sizeof runs, "%s/runs", dir);
    if (mkdir(runs, 0711) != 0)
        return err_set(e, errno, "%s: %s", runs, strerror(errno));
    if (f->content->n_running == 0)
        return 0;
    if (proc_read(keeper, &p) < 0)
        return err_set(e, ESRCH, "the stand-in is gone");
    proc_boot_id(boot);
    snprintf(status, sizeof status, "taken %d %llu %s\nstarted %d %llu %.3f\n", (int)keeper,
             (unsigned long long)p.start, boot, (int)keeper, (unsigned long long)p.start,
             f->now_s - 3600);
    for (int i = 0; i < f->content->n_running && rc == 0; i++)
        rc = write_run(f, runs, f->content->n_ended + i, status, e);
    return rc;
}

int serve_fill(const char *dir, const struct serve_content *c, pid_t keeper, struct err *e)
{
    struct clock clock = clock_real();
    struct store_fill f = { .content = c, .now_s = clock_now_s(&clock) };

    arena_init(&f.arena);
    snprintf(f.command, sizeof f.command,
             "{\"argv\":[\"python3\",\"train.py\",\"--data\",\"/data/train\",\"--seed\",\"1\"],"
             "\"cwd\":\"/\",\"env\":{\"PATH\":\"/usr/bin:/bin\",\"HOME\":\"/\",\"LANG\":\"C\"},"
             "\"uid\":%u,\"gid\":%u}",
             (unsigned)geteuid(), (unsigned)getegid());
    int rc = recover_open(&f.to, arena_printf(&f.arena, "%s/gogh.db", dir), STORE_CREATE, e);
    if (rc == 0) {
        rc = fill(&f, e);
        if (rc == 0)
            rc = write_runs(&f, dir, keeper, e);
        recover_close(&f.to);
    }
    arena_release(&f.arena);
    return rc;
}

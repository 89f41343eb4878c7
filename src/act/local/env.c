/* A command becomes a launch: who, where, and the environment it runs in. */
#include "act/local/inner.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "base/clock.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"

#define VARIABLES_MAX 32    // that GOGH sets

const struct device *env_device(const struct local *l, int gpu)
{
    const int slot = l->setup.state->gpus[gpu].slot;

    if (!l->setup.devices || l->setup.state->gpus[gpu].node != l->setup.node ||
        slot >= devices_n(l->setup.devices))
        return NULL;
    const struct device *d = devices_get(l->setup.devices, slot);
    return d->maker == DEVICE_DECLARED ? NULL : d;
}

/* ---- what GOGH sets ---- */

enum { USUAL = 3 };    // of put_usual

struct env {
    struct arena *arena;
    char *set[VARIABLES_MAX];
    int n;
};

static void put(struct env *v, const char *name, const char *value)
{
    v->set[v->n++] = arena_printf(v->arena, "%s=%s", name, value);
}

static void put_long(struct env *v, const char *name, long value)
{
    put(v, name, arena_printf(v->arena, "%ld", value));
}

/* "0,2" of slots, or "GPU-...,GPU-..." of devices: a driver's numbers depend on its mood
 * (CUDA_DEVICE_ORDER), its UUIDs do not.
 */
static const char *devices_of(struct local *l, const struct gpu_set *at, bool is_slots)
{
    const char *list = "";

    for (int i = 0; i < at->n_gpus; i++) {
        const struct device *d = is_slots ? NULL : env_device(l, at->gpus[i]);
        const char *comma = i ? "," : "";

        if (d && d->uuid)
            list = arena_printf(&l->scratch, "%s%s%s", list, comma, d->uuid);
        else
            list = arena_printf(&l->scratch, "%s%s%d", list, comma,
                                d ? d->index : l->setup.state->gpus[at->gpus[i]].slot);
    }
    return list;
}

/* MPS serves one user at a time: clients of another wait until the first user's have gone. So only
 * its own user's jobs are told of it.
 */
static void put_devices(struct local *l, struct env *v, const struct gpu_set *at, long uid)
{
    const struct device *d = env_device(l, at->gpus[0]);
    const char *list = devices_of(l, at, false);

    if (!d || d->maker == DEVICE_NVIDIA)
        put(v, "CUDA_VISIBLE_DEVICES", list);
    if (!d || d->maker == DEVICE_AMD)
        put(v, "ROCR_VISIBLE_DEVICES", list);
    put(v, "GOGH_SLOTS", devices_of(l, at, true));
    if (d && d->maker == DEVICE_NVIDIA && l->has_mps && uid == (long)geteuid())
        put(v, "CUDA_MPS_PIPE_DIRECTORY", arena_printf(&l->scratch, "%s/mps/pipe", l->run_dir));
}

static void put_job(struct local *l, struct env *v, const struct launch *o)
{
    const struct job *j = l->setup.state->jobs[o->job];
    const struct workload *w = &l->setup.catalog->workloads[j->spec.workload];
    const struct gpu *g = &l->setup.state->gpus[o->gpus[0]];

    put_long(v, "GOGH_JOB", o->job);
    put(v, "GOGH_NAME", j->spec.name);
    put_long(v, "GOGH_RUN", o->run);
    put_long(v, "GOGH_RESTART", o->run);
    double steps =
        l->setup.steps_done ? l->setup.steps_done(l->setup.steps_self, (int)o->job) : j->steps_done;
    put(v, "GOGH_STEPS_DONE", arena_printf(&l->scratch, "%.15g", steps));
    put_long(v, "GOGH_GPUS", o->n_gpus);
    put(v, "GOGH_GPU_TYPE", l->setup.catalog->types[g->type].name);
    put(v, "GOGH_WORKLOAD", w->name);
    if (!isnan(w->batch))
        put(v, "GOGH_BATCH", arena_printf(&l->scratch, "%.15g", w->batch));
    if (l->setup.reports)
        put(v, "GOGH_REPORTS", l->setup.reports);
    put(v, "GOGH_SECRET", o->secret);
    put(v, "GOGH_DIR", dir_path(&l->scratch, l, (int)o->job, (int)o->run));
}

static bool is_ours(const char *entry, const struct env *v)
{
    return command_sets(v->set, v->n, entry) || strncmp(entry, "GOGH_", 5) == 0;
}

/* What every program expects, where the submission said nothing of it. */
static void put_usual(struct local *l, const struct launch *o, char **all, int *n)
{
    const char *owner = l->setup.state->jobs[o->job]->spec.owner;
    const char *usual[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin",
        owner ? arena_printf(&l->scratch, "USER=%s", owner) : NULL,
        owner ? arena_printf(&l->scratch, "LOGNAME=%s", owner) : NULL,
    };

    for (int u = 0; u < USUAL; u++)
        if (usual[u] && !command_sets(o->command.env, o->command.n_env, usual[u]))
            all[(*n)++] = arena_strdup(&l->scratch, usual[u]);
}

/* The command's environment, and over it what GOGH sets. */
static void put_env(struct local *l, struct launch *o, const struct gpu_set *at)
{
    struct command *c = &o->command;
    struct env v = { .arena = &l->scratch };
    char **all = ARENA_ARRAY(&l->scratch, char *, (size_t)c->n_env + VARIABLES_MAX + USUAL + 1);
    int n = 0;

    put_job(l, &v, o);
    v.n += command_replica_env(&l->scratch, l->setup.state, &l->setup.state->jobs[o->job]->spec,
                               v.set + v.n);
    put_devices(l, &v, at, c->uid);
    put_usual(l, o, all, &n);
    for (int i = 0; i < c->n_env; i++)
        if (!is_ours(c->env[i], &v))
            all[n++] = c->env[i];
    for (int i = 0; i < v.n; i++)
        all[n++] = v.set[i];
    c->env = all;
    c->n_env = n;
}

/* ---- the launch ---- */

static int put_secret(struct local *l, struct launch *o, struct err *e)
{
    unsigned char bytes[16];
    char *text = arena_alloc(&l->scratch, 33);

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set(e, EIO, "the kernel gives no random bytes for a secret");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    o->secret = text;
    return 0;
}

/* What is left of a server's time, which counts from its first start. */
static double finish_after_s(const struct local *l, const struct job *j)
{
    double left_s = j->spec.duration_s;

    if (j->spec.kind != JOB_INFERENCE || !(left_s > 0))
        return 0;
    if (!isnan(j->started_s))
        left_s -= clock_now_s(l->setup.clock) - j->started_s;
    return fmin(fmax(left_s, 0.001), 1e9);
}

int env_order(struct local *l, const struct run *r, int number, const struct gpu_set *at,
              struct launch *out, struct err *e)
{
    const struct job *j = l->setup.state->jobs[r->job];
    int rc;

    *out = (struct launch){ .job = r->job, .run = number, .submit_s = j->spec.submit_s };
    rc = command_of_job(&l->scratch, &j->spec, &out->command, e);
    if (rc == 0)
        rc = local_may_run_as((uid_t)out->command.uid, e);
    if (rc == 0)
        rc = put_secret(l, out, e);
    if (rc < 0)
        return rc;
    out->gpus = at->gpus;
    out->n_gpus = at->n_gpus;
    out->limit_w = at->limit_w;
    out->n_failures = r->n_failures;
    out->is_move = r->is_move;
    out->finish_after_s = finish_after_s(l, j);
    if (isnan(out->command.grace_s))
        out->command.grace_s = l->setup.grace_s;
    put_env(l, out, at);
    out->command.out = command_file(&l->scratch, out->command.out, j, number, "%");
    out->command.err = command_file(&l->scratch, out->command.err, j, number, "%");
    return 0;
}

/* A command becomes a script and a request to submit it as its owner; what its reports carry. */
#include "act/slurm/inner.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "act/local/command.h"
#include "act/driver/wire.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"

#define SCRIPT_MAX ((size_t)1 << 20)    // a line of the driver's has at most that

void submit_learn(struct slurm *x, struct managed *m)
{
    struct command c;

    m->checkpoint_signal = SIGTERM;
    m->grace_s = (double)NAN;
    m->uid = NO_UID;
    if (command_of_job(&x->scratch, &managed_job(x, m)->spec, &c, NULL) < 0)
        return;
    m->uid = (uid_t)c.uid;
    m->checkpoint_signal = c.checkpoint_signal;
    m->grace_s = c.grace_s;
    m->retries = (int)c.retries;
}

/* ---- secrets of reports: what a job of sbatch brought, or made from the store's own key ---- */

/* A job that came by sbatch brought its own, which its command keeps. */
static bool brought_secret(const struct job_spec *spec, char out[RUN_SECRET_BYTES + 1])
{
    json_t *command = spec->command ? json_loads(spec->command, 0, NULL) : NULL;
    json_t *env = json_object_get(command, "env");
    const char *text = json_string_value(json_object_get(env, "GOGH_SECRET"));
    const bool is_there = text && strlen(text) == RUN_SECRET_BYTES;

    if (is_there)
        memcpy(out, text, RUN_SECRET_BYTES + 1);
    json_decref(command);
    return is_there;
}

const char *slurm_secret(struct slurm *x, int job)
{
    const struct job_spec *spec = &x->setup.state->jobs[job]->spec;
    char digest[65];

    if (!x->setup.key)
        return NULL;
    if (slurm_is_users(spec))
        return brought_secret(spec, x->secret) ? x->secret : NULL;
    struct {
        unsigned char key[16];
        double submit_s;
        int64_t job;
    } from = { .submit_s = spec->submit_s, .job = job };
    memcpy(from.key, x->setup.key, sizeof from.key);
    file_digest(&from, sizeof from, digest);
    memcpy(x->secret, digest, RUN_SECRET_BYTES);
    x->secret[RUN_SECRET_BYTES] = '\0';
    return x->secret;
}

/* ---- writing ---- */

static void put_quoted(struct buf *b, const char *text)
{
    (void)buf_puts(b, "'");
    for (; *text; text++) {
        if (*text == '\'')
            (void)buf_puts(b, "'\\''");
        else
            (void)buf_append(b, text, 1);
    }
    (void)buf_puts(b, "'");
}

/* Nothing is interpreted: a shell's only part is to become the program. */
static const char *script_of(struct arena *a, const struct command *c)
{
    struct buf b;

    buf_init(&b, 4 * SCRIPT_MAX);
    (void)buf_puts(&b, "#!/bin/sh\nexec");
    for (int i = 0; i < c->n_argv; i++) {
        (void)buf_puts(&b, " ");
        put_quoted(&b, c->argv[i]);
    }
    (void)buf_puts(&b, "\n");
    return buf_keep(&b, a);
}

static void put_variable(struct slurm *x, struct buf *b, const char *name, const char *value)
{
    if (value)
        wire_put(b, "env", arena_printf(&x->scratch, "%s=%s", name, value));
}

/* It stays where it was planned, so that the GPU's type can be told, too. */
static void put_replica(struct slurm *x, const struct job *j, struct buf *b)
{
    const struct state *st = x->setup.state;
    char *env[REPLICA_ENV_MAX];
    const int n = command_replica_env(&x->scratch, st, &j->spec, env);

    for (int i = 0; i < n; i++)
        wire_put(b, "env", env[i]);
    if (n > 0)
        put_variable(x, b, "GOGH_GPU_TYPE",
                     x->setup.catalog->types[st->gpus[j->spec.gpu].type].name);
}

/* Not GOGH_RUN: it changes with every run, and Slurm tells it (SLURM_RESTART_COUNT). */
static void put_env(struct slurm *x, const struct job *j, const struct command *c, struct buf *b)
{
    const struct workload *m = &x->setup.catalog->workloads[j->spec.workload];
    const char *secret = slurm_secret(x, j->id);
    struct arena *a = &x->scratch;

    for (int i = 0; i < c->n_env; i++)
        if (strncmp(c->env[i], "GOGH_", 5) != 0)
            wire_put(b, "env", c->env[i]);
    if (!command_sets(c->env, c->n_env, "PATH="))
        put_variable(x, b, "PATH", "/usr/local/bin:/usr/bin:/bin");
    if (!command_sets(c->env, c->n_env, "USER="))
        put_variable(x, b, "USER", j->spec.owner);
    if (!command_sets(c->env, c->n_env, "LOGNAME="))
        put_variable(x, b, "LOGNAME", j->spec.owner);
    put_variable(x, b, "GOGH_JOB", arena_printf(a, "%d", j->id));
    put_variable(x, b, "GOGH_NAME", j->spec.name);
    put_variable(x, b, "GOGH_GPUS", arena_printf(a, "%d", j->spec.n_gpus));
    put_variable(x, b, "GOGH_WORKLOAD", m->name);
    put_variable(x, b, "GOGH_BATCH", isnan(m->batch) ? NULL : arena_printf(a, "%.15g", m->batch));
    put_variable(x, b, "GOGH_REPORTS", x->setup.reports);
    put_variable(x, b, "GOGH_SECRET", secret);
    put_replica(x, j, b);
}

int submit_check(struct slurm *x, const struct managed *m, struct command *out, struct err *e)
{
    size_t n = 0;
    int rc;

    arena_reset(&x->scratch);
    rc = command_of_job(&x->scratch, &managed_job(x, m)->spec, out, e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < out->n_argv; i++)
        n += 4 * strlen(out->argv[i]);
    for (int i = 0; i < out->n_env; i++)
        n += 3 * strlen(out->env[i]);
    if (n > SCRIPT_MAX / 2)
        return err_set(e, E2BIG,
                       "its command and environment are too large for Slurm; put them "
                       "into a script");
    return 0;
}

void submit_put(struct slurm *x, const struct managed *m, const struct command *c, struct buf *b)
{
    const struct job *j = managed_job(x, m);

    wire_put(b, "token", place_token(x, m->job));
    wire_put_long(b, "uid", c->uid);
    wire_put_long(b, "gid", c->gid);
    wire_put(b, "name", j->spec.name);
    wire_put(b, "partition", x->setup.partition);
    wire_put(b, "script", script_of(&x->scratch, c));
    wire_put(b, "cwd", c->cwd);    // not said: the driver takes its owner's home
    // in Slurm's words a '%' is "%%", and runs of a job share one file
    wire_put(b, "out", command_file(&x->scratch, c->out, j, 0, "%%"));
    wire_put(b, "err", command_file(&x->scratch, c->err, j, 0, "%%"));
    wire_put(b, "comment", arena_printf(&x->scratch, "gogh: token=%s", place_token(x, m->job)));
    put_env(x, j, c, b);
    const long n_here = j->spec.n_gpus / (j->spec.n_nodes > 1 ? j->spec.n_nodes : 1);
    if (j->spec.n_nodes > 0)
        wire_put_long(b, "nodes", j->spec.n_nodes);
    if (c->cpus > 0)
        wire_put_long(b, "cpus", c->cpus * n_here);
    if (c->mem_mib > 0)
        wire_put_long(b, "mem_mib", c->mem_mib * n_here);
    if (c->timeout_s > 0)
        wire_put_long(b, "minutes", (long)ceil(c->timeout_s / 60));
}

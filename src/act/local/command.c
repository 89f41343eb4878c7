#include "act/local/command.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "catalog/cluster/state.h"

#define TEXT_MAX ((size_t)128 << 10)    // of one argument or variable: MAX_ARG_STRLEN of Linux
#define TIME_MAX_S 1e9                  // some thirty years: longer is a mistake
#define GRACE_MAX_S 3600.0              // a GPU that somebody leaves serves nobody meanwhile

/* ---- reading ---- */

static int want(struct err *e, const char *key, const char *what)
{
    return err_set(e, EINVAL, "command: '%s' must be %s", key, what);
}

static const json_t *get(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_null(v) ? NULL : v;
}

static int read_text(struct arena *a, const json_t *o, const char *key, const char **out,
                     struct err *e)
{
    const json_t *v = get(o, key);

    *out = NULL;
    if (!v)
        return 0;
    if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) >= PATH_MAX)
        return want(e, key, "a text of 1 to 4095 bytes");
    *out = arena_strdup(a, json_string_value(v));
    return 0;
}

static int read_long(const json_t *o, const char *key, long low, long high, long *out,
                     struct err *e)
{
    const json_t *v = get(o, key);

    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high)
        return err_set(e, EINVAL, "command: '%s' must be a whole number from %ld to %ld", key, low,
                       high);
    *out = (long)json_integer_value(v);
    return 0;
}

static int read_seconds(const json_t *o, const char *key, double *out, struct err *e)
{
    const json_t *v = get(o, key);

    if (!v)
        return 0;
    if (!json_is_number(v) || !(json_number_value(v) >= 0) || json_number_value(v) > TIME_MAX_S)
        return want(e, key, "a number of seconds, 0 to 1e9");
    *out = json_number_value(v);
    return 0;
}

static int read_argv(struct arena *a, const json_t *o, struct command *c, struct err *e)
{
    const json_t *list = get(o, "argv");
    const json_t *v;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) == 0)
        return want(e, "argv", "a list of texts: the program and its arguments");
    c->argv = ARENA_ARRAY(a, char *, json_array_size(list) + 1);
    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v) || json_string_length(v) >= TEXT_MAX)
            return want(e, "argv", "a list of texts, each of less than 128 KiB");
        c->argv[c->n_argv++] = arena_strdup(a, json_string_value(v));
    }
    return *c->argv[0] ? 0 : want(e, "argv", "a list that begins with a program's name");
}

static int read_env(struct arena *a, json_t *o, struct command *c, struct err *e)
{
    json_t *list = json_object_get(o, "env");
    const char *key;
    json_t *v;

    if (json_is_null(list))
        list = NULL;
    if (list && !json_is_object(list))
        return want(e, "env", "an object of texts");
    c->env = ARENA_ARRAY(a, char *, json_object_size(list) + 1);
    json_object_foreach(list, key, v)
    {
        if (!*key || strchr(key, '='))
            return want(e, "env", "an object whose keys are names of variables, without '='");
        if (!json_is_string(v) || strlen(key) + json_string_length(v) + 2 > TEXT_MAX)
            return err_set(e, EINVAL, "command: 'env': '%.60s' must be a text of less than 128 KiB",
                           key);
        c->env[c->n_env++] = arena_printf(a, "%s=%s", key, json_string_value(v));
    }
    return 0;
}

static const struct {
    const char *name;
    int signo;
} signals[] = { { "TERM", SIGTERM }, { "USR1", SIGUSR1 }, { "none", 0 } };

static int read_signal(struct arena *a, const json_t *o, struct command *c, struct err *e)
{
    const char *word = NULL;
    int rc = read_text(a, o, "checkpoint_signal", &word, e);

    c->checkpoint_signal = SIGTERM;
    if (rc < 0 || !word)
        return rc;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(word, signals[i].name) == 0) {
            c->checkpoint_signal = signals[i].signo;
            return 0;
        }
    return want(e, "checkpoint_signal", "'TERM', 'USR1' or 'none'");
}

static int read_numbers(const json_t *o, struct command *c, struct err *e)
{
    int rc = read_long(o, "uid", 0, UINT_MAX - 1, &c->uid, e);

    if (rc == 0)
        rc = read_long(o, "gid", 0, UINT_MAX - 1, &c->gid, e);
    if (rc == 0)
        rc = read_long(o, "retries", 0, 1000, &c->retries, e);
    if (rc == 0)
        rc = read_seconds(o, "timeout_s", &c->timeout_s, e);
    if (rc == 0)
        rc = read_seconds(o, "grace_s", &c->grace_s, e);
    if (rc == 0)
        rc = read_long(o, "cpus", 0, COMMAND_CPUS_MAX, &c->cpus, e);
    if (rc == 0)
        rc = read_long(o, "mem_mib", 0, COMMAND_MIB_MAX, &c->mem_mib, e);
    return rc;
}

static int read_command(struct arena *a, json_t *o, struct command *c, struct err *e)
{
    int rc;

    *c = (struct command){ .uid = -1, .gid = -1, .grace_s = (double)NAN };
    rc = read_argv(a, o, c, e);
    if (rc == 0)
        rc = read_env(a, o, c, e);
    if (rc == 0)
        rc = read_text(a, o, "cwd", &c->cwd, e);
    if (rc == 0 && c->cwd && *c->cwd != '/')
        rc = want(e, "cwd", "a path from the root, beginning with '/'");
    if (rc == 0)
        rc = read_text(a, o, "stdout", &c->out, e);
    if (rc == 0)
        rc = read_text(a, o, "stderr", &c->err, e);
    if (rc == 0)
        rc = read_signal(a, o, c, e);
    if (rc == 0)
        rc = read_numbers(o, c, e);
    return rc;
}

/* A key that nobody knows is a mistake: what it was to change would silently not change. */
static int check_keys(json_t *o, struct err *e)
{
    static const char *const keys[] = {
        "argv",    "cwd",    "env",       "uid",     "gid",
        "stdout",  "stderr", "timeout_s", "retries", "checkpoint_signal",
        "grace_s", "cpus",   "mem_mib"
    };
    const size_t n = sizeof keys / sizeof *keys;
    const char *key;
    json_t *v;

    json_object_foreach(o, key, v)
    {
        bool is_known = false;

        for (size_t i = 0; i < n && !is_known; i++)
            is_known = strcmp(key, keys[i]) == 0;
        if (!is_known)
            return err_set(e, EINVAL,
                           "command: no key is called '%.60s'; there are argv, cwd, env, "
                           "stdout, stderr, timeout_s, retries, checkpoint_signal, grace_s, cpus "
                           "and mem_mib",
                           key);
    }
    return 0;
}

static json_t *load(const char *text, size_t len, struct err *e)
{
    json_error_t why;
    json_t *o = NULL;

    if (len > LAUNCH_BYTES_MAX) {
        err_fill(e, EINVAL, "command: more than 4 MiB; execve takes 2");
        return NULL;
    }
    o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!o)
        err_fill(e, EINVAL, "command: not JSON: line %d: %s", why.line, why.text);
    if (!o || json_is_object(o))
        return o;
    json_decref(o);
    err_fill(e, EINVAL, "command: must be a JSON object");
    return NULL;
}

int command_parse(struct arena *a, const char *json, struct command *out, struct err *e)
{
    json_t *o = load(json, strlen(json), e);
    int rc;

    if (!o)
        return -EINVAL;
    rc = check_keys(o, e);
    if (rc == 0)
        rc = read_command(a, o, out, e);
    if (rc == 0 && out->grace_s > GRACE_MAX_S)
        rc = want(e, "grace_s", "a number of seconds, 0 to 3600");
    json_decref(o);
    return rc;
}

int command_check(const char *json, struct err *e)
{
    struct command c;
    struct arena a;
    int rc;

    arena_init(&a);
    rc = command_parse(&a, json, &c, e);
    arena_release(&a);
    return rc;
}

int command_of_job(struct arena *a, const struct job_spec *s, struct command *out, struct err *e)
{
    int rc = s->command ? command_parse(a, s->command, out, e)
                        : err_set(e, EINVAL, "it has no command to run; submit it with one");

    if (rc < 0 || (out->uid >= 0 && out->gid >= 0))
        return rc;
    if (geteuid() == 0)
        return err_set(e, EINVAL, "its command says no uid and gid; whose is it?");
    out->uid = out->uid < 0 ? (long)geteuid() : out->uid;
    out->gid = out->gid < 0 ? (long)getegid() : out->gid;
    return 0;
}

bool command_sets(char *const *env, int n_env, const char *entry)
{
    for (int i = 0; i < n_env; i++)
        if (strncmp(env[i], entry, strcspn(entry, "=") + 1) == 0)
            return true;
    return false;
}

static void put_seconds(struct arena *a, char **out, int *n, const char *name, double s)
{
    if (s > 0)
        out[(*n)++] = arena_printf(a, "%s=%.15g", name, s);
}

/* Which one it is, where it shall listen, and what was promised. */
int command_replica_env(struct arena *a, const struct state *st, const struct job_spec *s,
                        char *out[REPLICA_ENV_MAX])
{
    int n = 0;

    if (s->kind != JOB_REPLICA)
        return 0;
    out[n++] = arena_printf(a, "GOGH_SERVICE=%s", st->jobs[s->service]->spec.name);
    out[n++] = arena_printf(a, "GOGH_REPLICA=%d", s->replica);
    out[n++] = arena_printf(a, "GOGH_PORT=%d", s->port);
    out[n++] = arena_printf(a, "GOGH_MAX_BATCH=%d", service_batch(s->terms));
    put_seconds(a, out, &n, "GOGH_LATENCY_S", s->terms->latency_s);
    put_seconds(a, out, &n, "GOGH_TTFT_S", s->terms->ttft_s);
    put_seconds(a, out, &n, "GOGH_TPOT_S", s->terms->tpot_s);
    return n;
}

/* A job's name may hold anything; in a file's name a '/' becomes '_'. */
const char *command_file(struct arena *a, const char *path, const struct job *j, int run,
                         const char *percent)
{
    struct buf b;

    if (!path)
        return NULL;
    buf_init(&b, PATH_MAX * strlen(percent));
    for (; *path; path++) {
        const char next = *path == '%' ? path[1] : '\0';

        if (next == 'j')
            (void)buf_printf(&b, "%d", j->id);
        else if (next == 'r')
            (void)buf_printf(&b, "%d", run);
        else if (next == 'n')
            for (const char *c = j->spec.name; *c; c++)
                (void)buf_append(&b, *c == '/' ? "_" : c, 1);
        else if (*path == '%')
            (void)buf_puts(&b, percent);
        else
            (void)buf_append(&b, path, 1);
        path += next == 'j' || next == 'r' || next == 'n' || next == '%';
    }
    return buf_keep(&b, a);
}

struct engine_job command_needs(struct arena *scratch, const char *json)
{
    struct command c;

    if (!json || (!strstr(json, "\"cpus\"") && !strstr(json, "\"mem_mib\"")) ||
        command_parse(scratch, json, &c, NULL) < 0)
        return (struct engine_job){ 0 };
    return (struct engine_job){ .cpus = (int)c.cpus, .mem_mib = (int)c.mem_mib };
}

static int read_gpus(struct arena *a, const json_t *o, struct launch *out, struct err *e)
{
    const json_t *list = get(o, "gpus");
    const json_t *v;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) == 0)
        return want(e, "gpus", "a list of numbers");
    out->gpus = ARENA_ARRAY(a, int, json_array_size(list));
    json_array_foreach(list, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT_MAX)
            return want(e, "gpus", "a list of numbers");
        out->gpus[out->n_gpus++] = (int)json_integer_value(v);
    }
    return 0;
}

static int read_launch(struct arena *a, json_t *o, struct launch *out, struct err *e)
{
    int rc = read_command(a, o, &out->command, e);

    if (rc == 0)
        rc = read_gpus(a, o, out, e);
    if (rc == 0)
        rc = read_long(o, "job", 0, INT_MAX, &out->job, e);
    if (rc == 0)
        rc = read_long(o, "run", 0, INT_MAX, &out->run, e);
    if (rc == 0)
        rc = read_long(o, "limit_w", 0, INT_MAX, &out->limit_w, e);
    if (rc == 0)
        rc = read_long(o, "n_failures", 0, INT_MAX, &out->n_failures, e);
    if (rc == 0)
        rc = read_seconds(o, "finish_after_s", &out->finish_after_s, e);
    if (rc == 0)
        rc = read_text(a, o, "secret", &out->secret, e);
    out->submit_s = json_number_value(get(o, "submit_s"));
    out->is_move = json_is_true(get(o, "is_move"));
    if (rc < 0)
        return rc;
    if (out->job < 0 || out->run < 0 || !out->secret || isnan(out->command.grace_s) ||
        out->command.uid < 0 || out->command.gid < 0)
        return err_set(e, EINVAL, "an order needs job, run, secret, grace_s, uid and gid");
    return 0;
}

int launch_decode(struct arena *a, const char *text, size_t len, struct launch *out, struct err *e)
{
    json_t *o = load(text, len, e);
    int rc;

    if (!o)
        return -EINVAL;
    *out = (struct launch){ .job = -1, .run = -1 };
    rc = read_launch(a, o, out, e);
    json_decref(o);
    return rc;
}

/* ---- writing ---- */

static const char *signal_word(int signo)
{
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i].signo == signo)
            return signals[i].name;
    return "TERM";
}

static json_t *list_of(char *const *texts)
{
    json_t *list = json_array();

    for (; *texts; texts++)
        json_array_append_new(list, json_string(*texts));
    return list;
}

static json_t *object_of(struct arena *a, char *const *env)
{
    json_t *o = json_object();

    for (; *env; env++) {
        const char *value = strchr(*env, '=');

        assert(value);
        json_object_set_new(o, arena_strndup(a, *env, (size_t)(value - *env)),
                            json_string(value + 1));
    }
    return o;
}

static void put_command(struct arena *a, json_t *o, const struct command *c)
{
    json_object_set_new(o, "argv", list_of(c->argv));
    json_object_set_new(o, "env", object_of(a, c->env));
    if (c->cwd)
        json_object_set_new(o, "cwd", json_string(c->cwd));
    if (c->out)
        json_object_set_new(o, "stdout", json_string(c->out));
    if (c->err)
        json_object_set_new(o, "stderr", json_string(c->err));
    json_object_set_new(o, "uid", json_integer(c->uid));
    json_object_set_new(o, "gid", json_integer(c->gid));
    json_object_set_new(o, "timeout_s", json_real(c->timeout_s));
    json_object_set_new(o, "retries", json_integer(c->retries));
    json_object_set_new(o, "checkpoint_signal", json_string(signal_word(c->checkpoint_signal)));
    json_object_set_new(o, "grace_s", json_real(c->grace_s));
}

const char *launch_encode(struct arena *a, const struct launch *o)
{
    json_t *root = json_object(), *gpus = json_array();
    const char *copy;
    char *text;

    json_object_set_new(root, "job", json_integer(o->job));
    json_object_set_new(root, "run", json_integer(o->run));
    json_object_set_new(root, "submit_s", json_real(o->submit_s));
    put_command(a, root, &o->command);
    json_object_set_new(root, "finish_after_s", json_real(o->finish_after_s));
    json_object_set_new(root, "secret", json_string(o->secret));
    for (int i = 0; i < o->n_gpus; i++)
        json_array_append_new(gpus, json_integer(o->gpus[i]));
    json_object_set_new(root, "gpus", gpus);
    json_object_set_new(root, "limit_w", json_integer(o->limit_w));
    json_object_set_new(root, "n_failures", json_integer(o->n_failures));
    json_object_set_new(root, "is_move", json_boolean(o->is_move));
    text = json_dumps(root, JSON_INDENT(1));
    assert(text);    // out of memory: stop
    copy = arena_strdup(a, text);
    free(text);
    json_decref(root);
    return copy;
}

static int read_all(int fd, char *to, size_t n)
{
    size_t got = 0;

    while (got < n) {
        ssize_t more = read(fd, to + got, n - got);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (more == 0)
            return -EIO;    // shorter than it was a moment ago
        got += (size_t)more;
    }
    return 0;
}

int launch_read(struct arena *a, int dir, struct launch *out, struct err *e)
{
    int fd = openat(dir, "order", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char *text;
    int rc;

    if (fd < 0)
        return err_set(e, errno, "order: cannot read: %s", strerror(errno));
    if (fstat(fd, &st) != 0 || st.st_size < 0 || (size_t)st.st_size > LAUNCH_BYTES_MAX) {
        close(fd);
        return err_set(e, EINVAL, "order: not a file of at most 4 MiB");
    }
    text = arena_alloc(a, (size_t)st.st_size + 1);
    rc = read_all(fd, text, (size_t)st.st_size);
    close(fd);
    if (rc < 0)
        return err_set(e, -rc, "order: cannot read: %s", strerror(-rc));
    return launch_decode(a, text, (size_t)st.st_size, out, e);
}

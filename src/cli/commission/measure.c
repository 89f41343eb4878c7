/* measure.c - measurements as jobs: submitted, waited for, and handed to the daemon.
 *
 *     pick --> job: gogh-pair --out FILE --> FILE --> POST /v1/measurements
 *
 * The job is of the first program's workload, and says nothing of its steps: GOGH_REPORTS is taken
 * from its environment, so that what gogh-pair does in its phases is no speed of anybody. Its
 * errors go to a file, so that one program's are not blamed on the other. It shares its GPU with
 * nobody.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/program.h"
#include "base/text/file.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client/client.h"
#include "cli/commission/commission.h"
#include "cli/commission/programs.h"
#include "cli/commission/results.h"
#include "cli/client/submit.h"
#include "cli/table.h"

/* A phase takes at least this long: shorter ones are mostly start-up. Beyond the most a speed is
 * no better known than by another day's run.
 */
#define PHASE_LEAST_S 20.0
#define PHASE_MOST_S 120.0
#define START_S 15.0     // from the submission of a job to its first phase, and its end; a guess
#define WARM_UP 0.25     // of a phase
#define SILENT_S 60.0    // a program that loads says nothing; below the timeout of its job
#define POLL_S 1.0
#define LOST_MOST 60    // a daemon that restarts is waited for: so many seconds
#define LATE_S 15       // a file that a node wrote is seen here after at most so long
#define RESULT_MAX (1 << 20)

static volatile sig_atomic_t is_told_to_end;

static void on_signal(int signo)
{
    (void)signo;
    is_told_to_end = 1;
}

static void listen_for_signals(void)
{
    struct sigaction act = { .sa_handler = on_signal };    // waiting ends at once

    is_told_to_end = 0;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
}

/* ---- how long ---- */

static int count_idle(const json_t *gpus, const char *type)
{
    int n = 0;

    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *g = json_array_get(gpus, i);
        const char *is = json_text_of(g, "type");

        n +=
            is != NULL && strcmp(is, type) == 0 && json_array_size(json_object_get(g, "jobs")) == 0;
    }
    return n;
}

/* As many GPUs of the pick's type as are idle; a type without is waited for: one. */
static int count_at_once(const struct measuring *m, size_t pick, const json_t *gpus)
{
    int idle = count_idle(gpus, json_text_of(json_array_get(m->picks, pick), "gpu"));

    return idle > 0 ? idle : 1;
}

/* How many of the planned ones are of the same type as the pick. */
static int count_alike(const struct measuring *m, const struct measure_times *t, size_t pick)
{
    const char *gpu = json_text_of(json_array_get(m->picks, pick), "gpu");
    int n = 0;

    for (int i = 0; i < t->n; i++)
        n += strcmp(json_text_of(json_array_get(m->picks, t->picks[i]), "gpu"), gpu) == 0;
    return n;
}

int measure_plan(struct client *c, const struct measuring *m, struct measure_times *out,
                 struct err *e)
{
    size_t n = json_array_size(m->picks);
    int rounds_most = (int)fmax(60 * m->minutes / (3 * PHASE_LEAST_S + START_S), 1), rounds = 1;
    json_t *gpus = json_array();
    int rc = client_list(c, "/v1/gpus", "gpus", gpus, e);

    *out = (struct measure_times){ .picks = ARENA_ARRAY(client_arena(c), size_t, n) };
    for (size_t i = 0; i < n && rc == 0; i++) {
        int before = count_alike(m, out, i) / count_at_once(m, i, gpus);

        if (before >= rounds_most)
            continue;
        out->picks[out->n++] = i;
        rounds = before + 1 > rounds ? before + 1 : rounds;
    }
    json_decref(gpus);
    out->phase_s = fmin((60 * m->minutes / rounds - START_S) / 3, PHASE_MOST_S);
    out->all_s = rounds * (3 * out->phase_s + START_S);
    return rc;
}

/* ---- one of them ---- */

/*             submitted            finished, and the file taken
 *    (nothing) -------> UNDER_WAY --------------------------> TAKEN
 *                           |------- failed, no such file ---> FAILED
 *                           '------- a signal, too late -----> CANCELLED
 */
enum measure_state { UNDER_WAY, TAKEN, FAILED, CANCELLED };
static const char *const state_names[] = { "under way", "taken", "failed", "cancelled" };

struct measure_one {
    enum measure_state state;
    struct result_of of;
    const struct site_program *a, *b;    // b NULL: alone
    const char *file, *errors;
    json_int_t job;
    bool has_started;
    const char *why;    // it failed
};

/* All of them. */
struct measure_run {
    struct arena *arena;
    const struct measuring *m;
    const struct measure_times *times;
    const char *pair;            // the program
    struct measure_one *list;    // (n)
    int n, n_ended;
    double until_s;    // on the stopwatch
};

static void put_words(json_t *argv, const struct site_program *p)
{
    for (int i = 0; i < p->n_argv; i++)
        json_array_append_new(argv, json_string(p->argv[i]));
}

static json_t *argv_of(const struct measure_run *r, const struct measure_one *one)
{
    double phase_s = r->times->phase_s;
    json_t *argv = json_pack("[s, s, s, s, s, s, s, s, s, s, s, s, s, s]", "/bin/sh", "-c",
                             "unset GOGH_REPORTS; exec 2>\"$0\" \"$@\"", one->errors, r->pair,
                             "--seconds", arena_printf(r->arena, "%.0f", phase_s * (1 - WARM_UP)),
                             "--warmup", arena_printf(r->arena, "%.0f", phase_s * WARM_UP),
                             "--wait", arena_printf(r->arena, "%.0f", fmax(SILENT_S, phase_s)),
                             "--out", one->file, "--");

    put_words(argv, one->a);
    if (one->b != NULL) {
        json_array_append_new(argv, json_string("---"));
        put_words(argv, one->b);
    }
    return argv;
}

static int body_of(const struct measure_run *r, const struct measure_one *one, const char *name,
                   json_t **out, struct err *e)
{
    char *here = getcwd(NULL, 0);
    json_t *argv = argv_of(r, one);

    *out = here == NULL || argv == NULL
               ? NULL
               : json_pack("{s:s, s:s, s:O, s:[s], s:b, s:I, s:f, s:s}", "name", name, "workload",
                           one->of.a, "argv", argv, "types", one->of.gpu, "exclusive", 1,
                           "priority", (json_int_t)r->m->priority, "timeout_s",
                           6 * r->times->phase_s + 8 * START_S, "cwd", here);
    json_decref(argv);
    free(here);
    if (*out == NULL)
        return err_set(e, EINVAL,
                       "%s: a word of the command, or the working directory, is no "
                       "UTF-8; rename it",
                       one->of.a);
    return submit_environment(*out, NULL, e);
}

/* What is told while it goes on. */
static void tell(const struct measure_run *r, const struct measure_one *one, const char *what,
                 const char *why)
{
    fprintf(stderr, "%d of %d: %s%s%s on %s: %s%s%s\n", r->n_ended, r->times->n,
            cell_clean(r->arena, one->of.a), one->of.b != NULL ? " beside " : "",
            one->of.b != NULL ? cell_clean(r->arena, one->of.b) : "", one->of.gpu, what,
            why != NULL ? ": " : "", why != NULL ? cell_clean(r->arena, why) : "");
}

static void end(struct measure_run *r, struct measure_one *one, enum measure_state state,
                const char *why)
{
    one->state = state;
    one->why = why;
    r->n_ended++;
    tell(r, one, state_names[state], why);
}

/* ---- results ---- */

/* What was seen of a program alone, for those features that nobody knew. */
static void tell_profiles(struct client *c, const struct measure_run *r, json_t *profiles)
{
    const char *name;
    json_t *profile, *answer;
    struct err e = { 0 };

    json_object_foreach(profiles, name, profile)
    {
        json_object_set_new(profile, "name", json_string(name));
        if (client_post(c, "/v1/workloads", profile, NULL, &answer, &e) < 0)
            fprintf(stderr, "gogh: the profile of %s is not taken: %s\n",
                    cell_clean(r->arena, name), e.text);
    }
}

static int hand_over(struct client *c, struct measure_run *r, struct measure_one *one,
                     struct err *e)
{
    const char *text;
    json_t *list = NULL, *profiles = NULL, *answer;
    size_t len;

    for (int i = 0; i < LATE_S && !is_told_to_end && access(one->file, R_OK) < 0; i++)
        submit_rest(1);
    if (access(one->file, R_OK) < 0)
        return err_set(e, ENOENT,
                       "%s is not there; where nodes are not this machine, --dir must be on a file "
                       "system that they share",
                       one->file);
    int rc = file_read_text(r->arena, one->file, NULL, RESULT_MAX, &text, &len, e);
    if (rc == 0)
        rc = results_parse(one->file, text, len, &one->of, &list, &profiles, e);
    if (rc < 0)
        return rc;
    tell_profiles(c, r, profiles);
    json_t *body = json_pack("{s:o}", "measurements", list);
    rc = client_post(c, "/v1/measurements", body, NULL, &answer, e);
    json_decref(body);
    json_decref(profiles);
    return rc;
}

/* Without a word of the job's: the reason that the daemon has. The shell makes the file of errors
 * before anything else, where the job's owner, whoever a token stands for, may.
 */
static const char *why_wordless(const struct measure_run *r, const struct measure_one *one,
                                const json_t *job)
{
    const char *reason = json_text_of(job, "reason"), *owner = json_text_of(job, "owner");

    if (access(one->errors, F_OK) == 0)
        return reason != NULL ? arena_strdup(r->arena, reason) : NULL;
    return arena_printf(r->arena,
                        "%s%sthere is no %s: the job's owner%s%s must be able to write to --dir, "
                        "where it runs",
                        reason != NULL ? reason : "", reason != NULL ? "; " : "", one->errors,
                        owner != NULL ? ", " : "", owner != NULL ? owner : "");
}

/* What gogh-pair says of the program that failed, where that one's last words follow in lines of
 * their own: without the sentence's end. Empty: nothing.
 */
static struct slice blamed(const char *text, size_t len)
{
    static const char ours[] = "gogh-pair: ", ending[] = "; its last words:";
    const char *at = strstr(text, ours);
    size_t n_ours = sizeof ours - 1, n_ending = sizeof ending - 1;

    if (at == NULL || (at != text && at[-1] != '\n'))
        return (struct slice){ 0 };
    at += n_ours;
    const char *line_end = memchr(at, '\n', (size_t)(text + len - at));
    size_t n = line_end != NULL ? (size_t)(line_end - at) : 0;    // the last line is told anyway
    if (n < n_ending || memcmp(at + n - n_ending, ending, n_ending) != 0)
        return (struct slice){ 0 };
    return (struct slice){ at, n - n_ending };
}

/* The last line that the job wrote of its errors, and which program's it is. */
static const char *why_failed(const struct measure_run *r, const struct measure_one *one,
                              const json_t *job)
{
    const char *text;
    struct err ignored;
    size_t len;

    if (file_read_text(r->arena, one->errors, NULL, RESULT_MAX, &text, &len, &ignored) < 0)
        return why_wordless(r, one, job);
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    size_t from = len;
    while (from > 0 && text[from - 1] != '\n')
        from--;
    if (from == len)
        return why_wordless(r, one, job);
    struct slice who = blamed(text, len);
    return arena_printf(r->arena, "%.*s%s%.*s (%s)", (int)who.len, who.len > 0 ? who.at : "",
                        who.len > 0 ? ": " : "", (int)(len - from), text + from, one->errors);
}

static void see_start(const struct measure_run *r, struct measure_one *one, const json_t *job)
{
    if (one->has_started || isnan(json_number_of(job, "started_s")))
        return;
    one->has_started = true;
    tell(r, one, arena_printf(r->arena, "job %lld has started", (long long)one->job), NULL);
}

/* A daemon that is away just now is asked again: the job stays under way. */
static int see_end(struct client *c, struct measure_run *r, struct measure_one *one,
                   const json_t *job, struct err *e)
{
    const char *state = json_text_of(job, "state");

    if (strcmp(state, "cancelled") == 0) {
        end(r, one, CANCELLED, "by somebody else");
    } else if (strcmp(state, "finished") != 0) {
        end(r, one, FAILED, why_failed(r, one, job));
    } else {
        int rc = hand_over(c, r, one, e);

        if (rc == -ENOTCONN || rc == -EAGAIN)
            return rc;
        end(r, one, rc < 0 ? FAILED : TAKEN, rc < 0 ? arena_strdup(r->arena, e->text) : NULL);
    }
    return 0;
}

/* ---- all of them ---- */

/* Look at those that are under way, with a client of its own that forgets its answers. */
static int look(struct measure_run *r, struct err *e)
{
    struct client *c = NULL;
    int rc = client_open(&c, e);

    for (int i = 0; i < r->n && rc == 0; i++) {
        struct measure_one *one = &r->list[i];
        json_t *job;

        if (one->state != UNDER_WAY)
            continue;
        rc = client_get(c, arena_printf(r->arena, "/v1/jobs/%lld", (long long)one->job), &job, e);
        if (rc == 0)
            see_start(r, one, job);
        if (rc == 0 && submit_has_ended(job))
            rc = see_end(c, r, one, job, e);
    }
    client_close(c);
    return rc;
}

static int wait_for_all(struct measure_run *r, struct err *e)
{
    for (int n_lost = 0; r->n_ended < r->n && !is_told_to_end;) {
        int rc = look(r, e);

        n_lost = rc == 0 ? 0 : n_lost + 1;
        if (rc < 0 && ((rc != -ENOTCONN && rc != -EAGAIN) || n_lost > LOST_MOST))
            return rc;
        if (clock_stopwatch_s() > r->until_s)
            return 0;
        if (r->n_ended < r->n)
            submit_rest(POLL_S);
    }
    return 0;
}

static void cancel_rest(struct client *c, struct measure_run *r)
{
    const char *why = is_told_to_end ? NULL : "--minutes are over";
    struct err e = { 0 };
    json_t *answer;

    for (int i = 0; i < r->n; i++) {
        struct measure_one *one = &r->list[i];

        if (one->state != UNDER_WAY)
            continue;
        const char *path = arena_printf(r->arena, "/v1/jobs/%lld/cancel", (long long)one->job);
        int rc = client_post(c, path, NULL, NULL, &answer, &e);
        end(r, one, CANCELLED, rc == -ENOTCONN ? "nobody heard of it: 'gogh cancel' it" : why);
    }
}

static int submit_one(struct client *c, struct measure_run *r, int i, const char *key,
                      struct err *e)
{
    size_t no = r->times->picks[i];
    const json_t *pick = json_array_get(r->m->picks, no);
    struct measure_one *one = &r->list[i];
    json_t *body = NULL, *job;

    one->of = (struct result_of){ .gpu = json_text_of(pick, "gpu"),
                                  .a = json_text_of(pick, "workload"),
                                  .b = json_text_of(pick, "beside") };
    one->a = programs_find(r->m->programs, one->of.a);
    one->b = programs_find(r->m->programs, one->of.b);
    if (one->a == NULL || (one->of.b != NULL && one->b == NULL))
        return err_set(e, EREMOTEIO, "the daemon wants a program that was not named");
    one->file = arena_printf(r->arena, "%s/%02zu.json", r->m->dir, no + 1);
    one->errors = arena_printf(r->arena, "%s/%02zu.err", r->m->dir, no + 1);
    unlink(one->file);    // of an earlier time
    unlink(one->errors);
    const char *name = arena_printf(r->arena, "commission-%.8s-%02zu", key, no + 1);
    int rc = body_of(r, one, name, &body, e);
    if (rc == 0)
        rc = client_post(c, "/v1/jobs", body, client_key(c), &job, e);
    if (rc == 0)
        one->job = json_integer_value(json_object_get(job, "id"));
    json_decref(body);
    return rc;
}

static int submit_all(struct client *c, struct measure_run *r, struct err *e)
{
    const char *key = client_key(c);
    int rc = key != NULL ? 0 : err_set(e, EIO, "no random numbers");

    while (r->n < r->times->n && rc == 0 && !is_told_to_end) {
        rc = submit_one(c, r, r->n, key, e);
        r->n += rc == 0;
    }
    return rc;
}

/* The workloads of programs, so that they can be measured; and whether we may is known by then. */
static int describe(struct client *c, const struct measuring *m, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < json_array_size(m->described) && rc == 0; i++) {
        json_t *o = json_copy(json_array_get(m->described, i)), *answer;

        json_object_del(o, "cells");
        rc = client_post(c, "/v1/workloads", o, NULL, &answer, e);
        json_decref(o);
    }
    return rc;
}

static json_t *told_of(const struct measure_run *r)
{
    json_t *list = json_array();

    for (int i = 0; i < r->n; i++) {
        const struct measure_one *one = &r->list[i];
        json_t *o = json_copy(json_array_get(r->m->picks, r->times->picks[i]));

        json_object_set_new(o, "job", json_integer(one->job));
        json_object_set_new(o, "state", json_string(state_names[one->state]));
        json_object_set_new(o, "reason", json_text_or_null(one->why));
        json_object_set_new(o, "file", json_string(one->file));
        json_array_append_new(list, o);
    }
    return list;
}

/* There, a directory, and ours to write to: before any job finds out. */
static int make_dir(const char *dir, struct err *e)
{
    struct stat st;

    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return err_set(e, errno, "--dir %s: %s; name another", dir, strerror(errno));
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ENOTDIR, "--dir %s is no directory; name another", dir);
    if (access(dir, W_OK | X_OK) < 0)
        return err_set(e, errno, "--dir %s: you may not write there; name another", dir);
    return 0;
}

/* How it went, in numbers. */
static int count(const struct measure_run *r, enum measure_state state)
{
    int n = 0;

    for (int i = 0; i < r->n; i++)
        n += r->list[i].state == state;
    return n;
}

int measure_all(struct client *c, const struct measuring *m, const struct measure_times *times,
                json_t **told, struct err *e)
{
    struct measure_run r = { .arena = client_arena(c),
                             .m = m,
                             .times = times,
                             .until_s = clock_stopwatch_s() + 60 * m->minutes };
    char room[PROGRAM_PATH_SIZE];

    *told = NULL;
    r.pair = program_find("gogh-pair", "GOGH_PAIR", GOGH_LIBEXEC, room);
    if (access(r.pair, X_OK) < 0)
        return err_set(e, errno, "%s: %s; install it, or name another by $GOGH_PAIR", r.pair,
                       strerror(errno));
    int rc = make_dir(m->dir, e);
    if (rc == 0)
        rc = describe(c, m, e);
    if (rc < 0)
        return rc;
    listen_for_signals();
    r.list = ARENA_ARRAY(r.arena, struct measure_one, (size_t)times->n);
    rc = submit_all(c, &r, e);
    if (rc == 0)
        rc = wait_for_all(&r, e);
    cancel_rest(c, &r);
    int n = count(&r, TAKEN);
    if (count(&r, FAILED) > 0 && !m->programs->are_own)
        fprintf(stderr,
                "Where benchmarks that ship fail, name your own programs with --programs.\n");
    if (rc == 0 && is_told_to_end)
        rc = err_set(e, EINTR, "ended by a signal; %d of %d were measured, the rest is cancelled",
                     n, times->n);
    *told = told_of(&r);
    return rc < 0 ? rc : n;
}

#include "sim/trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/map.h"
#include "base/text/words.h"
#include "catalog/cluster/job.h"
#include "catalog/workload.h"

/* A million jobs of 200 bytes; longer traces are not one experiment. */
#define FILE_MAX ((size_t)256 << 20)
#define GPUS_MAX 4096    // of one job, as job_spec_check has it

enum { NAME_TEXT, NUMBER, WHOLE };

/* The keys of a job line, in the order in which they are written. */
static const struct key {
    const char *key;
    int kind;
    size_t offset;
    double low, high;
    double usual;    // number that needs no word; NaN never does
} keys[] = {
#define AT(field) offsetof(struct trace_job, field)
    { "at", NUMBER, AT(at_s), 0, 1e12, -1 },
    { "workload", NAME_TEXT, AT(workload), 0, 0, 0 },
    { "steps", NUMBER, AT(steps), 1e-9, 1e14, 0 },
    { "rate", NUMBER, AT(rate), 1e-9, 1e8, 0 },
    { "duration", NUMBER, AT(duration_s), 1e-3, 1e9, 0 },
    { "min", NUMBER, AT(min_throughput), 1e-12, 1e8, 0 },
    { "deadline", NUMBER, AT(deadline_s), 1e-3, 1e12, 0 },
    { "gpus", WHOLE, AT(n_gpus), 1, GPUS_MAX, 1 },
    { "max_gpus", WHOLE, AT(max_gpus), 1, GPUS_MAX, 0 },
    { "priority", WHOLE, AT(priority), -1000000, 1000000, 0 },
    { "urgency", NUMBER, AT(urgency), URGENCY_LEAST, URGENCY_MOST, 1 },
    { "owner", NAME_TEXT, AT(owner), 0, 0, 0 },
    { "types", NAME_TEXT, AT(types), 0, 0, 0 },
    { "nodes", WHOLE, AT(n_nodes), 1, GPUS_MAX, 0 },
#undef AT
};

enum { N_KEYS = sizeof keys / sizeof keys[0], KEY_AT = 0, KEY_BATCH = N_KEYS, N_SEEN };

struct trace_parser {
    struct words words;
    struct arena *arena;
    struct map names;    // of jobs
    struct trace *out;
    int cap;
    bool is_seen[N_SEEN];    // keys of this line
    double batch;
};

#define HERE(p) (p)->words.name, (p)->words.line

/* What an error repeats of the user's text. */
#define SHOWN(s) (int)((s).len < 60 ? (s).len : 60), (s).at

static int set_key(struct trace_parser *p, struct trace_job *j, const struct key *k,
                   struct slice value, struct err *e)
{
    void *field = (char *)j + k->offset;
    double v;

    if (k->kind == NAME_TEXT) {
        *(const char **)field = words_name(&p->words, value);
        if (*(const char **)field != NULL)
            return 0;
        return err_set(e, EINVAL,
                       "%s:%d: %s= wants a name of 1 to 200 printable bytes, in quotes "
                       "when it has blanks",
                       HERE(p), k->key);
    }
    if (text_to_double(value, &v) < 0 || v < k->low || v > k->high ||
        (k->kind == WHOLE && v != (int)v))
        return err_set(e, EINVAL, "%s:%d: %s=%.*s: want a %snumber from %g to %g", HERE(p), k->key,
                       SHOWN(value), k->kind == WHOLE ? "whole " : "", k->low, k->high);
    if (k->kind == WHOLE)
        *(int *)field = (int)v;
    else
        *(double *)field = v;
    return 0;
}

static int take_pair(struct trace_parser *p, struct trace_job *j, const struct word *w,
                     struct err *e)
{
    int i = 0;

    while (i < N_KEYS && !slice_is(w->key, keys[i].key))
        i++;
    if (i == N_KEYS && !slice_is(w->key, "batch"))
        return err_set(e, EINVAL,
                       "%s:%d: no key '%.*s'; there are at, workload, batch, steps, rate, "
                       "duration, min, deadline, gpus, max_gpus, nodes, priority, urgency, owner, "
                       "types",
                       HERE(p), SHOWN(w->key));
    if (p->is_seen[i])
        return err_set(e, EINVAL, "%s:%d: '%.*s=' is there twice: keep one", HERE(p),
                       SHOWN(w->key));
    p->is_seen[i] = true;
    if (i < N_KEYS)
        return set_key(p, j, &keys[i], w->value, e);
    if (text_to_double(w->value, &p->batch) < 0 || p->batch < 1 || p->batch > 1e9)
        return err_set(e, EINVAL, "%s:%d: batch=%.*s: want a number from 1 to 1e9", HERE(p),
                       SHOWN(w->value));
    return 0;
}

/* What a line must have, and must not have together. */
static int finish_job(struct trace_parser *p, struct trace_job *j, struct err *e)
{
    double inner;

    if (!p->is_seen[KEY_AT])
        return err_set(e, EINVAL, "%s:%d: job '%s' has no arrival: add at=SECONDS", HERE(p),
                       j->name);
    if (j->workload == NULL)
        return err_set(e, EINVAL, "%s:%d: job '%s' has no workload: add workload=NAME", HERE(p),
                       j->name);
    if ((j->steps > 0) == (j->rate > 0) || (j->rate > 0) != (j->duration_s > 0))
        return err_set(e, EINVAL,
                       "%s:%d: job '%s' wants either steps=N (training) or both rate=R "
                       "and duration=S (inference)",
                       HERE(p), j->name);
    j->is_inference = j->rate > 0;
    if (j->max_gpus == 0)
        j->max_gpus = j->n_gpus;
    if (j->max_gpus < j->n_gpus)
        return err_set(e, EINVAL, "%s:%d: job '%s' has max_gpus=%d below gpus=%d", HERE(p), j->name,
                       j->max_gpus, j->n_gpus);
    if (j->n_nodes > 0 && j->n_gpus % j->n_nodes != 0)
        return err_set(e, EINVAL,
                       "%s:%d: job '%s' has gpus=%d, which nodes=%d cannot have in equal parts",
                       HERE(p), j->name, j->n_gpus, j->n_nodes);
    if (j->n_nodes > 1 && j->max_gpus > j->n_gpus)
        return err_set(e, EINVAL,
                       "%s:%d: job '%s' has nodes=%d and cannot grow: leave max_gpus= out", HERE(p),
                       j->name, j->n_nodes);
    if (p->is_seen[KEY_BATCH]) {
        workload_name_split(j->workload, &inner);
        if (!isnan(inner))
            return err_set(e, EINVAL,
                           "%s:%d: job '%s' has its batch in the workload's name: leave "
                           "batch= out",
                           HERE(p), j->name);
        j->workload = workload_name(p->arena, j->workload, p->batch);
        if (!text_is_name(slice_of(j->workload)))
            return err_set(e, EINVAL,
                           "%s:%d: job '%s': the workload's name with its batch is over 200 bytes",
                           HERE(p), j->name);
    }
    return 0;
}

/* job NAME key=value ... [exclusive] [one_node] */
static int parse_job(struct trace_parser *p, struct trace_job *j, struct err *e)
{
    const struct word *w = p->words.word;
    bool is_one_node = false;

    *j = (struct trace_job){ .deadline_s = NAN, .n_gpus = 1 };
    memset(p->is_seen, 0, sizeof p->is_seen);
    if (w[0].key.at != NULL || !slice_is(w[0].value, "job"))
        return err_set(e, EINVAL, "%s:%d: a line begins with job or #", HERE(p));
    if (p->words.n > 1 && w[1].key.at == NULL)
        j->name = words_name(&p->words, w[1].value);
    if (j->name == NULL)
        return err_set(e, EINVAL,
                       "%s:%d: want 'job NAME key=value ...', NAME of 1 to 200 printable "
                       "bytes, in quotes when it has blanks or '='",
                       HERE(p));
    for (int i = 2; i < p->words.n; i++) {
        if (w[i].key.at != NULL) {
            if (take_pair(p, j, &w[i], e) < 0)
                return -EINVAL;
        } else if (slice_is(w[i].value, "exclusive")) {
            j->is_exclusive = true;
        } else if (slice_is(w[i].value, "one_node")) {
            is_one_node = true;
        } else {
            return err_set(e, EINVAL,
                           "%s:%d: '%.*s' is neither key=value nor exclusive nor one_node", HERE(p),
                           SHOWN(w[i].value));
        }
    }
    if (is_one_node && j->n_nodes > 1)
        return err_set(e, EINVAL, "%s:%d: job '%s' says one_node and nodes=%d: keep one", HERE(p),
                       j->name, j->n_nodes);
    j->n_nodes = is_one_node ? 1 : j->n_nodes;
    return finish_job(p, j, e);
}

static int add_job(struct trace_parser *p, const struct trace_job *j, struct err *e)
{
    struct trace *t = p->out;

    if (map_get(&p->names, j->name) >= 0)
        return err_set(e, EINVAL, "%s:%d: job '%s' is there twice: give each its own name", HERE(p),
                       j->name);
    ARENA_GROW(p->arena, t->jobs, t->n_jobs, p->cap);
    map_set(&p->names, j->name, t->n_jobs);
    t->jobs[t->n_jobs] = *j;
    t->jobs[t->n_jobs++].line = p->words.line;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct trace_moment *x = a, *y = b;

    if (x->at_s != y->at_s)
        return x->at_s < y->at_s ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

void trace_moments_sort(struct trace_moment *m, int n)
{
    if (n > 0)
        qsort(m, (size_t)n, sizeof *m, by_time);
}

void trace_sort(struct arena *a, struct trace *t)
{
    struct trace_moment *order = ARENA_ARRAY(a, struct trace_moment, (size_t)t->n_jobs);
    struct trace_job *sorted = ARENA_ARRAY(a, struct trace_job, (size_t)t->n_jobs);

    for (int i = 0; i < t->n_jobs; i++)
        order[i] = (struct trace_moment){ t->jobs[i].at_s, i };
    trace_moments_sort(order, t->n_jobs);
    for (int i = 0; i < t->n_jobs; i++)
        sorted[i] = t->jobs[order[i].job];
    t->jobs = sorted;
}

void trace_begin_at_first(struct trace *t)
{
    const double first_s = t->n_jobs > 0 ? t->jobs[0].at_s : 0;

    for (int i = 0; i < t->n_jobs; i++)
        t->jobs[i].at_s -= first_s;
}

int trace_parse(struct arena *a, const char *name, const char *text, size_t len, struct trace *out,
                struct err *e)
{
    struct trace_parser p = { .arena = a, .out = out };
    struct trace_job j;
    int rc;

    *out = (struct trace){ .name = name };
    words_open(&p.words, a, name, text, len);
    while ((rc = words_next(&p.words, e)) > 0) {
        rc = parse_job(&p, &j, e);
        if (rc == 0)
            rc = add_job(&p, &j, e);
        if (rc < 0)
            break;
    }
    map_release(&p.names);
    if (rc == 0 && out->n_jobs == 0)
        rc = err_set(e, EINVAL,
                     "%s: no job: add lines like 'job a at=0 workload=resnet50 "
                     "steps=1000'",
                     name);
    if (rc == 0)
        trace_sort(a, out);
    return rc;
}

int trace_read(struct arena *a, const char *path, struct trace *out, struct err *e)
{
    const char *text;
    size_t len;
    int rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);

    return rc < 0 ? rc : trace_parse(a, path, text, len, out, e);
}

double trace_job_promise(const struct trace_job *j)
{
    if (j->is_inference)
        return fmax(j->min_throughput, j->rate);
    return isnan(j->deadline_s) ? j->min_throughput
                                : fmax(j->min_throughput, j->steps / j->deadline_s);
}

/* A key that is not as usual: false, where there is no room. */
static bool write_key(const struct trace_job *j, const struct key *k, struct buf *out)
{
    const void *field = (const char *)j + k->offset;

    if (k->kind == NAME_TEXT) {
        const char *text = *(const char *const *)field;

        return text == NULL || (buf_printf(out, " %s=", k->key) == 0 && words_put(out, text) == 0);
    }
    const double v = k->kind == WHOLE ? *(const int *)field : *(const double *)field;

    return isnan(v) || v == k->usual ||
           (buf_printf(out, " %s=", k->key) == 0 && words_put_number(out, v) == 0);
}

static bool write_job(const struct trace_job *j, struct buf *out)
{
    struct trace_job said = *j;
    bool is_fine = buf_puts(out, "job ") == 0 && words_put(out, j->name) == 0;

    said.max_gpus = j->max_gpus != j->n_gpus ? j->max_gpus : 0;
    said.n_nodes = 0;    // comes last, or as one_node
    said.urgency = j->urgency > 0 ? j->urgency : 1;
    for (int i = 0; i < N_KEYS && is_fine; i++)
        is_fine = write_key(&said, &keys[i], out);
    if (is_fine && j->is_exclusive)
        is_fine = buf_puts(out, " exclusive") == 0;
    if (is_fine && j->n_nodes == 1)
        is_fine = buf_puts(out, " one_node") == 0;
    if (is_fine && j->n_nodes > 1)
        is_fine = buf_printf(out, " nodes=%d", j->n_nodes) == 0;
    return is_fine && buf_puts(out, "\n") == 0;
}

int trace_write(const struct trace *t, struct buf *out)
{
    for (int i = 0; i < t->n_jobs; i++)
        if (!write_job(&t->jobs[i], out))
            return -ENOSPC;
    return 0;
}

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
#define BATCH_USUAL 32
#define LOAD_USUAL_S 120    // published: 34 to 100 s for models of 30 to 70 B parameters

enum { NAME_TEXT, NUMBER, WHOLE };

/* The keys of a line, in the order in which they are written. */
struct key {
    const char *key;
    int kind;
    size_t offset;
    double low, high;
    double usual;    // number that needs no word; NaN never does
};

static const struct key job_keys[] = {
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

static const struct key service_keys[] = {
#define AT(field) offsetof(struct trace_service, field)
    { "at", NUMBER, AT(at_s), 0, 1e12, -1 },
    { "workload", NAME_TEXT, AT(workload), 0, 0, 0 },
    { "rate", NUMBER, AT(rate), 1e-6, 1e6, 0 },
    { "p99", NUMBER, AT(latency_s), 1e-4, 1e4, 0 },
    { "ttft", NUMBER, AT(ttft_s), 1e-4, 1e4, 0 },
    { "tpot", NUMBER, AT(tpot_s), 1e-5, 1e4, 0 },
    { "max_batch", WHOLE, AT(max_batch), 1, 4096, BATCH_USUAL },
    { "max_gpus", WHOLE, AT(max_gpus), 1, GPUS_MAX, 1 },
    { "load", NUMBER, AT(load_s), 0, 1e5, LOAD_USUAL_S },
    { "traffic", NAME_TEXT, AT(traffic), 0, 0, 0 },
    { "arrivals", NAME_TEXT, AT(arrivals), 0, 0, 0 },
    { "seed", WHOLE, AT(seed), 0, 1e9, 0 },
    { "end", NUMBER, AT(end_s), 1e-3, 1e12, 0 },
    { "owner", NAME_TEXT, AT(owner), 0, 0, 0 },
#undef AT
};

enum {
    N_JOB_KEYS = sizeof job_keys / sizeof job_keys[0],
    N_SERVICE_KEYS = sizeof service_keys / sizeof service_keys[0],
    KEY_AT = 0,
    KEY_BATCH = N_JOB_KEYS,
    N_SEEN,
};

/* What a line is about. */
static const struct line_kind {
    const char *word;
    const struct key *keys;
    int n_keys;
    const char *list;
} kinds[] = {
    { "job", job_keys, N_JOB_KEYS,
      "at, workload, batch, steps, rate, duration, min, deadline, gpus, max_gpus, nodes, priority, "
      "urgency, owner, types" },
    { "service", service_keys, N_SERVICE_KEYS,
      "at, workload, batch, rate, p99, ttft, tpot, max_batch, max_gpus, load, traffic, arrivals, "
      "seed, end, owner" },
};

struct trace_parser {
    struct words words;
    struct arena *arena;
    struct map names;    // of jobs
    struct trace *out;
    int cap, cap_services;
    const struct line_kind *kind;    // of this line
    bool is_seen[N_SEEN];            // keys of this line
    double batch;
};

#define HERE(p) (p)->words.name, (p)->words.line

/* What an error repeats of the user's text. */
#define SHOWN(s) (int)((s).len < 60 ? (s).len : 60), (s).at

static int set_key(struct trace_parser *p, void *of, const struct key *k, struct slice value,
                   struct err *e)
{
    void *field = (char *)of + k->offset;
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

static int take_pair(struct trace_parser *p, void *of, const struct word *w, struct err *e)
{
    const struct line_kind *kind = p->kind;
    int i = 0;

    while (i < kind->n_keys && !slice_is(w->key, kind->keys[i].key))
        i++;
    const bool is_batch = i == kind->n_keys && slice_is(w->key, "batch");
    const int seen = is_batch ? (int)KEY_BATCH : i;
    if (i == kind->n_keys && !is_batch)
        return err_set(e, EINVAL, "%s:%d: no key '%.*s'; there are %s", HERE(p), SHOWN(w->key),
                       kind->list);
    if (p->is_seen[seen])
        return err_set(e, EINVAL, "%s:%d: '%.*s=' is there twice: keep one", HERE(p),
                       SHOWN(w->key));
    p->is_seen[seen] = true;
    if (!is_batch)
        return set_key(p, of, &kind->keys[i], w->value, e);
    if (text_to_double(w->value, &p->batch) < 0 || p->batch < 1 || p->batch > 1e9)
        return err_set(e, EINVAL, "%s:%d: batch=%.*s: want a number from 1 to 1e9", HERE(p),
                       SHOWN(w->value));
    return 0;
}

/* Of every line: an arrival, and a workload, whose batch becomes part of its name. */
static int finish_line(struct trace_parser *p, const char *name, const char **workload,
                       struct err *e)
{
    const char *word = p->kind->word;
    double inner;

    if (!p->is_seen[KEY_AT])
        return err_set(e, EINVAL, "%s:%d: %s '%s' has no arrival: add at=SECONDS", HERE(p), word,
                       name);
    if (*workload == NULL)
        return err_set(e, EINVAL, "%s:%d: %s '%s' has no workload: add workload=NAME", HERE(p),
                       word, name);
    if (!p->is_seen[KEY_BATCH])
        return 0;
    workload_name_split(*workload, &inner);
    if (!isnan(inner))
        return err_set(e, EINVAL,
                       "%s:%d: %s '%s' has its batch in the workload's name: leave batch= out",
                       HERE(p), word, name);
    *workload = workload_name(p->arena, *workload, p->batch);
    if (!text_is_name(slice_of(*workload)))
        return err_set(e, EINVAL,
                       "%s:%d: %s '%s': the workload's name with its batch is over 200 bytes",
                       HERE(p), word, name);
    return 0;
}

/* What a line must have, and must not have together. */
static int finish_job(struct trace_parser *p, struct trace_job *j, struct err *e)
{
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
    return 0;
}

static bool is_traffic(const char *word)
{
    return strcmp(word, "steady") == 0 || strcmp(word, "diurnal") == 0 ||
           strcmp(word, "drawn") == 0;
}

static int finish_service(struct trace_parser *p, struct trace_service *s, struct err *e)
{
    const bool is_llm = s->ttft_s > 0 && s->tpot_s > 0;

    if (s->rate <= 0 || (s->latency_s <= 0 && !is_llm))
        return err_set(e, EINVAL,
                       "%s:%d: service '%s' wants rate=REQUESTS_A_SECOND and p99=SECONDS, or of a "
                       "language model ttft=SECONDS and tpot=SECONDS",
                       HERE(p), s->name);
    if (s->latency_s > 0 && (s->ttft_s > 0 || s->tpot_s > 0))
        return err_set(e, EINVAL, "%s:%d: service '%s' promises p99=, or ttft= and tpot=: keep one",
                       HERE(p), s->name);
    if ((s->traffic != NULL) == (s->arrivals != NULL))
        return err_set(e, EINVAL,
                       "%s:%d: service '%s' wants either traffic=steady, diurnal or drawn, or "
                       "arrivals=FILE",
                       HERE(p), s->name);
    if (s->traffic != NULL && !is_traffic(s->traffic))
        return err_set(e, EINVAL, "%s:%d: traffic=%s: want steady, diurnal or drawn", HERE(p),
                       s->traffic);
    if (s->end_s <= s->at_s)
        return err_set(e, EINVAL,
                       "%s:%d: service '%s' ends before it begins: set end= above at=", HERE(p),
                       s->name);
    return 0;
}

/* Its first words: 'job NAME' or 'service NAME'. */
static int parse_name(struct trace_parser *p, const char **name, struct err *e)
{
    const struct word *w = p->words.word;

    p->kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (w[0].key.at == NULL && slice_is(w[0].value, kinds[i].word))
            p->kind = &kinds[i];
    if (p->kind == NULL)
        return err_set(e, EINVAL, "%s:%d: a line begins with job, service or #", HERE(p));
    *name = p->words.n > 1 && w[1].key.at == NULL ? words_name(&p->words, w[1].value) : NULL;
    if (*name == NULL)
        return err_set(e, EINVAL,
                       "%s:%d: want '%s NAME key=value ...', NAME of 1 to 200 printable "
                       "bytes, in quotes when it has blanks or '='",
                       HERE(p), p->kind->word);
    if (map_get(&p->names, *name) >= 0)
        return err_set(e, EINVAL, "%s:%d: job '%s' is there twice: give each its own name", HERE(p),
                       *name);
    memset(p->is_seen, 0, sizeof p->is_seen);
    return 0;
}

/* job NAME key=value ... [exclusive] [one_node] */
static int parse_job(struct trace_parser *p, struct trace_job *j, struct err *e)
{
    const struct word *w = p->words.word;
    bool is_one_node = false;

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
    int rc = finish_line(p, j->name, &j->workload, e);
    return rc < 0 ? rc : finish_job(p, j, e);
}

/* service NAME key=value ... */
static int parse_service(struct trace_parser *p, struct trace_service *s, struct err *e)
{
    const struct word *w = p->words.word;

    for (int i = 2; i < p->words.n; i++) {
        if (w[i].key.at == NULL)
            return err_set(e, EINVAL, "%s:%d: '%.*s' is not key=value", HERE(p), SHOWN(w[i].value));
        if (take_pair(p, s, &w[i], e) < 0)
            return -EINVAL;
    }
    int rc = finish_line(p, s->name, &s->workload, e);
    return rc < 0 ? rc : finish_service(p, s, e);
}

static int parse_line(struct trace_parser *p, struct err *e)
{
    struct trace *t = p->out;
    const char *name;
    int rc = parse_name(p, &name, e);

    if (rc < 0)
        return rc;
    if (p->kind == &kinds[0]) {
        struct trace_job j = {
            .line = p->words.line, .name = name, .deadline_s = NAN, .n_gpus = 1
        };

        rc = parse_job(p, &j, e);
        ARENA_GROW(p->arena, t->jobs, t->n_jobs, p->cap);
        t->jobs[t->n_jobs++] = j;
    } else {
        struct trace_service s = { .line = p->words.line,
                                   .name = name,
                                   .end_s = NAN,
                                   .max_batch = BATCH_USUAL,
                                   .max_gpus = 1,
                                   .load_s = LOAD_USUAL_S };

        rc = parse_service(p, &s, e);
        ARENA_GROW(p->arena, t->services, t->n_services, p->cap_services);
        t->services[t->n_services++] = s;
    }
    map_set(&p->names, name, 0);
    return rc;
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
    order = ARENA_ARRAY(a, struct trace_moment, (size_t)t->n_services);
    struct trace_service *services = ARENA_ARRAY(a, struct trace_service, (size_t)t->n_services);
    for (int i = 0; i < t->n_services; i++)
        order[i] = (struct trace_moment){ t->services[i].at_s, i };
    trace_moments_sort(order, t->n_services);
    for (int i = 0; i < t->n_services; i++)
        services[i] = t->services[order[i].job];
    t->services = services;
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
    int rc;

    *out = (struct trace){ .name = name };
    words_open(&p.words, a, name, text, len);
    while ((rc = words_next(&p.words, e)) > 0) {
        rc = parse_line(&p, e);
        if (rc < 0)
            break;
    }
    map_release(&p.names);
    if (rc == 0 && out->n_jobs == 0 && out->n_services == 0)
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
static bool write_key(const void *of, const struct key *k, struct buf *out)
{
    const void *field = (const char *)of + k->offset;

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
    for (int i = 0; i < N_JOB_KEYS && is_fine; i++)
        is_fine = write_key(&said, &job_keys[i], out);
    if (is_fine && j->is_exclusive)
        is_fine = buf_puts(out, " exclusive") == 0;
    if (is_fine && j->n_nodes == 1)
        is_fine = buf_puts(out, " one_node") == 0;
    if (is_fine && j->n_nodes > 1)
        is_fine = buf_printf(out, " nodes=%d", j->n_nodes) == 0;
    return is_fine && buf_puts(out, "\n") == 0;
}

static bool write_service(const struct trace_service *s, struct buf *out)
{
    bool is_fine = buf_puts(out, "service ") == 0 && words_put(out, s->name) == 0;

    for (int i = 0; i < N_SERVICE_KEYS && is_fine; i++)
        is_fine = write_key(s, &service_keys[i], out);
    return is_fine && buf_puts(out, "\n") == 0;
}

int trace_write(const struct trace *t, struct buf *out)
{
    for (int i = 0; i < t->n_jobs; i++)
        if (!write_job(&t->jobs[i], out))
            return -ENOSPC;
    for (int i = 0; i < t->n_services; i++)
        if (!write_service(&t->services[i], out))
            return -ENOSPC;
    return 0;
}

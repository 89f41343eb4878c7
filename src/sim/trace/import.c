#include "sim/trace/import.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/csv.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text/words.h"
#include "catalog/catalog.h"
#include "serve/azure.h"
#include "sim/trace/generate.h"
#include "sim/world/truth.h"

#define GPUS_MAX 4096    // of one job, as job_spec_check has it

bool trace_cut(struct slice *rest, char separator, struct slice *part)
{
    const char *at;

    if (rest->at == NULL)
        return false;
    at = rest->len > 0 ? memchr(rest->at, separator, rest->len) : NULL;
    *part = (struct slice){ rest->at, at != NULL ? (size_t)(at - rest->at) : rest->len };
    *rest = at != NULL ? (struct slice){ at + 1, rest->len - part->len - 1 }
                       : (struct slice){ NULL, 0 };
    return true;
}

/* One more job at the end of 'out', zeroed but for what every job has. */
static struct trace_job *add_job(struct arena *a, struct trace *out, int *cap)
{
    ARENA_GROW(a, out->jobs, out->n_jobs, *cap);
    out->jobs[out->n_jobs] = (struct trace_job){ .deadline_s = NAN, .n_gpus = 1, .max_gpus = 1 };
    return &out->jobs[out->n_jobs++];
}

static void set_gpus(struct trace_job *j, int n)
{
    j->n_gpus = j->max_gpus = n;
}

/* Sort, keep the first ones, cut gangs down, let time begin with the first arrival. What is drawn
 * is drawn after this, so that it does not depend on the order of the file's rows.
 */
static int finish(struct arena *a, struct trace_import *in, struct trace *out, struct err *e)
{
    if (out->n_jobs == 0)
        return err_set(e, EINVAL, "%s: no job in it: is this the right file?", in->name);
    trace_sort(a, out);
    if (in->n_jobs > 0 && out->n_jobs > in->n_jobs)
        out->n_jobs = in->n_jobs;
    trace_begin_at_first(out);
    for (int i = 0; i < out->n_jobs; i++)
        if (in->gang_max > 0 && out->jobs[i].n_gpus > in->gang_max)
            set_gpus(&out->jobs[i], in->gang_max);
    return 0;
}

/* ---- Gavel ---- */

enum { GAVEL_COLUMNS = 10 };

/* Which column holds what; -1: this kind of file does not say. */
static const struct gavel_kind {
    int n_columns, steps, scale, arrival, slo, priority;
} gavel_kinds[] = {
    { .n_columns = 7, .steps = 4, .arrival = 5, .scale = 6, .slo = -1, .priority = -1 },
    { .n_columns = 10, .steps = 5, .scale = 6, .priority = 7, .slo = 8, .arrival = 9 },
};

static int gavel_number(const struct trace_import *in, int line, struct slice s, const char *what,
                        double low, double high, double *v, struct err *e)
{
    if (text_to_double(s, v) == 0 && *v >= low && *v <= high)
        return 0;
    return err_set(e, EINVAL, "%s:%d: %s '%.*s': want a number from %g to %g", in->name, line, what,
                   (int)(s.len < 40 ? s.len : 40), s.at, low, high);
}

static int gavel_row(struct arena *a, const struct trace_import *in, int line, struct slice row,
                     struct trace_job *j, struct err *e)
{
    struct slice column[GAVEL_COLUMNS] = { 0 };
    const struct gavel_kind *k = gavel_kinds;
    struct slice field;
    double scale, priority = 0, slo = -1;
    int n = 0;

    for (; trace_cut(&row, '\t', &field); n++)
        if (n < GAVEL_COLUMNS)
            column[n] = field;
    if (n == gavel_kinds[1].n_columns)
        k = &gavel_kinds[1];
    if (n != k->n_columns)
        return err_set(e, EINVAL,
                       "%s:%d: %d tab-separated columns: want 7 (msr) or 10 "
                       "(physical_cluster)",
                       in->name, line, n);
    if (!text_is_name(column[0]))
        return err_set(e, EINVAL, "%s:%d: the first column is no workload name", in->name, line);
    j->workload = arena_strndup(a, column[0].at, column[0].len);
    if (gavel_number(in, line, column[k->steps], "total_steps", 1, 1e14, &j->steps, e) < 0 ||
        gavel_number(in, line, column[k->arrival], "arrival_time", 0, 1e12, &j->at_s, e) < 0 ||
        gavel_number(in, line, column[k->scale], "scale_factor", 1, GPUS_MAX, &scale, e) < 0)
        return -EINVAL;
    if (k->priority >= 0 &&
        (gavel_number(in, line, column[k->priority], "priority_weight", 0, 1e6, &priority, e) < 0 ||
         gavel_number(in, line, column[k->slo], "SLO", -1e9, 1e9, &slo, e) < 0))
        return -EINVAL;
    set_gpus(j, (int)scale);
    j->priority = priority > 1 ? (int)priority : 0;    // a weight of 1 is the usual one
    if (slo > 0)
        j->deadline_s = slo;
    j->name = arena_printf(a, "g%06d", line);
    return 0;
}

/* Promises for jobs whose workload the truth knows. */
static void promise_gavel(struct trace_draw *d, struct trace *out)
{
    for (int i = 0; i < out->n_jobs; i++) {
        struct trace_job *j = &out->jobs[i];
        int w = truth_find_workload(d->truth, j->workload);

        if (w >= 0 && truth_speed(d->truth, w, d->reference) > 0)
            j->min_throughput = draw_promise(d, w, j->n_gpus);
    }
}

int trace_import_gavel(struct arena *a, struct trace_import *in, struct trace *out, struct err *e)
{
    struct slice text = { in->text, in->len }, row;
    int cap = 0, rc;

    *out = (struct trace){ 0 };
    for (int line = 1; trace_cut(&text, '\n', &row); line++) {
        if (slice_trim(row).len == 0)
            continue;
        if (row.at[row.len - 1] == '\r')
            row.len--;
        if (gavel_row(a, in, line, row, add_job(a, out, &cap), e) < 0)
            return -EINVAL;
    }
    rc = finish(a, in, out, e);
    if (rc == 0 && in->draw != NULL)
        promise_gavel(in->draw, out);
    return rc;
}

/* ---- what Philly and Alibaba have in common: durations instead of steps ---- */

/* Training that takes 'duration_s' alone on reference GPUs at 'share' of their speed. */
static void draw_training(struct trace_draw *d, struct trace_job *j, double duration_s,
                          double share)
{
    int w = draw_workload(d, 0);

    j->workload = d->truth->catalog->workloads[w].name;
    j->steps = fmax(
        round(duration_s * share * truth_gang_speed(d->truth, w, d->reference, j->n_gpus, 0)), 1);
    j->min_throughput = draw_promise(d, w, j->n_gpus) * share;
    j->duration_s = 0;
}

static void draw_serving(struct trace_draw *d, struct trace_job *j, double share)
{
    int w = draw_workload(d, 1);

    j->workload = d->truth->catalog->workloads[w].name;
    j->rate = rng_between(&d->rates, 0.3, 0.8) * share *
              truth_gang_speed(d->truth, w, d->reference, j->n_gpus, 0);
}

static int whole_gpus(const struct csv *c, int column, int low, int *n, struct err *e)
{
    double v;

    if (csv_number(c, column, false, &v, e) < 0)
        return -EINVAL;
    if (v < low || v > GPUS_MAX || v != (int)v)
        return err_set(e, EINVAL, "%s:%d: want a whole number of GPUs from %d to %d", c->name,
                       c->line, low, GPUS_MAX);
    *n = (int)v;
    return 0;
}

/* ---- Philly ---- */

bool trace_calendar(struct slice s, struct tm *out)
{
    static const struct {
        size_t at, len;
        long low, high;
    } parts[] = { { 0, 4, 1970, 9999 }, { 5, 2, 1, 12 },  { 8, 2, 1, 31 },
                  { 11, 2, 0, 23 },     { 14, 2, 0, 59 }, { 17, 2, 0, 60 } };
    long v[6];

    if (s.len != 19 || s.at[4] != '-' || s.at[7] != '-' || (s.at[10] != ' ' && s.at[10] != 'T') ||
        s.at[13] != ':' || s.at[16] != ':')
        return false;
    for (int i = 0; i < 6; i++) {
        const char *digits = s.at + parts[i].at;

        if (digits[0] == '-' || digits[0] == '+' ||
            text_to_long((struct slice){ digits, parts[i].len }, parts[i].low, parts[i].high,
                         &v[i]) < 0)
            return false;
    }
    *out = (struct tm){ .tm_year = (int)v[0] - 1900,
                        .tm_mon = (int)v[1] - 1,
                        .tm_mday = (int)v[2],
                        .tm_hour = (int)v[3],
                        .tm_min = (int)v[4],
                        .tm_sec = (int)v[5] };
    return true;
}

struct philly_columns {
    int timestamp, duration, n_gpus, cluster;
};

static int philly_row(struct arena *a, const struct csv *c, const struct philly_columns *at,
                      struct trace_job *j, struct err *e)
{
    struct tm submitted;
    int n = 0;

    if (!trace_calendar(c->field[at->timestamp], &submitted))
        return err_set(e, EINVAL, "%s:%d: timestamp '%.*s': want YYYY-MM-DD HH:MM:SS", c->name,
                       c->line,
                       (int)(c->field[at->timestamp].len < 40 ? c->field[at->timestamp].len : 40),
                       c->field[at->timestamp].at);
    j->at_s = (double)timegm(&submitted);
    if (csv_number(c, at->duration, false, &j->duration_s, e) < 0 ||
        whole_gpus(c, at->n_gpus, 1, &n, e) < 0)
        return -EINVAL;
    if (j->duration_s < 0 || j->duration_s > 1e9)
        return err_set(e, EINVAL, "%s:%d: duration %g: want seconds from 0 to 1e9", c->name,
                       c->line, j->duration_s);
    set_gpus(j, n);
    if (text_is_name(c->field[at->cluster]))
        j->owner = arena_strndup(a, c->field[at->cluster].at, c->field[at->cluster].len);
    j->name = arena_printf(a, "p%06d", c->line);
    return 0;
}

int trace_import_philly(struct arena *a, struct trace_import *in, struct trace *out, struct err *e)
{
    struct philly_columns at;
    struct csv csv;
    int cap = 0, rc;

    *out = (struct trace){ 0 };
    if (csv_open(&csv, a, in->name, in->text, in->len, e) < 0 ||
        csv_require(&csv, "timestamp", &at.timestamp, e) < 0 ||
        csv_require(&csv, "duration", &at.duration, e) < 0 ||
        csv_require(&csv, "num_gpus", &at.n_gpus, e) < 0 ||
        csv_require(&csv, "cluster", &at.cluster, e) < 0)
        return -EINVAL;
    while ((rc = csv_next(&csv, e)) > 0) {
        if (philly_row(a, &csv, &at, add_job(a, out, &cap), e) < 0)
            return -EINVAL;
        if (out->jobs[out->n_jobs - 1].duration_s == 0) {
            out->n_jobs--;
            in->n_skipped++;
        }
    }
    if (rc < 0 || (rc = finish(a, in, out, e)) < 0)
        return rc;
    for (int i = 0; i < out->n_jobs; i++)
        draw_training(in->draw, &out->jobs[i], out->jobs[i].duration_s, 1);
    return 0;
}

/* ---- Alibaba ---- */

/* The models of the openb lists and what we take them for (docs/formats/trace.md). */
static const struct {
    const char *model, *type;
} openb_models[] = {
    { "P100", "p100" }, { "T4", "t4" }, { "V100M16", "v100-16" }, { "V100M32", "v100-32" },
    { "A10", "a10" },   { "G2", "g2" }, { "G3", "g3" },
};

static const char *openb_type(struct slice model)
{
    for (size_t i = 0; i < sizeof openb_models / sizeof openb_models[0]; i++) {
        if (slice_is(model, openb_models[i].model))
            return openb_models[i].type;
    }
    return NULL;
}

/* "P100|V100M16" as "p100,v100-16"; a model that is named twice counts once. */
static int openb_types(struct arena *a, const struct csv *c, struct slice spec, const char **out,
                       struct err *e)
{
    char text[200] = "";
    size_t len = 0;
    const char *p = spec.at, *end = spec.at + spec.len;

    *out = NULL;
    while (p < end) {
        const char *bar = memchr(p, '|', (size_t)(end - p));
        struct slice model = { p, (size_t)((bar != NULL ? bar : end) - p) };
        const char *type = openb_type(model);

        p = bar != NULL ? bar + 1 : end;
        if (type == NULL)
            return err_set(e, EINVAL,
                           "%s:%d: GPU model '%.*s' is not one of P100, T4, V100M16, "
                           "V100M32, A10, G2, G3",
                           c->name, c->line, (int)(model.len < 40 ? model.len : 40), model.at);
        if (strstr(text, type) == NULL && len + strlen(type) + 2 < sizeof text)
            len +=
                (size_t)snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? "," : "", type);
    }
    if (len > 0)
        *out = arena_strdup(a, text);
    return 0;
}

struct openb_columns {
    int name, n_gpus, milli, spec, qos, created, deleted, scheduled;
};

static int openb_times(const struct csv *c, const struct openb_columns *at, struct trace_job *j,
                       struct err *e)
{
    double deleted_s, scheduled_s;

    if (csv_number(c, at->created, false, &j->at_s, e) < 0 ||
        csv_number(c, at->deleted, false, &deleted_s, e) < 0 ||
        csv_number(c, at->scheduled, true, &scheduled_s, e) < 0)
        return -EINVAL;
    if (j->at_s < 0 || j->at_s > 1e12 || deleted_s > 1e12)
        return err_set(e, EINVAL, "%s:%d: times are seconds from 0 to 1e12", c->name, c->line);
    j->duration_s = deleted_s - (isnan(scheduled_s) ? j->at_s : fmax(scheduled_s, j->at_s));
    j->duration_s = fmin(fmax(j->duration_s, 0), 1e9);
    return 0;
}

/* One pod. Its share of a GPU travels in min_throughput until promises are drawn. */
static int openb_row(struct arena *a, struct csv *c, const struct openb_columns *at,
                     struct trace_job *j, struct err *e)
{
    struct slice qos = c->field[at->qos];
    double milli = 0;
    int n = 0;

    if (!text_is_name(c->field[at->name]))
        return err_set(e, EINVAL, "%s:%d: the pod has no printable name", c->name, c->line);
    if (whole_gpus(c, at->n_gpus, 0, &n, e) < 0 || csv_number(c, at->milli, false, &milli, e) < 0 ||
        openb_times(c, at, j, e) < 0 || openb_types(a, c, c->field[at->spec], &j->types, e) < 0)
        return -EINVAL;
    if (milli < 0 || milli > 1000 || (n > 0 && milli == 0))
        return err_set(e, EINVAL, "%s:%d: gpu_milli %g: want 1 to 1000 thousandths of a GPU",
                       c->name, c->line, milli);
    if (!slice_is(qos, "LS") && !slice_is(qos, "BE") && !slice_is(qos, "Burstable") &&
        !slice_is(qos, "Guaranteed"))
        return err_set(e, EINVAL, "%s:%d: qos '%.*s' is not LS, BE, Burstable or Guaranteed",
                       c->name, c->line, (int)(qos.len < 40 ? qos.len : 40), qos.at);
    j->name = arena_strndup(a, c->field[at->name].at, c->field[at->name].len);
    j->is_inference = slice_is(qos, "LS") || slice_is(qos, "Guaranteed");
    j->is_exclusive = milli == 1000;
    j->min_throughput = milli / 1000;
    j->n_gpus = j->max_gpus = n;
    return 0;
}

static int openb_open(struct csv *csv, struct arena *a, const struct trace_import *in,
                      struct openb_columns *at, struct err *e)
{
    if (csv_open(csv, a, in->name, in->text, in->len, e) < 0 ||
        csv_require(csv, "name", &at->name, e) < 0 ||
        csv_require(csv, "num_gpu", &at->n_gpus, e) < 0 ||
        csv_require(csv, "gpu_milli", &at->milli, e) < 0 ||
        csv_require(csv, "gpu_spec", &at->spec, e) < 0 ||
        csv_require(csv, "qos", &at->qos, e) < 0 ||
        csv_require(csv, "creation_time", &at->created, e) < 0 ||
        csv_require(csv, "deletion_time", &at->deleted, e) < 0 ||
        csv_require(csv, "scheduled_time", &at->scheduled, e) < 0)
        return -EINVAL;
    return 0;
}

static void openb_draw(struct trace_draw *d, struct trace_job *j)
{
    double share = j->min_throughput;

    j->min_throughput = 0;
    if (j->is_inference)
        draw_serving(d, j, share);
    else
        draw_training(d, j, j->duration_s, share);
}

/* Pods' names must be each other's only one, like any trace's. */
static int check_names(const struct trace_import *in, const struct trace *t, struct err *e)
{
    struct map names = { 0 };
    int rc = 0;

    for (int i = 0; i < t->n_jobs && rc == 0; i++) {
        if (map_get(&names, t->jobs[i].name) >= 0)
            rc = err_set(e, EINVAL, "%s: pod '%s' is there twice: keep one row", in->name,
                         t->jobs[i].name);
        map_set(&names, t->jobs[i].name, i);
    }
    map_release(&names);
    return rc;
}

int trace_import_alibaba(struct arena *a, struct trace_import *in, struct trace *out, struct err *e)
{
    struct openb_columns at;
    struct csv csv;
    int cap = 0, rc;

    *out = (struct trace){ 0 };
    if (openb_open(&csv, a, in, &at, e) < 0)
        return -EINVAL;
    while ((rc = csv_next(&csv, e)) > 0) {
        struct trace_job *j = add_job(a, out, &cap);

        if (openb_row(a, &csv, &at, j, e) < 0)
            return -EINVAL;
        if (j->n_gpus == 0 || j->duration_s < 1e-3) {
            out->n_jobs--;
            in->n_skipped++;
        }
    }
    if (rc == 0)
        rc = finish(a, in, out, e);
    if (rc == 0)
        rc = check_names(in, out, e);
    for (int i = 0; rc == 0 && i < out->n_jobs; i++)
        openb_draw(in->draw, &out->jobs[i]);
    return rc;
}

/* ---- Azure ---- */

/* Requests begin when replicas had the time to load twice: who sends them waits for a server. */
#define AZURE_LOADS 2

int trace_import_azure(struct arena *a, const struct trace_import *in, struct trace_service *s,
                       struct buf *arrivals, struct err *e)
{
    const double lead_s = AZURE_LOADS * s->load_s;
    struct azure_trace t;
    int rc = azure_read(a, in->name, in->text, in->len, &t, e);

    if (rc < 0)
        return rc;
    const int n = in->n_jobs > 0 && in->n_jobs < t.n ? in->n_jobs : t.n;
    const double span_s = t.requests[n - 1].at_s;
    s->rate = fmin(fmax(n / fmax(span_s, 1), 1e-6), 1e6);    // as a trace may say
    s->end_s = NAN;
    for (int i = 0; i < n && rc == 0; i++)
        rc = buf_printf(arrivals, "%.6f %d %d\n", lead_s + t.requests[i].at_s, t.requests[i].prompt,
                        t.requests[i].output);
    return rc < 0 ? err_set(e, EFBIG, "%s: too many requests: ask for fewer with --jobs", in->name)
                  : 0;
}

/* ---- Alibaba's nodes ---- */

static const char openb_preamble[] =
    "# Made from Alibaba's openb node list (cluster-trace-gpu-v2023).\n"
    "# G2 and G3 are models whose names the source keeps back. Assumed here: G2 is like an\n"
    "# A10 and G3 like an A100 with 80 GB, by the eight GPUs a node and the years of the\n"
    "# trace. Change these two lines to assume something else.\n"
    "gputype g2 like=a10\n"
    "gputype g3 like=a100-80\n\n";

static int openb_node(const struct csv *c, int sn, int gpu, int model, struct arena *a,
                      struct buf *out, struct err *e)
{
    const char *type = openb_type(c->field[model]);
    int n = 0;

    if (whole_gpus(c, gpu, 0, &n, e) < 0)
        return -EINVAL;
    if (n == 0)
        return 0;
    if (type == NULL || !text_is_name(c->field[sn]))
        return err_set(e, EINVAL,
                       "%s:%d: want a printable sn and a model of P100, T4, V100M16, "
                       "V100M32, A10, G2, G3",
                       c->name, c->line);
    if (buf_puts(out, "node ") < 0 ||
        words_put(out, arena_strndup(a, c->field[sn].at, c->field[sn].len)) < 0 ||
        buf_printf(out, " %s:%d\n", type, n) < 0)
        return err_set(e, EFBIG, "%s: more nodes than a cluster file holds", c->name);
    return 1;
}

int cluster_import_alibaba(struct arena *a, const char *name, const char *text, size_t len,
                           struct buf *out, struct err *e)
{
    struct csv csv;
    int sn, gpu, model, rc, n_nodes = 0;

    if (csv_open(&csv, a, name, text, len, e) < 0 || csv_require(&csv, "sn", &sn, e) < 0 ||
        csv_require(&csv, "gpu", &gpu, e) < 0 || csv_require(&csv, "model", &model, e) < 0)
        return -EINVAL;
    if (buf_puts(out, openb_preamble) < 0)
        return err_set(e, EFBIG, "%s: no room for the cluster file", name);
    while ((rc = csv_next(&csv, e)) > 0) {
        rc = openb_node(&csv, sn, gpu, model, a, out, e);
        if (rc < 0)
            return rc;
        n_nodes += rc;
    }
    if (rc == 0 && n_nodes == 0)
        rc = err_set(e, EINVAL, "%s: no node with a GPU in it", name);
    return rc;
}

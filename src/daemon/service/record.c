#include "daemon/service/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/cycle.h"
#include "daemon/config/config.h"
#include "daemon/service/decide.h"
#include "monitor/energy.h"
#include "optimize/model/plan.h"
#include "estimate/model/model.h"
#include "store/store.h"

#define RECORD_VERSION 2

/* A plan of 100,000 jobs is some 4 MB. */
#define LINE_MAX_BYTES (64u << 20)

struct pending {
    char *text;    // owned
    size_t len;
    bool is_event;
};

struct record {
    char *path;
    int fd;    // -1: given up
    const struct cycle *cycle;
    struct buf line;    // being written
    struct pending *pending;
    int n_pending, cap_pending;
    int n_events;     // among them
    char *options;    // as last told; owned
    long n_models;    // the cycle's, as last told
    int n_files;      // models written beside
    struct arena scratch;
};

/* ---- lines ---- */

static void give_up(struct record *r, const char *why)
{
    log_warn("%s: %s; the record ends here", r->path, why);
    close(r->fd);
    r->fd = -1;
}

static void write_line(struct record *r, const struct pending *p)
{
    const char *at = p->text;
    size_t left = r->fd < 0 ? 0 : p->len;

    while (left > 0) {
        ssize_t n = write(r->fd, at, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            give_up(r, strerror(errno));
            return;
        }
        at += n;
        left -= (size_t)n;
    }
}

static void flush(struct record *r, bool with_events)
{
    for (int i = 0; i < r->n_pending; i++) {
        if (with_events || !r->pending[i].is_event)
            write_line(r, &r->pending[i]);
        free(r->pending[i].text);
    }
    r->n_pending = r->n_events = 0;
}

static void begin_line(struct record *r, const char *what, double time_s)
{
    buf_clear(&r->line);
    buf_printf(&r->line, "{\"what\":\"%s\",\"time_s\":%.17g", what, time_s);
}

/* Lines stand in the order they were told in: behind an event that is not safe yet all wait. */
static void end_line(struct record *r, bool is_event)
{
    bool is_whole = buf_puts(&r->line, "}\n") == 0;
    struct pending p = { .len = r->line.len, .is_event = is_event };

    if (!is_whole && r->fd >= 0)
        give_up(r, "a line too long to be kept");
    if (r->fd < 0)
        return;
    p.text = heap_array(p.len, 1);
    memcpy(p.text, r->line.data, p.len);
    GROW(r->pending, r->n_pending, r->cap_pending);
    r->pending[r->n_pending++] = p;
    r->n_events += is_event;
    if (r->n_events == 0)
        flush(r, true);
}

static void put_number(struct buf *b, const char *key, double v)
{
    if (isfinite(v))
        buf_printf(b, ",\"%s\":%.17g", key, v);
    else
        buf_printf(b, ",\"%s\":null", key);
}

static void put_text(struct buf *b, const char *key, const char *text)
{
    json_t *s = text ? json_string(text) : NULL;    // NULL too where it is not UTF-8
    char *quoted = s ? json_dumps(s, JSON_ENCODE_ANY) : NULL;

    buf_printf(b, ",\"%s\":%s", key, quoted ? quoted : "null");
    free(quoted);
    json_decref(s);
}

static void put_flag(struct buf *b, const char *key, bool v)
{
    buf_printf(b, ",\"%s\":%s", key, v ? "true" : "false");
}

/* Before each item of a list that has just been opened, or has some. */
static void separate(struct buf *b)
{
    if (b->data[b->len - 1] != '[')
        buf_puts(b, ",");
}

static double now_s(const struct record *r)
{
    return clock_now_s(&r->cycle->clock);
}

/* ---- the header ---- */

/* As 'set' lines of a cluster file, which reads them back. */
static void put_settings(struct buf *out, const struct cluster_settings *s)
{
    struct cluster_setting set;
    struct buf b;

    buf_init(&b, 4096);
    for (int i = 0; cluster_setting(s, i, &set); i++) {
        buf_puts(&b, "set ");
        cluster_setting_put(&set, &b);
    }
    put_text(out, "settings", buf_text(&b));
    buf_release(&b);
}

static void put_cluster(struct buf *b, const struct state *s, const struct catalog *c)
{
    buf_puts(b, ",\"gpus\":[");
    for (int g = 0; g < s->n_gpus; g++) {
        json_t *o = json_pack("[s, i, s]", s->nodes[s->gpus[g].node].name, s->gpus[g].slot,
                              c->types[s->gpus[g].type].name);
        char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

        separate(b);
        buf_puts(b, text ? text : "null");
        free(text);
        json_decref(o);
    }
    buf_puts(b, "]");
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void put_header(struct record *r, const struct config *c, bool can_sleep, const char *copy)
{
    struct buf *b = &r->line;

    begin_line(r, "begin", now_s(r));
    buf_printf(b, ",\"version\":%d", RECORD_VERSION);
    put_text(b, "store", base_name(copy));
    put_text(b, "policy", c->policy);
    put_text(b, "shadow", c->mode == MODE_SHADOW ? c->shadow_policy : NULL);
    put_text(b, "model", c->model);
    put_text(b, "estimator", estimator_names[c->estimator]);
    put_flag(b, "learns", c->is_learning);
    put_flag(b, "sleeps", can_sleep);
    put_settings(b, &c->cluster.settings);
    put_cluster(b, &r->cycle->ledger->state, r->cycle->catalog);
    end_line(r, false);
}

/* A name beside the record that nobody has yet. */
static const char *free_name(struct record *r, const char *ending)
{
    const char *name = arena_printf(&r->scratch, "%s.%s", r->path, ending);
    struct stat st;

    for (int i = 2; stat(name, &st) == 0; i++)
        name = arena_printf(&r->scratch, "%s.%d.%s", r->path, i, ending);
    return name;
}

int record_open(const char *path, const struct config *c, const struct cycle *cycle, bool can_sleep,
                struct record **out, struct err *e)
{
    *out = NULL;
    if (!path)
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(e, errno, "record %s: %s", path, strerror(errno));
    struct record *r = heap_array(1, sizeof *r);
    r->fd = fd;
    r->path = heap_text(path);
    r->cycle = cycle;
    r->n_models = cycle->n_models;
    buf_init(&r->line, LINE_MAX_BYTES);
    arena_init(&r->scratch);
    const char *copy = free_name(r, "db");
    int rc = store_copy(cycle->catalog->store, copy, e);
    if (rc < 0) {
        record_close(r);
        return rc;
    }
    put_header(r, c, can_sleep, copy);
    *out = r;
    return 0;
}

void record_close(struct record *r)
{
    if (!r)
        return;
    flush(r, false);
    if (r->fd >= 0)
        close(r->fd);
    free(r->pending);
    free(r->options);
    buf_release(&r->line);
    arena_release(&r->scratch);
    free(r->path);
    free(r);
}

/* ---- transactions ---- */

void record_commit(struct record *r)
{
    if (r)
        flush(r, true);
}

void record_undo(struct record *r)
{
    if (r)
        flush(r, false);
}

static void tell_event(struct record *r, const char *kind, double time_s, const char *body,
                       bool is_safe)
{
    begin_line(r, "event", time_s);
    buf_printf(&r->line, ",\"kind\":\"%s\",\"body\":", kind);
    buf_puts(&r->line, body);
    end_line(r, !is_safe);
}

/* What a job runs and with what secrets is nobody's business here. */
void record_event(struct record *r, const struct event *ev)
{
    struct event told;
    struct job_spec spec;

    if (!r)
        return;
    told = *ev;
    if (ev->kind == EVENT_JOB_SUBMITTED) {
        spec = *ev->spec;
        spec.command = spec.key = spec.digest = NULL;
        told.spec = &spec;
    }
    const char *body =
        event_encode(&r->scratch, &told, &r->cycle->ledger->state, r->cycle->catalog);
    assert(body);    // the journal has it
    tell_event(r, event_kind_name(ev->kind), ev->time_s, body, false);
    arena_reset(&r->scratch);
}

void record_measure(struct record *r, const struct measurement *m)
{
    if (!r)
        return;
    const struct catalog *c = r->cycle->catalog;
    const struct cell_key *k = &m->key;
    struct buf *b = &r->line;

    begin_line(r, "measurement", m->time_s);
    put_text(b, "workload", c->workloads[k->workload].name);
    put_text(b, "gpu_type", c->types[k->gpu_type].name);
    put_text(b, "neighbour", k->neighbour < 0 ? NULL : c->workloads[k->neighbour].name);
    buf_printf(b, ",\"n_gpus\":%d,\"limit_w\":%d", k->n_gpus, k->limit_w);
    put_flag(b, "spread", k->is_spread);
    put_flag(b, "fits", m->fits);
    put_number(b, "throughput", m->throughput);
    put_number(b, "watts", m->watts);
    put_number(b, "duration_s", m->duration_s);
    put_number(b, "noise", m->noise);
    put_number(b, "ln_pace", m->ln_pace);
    put_number(b, "ln_undone", m->ln_undone);
    end_line(r, false);
}

void record_profile(struct record *r, int workload, const struct solo_profile *seen, double time_s)
{
    if (!r)
        return;
    begin_line(r, "profile", time_s);
    put_text(&r->line, "workload", r->cycle->catalog->workloads[workload].name);
    put_number(&r->line, "gpu_activity", seen->gpu_activity);
    put_number(&r->line, "mem_activity", seen->mem_activity);
    put_number(&r->line, "watts", seen->watts);
    put_number(&r->line, "mem_used_bytes", seen->mem_used_bytes);
    end_line(r, false);
}

void record_workload(struct record *r, const struct workload *w)
{
    if (!r)
        return;
    struct buf *b = &r->line;

    begin_line(r, "workload", now_s(r));
    put_text(b, "name", w->name);
    put_text(b, "family", w->family);
    put_text(b, "task", w->task);
    put_text(b, "dataset", w->dataset);
    put_number(b, "batch", w->batch);
    put_flag(b, "inference", w->is_inference);
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        put_number(b, workload_number_names[i], workload_number(w, i));
    put_text(b, "precision", precision_name(w->precision));
    buf_printf(b, ",\"needs_capability\":%d", w->needs_capability);
    end_line(r, false);
}

/* ---- nodes ---- */

static void tell_type(struct record *r, const struct gpu_type *t, bool is_described)
{
    struct buf *b = &r->line;

    begin_line(r, "gpu_type", now_s(r));
    put_text(b, "name", t->name);
    put_flag(b, "described", is_described);
    put_text(b, "title", t->title);
    put_text(b, "source", t->source);
    put_number(b, "peak_fp32_flops", t->peak_fp32_flops);
    put_number(b, "peak_tf32_flops", t->peak_tf32_flops);
    put_number(b, "peak_fp16_flops", t->peak_fp16_flops);
    put_number(b, "peak_fp8_flops", t->peak_fp8_flops);
    put_number(b, "peak_int8_flops", t->peak_int8_flops);
    put_number(b, "bandwidth_bytes_s", t->bandwidth_bytes_s);
    put_number(b, "mem_bytes", t->mem_bytes);
    put_number(b, "launch_s", t->launch_s);
    put_number(b, "idle_w", t->idle_w);
    put_number(b, "sleep_w", t->sleep_w);
    put_number(b, "cap_w", t->cap_w);
    put_number(b, "limit_low_w", t->limit_low_w);
    buf_printf(b, ",\"year\":%d,\"share_max\":%d,\"capability\":%d", t->year, t->share_max,
               t->capability);
    put_text(b, "sharing", sharing_name(t->sharing));
    end_line(r, false);
}

static int tell_row(void *self, const struct row_event *row)
{
    tell_event(self, row->kind, row->time_s, row->body, true);
    return 0;
}

void record_installed(struct record *r, const struct cluster *cl, int64_t after_seq)
{
    struct err e = { 0 };

    if (!r)
        return;
    for (int i = 0; i < cl->n_types; i++)
        tell_type(r, &cl->types[i], cl->is_described[i]);
    if (store_each_event(r->cycle->catalog->store, after_seq, tell_row, r, &e) < 0 && r->fd >= 0)
        give_up(r, e.text);
}

/* ---- decisions ---- */

static void tell_model(struct record *r)
{
    const struct cycle *c = r->cycle;
    struct err e = { 0 };

    if (c->n_models == r->n_models)
        return;
    r->n_models = c->n_models;
    const char *path = free_name(r, "model");
    if (model_write(c->model, path, &e) < 0) {
        if (r->fd >= 0)
            give_up(r, e.text);
        return;
    }
    begin_line(r, "model", now_s(r));
    put_text(&r->line, "file", base_name(path));
    end_line(r, false);
    arena_reset(&r->scratch);
}

/* Where they are not as last told. */
static void put_options(struct record *r)
{
    const struct solve_options *o = &r->cycle->options;
    struct buf b;

    buf_init(&b, 4096);
    buf_printf(&b, ",\"options\":{\"objective\":\"%s\"",
               o->objective == OBJECTIVE_WATTS ? "watts" : "joules");
    put_number(&b, "price_w", o->price_w);
    put_number(&b, "delay_w", o->delay_w);
    put_number(&b, "promise_w", o->promise_w);
    put_number(&b, "power_cap_w", o->power_cap_w);
    put_number(&b, "move_s", o->move_s);
    put_number(&b, "settle_s", o->settle_s);
    put_number(&b, "unfit_max", o->unfit_max);
    put_number(&b, "alone_unfit_max", o->alone_unfit_max);
    put_flag(&b, "may_share", o->may_share);
    put_flag(&b, "may_move", o->may_move);
    put_flag(&b, "may_probe", o->may_probe);
    put_flag(&b, "may_limit", o->may_limit);
    put_flag(&b, "may_choose", o->may_choose);
    put_flag(&b, "may_sleep", o->may_sleep);
    buf_puts(&b, "}");
    if (!r->options || strcmp(r->options, buf_text(&b)) != 0) {
        buf_puts(&r->line, buf_text(&b));
        free(r->options);
        r->options = strdup(buf_text(&b));
    }
    buf_release(&b);
}

static void put_busy(struct buf *b, const struct snapshot *s)
{
    buf_puts(b, ",\"busy\":[");
    for (int g = 0; g < s->n_gpus; g++) {
        if (s->gpus[g].may_start || s->nodes[s->gpus[g].node].state != NODE_UP)
            continue;
        separate(b);
        buf_printf(b, "%d", g);
    }
    buf_puts(b, "]");
}

static void put_asleep(struct buf *b, const struct snapshot *s)
{
    buf_puts(b, ",\"wake\":[");
    for (int g = 0; g < s->n_gpus; g++) {
        if (!(s->gpus[g].wake_s > 0))
            continue;
        separate(b);
        buf_printf(b, "[%d,%.17g]", g, s->gpus[g].wake_s);
    }
    buf_puts(b, "]");
}

/* Waiting jobs that an order is being carried out for: they are not planned for. */
static void put_under_way(struct record *r)
{
    const struct state *s = &r->cycle->ledger->state;

    buf_puts(&r->line, ",\"under_way\":[");
    for (int i = s->first_waiting; i >= 0; i = s->jobs[i]->next_waiting) {
        if (!executor_job_is_busy(&r->cycle->executor, i))
            continue;
        separate(&r->line);
        buf_printf(&r->line, "%d", i);
    }
    buf_puts(&r->line, "]");
}

static void put_list(struct buf *b, const char *key, const int *list, int n)
{
    buf_printf(b, ",\"%s\":[", key);
    for (int i = 0; i < n; i++)
        buf_printf(b, "%s%d", i ? "," : "", list[i]);
    buf_puts(b, "]");
}

static int counted(long has)
{
    return has < INT_MAX ? (int)has : INT_MAX;
}

/* Its numbers, and where it is kept from nodes, the rule for each of them. */
static void put_ruled(struct buf *b, const struct snapshot *s, int job)
{
    const struct engine_job *j = &s->engine->jobs[job];

    buf_printf(b, "[%d,%d,%d,%d,%d", s->jobs[job].id, j->cpus, j->mem_mib, j->device, j->is_bound);
    for (int n = 0; n < s->n_nodes && j->barred; n++)
        buf_printf(b, ",%d", j->barred[n]);
    buf_puts(b, "]");
}

/* What the executor cannot do. */
static void put_engine(struct record *r, const struct snapshot *s)
{
    const struct engine_rules *x = s->engine;
    struct buf *b = &r->line;
    int *list;

    if (!x)
        return;
    arena_reset(&r->scratch);
    list = ARENA_ARRAY(&r->scratch, int, (size_t)(2 * s->n_nodes + s->n_gpus));
    for (int n = 0; n < s->n_nodes && x->nodes; n++) {
        list[2 * n] = counted(x->nodes[n].cpus);
        list[2 * n + 1] = counted(x->nodes[n].mem_mib);
    }
    put_list(b, "nodes", list, x->nodes ? 2 * s->n_nodes : 0);
    put_list(b, "devices", x->devices, x->devices ? s->n_gpus : 0);
    for (int g = 0; g < s->n_gpus && x->unlimited; g++)
        list[g] = x->unlimited[g];
    put_list(b, "unlimited", list, x->unlimited ? s->n_gpus : 0);
    buf_puts(b, ",\"ruled\":[");
    for (int j = 0; j < s->n_jobs; j++) {
        separate(b);
        put_ruled(b, s, j);
    }
    buf_puts(b, "]");
}

void record_look(struct record *r, const struct solver *solver, const struct snapshot *s)
{
    if (!r)
        return;
    tell_model(r);
    begin_line(r, "look", s->now_s);
    put_text(&r->line, "policy", solver->name);
    buf_printf(&r->line, ",\"seed\":%" PRIu64, solver->seed);
    put_busy(&r->line, s);
    put_asleep(&r->line, s);
    put_under_way(r);
    put_engine(r, s);
    put_options(r);
    end_line(r, false);
}

static void put_placed(struct buf *b, const struct snapshot *s, const struct plan *p)
{
    buf_puts(b, ",\"run\":[");
    for (int j = 0; j < p->n_jobs; j++) {
        const struct plan_job *pj = &p->jobs[j];

        if (pj->n_gpus == 0)
            continue;
        separate(b);
        buf_printf(b, "[%d,%d", s->jobs[j].id, pj->limit_w);
        for (int i = 0; i < pj->n_gpus; i++)
            buf_printf(b, ",%d", pj->gpus[i]);
        buf_puts(b, "]");
    }
    buf_puts(b, "]");
}

static void put_waiting(struct buf *b, const struct snapshot *s, const struct plan *p)
{
    buf_puts(b, ",\"wait\":[");
    for (int j = 0; j < p->n_jobs; j++) {
        if (p->jobs[j].n_gpus > 0)
            continue;
        separate(b);
        buf_printf(b, "[%d,\"%s\"]", s->jobs[j].id, wait_reason_name(p->jobs[j].reason));
    }
    buf_puts(b, "]");
}

void record_plan(struct record *r, const struct decision *d, bool is_acted, bool is_repriced)
{
    if (!r)
        return;
    struct buf *b = &r->line;
    struct plan_gap gap = plan_gap(&d->plan);

    begin_line(r, "plan", now_s(r));
    put_number(b, "look_s", d->time_s);
    put_text(b, "by", d->plan.made_by);
    put_flag(b, "fallback", d->is_fallback);
    put_flag(b, "acted", is_acted);
    put_flag(b, "repriced", is_repriced);
    put_number(b, "watts", d->plan.watts);
    put_number(b, "gap_w", gap.watts);
    put_number(b, "gap_ratio", gap.ratio);
    put_number(b, "gap_varying_ratio", gap.varying_ratio);
    put_number(b, "took_s", d->seconds);
    put_placed(b, &d->snapshot, &d->plan);
    put_waiting(b, &d->snapshot, &d->plan);
    end_line(r, false);
}

void record_prices(struct record *r)
{
    if (!r)
        return;
    begin_line(r, "prices", now_s(r));
    end_line(r, false);
}

void record_cut(struct record *r, const char *why)
{
    if (!r)
        return;
    begin_line(r, "cut", now_s(r));
    put_text(&r->line, "why", why);
    end_line(r, false);
}

void record_energy(struct record *r, double at_s, const struct energy *e)
{
    if (!r)
        return;
    begin_line(r, "energy", at_s);
    buf_puts(&r->line, ",\"joules\":[");
    for (int g = 0; g < r->cycle->ledger->state.n_gpus; g++)
        buf_printf(&r->line, "%s%.17g", g ? "," : "", energy_gpu_j(e, g));
    buf_puts(&r->line, "]");
    end_line(r, false);
}

/* ---- orders ---- */

static void tell_order(void *self, enum order_kind order, const struct placement *p)
{
    static const char *const words[] = { [ORDER_STOP] = "stop",
                                         [ORDER_MOVE] = "move",
                                         [ORDER_LIMIT] = "move",
                                         [ORDER_START] = "start",
                                         [ORDER_CANCEL] = "cancel" };
    struct record *r = self;

    begin_line(r, words[order], now_s(r));
    buf_printf(&r->line, ",\"job\":%d", p->job);
    if (p->n_gpus > 0) {
        put_list(&r->line, "gpus", p->gpus, p->n_gpus);
        buf_printf(&r->line, ",\"limit_w\":%d", p->limit_w);
    }
    end_line(r, false);
}

void record_orders(struct record *r, struct executor *x)
{
    if (!r)
        return;
    x->on_order = tell_order;
    x->order_to = r;
}

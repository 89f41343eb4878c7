#include "monitor/meter.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "act/gpu/devices.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/loop.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"
#include "monitor/dcgm.h"
#include "monitor/pages/fetch.h"

enum { DCGM_GPUS_MAX = 4096 };
#define ROUND_MIN_S 1.0

/* One dial. */
struct gauge {
    double watts;
    bool is_read;        // and not modelled
    int n_missed;        // in a row
    double unread_s;     // last time that it was not read
    double read_s;       // of the last reading; NaN: none since it is read again
    double counter_j;    // the driver's, at that time; NaN: it has none
    double read_j;       // the integral up to there
    struct meter_use use;
};

/* A page of an exporter. */
struct exporter_page {
    char *url;
    char host[DCGM_HOST_BYTES];    // the node it is of; "": it says so itself
};

/* What one round brings; the worker's in between. */
struct power_reading {
    struct meter *meter;    // NULL: it is gone
    const struct devices *devices;
    struct exporter_page *pages;    // (n_pages) none: by devices
    int n_pages;
    int n;
    struct dcgm_gpu *gpus;    // by device, or as the page has them
    struct err why;
    double late_s;    // the loop's: when it was begun, or last missed
};

struct meter {
    struct watch_setup setup;
    void (*on_round)(void *self);
    void *self;
    struct gauge *gauges;    // (n_gauges) by GPU
    int n_gauges, cap_gauges;
    struct power_reading *under_way;
    struct loop_timer timer;
    double round_s;    // when the last one began
    uint64_t n_failures;
};

/* ---- the model ---- */

double meter_idle_w(const struct meter *m, int gpu)
{
    return m->setup.catalog->types[m->setup.state->gpus[gpu].type].idle_w;
}

static void gauges_reach(struct meter *m)
{
    while (m->n_gauges < m->setup.state->n_gpus) {
        GROW(m->gauges, m->n_gauges, m->cap_gauges);
        m->gauges[m->n_gauges] = (struct gauge){ .watts = meter_idle_w(m, m->n_gauges),
                                                 .unread_s = clock_stopwatch_s(),
                                                 .read_s = NAN };
        m->n_gauges++;
    }
}

/* A node that is down draws nothing, as far as anybody knows. */
static double modelled_w(const struct meter *m, int gpu)
{
    const struct state *s = m->setup.state;

    if (s->nodes[s->gpus[gpu].node].state == NODE_DOWN)
        return 0;
    return m->setup.model_w ? m->setup.model_w(m->setup.model_self, gpu) : meter_idle_w(m, gpu);
}

static void model_rest(struct meter *m)
{
    const double now_s = clock_stopwatch_s();

    gauges_reach(m);
    for (int i = 0; i < m->n_gauges; i++) {
        if (m->gauges[i].is_read)
            continue;
        m->gauges[i].unread_s = now_s;
        m->gauges[i].watts = modelled_w(m, i);
    }
}

/* ---- on the worker ---- */

static void read_devices(struct power_reading *r)
{
    for (int i = 0; i < r->n; i++) {
        struct device_power p;

        r->gpus[i] =
            (struct dcgm_gpu){ .index = i, .watts = NAN, .joules = NAN, .use = { NAN, NAN, NAN } };
        if (devices_get(r->devices, i)->maker == DEVICE_DECLARED)
            continue;
        if (devices_power(r->devices, i, &p, &r->why) == 0) {
            r->gpus[i].watts = p.watts;
            r->gpus[i].joules = p.joules;
            r->gpus[i].use = p.use;
        }
    }
}

/* What the page has of its GPUs, behind those of other pages. */
static void page_read(struct power_reading *r, const struct exporter_page *p,
                      const struct buf *text)
{
    const int n = dcgm_parse(buf_text(text), text->len, r->gpus + r->n, DCGM_GPUS_MAX - r->n);

    for (int i = 0; i < n && p->host[0]; i++)
        memcpy(r->gpus[r->n + i].host, p->host, sizeof p->host);
    r->n += n;
}

static void read_pages(struct power_reading *r)
{
    struct fetch *asked = heap_array((size_t)r->n_pages, sizeof *asked);

    for (int i = 0; i < r->n_pages; i++)
        asked[i] = (struct fetch){ .url = r->pages[i].url };
    fetch_all(asked, r->n_pages);
    for (int i = 0; i < r->n_pages; i++) {
        if (asked[i].rc == 0)
            page_read(r, &r->pages[i], &asked[i].text);
        else
            r->why = asked[i].why;
        buf_release(&asked[i].text);
    }
    free(asked);
}

static void work(void *self)
{
    struct power_reading *r = self;

    if (r->n_pages > 0)
        read_pages(r);
    else if (r->devices)
        read_devices(r);
}

/* ---- back on the loop ---- */

static void reading_free(struct power_reading *r)
{
    for (int i = 0; i < r->n_pages; i++)
        free(r->pages[i].url);
    free(r->pages);
    free(r->gpus);
    free(r);
}

static void gauge_set(struct gauge *d, double now_s, const struct dcgm_gpu *seen)
{
    double since_s = now_s - d->read_s, drawn_j = seen->joules - d->counter_j;

    /* Watts of a counter are a mean, those of a glance hold until the next. */
    double watts = since_s > 0 && drawn_j >= 0 ? drawn_j / since_s : seen->watts;
    if (since_s > 0)
        d->read_j += drawn_j >= 0 ? drawn_j : d->watts * since_s;
    if (!d->is_read)
        d->unread_s = now_s;
    d->watts = watts;
    d->read_s = now_s;
    d->counter_j = seen->joules;
    d->is_read = true;
    d->n_missed = 0;
    if (!(seen->use.gpu <= 1 && seen->use.mem <= 1 && seen->use.mem_bytes >= 0))
        return;
    d->use.sum.gpu += seen->use.gpu;
    d->use.sum.mem += seen->use.mem;
    d->use.sum.mem_bytes += seen->use.mem_bytes;
    d->use.n++;
}

static void gauge_miss(struct meter *m, int gpu, const struct err *why)
{
    struct gauge *d = &m->gauges[gpu];

    m->n_failures++;
    if (++d->n_missed != METER_MISSES)
        return;
    log_warn("power of GPU %d cannot be read (%s); the model stands in", gpu,
             why->text[0] ? why->text : "no answer");
    d->is_read = false;
    d->read_s = NAN;
}

static const struct device *device_of(const struct meter *m, int slot)
{
    const struct devices *d = m->setup.devices;

    return d && slot < devices_n(d) ? devices_get(d, slot) : NULL;
}

/* Is that host the node? Exporters may tell more of its name than Slurm. */
static bool is_host(const char *host, const char *node)
{
    const size_t n = strlen(node);

    return strncmp(host, node, n) == 0 && (host[n] == '\0' || host[n] == '.');
}

/* A page knows GPUs by UUID, or else by the driver's number. */
static bool is_seen(const struct meter *m, const struct dcgm_gpu *seen, int gpu)
{
    const struct gpu *g = &m->setup.state->gpus[gpu];
    const struct device *dev = device_of(m, g->slot);
    const int index = dev && dev->maker != DEVICE_DECLARED ? dev->index : g->slot;

    if (m->setup.node < 0)
        return seen->index == g->slot && is_host(seen->host, m->setup.state->nodes[g->node].name);
    if (dev && dev->uuid && seen->uuid[0] != '\0')
        return strcmp(dev->uuid, seen->uuid) == 0;
    return seen->index == index;
}

/* What a round says of 'gpu'; NULL: nothing. */
static const struct dcgm_gpu *find_seen(const struct meter *m, const struct power_reading *r,
                                        int gpu)
{
    const int slot = m->setup.state->gpus[gpu].slot;

    if (r->n_pages == 0)
        return slot < r->n ? &r->gpus[slot] : NULL;
    for (int i = 0; i < r->n; i++)
        if (is_seen(m, &r->gpus[i], gpu))
            return &r->gpus[i];
    return NULL;
}

/* Is there anything to read there, from here or through its node's exporter? */
static bool is_readable(const struct meter *m, int gpu)
{
    const struct state *s = m->setup.state;
    const struct gpu *g = &s->gpus[gpu];
    const struct device *dev = device_of(m, g->slot);
    const bool is_page = m->setup.power == WATCH_DCGM;

    if (m->setup.power == WATCH_MODEL)
        return false;
    if (m->setup.node < 0)
        return is_page && s->nodes[g->node].state != NODE_DOWN;
    return g->node == m->setup.node && (is_page || (dev && dev->maker != DEVICE_DECLARED));
}

static void done(void *self)
{
    struct power_reading *r = self;
    struct meter *m = r->meter;
    const double now_s = clock_stopwatch_s();

    if (!m) {
        reading_free(r);
        return;
    }
    m->under_way = NULL;
    for (int i = 0; i < m->n_gauges; i++) {
        if (!is_readable(m, i))
            continue;
        const struct dcgm_gpu *seen = find_seen(m, r, i);
        if (seen && seen->watts >= 0) {
            if (m->gauges[i].n_missed >= METER_MISSES)
                log_info("power of GPU %d is read again", i);
            gauge_set(&m->gauges[i], now_s, seen);
        } else {
            gauge_miss(m, i, &r->why);
        }
    }
    reading_free(r);
    model_rest(m);
    m->on_round(m->self);
}

/* The page of a node's exporter: in its address "%h" is the node's name. */
static void add_page(struct power_reading *r, const char *pattern, const char *node)
{
    struct exporter_page *p = &r->pages[r->n_pages++];
    const char *at = strstr(pattern, "%h");
    const int head = (int)(at ? at - pattern : (ptrdiff_t)strlen(pattern));

    if (asprintf(&p->url, "%.*s%s%s", head, pattern, at ? node : "", at ? at + 2 : "") < 0)
        abort();
    if (strlen(node) < sizeof p->host)
        memcpy(p->host, node, strlen(node) + 1);
}

static void list_pages(const struct meter *m, struct power_reading *r)
{
    const struct state *s = m->setup.state;
    const char *url = m->setup.dcgm_url;
    const bool is_each = m->setup.node < 0 && strstr(url, "%h");

    r->pages = heap_array(is_each ? (size_t)s->n_nodes : 1, sizeof *r->pages);
    if (!is_each)
        add_page(r, url, "");
    for (int i = 0; i < s->n_nodes && is_each; i++)
        if (s->nodes[i].state != NODE_DOWN)
            add_page(r, url, s->nodes[i].name);
}

static void begin_reading(struct meter *m)
{
    const struct watch_setup *s = &m->setup;
    struct power_reading *r = heap_array(1, sizeof *r);
    const bool is_page = s->power == WATCH_DCGM;

    r->meter = m;
    r->devices = is_page ? NULL : s->devices;
    r->n = is_page ? 0 : devices_n(s->devices);
    r->gpus = heap_array(is_page ? DCGM_GPUS_MAX : (size_t)r->n, sizeof *r->gpus);
    if (is_page)
        list_pages(m, r);
    r->late_s = m->round_s;
    m->under_way = r;
    loop_work(s->loop, "power", work, done, r);
}

static void on_timer(void *self)
{
    struct meter *m = self;
    static const struct err hangs = { .code = ETIMEDOUT, .text = "a reading does not end" };

    loop_timer_set(&m->timer, m->setup.power_s);
    m->round_s = clock_stopwatch_s();
    gauges_reach(m);
    /* Rounds may come sooner than every power_s; half of it forgives a timer's unevenness. */
    bool is_late = m->under_way && m->round_s - m->under_way->late_s > 0.5 * m->setup.power_s;
    if (is_late)
        m->under_way->late_s = m->round_s;
    for (int i = 0; i < m->n_gauges && is_late; i++) {
        if (is_readable(m, i))
            gauge_miss(m, i, &hangs);
    }
    if (!m->under_way && m->setup.power != WATCH_MODEL)
        begin_reading(m);
    model_rest(m);
    m->on_round(m->self);
}

/* ---- */

int meter_create(const struct watch_setup *s, void (*on_round)(void *self), void *self,
                 struct meter **out, struct err *e)
{
    if (s->power == WATCH_DCGM && !s->dcgm_url)
        return err_set(e, EINVAL, "power by dcgm: the address of the exporter is missing");
    if (s->power == WATCH_DCGM && fetch_begin() < 0)
        return err_set(e, ENOMEM, "power by dcgm: libcurl does not start");
    struct meter *m = heap_array(1, sizeof *m);
    m->setup = *s;
    m->on_round = on_round;
    m->self = self;
    if (s->power == WATCH_DEVICES && (!s->devices || devices_n(s->devices) == 0))
        m->setup.power = WATCH_MODEL;
    gauges_reach(m);
    loop_timer_init(&m->timer, s->loop, "power", on_timer, m);
    loop_timer_set(&m->timer, 0);
    *out = m;
    return 0;
}

void meter_destroy(struct meter *m)
{
    if (!m)
        return;
    loop_timer_clear(&m->timer);
    if (m->under_way)
        m->under_way->meter = NULL;
    free(m->gauges);
    free(m);
}

void meter_soon(struct meter *m)
{
    const double due_s = fmax(m->round_s + ROUND_MIN_S, clock_stopwatch_s());

    if (due_s < m->timer.due_s)
        loop_timer_set(&m->timer, due_s - clock_stopwatch_s());
}

double meter_w(const struct meter *m, int gpu)
{
    return gpu < m->n_gauges ? m->gauges[gpu].watts : (double)NAN;
}

const char *meter_source(const struct meter *m, int gpu)
{
    if (gpu >= m->n_gauges || !m->gauges[gpu].is_read)
        return "model";
    if (m->setup.power == WATCH_DCGM)
        return "dcgm";
    const struct device *dev = device_of(m, m->setup.state->gpus[gpu].slot);
    assert(dev);    // it was read
    return dev->maker == DEVICE_AMD ? "rocm" : "nvml";
}

double meter_read_j(const struct meter *m, int gpu, double t_s)
{
    const struct gauge *d = &m->gauges[gpu];

    return isnan(d->read_s) ? d->read_j : d->read_j + d->watts * (t_s - d->read_s);
}

double meter_unread_s(const struct meter *m, int gpu)
{
    const struct gauge *d = &m->gauges[gpu];

    return d->is_read ? d->unread_s : (double)INFINITY;
}

struct meter_use meter_use(const struct meter *m, int gpu)
{
    return m->gauges[gpu].use;
}

uint64_t meter_n_failures(const struct meter *m)
{
    return m->n_failures;
}

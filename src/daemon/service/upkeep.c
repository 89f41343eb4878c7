#include "daemon/service/upkeep.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "cycle/table.h"
#include "daemon/service/inner.h"
#include "store/store.h"

#define TICK_LEAST_S 0.05    // between two ticks: commits may come faster
#define LOOK_S 30.0          // what arrives is held against what is held this often
#define SAVE_S 180.0         // of arrivals, a kill loses at most so much

/* Arrivals older than a table looks at, and the hour that is being written. */
#define KEEP_S (26 * 3600.0)

struct upkeep {
    struct service *service;
    struct endpoints *endpoints;
    struct health *health;
    struct pages *pages;
    struct loop_timer timer;
    double ticked_s, looked_s;    // on the stopwatch
    int *due;                     // (n_due) services whose tables wait for the worker
    int n_due, cap_due;
    struct table_work *building;    // NULL: none
};

/* ---- tables, on a worker ---- */

struct table_work {
    struct upkeep *upkeep;    // NULL: it is gone
    struct table_build *build;
};

static void begin_table(struct upkeep *u);

static void work_table(void *self)
{
    struct table_work *w = self;

    table_build_run(w->build);
}

static void take_table(void *self)
{
    struct table_work *w = self;
    struct upkeep *u = w->upkeep;

    if (u) {
        services_table_end(&u->service->cycle, w->build);
        u->building = NULL;
        loop_timer_set(&u->timer, 0);    // weights may change
        begin_table(u);
    } else {
        table_build_destroy(w->build);
    }
    free(w);
}

static void begin_table(struct upkeep *u)
{
    struct service *s = u->service;

    if (u->building || u->n_due == 0)
        return;
    int service = u->due[--u->n_due];
    struct table_work *w = heap_array(1, sizeof *w);
    *w = (struct table_work){ u, services_table_begin(&s->cycle, service) };
    u->building = w;
    loop_work(s->loop, "table of a service", work_table, take_table, w);
}

static void on_table_due(void *self, int service)
{
    struct upkeep *u = ((struct service *)self)->inner->upkeep;

    for (int i = 0; i < u->n_due; i++)
        if (u->due[i] == service)
            return;
    GROW(u->due, u->n_due, u->cap_due);
    u->due[u->n_due++] = service;
    begin_table(u);
}

/* ---- arrivals to the store and back ---- */

static int put_row(void *self, int service, int64_t hour_s, const void *bytes, size_t len,
                   struct err *e)
{
    const struct row_arrivals r = {
        .service = service, .hour_s = hour_s, .bytes = bytes, .len = len
    };

    return store_put_arrivals(self, &r, e);
}

/* One service, in this turn's transaction. */
static void save(struct upkeep *u, int service)
{
    struct service *s = u->service;
    struct store *store = s->base.store;
    struct err e = { 0 };
    double before_s = clock_now_s(&s->clock) - KEEP_S;

    if (s->broken || service_begin(s, &e) < 0)
        return;
    int rc = services_save(&s->cycle, service, put_row, store, &e);
    if (rc == 0 && before_s > 0)
        rc = store_drop_arrivals(store, service, (int64_t)before_s, &e);
    if (rc < 0)
        service_undo(s, &e);
}

/* The one that has waited longest, where that is long; so that no turn writes them all. */
static void save_next(struct upkeep *u)
{
    struct service *s = u->service;
    int service = -1;
    double since_s = services_unsaved_s(&s->cycle, &service);

    if (!isnan(since_s) && clock_now_s(&s->clock) - since_s >= SAVE_S)
        save(u, service);
}

void upkeep_save_all(struct upkeep *u)
{
    int service = -1;

    for (int i = 0; u && i < u->service->base.ledger.state.n_services; i++) {
        if (isnan(services_unsaved_s(&u->service->cycle, &service)) || u->service->broken)
            return;
        save(u, service);
        service_commit(u->service);
    }
}

static int load_row(void *self, const struct row_arrivals *r)
{
    struct service *s = self;
    struct err e = { 0 };

    if (services_load(&s->cycle, (int)r->service, r->hour_s, r->bytes, r->len, &e) < 0)
        log_warn("%s", e.text);
    return 0;
}

/* ---- between decisions ---- */

static bool has_services(const struct service *s)
{
    return s->base.ledger.state.n_services > 0;
}

/* Is a service short of what it needs, or has a failed one waited long enough? */
static void look(struct upkeep *u, double *next_s)
{
    struct service *s = u->service;
    const struct state *st = &s->base.ledger.state;
    double now_s = clock_now_s(&s->clock), at_s = clock_stopwatch_s();
    bool is_due = at_s >= u->looked_s + LOOK_S, is_short = false, has_live = false;
    struct service_now n;

    for (int i = 0; i < st->n_services; i++) {
        if (st->jobs[st->services[i]]->state != JOB_WAITING ||
            !services_now(&s->cycle, st->services[i], &n))
            continue;
        has_live = true;
        is_short |= n.held < n.demand || n.held > 2 * n.demand;
        if (n.retry_s > now_s)
            *next_s = fmin(*next_s, n.retry_s - now_s);
        else if (n.retry_s > now_s - LOOK_S && n.held < n.demand && n.n_starting == 0)
            is_due = true;
    }
    if (has_live)
        *next_s = fmin(*next_s, fmax(u->looked_s + LOOK_S - at_s, 1));
    if (!is_due)
        return;
    u->looked_s = at_s;
    if (is_short)
        service_wake(s);
}

static void on_timer(void *self)
{
    struct upkeep *u = self;
    struct service *s = u->service;
    struct err e = { 0 };
    double next_s = INFINITY;

    if (s->is_stopping || !has_services(s))
        return;
    service_commit(s);    // what waits for the disk does not wait for another turn
    if (s->broken)
        return;    // when it works again, a commit says so
    u->ticked_s = clock_stopwatch_s();
    if (s->cycle.executor.only_watches == NULL && services_tick(&s->cycle, &e) < 0)
        log_warn("services: %s", e.text);
    arena_reset(&s->cycle.arena);
    if (!s->is_turn_open)
        endpoints_refresh(u->endpoints);    // of what is on disk
    look(u, &next_s);
    save_next(u);
    next_s = fmin(next_s, services_next_s(&s->cycle) - clock_now_s(&s->clock));
    if (!s->broken && !isinf(next_s) && u->timer.due_s == (double)INFINITY)
        loop_timer_set(&u->timer, fmin(fmax(next_s, TICK_LEAST_S), LOOK_S));
}

void upkeep_is_safe(struct upkeep *u)
{
    if (!u || !has_services(u->service))
        return;
    health_is_safe(u->health);
    pages_is_safe(u->pages);
    double after_s = fmax(u->ticked_s + TICK_LEAST_S - clock_stopwatch_s(), 0);
    if (!(u->timer.due_s <= clock_stopwatch_s() + after_s))
        loop_timer_set(&u->timer, after_s);
}

const char *service_endpoints(const struct service *s, int service)
{
    return s->inner->upkeep ? endpoints_text(s->inner->upkeep->endpoints, service) : NULL;
}

/* ---- opening, closing ---- */

int upkeep_create(struct service *s, struct err *e)
{
    struct upkeep *u = heap_array(1, sizeof *u);
    struct err why = { 0 };

    *u = (struct upkeep){ .service = s, .ticked_s = -INFINITY, .looked_s = -INFINITY };
    s->inner->upkeep = u;
    estimate_refresh(&s->cycle.estimator);    // weights may be asked for before the first decision
    u->endpoints = endpoints_create(s);
    u->health = health_create(s);
    loop_timer_init(&u->timer, s->loop, "services", on_timer, u);
    s->cycle.on_table_due = on_table_due;
    s->cycle.choose_port = endpoints_choose_port;
    int rc = pages_create(s, &u->pages, e);
    if (rc < 0)
        return rc;
    if (store_each_arrivals(s->base.store, load_row, s, &why) < 0)
        log_warn("what arrived before is not known: %s", why.text);
    upkeep_is_safe(u);
    return 0;
}

void upkeep_destroy(struct upkeep *u)
{
    if (!u)
        return;
    if (u->building)
        u->building->upkeep = NULL;
    loop_timer_clear(&u->timer);
    pages_destroy(u->pages);
    health_destroy(u->health);
    endpoints_destroy(u->endpoints);
    free(u->due);
    u->service->inner->upkeep = NULL;
    free(u);
}

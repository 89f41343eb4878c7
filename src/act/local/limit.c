/* Power limits of this box's GPUs: asked of the driver one after the other, on a worker. */
#include "act/local/inner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "act/gpu/devices.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define DRIVER_S 20.0    // a call that takes longer is not coming back

struct limit_work {
    struct local *local;    // NULL: it is gone
    struct limit_work *next;
    const struct devices *devices;
    int job, number;    // -1: for nobody, a GPU that is free again
    bool is_relimit;    // an order of its own
    bool is_awaited;    // likewise, and the driver is not taken to hang
    int n_slots, watts;
    int *slots;
    int rc;
    struct err err;
};

static void begin_next(struct local *l);

static void work_free(struct limit_work *w)
{
    free(w->slots);
    free(w);
}

static void set_limits(void *self)
{
    struct limit_work *w = self;

    for (int i = 0; i < w->n_slots && w->rc == 0; i++)
        w->rc = devices_limit(w->devices, w->slots[i], w->watts, &w->err);
}

/* The job runs, under no limit: what the state believes is put right. */
static void on_refused(struct local *l, const struct limit_work *w, struct run *r)
{
    const bool is_for_good = w->rc == -EPERM || w->rc == -ENOTSUP;

    if (w->watts)
        log_warn("cannot set a power limit of %d W: %s", w->watts, w->err.text);
    else
        log_info("cannot set the default power limit: %s", w->err.text);
    for (int i = 0; i < w->n_slots; i++) {
        l->cannot_limit[w->slots[i]] |= is_for_good;
        l->limit_w[w->slots[i]] = -1;
    }
    if (!r || r->at.limit_w == 0 || w->is_relimit)
        return;
    r->at.limit_w = 0;
    if (r->phase == RUN_RUNNING)
        notice_push(l, r, NOTICE_STARTED, 0, NULL);
}

static void on_set(void *self)
{
    struct limit_work *w = self;
    struct local *l = w->local;
    struct run *r;

    if (!l) {
        work_free(w);
        return;
    }
    l->limits = w->next;
    l->limit_due_s = (double)INFINITY;
    r = w->job < 0 ? NULL : run_find(l, w->job);
    if (r && (r->number != w->number || r->phase == RUN_ENDED))
        r = NULL;
    if (w->rc < 0) {
        on_refused(l, w, r);
    } else if (r && w->is_relimit) {
        r->at.limit_w = w->watts;
        if (r->phase == RUN_RUNNING)
            notice_push(l, r, NOTICE_STARTED, 0, NULL);
    }
    work_free(w);
    begin_next(l);
}

static void begin_next(struct local *l)
{
    if (!l->limits || !isinf(l->limit_due_s))
        return;
    l->limit_due_s = clock_stopwatch_s() + DRIVER_S;
    loop_work(l->setup.loop, "power limits", set_limits, on_set, l->limits);
}

static void enqueue(struct local *l, struct limit_work *w)
{
    struct limit_work **end = &l->limits;

    while (*end)
        end = &(*end)->next;
    *end = w;
    begin_next(l);
}

/* The device's slot when its limit is to be other than it was last asked to be; -1. */
static int slot_to_set(struct local *l, int gpu, int watts)
{
    const int slot = l->setup.state->gpus[gpu].slot;

    if (!env_device(l, gpu) || slot >= l->n_slots || l->cannot_limit[slot] ||
        l->limit_w[slot] == watts)
        return -1;
    l->limit_w[slot] = watts;
    return slot;
}

static bool is_used(const struct local *l, int gpu)
{
    for (int i = 0; i < l->n_active; i++) {
        const struct run *r = l->active[i];

        if (r->phase >= RUN_WANTED && gpu_set_has(&r->at, gpu))
            return true;
    }
    return false;
}

/* For those GPUs whose limit is to be another one. */
static struct limit_work *work_make(struct local *l, const struct gpu_set *at, int watts,
                                    bool only_free)
{
    struct limit_work *w = heap_array(1, sizeof *w);

    *w = (struct limit_work){
        .local = l, .devices = l->setup.devices, .job = -1, .number = -1, .watts = watts
    };
    w->slots = heap_array((size_t)at->n_gpus, sizeof *w->slots);
    for (int i = 0; i < at->n_gpus; i++) {
        const bool is_left = only_free && is_used(l, at->gpus[i]);
        const int slot = is_left ? -1 : slot_to_set(l, at->gpus[i], watts);

        if (slot >= 0)
            w->slots[w->n_slots++] = slot;
    }
    return w;
}

void limit_ask(struct local *l, struct run *r, const struct gpu_set *at, bool is_relimit)
{
    struct limit_work *w = work_make(l, at, at->limit_w, false);

    w->job = r->job;
    w->number = r->number;
    w->is_relimit = w->is_awaited = is_relimit;
    if (w->n_slots > 0 || is_relimit)
        enqueue(l, w);
    else
        work_free(w);
}

void limit_forget(struct local *l, const struct gpu_set *at)
{
    struct limit_work *w = work_make(l, at, 0, true);

    if (w->n_slots > 0)
        enqueue(l, w);
    else
        work_free(w);
}

int limit_n_awaited(const struct local *l, int job)
{
    int n = 0;

    for (const struct limit_work *w = l->limits; w; w = w->next)
        n += w->is_awaited && (job < 0 || w->job == job);
    return n;
}

void limit_note(struct local *l, const struct gpu_set *at)
{
    for (int i = 0; i < at->n_gpus; i++)
        if (at->gpus[i] < l->setup.state->n_gpus && env_device(l, at->gpus[i]))
            l->limit_w[l->setup.state->gpus[at->gpus[i]].slot] = at->limit_w;
}

int limit_check(const struct local *l, const struct gpu_set *at, struct err *e)
{
    for (int i = 0; i < at->n_gpus && at->limit_w; i++) {
        const int slot = l->setup.state->gpus[at->gpus[i]].slot;

        if (slot < l->n_slots && l->cannot_limit[slot])
            return err_set(e, ENOTSUP,
                           "GPU %d takes no power limit; set power_limits 0, or give the "
                           "daemon the right to set them",
                           slot);
    }
    return 0;
}

/* A driver that hangs holds up no decisions, and gets no more to do. */
void limit_sweep(struct local *l)
{
    if (l->limit_due_s > clock_stopwatch_s() || limit_n_awaited(l, -1) == 0)
        return;
    log_warn("the driver does not answer to a power limit; none are set any more");
    for (struct limit_work *w = l->limits; w; w = w->next)
        w->is_awaited = false;
    for (int i = 0; i < l->n_slots; i++)
        l->cannot_limit[i] = true;
}

void limit_release(struct local *l)
{
    struct limit_work *w = l->limits;

    if (!w)
        return;
    w->local = NULL;    // its worker frees it
    for (w = w->next; w;) {
        struct limit_work *next = w->next;
        work_free(w);
        w = next;
    }
}

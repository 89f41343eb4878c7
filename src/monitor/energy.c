#include "monitor/energy.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/map.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"

#define HOUR_S 3600.0
#define NOBODY (-1)

struct gpu_draw {
    double since_s;    // booked up to here; NaN: never heard of
    double watts, idle_w;
    double joules;
    int n;
    struct energy_share who[GPU_JOBS_MAX];
    double weight;    // of all of them
};

/* One row to be. */
struct usage_entry {
    long hour;
    int job, type;    // -1: nobody, none
    struct row_usage row;
};

struct usage_entries {
    struct usage_entry *list;    // (n)
    int n, cap;
};

struct energy {
    const struct state *state;
    const struct catalog *catalog;
    struct gpu_draw *gpus;    // (n_gpus)
    int n_gpus, cap_gpus;
    double *job_j;    // (n_jobs)
    int n_jobs, cap_jobs;
    double total_j;
    struct usage_entries entries;    // since the last energy_take
    struct map_u64 entry_by_key;
    struct usage_entries taken;    // by the last one
};

struct energy *energy_create(const struct state *s, const struct catalog *c)
{
    struct energy *e = heap_array(1, sizeof *e);

    e->state = s;
    e->catalog = c;
    return e;
}

void energy_destroy(struct energy *e)
{
    if (!e)
        return;
    map_u64_release(&e->entry_by_key);
    free(e->entries.list);
    free(e->taken.list);
    free(e->job_j);
    free(e->gpus);
    free(e);
}

/* ---- rows ---- */

static long hour_of(double t_s)
{
    return (long)floor(t_s / HOUR_S);
}

/* Hours since 1970 in 24 bits last until the year 3883; types are at most 255. */
static uint64_t entry_key(long hour, int job, int type)
{
    return (uint64_t)hour << 40 | (uint64_t)(uint32_t)(job + 1) << 8 | (uint64_t)(type + 1);
}

static struct row_usage *row_at(struct energy *e, long hour, int job, int type)
{
    const uint64_t key = entry_key(hour, job, type);
    int i = map_u64_get(&e->entry_by_key, key);

    if (i < 0) {
        const struct catalog *c = e->catalog;
        const int64_t type_row = type >= 0 && c->store ? c->type_row[type] : type + 1;

        GROW(e->entries.list, e->entries.n, e->entries.cap);
        i = e->entries.n++;
        e->entries.list[i] = (struct usage_entry){
            .hour = hour,
            .job = job,
            .type = type,
            .row = { .hour_s = hour * (long)HOUR_S, .job = job, .gpu_type = type_row },
        };
        map_u64_set(&e->entry_by_key, key, i);
    }
    return &e->entries.list[i].row;
}

/* The type of the GPUs that the job is on; -1: none. */
static int type_of_job(const struct energy *e, int job)
{
    const struct job *j = e->state->jobs[job];

    return j->n_held > 0 ? e->state->gpus[j->gpus[0]].type : -1;
}

/* The end of the hour of 't_s', or 'to_s' if that is sooner. */
static double hour_end_s(double t_s, double to_s)
{
    return fmin(to_s, (double)(hour_of(t_s) + 1) * HOUR_S);
}

/* ---- booking ---- */

static double *joules_of(struct energy *e, int job)
{
    while (e->n_jobs <= job) {
        GROW(e->job_j, e->n_jobs, e->cap_jobs);
        e->job_j[e->n_jobs++] = 0;
    }
    return &e->job_j[job];
}

/* The time from 'from_s' to 'to_s', within one hour, of a GPU with somebody on it. */
static void book_shared(struct energy *e, struct gpu_draw *g, int type, double from_s, double to_s)
{
    const double active_j = fmax(g->watts - g->idle_w, 0) * (to_s - from_s);
    const double idle_j = fmin(g->watts, g->idle_w) * (to_s - from_s);

    for (int i = 0; i < g->n; i++) {
        struct row_usage *r = row_at(e, hour_of(from_s), g->who[i].job, type);
        double active_part_j = active_j * (g->who[i].weight / g->weight);

        r->active_j += active_part_j;
        r->idle_j += idle_j / g->n;
        r->gpu_s += (to_s - from_s) / g->n;
        *joules_of(e, g->who[i].job) += active_part_j + idle_j / g->n;
    }
}

static void book(struct energy *e, int gpu, double now_s)
{
    struct gpu_draw *g = &e->gpus[gpu];
    const int type = e->state->gpus[gpu].type;

    if (isnan(g->since_s) || now_s < g->since_s)
        g->since_s = now_s;
    double from_s = g->since_s;
    while (from_s < now_s) {
        const double to_s = hour_end_s(from_s, now_s);

        if (g->n > 0)
            book_shared(e, g, type, from_s, to_s);
        else if (g->watts > 0)
            row_at(e, hour_of(from_s), NOBODY, type)->idle_j += g->watts * (to_s - from_s);
        from_s = to_s;
    }
    g->joules += g->watts * (now_s - g->since_s);
    e->total_j += g->watts * (now_s - g->since_s);
    g->since_s = now_s;
}

static struct gpu_draw *gpu_at(struct energy *e, int gpu)
{
    assert(gpu >= 0 && gpu < e->state->n_gpus);
    while (e->n_gpus <= gpu) {
        GROW(e->gpus, e->n_gpus, e->cap_gpus);
        e->gpus[e->n_gpus++] = (struct gpu_draw){ .since_s = NAN };
    }
    return &e->gpus[gpu];
}

void energy_draw(struct energy *e, int gpu, double now_s, double watts, double idle_w)
{
    struct gpu_draw *g = gpu_at(e, gpu);

    book(e, gpu, now_s);
    g->watts = fmax(watts, 0);    // NaN and less than nothing are nothing
    g->idle_w = fmax(idle_w, 0);
}

void energy_share(struct energy *e, int gpu, double now_s, const struct energy_share *who, int n)
{
    struct gpu_draw *g = gpu_at(e, gpu);

    assert(n >= 0 && n <= GPU_JOBS_MAX);
    book(e, gpu, now_s);
    g->n = n;
    g->weight = 0;
    for (int i = 0; i < n; i++) {
        assert(who[i].weight > 0 && who[i].job >= 0);
        g->who[i] = who[i];
        g->weight += who[i].weight;
    }
}

void energy_shift(struct energy *e, double by_s)
{
    for (int i = 0; i < e->n_gpus; i++)
        e->gpus[i].since_s += by_s;
}

double energy_gpu_j(const struct energy *e, int gpu)
{
    return gpu < e->n_gpus ? e->gpus[gpu].joules : 0;
}

double energy_job_j(const struct energy *e, int job)
{
    return job < e->n_jobs ? e->job_j[job] : 0;
}

double energy_total_j(const struct energy *e)
{
    return e->total_j;
}

void energy_add_past(struct energy *e, int job, double joules)
{
    *joules_of(e, job) += joules;
}

/* ---- what else is kept in the same rows ---- */

void energy_promise(struct energy *e, int job, double from_s, double to_s, bool is_kept)
{
    const int type = type_of_job(e, job);

    while (from_s < to_s) {
        struct row_usage *r = row_at(e, hour_of(from_s), job, type);
        const double end_s = hour_end_s(from_s, to_s);

        r->promised_s += end_s - from_s;
        r->kept_s += is_kept ? end_s - from_s : 0;
        from_s = end_s;
    }
}

void energy_surprise(struct energy *e, int job, int gpu_type, double now_s, double abs_error,
                     bool is_covered)
{
    struct row_usage *r = row_at(e, hour_of(now_s), job, gpu_type);

    r->n_measured++;
    r->abs_error += abs_error;
    r->n_covered += is_covered;
}

void energy_steps(struct energy *e, int job, int gpu_type, double now_s, double steps)
{
    row_at(e, hour_of(now_s), job, gpu_type)->steps += steps;
}

void energy_served(struct energy *e, int job, double now_s, double requests, double late)
{
    struct row_usage *r = row_at(e, hour_of(now_s), job, type_of_job(e, job));

    r->requests += fmax(requests, 0);    // NaN: not said
    r->late += fmax(late, 0);
}

int energy_take(struct energy *e, double now_s, int (*f)(void *self, const struct row_usage *r),
                void *self)
{
    for (int i = 0; i < e->n_gpus; i++)
        book(e, i, now_s);
    for (int i = 0; i < e->entries.n; i++) {
        int rc = f(self, &e->entries.list[i].row);
        if (rc != 0)
            return rc;
    }
    const struct usage_entries empty = { .list = e->taken.list, .cap = e->taken.cap };
    e->taken = e->entries;
    e->entries = empty;
    map_u64_release(&e->entry_by_key);
    return 0;
}

void energy_take_back(struct energy *e)
{
    for (int i = 0; i < e->taken.n; i++) {
        const struct usage_entry *t = &e->taken.list[i];
        struct row_usage *r = row_at(e, t->hour, t->job, t->type);

        r->active_j += t->row.active_j;
        r->idle_j += t->row.idle_j;
        r->gpu_s += t->row.gpu_s;
        r->steps += t->row.steps;
        r->promised_s += t->row.promised_s;
        r->kept_s += t->row.kept_s;
        r->n_measured += t->row.n_measured;
        r->abs_error += t->row.abs_error;
        r->n_covered += t->row.n_covered;
        r->requests += t->row.requests;
        r->late += t->row.late;
    }
    e->taken.n = 0;
}

/* catalog.c - workloads, measurements and estimates. */
#include <errno.h>
#include <math.h>

#include "base/err.h"
#include "daemon/api/api.h"
#include "daemon/http/shapes.h"
#include "daemon/service/service.h"
#include "daemon/submit/submit.h"

static const struct catalog *catalog_of(const struct request *r)
{
    return &api_service(r)->base.catalog;
}

/* ---- workloads ---- */

static int count_cells(const struct catalog *c, int w)
{
    int n = 0;

    for (int i = c->first_cell[w]; i >= 0; i = c->next_cell[i])
        n++;
    return n;
}

static void put_workload(struct api_text *t, const struct catalog *c, int i)
{
    const struct workload *w = &c->workloads[i];

    api_put_open(t, NULL, '{');
    api_put_text(t, "name", w->name);
    api_put_number(t, "batch", w->batch);
    api_put_flag(t, "inference", w->is_inference);
    api_put_text(t, "family", w->family);
    api_put_text(t, "task", w->task);
    api_put_text(t, "dataset", w->dataset);
    for (int k = 0; k < WORKLOAD_FIGURES; k++)
        api_put_number(t, workload_number_names[k], workload_number(w, k));
    api_put_text(t, "precision", precision_name(w->precision));
    api_put_number(t, "needs_capability", w->needs_capability ? w->needs_capability : (double)NAN);
    api_put_whole(t, "cells", count_cells(c, i));
    api_put_close(t, '}');
}

void api_list_workloads(struct request *r)
{
    const struct catalog *c = catalog_of(r);
    long first = (long)request_number(r, "after", -1) + 1;
    long end = first + (long)request_number(r, "limit", PAGE_DEFAULT);
    struct api_text t = { 0 };

    if (end > c->n_workloads)
        end = c->n_workloads;
    api_put_open(&t, NULL, '{');
    api_put_open(&t, "workloads", '[');
    for (long i = first; i < end; i++)
        put_workload(&t, c, (int)i);
    api_end_page(&t, c->n_workloads, end < c->n_workloads ? end - 1 : -1);
    api_reply(r, 200, &t);
}

void api_add_workload(struct request *r)
{
    struct workload w;
    struct err e = { 0 };
    struct api_text t = { 0 };
    int index = -1;
    int rc = submit_describe(&r->arena, r->body, &w, &e);

    if (rc == 0)
        rc = service_add_workload(api_service(r), &w, &index, &e);
    if (rc < 0) {
        reply_err(r, &e);
        return;
    }
    put_workload(&t, catalog_of(r), index);
    api_reply(r, 201, &t);
}

/* ---- looking things up ---- */

/* The index of what 'args' names; -1: nothing was asked. False: there is none, and it is said. */
static bool find_workload(struct request *r, const char *key, int *out)
{
    const char *name = request_text(r, key);

    *out = name ? catalog_find_workload_alike(catalog_of(r), name) : -1;
    if (!name || *out >= 0)
        return true;
    reply_error(r, 404, "there is no workload '%.100s'; GET /v1/workloads lists them", name);
    return false;
}

static bool find_type(struct request *r, const char *key, int *out)
{
    const char *name = request_text(r, key);

    *out = name ? catalog_find_type_alike(catalog_of(r), name) : -1;
    if (!name || *out >= 0)
        return true;
    reply_error(r, 404, "there is no GPU type '%.100s'; 'gogh nodes' lists them", name);
    return false;
}

/* ---- measurements ---- */

static void put_cell(struct api_text *t, const struct catalog *c, const struct cell *m)
{
    const struct cell_key *k = &m->key;

    api_put_open(t, NULL, '{');
    api_put_text(t, "workload", c->workloads[k->workload].name);
    api_put_text(t, "gpu", c->types[k->gpu_type].name);
    api_put_text(t, "beside", k->neighbour < 0 ? NULL : c->workloads[k->neighbour].name);
    api_put_whole(t, "gpus", k->n_gpus);
    api_put_flag(t, "spread", k->is_spread);
    api_put_whole(t, "limit_w", k->limit_w);
    api_put_text(t, "campaign", c->campaigns[k->campaign]);
    api_put_whole(t, "measured", m->n_speed);
    api_put_whole(t, "unfit", m->n_unfit);
    api_put_number(t, "throughput", m->n_speed ? exp(m->ln_speed) : (double)NAN);
    api_put_number(t, "sd", m->n_speed ? sqrt(cell_variance(m)) : (double)NAN);
    api_put_number(t, "watts", m->n_watts ? exp(m->ln_watts) : (double)NAN);
    api_put_time(t, "last_s", m->last_s);
    api_put_close(t, '}');
}

void api_list_measurements(struct request *r)
{
    const struct catalog *c = catalog_of(r);
    long limit = (long)request_number(r, "limit", PAGE_DEFAULT);
    long total = 0;
    int workload, type;
    struct api_text t = { 0 };

    if (!find_workload(r, "workload", &workload) || !find_type(r, "gpu", &type))
        return;
    api_put_open(&t, NULL, '{');
    api_put_open(&t, "measurements", '[');
    for (int i = c->n_cells - 1; i >= 0; i--) {
        const struct cell_key *k = &c->cells[i].key;
        if ((workload >= 0 && k->workload != workload) || (type >= 0 && k->gpu_type != type))
            continue;
        if (total++ < limit)
            put_cell(&t, c, &c->cells[i]);
    }
    api_put_close(&t, ']');
    api_put_whole(&t, "total", total);
    api_put_close(&t, '}');
    api_reply(r, 200, &t);
}

static double number_of(json_t *o, const char *key, double otherwise)
{
    json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : otherwise;
}

static int read_key(const struct catalog *c, json_t *o, struct cell_key *k, struct err *e)
{
    const char *workload = json_string_value(json_object_get(o, "workload"));
    const char *gpu = json_string_value(json_object_get(o, "gpu"));
    const char *beside = json_string_value(json_object_get(o, "beside"));

    *k = (struct cell_key){ .workload = catalog_find_workload_alike(c, workload),
                            .gpu_type = catalog_find_type_alike(c, gpu),
                            .neighbour = beside ? catalog_find_workload_alike(c, beside) : -1,
                            .n_gpus = (int)number_of(o, "gpus", 1),
                            .is_spread = json_is_true(json_object_get(o, "spread")),
                            .limit_w = (int)number_of(o, "limit_w", 0) };
    if (k->workload < 0 || (beside && k->neighbour < 0))
        return err_set(e, EINVAL, "there is no workload '%.60s'; POST /v1/workloads adds one",
                       k->workload < 0 ? workload : beside);
    if (k->gpu_type < 0)
        return err_set(e, EINVAL, "there is no GPU type '%.60s'", gpu);
    return 0;
}

static int read_measurement(const struct catalog *c, json_t *o, double now_s, struct measurement *m,
                            struct err *e)
{
    json_t *time = json_object_get(o, "time");

    *m = (struct measurement){ .fits = !json_is_true(json_object_get(o, "unfit")),
                               .throughput = number_of(o, "throughput", NAN),
                               .watts = number_of(o, "watts", NAN),
                               .time_s = time ? schema_time_s(time) : now_s,
                               .duration_s = number_of(o, "duration_s", NAN),
                               .noise = number_of(o, "noise", NAN) };
    if (m->fits && isnan(m->throughput) && isnan(m->watts))
        return err_set(e, EINVAL, "nothing was measured: say throughput, watts or unfit");
    if (!m->fits && !isnan(m->throughput))
        return err_set(e, EINVAL, "throughput: what does not fit has none");
    return read_key(c, o, &m->key, e);
}

static bool is_same_setting(const struct cell_key *a, const struct cell_key *b)
{
    return a->n_gpus == b->n_gpus && a->is_spread == b->is_spread && a->limit_w == b->limit_w;
}

/* The catalog has room for so many gang sizes and power limits: those of 'm' may all be new. */
static int check_settings(const struct catalog *c, const struct measurement *m, size_t n,
                          struct err *e)
{
    int n_new = 0;

    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (!is_same_setting(&m[first].key, &m[i].key))
            first++;
        n_new += first == i;
    }
    if (c->n_settings + n_new > CATALOG_SETTINGS_MAX)
        return err_set(
            e, EINVAL,
            "measurements: more than %d different gang sizes and power limits; round the "
            "limits",
            CATALOG_SETTINGS_MAX);
    return 0;
}

/* All of them are looked at before the first is taken in. */
void api_add_measurements(struct request *r)
{
    json_t *list = json_object_get(r->body, "measurements"), *one;
    size_t i, n = json_array_size(list);
    struct measurement *m = ARENA_ARRAY(&r->arena, struct measurement, n);
    struct err e = { 0 };
    int rc = 0;

    json_array_foreach(list, i, one)
    {
        if (read_measurement(catalog_of(r), one, api_now_s(r), &m[i], &e) < 0) {
            err_prefix(&e, "measurements[%zu]", i);
            reply_err(r, &e);
            return;
        }
    }
    if (check_settings(catalog_of(r), m, n, &e) < 0) {
        reply_err(r, &e);
        return;
    }
    for (i = 0; i < n && rc == 0; i++)
        rc = service_measure(api_service(r), &m[i], &e);
    if (rc < 0) {
        err_prefix(&e, "measurements[%zu]", i - 1);
        reply_err(r, &e);
        return;
    }
    reply_json(r, 200, json_pack("{s:I}", "taken", (json_int_t)n));
}

/* ---- estimates ---- */

static int times_measured(const struct catalog *c, int workload, int type, int neighbour)
{
    struct cell_key k = {
        .workload = workload, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1
    };
    const struct cell *m = catalog_cell(c, k);

    return m ? m->n_speed + m->n_unfit : 0;
}

static void put_estimate(struct api_text *t, const struct service *s, int workload, int type,
                         int neighbour)
{
    const struct catalog *c = &s->base.catalog;
    const struct estimator *est = &s->cycle.estimator;
    struct cell_estimate cell = estimate_cell(est, workload, type, neighbour);
    double speed = (double)cell.speed, half = 1.645 * (double)cell.sd;
    double alone = (double)estimate_cell(est, workload, type, -1).speed;
    int both[] = { workload, neighbour };

    api_put_open(t, NULL, '{');
    api_put_text(t, "gpu", c->types[type].name);
    api_put_text(t, "beside", neighbour < 0 ? NULL : c->workloads[neighbour].name);
    api_put_number(t, "speed", speed);
    api_put_number(t, "low", speed * exp(-half));
    api_put_number(t, "high", speed * exp(half));
    api_put_number(t, "sd", (double)cell.sd);
    api_put_number(t, "unfit", (double)cell.unfit);
    api_put_number(t, "watts", estimate_watts(est, type, both, NULL, neighbour < 0 ? 1 : 2));
    api_put_number(t, "slowdown", neighbour < 0 || !(alone > 0) ? 1 : speed / alone);
    api_put_whole(t, "measured", times_measured(c, workload, type, neighbour));
    api_put_close(t, '}');
}

void api_list_estimates(struct request *r)
{
    struct service *s = api_service(r);
    const struct catalog *c = catalog_of(r);
    struct estimator *est = &s->cycle.estimator;
    int workload, neighbour, type;
    struct api_text t = { 0 };

    if (!find_workload(r, "workload", &workload) || !find_workload(r, "beside", &neighbour) ||
        !find_type(r, "gpu", &type))
        return;
    estimate_meet(est);    // nobody may have asked about these yet
    api_put_open(&t, NULL, '{');
    api_put_text(&t, "workload", c->workloads[workload].name);
    api_put_open(&t, "estimates", '[');
    for (int i = 0; i < c->n_types; i++)
        if (type < 0 || i == type)
            put_estimate(&t, s, workload, i, neighbour);
    api_put_close(&t, ']');
    api_put_close(&t, '}');
    api_reply(r, 200, &t);
}

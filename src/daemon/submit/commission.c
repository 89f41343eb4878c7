#include "daemon/submit/commission.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "daemon/submit/inner.h"
#include "estimate/commission.h"
#include "estimate/estimate.h"

/* Workloads that are asked about: pairs of them are 576 on each type, of which some are drawn. */
enum { INTERESTS = 24 };

/* With fewer than these a site says little of what will come: built-in models stand in. */
enum { INTERESTS_FEW = 4 };

enum { PAIRS_USUAL = 10 };

#define SEED 1    // of what is drawn: the same question has the same answer

/* A question on its way. */
struct asking {
    struct arena *arena;
    const struct commission_site *site;
    json_t *body;
    int n_programs;
    int *programs;    // workloads
    struct commission_types there;
    int n_targets;
    struct reading *targets;
};

/* ---- programs ---- */

/* The workload that a program runs, by the rules of submissions; into the catalog if it is new. */
static int find_program(struct asking *q, json_t *one, int *out, struct err *e)
{
    const struct submit_context context = { .catalog = q->site->catalog };
    struct submit found = { 0 };
    struct submit_reading r = {
        .arena = q->arena, .context = &context, .body = one, .out = &found
    };
    int rc = reading_workload(&r, e);

    if (rc == 0 && found.is_new_workload)
        rc = catalog_add_workload(q->site->catalog, &found.workload, &found.spec.workload, e);
    *out = found.spec.workload;
    return rc;
}

static bool has(const int *list, int n, int one)
{
    for (int i = 0; i < n; i++)
        if (list[i] == one)
            return true;
    return false;
}

static int find_programs(struct asking *q, struct err *e)
{
    json_t *list = json_object_get(q->body, "programs"), *one;
    size_t i;

    q->programs = ARENA_ARRAY(q->arena, int, json_array_size(list));
    json_array_foreach(list, i, one)
    {
        int *w = &q->programs[q->n_programs];

        if (find_program(q, one, w, e) < 0)
            return err_prefix(e, "programs[%zu]", i);
        if (has(q->programs, q->n_programs, *w))
            return err_set(e, EINVAL, "programs[%zu]: '%.60s' is there twice; name it once", i,
                           q->site->catalog->workloads[*w].name);
        q->n_programs++;
    }
    return 0;
}

static json_t *workload_json(const struct catalog *c, int index)
{
    const struct workload *w = &c->workloads[index];
    json_t *o = json_object();
    int n = 0;

    for (int i = c->first_cell[index]; i >= 0; i = c->next_cell[i])
        n++;
    json_object_set_new(o, "name", json_string(w->name));
    json_object_set_new(o, "batch", json_number_or_null(w->batch));
    json_object_set_new(o, "inference", json_boolean(w->is_inference));
    json_object_set_new(o, "family", json_text_or_null(w->family));
    json_object_set_new(o, "task", json_text_or_null(w->task));
    json_object_set_new(o, "dataset", json_text_or_null(w->dataset));
    for (int k = 0; k < WORKLOAD_FIGURES; k++)
        json_object_set_new(o, workload_number_names[k],
                            json_number_or_null(workload_number(w, k)));
    json_object_set_new(o, "precision", json_text_or_null(precision_name(w->precision)));
    json_object_set_new(
        o, "needs_capability",
        json_number_or_null(w->needs_capability ? w->needs_capability : (double)NAN));
    json_object_set_new(o, "cells", json_integer(n));
    return o;
}

/* ---- what is to be known ---- */

static void interest(int *list, int *n, int w)
{
    if (*n < INTERESTS && !has(list, *n, w))
        list[(*n)++] = w;
}

/* The workload that was measured last, of those that are neither programs nor there already; -1:
 * none.
 */
static int measured_last(const struct asking *q, const int *list, int n)
{
    const struct catalog *c = q->site->catalog;
    const struct cell *last = NULL;

    for (int i = 0; i < c->n_cells; i++) {
        const struct cell *cell = &c->cells[i];
        int w = cell->key.workload;

        if (cell_key_is_plain(&cell->key) && !has(q->programs, q->n_programs, w) &&
            !has(list, n, w) && (!last || cell->last_s > last->last_s))
            last = cell;
    }
    return last ? last->key.workload : -1;
}

/* The workloads that decisions will be about: those of jobs, of own programs, of measurements; or
 * models that people usually run. Benchmark programs are nobody's work.
 */
static int find_interests(const struct asking *q, int *list, struct err *e)
{
    bool is_own = json_is_true(json_object_get(q->body, "own"));
    int n = 0, n_usual, w;

    for (int i = 0; i < q->site->n_recent; i++)
        if (is_own || !has(q->programs, q->n_programs, q->site->recent[i]))
            interest(list, &n, q->site->recent[i]);
    for (int i = 0; i < q->n_programs && is_own; i++)
        interest(list, &n, q->programs[i]);
    while (n < INTERESTS && (w = measured_last(q, list, n)) >= 0)
        interest(list, &n, w);
    const struct workload *usual = workload_builtin_usual(&n_usual);
    for (int i = 0, is_few = n < INTERESTS_FEW; i < n_usual && is_few; i++) {
        if (catalog_add_workload(q->site->catalog, &usual[i], &w, e) < 0)
            return -e->code;
        if (is_own || !has(q->programs, q->n_programs, w))
            interest(list, &n, w);
    }
    return n;
}

static int read_target(const struct asking *q, json_t *one, struct reading *out, struct err *e)
{
    const struct catalog *c = q->site->catalog;
    const char *workload = json_text_of(one, "workload"), *gpu = json_text_of(one, "gpu");
    const char *beside = json_text_of(one, "beside");

    *out = (struct reading){ .of = beside ? READ_SLOWDOWN : READ_ALONE,
                             .type = catalog_find_type_alike(c, gpu),
                             .job = catalog_find_workload_alike(c, workload),
                             .neighbour = beside ? catalog_find_workload_alike(c, beside) : -1 };
    if (out->type < 0)
        return err_set(e, EINVAL, "there is no GPU type '%.60s'", gpu);
    if (out->job < 0 || (beside && out->neighbour < 0))
        return err_set(e, EINVAL, "there is no workload '%.60s'", out->job < 0 ? workload : beside);
    return 0;
}

/* Those that were asked for by name. The models that stand in for work are known all the same. */
static int read_targets(struct asking *q, json_t *list, struct err *e)
{
    int n_usual, w;
    const struct workload *usual = workload_builtin_usual(&n_usual);
    json_t *one;
    size_t i;

    for (int k = 0; k < n_usual; k++)
        if (catalog_add_workload(q->site->catalog, &usual[k], &w, e) < 0)
            return -e->code;
    estimate_refresh(q->site->estimator);
    q->targets = ARENA_ARRAY(q->arena, struct reading, json_array_size(list));
    json_array_foreach(list, i, one)
    {
        if (read_target(q, one, &q->targets[q->n_targets++], e) < 0)
            return err_prefix(e, "targets[%zu]", i);
    }
    return 0;
}

static int find_targets(struct asking *q, struct err *e)
{
    json_t *asked = json_object_get(q->body, "targets");
    int interests[INTERESTS];

    if (json_is_array(asked))
        return read_targets(q, asked, e);
    int n = find_interests(q, interests, e);
    if (n < 0)
        return n;
    estimate_refresh(q->site->estimator);
    q->n_targets = commission_targets(q->arena, q->site->estimator, &q->there, interests, n, SEED,
                                      &q->targets);
    return 0;
}

static int find_types(struct asking *q, struct err *e)
{
    const int n_types = q->site->estimator->catalog->n_types;
    int *types = ARENA_ARRAY(q->arena, int, (size_t)n_types);

    q->there = (struct commission_types){ .types = types, .theta = q->site->theta };
    for (int t = 0; t < n_types; t++)
        if (q->site->is_there[t])
            types[q->there.n++] = t;
    return q->there.n ? 0
                      : err_set(e, ENOENT,
                                "there are no GPUs to measure on; 'gogh nodes' "
                                "lists what there is");
}

/* ---- the answer ---- */

static json_t *name_of(const struct asking *q, int workload)
{
    return workload < 0 ? json_null() : json_string(q->site->catalog->workloads[workload].name);
}

static json_t *picks_json(const struct asking *q, const struct commission_pick *picks, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:f, s:s}", "gpu",
                                        q->site->catalog->types[picks[i].type].name, "workload",
                                        name_of(q, picks[i].a), "beside", name_of(q, picks[i].b),
                                        "gain", picks[i].gain, "why",
                                        commission_why(q->arena, q->site->estimator, &picks[i])));
    return list;
}

/* The number that estimates show of the same cell: steps/s, or the slowdown. */
static double shown(const struct estimator *e, const struct reading *t)
{
    double speed = (double)estimate_cell(e, t->job, t->type, t->neighbour).speed;

    return t->of == READ_ALONE ? speed
                               : speed / (double)estimate_cell(e, t->job, t->type, -1).speed;
}

static json_t *targets_json(const struct asking *q)
{
    const struct estimator *est = q->site->estimator;
    json_t *list = json_array();

    assert(q->targets || q->n_targets == 0);
    for (int i = 0; i < q->n_targets; i++) {
        const struct reading *t = &q->targets[i];

        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:f, s:f}", "gpu",
                                        q->site->catalog->types[t->type].name, "workload",
                                        name_of(q, t->job), "beside", name_of(q, t->neighbour),
                                        "mean", shown(est, t), "sd", commission_belief(est, t).sd));
    }
    return list;
}

static bool has_run_program(const struct asking *q, int type)
{
    for (int i = 0; i < q->n_programs; i++) {
        struct cell_key key = {
            .workload = q->programs[i], .gpu_type = type, .neighbour = -1, .n_gpus = 1
        };
        const struct cell *seen = catalog_cell(q->site->catalog, key);

        if (seen && seen->n_speed)
            return true;
    }
    return false;
}

/* Types that are left out as nobody knows which program fits there. */
static json_t *unknown_json(const struct asking *q)
{
    json_t *list = json_array();

    for (int i = 0; i < q->there.n; i++) {
        const struct gpu_type *t = &q->site->catalog->types[q->there.types[i]];

        if (!(t->mem_bytes > 0) && !has_run_program(q, q->there.types[i]))
            json_array_append_new(list, json_string(t->name));
    }
    return list;
}

json_t *commission_answer(struct arena *a, const struct commission_site *site, json_t *body,
                          struct err *e)
{
    struct asking q = { .arena = a, .site = site, .body = body };
    struct commission_pick picks[COMMISSION_MOST];
    json_t *pairs = json_object_get(body, "pairs"), *programs = json_array();
    int n_most = json_is_integer(pairs) ? (int)json_integer_value(pairs) : PAIRS_USUAL;

    if (site->estimator->beliefs->kind == ESTIMATOR_ROOFLINE) {
        err_set(e, EINVAL, "the roofline learns nothing from others; set another 'estimator'");
        return NULL;
    }
    if (find_types(&q, e) < 0 || find_programs(&q, e) < 0 || find_targets(&q, e) < 0)
        return NULL;
    int n = commission_choose(a, site->estimator,
                              &(struct commission_means){ .there = q.there,
                                                          .programs = q.programs,
                                                          .n_programs = q.n_programs,
                                                          .targets = q.targets,
                                                          .n_targets = q.n_targets,
                                                          .seed = SEED },
                              n_most, picks);
    for (int i = 0; i < q.n_programs; i++)
        json_array_append_new(programs, workload_json(site->catalog, q.programs[i]));
    return json_pack("{s:o, s:o, s:o, s:o}", "measurements", picks_json(&q, picks, n), "targets",
                     targets_json(&q), "programs", programs, "unknown_types", unknown_json(&q));
}

/* results_json.c - a run's result as JSON, and back. */
#include "study/results_inner.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define REAL(member)                                                 \
    {                                                                \
        .name = #member, .at = offsetof(struct study_result, member) \
    }
#define LONG(member)                                                                      \
    {                                                                                     \
        .name = #member, .kind = FIGURE_LONG, .at = offsetof(struct study_result, member) \
    }
#define INT(member)                                                                      \
    {                                                                                    \
        .name = #member, .kind = FIGURE_INT, .at = offsetof(struct study_result, member) \
    }
#define TIMING(member)                                                                  \
    {                                                                                   \
        .name = #member, .at = offsetof(struct study_result, member), .is_timing = true \
    }

/* In the order of columns; docs/formats/study.md has the same. */
const struct figure results_figures[] = {
    REAL(energy_j_per_work),
    REAL(energy_kwh),
    REAL(promise_attainment),
    REAL(mean_jct_s),
    REAL(p95_jct_s),
    REAL(mean_queue_s),
    REAL(makespan_s),
    REAL(allocation_efficiency),
    REAL(work_s),
    LONG(moves),
    LONG(decisions),
    LONG(fallbacks),
    LONG(repricings),
    LONG(measurements),
    INT(jobs),
    INT(finished),
    INT(failed),
    REAL(gap_mean_w),
    REAL(gap_worst_w),
    REAL(gap_mean_ratio),
    REAL(gap_worst_ratio),
    REAL(gap_mean_varying_ratio),
    REAL(gap_worst_varying_ratio),
    REAL(prediction_error),
    REAL(coverage90),
    REAL(first_100_attainment),
    REAL(next_attainment),
    TIMING(decision_p50_s),
    TIMING(decision_p99_s),
    TIMING(repricing_s),
    TIMING(wall_s),
    TIMING(rss_bytes),
};
const int n_results_figures = sizeof results_figures / sizeof *results_figures;

/* A bound knows how many jobs there are, and counts nothing else. */
static bool has_figure(const struct figure *f, const char *policy)
{
    return f->kind == FIGURE_REAL || f->at == offsetof(struct study_result, jobs) ||
           strcmp(policy, "bound") != 0;
}

double figure_value(const struct figure *f, const struct study_run *k, const struct study_result *r)
{
    const char *at = (const char *)r + f->at;
    double real;
    long whole;
    int small;

    if (!has_figure(f, k->policy))
        return NAN;
    switch (f->kind) {
    case FIGURE_LONG:
        memcpy(&whole, at, sizeof whole);
        return (double)whole;
    case FIGURE_INT:
        memcpy(&small, at, sizeof small);
        return small;
    case FIGURE_REAL:
        break;
    }
    memcpy(&real, at, sizeof real);
    return real;
}

static void figure_set(const struct figure *f, struct study_result *r, double v)
{
    char *at = (char *)r + f->at;
    const long whole = f->kind == FIGURE_LONG ? (long)v : 0;
    const int small = f->kind == FIGURE_INT ? (int)v : 0;

    if (f->kind == FIGURE_LONG)
        memcpy(at, &whole, sizeof whole);
    else if (f->kind == FIGURE_INT)
        memcpy(at, &small, sizeof small);
    else
        memcpy(at, &v, sizeof v);
}

/* ---- out ---- */

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *figure_json(const struct figure *f, const struct study_run *k,
                           const struct study_result *r)
{
    double v = figure_value(f, k, r);

    return f->kind == FIGURE_REAL || isnan(v) ? number(v) : json_integer((json_int_t)v);
}

static json_t *key_json(const struct study_run *k)
{
    return json_pack("{s:s, s:o, s:s, s:i, s:b, s:b, s:o, s:s, s:s}", "scenario", k->scenario->name,
                     "load", number(k->load), "policy", k->policy, "seed", k->seed, "sleep",
                     k->has_sleep, "power_limit", k->has_limits, "without",
                     k->without[0] != '\0' ? json_string(k->without) : json_null(), "knows",
                     knowledge_name(k->knows), "power_model", scenario_power_model(k->scenario));
}

json_t *results_row_json(const struct study_run *k, const struct study_result *r)
{
    json_t *row = key_json(k), *hours = json_object(), *energy = json_object();

    assert(row != NULL);
    for (int i = 0; i < n_results_figures; i++) {
        if (!results_figures[i].is_timing)
            json_object_set_new(row, results_figures[i].name,
                                figure_json(&results_figures[i], k, r));
    }
    for (int i = 0; i < r->n_types; i++) {
        json_object_set_new(hours, r->types[i].name, number(r->types[i].gpu_hours));
        json_object_set_new(energy, r->types[i].name, number(r->types[i].energy_kwh));
    }
    json_object_set_new(row, "gpu_hours", hours);
    json_object_set_new(row, "type_energy_kwh", energy);
    return row;
}

/* The first number is the slice's end; the rest as struct study_slice has them. */
static json_t *slice_json(const struct study_slice *s)
{
    return json_pack("[o, o, o, o, I, o, i]", number(s->time_s), number(s->watts),
                     number(s->work_per_s), number(s->error), (json_int_t)s->measurements,
                     number(s->attainment), s->waiting);
}

json_t *results_details_json(const struct study_run *k, const struct study_result *r)
{
    json_t *timing = json_object(), *types = json_array(), *slices = json_array();
    json_t *intervals = json_array();

    for (int i = 0; i < n_results_figures; i++) {
        if (results_figures[i].is_timing)
            json_object_set_new(timing, results_figures[i].name,
                                figure_json(&results_figures[i], k, r));
    }
    for (int i = 0; i < r->n_types; i++)
        json_array_append_new(types, json_pack("[s, i, o, o]", r->types[i].name, r->types[i].n_gpus,
                                               number(r->types[i].gpu_hours),
                                               number(r->types[i].energy_kwh)));
    for (int i = 0; i < r->n_slices; i++)
        json_array_append_new(slices, slice_json(&r->slices[i]));
    for (int i = 0; i < r->n_intervals; i++)
        json_array_append_new(intervals,
                              json_pack("[i, i, i, o, o]", r->intervals[i].gpu, r->intervals[i].job,
                                        r->intervals[i].limit_w, number(r->intervals[i].from_s),
                                        number(r->intervals[i].to_s)));
    return json_pack("{s:o, s:o, s:o, s:[o, o], s:o}", "timing", timing, "types", types, "slices",
                     slices, "stays_s", number(r->intervals_from_s), number(r->intervals_to_s),
                     "stays", intervals);
}

/* ---- and back ---- */

/* null is NaN; false: neither that nor a number. */
static bool take(const json_t *j, double *out)
{
    *out = json_is_number(j) ? json_number_value(j) : (double)NAN;
    return json_is_number(j) || json_is_null(j);
}

static bool take_int(const json_t *j, int *out)
{
    json_int_t v = json_integer_value(j);

    *out = v >= INT_MIN && v <= INT_MAX ? (int)v : 0;
    return json_is_integer(j) && *out == v;
}

/* A count that the policy does not have may also be there, as older files have it. */
static bool take_figures(const json_t *row, const json_t *timing, struct study_result *out)
{
    const char *policy = json_string_value(json_object_get(row, "policy"));

    if (policy == NULL)
        return false;
    for (int i = 0; i < n_results_figures; i++) {
        const struct figure *f = &results_figures[i];
        const json_t *j = json_object_get(f->is_timing ? timing : row, f->name);
        double v;

        if (!take(j, &v))
            return false;
        if (f->kind != FIGURE_REAL && !json_is_integer(j)) {
            if (has_figure(f, policy) || !json_is_null(j))
                return false;
            v = 0;
        }
        figure_set(f, out, v);
    }
    return true;
}

static bool take_type(struct arena *a, const json_t *j, struct study_type *t)
{
    const char *name = json_string_value(json_array_get(j, 0));

    if (name == NULL)
        return false;
    t->name = arena_strdup(a, name);
    return take_int(json_array_get(j, 1), &t->n_gpus) &&
           take(json_array_get(j, 2), &t->gpu_hours) && take(json_array_get(j, 3), &t->energy_kwh);
}

static bool take_slice(const json_t *j, struct study_slice *s)
{
    s->measurements = (long)json_integer_value(json_array_get(j, 4));
    return take(json_array_get(j, 0), &s->time_s) && take(json_array_get(j, 1), &s->watts) &&
           take(json_array_get(j, 2), &s->work_per_s) && take(json_array_get(j, 3), &s->error) &&
           json_is_integer(json_array_get(j, 4)) && take(json_array_get(j, 5), &s->attainment) &&
           take_int(json_array_get(j, 6), &s->waiting);
}

/* Charts have a row for each GPU up to the last: a file may not ask for any number of them. */
#define ROWS_MAX 65536

static bool take_interval(const json_t *j, struct study_interval *s)
{
    return take_int(json_array_get(j, 0), &s->gpu) && take_int(json_array_get(j, 1), &s->job) &&
           take_int(json_array_get(j, 2), &s->limit_w) && take(json_array_get(j, 3), &s->from_s) &&
           take(json_array_get(j, 4), &s->to_s) && s->gpu >= 0 && s->gpu < ROWS_MAX && s->job >= 0;
}

static bool take_lists(struct arena *a, const json_t *types, const json_t *slices,
                       const json_t *intervals, struct study_result *out)
{
    bool is_fine = json_is_array(types) && json_is_array(slices) && json_is_array(intervals);

    out->n_types = (int)json_array_size(types);
    out->n_slices = (int)json_array_size(slices);
    out->n_intervals = (int)json_array_size(intervals);
    out->types = ARENA_ARRAY(a, struct study_type, (size_t)out->n_types);
    out->slices = ARENA_ARRAY(a, struct study_slice, (size_t)out->n_slices);
    out->intervals = ARENA_ARRAY(a, struct study_interval, (size_t)out->n_intervals);
    for (int i = 0; i < out->n_types && is_fine; i++)
        is_fine = take_type(a, json_array_get(types, (size_t)i), &out->types[i]);
    for (int i = 0; i < out->n_slices && is_fine; i++)
        is_fine = take_slice(json_array_get(slices, (size_t)i), &out->slices[i]);
    for (int i = 0; i < out->n_intervals && is_fine; i++)
        is_fine = take_interval(json_array_get(intervals, (size_t)i), &out->intervals[i]);
    return is_fine;
}

bool results_read_back(struct arena *a, const json_t *row, const json_t *details,
                       struct study_result *out)
{
    const json_t *window = json_object_get(details, "stays_s");

    *out = (struct study_result){ 0 };
    return take_figures(row, json_object_get(details, "timing"), out) &&
           take(json_array_get(window, 0), &out->intervals_from_s) &&
           take(json_array_get(window, 1), &out->intervals_to_s) &&
           take_lists(a, json_object_get(details, "types"), json_object_get(details, "slices"),
                      json_object_get(details, "stays"), out);
}

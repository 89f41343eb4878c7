/* results_json.c - a run's result as JSON, and back. */
#include "study/results_inner.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define COLUMN(is, type, member) .kind = FIGURE_##is, .at = offsetof(struct type, member)
#define FIGURE(is, member) .name = #member, COLUMN(is, study_result, member)
#define TIMING(member) FIGURE(REAL, member), .is_timing = true

/* In the order of columns; docs/formats/study.md has the same. */
const struct figure results_figures[] = {
    { FIGURE(REAL, energy_j_per_work) },
    { FIGURE(REAL, energy_kwh) },
    { FIGURE(REAL, promise_attainment) },
    { FIGURE(REAL, mean_jct_s) },
    { FIGURE(REAL, p95_jct_s) },
    { FIGURE(REAL, mean_queue_s) },
    { FIGURE(REAL, makespan_s) },
    { FIGURE(REAL, allocation_efficiency) },
    { FIGURE(REAL, work_s) },
    { FIGURE(LONG, moves) },
    { FIGURE(REAL, moves_per_job), .is_derived = true },
    { FIGURE(LONG, decisions) },
    { FIGURE(LONG, fallbacks) },
    { FIGURE(LONG, repricings) },
    { FIGURE(LONG, measurements) },
    { FIGURE(INT, jobs) },
    { FIGURE(INT, finished) },
    { FIGURE(INT, failed) },
    { FIGURE(REAL, gap_mean_w) },
    { FIGURE(REAL, gap_worst_w) },
    { FIGURE(REAL, gap_mean_ratio) },
    { FIGURE(REAL, gap_worst_ratio) },
    { FIGURE(REAL, gap_mean_varying_ratio) },
    { FIGURE(REAL, gap_worst_varying_ratio) },
    { FIGURE(REAL, prediction_error) },
    { FIGURE(REAL, coverage90) },
    { FIGURE(REAL, first_100_attainment) },
    { FIGURE(REAL, next_attainment) },
    { FIGURE(REAL, effective_delay_w), .is_late = true },
    { FIGURE(REAL, service_hours_kept), .is_late = true },
    { FIGURE(REAL, late_share), .is_late = true },
    { FIGURE(REAL, p99_s), .is_late = true },
    { FIGURE(REAL, interruptions), .is_late = true },
    { FIGURE(REAL, starts_per_service_day), .is_late = true },
    { FIGURE(REAL, training_work), .is_late = true },
    { TIMING(decision_p50_s) },
    { TIMING(decision_p99_s) },
    { TIMING(repricing_s) },
    { TIMING(wall_s) },
    { TIMING(rss_bytes) },
};
const int n_results_figures = sizeof results_figures / sizeof *results_figures;

static const struct figure types[] = {
    { "gpu", COLUMN(TEXT, study_type, name) },
    { "gpus", COLUMN(INT, study_type, n_gpus) },
    { "gpu_hours", COLUMN(REAL, study_type, gpu_hours) },
    { "energy_kwh", COLUMN(REAL, study_type, energy_kwh) },
};
static const struct figure slices[] = {
    { "time_s", COLUMN(REAL, study_slice, time_s) },
    { "watts", COLUMN(REAL, study_slice, watts) },
    { "work_per_s", COLUMN(REAL, study_slice, work_per_s) },
    { "error", COLUMN(REAL, study_slice, error) },
    { "measurements", COLUMN(LONG, study_slice, measurements) },
    { "attainment", COLUMN(REAL, study_slice, attainment) },
    { "waiting", COLUMN(INT, study_slice, waiting) },
};
static const struct figure stays[] = {
    { "gpu", COLUMN(INT, study_interval, gpu) },
    { "job", COLUMN(INT, study_interval, job) },
    { "limit_w", COLUMN(INT, study_interval, limit_w) },
    { "from_s", COLUMN(REAL, study_interval, from_s) },
    { "to_s", COLUMN(REAL, study_interval, to_s) },
};

#define LIST(member) \
    .n_at = offsetof(struct study_result, n_##member), .at = offsetof(struct study_result, member)
#define COLUMNS(of) .n_columns = (int)(sizeof(of) / sizeof *(of)), .columns = (of)

const struct figure_list results_lists[RESULTS_LISTS] = {
    [RESULTS_TYPES] = { "types.csv", sizeof(struct study_type), LIST(types), COLUMNS(types) },
    [RESULTS_SLICES] = { "slices.csv", sizeof(struct study_slice), LIST(slices), COLUMNS(slices) },
    [RESULTS_STAYS] = { "stays.csv", sizeof(struct study_interval), LIST(intervals),
                        COLUMNS(stays) },
};

int figure_list_n(const struct figure_list *l, const struct study_result *r)
{
    return *(const int *)((const char *)r + l->n_at);
}

const void *figure_list_at(const struct figure_list *l, const struct study_result *r, int i)
{
    const char *all;

    memcpy(&all, (const char *)r + l->at, sizeof all);
    return all + (size_t)i * l->size;
}

double figure_number(const struct figure *f, const void *of)
{
    const void *at = (const char *)of + f->at;

    if (f->kind == FIGURE_REAL)
        return *(const double *)at;
    return f->kind == FIGURE_LONG ? (double)*(const long *)at : *(const int *)at;
}

/* A bound knows how many jobs there are, and counts nothing else. */
static bool has_figure(const struct figure *f, const char *policy)
{
    return f->kind == FIGURE_REAL || f->at == offsetof(struct study_result, jobs) ||
           strcmp(policy, "bound") != 0;
}

double figure_value(const struct figure *f, const struct study_run *k, const struct study_result *r)
{
    return has_figure(f, k->policy) ? figure_number(f, r) : (double)NAN;
}

/* ---- out ---- */

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *figure_json(const struct figure *f, const void *of)
{
    if (f->kind == FIGURE_TEXT)
        return json_string(*(const char *const *)((const char *)of + f->at));
    return f->kind == FIGURE_REAL ? number(figure_number(f, of))
                                  : json_integer((json_int_t)figure_number(f, of));
}

static json_t *price(const double *price_w)
{
    return price_w != NULL ? json_real(*price_w) : json_null();
}

static json_t *key_json(const struct study_run *k)
{
    return json_pack("{s:s, s:o, s:s, s:i, s:b, s:b, s:o, s:s, s:s, s:o, s:o, s:i}", "scenario",
                     k->scenario->name, "load", number(k->load), "policy", k->policy, "seed",
                     k->seed, "sleep", k->has_sleep, "power_limit", k->has_limits, "without",
                     k->without[0] != '\0' ? json_string(k->without) : json_null(), "knows",
                     knowledge_name(k->knows), "power_model", scenario_power_model(k->scenario),
                     "delay_w", price(k->delay_w), "promise_w", price(k->promise_w), "history_jobs",
                     study_run_history(k));
}

json_t *results_row_json(const struct study_run *k, const struct study_result *r)
{
    json_t *row = key_json(k), *hours = json_object(), *energy = json_object();

    assert(row != NULL);
    for (int i = 0; i < n_results_figures; i++) {
        const struct figure *f = &results_figures[i];

        if (!f->is_timing)
            json_object_set_new(row, f->name,
                                has_figure(f, k->policy) ? figure_json(f, r) : json_null());
    }
    for (int i = 0; i < r->n_types; i++) {
        json_object_set_new(hours, r->types[i].name, number(r->types[i].gpu_hours));
        json_object_set_new(energy, r->types[i].name, number(r->types[i].energy_kwh));
    }
    json_object_set_new(row, "gpu_hours", hours);
    json_object_set_new(row, "type_energy_kwh", energy);
    return row;
}

/* Rows of the values of its columns. */
static json_t *list_json(int list, const struct study_result *r)
{
    const struct figure_list *l = &results_lists[list];
    json_t *all = json_array();

    for (int i = 0; i < figure_list_n(l, r); i++) {
        json_t *row = json_array();

        for (int c = 0; c < l->n_columns; c++)
            json_array_append_new(row, figure_json(&l->columns[c], figure_list_at(l, r, i)));
        json_array_append_new(all, row);
    }
    return all;
}

json_t *results_details_json(const struct study_result *r)
{
    json_t *timing = json_object();

    for (int i = 0; i < n_results_figures; i++) {
        if (results_figures[i].is_timing)
            json_object_set_new(timing, results_figures[i].name,
                                figure_json(&results_figures[i], r));
    }
    return json_pack("{s:o, s:o, s:o, s:[o, o], s:o}", "timing", timing, "types",
                     list_json(RESULTS_TYPES, r), "slices", list_json(RESULTS_SLICES, r), "stays_s",
                     number(r->intervals_from_s), number(r->intervals_to_s), "stays",
                     list_json(RESULTS_STAYS, r));
}

/* ---- and back ---- */

/* null is NaN; false: neither that nor a number. */
static bool take_number(const json_t *j, double *out)
{
    *out = json_is_number(j) ? json_number_value(j) : (double)NAN;
    return json_is_number(j) || json_is_null(j);
}

/* False: it is not of the figure's kind. */
static bool take(struct arena *a, const struct figure *f, const json_t *j, void *to)
{
    void *at = (char *)to + f->at;
    const json_int_t v = json_integer_value(j);

    switch (f->kind) {
    case FIGURE_REAL:
        return take_number(j, (double *)at);
    case FIGURE_LONG:
        *(long *)at = (long)v;
        return json_is_integer(j);
    case FIGURE_INT:
        *(int *)at = (int)v;
        return json_is_integer(j) && v >= INT_MIN && v <= INT_MAX;
    case FIGURE_TEXT:
        if (json_is_string(j))
            *(const char **)at = arena_strdup(a, json_string_value(j));
        return json_is_string(j);
    }
    return false;
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

        if (f->is_derived || (!has_figure(f, policy) && json_is_null(j)))
            continue;
        if (!take(NULL, f, f->is_late && j == NULL ? json_null() : j, out))
            return false;
    }
    study_result_derive(policy, out);
    return true;
}

static bool take_list(struct arena *a, int list, const json_t *j, struct study_result *out)
{
    const struct figure_list *l = &results_lists[list];
    const size_t n = json_array_size(j);
    char *all = arena_array(a, n, l->size);
    bool is_fine = json_is_array(j);

    *(int *)((char *)out + l->n_at) = (int)n;
    memcpy((char *)out + l->at, &all, sizeof all);
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < l->n_columns && is_fine; c++)
            is_fine = take(a, &l->columns[c], json_array_get(json_array_get(j, i), (size_t)c),
                           all + i * l->size);
    return is_fine;
}

/* Charts have a row for each GPU up to the last: a file may not ask for any number of them. */
#define ROWS_MAX 65536

static bool are_stays_sane(const struct study_result *r)
{
    for (int i = 0; i < r->n_intervals; i++) {
        const struct study_interval *s = &r->intervals[i];

        if (s->gpu < 0 || s->gpu >= ROWS_MAX || s->job < 0)
            return false;
    }
    return true;
}

bool results_read_back(struct arena *a, const json_t *row, const json_t *details,
                       struct study_result *out)
{
    const json_t *window = json_object_get(details, "stays_s");

    *out = (struct study_result){ 0 };
    return take_figures(row, json_object_get(details, "timing"), out) &&
           take_number(json_array_get(window, 0), &out->intervals_from_s) &&
           take_number(json_array_get(window, 1), &out->intervals_to_s) &&
           take_list(a, RESULTS_TYPES, json_object_get(details, "types"), out) &&
           take_list(a, RESULTS_SLICES, json_object_get(details, "slices"), out) &&
           take_list(a, RESULTS_STAYS, json_object_get(details, "stays"), out) &&
           are_stays_sane(out);
}

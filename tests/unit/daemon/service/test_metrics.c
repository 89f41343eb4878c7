/* The metrics page is one that Prometheus reads: each line, each family, each histogram. */
#include "daemon/service/metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "daemon/service/service.h"
#include "monitor/energy.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct world world;
static struct service service;
static struct clock_manual stopped = { 100 };
static struct buf page;
static struct arena arena;

/* A daemon of parts: a state, a catalog, joules; no doors. */
static void setup(void)
{
    struct err e = { 0 };

    world_init(&world, "type v100\ntype k80\nworkload w\nnode box v100 k80\n"
                       "job a w steps=10 owner=ada\njob q\"uo\\te w steps=10 owner=b\\o\"b\n"
                       "start a 0\n");
    service = (struct service){ .clock = clock_manual(&stopped),
                                .began_s = 50,
                                .has_earlier_usage = true };
    service.base.catalog = world.catalog;
    service.base.ledger = world.ledger;
    metrics_init(&service.metrics);
    service.energy = energy_create(&service.base.ledger.state, &service.base.catalog);
    energy_draw(service.energy, 0, 0, 100, 50);
    energy_share(service.energy, 0, 0, &(struct energy_share){ .job = 0, .weight = 1 }, 1);
    energy_draw(service.energy, 0, 10, 100, 50);
    ck_assert_int_eq(loop_create(&service.loop, &e), 0);
    buf_init(&page, 1 << 20);
    arena_init(&arena);
}

static void teardown(void)
{
    buf_release(&page);
    arena_release(&arena);
    energy_destroy(service.energy);
    loop_destroy(service.loop);
    world_release(&world);
}

FIXTURE(setup, teardown)

static const char *print(void)
{
    buf_clear(&page);
    metrics_print(&service, &page);
    return buf_text(&page);
}

/* ---- a small reader of the text format ---- */

struct family {
    char name[128], type[16];
    int n_help, n_type, n_samples;
    double last_le, last_count, count;    // of a histogram
    bool has_inf;
};

static struct family families[256];
static int n_families;

static struct family *family_of(const char *name, size_t len)
{
    for (int i = 0; i < n_families; i++)
        if (strlen(families[i].name) == len && strncmp(families[i].name, name, len) == 0)
            return &families[i];
    ck_assert_int_lt(n_families, 256);
    struct family *f = &families[n_families++];
    *f = (struct family){ .last_le = -INFINITY, .count = NAN };
    snprintf(f->name, sizeof f->name, "%.*s", (int)len, name);
    return f;
}

static size_t name_length(const char *at)
{
    size_t n = 0;

    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == ':')
        n++;
    ck_assert_msg(n > 0 && !isdigit((unsigned char)at[0]), "not a name: %.60s", at);
    return n;
}

/* Behind the labels; 'le' gets the limit of a bucket. */
static const char *skip_labels(const char *at, char le[32])
{
    le[0] = '\0';
    if (*at != '{')
        return at;
    do {
        const char *name = ++at;
        size_t n = name_length(at);
        at += n;
        ck_assert_msg(at[0] == '=' && at[1] == '"', "label: %.60s", name);
        const char *value = at += 2;
        while (*at != '"') {
            ck_assert_msg(*at && *at != '\n', "a label without its end: %.60s", name);
            if (*at == '\\')
                ck_assert_msg(strchr("\\\"n", *++at), "an escape that is none: %.60s", value);
            at++;
        }
        if (n == 2 && strncmp(name, "le", 2) == 0)
            snprintf(le, 32, "%.*s", (int)(at - value), value);
        at++;
    } while (*at == ',');
    ck_assert_msg(*at == '}', "want '}': %.60s", at);
    return at + 1;
}

/* "x_bucket", "x_sum" and "x_count" of a histogram or summary x belong to it. */
static struct family *owner_of(const char *name, size_t len, const char **part)
{
    static const char *const parts[] = { "_bucket", "_sum", "_count" };

    *part = "";
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(parts[i]);
        if (len <= n || strncmp(name + len - n, parts[i], n) != 0)
            continue;
        for (int k = 0; k < n_families; k++) {
            struct family *f = &families[k];
            bool has_parts = strcmp(f->type, "histogram") == 0 || strcmp(f->type, "summary") == 0;
            if (has_parts && strlen(f->name) == len - n && strncmp(f->name, name, len - n) == 0) {
                *part = parts[i];
                return f;
            }
        }
    }
    return family_of(name, len);
}

static void read_bucket(struct family *f, const char *le, double v)
{
    double limit = strcmp(le, "+Inf") == 0 ? (double)INFINITY : strtod(le, NULL);

    ck_assert_msg(limit > f->last_le, "%s: limits rise: %s", f->name, le);
    ck_assert_msg(v >= f->last_count, "%s: buckets hold those before them", f->name);
    f->last_le = limit;
    f->last_count = v;
    f->has_inf = isinf(limit);
}

static void read_sample(const char *line)
{
    char le[32], *end;
    const char *part;
    size_t n = name_length(line);
    struct family *f = owner_of(line, n, &part);
    const char *at = skip_labels(line + n, le);

    ck_assert_msg(*at == ' ', "want a value: %s", line);
    double v = strtod(at + 1, &end);
    ck_assert_msg(end > at + 1 && *end == '\0', "not a number: %s", line);
    ck_assert_msg(f->n_help == 1 && f->n_type == 1, "%s has no HELP and TYPE before it", f->name);
    f->n_samples++;
    if (strcmp(part, "_bucket") == 0)
        read_bucket(f, le, v);
    if (strcmp(part, "_count") == 0)
        f->count = v;
    if (strcmp(f->type, "counter") == 0)
        ck_assert_msg(v >= 0 && strlen(f->name) > 6 &&
                          strcmp(f->name + strlen(f->name) - 6, "_total") == 0,
                      "a count that is none: %s", line);
}

static void read_comment(const char *line)
{
    bool is_help = strncmp(line, "# HELP ", 7) == 0;

    ck_assert_msg(is_help || strncmp(line, "# TYPE ", 7) == 0, "%s", line);
    size_t n = name_length(line + 7);
    struct family *f = family_of(line + 7, n);
    ck_assert_msg(line[7 + n] == ' ' && line[8 + n], "%s", line);
    ck_assert_msg(f->n_samples == 0, "%s is told of twice", f->name);
    if (is_help)
        f->n_help++;
    else {
        f->n_type++;
        snprintf(f->type, sizeof f->type, "%s", line + 8 + n);
        ck_assert_msg(strcmp(f->type, "gauge") == 0 || strcmp(f->type, "counter") == 0 ||
                          strcmp(f->type, "histogram") == 0 || strcmp(f->type, "summary") == 0,
                      "%s", line);
    }
    ck_assert_int_le(f->n_help, 1);
    ck_assert_int_le(f->n_type, 1);
}

static void read_page(const char *text)
{
    n_families = 0;
    ck_assert(text[0] && text[strlen(text) - 1] == '\n');
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = arena_strndup(&arena, text, n);
        if (line[0] == '#')
            read_comment(line);
        else
            read_sample(line);
        text += n + 1;
    }
    for (int i = 0; i < n_families; i++) {
        const struct family *f = &families[i];
        ck_assert_msg(strncmp(f->name, "gogh_", 5) == 0 || strncmp(f->name, "process_", 8) == 0,
                      "%s", f->name);
        if (strcmp(f->type, "histogram") == 0)
            ck_assert_msg(f->has_inf && f->count == f->last_count, "%s: +Inf is the count",
                          f->name);
    }
}

static void has(const char *line)
{
    ck_assert_msg(strstr(print(), line), "no '%s' in\n%s", line, buf_text(&page));
}

/* ---- */

TEST(every_line_is_one_that_prometheus_reads)
{
    histogram_add(&service.metrics.decision_s, .002);
    histogram_add(&service.metrics.decision_s, 5);
    histogram_add(&service.metrics.decision_s, 500);
    read_page(print());
    service.config.has_job_labels = true;
    read_page(print());
    ck_assert_int_gt(n_families, 30);
}

TEST(jobs_joules_and_the_build_are_told)
{
    has("gogh_jobs{state=\"running\"} 1\n");
    has("gogh_jobs{state=\"waiting\"} 1\n");
    has("gogh_build_info{version=\"");
    has("gogh_gpu_energy_joules_total{gpu=\"box/0\",type=\"v100\"} 1000\n");
    has("gogh_owner_energy_joules_total{owner=\"ada\"} 1000\n");
    ck_assert_ptr_null(strstr(print(), "gogh_solver_gap_ratio"));    // not known yet
    service.metrics.gap = (struct plan_gap){ 12, 0.5, 0.25 };
    has("gogh_solver_gap_watts 12\n");
    has("gogh_solver_gap_ratio 0.5\n");
    has("gogh_solver_gap_varying_ratio 0.25\n");
    has("gogh_decisions_certified_total 0\n");
    service.metrics.n_certified = 3;
    has("gogh_decisions_certified_total 3\n");
    histogram_add(&service.metrics.repricing_s, 2);
    has("gogh_repricing_seconds_count 1\n");
    has("process_start_time_seconds 50\n");
}

TEST(joules_of_before_are_not_told_until_they_are_known)
{
    service.has_earlier_usage = false;
    ck_assert_ptr_null(strstr(print(), "gogh_owner_energy_joules_total"));
    service.has_earlier_usage = true;
    has("gogh_owner_energy_joules_total{owner=\"ada\"} 1000\n");
}

TEST(labels_are_escaped)
{
    has("gogh_owner_energy_joules_total{owner=\"b\\\\o\\\"b\"} 0\n");
}

TEST(jobs_have_labels_only_where_configured)
{
    ck_assert_ptr_null(strstr(print(), "gogh_job_energy_joules_total"));
    service.config.has_job_labels = true;
    has("gogh_job_energy_joules_total{job=\"a\",owner=\"ada\",workload=\"w\"} 1000\n");
}

TEST(the_prediction_error_is_a_mean)
{
    has("gogh_prediction_error_ratio NaN\n");
    service.metrics.n_measurements = 4;
    service.metrics.sum_abs_error = 1;
    service.metrics.n_covered = 3;
    has("gogh_prediction_error_ratio 0.25\n");
    has("gogh_prediction_abs_error_ratio_count 4\n");
    has("gogh_prediction_covered_total 3\n");
}

static const struct {
    const char *name;
    double v;
    int want;
} observed[] = {
    { "below the first limit", .0001, 0 },
    { "at a limit belongs below it", .001, 0 },
    { "between two", .05, 4 },
    { "above the last", 31, METRIC_BUCKETS - 1 },
};

EACH(each_observation_is_in_one_bucket, observed)
{
    struct histogram h = { 0 };

    histogram_add(&h, observed[_i].v);
    for (int i = 0; i < METRIC_BUCKETS; i++)
        ck_assert_msg(h.counts[i] == (i == observed[_i].want), "%s: bucket %d", observed[_i].name,
                      i);
    ck_assert_double_eq(h.sum, observed[_i].v);
}

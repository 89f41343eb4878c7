/* Usage rows become a report whose rows add up to its total. */
#include "daemon/api/usage.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "daemon/http/shapes.h"
#include "store/store.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct world world;
static struct usage usage;

static void submit(const struct job_spec *spec)
{
    struct err e = { 0 };
    const struct event ev = { .kind = EVENT_JOB_SUBMITTED, .spec = spec };

    ck_assert_msg(ledger_append(&world.ledger, &ev, 1, &e) == 0, "%s", e.text);
}

static const struct job_spec served = { .owner = "eve",
                                        .workload = 1,
                                        .rate = 10,
                                        .deadline_s = NAN,
                                        .n_gpus = 1,
                                        .max_gpus = 1,
                                        .service = -1 };

static void add_service(const char *name, double latency_s)
{
    struct job_spec spec = served;

    spec.kind = JOB_SERVICE;
    spec.name = name;
    spec.terms = &(struct service_terms){ .latency_s = latency_s };
    submit(&spec);
}

static void add_replica(const char *name, int service)
{
    struct job_spec spec = served;

    spec.kind = JOB_REPLICA;
    spec.name = name;
    spec.service = service;
    spec.terms = &(struct service_terms){ .latency_s = 0.2 };
    submit(&spec);
}

/* Jobs 0 and 1 are ada's, 2 is bob's; w1 and w2 are their workloads. Jobs 3 and 4 are services, 5
 * and 6 replicas of the first.
 */
static void setup(void)
{
    world_init(&world, "type v100\ntype k80\nworkload w1\nworkload w2\nnode n v100 k80\n"
                       "job a w1 steps=1 owner=ada\njob b w2 steps=1 owner=ada\n"
                       "job c w2 steps=1 owner=bob\n");
    add_service("web", 0.2);
    add_service("idle", 0.1);
    add_replica("web.0", 3);
    add_replica("web.1", 3);
    usage_init(&usage);
}

static void teardown(void)
{
    usage_release(&usage);
    world_release(&world);
}

FIXTURE(setup, teardown)

/* Types are 1 (v100) and 2 (k80), as a catalog without a store has them. */
static const struct row_usage rows[] = {
    { 0, 0, 1, 100, 10, 5, 50, 10, 10, 2, .2, 2, 0, 0 },
    { 0, 1, 2, 200, 20, 6, 60, 10, 5, 0, 0, 0, 0, 0 },
    { 0, -1, 1, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { 3600, 0, 1, 300, 40, 7, 70, 0, 0, 2, .4, 1, 0, 0 },
    { 3600, 0, 2, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0 },
    { 3600, 2, 2, 400, 50, 8, 80, 20, 20, 1, .5, 0, 0, 0 },
    { 7200, 2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0 },
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void add_all(void)
{
    for (int i = 0; i < N_ROWS; i++)
        usage_add(&usage, &rows[i]);
}

static json_t *report(enum usage_by by)
{
    json_t *o = usage_json(&usage, by, &world.ledger.state, &world.catalog);

    ck_assert_ptr_nonnull(o);
    return o;
}

static json_t *row_named(json_t *report, const char *name)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(report, "rows"), i,
                       row) if (strcmp(json_string_value(json_object_get(row, "name")), name) ==
                                0) return row;
    ck_abort_msg("no row '%s'", name);
    return NULL;
}

static double number(json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static const struct {
    const char *name;
    enum usage_by by;
    const char *row;
    int jobs;
    double joules, gpu_s, promised_s, kept;    // kept NaN: null
} cases[] = {
    { "an owner's jobs together", BY_OWNER, "ada", 2, 671, 19, 20, .75 },
    { "another owner's", BY_OWNER, "bob", 1, 450, 8, 25, .8 },
    { "what empty GPUs drew is nobody's", BY_OWNER, "(nobody)", 0, 30, 0, 0, NAN },
    { "a workload of several owners", BY_WORKLOAD, "w2", 2, 670, 14, 35, 25. / 35 },
    { "a workload on several types", BY_WORKLOAD, "w1", 1, 451, 13, 10, 1 },
    { "empty GPUs are of their type", BY_GPU_TYPE, "v100", 1, 480, 12, 10, 1 },
    { "a type", BY_GPU_TYPE, "k80", 3, 671, 15, 30, 25. / 30 },
    { "time spent waiting is on none", BY_GPU_TYPE, "(none)", 1, 0, 0, 5, 0 },
};

EACH(rows_are_grouped, cases)
{
    add_all();
    json_t *o = report(cases[_i].by), *row = row_named(o, cases[_i].row);

    ck_assert_msg(number(row, "jobs") == cases[_i].jobs, "%s: %g jobs", cases[_i].name,
                  number(row, "jobs"));
    ck_assert_double_eq_tol(number(row, "joules"), cases[_i].joules, 1e-9);
    ck_assert_double_eq_tol(number(row, "gpu_s"), cases[_i].gpu_s, 1e-9);
    ck_assert_double_eq_tol(number(row, "promised_s"), cases[_i].promised_s, 1e-9);
    if (isnan(cases[_i].kept))
        ck_assert(json_is_null(json_object_get(row, "kept")));
    else
        ck_assert_double_eq_tol(number(row, "kept"), cases[_i].kept, 1e-9);
    json_decref(o);
}

TIMES(rows_add_up_to_the_total, USAGE_BYS)
{
    static const char *const keys[] = { "joules", "active_j",   "idle_j", "gpu_s",
                                        "steps",  "promised_s", "kept_s", "measured" };
    json_t *row;
    size_t i;

    add_all();
    json_t *o = report((enum usage_by)_i), *total = json_object_get(o, "total");
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        double sum = 0;
        json_array_foreach(json_object_get(o, "rows"), i, row) sum += number(row, keys[k]);
        ck_assert_msg(fabs(sum - number(total, keys[k])) < 1e-9, "%s: %g of %g", keys[k], sum,
                      number(total, keys[k]));
    }
    ck_assert_double_eq(number(total, "joules"), 1151);
    ck_assert_int_eq((int)number(total, "jobs"), 3);
    json_decref(o);
}

TEST(errors_are_means_over_what_was_measured)
{
    add_all();
    json_t *o = report(BY_OWNER), *ada = row_named(o, "ada");

    ck_assert_double_eq_tol(number(ada, "error"), .6 / 4, 1e-12);
    ck_assert_double_eq_tol(number(ada, "coverage"), 3. / 4, 1e-12);
    ck_assert(json_is_null(json_object_get(row_named(o, "(nobody)"), "error")));
    json_decref(o);
}

TEST(hours_are_in_their_order_and_most_joules_first)
{
    static const double joules[] = { 360, 791, 0 };

    add_all();
    json_t *o = report(BY_OWNER), *hours = json_object_get(o, "hours");
    ck_assert_int_eq((int)json_array_size(hours), 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_double_eq(number(json_array_get(hours, i), "hour_s"), 3600. * (double)i);
        ck_assert_double_eq_tol(number(json_array_get(hours, i), "joules"), joules[i], 1e-9);
    }
    json_t *first = json_array_get(json_object_get(o, "rows"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "ada");
    json_decref(o);
}

TEST(a_report_is_as_its_schema_says)
{
    struct err e = { 0 };

    for (int by = 0; by < USAGE_BYS; by++) {
        json_t *o = report((enum usage_by)by);
        json_object_set_new(o, "from_s", json_real(0));
        json_object_set_new(o, "to_s", json_real(1));
        json_object_set_new(o, "by", json_string(usage_by_names[by]));
        json_object_set_new(o, "saved", json_null());
        json_object_set_new(o, "services", usage_services_json(&usage, &world.ledger.state, 0, 1));
        ck_assert_msg(schema_check(&schema_report, o, &e) == 0, "%s", e.text);
        json_decref(o);
        add_all();
    }
}

/* ---- from a store ---- */

TEST(hours_of_a_period_come_from_the_store)
{
    char *dir = scratch_make();
    char path[512];
    struct store *s = NULL;
    struct err e = { 0 };

    snprintf(path, sizeof path, "%s/x.db", dir);
    ck_assert_msg(store_open(path, STORE_CREATE, &s, &e) == 0, "%s", e.text);
    ck_assert_int_eq(store_begin(s, &e), 0);
    for (int i = 0; i < N_ROWS; i++) {
        struct row_usage r = rows[i];
        r.gpu_type = 0;    // the store has no types yet
        ck_assert_msg(store_add_usage(s, &r, &e) == 0, "%s", e.text);
    }
    ck_assert_int_eq(store_commit(s, &e), 0);
    ck_assert_msg(usage_read(&usage, path, 3700, 7200, &e) == 0, "%s", e.text);
    ck_assert_int_eq(usage.n_hours,
                     1);    // the hour that 3700 s is in, and none that begins at 7200
    ck_assert_double_eq(usage_joules(&usage.total), 791);
    store_close(s);
    scratch_remove(dir);
}

/* ---- services ---- */

/* Two replicas in three hours: of all requests of an hour 1 % may be late. */
static const struct row_usage answers[] = {
    { .hour_s = 0, .job = 5, .gpu_type = 1, .active_j = 1000, .gpu_s = 10, .requests = 500 },
    { .hour_s = 0, .job = 6, .gpu_type = 2, .idle_j = 500, .requests = 500, .late = 10 },
    { .hour_s = 3600, .job = 5, .gpu_type = 1, .active_j = 400, .requests = 900, .late = 10 },
    { .hour_s = 3600, .job = 0, .gpu_type = 1, .active_j = 7 },
    { .hour_s = 7200, .job = 6, .gpu_type = 2, .active_j = 100 },
};

TEST(services_are_judged_by_the_hour)
{
    struct err e = { 0 };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        usage_add(&usage, &answers[i]);
    json_t *list = usage_services_json(&usage, &world.ledger.state, 0, 10000);
    ck_assert_int_eq((int)json_array_size(list), 1);    // the other one used nothing
    json_t *web = json_array_get(list, 0);
    ck_assert_str_eq(json_string_value(json_object_get(web, "name")), "web");
    ck_assert_double_eq(number(web, "requests"), 1900);
    ck_assert_double_eq(number(web, "late"), 20);
    ck_assert_double_eq(number(web, "hours"), 2);
    ck_assert_double_eq(number(web, "kept_hours"), 1);
    ck_assert_double_eq(number(web, "joules"), 2000);
    ck_assert_double_eq(number(web, "watts"), 0.2);
    ck_assert_double_eq_tol(number(web, "joules_per_1000_requests"), 2000 / 1.9, 1e-9);
    json_t *whole = report(BY_OWNER);
    json_object_update_new(whole, json_pack("{s:o, s:i, s:i, s:s, s:n}", "services", list, "from_s",
                                            0, "to_s", 10000, "by", "owner", "saved"));
    ck_assert_msg(schema_check(&schema_report, whole, &e) == 0, "%s", e.text);
    json_decref(whole);
}

/* A site as numbers: within bounds whatever is known, and readings of the campaign asked for. */
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/site/site.h"
#include "unit/suite.h"

static struct site site;
static struct catalog catalog;
static struct arena arena;

static void set_up(void)
{
    catalog_init(&catalog);
    arena_init(&arena);
}

static void tear_down(void)
{
    site_release(&site);
    catalog_release(&catalog);
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static void check_bounds(const struct site_on *on, const char *name)
{
    for (int i = 0; i < SITE_JOB; i++)
        ck_assert_msg(on->x[i] >= -2.5f && on->x[i] <= 3.5f, "%s: x %d is %g", name, i,
                      (double)on->x[i]);
    ck_assert(on->busy >= 0 && on->busy <= 1 && on->traffic >= 0 && on->traffic <= 1);
    ck_assert(fabsf(on->ln_reference) < 20 && on->ln_watts > 0 && on->ln_watts < 8);
    ck_assert(on->doubt >= 0 && on->doubt < 1);
}

TEST(all_that_is_built_in_has_numbers_within_bounds)
{
    int n, n_types;
    const struct workload *all = workload_builtin_all(&n);
    const struct gpu_type *types = gpu_type_builtin_all(&n_types);

    site_init(&site, types, n_types);
    for (int g = 0; g < n_types; g++)
        for (int i = 0; i < SITE_GPU; i++)
            ck_assert_msg(fabsf(site.gpu[g][i]) < 4, "%s: %d", types[g].name, i);
    for (int w = 0; w < n; w++)
        ck_assert_int_eq(site_add(&site, &all[w], types), w);
    for (int i = 0; i < n * n_types; i++)
        check_bounds(&site.on[i], all[i / n_types].name);
}

/* Features are forgotten one after the other; and of nothing known, numbers are typical. */
TEST(doubt_grows_with_what_is_unknown)
{
    struct gpu_type types[2] = { *gpu_type_builtin("v100") };
    struct workload w;
    float last = 0;

    gpu_type_init(&types[1], "unheard of");
    site_init(&site, types, 2);
    ck_assert_int_eq(workload_builtin(&arena, "ResNet-50", NAN, &w, NULL), 0);
    site_add(&site, &w, types);
    ck_assert(site_on(&site, 0, 0)->doubt == 0 && site_on(&site, 0, 1)->doubt > 0);
    for (int i = WORKLOAD_NUMBERS - 1; i >= 0; i--) {
        workload_set_number(&w, i, NAN);
        const struct site_on *on = site_on(&site, site_add(&site, &w, types), 0);
        ck_assert(on->doubt >= last);
        last = on->doubt;
    }
    w.batch = NAN;
    const struct site_on *on = site_on(&site, site_add(&site, &w, types), 0);
    check_bounds(on, "nothing known");
    check_bounds(on + 1, "nothing known on a type that nobody described");
    ck_assert(on->doubt > 0.2f && on[1].doubt > on->doubt);
    ck_assert(fabs((double)on->x[6] - (log(32) / 3 - 1)) < 1e-6);    // the batch
}

/* Of the GPU and of its memory. */
static const double profiles[][2] = {
    { NAN, NAN }, { 0.375, 0.125 }, { 0, 0 }, { 0.625, NAN }, { NAN, 1 }
};

EACH(what_was_seen_stands_for_what_would_be_guessed, profiles)
{
    const struct gpu_type *v100 = gpu_type_builtin("v100");
    struct workload w;

    site_init(&site, v100, 1);
    ck_assert_int_eq(workload_builtin(&arena, "ResNet-50", NAN, &w, NULL), 0);
    site_add(&site, &w, v100);
    double busy = w.gpu_activity = profiles[_i][0], traffic = w.mem_activity = profiles[_i][1];
    site_add(&site, &w, v100);
    const struct site_on *guessed = site_on(&site, 0, 0), *seen = site_on(&site, 1, 0);
    ck_assert(guessed->busy > 0 && guessed->traffic > 0);
    ck_assert(seen->busy == (isnan(busy) ? guessed->busy : (float)busy));
    ck_assert(seen->traffic == (isnan(traffic) ? guessed->traffic : (float)traffic));
}

static const char *const families[] = {
    "BERT", "ResNet", NULL, "BERT", "bert", NULL, "", "ResNet"
};
static const int family_at[] = { 0, 1, 2, 0, 3, 4, 5, 1 };

TEST(families_are_by_name_and_an_unknown_one_is_its_own)
{
    const struct gpu_type *v100 = gpu_type_builtin("v100");
    struct workload w;

    site_init(&site, v100, 1);
    for (size_t i = 0; i < N_ROWS(families); i++) {
        workload_init(&w, "w");
        w.family = families[i];
        int at = site_add(&site, &w, v100);
        ck_assert_int_eq(site.family[at], family_at[i]);
    }
}

/* What is measured, and as which reading it is told; a slowdown also by its value. */
enum { NOT = READINGS };
static const struct {
    struct cell_key key;
    double steps_s, watts;    // NAN: not measured
    int told;
    double slowdown;
} measured[] = {
    { { 0, 0, 1, 1, false, 0, 0 }, 6, 100, READ_SLOWDOWN, 0.6 },    // its own speed comes later
    { { 0, 0, -1, 1, false, 0, 0 }, 10, 200, READ_ALONE, 0 },
    { { 0, 0, -1, 2, false, 0, 0 }, 19, 300, NOT, 0 },          // a gang
    { { 0, 0, -1, 1, false, 150, 0 }, 8, 140, NOT, 0 },         // under a limit
    { { 1, 0, 0, 1, false, 0, 0 }, 3, NAN, READ_PACKED, 0 },    // never alone
    { { 0, 1, -1, 1, false, 0, 0 }, NAN, 90, NOT, 0 },          // watts, no speed
    { { 0, 1, 1, 1, false, 0, 0 }, 4, NAN, READ_PACKED, 0 },    // so that alone is not known
    { { 0, 0, 0, 1, false, 0, 0 }, 50, NAN, READ_SLOWDOWN, SLOWDOWN_MOST },
    { { 0, 0, 2, 1, false, 0, 0 }, 0.01, NAN, READ_SLOWDOWN, SLOWDOWN_LEAST },
    { { 1, 1, 0, 1, false, 0, 1 }, 2.5, NAN, READ_SLOWDOWN, 0.5 },    // another campaign
    { { 1, 1, -1, 1, false, 0, 1 }, 5, 120, READ_ALONE, 0 },
    { { 0, 0, 1, 1, false, 0, 1 }, 2, NAN, READ_PACKED, 0 },    // known alone at the site only
    { { 2, 0, 1, 1, false, 0, 0 }, NAN, NAN, NOT, 0 },          // does not fit
};

static void measure(void)
{
    static const char *const types[] = { "v100", "k80" }, *const names[] = { "a", "b", "c" };
    struct workload w;
    struct err e = { 0 };
    int at;

    for (int g = 0; g < 2; g++)
        ck_assert_int_eq(catalog_add_type(&catalog, gpu_type_builtin(types[g]), &at, &e), 0);
    site_init(&site, catalog.types, 2);
    for (int i = 0; i < 3; i++) {
        workload_init(&w, names[i]);
        ck_assert_int_eq(catalog_add_workload(&catalog, &w, &at, &e), 0);
        site_add(&site, &w, catalog.types);
    }
    ck_assert_int_eq(catalog_add_campaign(&catalog, "elsewhere", SHARING_MPS, &at, &e), 0);
    for (size_t k = 0; k < 2 * N_ROWS(measured); k++) {    // all of it twice
        size_t i = k / 2;
        struct measurement m = { .key = measured[i].key,
                                 .fits = measured[i].steps_s > 0 || measured[i].watts > 0,
                                 .throughput = measured[i].steps_s,
                                 .watts = measured[i].watts,
                                 .duration_s = NAN,
                                 .noise = 0.03 };
        ck_assert_msg(catalog_record(&catalog, &m, 0, &e) == 0, "%s", e.text);
    }
}

TIMES(readings_are_those_of_the_campaign_alone_first, 2)
{
    const int n_rows = (int)N_ROWS(measured);
    struct reading *list;
    int at = 0;

    measure();
    int n = site_readings(&arena, &catalog, &site, _i, &list);
    for (int i = 0; i < 2 * n_rows; i++) {
        const int row = i % n_rows, told = measured[row].told;
        const struct cell_key *k = &measured[row].key;
        if (told == NOT || k->campaign != _i || (told == READ_ALONE) != (i < n_rows))
            continue;
        ck_assert_msg(at < n, "row %d", row);
        const struct reading *r = &list[at++];
        double noise = hypot(0.03 / sqrt(2), READING_NOISE), want = log(measured[row].slowdown);
        if (told == READ_SLOWDOWN)
            noise *= sqrt(2);
        else
            want = log(measured[row].steps_s) -
                   (double)site_on(&site, k->workload, k->gpu_type)->ln_reference;
        ck_assert_msg((int)r->of == told && r->job == k->workload && r->type == k->gpu_type &&
                          r->neighbour == k->neighbour,
                      "row %d", row);
        ck_assert_double_eq_tol((double)r->value, want, 1e-5);
        ck_assert_double_eq_tol((double)r->noise, noise, 1e-5);
    }
    ck_assert_int_eq(at, n);
}

static const int drawn[][2] = { { 1, 5 }, { 10, -1 } };    // rows, by campaign

EACH(watts_are_of_jobs_alone_over_the_roofline, drawn)
{
    struct reading *list;

    measure();
    int n = site_watts(&arena, &catalog, &site, _i, &list);
    for (int i = 0; i < 2 && drawn[_i][i] >= 0; i++, n--) {
        const struct cell_key *k = &measured[drawn[_i][i]].key;
        double over = exp((double)site_on(&site, k->workload, k->gpu_type)->ln_watts);
        ck_assert(list[i].of == READ_ALONE && list[i].neighbour == -1);
        ck_assert(list[i].job == k->workload && list[i].type == k->gpu_type);
        ck_assert_double_eq_tol((double)list[i].value, log(measured[drawn[_i][i]].watts / over),
                                1e-5);
        ck_assert_double_eq_tol((double)list[i].noise, CATALOG_NOISE / sqrt(2), 1e-6);
    }
    ck_assert_int_eq(n, 0);
}

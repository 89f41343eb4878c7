/* The table of estimates: kept up to date, and what is asked of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "catalog/import/import.h"
#include "estimate/p1/p1.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"
#include "unit/estimate/p1/lab.h"

/* ---- refresh ---- */

static void random_change(struct rng *r, struct catalog *c)
{
    int w = (int)rng_below(r, (uint64_t)c->n_workloads);
    int type = (int)rng_below(r, (uint64_t)c->n_types);
    int n = (int)rng_below(r, (uint64_t)c->n_workloads + 1) - 1;
    int what = (int)rng_below(r, 4), index;
    char name[16];

    if (what == 0) {
        struct workload added;
        snprintf(name, sizeof name, "w%d", c->n_workloads);
        workload_init(&added, name);
        added.flop_per_sample = rng_between(r, 1e9, 1e12);
        ck_assert_int_eq(catalog_add_workload(c, &added, &index, NULL), 0);
    } else if (what == 1) {
        struct stored_estimate est = { .is_set = true,
                                       .ln_speed = (float)rng_normal(r),
                                       .ln_speed_sd = (float)rng_uniform(r),
                                       .ln_watts =
                                           rng_below(r, 2) ? (float)rng_between(r, 4, 6) : NAN,
                                       .ln_watts_sd = 0 };
        catalog_put_estimate(c, w, type, n, &est);
    } else {
        bool fits = rng_below(r, 3) > 0;
        struct measurement m = {
            .key = { .workload = w, .gpu_type = type, .neighbour = n, .n_gpus = 1 },
            .fits = fits,
            .throughput = fits ? exp(rng_normal(r)) : (double)NAN,
            .watts = NAN,
            .noise = NAN
        };
        ck_assert_int_eq(catalog_record(c, &m, 0, NULL), 0);
    }
}

static void same_tables(const struct estimator *a, const struct estimator *b)
{
    ck_assert_int_eq(a->n_workloads, b->n_workloads);
    ck_assert_int_eq(a->n_types, b->n_types);
    for (int w = 0; w < a->n_workloads; w++)
        for (int t = 0; t < a->n_types; t++) {
            ck_assert_double_eq(a->alone_w[w * a->n_types + t], b->alone_w[w * b->n_types + t]);
            /* Asserted only on a difference: Check notes each assertion, and there are many. */
            for (int n = -1; n < a->n_workloads; n++)
                if (memcmp(estimate_cell(a, w, t, n), estimate_cell(b, w, t, n),
                           sizeof(struct cell_estimate)) != 0)
                    ck_abort_msg("cell %d on %d beside %d differs", w, t, n);
        }
}

TIMES(a_refresh_equals_a_table_made_from_scratch, 3)
{
    struct rng r;
    struct world w;

    rng_init(&r, (uint64_t)_i, "refresh");
    world_init(&w, "type v100\ntype k80\ntype a100\nworkload a\nworkload b params=1e8\n");
    for (int i = 0; i < 120; i++) {
        for (int k = (int)rng_below(&r, 6); k > 0; k--)
            random_change(&r, &w.catalog);
        estimate_refresh(&w.est);
        struct estimator fresh;
        estimator_init(&fresh, &w.catalog, 1);
        estimate_refresh(&fresh);
        same_tables(&w.est, &fresh);
        estimator_release(&fresh);
    }
    ck_assert_int_gt(w.catalog.n_workloads, 32);    // the table had to grow
    world_release(&w);
}

/* ---- cells ---- */

static const char two[] = "type v100\nworkload w\nworkload x\nworkload y\n"
                          "speed w v100 10 sd=0.5\nspeed w v100 6 beside=x sd=0.25\n"
                          "speed w v100 8 beside=y\nwatts w v100 200\n"
                          "speed x v100 4\nspeed x v100 2 beside=w\nwatts x v100 100\n";

/* The speed that stands for a cell is less than its median by half its variance. */
static double standing(double median, double sd)
{
    return median * exp(-sd * sd / 2);
}

TEST(what_refine_left_is_used_and_the_prior_elsewhere)
{
    struct world w;
    struct prior p;
    struct roofline on;

    world_init(&w, two);
    const struct cell_estimate *c = estimate_cell(&w.est, 0, 0, -1);
    ck_assert_double_eq_tol((double)c->speed, standing(10, 0.5), 1e-5);
    ck_assert_double_eq_tol((double)c->low, 10 * exp(-0.5), 1e-5);
    ck_assert_double_eq_tol((double)c->sd, 0.5, 1e-6);
    ck_assert_double_eq_tol((double)estimate_cell(&w.est, 0, 0, 1)->speed, standing(6, 0.25), 1e-5);
    roofline(&w.catalog.workloads[2], &w.catalog.types[0], &on);
    prior_of(&on, NULL, w.catalog.types[0].mem_bytes, &p);
    c = estimate_cell(&w.est, 2, 0, -1);
    ck_assert_double_eq_tol((double)c->speed, standing(exp(p.ln_speed), p.alone_sd), 1e-4);
    ck_assert_double_eq_tol((double)c->sd, p.alone_sd, 1e-6);
    prior_of(&on, &on, w.catalog.types[0].mem_bytes, &p);
    ck_assert_double_eq_tol((double)estimate_cell(&w.est, 2, 0, 2)->sd,
                            hypot(p.alone_sd, p.beside_sd), 1e-6);
    world_release(&w);
}

TEST(slowdowns_multiply_in_whatever_order)
{
    static const int xy[] = { 1, 2 }, yx[] = { 2, 1 }, x[] = { 1 };
    struct world w;
    const double alone = standing(10, 0.5), beside_x = standing(6, 0.25);
    double low, low2;

    world_init(&w, two);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, NULL, 0, &low), alone, 1e-5);
    ck_assert_double_eq_tol(low, 10 * exp(-0.5), 1e-5);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, x, 1, &low), beside_x, 1e-5);
    ck_assert_double_eq_tol(low, 6 * exp(-0.25), 1e-5);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, xy, 2, &low), beside_x * 8 / alone, 1e-5);
    ck_assert_double_eq_tol(low, 6 * exp(-0.25) * 8 / alone, 1e-5);
    estimate_speed(&w.est, 0, 0, yx, 2, &low2);
    ck_assert_double_eq_tol(low, low2, 1e-12);
    world_add(&w, "speed w v100 12 beside=y\n");    // faster in company: believed for one only
    world_look(&w);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, xy, 2, &low), beside_x, 1e-5);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, yx, 2, &low2), beside_x, 1e-5);
    ck_assert_double_eq_tol(low, low2, 1e-12);
    world_release(&w);
}

TEST(gangs_are_measured_or_scaled)
{
    struct world w;
    const double alone = standing(10, 0.5);
    double low;
    struct measurement m = { .key = { .neighbour = -1, .n_gpus = 4 },
                             .fits = true,
                             .throughput = 35,
                             .watts = NAN,
                             .noise = 0.1 };

    world_init(&w, two);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 1, 0, &low), alone, 1e-5);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 0, &low),
                            alone * roofline_gang(4, 0), 1e-4);
    ck_assert_double_eq_tol(low, 10 * exp(-0.5) * roofline_gang(4, 0), 1e-4);
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    world_look(&w);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 0, &low), 35, 1e-9);
    ck_assert_double_eq_tol(low, 35 * exp(-0.1), 1e-9);
    m.throughput = 35 * exp(2);    // contradicts: the mean is one off either, and so is its sd
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 0, &low), 35 * exp(1), 1e-9);
    ck_assert_double_eq_tol(low, 35, 1e-9);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 1, NULL),
                            alone * roofline_gang(4, 1),
                            1e-4);    // spread was not measured
    world_release(&w);
}

TEST(watts_of_one_of_two_and_of_nobody)
{
    static const int w_[] = { 0 }, wx[] = { 0, 1 };
    struct world w;

    world_init(&w, two);
    const struct gpu_type *g = &w.catalog.types[0];
    ck_assert_double_eq(estimate_watts(&w.est, 0, NULL, NULL, 0), g->sleep_w);
    ck_assert_double_eq_tol(estimate_watts(&w.est, 0, w_, NULL, 1), 200, 1e-3);
    ck_assert_double_eq_tol(estimate_watts(&w.est, 0, wx, NULL, 2),
                            g->idle_w + (200 - g->idle_w) * standing(6, 0.25) / standing(10, 0.5) +
                                (100 - g->idle_w) * 0.5,
                            1e-3);
    world_release(&w);
}

/* ---- fitting ---- */

static const char large[] = "type v100 memory=16\n"
                            "workload small params=1e6 bytes_per_sample=1e6 batch=1\n"
                            "workload half params=6e8 bytes_per_sample=1e6 batch=1\n"
                            "workload huge params=3e9 bytes_per_sample=1e6 batch=1\n";

static const struct {
    const char *name, *more, *who, *beside;
    double low, high;
} fits[] = {
    { "small ones fit", "", "small", NULL, 0, 0.01 },
    { "huge ones do not", "", "huge", NULL, 0.99, 1 },
    { "two halves of a memory are a risk", "", "half", "half", 0.25, 1 },
    { "seen not to fit beats memory", "unfit small v100\n", "small", NULL, 1, 1 },
    { "a pair seen not to fit is no pair", "unfit small v100 beside=half\n", "half", "small", 1,
      1 },
    { "one that does not fit alone fits beside nobody", "", "small", "huge", 0.99, 1 },
    { "one that is built for newer ones does not run",
      "workload new params=1e6 bytes_per_sample=1e6 batch=1 needs_capability=8.0\n", "new", NULL, 1,
      1 },
    { "nor beside another",
      "workload new params=1e6 bytes_per_sample=1e6 batch=1 needs_capability=8.0\n", "small", "new",
      1, 1 },
    { "one that is built for these does",
      "workload old params=1e6 bytes_per_sample=1e6 batch=1 needs_capability=70\n", "old", NULL, 0,
      0.01 },
};

TEST(a_limit_takes_what_is_known_of_those_who_are_there)
{
    struct world w;
    const int both[] = { 0, 1 };

    world_init(&w, "type v100 cap=250 idle=40 sleep=10\nworkload x\nworkload y\n"
                   "speed x v100 10\nwatts x v100 200\nspeed y v100 10\nwatts y v100 120\n"
                   "pairs 0.5\n");
    const struct gpu_type *g = &w.catalog.types[0];
    struct limited law = limits_apply(g, 105, 200);
    struct limited got = estimate_limited(&w.est, 0, both, NULL, 1, 105);
    ck_assert_double_eq_tol(got.speed, law.speed, 1e-4);
    ck_assert_double_eq_tol(got.watts, law.watts, 0.01);
    ck_assert_double_eq_tol(got.low, pow(law.speed, 1 + LIMITS_LOSS_SD), 1e-4);

    /* Who loses twice as much; beside it, by dynamic watts of 80 and 40: 5/3. */
    struct stored_estimate est = *catalog_estimate(&w.catalog, 0, 0, -1);
    est.ln_loss = (float)log(2);
    est.loss_sd = 0.1F;
    est.loss_at = (float)log(law.speed);
    catalog_put_estimate(&w.catalog, 0, 0, -1, &est);
    estimate_refresh(&w.est);
    got = estimate_limited(&w.est, 0, both, NULL, 1, 105);
    ck_assert_double_eq_tol(got.speed, law.speed * law.speed, 1e-4);
    ck_assert_double_eq_tol(got.low, got.speed, 1e-4);    // where it was measured
    got = estimate_limited(&w.est, 0, both, NULL, 1, 0);
    ck_assert(got.speed == 1 && fabs(got.low - pow(law.speed, 0.1)) < 1e-4);
    law = limits_apply(g, 105, 40 + 80 + 40);
    got = estimate_limited(&w.est, 0, both, NULL, 2, 105);
    ck_assert_double_eq_tol(got.speed, pow(law.speed, 5.0 / 3), 1e-3);
    got = estimate_limited(&w.est, 0, both, NULL, 2, 0);
    ck_assert(got.speed == 1 && fabs(got.watts - 160) < 0.1);
    got = estimate_limited(&w.est, 0, both, NULL, 0, 105);
    ck_assert(got.speed == 1 && got.watts == 10);
    world_release(&w);
}

static const struct {
    const char *name;
    float sd[2];    // of the watts of x and y
    float speed_sd;
    double rate;    // of x; 0: it trains
    int n, may;
} limitable[] = {
    { "one whose watts are known may be limited", { 0.1F, 0.5F }, 0.3F, 0, 1, 1 },
    { "one whose are not may not", { 0.2F, 0.1F }, 0.3F, 0, 1, 0 },
    { "nor where anybody's are not", { 0.1F, 0.2F }, 0.3F, 0, 2, 0 },
    { "two that are known may", { 0.1F, 0.1F }, 0.3F, 0, 2, 1 },
    { "and so may nobody", { 0.5F, 0.5F }, 0.3F, 0, 0, 1 },
    { "a server whose speed is not known may not", { 0.1F, 0.5F }, 0.3F, 2, 1, 0 },
    { "one whose speed is known may", { 0.1F, 0.5F }, 0.05F, 2, 1, 1 },
};

EACH(only_who_is_known_may_be_limited, limitable)
{
    struct world w;
    const int both[] = { 0, 1 };
    const double rates[] = { limitable[_i].rate, 0 };

    world_init(&w, "type v100\nworkload x\nworkload y\n");
    ck_assert(!estimate_may_limit(&w.est, 0, both, NULL, 1));    // nobody has measured it
    for (int i = 0; i < 2; i++) {
        struct stored_estimate est = { .is_set = true,
                                       .ln_speed_sd = limitable[_i].speed_sd,
                                       .ln_watts = 5,
                                       .ln_watts_sd = limitable[_i].sd[i] };
        catalog_put_estimate(&w.catalog, i, 0, -1, &est);
    }
    estimate_refresh(&w.est);
    ck_assert_msg(estimate_may_limit(&w.est, 0, both, rates, limitable[_i].n) == limitable[_i].may,
                  "%s", limitable[_i].name);
    world_release(&w);
}

EACH(memory_decides_unless_somebody_has_looked, fits)
{
    struct world w;
    int both[2], n = 1;

    world_init(&w, large);
    world_add(&w, fits[_i].more);
    world_look(&w);
    both[0] = world_workload(&w, fits[_i].who);
    if (fits[_i].beside)
        both[n++] = world_workload(&w, fits[_i].beside);
    double unfit = estimate_unfit(&w.est, 0, both, n);
    ck_assert_msg(unfit >= fits[_i].low && unfit <= fits[_i].high, "%s: %g", fits[_i].name, unfit);
    world_release(&w);
}

TEST(what_has_run_fits_even_if_it_once_did_not)
{
    struct world w;
    int huge;

    world_init(&w, large);
    huge = world_workload(&w, "huge");
    world_add(&w, "unfit huge v100\n");
    struct measurement m = { .key = { .workload = huge, .neighbour = -1, .n_gpus = 1 },
                             .fits = true,
                             .throughput = 2,
                             .watts = NAN,
                             .noise = NAN };
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    world_look(&w);
    ck_assert_double_eq(estimate_unfit(&w.est, 0, &huge, 1), 0);
    world_release(&w);
}

/* ---- P1 in the roofline's place ---- */

/* Learned from the first eight of the lab, which nobody has asked 'refine' about. */
static struct p1 *teach(struct world *w)
{
    static const bool none_held[16] = { false };
    struct holdout v = { none_held, NULL };
    struct p1_options o = { .seed = 1, .n_nets = 1 };
    struct examples x;
    struct err e = { 0 };
    struct p1 *p;

    world_init(w, lab_text);
    lab_measure(w, 0, 8, 2);
    examples_take(&w->arena, &w->catalog, 1000, 1, &x);
    ck_assert_msg(p1_train(&x, &v, &o, &p, &e) == 0, "%s", e.text);
    return p;
}

TEST(p1_speaks_where_nothing_was_refined_and_the_roofline_again_without)
{
    struct world w;
    struct p1 *p = teach(&w);
    struct estimator plain;
    int n_changed = 0;

    world_add(&w, "speed a16 k80 7 sd=0.1\n");
    estimator_init(&plain, &w.catalog, 1);
    estimate_refresh(&plain);
    estimate_use(&w.est, p);
    estimate_refresh(&w.est);
    for (int i = 0; i < w.catalog.n_workloads; i++)
        for (int t = 0; t < w.catalog.n_types; t++)
            n_changed +=
                estimate_cell(&w.est, i, t, -1)->speed != estimate_cell(&plain, i, t, -1)->speed;
    ck_assert_int_eq(n_changed, w.catalog.n_workloads * w.catalog.n_types - 1);
    ck_assert_mem_eq(estimate_cell(&w.est, 0, 0, -1), estimate_cell(&plain, 0, 0, -1),
                     sizeof(struct cell_estimate));
    estimate_use(&w.est, NULL);
    p1_destroy(p);    // nobody asks it any more
    estimate_refresh(&w.est);
    same_tables(&w.est, &plain);
    estimator_release(&plain);
    world_release(&w);
}

TEST(cells_are_made_of_what_p1_believes)
{
    struct world w;
    struct p1 *p = teach(&w);
    struct prior all[12], one;
    double sd;

    estimate_use(&w.est, p);
    estimate_refresh(&w.est);
    for (int i = 0; i < 11; i++)
        for (int t = 0; t < 3; t++) {
            struct p1_alone alone = p1_alone(w.est.context, i, t);
            estimate_prior(&w.est, i, t, -1, 11, all);
            ck_assert_double_eq(all[0].ln_speed, (double)alone.ln_speed);
            ck_assert_double_eq(all[0].alone_sd, (double)alone.ln_speed_sd);
            ck_assert_double_eq(all[0].beside_sd, 0);
            ck_assert_double_eq(estimate_prior_watts(&w.est, i, t, &sd), (double)alone.ln_watts);
            ck_assert_double_eq(sd, (double)alone.ln_watts_sd);
            for (int n = -1; n < 11; n++) {
                const struct cell_estimate *c = estimate_cell(&w.est, i, t, n);
                const struct prior *b = &all[n + 1];
                double cross = n < 0 ? 0 : p1_cross(w.est.context, alone.regime);
                double spread = sqrt(b->alone_sd * b->alone_sd + b->beside_sd * b->beside_sd +
                                     2 * cross * b->alone_sd * b->beside_sd);
                estimate_prior(&w.est, i, t, n, n + 1, &one);
                ck_assert_double_eq_tol(one.ln_speed, b->ln_speed, 1e-5);
                ck_assert_double_eq(one.unfit, b->unfit);
                ck_assert_int_eq(b->beside_sd > 0, n >= 0);
                ck_assert_double_eq_tol((double)c->speed / standing(exp(b->ln_speed), spread), 1,
                                        1e-5);
                ck_assert_double_le((double)c->low, (double)c->speed);
                ck_assert_double_eq_tol((double)c->sd, spread, 1e-6);
            }
        }
    estimate_use(&w.est, NULL);
    p1_destroy(p);
    world_release(&w);
}

TEST(without_p1_the_prior_is_the_roofline)
{
    struct world w;
    struct prior p, want;
    double sd;

    world_init(&w, two);
    for (int n = -1; n < 3; n++) {
        estimate_prior(&w.est, 0, 0, n, n + 1, &p);
        prior_of(&w.est.on[0], n < 0 ? NULL : &w.est.on[n], w.catalog.types[0].mem_bytes, &want);
        ck_assert_double_eq(p.ln_speed, want.ln_speed);
        ck_assert_double_eq(p.beside_sd, want.beside_sd);
    }
    ck_assert_double_eq_tol(exp(estimate_prior_watts(&w.est, 0, 0, &sd)),
                            roofline_watts(&w.est.on[0], &w.catalog.types[0]), 1e-9);
    ck_assert_double_eq(sd, ROOFLINE_WATTS_SD);
    world_release(&w);
}

/* As the refresh above, with P1: up to rounding, for it answers many at once. */
TEST(a_refresh_with_p1_equals_a_table_made_from_scratch)
{
    struct world w;
    struct p1 *p = teach(&w);
    struct rng r;

    rng_init(&r, 1, "refresh");
    estimate_use(&w.est, p);
    for (int i = 0; i < 80; i++) {
        for (int k = (int)rng_below(&r, 6); k > 0; k--)
            random_change(&r, &w.catalog);
        estimate_refresh(&w.est);
    }
    struct estimator fresh;
    estimator_init(&fresh, &w.catalog, 1);
    estimate_use(&fresh, p);
    estimate_refresh(&fresh);
    ck_assert_int_gt(w.catalog.n_workloads, 32);
    for (int i = 0; i < w.catalog.n_workloads; i++)
        for (int t = 0; t < w.catalog.n_types; t++)
            for (int n = -1; n < w.catalog.n_workloads; n++) {
                const struct cell_estimate *a = estimate_cell(&w.est, i, t, n);
                const struct cell_estimate *b = estimate_cell(&fresh, i, t, n);
                if (fabs((double)(a->speed / b->speed) - 1) > 1e-4 || a->sd != b->sd ||
                    a->unfit != b->unfit)
                    ck_abort_msg("cell %d on %d beside %d differs", i, t, n);
            }
    estimator_release(&fresh);
    world_release(&w);
    p1_destroy(p);
}

/* ---- the stated errors, where the measurements are at hand ---- */

static const char *data_file(struct arena *a, const char *name)
{
    const char *data = getenv("GOGH_DATA"), *src = getenv("SRC");
    char *path = data ? arena_printf(a, "%s/%s", data, name)
                      : arena_printf(a, "%s/../shared/data/%s", src ? src : ".", name);
    FILE *f = fopen(path, "r");

    if (!f)
        return NULL;
    fclose(f);
    return path;
}

TEST(the_stated_bias_and_spread_hold_on_measured_data)
{
    struct world w;
    struct import_report report;
    struct err e = { 0 };
    double n[2] = { 0 }, sum[2] = { 0 }, sum2[2] = { 0 }, abs_pair = 0;

    world_init(&w, "");
    struct import_gavel in = { .path = data_file(&w.arena, "gavel/simulation_throughputs.json"),
                               .workloads = data_file(&w.arena, "workloads/gavel_workloads.csv") };
    if (!in.path || !in.workloads) {
        printf("skipped: no measured data (set GOGH_DATA)\n");
        world_release(&w);
        return;
    }
    ck_assert_msg(import_gavel(&w.catalog, &in, 0, NULL, &report, &e) == 0, "%s", e.text);
    for (int i = 0; i < w.catalog.n_cells; i++) {
        const struct cell *c = &w.catalog.cells[i];
        struct cell_key alone_key = c->key;
        struct roofline on, beside;
        bool is_pair = c->key.neighbour >= 0;
        if (!c->n_speed || c->key.n_gpus > 1)
            continue;
        roofline(&w.catalog.workloads[c->key.workload], &w.catalog.types[c->key.gpu_type], &on);
        double error = c->ln_speed + log(on.step_s);
        if (is_pair) {
            alone_key.neighbour = -1;
            const struct cell *alone = catalog_cell(&w.catalog, alone_key);
            roofline(&w.catalog.workloads[c->key.neighbour], &w.catalog.types[c->key.gpu_type],
                     &beside);
            double believed = roofline_slowdown(&on, &beside);
            error = c->ln_speed - alone->ln_speed - log(believed);
            abs_pair += fabs(exp(c->ln_speed - alone->ln_speed) - believed);
        }
        n[is_pair]++;
        sum[is_pair] += error;
        sum2[is_pair] += error * error;
    }
    for (int k = 0; k < 2; k++) {
        sum[k] /= n[k];
        sum2[k] = sqrt(sum2[k] / n[k] - sum[k] * sum[k]);
    }
    printf(
        "alone: %.0f cells, bias %.3f, sd %.3f; pairs: %.0f, bias %.3f, sd %.3f, mean error %.3f\n",
        n[0], sum[0], sum2[0], n[1], sum[1], sum2[1], abs_pair / n[1]);
    ck_assert_double_eq_tol(sum[0], -0.13, 0.05);
    ck_assert_double_eq_tol(sum2[0], 0.52, 0.05);
    ck_assert_double_eq_tol(abs_pair / n[1], 0.15, 0.03);
    ck_assert_double_eq_tol(sum2[1], 0.35, 0.05);
    world_release(&w);
}

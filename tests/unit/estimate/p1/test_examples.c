/* What can be learned from a catalog: which cells, as which numbers, and fair parts of too many. */
#include <stdlib.h>

#include "unit/estimate/p1/lab.h"

/* ---- cells ---- */

static const char small[] = "type v100\ntype k80\nworkload a family=A\nworkload b family=B\n"
                            "workload c family=A\nworkload d\nworkload e\n";

TEST(residuals_are_over_the_roofline_and_slowdowns_over_the_speed_alone)
{
    struct world w;
    struct examples x;

    world_init(&w, small);
    lab_record(&w, 0, 0, -1, 2, 120);
    lab_record(&w, 0, 0, 1, 1.5, 90);
    examples_take(&w.arena, &w.catalog, 100, 1, &x);
    ck_assert_int_eq(x.n_workloads, 5);
    ck_assert_int_eq(x.n_types, 2);
    ck_assert_int_eq(x.n_families, 4);    // A, B, and each of those without one
    ck_assert_int_eq(x.family[0], x.family[2]);
    ck_assert_int_ne(x.family[0], x.family[1]);
    ck_assert_int_ne(x.family[3], x.family[4]);
    ck_assert_int_eq(x.n_alone, 1);
    ck_assert_double_eq_tol((double)x.alone[0].value, 2 - examples_at(&x, 0, 0)->ln_roofline, 1e-6);
    ck_assert_double_eq_tol((double)x.alone[0].noise, 0.02, 1e-6);
    ck_assert_int_eq(x.alone[0].neighbour, -1);
    ck_assert_int_eq(x.n_pairs, 1);
    ck_assert_double_eq_tol((double)x.pairs[0].value, -0.5, 1e-6);
    ck_assert_double_eq_tol((double)x.pairs[0].noise, 0.05, 1e-6);    // never better than that
    ck_assert_int_eq(x.n_watts, 1);                                   // of one alone
    ck_assert_double_eq_tol((double)x.watts[0].value, log(120) - examples_at(&x, 0, 0)->ln_watts,
                            1e-6);
    ck_assert_int_eq(x.n_fits, 2);
    world_release(&w);
}

static const struct {
    const char *name, *more;
    double ln_speed;    // of a beside b
    int n;              // pairs that come of it
    double ln_r;
} pairs[] = {
    { "without a speed alone there is no slowdown", "", 1, 0, 0 },
    { "what refine believes of it alone will do", "speed a v100 10 sd=0.2\n", 2, 1, -0.302585 },
    { "nobody is faster for a neighbour", "speed a v100 10\n", 4, 1, 0 },
    { "one that stood still counts as -3", "speed a v100 10\n", -9, 1, -3 },
    { "belief on another type does not help", "speed a k80 10\n", 2, 0, 0 },
};

EACH(a_slowdown_needs_a_speed_alone, pairs)
{
    struct world w;
    struct examples x;

    world_init(&w, small);
    world_add(&w, pairs[_i].more);
    lab_record(&w, 0, 0, 1, pairs[_i].ln_speed, NAN);
    examples_take(&w.arena, &w.catalog, 100, 1, &x);
    ck_assert_msg(x.n_pairs == pairs[_i].n, "%s: %d pairs", pairs[_i].name, x.n_pairs);
    if (x.n_pairs)
        ck_assert_msg(fabs((double)x.pairs[0].value - pairs[_i].ln_r) < 1e-5, "%s: %g",
                      pairs[_i].name, (double)x.pairs[0].value);
    ck_assert_int_eq(x.n_fits, 1);    // it ran, so it fits
    world_release(&w);
}

TEST(the_doubt_about_the_speed_alone_is_part_of_the_noise)
{
    struct world w;
    struct examples x;

    world_init(&w, small);
    world_add(&w, "speed a v100 10 sd=0.2\n");
    lab_record(&w, 0, 0, 1, 2, NAN);
    examples_take(&w.arena, &w.catalog, 100, 1, &x);
    ck_assert_double_eq_tol((double)x.pairs[0].noise, hypot(0.2, 0.02), 1e-6);
    world_release(&w);
}

static const struct {
    const char *name;
    struct cell_key key;
} foreign[] = {
    { "gangs are left out", { .neighbour = -1, .n_gpus = 4 } },
    { "power limits are left out", { .neighbour = -1, .n_gpus = 1, .limit_w = 150 } },
};

EACH(only_one_gpu_at_its_default_limit_is_learned_from, foreign)
{
    struct world w;
    struct examples x;
    struct measurement m = {
        .key = foreign[_i].key, .fits = true, .throughput = 3, .watts = 100, .noise = NAN
    };

    world_init(&w, small);
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    examples_take(&w.arena, &w.catalog, 100, 1, &x);
    ck_assert_msg(x.n_alone + x.n_watts + x.n_fits + x.n_pairs == 0, "%s", foreign[_i].name);
    world_release(&w);
}

TEST(what_did_not_fit_is_remembered_until_it_ran)
{
    struct world w;
    struct examples x;

    world_init(&w, small);
    world_add(&w, "unfit a v100 beside=b\nunfit b v100\n");
    lab_record(&w, 1, 0, -1, 1, NAN);
    examples_take(&w.arena, &w.catalog, 100, 1, &x);
    ck_assert_int_eq(x.n_alone, 1);
    ck_assert_int_eq(x.n_fits, 2);
    for (int i = 0; i < x.n_fits; i++)
        ck_assert_int_eq(x.fits[i].is_unfit, x.fits[i].neighbour >= 0);
    world_release(&w);
}

/* ---- too many ---- */

/* Family A has 'n' workloads, each other family one; all pairs are measured on one type. */
static void crowd(struct world *w, int n_a, int n_others)
{
    char line[64];
    int n = n_a + n_others;

    world_init(w, "type v100\n");
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof line, "workload w%d family=%s%d\n", i, i < n_a ? "A" : "F",
                 i < n_a ? 0 : i);
        world_add(w, line);
    }
    for (int i = 0; i < n; i++) {
        lab_record(w, i, 0, -1, 1, NAN);
        for (int k = 0; k < n; k++)
            lab_record(w, i, 0, k, 1 - 0.001 * (i * n + k), NAN);
    }
}

static const struct {
    const char *name;
    int n_a, n_others, max;
} crowds[] = {
    { "as many as there is room for", 10, 2, 144 },   { "one less", 10, 2, 143 },
    { "a large family gives way", 10, 2, 50 },        { "hardly any", 10, 2, 9 },
    { "less room than pairs of families", 4, 8, 40 }, { "room for one", 4, 2, 1 },
};

/* Nobody keeps two more than another who had to give something up. */
EACH(thinning_fills_the_room_fairly, crowds)
{
    struct world w;
    struct examples x;
    int kept[16][16] = { { 0 } }, all[16][16] = { { 0 } };

    crowd(&w, crowds[_i].n_a, crowds[_i].n_others);
    int n = crowds[_i].n_a + crowds[_i].n_others, total = n * n;
    examples_take(&w.arena, &w.catalog, crowds[_i].max, 1, &x);
    ck_assert_msg(x.n_pairs <= crowds[_i].max, "%s: %d", crowds[_i].name, x.n_pairs);
    ck_assert_msg(x.n_pairs > 0 && x.n_alone > 0, "%s: nothing is left", crowds[_i].name);
    ck_assert_msg(x.n_pairs == crowds[_i].max || x.n_pairs == total, "%s: only %d of room for %d",
                  crowds[_i].name, x.n_pairs, crowds[_i].max);
    for (int i = 0; i < total; i++)
        all[x.family[i / n]][x.family[i % n]]++;
    for (int i = 0; i < x.n_pairs; i++)
        kept[x.family[x.pairs[i].workload]][x.family[x.pairs[i].neighbour]]++;
    int most = 0, least = 1 << 20;
    for (int i = 0; i < x.n_families * x.n_families; i++) {
        int a = i / x.n_families, b = i % x.n_families;
        most = kept[a][b] > most ? kept[a][b] : most;
        if (kept[a][b] < all[a][b] && kept[a][b] < least)
            least = kept[a][b];
    }
    ck_assert_msg(least >= most - 1, "%s: %d of one, %d of another", crowds[_i].name, least, most);
    for (int i = 1; i < x.n_pairs; i++)
        ck_assert_msg(x.pairs[i].workload >= x.pairs[i - 1].workload, "%s: out of order",
                      crowds[_i].name);
    world_release(&w);
}

TEST(the_seed_decides_which_are_kept)
{
    struct world w;
    struct examples x, again, other;

    crowd(&w, 10, 2);
    examples_take(&w.arena, &w.catalog, 40, 1, &x);
    examples_take(&w.arena, &w.catalog, 40, 1, &again);
    examples_take(&w.arena, &w.catalog, 40, 2, &other);
    ck_assert_int_eq(x.n_pairs, again.n_pairs);
    ck_assert_mem_eq(x.pairs, again.pairs, (size_t)x.n_pairs * sizeof *x.pairs);
    ck_assert_int_eq(x.n_pairs, other.n_pairs);
    ck_assert_mem_ne(x.pairs, other.pairs, (size_t)x.n_pairs * sizeof *x.pairs);
    world_release(&w);
}

/* ---- views ---- */

TEST(a_view_hides_a_workload_in_every_role)
{
    const bool held[] = { true, false, false }, held_type[] = { false, true };
    struct holdout v = { held, NULL }, by_type = { held + 1, held_type };

    ck_assert(!holdout_shows(&v, 0, 0, -1));
    ck_assert(!holdout_shows(&v, 1, 0, 0));
    ck_assert(holdout_shows(&v, 1, 0, 2));
    ck_assert(holdout_shows(&v, 1, 1, -1));
    ck_assert(holdout_shows(&by_type, 0, 0, 1));
    ck_assert(!holdout_shows(&by_type, 0, 1, 1));
}

TEST(an_empty_catalog_gives_empty_examples)
{
    struct world w;
    struct examples x;

    world_init(&w, "");
    examples_take(&w.arena, &w.catalog, 10, 1, &x);
    ck_assert_int_eq(x.n_workloads + x.n_alone + x.n_pairs + x.n_watts + x.n_fits, 0);
    world_release(&w);
}

/* What is known beforehand: everything but one family. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/model/model.h"
#include "sim/sim.h"
#include "study/scenario/pretraining.h"
#include "unit/suite.h"

static void add_workload(struct catalog *c, const char *name, const char *family)
{
    struct workload w;
    struct err e;
    int index;

    workload_init(&w, name);
    w.family = family;
    ck_assert_int_eq(catalog_add_workload(c, &w, &index, &e), 0);
}

static void record(struct catalog *c, int workload, int neighbour, double speed, double watts)
{
    const struct measurement m = {
        .key = { .workload = workload, .neighbour = neighbour, .n_gpus = 1 },
        .fits = speed > 0,
        .throughput = speed > 0 ? speed : (double)NAN,
        .watts = watts,
        .duration_s = NAN,
        .noise = 0.02,
    };
    struct err e;

    ck_assert_int_eq(catalog_record(c, &m, 0, &e), 0);
}

/* Two of family x, one of y, one of nobody's. */
static void fill(struct catalog *c)
{
    struct err e;
    int index;

    catalog_init(c);
    ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin("v100"), &index, &e), 0);
    add_workload(c, "x1", "x");
    add_workload(c, "y1", "y");
    add_workload(c, "x2", "x");
    add_workload(c, "alone", NULL);
    record(c, 0, -1, 10, 100);
    record(c, 1, -1, 20, NAN);
    record(c, 1, -1, 22, NAN);
    record(c, 1, 2, 12, NAN);
    record(c, 2, -1, 5, NAN);
    record(c, 3, -1, 7, 150);
    record(c, 3, 0, 3, NAN);
    record(c, 3, 1, 0, NAN);
}

static const struct cell *cell(const struct catalog *c, const char *workload, const char *neighbour)
{
    return catalog_cell(
        c, (struct cell_key){
               .workload = catalog_find_workload(c, workload),
               .neighbour = neighbour != NULL ? catalog_find_workload(c, neighbour) : -1,
               .n_gpus = 1,
           });
}

TEST(a_family_is_held_out_as_itself_and_as_a_neighbour)
{
    struct catalog all, rest;
    struct err e;

    fill(&all);
    catalog_init(&rest);
    ck_assert_int_eq(sim_adopt(&rest, &all, "x", &e), 0);
    ck_assert_int_eq(rest.n_workloads, 2);
    ck_assert_int_lt(catalog_find_workload(&rest, "x1"), 0);
    ck_assert_int_eq(rest.n_cells, 3);
    ck_assert_double_eq_tol(cell(&rest, "alone", NULL)->ln_speed, log(7), 1e-12);
    ck_assert_double_eq_tol(cell(&rest, "alone", NULL)->ln_watts, log(150), 1e-12);
    ck_assert_int_eq(cell(&rest, "alone", "y1")->n_unfit, 1);
    catalog_release(&rest);
    catalog_release(&all);
}

TEST(a_cell_keeps_its_weight)
{
    struct catalog all, rest;
    struct err e;

    fill(&all);
    catalog_init(&rest);
    ck_assert_int_eq(sim_adopt(&rest, &all, "x", &e), 0);
    ck_assert_double_eq_tol(cell(&rest, "y1", NULL)->ln_speed, cell(&all, "y1", NULL)->ln_speed,
                            1e-12);
    ck_assert_double_eq_tol(cell_variance(cell(&rest, "y1", NULL)),
                            cell_variance(cell(&all, "y1", NULL)), 1e-12);
    catalog_release(&rest);
    catalog_release(&all);
}

TEST(seeds_in_a_row_hold_out_one_family_after_the_other)
{
    struct catalog all;

    fill(&all);
    ck_assert_str_eq(pretraining_family(&all, 0), "x");
    ck_assert_str_eq(pretraining_family(&all, 1), "y");
    ck_assert_str_eq(pretraining_family(&all, 2), "x");
    catalog_release(&all);
}

TEST(the_pretrained_model_comes_without_measurements)
{
    struct pretraining k = { 0 };
    struct err e = { 0 };

    ck_assert_msg(model_pretrained(&k.model, &e) == 0, "%s", e.text);
    ck_assert_ptr_nonnull(k.model);
    ck_assert_ptr_null(k.catalog);
    pretraining_release(&k);
    ck_assert_ptr_null(k.model);
}

TEST(the_others_come_with_a_model_that_learned_from_them)
{
    struct catalog all;
    struct pretraining k;
    struct err e = { 0 };

    fill(&all);
    ck_assert_msg(pretraining_of_others(&k, &all, 1, &e) == 0, "%s", e.text);
    ck_assert_str_eq(k.family, "y");
    ck_assert_int_eq(k.catalog->n_workloads, 3);
    ck_assert_ptr_nonnull(k.model);
    ck_assert_int_eq(k.model->n_workloads, 3);
    pretraining_release(&k);
    catalog_release(&all);
}

/* stored.h - the catalog of each test, in a store of its own and inside a transaction. */
#ifndef TESTS_CATALOG_STORED_H
#define TESTS_CATALOG_STORED_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "catalog/catalog.h"
#include "store/store.h"

static struct store *s;
static struct catalog c;

static inline void set_up(void)
{
    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, NULL), 0);
    catalog_init(&c);
    ck_assert_int_eq(catalog_load(&c, s, NULL), 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
}

static inline void tear_down(void)
{
    catalog_release(&c);
    store_close(s);
}

static inline void check_same_cell(const struct cell *a, const struct cell *b)
{
    ck_assert_int_eq(a->n_speed, b->n_speed);
    ck_assert_int_eq(a->n_unfit, b->n_unfit);
    ck_assert_double_eq(a->ln_speed, b->ln_speed);
    ck_assert_double_eq(a->ln_watts, b->ln_watts);
    ck_assert(a->n_watts == b->n_watts && a->ln_pace == b->ln_pace);
    ck_assert_double_eq(a->ln_undone, b->ln_undone);
    ck_assert_mem_eq(&a->limits, &b->limits, sizeof a->limits);
    ck_assert_double_eq(a->speed_weight, b->speed_weight);
    ck_assert_double_eq(a->speed_scatter, b->speed_scatter);
    ck_assert(a->n_past == b->n_past && a->n_drifts == b->n_drifts);
    ck_assert(a->n_behind == b->n_behind && a->drift_s == b->drift_s);
    ck_assert(a->drift.up == b->drift.up && a->drift.down == b->drift.down);
}

/* What is in memory and what a new catalog reads from the store are the same. */
static inline void check_reload(void)
{
    struct catalog again;

    ck_assert_int_eq(store_commit(s, NULL), 0);
    catalog_init(&again);
    ck_assert_int_eq(catalog_load(&again, s, NULL), 0);
    ck_assert_int_eq(again.n_cells, c.n_cells);
    ck_assert_int_eq(again.n_workloads, c.n_workloads);
    ck_assert_int_eq(again.n_types, c.n_types);
    ck_assert_int_eq(again.n_campaigns, c.n_campaigns);
    for (int i = 0; i < c.n_campaigns; i++)
        ck_assert(strcmp(again.campaigns[i], c.campaigns[i]) == 0 &&
                  again.campaign_sharing[i] == c.campaign_sharing[i]);
    ck_assert_int_eq(again.n_measurements, c.n_measurements);
    for (int i = 0; i < c.n_cells; i++) {
        ck_assert_ptr_eq(catalog_cell(&again, c.cells[i].key), &again.cells[i]);
        check_same_cell(&c.cells[i], &again.cells[i]);
    }
    for (int t = 0; t < c.n_types; t++) {
        ck_assert_int_eq(again.types[t].sharing, c.types[t].sharing);
        ck_assert(isnan(c.types[t].cap_w) || again.types[t].cap_w == c.types[t].cap_w);
        ck_assert(again.type_drift[t].n_drifts == c.type_drift[t].n_drifts &&
                  again.type_drift[t].last_s == c.type_drift[t].last_s);
    }
    for (int w = 0; w < c.n_workloads; w++) {
        ck_assert(isnan(c.workloads[w].params) ||
                  again.workloads[w].params == c.workloads[w].params);
        ck_assert(again.workload_drift[w].n_drifts == c.workload_drift[w].n_drifts &&
                  again.workload_drift[w].n_cells == c.workload_drift[w].n_cells);
    }
    catalog_release(&again);
    ck_assert_int_eq(store_begin(s, NULL), 0);
}

#endif

/* store.c - Gavel's measurements into a store; a store of a million opened. */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "catalog/import/import.h"
#include "store/store.h"

/* ---- import ---- */

int bench_import(const char *scratch, struct bench_figures *out, struct err *e)
{
    struct arena a;
    struct store *s = NULL;
    struct catalog c;
    struct import_report report;

    arena_init(&a);
    catalog_init(&c);
    struct import_gavel in = { .path = bench_gavel_path(&a) };
    const char *db = arena_printf(&a, "%s/import-%ld.db", scratch, (long)getpid());
    double began_s = clock_stopwatch_s();
    int rc = store_open(db, STORE_CREATE, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = import_gavel(&c, &in, 0, NULL, &report, e);
    out->value = clock_stopwatch_s() - began_s;
    catalog_release(&c);
    store_close(s);
    arena_release(&a);
    return rc;
}

/* ---- open ---- */

#define OPEN_MEASUREMENTS 1000000
#define OPEN_WORKLOADS 200
#define OPEN_NODES 1250
#define OPEN_DB "open.db"

static int add_names(struct catalog *c, struct err *e)
{
    static const char *const types[] = { "k80", "p100", "v100", "t4", "a40", "a100", "l4", "h100" };
    int index, rc = 0;

    for (size_t t = 0; t < sizeof types / sizeof *types && rc == 0; t++)
        rc = catalog_add_type(c, gpu_type_builtin(types[t]), &index, e);
    for (int w = 0; w < OPEN_WORKLOADS && rc == 0; w++) {
        struct workload load;
        rc = workload_builtin(&c->arena, "resnet50", w + 1, &load, e);
        if (rc == 0)
            rc = catalog_add_workload(c, &load, &index, e);
    }
    return rc;
}

static int add_measurements(struct catalog *c, struct err *e)
{
    struct rng rng;
    int rc = 0;

    rng_init(&rng, 1, "bench-open");
    for (long i = 0; i < OPEN_MEASUREMENTS && rc == 0; i++) {
        struct measurement m = {
            .key = { .workload = (int)rng_below(&rng, OPEN_WORKLOADS),
                     .gpu_type = (int)rng_below(&rng, 8),
                     .neighbour = (int)rng_below(&rng, OPEN_WORKLOADS + 1) - 1,
                     .n_gpus = 1 },
            .fits = true,
            .throughput = exp(rng_normal(&rng)),
            .watts = 100 + 50 * rng_uniform(&rng),
            .time_s = (double)i,
            .duration_s = 300,
            .noise = 0.05,
        };
        rc = catalog_record(c, &m, 0, e);
    }
    return rc;
}

static int add_nodes(struct catalog *c, struct store *s, struct err *e)
{
    static const int types[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static struct event events[OPEN_NODES];
    static char names[OPEN_NODES][16];
    struct ledger l;
    int rc = ledger_open(&l, c, s, e);

    if (rc < 0)
        return rc;
    for (int n = 0; n < OPEN_NODES; n++) {
        snprintf(names[n], sizeof names[n], "n%04d", n);
        events[n] = (struct event){
            .kind = EVENT_NODE_ADDED, .node = names[n], .gpu_types = types, .n_gpus = 8
        };
    }
    rc = ledger_append(&l, events, OPEN_NODES, e);
    ledger_close(&l);
    return rc;
}

int bench_open_prepare(const char *scratch, struct bench_figures *out, struct err *e)
{
    struct arena a;
    struct store *s = NULL;
    struct catalog c;

    (void)out;
    arena_init(&a);
    catalog_init(&c);
    int rc = store_open(arena_printf(&a, "%s/%s", scratch, OPEN_DB), STORE_CREATE, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = store_begin(s, e);
    if (rc == 0)
        rc = add_names(&c, e);
    if (rc == 0)
        rc = add_measurements(&c, e);
    if (rc == 0)
        rc = store_commit(s, e);
    if (rc == 0)
        rc = add_nodes(&c, s, e);
    catalog_release(&c);
    store_close(s);
    arena_release(&a);
    return rc;
}

int bench_open(const char *scratch, struct bench_figures *out, struct err *e)
{
    struct arena a;
    struct store *s = NULL;
    struct catalog c;
    struct ledger l;
    struct snapshot snapshot;

    arena_init(&a);
    catalog_init(&c);
    double began_s = clock_stopwatch_s();
    int rc = store_open(arena_printf(&a, "%s/%s", scratch, OPEN_DB), STORE_READ, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = ledger_open(&l, &c, s, e);
    if (rc == 0) {
        snapshot_take(&a, &l.state, &c, 0, 2, NULL, 0, NULL, NULL, &snapshot);
        out->value = clock_stopwatch_s() - began_s;
        out->detail[0] = c.n_cells;
        out->detail[1] = snapshot.n_gpus;
        ledger_close(&l);
    }
    catalog_release(&c);
    store_close(s);
    arena_release(&a);
    return rc;
}

/* store.c - Gavel's measurements into a store; a store of a million opened. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "catalog/cluster/snapshot.h"
#include "catalog/import/import.h"
#include "daemon/service/recover.h"

/* ---- import ---- */

static const char *gavel_path(struct arena *a)
{
    return arena_printf(a, "%s/gavel/simulation_throughputs.json", bench_data_dir());
}

int bench_gavel_data(struct arena *a, const char *scratch, struct err *e)
{
    (void)scratch;
    if (access(gavel_path(a), R_OK) == 0)
        return 0;
    return err_set(e, ENOENT, "no measured data at %s (docs/formats/study.md#data)",
                   bench_data_dir());
}

int bench_import_gavel(struct arena *a, const char *db, struct store **s, struct catalog *c,
                       struct err *e)
{
    const struct import_gavel in = { .path = gavel_path(a) };
    struct import_report report;
    int rc = store_open(db, STORE_CREATE, s, e);

    catalog_init(c);
    if (rc == 0)
        rc = catalog_load(c, *s, e);
    if (rc == 0)
        rc = import_gavel(c, &in, 0, NULL, &report, e);
    return rc;
}

int bench_import(struct arena *a, const char *scratch, struct bench_figures *out, struct err *e)
{
    const char *db = arena_printf(a, "%s/import-%ld.db", scratch, (long)getpid());
    struct store *s = NULL;
    struct catalog c;
    double began_s = clock_stopwatch_s();
    int rc = bench_import_gavel(a, db, &s, &c, e);

    out->value = clock_stopwatch_s() - began_s;
    catalog_release(&c);
    store_close(s);
    return rc;
}

/* ---- open ---- */

#define OPEN_MEASUREMENTS 1000000
#define OPEN_WORKLOADS 200
#define OPEN_NODES 1250
#define OPEN_DB "open.db"

int bench_add_types(struct catalog *c, struct err *e)
{
    static const char *const types[] = { "k80", "p100", "v100", "t4", "a40", "a100", "l4", "h100" };
    int index, rc = 0;

    for (size_t t = 0; t < sizeof types / sizeof *types && rc == 0; t++)
        rc = catalog_add_type(c, gpu_type_builtin(types[t]), &index, e);
    return rc;
}

static int add_names(struct catalog *c, struct err *e)
{
    int index, rc = bench_add_types(c, e);

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

static int add_nodes(struct ledger *l, struct err *e)
{
    static const int types[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static struct event events[OPEN_NODES];
    static char names[OPEN_NODES][16];

    for (int n = 0; n < OPEN_NODES; n++) {
        snprintf(names[n], sizeof names[n], "n%04d", n);
        events[n] = (struct event){
            .kind = EVENT_NODE_ADDED, .node = names[n], .gpu_types = types, .n_gpus = 8
        };
    }
    return ledger_append(l, events, OPEN_NODES, e);
}

int bench_open_prepare(struct arena *a, const char *scratch, struct err *e)
{
    struct recovered r;
    int rc = recover_open(&r, arena_printf(a, "%s/%s", scratch, OPEN_DB), STORE_CREATE, e);

    if (rc < 0)
        return rc;
    rc = store_begin(r.store, e);
    if (rc == 0)
        rc = add_names(&r.catalog, e);
    if (rc == 0)
        rc = add_measurements(&r.catalog, e);
    if (rc == 0)
        rc = store_commit(r.store, e);
    if (rc == 0)
        rc = add_nodes(&r.ledger, e);
    recover_close(&r);
    return rc;
}

int bench_open(struct arena *a, const char *scratch, struct bench_figures *out, struct err *e)
{
    struct recovered r;
    struct snapshot snapshot;
    double began_s = clock_stopwatch_s();
    int rc = recover_open(&r, arena_printf(a, "%s/%s", scratch, OPEN_DB), STORE_READ, e);

    if (rc < 0)
        return rc;
    snapshot_take(a, &r.ledger.state, &r.catalog, 0, 2, (struct snapshot_marks){ 0 }, &snapshot);
    out->value = clock_stopwatch_s() - began_s;
    out->detail[0] = r.catalog.n_cells;
    out->detail[1] = snapshot.n_gpus;
    recover_close(&r);
    return 0;
}

/* cmd_predict.c - `gogh predict`: how fast and how costly a workload would be. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "cli/cmd.h"
#include "estimate/estimate.h"
#include "nn/gauss.h"
#include "refine/refine.h"
#include "store/store.h"

static const char help[] =
    "Throughput with its 90 % interval, watts, and the chance that it does not fit, for a\n"
    "workload on each GPU type, alone or beside another. What the store has measured is used;\n"
    "without a store, the built-in tables.\n"
    "\n"
    "  WORKLOAD     a workload of the store, or a built-in model (gogh catalog models);\n"
    "               also as --workload NAME\n"
    "  --batch N    batch size of a built-in model\n"
    "  --beside W   share the GPU with this workload\n"
    "  --gpu TYPE   only this GPU type\n"
    "  --db DB      the store\n"
    "  --json       the same as JSON\n"
    "\n"
    "Examples:\n"
    "  gogh predict bert-base --batch 32\n"
    "  gogh predict \"ResNet-18 (batch size 64)\" --beside A3C --gpu v100 --db lab.db\n";

struct options {
    const char *workload, *beside, *gpu, *db;
    double batch;
    bool is_json;
};

/* The index of 'name' in the catalog; a built-in model is put there first. */
static int find_workload(struct catalog *c, const char *name, double batch, struct err *e)
{
    struct workload w;
    double in_name;
    int index = isnan(batch) ? catalog_find_workload_alike(c, name) : -1;

    if (index >= 0)
        return index;
    workload_name_split(name, &in_name);
    if (!isnan(in_name) && !isnan(batch))
        return err_set(e, EINVAL, "'%s' has its batch in the name: leave --batch out", name);
    int rc = workload_builtin(&c->arena, name, batch, &w, e);
    if (rc == -ENOENT)
        return err_set(
            e, ENOENT, "no workload '%s'%s; 'gogh catalog models' lists the built-in ones", name,
            c->n_measurements ? " in the store, and no built-in model of that name" : "");
    if (rc == 0)
        rc = catalog_add_workload(c, &w, &index, e);
    return rc < 0 ? rc : index;
}

static int add_types(struct catalog *c, struct err *e)
{
    int n, index, rc = 0;
    const struct gpu_type *all = gpu_type_builtin_all(&n);

    for (int i = 0; i < n && rc == 0; i++)
        rc = catalog_add_type(c, &all[i], &index, e);
    return rc;
}

/* JSON has no NaN. */
static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *row(const struct estimator *est, const struct options *o, int w, int beside,
                   int type)
{
    const struct cell_estimate *cell = estimate_cell(est, w, type, beside);
    double speed = (double)cell->speed, half = 1.645 * (double)cell->sd;
    int both[2] = { w, beside };
    const char *name = est->catalog->types[type].name;
    int n = beside < 0 ? 1 : 2;
    double watts = estimate_watts(est, type, both, NULL, n),
           unfit = estimate_unfit(est, type, both, n);

    if (!o->is_json)
        printf("%-14s %12.4g %12.4g %12.4g %8.0f %9.2f\n", name, speed, speed * exp(-half),
               speed * exp(half), watts, unfit);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "gpu", name, "throughput",
                     number(speed), "sd", number((double)cell->sd), "low90",
                     number(speed * exp(-half)), "high90", number(speed * exp(half)), "watts",
                     number(watts), "unfit", number(unfit));
}

static void print_rows(const struct estimator *est, const struct options *o, int w, int beside,
                       int only)
{
    json_t *rows = json_array();
    const char *name = est->catalog->workloads[w].name;

    if (!o->is_json)
        printf("%s%s%s\n%-14s %12s %12s %12s %8s %9s\n", name, beside < 0 ? "" : " beside ",
               beside < 0 ? "" : est->catalog->workloads[beside].name, "gpu", "steps/s", "low 90 %",
               "high 90 %", "watts", "unfit");
    for (int t = 0; t < est->n_types; t++)
        if (only < 0 || t == only)
            json_array_append_new(rows, row(est, o, w, beside, t));
    json_t *out = json_pack("{s:s, s:s?, s:o}", "workload", name, "beside",
                            beside < 0 ? NULL : est->catalog->workloads[beside].name, "rows", rows);
    if (o->is_json) {
        json_dumpf(out, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
    }
    json_decref(out);
}

/* Everything the catalog knows, as the daemon would use it. */
static int predict(struct catalog *c, const struct options *o, struct err *e)
{
    struct estimator est;
    struct refiner refiner;
    int w = find_workload(c, o->workload, o->batch, e);
    int beside = o->beside && w >= 0 ? find_workload(c, o->beside, NAN, e) : -1;
    int only = o->gpu ? catalog_find_type_alike(c, o->gpu) : -1;

    if (w < 0 || (o->beside && beside < 0))
        return -e->code;
    if (o->gpu && only < 0 && gpu_type_builtin(o->gpu)) {
        if (catalog_add_type(c, gpu_type_builtin(o->gpu), &only, e) < 0)
            return -e->code;
    } else if (o->gpu && only < 0) {
        return err_set(e, ENOENT,
                       "GPU type '%s' is neither in the store nor built in; 'gogh catalog gpus' "
                       "lists those",
                       o->gpu);
    }
    estimator_init(&est, c, 1.0);
    refiner_init(&refiner, c, &est);
    estimate_meet(&est);
    int rc = refine_settle(&refiner, e);
    estimate_refresh(&est);
    if (rc >= 0)
        print_rows(&est, o, w, beside, only);
    refiner_release(&refiner);
    estimator_release(&est);
    return rc < 0 ? rc : 0;
}

static int predict_from(const struct options *o, struct err *e)
{
    struct catalog c;
    struct store *store = NULL;
    int rc = 0;

    catalog_init(&c);
    if (o->db)
        rc = store_open(o->db, STORE_READ, &store, e);
    if (rc == 0 && store)
        rc = catalog_load(&c, store, e);
    c.store = NULL;    // whatever is added for the question stays out of the store
    if (rc == 0 && (!store || c.n_types == 0))
        rc = add_types(&c, e);
    if (rc == 0)
        rc = predict(&c, o, e);
    catalog_release(&c);
    store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct options o = { .batch = NAN };
    const struct cmd_option options[] = {
        { .name = "workload", .kind = OPTION_TEXT, .out = &o.workload },
        { .name = "batch", .kind = OPTION_NUMBER, .out = &o.batch, .low = 1, .high = 1e7 },
        { .name = "beside", .kind = OPTION_TEXT, .out = &o.beside },
        { .name = "gpu", .kind = OPTION_TEXT, .out = &o.gpu },
        { .name = "db", .kind = OPTION_TEXT, .out = &o.db },
        { .name = "json", .kind = OPTION_FLAG, .out = &o.is_json },
    };
    struct err e = { 0 };
    const char *word;
    int status = cmd_parse(&cmd_predict, argc, argv, options, CMD_COUNT(options), &word, 1);

    if (status != CMD_GO_ON)
        return status;
    if (word && o.workload)
        return cmd_misuse(&cmd_predict, "two workloads, '%s' and '%s': --beside is for sharing",
                          o.workload, word);
    o.workload = word ? word : o.workload;
    if (!o.workload)
        return cmd_misuse(&cmd_predict, "which workload?");
    nn_init();
    if (predict_from(&o, &e) < 0)
        return cmd_fail(&e);
    return cmd_done();
}

const struct cmd cmd_predict = {
    .name = "predict",
    .synopsis = "predict WORKLOAD [--batch N] [--beside W] [--gpu TYPE] [--db DB] [--json]",
    .summary = "how fast and how costly a workload would be, with intervals",
    .help = help,
    .run = run,
};

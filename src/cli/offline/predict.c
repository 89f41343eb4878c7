/* predict.c - `gogh predict`: how fast and how costly a workload would be. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "cli/cmd.h"
#include "estimate/estimate.h"
#include "estimate/hierarchical/choose.h"
#include "estimate/model/model.h"
#include "nn/gp.h"
#include "store/store.h"

static const char help[] =
    "Throughput with its 90 % interval, watts, and the chance that it does not fit, for a\n"
    "workload on each GPU type, alone or beside another. What the store has measured is used;\n"
    "without a store, the built-in tables.\n"
    "\n"
    "  WORKLOAD     a workload of the store, or a built-in model (gogh catalog models);\n"
    "               also as --workload NAME\n"
    "  --batch N    batch size of a built-in model\n"
    "  --precision P\n"
    "               the model in fp32, tf32, fp16 (also bf16, half, mixed, amp), fp8 or int8\n"
    "  --beside W   share the GPU with this workload\n"
    "  --gpu TYPE   only this GPU type\n"
    "  --db DB      the store\n"
    "  --model M    what to believe of cells that were not measured: 'site', what the store has\n"
    "               learned (the default where it has); 'pretrained', what ships with the\n"
    "               program (the default elsewhere); a file of 'gogh train'; or 'none', one\n"
    "               that has learned nothing\n"
    "  --estimator E\n"
    "               how: 'gogh' (the default), by the hierarchical model, of slowdowns together\n"
    "               with the network as long as few pairs were measured; 'hierarchical', by the\n"
    "               model alone; 'network', speeds by the network; 'mean', by the mean of each\n"
    "               GPU type; 'roofline', by what the hardware allows\n"
    "  --choose active\n"
    "               also say which cell to measure next: the one that teaches most about this\n"
    "               workload, of all GPU types, alone and beside each workload of the store; of\n"
    "               those of --gpu and --beside where given\n"
    "  --json       the same as JSON\n"
    "\n"
    "Examples:\n"
    "  gogh predict bert-base --batch 32 --precision bf16\n"
    "  gogh predict \"ResNet-18 (batch size 64)\" --beside A3C --gpu v100 --db lab.db\n"
    "  gogh predict bert-base --estimator roofline\n"
    "  gogh predict bert-base --db lab.db --model site --choose active\n";

static struct options {
    const char *workload, *precision, *beside, *gpu, *db, *model, *estimator, *choose;
    enum estimator_kind kind;
    double batch;
    bool is_json;
} given = { .batch = NAN };

static const struct cmd_option options[] = {
    CMD_TEXT("workload", given.workload),
    CMD_NUMBER("batch", given.batch, 1, 1e7),
    CMD_TEXT("precision", given.precision),
    CMD_TEXT("beside", given.beside),
    CMD_TEXT("gpu", given.gpu),
    CMD_TEXT("db", given.db),
    CMD_TEXT("model", given.model),
    CMD_TEXT("estimator", given.estimator),
    CMD_TEXT("choose", given.choose),
    CMD_FLAG("json", given.is_json),
};

/* The index of 'name' in the catalog; a built-in model is put there first. */
static int find_workload(struct catalog *c, const char *name, double batch, struct err *e)
{
    struct workload w;
    double in_name;

    workload_name_split(name, &in_name);
    if (!isnan(in_name) && !isnan(batch))
        return err_set(e, EINVAL, "'%s' has its batch in the name: leave --batch out", name);
    int index =
        catalog_find_workload_alike(c, isnan(batch) ? name : workload_name(&c->arena, name, batch));
    if (index >= 0)
        return index;
    int rc = workload_builtin(&c->arena, name, batch, &w, e);
    if (rc == 0)    // perhaps the store spells it otherwise
        index = catalog_find_workload_alike(c, w.name);
    if (index >= 0)
        return index;
    if (rc == -ENOENT)
        return err_set(
            e, ENOENT, "no workload '%s'%s; 'gogh catalog models' lists the built-in ones", name,
            c->n_measurements ? " in the store, and no built-in model of that name" : "");
    if (rc == 0)
        rc = catalog_add_workload(c, &w, &index, e);
    return rc < 0 ? rc : index;
}

/* The same in the precision that was asked for, which the catalog may know by another name. */
static int find_precision(struct catalog *c, int w, const char *asked, struct err *e)
{
    enum precision p = PRECISION_UNKNOWN;
    int index = w, rc = asked ? precision_read(slice_of(asked), &p, e) : 0;
    struct workload other = c->workloads[w];

    if (rc < 0)
        return rc;
    workload_to_precision(&c->arena, &other, p);
    if (other.name != c->workloads[w].name)
        rc = catalog_add_workload(c, &other, &index, e);
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

static json_t *row(const struct estimator *est, const struct options *o, int w, int beside,
                   int type)
{
    struct cell_estimate cell = estimate_cell(est, w, type, beside);
    double speed = (double)cell.speed, half = 1.645 * (double)cell.sd;
    int both[2] = { w, beside };
    const char *name = est->catalog->types[type].name;
    int n = beside < 0 ? 1 : 2;
    double watts = estimate_watts(est, type, both, NULL, n),
           unfit = estimate_unfit(est, type, both, n);

    if (!o->is_json)
        printf("%-14s %12.4g %12.4g %12.4g %8.0f %9.2f\n", name, speed, speed * exp(-half),
               speed * exp(half), watts, unfit);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "gpu", name, "throughput",
                     json_number_or_null(speed), "sd", json_number_or_null((double)cell.sd),
                     "low90", json_number_or_null(speed * exp(-half)), "high90",
                     json_number_or_null(speed * exp(half)), "watts", json_number_or_null(watts),
                     "unfit", json_number_or_null(unfit));
}

/* ---- what to measure next ---- */

/* Which cells: indices in the catalog; beside and only may be -1. */
struct predict_query {
    int w, beside, only;
};

/* The cell to measure next. */
struct next_cell {
    int type;         // -1: none is left
    int neighbour;    // -1: alone
    double gain;
};

/* Is the cell worth a try: not measured, and likely to fit? */
static bool is_open(const struct estimator *est, int w, int type, int neighbour)
{
    struct cell_key key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 };
    const struct cell *seen = catalog_cell(est->catalog, key);
    int both[2] = { w, neighbour };

    return !(seen && (seen->n_speed || seen->n_unfit)) &&
           estimate_unfit(est, type, both, neighbour < 0 ? 1 : 2) < 0.5;
}

static struct reading cell_of(int w, int type, int neighbour)
{
    return (struct reading){ .of = neighbour < 0 ? READ_ALONE : READ_PACKED,
                             .type = type,
                             .job = w,
                             .neighbour = neighbour,
                             .noise = (float)CATALOG_NOISE };
}

/* What is to be known: the workload alone on every type, and beside others, evenly. */
enum { TARGETS_BESIDE = 64, CANDIDATES_BESIDE = 128 };

static int find_targets(const struct estimator *est, int w, struct reading *out)
{
    int n = 0, all = est->n_types * est->n_workloads;
    int n_beside = all < TARGETS_BESIDE ? all : TARGETS_BESIDE;

    for (int g = 0; g < est->n_types; g++)
        out[n++] = cell_of(w, g, -1);
    for (int i = 0; i < n_beside; i++) {
        int at = (int)((long)i * all / n_beside);
        out[n++] = cell_of(w, at % est->n_types, at / est->n_types);
    }
    return n;
}

/* Of the cells that could be measured, the one that teaches most; of many neighbours some, evenly.
 */
static void choose(struct arena *a, const struct estimator *est, const struct predict_query *q,
                   struct next_cell *out)
{
    int from = q->beside < 0 ? -1 : q->beside, to = q->beside < 0 ? est->n_workloads : from + 1;
    size_t room = (size_t)est->n_types * (size_t)(to - from);
    struct reading *open = ARENA_ARRAY(a, struct reading, room);
    struct reading *targets = ARENA_ARRAY(a, struct reading, (size_t)est->n_types + TARGETS_BESIDE);
    int n_targets = find_targets(est, q->w, targets), n = 0;
    int step = q->beside < 0 ? 1 + est->n_workloads / CANDIDATES_BESIDE : 1;

    for (int g = 0; g < est->n_types; g++)
        for (int i = from; i < to && (q->only < 0 || g == q->only); i++)
            if ((i < 0 || i % step == 0) && is_open(est, q->w, g, i))
                open[n++] = cell_of(q->w, g, i);
    *out = (struct next_cell){ -1, -1, 0 };
    int best = posterior_choose(est->beliefs->posterior[LEARN_SPEEDS], open, n, targets, n_targets,
                                &out->gain);
    if (best >= 0) {
        out->type = open[best].type;
        out->neighbour = open[best].neighbour;
    }
}

static const char *neighbour_name(const struct estimator *est, const struct next_cell *c)
{
    return c->neighbour < 0 ? NULL : est->catalog->workloads[c->neighbour].name;
}

static json_t *next_json(const struct estimator *est, const struct next_cell *c)
{
    if (c->type < 0)
        return json_null();
    return json_pack("{s:s, s:s?, s:f}", "gpu", est->catalog->types[c->type].name, "neighbour",
                     neighbour_name(est, c), "gain", c->gain);
}

static void print_next(const struct estimator *est, const struct next_cell *c)
{
    const char *neighbour = neighbour_name(est, c);

    if (c->type < 0)
        printf("measure next: nothing, everything that may fit was measured\n");
    else
        printf("measure next: on %s %s%s; uncertainty falls by %.4f\n",
               est->catalog->types[c->type].name, neighbour ? "beside " : "alone",
               neighbour ? neighbour : "", c->gain);
}

/* ---- output ---- */

/* 'next' may be NULL: nobody asked. */
static void print_rows(const struct estimator *est, const struct options *o,
                       const struct predict_query *q, const struct next_cell *next)
{
    int w = q->w, beside = q->beside;
    json_t *rows = json_array();
    const char *name = est->catalog->workloads[w].name;

    if (!o->is_json)
        printf("%s%s%s\n%-14s %12s %12s %12s %8s %9s\n", name, beside < 0 ? "" : " beside ",
               beside < 0 ? "" : est->catalog->workloads[beside].name, "gpu", "steps/s", "low 90 %",
               "high 90 %", "watts", "unfit");
    for (int t = 0; t < est->n_types; t++)
        if (q->only < 0 || t == q->only)
            json_array_append_new(rows, row(est, o, w, beside, t));
    json_t *out = json_pack("{s:s, s:s?, s:o}", "workload", name, "beside",
                            beside < 0 ? NULL : est->catalog->workloads[beside].name, "rows", rows);
    if (next && o->is_json)
        json_object_set_new(out, "choose", next_json(est, next));
    else if (next)
        print_next(est, next);
    if (o->is_json)
        json_print(out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    else
        json_decref(out);
}

/* Everybody who is asked about; what is built in is put into the catalog first. */
static int find_query(struct catalog *c, const struct options *o, struct predict_query *out,
                      struct err *e)
{
    int w = find_workload(c, o->workload, o->batch, e);
    if (w >= 0)
        w = find_precision(c, w, o->precision, e);
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
    *out = (struct predict_query){ w, beside, only };
    return 0;
}

/* Everything the catalog knows, as the daemon would use it. */
static int predict(struct arena *a, struct catalog *c, const struct model *m,
                   const struct options *o, struct err *e)
{
    struct estimator est;
    struct predict_query q = { 0 };
    struct next_cell next;
    int rc = find_query(c, o, &q, e);

    if (rc < 0)
        return rc;
    estimator_init(&est, c, 1.0);
    estimate_use(&est, m, o->kind);
    estimate_refresh(&est);
    if (o->choose)
        choose(a, &est, &q, &next);
    print_rows(&est, o, &q, o->choose ? &next : NULL);
    estimator_release(&est);
    return 0;
}

static int check(const struct cmd_call *call)
{
    const char *word = call->words[0];
    struct options *o = &given;

    if (word && o->workload)
        return cmd_misuse(call->cmd, "two workloads, '%s' and '%s': --beside is for sharing",
                          o->workload, word);
    o->workload = word ? word : o->workload;
    if (!o->workload)
        return cmd_misuse(call->cmd, "which workload?");
    if (o->model && o->model[0] == '\0')
        return cmd_misuse(call->cmd, "--model wants site, pretrained, none or a file");
    struct err e;
    if (estimator_by_name(o->estimator, &o->kind, &e) < 0)
        return cmd_misuse(call->cmd, "--estimator: %s", e.text);
    if (o->choose && o->kind == ESTIMATOR_ROOFLINE)
        return cmd_misuse(call->cmd, "--choose active: the roofline learns nothing from others");
    if (o->choose && strcmp(o->choose, "active") != 0)
        return cmd_misuse(call->cmd, "--choose wants active, not '%s'", o->choose);
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    const struct options *o = &given;
    struct catalog c;
    struct store *store = NULL;
    struct model *m = NULL;
    int rc = 0;

    nn_init();
    catalog_init(&c);
    if (o->db)
        rc = store_open(o->db, STORE_READ, &store, e);
    if (rc == 0 && store)
        rc = catalog_load(&c, store, e);
    c.store = NULL;    // whatever is added for the question stays out of the store
    if (rc == 0 && (!store || c.n_types == 0))
        rc = add_types(&c, e);
    if (rc == 0)
        rc = model_open(o->model, store, &m, e);
    if (rc == 0)
        rc = predict(call->arena, &c, m, o, e);
    model_destroy(m);
    catalog_release(&c);
    store_close(store);
    return rc;
}

const struct cmd cmd_predict = {
    .name = "predict",
    .synopsis = "predict WORKLOAD [--batch N] [--beside W] [--gpu TYPE] [--db DB] [--model M] "
                "[--estimator E] [--choose active] [--json]",
    .summary = "how fast and how costly a workload would be, with intervals",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 1,
    .check = check,
    .run = run,
};

/* pytorch_gpu_benchmark.c - milliseconds per batch of torchvision's networks, on made-up pictures.
 *
 * Columns: source_dir, gpu, num_gpus, precision (half, float, double), mode (train, inference),
 * model, median_ms. A batch has 12 pictures for each GPU; a step is one such batch, so a gang of n
 * does n * 1000 / median_ms a second. What the files call float is FP32 in memory and multiplied by
 * tensor cores where there are any (an A100 does 39 TFLOP/s of VGG-16, twice its FP32 rate). A GPU
 * type that was measured again in another directory, with other software, is left out there, as is
 * double precision.
 */
#include "catalog/import/import.h"

#include <string.h>

#include "catalog/import/columns.h"
#include "catalog/import/draft.h"
#include "catalog/import/models.h"

enum { DIR, GPU, N_GPUS, PRECISION, MODE, MODEL, TIME, N_RULES };

enum { BATCH = 12 };    // the repository's default

static const struct column_rule rules[N_RULES] = {
    [DIR] = { .name = "source_dir" },
    [GPU] = { .name = "gpu" },
    [N_GPUS] = { .name = "num_gpus", .low = 1, .high = 64, .is_whole = true },
    [PRECISION] = { .name = "precision" },
    [MODE] = { .name = "mode" },
    [MODEL] = { .name = "model" },
    [TIME] = { .name = "median_ms", .low = 1e-3, .high = 1e7 },
};

/* Which directory a type's figures are taken from: the first that has any. */
struct benchmark {
    const char *dir_of[CATALOG_TYPES_MAX];    // by the draft's types
};

/* The built-in model of a torchvision network; NULL: there is none. */
static const char *find_model(struct draft *d, const char *network, bool is_inference)
{
    static const struct model_name names[] = {
        { "resnet18", "resnet18-imagenet" },
        { "resnet50", "ResNet-50" },
    };
    const char *model = model_named(names, 2, network);
    struct workload w;

    if (is_inference)
        model = arena_printf(&d->arena, "%s-infer",
                             model != NULL && strcmp(network, "resnet18") == 0 ? model : network);
    else if (model == NULL)
        model = network;
    return workload_builtin(&d->arena, model, BATCH, &w, NULL) < 0 ? NULL : w.family;
}

static bool is_first_place(struct benchmark *b, int type, const char *dir)
{
    if (type >= CATALOG_TYPES_MAX)
        return false;
    if (b->dir_of[type] == NULL)
        b->dir_of[type] = dir;
    return strcmp(b->dir_of[type], dir) == 0;
}

static int take_row(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    bool is_inference = strcmp(r->text[MODE], "inference") == 0;
    bool is_half = strcmp(r->text[PRECISION], "half") == 0;
    const struct gpu_type *type = gpu_type_builtin(r->text[GPU]);
    struct model_use use = { .model = find_model(d, r->text[MODEL], is_inference),
                             .batch = BATCH,
                             .is_synthetic = true,
                             .precision = is_half ? PRECISION_FP16 : PRECISION_TF32 };

    (void)e;
    if (use.model == NULL || type == NULL || strcmp(r->text[PRECISION], "double") == 0 ||
        !is_first_place(self, draft_type(d, type->name), r->text[DIR])) {
        d->report.n_dropped++;
        return 0;
    }
    use.family = model_family(d, r->text[MODEL], is_inference);
    struct measurement *m = draft_add(d, model_workload(d, &use), draft_type(d, type->name), -1);
    m->key.n_gpus = (int)r->number[N_GPUS];
    m->throughput = r->number[N_GPUS] * 1e3 / r->number[TIME];
    return 0;
}

int pytorch_gpu_benchmark_read(struct draft *d, const struct draft_text *in, struct progress *p,
                               struct err *e)
{
    struct benchmark b = { { 0 } };

    d->report.why_dropped = "double precision, and types measured again with other software";
    return columns_read(d, in, rules, N_RULES, take_row, &b, p, e);
}

int import_pytorch_gpu_benchmark_read(struct draft *d, const char *path, struct progress *p,
                                      struct err *e)
{
    int rc = draft_read_file(d, "pytorch_gpu_benchmark", path, pytorch_gpu_benchmark_read, p, e);

    return rc < 0 ? rc : draft_check(d, e);
}

/* neusight.c - milliseconds per iteration of transformers on many GPU types (NeuSight, ASPLOS'25).
 *
 * Columns: gpu, model, mode (train, inf), seq_len, batch_size, variant, e2e_latency_ms. A step is
 * an iteration: 1000 / e2e_latency_ms a second. Multiplications are FP32: an A100 does 13.5
 * TFLOP/s of BERT, two thirds of its FP32 rate. Left out: variants (fused kernels, several GPUs),
 * models that are not built in (mixtures of experts), GPU types that are not.
 */
#include "catalog/import/import.h"

#include <string.h>

#include "catalog/import/columns.h"
#include "catalog/import/draft.h"
#include "catalog/import/models.h"

enum { GPU, MODEL, MODE, SEQ_LEN, BATCH, VARIANT, LATENCY, N_RULES };

static const struct column_rule rules[N_RULES] = {
    [GPU] = { .name = "gpu" },
    [MODEL] = { .name = "model" },
    [MODE] = { .name = "mode" },
    [SEQ_LEN] = { .name = "seq_len", .low = 1, .high = 1e6, .is_whole = true },
    [BATCH] = { .name = "batch_size", .low = 1, .high = 1e6, .is_whole = true },
    [VARIANT] = { .name = "variant", .may_be_empty = true },
    [LATENCY] = { .name = "e2e_latency_ms", .low = 1e-3, .high = 1e7 },
};

/* The built-in rows are of these lengths of text only. */
static const struct {
    const char *said;
    double seq_len;
    const char *training, *inference;
} models[] = {
    { "bert_large", 512, "bert-large-512", "bert-large-512-infer" },
    { "gpt2_large", 1024, "gpt2-large", "gpt2-large-prefill" },
    { "gpt3_27", 2048, "gpt3-2.7b", "gpt3-2.7b-prefill" },
    { "gpt3_xl", 2048, "gpt3-xl", "gpt3-xl-prefill" },
    { "opt_13", 2048, "opt-1.3b", "opt-1.3b-prefill" },
};

static const char *find_model(const struct columns_row *r)
{
    bool is_training = strcmp(r->text[MODE], "train") == 0;

    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].said, r->text[MODEL]) == 0 && models[i].seq_len == r->number[SEQ_LEN])
            return is_training ? models[i].training : models[i].inference;
    return NULL;
}

static int take_row(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    const struct gpu_type *type = gpu_type_builtin(r->text[GPU]);
    struct model_use use = { .model = find_model(r),
                             .batch = r->number[BATCH],
                             .is_synthetic = true,
                             .precision = PRECISION_FP32 };

    (void)self;
    (void)e;
    if (use.model == NULL || type == NULL || r->text[VARIANT][0] != '\0') {
        d->report.n_dropped++;
        return 0;
    }
    use.family = use.model;
    draft_add(d, model_workload(d, &use), draft_type(d, type->name), -1)->throughput =
        1e3 / r->number[LATENCY];
    return 0;
}

int neusight_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    d->report.why_dropped = "variants, models and GPU types that are not built in";
    return columns_read(d, in, rules, N_RULES, take_row, NULL, p, e);
}

int import_neusight_read(struct draft *d, const char *path, struct progress *p, struct err *e)
{
    int rc = draft_read_file(d, "neusight", path, neusight_read, p, e);

    return rc < 0 ? rc : draft_check(d, e);
}

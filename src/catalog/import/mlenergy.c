/* mlenergy.c - tokens per second and watts of text generators (ML.ENERGY benchmark, version 3).
 *
 * Columns: task, model_id, gpu_model, num_gpus, max_num_seqs, avg_batch_size, avg_output_len,
 * activated_params_billions, total_params_billions, weight_precision, avg_power_watts,
 * output_throughput_tokens_per_sec. A step is one token for every sequence of the batch: tokens/s
 * over avg_batch_size. The workload is "MODEL/TASK (batch size MAX)", since a task's length of text
 * is what its cache is read for. Left out: several GPUs, pictures and films, models whose cache is
 * not known.
 */
#include "catalog/import/import.h"

#include <math.h>
#include <string.h>

#include "catalog/import/columns.h"
#include "catalog/import/draft.h"

enum {
    TASK,
    MODEL,
    GPU,
    N_GPUS,
    BATCH,
    MEAN_BATCH,
    LENGTH,
    ACTIVE,
    PARAMS,
    PRECISION,
    WATTS,
    TOKENS_S,
    N_RULES
};

static const struct column_rule rules[N_RULES] = {
    [TASK] = { .name = "task" },
    [MODEL] = { .name = "model_id" },
    [GPU] = { .name = "gpu_model" },
    [N_GPUS] = { .name = "num_gpus", .low = 1, .high = 1024, .is_whole = true },
    [BATCH] = { .name = "max_num_seqs",
                .low = 1,
                .high = 1e6,
                .may_be_empty = true,
                .is_whole = true },
    [MEAN_BATCH] = { .name = "avg_batch_size", .low = 1e-3, .high = 1e6, .may_be_empty = true },
    [LENGTH] = { .name = "avg_output_len", .low = 1, .high = 1e7, .may_be_empty = true },
    [ACTIVE] = { .name = "activated_params_billions", .low = 1e-3, .high = 1e5 },
    [PARAMS] = { .name = "total_params_billions", .low = 1e-3, .high = 1e5 },
    [PRECISION] = { .name = "weight_precision" },
    [WATTS] = { .name = "avg_power_watts", .low = 1, .high = 1e6, .may_be_empty = true },
    [TOKENS_S] = { .name = "output_throughput_tokens_per_sec",
                   .low = 1e-3,
                   .high = 1e9,
                   .may_be_empty = true },
};

/* Layers, those of them that keep a cache of the whole text, and its width (heads times their
 * size), as in the models' published configurations. The first that the name begins with.
 */
static const struct generator {
    const char *begins, *family;
    double n_layers, n_caching, width;
} generators[] = {
    { "Qwen/Qwen3-8B", "qwen3", 36, 36, 1024 },
    { "Qwen/Qwen3-14B", "qwen3", 40, 40, 1024 },
    { "Qwen/Qwen3-32B", "qwen3", 64, 64, 1024 },
    { "Qwen/Qwen3-30B-A3B", "qwen3-moe", 48, 48, 512 },
    { "Qwen/Qwen3-Coder-30B-A3B", "qwen3-moe", 48, 48, 512 },
    { "meta-llama/Llama-3.1-8B", "llama-3", 32, 32, 1024 },
    { "google/gemma-3-12b", "gemma-3", 48, 8, 2048 },    // five of six layers see 1,024 tokens
    { "google/gemma-3-27b", "gemma-3", 62, 10, 2048 },
    { "nvidia/NVIDIA-Nemotron-Nano-9B", "nemotron-nano", 56, 4, 1024 },    // the others: Mamba
    { "nvidia/NVIDIA-Nemotron-Nano-12B", "nemotron-nano", 62, 6, 1024 },
    { "openai/gpt-oss-20b", "gpt-oss", 24, 12, 512 },    // every other layer sees 128 tokens
    { "openai/gpt-oss-120b", "gpt-oss", 36, 18, 512 },
};

/* What is written of before the first token: a question, some code. */
#define PROMPT_TOKENS 500

static const struct generator *find_generator(const struct columns_row *r)
{
    static const char *const tasks[] = { "gpqa", "lm-arena-chat", "sourcegraph-fim" };

    if (text_find(tasks, 3, r->text[TASK]) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof generators / sizeof *generators; i++)
        if (strncmp(generators[i].begins, r->text[MODEL], strlen(generators[i].begins)) == 0)
            return &generators[i];
    return NULL;
}

/* A step reads the cache of half a text; 12 launches a layer, replayed from a recording. */
static void describe(const struct generator *g, const struct columns_row *r, struct workload *w)
{
    double tokens = PROMPT_TOKENS + r->number[LENGTH] / 2;

    w->is_inference = true;
    w->family = g->family;
    w->task = "text-generation";
    w->dataset = r->text[TASK];
    w->params = r->number[PARAMS] * 1e9;
    w->flop_per_sample = 2e9 * r->number[ACTIVE];
    w->bytes_per_sample = 4 * g->n_caching * g->width * tokens;    // keys and values in FP16
    w->kernels_per_step = 12 * g->n_layers;
    w->cpu_ms_per_sample = 0.02;
    w->cpu_ms_per_step = 2;
    w->conv = w->rnn = w->sparse = 0;
    w->gemm = 1;
    w->precision = strcmp(r->text[PRECISION], "bfloat16") == 0 ? PRECISION_FP16 : PRECISION_FP8;
}

static int take_row(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    const struct generator *g = find_generator(r);
    const struct gpu_type *type = gpu_type_builtin(r->text[GPU]);

    (void)self;
    (void)e;
    if (g == NULL || type == NULL || r->number[N_GPUS] != 1 || isnan(r->number[BATCH]) ||
        isnan(r->number[MEAN_BATCH]) || isnan(r->number[LENGTH]) || isnan(r->number[TOKENS_S])) {
        d->report.n_dropped++;
        return 0;
    }
    const char *model = strchr(r->text[MODEL], '/') + 1;
    const char *name = workload_name(
        &d->arena, arena_printf(&d->arena, "%s/%s", model, r->text[TASK]), r->number[BATCH]);
    int n_before = d->n_workloads, i = draft_workload(d, name);
    if (i == n_before)
        describe(g, r, &d->workloads[i]);
    struct measurement *m = draft_add(d, i, draft_type(d, type->name), -1);
    m->throughput = r->number[TOKENS_S] / r->number[MEAN_BATCH];
    m->watts = r->number[WATTS] <= IMPORT_WATTS_MAX ? r->number[WATTS] : (double)NAN;
    return 0;
}

int mlenergy_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    d->report.why_dropped = "several GPUs, pictures, and models whose cache is not known";
    return columns_read(d, in, rules, N_RULES, take_row, NULL, p, e);
}

int import_mlenergy_read(struct draft *d, const char *path, struct progress *p, struct err *e)
{
    int rc = draft_read_file(d, "mlenergy", path, mlenergy_read, p, e);

    return rc < 0 ? rc : draft_check(d, e);
}

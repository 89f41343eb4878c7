/* parvagpu.c - inferences per second on MIG slices, alone and beside themselves (ParvaGPU, SC'24).
 *
 * Columns: model, Mig instance (sevenths of an A100), Batch size, Workload Number (processes that
 * share the slice with MPS), Throughput (inferences/s of each process; 0: out of memory). A step
 * answers a batch: Throughput / Batch size a second. Two processes are the workload beside itself;
 * three to five have no cell.
 */
#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/import/columns.h"
#include "catalog/import/draft.h"
#include "catalog/import/models.h"

enum { MODEL, SLICE, BATCH, N_PROCESSES, THROUGHPUT, N_RULES };

static const struct column_rule rules[N_RULES] = {
    [MODEL] = { .name = "model" },
    [SLICE] = { .name = "Mig instance", .low = 1, .high = 7, .is_whole = true },
    [BATCH] = { .name = "Batch size", .low = 1, .high = 1e6, .is_whole = true },
    [N_PROCESSES] = { .name = "Workload Number", .low = 1, .high = 48, .is_whole = true },
    [THROUGHPUT] = { .name = "Throughput", .low = 0, .high = IMPORT_SPEED_MAX },
};

static const struct model_name others[] = {
    { "bert", "bert-base-infer" },
    { "inceptionv3", "inception-v3-infer" },
    { "mobilenetv2", "mobilenet-v2-infer" },
};

static const char *find_model(struct draft *d, const char *said)
{
    const char *model = model_named(others, sizeof others / sizeof *others, said);
    struct workload w;

    if (model == NULL)
        model = arena_printf(&d->arena, "%s-infer", said);
    return workload_builtin(&d->arena, model, 1, &w, NULL) < 0 ? NULL : w.family;
}

static int take_row(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    int slice = (int)r->number[SLICE], n = (int)r->number[N_PROCESSES];
    struct model_use use = { .model = find_model(d, r->text[MODEL]),
                             .family = model_family(d, r->text[MODEL], true),
                             .batch = r->number[BATCH],
                             .is_synthetic = true,
                             .precision = PRECISION_TF32 };

    (void)self;
    if (slice == 5 || slice == 6)
        return err_set(e, EINVAL, "Mig instance: an A100 has no slices of %d sevenths", slice);
    if (use.model == NULL || n > 2) {
        d->report.n_dropped++;
        return 0;
    }
    int w = model_workload(d, &use);
    struct measurement *m = draft_add(d, w, model_slice(d, slice), n == 2 ? w : -1);
    m->fits = r->number[THROUGHPUT] > 0;
    m->throughput = m->fits ? r->number[THROUGHPUT] / use.batch : (double)NAN;
    return 0;
}

int parvagpu_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    d->report.why_dropped = "three and more processes on a slice";
    d->published = SHARING_MPS;    // within a slice, and slices are the GPUs here
    return columns_read(d, in, rules, N_RULES, take_row, NULL, p, e);
}

int import_parvagpu_read(struct draft *d, const char *path, struct progress *p, struct err *e)
{
    int rc = draft_read_file(d, "parvagpu", path, parvagpu_read, p, e);

    return rc < 0 ? rc : draft_check(d, e);
}

/* miso.c - seconds per iteration of training on MIG slices, and what an A100 draws (MISO, SoCC'22).
 *
 * mig_iteration_time.csv: mig_slice ("2g.10gb"), model, batch_size, median_iter_s; a step is an
 * iteration. a100_power_util.csv, where it lies beside: model, batch_size, power_w of the whole
 * GPU. Left out: models of which nobody says what they compute (embedding, gnn, dummy).
 */
#include "catalog/import/import.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "catalog/import/columns.h"
#include "catalog/import/draft.h"
#include "catalog/import/models.h"

enum { SLICE, MODEL, BATCH, TIME, N_RULES };
enum { P_MODEL, P_BATCH, P_WATTS, N_POWER_RULES };

static const struct column_rule rules[N_RULES] = {
    [SLICE] = { .name = "mig_slice" },
    [MODEL] = { .name = "model" },
    [BATCH] = { .name = "batch_size", .low = 1, .high = 1e6, .is_whole = true },
    [TIME] = { .name = "median_iter_s", .low = 1e-6, .high = 1e5 },
};

static const struct column_rule power_rules[N_POWER_RULES] = {
    [P_MODEL] = { .name = "model" },
    [P_BATCH] = { .name = "batch_size", .low = 1, .high = 1e6, .is_whole = true },
    [P_WATTS] = { .name = "power_w", .low = 1, .high = IMPORT_WATTS_MAX },
};

/* Pictures are of 32x32: a batch of 512 takes an A100 31 ms, ten times less than larger ones. */
static const struct model_name models[] = {
    { "bert", "bert-base" },          { "cyclegan", "CycleGAN" },
    { "deepspeech2", "deepspeech2" }, { "mobilenet", "mobilenet-v2-cifar10" },
    { "resnet", "resnet50-cifar10" }, { "transformer", "Transformer" },
};

/* The workload in the draft, or -1: its model is left out. */
static int find_workload(struct draft *d, const char *said, double batch)
{
    struct model_use use = { .model = model_named(models, sizeof models / sizeof *models, said),
                             .batch = batch,
                             .precision = PRECISION_TF32 };

    if (use.model != NULL)
        return model_workload(d, &use);
    d->report.n_dropped++;
    return -1;
}

static int take_time(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    int n = r->text[SLICE][0] - '0';

    (void)self;
    if (r->text[SLICE][1] != 'g' || n < 1 || n > 7 || n == 5 || n == 6)
        return err_set(e, EINVAL, "mig_slice: '%.20s': want 1g, 2g, 3g, 4g or 7g, as in 2g.10gb",
                       r->text[SLICE]);
    int w = find_workload(d, r->text[MODEL], r->number[BATCH]);
    if (w >= 0)
        draft_add(d, w, model_slice(d, n), -1)->throughput = 1 / r->number[TIME];
    return 0;
}

static int take_power(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    int i = find_workload(d, r->text[P_MODEL], r->number[P_BATCH]);

    (void)self;
    (void)e;
    if (i < 0)
        return 0;
    draft_add(d, i, draft_type(d, "a100-40"), -1)->watts = r->number[P_WATTS];
    return 0;
}

int miso_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    d->report.why_dropped = "models that are not built in";
    return columns_read(d, in, rules, N_RULES, take_time, NULL, p, e);
}

int miso_read_power(struct draft *d, const struct draft_text *in, struct err *e)
{
    return columns_read(d, in, power_rules, N_POWER_RULES, take_power, NULL, NULL, e);
}

int import_miso_read(struct draft *d, const char *dir, struct progress *p, struct err *e)
{
    const char *power = arena_printf(&d->arena, "%s/a100_power_util.csv", dir);
    d->published = SHARING_MIG;
    int rc = draft_read_file(d, "miso", arena_printf(&d->arena, "%s/mig_iteration_time.csv", dir),
                             miso_read, p, e);

    if (rc == 0 && access(power, F_OK) == 0) {
        struct draft_text in;

        rc = draft_load(d, power, &in, e);
        if (rc == 0) {
            draft_begin_part(d, "miso-power", power);
            draft_add_digest(d, &in);
            rc = miso_read_power(d, &in, e);
        }
    }
    return rc < 0 ? rc : draft_check(d, e);
}

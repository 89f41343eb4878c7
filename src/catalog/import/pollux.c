/* pollux.c - seconds per step by batch size and placement on T4s (Pollux, OSDI'21).
 *
 * Columns: application, placement (GPUs on each node, a digit for each: "21"), local_bsz, step_time
 * (s), num_nodes and num_replicas (where there is no placement). A step of the workload is one
 * local batch, so n GPUs do n / step_time a second.
 */
#include "catalog/import/import.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/import/columns.h"
#include "catalog/import/draft.h"
#include "catalog/import/models.h"

enum { APPLICATION, PLACEMENT, BATCH, TIME, N_NODES, N_REPLICAS, N_RULES };

static const struct column_rule rules[N_RULES] = {
    [APPLICATION] = { .name = "application" },
    [PLACEMENT] = { .name = "placement", .may_be_empty = true },
    [BATCH] = { .name = "local_bsz", .low = 1, .high = 1e7, .is_whole = true },
    [TIME] = { .name = "step_time", .low = 1e-6, .high = 1e5 },
    [N_NODES] = { .name = "num_nodes",
                  .low = 1,
                  .high = 1e4,
                  .may_be_empty = true,
                  .is_whole = true },
    [N_REPLICAS] = { .name = "num_replicas",
                     .low = 1,
                     .high = 1e4,
                     .may_be_empty = true,
                     .is_whole = true },
};

static const struct model_name applications[] = {
    { "bert", "bert-base" },     { "cifar10", "ResNet-18" }, { "deepspeech2", "deepspeech2" },
    { "imagenet", "ResNet-50" }, { "ncf", "ncf" },           { "yolov3", "yolov3" },
};

/* How many GPUs, and on how many nodes. */
static int read_placement(const struct columns_row *r, int *n_gpus, int *n_nodes, struct err *e)
{
    *n_gpus = 0;
    *n_nodes = (int)strlen(r->text[PLACEMENT]);
    if (*n_nodes == 0 && !isnan(r->number[N_NODES]) && !isnan(r->number[N_REPLICAS])) {
        *n_gpus = (int)r->number[N_REPLICAS];
        *n_nodes = (int)r->number[N_NODES];
        return 0;
    }
    for (const char *at = r->text[PLACEMENT]; *at != '\0'; at++) {
        if (!isdigit((unsigned char)*at) || *at == '0')
            return err_set(e, EINVAL,
                           "placement: '%.40s': want a digit for each node, its GPUs, as in 21",
                           r->text[PLACEMENT]);
        *n_gpus += *at - '0';
    }
    if (*n_gpus == 0)
        return err_set(e, EINVAL, "placement: want one, or num_nodes and num_replicas");
    return 0;
}

static int take_row(struct draft *d, void *self, const struct columns_row *r, struct err *e)
{
    struct model_use use = {
        .model = model_named(applications, sizeof applications / sizeof *applications,
                             r->text[APPLICATION]),
        .batch = r->number[BATCH],
    };
    int n_gpus, n_nodes, rc = read_placement(r, &n_gpus, &n_nodes, e);

    (void)self;
    if (rc < 0)
        return rc;
    if (use.model == NULL)
        return err_set(e, EINVAL,
                       "application: '%.40s' is not known (only bert, cifar10, deepspeech2, "
                       "imagenet, ncf, yolov3); convert to steps/s and use 'gogh import csv'",
                       r->text[APPLICATION]);
    struct measurement *m = draft_add(d, model_workload(d, &use), draft_type(d, "t4"), -1);
    m->key.n_gpus = n_gpus;
    m->key.is_spread = n_nodes > 1;
    m->throughput = n_gpus / r->number[TIME];
    return 0;
}

int pollux_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    return columns_read(d, in, rules, N_RULES, take_row, NULL, p, e);
}

int import_pollux_read(struct draft *d, const char *path, struct progress *p, struct err *e)
{
    int rc = draft_read_file(d, "pollux", path, pollux_read, p, e);

    return rc < 0 ? rc : draft_check(d, e);
}

/* zeus.c - seconds per epoch and watts by batch size and power limit (Zeus, NSDI'23).
 *
 * Columns: dataset, network, batch_size, optimizer, power_limit (W), time_per_epoch (s),
 * average_power (W). A step is one batch, so steps/s is the number of batches that make
 * up the training set, over the seconds of an epoch.
 */
#include "catalog/import/import.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/csv.h"
#include "base/err.h"
#include "base/progress.h"
#include "catalog/import/draft.h"

/* Samples in an epoch of training. */
static const struct {
    const char *dataset;
    double n_samples;
} dataset_sizes[] = {
    { "cifar100", 50000 },      // the training split
    { "imagenet", 1281167 },    // ILSVRC 2012, train
    { "squad", 88524 },         // v1.1 train at 384 tokens, stride 128: features, not questions
    /* All 960 h: with the 28,539 utterances of train-clean-100 a V100 would do 4.6 a
     * second, less than 60 times real time; with these 45, as is usual for DeepSpeech 2. */
    { "librispeech", 281241 },
    { "movielens-1m", 4970845 },    // 994,169 ratings to train on, each with 4 negatives
    /* The whole training set of tweets: a V100 then does 389 a second, 7 times its rate
     * of 384-token SQuAD features, which is what some 50 tokens a tweet should give. */
    { "sentiment140", 1600000 },
};

static const char prefix[] = "summary_power_", suffix[] = ".csv";

enum zeus_column { DATASET, NETWORK, BATCH, OPTIMIZER, LIMIT, TIME, POWER, COLUMN_COUNT };

static const char *const column_names[COLUMN_COUNT] = {
    "dataset",     "network",        "batch_size",    "optimizer",
    "power_limit", "time_per_epoch", "average_power",
};

struct zeus_row {
    const char *text[COLUMN_COUNT];    // of the three that are texts
    double number[COLUMN_COUNT];       // of the others
};

static int read_fields(struct draft *d, const struct csv *c, const int *at, struct zeus_row *r,
                       struct err *e)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        struct slice s = c->field[at[i]];
        int rc = 0;

        if (i != DATASET && i != NETWORK && i != OPTIMIZER)
            rc = csv_number(c, at[i], false, &r->number[i], e);
        else if (!text_is_name(s) || s.len > 50)
            rc = err_set(e, EINVAL, "%s:%d: %s: want 1 to 50 printable bytes of UTF-8", c->name,
                         c->line, column_names[i]);
        else
            r->text[i] = arena_strndup(&d->arena, s.at, s.len);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_row(const struct csv *c, const struct zeus_row *r, struct err *e)
{
    static const struct {
        int column;
        double low, high;
        const char *unit;
    } ranges[] = {
        { BATCH, 1, 1e9, "samples" },
        { LIMIT, 1, IMPORT_WATTS_MAX, "W" },
        { TIME, 1e-3, 1e8, "s" },
        { POWER, 1, IMPORT_WATTS_MAX, "W" },
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        double x = r->number[ranges[i].column];

        if (!(x >= ranges[i].low && x <= ranges[i].high))
            return err_set(e, EINVAL, "%s:%d: %s: %g is not within %g to %g %s; wrong unit?",
                           c->name, c->line, column_names[ranges[i].column], x, ranges[i].low,
                           ranges[i].high, ranges[i].unit);
    }
    if (floor(r->number[BATCH]) != r->number[BATCH] || floor(r->number[LIMIT]) != r->number[LIMIT])
        return err_set(e, EINVAL, "%s:%d: batch_size and power_limit are whole numbers", c->name,
                       c->line);
    return 0;
}

static int find_samples(const struct csv *c, const char *dataset, double *n_samples, struct err *e)
{
    for (size_t i = 0; i < sizeof(dataset_sizes) / sizeof(dataset_sizes[0]); i++) {
        if (strcmp(dataset, dataset_sizes[i].dataset) == 0) {
            *n_samples = dataset_sizes[i].n_samples;
            return 0;
        }
    }
    return err_set(e, EINVAL,
                   "%s:%d: how many samples an epoch of '%s' has is not known (only of "
                   "cifar100, imagenet, squad, librispeech, movielens-1m, sentiment140); convert "
                   "to steps/s and use 'gogh import csv'",
                   c->name, c->line, dataset);
}

/* The built-in model of this network on this dataset; what the network is usually trained on
 * where there is no such thing.
 */
static void find_builtin(struct draft *d, const struct zeus_row *r, struct workload *out)
{
    const char *both = arena_printf(&d->arena, "%s-%s", r->text[NETWORK], r->text[DATASET]);
    double batch = r->number[BATCH];

    if (workload_builtin(&d->arena, both, batch, out, NULL) < 0)
        (void)workload_builtin(&d->arena, r->text[NETWORK], batch, out, NULL);
}

/* "resnet50/imagenet/adadelta (batch size 256)": fields of 50 bytes never outgrow a name. */
static int row_workload(struct draft *d, const struct zeus_row *r)
{
    const char *model =
        arena_printf(&d->arena, "%s/%s/%s", r->text[NETWORK], r->text[DATASET], r->text[OPTIMIZER]);
    const char *name = workload_name(&d->arena, model, r->number[BATCH]);
    int n_before = d->n_workloads;
    int i = draft_workload(d, name);

    if (i < n_before)
        return i;
    find_builtin(d, r, &d->workloads[i]);
    d->workloads[i].name = name;
    d->workloads[i].family = r->text[NETWORK];
    d->workloads[i].dataset = r->text[DATASET];
    d->workloads[i].batch = r->number[BATCH];
    return i;
}

static int read_row(struct draft *d, const struct csv *c, const int *at, int type, struct err *e)
{
    struct zeus_row r;
    double n_samples = 0;
    struct measurement *m;
    int rc = read_fields(d, c, at, &r, e);

    if (rc == 0)
        rc = check_row(c, &r, e);
    if (rc == 0)
        rc = find_samples(c, r.text[DATASET], &n_samples, e);
    if (rc < 0)
        return rc;
    m = draft_add(d, row_workload(d, &r), type, -1);
    m->key.limit_w = (int)r.number[LIMIT];
    m->throughput = ceil(n_samples / r.number[BATCH]) / r.number[TIME];
    m->watts = r.number[POWER];
    m->duration_s = r.number[TIME];
    return 0;
}

/* The limit that counts as none: the type's own where the file has it, else the largest. */
static void mark_default_limit(struct draft *d, int first_row, int type)
{
    double cap_w = d->types[type].cap_w;    // NaN: not known
    int largest = 0, own = cap_w > 0 && cap_w <= IMPORT_WATTS_MAX ? (int)cap_w : 0;
    bool has_own = false;

    for (int i = first_row; i < d->n_rows; i++) {
        int limit = d->rows[i].key.limit_w;

        largest = limit > largest ? limit : largest;
        has_own |= limit == own;
    }
    for (int i = first_row; i < d->n_rows; i++) {
        if (d->rows[i].key.limit_w == (has_own ? own : largest))
            d->rows[i].key.limit_w = 0;
    }
}

int zeus_read(struct draft *d, const char *gpu, const struct draft_text *in, struct err *e)
{
    struct csv csv;
    int at[COLUMN_COUNT];
    int first_row = d->n_rows;
    int type = draft_type(d, gpu);
    int rc = csv_open(&csv, &d->arena, in->name, in->text, in->len, e);

    for (int i = 0; i < COLUMN_COUNT && rc == 0; i++)
        rc = csv_require(&csv, column_names[i], &at[i], e);
    while (rc == 0 && (rc = csv_next(&csv, e)) > 0)
        rc = read_row(d, &csv, at, type, e);
    if (rc == 0 && d->n_rows == first_row)
        rc = err_set(e, EINVAL, "%s: not one measurement in it", in->name);
    if (rc == 0)
        mark_default_limit(d, first_row, type);
    return rc;
}

/* ---- the directory ---- */

/* "v100" of "summary_power_v100.csv", or NULL. */
static const char *gpu_of_file(struct arena *a, const char *file)
{
    size_t len = strlen(file), head = sizeof(prefix) - 1, tail = sizeof(suffix) - 1;

    if (len <= head + tail || strncmp(file, prefix, head) != 0 ||
        strcmp(file + len - tail, suffix) != 0 ||
        !text_is_name((struct slice){ file + head, len - head - tail }))
        return NULL;
    return arena_strndup(a, file + head, len - head - tail);
}

static int read_files(struct draft *d, const char *dir, struct dirent **files, int n_files,
                      struct progress *p, struct err *e)
{
    int n_read = 0;

    draft_begin_part(d, "zeus", dir);
    memset(d->part[0].digest, '0', 64);    // what the files' digests are added to
    for (int i = 0; i < n_files; i++) {
        const char *gpu = gpu_of_file(&d->arena, files[i]->d_name);
        struct draft_text in;
        int rc;

        if (gpu == NULL)
            continue;
        rc = draft_load(d, arena_printf(&d->arena, "%s/%s", dir, files[i]->d_name), &in, e);
        if (rc == 0)
            rc = zeus_read(d, gpu, &in, e);
        if (rc < 0)
            return rc;
        draft_add_digest(d, &in);
        n_read++;
        progress_step(p, i, n_files);
    }
    if (n_read == 0)
        return err_set(e, ENOENT,
                       "%s: no summary_power_<gpu>.csv in it; give the directory that "
                       "holds Zeus's traces",
                       dir);
    return 0;
}

int import_zeus_read(struct draft *d, const char *dir, struct progress *p, struct err *e)
{
    struct dirent **files;
    int n_files = scandir(dir, &files, NULL, alphasort);
    int rc;

    if (n_files < 0)
        return err_set(e, errno, "%s: %s; give the directory that holds Zeus's traces", dir,
                       strerror(errno));
    rc = read_files(d, dir, files, n_files, p, e);
    for (int i = 0; i < n_files; i++)
        free(files[i]);
    free(files);
    return rc < 0 ? rc : draft_check(d, e);
}

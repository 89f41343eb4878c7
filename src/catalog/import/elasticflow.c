/* elasticflow.c - iterations per second by global batch and GPUs (ElasticFlow, ASPLOS'23).
 *
 * A tar of throughputs_GPU/MODEL.csv: a row for each global_batch_size, a column for each number of
 * GPUs. A step is an iteration over the global batch, whatever the gang's size, so the workload is
 * "MODEL (batch size GLOBAL)" and the figure its speed. Empty, 0 and nan: not measured. Only A100
 * is taken: the tables of T4 are computed from Pollux's, with gradients of several passes added up.
 */
#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/csv.h"
#include "base/text/file.h"
#include "catalog/import/draft.h"
#include "catalog/import/models.h"

static const struct model_name models[] = {
    { "bert", "bert-base-glue" }, { "deepspeech2", "deepspeech2" },
    { "gpt2", "gpt2-imdb" },      { "inception3", "inception-v3" },
    { "resnet50", "ResNet-50" },  { "resnet50_cifar10", "resnet50-cifar10" },
    { "vgg16", "vgg16" },
};

/* NaN: not measured. */
static int read_speed(const struct csv *c, int column, double *out, struct err *e)
{
    if (slice_is(c->field[column], "nan")) {
        *out = NAN;
        return 0;
    }
    int rc = csv_number(c, column, true, out, e);
    if (rc == 0 && (*out < 0 || *out > IMPORT_SPEED_MAX))
        return err_set(e, EINVAL, "%s:%d: %g is not plausible as iterations/s; wrong unit?",
                       c->name, c->line, *out);
    if (*out == 0)
        *out = NAN;
    return rc;
}

static int read_row(struct draft *d, const struct csv *c, const char *model, struct err *e)
{
    struct model_use use = { .model = model, .precision = PRECISION_TF32 };
    int rc = csv_number(c, 0, false, &use.batch, e);

    if (rc == 0 && !(use.batch >= 1 && use.batch <= 1e7 && floor(use.batch) == use.batch))
        rc = err_set(e, EINVAL, "%s:%d: global_batch_size: want a whole number, not %g", c->name,
                     c->line, use.batch);
    for (int i = 1; i < c->n_columns && rc == 0; i++) {
        double speed = NAN;
        long n_gpus = 1;

        if (text_to_long(c->column[i], 1, 10000, &n_gpus) < 0)
            return err_set(e, EINVAL, "%s:1: '%.*s': want a number of GPUs", c->name,
                           slice_shown(c->column[i]), c->column[i].at);
        rc = read_speed(c, i, &speed, e);
        if (rc < 0 || isnan(speed))
            continue;
        struct measurement *m = draft_add(d, model_workload(d, &use), draft_type(d, "a100-40"), -1);
        m->key.n_gpus = (int)n_gpus;
        m->key.is_spread = n_gpus > 8;    // of machines with eight
        m->throughput = speed;
    }
    return rc;
}

int elasticflow_read(struct draft *d, const char *model, const struct draft_text *in, struct err *e)
{
    const char *builtin = model_named(models, sizeof models / sizeof *models, model);
    struct csv csv;
    int column, rc = csv_open(&csv, &d->arena, in->name, in->text, in->len, e);

    if (rc == 0)
        rc = csv_require(&csv, "global_batch_size", &column, e);
    if (rc == 0 && column != 0)
        rc = err_set(e, EINVAL, "%s:1: want global_batch_size as the first column", in->name);
    while (rc == 0 && (rc = csv_next(&csv, e)) > 0) {
        rc = 0;
        if (builtin != NULL)
            rc = read_row(d, &csv, builtin, e);
        else
            d->report.n_dropped++;
    }
    return rc;
}

/* ---- the archive ---- */

struct elastic_row {
    struct draft *d;
    const char *path;
};

static int take_member(void *self, const char *name, const char *text, size_t len, struct err *e)
{
    const struct elastic_row *r = self;
    struct draft *d = r->d;
    const char *base = strrchr(name, '/'), *end = strrchr(name, '.');
    struct draft_text in = { arena_printf(&d->arena, "%s: %.80s", r->path, name), text, len };

    if (strstr(name, "throughputs_A100/") == NULL || base == NULL || end == NULL || end < base ||
        strcmp(end, ".csv") != 0) {
        d->report.n_dropped++;
        return 0;
    }
    if (!text_is_utf8(text, len, NULL))
        return err_set(e, EILSEQ, "%s: not UTF-8 text", in.name);
    draft_add_digest(d, &in);
    return elasticflow_read(d, arena_strndup(&d->arena, base + 1, (size_t)(end - base - 1)), &in,
                            e);
}

int import_elasticflow_read(struct draft *d, const char *path, struct progress *p, struct err *e)
{
    struct elastic_row r = { d, path };

    (void)p;
    d->report.why_dropped = "tables of T4, which are computed from Pollux's";
    draft_begin_part(d, "elasticflow", path);
    int rc = file_each(path, IMPORT_BYTES_MAX, take_member, &r, e);
    if (rc == 0 && d->n_rows == 0)
        rc = err_set(e, EINVAL, "%s: no throughputs_A100/MODEL.csv with a measurement in it", path);
    return rc < 0 ? rc : draft_check(d, e);
}

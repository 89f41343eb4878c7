/* csv.c - anybody's measurements, in the format of docs/formats/measurements.md. */
#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text/csv.h"
#include "base/err.h"
#include "base/progress.h"
#include "catalog/import/draft.h"

enum csv_column {
    COL_WORKLOAD,
    COL_GPU,
    COL_NEIGHBOUR,
    COL_BATCH,
    COL_N_GPUS,
    COL_SPREAD,
    COL_LIMIT_W,
    COL_THROUGHPUT,
    COL_WATTS,
    COL_FITS,
    COL_TIME,
    COL_DURATION_S,
    COL_NOISE,
    COL_CAMPAIGN,
    COL_COUNT
};

static const char *const column_names[COL_COUNT] = {
    "workload",   "gpu",   "neighbour", "batch", "n_gpus",     "spread", "limit_w",
    "throughput", "watts", "fits",      "time",  "duration_s", "noise",  "campaign",
};

struct csv_reader {
    struct draft *d;
    struct csv csv;
    int at[COL_COUNT];    // -1: the file has no such column
    int rc;               // of what was refused first; nothing is read after that
    struct err *e;
};

static void refuse(struct csv_reader *r, enum csv_column c, const char *what)
{
    if (r->rc == 0)
        r->rc =
            err_set(r->e, EINVAL, "%s:%d: %s: %s", r->csv.name, r->csv.line, column_names[c], what);
}

static struct slice field(const struct csv_reader *r, enum csv_column c)
{
    return r->at[c] >= 0 ? r->csv.field[r->at[c]] : (struct slice){ "", 0 };
}

/* NaN when the column or the field is missing. Outside [low, high]: an error. */
static double number(struct csv_reader *r, enum csv_column c, double low, double high)
{
    double x = NAN;

    if (r->rc < 0 || r->at[c] < 0)
        return x;
    r->rc = csv_number(&r->csv, r->at[c], true, &x, r->e);
    if (r->rc == 0 && (x < low || x > high))
        r->rc = err_set(r->e, EINVAL, "%s:%d: %s: %g is not within %g to %g; wrong unit?",
                        r->csv.name, r->csv.line, column_names[c], x, low, high);
    return x;
}

static int whole(struct csv_reader *r, enum csv_column c, int low, int high, int missing)
{
    struct slice s = field(r, c);
    long n = missing;

    if (r->rc == 0 && s.len > 0 && text_to_long(s, low, high, &n) < 0)
        r->rc = err_set(r->e, EINVAL, "%s:%d: %s: want a whole number from %d to %d, not '%.*s'",
                        r->csv.name, r->csv.line, column_names[c], low, high, slice_shown(s), s.at);
    return (int)n;
}

static int open_columns(struct csv_reader *r)
{
    for (int c = 0; c < COL_COUNT; c++)
        r->at[c] = csv_column(&r->csv, column_names[c]);
    for (int c = COL_WORKLOAD; c <= COL_GPU; c++) {
        if (r->at[c] < 0)
            return err_set(r->e, EINVAL,
                           "%s:%d: no column '%s': each row needs a workload and a gpu; is this "
                           "the right file?",
                           r->csv.name, r->csv.line, column_names[c]);
    }
    for (int i = 0; i < r->csv.n_columns; i++) {
        struct slice s = r->csv.column[i];
        int c = 0;

        while (c < COL_COUNT && r->at[c] != i)
            c++;
        if (c == COL_COUNT)
            return err_set(r->e, EINVAL,
                           "%s:%d: unknown column '%.*s'; known are workload, gpu, "
                           "neighbour, batch, n_gpus, spread, limit_w, throughput, watts, fits, "
                           "time, duration_s, noise, campaign",
                           r->csv.name, r->csv.line, slice_shown(s), s.at);
    }
    return 0;
}

/* NULL: it is no name. */
static const char *read_name(struct csv_reader *r, enum csv_column c)
{
    struct slice s = field(r, c);

    if (text_is_name(s))
        return arena_strndup(&r->d->arena, s.at, s.len);
    refuse(r, c, "want a name of 1 to 200 printable bytes of UTF-8");
    return NULL;
}

/* "ResNet-18" with batch 16 is "ResNet-18 (batch size 16)"; a name may also state it. */
static int read_workload(struct csv_reader *r)
{
    const char *name = read_name(r, COL_WORKLOAD);
    int batch = whole(r, COL_BATCH, 1, 1000000000, 0);
    double stated;

    if (r->rc < 0)
        return -1;
    workload_name_split(name, &stated);
    if (batch > 0 && isnan(stated))
        name = workload_name(&r->d->arena, name, batch);
    else if (batch > 0 && stated != batch)
        refuse(r, COL_BATCH, "differs from the batch size in the workload's name");
    if (!text_is_name(slice_of(name)))
        refuse(r, COL_WORKLOAD, "over 200 bytes with its batch size; shorten it");
    return r->rc < 0 ? -1 : draft_workload(r->d, name);
}

static struct cell_key read_key(struct csv_reader *r)
{
    struct cell_key key = { .workload = read_workload(r), .neighbour = -1 };
    const char *type = read_name(r, COL_GPU);
    const char *neighbour = field(r, COL_NEIGHBOUR).len > 0 ? read_name(r, COL_NEIGHBOUR) : NULL;
    const char *campaign = field(r, COL_CAMPAIGN).len > 0 ? read_name(r, COL_CAMPAIGN) : NULL;

    key.n_gpus = whole(r, COL_N_GPUS, 1, CATALOG_GANG_MAX, 1);
    key.is_spread = whole(r, COL_SPREAD, 0, 1, 0);
    key.limit_w = whole(r, COL_LIMIT_W, 1, (int)IMPORT_WATTS_MAX, 0);
    if (key.is_spread && key.n_gpus == 1)
        refuse(r, COL_SPREAD, "one GPU cannot be spread over nodes; give n_gpus");
    if (r->rc < 0)
        return key;
    key.gpu_type = draft_type(r->d, type);
    key.campaign = campaign ? draft_campaign(r->d, campaign) : r->d->campaign;
    if (neighbour)
        key.neighbour = draft_workload(r->d, neighbour);
    return key;
}

static void check_values(struct csv_reader *r, const struct measurement *m)
{
    if (m->throughput == 0)
        refuse(r, COL_THROUGHPUT,
               "0 is no speed; where a job does not fit write fits 0 and leave it empty");
    if (m->watts == 0)
        refuse(r, COL_WATTS, "0 W is no measurement; leave it empty");
    if (m->noise < CATALOG_NOISE_MIN)
        refuse(r, COL_NOISE,
               "below 0.0001 is too good to be true; leave it empty where it is not known");
    if (!m->fits && !isnan(m->throughput))
        refuse(r, COL_FITS, "0 means that it does not fit; then there is no throughput");
    if (m->fits && isnan(m->throughput) && isnan(m->watts))
        refuse(r, COL_THROUGHPUT, "a row needs a throughput, watts, or fits 0");
}

static int read_row(struct csv_reader *r)
{
    struct measurement m = { .key = read_key(r) };

    m.throughput = number(r, COL_THROUGHPUT, 0, IMPORT_SPEED_MAX);
    m.watts = number(r, COL_WATTS, 0, IMPORT_WATTS_MAX * m.key.n_gpus);
    m.fits = whole(r, COL_FITS, 0, 1, 1);
    m.time_s = number(r, COL_TIME, 0, 1e11);
    m.duration_s = number(r, COL_DURATION_S, 0, 1e10);
    m.noise = number(r, COL_NOISE, 0, 10);
    if (isnan(m.time_s))
        m.time_s = 0;
    check_values(r, &m);
    if (r->rc == 0)
        *draft_add(r->d, m.key.workload, m.key.gpu_type, m.key.neighbour) = m;
    return r->rc;
}

int csv_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    struct csv_reader r = { .d = d, .e = e };
    int rc = csv_open(&r.csv, &d->arena, in->name, in->text, in->len, e);

    if (rc == 0)
        rc = open_columns(&r);
    while (rc == 0 && (rc = csv_next(&r.csv, e)) > 0) {
        rc = read_row(&r);
        if (d->n_rows % 1024 == 0)
            progress_step(p, (double)(r.csv.at - in->text), (double)in->len);
    }
    if (rc == 0 && d->n_rows == 0)
        rc = err_set(e, EINVAL, "%s: not one measurement in it", in->name);
    return rc;
}

int import_csv_read(struct draft *d, const char *path, const char *workloads, struct progress *p,
                    struct err *e)
{
    int rc = draft_describe(d, workloads, e);

    if (rc == 0)
        rc = draft_read_file(d, "csv", path, csv_read, p, e);
    return rc < 0 ? rc : draft_check(d, e);
}

/* csv.c - anybody's measurements, in the format of docs/formats/measurements.md. */
#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text/csv.h"
#include "base/err.h"
#include "base/text/file.h"
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
    COL_COUNT
};

static const char *const column_names[COL_COUNT] = {
    "workload",   "gpu",   "neighbour", "batch", "n_gpus",     "spread", "limit_w",
    "throughput", "watts", "fits",      "time",  "duration_s", "noise",
};

struct csv_reader {
    struct draft *d;
    struct csv csv;
    int at[COL_COUNT];    // -1: the file has no such column
    struct err *e;
};

static int refuse(struct csv_reader *r, enum csv_column c, const char *what)
{
    return err_set(r->e, EINVAL, "%s:%d: %s: %s", r->csv.name, r->csv.line, column_names[c], what);
}

static struct slice field(const struct csv_reader *r, enum csv_column c)
{
    return r->at[c] >= 0 ? r->csv.field[r->at[c]] : (struct slice){ "", 0 };
}

/* NaN when the column or the field is missing. Outside [low, high]: an error. */
static int number(struct csv_reader *r, enum csv_column c, double low, double high, double *out)
{
    int rc;

    *out = (double)NAN;
    if (r->at[c] < 0)
        return 0;
    rc = csv_number(&r->csv, r->at[c], true, out, r->e);
    if (rc == 0 && (*out < low || *out > high))
        rc = err_set(r->e, EINVAL, "%s:%d: %s: %g is not within %g to %g; wrong unit?", r->csv.name,
                     r->csv.line, column_names[c], *out, low, high);
    return rc;
}

static int whole(struct csv_reader *r, enum csv_column c, long low, long high, long missing,
                 long *out)
{
    struct slice s = field(r, c);

    *out = missing;
    if (s.len == 0 || text_to_long(s, low, high, out) == 0)
        return 0;
    return err_set(r->e, EINVAL, "%s:%d: %s: want a whole number from %ld to %ld, not '%.*s'",
                   r->csv.name, r->csv.line, column_names[c], low, high, slice_shown(s), s.at);
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
                           "time, duration_s, noise",
                           r->csv.name, r->csv.line, slice_shown(s), s.at);
    }
    return 0;
}

static int read_name(struct csv_reader *r, enum csv_column c, const char **out)
{
    struct slice s = field(r, c);

    if (!text_is_name(s))
        return refuse(r, c, "want a name of 1 to 200 printable bytes of UTF-8");
    *out = arena_strndup(&r->d->arena, s.at, s.len);
    return 0;
}

/* "ResNet-18" with batch 16 is "ResNet-18 (batch size 16)"; a name may also state it. */
static int read_workload(struct csv_reader *r, int *index)
{
    const char *name;
    double stated;
    long batch = 0;
    int rc = read_name(r, COL_WORKLOAD, &name);

    if (rc == 0)
        rc = whole(r, COL_BATCH, 1, 1000000000, 0, &batch);
    if (rc < 0)
        return rc;
    workload_name_split(name, &stated);
    if (batch > 0 && isnan(stated))
        name = workload_name(&r->d->arena, name, (double)batch);
    else if (batch > 0 && stated != (double)batch)
        return refuse(r, COL_BATCH, "differs from the batch size in the workload's name");
    if (!text_is_name(slice_of(name)))
        return refuse(r, COL_WORKLOAD, "over 200 bytes with its batch size; shorten it");
    *index = draft_workload(r->d, name);
    return 0;
}

static int read_key(struct csv_reader *r, struct cell_key *key)
{
    const char *name;
    long n_gpus = 1, spread = 0, limit_w = 0;
    int rc = read_workload(r, &key->workload);

    if (rc == 0)
        rc = read_name(r, COL_GPU, &name);
    if (rc == 0)
        key->gpu_type = draft_type(r->d, name);
    key->neighbour = -1;
    if (rc == 0 && field(r, COL_NEIGHBOUR).len > 0) {
        rc = read_name(r, COL_NEIGHBOUR, &name);
        if (rc == 0)
            key->neighbour = draft_workload(r->d, name);
    }
    if (rc == 0)
        rc = whole(r, COL_N_GPUS, 1, CATALOG_GANG_MAX, 1, &n_gpus);
    if (rc == 0)
        rc = whole(r, COL_SPREAD, 0, 1, 0, &spread);
    if (rc == 0)
        rc = whole(r, COL_LIMIT_W, 1, (long)IMPORT_WATTS_MAX, 0, &limit_w);
    if (rc < 0)
        return rc;
    if (spread == 1 && n_gpus == 1)
        return refuse(r, COL_SPREAD, "one GPU cannot be spread over nodes; give n_gpus");
    key->n_gpus = (int)n_gpus;
    key->is_spread = spread == 1;
    key->limit_w = (int)limit_w;
    return 0;
}

static int check_values(struct csv_reader *r, const struct measurement *m)
{
    if (m->throughput == 0)
        return refuse(r, COL_THROUGHPUT,
                      "0 is no speed; where a job does not fit write fits 0 "
                      "and leave it empty");
    if (m->watts == 0)
        return refuse(r, COL_WATTS, "0 W is no measurement; leave it empty");
    if (m->noise < CATALOG_NOISE_MIN)
        return refuse(r, COL_NOISE,
                      "below 0.0001 is too good to be true; leave it empty where it is not known");
    if (!m->fits && !isnan(m->throughput))
        return refuse(r, COL_FITS, "0 means that it does not fit; then there is no throughput");
    if (m->fits && isnan(m->throughput) && isnan(m->watts))
        return refuse(r, COL_THROUGHPUT, "a row needs a throughput, watts, or fits 0");
    return 0;
}

static int read_row(struct csv_reader *r)
{
    struct measurement m = { 0 };
    long fits = 1;
    int rc = read_key(r, &m.key);

    if (rc == 0)
        rc = number(r, COL_THROUGHPUT, 0, IMPORT_SPEED_MAX, &m.throughput);
    if (rc == 0)
        rc = number(r, COL_WATTS, 0, IMPORT_WATTS_MAX * m.key.n_gpus, &m.watts);
    if (rc == 0)
        rc = whole(r, COL_FITS, 0, 1, 1, &fits);
    if (rc == 0)
        rc = number(r, COL_TIME, 0, 1e11, &m.time_s);
    if (rc == 0)
        rc = number(r, COL_DURATION_S, 0, 1e10, &m.duration_s);
    if (rc == 0)
        rc = number(r, COL_NOISE, 0, 10, &m.noise);
    if (rc < 0)
        return rc;
    m.fits = fits == 1;
    if (isnan(m.time_s))
        m.time_s = 0;
    rc = check_values(r, &m);
    if (rc == 0)
        *draft_add(r->d, m.key.workload, m.key.gpu_type, m.key.neighbour) = m;
    return rc;
}

int csv_read(struct draft *d, const struct draft_text *in, struct progress *p, struct err *e)
{
    struct csv_reader r = { .d = d, .e = e };
    int rc = csv_open(&r.csv, &d->arena, in->name, in->text, in->len, e);

    if (rc == 0)
        rc = open_columns(&r);
    while (rc == 0 && (rc = csv_next(&r.csv, e)) > 0) {
        rc = read_row(&r);
        if (p != NULL && d->n_rows % 1024 == 0)
            progress_step(p, (double)(r.csv.at - in->text), (double)in->len);
    }
    if (rc == 0 && d->n_rows == 0)
        rc = err_set(e, EINVAL, "%s: not one measurement in it", in->name);
    return rc;
}

int import_csv_read(struct draft *d, const char *path, const char *workloads, struct progress *p,
                    struct err *e)
{
    struct draft_text in = { 0 };
    char digest[65];
    int rc = draft_describe(d, workloads, e);

    if (rc == 0)
        rc = draft_load(d, path, &in, e);
    if (rc < 0)
        return rc;
    file_digest(in.text, in.len, digest);
    draft_begin_part(d, "csv", path, digest);
    rc = csv_read(d, &in, p, e);
    return rc < 0 ? rc : draft_check(d, e);
}

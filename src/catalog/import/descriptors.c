#include "catalog/import/descriptors.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/csv.h"
#include "base/err.h"
#include "catalog/workload.h"

#define ROWS_MAX 1000000    // as many workloads as anybody has described, a thousand times

/* Set every feature of the record; the name is set by the caller, afterwards, because
 * setting a batch size renames.
 */
static int read_features(struct arena *a, const struct csv *c, int name_column, struct workload *w,
                         struct err *e)
{
    for (int i = 0; i < c->n_columns; i++) {
        if (i == name_column || c->field[i].len == 0)
            continue;
        if (workload_set(a, w, c->column[i], c->field[i], e) < 0)
            return err_prefix(e, "%s:%d", c->name, c->line);
    }
    return 0;
}

/* A name that states a batch size must agree with the column of that name. */
static int check_batch(const struct csv *c, struct workload *w, struct err *e)
{
    double batch;

    workload_name_split(w->name, &batch);
    if (isnan(batch))
        return 0;
    if (!isnan(w->batch) && w->batch != batch)
        return err_set(e, EINVAL, "%s:%d: '%.80s' and batch %g disagree; correct one of them",
                       c->name, c->line, w->name, w->batch);
    w->batch = batch;
    return 0;
}

static int read_row(struct arena *a, const struct csv *c, int name_column, struct workload *w,
                    const char **key, struct err *e)
{
    int key_column = name_column >= 0 ? name_column : csv_column(c, "family");
    struct slice text = c->field[key_column];
    int rc;

    if (!text_is_name(text))
        return err_set(e, EINVAL, "%s:%d: %s: want 1 to 200 printable bytes of UTF-8", c->name,
                       c->line, name_column >= 0 ? "name" : "family");
    workload_init(w, NULL);
    rc = read_features(a, c, name_column, w, e);
    if (rc < 0)
        return rc;
    *key = arena_strndup(a, text.at, text.len);
    w->name = *key;
    return name_column >= 0 ? check_batch(c, w, e) : 0;
}

/* Columns are checked before rows, so that a file without rows is checked as well. */
static int check_columns(struct arena *a, const struct csv *c, int name_column, struct err *e)
{
    struct workload w;
    int family;

    workload_init(&w, NULL);
    for (int i = 0; i < c->n_columns; i++) {
        if (i == name_column || slice_is(c->column[i], "inference"))
            continue;
        if (name_column < 0 && slice_is(c->column[i], "batch"))
            return err_set(e, EINVAL,
                           "%s:%d: a batch size belongs to a workload, not to a family; "
                           "add a 'name' column or drop 'batch'",
                           c->name, c->line);
        if (workload_set(a, &w, c->column[i], (struct slice){ "", 0 }, e) < 0)
            return err_prefix(e, "%s:%d", c->name, c->line);
    }
    return name_column >= 0 ? 0 : csv_require(c, "family", &family, e);
}

static int read_rows(struct arena *a, struct csv *c, struct descriptors *out, struct err *e)
{
    int name_column = csv_column(c, "name");
    int cap = 0, rc = check_columns(a, c, name_column, e);

    if (rc < 0)
        return rc;
    out->is_by_name = name_column >= 0;
    while ((rc = csv_next(c, e)) > 0) {
        const char *key = NULL;

        if (out->n_rows == ROWS_MAX)
            return err_set(e, EFBIG, "%s:%d: more than %d rows", c->name, c->line, ROWS_MAX);
        ARENA_GROW(a, out->rows, out->n_rows, cap);
        rc = read_row(a, c, name_column, &out->rows[out->n_rows], &key, e);
        if (rc < 0)
            return rc;
        if (map_get(&out->by_key, key) >= 0)
            return err_set(e, EINVAL, "%s:%d: '%.80s' is described twice; keep one", c->name,
                           c->line, key);
        map_set(&out->by_key, key, out->n_rows++);
    }
    return rc;
}

int descriptors_read(struct arena *a, const char *name, const char *text, size_t len,
                     struct descriptors *out, struct err *e)
{
    struct csv csv;
    int rc;

    *out = (struct descriptors){ 0 };
    rc = csv_open(&csv, a, name, text, len, e);
    return rc < 0 ? rc : read_rows(a, &csv, out, e);
}

void descriptors_release(struct descriptors *d)
{
    map_release(&d->by_key);
}

static bool apply_builtin(struct arena *a, const char *family, double batch, struct workload *out)
{
    if (workload_builtin(a, family, batch, out, NULL) < 0)
        return false;
    out->family = family;
    return true;
}

bool descriptors_apply(struct arena *a, const struct descriptors *d, const char *name,
                       struct workload *out)
{
    double batch;
    struct slice model = workload_name_split(name, &batch);
    const char *family = arena_strndup(a, model.at, model.len);
    int row = d != NULL ? map_get(&d->by_key, d->is_by_name ? name : family) : -1;
    bool is_found = row >= 0;

    if (is_found)
        *out = d->rows[row];
    else if (d != NULL || !(is_found = apply_builtin(a, family, batch, out)))
        workload_init(out, name);
    if (out->family == NULL)
        out->family = family;
    if (!is_found || !d || !d->is_by_name)
        out->batch = batch;
    out->name = name;
    return is_found;
}

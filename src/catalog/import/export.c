#include "catalog/import/export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/text/words.h"
#include "catalog/workload.h"
#include "store/store.h"

struct export
{
    struct arena arena;
    struct map_u64 types, workloads;    // ids in the store to names
    const char **names;
    int n_names, cap_names;
    struct buf *out;
    struct err *e;
};

static void add_name(struct export *x, struct map_u64 *by_id, int64_t id, const char *name)
{
    GROW(x->names, x->n_names, x->cap_names);
    x->names[x->n_names] = arena_strdup(&x->arena, name);
    map_u64_set(by_id, (uint64_t)id, x->n_names++);
}

static const char *find_name(const struct export *x, const struct map_u64 *by_id, int64_t id)
{
    int i = map_u64_get(by_id, (uint64_t)id);

    return i >= 0 ? x->names[i] : NULL;
}

/* A field, in quotes where the reader would not see it as it is. */
static int put_text(struct buf *out, const char *s)
{
    int rc;

    if (s == NULL)
        return 0;
    if (s[0] != '#' && strpbrk(s, ",\"\r\n") == NULL)
        return buf_puts(out, s);
    rc = buf_puts(out, "\"");
    for (; *s != '\0' && rc == 0; s++)
        rc = *s == '"' ? buf_puts(out, "\"\"") : buf_append(out, s, 1);
    return rc == 0 ? buf_puts(out, "\"") : rc;
}

/* Nothing for NaN. */
static int put_comma_number(struct buf *out, double x)
{
    int rc = buf_puts(out, ",");

    return rc == 0 && !isnan(x) ? words_put_number(out, x) : rc;
}

static int put_comma_text(struct buf *out, const char *s)
{
    int rc = buf_puts(out, ",");

    return rc == 0 ? put_text(out, s) : rc;
}

static int too_large(struct export *x, int rc)
{
    if (rc == 0)
        return 0;
    return err_set(x->e, EFBIG, "the export would be larger than %zu MiB", x->out->max >> 20);
}

static int note_type(void *self, const struct row_gpu_type *r)
{
    struct export *x = self;

    add_name(x, &x->types, r->id, r->name);
    return 0;
}

static int note_workload(void *self, const struct row_workload *r)
{
    struct export *x = self;

    add_name(x, &x->workloads, r->id, r->name);
    return 0;
}

static int put_measurement(void *self, const struct row_measurement *r)
{
    struct export *x = self;
    struct buf *out = x->out;
    const char *workload = find_name(x, &x->workloads, r->workload);
    const char *type = find_name(x, &x->types, r->gpu_type);
    const char *neighbour = r->neighbour != 0 ? find_name(x, &x->workloads, r->neighbour) : NULL;
    int rc;

    if (workload == NULL || type == NULL || (r->neighbour != 0 && neighbour == NULL))
        return err_set(x->e, EINVAL,
                       "measurement %" PRId64 " names a workload or GPU type that is "
                       "not in the store; restore a copy",
                       r->id);
    rc = put_text(out, workload);
    rc = rc != 0 ? rc : put_comma_text(out, type);
    rc = rc != 0 ? rc : put_comma_text(out, neighbour);
    rc = rc != 0 ? rc : buf_printf(out, ",%d,%d", r->n_gpus, r->is_spread);
    rc = rc != 0 ? rc : put_comma_number(out, r->limit_w);
    rc = rc != 0 ? rc : put_comma_number(out, r->throughput);
    rc = rc != 0 ? rc : put_comma_number(out, r->watts);
    rc = rc != 0 ? rc : buf_printf(out, ",%d", r->fits);
    rc = rc != 0 ? rc : put_comma_number(out, r->time_s != 0 ? r->time_s : (double)NAN);
    rc = rc != 0 ? rc : put_comma_number(out, r->duration_s);
    rc = rc != 0 ? rc : put_comma_number(out, r->noise);
    rc = rc != 0 ? rc : buf_puts(out, "\n");
    return too_large(x, rc);
}

int catalog_export(struct store *s, struct buf *out, struct err *e)
{
    struct export x = { .out = out, .e = e };
    int rc;

    arena_init(&x.arena);
    rc = too_large(&x, buf_puts(out, "workload,gpu,neighbour,n_gpus,spread,limit_w,throughput,"
                                     "watts,fits,time,duration_s,noise\n"));
    if (rc == 0)
        rc = store_each_gpu_type(s, note_type, &x, e);
    if (rc == 0)
        rc = store_each_workload(s, note_workload, &x, e);
    if (rc == 0)
        rc = store_each_measurement(s, 0, put_measurement, &x, e);
    map_u64_release(&x.types);
    map_u64_release(&x.workloads);
    arena_release(&x.arena);
    free(x.names);
    return rc;
}

static int put_workload(void *self, const struct row_workload *r)
{
    struct export *x = self;
    int rc = put_text(x->out, r->name);

    rc = rc != 0 ? rc : put_comma_number(x->out, r->batch);
    rc = rc != 0 ? rc : buf_printf(x->out, ",%d", r->is_inference);
    rc = rc != 0 ? rc : put_comma_text(x->out, r->family);
    rc = rc != 0 ? rc : put_comma_text(x->out, r->task);
    rc = rc != 0 ? rc : put_comma_text(x->out, r->dataset);
    for (int i = 0; i < WORKLOAD_NUMBERS && rc == 0; i++)
        rc = put_comma_number(x->out, r->number[i]);
    rc = rc != 0 ? rc : buf_puts(x->out, "\n");
    return too_large(x, rc);
}

int catalog_export_workloads(struct store *s, struct buf *out, struct err *e)
{
    struct export x = { .out = out, .e = e };
    int rc = buf_puts(out, "name,batch,inference,family,task,dataset");

    for (int i = 0; i < WORKLOAD_NUMBERS && rc == 0; i++)
        rc = buf_printf(out, ",%s", workload_number_names[i]);
    rc = rc != 0 ? rc : buf_puts(out, "\n");
    rc = too_large(&x, rc);
    return rc == 0 ? store_each_workload(s, put_workload, &x, e) : rc;
}

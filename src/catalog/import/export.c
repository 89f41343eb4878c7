/* export.c - the catalog as CSV (docs/formats/measurements.md): what the importers read. */
#include "catalog/import/import.h"

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
    struct map_u64 types, workloads, campaigns;    // ids in the store to names
    bool has_campaigns;                            // else there is no column for them
    const char **names;
    int n_names, cap_names;
    struct buf *out;
    int rc;    // not 0: something did not fit
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

/* A field, in quotes where the reader would not see it as it is; nothing for NULL. */
static void put_text(struct export *x, const char *s)
{
    if (s == NULL)
        return;
    if (s[0] != '#' && strpbrk(s, ",\"\r\n") == NULL) {
        x->rc |= buf_puts(x->out, s);
        return;
    }
    x->rc |= buf_puts(x->out, "\"");
    for (; *s != '\0'; s++)
        x->rc |= *s == '"' ? buf_puts(x->out, "\"\"") : buf_append(x->out, s, 1);
    x->rc |= buf_puts(x->out, "\"");
}

static void put_comma_text(struct export *x, const char *s)
{
    x->rc |= buf_puts(x->out, ",");
    put_text(x, s);
}

/* Nothing for NaN. */
static void put_comma_number(struct export *x, double v)
{
    x->rc |= buf_puts(x->out, ",");
    if (!isnan(v))
        x->rc |= words_put_number(x->out, v);
}

static int end_line(struct export *x)
{
    x->rc |= buf_puts(x->out, "\n");
    if (x->rc == 0)
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

static int note_campaign(void *self, const struct row_campaign *r)
{
    struct export *x = self;

    add_name(x, &x->campaigns, r->id, r->name);
    x->has_campaigns = true;
    return 0;
}

static int put_measurement(void *self, const struct row_measurement *r)
{
    struct export *x = self;
    const char *workload = find_name(x, &x->workloads, r->workload);
    const char *type = find_name(x, &x->types, r->gpu_type);
    const char *neighbour = r->neighbour != 0 ? find_name(x, &x->workloads, r->neighbour) : NULL;

    const char *campaign = r->campaign != 0 ? find_name(x, &x->campaigns, r->campaign) : NULL;

    if (workload == NULL || type == NULL || (r->neighbour != 0 && neighbour == NULL) ||
        (r->campaign != 0 && campaign == NULL))
        return err_set(x->e, EINVAL,
                       "measurement %" PRId64 " names a workload, GPU type or campaign that is "
                       "not in the store; restore a copy",
                       r->id);
    put_text(x, workload);
    put_comma_text(x, type);
    put_comma_text(x, neighbour);
    put_comma_number(x, r->n_gpus);
    put_comma_number(x, r->is_spread);
    put_comma_number(x, r->limit_w);
    put_comma_number(x, r->throughput);
    put_comma_number(x, r->watts);
    put_comma_number(x, r->fits);
    put_comma_number(x, r->time_s != 0 ? r->time_s : (double)NAN);
    put_comma_number(x, r->duration_s);
    put_comma_number(x, r->noise);
    if (x->has_campaigns)
        put_comma_text(x, campaign);
    return end_line(x);
}

int catalog_export(struct store *s, struct buf *out, struct err *e)
{
    struct export x = { .out = out, .e = e };
    int rc;

    arena_init(&x.arena);
    rc = store_each_campaign(s, note_campaign, &x, e);
    x.rc = buf_puts(out, "workload,gpu,neighbour,n_gpus,spread,limit_w,throughput,watts,fits,time,"
                         "duration_s,noise");
    if (x.has_campaigns)
        put_comma_text(&x, "campaign");
    if (rc == 0)
        rc = end_line(&x);
    if (rc == 0)
        rc = store_each_gpu_type(s, note_type, &x, e);
    if (rc == 0)
        rc = store_each_workload(s, note_workload, &x, e);
    if (rc == 0)
        rc = store_each_measurement(s, 0, put_measurement, &x, e);
    map_u64_release(&x.types);
    map_u64_release(&x.workloads);
    map_u64_release(&x.campaigns);
    arena_release(&x.arena);
    free(x.names);
    return rc;
}

static int put_workload(void *self, const struct row_workload *r)
{
    struct export *x = self;

    put_text(x, r->name);
    put_comma_number(x, r->batch);
    put_comma_number(x, r->is_inference);
    put_comma_text(x, r->family);
    put_comma_text(x, r->task);
    put_comma_text(x, r->dataset);
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        put_comma_number(x, r->number[i]);
    put_comma_text(x, r->precision);
    put_comma_number(x, r->needs_capability > 0 ? r->needs_capability : (double)NAN);
    return end_line(x);
}

int catalog_export_workloads(struct store *s, struct buf *out, struct err *e)
{
    struct export x = { .out = out, .e = e };

    x.rc = buf_puts(out, "name,batch,inference,family,task,dataset");
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        put_comma_text(&x, workload_number_names[i]);
    buf_puts(out, ",precision,needs_capability");
    int rc = end_line(&x);
    return rc == 0 ? store_each_workload(s, put_workload, &x, e) : rc;
}

/* A catalog from its store: rows in, checked as whoever wrote them might have been wrong. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/inner.h"
#include "store/store.h"

/* Rows are taken in batches: while one waits for its cell to come from memory, which is
 * most of its time, the next ones wait as well.
 */
enum { LOAD_BATCH = 16 };

struct loader {
    struct catalog *c;
    struct err *e;
    struct measurement batch[LOAD_BATCH];
    int64_t row[LOAD_BATCH];    // where each of the batch is in the store
    int n_batch;
};

static int check_name(const char *what, int64_t row, const char *name, struct err *e)
{
    if (name != NULL && text_is_name(slice_of(name)))
        return 0;
    return err_set(e, EINVAL, "%s %" PRId64 " has no proper name; restore a copy", what, row);
}

static double known_or(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* The lowest power limit is no measurement: the store does not keep it, the cluster file or the
 * built-in table tell it anew. The table also tells rates that an older version did not keep.
 */
static int load_type(void *self, const struct row_gpu_type *r)
{
    static const struct gpu_type nothing;
    const struct gpu_type *found = r->name != NULL ? gpu_type_builtin(r->name) : NULL;
    const struct gpu_type *builtin = found != NULL ? found : &nothing;
    struct gpu_type t = {
        .name = r->name,
        .title = r->title,
        .source = r->source,
        .peak_fp32_flops = r->peak_fp32_flops,
        .peak_tf32_flops = known_or(r->peak_tf32_flops, builtin->peak_tf32_flops),
        .peak_fp16_flops = r->peak_fp16_flops,
        .peak_fp8_flops = known_or(r->peak_fp8_flops, builtin->peak_fp8_flops),
        .peak_int8_flops = known_or(r->peak_int8_flops, builtin->peak_int8_flops),
        .bandwidth_bytes_s = r->bandwidth_bytes_s,
        .mem_bytes = r->mem_bytes,
        .launch_s = r->launch_s,
        .idle_w = r->idle_w,
        .sleep_w = r->sleep_w,
        .cap_w = r->cap_w,
        .limit_low_w = builtin->limit_low_w,
        .year = r->year,
        .share_max = r->share_max == 1 ? 1 : 0,
        .capability = r->capability > 0 ? r->capability : builtin->capability,
        .sharing = sharing_of_number(r->sharing),
    };

    struct loader *l = self;
    int rc = check_name("GPU type", r->id, r->name, l->e);

    return rc < 0 ? rc : catalog_append_type(l->c, &t, r->id, l->e);
}

static int load_workload(void *self, const struct row_workload *r)
{
    struct loader *l = self;
    struct workload w;
    int rc = check_name("workload", r->id, r->name, l->e);

    if (rc < 0)
        return rc;
    workload_init(&w, r->name);
    w.batch = r->batch;
    w.is_inference = r->is_inference;
    w.family = r->family;
    w.task = r->task;
    w.dataset = r->dataset;
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        workload_set_number(&w, i, r->number[i]);
    if (r->precision != NULL)
        precision_read(slice_of(r->precision), &w.precision, NULL);
    w.needs_capability = r->needs_capability > 0 ? r->needs_capability : 0;
    workload_doubt(&w);
    return catalog_append_workload(l->c, &w, r->id, l->e);
}

static int load_campaign(void *self, const struct row_campaign *r)
{
    struct loader *l = self;
    int rc = check_name("campaign", r->id, r->name, l->e);

    if (rc < 0)
        return rc;
    return catalog_append_campaign(l->c, r->name, sharing_of_number(r->sharing), r->id, l->e);
}

/* The index of row 'id' among 'n' ascending ids, or -1. Ids are given out from 1
 * without gaps, so the first guess is right in every store that we wrote.
 */
static int index_of(const int64_t *ids, int n, int64_t id)
{
    int low = 0, high = n - 1;

    if (id >= 1 && id <= n && ids[id - 1] == id)
        return (int)id - 1;
    while (low <= high) {
        int middle = low + (high - low) / 2;

        if (ids[middle] == id)
            return middle;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

/* The cell that a row's ids mean; false: one of them is not in the store. */
static bool find_cell(const struct catalog *c, int64_t workload, int64_t type, int64_t neighbour,
                      struct cell_key *out)
{
    out->workload = index_of(c->workload_row, c->n_workloads, workload);
    out->gpu_type = index_of(c->type_row, c->n_types, type);
    out->neighbour = neighbour != 0 ? index_of(c->workload_row, c->n_workloads, neighbour) : -1;
    return out->workload >= 0 && out->gpu_type >= 0 && (neighbour == 0 || out->neighbour >= 0);
}

/* -1: none. The site's own is the first, with row 0. */
static int find_campaign(const struct catalog *c, int64_t id)
{
    return id == 0 ? CATALOG_SITE : index_of(c->campaign_row, c->n_campaigns, id);
}

static int load_batch(struct loader *l)
{
    struct catalog *c = l->c;
    uint64_t key[LOAD_BATCH];

    for (int i = 0; i < l->n_batch; i++) {
        key[i] = catalog_cell_key(c, l->batch[i].key);
        map_u64_prefetch(&c->cell_by_key, key[i]);
    }
    for (int i = 0; i < l->n_batch; i++) {
        int cell = map_u64_get(&c->cell_by_key, key[i]);

        if (cell < 0)
            continue;
        __builtin_prefetch(&c->cells[cell], 1);
        __builtin_prefetch((char *)(&c->cells[cell] + 1) - 1, 1);    // it may span two lines
    }
    for (int i = 0; i < l->n_batch; i++) {
        if (catalog_add_measurement(c, &l->batch[i], l->e) < 0)
            return err_prefix(l->e, "measurement %" PRId64, l->row[i]);
    }
    l->n_batch = 0;
    return 0;
}

static double known(double v)
{
    return isfinite(v) ? v : 0;
}

static int load_measurement(void *self, const struct row_measurement *r)
{
    struct loader *l = self;
    struct measurement *m = &l->batch[l->n_batch];

    *m = (struct measurement){
        .key = { .n_gpus = r->n_gpus, .is_spread = r->is_spread },
        .fits = r->fits,
        .throughput = r->throughput,
        .watts = r->watts,
        .time_s = r->time_s,
        .duration_s = r->duration_s,
        .noise = r->noise,
        .ln_pace = known(r->ln_pace),
        .ln_undone = known(r->ln_undone),
        .seen = { .ln_speed = known(r->seen_ln_speed),
                  .noise = known(r->seen_noise),
                  .ln_law_w = known(r->law_ln_watts),
                  .ln_watts = known(r->seen_ln_watts),
                  .watts_noise = known(r->seen_watts_noise) },
    };
    if (!find_cell(l->c, r->workload, r->gpu_type, r->neighbour, &m->key))
        return err_set(l->e, EINVAL,
                       "measurement %" PRId64 " names a workload or GPU type that is "
                       "not in the store; restore a copy",
                       r->id);
    if (r->limit_w < 0 || r->limit_w > CATALOG_LIMIT_W_MAX)
        return err_set(l->e, EINVAL,
                       "measurement %" PRId64 " has a power limit of %g W: want up to %d; "
                       "restore a copy",
                       r->id, r->limit_w, CATALOG_LIMIT_W_MAX);
    m->key.limit_w = isnan(r->limit_w) ? 0 : (int)r->limit_w;
    m->key.campaign = find_campaign(l->c, r->campaign);
    if (m->key.campaign < 0)
        return err_set(l->e, EINVAL,
                       "measurement %" PRId64 " names a campaign that is not in the store; "
                       "restore a copy",
                       r->id);
    l->row[l->n_batch++] = r->id;
    return l->n_batch == LOAD_BATCH ? load_batch(l) : 0;
}

static int load_all(struct loader *l, struct store *s)
{
    int rc = store_each_gpu_type(s, load_type, l, l->e);

    if (rc == 0)
        rc = store_each_workload(s, load_workload, l, l->e);
    if (rc == 0)
        rc = store_each_campaign(s, load_campaign, l, l->e);
    if (rc == 0)
        rc = store_each_observation(s, load_measurement, l, l->e);
    if (rc == 0)
        rc = load_batch(l);
    return rc;
}

int catalog_load(struct catalog *c, struct store *s, struct err *e)
{
    struct err unasked = { 0 };
    struct loader l = { .c = c, .e = e != NULL ? e : &unasked };
    int rc = store_hold(s, l.e);

    assert(c->store == NULL);
    if (rc == 0) {
        rc = load_all(&l, s);
        store_let_go(s);
    }
    if (rc == 0 && store_is_writable(s))
        c->store = s;
    if (rc < 0)
        store_blame(s, l.e);
    return rc;
}

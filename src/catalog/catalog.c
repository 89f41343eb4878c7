#include "catalog/catalog.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "catalog/inner.h"
#include "store/store.h"

void catalog_init(struct catalog *c)
{
    *c = (struct catalog){ .n_settings = 1 };    // setting 0: a plain cell
    arena_init(&c->arena);
    int rc = catalog_append_campaign(c, CATALOG_SITE_NAME, SHARING_UNKNOWN, 0, NULL);
    assert(rc == 0);
}

void catalog_release(struct catalog *c)
{
    arena_release(&c->arena);
    map_release(&c->type_by_name);
    map_release(&c->workload_by_name);
    map_u64_release(&c->cell_by_key);
    map_u64_release(&c->setting_by_key);
    free(c->types);
    free(c->workloads);
    free(c->cells);
    free(c->first_cell);
    free(c->next_cell);
    free(c->type_drift);
    free(c->workload_drift);
    free(c->profile);
    free(c->type_row);
    free(c->workload_row);
    free(c->campaigns);
    free(c->campaign_row);
    free(c->campaign_sharing);
    *c = (struct catalog){ 0 };
}

int catalog_begin(struct catalog *c, struct err *e)
{
    if (!c->store)
        return 0;
    if (store_is_begun(c->store)) {
        c->n_joined++;
        return 0;
    }
    int rc = store_begin(c->store, e);
    if (rc < 0)
        return rc;
    rc = catalog_resync(c, e);
    return rc < 0 ? catalog_end(c, rc, e) : 0;
}

int catalog_end(struct catalog *c, int rc, struct err *e)
{
    if (!c->store)
        return rc;
    if (c->n_joined > 0) {
        c->n_joined--;
    } else if (rc == 0) {
        rc = store_commit(c->store, e);
    } else {
        store_rollback(c->store);
    }
    if (rc < 0)
        catalog_doubt(c);
    return rc;
}

int catalog_find_type(const struct catalog *c, const char *name)
{
    return map_get(&c->type_by_name, name);
}

int catalog_find_type_alike(const struct catalog *c, const char *name)
{
    const struct gpu_type *builtin = gpu_type_builtin(name);
    int found = catalog_find_type(c, name);

    for (int i = 0; i < c->n_types && found < 0; i++)
        if (text_alike(c->types[i].name, name))
            found = i;
    for (int i = 0; builtin && i < c->n_types && found < 0; i++)
        if (gpu_type_builtin(c->types[i].name) == builtin)
            found = i;
    return found;
}

int catalog_find_workload(const struct catalog *c, const char *name)
{
    return map_get(&c->workload_by_name, name);
}

int catalog_find_workload_alike(const struct catalog *c, const char *name)
{
    int found = catalog_find_workload(c, name);

    for (int i = 0; i < c->n_workloads && found < 0; i++)
        if (text_alike(c->workloads[i].name, name))
            found = i;
    return found;
}

/* ---- keys ----------------------------------------------------------------
 *
 * A cell's key is exact, not a digest: workload 22 bits, neighbour + 1 22, type 8,
 * setting 12. Settings (gang size, spread, power limit, campaign) are few and interned, and
 * nearly every cell has setting 0, which needs no lookup.
 */

static uint64_t setting_key(struct cell_key k)
{
    return (uint64_t)k.campaign << 48 | (uint64_t)k.n_gpus << 32 | (uint64_t)k.limit_w << 1 |
           k.is_spread;
}

/* The setting's number, or -1 when it was never met. */
static int setting_find(const struct catalog *c, struct cell_key k)
{
    if (cell_key_is_plain(&k) && !k.is_spread)
        return 0;
    return map_u64_get(&c->setting_by_key, setting_key(k));
}

static uint64_t pack_key(int workload, int gpu_type, int neighbour, int setting)
{
    return (uint64_t)workload << 42 | (uint64_t)(neighbour + 1) << 20 | (uint64_t)gpu_type << 12 |
           (uint64_t)setting;
}

uint64_t catalog_cell_key(const struct catalog *c, struct cell_key k)
{
    int setting = setting_find(c, k);

    return pack_key(k.workload, k.gpu_type, k.neighbour, setting < 0 ? 0 : setting);
}

static int setting_intern(struct catalog *c, struct cell_key k, int *setting, struct err *e)
{
    *setting = setting_find(c, k);
    if (*setting >= 0)
        return 0;
    if (c->n_settings == CATALOG_SETTINGS_MAX)
        return err_set(e, EOVERFLOW,
                       "more than %d different gang sizes, power limits and campaigns; round the "
                       "limits",
                       CATALOG_SETTINGS_MAX);
    *setting = c->n_settings++;
    map_u64_set(&c->setting_by_key, setting_key(k), *setting);
    return 0;
}

/* ---- types and workloads ---- */

static bool fill_text(struct catalog *c, const char **have, const char *more)
{
    if (*have != NULL || more == NULL)
        return false;
    *have = arena_strdup(&c->arena, more);
    return true;
}

static bool fill_number(double *have, double more)
{
    if (!isnan(*have) || isnan(more))
        return false;
    *have = more;
    return true;
}

typedef int write_type_f(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e);

/* Write what 't' states of type 'i', under the name that the type has here. */
static int write_type(struct catalog *c, int i, const struct gpu_type *t, write_type_f *f,
                      struct err *e)
{
    struct row_gpu_type r = {
        .name = c->types[i].name,
        .title = t->title,
        .source = t->source,
        .peak_fp32_flops = t->peak_fp32_flops,
        .peak_tf32_flops = t->peak_tf32_flops,
        .peak_fp16_flops = t->peak_fp16_flops,
        .peak_fp8_flops = t->peak_fp8_flops,
        .peak_int8_flops = t->peak_int8_flops,
        .bandwidth_bytes_s = t->bandwidth_bytes_s,
        .mem_bytes = t->mem_bytes,
        .launch_s = t->launch_s,
        .idle_w = t->idle_w,
        .sleep_w = t->sleep_w,
        .cap_w = t->cap_w,
        .year = t->year,
        .share_max = t->share_max,
        .capability = t->capability,
        .sharing = t->sharing,
    };

    return c->store != NULL ? f(c->store, &r, &c->type_row[i], e) : 0;
}

/* Append without a look at the store. */
int catalog_append_type(struct catalog *c, const struct gpu_type *t, int64_t row, struct err *e)
{
    int i = c->n_types;

    if (i == CATALOG_TYPES_MAX)
        return err_set(e, EOVERFLOW, "'%s' is one GPU type too many: a catalog takes %d", t->name,
                       CATALOG_TYPES_MAX);
    GROW_BESIDE(c->type_row, i, c->cap_types);    // three arrays that grow by the same steps
    GROW_BESIDE(c->type_drift, i, c->cap_types);
    GROW(c->types, i, c->cap_types);
    c->type_drift[i] = (struct drift_watch){ 0 };
    c->types[i] = *t;
    c->types[i].name = arena_strdup(&c->arena, t->name);
    c->types[i].title = arena_strdup(&c->arena, t->title);
    c->types[i].source = arena_strdup(&c->arena, t->source);
    c->types[i].sharing = sharing_after(SHARING_UNKNOWN, t->sharing);
    c->type_row[i] = row;
    map_set(&c->type_by_name, c->types[i].name, i);
    c->n_types++;
    return 0;
}

int catalog_describe_type(struct catalog *c, int index, const struct gpu_type *more, struct err *e)
{
    struct gpu_type *t = &c->types[index];
    bool has_changed = gpu_type_fill(t, more);

    has_changed |= fill_text(c, &t->title, more->title);
    has_changed |= fill_text(c, &t->source, more->source);
    if (!has_changed)
        return 0;
    c->descriptions++;
    return write_type(c, index, more, store_fill_gpu_type, e);
}

int catalog_add_type(struct catalog *c, const struct gpu_type *t, int *index, struct err *e)
{
    int known = catalog_find_type(c, t->name);
    int rc = known < 0 ? catalog_append_type(c, t, 0, e) : 0;

    if (rc < 0)
        return rc;
    *index = known >= 0 ? known : c->n_types - 1;
    return known >= 0 ? catalog_describe_type(c, known, t, e)
                      : write_type(c, *index, &c->types[*index], store_fill_gpu_type, e);
}

int catalog_set_type(struct catalog *c, const struct gpu_type *t, int *index, struct err *e)
{
    int known = catalog_find_type(c, t->name);
    int rc = known < 0 ? catalog_append_type(c, t, 0, e) : 0;

    if (rc < 0)
        return rc;
    *index = known >= 0 ? known : c->n_types - 1;
    if (known >= 0) {
        struct gpu_type *have = &c->types[known], old = *have;

        *have = *t;
        have->name = old.name;
        have->title = t->title ? arena_strdup(&c->arena, t->title) : old.title;
        have->source = t->source ? arena_strdup(&c->arena, t->source) : old.source;
        have->sharing = sharing_after(old.sharing, t->sharing);
        c->descriptions++;
    }
    return write_type(c, *index, known >= 0 ? t : &c->types[*index], store_put_gpu_type, e);
}

typedef int write_workload_f(struct store *s, const struct row_workload *r, int64_t *id,
                             struct err *e);

/* Write what 'w' states of workload 'i'. */
static int write_workload(struct catalog *c, int i, const struct workload *w, write_workload_f *f,
                          struct err *e)
{
    struct row_workload r = {
        .name = c->workloads[i].name,
        .batch = w->batch,
        .is_inference = w->is_inference,
        .family = w->family,
        .task = w->task,
        .dataset = w->dataset,
        .precision = precision_name(w->precision),
        .needs_capability = w->needs_capability,
    };

    for (int k = 0; k < WORKLOAD_FIGURES; k++)
        r.number[k] = workload_number(w, k);
    return c->store != NULL ? f(c->store, &r, &c->workload_row[i], e) : 0;
}

static bool fill_workload(struct catalog *c, struct workload *w, const struct workload *more)
{
    bool changed = false;

    changed |= fill_number(&w->batch, more->batch);
    changed |= fill_text(c, &w->family, more->family);
    changed |= fill_text(c, &w->task, more->task);
    changed |= fill_text(c, &w->dataset, more->dataset);
    if (!w->precision && more->precision) {
        w->precision = more->precision;
        changed = true;
    }
    if (!w->needs_capability && more->needs_capability) {
        w->needs_capability = more->needs_capability;
        changed = true;
    }
    for (int i = 0; i < WORKLOAD_FIGURES; i++) {
        double have = workload_number(w, i);

        if (fill_number(&have, workload_number(more, i))) {
            workload_set_number(w, i, have);
            changed = true;
        }
    }
    return changed;
}

/* Seven arrays of one length, which grow by the same steps. */
static void grow_workloads(struct catalog *c)
{
    GROW_BESIDE(c->workload_row, c->n_workloads, c->cap_workloads);
    GROW_BESIDE(c->first_cell, c->n_workloads, c->cap_workloads);
    GROW_BESIDE(c->workload_drift, c->n_workloads, c->cap_workloads);
    GROW_BESIDE(c->profile, c->n_workloads, c->cap_workloads);
    GROW(c->workloads, c->n_workloads, c->cap_workloads);
}

/* What 'w' states, under the name that the workload has here. */
static void put_workload(struct catalog *c, int i, const char *name, const struct workload *w)
{
    c->workloads[i] = *w;
    c->workloads[i].name = name;
    c->workloads[i].family = arena_strdup(&c->arena, w->family);
    c->workloads[i].task = arena_strdup(&c->arena, w->task);
    c->workloads[i].dataset = arena_strdup(&c->arena, w->dataset);
}

int catalog_append_workload(struct catalog *c, const struct workload *w, int64_t row, struct err *e)
{
    int i = c->n_workloads;

    if (i == CATALOG_WORKLOADS_MAX)
        return err_set(e, EOVERFLOW, "'%s' is one workload too many: a catalog takes %d", w->name,
                       CATALOG_WORKLOADS_MAX);
    if (!text_is_name(slice_of(w->name)))    // nobody could load it again
        return err_set(e, EINVAL, "a workload cannot be called '%.60s%s'", w->name,
                       strlen(w->name) > 60 ? "..." : "");
    grow_workloads(c);
    put_workload(c, i, arena_strdup(&c->arena, w->name), w);
    c->workload_row[i] = row;
    c->first_cell[i] = -1;
    c->workload_drift[i] = (struct drift_watch){ 0 };
    c->profile[i] = (struct profile_watch){ 0 };
    map_set(&c->workload_by_name, c->workloads[i].name, i);
    c->n_workloads++;
    return 0;
}

int catalog_add_workload(struct catalog *c, const struct workload *w, int *index, struct err *e)
{
    int known = catalog_find_workload(c, w->name);
    int rc = known < 0 ? catalog_append_workload(c, w, 0, e) : 0;

    if (rc < 0)
        return rc;
    *index = known >= 0 ? known : c->n_workloads - 1;
    if (known >= 0 && !fill_workload(c, &c->workloads[known], w))
        return 0;
    c->descriptions += known >= 0;
    return write_workload(c, *index, w, store_fill_workload, e);
}

int catalog_set_workload(struct catalog *c, const struct workload *w, int *index, struct err *e)
{
    int known = catalog_find_workload(c, w->name);
    int rc = known < 0 ? catalog_append_workload(c, w, 0, e) : 0;

    if (rc < 0)
        return rc;
    *index = known >= 0 ? known : c->n_workloads - 1;
    if (known >= 0) {
        struct workload old = c->workloads[known];

        put_workload(c, known, old.name, w);
        fill_workload(c, &c->workloads[known], &old);
        c->profile[known] = (struct profile_watch){ 0 };
        c->descriptions++;
    }
    return write_workload(c, *index, w, store_put_workload, e);
}

/* Take one reading into the mean of 'n'; false: it counts no more, or somebody else told it. */
static bool take_reading(double *have, unsigned char *n, double seen)
{
    if (isnan(seen) || (!isnan(*have) && (*n == 0 || *n == PROFILE_WINDOWS)))
        return false;
    if (isnan(*have)) {
        *have = 0;
        *n = 0;
    }
    *have += (seen - *have) / ++*n;
    return true;
}

/* The same of an activity; '*is_news': what neighbours cost may be another matter now. */
static bool take_activity(struct profile_watch *p, int i, double *have, double seen, bool *is_news)
{
    if (!take_reading(have, &p->n[i], seen))
        return false;
    if (p->n[i] == 1 || fabs(*have - (double)p->told[i]) > PROFILE_MOVED) {
        p->told[i] = (float)*have;
        *is_news = true;
    }
    return true;
}

int catalog_take_profile(struct catalog *c, int workload, const struct solo_profile *seen,
                         struct err *e)
{
    struct workload *w = &c->workloads[workload], told;
    struct profile_watch *p = &c->profile[workload];
    unsigned char *n = p->n;
    bool is_news = false;
    bool has_changed = take_activity(p, 0, &w->gpu_activity, seen->gpu_activity, &is_news);

    has_changed |= take_activity(p, 1, &w->mem_activity, seen->mem_activity, &is_news);
    c->descriptions += is_news;
    if (seen->watts >= 1)    // a sensor that says less is none
        has_changed |= take_reading(&w->solo_watts, &n[2], seen->watts);
    if (seen->mem_used_bytes >= 1)
        has_changed |= take_reading(&w->mem_used_bytes, &n[3], seen->mem_used_bytes);
    if (!has_changed)
        return 0;
    workload_init(&told, w->name);
    told.is_inference = w->is_inference;
    told.gpu_activity = w->gpu_activity;
    told.mem_activity = w->mem_activity;
    told.solo_watts = w->solo_watts;
    told.mem_used_bytes = w->mem_used_bytes;
    return write_workload(c, workload, &told, store_put_workload, e);
}

/* ---- campaigns ---- */

int catalog_find_campaign(const struct catalog *c, const char *name)
{
    for (int i = 0; i < c->n_campaigns; i++)
        if (strcmp(c->campaigns[i], name) == 0)
            return i;
    return -1;
}

int catalog_append_campaign(struct catalog *c, const char *name, enum sharing sharing, int64_t row,
                            struct err *e)
{
    int i = c->n_campaigns;

    if (i == CATALOG_CAMPAIGNS_MAX)
        return err_set(e, EOVERFLOW, "'%s' is one campaign too many: a catalog takes %d", name,
                       CATALOG_CAMPAIGNS_MAX);
    GROW_BESIDE(c->campaign_row, i, c->cap_campaigns);
    GROW_BESIDE(c->campaign_sharing, i, c->cap_campaigns);
    GROW(c->campaigns, i, c->cap_campaigns);
    c->campaigns[i] = arena_strdup(&c->arena, name);
    c->campaign_row[i] = row;
    c->campaign_sharing[i] = sharing_after(SHARING_UNKNOWN, sharing);
    c->n_campaigns++;
    return 0;
}

/* The site's own needs no row: what has no campaign is of it. */
static int write_campaign(struct catalog *c, int i, enum sharing said, struct err *e)
{
    if (c->store == NULL || i == CATALOG_SITE)
        return 0;
    return store_keep_campaign(c->store, c->campaigns[i], said, &c->campaign_row[i], e);
}

int catalog_add_campaign(struct catalog *c, const char *name, enum sharing sharing, int *index,
                         struct err *e)
{
    int known = catalog_find_campaign(c, name);
    int rc = known < 0 ? catalog_append_campaign(c, name, sharing, 0, e) : 0;

    if (rc < 0)
        return rc;
    *index = known < 0 ? c->n_campaigns - 1 : known;
    enum sharing *is = &c->campaign_sharing[*index], was = *is;
    *is = *index == CATALOG_SITE ? was : sharing_after(was, sharing);
    if (known >= 0 && *is == was)
        return 0;
    return write_campaign(c, *index, known < 0 ? *is : sharing, e);
}

/* ---- after a rollback ---- */

void catalog_doubt(struct catalog *c)
{
    c->is_doubtful = c->store != NULL;
}

int catalog_resync(struct catalog *c, struct err *e)
{
    int rc = 0;

    if (!c->is_doubtful)
        return 0;
    for (int i = 0; i < c->n_types && rc == 0; i++)
        rc = write_type(c, i, &c->types[i], store_fill_gpu_type, e);
    for (int i = 0; i < c->n_workloads && rc == 0; i++)
        rc = write_workload(c, i, &c->workloads[i], store_fill_workload, e);
    for (int i = 0; i < c->n_campaigns && rc == 0; i++)
        rc = write_campaign(c, i, c->campaign_sharing[i], e);
    c->is_doubtful = rc < 0;
    return rc;
}

/* ---- measurements ---- */

static int check_measurement(const struct measurement *m, struct err *e)
{
    if (m->key.n_gpus < 1 || m->key.n_gpus > CATALOG_GANG_MAX)
        return err_set(e, EINVAL, "a gang of %d GPUs: want 1 to %d", m->key.n_gpus,
                       CATALOG_GANG_MAX);
    if (m->key.limit_w < 0 || m->key.limit_w > CATALOG_LIMIT_W_MAX)
        return err_set(e, EINVAL, "a power limit of %d W: want 0 (default) to %d", m->key.limit_w,
                       CATALOG_LIMIT_W_MAX);
    if (!isnan(m->throughput) && !(m->throughput > 0 && isfinite(m->throughput)))
        return err_set(e, EINVAL, "a throughput of %g: want more than 0", m->throughput);
    if (!isnan(m->watts) && !(m->watts > 0 && isfinite(m->watts)))
        return err_set(e, EINVAL, "%g W: want more than 0", m->watts);
    if (!m->fits && !isnan(m->throughput))
        return err_set(e, EINVAL, "a throughput of %g where it does not fit", m->throughput);
    return 0;
}

/* The cell of 'key', made where absent. */
static int cell_intern(struct catalog *c, struct cell_key key, struct cell **out, struct err *e)
{
    int setting, i;
    uint64_t packed;
    int rc = setting_intern(c, key, &setting, e);

    if (rc < 0)
        return rc;
    packed = pack_key(key.workload, key.gpu_type, key.neighbour, setting);
    i = map_u64_get(&c->cell_by_key, packed);
    if (i < 0) {
        i = c->n_cells++;
        GROW_BESIDE(c->next_cell, i, c->cap_cells);
        GROW(c->cells, i, c->cap_cells);
        c->cells[i] = (struct cell){ .key = key };
        c->next_cell[i] = -1;
        if (key.campaign == CATALOG_SITE) {
            c->next_cell[i] = c->first_cell[key.workload];
            c->first_cell[key.workload] = i;
        }
        map_u64_set(&c->cell_by_key, packed, i);
    }
    *out = &c->cells[i];
    return 0;
}

/* How much more measurements differ than their noise says: Birge's ratio, squared. */
static double excess_of(const struct cell *c)
{
    int n = c->n_speed - c->n_past;

    return n > 1 ? fmax(1, c->speed_scatter / (n - 1)) : 1;
}

double cell_variance(const struct cell *c)
{
    assert(c->n_speed > 0);
    return excess_of(c) / c->speed_weight + c->n_behind * CATALOG_DRIFT * CATALOG_DRIFT;
}

/* What the mean from before a change still counts for, as a part of one measurement. */
#define PAST_WEIGHT 0.1

/* The speed has changed for good: what was known of it hardly counts any more. */
static void cell_restart(struct cell *cell, double weight, double time_s)
{
    cell->n_past = cell->n_speed;
    cell->speed_weight = PAST_WEIGHT * weight;
    cell->speed_scatter = 0;
    cell->n_watts = cell->n_watts > 0;
    cell->n_drifts += cell->n_drifts < UINT16_MAX;
    cell->drift_s = time_s;
}

/* Take in a speed; true: it has changed for good. */
static bool cell_add_speed(struct cell *cell, const struct measurement *m)
{
    double noise = m->noise > 0 ? fmax(m->noise, CATALOG_NOISE_MIN) : CATALOG_NOISE;
    double weight = 1 / (noise * noise);
    double ln_speed = log(m->throughput), off = ln_speed - cell->ln_speed;
    bool has_changed = false;

    if (cell->n_speed > 0)
        has_changed = cusum_add(&cell->drift, cell->n_speed - cell->n_past, excess_of(cell),
                                off / sqrt(noise * noise + 1 / cell->speed_weight));
    if (has_changed)
        cell_restart(cell, weight, m->time_s);
    cell->n_speed++;
    cell->n_behind = 0;
    cell->speed_weight += weight;
    cell->ln_speed += off * weight / cell->speed_weight;
    cell->ln_pace += (m->ln_pace - cell->ln_pace) * weight / cell->speed_weight;
    cell->ln_undone += (m->ln_undone - cell->ln_undone) * weight / cell->speed_weight;
    if (!has_changed)
        cell->speed_scatter += off * weight * (ln_speed - cell->ln_speed);
    return has_changed;
}

static void cell_add_limits(struct limit_sums *s, const struct measurement *m)
{
    const struct limit_reading *r = &m->seen;

    if (r->noise > 0) {
        double noise = fmax(r->noise, CATALOG_NOISE_MIN), weight = 1 / (noise * noise);
        s->weight += weight;
        s->x += weight * m->ln_pace;
        s->xx += weight * m->ln_pace * m->ln_pace;
        s->y += weight * r->ln_speed;
        s->xy += weight * m->ln_pace * r->ln_speed;
    }
    if (r->watts_noise > 0) {
        double noise = fmax(r->watts_noise, CATALOG_NOISE_MIN);
        s->watts_xx += r->ln_law_w * r->ln_law_w / (noise * noise);
        s->watts_xy += r->ln_law_w * r->ln_watts / (noise * noise);
    }
}

/* True: its speed has changed for good. */
static bool cell_add(struct cell *cell, const struct measurement *m)
{
    bool has_changed = !isnan(m->throughput) && cell_add_speed(cell, m);

    cell_add_limits(&cell->limits, m);
    if (!m->fits)
        cell->n_unfit++;
    if (!isnan(m->watts)) {
        cell->n_watts++;
        cell->ln_watts += (log(m->watts) - cell->ln_watts) / cell->n_watts;
    }
    if (m->time_s > cell->last_s)
        cell->last_s = m->time_s;
    return has_changed;
}

/* Cells of one type, or of one workload, that have to change before all of it is suspected. Of a
 * workload they must be on different types, of a type with different workloads: what changed is
 * what they have in common.
 */
enum { TYPE_CELLS = 3, WORKLOAD_CELLS = 2 };

/* Not those that have started again since 'since_s': they are what tells of the change. */
static void fall_behind(struct catalog *c, struct cell *cell, double since_s)
{
    if (cell->n_drifts > 0 && cell->drift_s >= since_s)
        return;
    cell->n_behind += cell->n_behind < UINT16_MAX;
    c->n_drifts++;
}

/* The speed of 'cell' has changed for good; perhaps its whole type has, or its workload. What
 * was measured of them before is less sure from now on; what is measured next is as good as ever.
 */
static void note_drift(struct catalog *c, const struct cell *cell, double time_s)
{
    struct cell_key k = cell->key;
    struct drift_watch *type = &c->type_drift[k.gpu_type];
    struct drift_watch *workload = &c->workload_drift[k.workload];

    if (drift_watch_note(type, k.workload, TYPE_CELLS, time_s))
        for (int i = 0; i < c->n_cells; i++)
            if (c->cells[i].key.gpu_type == k.gpu_type && c->cells[i].key.campaign == k.campaign)
                fall_behind(c, &c->cells[i], type->since_s);
    if (drift_watch_note(workload, k.gpu_type, WORKLOAD_CELLS, time_s))
        for (int i = c->first_cell[k.workload]; i >= 0; i = c->next_cell[i])
            fall_behind(c, &c->cells[i], workload->since_s);
}

/* In memory only: what catalog_load does for each row, a million times. */
int catalog_add_measurement(struct catalog *c, const struct measurement *m, struct err *e)
{
    struct cell *cell = NULL;
    int rc = check_measurement(m, e);

    if (rc == 0)
        rc = cell_intern(c, m->key, &cell, e);
    if (rc < 0)
        return rc;
    assert(cell);
    c->n_measurements++;
    if (m->key.campaign != CATALOG_SITE) {    // no decision rests on it, and nothing is derived
        cell_add(cell, m);
        return 0;
    }
    c->type_drift[m->key.gpu_type].n_seen++;
    c->workload_drift[m->key.workload].n_seen++;
    c->n_refits += cell->n_unfit > 0 && cell->n_speed == 0 && !isnan(m->throughput);
    if (cell_add(cell, m))
        note_drift(c, cell, m->time_s);
    return 0;
}

static void assert_key(const struct catalog *c, struct cell_key k)
{
    assert(k.workload >= 0 && k.workload < c->n_workloads);
    assert(k.gpu_type >= 0 && k.gpu_type < c->n_types);
    assert(k.neighbour >= -1 && k.neighbour < c->n_workloads);
    assert(k.campaign >= 0 && k.campaign < c->n_campaigns);
}

int catalog_record(struct catalog *c, const struct measurement *m, int64_t origin, struct err *e)
{
    int rc;

    assert_key(c, m->key);
    rc = catalog_add_measurement(c, m, e);
    if (rc < 0 || c->store == NULL)
        return rc;
    struct row_measurement r = {
        .workload = c->workload_row[m->key.workload],
        .gpu_type = c->type_row[m->key.gpu_type],
        .neighbour = m->key.neighbour >= 0 ? c->workload_row[m->key.neighbour] : 0,
        .n_gpus = m->key.n_gpus,
        .is_spread = m->key.is_spread,
        .fits = m->fits,
        .limit_w = m->key.limit_w > 0 ? m->key.limit_w : (double)NAN,
        .throughput = m->throughput,
        .watts = m->watts,
        .time_s = m->time_s,
        .duration_s = m->duration_s,
        .noise = m->noise > 0 ? fmax(m->noise, CATALOG_NOISE_MIN) : (double)NAN,
        .ln_pace = m->ln_pace,
        .ln_undone = m->ln_undone,
        .seen_ln_speed = m->seen.noise > 0 ? m->seen.ln_speed : (double)NAN,
        .seen_noise = m->seen.noise > 0 ? m->seen.noise : (double)NAN,
        .law_ln_watts = m->seen.watts_noise > 0 ? m->seen.ln_law_w : (double)NAN,
        .seen_ln_watts = m->seen.watts_noise > 0 ? m->seen.ln_watts : (double)NAN,
        .seen_watts_noise = m->seen.watts_noise > 0 ? m->seen.watts_noise : (double)NAN,
        .campaign = c->campaign_row[m->key.campaign],
        .origin = origin,
    };
    return store_add_measurement(c->store, &r, e);
}

const struct cell *catalog_cell(const struct catalog *c, struct cell_key key)
{
    int setting = setting_find(c, key);
    int i;

    if (setting < 0)
        return NULL;
    i = map_u64_get(&c->cell_by_key, pack_key(key.workload, key.gpu_type, key.neighbour, setting));
    return i >= 0 ? &c->cells[i] : NULL;
}

/* ---- what there is ---- */

static bool is_unfit(const struct cell *cell)
{
    return cell != NULL && cell->n_unfit > 0 && cell->n_speed == 0;
}

/* An unordered pair is counted at its smaller workload, or where its mirror is missing. */
static bool counts_as_unfit_pair(const struct catalog *c, const struct cell *cell)
{
    struct cell_key mirror = cell->key;

    if (cell->key.workload <= cell->key.neighbour)
        return true;
    mirror.workload = cell->key.neighbour;
    mirror.neighbour = cell->key.workload;
    return !is_unfit(catalog_cell(c, mirror));
}

static void summarise_cell(const struct catalog *c, const struct cell *cell,
                           struct catalog_summary *out)
{
    bool is_measured = cell->n_speed > 0;
    bool is_default = cell_key_is_default(&cell->key);

    if (cell->key.neighbour >= 0) {
        out->n_pairs += is_measured && is_default;
        out->n_unfit_pairs += is_default && is_unfit(cell) && counts_as_unfit_pair(c, cell);
    } else {
        out->n_isolated += is_measured && is_default;
        out->n_unfit_isolated += is_default && is_unfit(cell);
    }
    out->n_gangs += is_measured && cell->key.n_gpus > 1;
    out->n_limited += is_measured && cell->key.limit_w > 0;
    out->n_watts += cell->n_watts > 0;
}

void catalog_summarise(const struct catalog *c, struct catalog_summary *out)
{
    *out = (struct catalog_summary){
        .n_workloads = c->n_workloads,
        .n_types = c->n_types,
        .n_measurements = c->n_measurements,
    };
    for (int i = 0; i < c->n_cells; i++)
        summarise_cell(c, &c->cells[i], out);
}

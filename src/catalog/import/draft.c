#include "catalog/import/draft.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text/file.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/progress.h"
#include "store/store.h"

void draft_init(struct draft *d)
{
    *d = (struct draft){ 0 };
    arena_init(&d->arena);
    draft_set_campaign(d, NULL);
}

void draft_release(struct draft *d)
{
    free(d->types);
    free(d->workloads);
    free(d->campaigns);
    free(d->rows);
    map_release(&d->type_by_name);
    map_release(&d->workload_by_name);
    descriptors_release(&d->descriptors);
    arena_release(&d->arena);
}

int draft_type(struct draft *d, const char *name)
{
    const struct gpu_type *builtin;
    int i = map_get(&d->type_by_name, name);

    if (i >= 0)
        return i;
    i = d->n_types++;
    GROW(d->types, i, d->cap_types);
    builtin = gpu_type_builtin(name);
    if (builtin != NULL)
        d->types[i] = *builtin;
    else
        gpu_type_init(&d->types[i], name);
    d->types[i].name = arena_strdup(&d->arena, name);
    map_set(&d->type_by_name, d->types[i].name, i);
    return i;
}

int draft_workload(struct draft *d, const char *name)
{
    int i = map_get(&d->workload_by_name, name);

    if (i >= 0)
        return i;
    i = d->n_workloads++;
    GROW(d->workloads, i, d->cap_workloads);
    d->n_undescribed += !descriptors_apply(&d->arena, d->is_describing ? &d->descriptors : NULL,
                                           arena_strdup(&d->arena, name), &d->workloads[i]);
    map_set(&d->workload_by_name, d->workloads[i].name, i);
    return i;
}

int draft_campaign(struct draft *d, const char *name)
{
    for (int i = 0; i < d->n_campaigns; i++)
        if (strcmp(d->campaigns[i], name) == 0)
            return i;
    if (d->n_campaigns > CATALOG_CAMPAIGNS_MAX)    // no catalog takes them, and will say so
        return d->n_campaigns - 1;
    GROW(d->campaigns, d->n_campaigns, d->cap_campaigns);
    d->campaigns[d->n_campaigns] = arena_strdup(&d->arena, name);
    return d->n_campaigns++;
}

void draft_set_campaign(struct draft *d, const char *name)
{
    (void)draft_campaign(d, CATALOG_SITE_NAME);
    d->campaign = draft_campaign(d, name != NULL ? name : CATALOG_SITE_NAME);
}

void draft_set_sharing(struct draft *d, enum sharing sharing)
{
    d->sharing = sharing;
}

struct measurement *draft_add(struct draft *d, int workload, int type, int neighbour)
{
    GROW(d->rows, d->n_rows, d->cap_rows);
    d->rows[d->n_rows] = (struct measurement){
        .key = { .workload = workload,
                 .gpu_type = type,
                 .neighbour = neighbour,
                 .n_gpus = 1,
                 .campaign = d->campaign },
        .fits = true,
        .throughput = (double)NAN,
        .watts = (double)NAN,
        .duration_s = (double)NAN,
        .noise = (double)NAN,
    };
    if (d->n_parts > 0)
        d->part[d->n_parts - 1].n_rows++;
    return &d->rows[d->n_rows++];
}

void draft_begin_part(struct draft *d, const char *kind, const char *name)
{
    assert(d->n_parts < DRAFT_PARTS_MAX);
    d->part[d->n_parts++] =
        (struct draft_part){ .kind = kind, .name = name, .first_row = d->n_rows };
}

void draft_add_digest(struct draft *d, const struct draft_text *in)
{
    char *sum = d->part[d->n_parts - 1].digest;
    char both[128 + 1];

    file_digest(in->text, in->len, both + 64);
    if (sum[0] == '\0') {
        memcpy(sum, both + 64, 65);
        return;
    }
    memcpy(both, sum, 64);
    file_digest(both, 128, sum);
}

int draft_load(struct draft *d, const char *path, struct draft_text *out, struct err *e)
{
    out->name = path;
    return file_read_text(&d->arena, path, NULL, IMPORT_BYTES_MAX, &out->text, &out->len, e);
}

int draft_read_file(struct draft *d, const char *kind, const char *path, draft_read_f *read,
                    struct progress *p, struct err *e)
{
    struct draft_text in = { 0 };
    int rc = draft_load(d, path, &in, e);

    if (rc < 0)
        return rc;
    draft_begin_part(d, kind, path);
    draft_add_digest(d, &in);
    return read(d, &in, p, e);
}

int draft_describe(struct draft *d, const char *path, struct err *e)
{
    struct draft_text in;
    int rc;

    if (path == NULL)
        return 0;
    d->is_describing = true;
    rc = draft_load(d, path, &in, e);
    return rc < 0 ? rc : descriptors_read(&d->arena, in.name, in.text, in.len, &d->descriptors, e);
}

/* ---- writing ---- */

static int commit_names(struct draft *d, struct catalog *c, struct err *e)
{
    int rc = 0;

    d->type_at = ARENA_ARRAY(&d->arena, int, (size_t)d->n_types);
    d->workload_at = ARENA_ARRAY(&d->arena, int, (size_t)d->n_workloads);
    for (int i = 0; i < d->n_types && rc == 0; i++)
        rc = catalog_add_type(c, &d->types[i], &d->type_at[i], e);
    for (int i = 0; i < d->n_workloads && rc == 0; i++)
        rc = catalog_add_workload(c, &d->workloads[i], &d->workload_at[i], e);
    d->campaign_at = ARENA_ARRAY(&d->arena, int, (size_t)d->n_campaigns);
    for (int i = 0; i < d->n_campaigns; i++)
        d->campaign_at[i] = -1;    // added with its first row: what is known already adds none
    if (rc == -EOVERFLOW && e != NULL && d->n_parts > 0)
        err_prefix(e, "%s", d->part[0].name);
    return rc;
}

/* Of other campaigns, which rows of a CSV name, nothing is said. */
static enum sharing sharing_of(const struct draft *d, const struct catalog *c, int campaign)
{
    int known = catalog_find_campaign(c, d->campaigns[campaign]);

    if (campaign != d->campaign)
        return SHARING_UNKNOWN;
    if (d->sharing || (known >= 0 && c->campaign_sharing[known]))
        return d->sharing;
    return d->published;
}

static int commit_campaign(const struct draft *d, struct catalog *c, int campaign, struct err *e)
{
    return catalog_add_campaign(c, d->campaigns[campaign], sharing_of(d, c, campaign),
                                &d->campaign_at[campaign], e);
}

/* Row i, as the catalog of the last commit_names knows its cell. */
static int place_row(const struct draft *d, struct catalog *c, int i, struct measurement *out,
                     struct err *e)
{
    struct measurement m = d->rows[i];
    const int *campaign = &d->campaign_at[m.key.campaign];
    int rc = 0;

    m.key.workload = d->workload_at[m.key.workload];
    m.key.gpu_type = d->type_at[m.key.gpu_type];
    if (m.key.neighbour >= 0)
        m.key.neighbour = d->workload_at[m.key.neighbour];
    if (*campaign < 0)
        rc = commit_campaign(d, c, m.key.campaign, e);
    m.key.campaign = *campaign;
    *out = m;
    return rc;
}

/* The rows of 'part' into a catalog that has its types and workloads. */
static int record_part(const struct draft *d, struct catalog *c, const struct draft_part *part,
                       int64_t origin, struct progress *p, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < part->n_rows && rc == 0; i++) {
        struct measurement m;

        rc = place_row(d, c, part->first_row + i, &m, e);
        if (rc == 0)
            rc = catalog_record(c, &m, origin, e);
        if (i % 1024 == 0)
            progress_step(p, part->first_row + i, d->n_rows);
    }
    if (rc < 0 && (rc == -EOVERFLOW || c->store == NULL) && e != NULL)
        err_prefix(e, "%s", part->name);
    return rc;
}

static int commit_part(struct draft *d, struct catalog *c, const struct draft_part *part,
                       double now_s, struct progress *p, struct err *e)
{
    int64_t origin = 0;
    int rc = 0;

    if (c->store != NULL) {
        rc = store_find_origin(c->store, part->kind, part->digest, &origin, e);
        if (rc < 0 || origin != 0)
            return rc;
        rc = store_add_origin(c->store, part->kind, part->name, part->digest, now_s, &origin, e);
    }
    d->report.is_known = false;
    d->report.n_measurements += part->n_rows;
    return rc < 0 ? rc : record_part(d, c, part, origin, p, e);
}

/* The built-in type that somebody who wrote 'name' may have meant, or NULL. */
static const struct gpu_type *nearest_builtin(const char *name)
{
    int n, limit = 1 + (int)strlen(name) / 3;    // further off is something else
    const struct gpu_type *all = gpu_type_builtin_all(&n), *best = NULL;

    for (int i = 0; i < n; i++) {
        char family[32];

        snprintf(family, sizeof(family), "%s", all[i].name);
        family[strcspn(family, "-")] = '\0';    // "v100-16" is written "v100"
        if (text_is_nearer(name, all[i].name, &limit))
            best = &all[i];
        if (text_is_nearer(name, family, &limit))
            best = &all[i];
    }
    return best;
}

static void warn_of_unknown_types(const struct draft *d, const struct catalog *c)
{
    enum { SHOWN = 5 };
    int n = 0;

    for (int i = 0; i < d->n_types; i++) {
        const struct gpu_type *t = &c->types[d->type_at[i]], *meant = nearest_builtin(t->name);

        if (gpu_type_builtin(t->name) != NULL || t->cap_w > 0 || ++n > SHOWN)
            continue;
        log_warn("GPU type '%s' is not built in: its figures are unknown%s%s%s ('gogh catalog "
                 "gpus' lists them; 'gputype' lines in a cluster file describe others)",
                 t->name, meant != NULL ? "; did you mean '" : "", meant != NULL ? meant->name : "",
                 meant != NULL ? "'?" : "");
    }
    if (n > SHOWN)
        log_warn("%d more GPU types are not built in", n - SHOWN);
}

static int commit_all(struct draft *d, struct catalog *c, double now_s, struct progress *p,
                      struct err *e)
{
    int rc = commit_names(d, c, e);

    if (rc == 0)
        warn_of_unknown_types(d, c);
    for (int i = 0; i < d->n_parts && rc == 0; i++)
        rc = commit_part(d, c, &d->part[i], now_s, p, e);
    /* Of rows that are known already this may be new. */
    if (rc == 0 && d->n_rows > 0 && catalog_find_campaign(c, d->campaigns[d->campaign]) >= 0)
        rc = commit_campaign(d, c, d->campaign, e);
    return rc;
}

/* A pair that does not fit is stated from either side; count it once. */
static void count_unfit(struct draft *d, struct map_u64 *seen, struct cell_key k)
{
    int low = k.workload < k.neighbour ? k.workload : k.neighbour;
    int high = k.workload < k.neighbour ? k.neighbour : k.workload;
    uint64_t key = (uint64_t)(low + 1) << 42 | (uint64_t)high << 20 | (uint64_t)k.gpu_type;

    if (map_u64_get(seen, key) >= 0)
        return;
    map_u64_set(seen, key, 0);
    d->report.n_unfit++;
}

/* What the values of the draft are, for the report. */
static void count_rows(struct draft *d)
{
    struct import_report *r = &d->report;
    struct map_u64 seen = { 0 };

    r->n_types = d->n_types;
    r->n_workloads = d->n_workloads;
    for (int i = 0; i < d->n_rows; i++) {
        const struct measurement *m = &d->rows[i];

        r->n_watts += !isnan(m->watts);
        if (!m->fits)
            count_unfit(d, &seen, m->key);
        if (isnan(m->throughput))
            continue;
        if (m->key.n_gpus > 1)
            r->n_gangs++;
        else if (m->key.limit_w > 0)
            r->n_limited++;
        else if (m->key.neighbour >= 0)
            r->n_pairs++;
        else
            r->n_isolated++;
    }
    map_u64_release(&seen);
}

int draft_check(struct draft *d, struct err *e)
{
    struct catalog trial;
    int rc;

    catalog_init(&trial);
    rc = commit_names(d, &trial, e);
    for (int i = 0; i < d->n_parts && rc == 0; i++)
        rc = record_part(d, &trial, &d->part[i], 0, NULL, e);
    catalog_release(&trial);
    return rc;
}

int draft_commit(struct draft *d, struct catalog *c, double now_s, struct progress *p,
                 struct import_report *out, struct err *e)
{
    int rc = catalog_begin(c, e);

    if (rc < 0)
        return rc;
    if (d->is_describing && d->n_undescribed > 0)
        log_warn("%d workloads have no row in the descriptor CSV; their features stay unknown",
                 d->n_undescribed);
    count_rows(d);
    d->report.is_known = true;
    rc = catalog_end(c, commit_all(d, c, now_s, p, e), e);
    if (rc == 0)
        *out = d->report;
    return rc;
}

#include "optimize/files/problem_file.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "optimize/model/problem.h"
#include "optimize/files/doc.h"
#include "optimize/files/problem_split.h"

#define CELLS_MAX (1L << 29)    // types * kinds^2: 2 GiB of speeds, and as much of 'low'
#define GPUS_MAX 2000000
#define LIST_MAX 16000000    // kinds, jobs
#define NODE_SIZE 8          // where a type only has a count

struct reading {
    struct doc f;
    struct problem *p;
    struct doc_at top;
    struct map types, kinds;    // by name
    const int *kind_of;         // which of the file's each kind was made of; NULL: they are these
};

/* ---- lists ---- */

/* The list at a key of the top with at most 'max' objects; absent is empty. */
static int top_list(struct reading *r, const char *key, int max, json_t **list, int *n)
{
    int rc = doc_list(&r->f, &r->top, key, list);

    if (rc < 0)
        return rc;
    if (json_array_size(*list) > (size_t)max)
        return doc_wrong(&r->f, &r->top, key, "%zu are too many; at most %d",
                         json_array_size(*list), max);
    *n = (int)json_array_size(*list);
    return 0;
}

/* A type or kind by its name or its number. */
static int look_up(struct reading *r, const struct doc_at *at, const char *key, json_t *v,
                   const struct map *names, int n, int *out)
{
    if (json_is_string(v)) {
        *out = map_get(names, json_string_value(v));
        if (*out < 0)
            return doc_wrong(&r->f, at, key, "nothing is called %s", doc_looks(&r->f, v));
        return 0;
    }
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= n)
        return doc_wrong(&r->f, at, key, "want a name, or a number below %d, not %s", n,
                         doc_looks(&r->f, v));
    *out = (int)json_integer_value(v);
    return 0;
}

/* Note a name that must be new. */
static int new_name(struct reading *r, const struct doc_at *at, struct map *names, const char *name)
{
    if (map_get(names, name) >= 0)
        return doc_wrong(&r->f, at, "name", "'%.80s' is there twice; rename one", name);
    map_set(names, name, at->index);
    return 0;
}

/* ---- the frame ---- */

static int read_frame(struct reading *r)
{
    static const char *const known[] = {
        "version",      "theta",     "z",     "price_w",   "power_cap_w",
        "watts_margin", "objective", "racks", "gang_near", "gang_far",
        "types",        "kinds",     "gpus",  "jobs",      NULL,
    };
    struct problem *p = r->p;
    int version = 1, rc = doc_keys(&r->f, &r->top, known);

    if (rc == 0)
        rc = doc_whole(&r->f, &r->top, "version", 1, 1, &version);
    if (rc == 0)
        rc = doc_whole(&r->f, &r->top, "theta", 1, THETA_MAX, &p->theta);
    if (rc == 0)
        rc = doc_number(&r->f, &r->top, "z", &p->z);
    if (rc == 0)
        rc = doc_number(&r->f, &r->top, "price_w", &p->price_w);
    if (rc == 0)
        rc = doc_number(&r->f, &r->top, "power_cap_w", &p->power_cap_w);
    return rc < 0 ? rc : doc_number(&r->f, &r->top, "watts_margin", &p->watts_margin);
}

/* Factors for gangs of 1, 2, ... GPUs; beyond the list a gang gains nothing more. */
static int read_factors(struct reading *r, const char *key, double *out)
{
    json_t *list;
    int rc = doc_list(&r->f, &r->top, key, &list), n = (int)json_array_size(list);

    if (rc < 0)
        return rc;
    if (json_array_size(list) > GANG_MAX)
        return doc_wrong(&r->f, &r->top, key, "at most %d factors", GANG_MAX);
    if (list != NULL)
        rc = doc_row(&r->f, &r->top, key, list, out + 1, n);
    for (int m = n + 1; m <= GANG_MAX; m++)
        out[m] = n > 0 ? out[n] : m;
    return rc;
}

static int read_gang_factors(struct reading *r)
{
    bool has_far = json_object_get(r->top.object, "gang_far") != NULL;
    int rc = read_factors(r, "gang_near", r->p->gang_near);

    if (rc < 0 || has_far)
        return rc < 0 ? rc : read_factors(r, "gang_far", r->p->gang_far);
    memcpy(r->p->gang_far, r->p->gang_near, sizeof r->p->gang_far);
    return 0;
}

static int read_racks(struct reading *r)
{
    json_t *list;
    int rc = top_list(r, "racks", GPUS_MAX, &list, &r->p->n_racks);

    if (rc < 0 || list == NULL)
        return rc;
    double *cap_w = ARENA_ARRAY(r->f.arena, double, (size_t)r->p->n_racks);
    r->p->rack_cap_w = cap_w;
    return doc_row(&r->f, &r->top, "racks", list, cap_w, r->p->n_racks);
}

/* ---- kinds ---- */

static int read_kind(struct reading *r, const struct doc_at *at, struct problem_kind *k)
{
    static const char *const known[] = { "name", "mem_gib", "value_j", "rate", "time_w", NULL };
    int rc = doc_keys(&r->f, at, known);

    if (rc == 0)
        rc = doc_name(&r->f, at, "name", &k->name);
    if (rc == 0)
        rc = new_name(r, at, &r->kinds, k->name);
    if (rc == 0)
        rc = doc_number(&r->f, at, "mem_gib", &k->mem_gib);
    if (rc == 0)
        rc = doc_number(&r->f, at, "value_j", &k->value_j);
    if (rc == 0)
        rc = doc_number(&r->f, at, "rate", &k->rate);
    return rc < 0 ? rc : doc_number(&r->f, at, "time_w", &k->time_w);
}

static int read_kinds(struct reading *r)
{
    json_t *list;
    int n = 0, rc = top_list(r, "kinds", LIST_MAX, &list, &n);

    if (rc < 0)
        return rc;
    r->p->kinds = ARENA_ARRAY(r->f.arena, struct problem_kind, (size_t)n);
    r->p->n_kinds = n;
    for (int i = 0; i < n && rc == 0; i++) {
        const struct doc_at at = { json_array_get(list, (size_t)i), "kinds", i };
        rc = read_kind(r, &at, &r->p->kinds[i]);
    }
    return rc;
}

/* ---- types ---- */

static int read_limit(struct reading *r, const struct doc_at *type, int i, json_t *o,
                      struct limit_curve *out)
{
    static const char *const known[] = { "limit_w", "speed", "watts", NULL };
    char list[40];
    const struct doc_at at = { o, list, i };

    snprintf(list, sizeof list, "types[%d].limits", type->index);
    int rc = doc_keys(&r->f, &at, known);
    if (rc == 0)
        rc = doc_whole(&r->f, &at, "limit_w", 1, 1000000, &out->limit_w);
    if (rc < 0)
        return rc;
    json_t *watts = json_object_get(o, "watts"), *speed = json_object_get(o, "speed");
    size_t n = json_array_size(watts);
    if (out->limit_w == 0 || n < 2 || n > 10000 || speed == NULL)
        return doc_wrong(&r->f, &at, NULL,
                         "want limit_w, and speed and watts with as many points, at least 2");
    double *at_speed = ARENA_ARRAY(r->f.arena, double, n);
    double *at_watts = ARENA_ARRAY(r->f.arena, double, n);
    out->n_points = (int)n;
    out->speed = at_speed;
    out->watts = at_watts;
    rc = doc_row(&r->f, &at, "watts", watts, at_watts, (int)n);
    return rc < 0 ? rc : doc_row(&r->f, &at, "speed", speed, at_speed, (int)n);
}

static int read_limits(struct reading *r, const struct doc_at *at, struct problem_type *t)
{
    json_t *list;
    int rc = doc_list(&r->f, at, "limits", &list);

    if (rc < 0)
        return rc;
    if (json_array_size(list) > LIMITS_MAX - 1)
        return doc_wrong(&r->f, at, "limits", "at most %d power limits", LIMITS_MAX - 1);
    t->n_limits = 1 + (int)json_array_size(list);
    for (int i = 1; i < t->n_limits && rc == 0; i++)
        rc = read_limit(r, at, i - 1, json_array_get(list, (size_t)(i - 1)), &t->limits[i]);
    return rc;
}

static int read_type(struct reading *r, const struct doc_at *at, struct problem_type *t)
{
    static const char *const known[] = {
        "name", "sleep_w", "idle_w",   "cap_w",     "mem_gib", "limits", "speed",
        "sd",   "watts",   "slowdown", "shared_sd", "count",   NULL,
    };
    int rc = doc_keys(&r->f, at, known);

    if (rc == 0)
        rc = doc_name(&r->f, at, "name", &t->name);
    if (rc == 0)
        rc = new_name(r, at, &r->types, t->name);
    if (rc == 0)
        rc = doc_number(&r->f, at, "sleep_w", &t->sleep_w);
    t->idle_w = t->sleep_w;
    if (rc == 0)
        rc = doc_number(&r->f, at, "idle_w", &t->idle_w);
    t->cap_w = t->mem_gib = -1;
    if (rc == 0)
        rc = doc_number(&r->f, at, "cap_w", &t->cap_w);
    if (rc == 0)
        rc = doc_number(&r->f, at, "mem_gib", &t->mem_gib);
    if (rc == 0 && (t->cap_w < 0 || t->mem_gib < 0))
        rc = doc_wrong(&r->f, at, NULL, "want cap_w and mem_gib, 0 or more");
    return rc < 0 ? rc : read_limits(r, at, t);
}

/* ---- cells ---- */

/* A table of the form: absent ('absent' throughout), one number, or an entry for each kind, which
 * is a number again or a row.
 */
struct table {
    const char *key;
    json_t *value;
    bool is_const;    // the last row asked for has one value
};

static int table_row(struct reading *r, const struct doc_at *at, struct table *t, int kind,
                     double absent, double *row)
{
    json_t *v = json_is_array(t->value) ? json_array_get(t->value, (size_t)kind) : t->value;
    char what[60];

    t->is_const = v == NULL || json_is_number(v);
    if (t->is_const) {
        double x = v == NULL ? absent : json_number_value(v);
        for (int n = 0; n < r->p->n_kinds; n++)
            row[n] = x;
        return 0;
    }
    snprintf(what, sizeof what, "%s[%d]", t->key, kind);
    return doc_row(&r->f, at, what, v, row, r->p->n_kinds);
}

static int check_table(struct reading *r, const struct doc_at *at, const struct table *t)
{
    if (t->value == NULL || json_is_number(t->value))
        return 0;
    if (!json_is_array(t->value) || json_array_size(t->value) != (size_t)r->p->n_kinds)
        return doc_wrong(&r->f, at, t->key, "want a number, or a list of %d: one for each kind",
                         r->p->n_kinds);
    return 0;
}

/* What is held with the file's confidence of a speed of which this is the deviation. */
static double held(const struct problem *p, double sd)
{
    return exp(-p->z * fmax(sd, 0));
}

/* One kind on one type: alone, and beside each other. */
static int read_cells(struct reading *r, const struct doc_at *at, int kind, double alone, double sd,
                      struct table *slowdown, struct table *shared_sd, double *rows)
{
    struct problem *p = r->p;
    double *factor = rows, *deviation = rows + p->n_kinds;
    float *speed = &p->speed[problem_cell(p, at->index, kind, -1)];
    float *low = &p->low[problem_cell(p, at->index, kind, -1)];
    int rc = table_row(r, at, slowdown, kind, 0, factor);

    if (rc == 0)
        rc = table_row(r, at, shared_sd, kind, sd, deviation);
    if (rc < 0)
        return rc;
    speed[0] = (float)alone;
    low[0] = (float)((double)speed[0] * held(p, sd));
    double all = p->n_kinds > 0 ? held(p, deviation[0]) : 1;
    for (int n = 0; n < p->n_kinds; n++) {
        double part = shared_sd->is_const ? all : held(p, deviation[n]);
        if (!(deviation[n] >= 0))
            return doc_wrong(&r->f, at, "shared_sd", "%g for kind %d: want 0 or more", deviation[n],
                             kind);
        speed[n + 1] = (float)((double)speed[0] * factor[n]);
        low[n + 1] = (float)((double)speed[n + 1] * part);
    }
    return 0;
}

static int read_tables(struct reading *r, const struct doc_at *at, double *rows)
{
    struct problem *p = r->p;
    int n = p->n_kinds;
    double *alone = rows + 2 * n, *sd = rows + 3 * n, *watts = rows + 4 * n;
    struct table slowdown = { "slowdown", json_object_get(at->object, "slowdown"), false };
    struct table shared_sd = { "shared_sd", json_object_get(at->object, "shared_sd"), false };
    json_t *deviation = json_object_get(at->object, "sd");
    int rc = doc_row(&r->f, at, "speed", json_object_get(at->object, "speed"), alone, n);

    if (rc == 0)
        rc = doc_row(&r->f, at, "watts", json_object_get(at->object, "watts"), watts, n);
    for (int k = 0; k < n; k++)
        sd[k] = json_number_value(deviation);
    if (rc == 0 && deviation != NULL && !json_is_number(deviation))
        rc = doc_row(&r->f, at, "sd", deviation, sd, n);
    if (rc == 0)
        rc = check_table(r, at, &slowdown);
    if (rc == 0)
        rc = check_table(r, at, &shared_sd);
    for (int k = 0; k < n && rc == 0; k++) {
        p->watts[at->index * n + k] = (float)watts[k];
        rc = sd[k] >= 0 ? read_cells(r, at, k, alone[k], sd[k], &slowdown, &shared_sd, rows)
                        : doc_wrong(&r->f, at, "sd", "%g for kind %d: want 0 or more", sd[k], k);
    }
    return rc;
}

static int read_types(struct reading *r)
{
    struct problem *p = r->p;
    json_t *list;
    int n = 0, rc = top_list(r, "types", 64, &list, &n);

    if (rc < 0)
        return rc;
    size_t cells = (size_t)n * (size_t)p->n_kinds;
    if ((double)cells * (p->n_kinds + 1) > (double)CELLS_MAX)
        return doc_wrong(&r->f, &r->top, "kinds", "%d kinds on %d types are too many", p->n_kinds,
                         n);
    p->types = ARENA_ARRAY(r->f.arena, struct problem_type, (size_t)n);
    p->watts = ARENA_ARRAY(r->f.arena, float, cells);
    p->speed = ARENA_ARRAY(r->f.arena, float, cells *(size_t)(p->n_kinds + 1));
    p->low = ARENA_ARRAY(r->f.arena, float, cells *(size_t)(p->n_kinds + 1));
    double *rows = ARENA_ARRAY(r->f.arena, double, 5 * (size_t)p->n_kinds);
    p->n_types = n;
    for (int i = 0; i < n && rc == 0; i++) {
        const struct doc_at at = { json_array_get(list, (size_t)i), "types", i };
        rc = read_type(r, &at, &p->types[i]);
        if (rc == 0)
            rc = read_tables(r, &at, rows);
    }
    return rc;
}

/* ---- GPUs ---- */

/* Some GPUs of one type on one node. */
struct group {
    double wake_s;
    int type, count, node, rack;
    json_t *drained;    // NULL, true, or a list of places in the group
};

static int read_group(struct reading *r, const struct doc_at *at, int next_node, struct group *out)
{
    static const char *const known[] = {
        "type", "count", "node", "rack", "drained", "wake_s", NULL
    };
    int rc = doc_keys(&r->f, at, known);

    *out = (struct group){ .count = 1, .node = next_node };
    if (rc < 0)
        return rc;
    json_t *type = json_object_get(at->object, "type");
    if (type == NULL)
        return doc_wrong(&r->f, at, NULL, "has no \"type\"; give it one");
    rc = look_up(r, at, "type", type, &r->types, r->p->n_types, &out->type);
    if (rc == 0)
        rc = doc_whole(&r->f, at, "count", 0, GPUS_MAX, &out->count);
    if (rc == 0)
        rc = doc_whole(&r->f, at, "node", 0, GPUS_MAX, &out->node);
    if (rc == 0)
        rc = doc_whole(&r->f, at, "rack", 0, GPUS_MAX, &out->rack);
    if (rc == 0)
        rc = doc_number(&r->f, at, "wake_s", &out->wake_s);
    out->drained = json_object_get(at->object, "drained");
    if (rc == 0 && out->drained && !json_is_boolean(out->drained) && !json_is_array(out->drained))
        rc = doc_wrong(&r->f, at, "drained", "want true, or a list of which of its GPUs");
    return rc;
}

static int place_group(struct reading *r, const struct doc_at *at, const struct group *g,
                       struct problem_gpu *gpus)
{
    size_t i;
    json_t *v;

    for (int k = 0; k < g->count; k++)
        gpus[k] = (struct problem_gpu){ .type = g->type,
                                        .node = g->node,
                                        .rack = g->rack,
                                        .may_start = !json_is_true(g->drained),
                                        .wake_s = g->wake_s };
    json_array_foreach(g->drained, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= g->count)
            return doc_wrong(&r->f, at, "drained", "%s is none of the group's %d GPUs, from 0",
                             doc_looks(&r->f, v), g->count);
        gpus[json_integer_value(v)].may_start = false;
    }
    return 0;
}

static void note_rack(struct problem *p, int rack)
{
    if (rack < p->n_racks)
        return;
    p->n_racks = rack + 1;
}

static int read_groups(struct reading *r, json_t *list)
{
    struct problem *p = r->p;
    int n = (int)json_array_size(list), total = 0, next_node = 0, rc = 0;
    struct group *groups = ARENA_ARRAY(r->f.arena, struct group, (size_t)n);

    for (int i = 0; i < n && rc == 0; i++) {
        const struct doc_at at = { json_array_get(list, (size_t)i), "gpus", i };
        rc = read_group(r, &at, next_node, &groups[i]);
        if (rc == 0 && groups[i].count > GPUS_MAX - total)
            rc = doc_wrong(&r->f, &at, "count", "more than %d GPUs in all", GPUS_MAX);
        total += rc == 0 ? groups[i].count : 0;
        if (groups[i].node >= next_node)
            next_node = groups[i].node + 1;
        note_rack(p, groups[i].rack);
    }
    p->gpus = ARENA_ARRAY(r->f.arena, struct problem_gpu, (size_t)total);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct doc_at at = { json_array_get(list, (size_t)i), "gpus", i };
        rc = place_group(r, &at, &groups[i], p->gpus + p->n_gpus);
        p->n_gpus += groups[i].count;
    }
    return rc;
}

/* No list of GPUs: as many as the types say, on nodes of NODE_SIZE, in one rack. */
static int read_counts(struct reading *r)
{
    struct problem *p = r->p;
    json_t *list = json_object_get(r->top.object, "types");
    int counts[64] = { 0 }, total = 0, node = 0;

    for (int t = 0; t < p->n_types; t++) {
        const struct doc_at at = { json_array_get(list, (size_t)t), "types", t };
        int rc = doc_whole(&r->f, &at, "count", 0, GPUS_MAX / 64, &counts[t]);
        if (rc < 0)
            return rc;
        total += counts[t];
    }
    p->gpus = ARENA_ARRAY(r->f.arena, struct problem_gpu, (size_t)total);
    for (int t = 0; t < p->n_types; t++) {
        for (int i = 0; i < counts[t]; i++)
            p->gpus[p->n_gpus++] =
                (struct problem_gpu){ .type = t, .node = node + i / NODE_SIZE, .may_start = true };
        node += (counts[t] + NODE_SIZE - 1) / NODE_SIZE;
    }
    note_rack(p, total > 0 ? 0 : -1);
    return 0;
}

static int read_gpus(struct reading *r)
{
    struct problem *p = r->p;
    int n, n_capped = p->n_racks;
    json_t *list;
    int rc = top_list(r, "gpus", GPUS_MAX, &list, &n);

    if (rc == 0)
        rc = list != NULL ? read_groups(r, list) : read_counts(r);
    if (rc < 0 || p->rack_cap_w == NULL || p->n_racks == n_capped)
        return rc;
    double *cap_w = ARENA_ARRAY(r->f.arena, double, (size_t)p->n_racks);
    memcpy(cap_w, p->rack_cap_w, (size_t)n_capped * sizeof *cap_w);
    p->rack_cap_w = cap_w;
    return 0;
}

/* ---- jobs ---- */

static int read_form(struct reading *r, const struct doc_at *at, struct problem_job *j)
{
    json_t *v = json_object_get(at->object, "form");
    const char *word = v == NULL ? "gang" : json_is_string(v) ? json_string_value(v) : "?";

    if (strcmp(word, "gang") != 0 && strcmp(word, "spread") != 0)
        return doc_wrong(&r->f, at, "form", "want \"gang\" or \"spread\"");
    j->form = strcmp(word, "gang") == 0 ? FORM_GANG : FORM_SPREAD;
    j->n_min = 1;
    int rc = doc_whole(&r->f, at, "n_min", 1, GANG_MAX, &j->n_min);
    j->n_max = j->n_min;
    return rc < 0 ? rc : doc_whole(&r->f, at, "n_max", 1, GANG_MAX, &j->n_max);
}

static int read_rates(struct reading *r, const struct doc_at *at, struct problem_job *j)
{
    j->short_w = j->wait_w = 1000;
    int rc = doc_number(&r->f, at, "need", &j->need);
    if (rc == 0)
        rc = doc_number(&r->f, at, "short_w", &j->short_w);
    if (rc == 0)
        rc = doc_number(&r->f, at, "wait_w", &j->wait_w);
    if (rc == 0)
        rc = doc_number(&r->f, at, "move_w", &j->move_w);
    if (rc == 0)
        rc = doc_number(&r->f, at, "wake_rate", &j->wake_rate);
    return rc < 0 ? rc : doc_number(&r->f, at, "late_w", &j->late_w);
}

static int read_allowed(struct reading *r, const struct doc_at *at, struct problem_job *j)
{
    json_t *list, *v;
    size_t i;
    int type = 0, rc = doc_list(&r->f, at, "types", &list);

    if (rc < 0)
        return rc;
    if (list != NULL && json_array_size(list) == 0)
        return doc_wrong(&r->f, at, "types", "an empty list allows none; leave it out for any");
    json_array_foreach(list, i, v)
    {
        rc = look_up(r, at, "types", v, &r->types, r->p->n_types, &type);
        if (rc < 0)
            return rc;
        j->allowed_types |= UINT64_C(1) << type;
    }
    return 0;
}

/* The setting that a type calls by these watts, or -1. */
static int limit_index(const struct problem_type *t, int limit_w)
{
    for (int l = 0; l < t->n_limits; l++)
        if (t->limits[l].limit_w == limit_w)
            return l;
    return -1;
}

static int read_present(struct reading *r, const struct doc_at *at, struct problem_job *j)
{
    json_t *list, *v;
    size_t i;
    int limit_w = 0, rc = doc_list(&r->f, at, "present", &list);

    if (rc == 0)
        rc = doc_whole(&r->f, at, "limit_w", 0, 1000000, &limit_w);
    if (rc < 0)
        return rc;
    if (json_array_size(list) > GANG_MAX)
        return doc_wrong(&r->f, at, "present", "at most %d GPUs", GANG_MAX);
    int *present = ARENA_ARRAY(r->f.arena, int, json_array_size(list));
    json_array_foreach(list, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= r->p->n_gpus)
            return doc_wrong(&r->f, at, "present", "%s is none of the %d GPUs, from 0",
                             doc_looks(&r->f, v), r->p->n_gpus);
        present[i] = (int)json_integer_value(v);
    }
    j->n_present = (int)json_array_size(list);
    j->present = present;
    if (limit_w > 0 && j->n_present == 0)
        return doc_wrong(&r->f, at, "limit_w", "only with \"present\"");
    if (limit_w > 0)
        j->present_limit = limit_index(&r->p->types[r->p->gpus[present[0]].type], limit_w);
    if (j->present_limit < 0)
        return doc_wrong(&r->f, at, "limit_w", "its GPUs have no limit of %d W", limit_w);
    return 0;
}

/* "one_node" is the older word for "n_nodes": 1. */
static int read_nodes(struct reading *r, const struct doc_at *at, struct problem_job *j)
{
    bool is_one = false;
    int rc = doc_flag(&r->f, at, "one_node", &is_one);

    j->n_nodes = is_one;
    if (rc == 0 && is_one && json_object_get(at->object, "n_nodes"))
        return doc_wrong(&r->f, at, "n_nodes", "only without \"one_node\"");
    return rc < 0 ? rc : doc_whole(&r->f, at, "n_nodes", 0, GANG_MAX, &j->n_nodes);
}

static int read_job(struct reading *r, const struct doc_at *at, struct map *names,
                    struct problem_job *j)
{
    static const char *const known[] = {
        "name",    "kind",    "form",      "n_min",     "n_max",    "need",    "short_w",
        "wait_w",  "move_w",  "types",     "exclusive", "one_node", "n_nodes", "fixed",
        "present", "limit_w", "wake_rate", "late_w",    "time_w",   NULL,
    };
    int rc = doc_keys(&r->f, at, known);

    if (rc == 0)
        rc = doc_name(&r->f, at, "name", &j->name);
    if (rc == 0)
        rc = new_name(r, at, names, j->name);
    if (rc < 0)
        return rc;
    json_t *kind = json_object_get(at->object, "kind");
    if (kind == NULL)
        return doc_wrong(&r->f, at, NULL, "has no \"kind\"; give it one");
    rc = look_up(r, at, "kind", kind, &r->kinds, r->p->n_kinds, &j->kind);
    if (rc == 0)
        rc = read_form(r, at, j);
    if (rc == 0)
        rc = read_rates(r, at, j);
    if (rc == 0)
        rc = read_allowed(r, at, j);
    if (rc == 0)
        rc = doc_flag(&r->f, at, "exclusive", &j->is_exclusive);
    if (rc == 0)
        rc = read_nodes(r, at, j);
    if (rc == 0)
        rc = doc_flag(&r->f, at, "fixed", &j->is_fixed);
    return rc < 0 ? rc : read_present(r, at, j);
}

static int read_jobs(struct reading *r)
{
    struct map names;
    json_t *list;
    int n = 0, rc = top_list(r, "jobs", LIST_MAX, &list, &n);

    if (rc < 0)
        return rc;
    r->p->jobs = ARENA_ARRAY(r->f.arena, struct problem_job, (size_t)n);
    r->p->n_jobs = n;
    map_init(&names);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct doc_at at = { json_array_get(list, (size_t)i), "jobs", i };
        if (!json_is_null(at.object))
            rc = read_job(r, &at, &names, &r->p->jobs[i]);
    }
    map_release(&names);
    return rc;
}

/* ---- what a step is worth ---- */

/* Jobs that say what their time is worth. */
static int read_times(struct reading *r)
{
    struct problem *p = r->p;
    json_t *list = json_object_get(r->top.object, "jobs");
    double *time_w = ARENA_ARRAY(r->f.arena, double, (size_t)p->n_jobs);
    bool is_said = false;
    int rc = 0;

    for (int j = 0; j < p->n_jobs && rc == 0; j++) {
        const struct doc_at at = { json_array_get(list, (size_t)j), "jobs", j };
        time_w[j] = NAN;
        if (json_object_get(at.object, "time_w") == NULL)
            continue;
        is_said = true;
        rc = doc_number(&r->f, &at, "time_w", &time_w[j]);
        if (rc == 0 && !(time_w[j] >= 0 && time_w[j] <= 1e12))
            rc = doc_wrong(&r->f, &at, "time_w", "%g: want 0 to 1e12 W", time_w[j]);
    }
    if (rc < 0 || !is_said)
        return rc;
    r->kind_of = problem_split(r->f.arena, p, time_w, CELLS_MAX);
    if (!r->kind_of)
        return doc_wrong(&r->f, &r->top, "jobs",
                         "too many different \"time_w\" for the kinds there are: use fewer");
    return 0;
}

/* Where the file does not say it. */
static int read_objective(struct reading *r)
{
    json_t *v = json_object_get(r->top.object, "objective");
    const char *word = v == NULL ? "joules" : json_is_string(v) ? json_string_value(v) : "?";
    json_t *list = json_object_get(r->top.object, "kinds");

    if (strcmp(word, "watts") == 0)
        return 0;
    if (strcmp(word, "joules") != 0)
        return doc_wrong(&r->f, &r->top, "objective", "want \"joules\" or \"watts\"");
    for (int k = 0; k < r->p->n_kinds; k++) {
        int in_file = r->kind_of ? r->kind_of[k] : k;
        if (json_object_get(json_array_get(list, (size_t)in_file), "value_j") != NULL)
            continue;
        double value_j = problem_best_joules(r->p, k);
        r->p->kinds[k].value_j = isfinite(value_j) ? value_j : 0;
    }
    return 0;
}

/* ---- the whole ---- */

/* Problem_check's sentences begin with the place; the file's name comes before. */
static int check(struct reading *r)
{
    int rc = problem_check(r->p, r->f.e);

    return rc < 0 && r->f.e != NULL ? err_prefix(r->f.e, "%s", r->f.name) : rc;
}

static int read_all(struct reading *r)
{
    int rc = read_frame(r);

    if (rc == 0)
        rc = read_gang_factors(r);
    if (rc == 0)
        rc = read_racks(r);
    if (rc == 0)
        rc = read_kinds(r);
    if (rc == 0)
        rc = read_types(r);
    if (rc == 0)
        rc = check(r);    // before anybody reckons with the tables
    if (rc == 0)
        rc = read_gpus(r);
    if (rc == 0)
        rc = read_jobs(r);
    if (rc == 0)
        rc = read_times(r);
    if (rc == 0)
        rc = read_objective(r);
    return rc < 0 ? rc : check(r);
}

int problem_parse(struct arena *a, const char *name, const char *text, size_t len,
                  struct problem *out, struct err *e)
{
    struct reading r = { .f = { a, name, e }, .p = out };
    json_t *root = doc_open(&r.f, text, len);

    if (root == NULL)
        return -EINVAL;
    r.top = (struct doc_at){ root, NULL, -1 };
    *out = (struct problem){ .theta = 2, .z = 1, .watts_margin = 1 };
    map_init(&r.types);
    map_init(&r.kinds);
    int rc = read_all(&r);
    map_release(&r.types);
    map_release(&r.kinds);
    json_decref(root);
    return rc;
}

int problem_read(struct arena *a, const char *path, struct problem *out, struct err *e)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct arena scratch;
    const char *text;
    size_t len;

    arena_init(&scratch);
    int rc = file_read(&scratch, is_stdin ? "/dev/stdin" : path, NULL, PROBLEM_BYTES_MAX, &text,
                       &len, e);
    if (rc == 0)
        rc = problem_parse(a, is_stdin ? "standard input" : path, text, len, out, e);
    arena_release(&scratch);
    return rc;
}

#include "optimize/files/problem_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/map.h"
#include "optimize/model/problem.h"
#include "optimize/files/doc.h"

#define CELLS_MAX (1L << 29)    // types * kinds^2: 2 GiB of speeds, and as much of 'low'
#define GPUS_MAX 2000000
#define LIST_MAX 16000000    // kinds, jobs
#define NODE_SIZE 8          // where a type only has a count

struct problem_reader {
    struct doc doc;
    struct doc_at top;
    struct problem *p;
    struct map types, kinds, jobs;    // by name
    int n_listed;                     // kinds of the file; those behind them are made of them
    int *of, *next;    // (n_kinds) which one, and the next one made of it; -1: the last
    double *rows;      // scratch for five rows of cells
    int *counts;       // the "count" of each entry
    int n_gpus;        // all of them
    int next_node;
    struct engine_node *nodes;
};

/* ---- names ---- */

/* A type or kind by its name or its number. */
static bool look_up(const struct doc_at *at, const char *key, json_t *v, const struct map *names,
                    int n, int *out)
{
    if (v == NULL)
        return doc_wrong(at, NULL, "has no \"%s\"; give it one", key);
    if (json_is_string(v)) {
        *out = map_get(names, json_string_value(v));
        return *out >= 0 || doc_wrong(at, key, "nothing is called %s", doc_looks(at, v));
    }
    json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;
    *out = (int)i;
    return (i >= 0 && i < n) ||
           doc_wrong(at, key, "want a name, or a number below %d, not %s", n, doc_looks(at, v));
}

/* An entry with a name that must be new. */
static bool read_name(const struct doc_at *at, const char *const *known, struct map *names,
                      const char **name)
{
    if (!doc_keys(at, known) || !doc_name(at, "name", name))
        return false;
    if (map_get(names, *name) >= 0)
        return doc_wrong(at, "name", "'%.80s' is there twice; rename one", *name);
    map_set(names, *name, at->index);
    return true;
}

/* Read each entry of a list. */
static bool each(struct problem_reader *r, const char *name, json_t *list, int n,
                 bool read_one(struct problem_reader *r, const struct doc_at *at))
{
    for (int i = 0; i < n; i++) {
        const struct doc_at at = { &r->doc, json_array_get(list, (size_t)i), name, i };
        if (!read_one(r, &at))
            return false;
    }
    return true;
}

/* ---- the frame ---- */

/* Factors for gangs of 1, 2, ... GPUs, or those of another list where there is none; beyond the
 * list a gang gains nothing more.
 */
static bool read_factors(struct problem_reader *r, const char *key, const double *absent,
                         double *out)
{
    json_t *list;
    int n;

    if (!doc_list(&r->top, key, GANG_MAX, &list, &n) ||
        (list && !doc_row(&r->top, key, list, out + 1, n)))
        return false;
    for (int m = n + 1; m <= GANG_MAX; m++)
        out[m] = n > 0 ? out[n] : list || !absent ? m : absent[m];
    return true;
}

static bool read_frame(struct problem_reader *r)
{
    static const char *const known[] = {
        "version",   "theta", "z",         "price_w",  "power_cap_w", "watts_margin",
        "objective", "racks", "gang_near", "gang_far", "types",       "kinds",
        "gpus",      "jobs",  "nodes",     NULL,
    };
    struct problem *p = r->p;
    int version;

    p->theta = 2;
    return doc_keys(&r->top, known) && doc_whole(&r->top, "version", 1, 1, &version) &&
           doc_whole(&r->top, "theta", 1, THETA_MAX, &p->theta) &&
           doc_fields(&r->top, problem_fields, p) &&
           read_factors(r, "gang_near", NULL, p->gang_near) &&
           read_factors(r, "gang_far", p->gang_near, p->gang_far);
}

/* ---- kinds ---- */

/* The kind like 'kind' at this price of time; made where there is none. */
static int kind_at(struct problem_reader *r, int kind, double time_w)
{
    struct problem_kind *kinds = r->p->kinds;
    int k = kind, last = kind;

    for (; k >= 0; k = r->next[k]) {
        if (kinds[k].time_w == time_w)
            return k;
        last = k;
    }
    k = r->p->n_kinds++;
    kinds[k] = kinds[kind];
    kinds[k].time_w = time_w;
    kinds[k].name = arena_printf(r->doc.arena, "%s at %.15g W", kinds[kind].name, time_w);
    r->of[k] = kind;
    r->next[k] = -1;
    r->next[last] = k;
    return k;
}

/* A job's kind: what a step is worth is the kind's, so a price of its own makes one of its own. */
static bool read_job_kind(struct problem_reader *r, const struct doc_at *at, int *out)
{
    json_t *kind = json_object_get(at->object, "kind");
    double time_w = NAN;

    if (!look_up(at, "kind", kind, &r->kinds, r->n_listed, out) ||
        !doc_number(at, "time_w", &time_w))
        return false;
    if (isnan(time_w))
        return true;
    *out = kind_at(r, *out, time_w);
    return (time_w >= 0 && time_w <= 1e12) ||
           doc_wrong(at, "time_w", "%g: want 0 to 1e12 W", time_w);
}

static bool read_kind(struct problem_reader *r, const struct doc_at *at)
{
    static const char *const known[] = { "name", "mem_gib", "value_j", "rate", "time_w", NULL };
    struct problem_kind *k = &r->p->kinds[at->index];

    r->of[at->index] = at->index;
    r->next[at->index] = -1;
    return read_name(at, known, &r->kinds, &k->name) && doc_fields(at, problem_kind_fields, k);
}

/* One that a job asks for by its own price. */
static bool make_kind(struct problem_reader *r, const struct doc_at *at)
{
    int unused;

    return !json_object_get(at->object, "time_w") || read_job_kind(r, at, &unused);
}

static bool read_kinds(struct problem_reader *r)
{
    json_t *list, *jobs, *v;
    int n_jobs;
    size_t most, i;

    if (!doc_list(&r->top, "kinds", LIST_MAX, &list, &r->n_listed) ||
        !doc_list(&r->top, "jobs", LIST_MAX, &jobs, &n_jobs))
        return false;
    most = (size_t)r->n_listed;
    json_array_foreach(jobs, i, v) most += json_object_get(v, "time_w") != NULL;
    r->p->kinds = ARENA_ARRAY(r->doc.arena, struct problem_kind, most);
    r->of = ARENA_ARRAY(r->doc.arena, int, most);
    r->next = ARENA_ARRAY(r->doc.arena, int, most);
    r->p->n_kinds = r->n_listed;
    return each(r, "kinds", list, r->n_listed, read_kind) &&
           each(r, "jobs", jobs, n_jobs, make_kind);
}

/* ---- types ---- */

static bool read_limit(const struct doc_at *at, struct limit_curve *out)
{
    static const char *const known[] = { "limit_w", "speed", "watts", NULL };

    if (!doc_keys(at, known) || !doc_whole(at, "limit_w", 1, 1000000, &out->limit_w))
        return false;
    json_t *watts = json_object_get(at->object, "watts");
    json_t *speed = json_object_get(at->object, "speed");
    size_t n = json_array_size(watts);
    if (out->limit_w == 0 || n < 2 || n > 10000 || speed == NULL)
        return doc_wrong(at, NULL,
                         "want limit_w, and speed and watts with as many points, at least 2");
    double *at_speed = ARENA_ARRAY(at->doc->arena, double, n);
    double *at_watts = ARENA_ARRAY(at->doc->arena, double, n);
    *out = (struct limit_curve){ out->limit_w, (int)n, at_speed, at_watts };
    return doc_row(at, "watts", watts, at_watts, (int)n) &&
           doc_row(at, "speed", speed, at_speed, (int)n);
}

static bool read_limits(struct problem_reader *r, const struct doc_at *at, struct problem_type *t)
{
    json_t *list;
    char name[40];

    snprintf(name, sizeof name, "types[%d].limits", at->index);
    if (!doc_list(at, "limits", LIMITS_MAX - 1, &list, &t->n_limits))
        return false;
    t->n_limits++;
    for (int i = 1; i < t->n_limits; i++) {
        const struct doc_at limit = { &r->doc, json_array_get(list, (size_t)i - 1), name, i - 1 };
        if (!read_limit(&limit, &t->limits[i]))
            return false;
    }
    return true;
}

/* ---- cells ---- */

/* A kind's row of a table: one number for the table or the row, or one for each kind; 'absent'
 * throughout where the table is not there.
 */
static bool table_row(struct problem_reader *r, const struct doc_at *at, const char *key, int kind,
                      double absent, double *row)
{
    json_t *table = json_object_get(at->object, key), *v = table;
    char what[60];

    if (table != NULL && !json_is_number(table)) {
        if (json_array_size(table) != (size_t)r->n_listed)
            return doc_wrong(at, key, "want a number, or a list of %d: one for each kind",
                             r->n_listed);
        v = json_array_get(table, (size_t)kind);
    }
    snprintf(what, sizeof what, "%s[%d]", key, kind);
    if (v != NULL && !json_is_number(v))
        return doc_row(at, what, v, row, r->n_listed);
    for (int n = 0; n < r->n_listed; n++)
        row[n] = v == NULL ? absent : json_number_value(v);
    return true;
}

/* One kind on one type: alone, and beside each other; 'rows' is scratch for two of them. */
static bool read_cells(struct problem_reader *r, const struct doc_at *at, int kind, double alone,
                       double sd, double *rows)
{
    struct problem *p = r->p;
    double *factor = rows, *deviation = rows + r->n_listed;
    float *speed = &p->speed[problem_cell(p, at->index, kind, -1)];
    float *low = &p->held[problem_cell(p, at->index, kind, -1)];

    if (!(sd >= 0))
        return doc_wrong(at, "sd", "%g for kind %d: want 0 or more", sd, kind);
    if (!table_row(r, at, "slowdown", kind, 0, factor) ||
        !table_row(r, at, "shared_sd", kind, sd, deviation))
        return false;
    speed[0] = (float)alone;
    low[0] = (float)((double)speed[0] * exp(-p->z * sd));
    for (int n = 0; n < p->n_kinds; n++) {
        double d = deviation[r->of[n]];
        if (!(d >= 0))
            return doc_wrong(at, "shared_sd", "%g for kind %d: want 0 or more", d, kind);
        speed[n + 1] = (float)((double)speed[0] * factor[r->of[n]]);
        low[n + 1] = (float)((double)speed[n + 1] * exp(-p->z * d));
    }
    return true;
}

/* Kinds that were made of others are as these are. */
static void copy_cells(struct problem_reader *r, int type)
{
    struct problem *p = r->p;
    size_t bytes = (size_t)(p->n_kinds + 1) * sizeof(float);

    for (int k = r->n_listed; k < p->n_kinds; k++) {
        long to = problem_cell(p, type, k, -1), from = problem_cell(p, type, r->of[k], -1);
        memcpy(&p->speed[to], &p->speed[from], bytes);
        memcpy(&p->held[to], &p->held[from], bytes);
        p->watts[type * p->n_kinds + k] = p->watts[type * p->n_kinds + r->of[k]];
    }
}

/* The tables of a type. */
static bool read_tables(struct problem_reader *r, const struct doc_at *at)
{
    int n = r->n_listed;
    double *rows = r->rows, *alone = rows + 2 * n, *sd = rows + 3 * n, *watts = rows + 4 * n;
    json_t *deviation = json_object_get(at->object, "sd");

    if (!doc_row(at, "speed", json_object_get(at->object, "speed"), alone, n) ||
        !doc_row(at, "watts", json_object_get(at->object, "watts"), watts, n))
        return false;
    for (int k = 0; k < n; k++)
        sd[k] = json_number_value(deviation);
    if (deviation && !json_is_number(deviation) && !doc_row(at, "sd", deviation, sd, n))
        return false;
    for (int k = 0; k < n; k++) {
        r->p->watts[at->index * r->p->n_kinds + k] = (float)watts[k];
        if (!read_cells(r, at, k, alone[k], sd[k], rows))
            return false;
    }
    copy_cells(r, at->index);
    return true;
}

static bool read_type(struct problem_reader *r, const struct doc_at *at)
{
    static const char *const known[] = {
        "name", "sleep_w", "idle_w",   "cap_w",     "mem_gib", "limits", "speed",
        "sd",   "watts",   "slowdown", "shared_sd", "count",   NULL,
    };
    struct problem_type *t = &r->p->types[at->index];

    if (!read_name(at, known, &r->types, &t->name) || !doc_fields(at, problem_type_fields, t))
        return false;
    if (!json_object_get(at->object, "idle_w"))
        t->idle_w = t->sleep_w;
    return read_limits(r, at, t) && read_tables(r, at);
}

static bool read_types(struct problem_reader *r)
{
    struct problem *p = r->p;
    struct arena *a = r->doc.arena;
    json_t *list;

    if (!doc_list(&r->top, "types", 64, &list, &p->n_types))
        return false;
    size_t cells = (size_t)p->n_types * (size_t)p->n_kinds, width = (size_t)p->n_kinds + 1;
    if ((double)cells * (double)width > (double)CELLS_MAX)
        return doc_wrong(&r->top, "kinds", "%d kinds on %d types are too many%s", p->n_kinds,
                         p->n_types,
                         p->n_kinds > r->n_listed ? ": use fewer different \"time_w\"" : "");
    p->types = ARENA_ARRAY(a, struct problem_type, (size_t)p->n_types);
    p->watts = ARENA_ARRAY(a, float, cells);
    p->speed = ARENA_ARRAY(a, float, cells *width);
    p->held = ARENA_ARRAY(a, float, cells *width);
    r->rows = ARENA_ARRAY(a, double, 5 * (size_t)r->n_listed);
    return each(r, "types", list, p->n_types, read_type);
}

/* ---- GPUs ---- */

/* Some GPUs that are alike, behind those that are there; there must be memory for them. */
static struct problem_gpu *add_gpus(struct problem *p, struct problem_gpu gpu, int count)
{
    struct problem_gpu *first = p->gpus + p->n_gpus;

    for (int i = 0; i < count; i++)
        first[i] = gpu;
    p->n_gpus += count;
    p->n_racks = gpu.rack < p->n_racks ? p->n_racks : gpu.rack + 1;
    return first;
}

/* Some GPUs of one type on one node. */
static bool read_group(struct problem_reader *r, const struct doc_at *at)
{
    static const char *const known[] = { "type",    "count",  "node",   "rack",
                                         "drained", "wake_s", "device", NULL };
    struct problem_gpu gpu = { .node = r->next_node };
    json_t *type = json_object_get(at->object, "type"), *v;
    json_t *drained = json_object_get(at->object, "drained");
    int count = r->counts[at->index];
    size_t i;

    if (!doc_keys(at, known) || !look_up(at, "type", type, &r->types, r->p->n_types, &gpu.type) ||
        !doc_whole(at, "node", 0, GPUS_MAX, &gpu.node) ||
        !doc_whole(at, "rack", 0, GPUS_MAX, &gpu.rack) || !doc_number(at, "wake_s", &gpu.wake_s) ||
        !doc_whole(at, "device", 0, GPUS_MAX, &gpu.device))
        return false;
    if (drained && !json_is_boolean(drained) && !json_is_array(drained))
        return doc_wrong(at, "drained", "want true, or a list of which of its GPUs");
    gpu.may_start = !json_is_true(drained);
    struct problem_gpu *gpus = add_gpus(r->p, gpu, count);
    json_array_foreach(drained, i, v)
    {
        int which = doc_index(at, "drained", v, "the group's", count, "GPUs");
        if (which < 0)
            return false;
        gpus[which].may_start = false;
    }
    r->next_node = gpu.node < r->next_node ? r->next_node : gpu.node + 1;
    return true;
}

static bool read_count(struct problem_reader *r, const struct doc_at *at)
{
    if (!doc_whole(at, "count", 0, GPUS_MAX, &r->counts[at->index]))
        return false;
    r->n_gpus += r->counts[at->index];
    return r->n_gpus <= GPUS_MAX || doc_wrong(at, "count", "more than %d GPUs in all", GPUS_MAX);
}

/* Without a list of GPUs there are as many as the types say, on nodes of NODE_SIZE, in one rack. */
static bool read_gpus(struct problem_reader *r)
{
    json_t *list, *types = json_object_get(r->top.object, "types");
    int n, n_types = r->p->n_types;

    if (!doc_list(&r->top, "gpus", GPUS_MAX, &list, &n))
        return false;
    r->counts = ARENA_ARRAY(r->doc.arena, int, (size_t)(n + n_types));
    for (int i = 0; i < n; i++)
        r->counts[i] = 1;    // where it is not said
    if (!each(r, "gpus", list, n, read_count) ||
        (!list && !each(r, "types", types, n_types, read_count)))
        return false;
    r->p->gpus = ARENA_ARRAY(r->doc.arena, struct problem_gpu, (size_t)r->n_gpus);
    for (int t = 0; t < n_types && !list; t++)
        for (int left = r->counts[t]; left > 0; left -= NODE_SIZE, r->next_node++)
            add_gpus(r->p,
                     (struct problem_gpu){ .type = t, .node = r->next_node, .may_start = true },
                     left < NODE_SIZE ? left : NODE_SIZE);
    return each(r, "gpus", list, n, read_group);
}

static bool read_racks(struct problem_reader *r)
{
    json_t *list;
    int n;

    if (!doc_list(&r->top, "racks", GPUS_MAX, &list, &n) || !list)
        return !list;
    r->p->n_racks = n > r->p->n_racks ? n : r->p->n_racks;
    double *cap_w = ARENA_ARRAY(r->doc.arena, double, (size_t)r->p->n_racks);
    r->p->rack_cap_w = cap_w;
    return doc_row(&r->top, "racks", list, cap_w, n);
}

static bool read_node(struct problem_reader *r, const struct doc_at *at)
{
    static const char *const known[] = { "cpus", "mem_mib", NULL };
    int cpus = -1, mem_mib = -1;

    if (!doc_keys(at, known) || !doc_whole(at, "cpus", 0, INT_MAX, &cpus) ||
        !doc_whole(at, "mem_mib", 0, INT_MAX, &mem_mib))
        return false;
    r->nodes[at->index] =
        (struct engine_node){ cpus < 0 ? LONG_MAX : cpus, mem_mib < 0 ? LONG_MAX : mem_mib };
    return true;
}

/* What jobs may use of each node together. */
static bool read_nodes(struct problem_reader *r)
{
    struct problem *p = r->p;
    json_t *list;
    int n;

    if (!doc_list(&r->top, "nodes", GPUS_MAX, &list, &n))
        return false;
    p->n_nodes = problem_n_nodes(p);
    p->n_nodes = n > p->n_nodes ? n : p->n_nodes;
    if (!list || p->n_nodes == 0)
        return true;
    p->nodes = r->nodes = ARENA_ARRAY(r->doc.arena, struct engine_node, (size_t)p->n_nodes);
    for (int i = 0; i < p->n_nodes; i++)
        r->nodes[i] = (struct engine_node){ LONG_MAX, LONG_MAX };
    return each(r, "nodes", list, n, read_node);
}

/* ---- jobs ---- */

/* "one_node" is the older word for "n_nodes": 1. */
static bool read_form(const struct doc_at *at, struct problem_job *j)
{
    bool is_spread, is_one = false;

    j->n_min = 1;
    if (!doc_either(at, "form", "gang", "spread", &is_spread) ||
        !doc_whole(at, "n_min", 1, GANG_MAX, &j->n_min) || !doc_flag(at, "one_node", &is_one))
        return false;
    j->form = is_spread ? FORM_SPREAD : FORM_GANG;
    j->n_max = j->n_min;
    j->n_nodes = is_one;
    if (is_one && json_object_get(at->object, "n_nodes"))
        return doc_wrong(at, "n_nodes", "only without \"one_node\"");
    return doc_whole(at, "n_max", 1, GANG_MAX, &j->n_max) &&
           doc_whole(at, "n_nodes", 0, GANG_MAX, &j->n_nodes);
}

static bool read_allowed(struct problem_reader *r, const struct doc_at *at, struct problem_job *j)
{
    json_t *list, *v;
    size_t i;
    int n, type;

    if (!doc_list(at, "types", LIST_MAX, &list, &n))
        return false;
    if (list != NULL && n == 0)
        return doc_wrong(at, "types", "an empty list allows none; leave it out for any");
    json_array_foreach(list, i, v)
    {
        if (!look_up(at, "types", v, &r->types, r->p->n_types, &type) || type < 0)
            return false;
        j->allowed_types |= UINT64_C(1) << type;
    }
    return true;
}

static bool read_present(struct problem_reader *r, const struct doc_at *at, struct problem_job *j)
{
    const struct problem *p = r->p;
    json_t *list, *v;
    int limit_w = 0;
    size_t i;

    if (!doc_list(at, "present", GANG_MAX, &list, &j->n_present))
        return false;
    int *present = ARENA_ARRAY(r->doc.arena, int, (size_t)j->n_present);
    j->present = present;
    json_array_foreach(list, i, v)
    {
        present[i] = doc_index(at, "present", v, "the", p->n_gpus, "GPUs");
        if (present[i] < 0)
            return false;
    }
    if (!doc_whole(at, "limit_w", 0, 1000000, &limit_w))
        return false;
    if (limit_w == 0 || j->n_present == 0)
        return limit_w == 0 || doc_wrong(at, "limit_w", "only with \"present\"");
    j->present_limit = problem_setting(&p->types[p->gpus[present[0]].type], limit_w);
    return j->present_limit >= 0 ||
           doc_wrong(at, "limit_w", "its GPUs have no limit of %d W", limit_w);
}

/* Nodes that the job is kept from: {"feature": [0, 3]}. */
static bool read_bars(struct problem_reader *r, const struct doc_at *at, struct problem_job *j)
{
    json_t *rules = json_object_get(at->object, "barred"), *list, *v;
    const char *name;
    size_t i;

    if (!rules)
        return true;
    unsigned char *barred = ARENA_ARRAY(r->doc.arena, unsigned char, (size_t)r->p->n_nodes);
    if (!json_is_object(rules))
        return doc_wrong(at, "barred", "want lists of nodes by rule: {\"feature\": [3]}");
    json_object_foreach(rules, name, list)
    {
        int rule = engine_rule_find(name);
        if (rule < 0 || !json_is_array(list))
            return doc_wrong(at, "barred", "'%.40s': want a rule's name and a list", name);
        json_array_foreach(list, i, v)
        {
            int node = doc_index(at, "barred", v, "the", r->p->n_nodes, "nodes");
            if (node < 0)
                return false;
            barred[node] = (unsigned char)rule;
        }
    }
    j->engine.barred = barred;
    return true;
}

static bool read_job(struct problem_reader *r, const struct doc_at *at)
{
    static const char *const known[] = {
        "name",    "kind",    "form",      "n_min",     "n_max",    "need",    "short_w",
        "wait_w",  "move_w",  "types",     "exclusive", "one_node", "n_nodes", "fixed",
        "present", "limit_w", "wake_rate", "late_w",    "time_w",   "cpus",    "mem_mib",
        "device",  "barred",  "start_w",   NULL,
    };
    struct problem_job *j = &r->p->jobs[at->index];

    if (json_is_null(at->object))
        return true;
    return read_name(at, known, &r->jobs, &j->name) && read_job_kind(r, at, &j->kind) &&
           read_form(at, j) && doc_fields(at, problem_job_fields, j) && read_allowed(r, at, j) &&
           doc_flag(at, "exclusive", &j->is_exclusive) && doc_flag(at, "fixed", &j->is_fixed) &&
           doc_whole(at, "cpus", 0, INT_MAX, &j->engine.cpus) &&
           doc_whole(at, "mem_mib", 0, INT_MAX, &j->engine.mem_mib) &&
           doc_whole(at, "device", 0, GPUS_MAX, &j->engine.device) && read_bars(r, at, j) &&
           read_present(r, at, j);
}

static bool read_jobs(struct problem_reader *r)
{
    json_t *list;

    if (!doc_list(&r->top, "jobs", LIST_MAX, &list, &r->p->n_jobs))
        return false;
    r->p->jobs = ARENA_ARRAY(r->doc.arena, struct problem_job, (size_t)r->p->n_jobs);
    return each(r, "jobs", list, r->p->n_jobs, read_job);
}

/* ---- the whole ---- */

/* What a step is worth, where the file does not say it. */
static bool read_objective(struct problem_reader *r)
{
    json_t *list = json_object_get(r->top.object, "kinds");
    bool is_watts;

    if (!doc_either(&r->top, "objective", "joules", "watts", &is_watts))
        return false;
    for (int k = 0; k < r->p->n_kinds && !is_watts; k++)
        if (!json_object_get(json_array_get(list, (size_t)r->of[k]), "value_j"))
            r->p->kinds[k].value_j = problem_best_joules(r->p, k);
    return true;
}

/* Problem_check's sentences begin with the place; the file's name comes before. */
static bool check(struct problem_reader *r)
{
    int rc = problem_check(r->p, r->doc.e);

    if (rc < 0 && r->doc.e != NULL)
        err_prefix(r->doc.e, "%s", r->doc.name);
    return rc == 0;
}

int problem_parse(struct arena *a, const char *name, const char *text, size_t len,
                  struct problem *out, struct err *e)
{
    struct problem_reader r = { .doc = { a, name, e }, .p = out };
    json_t *root = doc_open(&r.doc, text, len);

    if (root == NULL)
        return -EINVAL;
    r.top = (struct doc_at){ &r.doc, root, NULL, -1 };
    *out = (struct problem){ 0 };
    /* The tables are checked before anybody reckons with them. */
    bool is_read = read_frame(&r) && read_kinds(&r) && read_types(&r) && check(&r) &&
                   read_gpus(&r) && read_racks(&r) && read_nodes(&r) && read_jobs(&r) &&
                   read_objective(&r) && check(&r);
    map_release(&r.types);
    map_release(&r.kinds);
    map_release(&r.jobs);
    json_decref(root);
    return is_read ? 0 : -EINVAL;
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

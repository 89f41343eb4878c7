#include "daemon/api/usage.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"

#define TIME_MAX_S 1e12    // what a number of seconds may be

const char *const usage_by_names[USAGE_BYS + 1] = { "owner", "workload", "gpu_type", NULL };

int usage_by_name(const char *name)
{
    return text_find(usage_by_names, USAGE_BYS, name);
}

void usage_init(struct usage *u)
{
    *u = (struct usage){ 0 };
}

void usage_release(struct usage *u)
{
    free(u->parts);
    free(u->hours);
    free(u->served);
    map_u64_release(&u->part_by_key);
}

/* All but the key of a row. */
static void sum_add(struct row_usage *s, const struct row_usage *more)
{
    s->active_j += more->active_j;
    s->idle_j += more->idle_j;
    s->gpu_s += more->gpu_s;
    s->steps += more->steps;
    s->promised_s += more->promised_s;
    s->kept_s += more->kept_s;
    s->n_measured += more->n_measured;
    s->abs_error += more->abs_error;
    s->n_covered += more->n_covered;
    s->requests += more->requests;
    s->late += more->late;
}

double usage_joules(const struct row_usage *r)
{
    return r->active_j + r->idle_j;
}

static struct row_usage *part_at(struct usage *u, int64_t job, int64_t gpu_type)
{
    uint64_t key = (uint64_t)(job + 1) << 24 | ((uint64_t)gpu_type & 0xffffff);
    int i = map_u64_get(&u->part_by_key, key);

    if (i < 0) {
        GROW(u->parts, u->n_parts, u->cap_parts);
        i = u->n_parts++;
        u->parts[i] = (struct row_usage){ .job = job, .gpu_type = gpu_type };
        map_u64_set(&u->part_by_key, key, i);
    }
    return &u->parts[i];
}

static struct row_usage *hour_at(struct usage *u, int64_t hour_s)
{
    if (u->n_hours == 0 || u->hours[u->n_hours - 1].hour_s != hour_s) {
        GROW(u->hours, u->n_hours, u->cap_hours);
        u->hours[u->n_hours++] = (struct row_usage){ .hour_s = hour_s };
    }
    return &u->hours[u->n_hours - 1];
}

void usage_add(struct usage *u, const struct row_usage *r)
{
    sum_add(part_at(u, r->job, r->gpu_type), r);
    sum_add(hour_at(u, r->hour_s), r);
    sum_add(&u->total, r);
    if (r->requests > 0) {
        GROW(u->served, u->n_served, u->cap_served);
        u->served[u->n_served++] = *r;
    }
}

static int on_row(void *self, const struct row_usage *r)
{
    usage_add(self, r);
    return 0;
}

int usage_read(struct usage *u, const char *path, double from_s, double to_s, struct err *e)
{
    struct store *s = NULL;
    int rc = store_open(path, STORE_READ, &s, e);

    if (rc < 0)
        return rc;
    from_s = fmin(fmax(from_s, -TIME_MAX_S), TIME_MAX_S);
    to_s = fmin(fmax(to_s, -TIME_MAX_S), TIME_MAX_S);
    rc = store_each_usage(s, (int64_t)floor(from_s / 3600) * 3600, (int64_t)ceil(to_s), on_row, u,
                          e);
    store_close(s);
    return rc;
}

/* ---- rows of a report ---- */

struct usage_line {
    const char *name;
    int n_jobs;
    struct row_usage sum;
};

struct usage_table {
    const struct state *state;
    const struct catalog *catalog;
    enum usage_by by;
    struct usage_line *rows;
    int n_rows, cap_rows;
    struct map row_by_name;
    struct map_u64 counted;    // (row, job) that was
};

static const char *type_name(const struct catalog *c, int64_t id)
{
    for (int t = 0; t < c->n_types; t++)
        if ((c->store ? c->type_row[t] : t + 1) == id)
            return c->types[t].name;
    return "(none)";
}

/* Who a part belongs to. By type, empty GPUs are of their type; elsewhere they are nobody's. */
static const char *part_name(const struct usage_table *t, const struct row_usage *p)
{
    if (t->by == BY_GPU_TYPE)
        return type_name(t->catalog, p->gpu_type);
    if (p->job < 0 || p->job >= t->state->n_jobs)
        return "(nobody)";
    const struct job_spec *spec = &t->state->jobs[p->job]->spec;
    if (t->by == BY_WORKLOAD)
        return t->catalog->workloads[spec->workload].name;
    return spec->owner ? spec->owner : "(nobody)";
}

static int row_named(struct usage_table *t, const char *name)
{
    int i = map_get(&t->row_by_name, name);

    if (i < 0) {
        GROW(t->rows, t->n_rows, t->cap_rows);
        i = t->n_rows++;
        t->rows[i] = (struct usage_line){ .name = name };
        map_set(&t->row_by_name, name, i);
    }
    assert(i < t->n_rows && t->rows);
    return i;
}

/* 1 where the job was not counted in this row before. */
static int count_once(struct usage_table *t, int row, int64_t job)
{
    uint64_t key = (uint64_t)row << 32 | (uint64_t)(uint32_t)job;

    if (job < 0 || map_u64_get(&t->counted, key) >= 0)
        return 0;
    map_u64_set(&t->counted, key, 1);
    return 1;
}

static int by_joules(const void *a, const void *b)
{
    const struct usage_line *x = a, *y = b;
    double dx = usage_joules(&x->sum), dy = usage_joules(&y->sum);

    if (dx != dy)
        return dx > dy ? -1 : 1;
    return strcmp(x->name, y->name);
}

static json_t *share(double part, double whole)
{
    return whole > 0 ? json_real(part / whole) : json_null();
}

static json_t *row_json(const char *name, int n_jobs, const struct row_usage *s)
{
    return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:o, s:o}",    //
                     "name", name, "jobs", n_jobs, "joules", usage_joules(s),                //
                     "active_j", s->active_j, "idle_j", s->idle_j, "gpu_s", s->gpu_s,        //
                     "steps", s->steps, "promised_s", s->promised_s, "kept_s", s->kept_s,    //
                     "kept", share(s->kept_s, s->promised_s), "measured", s->n_measured,     //
                     "error", share(s->abs_error, s->n_measured),                            //
                     "coverage", share(s->n_covered, s->n_measured));
}

static json_t *hours_json(const struct usage *u)
{
    json_t *list = json_array();

    for (int i = 0; i < u->n_hours; i++) {
        const struct row_usage *s = &u->hours[i];
        json_array_append_new(list, json_pack("{s:I, s:f, s:o, s:o}", "hour_s",
                                              (json_int_t)s->hour_s, "joules", usage_joules(s),
                                              "kept", share(s->kept_s, s->promised_s), "error",
                                              share(s->abs_error, s->n_measured)));
    }
    return list;
}

static void table_fill(struct usage_table *t, const struct usage *u, int *n_jobs)
{
    const int all = INT32_MAX;    // the total's "row"

    for (int i = 0; i < u->n_parts; i++) {
        const struct row_usage *p = &u->parts[i];
        int row = row_named(t, part_name(t, p));
        sum_add(&t->rows[row].sum, p);
        t->rows[row].n_jobs += count_once(t, row, p->job);
        *n_jobs += count_once(t, all, p->job);
    }
    if (t->n_rows > 0)
        qsort(t->rows, (size_t)t->n_rows, sizeof *t->rows, by_joules);
}

json_t *usage_json(const struct usage *u, enum usage_by by, const struct state *s,
                   const struct catalog *c)
{
    struct usage_table t = { .state = s, .catalog = c, .by = by };
    json_t *rows = json_array();
    int n_jobs = 0;

    table_fill(&t, u, &n_jobs);
    for (int i = 0; i < t.n_rows; i++)
        json_array_append_new(rows, row_json(t.rows[i].name, t.rows[i].n_jobs, &t.rows[i].sum));
    free(t.rows);
    map_release(&t.row_by_name);
    map_u64_release(&t.counted);
    return json_pack("{s:o, s:o, s:o}", "total", row_json("total", n_jobs, &u->total), "rows", rows,
                     "hours", hours_json(u));
}

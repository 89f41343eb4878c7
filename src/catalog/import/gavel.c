/* gavel.c - throughputs as Gavel (OSDI'20) publishes them, and watts beside them.
 *
 * The JSON is {gpu: {"('job type', n_workers)": {"null": isolated steps/s,
 * "('other job', n)": [steps/s of this, steps/s of the other]}}}. What a zero means
 * depends on where it stands: at one worker "does not fit", at several "not measured".
 * The oracle's file, of an earlier campaign, has "job type" for "('job type', 1)".
 * '<gpu>_unconsolidated' is the same GPU with a gang spread over nodes. One worker cannot
 * be spread, so its values at one worker are copies and never counted.
 */
#include "catalog/import/import.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text/csv.h"
#include "base/err.h"
#include "base/log.h"
#include "base/progress.h"
#include "catalog/import/draft.h"

static const char spread_suffix[] = "_unconsolidated";

/* A reading in progress. */
struct gavel {
    struct draft *d;
    const char *file, *isolated_file;
    json_t *root;        // pairs come from here
    json_t *isolated;    // isolated speeds from here; often the same
    bool is_plain;       // job types stand without workers, as in the oracle's file
    int n_unlike;        // copies that differ from what they are copies of
    struct err *e;
};

/* A GPU of the file, and a job type on it. */
struct gpu_key {
    const char *key;     // as in the file
    const char *base;    // without the suffix
    bool is_spread;
};

struct job_key {
    const char *key;     // "('A3C', 1)"
    const char *name;    // "A3C"
    int n_workers;
};

/* ---- errors that name a path ---- */

static int bad(const struct gavel *g, const char *file, const char *gpu, const char *job,
               const char *entry, const char *what)
{
    if (job == NULL)
        return err_set(g->e, EINVAL, "%s: %.60s: %s", file, gpu, what);
    if (entry == NULL)
        return err_set(g->e, EINVAL, "%s: %.60s.\"%.90s\": %s", file, gpu, job, what);
    if (strcmp(entry, "null") == 0)
        return err_set(g->e, EINVAL, "%s: %.60s.\"%.90s\".null: %s", file, gpu, job, what);
    return err_set(g->e, EINVAL, "%s: %.60s.\"%.90s\".\"%.90s\": %s", file, gpu, job, entry, what);
}

/* ---- pieces ---- */

static int read_gpu_key(struct gavel *g, const char *file, json_t *root, const char *key,
                        struct gpu_key *out)
{
    size_t len = strlen(key), tail = sizeof(spread_suffix) - 1;

    if (!text_is_name(slice_of(key)))
        return bad(g, file, key, NULL, NULL, "the name of a GPU type has 1 to 200 printable bytes");
    *out = (struct gpu_key){ .key = key, .base = key };
    if (len < tail || strcmp(key + len - tail, spread_suffix) != 0)
        return 0;
    if (len == tail)
        return bad(g, file, key, NULL, NULL, "a suffix without a GPU type; name one before it");
    out->base = arena_strndup(&g->d->arena, key, len - tail);
    out->is_spread = true;
    if (json_object_get(root, out->base) == NULL)
        return bad(g, file, key, NULL, NULL,
                   "there is no GPU of this name without the suffix, "
                   "whose one-worker values these would repeat; rename or add it");
    return 0;
}

/* "ResNet-18 (batch size 16)": of one worker. */
static int read_plain_key(const char *key, struct job_key *out)
{
    if (key[0] == '(' || !text_is_name(slice_of(key)))
        return -EINVAL;
    *out = (struct job_key){ .key = key, .name = key, .n_workers = 1 };
    return 0;
}

/* "('ResNet-18 (batch size 16)', 2)", as Python writes a pair. */
static int read_job_key(struct gavel *g, const char *key, struct job_key *out)
{
    size_t len = strlen(key);
    const char *end, *at;
    struct slice name;
    long n_workers;

    if (g->is_plain)
        return read_plain_key(key, out);
    if (len < 8 || key[0] != '(' || (key[1] != '\'' && key[1] != '"') || key[len - 1] != ')')
        return -EINVAL;
    end = key + len - 1;
    for (at = end; at > key + 2 && *at != ','; at--)
        ;
    if (at <= key + 3 || at[-1] != key[1])
        return -EINVAL;
    name = (struct slice){ key + 2, (size_t)(at - 1 - (key + 2)) };
    if (!text_is_name(name) ||
        text_to_long(slice_trim((struct slice){ at + 1, (size_t)(end - at - 1) }), 1,
                     CATALOG_GANG_MAX, &n_workers) < 0)
        return -EINVAL;
    out->key = key;
    out->name = arena_strndup(&g->d->arena, name.at, name.len);
    out->n_workers = (int)n_workers;
    return 0;
}

static const char *const want_job_key =
    "want a job type as \"A3C\", or with its workers as \"('ResNet-18 (batch size 16)', 1)\"";

/* NULL when 'v' is a speed, else what is wrong with it. */
static const char *speed_problem(const json_t *v)
{
    double x = json_number_value(v);

    if (!json_is_number(v))
        return "want a number: steps per second";
    if (!isfinite(x) || x < 0 || x > IMPORT_SPEED_MAX)
        return "not a plausible number of steps per second (0 to 1e9); wrong unit?";
    return NULL;
}

/* One of a pair's speeds: 0 for this job, 1 for the other. */
static double speed_of(const json_t *pair, size_t i)
{
    return json_number_value(json_array_get(pair, i));
}

/* NULL when 'v' is a pair of speeds, or of zeros. */
static const char *pair_problem(const json_t *v)
{
    const char *problem;

    if (!json_is_array(v) || json_array_size(v) != 2)
        return "want two numbers: steps per second of this job and of the other";
    problem = speed_problem(json_array_get(v, 0));
    if (problem == NULL)
        problem = speed_problem(json_array_get(v, 1));
    if (problem == NULL && (speed_of(v, 0) > 0) != (speed_of(v, 1) > 0))
        problem = "one of the two speeds is zero; a pair runs, or does not fit (both zero)";
    return problem;
}

static json_t *isolated_value(const json_t *root, const char *gpu, const char *job)
{
    return json_object_get(json_object_get(json_object_get(root, gpu), job), "null");
}

/* 'job' runs at 'speed' (0: does not fit) times 'scale' there, alone (neighbour -1) or beside
 * another.
 */
static void add_row(struct gavel *g, const struct gpu_key *gpu, const struct job_key *job,
                    int neighbour, double speed, double scale)
{
    struct draft *d = g->d;
    struct measurement *m =
        draft_add(d, draft_workload(d, job->name), draft_type(d, gpu->base), neighbour);

    m->key.n_gpus = job->n_workers;
    m->key.is_spread = gpu->is_spread;
    m->fits = speed > 0;
    m->throughput = speed > 0 ? speed * scale : (double)NAN;
}

/* ---- isolated speeds ---- */

static int read_isolated(struct gavel *g, const struct gpu_key *gpu, const struct job_key *job,
                         const json_t *v)
{
    struct draft *d = g->d;
    const char *problem = speed_problem(v);
    double speed = json_number_value(v);

    if (problem != NULL)
        return bad(g, g->isolated_file, gpu->key, job->key, "null", problem);
    if (gpu->is_spread && job->n_workers == 1) {
        g->n_unlike += !json_equal(v, isolated_value(g->isolated, gpu->base, job->key));
        d->report.n_copies++;
        return 0;
    }
    if (job->n_workers > 1 && speed == 0) {
        d->report.n_dropped++;
        return 0;
    }
    add_row(g, gpu, job, -1, speed, 1);
    return 0;
}

/* ---- pairs ---- */

/* By what a pair's speed is multiplied: 1, or isolated there over isolated here. */
static int pair_scale(struct gavel *g, const char *gpu, const char *job, double *scale)
{
    double here, there;

    *scale = 1;
    if (g->isolated == g->root)
        return 0;
    here = json_number_value(isolated_value(g->root, gpu, job));
    there = json_number_value(isolated_value(g->isolated, gpu, job));
    if (!(here > 0))
        return bad(g, g->file, gpu, job, "null",
                   "an isolated speed is needed to know the "
                   "slowdown of its pairs; add it or import without --isolated");
    if (!(there > 0))
        return bad(g, g->isolated_file, gpu, job, "null",
                   "an isolated speed is needed for the "
                   "pairs of the other file; add it or import without --isolated");
    *scale = there / here;
    return 0;
}

/* 'this' beside 'other' runs at 'speed' (0: does not fit). */
static int add_pair(struct gavel *g, const struct gpu_key *gpu, const struct job_key *this,
                    const struct job_key *other, double speed)
{
    double scale = 1;
    int rc = speed > 0 ? pair_scale(g, gpu->key, this->key, &scale) : 0;

    if (rc < 0)
        return rc;
    if (speed * scale > IMPORT_SPEED_MAX)
        return bad(g, g->file, gpu->key, this->key, other->key,
                   "above 1e9 steps/s with the speeds of --isolated; compare both files' units");
    draft_workload(g->d, this->name);    // workloads are numbered as they are met
    add_row(g, gpu, this, draft_workload(g->d, other->name), speed, scale);
    return 0;
}

/* A pair is listed under both of its jobs, mirrored. */
static int check_mirror(struct gavel *g, const struct gpu_key *gpu, const struct job_key *this,
                        const struct job_key *other, const json_t *v, const json_t *mirror)
{
    char what[240];

    if (!json_is_array(mirror) || strcmp(this->key, other->key) == 0 ||
        (speed_of(v, 0) == speed_of(mirror, 1) && speed_of(v, 1) == speed_of(mirror, 0)))
        return 0;
    snprintf(what, sizeof(what),
             "contradicts %.60s.\"%.60s\".\"%.60s\", the same pair; correct one of them", gpu->key,
             other->key, this->key);
    return bad(g, g->file, gpu->key, this->key, other->key, what);
}

static int read_pair(struct gavel *g, const struct gpu_key *gpu, const struct job_key *this,
                     const struct job_key *other, const json_t *v)
{
    json_t *jobs = json_object_get(g->root, gpu->key);
    json_t *mirror = json_object_get(json_object_get(jobs, other->key), this->key);
    const char *problem = pair_problem(v);
    bool is_single = this->n_workers == 1 && other->n_workers == 1;
    double speed = speed_of(v, 0);
    int rc;

    if (problem != NULL)
        return bad(g, g->file, gpu->key, this->key, other->key, problem);
    rc = check_mirror(g, gpu, this, other, v, mirror);
    if (rc < 0)
        return rc;
    if (gpu->is_spread && is_single) {
        json_t *base = json_object_get(json_object_get(g->root, gpu->base), this->key);

        g->n_unlike += !json_equal(v, json_object_get(base, other->key));
        g->d->report.n_copies++;
        return 0;
    }
    /* Gangs of unlike size share only some of their GPUs: there is no cell for that. */
    if (!is_single && (speed == 0 || this->n_workers != other->n_workers)) {
        g->d->report.n_dropped++;
        return 0;
    }
    rc = add_pair(g, gpu, this, other, speed);
    /* Beside itself: the same cell was measured twice. */
    if (rc == 0 && strcmp(this->key, other->key) == 0 && speed_of(v, 1) != speed)
        rc = add_pair(g, gpu, this, other, speed_of(v, 1));
    /* Each pair is listed under both jobs; where it is not, take both sides from here. */
    if (rc == 0 && strcmp(this->key, other->key) != 0 && mirror == NULL)
        rc = add_pair(g, gpu, other, this, speed_of(v, 1));
    return rc;
}

/* ---- the walk ---- */

typedef int job_f(struct gavel *g, const struct gpu_key *gpu, const struct job_key *job,
                  json_t *entries);

static int each_job(struct gavel *g, const char *file, json_t *root, job_f *f, struct progress *p)
{
    const char *gpu_text, *job_text;
    json_t *jobs, *entries;
    double n_done = 0;
    int rc;

    json_object_foreach(root, gpu_text, jobs)
    {
        struct gpu_key gpu;

        rc = read_gpu_key(g, file, root, gpu_text, &gpu);
        if (rc < 0)
            return rc;
        if (!json_is_object(jobs))
            return bad(g, file, gpu_text, NULL, NULL, "want an object of job types");
        json_object_foreach(jobs, job_text, entries)
        {
            struct job_key job;

            if (read_job_key(g, job_text, &job) < 0)
                return bad(g, file, gpu_text, job_text, NULL, want_job_key);
            if (!json_is_object(entries))
                return bad(g, file, gpu_text, job_text, NULL,
                           "want an object with \"null\" and neighbours");
            rc = f(g, &gpu, &job, entries);
            if (rc < 0)
                return rc;
        }
        progress_step(p, ++n_done, (double)json_object_size(root));
    }
    return 0;
}

static int walk_isolated(struct gavel *g, const struct gpu_key *gpu, const struct job_key *job,
                         json_t *entries)
{
    json_t *v = json_object_get(entries, "null");

    return v != NULL ? read_isolated(g, gpu, job, v) : 0;
}

static int walk_pairs(struct gavel *g, const struct gpu_key *gpu, const struct job_key *job,
                      json_t *entries)
{
    const char *key;
    json_t *v;

    json_object_foreach(entries, key, v)
    {
        struct job_key other;
        int rc;

        if (strcmp(key, "null") == 0) {
            const char *problem = speed_problem(v);

            rc = problem != NULL ? bad(g, g->file, gpu->key, job->key, key, problem) : 0;
        } else if (read_job_key(g, key, &other) < 0) {
            rc = bad(g, g->file, gpu->key, job->key, key, want_job_key);
        } else {
            rc = read_pair(g, gpu, job, &other, v);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int load_json(const struct draft_text *in, json_t **out, struct err *e)
{
    json_error_t problem;

    *out = json_loadb(in->text, in->len, JSON_REJECT_DUPLICATES, &problem);
    if (*out == NULL)
        return err_set(e, EINVAL, "%s: line %d, column %d: %s; is this a whole JSON file?",
                       in->name, problem.line, problem.column, problem.text);
    if (!json_is_object(*out) || json_object_size(*out) == 0) {
        json_decref(*out);
        *out = NULL;
        return err_set(e, EINVAL,
                       "%s: want an object of GPU types, as in Gavel's "
                       "simulation_throughputs.json",
                       in->name);
    }
    return 0;
}

/* One file has job types of one form: that of its first. */
static bool has_plain_keys(json_t *root)
{
    for (void *gpu = json_object_iter(root); gpu != NULL; gpu = json_object_iter_next(root, gpu)) {
        void *job = json_object_iter(json_object_iter_value(gpu));

        if (job != NULL)
            return json_object_iter_key(job)[0] != '(';
    }
    return false;
}

int gavel_read(struct draft *d, const struct draft_text *throughputs,
               const struct draft_text *isolated, struct progress *p, struct err *e)
{
    d->report.why_dropped = "of several workers, zeros (not measured) and pairs of unlike size";
    struct gavel g = {
        .d = d,
        .file = throughputs->name,
        .isolated_file = isolated != NULL ? isolated->name : throughputs->name,
        .e = e,
    };
    int rc = load_json(throughputs, &g.root, e);

    if (rc == 0 && isolated != NULL)
        rc = load_json(isolated, &g.isolated, e);
    else
        g.isolated = json_incref(g.root);
    g.is_plain = has_plain_keys(g.root);
    if (rc == 0)
        rc = each_job(&g, g.isolated_file, g.isolated, walk_isolated, NULL);
    if (rc == 0)
        rc = each_job(&g, g.file, g.root, walk_pairs, p);
    if (rc == 0 && d->n_rows == 0)
        rc = err_set(e, EINVAL, "%s: not one measurement in it", g.file);
    /* Gavel's physical-cluster file has 66, left from another campaign. */
    if (rc == 0 && g.n_unlike > 0)
        log_warn("%s: %d one-worker values of '%s' GPUs differ from those of the GPU without the "
                 "suffix and were ignored",
                 g.isolated_file, g.n_unlike, spread_suffix);
    json_decref(g.root);
    json_decref(g.isolated);
    return rc;
}

/* ---- watts ---- */

static int find_named(const struct csv *c, struct arena *a, const struct map *names, int column,
                      int *index, struct err *e)
{
    const char *name = arena_strndup(a, c->field[column].at, c->field[column].len);

    *index = map_get(names, name);
    if (*index < 0)
        return err_set(e, EINVAL, "%s:%d: '%.80s' is not among the throughputs; spell it as there",
                       c->name, c->line, name);
    return 0;
}

static int read_watts_row(struct draft *d, const struct csv *c, const int column[3], struct err *e)
{
    int type, workload;
    double watts;
    int rc = find_named(c, &d->arena, &d->type_by_name, column[0], &type, e);

    if (rc == 0)
        rc = find_named(c, &d->arena, &d->workload_by_name, column[1], &workload, e);
    if (rc == 0)
        rc = csv_number(c, column[2], false, &watts, e);
    if (rc < 0)
        return rc;
    if (!(watts > 0 && watts <= IMPORT_WATTS_MAX))
        return err_set(e, EINVAL,
                       "%s:%d: watts: %g W is not plausible for one GPU (0 to %g); "
                       "wrong unit?",
                       c->name, c->line, watts, IMPORT_WATTS_MAX);
    draft_add(d, workload, type, -1)->watts = watts;
    return 0;
}

int gavel_read_watts(struct draft *d, const struct draft_text *in, struct err *e)
{
    static const char *const names[3] = { "gpu", "workload", "watts" };
    struct csv csv;
    int column[3];
    int rc = csv_open(&csv, &d->arena, in->name, in->text, in->len, e);

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = csv_require(&csv, names[i], &column[i], e);
    if (rc == 0 && csv.n_columns != 3)
        rc = err_set(e, EINVAL, "%s:%d: want the columns gpu, workload and watts, and no other",
                     in->name, csv.line);
    while (rc == 0 && (rc = csv_next(&csv, e)) > 0)
        rc = read_watts_row(d, &csv, column, e);
    return rc;
}

/* ---- the importer ---- */

int import_gavel_read(struct draft *d, const struct import_gavel *in, struct progress *p,
                      struct err *e)
{
    struct draft_text throughputs = { 0 }, isolated = { 0 }, watts = { 0 };
    int rc = draft_describe(d, in->workloads, e);

    d->published = SHARING_MPS;    // its pairs are processes under CUDA MPS
    if (rc == 0)
        rc = draft_load(d, in->path, &throughputs, e);
    if (rc == 0 && in->isolated != NULL)
        rc = draft_load(d, in->isolated, &isolated, e);
    if (rc == 0 && in->watts != NULL)
        rc = draft_load(d, in->watts, &watts, e);
    if (rc < 0)
        return rc;
    draft_begin_part(d, "gavel", in->path);
    draft_add_digest(d, &throughputs);
    if (in->isolated != NULL)
        draft_add_digest(d, &isolated);
    rc = gavel_read(d, &throughputs, in->isolated != NULL ? &isolated : NULL, p, e);
    if (rc == 0 && in->watts != NULL) {
        draft_begin_part(d, "watts", in->watts);
        draft_add_digest(d, &watts);
        rc = gavel_read_watts(d, &watts, e);
    }
    return rc < 0 ? rc : draft_check(d, e);
}

int import_gavel(struct catalog *c, const struct import_gavel *in, double now_s, struct progress *p,
                 struct import_report *out, struct err *e)
{
    struct draft d;
    int rc;

    draft_init(&d);
    rc = import_gavel_read(&d, in, p, e);
    if (rc == 0)
        rc = draft_commit(&d, c, now_s, p, out, e);
    draft_release(&d);
    return rc;
}

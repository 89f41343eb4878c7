/* workload.c - which workload a submission means. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "daemon/config/auth.h"
#include "daemon/submit/inner.h"

#define NEAR_MAX 2000    // workloads looked through for a slip of the finger: some 2 ms

/* As a person would write it, 8.6 and not 8.5999999999999996, where that is the same number. */
static const char *number_text(struct arena *a, double number)
{
    const char *brief = arena_printf(a, "%.15g", number);
    double back;

    if (text_to_double(slice_of(brief), &back) == 0 && back == number)
        return brief;
    return arena_printf(a, "%.17g", number);
}

/* A feature as workload_set wants it: text. */
static int set_feature(struct arena *a, struct workload *w, const char *key, json_t *v,
                       struct err *e)
{
    const char *value = "";

    if (json_is_string(v))
        value = json_string_value(v);
    else if (json_is_number(v))
        value = number_text(a, json_number_value(v));
    else if (json_is_boolean(v))
        value = json_is_true(v) ? "1" : "0";
    return workload_set(a, w, slice_of(key), slice_of(value), e);
}

int submit_describe(struct arena *a, json_t *descriptor, struct workload *out, struct err *e)
{
    const char *key, *name = json_string_value(json_object_get(descriptor, "name"));
    json_t *v;

    if (!name)
        return err_set(e, EINVAL, "name: what is the workload called?");
    if (reading_check_name("name", name, e) < 0)
        return -EINVAL;
    workload_init(out, arena_strdup(a, name));
    workload_name_split(name, &out->batch);
    json_object_foreach(descriptor, key, v)
    {
        if (strcmp(key, "name") != 0 && !json_is_null(v) && set_feature(a, out, key, v, e) < 0)
            return -EINVAL;
    }
    return reading_check_name("name with its batch", out->name, e);
}

static const char *model_of(struct arena *a, const char *name)
{
    double batch;
    struct slice model = workload_name_split(name, &batch);

    return arena_strndup(a, model.at, model.len);
}

/* Which of the workloads of a model. */
struct variant {
    double batch;    // NaN: nothing
    enum precision precision;
};

static void use_new(struct submit_reading *r, const struct workload *w)
{
    int known = catalog_find_workload_alike(r->context->catalog, w->name);

    r->out->is_new_workload = known < 0;
    r->out->workload = *w;
    r->out->spec.workload = known;
}

static int read_descriptor(struct submit_reading *r, json_t *descriptor, struct err *e)
{
    struct workload w;

    if (json_text_of(r->body, "workload") || json_object_get(r->body, "batch") ||
        json_object_get(r->body, "precision"))
        return err_set(e, EINVAL,
                       "descriptor: it says name, batch and precision itself; leave out "
                       "'workload', 'batch' and 'precision'");
    if (submit_describe(r->arena, descriptor, &w, e) < 0)
        return err_prefix(e, "descriptor");
    if (!json_object_get(descriptor, "inference"))
        w.is_inference = r->out->spec.kind != JOB_TRAINING;
    use_new(r, &w);
    if (r->context->caller->scope >= SCOPE_OPERATE)
        r->out->is_new_workload = true;    // it may tell what was not known, for others too
    return 0;
}

/* The catalog's workloads of this model: one of them, and how many. */
static int siblings(const struct submit_reading *r, const char *model, int *n)
{
    const struct catalog *c = r->context->catalog;
    char name[256];
    int found = -1;
    double batch;

    *n = 0;
    for (int i = 0; i < c->n_workloads; i++) {
        struct slice m = workload_name_split(c->workloads[i].name, &batch);
        snprintf(name, sizeof name, "%.*s", (int)(m.len < 255 ? m.len : 255), m.at);
        if (text_alike(name, model)) {
            found = i;
            ++*n;
        }
    }
    return found;
}

/* A known model at a batch or in a precision that nobody has tried: its features, and these. */
static int inherit(struct submit_reading *r, int sibling, struct variant asked, struct err *e)
{
    struct workload w = r->context->catalog->workloads[sibling];
    const char *value = arena_printf(r->arena, "%.17g", asked.batch);

    if (!isnan(asked.batch) && asked.batch != w.batch) {
        if (workload_set(r->arena, &w, slice_of("batch"), slice_of(value), e) < 0)
            return -EINVAL;
        workload_forget_profile(&w);
    }
    workload_to_precision(r->arena, &w, asked.precision);
    if (reading_check_name("workload", w.name, e) < 0)
        return -EINVAL;
    use_new(r, &w);
    return 0;
}

/* Two letters apart, and a third of the word at most: a slip of the finger, not another name. */
static bool is_near(const char *asked, const char *known)
{
    int d = text_distance(asked, known);

    return d > 0 && d <= 2 && 3 * d <= (int)strlen(asked);
}

static const char *near_miss(const struct submit_reading *r, const char *model)
{
    const struct catalog *c = r->context->catalog;
    int n;
    const struct workload *builtin = workload_builtin_all(&n);

    for (int i = 0; i < c->n_workloads && i < NEAR_MAX; i++) {
        const char *known = model_of(r->arena, c->workloads[i].name);
        if (is_near(model, known))
            return known;
    }
    for (int i = 0; i < n; i++)
        if (is_near(model, builtin[i].family))
            return builtin[i].family;
    return NULL;
}

/* Nobody has ever seen or described it: it runs all the same, and estimates begin at the prior. */
static int use_unknown(struct submit_reading *r, const char *model, struct variant asked,
                       struct err *e)
{
    const char *meant = reading_flag(r, "new_workload") ? NULL : near_miss(r, model);
    struct workload w;

    if (meant)
        return err_set(e, EINVAL,
                       "workload: '%.60s' is not known; did you mean '%.60s'? If it is a new one, "
                       "say so by \"new_workload\": true",
                       model, meant);
    workload_init(&w, workload_name(r->arena, model, asked.batch));
    w.batch = asked.batch;
    w.precision = asked.precision;
    w.is_inference = r->out->spec.kind != JOB_TRAINING;
    if (reading_check_name("workload", w.name, e) < 0)
        return -EINVAL;
    use_new(r, &w);
    return 0;
}

/* The catalog's workload of that name, in the precision that is asked for: under its own name, or
 * with the precision behind it; -1: none.
 */
static int find_known(const struct submit_reading *r, const char *model, struct variant asked)
{
    const struct catalog *c = r->context->catalog;
    int known = catalog_find_workload_alike(c, workload_name(r->arena, model, asked.batch));

    if (!asked.precision || (known >= 0 && c->workloads[known].precision == asked.precision))
        return known;
    model = arena_printf(r->arena, "%s-%s", model, precision_name(asked.precision));
    return catalog_find_workload_alike(c, workload_name(r->arena, model, asked.batch));
}

/* The catalog's in another precision; a built-in model; a known one at another batch; new. */
static int describe(struct submit_reading *r, const char *model, struct variant asked,
                    struct err *e)
{
    const char *name = workload_name(r->arena, model, asked.batch);
    int n, other = catalog_find_workload_alike(r->context->catalog, name);
    struct workload w;

    if (other >= 0)
        return inherit(r, other, asked, e);
    int rc = workload_builtin(r->arena, model, asked.batch, &w, e);

    if (rc == 0) {
        workload_to_precision(r->arena, &w, asked.precision);
        use_new(r, &w);
    }
    if (rc != -ENOENT)
        return rc;
    int sibling = siblings(r, model, &n);
    if (sibling >= 0 && (!isnan(asked.batch) || (n == 1 && asked.precision)))
        return inherit(r, sibling, asked, e);
    if (n > 1)
        return err_set(e, EINVAL, "batch: '%.60s' is known at %d batch sizes, say which", model, n);
    if (n == 1) {
        r->out->spec.workload = sibling;
        return 0;
    }
    return use_unknown(r, model, asked, e);
}

/* By its full name, as people write it, or else described. */
static int find_workload(struct submit_reading *r, const char *name, struct variant asked,
                         struct err *e)
{
    double in_name;
    const char *model = model_of(r->arena, name);

    workload_name_split(name, &in_name);
    if (!isnan(in_name) && !isnan(asked.batch) && in_name != asked.batch)
        return err_set(e, EINVAL, "batch: the workload's name says %g, and this %g", in_name,
                       asked.batch);
    asked.batch = isnan(asked.batch) ? in_name : asked.batch;
    int known = find_known(r, model, asked);
    if (known < 0)
        return describe(r, model, asked, e);
    r->out->spec.workload = known;
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* Of a job that says nothing: what its owner runs by the same name is taken to be the same. */
static int name_by_command(struct submit_reading *r, struct err *e)
{
    json_t *argv = json_object_get(r->body, "argv");
    const char *program = json_string_value(json_array_get(argv, 0));
    const char *first = json_string_value(json_array_get(argv, 1));
    struct workload w;

    bool has_more = first && first[0] && first[0] != '-';
    const char *name =
        arena_printf(r->arena, "%.60s: %.60s%s%.60s", r->out->spec.owner, base_name(program),
                     has_more ? " " : "", has_more ? base_name(first) : "");
    if (!text_is_name(slice_of(name)))
        return err_set(e, EINVAL, "workload: what does it run? Its command makes no name");
    workload_init(&w, name);
    w.is_inference = r->out->spec.kind != JOB_TRAINING;
    use_new(r, &w);
    return 0;
}

int reading_workload(struct submit_reading *r, struct err *e)
{
    json_t *descriptor = json_object_get(r->body, "descriptor");
    const char *name = json_text_of(r->body, "workload");
    const char *precision = json_text_of(r->body, "precision");
    struct variant asked = { .batch = reading_number(r, "batch", NAN) };

    if (json_is_object(descriptor))
        return read_descriptor(r, descriptor, e);
    if (precision && precision_read(slice_of(precision), &asked.precision, e) < 0)
        return -EINVAL;
    if (!name && (!isnan(asked.batch) || precision))
        return err_set(e, EINVAL, "%s: of which workload?", precision ? "precision" : "batch");
    if (!name)
        return name_by_command(r, e);
    if (reading_check_name("workload", name, e) < 0)
        return -EINVAL;
    return find_workload(r, name, asked, e);
}

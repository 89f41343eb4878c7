#include "estimate/prior/doubts.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "estimate/prior/roofline.h"

/* Speeds are taken for samples/s where, of this many and more, the median is this near to the batch
 * size times the roofline, and this far from the roofline itself.
 */
enum { SAMPLES_ROWS = 3 };
#define SAMPLES_NEAR log(3)
#define SAMPLES_FAR log(3)

/* A measurement against the roofline. */
struct ratio {
    int family, type;
    double ln_ratio;    // of measured to roofline
    double ln_batch;
};

struct ratios {
    struct ratio *list;    // (n)
    int n;
    const char **families;
    int n_families;
};

static int family_of(struct arena *a, struct map *by_name, struct ratios *r,
                     const struct workload *w)
{
    const char *name = w->family != NULL ? w->family : w->name;
    int i = map_get(by_name, name);

    if (i >= 0)
        return i;
    name = arena_strdup(a, name);
    r->families[r->n_families] = name;
    map_set(by_name, name, r->n_families);
    return r->n_families++;
}

/* False: nothing is to be learned from it. */
static bool compare(const struct doubts_of *of, const struct measurement *m, struct ratio *out)
{
    const struct workload *w = &of->workloads[m->key.workload];
    struct roofline line;

    if (!cell_key_is_default(&m->key) || m->key.neighbour >= 0 || !(m->throughput > 0))
        return false;
    roofline(w, &of->types[m->key.gpu_type], &line);
    out->type = m->key.gpu_type;
    out->ln_ratio = log(m->throughput * line.step_s);
    out->ln_batch = w->batch >= 1 ? log(w->batch) : 0;
    return line.n_unknown == 0;
}

static void take(struct arena *a, const struct doubts_of *of, struct ratios *r)
{
    struct map by_name = { 0 };

    r->list = ARENA_ARRAY(a, struct ratio, (size_t)of->n_rows);
    r->families = ARENA_ARRAY(a, const char *, (size_t)of->n_workloads);
    for (int i = 0; i < of->n_rows; i++) {
        struct ratio *one = &r->list[r->n];

        if (!compare(of, &of->rows[i], one))
            continue;
        one->family = family_of(a, &by_name, r, &of->workloads[of->rows[i].key.workload]);
        r->n++;
    }
    map_release(&by_name);
}

static int by_group(const void *a, const void *b)
{
    const struct ratio *p = a, *q = b;

    if (p->family != q->family)
        return p->family < q->family ? -1 : 1;
    if (p->type != q->type)
        return p->type < q->type ? -1 : 1;
    return p->ln_ratio < q->ln_ratio ? -1 : p->ln_ratio > q->ln_ratio;
}

/* Are these samples/s? Batches of less than four cannot tell. */
static bool are_samples(const struct ratios *r, double *ln_ratio)
{
    struct samples ratio = { 0 }, beyond = { 0 };

    for (int i = 0; i < r->n; i++) {
        if (r->list[i].ln_batch < log(4))
            continue;
        samples_add(&ratio, r->list[i].ln_ratio);
        samples_add(&beyond, r->list[i].ln_ratio - r->list[i].ln_batch);
    }
    *ln_ratio = samples_quantile(&ratio, 0.5);
    bool are = ratio.n >= SAMPLES_ROWS && *ln_ratio > SAMPLES_FAR &&
               fabs(samples_quantile(&beyond, 0.5)) < SAMPLES_NEAR;
    samples_release(&ratio);
    samples_release(&beyond);
    return are;
}

static const char *group_sentence(struct arena *a, const struct doubts_of *of,
                                  const struct ratios *r, const struct ratio *one, int n,
                                  double ln_ratio)
{
    return arena_printf(a,
                        "'%.100s' on %.60s: the median of %d speed%s is %.3g times %s than the "
                        "roofline; are these steps/s, and is the descriptor right?",
                        r->families[one->family], of->types[one->type].name, n, n == 1 ? "" : "s",
                        exp(fabs(ln_ratio)), ln_ratio > 0 ? "faster" : "slower");
}

int doubts_find(struct arena *a, const struct doubts_of *of, const char ***out)
{
    struct ratios r = { 0 };
    double ln_ratio;
    int n_out = 0;

    take(a, of, &r);
    *out = ARENA_ARRAY(a, const char *, (size_t)r.n + 1);
    if (are_samples(&r, &ln_ratio)) {
        (*out)[n_out++] = arena_printf(a,
                                       "speeds are %.3g times the roofline, about as many as a "
                                       "batch has samples: are these samples/s, where steps/s "
                                       "are meant? Divide them by the batch size",
                                       exp(ln_ratio));
        return n_out;
    }
    qsort(r.list, (size_t)r.n, sizeof *r.list, by_group);
    for (int first = 0, end; first < r.n; first = end) {
        const struct ratio *one = &r.list[first];

        for (end = first;
             end < r.n && r.list[end].family == one->family && r.list[end].type == one->type;)
            end++;
        ln_ratio =
            (r.list[(first + end - 1) / 2].ln_ratio + r.list[(first + end) / 2].ln_ratio) / 2;
        if (fabs(ln_ratio) > log(DOUBTS_TIMES))
            (*out)[n_out++] = group_sentence(a, of, &r, one, end - first, ln_ratio);
    }
    return n_out;
}

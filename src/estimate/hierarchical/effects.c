#include "estimate/hierarchical/effects.h"

#include <math.h>
#include <string.h>

struct hyper hyper_start(void)
{
    /* Standard deviations: a third for what a site's speeds have in common, a tenth for what a
     * workload has to itself, and less for slowdowns; the fit moves each by what campaigns say.
     */
    static const double sd[VARIANCES] = {
        [ALONE_SITE] = 0.32,
        [ALONE_TYPE] = 0.22,
        [ALONE_FAMILY] = 0.35,
        [ALONE_WORKLOAD] = 0.1,
        [ALONE_TYPE_FAMILY] = 0.2,
        [ALONE_CELL] = 0.1,
        [ALONE_BATCH] = 0.6,
        [ALONE_TYPE_BATCH] = 0.4,
        [ALONE_BATCH_SCALE] = 0.5,
        [ALONE_SMOOTH] = 0.35,
        [ALONE_SCALE] = 1.7,
        [BESIDE_SITE] = 0.17,
        [BESIDE_TYPE] = 0.1,
        [BESIDE_FAMILY] = 0.1,
        [BESIDE_BY_FAMILY] = 0.1,
        [BESIDE_WORKLOAD] = 0.06,
        [BESIDE_BY_WORKLOAD] = 0.06,
        [BESIDE_TYPE_FAMILY] = 0.1,
        [BESIDE_TYPE_BY_FAMILY] = 0.1,
        [BESIDE_TYPE_WORKLOAD] = 0.05,
        [BESIDE_TYPE_BY_WORKLOAD] = 0.05,
        [BESIDE_TYPE_BATCH] = 0.1,
        [BESIDE_TYPE_BY_BATCH] = 0.1,
        [BESIDE_FAMILIES] = 0.08,
        [BESIDE_BATCHES] = 0.1,
        [BESIDE_CELL] = 0.05,
        [BESIDE_SMOOTH] = 0.2,
        [BESIDE_BY_SMOOTH] = 0.2,
        [BESIDE_SCALE] = 0.5,
    };
    const double job_slope = 0.08, type_slope = 0.14, beside_slope = 0.3;
    struct hyper h = { .at = { 0 } };

    for (int i = 0; i < VARIANCES; i++) {
        double slope = i >= BESIDE_SITE              ? beside_slope
                       : i < ALONE_SLOPES + SITE_JOB ? job_slope
                                                     : type_slope;
        h.at[i] = 2 * log(sd[i] > 0 ? sd[i] : slope);
    }
    return h;
}

/* MIG parts everything but power and the way to the host: what is left was not measured in any
 * campaign, and is taken for a quarter of what neighbours differ by under MPS.
 */
const double effects_law_sd[LAWS] = { [LAW_LEARNED] = 1, [LAW_TURNS] = 1, [LAW_SLICES] = 0.25 };

enum beside_law effects_law(enum sharing s)
{
    return s == SHARING_TIMESLICE ? LAW_TURNS : s == SHARING_MIG ? LAW_SLICES : LAW_LEARNED;
}

/* Where the numbers of a workload on a type lie, about: slopes turn around it. */
#define CENTRE 0.3

/* Both busy at once: which of a pair's features it is, and where that is centred. */
#define BOTH_BUSY 4
#define BOTH_CENTRE 0.4

/* How much of the device both want, and by how much that is too much. */
void effects_beside(const struct site_on *job, const struct site_on *by, double *x)
{
    double u = (double)job->busy, m = (double)job->traffic;
    double v = (double)by->busy, k = (double)by->traffic;
    const double all[BESIDE_X] = { u - 0.6,
                                   m - 0.3,
                                   v - 0.6,
                                   k - 0.3,
                                   u * v - BOTH_CENTRE,
                                   m * k - 0.1,
                                   fmax(u + v - 1, 0) - 0.3,
                                   fmax(m + k - 1, 0) };

    memcpy(x, all, sizeof all);
}

/* Between knots a batch grows eightfold: 0.7 times 3, as ln batch is scaled. */
#define KNOTS 0.7

struct batch_at effects_batch(const struct site_on *on)
{
    double at = (double)on->x[SITE_BATCH] / KNOTS, knot = floor(at), next = at - knot;
    double length = sqrt(next * next + (1 - next) * (1 - next));

    return (struct batch_at){ (int)knot, { (1 - next) / length, next / length } };
}

struct effects effects_of(const struct site *s, const struct reading *r)
{
    const struct site_on *on = site_on(s, r->job, r->type);
    struct effects e = { .of = r->of,
                         .type = r->type,
                         .job = r->job,
                         .neighbour = r->neighbour,
                         .family = s->family[r->job],
                         .by_family = r->neighbour < 0 ? -1 : s->family[r->neighbour],
                         .batch = effects_batch(on),
                         .doubt = (double)on->doubt,
                         .law = effects_law(s->sharing[r->type]) };

    for (int i = 0; i < SITE_JOB; i++)
        e.alone[i] = (double)on->x[i] - CENTRE;
    for (int i = 0; i < SITE_GPU; i++)
        e.alone[SITE_JOB + i] = (double)s->gpu[r->type][i];
    if (r->of != READ_ALONE) {
        const struct site_on *by = site_on(s, r->neighbour, r->type);
        effects_beside(on, by, e.beside);
        e.by_batch = effects_batch(by);
        for (int i = 0; i < SMOOTH_X; i++)
            e.by[i] = (double)by->x[i] - CENTRE;
    }
    return e;
}

static double line(const double *mean, const double *x, int n)
{
    double sum = mean[0];

    for (int i = 0; i < n; i++)
        sum += mean[1 + i] * x[i];
    return sum;
}

double effects_beside_mean(const struct hyper *h, enum beside_law law, const double *x)
{
    switch (law) {
    case LAW_TURNS:
        return -log1p(x[BOTH_BUSY] + BOTH_CENTRE);
    case LAW_SLICES:
        return 0;
    default:
        return line(h->at + BESIDE_MEAN, x, BESIDE_X);
    }
}

double effects_mean(const struct hyper *h, const struct effects *a)
{
    double sum = 0;

    if (a->of != READ_SLOWDOWN)
        sum += line(h->at + ALONE_MEAN, a->alone, ALONE_X);
    if (a->of != READ_ALONE)
        sum += effects_beside_mean(h, a->law, a->beside);
    return sum;
}

struct variances hyper_variances(const struct hyper *h)
{
    struct variances v;

    for (int i = 0; i < VARIANCES; i++)
        v.at[i] = exp(h->at[i]);
    return v;
}

/* Between two workloads on their types, over twice a length scale's square. */
static double distance(const double *a, const double *b, double scale)
{
    double sum = 0;

    for (int i = 0; i < SMOOTH_X; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum / (2 * scale);
}

static double alone_slopes(const double *v, const struct effects *a, const struct effects *b,
                           double *slope)
{
    bool type = a->type == b->type, family = a->family == b->family, job = a->job == b->job;
    const double batches = a->alone[SITE_BATCH] - b->alone[SITE_BATCH];
    double apart = batches * batches / (2 * v[ALONE_BATCH_SCALE]), alike = family ? exp(-apart) : 0;
    const double shared[ALONE_BATCH_SCALE] = {
        1, type, family, job, type && family, type && job, alike, type ? alike : 0,
    };
    double far = distance(a->alone, b->alone, v[ALONE_SCALE]);
    double sum = job ? fmin(a->doubt, b->doubt) : 0;    // what is unknown of one type is its own

    for (int i = 0; i < ALONE_BATCH_SCALE; i++)
        sum += slope[i] = v[i] * shared[i];
    slope[ALONE_BATCH_SCALE] = (slope[ALONE_BATCH] + slope[ALONE_TYPE_BATCH]) * apart;
    for (int i = 0; i < ALONE_X; i++)
        sum += slope[ALONE_SLOPES + i] = v[ALONE_SLOPES + i] * a->alone[i] * b->alone[i];
    sum += slope[ALONE_SMOOTH] = v[ALONE_SMOOTH] * exp(-far);
    slope[ALONE_SCALE] = slope[ALONE_SMOOTH] * far;
    return sum;
}

/* How much alike batches are: 1 if they are the same. */
static double batches_alike(const struct batch_at *a, const struct batch_at *b)
{
    switch (b->knot - a->knot) {
    case 0:
        return a->part[0] * b->part[0] + a->part[1] * b->part[1];
    case 1:
        return a->part[1] * b->part[0];
    case -1:
        return a->part[0] * b->part[1];
    default:
        return 0;
    }
}

/* What jobs that are alike, and neighbours that are, have in common on one type. */
static double smooth_slopes(const double *v, const struct effects *a, const struct effects *b,
                            double *slope)
{
    double far = distance(a->alone, b->alone, v[BESIDE_SCALE]);
    double by_far = distance(a->by, b->by, v[BESIDE_SCALE]);

    slope[BESIDE_SMOOTH] = v[BESIDE_SMOOTH] * exp(-far);
    slope[BESIDE_BY_SMOOTH] = v[BESIDE_BY_SMOOTH] * exp(-by_far);
    slope[BESIDE_SCALE] = slope[BESIDE_SMOOTH] * far + slope[BESIDE_BY_SMOOTH] * by_far;
    return slope[BESIDE_SMOOTH] + slope[BESIDE_BY_SMOOTH];
}

static double beside_slopes(const double *v, const struct effects *a, const struct effects *b,
                            double *slope)
{
    bool type = a->type == b->type, family = a->family == b->family, job = a->job == b->job;
    bool by_family = a->by_family == b->by_family, by = a->neighbour == b->neighbour;
    double batch = type && family ? batches_alike(&a->batch, &b->batch) : 0;
    double by_batch = type && by_family ? batches_alike(&a->by_batch, &b->by_batch) : 0;
    const double shared[BESIDE_SMOOTH - BESIDE_SITE] = {
        1,
        type,
        family,
        by_family,
        job,
        by,
        type && family,
        type && by_family,
        type && job,
        type && by,
        batch,
        by_batch,
        type && family && by_family,
        batch * by_batch,
        type && job && by,
    };
    double sum = type ? smooth_slopes(v, a, b, slope) : 0;

    for (int i = BESIDE_SITE; i < BESIDE_SMOOTH; i++)
        sum += slope[i] = v[i] * shared[i - BESIDE_SITE];
    for (int i = 0; i < BESIDE_X; i++)
        sum += slope[BESIDE_SLOPES + i] = v[BESIDE_SLOPES + i] * a->beside[i] * b->beside[i];
    return sum;
}

/* Of variances. */
static double law_scale(enum beside_law law)
{
    return effects_law_sd[law] * effects_law_sd[law];
}

double effects_covariance(const struct variances *v, const struct effects *a,
                          const struct effects *b, double *slope)
{
    double sum = 0;

    memset(slope, 0, VARIANCES * sizeof *slope);
    if (a->of != READ_SLOWDOWN && b->of != READ_SLOWDOWN)
        sum += alone_slopes(v->at, a, b, slope);
    if (a->of != READ_ALONE && b->of != READ_ALONE && a->law == b->law) {
        const double scale = law_scale(a->law);
        sum += scale * beside_slopes(v->at, a, b, slope);
        for (int i = BESIDE_SITE; i < VARIANCES; i++)
            slope[i] *= scale;
    }
    return sum;
}

/* ---- parts ---- */

static double own_part(const double *v, bool of_neighbour, const struct effects *a,
                       const struct effects *b)
{
    const int next = of_neighbour, at = of_neighbour ? 2 : 0;
    bool type = a->type == b->type;
    double sum = of_neighbour ? 0 : v[BESIDE_SITE] + (type ? v[BESIDE_TYPE] : 0);

    if (of_neighbour ? a->by_family == b->by_family : a->family == b->family)
        sum += v[BESIDE_FAMILY + next] + (type ? v[BESIDE_TYPE_FAMILY + next] : 0);
    if (of_neighbour ? a->neighbour == b->neighbour : a->job == b->job)
        sum += v[BESIDE_WORKLOAD + next] + (type ? v[BESIDE_TYPE_WORKLOAD + next] : 0);
    if (type && (of_neighbour ? a->by_family == b->by_family : a->family == b->family))
        sum +=
            v[BESIDE_TYPE_BATCH + next] * (of_neighbour ? batches_alike(&a->by_batch, &b->by_batch)
                                                        : batches_alike(&a->batch, &b->batch));
    if (type)
        sum += v[BESIDE_SMOOTH + next] *
               exp(-(of_neighbour ? distance(a->by, b->by, v[BESIDE_SCALE])
                                  : distance(a->alone, b->alone, v[BESIDE_SCALE])));
    for (int i = at; i < at + 2; i++)
        sum += v[BESIDE_SLOPES + i] * a->beside[i] * b->beside[i];
    return sum;
}

double effects_part(const struct variances *v, enum effects_part part, const struct effects *cell,
                    const struct effects *reading)
{
    double slope[VARIANCES];

    if (part == PART_ALONE)
        return reading->of == READ_SLOWDOWN ? 0 : alone_slopes(v->at, cell, reading, slope);
    if (reading->of == READ_ALONE || reading->law != cell->law)
        return 0;
    return law_scale(cell->law) * own_part(v->at, part == PART_BY, cell, reading);
}

static uint64_t near_knot(int family, const struct batch_at *at, int next)
{
    return (uint64_t)family << 4 | (uint64_t)(at->knot + next + 8);    // batches of 1 to 1e6: 6-14
}

void effects_crossed(const struct effects *e, struct crossed out[CROSSED])
{
    const uint64_t type = (uint64_t)e->type << 48;
    const double sd = effects_law_sd[e->law];

    out[0] = (struct crossed){ BESIDE_FAMILIES,
                               type | (uint64_t)e->family << 28 | (uint64_t)e->by_family << 4, sd };
    for (int i = 0; i < 4; i++)
        out[1 + i] = (struct crossed){ BESIDE_BATCHES,
                                       type | near_knot(e->family, &e->batch, i / 2) << 24 |
                                           near_knot(e->by_family, &e->by_batch, i % 2),
                                       sd * e->batch.part[i / 2] * e->by_batch.part[i % 2] };
}

double effects_beside_variance(const struct variances *v, enum beside_law law, const double *x)
{
    double sum = 0;

    for (int i = BESIDE_SITE; i < BESIDE_SCALE; i++)
        sum += v->at[i];
    for (int i = 0; i < BESIDE_X; i++)
        sum += v->at[BESIDE_SLOPES + i] * x[i] * x[i];
    return law_scale(law) * sum;
}

#include "estimate/p1/fit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "estimate/p1/kernel.h"
#include "nn/adam.h"
#include "nn/params.h"
#include "nn/weights.h"

/* Beliefs before anything was seen: sd of a family's ln factor (descriptors are right to a factor
 * of about 2.7), of a workload's on top of it, of the curve's own numbers.
 */
#define FAMILY_SD 1.0f
#define WORKLOAD_SD 0.2f
#define CURVE_SD 0.5f
#define LN_STEEPNESS 1.386f     // 4: between 0.6 and 1.6 of the memory lies nearly all doubt
#define LN_OVERHEAD (-3.47f)    // 0.5 GB of 16

/* Of more examples than this every n-th is looked at: four numbers a workload need no more. */
#define EXAMPLES_MAX 8192

#define STEPS 400
#define RATE 0.05

/* All numbers in one line: three of the curve, then a factor for each family and workload. */
enum { STEEPNESS, DOUBTFUL, OVERHEAD, CURVE };

struct learner {
    const struct examples *x;
    const struct holdout *v;
    struct params p;
};

static float *of_family(const struct learner *l, float *line, int workload)
{
    return &line[CURVE + l->x->family[workload]];
}

static float *of_workload(const struct learner *l, float *line, int workload)
{
    return &line[CURVE + l->x->n_families + workload];
}

static double memory(const struct learner *l, int workload, int type)
{
    return (double)examples_at(l->x, workload, type)->mem_share *
           exp((double)(*of_family(l, l->p.w, workload) + *of_workload(l, l->p.w, workload)));
}

static void add_memory_gradient(const struct learner *l, int workload, double d)
{
    *of_family(l, l->p.grad, workload) += (float)d;
    *of_workload(l, l->p.grad, workload) += (float)d;
}

/* The overhead is stated as a share of 16 GB; of a smaller device it is a larger one. */
static double in_device(double overhead, const struct features *on)
{
    return overhead * exp(-(double)on->figure[2]);
}

/* Add the gradient of one example's negative log likelihood. */
static void add_example(const struct learner *l, const struct fit_example *at)
{
    const float *w = l->p.w;
    float *grad = l->p.grad;
    int n_jobs = at->neighbour < 0 ? 1 : 2;
    double own = memory(l, at->workload, at->gpu_type);
    double other = n_jobs > 1 ? memory(l, at->neighbour, at->gpu_type) : 0;
    double overhead =
        n_jobs * in_device(exp((double)w[OVERHEAD]), examples_at(l->x, at->workload, at->gpu_type));
    double total = fmax(own + other + overhead, 1e-6);
    double steepness = exp((double)w[STEEPNESS]);
    double over = log(total) - (double)w[DOUBTFUL];
    double wrong = 1 / (1 + exp(-steepness * over)) - at->is_unfit;

    grad[STEEPNESS] += (float)(wrong * steepness * over);
    grad[DOUBTFUL] -= (float)(wrong * steepness);
    grad[OVERHEAD] += (float)(wrong * steepness * overhead / total);
    add_memory_gradient(l, at->workload, wrong * steepness * own / total);
    if (n_jobs > 1)
        add_memory_gradient(l, at->neighbour, wrong * steepness * other / total);
}

/* Add the gradient of a belief before: a number of mean 'before' with this sd. */
static void add_belief(const struct learner *l, int i, float before, float sd)
{
    l->p.grad[i] += (l->p.w[i] - before) / (sd * sd);
}

static void add_gradients(struct learner *l)
{
    const struct examples *x = l->x;

    params_clear(&l->p);
    for (int i = 0; i < x->n_fits; i += 1 + x->n_fits / EXAMPLES_MAX)
        if (holdout_shows(l->v, x->fits[i].workload, x->fits[i].gpu_type, x->fits[i].neighbour))
            add_example(l, &x->fits[i]);
    add_belief(l, STEEPNESS, LN_STEEPNESS, CURVE_SD);
    add_belief(l, DOUBTFUL, 0, CURVE_SD);
    add_belief(l, OVERHEAD, LN_OVERHEAD, CURVE_SD);
    for (int i = CURVE; i < l->p.n; i++)
        add_belief(l, i, 0, i < CURVE + x->n_families ? FAMILY_SD : WORKLOAD_SD);
}

static void climb(struct learner *l)
{
    struct adam adam;

    adam_init(&adam, l->p.n);
    adam.decay = 0;    // the beliefs do that
    for (long k = 0; k < STEPS; k++) {
        add_gradients(l);
        adam_step(&adam, &l->p, adam_cosine(k, STEPS, 0, RATE, 0));
    }
    adam_release(&adam);
}

void fit_learn(struct arena *a, const struct examples *x, const struct holdout *v, struct fit *out)
{
    struct learner l = { .x = x, .v = v };

    params_init(&l.p);
    params_claim(&l.p, CURVE + x->n_families + x->n_workloads);
    l.p.w[STEEPNESS] = LN_STEEPNESS;
    l.p.w[OVERHEAD] = LN_OVERHEAD;
    climb(&l);
    *out = (struct fit){ .steepness = exp((double)l.p.w[STEEPNESS]),
                         .doubtful = (double)l.p.w[DOUBTFUL],
                         .overhead = exp((double)l.p.w[OVERHEAD]),
                         .factors = ARENA_ARRAY(a, struct fit_factor, (size_t)x->n_workloads) };
    for (int w = 0; w < x->n_workloads; w++)
        if (!v->is_held[w])
            out->factors[out->n++] = (struct fit_factor){
                .who = x->who[w],
                .of_family = (double)*of_family(&l, l.p.w, w),
                .of_workload = (double)*of_workload(&l, l.p.w, w),
            };
    params_release(&l.p);
}

double fit_share(const struct fit *f, const struct identity *who, const struct features *on)
{
    double factor = 0;

    for (int i = 0; i < f->n; i++) {
        const struct fit_factor *of = &f->factors[i];
        if (of->who.name == who->name) {
            factor = of->of_family + of->of_workload;
            break;
        }
        if (who->family && of->who.family == who->family)
            factor = of->of_family;
    }
    return (double)on->mem_share * exp(factor) + in_device(f->overhead, on);
}

double fit_unfit(const struct fit *f, double shares)
{
    return 1 / (1 + exp(-f->steepness * (log(fmax(shares, 1e-6)) - f->doubtful)));
}

double fit_share_max(const struct fit *f, double unfit_max)
{
    return exp(f->doubtful + log(unfit_max / (1 - unfit_max)) / f->steepness);
}

void fit_save(const struct fit *f, struct weights *to)
{
    struct arena *a = to->a;
    struct kernel_point *points = ARENA_ARRAY(a, struct kernel_point, (size_t)f->n);
    double *factors = ARENA_ARRAY(a, double, (size_t)f->n * 2);
    const double curve[] = { f->steepness, f->doubtful, f->overhead };

    for (int i = 0; i < f->n; i++) {
        points[i].who = f->factors[i].who;
        factors[2 * i] = f->factors[i].of_family;
        factors[2 * i + 1] = f->factors[i].of_workload;
    }
    points_save(points, f->n, "fit.points", to);
    weights_put_doubles(to, "fit.factors", f->n, 2, factors);
    weights_put_doubles(to, "fit.curve", 1, 3, curve);
}

/* Bounds of what may come from a file: the curve's numbers, and logarithms of factors. */
#define CURVE_MAX 1e3
#define FACTOR_MAX 50

int fit_load(struct arena *a, const struct weights *from, struct fit *out, struct err *e)
{
    struct weights_reader in = { from, e, 0 };
    struct kernel_point *points = NULL;
    int n = 0, rc = points_load(a, from, "fit.points", &points, &n, e);

    if (rc < 0)
        return rc;
    const double *factors = weights_doubles(&in, "fit.factors", n, 2);
    const double *curve = weights_doubles(&in, "fit.curve", 1, 3);
    if (in.rc < 0)
        return in.rc;
    if (!(curve[0] > 0 && curve[0] <= CURVE_MAX && fabs(curve[1]) <= CURVE_MAX && curve[2] >= 0 &&
          curve[2] <= CURVE_MAX))
        rc = err_set(e, EINVAL, "fit.curve: numbers that no curve has");
    if (!weights_within_doubles(factors, 2 * (size_t)n, FACTOR_MAX))
        rc = err_set(e, EINVAL, "fit.factors: a factor that nothing fits by");
    if (rc < 0)
        return rc;
    *out = (struct fit){ .steepness = curve[0], .doubtful = curve[1], .overhead = curve[2] };
    out->factors = ARENA_ARRAY(a, struct fit_factor, (size_t)n);
    for (; out->n < n; out->n++, factors += 2)
        out->factors[out->n] = (struct fit_factor){ points[out->n].who, factors[0], factors[1] };
    return 0;
}

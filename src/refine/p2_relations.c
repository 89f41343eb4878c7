#include "refine/p2_inner.h"

#include <math.h>

/* Without data. For a model's errors: what the leave-one-out errors of a prototype of P1 showed
 * on Gavel's 26 workloads. The roofline's: errors on two GPU types correlate .63 (k80, p100), .12
 * (k80, v100) and .67 (p100, v100) there, and a neighbour's effect has a common part and parts of
 * the type and of the neighbour; docs/experiments.md has the command.
 */
static const struct relations defaults[REGIMES] = {
    [REGIME_KIN] = { .alone = 0.4,
                     .watts = 0.5,
                     .own = { 0.45, 0.40, 0.15, 0.30 },
                     .partner = { 0.30, 0.50, 0.20, 0.20 } },
    [REGIME_STRANGER] = { .alone = 0.2,
                          .watts = 0.5,
                          .own = { 0.45, 0.50, 0.05, 0.15 },
                          .partner = { 0.30, 0.65, 0.05, 0.40 } },
};
static const struct relations of_roofline = {
    .alone = 0.49,
    .watts = 0.50,
    .own = { 0.60, 0.40, 0.00, 0.50 },
    .partner = { 0.60, 0.40, 0.00, 0.50 },
};

/* The defaults count as much as so many workloads. */
#define DEFAULT_WORKLOADS 5.0

/* An error of more standard deviations counts as this many: one must not decide for all. */
#define LAPSE_MAX 4.0

/* Errors of one example that are compared with each other. */
#define COMPARED_MAX 64

/* Each cell keeps this much of its own, and no two types are believed to be more alike. */
#define CELL_MIN 0.02
#define TYPES_MAX 0.95

const struct relations *p2_relations(const struct p2 *p, const struct p2_estimates *b)
{
    if (!b->context)
        return &of_roofline;
    return p ? &p->of[b->regime] : &defaults[b->regime];
}

static bool is_share(double x)
{
    return x >= 0 && x <= 1;
}

static bool effect_is_sound(const struct effect *f)
{
    return is_share(f->common) && is_share(f->like) && is_share(f->cell) && is_share(f->types) &&
           fabs(f->common + f->like + f->cell - 1) < 1e-6;
}

bool relations_are_sound(const struct relations *r)
{
    return is_share(r->alone) && is_share(r->watts) && effect_is_sound(&r->own) &&
           effect_is_sound(&r->partner);
}

/* ---- moments ---- */

static void add_pair(const struct p2_examples *l, const struct p1_error *p,
                     const struct p1_error *q, double uu, struct moments *m)
{
    double like = p->other < 0 ? 1 : p2_like(&l->everyone, p->other, q->other);
    double same = p2_same(&l->everyone, p->type, q->type);
    double powers[3] = { 1, like, like * like };

    if (p->type == q->type) {
        for (int i = 0; i < 3; i++)
            m->l[i] += powers[i];
        for (int i = 0; i < 2; i++)
            m->ul[i] += uu * powers[i];
        return;
    }
    for (int i = 0; i < 3; i++) {
        m->s[i] += same * (1 - same) * powers[i];
        m->r[i] += (1 - same) * (1 - same) * powers[i];
    }
    for (int i = 0; i < 2; i++)
        m->us[i] += uu * (1 - same) * powers[i];
}

static double in_sds(const struct p1_error *x)
{
    double u = (double)(x->error / x->sd);

    return fmin(fmax(u, -LAPSE_MAX), LAPSE_MAX);
}

static void divide(double *sums, int n, double by)
{
    for (int i = 0; i < n; i++)
        sums[i] /= fmax(by, 1);
}

static void moments_take(const struct p2_examples *l, int n, const struct p1_error *x,
                         struct moments *out)
{
    int step = n / COMPARED_MAX + 1;
    double n_one = 0;

    *out = (struct moments){ 0 };
    for (int i = 0; i < n; i += step) {
        out->square += in_sds(&x[i]) * in_sds(&x[i]);
        n_one++;
        for (int j = 0; j < i; j += step)
            add_pair(l, &x[i], &x[j], in_sds(&x[i]) * in_sds(&x[j]), out);
    }
    double n_type = out->l[0], n_other = n_one * (n_one - 1) / 2 - n_type;
    divide(&out->square, 1, n_one);
    divide(out->l, 3, n_type);
    divide(out->ul, 2, n_type);
    divide(out->s, 3, n_other);
    divide(out->r, 3, n_other);
    divide(out->us, 2, n_other);
}

void relations_look(struct p2_examples *l)
{
    for (int i = 0; i < l->n; i++)
        for (enum p1_target k = 0; k < P1_TARGETS; k++) {
            struct target_errors *of = &l->list[i].of[k];
            moments_take(l, of->n, of->list, &of->moments);
        }
}

/* ---- correlations ---- */

/* The sum of all examples' moments, u in units of what sds should have been. */
static void add_up(const struct p2_examples *l, const bool *held, enum regime regime,
                   enum p1_target of, struct moments *out)
{
    double n_one = 0;

    *out = (struct moments){ 0 };
    for (int i = 0; i < l->n; i++) {
        const struct p2_example *it = &l->list[i];
        const struct moments *m = &it->of[of].moments;
        if (it->regime != regime || (held && held[it->family]) || it->of[of].n == 0)
            continue;
        n_one++;
        out->square += m->square;
        for (int k = 0; k < 3; k++) {
            out->l[k] += m->l[k];
            out->s[k] += m->s[k];
            out->r[k] += m->r[k];
        }
        for (int k = 0; k < 2; k++) {
            out->ul[k] += m->ul[k];
            out->us[k] += m->us[k];
        }
    }
    double unit = n_one > 0 && out->square > 0 ? out->square / n_one : 1;
    for (int k = 0; k < 2; k++) {
        out->ul[k] /= unit;
        out->us[k] /= unit;
    }
}

static double within(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* Where u u' = c (types (1 - s) + s) between two types, c = common + like l. */
static double learn_types(const struct moments *m, double common, double like, double usual)
{
    double c2[3] = { common * common, 2 * common * like, like * like }, s = 0, r = 0;

    for (int k = 0; k < 3; k++) {
        s += c2[k] * m->s[k];
        r += c2[k] * m->r[k];
    }
    double seen = common * m->us[0] + like * m->us[1] - s;
    double weight = DEFAULT_WORKLOADS * (common + like / 2) * (common + like / 2);
    return within((seen + weight * usual) / (r + weight), 0, TYPES_MAX);
}

/* Least squares of u u' = common + like l on one type. A default counts as if it had been seen
 * at a likeness of 0.4.
 */
static struct effect learn_effect(const struct moments *m, const struct effect *usual)
{
    const double w = DEFAULT_WORKLOADS, w_like = DEFAULT_WORKLOADS * 0.4 * 0.4;
    double a = m->l[0] + w, b = m->l[1], c = m->l[2] + w_like;
    double p = m->ul[0] + w * usual->common, q = m->ul[1] + w_like * usual->like;
    double det = a * c - b * b;
    struct effect f = { .common = within((c * p - b * q) / det, 0, 1),
                        .like = within((a * q - b * p) / det, 0, 1) };
    double room = (1 - CELL_MIN) / fmax(f.common + f.like, 1 - CELL_MIN);

    f.common *= room;
    f.like *= room;
    f.cell = 1 - f.common - f.like;
    f.types = learn_types(m, f.common, f.like, usual->types);
    return f;
}

void relations_learn(const struct p2_examples *l, const bool *held, struct relations out[REGIMES])
{
    for (enum regime r = 0; r < REGIMES; r++) {
        const struct relations *usual = &defaults[r];
        struct moments m;
        add_up(l, held, r, P1_ALONE, &m);
        out[r].alone = learn_types(&m, 1, 0, usual->alone);
        add_up(l, held, r, P1_WATTS, &m);
        out[r].watts = learn_types(&m, 1, 0, usual->watts);
        add_up(l, held, r, P1_OWN, &m);
        out[r].own = learn_effect(&m, &usual->own);
        add_up(l, held, r, P1_PARTNER, &m);
        out[r].partner = learn_effect(&m, &usual->partner);
    }
}

#include "sim/eval/score.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

#define Z90 1.645    // half of a 90 % interval, in standard deviations

const char *const eval_split_names[EVAL_SPLITS] = { "job", "family", "gpu", "campaign", "site" };
const char *const eval_choice_names[EVAL_CHOICES] = { "random", "active" };
const char *const eval_method_names[EVAL_METHODS] = {
    "roofline", "none", "mean", "ridge", "nearest", "hierarchical", "network", "gogh",
};
const char *const eval_quantity_names[EVAL_QUANTITIES] = { "isolated", "pair", "slowdown",
                                                           "partner", "watts" };
const char *const eval_figure_names[EVAL_FIGURES] = {
    "isolated_mape", "isolated_abs_ln", "pair_mape",   "slowdown_mae",        "partner_mae",
    "spearman",      "order",           "coverage90",  "coverage90_isolated", "coverage90_slowdown",
    "fit_auc",       "watts_mape",      "joules_mape",
};

struct mean {
    double sum;
    int n;
};

static void mean_add(struct mean *m, double v)
{
    m->sum += v;
    m->n++;
}

static double mean_of(const struct mean *m)
{
    return m->n ? m->sum / m->n : (double)NAN;
}

/* ---- ranks ---- */

struct rank_entry {
    double value;
    int at;
};

static int by_value(const void *a, const void *b)
{
    const struct rank_entry *p = a, *q = b;

    return p->value < q->value ? -1 : p->value > q->value;
}

/* Ranks from 1, equal values sharing their mean. */
static double *ranks(struct arena *a, const double *x, int n)
{
    struct rank_entry *sorted = ARENA_ARRAY(a, struct rank_entry, (size_t)n);
    double *out = ARENA_ARRAY(a, double, (size_t)n);

    for (int i = 0; i < n; i++)
        sorted[i] = (struct rank_entry){ x[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end].value <= sorted[i].value;)
            end++;
        for (int j = i; j < end; j++)
            out[sorted[j].at] = 0.5 * (i + 1 + end);
    }
    return out;
}

double eval_spearman(struct arena *a, const double *x, const double *y, int n)
{
    const double *p = ranks(a, x, n), *q = ranks(a, y, n);
    double centre = 0.5 * (n + 1), pp = 0, qq = 0, pq = 0;

    for (int i = 0; i < n; i++) {
        pp += (p[i] - centre) * (p[i] - centre);
        qq += (q[i] - centre) * (q[i] - centre);
        pq += (p[i] - centre) * (q[i] - centre);
    }
    return pp > 0 && qq > 0 ? pq / sqrt(pp * qq) : (double)NAN;
}

double eval_auc(struct arena *a, const double *score, const bool *is_hit, int n)
{
    const double *rank = ranks(a, score, n);
    double sum = 0, hits = 0, misses;

    for (int i = 0; i < n; i++) {
        sum += is_hit[i] ? rank[i] : 0;
        hits += is_hit[i];
    }
    misses = n - hits;
    return hits > 0 && misses > 0 ? (sum - hits * (hits + 1) / 2) / (hits * misses) : (double)NAN;
}

/* ---- errors ---- */

/* Joules a step are watts over speed: of cells that have both. */
static double joules_mape(const struct eval_prediction *p, int n)
{
    struct mean m = { 0 };

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n && p[i].quantity == EVAL_WATTS; j++)
            if (p[j].quantity == EVAL_ISOLATED && p[j].type == p[i].type)
                mean_add(&m, fabs(p[i].mean / p[j].mean / (p[i].truth / p[j].truth) - 1));
    return mean_of(&m);
}

static double speed_spearman(struct arena *a, const struct eval_prediction *p, int n)
{
    double *truth = ARENA_ARRAY(a, double, (size_t)n), *mean = ARENA_ARRAY(a, double, (size_t)n);
    int n_speeds = 0;

    for (int i = 0; i < n; i++) {
        if (p[i].quantity == EVAL_ISOLATED || p[i].quantity == EVAL_PAIR) {
            truth[n_speeds] = p[i].truth;
            mean[n_speeds++] = p[i].mean;
        }
    }
    return eval_spearman(a, truth, mean, n_speeds);
}

/* Of GPU types whose speeds alone differ by this factor, which is the faster one? */
#define ORDER_LEAST 1.2

static double order_right(const struct eval_prediction *p, int n)
{
    struct mean right = { 0 };

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n && p[i].quantity == EVAL_ISOLATED; j++)
            if (p[j].quantity == EVAL_ISOLATED && p[i].truth >= ORDER_LEAST * p[j].truth)
                mean_add(&right, p[i].mean > p[j].mean ? 1 : p[i].mean < p[j].mean ? 0 : 0.5);
    return mean_of(&right);
}

static bool is_inside(const struct eval_prediction *p)
{
    return fabs(log(p->truth) - log(p->mean)) <= Z90 * p->sd;
}

void eval_score(struct arena *a, const struct eval_prediction *p, int n,
                double figure[EVAL_FIGURES])
{
    struct mean off[EVAL_QUANTITIES] = { 0 }, inside[EVAL_QUANTITIES] = { 0 };
    struct mean abs_ln = { 0 }, speeds_inside;

    for (int i = 0; i < n; i++) {
        bool is_difference = p[i].quantity == EVAL_SLOWDOWN || p[i].quantity == EVAL_PARTNER;
        mean_add(&off[p[i].quantity],
                 is_difference ? fabs(p[i].mean - p[i].truth) : fabs(p[i].mean / p[i].truth - 1));
        if (p[i].quantity == EVAL_ISOLATED)
            mean_add(&abs_ln, fabs(log(p[i].mean / p[i].truth)));
        if (!isnan(p[i].sd))
            mean_add(&inside[p[i].quantity], is_inside(&p[i]));
    }
    speeds_inside.sum = inside[EVAL_ISOLATED].sum + inside[EVAL_PAIR].sum;
    speeds_inside.n = inside[EVAL_ISOLATED].n + inside[EVAL_PAIR].n;
    figure[EVAL_ISOLATED_MAPE] = mean_of(&off[EVAL_ISOLATED]);
    figure[EVAL_ISOLATED_ABS_LN] = mean_of(&abs_ln);
    figure[EVAL_PAIR_MAPE] = mean_of(&off[EVAL_PAIR]);
    figure[EVAL_SLOWDOWN_MAE] = mean_of(&off[EVAL_SLOWDOWN]);
    figure[EVAL_PARTNER_MAE] = mean_of(&off[EVAL_PARTNER]);
    figure[EVAL_WATTS_MAPE] = mean_of(&off[EVAL_WATTS]);
    figure[EVAL_JOULES_MAPE] = joules_mape(p, n);
    figure[EVAL_SPEARMAN] = speed_spearman(a, p, n);
    figure[EVAL_ORDER] = order_right(p, n);
    figure[EVAL_COVERAGE90] = mean_of(&speeds_inside);
    figure[EVAL_COVERAGE90_ISOLATED] = mean_of(&inside[EVAL_ISOLATED]);
    figure[EVAL_COVERAGE90_SLOWDOWN] = mean_of(&inside[EVAL_SLOWDOWN]);
    figure[EVAL_FIT_AUC] = NAN;
}

void eval_sum_add(struct eval_sum *sum, const double figure[EVAL_FIGURES])
{
    for (int f = 0; f < EVAL_FIGURES; f++) {
        sum->sum[f] += isnan(figure[f]) ? 0 : figure[f];
        sum->n[f] += !isnan(figure[f]);
    }
}

void eval_sum_merge(struct eval_sum *sum, const struct eval_sum *other)
{
    for (int f = 0; f < EVAL_FIGURES; f++) {
        sum->sum[f] += other->sum[f];
        sum->n[f] += other->n[f];
    }
}

void eval_sum_means(const struct eval_sum *sum, double figure[EVAL_FIGURES])
{
    for (int f = 0; f < EVAL_FIGURES; f++)
        figure[f] = sum->n[f] ? sum->sum[f] / sum->n[f] : (double)NAN;
}

#include "monitor/window.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "catalog/catalog.h"

/* A part is an outlier when its ln rate is this many (robust) standard deviations off the median,
 * and by at least so much: a checkpoint stops a job for good, jitter does not.
 */
#define OUTLIER_SD 4.0
#define OUTLIER_LN 0.2

/* Halves that differ by more than this, and by more than chance explains, are a trend: the job
 * still warms up, or throttles.
 */
#define TREND_LN 0.05
#define TREND_SD 4.0

/* Parts that scatter more than this have no pace to speak of. */
#define SCATTER_LN 0.5

/* What one window cannot see (temperature, what else the machine does) differs from hour to hour by
 * about as much: a guess.
 */
#define NOISE_MIN 0.005

#define SPEED_SPAN_S 15.0

void window_begin(struct window *w, double now_s, double warmup_s, double report_s)
{
    *w = (struct window){ .last_s = NAN, .last_steps = NAN, .old_s = NAN, .mark_s = NAN };
    w->part_s = fmax(WINDOW_PART_MIN_S, report_s / (WINDOW_PARTS_MAX / 2.0));
    window_change(w, now_s, warmup_s);
}

void window_change(struct window *w, double now_s, double warmup_s)
{
    w->warm_s = now_s + warmup_s;
    w->from_s = NAN;
    w->n_parts = 0;
    w->old_s = w->mark_s = w->last_s;
    w->old_steps = w->mark_steps = w->last_steps;
}

void window_delay(struct window *w, double now_s, double warmup_s)
{
    if (isnan(w->from_s))
        w->warm_s = now_s + warmup_s;
}

static void mark_speed(struct window *w)
{
    if (isnan(w->old_s)) {
        w->old_s = w->mark_s = w->last_s;
        w->old_steps = w->mark_steps = w->last_steps;
    } else if (w->last_s - w->mark_s >= SPEED_SPAN_S) {
        w->old_s = w->mark_s;
        w->old_steps = w->mark_steps;
        w->mark_s = w->last_s;
        w->mark_steps = w->last_steps;
    }
}

static void end_part(struct window *w)
{
    w->parts[w->n_parts++] = (struct window_part){ .length_s = w->last_s - w->edge_s,
                                                   .steps = w->last_steps - w->edge_steps };
    w->edge_s = w->last_s;
    w->edge_steps = w->last_steps;
}

bool window_count(struct window *w, double t_s, double steps)
{
    assert(isfinite(t_s) && isfinite(steps));
    if (!isnan(w->last_s) && (t_s < w->last_s || steps <= w->last_steps))
        return false;
    w->last_s = t_s;
    w->last_steps = steps;
    mark_speed(w);
    if (t_s < w->warm_s)
        return false;
    if (isnan(w->from_s)) {
        w->from_s = w->edge_s = t_s;
        w->edge_steps = steps;
        return true;
    }
    if (t_s - w->edge_s >= w->part_s && w->n_parts < WINDOW_PARTS_MAX)
        end_part(w);
    return false;
}

double window_length_s(const struct window *w)
{
    return isnan(w->from_s) ? 0 : w->edge_s - w->from_s;
}

void window_go_on(struct window *w)
{
    w->from_s = isnan(w->from_s) ? w->from_s : w->edge_s;
    w->n_parts = 0;
}

double window_speed(const struct window *w, double now_s)
{
    const double silent_s = now_s - w->last_s;
    const double end_s = silent_s > 2 * SPEED_SPAN_S ? now_s : w->last_s;

    /* Less than a second is less than the time between two reports. */
    return end_s - w->old_s >= 1 ? (w->last_steps - w->old_steps) / (end_s - w->old_s)
                                 : (double)NAN;
}

/* ---- what the parts add up to ---- */

static double median_of(const double *v, int n)
{
    double sorted[WINDOW_PARTS_MAX];

    assert(n > 0 && n <= WINDOW_PARTS_MAX);
    for (int i = 0; i < n; i++)
        sorted[i] = v[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_number);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* ln rates of the parts that count, in their order, and what these add up to in 'out'. */
static int keep_parts(const struct window *w, double *kept, struct window_result *out)
{
    double ln_rate[WINDOW_PARTS_MAX] = { 0 }, off[WINDOW_PARTS_MAX] = { 0 };
    int n = 0;

    for (int i = 0; i < w->n_parts; i++)
        ln_rate[i] = log(w->parts[i].steps / w->parts[i].length_s);
    double middle = median_of(ln_rate, w->n_parts);
    for (int i = 0; i < w->n_parts; i++)
        off[i] = fabs(ln_rate[i] - middle);
    /* 1.4826: a normal distribution's sd over its median deviation. */
    double limit = fmax(OUTLIER_LN, OUTLIER_SD * 1.4826 * median_of(off, w->n_parts));
    for (int i = 0; i < w->n_parts; i++) {
        const struct window_part *p = &w->parts[i];

        /* A part of few steps is off by one of them. Of fewer than four nobody is in the wrong. */
        if (w->n_parts >= 4 && off[i] > limit + 1 / p->steps) {
            out->n_outliers++;
            out->outliers_s += p->length_s;
            continue;
        }
        out->length_s += p->length_s;
        out->steps += p->steps;
        kept[n++] = ln_rate[i];
    }
    return n;
}

struct window_spread {
    double mean, variance;
};

static struct window_spread spread_of(const double *v, int n)
{
    struct window_spread s = { 0 };

    for (int i = 0; i < n; i++)
        s.mean += v[i] / n;
    for (int i = 0; i < n && n > 1; i++)
        s.variance += (v[i] - s.mean) * (v[i] - s.mean) / (n - 1);
    return s;
}

/* Do later parts differ from earlier ones by more than their scatter explains? */
static bool has_trend(const double *v, int n, double quantum)
{
    const int half = n / 2;

    if (half < 2)
        return false;
    struct window_spread early = spread_of(v, half), late = spread_of(v + n - half, half);
    double differ = fabs(late.mean - early.mean);
    double chance = sqrt((early.variance + late.variance) / half) + quantum;
    return differ > TREND_LN && differ > TREND_SD * chance;
}

/* Two or three parts have no outliers: which of them would be? A part of few steps is off by one of
 * them.
 */
static bool is_split(const double *v, int n, double steps)
{
    double low = INFINITY, high = -INFINITY;

    for (int i = 0; i < n; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    return n < 4 && high - low > OUTLIER_LN + n / steps;
}

/* Both ends are off by up to a step, evenly: a variance of a sixth of a squared step. What the mean
 * of few parts gains by being one cannot be told from them.
 */
static double noise_of(struct window_spread s, int n, double steps)
{
    const double quantum = 1 / (6 * steps * steps);
    const double noise = sqrt(s.variance / (n < 4 ? 1 : n) + quantum);

    if (n >= 3)
        return fmax(NOISE_MIN, noise);
    return noise > CATALOG_NOISE ? noise : (double)NAN;
}

void window_tell(const struct window *w, double min_s, struct window_result *out)
{
    double kept[WINDOW_PARTS_MAX] = { 0 };

    *out = (struct window_result){ .verdict = WINDOW_SHORT, .noise = NAN, .from_s = w->from_s };
    out->to_s = w->from_s;
    if (isnan(w->from_s) || w->n_parts == 0)
        return;
    out->to_s = w->edge_s;
    int n = keep_parts(w, kept, out);
    struct window_spread s = spread_of(kept, n);
    out->noise = noise_of(s, n, out->steps);
    if (4 * out->n_outliers > w->n_parts || sqrt(s.variance) > SCATTER_LN + n / out->steps ||
        has_trend(kept, n, n / (2 * out->steps)) || is_split(kept, n, out->steps))
        out->verdict = WINDOW_UNSTABLE;
    else if (out->length_s >= min_s)
        out->verdict = WINDOW_STEADY;
}

/* Curves: watts and promises over time, and how predictions become better. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

/* Points of a curve; more would not show at the charts' size. Promises and errors of a slice are
 * few and jump, so they are taken over more of them.
 */
#define POINTS_MAX 120
#define POINTS_PROMISES 26
#define POINTS_ERRORS 40

/* A value of a slice. */
enum slice_value {
    SLICE_TIME_H,
    SLICE_KILOWATTS,
    SLICE_ERROR,
    SLICE_MEASUREMENTS,
    SLICE_ATTAINMENT
};

static double value_of(const struct study_slice *s, enum slice_value v)
{
    switch (v) {
    case SLICE_TIME_H:
        return s->time_s / 3600;
    case SLICE_KILOWATTS:
        return s->watts / 1000;
    case SLICE_ERROR:
        return 100 * s->error;
    case SLICE_MEASUREMENTS:
        return (double)s->measurements;
    case SLICE_ATTAINMENT:
        return 100 * s->attainment;
    }
    return NAN;
}

/* ---- slices to points ---- */

/* Mean of 'f' over slices [from, to) of one run; NaN are left out. */
static double slices_mean(const struct study_result *r, int from, int to, enum slice_value f)
{
    double sum = 0;
    int n = 0;

    for (int i = from; i < to && i < r->n_slices; i++) {
        const double v = value_of(&r->slices[i], f);

        if (isnan(v))
            continue;
        sum += v;
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* What of a group's slices becomes a curve. */
struct curve {
    enum slice_value x, y;
    int n_seeds;     // the first so many; 0: all of them
    int n_points;    // at most
    bool has_band;
};

/* Slices that all of the first 'n_runs' runs have. */
static int common_slices(const struct run_group *c, int n_runs)
{
    int n = c->rows[0]->result.n_slices;

    for (int i = 1; i < n_runs; i++)
        if (c->rows[i]->result.n_slices < n)
            n = c->rows[i]->result.n_slices;
    return n;
}

/* Mean over seeds, slice by slice as far as all of them have slices; the band is from the
 * smallest to the largest.
 */
static struct plot_series curve_make(const struct report *r, const struct run_group *c,
                                     const struct curve *how, const char *name)
{
    const int n_runs = how->n_seeds > 0 && how->n_seeds < c->n ? how->n_seeds : c->n;
    const int n_slices = common_slices(c, n_runs);
    const int stride = (n_slices + how->n_points - 1) / how->n_points;
    const int n = stride > 0 ? (n_slices + stride - 1) / stride : 0;
    const bool has_band = how->has_band && n_runs > 1;
    double *v = ARENA_ARRAY(r->a, double, 4 * (size_t)n);
    double *xs = ARENA_ARRAY(r->a, double, (size_t)n_runs);
    double *ys = ARENA_ARRAY(r->a, double, (size_t)n_runs);

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n_runs; k++) {
            xs[k] = slices_mean(&c->rows[k]->result, i * stride, (i + 1) * stride, how->x);
            ys[k] = slices_mean(&c->rows[k]->result, i * stride, (i + 1) * stride, how->y);
        }
        const struct spread spread = spread_of(ys, n_runs);

        v[i] = spread_of(xs, n_runs).mean;
        v[n + i] = spread.mean;
        v[2 * n + i] = spread.low;
        v[3 * n + i] = spread.high;
    }
    return (struct plot_series){ .name = name,
                                 .n = n,
                                 .x = v,
                                 .y = v + n,
                                 .low = has_band ? v + 2 * n : NULL,
                                 .high = has_band ? v + 3 * n : NULL };
}

static bool curve_has(const struct plot_series *s)
{
    int n = 0;

    for (int i = 0; i < s->n; i++)
        n += isfinite(s->x[i]) && isfinite(s->y[i]);
    return n > 1;
}

/* ---- over time, by policy ---- */

static const char *const shown[] = { "gogh", "fifo-fastest", "fifo-promise", "gavel" };
#define N_SHOWN ((int)(sizeof shown / sizeof shown[0]))

static double last_load(const struct scenario_results *s)
{
    return s->loads[s->n_loads - 1];
}

static int curves_by_policy(const struct report *r, const struct scenario_results *s,
                            const struct curve *how, struct plot_series out[N_SHOWN])
{
    const bool has_limits = scenario_footing(s, last_load(s));
    int n = 0;

    for (int i = 0; i < N_SHOWN; i++) {
        const struct group_query w = { last_load(s), shown[i], has_limits, "", -1 };
        const struct run_group *c = scenario_group(s, w);

        if (c == NULL)
            continue;
        out[n] = curve_make(r, c, how, shown[i]);
        n += curve_has(&out[n]);
    }
    return n;
}

struct times_chart {
    const char *title, *note, *x, *y;
    bool is_log_x;    // else it begins with the run
    bool is_share;    // ends at 100, and the label says where it begins; else y begins at 0
};

static double last_x(const struct plot_series *series, int n)
{
    double last = (double)NAN;

    for (int k = 0; k < n; k++)
        for (int i = 0; i < series[k].n; i++)
            if (!isnan(series[k].y[i]))
                last = fmax(last, series[k].x[i]);
    return last;
}

/* Where the axis of shares begins: at the tick below the least of them. */
static double share_low(const struct plot_series *series, int n)
{
    double least = 100;

    for (int k = 0; k < n; k++)
        for (int i = 0; i < series[k].n; i++)
            least = fmin(least, series[k].y[i]);
    return fmax(0, plot_ticks(least, 100, false, 6).low);
}

static void put_chart(struct report *r, const struct scenario_results *s,
                      const struct times_chart *c, bool has_limits,
                      const struct plot_series *series, int n)
{
    const double low = c->is_share ? share_low(series, n) : 0;
    const struct plot_lines p = {
        .title = arena_printf(r->a, "%s, %s", c->title, s->scenario->name),
        .description = c->note,
        .width = 556,    // two beside one another
        .height = 250,
        .x = { .label = c->x,
               .low = c->is_log_x ? (double)NAN : 0,
               .high = c->is_log_x ? (double)NAN : last_x(series, n),
               .is_log = c->is_log_x },
        .y = { .label = c->is_share ? report_axis_label(r->a, c->y, low) : c->y,
               .low = low,
               .high = c->is_share ? 100 : (double)NAN },
        .n_series = n,
        .series = series,
    };

    PUT(r->out, "<figure><figcaption>%s: %s, %s, %s</figcaption>\n", c->title,
        html(r, s->scenario->name), load_title(r->a, last_load(s)),
        has_limits ? "with power limits" : "without power limits");
    plot_lines(r->out, &p);
    report_put_command(r, s, last_load(s));
    PUT(r->out, "</figure>\n");
}

static const struct curve power_curve = { SLICE_TIME_H, SLICE_KILOWATTS, 1, POINTS_MAX, false };
static const struct curve promise_curve = { SLICE_TIME_H, SLICE_ATTAINMENT, 0, POINTS_PROMISES,
                                            false };

/* One policy alone has nobody to be held against. */
bool report_has_times(const struct report *r, const struct scenario_results *s)
{
    struct plot_series series[N_SHOWN];

    return curves_by_policy(r, s, &power_curve, series) > 1;
}

void report_times(struct report *r)
{
    static const struct times_chart power = {
        "Power",
        "Mean draw of the whole cluster over time, first seed, one curve a policy.",
        "hours since the first arrival",
        "kW",
        false,
        false,
    };
    static const struct times_chart promises = {
        "Promises kept by time of arrival",
        "Part of the promises kept to the jobs that arrived in a stretch of time.",
        "arrival, hours since the first",
        "% of promises",
        false,
        true,
    };
    struct plot_series series[N_SHOWN];

    PUT(r->out,
        "<p>Power is the mean draw of all GPUs, also idle and asleep, of the first seed; promises "
        "are %s of jobs in their order of arrival. Each at the scenario's highest load; all shown "
        "policies may limit power where the caption says so, none where it says without. After the "
        "last arrival the cluster runs empty.</p>\n",
        report_seeds(r) > 1 ? "means over seeds," : "those");
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario_results *s = &r->scenarios[i];
        int n;

        if (!report_has_times(r, s))
            continue;
        PUT(r->out, "<div class=\"charts\">\n");
        n = curves_by_policy(r, s, &power_curve, series);
        put_chart(r, s, &power, scenario_footing(s, last_load(s)), series, n);
        n = curves_by_policy(r, s, &promise_curve, series);
        if (n > 0)
            put_chart(r, s, &promises, scenario_footing(s, last_load(s)), series, n);
        PUT(r->out, "</div>\n");
    }
}

/* ---- learning ---- */

/* Has gogh runs without power limits? Then these are shown, else those with them. */
static bool learns_without(const struct scenario_results *s)
{
    const struct group_query w = { last_load(s), "gogh", false, "", -1 };

    return scenario_group(s, w) != NULL;
}

static int curves_by_knowledge(const struct report *r, const struct scenario_results *s,
                               enum slice_value x, struct plot_series out[PLOT_SERIES_MAX])
{
    const struct curve how = { x, SLICE_ERROR, 0, POINTS_ERRORS, true };
    int n = 0;

    for (int i = 0; i < s->n_knows && n < PLOT_SERIES_MAX; i++) {
        const struct group_query w = { last_load(s), "gogh", !learns_without(s), "",
                                       (int)s->knows[i] };
        const struct run_group *c = scenario_group(s, w);

        if (c == NULL)
            continue;
        out[n] =
            curve_make(r, c, &how, arena_printf(r->a, "from %s", knowledge_title(s->knows[i])));
        n += curve_has(&out[n]);
    }
    return n;
}

/* Scenarios that vary what is known, and the first of the others: the rest look like it. */
bool report_has_learning(const struct report *r, const struct scenario_results *s)
{
    struct plot_series series[PLOT_SERIES_MAX];

    if (curves_by_knowledge(r, s, SLICE_TIME_H, series) == 0)
        return false;
    if (s->n_knows > 1)
        return true;
    for (const struct scenario_results *before = r->scenarios; before < s; before++)
        if (before->n_knows < 2 && curves_by_knowledge(r, before, SLICE_TIME_H, series) > 0)
            return false;
    return true;
}

void report_learning(struct report *r)
{
    static const struct times_chart by_count = {
        "Prediction error by measurements",
        "Mean relative error of predictions against the number of measurements made so far.",
        "measurements so far",
        "error, %",
        true,
        false,
    };
    static const struct times_chart by_time = {
        "Prediction error by time",
        "Mean relative error of predictions against the time since the first arrival.",
        "hours since the first arrival",
        "error, %",
        false,
        false,
    };
    struct plot_series series[PLOT_SERIES_MAX];

    PUT(r->out,
        "<p>How far what gogh believed was from what it then measured: mean of "
        "|measured / believed − 1| over the measurements of a stretch of time, noise of the "
        "measurement included.%s</p>\n",
        report_seeds(r) > 1 ? " Mean over seeds, the band from the smallest to the largest." : "");
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario_results *s = &r->scenarios[i];
        int n;

        if (!report_has_learning(r, s))
            continue;
        const bool has_limits = !learns_without(s);

        PUT(r->out, "<div class=\"charts\">\n");
        n = curves_by_knowledge(r, s, SLICE_MEASUREMENTS, series);
        put_chart(r, s, &by_count, has_limits, series, n);
        n = curves_by_knowledge(r, s, SLICE_TIME_H, series);
        put_chart(r, s, &by_time, has_limits, series, n);
        PUT(r->out, "</div>\n");
    }
    report_knowledge(r);
}

/* Bars: energy and promises by policy. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

/* Rows of bars at one load: a group for each policy, a series without and one with limits. */
struct bars {
    int n_groups;
    const char **groups;
    struct plot_series series[2];
    int n_series;
};

static int group_of(struct bars *b, const char *title)
{
    for (int i = 0; i < b->n_groups; i++)
        if (strcmp(b->groups[i], title) == 0)
            return i;
    b->groups[b->n_groups] = title;
    return b->n_groups++;
}

static double *nan_array(struct arena *a, int n)
{
    double *v = ARENA_ARRAY(a, double, (size_t)n);

    for (int i = 0; i < n; i++)
        v[i] = (double)NAN;
    return v;
}

struct report_column report_column(struct arena *a, int n)
{
    return (struct report_column){ nan_array(a, n), nan_array(a, n), nan_array(a, n) };
}

void report_column_set(struct report_column *c, int i, struct spread s)
{
    c->y[i] = s.mean;
    c->low[i] = s.from;
    c->high[i] = s.to;
}

const char *report_whiskers(const struct scenario_results *s)
{
    if (scenario_seeds(s) < 2)
        return "one seed: nothing here is sure.";
    return scenario_seeds(s) < SPREAD_INTERVAL
               ? "whiskers go from the smallest to the largest seed."
               : "whiskers are 95 % confidence intervals over seeds.";
}

struct plot_series report_column_series(const struct report_column *c, int n, const char *name)
{
    return (struct plot_series){ .name = name, .n = n, .y = c->y, .low = c->low, .high = c->high };
}

struct bars_kind {
    const char *title, *label;
    enum report_figure figure;
    bool are_dots;    // then it is a share
    double best;      // of a figure that is shown as dots: the most that can be
};

static struct bars bars_make(const struct report *r, const struct scenario_results *s, double load,
                             const struct bars_kind *kind)
{
    struct bars b = { .groups = ARENA_ARRAY(r->a, const char *, (size_t)s->n_groups) };
    struct report_column columns[2] = { report_column(r->a, s->n_groups),
                                        report_column(r->a, s->n_groups) };
    bool has[2] = { false, false };

    for (int i = 0; i < s->n_groups; i++) {
        const struct run_group *c = &s->groups[i];
        const struct spread spread = group_spread(r, c, kind->figure);

        if (c->key.load != load || c->key.without[0] != '\0' || !isfinite(spread.mean) ||
            !scenario_shows(s, &c->key))
            continue;
        report_column_set(&columns[c->key.has_limits],
                          group_of(&b, report_group_title(r, s, &c->key)), spread);
        has[c->key.has_limits] = true;
    }
    for (int i = 0; i < 2; i++)
        if (has[i])
            b.series[b.n_series++] = report_column_series(
                &columns[i], b.n_groups, i == 0 ? "without power limits" : "with power limits");
    return b;
}

/* All loads on one scale, so that they can be held against each other. */
struct bars_extent {
    double low, high;      // of means
    double least, most;    // of intervals
};

static void extent_add_bars(struct bars_extent *x, const struct bars *b)
{
    for (int k = 0; k < b->n_series; k++)
        for (int i = 0; i < b->n_groups; i++) {
            const struct plot_series *s = &b->series[k];

            x->low = fmin(x->low, s->y[i]);    // fmin and fmax leave NaN aside
            x->high = fmax(x->high, s->y[i]);
            x->least = fmin(x->least, fmin(s->y[i], s->low[i]));
            x->most = fmax(x->most, fmax(s->y[i], s->high[i]));
        }
}

const char *report_axis_label(struct arena *a, const char *label, double low)
{
    return low == 0 || low == 50 ? label : arena_printf(a, "%s; axis begins at %g", label, low);
}

/* Bars from 0; dots where the means are: an interval of few seeds that is wider than twice their
 * distance from the best that can be goes on beyond the axis.
 */
static struct plot_axis axis_of(const struct report *r, const struct bars_kind *kind,
                                const struct bars_extent *x)
{
    struct plot_axis axis = { .label = kind->label, .low = (double)NAN };

    if (kind->are_dots) {
        const double room = fmax(2, kind->best - x->low);
        const struct plot_ticks t =
            plot_ticks(fmax(0, fmax(x->least, x->low - room)), kind->best, false, 6);

        axis.low = t.low;
        axis.high = kind->best;
        axis.label = report_axis_label(r->a, kind->label, axis.low);
    } else {
        axis.high = plot_ticks(0, x->most, false, 6).high;
    }
    return axis;
}

static void put_bars(struct report *r, const struct scenario_results *s,
                     const struct bars_kind *kind)
{
    struct bars_extent x = { INFINITY, -INFINITY, INFINITY, -INFINITY };
    struct plot_axis axis;
    int n_groups = 0;

    for (int l = 0; l < s->n_loads; l++) {
        const struct bars b = bars_make(r, s, s->loads[l], kind);

        extent_add_bars(&x, &b);
        n_groups = b.n_groups > n_groups ? b.n_groups : n_groups;
    }
    if (n_groups < 2 || !isfinite(x.low))    // nobody to compare with
        return;
    axis = axis_of(r, kind, &x);
    if (s->n_loads > 1)
        PUT(r->out, "<div class=\"charts\">\n");
    for (int l = 0; l < s->n_loads; l++) {
        const struct bars b = bars_make(r, s, s->loads[l], kind);
        const struct plot_bars p = {
            .title = arena_printf(r->a, "%s, %s, %s", kind->title, s->scenario->name,
                                  load_title(r->a, s->loads[l])),
            .description = arena_printf(r->a, "One row a policy; %s", report_whiskers(s)),
            .width = s->n_loads > 2 ? 366 : 556,    // three or two beside one another
            .groups = b.groups,
            .n_groups = b.n_groups,
            .strong = "gogh",
            .value = axis,
            .are_dots = kind->are_dots,
            .n_series = b.n_series,
            .series = b.series,
        };

        PUT(r->out, "<figure><figcaption>%s, %s</figcaption>\n", kind->title,
            load_title(r->a, s->loads[l]));
        plot_bars(r->out, &p);
        report_put_command(r, s, s->loads[l]);
        PUT(r->out, "</figure>\n");
    }
    if (s->n_loads > 1)
        PUT(r->out, "</div>\n");
}

void report_bars(struct report *r, const struct scenario_results *s)
{
    static const struct bars_kind kinds[] = {
        { "Energy per unit of work", "J per unit of work; less is better", REPORT_ENERGY, false,
          0 },
        { "Promises kept", "% of promises; more is better", REPORT_ATTAINMENT, true, 100 },
    };

    /* A row of charts for each kind, or one row where there is one load. */
    if (s->n_loads == 1)
        PUT(r->out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        put_bars(r, s, &kinds[i]);
    if (s->n_loads == 1)
        PUT(r->out, "</div>\n");
}

#include "study/plot/inner.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define BAR 11.0    // a bar's height
#define GAP 7.0     // between groups

struct bar_rows {
    const struct plot_bars *p;
    struct scale x;
    double top;
};

static double whisker_low(const struct plot_series *s, int i)
{
    return s->low != NULL && isfinite(s->low[i]) ? s->low[i] : s->y[i];
}

static double whisker_high(const struct plot_series *s, int i)
{
    return s->high != NULL && isfinite(s->high[i]) ? s->high[i] : s->y[i];
}

static struct extent extent_of(const struct plot_bars *p)
{
    struct extent e = extent_none();

    if (!p->are_dots)
        extent_add(&e, 0, false);
    for (int k = 0; k < p->n_series; k++) {
        const struct plot_series *s = &p->series[k];

        for (int i = 0; i < s->n; i++) {
            if (!isfinite(s->y[i]))
                continue;
            extent_add(&e, s->y[i], p->value.is_log);
            extent_add(&e, whisker_low(s, i), p->value.is_log);
            extent_add(&e, whisker_high(s, i), p->value.is_log);
        }
    }
    return e;
}

/* With caps, but where it goes on beyond the axis. */
static void put_whisker(struct buf *out, const struct bar_rows *r, const struct plot_series *s,
                        int i, double y)
{
    const double low = scale_at(&r->x, whisker_low(s, i));
    const double high = scale_at(&r->x, whisker_high(s, i));

    if (high - low <= 0.5)
        return;
    PUT(out, "<path class=\"whisker\" d=\"M%.4g %.4gH%.4g", low, y, high);
    if (whisker_high(s, i) <= r->x.high)
        PUT(out, "m0-2.5v5");
    if (whisker_low(s, i) >= r->x.low)
        PUT(out, "M%.4g %.4gv5", low, y - 2.5);
    PUT(out, "\"/>\n");
}

/* Hover text: group, series, value. */
static void put_title(struct buf *out, const struct bar_rows *r, int series, int i)
{
    PUT(out, "<title>");
    plot_escape(out, r->p->groups[i]);
    if (r->p->n_series > 1) {
        PUT(out, ", ");
        plot_escape(out, r->p->series[series].name);
    }
    PUT(out, ": %s</title>", plot_number(r->p->series[series].y[i]).text);
}

static void put_bar(struct buf *out, const struct bar_rows *r, int series, int i, double y)
{
    const struct plot_series *s = &r->p->series[series];
    const double at = scale_at(&r->x, s->y[i]);
    const double zero = scale_at(&r->x, 0);

    PUT(out, "<g class=\"c%d\">", series);
    put_title(out, r, series, i);
    if (r->p->are_dots)
        svg_marker(out, series, at, y);
    else
        PUT(out, "<path class=\"bar f%d\" d=\"M%.4g %.4gH%.4gv%gH%.4gz\"/>\n", series % 3, zero,
            y - (BAR - 3) / 2, at, BAR - 3, zero);
    put_whisker(out, r, s, i, y);
    PUT(out, "</g>\n");
}

static void put_group(struct buf *out, const struct bar_rows *r, int i)
{
    const double y = r->top + i * (r->p->n_series * BAR + GAP) + GAP / 2;
    const bool is_strong = r->p->strong != NULL && strcmp(r->p->groups[i], r->p->strong) == 0;

    svg_text(out, r->x.from - 6, y + r->p->n_series * BAR / 2 + 4, "end",
             is_strong ? "strong" : NULL, r->p->groups[i]);
    for (int k = 0; k < r->p->n_series; k++) {
        const struct plot_series *s = &r->p->series[k];
        const double middle = y + (k + 0.5) * BAR;
        const bool has = scale_has(&r->x, s->y[i]);
        const double end = has ? scale_at(&r->x, fmax(whisker_high(s, i),
                                                      r->p->are_dots ? s->y[i] : fmax(0, s->y[i])))
                               : r->x.from;

        if (has)
            put_bar(out, r, k, i, middle);
        svg_text(out, end + 6, middle + 3.5, "start", "soft small", plot_number(s->y[i]).text);
    }
}

static void draw_sample(struct buf *out, int series, double x, double y)
{
    PUT(out, "<g class=\"c%d\"><path class=\"bar f%d\" d=\"M%.4g %.4gh18v8h-18z\"/></g>\n", series,
        series % 3, x, y - 4);
}

static void draw_dot(struct buf *out, int series, double x, double y)
{
    PUT(out, "<g class=\"c%d\">", series);
    svg_marker(out, series, x + 10, y);
    PUT(out, "</g>\n");
}

void plot_bars(struct buf *out, const struct plot_bars *p)
{
    const double width = p->width > 0 ? p->width : 400;
    const double legend = legend_put(NULL, p->series, p->n_series, width, NULL);
    struct bar_rows r = { .p = p, .top = legend > 0 ? legend + 8 : 4 };
    const double bottom = r.top + p->n_groups * (p->n_series * BAR + GAP);
    double left = 40;

    assert(p->n_series <= PLOT_SERIES_MAX);
    for (int i = 0; i < p->n_groups; i++)
        left = fmax(left, text_width(p->groups[i], 11) + 12);
    left = fmin(left, width / 2);
    r.x = scale_make(&p->value, extent_of(p), left, width - 44, 6);
    svg_open(out, p->title, p->description, width, bottom + 34);
    legend_put(out, p->series, p->n_series, width, p->are_dots ? draw_dot : draw_sample);
    axis_bottom(out, &r.x, p->value.label, r.top, bottom);
    for (int i = 0; i < p->n_groups; i++)
        put_group(out, &r, i);
    if (!p->are_dots)
        svg_line(out, "axis", scale_at(&r.x, 0), r.top, scale_at(&r.x, 0), bottom);
    svg_close(out);
}

#include "study/plot/inner.h"

#include <assert.h>
#include <math.h>

/* Markers on a curve, so that it is told from others without colour. */
#define MARKERS 8

#define N_DASHES 5

struct line_chart {
    const struct plot_lines *p;
    struct scale x, y;
};

static bool has_point(const struct line_chart *c, const struct plot_series *s, int i)
{
    return scale_has(&c->x, s->x[i]) && scale_has(&c->y, s->y[i]);
}

static bool has_band(const struct line_chart *c, const struct plot_series *s, int i)
{
    return has_point(c, s, i) && scale_has(&c->y, s->low[i]) && scale_has(&c->y, s->high[i]);
}

/* From 'i' to where the band has a gap; returns the first point after it. */
static int put_band_piece(struct buf *out, const struct line_chart *c, const struct plot_series *s,
                          int i)
{
    int end = i;

    PUT(out, "<path class=\"band\" d=\"");
    for (; end < s->n && has_band(c, s, end); end++)
        PUT(out, "%c%.4g %.4g", end == i ? 'M' : 'L', scale_at(&c->x, s->x[end]),
            scale_at(&c->y, s->high[end]));
    for (int k = end - 1; k >= i; k--)
        PUT(out, "L%.4g %.4g", scale_at(&c->x, s->x[k]), scale_at(&c->y, s->low[k]));
    PUT(out, "Z\"/>\n");
    return end;
}

static void put_band(struct buf *out, const struct line_chart *c, const struct plot_series *s)
{
    for (int i = 0; i < s->n; i++)
        if (has_band(c, s, i))
            i = put_band_piece(out, c, s, i);
}

/* A point with gaps on both sides is a marker only. */
static void put_curve(struct buf *out, const struct line_chart *c, const struct plot_series *s,
                      int series)
{
    bool is_down = false;
    int n = 0, n_points = 0;

    PUT(out, "<path class=\"curve d%d\" d=\"", series % N_DASHES);
    for (int i = 0; i < s->n; i++) {
        const bool has = has_point(c, s, i);

        if (has)
            PUT(out, "%c%.4g %.4g", is_down ? 'L' : 'M', scale_at(&c->x, s->x[i]),
                scale_at(&c->y, s->y[i]));
        is_down = has;
        n_points += has;
    }
    PUT(out, "\"/>\n");
    for (int i = 0; i < s->n; i++) {
        const bool is_lone =
            (i == 0 || !has_point(c, s, i - 1)) && (i + 1 == s->n || !has_point(c, s, i + 1));

        if (!has_point(c, s, i))
            continue;
        if (is_lone || n_points <= MARKERS || n % (n_points / MARKERS) == 0)
            svg_marker(out, series, scale_at(&c->x, s->x[i]), scale_at(&c->y, s->y[i]));
        n++;
    }
}

/* What stands beside the points, above them and to the right. */
static void put_labels(struct buf *out, const struct line_chart *c, const struct plot_series *s)
{
    for (int i = 0; s->labels != NULL && i < s->n; i++)
        if (has_point(c, s, i))
            svg_text(out, scale_at(&c->x, s->x[i]) + 5, scale_at(&c->y, s->y[i]) - 5, "start",
                     "small", s->labels[i]);
}

static void draw_sample(struct buf *out, int series, double x, double y)
{
    PUT(out, "<g class=\"c%d\">", series);
    PUT(out, "<path class=\"curve d%d\" d=\"M%.4g %.4gh20\"/>\n", series % N_DASHES, x, y);
    svg_marker(out, series, x + 10, y);
    PUT(out, "</g>\n");
}

static struct extent extent_of(const struct plot_lines *p, bool is_y)
{
    const bool is_log = is_y ? p->y.is_log : p->x.is_log;
    struct extent e = extent_none();

    for (int k = 0; k < p->n_series; k++) {
        const struct plot_series *s = &p->series[k];

        for (int i = 0; i < s->n; i++) {
            if (!isfinite(s->y[i]))
                continue;
            extent_add(&e, is_y ? s->y[i] : s->x[i], is_log);
            if (is_y && s->low != NULL)
                extent_add(&e, s->low[i], is_log);
            if (is_y && s->high != NULL)
                extent_add(&e, s->high[i], is_log);
        }
    }
    return e;
}

/* How much room the labels of the left axis take. */
static double left_room(const struct plot_lines *p, struct extent y)
{
    const struct scale s = scale_make(&p->y, y, 0, 1, 6);
    double wide = 0;

    for (int i = 0; i < s.ticks.n; i++) {
        const int decimals = s.ticks.decimals >= 0 ? s.ticks.decimals : plot_decimals(s.low);

        wide = fmax(wide, text_width(plot_fixed(s.ticks.at[i], decimals).text, 11));
    }
    return wide + 12;
}

void plot_lines(struct buf *out, const struct plot_lines *p)
{
    const double width = p->width > 0 ? p->width : 640, height = p->height > 0 ? p->height : 260;
    const double top = legend_put(NULL, p->series, p->n_series, width, NULL) + 24,
                 bottom = height - 34, right = width - 18;
    const struct extent y = extent_of(p, true);
    const double left = left_room(p, y);
    const struct line_chart c = {
        .p = p,
        .x = scale_make(&p->x, extent_of(p, false), left, right, width > 450 ? 9 : 6),
        .y = scale_make(&p->y, y, bottom, top, 6),
    };

    assert(p->n_series <= PLOT_SERIES_MAX);
    svg_open(out, p->title, p->description, width, height);
    legend_put(out, p->series, p->n_series, width, draw_sample);
    axis_left(out, &c.y, p->y.label, left, right);
    axis_bottom(out, &c.x, p->x.label, top, bottom);
    for (int k = 0; k < p->n_series; k++) {
        PUT(out, "<g class=\"c%d\">\n", k);
        if (p->series[k].low != NULL && p->series[k].high != NULL)
            put_band(out, &c, &p->series[k]);
        put_curve(out, &c, &p->series[k], k);
        put_labels(out, &c, &p->series[k]);
        PUT(out, "</g>\n");
    }
    svg_close(out);
}

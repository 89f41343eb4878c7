#include "study/plot/inner.h"

#include <math.h>

#define LANE 13.0    // a lane's height
#define TINY 0.3     // spans that are less wide are not drawn
#define TRACKS_MAX 4

/* Spans of one lane that overlap go on tracks of their own, each on the first that is free;
 * past the last, they lie on one another.
 */
struct tracks {
    int n;
    double ends[TRACKS_MAX];
};

static int track_take(struct tracks *t, const struct plot_span *s)
{
    int i = 0;

    while (i < t->n && i < TRACKS_MAX - 1 && t->ends[i] > s->from)
        i++;
    t->ends[i] = s->to;
    t->n = i < t->n ? t->n : i + 1;
    return i;
}

/* The spans from 'first' that share its lane and hang together in time: the first after them. */
static int bunch_end(const struct plot_strip *p, int first, struct tracks *t)
{
    double end = p->spans[first].to;
    int i = first;

    *t = (struct tracks){ 0 };
    for (; i < p->n_spans && p->spans[i].lane == p->spans[first].lane; i++) {
        if (i > first && p->spans[i].from >= end)
            break;
        track_take(t, &p->spans[i]);
        end = fmax(end, p->spans[i].to);
    }
    return i;
}

static void put_span(struct buf *out, const struct scale *x, const struct plot_span *s, double top,
                     double height)
{
    const double from = scale_at(x, s->from), to = scale_at(x, s->to);

    if (to - from < TINY)
        return;
    PUT(out,
        "<rect class=\"span c%d%s\" x=\"%.4g\" y=\"%.4g\" width=\"%.4g\" height=\"%.3g\"><title>",
        s->colour, s->is_marked ? " marked" : "", from, top, to - from, height);
    plot_escape(out, s->text);
    PUT(out, "</title></rect>\n");
}

static void put_spans(struct buf *out, const struct plot_strip *p, const struct scale *x,
                      double top)
{
    struct tracks all;
    int end;

    for (int first = 0; first < p->n_spans; first = end) {
        struct tracks t = { 0 };

        end = bunch_end(p, first, &all);
        for (int i = first; i < end; i++) {
            const double height = (LANE - 2) / all.n;
            const double y = top + p->spans[i].lane * LANE + 1;

            put_span(out, x, &p->spans[i], y + track_take(&t, &p->spans[i]) * height, height - 0.5);
        }
    }
}

static void put_lanes(struct buf *out, const struct plot_strip *p, const struct scale *x,
                      double top)
{
    for (int i = 0; i < p->n_lanes; i++) {
        const bool is_first = p->bundles != NULL && i > 0 && p->bundles[i] != p->bundles[i - 1];

        svg_text(out, x->from - 5, top + (i + 0.5) * LANE + 3.5, "end", "small", p->lanes[i]);
        svg_line(out, is_first ? "axis" : "grid", is_first ? 0 : x->from, top + i * LANE, x->to,
                 top + i * LANE);
    }
}

void plot_strip(struct buf *out, const struct plot_strip *p)
{
    const double width = p->width > 0 ? p->width : 960, top = 4;
    const double bottom = top + p->n_lanes * LANE;
    struct extent data = extent_none();
    struct scale x;
    double left = 30;

    for (int i = 0; i < p->n_lanes; i++)
        left = fmax(left, text_width(p->lanes[i], 10) + 10);
    for (int i = 0; i < p->n_spans; i++) {
        extent_add(&data, p->spans[i].from, p->x.is_log);
        extent_add(&data, p->spans[i].to, p->x.is_log);
    }
    x = scale_make(&p->x, data, left, width - 18, 10);
    svg_open(out, p->title, p->description, width, bottom + 34);
    axis_bottom(out, &x, p->x.label, top, bottom);
    put_lanes(out, p, &x, top);
    put_spans(out, p, &x, top);
    svg_close(out);
}

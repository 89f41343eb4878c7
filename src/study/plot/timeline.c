#include "study/plot/inner.h"

#include <math.h>

#define ROW 13.0    // a row's height
#define TINY 0.3    // spans that are less wide are not drawn
#define SUB_ROWS_MAX 4

/* Spans of one row that overlap go on tracks of their own, each on the first that is free;
 * past the last, they lie on one another.
 */
struct sub_rows {
    int n;
    double ends[SUB_ROWS_MAX];
};

static int sub_row_take(struct sub_rows *t, const struct plot_span *s)
{
    int i = 0;

    while (i < t->n && i < SUB_ROWS_MAX - 1 && t->ends[i] > s->from)
        i++;
    t->ends[i] = s->to;
    t->n = i < t->n ? t->n : i + 1;
    return i;
}

/* The spans from 'first' that share its row and hang together in time: the first after them. */
static int bunch_end(const struct plot_timeline *p, int first, struct sub_rows *t)
{
    double end = p->spans[first].to;
    int i = first;

    *t = (struct sub_rows){ 0 };
    for (; i < p->n_spans && p->spans[i].row == p->spans[first].row; i++) {
        if (i > first && p->spans[i].from >= end)
            break;
        sub_row_take(t, &p->spans[i]);
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

static void put_spans(struct buf *out, const struct plot_timeline *p, const struct scale *x,
                      double top)
{
    struct sub_rows all;
    int end;

    for (int first = 0; first < p->n_spans; first = end) {
        struct sub_rows t = { 0 };

        end = bunch_end(p, first, &all);
        for (int i = first; i < end; i++) {
            const double height = (ROW - 2) / all.n;
            const double y = top + p->spans[i].row * ROW + 1;

            put_span(out, x, &p->spans[i], y + sub_row_take(&t, &p->spans[i]) * height,
                     height - 0.5);
        }
    }
}

static void put_rows(struct buf *out, const struct plot_timeline *p, const struct scale *x,
                     double top)
{
    for (int i = 0; i < p->n_rows; i++) {
        const bool is_first = p->bundles != NULL && i > 0 && p->bundles[i] != p->bundles[i - 1];

        svg_text(out, x->from - 5, top + (i + 0.5) * ROW + 3.5, "end", "small", p->rows[i]);
        svg_line(out, is_first ? "axis" : "grid", is_first ? 0 : x->from, top + i * ROW, x->to,
                 top + i * ROW);
    }
}

void plot_timeline(struct buf *out, const struct plot_timeline *p)
{
    const double width = p->width > 0 ? p->width : 960, top = 4;
    const double bottom = top + p->n_rows * ROW;
    struct extent data = extent_none();
    struct scale x;
    double left = 30;

    for (int i = 0; i < p->n_rows; i++)
        left = fmax(left, text_width(p->rows[i], 10) + 10);
    for (int i = 0; i < p->n_spans; i++) {
        extent_add(&data, p->spans[i].from, p->x.is_log);
        extent_add(&data, p->spans[i].to, p->x.is_log);
    }
    x = scale_make(&p->x, data, left, width - 18, 10);
    svg_open(out, p->title, p->description, width, bottom + 34);
    axis_bottom(out, &x, p->x.label, top, bottom);
    put_rows(out, p, &x, top);
    put_spans(out, p, &x, top);
    svg_close(out);
}

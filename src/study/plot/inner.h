/* inner.h - what the charts share: scales, axes, legends. For plot*.c alone. */
#ifndef STUDY_PLOT_INNER_H
#define STUDY_PLOT_INNER_H

#include "study/plot/plot.h"
#include "study/plot/markup.h"

/* Where values of an axis lie on the drawing. */
struct scale {
    struct plot_ticks ticks;
    double low, high;    // of the data
    bool is_log;
    double from, to;    // of the drawing, where 'low' and 'high' are
};

/* Smallest and largest so far; begins with NaN, which means none. */
struct extent {
    double low, high;
};
struct extent extent_none(void);
void extent_add(struct extent *x, double v, bool is_log);

/* The scale of an axis: what it says, and the data's extent where it says nothing. */
struct scale scale_make(const struct plot_axis *axis, struct extent data, double from, double to,
                        int n_ticks);
double scale_at(const struct scale *s, double v);    // values beyond the ends lie at the ends
bool scale_has(const struct scale *s, double v);     // is it a number, and on a log axis above 0

/* About how wide a text is at 'size' pixels; the fonts of readers differ. */
double text_width(const char *text, double size);

void svg_open(struct buf *out, const char *title, const char *description, double width,
              double height);
void svg_close(struct buf *out);

/* Text at a place; 'anchor' is "start", "middle" or "end"; class NULL: none. */
void svg_text(struct buf *out, double x, double y, const char *anchor, const char *class,
              const char *text);
void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2);

/* Grid lines and tick labels along the bottom ('top' to 'bottom' is the drawing), the label
 * below; and along the left side, the label above it.
 */
void axis_bottom(struct buf *out, const struct scale *s, const char *label, double top,
                 double bottom);
void axis_left(struct buf *out, const struct scale *s, const char *label, double left,
               double right);

/* The marker of a series: circle, square, diamond, triangles. */
void svg_marker(struct buf *out, int series, double x, double y);

/* Names of series in rows at the top of a chart of that 'width', each behind its sample, which
 * 'draw' makes at a place; returns the height taken. One series needs no name. 'out' NULL: only
 * the height.
 */
typedef void legend_f(struct buf *out, int series, double x, double y);
double legend_put(struct buf *out, const struct plot_series *series, int n, double width,
                  legend_f *draw);

#endif

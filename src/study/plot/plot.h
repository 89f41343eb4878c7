/* plot.h - small charts as inline SVG: lines with bands, rows of bars with whiskers, strips.
 *
 * Pure text out of numbers; knows nothing of jobs and GPUs. Colours are CSS classes of the page
 * (plot_style), so that one SVG is legible on paper and on a dark screen; series differ by dash,
 * marker or filling too. Every chart has a title and a description for screen readers. The buffer
 * must have room (markup.h); all names are escaped.
 */
#ifndef STUDY_PLOT_PLOT_H
#define STUDY_PLOT_PLOT_H

#include <stdbool.h>

struct buf;

#define PLOT_SERIES_MAX 10

struct plot_axis {
    const char *label;    // with its unit
    double low, high;     // NaN: from the data, widened to the next ticks
    bool is_log;          // values of 0 and less are gaps then
};

struct plot_series {
    const char *name;
    int n;
    const double *x, *y;          // NaN in y: a gap
    const double *low, *high;     // (n) the band or whisker; NULL: none
    const char *const *labels;    // (n) beside the points of a line; NULL: none
};

struct plot_lines {
    const char *title, *description;
    int width, height;    // 0: 640 and 260
    struct plot_axis x, y;
    int n_series;
    const struct plot_series *series;
};
void plot_lines(struct buf *out, const struct plot_lines *p);

/* Rows of bars that lie: a group has one of each series, its name to the left, the values
 * written at their ends.
 */
struct plot_bars {
    const char *title, *description;
    int width;                    // 0: 400; the height follows from the rows
    const char *const *groups;    // (n_groups)
    int n_groups;
    const char *strong;        // this group's name is bold; NULL: none
    struct plot_axis value;    // bars begin at 0, which is always on the axis
    bool are_dots;             // dots instead of bars, on an axis that needs no 0
    int n_series;
    const struct plot_series *series;    // n is n_groups; x is not read
};
void plot_bars(struct buf *out, const struct plot_bars *p);

/* One row a row, split where spans overlap; a span has a colour and a hover text. */
struct plot_span {
    int row;
    double from, to;
    int colour;        // 0 .. PLOT_SERIES_MAX - 1
    bool is_marked;    // paler, with a border
    const char *text;
};
struct plot_timeline {
    const char *title, *description;
    int width;    // 0: 960
    struct plot_axis x;
    int n_rows;
    const char *const *rows;    // (n_rows) names
    const int *bundles;         // (n_rows) a line is drawn where it changes; NULL: none
    int n_spans;
    const struct plot_span *spans;    // by row, then from
};
void plot_timeline(struct buf *out, const struct plot_timeline *p);

/* The CSS that the charts need: light, dark and print. */
void plot_style(struct buf *out);

/* Text made safe for HTML, in elements and in quoted attributes; bytes that XML does not know
 * become question marks.
 */
void plot_escape(struct buf *out, const char *text);

/* A number as people read it: three significant digits at least, whole from 100 on, thousands
 * apart, a real minus; an en dash for what is no number or has no end.
 */
struct plot_number {
    char text[48];
};
struct plot_number plot_number(double v);
struct plot_number plot_fixed(double v, int decimals);

/* How many decimals plot_number gives 'v'. */
int plot_decimals(double v);

/* Round ticks (1, 2 or 5 times a power of ten) for [low, high], at most 'n_max' (3 or more), and
 * the range widened to ticks at both ends. On a log axis (low > 0) 1, 2 and 5 of each decade or,
 * where those are too many, some decades; the range is widened to decades only if it has no two
 * ticks.
 */
#define PLOT_TICKS_MAX 12
struct plot_ticks {
    int n;
    double at[PLOT_TICKS_MAX];
    int decimals;    // that tell them apart; -1: each needs its own
    double low, high;
};
struct plot_ticks plot_ticks(double low, double high, bool is_log, int n_max);

#endif

#include "study/plot/inner.h"

#include <assert.h>
#include <math.h>

/* ---- ticks ---- */

/* The least of 1, 2, 5 times a power of ten that is not below 'v'. */
static double round_up(double v)
{
    const double power = pow(10, floor(log10(v)));
    static const double steps[] = { 1, 2, 5, 10 };

    for (int i = 0; i < 3; i++)
        if (steps[i] * power >= v * (1 - 1e-9))
            return steps[i] * power;
    return steps[3] * power;
}

static struct plot_ticks ticks_linear(double low, double high, int n_max)
{
    struct plot_ticks t = { 0 };
    double step = round_up((high - low) / (n_max - 1));
    double first = floor(low / step + 1e-9), last = ceil(high / step - 1e-9);

    while (last - first + 1 > n_max) {
        step = round_up(step * 1.5);
        first = floor(low / step + 1e-9);
        last = ceil(high / step - 1e-9);
    }
    for (t.n = 0; t.n <= (int)(last - first); t.n++)
        t.at[t.n] = (first + t.n) * step;
    t.decimals = (int)fmin(12, fmax(0, -floor(log10(step) + 1e-9)));
    t.low = first * step;
    t.high = last * step;
    return t;
}

static bool is_within(double v, double low, double high)
{
    return v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9);
}

/* 1, 2 and 5 of each decade, or where these are too many, every so many decades. */
static void ticks_log_within(struct plot_ticks *t, double low, double high, int n_max)
{
    static const double parts[] = { 1, 2, 5 };
    const int first = (int)floor(log10(low) + 1e-9), last = (int)ceil(log10(high) - 1e-9);
    const bool has_parts = 3 * (log10(high) - log10(low)) <= n_max - 1;
    const int every = has_parts ? 1 : (last - first) / n_max + 1;

    t->n = 0;
    for (int d = first; d <= last; d += every)
        for (int i = 0; i < (has_parts ? 3 : 1); i++)
            if (is_within(parts[i] * pow(10, d), low, high) && t->n < PLOT_TICKS_MAX)
                t->at[t->n++] = parts[i] * pow(10, d);
}

/* The range intervals as it is, unless it holds less than two ticks. */
static struct plot_ticks ticks_log(double low, double high, int n_max)
{
    struct plot_ticks t = { .low = low, .high = high, .decimals = -1 };

    ticks_log_within(&t, low, high, n_max);
    if (t.n < 2) {
        t.low = pow(10, floor(log10(low) + 1e-9));
        t.high = pow(10, ceil(log10(high) - 1e-9));
        t.high = t.high > t.low ? t.high : 10 * t.low;
        ticks_log_within(&t, t.low, t.high, n_max);
    }
    return t;
}

struct plot_ticks plot_ticks(double low, double high, bool is_log, int n_max)
{
    assert(low <= high && n_max >= 3 && n_max <= PLOT_TICKS_MAX && (!is_log || low > 0));
    if (is_log)
        return ticks_log(low, high, n_max);
    if (high - low <= 1e-12 * fmax(fabs(low), fabs(high))) {
        const double room = low == 0 ? 1 : fabs(low) / 10;

        return ticks_linear(low - (low == 0 ? 0 : room), high + room, n_max);
    }
    return ticks_linear(low, high, n_max);
}

/* ---- scales ---- */

struct extent extent_none(void)
{
    return (struct extent){ (double)NAN, (double)NAN };
}

void extent_add(struct extent *x, double v, bool is_log)
{
    if (!isfinite(v) || (is_log && v <= 0))
        return;
    x->low = isnan(x->low) ? v : fmin(x->low, v);
    x->high = isnan(x->high) ? v : fmax(x->high, v);
}

struct scale scale_make(const struct plot_axis *axis, struct extent data, double from, double to,
                        int n_ticks)
{
    double low = isnan(axis->low) ? data.low : axis->low;
    double high = isnan(axis->high) ? data.high : axis->high;
    struct scale s = { .is_log = axis->is_log, .from = from, .to = to };

    if (isnan(low))    // nothing to show, but an axis all the same
        low = axis->is_log ? 1 : 0;
    if (isnan(high) || high < low)
        high = low + 1;
    s.ticks = plot_ticks(low, high, axis->is_log, n_ticks);
    s.low = isnan(axis->low) ? s.ticks.low : low;
    s.high = isnan(axis->high) || s.low >= high ? s.ticks.high : high;
    return s;
}

bool scale_has(const struct scale *s, double v)
{
    return isfinite(v) && (!s->is_log || v > 0);
}

double scale_at(const struct scale *s, double v)
{
    const double in = fmin(fmax(v, s->low), s->high);
    const double part =
        s->is_log ? log(in / s->low) / log(s->high / s->low) : (in - s->low) / (s->high - s->low);

    return s->from + part * (s->to - s->from);
}

/* ---- drawing ---- */

/* Letters of sans-serif fonts are a little more than half as wide as high; of a character's
 * bytes in UTF-8, the first counts.
 */
double text_width(const char *text, double size)
{
    int n = 0;

    for (const char *s = text; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return 0.56 * size * n;
}

void svg_open(struct buf *out, const char *title, const char *description, double width,
              double height)
{
    PUT(out,
        "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
        "xmlns=\"http://www.w3.org/2000/svg\">\n<title>",
        width, height, width, height);
    plot_escape(out, title);
    PUT(out, "</title>\n<desc>");
    plot_escape(out, description);
    PUT(out, "</desc>\n");
}

void svg_close(struct buf *out)
{
    PUT(out, "</svg>\n");
}

void svg_text(struct buf *out, double x, double y, const char *anchor, const char *class,
              const char *text)
{
    PUT(out, "<text x=\"%.4g\" y=\"%.4g\" text-anchor=\"%s\"", x, y, anchor);
    if (class != NULL)
        PUT(out, " class=\"%s\"", class);
    PUT(out, ">");
    plot_escape(out, text);
    PUT(out, "</text>\n");
}

void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
    PUT(out, "<path class=\"%s\" d=\"M%.4g %.4gL%.4g %.4g\"/>\n", class, x1, y1, x2, y2);
}

static bool is_shown(const struct scale *s, double v)
{
    const double slack = 1e-9 * fabs(s->high - s->low);

    return v >= s->low - slack && v <= s->high + slack;
}

static struct plot_number tick_text(const struct scale *s, double v)
{
    if (s->ticks.decimals >= 0)
        return plot_fixed(v, s->ticks.decimals);
    return plot_fixed(v, (int)fmax(0, -floor(log10(v) + 1e-9)));
}

void axis_bottom(struct buf *out, const struct scale *s, const char *label, double top,
                 double bottom)
{
    for (int i = 0; i < s->ticks.n; i++) {
        const double x = scale_at(s, s->ticks.at[i]);

        if (!is_shown(s, s->ticks.at[i]))
            continue;
        svg_line(out, "grid", x, top, x, bottom);
        svg_text(out, x, bottom + 13, "middle", "soft", tick_text(s, s->ticks.at[i]).text);
    }
    svg_line(out, "axis", s->from, bottom, s->to, bottom);
    svg_text(out, s->to, bottom + 27, "end", NULL, label);
}

void axis_left(struct buf *out, const struct scale *s, const char *label, double left, double right)
{
    for (int i = 0; i < s->ticks.n; i++) {
        const double y = scale_at(s, s->ticks.at[i]);

        if (!is_shown(s, s->ticks.at[i]))
            continue;
        svg_line(out, "grid", left, y, right, y);
        svg_text(out, left - 5, y + 4, "end", "soft", tick_text(s, s->ticks.at[i]).text);
    }
    svg_text(out, 4, s->to - 8, "start", NULL, label);
}

void svg_marker(struct buf *out, int series, double x, double y)
{
    static const char *const shapes[] = { "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
                                          "m-2.9-2.9h5.8v5.8h-5.8z",
                                          "m0-4.2l4.2 4.2l-4.2 4.2l-4.2-4.2z",
                                          "m0-3.8l3.8 6.6h-7.6z", "m0 3.8l3.8-6.6h-7.6z" };

    PUT(out, "<path class=\"dot\" d=\"M%.4g %.4g%s\"/>\n", x, y,
        shapes[(size_t)series % (sizeof shapes / sizeof shapes[0])]);
}

/* ---- legends ---- */

#define LEGEND_ROW 16.0
#define LEGEND_SAMPLE 28.0
#define LEGEND_LEFT 4.0

double legend_put(struct buf *out, const struct plot_series *series, int n, double width,
                  legend_f *draw)
{
    double x = 0, y = 0;

    for (int i = 0; i < n && n > 1; i++) {
        const double wide = LEGEND_SAMPLE + text_width(series[i].name, 11) + 14;

        if (x > 0 && x + wide > width - 2 * LEGEND_LEFT) {
            x = 0;
            y += LEGEND_ROW;
        }
        if (out != NULL) {
            draw(out, i, LEGEND_LEFT + x, y + 8);
            svg_text(out, LEGEND_LEFT + x + LEGEND_SAMPLE - 4, y + 12, "start", NULL,
                     series[i].name);
        }
        x += wide;
    }
    return n > 1 ? y + LEGEND_ROW : 0;
}

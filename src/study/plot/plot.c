#include "study/plot/plot.h"

#include <math.h>

#include "study/plot/markup.h"

void plot_escape(struct buf *out, const char *text)
{
    static const char *const entities[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
    };

    for (const char *s = text; *s != '\0'; s++) {
        const unsigned char c = (unsigned char)*s;

        if (entities[c] != NULL)
            PUT(out, "%s", entities[c]);
        else    // what browsers and XML readers take
            PUT(out, "%c", c >= 0x20 || c == '\t' || c == '\n' ? *s : '?');
    }
}

/* ---- numbers ---- */

#define MINUS "\xe2\x88\x92"
#define THIN_SPACE "\xe2\x80\xaf"
#define EN_DASH "\xe2\x80\x93"

/* Beyond this a number is written with its exponent. */
#define LARGE 1e9

int plot_decimals(double v)
{
    const double size = fabs(v);

    if (!isfinite(v) || size >= 99.95 || size < 1e-12)
        return 0;
    if (size >= 9.995)
        return 1;
    if (size >= 0.9995)
        return 2;
    return (int)fmin(9, 2 - floor(log10(size * 1.0005)));
}

struct plot_number plot_fixed(double v, int decimals)
{
    struct plot_number out = { EN_DASH };
    char digits[40];
    size_t at = 0, whole = 0;

    if (!isfinite(v))
        return out;
    if (fabs(v) >= LARGE) {
        snprintf(out.text, sizeof out.text, "%s%.3g", v < 0 ? MINUS : "", fabs(v));
        return out;
    }
    snprintf(digits, sizeof digits, "%.*f", decimals, fabs(v));
    while (digits[whole] >= '0' && digits[whole] <= '9')
        whole++;
    if (v < 0 && strpbrk(digits, "123456789") != NULL)    // there is no minus nought
        at += (size_t)snprintf(out.text, sizeof out.text, MINUS);
    for (size_t i = 0; digits[i] != '\0'; i++) {
        const bool is_thousand = i > 0 && i < whole && (whole - i) % 3 == 0;

        at += (size_t)snprintf(out.text + at, sizeof out.text - at, "%s%c",
                               is_thousand ? THIN_SPACE : "", digits[i]);
    }
    return out;
}

struct plot_number plot_number(double v)
{
    return plot_fixed(v, plot_decimals(v));
}

/* ---- style ---- */

#define LIGHT                                                                         \
    "--plot-ink:#222;--plot-soft:#595959;--plot-grid:#ddd;--p0:#0060a8;--p1:#b34700;" \
    "--p2:#00734f;--p3:#8a3f8f;--p4:#6b5b00;--p5:#4d4d4d;--p6:#c2185b;--p7:#00707f;"  \
    "--p8:#7a4b1f;--p9:#3d3dbf"
#define DARK                                                                         \
    "--plot-ink:#e8e8e8;--plot-soft:#b3b3b3;--plot-grid:#3a3a3a;--p0:#6cb6ff;"       \
    "--p1:#ff9d5c;--p2:#4fd1a5;--p3:#d79be0;--p4:#d6c45a;--p5:#bdbdbd;--p6:#ff86b0;" \
    "--p7:#5ad1e0;--p8:#d9a878;--p9:#a5a5ff"

void plot_style(struct buf *out)
{
    PUT(out, "%s",
        ":root{" LIGHT "}\n"
        "@media screen and (prefers-color-scheme:dark){:root{" DARK "}}\n"
        ".plot{font:11px system-ui,sans-serif;max-width:100%;height:auto;"
        "print-color-adjust:exact;-webkit-print-color-adjust:exact}\n"
        ".plot text{fill:var(--plot-ink)}.plot .soft{fill:var(--plot-soft)}\n"
        ".plot .small{font-size:9.5px}.plot .strong{font-weight:700}\n"
        ".plot .grid{stroke:var(--plot-grid);stroke-width:1}\n"
        ".plot .axis{stroke:var(--plot-soft);stroke-width:1}\n"
        ".plot .whisker{stroke:var(--plot-ink);stroke-width:1.2;fill:none}\n"
        ".plot .curve{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}\n"
        ".plot .band{fill:currentColor;fill-opacity:.14;stroke:none}\n"
        ".plot .dot{fill:currentColor;stroke:none}\n"
        ".plot .bar{fill:currentColor;stroke:currentColor}\n"
        ".plot .f1{fill-opacity:.4}.plot .f2{fill-opacity:0}\n"
        ".plot .span{fill:currentColor;fill-opacity:.75}\n"
        ".plot .marked{fill-opacity:.3;stroke:currentColor;stroke-width:.8}\n"
        ".plot .d1{stroke-dasharray:7 3}.plot .d2{stroke-dasharray:2 2.5}"
        ".plot .d3{stroke-dasharray:9 3 2 3}.plot .d4{stroke-dasharray:4 2}\n");
    for (int i = 0; i < PLOT_SERIES_MAX; i++)
        PUT(out, ".plot .c%d{color:var(--p%d)}", i, i);
    PUT(out, "\n");
}

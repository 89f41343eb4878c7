#include "cli/client/usage_page.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "cli/table.h"
#include "cli/when.h"
#include "study/plot/plot.h"
#include "study/plot/markup.h"

#define BARS_MAX 20    // rows that a chart of bars shows; the table has all

static void put_head(struct buf *out, const char *from, const char *to)
{
    PUT(out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Energy "
        "and promises, %s to %s</title>\n"
        "<style>\n"
        ":root{color-scheme:light dark;--bg:#fff;--ink:#1d1d1f;--soft:#555;--line:#cfcfcf;"
        "--shade:#f4f4f2}\n"
        "@media screen and (prefers-color-scheme:dark){:root{--bg:#16181b;--ink:#e8e8e8;"
        "--soft:#b5b5b5;--line:#45484d;--shade:#202327}}\n"
        "body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--bg);color:var(--ink);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.7rem;margin:.5rem 0}h2{margin-top:2rem;border-bottom:1px solid "
        "var(--line)}\n"
        ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;"
        "font-variant-numeric:tabular-nums;margin:1rem 0}\n"
        "th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:right;"
        "white-space:nowrap}\n"
        "th[scope=row],th:first-child{text-align:left}th[scope=row]{font-weight:normal}"
        "thead th{background:var(--shade);white-space:normal;vertical-align:bottom}\n"
        "tr.total,tr.total "
        "th{font-weight:700}.note,figcaption{color:var(--soft)}figure{margin:.8rem 0}\n",
        from, to);
    plot_style(out);
    PUT(out, "</style>\n</head>\n<body>\n<h1>Energy and promises</h1>\n<p>%s to %s</p>\n", from,
        to);
}

/* ---- the table ---- */

void usage_cells(struct arena *a, const json_t *row, const char *cells[USAGE_CELLS])
{
    const bool is_told = json_number_of(row, "steps") > 0 || json_number_of(row, "measured") > 0;

    cells[0] = cell_text(a, row, "jobs");
    cells[1] = cell_scaled(a, row, "joules", 1 / KWH_J);
    cells[2] = cell_scaled(a, row, "active_j", 1 / KWH_J);
    cells[3] = cell_scaled(a, row, "idle_j", 1 / KWH_J);
    cells[4] = cell_scaled(a, row, "gpu_s", 1 / 3600.0);
    cells[5] = cell_number(a, row, "steps");
    cells[6] = is_told ? cell_percent(a, row, "kept") : "-";
    cells[7] = cell_text(a, row, "measured");
    cells[8] = cell_percent(a, row, "error");
    cells[9] = cell_percent(a, row, "coverage");
}

static void put_row(struct arena *a, const json_t *r, const char *name, const char *class,
                    struct buf *out)
{
    const char *cells[USAGE_CELLS];

    usage_cells(a, r, cells);
    PUT(out, "<tr%s><th scope=\"row\">", class);
    plot_escape(out, name);
    PUT(out, "</th>");
    for (int i = 0; i < USAGE_CELLS; i++)
        PUT(out, "<td>%s</td>", strcmp(cells[i], "-") == 0 ? "–" : cells[i]);
    PUT(out, "</tr>\n");
}

static void put_table(struct arena *a, const json_t *report, struct buf *out)
{
    const json_t *rows = json_object_get(report, "rows");
    const char *by = cell_text(a, report, "by");

    PUT(out, "<h2>By ");
    plot_escape(out, strcmp(by, "gpu_type") == 0 ? "GPU type" : by);
    PUT(out, "</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Name</th>"
             "<th scope=\"col\">Jobs</th><th scope=\"col\">Energy, kWh</th>"
             "<th scope=\"col\">of it working</th><th scope=\"col\">idle</th>"
             "<th scope=\"col\">GPU hours</th><th scope=\"col\">Steps</th>"
             "<th scope=\"col\">Promises kept, %%</th><th scope=\"col\">Measurements</th>"
             "<th scope=\"col\">Prediction error, %%</th><th scope=\"col\">Inside the interval, "
             "%%</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *r = json_array_get(rows, i);

        put_row(a, r, cell_text(a, r, "name"), "", out);
    }
    put_row(a, json_object_get(report, "total"), "Total", " class=\"total\"", out);
    PUT(out, "</tbody></table></div>\n");
}

/* ---- charts ---- */

static void put_bars(struct arena *a, const json_t *report, struct buf *out)
{
    const json_t *rows = json_object_get(report, "rows");
    int n = (int)json_array_size(rows);
    const char *names[BARS_MAX];
    double kwh[BARS_MAX];
    struct plot_series series = { .name = "energy", .y = kwh };
    struct plot_bars bars = { .title = "Energy",
                              .description = "kWh of each row of the table",
                              .width = 640,
                              .groups = names,
                              .value = { "kWh", NAN, NAN, false },
                              .n_series = 1,
                              .series = &series };

    if (n == 0)
        return;
    n = n < BARS_MAX ? n : BARS_MAX;
    for (int i = 0; i < n; i++) {
        const json_t *r = json_array_get(rows, (size_t)i);

        names[i] = cell_text(a, r, "name");
        kwh[i] = json_number_of(r, "joules") / KWH_J;
    }
    series.n = bars.n_groups = n;
    PUT(out, "<figure class=\"scroll\">\n<figcaption>Energy</figcaption>\n");
    plot_bars(out, &bars);
    PUT(out, "</figure>\n");
}

/* One figure by the hour; nothing where no hour has it. */
struct hourly {
    const char *key;
    double by;    // what is shown is the figure times this
    const char *title, *label;
};

static void put_line(struct arena *a, const json_t *report, struct hourly h, struct buf *out)
{
    const json_t *hours = json_object_get(report, "hours");
    size_t n = json_array_size(hours);
    double *x = ARENA_ARRAY(a, double, n), *y = ARENA_ARRAY(a, double, n);
    double first_s = json_number_of(json_array_get(hours, 0), "hour_s");
    struct plot_series series = { .name = h.label, .n = (int)n, .x = x, .y = y };
    struct plot_lines lines = { .title = h.title,
                                .description = "each hour of the period",
                                .x = { "hours since the first one", NAN, NAN, false },
                                .y = { h.label, 0, NAN, false },
                                .n_series = 1,
                                .series = &series };
    bool has_any = false;

    for (size_t i = 0; i < n; i++) {
        x[i] = (json_number_of(json_array_get(hours, i), "hour_s") - first_s) / 3600;
        y[i] = json_number_of(json_array_get(hours, i), h.key) * h.by;
        has_any = has_any || isfinite(y[i]);
    }
    if (n < 2 || !has_any)
        return;
    PUT(out, "<figure class=\"scroll\">\n<figcaption>%s</figcaption>\n", h.title);
    plot_lines(out, &lines);
    PUT(out, "</figure>\n");
}

static void put_saved(struct arena *a, const json_t *report, struct buf *out)
{
    const json_t *saved = json_object_get(report, "saved"), *runs = json_object_get(saved, "runs");
    double share = json_number_of(saved, "saved");

    if (!json_is_object(saved) || !isfinite(share) || json_array_size(runs) < 2)
        return;
    PUT(out,
        "<h2>Saved</h2>\n<p>Simulated again on this cluster, the jobs of this period take "
        "%.1f %% %s energy per unit of work under ",
        100 * fabs(share), share >= 0 ? "less" : "more");
    plot_escape(out, cell_text(a, json_array_get(runs, 0), "policy"));
    PUT(out, " than under ");
    plot_escape(out, cell_text(a, json_array_get(runs, 1), "policy"));
    PUT(out, ".</p>\n");
}

void usage_page(struct arena *a, const json_t *report, struct buf *out)
{
    const char *from = when_clock(a, json_number_of(report, "from_s"), NAN);
    const char *to = when_clock(a, json_number_of(report, "to_s"), NAN);

    put_head(out, from, to);
    put_table(a, report, out);
    put_bars(a, report, out);
    put_saved(a, report, out);
    PUT(out, "<h2>Over time</h2>\n");
    put_line(a, report, (struct hourly){ "joules", 1 / KWH_J, "Energy by the hour", "kWh" }, out);
    put_line(a, report, (struct hourly){ "kept", 100, "Promises kept", "%" }, out);
    put_line(a, report, (struct hourly){ "error", 100, "Prediction error", "%" }, out);
    PUT(out,
        "<p class=\"note\">Energy of a GPU that jobs share is split among them; what empty GPUs "
        "drew is the row (nobody). Promises kept: share of the promised time in which the promised "
        "speed was there. Prediction error: mean of |measured / predicted − 1|. Inside the "
        "interval: share of measurements within the predicted 90 %% interval.</p>\n"
        "</body>\n</html>\n");
}

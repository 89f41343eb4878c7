/* report.c - `gogh report`: energy, promises and prediction errors of a period, as text, CSV or a
 * page; `gogh shadow`: what would have been saved.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/client/report.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/when.h"
#include "study/plot/markup.h"
#include "study/plot/plot.h"

static const char report_help[] =
    "What a period cost: energy, kept promises and prediction errors, by owner, workload or GPU\n"
    "type. Rows add up to the total. KEPT: of the time for which jobs with a promise ran, the "
    "part\n"
    "in which they were as fast as it needs; '-' where nobody promised, or none reported a step.\n"
    "ERROR, COVERED: how far predictions were off, and how many were inside their interval.\n"
    "Services have rows of their own: requests, those that were late, hours in which at most 1 %\n"
    "were, and the energy of a thousand requests.\n"
    "\n" PERIOD_HELP
    "  --by G           owner (the default), workload or gpu_type; service: these alone\n"
    "  --csv            as comma-separated values\n"
    "  --html FILE      as a page with charts that needs nothing else\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh report --from 2026-11-01 --to 2026-12-01\n"
    "  gogh report --by gpu_type --from -7d --html week.html\n";

static const char shadow_help[] =
    "The jobs of a period, run again in simulation on this cluster: by GOGH, and by what the site\n"
    "does without it ('shadow_policy' in gogh.conf). Says what would have been saved.\n"
    "\n" PERIOD_HELP CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh shadow --from -7d\n";

static struct {
    const char *by, *html;
    bool is_csv;
} how;

static const struct cmd_option report_options[] = {
    PERIOD_OPTIONS, CMD_TEXT("by", how.by), CMD_FLAG("csv", how.is_csv), CMD_TEXT("html", how.html),
    CLIENT_OPTIONS,
};

/* ---- a row ---- */

/* A row's figures behind its name: jobs, kWh, of it working and idle, GPU hours, steps, the part of
 * its promises that was kept ("-": none, or nobody knows, since no job reported a step),
 * measurements, their error and coverage.
 */
#define ROW_CELLS 10

static void row_cells(struct arena *a, const json_t *row, const char *cells[ROW_CELLS])
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

/* ---- what was, or would have been, saved ---- */

static void print_saved(struct arena *a, const json_t *s)
{
    const json_t *runs = json_object_get(s, "runs");
    double saved = json_number_of(s, "saved"), measured = json_number_of(s, "measured_j");
    struct table t;

    table_init(&t, a, "POLICY|>FINISHED|>KWH|>J PER WORK|>PROMISES %|>MEAN TIME");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *r = json_array_get(runs, i);

        table_put_fields(&t, r, "policy finished *energy_j #joules_per_work %promise_attainment");
        table_put(&t, when_text(a, json_number_of(r, "mean_jct_s")));
    }
    table_print(&t, stdout);
    if (isfinite(saved) && json_array_size(runs) >= 2)
        printf("\n%s takes %.1f %% %s energy per unit of work than %s.\n",
               cell_text(a, json_array_get(runs, 0), "policy"), 100 * fabs(saved),
               saved >= 0 ? "less" : "more", cell_text(a, json_array_get(runs, 1), "policy"));
    else
        printf("\nToo little was done to compare.\n");
    if (isfinite(measured))
        printf("Really used: %s kWh.\n", cell_value(a, measured / KWH_J));
}

static void print_shadow(struct arena *a, const json_t *s)
{
    printf("%s job%s from %s to %s, simulated\n\n", cell_text(a, s, "jobs"),
           json_number_of(s, "jobs") == 1 ? "" : "s",
           when_clock(a, json_number_of(s, "from_s"), NAN),
           when_clock(a, json_number_of(s, "to_s"), NAN));
    print_saved(a, s);
}

/* ---- text ---- */

static void put_row(struct table *t, const json_t *r, const char *name)
{
    const char *cells[ROW_CELLS];

    row_cells(t->arena, r, cells);
    table_put(t, name);
    for (int i = 0; i < ROW_CELLS; i++)
        table_put(t, cells[i]);
}

static const char *heading(const char *by)
{
    if (by != NULL && strcmp(by, "workload") == 0)
        return "WORKLOAD";
    return by != NULL && strcmp(by, "gpu_type") == 0 ? "GPU TYPE" : "OWNER";
}

static void print_text(struct arena *a, const json_t *r)
{
    const json_t *rows = json_object_get(r, "rows"), *saved = json_object_get(r, "saved");
    struct table t;

    printf("from %s to %s\n\n", when_clock(a, json_number_of(r, "from_s"), NAN),
           when_clock(a, json_number_of(r, "to_s"), NAN));
    table_init(&t, a,
               arena_printf(a,
                            "%s|>JOBS|>KWH|>WORKING|>IDLE|>GPU HOURS|>STEPS|>KEPT %%|"
                            ">MEASURED|>ERROR %%|>COVERED %%",
                            heading(json_text_of(r, "by"))));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);

        put_row(&t, row, cell_text(a, row, "name"));
    }
    put_row(&t, json_object_get(r, "total"), "total");
    table_print(&t, stdout);
    if (json_array_size(json_object_get(r, "services")) > 0)
        printf("\n");
    report_services(a, r);
    if (json_is_object(saved)) {
        printf("\n");
        print_saved(a, saved);
    }
}

/* ---- CSV ---- */

static const char *const columns[] = { "name",     "jobs",  "joules",     "active_j", "idle_j",
                                       "gpu_s",    "steps", "promised_s", "kept_s",   "kept",
                                       "measured", "error", "coverage" };
#define N_COLUMNS ((int)(sizeof columns / sizeof *columns))

/* Quoted where it must be. */
static void csv_text(struct buf *out, const char *text)
{
    if (text[0] != '\0' && strpbrk(text, ",\"\n\r") == NULL && text[0] != ' ')
        buf_puts(out, text);
    else
        csv_quote(out, text);
}

static void csv_row(struct buf *out, const json_t *r, const char *name)
{
    csv_text(out, name);
    for (int i = 1; i < N_COLUMNS; i++) {
        double v = json_number_of(r, columns[i]);

        if (isfinite(v))
            buf_printf(out, ",%.10g", v);
        else
            buf_puts(out, ",");
    }
    buf_puts(out, "\n");
}

static void print_csv(struct arena *a, const json_t *r)
{
    const json_t *rows = json_object_get(r, "rows");
    struct buf out;

    buf_init(&out, (size_t)1 << 28);
    for (int i = 0; i < N_COLUMNS; i++)
        buf_printf(&out, "%s%s", columns[i], i + 1 < N_COLUMNS ? "," : "\n");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);

        csv_row(&out, row, cell_text(a, row, "name"));
    }
    table_show(&out);
}

/* ---- a page that needs nothing else: tables and charts, no scripts ---- */

#define BARS_MAX 20    // rows that a chart of bars shows; the table has all

static void page_head(struct buf *out, const char *from, const char *to)
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

static void page_row(struct arena *a, const json_t *r, const char *name, const char *class,
                     struct buf *out)
{
    const char *cells[ROW_CELLS];

    row_cells(a, r, cells);
    PUT(out, "<tr%s><th scope=\"row\">", class);
    plot_escape(out, name);
    PUT(out, "</th>");
    for (int i = 0; i < ROW_CELLS; i++)
        PUT(out, "<td>%s</td>", strcmp(cells[i], "-") == 0 ? "–" : cells[i]);
    PUT(out, "</tr>\n");
}

static void page_table(struct arena *a, const json_t *report, struct buf *out)
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

        page_row(a, r, cell_text(a, r, "name"), "", out);
    }
    page_row(a, json_object_get(report, "total"), "Total", " class=\"total\"", out);
    PUT(out, "</tbody></table></div>\n");
}

static void page_bars(struct arena *a, const json_t *report, struct buf *out)
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

static void page_line(struct arena *a, const json_t *report, struct hourly h, struct buf *out)
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

static void page_saved(struct arena *a, const json_t *report, struct buf *out)
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

static void put_page(struct arena *a, const json_t *report, struct buf *out)
{
    const char *from = when_clock(a, json_number_of(report, "from_s"), NAN);
    const char *to = when_clock(a, json_number_of(report, "to_s"), NAN);

    page_head(out, from, to);
    page_table(a, report, out);
    page_bars(a, report, out);
    page_saved(a, report, out);
    PUT(out, "<h2>Over time</h2>\n");
    page_line(a, report, (struct hourly){ "joules", 1 / KWH_J, "Energy by the hour", "kWh" }, out);
    page_line(a, report, (struct hourly){ "kept", 100, "Promises kept", "%" }, out);
    page_line(a, report, (struct hourly){ "error", 100, "Prediction error", "%" }, out);
    PUT(out,
        "<p class=\"note\">Energy of a GPU that jobs share is split among them; what empty GPUs "
        "drew is the row (nobody). Promises kept: share of the promised time in which the promised "
        "speed was there. Prediction error: mean of |measured / predicted − 1|. Inside the "
        "interval: share of measurements within the predicted 90 %% interval.</p>\n"
        "</body>\n</html>\n");
}

/* ---- the commands ---- */

static int write_page(struct arena *a, const json_t *r, const char *path, struct err *e)
{
    size_t n = json_array_size(json_object_get(r, "rows"));
    size_t hours = json_array_size(json_object_get(r, "hours"));
    struct buf out;

    buf_init(&out, ((size_t)1 << 20) + 8192 * n + 4096 * hours);
    put_page(a, r, &out);
    return cmd_write(path, &out, 0, e);
}

static int check(const struct cmd_call *call)
{
    return how.is_csv && client_options.is_json ? cmd_misuse(call->cmd, "--csv or --json, not both")
                                                : 0;
}

static int ask_report(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    const bool is_by_service = cmd_is(how.by, "service");
    const char *path = client_with(c, "/v1/report", "by", is_by_service ? NULL : how.by);
    json_t *r = NULL;
    int rc = client_period_path(c, path, &path, e);

    (void)call;
    if (rc == 0)
        rc = client_get(c, path, &r, e);
    if (rc == 0 && how.html != NULL)
        rc = write_page(a, r, how.html, e);
    if (rc < 0)
        return rc;
    if (client_options.is_json)
        printf("%s\n", client_text(c));
    else if (is_by_service && how.is_csv)
        report_services_csv(a, r);
    else if (is_by_service && json_array_size(json_object_get(r, "services")) == 0)
        printf("no service used anything in that time\n");
    else if (is_by_service)
        report_services(a, r);
    else if (how.is_csv)
        print_csv(a, r);
    else if (how.html == NULL)
        print_text(a, r);
    return 0;
}

static int ask_shadow(struct client *c, const struct cmd_call *call, struct err *e)
{
    const char *path;
    int rc = client_period_path(c, "/v1/shadow", &path, e);

    (void)call;
    return rc < 0 ? rc : client_show(c, path, print_shadow, e);
}

static const struct cmd_option shadow_options[] = { PERIOD_OPTIONS, CLIENT_OPTIONS };

const struct cmd cmd_report = {
    .name = "report",
    .synopsis = "report [--from TIME] [--to TIME] [--by owner|workload|gpu_type|service] "
                "[--csv|--html FILE|--json]",
    .summary = "energy, promises and prediction errors of a period",
    .help = report_help,
    CMD_OPTIONS(report_options),
    .check = check,
    .run = client_run,
    .ask = ask_report,
};

const struct cmd cmd_shadow = {
    .name = "shadow",
    .synopsis = "shadow [--from TIME] [--to TIME] [--json]",
    .summary = "what would have been saved, or was",
    .help = shadow_help,
    CMD_OPTIONS(shadow_options),
    .run = client_run,
    .ask = ask_shadow,
};

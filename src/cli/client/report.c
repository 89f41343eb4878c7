/* report.c - `gogh report`: energy, promises and prediction errors of a period. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/client/usage_page.h"
#include "cli/when.h"

static const char help[] =
    "What a period cost: energy, kept promises and prediction errors, by owner, workload or GPU\n"
    "type. Rows add up to the total. KEPT: of the time for which jobs with a promise ran, the "
    "part\n"
    "in which they were as fast as it needs; '-' where nobody promised, or none reported a step.\n"
    "ERROR, COVERED: how far predictions were off, and how many were inside their interval.\n"
    "\n" PERIOD_HELP "  --by G           owner (the default), workload or gpu_type\n"
    "  --csv            as comma-separated values\n"
    "  --html FILE      as a page with charts that needs nothing else\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh report --from 2026-11-01 --to 2026-12-01\n"
    "  gogh report --by gpu_type --from -7d --html week.html\n";

static struct {
    const char *by, *html;
    bool is_csv;
} how;

static const struct cmd_option options[] = {
    PERIOD_OPTIONS, CMD_TEXT("by", how.by), CMD_FLAG("csv", how.is_csv), CMD_TEXT("html", how.html),
    CLIENT_OPTIONS,
};

/* ---- text ---- */

static void put_row(struct table *t, const json_t *r, const char *name)
{
    const char *cells[USAGE_CELLS];

    usage_cells(t->arena, r, cells);
    table_put(t, name);
    for (int i = 0; i < USAGE_CELLS; i++)
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
    struct buf out;

    buf_init(&out, (size_t)1 << 28);
    buf_printf(&out, "from %s to %s\n\n", when_clock(a, json_number_of(r, "from_s"), NAN),
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
    table_print(&t, &out);
    if (json_is_object(saved)) {
        buf_puts(&out, "\n");
        shadow_put(a, saved, &out);
    }
    table_show(&out);
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

/* ---- the command ---- */

static int write_page(struct arena *a, const json_t *r, const char *path, struct err *e)
{
    size_t n = json_array_size(json_object_get(r, "rows"));
    size_t hours = json_array_size(json_object_get(r, "hours"));
    struct buf out;
    int rc;

    buf_init(&out, ((size_t)1 << 20) + 8192 * n + 4096 * hours);
    usage_page(a, r, &out);
    rc = file_write(path, out.data, out.len, e);
    buf_release(&out);
    return rc;
}

static int check(const struct cmd_call *call)
{
    return how.is_csv && client_options.is_json ? cmd_misuse(call->cmd, "--csv or --json, not both")
                                                : 0;
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    const char *path = client_with(c, "/v1/report", "by", how.by);
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
    else if (how.is_csv)
        print_csv(a, r);
    else if (how.html == NULL)
        print_text(a, r);
    return 0;
}

const struct cmd cmd_report = {
    .name = "report",
    .synopsis = "report [--from TIME] [--to TIME] [--by owner|workload|gpu_type] "
                "[--csv|--html FILE|--json]",
    .summary = "energy, promises and prediction errors of a period",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = client_run,
    .ask = ask,
};

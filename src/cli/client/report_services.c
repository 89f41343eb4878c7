/* report_services.c - services of a report, as a table and as CSV. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "cli/client/report.h"
#include "cli/table.h"

static const char *kept_text(struct arena *a, const json_t *s)
{
    return arena_printf(a, "%s of %s", cell_text(a, s, "kept_hours"), cell_text(a, s, "hours"));
}

void report_services(struct arena *a, const json_t *report)
{
    const json_t *list = json_object_get(report, "services");
    struct table t;

    if (json_array_size(list) == 0)
        return;
    table_init(&t, a,
               "SERVICE|>REQUESTS|>LATE %|>HOURS KEPT|>P99 MS|>PROMISED MS|>KWH|>GPU HOURS|>WATTS|"
               ">J PER 1000");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);

        table_put_fields(&t, s, "name #requests");
        table_put(&t, isfinite(json_number_of(s, "late_share"))
                          ? arena_printf(a, "%.2f", 100 * json_number_of(s, "late_share"))
                          : "-");
        table_put(&t, kept_text(a, s));
        table_put(&t, cell_scaled(a, s, "p99_s", 1e3));
        table_put(&t, cell_scaled(a, s, "promised_p99_s", 1e3));
        table_put_fields(&t, s, "*joules");
        table_put(&t, cell_scaled(a, s, "gpu_s", 1 / 3600.0));
        table_put_fields(&t, s, "#watts #joules_per_1000_requests");
    }
    table_print(&t, stdout);
}

void report_services_csv(struct arena *a, const json_t *report)
{
    static const char *const columns[] = {
        "id",    "requests",       "late",   "late_share", "hours", "kept_hours",
        "p99_s", "promised_p99_s", "joules", "gpu_s",      "watts", "joules_per_1000_requests"
    };
    const json_t *list = json_object_get(report, "services");
    struct buf out;

    buf_init(&out, (size_t)1 << 28);
    buf_puts(&out, "name");
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        buf_printf(&out, ",%s", columns[k]);
    buf_puts(&out, "\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);

        csv_quote(&out, cell_text(a, s, "name"));
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            double v = json_number_of(s, columns[k]);
            buf_puts(&out, isfinite(v) ? arena_printf(a, ",%.10g", v) : ",");
        }
        buf_puts(&out, "\n");
    }
    table_show(&out);
}

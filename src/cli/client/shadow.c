/* shadow.c - `gogh shadow`: what would have been saved. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/client/usage_page.h"
#include "cli/table.h"
#include "cli/when.h"

static const char help[] =
    "The jobs of a period, run again in simulation on this cluster: by GOGH, and by what the site\n"
    "does without it ('shadow_policy' in gogh.conf). Says what would have been saved.\n"
    "\n" PERIOD_HELP CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh shadow --from -7d\n";

void shadow_put(struct arena *a, const json_t *s, struct buf *out)
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
    table_print(&t, out);
    if (isfinite(saved) && json_array_size(runs) >= 2)
        buf_printf(out, "\n%s takes %.1f %% %s energy per unit of work than %s.\n",
                   cell_text(a, json_array_get(runs, 0), "policy"), 100 * fabs(saved),
                   saved >= 0 ? "less" : "more", cell_text(a, json_array_get(runs, 1), "policy"));
    else
        buf_puts(out, "\nToo little was done to compare.\n");
    if (isfinite(measured))
        buf_printf(out, "Really used: %s kWh.\n", cell_value(a, measured / KWH_J));
}

static void print_page(struct arena *a, const json_t *s)
{
    struct buf out;

    buf_init(&out, (size_t)1 << 20);
    buf_printf(&out, "%s job%s from %s to %s, simulated\n\n", cell_text(a, s, "jobs"),
               json_number_of(s, "jobs") == 1 ? "" : "s",
               when_clock(a, json_number_of(s, "from_s"), NAN),
               when_clock(a, json_number_of(s, "to_s"), NAN));
    shadow_put(a, s, &out);
    table_show(&out);
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    const char *path;
    int rc = client_period_path(c, "/v1/shadow", &path, e);

    (void)call;
    return rc < 0 ? rc : client_show(c, path, print_page, e);
}

static const struct cmd_option options[] = { PERIOD_OPTIONS, CLIENT_OPTIONS };

const struct cmd cmd_shadow = {
    .name = "shadow",
    .synopsis = "shadow [--from TIME] [--to TIME] [--json]",
    .summary = "what would have been saved, or was",
    .help = help,
    CMD_OPTIONS(options),
    .run = client_run,
    .ask = ask,
};

/* plan.c - `gogh plan`: what would happen now, without doing it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/when.h"

static const char help[] =
    "Ask the daemon to plan as if it had to decide now, and show what it would do: which jobs\n"
    "would start, move, stop or wait, where, and how fast they would be; and what an hour of a\n"
    "job's time is worth (set delay_w). Nothing happens.\n"
    "\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh plan\n"
    "  gogh plan --json | jq '.jobs[] | select(.does == \"move\")'\n";

/* What changes comes first. */
static const char *const changes[] = { "start", "move", "stop", "limit", "wait", "stay" };

static void put_row(struct table *t, const json_t *j)
{
    struct arena *a = t->arena;

    table_put_fields(t, j, "does id name +from +gpus type #speed #low #need");
    table_put(t, json_is_true(json_object_get(j, "short")) ? "short of its promise"
                                                           : cell_text(a, j, "reason"));
}

static void print_plan(struct arena *a, const json_t *p)
{
    const json_t *jobs = json_object_get(p, "jobs");
    struct table t;

    printf("planned by %s in %s: %s jobs placed, %s wait, %s short of their promise, %s W\n",
           cell_text(a, p, "made_by"), when_text(a, json_number_of(p, "seconds")),
           cell_text(a, p, "placed"), cell_text(a, p, "waiting"), cell_text(a, p, "short"),
           cell_number(a, p, "watts"));
    printf("an hour of a job's time is worth %s kWh (delay_w is %s W)\n",
           cell_scaled(a, p, "delay_w", 1e-3), cell_number(a, p, "delay_w"));
    if (json_is_true(json_object_get(p, "fallback")))
        printf("(the greedy plan stands in: the policy gave none in time)\n");
    table_init(&t, a, "DOES|>ID|JOB|FROM|TO|TYPE|>STEPS/S|>AT LEAST|>NEEDED|NOTE");
    for (int d = 0; d < CMD_COUNT(changes); d++)
        for (size_t i = 0; i < json_array_size(jobs); i++) {
            const json_t *j = json_array_get(jobs, i);

            if (strcmp(cell_text(a, j, "does"), changes[d]) == 0)
                put_row(&t, j);
        }
    if (json_array_size(jobs) > 0) {
        printf("\n");
        table_print(&t, stdout);
    }
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    (void)call;
    return client_show(c, "/v1/plan", print_plan, e);
}

static const struct cmd_option options[] = { CLIENT_OPTIONS };

const struct cmd cmd_plan = {
    .name = "plan",
    .synopsis = "plan [--json]",
    .summary = "what would happen now, without doing it",
    .help = help,
    CMD_OPTIONS(options),
    .run = client_run,
    .ask = ask,
};

/* cmd_plan.c - `gogh plan`: what would happen now, without doing it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/when.h"

static const char help[] =
    "Ask the daemon to plan as if it had to decide now, and show what it would do: which jobs\n"
    "would start, move, stop or wait, where, and how fast they would be. Nothing happens.\n"
    "\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh plan\n"
    "  gogh plan --json | jq '.jobs[] | select(.does == \"move\")'\n";

/* What changes comes first. */
static const char *const deeds[] = { "start", "move", "stop", "limit", "wait", "stay" };
#define N_DEEDS ((int)(sizeof deeds / sizeof *deeds))

static void put_row(struct table *t, const json_t *j)
{
    struct arena *a = t->arena;
    bool is_placed = json_array_size(json_object_get(j, "gpus")) > 0;

    table_put(t, cell_text(a, j, "does"));
    table_put(t, cell_text(a, j, "id"));
    table_put(t, cell_text(a, j, "name"));
    table_put(t, cell_list(a, j, "from"));
    table_put(t, is_placed ? cell_list(a, j, "gpus") : "-");
    table_put(t, cell_text(a, j, "type"));
    table_put(t, cell_number(a, j, "speed"));
    table_put(t, cell_number(a, j, "low"));
    table_put(t, cell_number(a, j, "need"));
    table_put(t, json_is_true(json_object_get(j, "short")) ? "short of its promise"
                                                           : cell_text(a, j, "reason"));
}

static void print_plan(struct arena *a, const json_t *p)
{
    const json_t *jobs = json_object_get(p, "jobs");
    struct table t;
    struct buf out;

    buf_init(&out, (size_t)1 << 30);
    buf_printf(&out,
               "planned by %s in %s: %s jobs placed, %s wait, %s short of their promise, %s W\n",
               cell_text(a, p, "made_by"), when_text(a, json_number_of(p, "seconds")),
               cell_text(a, p, "placed"), cell_text(a, p, "waiting"), cell_text(a, p, "short"),
               cell_number(a, p, "watts"));
    if (json_is_true(json_object_get(p, "fallback")))
        buf_puts(&out, "(the greedy plan stands in: the policy gave none in time)\n");
    table_init(&t, a, "DOES|>ID|JOB|FROM|TO|TYPE|>STEPS/S|>AT LEAST|>NEEDED|NOTE");
    for (int d = 0; d < N_DEEDS; d++)
        for (size_t i = 0; i < json_array_size(jobs); i++) {
            const json_t *j = json_array_get(jobs, i);

            if (strcmp(cell_text(a, j, "does"), deeds[d]) == 0)
                put_row(&t, j);
        }
    if (json_array_size(jobs) > 0) {
        buf_puts(&out, "\n");
        table_print(&t, &out);
    }
    table_show(&out);
}

static int run(int argc, char **argv)
{
    struct client_where where = { 0 };
    const struct cmd_option options[] = { CLIENT_OPTIONS(where) };
    struct client *c = NULL;
    struct err e = { 0 };
    json_t *plan;
    int status = cmd_parse(&cmd_plan, argc, argv, options, CMD_COUNT(options), NULL, 0);

    if (status != CMD_GO_ON)
        return status;
    if (client_open(&where, &c, &e) < 0 || client_get(c, "/v1/plan", &plan, &e) < 0) {
        status = client_fail(&e);
    } else {
        if (where.is_json)
            printf("%s\n", client_text(c));
        else
            print_plan(client_arena(c), plan);
        status = cmd_done();
    }
    client_close(c);
    return status;
}

const struct cmd cmd_plan = {
    .name = "plan",
    .synopsis = "plan [--json]",
    .summary = "what would happen now, without doing it",
    .help = help,
    .run = run,
};

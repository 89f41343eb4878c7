/* nodes.c - `gogh nodes`: GPUs, who is on them, watts; drain and resume. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/client/jobs.h"
#include "cli/table.h"

static const char help[] =
    "List nodes and their GPUs with the jobs on them and what they draw; or take a node out of\n"
    "service and back in.\n"
    "\n"
    "  drain NAME       start nothing there any more; jobs that run go on (operators)\n"
    "  resume NAME      use it again (operators)\n" CLIENT_HELP "\n"
    "With --json, one object with the daemon's lists 'nodes' and 'gpus'.\n"
    "\n"
    "Examples:\n"
    "  gogh nodes\n"
    "  gogh nodes drain box-3\n";

/* "12 train-a, 13 b" */
static const char *residents(struct arena *a, const json_t *gpu)
{
    const json_t *jobs = json_object_get(gpu, "jobs");
    const char *text = NULL;

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *j = json_array_get(jobs, i);
        const char *one = arena_printf(a, "%s %s", cell_text(a, j, "id"), cell_text(a, j, "name"));

        text = text != NULL ? arena_printf(a, "%s, %s", text, one) : one;
    }
    return text != NULL ? text : "-";
}

void nodes_gpus(struct arena *a, const json_t *gpus, int n_most, FILE *out)
{
    struct table t;

    table_init(&t, a, "GPU|TYPE|SHARING|>WATTS|>LIMIT W|SOURCE|>KWH|JOBS");
    for (int i = 0; i < (int)json_array_size(gpus) && i < n_most; i++) {
        const json_t *g = json_array_get(gpus, (size_t)i);
        double limit_w = json_number_of(g, "limit_w");

        table_put_fields(&t, g, "gpu type sharing #watts");
        table_put(&t, limit_w > 0 ? cell_value(a, limit_w) : "-");
        table_put_fields(&t, g, "source *joules");
        table_put(&t, residents(a, g));
    }
    table_print(&t, out);
}

static void print_nodes(struct arena *a, const json_t *nodes)
{
    struct table t;

    table_init(&t, a, "NODE|STATE|>GPUS|>BUSY|TYPES");
    for (size_t i = 0; i < json_array_size(nodes); i++)
        table_put_fields(&t, json_array_get(nodes, i), "name state gpus busy +types");
    table_print(&t, stdout);
}

static void print_all(struct client *c, json_t *nodes, json_t *gpus)
{
    if (client_options.is_json) {
        json_print(json_pack("{s:O, s:O}", "nodes", nodes, "gpus", gpus),
                   JSON_COMPACT | JSON_REAL_PRECISION(15));
        return;
    }
    print_nodes(client_arena(c), nodes);
    printf("\n");
    nodes_gpus(client_arena(c), gpus, INT_MAX, stdout);
}

static int list(struct client *c, struct err *e)
{
    json_t *answer, *gpus = json_array();
    int rc = client_get(c, "/v1/nodes", &answer, e);

    if (rc == 0)
        rc = client_list(c, "/v1/gpus", "gpus", gpus, e);
    if (rc == 0)
        print_all(c, json_object_get(answer, "nodes"), gpus);
    json_decref(gpus);
    return rc;
}

static int check(const struct cmd_call *call)
{
    const char *const *words = call->words;

    if (words[0] != NULL && !cmd_is(words[0], "drain") && !cmd_is(words[0], "resume"))
        return cmd_misuse(call->cmd, "'%s': want drain or resume", words[0]);
    if (words[0] != NULL && words[1] == NULL)
        return cmd_misuse(call->cmd, "which node?");
    return 0;
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    const char *verb = call->words[0];
    json_t *node;

    if (verb == NULL)
        return list(c, e);
    if (client_post(c, arena_printf(a, "/v1/nodes/%s/%s", client_escape(c, call->words[1]), verb),
                    NULL, NULL, &node, e) < 0)
        return -e->code;
    if (client_options.is_json)
        printf("%s\n", client_text(c));
    else
        printf("node %s %s\n", cell_text(a, node, "name"), cell_text(a, node, "state"));
    return 0;
}

static const struct cmd_option options[] = { CLIENT_OPTIONS };

const struct cmd cmd_nodes = {
    .name = "nodes",
    .synopsis = "nodes [drain NAME|resume NAME] [--json]",
    .summary = "nodes and GPUs with their jobs and watts",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 2,
    .check = check,
    .run = client_run,
    .ask = ask,
};

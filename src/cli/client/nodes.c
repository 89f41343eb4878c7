/* cmd_nodes.c - `gogh nodes`: GPUs, who is on them, watts; drain and resume. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/client/nodes.h"
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

void nodes_gpus(struct arena *a, const json_t *gpus, int n_most, struct buf *out)
{
    struct table t;

    table_init(&t, a, "GPU|TYPE|>WATTS|>LIMIT W|SOURCE|>KWH|JOBS");
    for (int i = 0; i < (int)json_array_size(gpus) && i < n_most; i++) {
        const json_t *g = json_array_get(gpus, (size_t)i);
        double limit_w = json_number_of(g, "limit_w");

        table_put(&t, cell_text(a, g, "gpu"));
        table_put(&t, cell_text(a, g, "type"));
        table_put(&t, cell_number(a, g, "watts"));
        table_put(&t, limit_w > 0 ? cell_value(a, limit_w) : "-");
        table_put(&t, cell_text(a, g, "source"));
        table_put(&t, cell_scaled(a, g, "joules", 1 / KWH_J));
        table_put(&t, residents(a, g));
    }
    table_print(&t, out);
}

static void put_nodes(struct arena *a, const json_t *nodes, struct buf *out)
{
    struct table t;

    table_init(&t, a, "NODE|STATE|>GPUS|>BUSY|TYPES");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *n = json_array_get(nodes, i);

        table_put(&t, cell_text(a, n, "name"));
        table_put(&t, cell_text(a, n, "state"));
        table_put(&t, cell_text(a, n, "gpus"));
        table_put(&t, cell_text(a, n, "busy"));
        table_put(&t, cell_list(a, n, "types"));
    }
    table_print(&t, out);
}

static int print_all(struct client *c, json_t *nodes, json_t *gpus, bool is_json)
{
    struct buf out;

    if (is_json) {
        json_t *both = json_pack("{s:O, s:O}", "nodes", nodes, "gpus", gpus);

        json_dumpf(both, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        printf("\n");
        json_decref(both);
        return cmd_done();
    }
    buf_init(&out, (size_t)1 << 30);
    put_nodes(client_arena(c), nodes, &out);
    buf_puts(&out, "\n");
    nodes_gpus(client_arena(c), gpus, INT_MAX, &out);
    table_show(&out);
    return cmd_done();
}

static int list(struct client *c, bool is_json, struct err *e)
{
    json_t *answer, *gpus = json_array(), *nodes;
    int status;

    if (client_get(c, "/v1/nodes", &answer, e) < 0 ||
        client_list(c, "/v1/gpus", "gpus", gpus, e) < 0) {
        status = client_fail(e);
    } else {
        nodes = json_object_get(answer, "nodes");
        status = print_all(c, nodes, gpus, is_json);
    }
    json_decref(gpus);
    return status;
}

static int order(struct client *c, const char *verb, const char *name, bool is_json, struct err *e)
{
    struct arena *a = client_arena(c);
    json_t *node;

    if (client_post(c, arena_printf(a, "/v1/nodes/%s/%s", client_escape(c, name), verb), NULL, NULL,
                    &node, e) < 0)
        return client_fail(e);
    if (is_json)
        printf("%s\n", client_text(c));
    else
        printf("node %s %s\n", cell_text(a, node, "name"), cell_text(a, node, "state"));
    return cmd_done();
}

static int run(int argc, char **argv)
{
    struct client_where where = { 0 };
    const struct cmd_option options[] = { CLIENT_OPTIONS(where) };
    const char *words[2];
    struct client *c = NULL;
    struct err e = { 0 };
    int status = cmd_parse(&cmd_nodes, argc, argv, options, CMD_COUNT(options), words, 2);

    if (status != CMD_GO_ON)
        return status;
    if (words[0] != NULL && strcmp(words[0], "drain") != 0 && strcmp(words[0], "resume") != 0)
        return cmd_misuse(&cmd_nodes, "'%s': want drain or resume", words[0]);
    if (words[0] != NULL && words[1] == NULL)
        return cmd_misuse(&cmd_nodes, "which node?");
    if (client_open(&where, &c, &e) < 0)
        return cmd_fail(&e);
    status = words[0] != NULL ? order(c, words[0], words[1], where.is_json, &e)
                              : list(c, where.is_json, &e);
    client_close(c);
    return status;
}

const struct cmd cmd_nodes = {
    .name = "nodes",
    .synopsis = "nodes [drain NAME|resume NAME] [--json]",
    .summary = "nodes and GPUs with their jobs and watts",
    .help = help,
    .run = run,
};

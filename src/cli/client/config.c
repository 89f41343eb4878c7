/* config.c - `gogh config`: the daemon's configuration looked over, shown, begun. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "daemon/config/config.h"

static const char help[] =
    "About the configuration of goghd (" CONFIG_PATH ").\n"
    "\n"
    "  check [FILE]     name what is wrong, with file, line and cure; exit status 1 when goghd\n"
    "                   would not start with it. Run it as the daemon's user, or as root.\n"
    "  show [FILE]      all settings in effect, defaults included, and what an hour of a job's\n"
    "                   time is worth; --json: the settings as JSON\n"
    "  template         a file with every setting and its default, commented out\n"
    "\n"
    "Examples:\n"
    "  gogh config check\n"
    "  gogh config template > gogh.conf\n"
    "  gogh config show ./gogh.conf --json\n";

/* The file named, or the usual one; where that is not there, `show` has the defaults. */
static int read_config(struct arena *a, const char *path, bool may_lack, struct config *out,
                       struct err *e)
{
    int rc = config_read(a, path != NULL ? path : CONFIG_PATH, out, e);

    if (rc == 0 && out->cluster.notice != NULL)
        fprintf(stderr, "gogh: %s\n", out->cluster.notice);
    if (rc != -ENOENT || path != NULL)
        return rc;
    if (!may_lack)
        return err_set(e, ENOENT, "there is no %s; 'gogh config template' makes one", CONFIG_PATH);
    fprintf(stderr, "gogh: there is no %s; these are the defaults\n", CONFIG_PATH);
    config_defaults(out);
    return 0;
}

static bool is_json;

static const struct cmd_option options[] = { CMD_FLAG("json", is_json) };

static int look_over(const struct config *c)
{
    struct buf out;
    int n_bad;

    buf_init(&out, 1 << 20);
    n_bad = config_probe(c, &out);
    if (out.len == 0)
        buf_printf(&out, "%s: good\n", c->path != NULL ? c->path : "defaults");
    table_show(&out);
    return n_bad > 0 ? EXIT_NO : EXIT_DONE;
}

static int show(const struct config *c)
{
    struct buf out;

    if (is_json) {
        json_print(config_json(c), JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        return 0;
    }
    buf_init(&out, (size_t)256 << 20);
    config_print(c, &out);
    table_show(&out);
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    const char *verb = call->words[0], *path = call->words[1];
    const bool is_check = cmd_is(verb, "check");
    struct config c;

    if (cmd_is(verb, "template") && path == NULL) {
        for (int i = 0; config_template[i]; i++)
            fputs(config_template[i], stdout);
        return 0;
    }
    if (!is_check && !cmd_is(verb, "show"))
        return cmd_misuse(call->cmd, "want check, show or template");
    if (read_config(call->arena, path, !is_check, &c, e) < 0)
        return -e->code;
    return is_check ? look_over(&c) : show(&c);
}

const struct cmd cmd_config = {
    .name = "config",
    .synopsis = "config check [FILE] | show [FILE] [--json] | template",
    .summary = "the daemon's configuration looked over, shown, begun",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 2,
    .run = run,
};

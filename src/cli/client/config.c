/* cmd_config.c - `gogh config`: the daemon's configuration looked over, shown, begun. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

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
    "  show [FILE]      all settings in effect, defaults included; --json: as JSON\n"
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

    if (rc != -ENOENT || path != NULL)
        return rc;
    if (!may_lack)
        return err_set(e, ENOENT, "there is no %s; 'gogh config template' makes one", CONFIG_PATH);
    fprintf(stderr, "gogh: there is no %s; these are the defaults\n", CONFIG_PATH);
    config_defaults(out);
    return 0;
}

static int check(const struct config *c)
{
    struct buf out;
    int n_bad;

    buf_init(&out, 1 << 20);
    n_bad = config_probe(c, &out);
    if (out.len == 0)
        buf_printf(&out, "%s: good\n", c->path != NULL ? c->path : "defaults");
    table_show(&out);
    int done = cmd_done();
    return n_bad > 0 ? EXIT_NO : done;
}

static int show(const struct config *c, bool is_json)
{
    struct buf out;

    if (is_json) {
        json_t *o = config_json(c);

        json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        printf("\n");
        json_decref(o);
        return cmd_done();
    }
    buf_init(&out, (size_t)256 << 20);
    config_print(c, &out);
    table_show(&out);
    return cmd_done();
}

static int run(int argc, char **argv)
{
    bool is_json = false;
    const struct cmd_option options[] = {
        { .name = "json", .kind = OPTION_FLAG, .out = &is_json },
    };
    const char *words[2];
    struct arena a;
    struct config c;
    struct err e = { 0 };
    int status = cmd_parse(&cmd_config, argc, argv, options, CMD_COUNT(options), words, 2);

    if (status != CMD_GO_ON)
        return status;
    bool is_check = words[0] != NULL && strcmp(words[0], "check") == 0;
    if (words[0] != NULL && words[1] == NULL && strcmp(words[0], "template") == 0) {
        for (int i = 0; config_template[i]; i++)
            fputs(config_template[i], stdout);
        return cmd_done();
    }
    if (words[0] == NULL || (!is_check && strcmp(words[0], "show") != 0))
        return cmd_misuse(&cmd_config, "want check, show or template");
    arena_init(&a);
    if (read_config(&a, words[1], !is_check, &c, &e) < 0)
        status = cmd_fail(&e);
    else
        status = is_check ? check(&c) : show(&c, is_json);
    arena_release(&a);
    return status;
}

const struct cmd cmd_config = {
    .name = "config",
    .synopsis = "config check [FILE] | show [FILE] [--json] | template",
    .summary = "the daemon's configuration looked over, shown, begun",
    .help = help,
    .run = run,
};

#include "cli/cmd.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "catalog/cluster/cluster.h"

int cmd_fail(const struct err *e)
{
    fflush(stdout);
    fprintf(stderr, "gogh: %s\n", e->text);
    return e->code == ENOTCONN ? EXIT_NO_DAEMON : EXIT_NO;
}

int cmd_cluster(struct arena *a, const char *path, struct cluster *out, struct err *e)
{
    int rc = cluster_read(a, path, out, e);

    if (rc == 0 && out->notice != NULL)
        fprintf(stderr, "gogh: %s\n", out->notice);
    return rc;
}

int cmd_misuse(const struct cmd *c, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "gogh %s: ", c->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nusage: gogh %s\nTry 'gogh %s --help'.\n", c->synopsis, c->name);
    return EXIT_MISUSE;
}

bool cmd_is(const char *word, const char *is)
{
    return word != NULL && strcmp(word, is) == 0;
}

/* What getopt_long did not like: ':' a value is missing, '?' anything else. */
static int bad_option(const struct cmd *c, char **argv, int answer)
{
    const char *word = argv[optind > 0 ? optind - 1 : 0];

    if (answer == ':')
        return cmd_misuse(c, "option '%s' needs a value", word);
    if (optopt > 0 && optopt < 256)
        return cmd_misuse(c, "unknown option '-%c'", optopt);
    return cmd_misuse(c, "unknown option '%s'", word);
}

static int take_whole(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    if (text_to_long(slice_of(text), (long)o->low, (long)o->high, o->out) == 0)
        return 0;
    return cmd_misuse(c, "--%s wants a whole number from %.0f to %.0f, not '%s'", o->name, o->low,
                      o->high, text);
}

static int take_number(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    double *out = o->out;

    if (text_to_double(slice_of(text), out) == 0 && *out >= o->low && *out <= o->high)
        return 0;
    return cmd_misuse(c, "--%s wants a number from %g to %g, not '%s'", o->name, o->low, o->high,
                      text);
}

static int take_list(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    struct cmd_list *out = o->out;

    for (;;) {
        size_t len = strcspn(text, ",");

        if (len == 0)
            return cmd_misuse(c, "--%s wants names with single commas between", o->name);
        if (out->n == CMD_LIST_MAX)
            return cmd_misuse(c, "--%s takes at most %d names", o->name, CMD_LIST_MAX);
        out->words[out->n++] = (struct slice){ .at = text, .len = len };
        if (text[len] == '\0')
            return 0;
        text += len + 1;
    }
}

static int take_each(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    struct cmd_list *out = o->out;

    if (out->n == CMD_LIST_MAX)
        return cmd_misuse(c, "--%s can be given %d times", o->name, CMD_LIST_MAX);
    out->words[out->n++] = slice_of(text);
    return 0;
}

static int take_option(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->out = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)o->out = text;
        return 0;
    case OPTION_WHOLE:
        return take_whole(c, o, text);
    case OPTION_NUMBER:
        return take_number(c, o, text);
    case OPTION_LIST:
        return take_list(c, o, text);
    case OPTION_EACH:
        return take_each(c, o, text);
    }
    return 0;
}

/* getopt_long answers with the option's place in the table, beyond all characters. */
#define FIRST_OPTION 256

static void fill_longs(struct option *longs, const struct cmd_option *options, int n)
{
    for (int i = 0; i < n; i++)
        longs[i] = (struct option){
            .name = options[i].name,
            .has_arg = options[i].kind == OPTION_FLAG ? no_argument : required_argument,
            .val = FIRST_OPTION + i,
        };
    longs[n] = (struct option){ .name = "help", .has_arg = no_argument, .val = 'h' };
    longs[n + 1] = (struct option){ 0 };
}

/* Everything behind "--" is somebody else's command; an empty list where there is no "--". */
static char **cut_command(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            *argc = i;
            argv[i] = NULL;
            return argv + i + 1;
        }
    }
    return argv + *argc;
}

enum { HELP = -1 };

/* Options into their places, the words that are left into the call. 0, HELP where that is asked
 * for, or the exit status of a misuse, which has been told.
 */
static int parse(struct cmd_call *call, int argc, char **argv)
{
    const struct cmd *c = call->cmd;
    char **command = c->takes_command ? cut_command(&argc, argv) : NULL;
    struct option longs[64];
    int answer, status = 0;

    assert(c->n_options + 2 <= CMD_COUNT(longs));
    call->is_given = ARENA_ARRAY(call->arena, bool, (size_t)c->n_options);
    fill_longs(longs, c->options, c->n_options);
    optind = 0;
    opterr = 0;
    while (status == 0 && (answer = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (answer == 'h')
            return HELP;
        if (answer < FIRST_OPTION) {
            status = bad_option(c, argv, answer);
            continue;
        }
        call->is_given[answer - FIRST_OPTION] = true;
        status = take_option(c, &c->options[answer - FIRST_OPTION], optarg);
    }
    if (status == 0 && argc - optind > c->max_words)
        return cmd_misuse(c, "unexpected argument '%s'", argv[optind + c->max_words]);
    call->words = ARENA_ARRAY(call->arena, const char *, (size_t)c->max_words + 1);
    for (int i = 0; optind + i < argc && i < c->max_words; i++)
        call->words[i] = argv[optind + i];
    if (command)
        call->words = (const char **)command;
    return status;
}

int cmd_run(const struct cmd *c, int argc, char **argv)
{
    struct arena a;
    struct err e = { 0 };
    struct cmd_call call = { .cmd = c, .arena = &a, .argv = argv };

    arena_init(&a);
    int status = parse(&call, argc - 1, argv + 1);
    if (status == 0 && c->check)
        status = c->check(&call);
    if (status == 0) {
        status = c->run(&call, &e);
        if (status < 0)
            status = cmd_fail(&e);
    }
    arena_release(&a);
    int done = status == HELP ? cmd_help(c) : cmd_done();
    return status > 0 ? status : done;
}

int cmd_help(const struct cmd *c)
{
    printf("usage: gogh %s\n\n%s", c->synopsis, c->help);
    return cmd_done();
}

int cmd_done(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gogh: writing the output: %s\n", strerror(errno));
        return EXIT_NO;
    }
    return EXIT_DONE;
}

int cmd_write(const char *path, struct buf *text, int rc, struct err *e)
{
    if (rc == 0 && path)
        rc = file_write(path, buf_text(text), text->len, e);
    else if (rc == 0)
        fwrite(buf_text(text), 1, text->len, stdout);
    buf_release(text);
    return rc;
}

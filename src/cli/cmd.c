#include "cli/cmd.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text/text.h"

int cmd_fail(const struct err *e)
{
    fflush(stdout);
    fprintf(stderr, "gogh: %s\n", e->text);
    return EXIT_NO;
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
        return CMD_GO_ON;
    return cmd_misuse(c, "--%s wants a whole number from %.0f to %.0f, not '%s'", o->name, o->low,
                      o->high, text);
}

static int take_number(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    double *out = o->out;

    if (text_to_double(slice_of(text), out) == 0 && *out >= o->low && *out <= o->high)
        return CMD_GO_ON;
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
            return CMD_GO_ON;
        text += len + 1;
    }
}

static int take_each(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    struct cmd_list *out = o->out;

    if (out->n == CMD_LIST_MAX)
        return cmd_misuse(c, "--%s can be given %d times", o->name, CMD_LIST_MAX);
    out->words[out->n++] = slice_of(text);
    return CMD_GO_ON;
}

static int take_option(const struct cmd *c, const struct cmd_option *o, const char *text)
{
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->out = true;
        return CMD_GO_ON;
    case OPTION_TEXT:
        *(const char **)o->out = text;
        return CMD_GO_ON;
    case OPTION_WHOLE:
        return take_whole(c, o, text);
    case OPTION_NUMBER:
        return take_number(c, o, text);
    case OPTION_LIST:
        return take_list(c, o, text);
    case OPTION_EACH:
        return take_each(c, o, text);
    }
    return CMD_GO_ON;
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

int cmd_parse(const struct cmd *c, int argc, char **argv, const struct cmd_option *options,
              int n_options, const char **words, int max_words)
{
    struct option longs[48];
    int answer, status = CMD_GO_ON;

    assert(n_options + 2 <= CMD_COUNT(longs));
    fill_longs(longs, options, n_options);
    optind = 0;
    opterr = 0;
    while (status == CMD_GO_ON && (answer = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (answer == 'h')
            status = cmd_help(c);
        else if (answer < FIRST_OPTION)
            status = bad_option(c, argv, answer);
        else
            status = take_option(c, &options[answer - FIRST_OPTION], optarg);
    }
    if (status == CMD_GO_ON && argc - optind > max_words)
        status = cmd_misuse(c, "unexpected argument '%s'", argv[optind + max_words]);
    for (int i = 0; i < max_words; i++)
        words[i] = optind + i < argc ? argv[optind + i] : NULL;
    return status;
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

/* main.c - `goghd`: read the configuration, open the service, turn until told to stop. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/program.h"
#include "daemon/config/version.h"
#include "daemon/config/config.h"
#include "daemon/engine/engine.h"
#include "daemon/service/service.h"

static const char help[] =
    "usage: goghd [--config FILE] [--check]\n"
    "\n"
    "The daemon of GOGH: takes in jobs with promises, places them on the GPUs of this box, or of a\n"
    "Slurm partition ('executor slurm'), so that the least energy is used and promises hold, starts\n"
    "and watches them, and learns. It stays in the foreground and logs to stderr.\n"
    "\n"
    "  --config FILE   the configuration; " CONFIG_PATH "\n"
    "  --check         say what is wrong with the configuration, and end\n"
    "  --version       which version this is\n"
    "\n"
    "Signals: SIGTERM and SIGINT end it (jobs go on, and are found again), SIGHUP reads the\n"
    "configuration again.\n"
    "Exit status: 0 ended as told, 1 it could not start or go on, 2 misuse.\n"
    "\n"
    "Examples:\n"
    "  goghd --config ./gogh.conf\n"
    "  gogh config template > gogh.conf\n";

struct arguments {
    const char *config;
    bool is_check;
};

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct arguments *out)
{
    static const struct option longs[] = {
        { "config", required_argument, NULL, 'c' },
        { "check", no_argument, NULL, 'k' },
        { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int answer;

    *out = (struct arguments){ .config = CONFIG_PATH };
    while ((answer = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
        switch (answer) {
        case 'c':
            out->config = optarg;
            break;
        case 'k':
            out->is_check = true;
            break;
        case 'v':
            printf("goghd %s\n", gogh_version);
            return EXIT_SUCCESS;
        case 'h':
            fputs(help, stdout);
            return EXIT_SUCCESS;
        default:
            fprintf(stderr, "Try 'goghd --help'.\n");
            return 2;
        }
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, "goghd: unexpected argument '%s'\nTry 'goghd --help'.\n", argv[optind]);
    return 2;
}

static int fail(const struct err *e)
{
    fprintf(stderr, "goghd: %s\n", e->text);
    return EXIT_FAILURE;
}

static int check(const struct config *c)
{
    struct buf found;

    buf_init(&found, 1 << 20);
    int n = config_probe(c, &found);
    fputs(buf_text(&found), stderr);
    buf_release(&found);
    return n ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int serve(const struct config *c)
{
    static struct service s;
    char keeper[PROGRAM_PATH_SIZE], driver[PROGRAM_PATH_SIZE];
    const struct engine engines[] = {
        [EXECUTOR_LOCAL] = { engine_open_local,
                             program_find("gogh-keeper", "GOGH_KEEPER", GOGH_LIBEXEC, keeper) },
        [EXECUTOR_SLURM] = { engine_open_slurm,
                             program_find("gogh-slurm-driver", "GOGH_SLURM_DRIVER", GOGH_LIBEXEC,
                                          driver) },
    };
    struct err e = { 0 };
    int rc = service_open(&s, c, &engines[c->executor], &e);

    if (rc < 0)
        return fail(&e);
    rc = service_run(&s, &e);
    service_close(&s);
    return rc < 0 ? fail(&e) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct arguments args;
    struct arena a;
    struct config c;
    struct err e = { 0 };
    int status = parse(argc, argv, &args);

    if (status >= 0)
        return status;
    arena_init(&a);
    log_set_level(LOG_INFO);
    if (config_read(&a, args.config, &c, &e) < 0)
        status = fail(&e);
    else
        status = args.is_check ? check(&c) : serve(&c);
    arena_release(&a);
    return status;
}

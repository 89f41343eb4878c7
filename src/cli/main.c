/* main.c - `gogh`: finds the command and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cmd.h"

static const struct cmd *const commands[] = {
    &cmd_submit,   &cmd_jobs,    &cmd_show,     &cmd_logs,       &cmd_explain, &cmd_cancel,
    &cmd_hold,     &cmd_release, &cmd_services, &cmd_scale,      &cmd_nodes,   &cmd_top,
    &cmd_plan,     &cmd_report,  &cmd_shadow,   &cmd_commission, &cmd_config,  &cmd_token,
    &cmd_tick,     &cmd_import,  &cmd_catalog,  &cmd_predict,    &cmd_eval,    &cmd_train,
    &cmd_optimize, &cmd_trace,   &cmd_simulate, &cmd_study,      &cmd_advise,  &cmd_whatif,
    &cmd_replay,   &cmd_demo,    &cmd_bench,
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const struct cmd *find(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int help_all(void)
{
    printf("usage: gogh COMMAND [ARGUMENTS]\n\n"
           "GOGH places machine-learning jobs on clusters that mix generations of GPUs, so that\n"
           "the cluster uses the least energy and every job keeps its promised throughput.\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    printf("  %-11s %s\n  %-11s %s\n", "help", "this list, or all about one command", "version",
           "which version this is");
    printf("\nEach command explains itself: gogh COMMAND --help\n"
           "Exit status: 0 done, 1 the answer is no, 2 misuse, 3 the daemon is not there.\n\n"
           "Examples:\n"
           "  gogh demo\n"
           "  gogh submit --workload resnet50 --batch 64 --steps 20000 --deadline 18:00 -- "
           "python3 train.py\n"
           "  gogh import gavel throughputs.json --db lab.db\n"
           "  gogh simulate --cluster lab.cluster --trace week.trace --truth lab.db "
           "--policy greedy\n"
           "  gogh study --scenario builtin --out study\n");
    return cmd_done();
}

static int version(void)
{
    printf("gogh %s\n", GOGH_VERSION);
    return cmd_done();
}

static int help_one(const char *name)
{
    const struct cmd *c = find(name);

    if (c)
        return cmd_help(c);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0)
        return help_all();
    if (strcmp(name, "version") == 0)
        return version();
    fprintf(stderr, "gogh: no command '%s'; 'gogh help' lists them\n", name);
    return EXIT_MISUSE;
}

static void set_log_level(const char *word)
{
    static const char *const levels[] = {
        [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"
    };

    for (int i = LOG_ERROR; word && i <= LOG_DEBUG; i++) {
        if (strcmp(levels[i], word) == 0) {
            log_set_level((enum log_level)i);
            return;
        }
    }
    if (word)
        log_warn("GOGH_LOG=%s: want error, warn, info or debug", word);
}

int main(int argc, char **argv)
{
    set_log_level(getenv("GOGH_LOG"));
    if (argc < 2) {
        fprintf(stderr, "gogh: which command? 'gogh help' lists them\n");
        return EXIT_MISUSE;
    }
    if (cmd_is(argv[1], "help") || cmd_is(argv[1], "--help") || cmd_is(argv[1], "-h"))
        return argc > 2 ? help_one(argv[2]) : help_all();
    if ((cmd_is(argv[1], "version") || cmd_is(argv[1], "--version")) && argc == 2)
        return version();
    const struct cmd *c = find(argv[1]);
    return c ? cmd_run(c, argc, argv) : help_one(argv[1]);
}

/* tick.c - `gogh tick N`: a job in shell says how far it is. */
#include <errno.h>
#include <gogh.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "cli/cmd.h"

static const char help[] =
    "Inside a job: tell GOGH that N steps are done, counted since the job's first start. Where to\n"
    "and who we are is in GOGH_REPORTS, GOGH_JOB, GOGH_RUN and GOGH_SECRET, which GOGH sets. "
    "Never\n"
    "waits; nobody answers. What cannot be sent now (the daemon starts anew) is no error: the "
    "next\n"
    "count says it again; outside of a job nothing happens. Jobs in C and Python have libraries "
    "for\n"
    "it (docs/reporting.md).\n"
    "\n"
    "  --unfit      the GPU's memory does not suffice; the job is about to end with an error\n"
    "\n"
    "Examples:\n"
    "  for i in $(seq $((GOGH_STEPS_DONE + 1)) 100); do ./epoch $i; gogh tick $i; done\n";

static double steps;
static bool is_unfit;

static const struct cmd_option options[] = { CMD_FLAG("unfit", is_unfit) };

static int check(const struct cmd_call *call)
{
    const char *word = call->words[0];

    if (!word)
        return cmd_misuse(call->cmd, "how many steps are done?");
    if (text_to_double(slice_of(word), &steps) != 0 || steps < 0)
        return cmd_misuse(call->cmd, "'%s' is not a count of steps", word);
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    struct gogh g = gogh_open();

    (void)call;
    (void)e;
    if (!gogh_inside(&g))
        return 0;    // the same script runs as ever elsewhere
    g.steps = steps;
    g.is_unfit = is_unfit;
    if (gogh_send(&g) < 0)
        (void)fprintf(stderr, "gogh tick: %s: %s; is the daemon running?\n", getenv("GOGH_REPORTS"),
                      strerror(errno));
    close(g.fd);
    return 0;
}

const struct cmd cmd_tick = {
    .name = "tick",
    .synopsis = "tick N [--unfit]",
    .summary = "inside a job: say how many steps are done",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 1,
    .check = check,
    .run = run,
};

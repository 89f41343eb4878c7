/* cmd_tick.c - `gogh tick N`: a job in shell says how far it is. */
#include <errno.h>
#include <gogh.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "cli/cmd.h"

static const char help[] =
    "Inside a job: tell GOGH that N steps are done, counted since the job's first start. Where to\n"
    "and who we are is in GOGH_REPORTS, GOGH_JOB, GOGH_RUN and GOGH_SECRET, which GOGH sets. Never\n"
    "waits; nobody answers. What cannot be sent now (the daemon starts anew) is no error: the next\n"
    "count says it again; outside of a job nothing happens. Jobs in C and Python have libraries for\n"
    "it (docs/reporting.md).\n"
    "\n"
    "  --unfit      the GPU's memory does not suffice; the job is about to end with an error\n"
    "\n"
    "Examples:\n"
    "  for i in $(seq $((GOGH_STEPS_DONE + 1)) 100); do ./epoch $i; gogh tick $i; done\n";

static int run(int argc, char **argv);
const struct cmd cmd_tick = { "tick", "tick N [--unfit]",
                              "inside a job: say how many steps are done", help, run };

static void send_count(double steps, bool is_unfit)
{
    struct gogh g = gogh_open();

    if (!gogh_inside(&g))
        return;    // the same script runs as ever elsewhere
    g.steps = steps;
    g.is_unfit = is_unfit;
    if (gogh_send(&g) < 0)
        (void)fprintf(stderr, "gogh tick: %s: %s; is the daemon running?\n", getenv("GOGH_REPORTS"),
                      strerror(errno));
    close(g.fd);
}

static int run(int argc, char **argv)
{
    const char *words[1] = { NULL };
    bool is_unfit = false;
    double steps = 0;
    const struct cmd_option options[] = { { "unfit", OPTION_FLAG, &is_unfit, 0, 0 } };
    int status = cmd_parse(&cmd_tick, argc, argv, options, CMD_COUNT(options), words, 1);

    if (status != CMD_GO_ON)
        return status;
    if (!words[0])
        return cmd_misuse(&cmd_tick, "how many steps are done?");
    if (text_to_double(slice_of(words[0]), &steps) != 0 || steps < 0)
        return cmd_misuse(&cmd_tick, "'%s' is not a count of steps", words[0]);
    send_count(steps, is_unfit);
    return EXIT_DONE;
}

/* tick.c - `gogh tick N`: a job in shell says how far it is, or what it has served. */
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
    "it (docs/reporting.md). The replica of a service says instead what it has served:\n"
    "\n"
    "  --unfit        the GPU's memory does not suffice; the job is about to end with an error\n"
    "  --ready        it takes requests from now on\n"
    "  --requests N   requests answered, in all: the same as N\n"
    "  --late N       of these, answered too late, in this run\n"
    "  --queued N     requests that have come and are not answered, now\n"
    "  --batches N    batches done in this run\n"
    "  --busy S       seconds that these took\n"
    "\n"
    "Examples:\n"
    "  for i in $(seq $((GOGH_STEPS_DONE + 1)) 100); do ./epoch $i; gogh tick $i; done\n"
    "  gogh tick --requests 1200 --late 4 --queued 2\n";

#define COUNT_MAX 1e15

static double steps = -1, late = -1, queued = -1, batches = -1, busy_s = -1;    // -1: not given
static bool is_unfit, is_ready;

static const struct cmd_option options[] = {
    CMD_FLAG("unfit", is_unfit),
    CMD_FLAG("ready", is_ready),
    CMD_NUMBER("requests", steps, 0, COUNT_MAX),
    CMD_NUMBER("late", late, 0, COUNT_MAX),
    CMD_NUMBER("queued", queued, 0, COUNT_MAX),
    CMD_NUMBER("batches", batches, 0, COUNT_MAX),
    CMD_NUMBER("busy", busy_s, 0, COUNT_MAX),
};

static int check(const struct cmd_call *call)
{
    const char *word = call->words[0];

    if (word && steps >= 0)
        return cmd_misuse(call->cmd, "N and --requests are the same count; give one");
    if (!word && steps < 0 && !is_ready)
        return cmd_misuse(call->cmd, "how many steps are done?");
    if (word && (text_to_double(slice_of(word), &steps) != 0 || steps < 0))
        return cmd_misuse(call->cmd, "'%s' is not a count of steps", word);
    if (steps >= 0 && late > steps)
        return cmd_misuse(call->cmd, "more are late than were answered");
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    struct gogh g = gogh_open();

    (void)call;
    (void)e;
    if (!gogh_inside(&g))
        return 0;    // the same script runs as ever elsewhere
    if (steps >= 0)
        g.steps = steps;
    g.is_unfit = is_unfit;
    g.is_server = true;
    g.ready = is_ready ? 1 : -1;
    g.late = late;
    g.queued = queued;
    g.batches = batches;
    g.busy_s = busy_s;
    if (gogh_send(&g) < 0)
        (void)fprintf(stderr, "gogh tick: %s: %s; is the daemon running?\n", getenv("GOGH_REPORTS"),
                      strerror(errno));
    close(g.fd);
    return 0;
}

const struct cmd cmd_tick = {
    .name = "tick",
    .synopsis =
        "tick N [--unfit] [--ready] [--requests N --late N --queued N --batches N --busy S]",
    .summary = "inside a job: say how many steps are done",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 1,
    .check = check,
    .run = run,
};

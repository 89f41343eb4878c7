/* explain.c - `gogh explain`: why a job is where it is, or why it waits. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/client/jobs.h"
#include "cli/client/services.h"
#include "cli/table.h"
#include "cli/when.h"

static const char help[] =
    "Why a job is here and not there: every kind of place it could have had when the decision was\n"
    "made, with the speed that was predicted and its interval, watts, how far that is above the\n"
    "promise, what it would cost a neighbour, and the verdict. For a job that waits: for what,\n"
    "and when it may start. As recorded with the decision, not worked out afterwards. For a\n"
    "service: how many requests a second it is to hold and from what that is known, what each\n"
    "GPU type holds, where its replicas are, and which neighbours they cannot have; as of now.\n"
    "\n"
    "  --at TIME        the decision in force then: \"2026-11-16 18:00\", 18:00 or "
    "-2h\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh explain 12\n"
    "  gogh explain train-a --at 03:00\n";

static void put_row(struct table *t, const json_t *c)
{
    struct arena *a = t->arena;
    double low = json_number_of(c, "low"), high = json_number_of(c, "high");
    double margin = json_number_of(c, "margin"), left = json_number_of(c, "neighbour_speed");
    double limit_w = json_number_of(c, "limit_w"), counted = json_number_of(c, "counted_on");
    double wake_s = json_number_of(c, "wake_s");    // NaN: awake
    const json_t *keeps = json_object_get(c, "neighbour_keeps");

    table_put(t, arena_printf(a, "%s x %s%s", cell_text(a, c, "n_gpus"), cell_text(a, c, "type"),
                              limit_w > 0 ? arena_printf(a, " at %.0f W", limit_w) : ""));
    table_put_fields(t, c, "gpu beside #speed");
    table_put(t, isfinite(low)
                     ? arena_printf(a, "%s to %s", cell_value(a, low), cell_value(a, high))
                     : "-");
    table_put(t, isfinite(margin) ? arena_printf(a, "%+.0f", 100 * margin) : "-");
    table_put_fields(t, c, "#watts #added_w *joules #cost_w");
    table_put(t, isfinite(left) ? arena_printf(a, "%+.0f%s", 100 * (left - 1),
                                               json_is_false(keeps) ? " (breaks)" : "")
                                : "-");
    const char *verdict = cell_text(a, c, "verdict");
    if (counted >= 1.005)
        verdict =
            arena_printf(a, "%s (in doubt: counted on %.0f %% more)", verdict, 100 * (counted - 1));
    table_put(t, wake_s > 0 ? arena_printf(a, "%s (asleep: wakes in %.0f s)", verdict, wake_s)
                            : verdict);
}

static void print_candidates(struct arena *a, const json_t *x)
{
    const json_t *list = json_object_get(x, "candidates");
    double left_out = json_number_of(x, "left_out");
    struct table t;

    if (json_array_size(list) == 0) {
        printf("\nNo candidate places were recorded.\n");
        return;
    }
    table_init(&t, a,
               "PLACE|E.G.|BESIDE|>STEPS/S|INTERVAL|>MARGIN %|>WATTS|>ADDED W|>KWH|"
               ">COST W|>NEIGHBOUR %|VERDICT");
    for (size_t i = 0; i < json_array_size(list); i++)
        put_row(&t, json_array_get(list, i));
    printf("\n");
    table_print(&t, stdout);
    if (left_out > 0)
        printf("and %.0f more, which are worse\n", left_out);
    printf("\nMARGIN: the interval's lower end above what the promise needs. ADDED W, KWH: "
           "what this job\nadds there, and until its work is done. COST W: what plans "
           "weigh: that and the GPU's price,\nbroken promises, moves, what neighbours "
           "lose, less what its work is worth. NEIGHBOUR: how\nthe neighbour's speed "
           "changes.\n");
}

static void print_wait(struct arena *a, const json_t *x, const json_t *job, double now_s)
{
    double may_s = json_number_of(x, "may_start_s");
    const char *behind = json_text_of(x, "waits_for");

    printf("It waits: %s.\n", cell_text(a, x, "reason"));
    if (jobs_beyond(a, job) != NULL)
        printf("It cannot run here as the cluster is: %s.\n", jobs_beyond(a, job));
    else if (isfinite(may_s))
        printf("It may start at about %s (in %s)%s%s%s.\n", when_clock(a, may_s, now_s),
               when_text(a, fmax(0, may_s - now_s)), behind != NULL ? ", when job '" : "",
               behind != NULL ? cell_clean(a, behind) : "", behind != NULL ? "' ends" : "");
    else
        printf("When it may start is not known.\n");
}

/* A decision that placed it, and what has become of it: plans may come to nothing, or be others' by
 * now.
 */
static void print_placed(struct arena *a, const json_t *x, const json_t *job)
{
    const char *was = cell_list(a, x, "gpus"), *is = cell_list(a, job, "gpus");
    const char *state = cell_text(a, job, "state");

    if (strcmp(state, "running") == 0 && strcmp(was, is) == 0)
        printf("It runs on %s.\n", was);
    else if (strcmp(state, "running") == 0)
        printf("It was to run on %s; it runs on %s.\n", was, is);
    else if (strcmp(state, "waiting") == 0 || strcmp(state, "held") == 0)
        printf("It is to run on %s; it is %s still.\n", was, state);
    else
        printf("It was placed on %s.\n", was);
}

static void print_page(struct arena *a, const json_t *x, const json_t *job)
{
    const bool has_ended = isfinite(json_number_of(job, "ended_s"));
    double now_s = when_now(), need = json_number_of(x, "need");
    const char *state = json_text_of(x, "state");

    printf("job %s (%s), decided at %s by %s\n\n", cell_text(a, x, "job"), cell_text(a, x, "name"),
           when_clock(a, json_number_of(x, "time_s"), now_s), cell_text(a, x, "made_by"));
    if (state != NULL && strcmp(state, "running") == 0)
        print_placed(a, x, job);
    else if (has_ended)
        printf("It waited: %s.\n", cell_text(a, x, "reason"));
    else
        print_wait(a, x, job, now_s);
    if (need > 0)
        printf("Its promise needs %s steps/s from now on.\n", cell_value(a, need));
    else
        printf("It has no promise to keep.\n");
    print_candidates(a, x);
}

static const char *at;

static const struct cmd_option options[] = { CMD_TEXT("at", at), CLIENT_OPTIONS };

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    const char *about = arena_printf(a, "/v1/jobs/%s", client_escape(c, call->words[0]));
    const char *path = arena_printf(a, "%s/explain", about);
    double at_s;
    json_t *x, *job = NULL;

    if (at == NULL && client_get(c, about, &job, e) == 0 && services_is(job))
        return client_show(c, arena_printf(a, "/v1/services/%s", cell_text(a, job, "id")),
                           services_explain, e);
    if (at != NULL) {
        if (when_time(at, when_now(), false, &at_s, e) < 0)
            return err_prefix(e, "--at");
        path = client_with(c, path, "at", arena_printf(a, "%.3f", at_s));
    }
    if (client_get(c, path, &x, e) < 0)
        return -e->code;
    if (client_options.is_json)
        printf("%s\n", client_text(c));
    else
        print_page(a, x, job || client_get(c, about, &job, e) == 0 ? job : NULL);
    return 0;
}

const struct cmd cmd_explain = {
    .name = "explain",
    .synopsis = "explain JOB [--at TIME] [--json]",
    .summary = "why a job is here and not there, or why it waits",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 1,
    .check = client_check_job,
    .run = client_run,
    .ask = ask,
};

/* jobs.c - `gogh jobs`, `show`, `cancel`, `hold`, `release`. */
#include <jansson.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/client/jobs.h"
#include "cli/client/services.h"
#include "cli/table.h"
#include "cli/when.h"

static const char jobs_help[] =
    "List jobs: those that wait or run, and those that ended within the last hour (of the newest\n"
    "2000). TIME is how long a job has run, or waited; NEEDED what its promise asks from now on.\n"
    "\n"
    "  --state S        only these: waiting, held, running, finished, failed or cancelled\n"
    "  --owner NAME     only jobs of this owner\n"
    "  --mine           only your own\n"
    "  --replicas       also the replicas of services\n"
    "  --all            all that ever were\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh jobs\n"
    "  gogh jobs --mine --state running --json\n";

static const char show_help[] =
    "Everything about one job: what was asked, where it runs, how fast, at what energy; its\n"
    "command and where its output is. Of a service: what comes, what it holds, its replicas.\n"
    "\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh show 12\n"
    "  gogh show train-a --json\n";

static const char cancel_help[] = "End jobs for good: those that run are told to stop.\n"
                                  "\n" CLIENT_HELP "\n"
                                  "Examples:\n"
                                  "  gogh cancel 12 13\n";

static const char hold_help[] =
    "Do not start these waiting jobs until 'gogh release'. One that runs already is refused: "
    "cancel it,\n"
    "or let it run.\n"
    "\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh hold 12\n";

static const char release_help[] = "Let held jobs start again.\n"
                                   "\n" CLIENT_HELP "\n"
                                   "Examples:\n"
                                   "  gogh release 12\n";

/* ---- listing ---- */

#define RECENT_S 3600
#define RECENT_JOBS 2000

/* Drop from 'jobs' those that are in 'newer', too: they went on meanwhile. */
static void drop_doubles(json_t *jobs, const json_t *newer)
{
    json_t *known = json_object();
    char id[32];

    for (size_t i = 0; i < json_array_size(newer); i++) {
        snprintf(id, sizeof id, "%.0f", json_number_of(json_array_get(newer, i), "id"));
        json_object_set_new(known, id, json_true());
    }
    for (size_t i = json_array_size(jobs); i-- > 0;) {
        snprintf(id, sizeof id, "%.0f", json_number_of(json_array_get(jobs, i), "id"));
        if (json_object_get(known, id) != NULL)
            json_array_remove(jobs, i);
    }
    json_decref(known);
}

/* Asked in the order in which jobs go on, so that none is missed between two questions; running
 * ones come first.
 */
int jobs_live(struct client *c, const char *path, json_t *into, struct err *e)
{
    json_t *idle = json_array(), *running = json_array();
    int rc = client_list(c, client_with(c, path, "state", "held"), "jobs", idle, e);

    if (rc == 0) {
        json_t *waiting = json_array();
        rc = client_list(c, client_with(c, path, "state", "waiting"), "jobs", waiting, e);
        drop_doubles(idle, waiting);
        json_array_extend(waiting, idle);
        json_decref(idle);
        idle = waiting;
    }
    if (rc == 0)
        rc = client_list(c, client_with(c, path, "state", "running"), "jobs", running, e);
    drop_doubles(idle, running);
    json_array_extend(into, running);
    json_array_extend(into, idle);
    json_decref(running);
    json_decref(idle);
    return rc;
}

/* Those of the newest that ended not long ago. */
static int recent(struct client *c, const char *path, json_t *into, struct err *e)
{
    json_t *first, *all = json_array();
    json_int_t total;
    double now_s = when_now();
    int rc = client_get(c, "/v1/jobs?limit=1", &first, e);

    if (rc == 0) {
        total = json_integer_value(json_object_get(first, "total"));
        if (total > RECENT_JOBS)
            path = client_with(
                c, path, "after",
                arena_printf(client_arena(c), "%lld", (long long)(total - RECENT_JOBS - 1)));
        rc = client_list(c, path, "jobs", all, e);
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *job = json_array_get(all, i);

        if (now_s - json_number_of(job, "ended_s") < RECENT_S)
            json_array_append(into, job);
    }
    json_decref(all);
    return rc;
}

const char *jobs_beyond(struct arena *a, const json_t *job)
{
    const char *reason = json_text_of(job, "reason");
    const double n = json_number_of(job, "n_gpus"), on = json_number_of(job, "nodes");

    if (reason == NULL || strcmp(reason, "gang size") != 0 || !(n > 0))
        return NULL;
    if (!(on > 0))
        return arena_printf(a, "there are not %.0f GPUs of one type that it may use", n);
    if (on == 1)
        return arena_printf(a, "no node has %.0f GPUs of one type that it may use", n);
    return arena_printf(a, "there are not %.0f nodes with %.0f GPUs of one type that it may use",
                        on, ceil(n / on));
}

/* The GPUs it runs on, or why it does not. */
static const char *where(struct arena *a, const json_t *job)
{
    const char *beyond = jobs_beyond(a, job);

    if (services_is(job) && json_is_null(json_object_get(job, "reason")))
        return "'gogh services' shows its replicas";
    if (json_array_size(json_object_get(job, "gpus")) > 0)
        return cell_list(a, job, "gpus");
    return beyond != NULL ? arena_printf(a, "gang size: %s", beyond) : cell_text(a, job, "reason");
}

static void put_row(struct table *t, const json_t *job, double now_s)
{
    struct arena *a = t->arena;
    double ended_s = json_number_of(job, "ended_s");
    double since_s = json_number_of(job, "started_s");

    table_put_fields(t, job, "id name owner");
    table_put(t, services_is(job) ? arena_printf(a, "service: %s", cell_text(a, job, "serving"))
                                  : cell_text(a, job, "state"));
    table_put_fields(t, job, "workload #speed #need promise #watts *joules");
    table_put(t, when_text(a, (isfinite(ended_s) ? ended_s : now_s) -
                                  (isfinite(since_s) ? since_s : json_number_of(job, "submit_s"))));
    table_put(t, where(a, job));
}

void jobs_table(struct arena *a, const json_t *jobs, double now_s, FILE *out)
{
    struct table t;

    table_init(&t, a,
               ">ID|NAME|OWNER|STATE|WORKLOAD|>STEPS/S|>NEEDED|PROMISE|>WATTS|>KWH|>TIME|"
               "WHERE OR WHY NOT");
    for (size_t i = 0; i < json_array_size(jobs); i++)
        put_row(&t, json_array_get(jobs, i), now_s);
    table_print(&t, out);
}

static void print_jobs(struct arena *a, json_t *jobs, bool is_json)
{
    if (is_json) {
        json_print(json_pack("{s:O, s:I, s:n}", "jobs", jobs, "total",
                             (json_int_t)json_array_size(jobs), "next"),
                   JSON_COMPACT | JSON_REAL_PRECISION(15));
        return;
    }
    if (json_array_size(jobs) == 0) {
        printf("no jobs\n");
        return;
    }
    jobs_table(a, jobs, when_now(), stdout);
}

static const char *myself(struct arena *a)
{
    struct passwd *p = getpwuid(geteuid());

    return p != NULL ? arena_strdup(a, p->pw_name) : arena_printf(a, "uid:%u", (unsigned)geteuid());
}

static struct {
    const char *state, *owner;
    bool is_mine, is_all, has_replicas;
} filter;

static const struct cmd_option jobs_options[] = {
    CMD_TEXT("state", filter.state),           CMD_TEXT("owner", filter.owner),
    CMD_FLAG("mine", filter.is_mine),          CMD_FLAG("all", filter.is_all),
    CMD_FLAG("replicas", filter.has_replicas), CLIENT_OPTIONS,
};

static int check_jobs(const struct cmd_call *call)
{
    if (filter.is_mine && filter.owner != NULL)
        return cmd_misuse(call->cmd, "--mine or --owner, not both");
    if (filter.is_all && filter.state != NULL)
        return cmd_misuse(call->cmd, "--all or --state, not both");
    return 0;
}

static int list(struct client *c, json_t *jobs, struct err *e)
{
    const char *path = client_with(c, "/v1/jobs", "owner",
                                   filter.is_mine ? myself(client_arena(c)) : filter.owner);

    if (filter.state != NULL)
        return client_list(c, client_with(c, path, "state", filter.state), "jobs", jobs, e);
    if (filter.is_all)
        return client_list(c, path, "jobs", jobs, e);
    json_t *ended = json_array();
    int rc = jobs_live(c, path, jobs, e);
    if (rc == 0)
        rc = recent(c, path, ended, e);
    drop_doubles(jobs, ended);
    json_array_extend(jobs, ended);
    json_decref(ended);
    return rc;
}

static void drop_replicas(json_t *jobs)
{
    for (size_t i = json_array_size(jobs); i-- > 0;)
        if (services_is_replica(json_array_get(jobs, i)))
            json_array_remove(jobs, i);
}

static int ask_jobs(struct client *c, const struct cmd_call *call, struct err *e)
{
    json_t *jobs = json_array();
    int rc = list(c, jobs, e);

    (void)call;
    if (!filter.has_replicas)
        drop_replicas(jobs);
    if (rc == 0)
        print_jobs(client_arena(c), jobs, client_options.is_json);
    json_decref(jobs);
    return rc;
}

/* ---- one job ---- */

static void say(const char *what, const char *value)
{
    if (value && strcmp(value, "-") != 0)    // NULL: nothing is known
        printf("  %-13s %s\n", what, value);
}

/* ", on 2 nodes", where that was asked for. */
static const char *nodes_text(struct arena *a, const json_t *j)
{
    const double n = json_number_of(j, "nodes");

    if (!(n > 0))
        return "";
    return n == 1 ? ", on one node" : arena_printf(a, ", on %.0f nodes", n);
}

/* Steps are counted: "10 of 100", not "10.0". */
static const char *count_text(struct arena *a, const json_t *j, const char *key)
{
    const double n = json_number_of(j, key);

    return n == floor(n) && n < 1e15 ? arena_printf(a, "%.0f", n) : cell_number(a, j, key);
}

static void say_asked(struct arena *a, const json_t *j, double now_s)
{
    double deadline_s = json_number_of(j, "deadline_s");

    say("workload", cell_text(a, j, "workload"));
    if (services_is_replica(j))
        say("replica", arena_printf(a, "%s of service %s, at port %s", cell_text(a, j, "replica"),
                                    cell_text(a, j, "service"), cell_text(a, j, "port")));
    else
        say("kind", cell_text(a, j, "kind"));
    say("GPUs",
        arena_printf(a, "%s to %s%s%s", cell_text(a, j, "n_gpus"), cell_text(a, j, "max_gpus"),
                     json_is_true(json_object_get(j, "exclusive")) ? ", exclusive" : "",
                     nodes_text(a, j)));
    say("types", cell_list(a, j, "types"));
    say("priority", cell_text(a, j, "priority"));
    if (isfinite(json_number_of(j, "urgency")) && json_number_of(j, "urgency") != 1)
        say("urgency", arena_printf(a, "%g times delay_w, to the nearest doubling",
                                    json_number_of(j, "urgency")));
    if (isfinite(json_number_of(j, "steps")))
        say("steps",
            arena_printf(a, "%s of %s", count_text(a, j, "steps_done"), count_text(a, j, "steps")));
    if (json_number_of(j, "rate") > 0)
        say("asked rate", arena_printf(a, "%s steps/s", cell_number(a, j, "rate")));
    if (json_number_of(j, "min_throughput") > 0)
        say("promised", arena_printf(a, "%s steps/s", cell_number(a, j, "min_throughput")));
    if (isfinite(deadline_s))
        say("deadline", arena_printf(a, "%s (in %s)", when_clock(a, deadline_s, now_s),
                                     when_text(a, deadline_s - now_s)));
}

static void say_running(struct arena *a, const json_t *j)
{
    say("runs on", cell_list(a, j, "gpus"));
    say("GPU type", cell_text(a, j, "gpu_type"));
    if (json_number_of(j, "limit_w") > 0)
        say("power limit", arena_printf(a, "%s W", cell_number(a, j, "limit_w")));
    if (isfinite(json_number_of(j, "speed")))
        say("speed", arena_printf(a, "%s steps/s", cell_number(a, j, "speed")));
    else if (strcmp(cell_text(a, j, "state"), "running") == 0)
        say("speed", "unknown: it reports no steps");
    if (isfinite(json_number_of(j, "predicted")))
        say("predicted", arena_printf(a, "%s steps/s, at least %s", cell_number(a, j, "predicted"),
                                      cell_number(a, j, "predicted_low")));
    if (json_number_of(j, "need") > 0)
        say("needs", arena_printf(a, "%s steps/s for its promise", cell_number(a, j, "need")));
    say("promise", cell_text(a, j, "promise"));
    if (isfinite(json_number_of(j, "watts")))
        say("power", arena_printf(a, "%s W", cell_number(a, j, "watts")));
    if (isfinite(json_number_of(j, "joules")))
        say("energy", arena_printf(a, "%s kWh", cell_scaled(a, j, "joules", 1 / KWH_J)));
}

static void say_times(struct arena *a, const json_t *j, double now_s)
{
    say("submitted", when_clock(a, json_number_of(j, "submit_s"), now_s));
    say("started", when_clock(a, json_number_of(j, "started_s"), now_s));
    say("ended", when_clock(a, json_number_of(j, "ended_s"), now_s));
    say("waited", when_text(a, json_number_of(j, "waited_s")));
    say("moves", cell_text(a, j, "moves"));
    say("failures", cell_text(a, j, "failures"));
}

static void say_command(struct arena *a, const json_t *j)
{
    const json_t *command = json_object_get(j, "command"), *argv = json_object_get(command, "argv");
    const char *words = NULL;

    for (size_t i = 0; i < json_array_size(argv); i++) {
        const char *one = cell_clean(a, json_string_value(json_array_get(argv, i)));

        words = words != NULL ? arena_printf(a, "%s %s", words, one) : one;
    }
    say("command", words != NULL ? words : "-");
    say("in", cell_text(a, command, "cwd"));
    say("run", cell_text(a, j, "run"));
    if (isfinite(json_number_of(j, "slurm_id")))
        say("Slurm job", cell_text(a, j, "slurm_id"));
    else
        say("pid", cell_text(a, j, "pid"));
    if (json_object_get(j, "dir") && !json_is_null(json_object_get(j, "dir")))
        say("directory", cell_text(a, j, "dir"));
    say("output", cell_text(a, j, "stdout"));
    say("errors", cell_text(a, j, "stderr"));
}

static void print_job(struct arena *a, const json_t *j)
{
    double now_s = when_now();

    printf("job %s (%s) of %s: %s\n", cell_text(a, j, "id"), cell_text(a, j, "name"),
           cell_text(a, j, "owner"), cell_text(a, j, "state"));
    say("because", jobs_beyond(a, j) != NULL ? jobs_beyond(a, j) : cell_text(a, j, "reason"));
    say_asked(a, j, now_s);
    say_running(a, j);
    say_times(a, j, now_s);
    say_command(a, j);
}

static const struct cmd_option options[] = { CLIENT_OPTIONS };

static int ask_show(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    const char *id = client_escape(c, call->words[0]);
    json_t *job;

    if (client_get(c, arena_printf(a, "/v1/jobs/%s", id), &job, e) < 0)
        return -e->code;
    if (services_is(job))
        return client_show(c, arena_printf(a, "/v1/services/%s", cell_text(a, job, "id")),
                           services_show, e);
    if (client_options.is_json)
        printf("%s\n", client_text(c));
    else
        print_job(a, job);
    return 0;
}

/* ---- orders ---- */

#define ORDER_JOBS_MAX 1000

static int check_order(const struct cmd_call *call)
{
    return call->words[0] != NULL ? 0 : cmd_misuse(call->cmd, "which jobs? their ids or names");
}

/* All that can be done is done; the worst exit status is the answer. */
static int ask_order(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    int worst = EXIT_DONE;

    for (const char **id = call->words; *id != NULL; id++) {
        json_t *job;

        if (client_post(c,
                        arena_printf(a, "/v1/jobs/%s/%s", client_escape(c, *id), call->cmd->name),
                        NULL, NULL, &job, e) < 0) {
            worst = cmd_fail(e);
            if (worst == EXIT_NO_DAEMON)
                return worst;
        } else if (client_options.is_json) {
            printf("%s\n", client_text(c));
        } else {
            printf("job %s (%s) %s\n", cell_text(a, job, "id"), cell_text(a, job, "name"),
                   cell_text(a, job, "state"));
        }
    }
    return worst;
}

const struct cmd cmd_jobs = {
    .name = "jobs",
    .synopsis = "jobs [--state S] [--owner NAME|--mine] [--replicas] [--all] [--json]",
    .summary = "the jobs: where they run, how fast, at how many watts",
    .help = jobs_help,
    CMD_OPTIONS(jobs_options),
    .check = check_jobs,
    .run = client_run,
    .ask = ask_jobs,
};

const struct cmd cmd_show = {
    .name = "show",
    .synopsis = "show JOB [--json]",
    .summary = "everything about one job",
    .help = show_help,
    CMD_OPTIONS(options),
    .max_words = 1,
    .check = client_check_job,
    .run = client_run,
    .ask = ask_show,
};

// NOLINTBEGIN(bugprone-macro-parentheses): texts that are joined
#define ORDER(verb, says, explained)                                                           \
    {                                                                                          \
        .name = verb, .synopsis = verb " JOB... [--json]", .summary = says, .help = explained, \
        CMD_OPTIONS(options), .max_words = ORDER_JOBS_MAX, .check = check_order,               \
        .run = client_run, .ask = ask_order                                                    \
    }

const struct cmd cmd_cancel = ORDER("cancel", "end jobs for good", cancel_help);
const struct cmd cmd_hold = ORDER("hold", "keep jobs from running for now", hold_help);
const struct cmd cmd_release = ORDER("release", "let held jobs run again", release_help);
// NOLINTEND(bugprone-macro-parentheses)

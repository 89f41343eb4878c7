/* services.c - `gogh services`, `scale`; a service as `show` and `explain` print it. */
#include "cli/client/services.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/when.h"

static const char services_help[] =
    "List services: what comes (REQ/S, over five minutes), what they are to be ready for (DEMAND)\n"
    "and what their ready replicas hold (HOLDS), requests/s all; requests that were late, of all\n"
    "since the daemon began; watts, and joules of a thousand requests.\n"
    "\n"
    "  --all            also those that have ended\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh services\n"
    "  gogh services --json\n";

static const char scale_help[] =
    "Tell a service another rate to be ready for, or another number of GPUs. The rate counts until\n"
    "five minutes of requests were seen, and again where nothing is known; then what comes counts.\n"
    "\n"
    "  --rate R         requests a second\n"
    "  --max-gpus N     replicas at most, 1 to 64\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh scale web --rate 120\n"
    "  gogh scale 12 --max-gpus 2\n";

/* ---- cells ---- */

static bool is_kind(const json_t *job, const char *kind)
{
    const char *is = json_text_of(job, "kind");

    return is != NULL && strcmp(is, kind) == 0;
}

bool services_is(const json_t *job)
{
    return is_kind(job, "service");
}

bool services_is_replica(const json_t *job)
{
    return is_kind(job, "replica");
}

/* "200 ms", "1.5 s". */
static const char *latency_text(struct arena *a, double s)
{
    return s < 1 ? arena_printf(a, "%.3g ms", 1e3 * s) : arena_printf(a, "%.3g s", s);
}

const char *services_promise(struct arena *a, const json_t *s)
{
    double p99_s = json_number_of(s, "p99_s");

    if (isfinite(p99_s))
        return arena_printf(a, "99 %% within %s", latency_text(a, p99_s));
    return arena_printf(a, "99 %%: first token within %s, %s for each further one",
                        latency_text(a, json_number_of(s, "ttft_s")),
                        latency_text(a, json_number_of(s, "tpot_s")));
}

/* The promised latency alone. */
static const char *short_promise(struct arena *a, const json_t *s)
{
    double p99_s = json_number_of(s, "p99_s");

    if (isfinite(p99_s))
        return latency_text(a, p99_s);
    return arena_printf(a, "%s + %s", latency_text(a, json_number_of(s, "ttft_s")),
                        latency_text(a, json_number_of(s, "tpot_s")));
}

/* "3", "2+1" with one that starts, "2-1" with one that drains. */
static const char *replicas_text(struct arena *a, const json_t *s)
{
    double starting = json_number_of(s, "starting"), draining = json_number_of(s, "draining");

    return arena_printf(a, "%s%s%s", cell_text(a, s, "ready"),
                        starting > 0 ? arena_printf(a, "+%.0f", starting) : "",
                        draining > 0 ? arena_printf(a, "-%.0f", draining) : "");
}

/* ---- the list ---- */

static void print_services(struct arena *a, const json_t *list)
{
    struct table t;

    if (json_array_size(list) == 0) {
        printf("no services\n");
        return;
    }
    table_init(&t, a,
               ">ID|NAME|OWNER|STATE|>REPLICAS|>P99|>REQ/S|>DEMAND|>HOLDS|>LATE %|>WATTS|"
               ">J PER 1000|WARNINGS");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);

        table_put_fields(&t, s, "id name owner state");
        table_put(&t, replicas_text(a, s));
        table_put(&t, short_promise(a, s));
        table_put_fields(&t, s,
                         "#rate #demand #capacity %late_share #watts #joules_per_1000_requests "
                         "+warnings");
    }
    table_print(&t, stdout);
}

static bool is_all;

static const struct cmd_option services_options[] = { CMD_FLAG("all", is_all), CLIENT_OPTIONS };

static int ask_services(struct client *c, const struct cmd_call *call, struct err *e)
{
    json_t *list = json_array();
    const char *path = is_all ? client_with(c, "/v1/services", "ended", "1") : "/v1/services";
    int rc = client_list(c, path, "services", list, e);

    (void)call;
    if (rc == 0 && client_options.is_json)
        json_print(json_pack("{s:O, s:I, s:n}", "services", list, "total",
                             (json_int_t)json_array_size(list), "next"),
                   JSON_COMPACT | JSON_REAL_PRECISION(15));
    else if (rc == 0)
        print_services(client_arena(c), list);
    json_decref(list);
    return rc;
}

/* ---- one ---- */

static void say(const char *what, const char *value)
{
    if (value && strcmp(value, "-") != 0)
        printf("  %-13s %s\n", what, value);
}

static void print_replicas(struct arena *a, const json_t *s)
{
    const json_t *list = json_object_get(s, "replicas");
    struct table t;

    if (json_array_size(list) == 0)
        return;
    table_init(&t, a, ">REPLICA|>JOB|NAME|GPU|TYPE|STATE|>WEIGHT %|>PORT");
    for (size_t i = 0; i < json_array_size(list); i++)
        table_put_fields(&t, json_array_get(list, i),
                         "replica job name gpu type state %weight port");
    printf("\n");
    table_print(&t, stdout);
}

static const char *capacity_source(struct arena *a, const json_t *s)
{
    const char *from = json_text_of(s, "capacity_from");

    if (from != NULL && strcmp(from, "replay") == 0)
        return arena_printf(a, "by replay of %s hours of its arrivals", cell_text(a, s, "hours"));
    return from != NULL && strcmp(from, "metrics") == 0
               ? "fitted to its metrics: at most 1.4 times what a replica was seen to take"
               : "by a careful rule, until an hour of arrivals is known";
}

static void say_served(struct arena *a, const json_t *s)
{
    say("requests", arena_printf(a, "%.0f since the daemon began", json_number_of(s, "requests")));
    if (isfinite(json_number_of(s, "late_share")))
        say("late", arena_printf(a, "%s %%", cell_percent(a, s, "late_share")));
    if (isfinite(json_number_of(s, "p99_seen_s")))
        say("p99 seen", latency_text(a, json_number_of(s, "p99_seen_s")));
    say("power", arena_printf(a, "%s W", cell_number(a, s, "watts")));
    say("energy", arena_printf(a, "%s kWh", cell_scaled(a, s, "joules", 1 / KWH_J)));
    if (isfinite(json_number_of(s, "joules_per_1000_requests")))
        say("per 1000", arena_printf(a, "%s J for 1000 requests",
                                     cell_number(a, s, "joules_per_1000_requests")));
}

void services_show(struct arena *a, const json_t *s)
{
    double now_s = when_now();

    printf("service %s (%s) of %s: %s\n", cell_text(a, s, "id"), cell_text(a, s, "name"),
           cell_text(a, s, "owner"), cell_text(a, s, "state"));
    say("because", cell_text(a, s, "why"));
    say("warnings", cell_list(a, s, "warnings"));
    say("workload", cell_text(a, s, "workload"));
    say("promise", services_promise(a, s));
    say("said rate", arena_printf(a, "%s requests/s", cell_number(a, s, "promised_rate")));
    say("max batch", cell_text(a, s, "max_batch"));
    say("replicas",
        arena_printf(a, "%s, at most %s%s", replicas_text(a, s), cell_text(a, s, "max_gpus"),
                     json_is_true(json_object_get(s, "no_move")) ? ", not moved" : ""));
    if (isfinite(json_number_of(s, "rate")))
        say("comes", arena_printf(a, "%s requests/s", cell_number(a, s, "rate")));
    if (isfinite(json_number_of(s, "demand")))
        say("demand", arena_printf(a, "%s requests/s", cell_number(a, s, "demand")));
    say("holds",
        arena_printf(a, "%s requests/s, %s", cell_number(a, s, "capacity"), capacity_source(a, s)));
    if (isfinite(json_number_of(s, "load_s")))
        say("loads in", when_text(a, json_number_of(s, "load_s")));
    say_served(a, s);
    say("submitted", when_clock(a, json_number_of(s, "submit_s"), now_s));
    say("heard", when_clock(a, json_number_of(s, "heard_s"), now_s));
    print_replicas(a, s);
}

/* ---- why ---- */

static void print_places(struct arena *a, const json_t *s)
{
    const json_t *list = json_object_get(s, "places");
    struct table t;

    if (json_array_size(list) == 0)
        return;
    table_init(&t, a, "TYPE|>UP|>FREE|>REPLICAS|>REQ/S EACH|>NEEDED|>WATTS|>J PER 1000|VERDICT");
    for (size_t i = 0; i < json_array_size(list); i++)
        table_put_fields(&t, json_array_get(list, i),
                         "type gpus free replicas #capacity needed #watts "
                         "#joules_per_1000_requests verdict");
    printf("\n");
    table_print(&t, stdout);
    printf("\nREQ/S EACH: what a replica alone there holds in time. NEEDED: so many would hold the "
           "demand.\nWATTS, J PER 1000: of such a GPU at work, and of 1000 requests where it is at "
           "its capacity.\n");
}

static void print_neighbours(struct arena *a, const json_t *s)
{
    const json_t *places = json_object_get(s, "places");

    for (size_t i = 0; i < json_array_size(places); i++) {
        const json_t *place = json_array_get(places, i), *list = json_object_get(place, "beside");
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *n = json_array_get(list, k);
            double holds = json_number_of(n, "capacity");
            printf("Beside %s on %s: %s%s.\n", cell_text(a, n, "workload"),
                   cell_text(a, place, "type"), cell_text(a, n, "verdict"),
                   holds > 0 ? arena_printf(a, ", a replica then holds %s requests/s",
                                            cell_value(a, holds))
                             : "");
        }
    }
}

void services_explain(struct arena *a, const json_t *s)
{
    const json_t *list = json_object_get(s, "replicas");

    printf("service %s (%s): %s\n\n", cell_text(a, s, "id"), cell_text(a, s, "name"),
           cell_text(a, s, "state"));
    printf("%s\n", cell_text(a, s, "why"));
    printf("It promises %s. What a place holds is found %s.\n", services_promise(a, s),
           capacity_source(a, s));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *r = json_array_get(list, i);
        printf("Replica %s is on %s (%s), %s%s.\n", cell_text(a, r, "replica"),
               cell_text(a, r, "gpu"), cell_text(a, r, "type"), cell_text(a, r, "state"),
               json_number_of(r, "weight") > 0
                   ? arena_printf(a, ", with %s %% of the requests", cell_percent(a, r, "weight"))
                   : "");
    }
    print_neighbours(a, s);
    print_places(a, s);
}

/* ---- scale ---- */

static struct {
    double rate;
    long max_gpus;
} to;

static const struct cmd_option scale_options[] = {
    CMD_NUMBER("rate", to.rate, 1e-9, 1e9),
    CMD_WHOLE("max-gpus", to.max_gpus, 1, 64),
    CLIENT_OPTIONS,
};

static int check_scale(const struct cmd_call *call)
{
    if (call->words[0] == NULL)
        return cmd_misuse(call->cmd, "which service? its id or name ('gogh services' lists them)");
    if (!(to.rate > 0) && to.max_gpus == 0)
        return cmd_misuse(call->cmd, "to what? give --rate, --max-gpus, or both");
    return 0;
}

static int ask_scale(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    json_t *body = json_object(), *s = NULL;

    if (to.rate > 0)
        json_object_set_new(body, "rate", json_real(to.rate));
    if (to.max_gpus > 0)
        json_object_set_new(body, "max_gpus", json_integer(to.max_gpus));
    int rc =
        client_post(c, arena_printf(a, "/v1/services/%s/scale", client_escape(c, call->words[0])),
                    body, NULL, &s, e);
    json_decref(body);
    if (rc < 0)
        return rc;
    if (client_options.is_json)
        printf("%s\n", client_text(c));
    else
        printf("service %s (%s): ready for %s requests/s, on %s GPUs at most\n",
               cell_text(a, s, "id"), cell_text(a, s, "name"), cell_number(a, s, "promised_rate"),
               cell_text(a, s, "max_gpus"));
    return 0;
}

const struct cmd cmd_services = {
    .name = "services",
    .synopsis = "services [--all] [--json]",
    .summary = "the services: what comes, what they hold, what is late",
    .help = services_help,
    CMD_OPTIONS(services_options),
    .run = client_run,
    .ask = ask_services,
};

const struct cmd cmd_scale = {
    .name = "scale",
    .synopsis = "scale SERVICE [--rate R] [--max-gpus N] [--json]",
    .summary = "another rate or number of GPUs for a service",
    .help = scale_help,
    CMD_OPTIONS(scale_options),
    .max_words = 1,
    .check = check_scale,
    .run = client_run,
    .ask = ask_scale,
};

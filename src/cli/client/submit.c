/* submit.c - `gogh submit`: a new job for the daemon, and, with --wait, how it ended. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "cli/client/client.h"
#include "cli/client/submit.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/when.h"

static const char help[] =
    "Hand a command over to goghd, which starts it where it costs the least energy and keeps its\n"
    "promise. The words after '--' are run as they are, without a shell, as you, in the\n"
    "working directory, with your PATH and a few other variables. Prints the new job's id.\n"
    "\n"
    "What it runs (to know how fast it will be):\n"
    "  --workload NAME  a workload of 'gogh catalog', or a built-in model ('gogh catalog models')\n"
    "  --batch N        its batch size\n"
    "  --precision P    fp32, tf32, fp16 (also bf16, half, mixed, amp), fp8 or int8\n"
    "  --new-workload   the name is new, not a slip\n"
    "  --descriptor F   or a JSON file that describes it (docs/formats/workloads.md)\n"
    "  --name NAME      of the job (made up)\n"
    "  --kind K         training or inference (with a --rate: inference)\n"
    "\n"
    "How much, and what is promised:\n"
    "  --steps N        training: steps to do\n"
    "  --rate R         inference: steps (a service: requests) a second asked of it\n"
    "  --duration T     inference: this long\n"
    "  --min-throughput R   at least this many steps a second\n"
    "  --deadline T     all --steps done by then: \"2026-11-16 18:00\", 18:00 or +2h\n"
    "\n"
    "A service, which serves until 'gogh cancel' ends it (docs/services.md):\n"
    "  --service        it is one; its replicas serve at the port $GOGH_PORT\n"
    "  --p99 T          99 of 100 requests are answered within T: 200ms\n"
    "  --ttft T, --tpot T   of a language model instead: the first token, each further one\n"
    "  --max-batch N    requests that a replica answers at once (32)\n"
    "  --max-gpus N     replicas at most, one GPU each (8)\n"
    "  --load-time T    from a replica's start until it is ready (120s, then as seen)\n"
    "  --no-move        no replica is moved to save energy\n"
    "  --probe PATH     answers 200 when a replica is ready (it reports 'ready')\n"
    "  --metrics PATH   its Prometheus page (it reports what it serves)\n"
    "\n"
    "Where:\n"
    "  --gpus N, --max-gpus N   how many GPUs it needs (1), and could use\n"
    "  --types A,B      only on these GPU types\n"
    "  --exclusive      no neighbour on its GPUs\n"
    "  --one-node       all on one node\n"
    "  --nodes N        on so many nodes, as many GPUs on each\n"
    "  --cpus N, --mem-mib N   of its node's CPUs and memory, for each GPU (0)\n"
    "  --priority N     higher goes first (0)\n"
    "  --urgency X      0.01 to 100 (1): an hour of this job's time is worth X times delay_w / 1000\n"
    "                   kWh (delay_w is the site's; 'gogh plan' says it). Above 1 it gets faster\n"
    "                   GPUs and fewer neighbours, below 1 it may take longer where that saves\n"
    "                   energy; in doublings, with priority from 1/16 to 16; with --rate it does\n"
    "                   nothing: a server's time has no price\n"
    "\n"
    "How it runs:\n"
    "  --env NAME[=VALUE]   also this variable; may be given many times. Passed on by itself:\n"
    "                   PATH HOME USER LOGNAME SHELL LANG LC_* PYTHONPATH LD_LIBRARY_PATH\n"
    "                   VIRTUAL_ENV CONDA_*\n"
    "  --cwd DIR        working directory (this one)\n"
    "  --stdout F, --stderr F   files to append to (of the run: 'gogh show' names them); %j is "
    "the\n"
    "                   job's id, %n its name, %r the run\n"
    "  --timeout T      a run that takes longer has failed\n"
    "  --retries N      how often a run that failed is tried again (0)\n"
    "  --checkpoint-signal S   TERM, USR1 or none: how a move is announced (TERM)\n"
    "  --grace T        how long it may take to save its state then\n"
    "\n"
    "  --hold           do not start it before 'gogh release'\n"
    "  --owner NAME     for somebody else (operators only)\n"
    "  --key K          the same key twice is the same job once\n"
    "  --wait           until it ends; the exit status is 0 when it finished, else 1\n" CLIENT_HELP
    "\n"
    "Examples:\n"
    "  gogh submit --workload resnet50 --batch 64 --steps 20000 --deadline 18:00 -- \\\n"
    "      python3 train.py --epochs 10\n"
    "  gogh submit --gpus 2 --one-node --min-throughput 3.5 --wait -- ./train\n"
    "  gogh submit --service --name web --rate 40 --p99 200ms -- python3 server.py\n";

static struct {
    const char *workload, *precision, *descriptor, *name, *kind, *duration, *deadline, *owner, *cwd,
        *out, *err, *timeout, *signal, *grace, *key, *p99, *ttft, *tpot, *load_time, *probe,
        *metrics;
    long batch, gpus, max_gpus, nodes, priority, retries, cpus, mem_mib, max_batch;
    double steps, rate, min_throughput, urgency;
    bool is_exclusive, is_one_node, is_held, waits, is_new, is_service, is_unmoved;
    struct cmd_list types, env;
} given;

/* Those before --env are fields of the API. */
static const struct cmd_option options[] = {
    CMD_TEXT("workload", given.workload),
    CMD_TEXT("precision", given.precision),
    CMD_TEXT("descriptor", given.descriptor),
    CMD_TEXT("name", given.name),
    CMD_TEXT("kind", given.kind),
    CMD_TEXT("duration", given.duration),
    CMD_TEXT("deadline", given.deadline),
    CMD_WHOLE("batch", given.batch, 1, 1e7),
    CMD_FLAG("new-workload", given.is_new),
    CMD_NUMBER("steps", given.steps, 1e-9, 1e15),
    CMD_NUMBER("rate", given.rate, 1e-9, 1e9),
    CMD_NUMBER("min-throughput", given.min_throughput, 0, 1e9),
    CMD_WHOLE("gpus", given.gpus, 1, 4096),
    CMD_WHOLE("max-gpus", given.max_gpus, 1, 4096),
    CMD_WHOLE("priority", given.priority, -1e6, 1e6),
    CMD_NUMBER("urgency", given.urgency, 0.01, 100),
    CMD_FLAG("exclusive", given.is_exclusive),
    CMD_FLAG("one-node", given.is_one_node),
    CMD_WHOLE("nodes", given.nodes, 1, 4096),
    CMD_WORDS("types", given.types),
    CMD_FLAG("hold", given.is_held),
    CMD_TEXT("stdout", given.out),
    CMD_TEXT("stderr", given.err),
    CMD_TEXT("timeout", given.timeout),
    CMD_TEXT("grace", given.grace),
    CMD_TEXT("checkpoint-signal", given.signal),
    CMD_TEXT("owner", given.owner),
    CMD_WHOLE("retries", given.retries, 0, 1e6),
    CMD_WHOLE("cpus", given.cpus, 0, 1e5),
    CMD_WHOLE("mem-mib", given.mem_mib, 0, 1 << 30),
    CMD_FLAG("service", given.is_service),
    CMD_TEXT("p99", given.p99),
    CMD_TEXT("ttft", given.ttft),
    CMD_TEXT("tpot", given.tpot),
    CMD_WHOLE("max-batch", given.max_batch, 1, 65536),
    CMD_TEXT("load-time", given.load_time),
    CMD_FLAG("no-move", given.is_unmoved),
    CMD_TEXT("probe", given.probe),
    CMD_TEXT("metrics", given.metrics),
    CMD_EACH("env", given.env),
    CMD_TEXT("cwd", given.cwd),
    CMD_TEXT("key", given.key),
    CMD_FLAG("wait", given.waits),
    CLIENT_OPTIONS,
};

/* ---- the environment ---- */

static bool is_passed_on(const char *name, size_t len)
{
    static const char *const names[] = { "PATH",       "HOME", "USER",       "LOGNAME",
                                         "SHELL",      "LANG", "PYTHONPATH", "LD_LIBRARY_PATH",
                                         "VIRTUAL_ENV" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
            return true;
    return strncmp(name, "LC_", 3) == 0 || strncmp(name, "CONDA_", 6) == 0;
}

/* A value that is no UTF-8 cannot be told in JSON. */
static int put_variable(json_t *env, const char *name, size_t len, const char *value, struct err *e)
{
    json_t *text = json_string(value);
    char key[256];

    if (len == 0 || len >= sizeof key)
        return err_set(e, EINVAL, "--env wants NAME or NAME=VALUE");
    snprintf(key, sizeof key, "%.*s", (int)len, name);
    if (text == NULL)
        return err_set(e, EINVAL,
                       "the variable %s is no UTF-8; unset it, or give another with "
                       "--env",
                       key);
    return json_object_set_new(env, key, text) == 0 ? 0 : err_set(e, EINVAL, "--env: bad name");
}

int submit_environment(json_t *body, const struct cmd_list *also, struct err *e)
{
    extern char **environ;
    json_t *env = json_object();
    int rc = 0;

    json_object_set_new(body, "env", env);
    for (char **v = environ; *v != NULL && rc == 0; v++) {
        size_t len = strcspn(*v, "=");

        if (is_passed_on(*v, len) && (*v)[len] == '=')
            rc = put_variable(env, *v, len, *v + len + 1, e);
    }
    for (int i = 0; also != NULL && i < also->n && rc == 0; i++) {
        const char *text = also->words[i].at;
        size_t len = strcspn(text, "=");
        const char *value = text[len] == '=' ? text + len + 1 : getenv(text);

        if (value == NULL)
            return err_set(e, EINVAL, "--env %s: it is not set here; give --env %s=VALUE", text,
                           text);
        rc = put_variable(env, text, len, value, e);
    }
    return rc;
}

/* ---- the body ---- */

/* A field of the body, of an option's text. */
typedef int put_f(json_t *body, const char *key, const char *text, struct arena *a, struct err *e);

static int put_text(json_t *body, const char *key, const char *text, struct arena *a, struct err *e)
{
    (void)a;
    return json_object_set_new(body, key, json_string(text)) == 0
               ? 0
               : err_set(e, EINVAL, "%s: '%s' is no UTF-8", key, text);
}

static json_t *number_json(double v)
{
    return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

static int put_duration(json_t *body, const char *key, const char *text, struct arena *a,
                        struct err *e)
{
    double s = 0;
    int rc = when_duration(text, &s, e);

    (void)a;
    return rc < 0 ? rc : json_object_set_new(body, key, number_json(s));
}

static int put_time(json_t *body, const char *key, const char *text, struct arena *a, struct err *e)
{
    double s = 0;

    (void)a;
    if (when_time(text, when_now(), true, &s, e) < 0)
        return err_prefix(e, "--%s", key);
    return json_object_set_new(body, key, number_json(s));
}

static int put_object(json_t *body, const char *key, const char *path, struct arena *a,
                      struct err *e)
{
    json_error_t wrong;
    const char *text;
    size_t len;
    json_t *o;

    if (file_read_text(a, path, NULL, 1 << 20, &text, &len, e) < 0)
        return -e->code;
    o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &wrong);
    if (!json_is_object(o)) {
        json_decref(o);
        return err_set(e, EINVAL, "%s:%d: want one JSON object: %s", path, wrong.line, wrong.text);
    }
    return json_object_set_new(body, key, o);
}

/* Files and directories are named from the root: the daemon is elsewhere. */
static int put_file(json_t *body, const char *key, const char *path, struct arena *a, struct err *e)
{
    char *here;
    int rc;

    if (path[0] == '/')
        return put_text(body, key, path, a, e);
    here = getcwd(NULL, 0);
    if (here == NULL)
        return err_set(e, errno, "the working directory: %s", strerror(errno));
    rc = put_text(body, key, *path != '\0' ? arena_printf(a, "%s/%s", here, path) : here, a, e);
    free(here);
    return rc;
}

/* Texts that are not told as they are. */
static const struct {
    const char *option, *key;
    put_f *put;
} forms[] = {
    { "descriptor", "descriptor", put_object },
    { "deadline", "deadline", put_time },
    { "duration", "duration_s", put_duration },
    { "timeout", "timeout_s", put_duration },
    { "grace", "grace_s", put_duration },
    { "stdout", "stdout", put_file },
    { "stderr", "stderr", put_file },
    { "p99", "p99_s", put_duration },
    { "ttft", "ttft_s", put_duration },
    { "tpot", "tpot_s", put_duration },
    { "load-time", "load_time_s", put_duration },
};

/* The API has '_' where options have '-'. */
static const char *key_of(struct arena *a, const char *option)
{
    char *key = arena_strdup(a, option);

    for (char *p = key; *p != '\0'; p++)
        *p = *p == '-' ? '_' : *p;
    return key;
}

static json_t *list_json(const struct cmd_list *l)
{
    json_t *list = json_array();

    for (int i = 0; i < l->n; i++)
        json_array_append_new(list, json_stringn(l->words[i].at, l->words[i].len));
    return list;
}

static int put_option(json_t *body, const struct cmd_option *o, struct arena *a, struct err *e)
{
    const char *key = key_of(a, o->name);

    switch (o->kind) {
    case OPTION_FLAG:
        return json_object_set_new(body, key, json_true());
    case OPTION_WHOLE:
        return json_object_set_new(body, key, json_integer(*(const long *)o->out));
    case OPTION_NUMBER:
        return json_object_set_new(body, key, number_json(*(const double *)o->out));
    case OPTION_LIST:
    case OPTION_EACH:
        return json_object_set_new(body, key, list_json(o->out));
    case OPTION_TEXT:
        break;
    }
    for (int i = 0; i < CMD_COUNT(forms); i++)
        if (strcmp(forms[i].option, o->name) == 0)
            return forms[i].put(body, forms[i].key, *(const char **)o->out, a, e);
    return put_text(body, key, *(const char **)o->out, a, e);
}

static int put_job(json_t *body, const struct cmd_call *call, struct err *e)
{
    json_t *argv = json_array();
    int rc = 0;

    json_object_set_new(body, "argv", argv);
    for (const char **word = call->words; *word != NULL; word++)
        if (json_array_append_new(argv, json_string(*word)) < 0)
            return err_set(e, EINVAL, "the command's word '%s' is no UTF-8", *word);
    for (int i = 0; options[i].out != &given.env && rc == 0; i++)
        if (call->is_given[i])
            rc = put_option(body, &options[i], call->arena, e);
    if (rc == 0)
        rc = put_file(body, "cwd", given.cwd != NULL ? given.cwd : "", call->arena, e);
    return rc == 0 ? submit_environment(body, &given.env, e) : rc;
}

/* ---- waiting ---- */

#define WAIT_FIRST_S 0.2
#define WAIT_MOST_S 5.0

bool submit_has_ended(const json_t *job)
{
    const char *state = json_text_of(job, "state");

    return state != NULL && (strcmp(state, "finished") == 0 || strcmp(state, "failed") == 0 ||
                             strcmp(state, "cancelled") == 0);
}

void submit_rest(double s)
{
    struct timespec t = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9) };

    nanosleep(&t, NULL);
}

/* Ask again and again, ever more seldom; a daemon that restarts is waited for. Each question has
 * a client of its own, so that a week of them is not kept in memory.
 */
static int wait_for(const char *path, json_t **job, struct err *e)
{
    double pause_s = WAIT_FIRST_S;

    for (int n_lost = 0;;) {
        struct client *c = NULL;
        json_t *answer = NULL;
        int rc = client_open(&c, e);

        if (rc == 0)
            rc = client_get(c, path, &answer, e);
        if (rc == 0)
            *job = json_incref(answer);
        client_close(c);
        n_lost = rc == 0 ? 0 : n_lost + 1;
        if (rc < 0 && ((rc != -ENOTCONN && rc != -EAGAIN) || n_lost > 60))    // five minutes
            return rc;
        if (rc == 0 && submit_has_ended(*job))
            return 0;
        if (rc == 0)
            json_decref(*job);
        *job = NULL;
        submit_rest(pause_s);
        pause_s = fmin(1.5 * pause_s, WAIT_MOST_S);
    }
}

static int tell_end(struct arena *a, const char *path, struct err *e)
{
    json_t *job = NULL;
    int rc = wait_for(path, &job, e);

    if (rc < 0)
        return rc;
    bool is_done = strcmp(json_text_of(job, "state"), "finished") == 0;
    if (client_options.is_json) {
        json_print(json_incref(job), JSON_COMPACT);
    } else {
        const char *reason = json_text_of(job, "reason");

        printf("job %s (%s) %s%s%s\n", cell_text(a, job, "id"), cell_text(a, job, "name"),
               cell_text(a, job, "state"), reason != NULL ? ": " : "",
               reason != NULL ? cell_clean(a, reason) : "");
    }
    json_decref(job);
    return is_done ? EXIT_DONE : EXIT_NO;
}

/* ---- the command ---- */

/* The daemon names fields of its API; here they are options. */
static void put_in_options(struct arena *a, struct err *e)
{
    static const char *const words[][2] = {
        { "\"new_workload\": true", "--new-workload" },
        { "'grace_s'", "--grace" },
        { "min_throughput", "--min-throughput" },
        { "duration_s", "--duration" },
        { "\"service\": true", "--service" },
        { "p99_s", "--p99" },
        { "ttft_s", "--ttft" },
        { "tpot_s", "--tpot" },
        { "max_gpus", "--max-gpus" },
        { "max_batch", "--max-batch" },
        { "load_time_s", "--load-time" },
        { "no_move", "--no-move" },
    };
    const char *text = arena_strdup(a, e->text);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at;

        while ((at = strstr(text, words[i][0])) != NULL)
            text = arena_printf(a, "%.*s%s%s", (int)(at - text), text, words[i][1],
                                at + strlen(words[i][0]));
    }
    snprintf(e->text, sizeof e->text, "%s", text);
}

static int submit(struct client *c, const json_t *body, struct err *e)
{
    struct arena *a = client_arena(c);
    const char *key = given.key != NULL ? given.key : client_key(c);
    json_t *job;

    if (client_post(c, "/v1/jobs", body, key, &job, e) < 0) {
        put_in_options(a, e);
        return -e->code;
    }
    if (client_options.is_json && !given.waits)
        printf("%s\n", client_text(c));
    else if (!client_options.is_json)
        printf("%s %s (%s) submitted\n", given.is_service ? "service" : "job",
               cell_text(a, job, "id"), cell_text(a, job, "name"));
    if (!given.waits)
        return 0;
    fflush(stdout);
    return tell_end(a, arena_printf(a, "/v1/jobs/%s", cell_text(a, job, "id")), e);
}

static int check(const struct cmd_call *call)
{
    return call->words[0] != NULL ? 0 : cmd_misuse(call->cmd, "which command? put it behind '--'");
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    json_t *body = json_object();
    int rc = put_job(body, call, e);

    if ((given.rate > 0 || given.is_service) && given.urgency > 0)
        fprintf(stderr, "gogh: a server's time has no price: --urgency does nothing with --rate; "
                        "what keeping its rate is worth goes by --priority\n");
    if (rc == 0)
        rc = submit(c, body, e);
    json_decref(body);
    return rc;
}

const struct cmd cmd_submit = {
    .name = "submit",
    .synopsis = "submit [OPTIONS] -- COMMAND [ARGUMENTS]",
    .summary = "hand a job over to the daemon",
    .help = help,
    CMD_OPTIONS(options),
    .takes_command = true,
    .check = check,
    .run = client_run,
    .ask = ask,
};

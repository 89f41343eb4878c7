/* commission.c - `gogh commission`: the few measurements that teach a site most. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "cli/client/client.h"
#include "cli/commission/commission.h"
#include "cli/commission/programs.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "cli/when.h"
#include "daemon/submit/commission.h"
#include "estimate/estimate.h"
#include "estimate/model/model.h"
#include "nn/gp.h"
#include "store/store.h"

static const char help[] =
    "How jobs slow each other down on your GPUs cannot be guessed: measure it once, on the first "
    "day.\n"
    "Names the few pairs of programs, and the GPU types, that would teach most; with --run they "
    "are\n"
    "run as jobs of one whole GPU, each program alone and then both together, and what they show\n"
    "counts from the next decision on. Says what they changed.\n"
    "\n"
    "  --pairs N        at most so many measurements (10)\n"
    "  --run            run them; at a terminal you are asked\n"
    "  --minutes M      all of it takes at most so long (30; from 2 on), waiting included\n"
    "  --priority N     of the jobs (-1: behind what people submit, which has 0)\n"
    "  --programs FILE  your own programs, a line each: workload=NAME [batch=N] [precision=P]\n"
    "                   [new=yes] -- COMMAND; they must report their steps. new=yes: the name is\n"
    "                   new, and no slip. Without: benchmarks that ship\n"
    "  --dir DIR        results and errors (commission-results); nodes must see it by this name\n"
    "  --db DB          name only, of a store without its daemon\n"
    "  --cluster FILE   with --db: only the GPU types of this cluster file\n" CLIENT_HELP "\n"
    "Examples:\n"
    "  gogh commission\n"
    "  gogh commission --run --minutes 20 --dir /shared/commission\n"
    "  gogh commission --programs ours.programs --pairs 6 --run\n";

/* Behind everybody who says nothing of it. Not lower: with five steps less a job waits until it is
 * worth its energy, which on the slowest GPUs of a site is never (optimize/model/lower_jobs.c).
 */
#define PRIORITY_USUAL (-1)

#define MINUTES_LEAST 2    // one pair takes 75 s (measure.c), and waits for its turn

static struct {
    long pairs, priority;
    double minutes;
    bool is_run;
    const char *programs, *dir, *db, *cluster;
} given = { .pairs = 10, .priority = PRIORITY_USUAL, .minutes = 30, .dir = "commission-results" };

static const struct cmd_option options[] = {
    CMD_WHOLE("pairs", given.pairs, 1, 50),
    CMD_FLAG("run", given.is_run),
    CMD_NUMBER("minutes", given.minutes, MINUTES_LEAST, 1e5),
    CMD_WHOLE("priority", given.priority, -1e6, 1e6),
    CMD_TEXT("programs", given.programs),
    CMD_TEXT("dir", given.dir),
    CMD_TEXT("db", given.db),
    CMD_TEXT("cluster", given.cluster),
    CLIENT_OPTIONS,
};

static int find_programs(struct arena *a, struct programs *out, struct err *e)
{
    return given.programs != NULL ? programs_read(a, given.programs, out, e)
                                  : programs_shipped(a, out, e);
}

static json_t *question(const struct programs *p)
{
    return json_pack("{s:o, s:I, s:b}", "programs", programs_json(p), "pairs",
                     (json_int_t)given.pairs, "own", p->are_own);
}

/* The names that the site has for the programs' workloads, which it tells in their order. */
static int take_names(struct arena *a, struct programs *p, const json_t *answer, struct err *e)
{
    const json_t *list = json_object_get(answer, "programs");

    for (int i = 0; i < p->n; i++) {
        p->list[i].name = arena_strdup(a, json_text_of(json_array_get(list, (size_t)i), "name"));
        if (p->list[i].name == NULL)
            return err_set(e, EREMOTEIO, "the daemon does not say what it calls '%.60s'",
                           p->list[i].workload);
    }
    return 0;
}

/* The daemon counts programs and names fields of its API: here they are lines of a file. */
static void put_in_lines(struct arena *a, const struct programs *p, struct err *e)
{
    static const char field[] = "\"new_workload\": true";
    const char *text = arena_strdup(a, e->text), *at = strstr(text, field);
    char *end = NULL;

    if (at != NULL)
        text = arena_printf(a, "%.*snew=yes in its line%s", (int)(at - text), text,
                            at + strlen(field));
    if (strncmp(text, "programs[", 9) == 0) {
        long i = strtol(text + 9, &end, 10);

        if (i >= 0 && i < p->n && p->list[i].line > 0 && *end == ']')
            text = arena_printf(a, "%s:%d%s", given.programs, p->list[i].line, end + 1);
    }
    snprintf(e->text, sizeof e->text, "%s", text);
}

static void print_unknown(struct arena *a, const json_t *types)
{
    const char *names = "";

    for (size_t i = 0; i < json_array_size(types); i++)
        names = arena_printf(a, "%s%s%s", names, i > 0 ? ", " : "",
                             cell_clean(a, json_string_value(json_array_get(types, i))));
    if (*names)
        printf("Left out, as nothing is known of their memory and so of what fits: %s. Describe "
               "them by 'gputype' lines.\n",
               names);
}

static void print_table(struct arena *a, const json_t *picks)
{
    struct table t;

    table_init(&t, a, ">NO|GPU|PROGRAM OF|BESIDE|WHY");
    for (size_t i = 0; i < json_array_size(picks); i++) {
        table_put(&t, arena_printf(a, "%zu", i + 1));
        table_put_fields(&t, json_array_get(picks, i), "gpu workload beside why");
    }
    table_print(&t, stdout);
}

/* At once, also into a file: what is run afterwards tells of itself. */
static void print_picks(struct arena *a, const json_t *answer)
{
    const json_t *picks = json_object_get(answer, "measurements");

    if (json_array_size(picks) > 0)
        print_table(a, picks);
    else
        printf("Nothing is left to measure with these programs that would teach anything.\n");
    print_unknown(a, json_object_get(answer, "unknown_types"));
    fflush(stdout);
}

/* ---- without a daemon ---- */

/* The types that there are: those of the cluster file, or all that the store knows. */
static int find_types(struct arena *a, struct catalog *c, const bool **out, int *theta,
                      struct err *e)
{
    struct cluster cluster = { 0 };
    int index, rc = 0;

    *theta = 2;
    if (given.cluster != NULL)
        rc = cmd_cluster(a, given.cluster, &cluster, e);
    for (int i = 0; given.cluster != NULL && rc == 0 && i < cluster.n_types; i++)
        rc = catalog_add_type(c, &cluster.types[i], &index, e);
    if (rc < 0)
        return rc;
    bool *is_there = ARENA_ARRAY(a, bool, (size_t)c->n_types);
    for (int i = 0; i < c->n_types; i++)
        is_there[i] = given.cluster == NULL;
    for (int i = 0; given.cluster != NULL && i < cluster.n_types; i++)
        is_there[catalog_find_type(c, cluster.types[i].name)] = true;
    if (given.cluster != NULL)
        *theta = cluster.settings.theta;
    *out = is_there;
    return 0;
}

static int answer_offline(struct arena *a, struct catalog *c, const struct model *m,
                          const json_t *body, json_t **out, struct err *e)
{
    struct estimator est;
    struct commission_site site = { .catalog = c, .estimator = &est };
    int rc = find_types(a, c, &site.is_there, &site.theta, e);

    if (rc < 0)
        return rc;
    estimator_init(&est, c, 1.0);
    estimate_use(&est, m, ESTIMATOR_GOGH);    // as a daemon that was told nothing
    estimate_refresh(&est);
    *out = commission_answer(a, &site, (json_t *)body, e);
    estimator_release(&est);
    return *out != NULL ? 0 : -e->code;
}

static int name_offline(const struct cmd_call *call, struct err *e)
{
    struct programs programs;
    struct catalog c;
    struct store *store = NULL;
    struct model *m = NULL;
    json_t *body = NULL, *answer = NULL;
    int rc = find_programs(call->arena, &programs, e);

    nn_init();
    catalog_init(&c);
    if (rc == 0)
        rc = store_open(given.db, STORE_READ, &store, e);
    if (rc == 0)
        rc = catalog_load(&c, store, e);
    c.store = NULL;    // whatever is added for the question stays out of the store
    if (rc == 0)
        rc = model_open(NULL, store, &m, e);
    if (rc == 0) {
        body = question(&programs);
        rc = answer_offline(call->arena, &c, m, body, &answer, e);
        if (rc < 0)
            put_in_lines(call->arena, &programs, e);
    }
    if (rc == 0 && client_options.is_json)
        json_print(json_incref(answer), JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    else if (rc == 0)
        print_picks(call->arena, answer);
    json_decref(body);
    json_decref(answer);
    model_destroy(m);
    catalog_release(&c);
    store_close(store);
    return rc;
}

/* ---- with one ---- */

/* Is there somebody to ask? */
static bool may_ask(void)
{
    return !client_options.is_json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* What the time is too short for. */
static void tell_left_out(const struct measure_times *t, size_t n)
{
    if ((size_t)t->n < n)
        fprintf(stderr,
                "%zu of %zu are left out: --minutes %g are too short for all on the GPUs that are "
                "idle now.\n",
                n - (size_t)t->n, n, given.minutes);
}

static bool is_wanted(struct arena *a, const struct measure_times *t)
{
    char word[16];

    if (given.is_run)
        return true;
    printf("\nRun %s now, about %s on idle GPUs? [y/N] ", t->n == 1 ? "it" : "them",
           when_text(a, t->all_s));
    fflush(stdout);
    return fgets(word, sizeof word, stdin) != NULL && (word[0] == 'y' || word[0] == 'Y');
}

static bool are_named(const json_t *list, bool with_belief)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        if (json_text_of(one, "gpu") == NULL || json_text_of(one, "workload") == NULL ||
            (with_belief &&
             (isnan(json_number_of(one, "mean")) || isnan(json_number_of(one, "sd")))))
            return false;
    }
    return json_is_array(list);
}

/* Whatever is read of an answer later on is there. */
static int check_answer(const json_t *answer, struct err *e)
{
    if (are_named(json_object_get(answer, "measurements"), false) &&
        are_named(json_object_get(answer, "targets"), true))
        return 0;
    return err_set(e, EREMOTEIO,
                   "the daemon's answer is not that of POST /v1/commission; is it of another "
                   "version?");
}

/* What is believed of the same targets now. */
static int believe_again(struct client *c, const json_t *targets, json_t **out, struct err *e)
{
    json_t *list = json_deep_copy(targets), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        json_object_del(one, "mean");
        json_object_del(one, "sd");
    }
    json_t *body = json_pack("{s:[], s:i, s:o}", "programs", "pairs", 0, "targets", list);
    int rc = client_post(c, "/v1/commission", body, NULL, out, e);
    json_decref(body);
    return rc < 0 ? rc : check_answer(*out, e);
}

static int tell_changes(struct client *c, const json_t *before, json_t *told, struct err *e)
{
    json_t *again;
    int rc = believe_again(c, json_object_get(before, "targets"), &again, e);

    if (rc < 0)
        return rc;
    json_t *changes =
        changes_between(json_object_get(before, "targets"), json_object_get(again, "targets"));
    if (client_options.is_json) {
        json_print(json_pack("{s:O, s:O}", "measurements", told, "changes", changes),
                   JSON_COMPACT | JSON_REAL_PRECISION(6));
    } else {
        printf("\n");
        changes_print(client_arena(c), changes);
    }
    json_decref(changes);
    return 0;
}

/* Results are named from the root: the nodes are elsewhere. */
static int find_dir(struct arena *a, const char **out, struct err *e)
{
    char *here = getcwd(NULL, 0);

    if (here == NULL)
        return err_set(e, errno, "the working directory: %s", strerror(errno));
    *out = given.dir[0] == '/' ? given.dir : arena_printf(a, "%s/%s", here, given.dir);
    free(here);
    return 0;
}

static int measure(struct client *c, struct measuring *m, const struct measure_times *times,
                   const json_t *before, struct err *e)
{
    json_t *told = NULL;
    struct err ended = { 0 };
    int rc = find_dir(client_arena(c), &m->dir, e);

    if (rc < 0)
        return rc;
    int n = measure_all(c, m, times, &told, &ended);
    if (told != NULL && (n > 0 || client_options.is_json))
        rc = tell_changes(c, before, told, e);
    json_decref(told);
    if (n < 0) {
        *e = ended;
        return n;
    }
    if (n == 0 && rc == 0)
        return err_set(e, EIO, "nothing was measured; %s has what the programs said", m->dir);
    return rc;
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    struct arena *a = client_arena(c);
    struct programs programs;
    struct measure_times times;
    json_t *answer = NULL;
    int rc = find_programs(a, &programs, e);

    (void)call;
    if (rc < 0)
        return rc;
    json_t *body = question(&programs);
    rc = client_post(c, "/v1/commission", body, NULL, &answer, e);
    json_decref(body);
    if (rc < 0)
        put_in_lines(a, &programs, e);
    else
        rc = check_answer(answer, e);
    if (rc == 0 && client_options.is_json && !given.is_run)
        printf("%s\n", client_text(c));
    else if (rc == 0 && !client_options.is_json)
        print_picks(a, answer);
    const json_t *picks = json_object_get(answer, "measurements");
    if (rc < 0 || json_array_size(picks) == 0 || !(given.is_run || may_ask()))
        return rc;
    struct measuring m = { .programs = &programs,
                           .described = json_object_get(answer, "programs"),
                           .picks = picks,
                           .minutes = given.minutes,
                           .priority = given.priority };
    rc = take_names(a, &programs, answer, e);
    if (rc == 0)
        rc = measure_plan(c, &m, &times, e);
    if (rc < 0)
        return rc;
    tell_left_out(&times, json_array_size(picks));
    if (!is_wanted(a, &times))
        return 0;
    return measure(c, &m, &times, answer, e);
}

static int check(const struct cmd_call *call)
{
    if (given.db == NULL && given.cluster != NULL)
        return cmd_misuse(call->cmd, "--cluster is for --db; a daemon knows its own GPUs");
    if (given.db != NULL && given.is_run)
        return cmd_misuse(call->cmd, "--run needs the daemon; leave out --db");
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    return given.db != NULL ? name_offline(call, e) : client_run(call, e);
}

const struct cmd cmd_commission = {
    .name = "commission",
    .synopsis = "commission [--pairs N] [--run] [--minutes M] [--programs FILE] [--dir DIR] "
                "[--db DB [--cluster FILE]] [--json]",
    .summary = "the few measurements that teach a site most, named or run",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
    .ask = ask,
};

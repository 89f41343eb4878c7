/* cmd_simulate.c - `gogh simulate`: replay a trace on a cluster under one policy. */
#include "cli/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/progress.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"
#include "cli/offline/learned.h"
#include "nn/gauss.h"
#include "optimize/policy/solver.h"
#include "refine/model.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/trace/trace.h"
#include "sim/world/world.h"
#include "store/store.h"

static const char help[] =
    "Replay a trace of jobs on a simulated cluster under one policy and report energy,\n"
    "promises and times. The same inputs and seed give the same figures.\n"
    "\n"
    "  --cluster FILE    nodes and GPUs (docs/formats/cluster.md)\n"
    "  --trace FILE      jobs and their arrivals (docs/formats/trace.md)\n"
    "  --truth DB        take the store's measurements as ground truth; without it the\n"
    "                    built-in tables are, off by hidden factors drawn from the seed\n"
    "  --policy NAME     gogh (the default), gogh-oracle (which knows the truth), watts, gavel,\n"
    "                    pack, eaco, greedy, fifo-promise, fifo-fastest, fifo-random or fifo-first\n"
    "  --seed N          chance: measurement noise, random policies, hidden factors; 1\n"
    "  --known DB        what the policy knows before it starts; without it, nothing\n"
    "  --model M         what the policy has learned before it starts: 'none' (the default: the\n"
    "                    roofline), 'pretrained', 'site' (of the store of --known), or a file of\n"
    "                    'gogh train'. The pretrained one has seen Gavel's measurements: where\n"
    "                    these are the truth, it knows the answers\n"
    "  --without LEVERS  take these away from the policy: types, sharing, moving, sleep, limits or\n"
    "                    joules, several with commas between them; not every policy has each\n"
    "  --learn           train anew on the way, on what was measured by then\n"
    "  --reference TYPE  the GPU that work is counted in; p100\n"
    "  --until S         stop the clock here instead of at the last job's end\n"
    "  --jobs-out CSV    also write how each job fared\n"
    "  --journal DB      keep every event in a new store, for 'gogh replay'; a disk write an event\n"
    "  --no-timing       leave out wall times, so that the output repeats byte for byte\n"
    "  --json            as JSON\n"
    "\n"
    "Examples:\n"
    "  gogh simulate --cluster docs/examples/small.cluster --trace docs/examples/mixed.trace\n"
    "  gogh simulate --cluster docs/examples/reference.cluster --trace t.trace \\\n"
    "      --truth gavel.db --policy fifo-fastest --seed 11 --json\n"
    "  gogh simulate --cluster docs/examples/small.cluster --trace docs/examples/mixed.trace \\\n"
    "      --model pretrained --learn\n";

struct options {
    const char *cluster, *trace, *truth, *policy, *known, *reference, *jobs_out, *journal, *model;
    const char *without;
    unsigned levers;    // the same as bits
    long seed;
    double until_s;
    bool is_json, has_no_timing, is_learning;
};

/* "sharing,moving" as bits. */
static int parse_levers(const char *text, unsigned *out)
{
    *out = 0;
    for (const char *p = text; p != NULL;) {
        size_t len = strcspn(p, ",");
        char name[16] = "";

        if (len < sizeof name)
            memcpy(name, p, len);
        int lever = lever_by_name(name);
        if (lever < 0)
            return cmd_misuse(&cmd_simulate,
                              "--without %s: want some of types, sharing, moving, sleep, limits, "
                              "joules, with commas between them",
                              text);
        *out |= 1U << lever;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    return CMD_GO_ON;
}

/* Is there such a policy? 'bound' is none, and known from 'gogh study'. */
static int check_policy(const char *name)
{
    struct solver s;

    if (strcmp(name, "bound") == 0)
        return cmd_misuse(&cmd_simulate, "bound is no policy but the least energy that any could "
                                         "use: only 'gogh study --policy bound' has it");
    if (strcmp(name, "gogh-oracle") == 0 || solver_by_name(name, 0, &s, NULL) == 0)
        return CMD_GO_ON;
    return cmd_misuse(&cmd_simulate,
                      "no policy '%s'; there are gogh, gogh-oracle, watts, gavel, pack, eaco, "
                      "greedy, fifo-promise, fifo-fastest, fifo-random, fifo-first",
                      name);
}

/* Does the policy go by this lever? All do by the world's sleep; the fifos by limits besides. */
static bool has_lever(const char *policy, enum lever l)
{
#define L(lever) (1U << LEVER_##lever)
    static const struct {
        const char *policy;
        unsigned levers;
    } more[] = {
        { "gogh", L(TYPES) | L(SHARING) | L(MOVING) | L(LIMITS) | L(JOULES) },
        { "gogh-oracle", L(TYPES) | L(SHARING) | L(MOVING) | L(LIMITS) | L(JOULES) },
        { "watts", L(TYPES) | L(SHARING) | L(MOVING) | L(LIMITS) },
        { "gavel", L(SHARING) | L(MOVING) | L(LIMITS) },
        { "eaco", L(SHARING) | L(MOVING) | L(LIMITS) },
        { "pack", L(SHARING) | L(LIMITS) },
        { "greedy", L(SHARING) | L(MOVING) | L(LIMITS) },
    };
    unsigned levers = L(LIMITS);

    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (strcmp(more[i].policy, policy) == 0)
            levers = more[i].levers;
    }
    return ((levers | L(SLEEP)) >> l & 1) != 0;
#undef L
}

static void warn_of_levers(const struct options *o)
{
    for (int l = 0; l < LEVERS; l++) {
        if ((o->levers >> l & 1) != 0 && !has_lever(o->policy, (enum lever)l))
            fprintf(stderr, "gogh: %s does not use %s: nothing is taken away\n", o->policy,
                    lever_name((enum lever)l));
    }
}

static int parse_options(int argc, char **argv, struct options *o)
{
    const struct cmd_option options[] = {
        { .name = "cluster", .kind = OPTION_TEXT, .out = &o->cluster },
        { .name = "trace", .kind = OPTION_TEXT, .out = &o->trace },
        { .name = "truth", .kind = OPTION_TEXT, .out = &o->truth },
        { .name = "policy", .kind = OPTION_TEXT, .out = &o->policy },
        { .name = "seed", .kind = OPTION_WHOLE, .out = &o->seed, .high = CMD_SEED_MAX },
        { .name = "known", .kind = OPTION_TEXT, .out = &o->known },
        { .name = "model", .kind = OPTION_TEXT, .out = &o->model },
        { .name = "without", .kind = OPTION_TEXT, .out = &o->without },
        { .name = "learn", .kind = OPTION_FLAG, .out = &o->is_learning },
        { .name = "reference", .kind = OPTION_TEXT, .out = &o->reference },
        { .name = "until", .kind = OPTION_NUMBER, .out = &o->until_s, .low = 1e-3, .high = 1e12 },
        { .name = "jobs-out", .kind = OPTION_TEXT, .out = &o->jobs_out },
        { .name = "journal", .kind = OPTION_TEXT, .out = &o->journal },
        { .name = "no-timing", .kind = OPTION_FLAG, .out = &o->has_no_timing },
        { .name = "json", .kind = OPTION_FLAG, .out = &o->is_json },
    };

    *o = (struct options){ .policy = "gogh", .seed = 1, .model = "none" };
    int status = cmd_parse(&cmd_simulate, argc, argv, options, CMD_COUNT(options), NULL, 0);
    if (status != CMD_GO_ON)
        return status;
    if (o->cluster == NULL)
        return cmd_misuse(&cmd_simulate, "say on which cluster: --cluster FILE");
    if (o->trace == NULL)
        return cmd_misuse(&cmd_simulate, "say which jobs: --trace FILE");
    if (o->model[0] == '\0')
        return cmd_misuse(&cmd_simulate, "--model wants none, pretrained, site or a file");
    status = check_policy(o->policy);
    if (status == CMD_GO_ON)
        status = parse_levers(o->without, &o->levers);
    if (status == CMD_GO_ON)
        warn_of_levers(o);
    return status;
}

/* ---- output ---- */

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static void put_gap(json_t *j, const struct sim_result *r)
{
    const struct plan_gap *mean = &r->gap_mean, *worst = &r->gap_worst;

    json_object_set_new(j, "gap_mean_w", number(mean->watts));
    json_object_set_new(j, "gap_worst_w", number(worst->watts));
    json_object_set_new(j, "gap_mean_ratio", number(mean->ratio));
    json_object_set_new(j, "gap_worst_ratio", number(worst->ratio));
    json_object_set_new(j, "gap_mean_varying_ratio", number(mean->varying_ratio));
    json_object_set_new(j, "gap_worst_varying_ratio", number(worst->varying_ratio));
}

static int print_json(const struct options *o, const struct cluster_settings *set,
                      const struct sim_result *r)
{
    const double none = NAN;
    json_t *j = json_pack(
        "{s:s, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I,"
        " s:o, s:o}",
        "policy", o->policy, "seed", (json_int_t)o->seed, "jobs", r->n_jobs, "finished",
        r->n_finished, "failed", r->n_failed, "energy_kwh", number(r->energy_j / 3.6e6),
        "promise_attainment", number(r->promise_attainment), "mean_jct_s", number(r->mean_jct_s),
        "p95_jct_s", number(r->p95_jct_s), "makespan_s", number(r->makespan_s),
        "allocation_efficiency", number(r->allocation_efficiency), "work_s", number(r->work_s),
        "gpu_s", number(r->gpu_s), "moves", (json_int_t)r->n_moves, "decisions",
        (json_int_t)r->n_decisions, "fallbacks", (json_int_t)r->n_fallbacks, "events",
        (json_int_t)r->n_events, "measurements", (json_int_t)r->n_measurements, "decision_p50_s",
        number(o->has_no_timing ? none : r->decision_p50_s), "decision_p99_s",
        number(o->has_no_timing ? none : r->decision_p99_s));

    json_object_set_new(j, "power_model",
                        json_string(power_model_name((enum power_model)set->power_model)));
    if (o->without != NULL)
        json_object_set_new(j, "without", json_string(o->without));
    put_gap(j, r);
    json_object_set_new(j, "repricings", json_integer(r->n_repricings));
    json_object_set_new(j, "repricing_s", number(o->has_no_timing ? none : r->repricing_s));
    json_object_set_new(j, "prediction_error", number(r->prediction_error));
    json_object_set_new(j, "coverage90", number(r->coverage90));
    json_t *waiting = json_object();
    for (int why = WAIT_NOT + 1; why < WAIT_REASONS; why++)
        if (r->n_waiting[why] > 0)
            json_object_set_new(waiting, wait_reason_name((enum wait_reason)why),
                                json_integer(r->n_waiting[why]));
    json_object_set_new(j, "waiting", waiting);
    if (o->is_learning)
        json_object_set_new(j, "models", json_integer(r->n_models));
    json_dumpf(j, stdout, JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(j);
    return cmd_done();
}

static void print_line(const char *what, double v, const char *unit)
{
    if (isfinite(v))
        printf("%-24s %12.6g %s\n", what, v, unit);
    else
        printf("%-24s %12s\n", what, "-");
}

static void print_waiting(const struct sim_result *r)
{
    for (int why = WAIT_NOT + 1; why < WAIT_REASONS; why++)
        if (r->n_waiting[why] > 0)
            printf("%-24s %12d for %s\n", "waiting", r->n_waiting[why],
                   wait_reason_name((enum wait_reason)why));
}

static int print_table(const struct options *o, const struct sim_result *r)
{
    printf("%-24s %12s%s%s (seed %ld)\n", "policy", o->policy,
           o->without != NULL ? " without " : "", o->without != NULL ? o->without : "", o->seed);
    printf("%-24s %12d of %d%s\n", "finished", r->n_finished, r->n_jobs,
           r->n_failed > 0 ? ", some failed" : "");
    print_waiting(r);
    print_line("energy", r->energy_j / 3.6e6, "kWh");
    print_line("work done", r->work_s, "units (seconds alone on the reference GPU)");
    print_line("energy per work", r->energy_j / r->work_s, "joules per unit of work");
    print_line("promise attainment", 100 * r->promise_attainment, "%");
    print_line("mean JCT", r->mean_jct_s, "s");
    print_line("p95 JCT", r->p95_jct_s, "s");
    print_line("makespan", r->makespan_s, "s");
    print_line("allocation efficiency", r->allocation_efficiency, "work per GPU-second");
    printf("%-24s %12ld\n", "moves", r->n_moves);
    printf("%-24s %12ld (%ld by the fallback)\n", "decisions", r->n_decisions, r->n_fallbacks);
    print_line("gap, mean", 100 * r->gap_mean.ratio, "% of the plan's cost, to the bound");
    print_line("gap, worst", 100 * r->gap_worst.ratio, "%");
    printf("%-24s %12ld\n", "prices found anew", r->n_repricings);
    printf("%-24s %12ld\n", "measurements", r->n_measurements);
    print_line("prediction error", 100 * r->prediction_error, "% of the speed, before learning it");
    print_line("inside 90 % intervals", 100 * r->coverage90, "%");
    if (o->is_learning)
        printf("%-24s %12ld that won\n", "models learned", r->n_models);
    printf("%-24s %12ld\n", "events", r->n_events);
    if (!o->has_no_timing) {
        print_line("decision, median", 1e3 * r->decision_p50_s, "ms");
        print_line("decision, 99 %", 1e3 * r->decision_p99_s, "ms");
        print_line("finding prices anew", r->repricing_s, "s in all");
    }
    return cmd_done();
}

static void put_field(struct buf *b, double v)
{
    if (isnan(v))
        buf_puts(b, ",");
    else
        buf_printf(b, ",%.15g", v);
}

static void put_quoted(struct buf *b, const char *text)
{
    buf_puts(b, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            buf_puts(b, "\"");
        buf_append(b, text, 1);
    }
    buf_puts(b, "\"");
}

static int write_jobs(const struct sim *s, const struct trace *t, const char *path, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, (size_t)1 << 30);
    buf_puts(
        &b,
        "job,workload,arrival_s,first_start_s,end_s,finished,steps_done,work_s,kept_s,reason\n");
    for (int i = 0; i < t->n_jobs; i++) {
        struct world_fate f = { .first_s = NAN, .end_s = NAN };

        sim_job_fate(s, i, &f);
        put_quoted(&b, t->jobs[i].name);
        buf_puts(&b, ",");
        put_quoted(&b, t->jobs[i].workload);
        put_field(&b, t->jobs[i].at_s);
        put_field(&b, f.first_s);
        put_field(&b, f.end_s);
        buf_puts(&b, f.is_finished ? ",1" : ",0");
        put_field(&b, f.steps_done);
        put_field(&b, f.work_s);
        put_field(&b, f.has_promise ? f.kept_s : (double)NAN);
        buf_printf(&b, ",%s\n", sim_job_reason(s, i));
    }
    rc = file_write(path, buf_text(&b), b.len, e);
    buf_release(&b);
    return rc;
}

/* ---- running ---- */

/* A tenth of an hour of simulated time between looks at the screen. */
#define LOOK_S 360

static int run_to_end(struct sim *s, const struct trace *t, struct err *e)
{
    struct progress p;
    int rc = 1;

    progress_begin(&p, "simulating", false);
    while (rc > 0) {
        rc = sim_advance(s, p.is_shown ? sim_now_s(s) + LOOK_S : (double)INFINITY, e);
        progress_step(&p, sim_state(s)->n_ended, t->n_jobs);
    }
    progress_end(&p);
    return rc;
}

static int simulate(const struct options *o, const struct sim_options *so, struct err *e)
{
    struct sim *s = NULL;
    struct sim_result r = { 0 };
    int rc = sim_create(so, &s, e);

    if (rc == 0)
        rc = run_to_end(s, so->trace, e);
    if (rc == 0 && so->journal != NULL)
        rc = sim_save(s, e);
    if (rc == 0 && o->jobs_out != NULL)
        rc = write_jobs(s, so->trace, o->jobs_out, e);
    if (rc == 0)
        sim_result(s, &r);
    sim_destroy(s);
    if (rc < 0)
        return cmd_fail(e);
    return o->is_json ? print_json(o, &so->cluster->settings, &r) : print_table(o, &r);
}

/* What it has learned; 'known' (may be NULL) is the store that may have a model of its own. */
static int with_model(const struct options *o, struct sim_options so, struct store *known,
                      struct err *e)
{
    struct model *m;
    int rc = model_open(o->model, known, &m, e);

    so.model = m;
    int status = rc == 0 ? simulate(o, &so, e) : cmd_fail(e);
    model_destroy(m);
    return status;
}

/* What the policy may know, from another store; then the run. */
static int with_known(const struct options *o, struct sim_options so, struct err *e)
{
    struct catalog known;
    struct store *store = NULL;
    int status, rc;

    if (o->known == NULL)
        return with_model(o, so, NULL, e);
    catalog_init(&known);
    rc = store_open(o->known, STORE_READ, &store, e);
    if (rc == 0)
        rc = catalog_load(&known, store, e);
    so.known = &known;
    status = rc == 0 ? with_model(o, so, store, e) : cmd_fail(e);
    catalog_release(&known);
    store_close(store);
    return status;
}

static int run_options(const struct options *o, struct arena *a)
{
    struct err e = { 0 };
    struct cluster cl;
    struct trace t;
    struct ground g;
    struct sim_options so = {
        .cluster = &cl,
        .trace = &t,
        .policy = o->policy,
        .reference = o->reference,
        .seed = (uint64_t)o->seed,
        .until_s = o->until_s,
        .is_learning = o->is_learning,
        .without = o->levers,
    };
    int status;

    if (cluster_read(a, o->cluster, &cl, &e) < 0 || trace_read(a, o->trace, &t, &e) < 0)
        return cmd_fail(&e);
    ground_name_batches(a, &t, &cl);
    if (o->truth != NULL ? ground_open(&g, o->truth, &cl, &t, &e) < 0
                         : ground_builtin(&g, &cl, &t, o->reference != NULL ? o->reference : "p100",
                                          (uint64_t)o->seed, &e) < 0)
        return cmd_fail(&e);
    so.truth = &g.truth;
    if (o->journal != NULL && store_open(o->journal, STORE_CREATE, &so.journal, &e) < 0)
        status = cmd_fail(&e);
    else
        status = with_known(o, so, &e);
    store_close(so.journal);
    ground_close(&g);
    return status;
}

static int run(int argc, char **argv)
{
    struct options o;
    struct arena a;
    int status = parse_options(argc, argv, &o);

    if (status != CMD_GO_ON)
        return status;
    nn_init();
    arena_init(&a);
    status = run_options(&o, &a);
    arena_release(&a);
    return status;
}

const struct cmd cmd_simulate = {
    .name = "simulate",
    .synopsis =
        "simulate --cluster FILE --trace FILE [--truth DB] [--policy NAME] [--seed N] [--json]",
    .summary = "replay a trace on a simulated cluster",
    .help = help,
    .run = run,
};

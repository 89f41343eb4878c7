/* simulate.c - `gogh simulate`: replay a trace on a cluster under one policy. */
#include "cli/cmd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/progress.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"
#include "cli/table.h"
#include "nn/gp.h"
#include "optimize/policy/solver.h"
#include "estimate/model/model.h"
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
    "                    gavel-cost, pack, eaco, greedy, fifo-promise, fifo-fastest,\n"
    "                    fifo-random, fifo-first or slurm; as gogh, but for how many replicas\n"
    "                    services have: static-peak, autoscaler\n"
    "  --seed N          chance: measurement noise, random policies, hidden factors; 1\n"
    "  --known DB        what the policy knows before it starts; without it, nothing\n"
    "  --model M         what the policy has learned before it starts: 'none' (the default),\n"
    "                    'pretrained', 'site' (of the store of --known), or a file of 'gogh train'\n"
    "  --estimator E     how it estimates: 'gogh' (the default), 'hierarchical', 'network', 'mean'\n"
    "                    or 'roofline'; see 'gogh predict --help'\n"
    "  --without LEVERS  take these away from the policy: types, sharing, moving, sleep, limits "
    "or\n"
    "                    joules, several with commas between them; not every policy has each\n"
    "  --learn           train anew on the way, on what was measured by then\n"
    "  --reference TYPE  the GPU that work is counted in; p100\n"
    "  --until S         stop the clock here instead of at the last job's end\n"
    "  --jobs-out CSV    also write how each job fared\n"
    "  --journal DB      keep every event in a new store, for 'gogh replay'; a disk write an "
    "event\n"
    "  --no-timing       leave out wall times, so that the output repeats byte for byte\n"
    "  --json            as JSON\n"
    "\n"
    "Examples:\n"
    "  gogh simulate --cluster docs/examples/small.cluster --trace docs/examples/mixed.trace\n"
    "  gogh simulate --cluster docs/examples/reference.cluster --trace t.trace \\\n"
    "      --truth gavel.db --policy fifo-fastest --seed 11 --json\n"
    "  gogh simulate --cluster docs/examples/small.cluster --trace docs/examples/mixed.trace \\\n"
    "      --model pretrained --learn\n";

static struct options {
    const char *cluster, *trace, *truth, *policy, *known, *reference, *jobs_out, *journal, *model,
        *estimator;
    const char *without;
    unsigned levers;    // the same as bits
    long seed;
    double until_s;
    bool is_json, has_no_timing, is_learning;
} given = { .policy = "gogh", .seed = 1, .model = "none" };

static const struct cmd_option options[] = {
    CMD_TEXT("cluster", given.cluster),
    CMD_TEXT("trace", given.trace),
    CMD_TEXT("truth", given.truth),
    CMD_TEXT("policy", given.policy),
    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_TEXT("known", given.known),
    CMD_TEXT("model", given.model),
    CMD_TEXT("estimator", given.estimator),
    CMD_TEXT("without", given.without),
    CMD_FLAG("learn", given.is_learning),
    CMD_TEXT("reference", given.reference),
    CMD_NUMBER("until", given.until_s, 1e-3, 1e12),
    CMD_TEXT("jobs-out", given.jobs_out),
    CMD_TEXT("journal", given.journal),
    CMD_FLAG("no-timing", given.has_no_timing),
    CMD_FLAG("json", given.is_json),
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
    return 0;
}

/* The policy; 'gogh-oracle' is gogh that knows the truth. 'bound' is none, and known from 'gogh
 * study'.
 */
static int find_policy(const char *name, struct solver *out)
{
    char others[256] = "";
    size_t len = 0;

    if (strcmp(name, "bound") == 0)
        return cmd_misuse(&cmd_simulate, "bound is no policy but the least energy that any could "
                                         "use: only 'gogh study --policy bound' has it");
    if (solver_by_name(strcmp(name, "gogh-oracle") == 0 ? "gogh" : name, 0, out, NULL) == 0)
        return 0;
    for (int i = 1; solver_at(i) != NULL; i++)
        len += (size_t)snprintf(others + len, sizeof others - len, ", %s", solver_at(i)->name);
    return cmd_misuse(&cmd_simulate, "no policy '%s'; there are gogh, gogh-oracle%s", name, others);
}

static void warn_of_levers(const struct options *o, const struct solver *policy)
{
    for (int l = 0; l < LEVERS; l++) {
        if ((o->levers >> l & 1) != 0 && !solver_has_lever(policy, (enum lever)l))
            fprintf(stderr, "gogh: %s does not use %s: nothing is taken away\n", o->policy,
                    lever_name((enum lever)l));
    }
}

static int check(const struct cmd_call *call)
{
    struct options *o = &given;
    struct solver policy;

    if (o->cluster == NULL)
        return cmd_misuse(call->cmd, "say on which cluster: --cluster FILE");
    if (o->trace == NULL)
        return cmd_misuse(call->cmd, "say which jobs: --trace FILE");
    if (o->model[0] == '\0')
        return cmd_misuse(call->cmd, "--model wants none, pretrained, site or a file");
    int status = find_policy(o->policy, &policy);
    if (status == 0)
        status = parse_levers(o->without, &o->levers);
    if (status == 0)
        warn_of_levers(o, &policy);
    return status;
}

/* ---- output ---- */

static void set_number(json_t *j, const char *key, double v)
{
    json_object_set_new(j, key, json_number_or_null(v));
}

static json_t *figures_json(const struct sim_result *r)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "energy_kwh",
        json_number_or_null(r->energy_j / KWH_J), "promise_attainment",
        json_number_or_null(r->promise_attainment), "mean_jct_s",
        json_number_or_null(r->mean_jct_s), "p95_jct_s", json_number_or_null(r->p95_jct_s),
        "makespan_s", json_number_or_null(r->makespan_s), "allocation_efficiency",
        json_number_or_null(r->allocation_efficiency), "work_s", json_number_or_null(r->work_s),
        "gpu_s", json_number_or_null(r->gpu_s), "moves", (json_int_t)r->n_moves, "decisions",
        (json_int_t)r->n_decisions, "fallbacks", (json_int_t)r->n_fallbacks, "events",
        (json_int_t)r->n_events, "measurements", (json_int_t)r->n_measurements);
}

static void put_gap(json_t *j, const struct sim_result *r)
{
    set_number(j, "gap_mean_w", r->gap_mean.watts);
    set_number(j, "gap_worst_w", r->gap_worst.watts);
    set_number(j, "gap_mean_ratio", r->gap_mean.ratio);
    set_number(j, "gap_worst_ratio", r->gap_worst.ratio);
    set_number(j, "gap_mean_varying_ratio", r->gap_mean.varying_ratio);
    set_number(j, "gap_worst_varying_ratio", r->gap_worst.varying_ratio);
}

static void print_json(const struct options *o, const struct cluster_settings *set,
                       const struct sim_result *r)
{
    const double none = NAN;
    json_t *j =
        json_pack("{s:s, s:I, s:i, s:i, s:i}", "policy", o->policy, "seed", (json_int_t)o->seed,
                  "jobs", r->n_jobs, "finished", r->n_finished, "failed", r->n_failed);

    json_object_update_new(j, figures_json(r));
    set_number(j, "decision_p50_s", o->has_no_timing ? none : r->decision_p50_s);
    set_number(j, "decision_p99_s", o->has_no_timing ? none : r->decision_p99_s);
    json_object_set_new(j, "power_model",
                        json_string(power_model_name((enum power_model)set->power_model)));
    if (o->without != NULL)
        json_object_set_new(j, "without", json_string(o->without));
    put_gap(j, r);
    json_object_set_new(j, "repricings", json_integer(r->n_repricings));
    set_number(j, "repricing_s", o->has_no_timing ? none : r->repricing_s);
    set_number(j, "prediction_error", r->prediction_error);
    if (!isnan(r->late_share)) {
        set_number(j, "service_hours_kept", r->service_hours_kept);
        set_number(j, "late_share", r->late_share);
        set_number(j, "p99_s", r->p99_s);
        set_number(j, "interruptions", r->interruptions);
        set_number(j, "starts_per_service_day", r->starts_per_service_day);
        set_number(j, "training_work", r->training_work);
    }
    set_number(j, "coverage90", r->coverage90);
    json_t *waiting = json_object();
    for (int why = WAIT_NOT + 1; why < WAIT_REASONS; why++)
        if (r->n_waiting[why] > 0)
            json_object_set_new(waiting, wait_reason_name((enum wait_reason)why),
                                json_integer(r->n_waiting[why]));
    json_object_set_new(j, "waiting", waiting);
    if (o->is_learning)
        json_object_set_new(j, "models", json_integer(r->n_models));
    json_print(j, JSON_REAL_PRECISION(15));
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

/* Of traces that have some. */
static void print_services(const struct sim_result *r)
{
    if (isnan(r->late_share))
        return;
    print_line("service hours kept", 100 * r->service_hours_kept,
               "%: those with at most 1 % of requests late");
    print_line("late requests", 100 * r->late_share, "%");
    print_line("p99", r->p99_s, "s, of language models to the first token");
    printf("%-24s %12g\n", "interruptions", r->interruptions);
    print_line("starts", r->starts_per_service_day, "of replicas, a service and day");
}

static void print_table(const struct options *o, const struct sim_result *r)
{
    printf("%-24s %12s%s%s (seed %ld)\n", "policy", o->policy,
           o->without != NULL ? " without " : "", o->without != NULL ? o->without : "", o->seed);
    printf("%-24s %12d of %d%s\n", "finished", r->n_finished, r->n_jobs,
           r->n_failed > 0 ? ", some failed" : "");
    print_waiting(r);
    print_line("energy", r->energy_j / KWH_J, "kWh");
    print_line("work done", r->work_s, "units (seconds alone on the reference GPU)");
    print_line("energy per work", r->energy_j / r->work_s, "joules per unit of work");
    print_line("promise attainment", 100 * r->promise_attainment, "%");
    print_line("mean JCT", r->mean_jct_s, "s");
    print_line("p95 JCT", r->p95_jct_s, "s");
    print_line("makespan", r->makespan_s, "s");
    print_line("allocation efficiency", r->allocation_efficiency, "work per GPU-second");
    print_services(r);
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
}

static void put_field(struct buf *b, double v)
{
    if (isnan(v))
        buf_puts(b, ",");
    else
        buf_printf(b, ",%.15g", v);
}

static int write_jobs(const struct sim *s, const struct trace *t, const char *path, struct err *e)
{
    struct buf b;

    buf_init(&b, (size_t)1 << 30);
    buf_puts(
        &b,
        "job,workload,arrival_s,first_start_s,end_s,finished,steps_done,work_s,kept_s,reason\n");
    for (int i = 0; i < t->n_jobs; i++) {
        struct world_outcome f = { .first_s = NAN, .end_s = NAN };

        sim_job_outcome(s, i, &f);
        csv_quote(&b, t->jobs[i].name);
        buf_puts(&b, ",");
        csv_quote(&b, t->jobs[i].workload);
        put_field(&b, t->jobs[i].at_s);
        put_field(&b, f.first_s);
        put_field(&b, f.end_s);
        buf_puts(&b, f.is_finished ? ",1" : ",0");
        put_field(&b, f.steps_done);
        put_field(&b, f.work_s);
        put_field(&b, f.has_promise ? f.kept_s : (double)NAN);
        buf_printf(&b, ",%s\n", sim_job_reason(s, i));
    }
    return cmd_write(path, &b, 0, e);
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
    if (rc == 0 && o->jobs_out != NULL)
        rc = write_jobs(s, so->trace, o->jobs_out, e);
    if (rc == 0)
        sim_result(s, &r);
    sim_destroy(s);
    if (rc == 0 && o->is_json)
        print_json(o, &so->cluster->settings, &r);
    else if (rc == 0)
        print_table(o, &r);
    return rc;
}

/* What the policy knows when it begins, of another store; what it has learned, of that store or of
 * elsewhere; then the run.
 */
static int with_known(const struct options *o, struct sim_options so, struct err *e)
{
    struct catalog known;
    struct store *store = NULL;
    struct model *m = NULL;
    int rc = 0;

    catalog_init(&known);
    if (o->known != NULL)
        rc = store_open(o->known, STORE_READ, &store, e);
    if (rc == 0 && store != NULL) {
        rc = catalog_load(&known, store, e);
        so.known = &known;
    }
    if (rc == 0)
        rc = estimator_by_name(o->estimator, &so.estimator, e);
    if (rc == 0)
        rc = model_open(o->model, store, &m, e);
    so.model = m;
    if (rc == 0)
        rc = simulate(o, &so, e);
    model_destroy(m);
    catalog_release(&known);
    store_close(store);
    return rc;
}

static int run(const struct cmd_call *call, struct err *e)
{
    const struct options *o = &given;
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

    nn_init();
    if (cmd_cluster(call->arena, o->cluster, &cl, e) < 0 ||
        trace_read(call->arena, o->trace, &t, e) < 0)
        return -e->code;
    ground_name_batches(call->arena, &t, &cl);
    if (o->truth != NULL ? ground_open(&g, o->truth, &cl, &t, e) < 0
                         : ground_builtin(&g, &cl, &t, o->reference != NULL ? o->reference : "p100",
                                          (uint64_t)o->seed, e) < 0)
        return -e->code;
    so.truth = &g.truth;
    int rc = o->journal != NULL ? store_open(o->journal, STORE_CREATE, &so.journal, e) : 0;
    if (rc == 0)
        rc = with_known(o, so, e);
    store_close(so.journal);
    ground_close(&g);
    return rc;
}

const struct cmd cmd_simulate = {
    .name = "simulate",
    .synopsis =
        "simulate --cluster FILE --trace FILE [--truth DB] [--policy NAME] [--seed N] [--json]",
    .summary = "replay a trace on a simulated cluster",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
};

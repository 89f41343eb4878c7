/* replay.c - `gogh replay`: the state that a store's journal adds up to; and a daemon's record,
 * gone through again.
 */
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/json.h"
#include "cli/cmd.h"
#include "daemon/service/recover.h"
#include "sim/rerun/rerun.h"

static const char help[] =
    "Rebuild nodes, GPUs and jobs from the rows and the events of a store, check that they\n"
    "agree with each other, and show them. Nothing in the store is changed.\n"
    "\n"
    "  --db DB      the store\n"
    "  --json       the same as JSON\n"
    "\n"
    "Or go through what a daemon wrote down ('record PATH' in gogh.conf): make every plan again\n"
    "from what it was made from, and have the simulator carry out the same orders. The answer is\n"
    "no when a plan comes out otherwise, or when the joules differ by more than the tolerance.\n"
    "\n"
    "  --record FILE     the record; the files beside it that it names must be there\n"
    "  --truth DB        what speeds and watts really are, as measurements; without it, what was\n"
    "                    believed at the record's end\n"
    "  --tolerance PART  of the joules; default 0.05\n"
    "\n"
    "Examples:\n"
    "  gogh simulate --cluster lab.cluster --trace day.trace --journal run.db\n"
    "  gogh replay --db run.db\n"
    "  gogh replay --record /var/lib/gogh/record.jsonl --truth measured.db\n";

static const char *db;
static struct rerun_options record;
static double tolerance = 0.05;
static bool is_json;

static const struct cmd_option options[] = {
    CMD_TEXT("db", db),
    CMD_FLAG("json", is_json),
    CMD_TEXT("record", record.record),
    CMD_TEXT("truth", record.truth),
    CMD_NUMBER("tolerance", tolerance, 0, 10),
};

static json_t *job_json(const struct state *s, const struct job *j, const struct catalog *c)
{
    json_t *gpus = json_array();

    for (int i = 0; i < j->n_held; i++) {
        const struct gpu *g = &s->gpus[j->gpus[i]];
        json_array_append_new(gpus, json_sprintf("%s/%d", s->nodes[g->node].name, g->slot));
    }
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:o}", "name", j->spec.name, "workload",
                     c->workloads[j->spec.workload].name, "state", job_state_name(j->state),
                     "steps_done", j->steps_done, "remaining", job_remaining(j, j->heard_s),
                     "moves", j->n_moves, "gpus", gpus);
}

static void print_json(const struct recovered *r)
{
    const struct state *s = &r->ledger.state;
    json_t *jobs = json_array();

    for (int i = 0; i < s->n_jobs; i++)
        json_array_append_new(jobs, job_json(s, s->jobs[i], &r->catalog));
    json_print(json_pack("{s:I, s:i, s:i, s:i, s:i, s:i, s:o}", "events",
                         (json_int_t)r->ledger.last_seq, "nodes", s->n_nodes, "gpus", s->n_gpus,
                         "running", s->n_running, "waiting", s->n_waiting, "ended", s->n_ended,
                         "jobs", jobs),
               JSON_INDENT(2) | JSON_REAL_PRECISION(10));
}

static void print_text(const struct recovered *r)
{
    const struct state *s = &r->ledger.state;

    printf("%lld events: %d nodes, %d GPUs, %d jobs (%d running, %d waiting, %d ended)\n",
           (long long)r->ledger.last_seq, s->n_nodes, s->n_gpus, s->n_jobs, s->n_running,
           s->n_waiting, s->n_ended);
    for (int i = 0; i < s->n_jobs; i++) {
        const struct job *j = s->jobs[i];
        printf("%-16s %-10s %-36s", j->spec.name, job_state_name(j->state),
               r->catalog.workloads[j->spec.workload].name);
        for (int k = 0; k < j->n_held; k++) {
            const struct gpu *g = &s->gpus[j->gpus[k]];
            printf(" %s/%d", s->nodes[g->node].name, g->slot);
        }
        printf("\n");
    }
}

static int show_store(struct err *e)
{
    struct recovered r;
    int rc = recover_open(&r, db, STORE_READ, e);

    if (rc < 0)
        return rc;
    if (is_json)
        print_json(&r);
    else
        print_text(&r);
    recover_close(&r);
    return 0;
}

/* ---- a record ---- */

static void print_rerun_json(const struct rerun_result *r)
{
    json_t *types = json_array();

    for (int i = 0; i < r->n_types; i++) {
        const struct rerun_type *t = &r->types[i];

        json_array_append_new(types, json_pack("{s:s, s:i, s:f, s:f}", "name", t->name, "gpus",
                                               t->n_gpus, "energy_cluster_j", t->cluster_j,
                                               "energy_sim_j", t->sim_j));
    }
    json_print(
        json_pack(
            "{s:I, s:I, s:I, s:s?, s:f, s:f, s:f, s:o, s:f, s:o, s:i, s:i, s:o, s:I, s:I, s:i}",
            "decisions", (json_int_t)r->n_decisions, "same", (json_int_t)r->n_same, "cut",
            (json_int_t)r->n_cut, "differs", r->differs, "watts_off", r->watts_off,
            "energy_cluster_j", r->cluster_j, "energy_sim_j", r->sim_j, "difference",
            json_number_or_null(r->difference), "seconds", r->seconds, "types", types, "finished",
            r->n_finished, "finished_sim", r->n_finished_sim, "jct_off",
            json_number_or_null(r->jct_off), "events", (json_int_t)r->n_events, "measurements",
            (json_int_t)r->n_measurements, "parts", r->n_parts),
        JSON_INDENT(2) | JSON_REAL_PRECISION(10));
}

static void print_rerun_text(const struct rerun_result *r)
{
    printf("%ld decisions, %ld the same, %ld cut short; from %ld events and %ld measurements\n",
           r->n_decisions, r->n_same, r->n_cut, r->n_events, r->n_measurements);
    if (r->differs)
        printf("the first that differs: %s\n", r->differs);
    if (isnan(r->difference)) {
        printf("no joules were recorded\n");
        return;
    }
    printf("%.0f s: the cluster used %.1f kJ, the simulator %.1f kJ: %+.2f %%\n", r->seconds,
           r->cluster_j / 1e3, r->sim_j / 1e3, 100 * r->difference);
    for (int i = 0; i < r->n_types; i++)
        printf("  %-16s %4d GPUs %12.1f kJ %12.1f kJ\n", r->types[i].name, r->types[i].n_gpus,
               r->types[i].cluster_j / 1e3, r->types[i].sim_j / 1e3);
    printf("%d jobs finished, in the simulator %d of them", r->n_finished, r->n_finished_sim);
    if (!isnan(r->jct_off))
        printf(", which took %+.1f %% of their time", 100 * r->jct_off);
    printf("\n");
}

/* The answer is no where a plan differs, or joules do. */
static int show_record(struct arena *a, struct err *e)
{
    struct rerun_result r;
    int rc = rerun(a, &record, &r, e);

    if (rc < 0)
        return rc;
    if (is_json)
        print_rerun_json(&r);
    else
        print_rerun_text(&r);
    bool is_same = r.n_same == r.n_decisions, is_near = !(fabs(r.difference) > tolerance);
    if (is_same && is_near)
        return 0;
    fflush(stdout);
    fprintf(stderr, "gogh: the answer is no: %s%s\n",
            is_same ? "joules differ by more than --tolerance" : "not all plans are the same",
            is_same && !record.truth ? "; without --truth it goes by what was believed at the "
                                       "record's end"
                                     : "");
    return EXIT_NO;
}

static int check(const struct cmd_call *call)
{
    if (!db == !record.record)
        return cmd_misuse(call->cmd, "which store, or which record? --db DB or --record FILE");
    if (db && record.truth)
        return cmd_misuse(call->cmd, "--truth goes with --record");
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    return db ? show_store(e) : show_record(call->arena, e);
}

const struct cmd cmd_replay = {
    .name = "replay",
    .synopsis = "replay --db DB | --record FILE [--truth DB] [--tolerance PART] [--json]",
    .summary = "what a store's journal, or a daemon's record, adds up to",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
};

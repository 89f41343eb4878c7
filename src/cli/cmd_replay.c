/* cmd_replay.c - `gogh replay`: the state that a store's journal adds up to. */
#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/cmd.h"
#include "daemon/recover.h"

static const char help[] =
    "Rebuild nodes, GPUs and jobs from the rows and the events of a store, check that they\n"
    "agree with each other, and show them. Nothing in the store is changed.\n"
    "\n"
    "  --db DB      the store\n"
    "  --json       the same as JSON\n"
    "\n"
    "Examples:\n"
    "  gogh simulate --cluster lab.cluster --trace day.trace --journal run.db\n"
    "  gogh replay --db run.db\n";

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
    json_t *o =
        json_pack("{s:I, s:i, s:i, s:i, s:i, s:i, s:o}", "events", (json_int_t)r->ledger.last_seq,
                  "nodes", s->n_nodes, "gpus", s->n_gpus, "running", s->n_running, "waiting",
                  s->n_waiting, "ended", s->n_ended, "jobs", jobs);
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    printf("\n");
    json_decref(o);
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

static int run(int argc, char **argv)
{
    const char *db = NULL;
    bool is_json = false;
    const struct cmd_option options[] = {
        { .name = "db", .kind = OPTION_TEXT, .out = &db },
        { .name = "json", .kind = OPTION_FLAG, .out = &is_json },
    };
    struct recovered r;
    struct err e = { 0 };
    int status = cmd_parse(&cmd_replay, argc, argv, options, CMD_COUNT(options), NULL, 0);

    if (status != CMD_GO_ON)
        return status;
    if (!db)
        return cmd_misuse(&cmd_replay, "which store? --db DB");
    if (recover_open(&r, db, STORE_READ, &e) < 0)
        return cmd_fail(&e);
    if (is_json)
        print_json(&r);
    else
        print_text(&r);
    recover_close(&r);
    return cmd_done();
}

const struct cmd cmd_replay = {
    .name = "replay",
    .synopsis = "replay --db DB [--json]",
    .summary = "the state that a store's journal adds up to",
    .help = help,
    .run = run,
};

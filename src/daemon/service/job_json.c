#include "daemon/service/job_json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "act/runs.h"
#include "catalog/cluster/job.h"
#include "daemon/http/json_text.h"
#include "daemon/service/service.h"
#include "daemon/service/replicas_json.h"
#include "monitor/energy.h"
#include "monitor/watch.h"

void api_gpu_name(const struct service *s, int gpu, char out[GPU_NAME_MAX])
{
    const struct state *st = &s->base.ledger.state;
    const struct gpu *g = &st->gpus[gpu];

    snprintf(out, GPU_NAME_MAX, "%s/%d", st->nodes[g->node].name, g->slot);
}

/* ---- what is believed ---- */

/* Everybody on the job's first GPU, the job first: workloads and what servers are asked for. */
static int crew(const struct state *st, const struct job *j, int *workloads, double *rates)
{
    const struct gpu *g = &st->gpus[j->gpus[0]];
    int n = 1;

    workloads[0] = j->spec.workload;
    rates[0] = job_serves(&j->spec);
    for (int i = 0; i < g->n_jobs; i++) {
        const struct job *other = st->jobs[g->jobs[i]];
        if (other == j || n == THETA_MAX)
            continue;
        workloads[n] = other->spec.workload;
        rates[n++] = job_serves(&other->spec);
    }
    return n;
}

static bool is_spread(const struct state *st, const struct job *j)
{
    for (int i = 1; i < j->n_held; i++)
        if (st->gpus[j->gpus[i]].node != st->gpus[j->gpus[0]].node)
            return true;
    return false;
}

static bool knows(const struct estimator *e, const int *workloads, int n, int type)
{
    for (int i = 0; i < n; i++)
        if (workloads[i] >= e->n_workloads)
            return false;
    return type < e->n_types;
}

/* Of a running job's speed in its place, power limit and neighbours included; NaN: nothing yet. */
struct belief {
    double speed, low;
};

static struct belief believed(const struct service *s, const struct job *j)
{
    const struct state *st = &s->base.ledger.state;
    const struct estimator *e = &s->cycle.estimator;
    struct belief b = { NAN, NAN };
    int workloads[THETA_MAX];
    double rates[THETA_MAX];

    if (j->state != JOB_RUNNING)
        return b;
    int type = st->gpus[j->gpus[0]].type;
    int n = crew(st, j, workloads, rates);
    if (!knows(e, workloads, n, type))
        return b;
    if (j->n_held > 1)
        b.speed = estimate_gang_speed(e, workloads[0], type, j->n_held, is_spread(st, j), &b.low);
    else
        b.speed = estimate_speed(e, workloads[0], type, workloads + 1, n - 1, &b.low);
    struct limited held = estimate_limited(e, type, workloads, rates, n, j->limit_w);
    b.speed *= held.speed;
    b.low *= held.low;
    return b;
}

/* ---- the promise ---- */

static const char *promise_of_ended(const struct job *j, double floor)
{
    if (j->state == JOB_CANCELLED)
        return "none";
    if (j->state == JOB_FAILED || j->changed_s > j->spec.deadline_s)
        return "short";
    if (floor > 0 &&
        !(j->steps_done >= floor * (1 - PROMISE_SLACK) * (j->changed_s - j->started_s)))
        return j->steps_done > 0 ? "short" : "unknown";
    return "kept";
}

const char *job_promise(const struct job *j, double speed, double now_s)
{
    const struct job_spec *p = &j->spec;
    double floor = fmax(p->min_throughput, job_serves(p));

    if (!(floor > 0) && isnan(p->deadline_s))
        return "none";
    if (job_is_over(j))
        return promise_of_ended(j, floor);
    if (p->deadline_s <= now_s)
        return "short";
    if (j->state != JOB_RUNNING)
        return floor > 0 ? "short" : "unknown";
    if (isnan(speed))
        return "unknown";
    return speed >= job_need(j, now_s) * (1 - PROMISE_SLACK) ? "kept" : "short";
}

/* ---- the object ---- */

static void put_asked(struct api_text *t, const struct service *s, const struct job_spec *p)
{
    static const char *const kinds[] = { [JOB_TRAINING] = "training",
                                         [JOB_INFERENCE] = "inference",
                                         [JOB_SERVICE] = "service",
                                         [JOB_REPLICA] = "replica" };
    const struct catalog *c = &s->base.catalog;

    api_put_text(t, "kind", kinds[p->kind]);
    api_put_text(t, "workload", c->workloads[p->workload].name);
    api_put_whole(t, "n_gpus", p->n_gpus);
    api_put_whole(t, "max_gpus", p->max_gpus);
    api_put_whole(t, "priority", p->priority);
    api_put_number(t, "urgency", job_urgency(p));
    api_put_flag(t, "exclusive", p->is_exclusive);
    api_put_flag(t, "one_node", p->n_nodes == 1);
    api_put_number(t, "nodes", p->n_nodes > 0 ? p->n_nodes : (double)NAN);
    api_put_open(t, "types", '[');
    for (int i = 0; p->allowed_types && i < c->n_types && i < 64; i++)
        if (p->allowed_types >> i & 1)
            api_put_text(t, NULL, c->types[i].name);
    api_put_close(t, ']');
    api_put_number(t, "steps", p->kind == JOB_TRAINING && !p->is_guess ? p->steps : (double)NAN);
    bool has_rate = p->kind == JOB_INFERENCE || p->kind == JOB_SERVICE;
    api_put_number(t, "rate", has_rate ? p->rate : (double)NAN);
    api_put_number(t, "duration_s", p->kind == JOB_INFERENCE ? p->duration_s : (double)NAN);
    api_put_number(t, "min_throughput", p->min_throughput);
    api_put_time(t, "deadline_s", p->deadline_s);
}

static void put_place(struct api_text *t, const struct service *s, const struct job *j)
{
    const struct state *st = &s->base.ledger.state;
    char name[GPU_NAME_MAX];

    api_put_open(t, "gpus", '[');
    for (int i = 0; i < j->n_held; i++) {
        api_gpu_name(s, j->gpus[i], name);
        api_put_text(t, NULL, name);
    }
    api_put_close(t, ']');
    api_put_text(t, "gpu_type",
                 j->n_held ? s->base.catalog.types[st->gpus[j->gpus[0]].type].name : NULL);
    api_put_whole(t, "limit_w", j->limit_w);
}

static void put_going(struct api_text *t, const struct service *s, const struct job *j,
                      double now_s)
{
    struct watch_job seen = { .speed = NAN, .watts = NAN, .steps = NAN };
    struct belief b = believed(s, j);

    if (j->state == JOB_RUNNING && s->watch)
        watch_job(s->watch, j->id, &seen);
    api_put_number(t, "steps_done", seen.has_reported ? seen.steps : j->steps_done);
    bool has_need = !job_is_over(j) && j->spec.kind != JOB_REPLICA;
    api_put_number(t, "need", has_need ? job_need(j, now_s) : 0);
    api_put_number(t, "speed", seen.speed);
    api_put_number(t, "predicted", b.speed);
    api_put_number(t, "predicted_low", b.low);
    api_put_text(t, "promise",
                 j->spec.terms ? service_promise(s, j) : job_promise(j, seen.speed, now_s));
    api_put_number(t, "watts", seen.watts);
    api_put_number(t, "joules", s->energy ? energy_job_j(s->energy, j->id) : (double)NAN);
}

/* Until it started first; one that never did, until it ended or now. */
static double waited_s(const struct job *j, double now_s)
{
    double until_s = !isnan(j->started_s) ? j->started_s : job_is_over(j) ? j->changed_s : now_s;

    return fmax(until_s - j->spec.submit_s, 0);
}

static const char *reason_of(const struct service *s, const struct job *j)
{
    if (j->state == JOB_HELD)
        return "held";
    if (j->state != JOB_WAITING || j->spec.kind == JOB_REPLICA)
        return j->reason;
    if (j->spec.kind == JOB_SERVICE && strcmp(service_standing(s, j), "waiting") != 0)
        return NULL;
    enum wait_reason r = cycle_why(&s->cycle, j->id);
    return r == WAIT_NOT ? NULL : wait_reason_name(r);
}

static void put_life(struct api_text *t, const struct service *s, const struct job *j, double now_s)
{
    struct run_info run;

    api_put_time(t, "submit_s", j->spec.submit_s);
    api_put_time(t, "started_s", j->started_s);
    api_put_time(t, "ended_s", job_is_over(j) ? j->changed_s : (double)NAN);
    api_put_time(t, "changed_s", j->changed_s);
    api_put_time(t, "waited_s", waited_s(j, now_s));
    api_put_whole(t, "moves", j->n_moves);
    api_put_whole(t, "failures",
                  executor_find(&s->cycle.executor, j->id, &run) ? run.n_failures : 0);
}

/* What makes it a service, or one of its replicas. */
static void put_service(struct api_text *t, const struct service *s, const struct job *j)
{
    bool is_replica = j->spec.kind == JOB_REPLICA;

    api_put_text(t, "serving", j->spec.kind == JOB_SERVICE ? service_standing(s, j) : NULL);
    api_put_number(t, "service", is_replica ? j->spec.service : (double)NAN);
    api_put_number(t, "replica", is_replica ? j->spec.replica : (double)NAN);
    api_put_number(t, "port", is_replica ? j->spec.port : (double)NAN);
}

static void put_common(struct api_text *t, const struct service *s, const struct job *j,
                       double now_s)
{
    api_put_whole(t, "id", j->id);
    api_put_text(t, "name", j->spec.name);
    api_put_text(t, "owner", j->spec.owner);
    api_put_text(t, "state", job_state_name(j->state));
    put_asked(t, s, &j->spec);
    put_place(t, s, j);
    put_going(t, s, j, now_s);
    put_life(t, s, j, now_s);
    api_put_text(t, "reason", reason_of(s, j));
    put_service(t, s, j);
}

void job_put(struct api_text *t, const char *key, const struct service *s, const struct job *j,
             double now_s)
{
    api_put_open(t, key, '{');
    put_common(t, s, j, now_s);
    api_put_close(t, '}');
}

/* ---- of a single job ---- */

/* Names of variables may be seen by all who may read; their values may be secrets. */
static void put_env_names(struct api_text *t, json_t *env)
{
    const char *name;
    json_t *value;

    api_put_open(t, "env", '[');
    json_object_foreach(env, name, value)
    {
        api_put_text(t, NULL, name);
    }
    api_put_close(t, ']');
}

static void put_json(struct api_text *t, const char *key, json_t *v)
{
    size_t i;
    json_t *one;

    if (json_is_string(v)) {
        api_put_text(t, key, json_string_value(v));
    } else if (json_is_integer(v)) {
        api_put_whole(t, key, json_integer_value(v));
    } else if (json_is_real(v)) {
        api_put_number(t, key, json_real_value(v));
    } else if (json_is_array(v)) {
        api_put_open(t, key, '[');
        json_array_foreach(v, i, one)
        {
            put_json(t, NULL, one);
        }
        api_put_close(t, ']');
    } else {
        api_put_null(t, key);
    }
}

static void put_command(struct api_text *t, const char *command)
{
    json_t *o = command ? json_loads(command, 0, NULL) : NULL;
    const char *key;
    json_t *value;

    if (!o) {
        api_put_null(t, "command");
        return;
    }
    api_put_open(t, "command", '{');
    json_object_foreach(o, key, value)
    {
        if (json_is_object(value))
            put_env_names(t, value);
        else
            put_json(t, key, value);
    }
    api_put_close(t, '}');
    json_decref(o);
}

static void put_run(struct api_text *t, const struct service *s, const struct job *j)
{
    struct run_info run = { .run = -1 };
    bool is_there = executor_find(&s->cycle.executor, j->id, &run);

    api_put_number(t, "run", is_there ? run.run : (double)NAN);
    api_put_number(t, "pid", is_there && run.pid > 0 ? run.pid : (double)NAN);
    api_put_number(t, "slurm_id",
                   is_there && run.slurm_id > 0 ? (double)run.slurm_id : (double)NAN);
    api_put_text(t, "dir", is_there ? run.dir : NULL);
    api_put_text(t, "stdout", is_there ? run.out : NULL);
    api_put_text(t, "stderr", is_there ? run.err : NULL);
}

static void put_reports(struct api_text *t, const struct service *s, const struct job *j)
{
    struct watch_job seen;

    if (j->state != JOB_RUNNING || !s->watch || !watch_job(s->watch, j->id, &seen) ||
        !seen.has_reported) {
        api_put_null(t, "reports");
        return;
    }
    api_put_open(t, "reports", '{');
    api_put_time(t, "heard_s", seen.heard_s);
    api_put_number(t, "steps", seen.steps);
    api_put_close(t, '}');
}

void job_put_whole(struct api_text *t, const char *key, const struct service *s,
                   const struct job *j, double now_s)
{
    api_put_open(t, key, '{');
    put_common(t, s, j, now_s);
    put_command(t, j->spec.command);
    put_run(t, s, j);
    put_reports(t, s, j);
    api_put_close(t, '}');
}

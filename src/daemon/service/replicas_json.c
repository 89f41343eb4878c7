#include "daemon/service/replicas_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/cluster/job.h"
#include "daemon/http/json_text.h"
#include "daemon/service/job_json.h"
#include "daemon/service/service.h"
#include "daemon/service/upkeep.h"
#include "monitor/energy.h"
#include "monitor/watch.h"

/* Replicas report about once a second, pages are looked at every ten; who is silent for this long
 * says nothing.
 */
#define SILENT_S 60.0

/* Neighbours that a type's line names. */
enum { NEIGHBOURS_MAX = 8 };

static const struct state *state_of(const struct service *s)
{
    return &s->base.ledger.state;
}

/* ---- replicas ---- */

/* The state's services are in rising order; -1: it is none of them. */
static int index_of(const struct state *st, int service)
{
    int low = 0, high = st->n_services;

    while (low < high) {
        int mid = (low + high) / 2;
        if (st->services[mid] < service)
            low = mid + 1;
        else
            high = mid;
    }
    return low < st->n_services && st->services[low] == service ? low : -1;
}

static double watts_of(const struct service *s, const struct job *j)
{
    struct watch_job seen = { .watts = NAN };

    if (j->state == JOB_RUNNING && s->watch)
        watch_job(s->watch, j->id, &seen);
    return isnan(seen.watts) ? 0 : seen.watts;
}

struct replicas replicas_gather(struct arena *a, const struct service *s)
{
    const struct state *st = state_of(s);
    struct replica_sums *sums = ARENA_ARRAY(a, struct replica_sums, (size_t)st->n_services + 1);
    int first = st->n_services ? st->services[0] : st->n_jobs;
    int *live = ARENA_ARRAY(a, int, (size_t)(st->n_jobs - first) + 1);
    int n = 0;

    for (int i = 0; i <= st->n_services; i++)
        sums[i] = (struct replica_sums){ 0 };
    for (int i = first; i < st->n_jobs; i++) {
        const struct job *j = st->jobs[i];
        int of = j->spec.kind == JOB_REPLICA ? index_of(st, j->spec.service) : -1;
        if (of < 0)
            continue;
        sums[of].watts += watts_of(s, j);
        sums[of].joules += s->energy ? energy_job_j(s->energy, i) : 0;
        sums[of].requests += j->steps_done;
        if (!job_is_over(j))
            live[n++] = i;
    }
    return (struct replicas){ .live = live, .n_live = n, .sums = sums };
}

static const char *replica_state(const struct job *j)
{
    if (j->state != JOB_RUNNING)
        return "waiting";
    if (!isnan(j->drain_s))
        return "draining";
    return isnan(j->ready_s) ? "starting" : "ready";
}

static double weight_of(const struct service *s, const struct job *j)
{
    int n;
    const struct service_route *r = services_routes(&s->cycle, j->spec.service, &n);

    for (int i = 0; i < n; i++)
        if (r[i].job == j->id)
            return job_serves_now(j) ? r[i].weight : 0;
    return 0;
}

static int gpu_of(const struct job *j)
{
    return j->n_held ? j->gpus[0] : j->spec.gpu;
}

static void put_replica(struct api_text *t, const struct service *s, const struct job *j)
{
    const struct state *st = state_of(s);
    const struct gpu *g = &st->gpus[gpu_of(j)];
    char name[GPU_NAME_MAX];

    api_gpu_name(s, gpu_of(j), name);
    api_put_open(t, NULL, '{');
    api_put_whole(t, "job", j->id);
    api_put_text(t, "name", j->spec.name);
    api_put_whole(t, "replica", j->spec.replica);
    api_put_text(t, "gpu", name);
    api_put_text(t, "node", st->nodes[g->node].name);
    api_put_text(t, "type", s->base.catalog.types[g->type].name);
    api_put_text(t, "state", replica_state(j));
    api_put_number(t, "weight", weight_of(s, j));
    api_put_whole(t, "port", j->spec.port);
    api_put_time(t, "ready_s", j->ready_s);
    api_put_close(t, '}');
}

static void put_replicas(struct api_text *t, const struct service *s, const struct job *j,
                         const struct replicas *r)
{
    const struct state *st = state_of(s);

    api_put_open(t, "replicas", '[');
    for (int i = 0; i < r->n_live; i++)
        if (st->jobs[r->live[i]]->spec.service == j->id)
            put_replica(t, s, st->jobs[r->live[i]]);
    api_put_close(t, ']');
}

/* ---- how it stands ---- */

/* Where nothing is known of it yet, it is as new. */
static struct service_now now_of(const struct service *s, const struct job *j)
{
    struct service_now n = { .rate = NAN, .demand = NAN, .heard_s = NAN, .is_careful = true };

    if (!job_is_over(j))
        services_now(&s->cycle, j->id, &n);
    return n;
}

const char *service_standing(const struct service *s, const struct job *j)
{
    struct service_now n = now_of(s, j);

    if (job_is_over(j))
        return "ended";
    if (n.n_ready > 0)
        return "serving";
    if (j->state == JOB_HELD)
        return "held";
    return n.n_starting > 0 ? "starting" : "waiting";
}

const char *service_promise(const struct service *s, const struct job *j)
{
    if (j->spec.kind != JOB_SERVICE || job_is_over(j))
        return "none";
    struct service_now n = now_of(s, j);
    if (n.n_ready == 0)
        return "short";
    if (!(n.n_requests > 0))
        return "unknown";
    return n.n_late <= SERVICE_LATE_MOST * n.n_requests ? "kept" : "short";
}

static bool is_silent(const struct service_now *n, double now_s)
{
    return n->n_ready > 0 && (isnan(n->heard_s) || now_s - n->heard_s > SILENT_S);
}

static void put_warnings(struct api_text *t, const struct service_now *n, const struct job *j,
                         double now_s)
{
    int n_all = n->n_ready + n->n_starting;

    api_put_open(t, "warnings", '[');
    if (is_silent(n, now_s))
        api_put_text(t, NULL, "reports nothing");
    if (n->is_false)
        api_put_text(t, NULL, "contradicts itself");
    if (n->is_flooding)
        api_put_text(t, NULL, "floods");
    if (n->n_late > SERVICE_LATE_MOST * n->n_requests)
        api_put_text(t, NULL, "more than 1 % are late");
    if (n->n_failures > 0)
        api_put_text(t, NULL, "replicas fail");
    if (n_all >= j->spec.max_gpus && n->n_starting == 0 && n->held < n->demand)
        api_put_text(t, NULL, "max_gpus is too few");
    api_put_close(t, ']');
}

/* From what it is known how much must be held. */
static void say_demand(char *out, size_t size, const struct service_now *n, const struct job *j)
{
    if (isnan(n->rate))
        snprintf(out, size, "%.3g requests/s are to be held, as was said%s",
                 isnan(n->demand) ? j->spec.rate : n->demand,
                 n->n_requests > 0 ? ", until five minutes of them were seen"
                                   : ": none were seen yet");
    else
        snprintf(out, size, "%.3g requests/s are to be held, where %.3g came of late", n->demand,
                 n->rate);
}

static void put_why(struct api_text *t, const struct service *s, const struct service_now *n,
                    const struct job *j, double now_s)
{
    char demand[160], text[512];

    say_demand(demand, sizeof demand, n, j);
    if (job_is_over(j))
        snprintf(text, sizeof text, "It has ended.");
    else if (j->state == JOB_HELD)
        snprintf(text, sizeof text, "It is held: 'gogh release %d' lets it serve.", j->id);
    else if (n->n_ready > 0)
        snprintf(text, sizeof text, "%s; %d ready replica%s hold%s %.3g.", demand, n->n_ready,
                 n->n_ready == 1 ? "" : "s", n->n_ready == 1 ? "s" : "", n->held);
    else if (n->n_starting > 0)
        snprintf(text, sizeof text, "%s; %d replica%s start%s, which takes about %.0f s.", demand,
                 n->n_starting, n->n_starting == 1 ? "" : "s", n->n_starting == 1 ? "s" : "",
                 n->load_s);
    else if (n->retry_s > now_s)
        snprintf(text, sizeof text, "%s; after %d failures in a row a start is tried in %.0f s.",
                 demand, n->n_failures, n->retry_s - now_s);
    else
        snprintf(text, sizeof text, "%s; no replica has a place yet: %s.", demand,
                 wait_reason_name(cycle_why(&s->cycle, j->id)));
    api_put_text(t, "why", text);
}

/* ---- what places hold ---- */

static int n_free(const struct state *st, int type, int *n_up)
{
    int n = 0;

    *n_up = 0;
    for (int g = 0; g < st->n_gpus; g++)
        if (st->gpus[g].type == type && st->nodes[st->gpus[g].node].state == NODE_UP) {
            n += st->gpus[g].n_jobs == 0;
            ++*n_up;
        }
    return n;
}

static int n_there(const struct state *st, const struct job *j, const struct replicas *r, int type)
{
    int n = 0;

    for (int i = 0; i < r->n_live; i++) {
        const struct job *one = st->jobs[r->live[i]];
        n += one->spec.service == j->id && st->gpus[gpu_of(one)].type == type;
    }
    return n;
}

/* Workloads of others that run on GPUs of a type, each once. */
static int neighbours_on(const struct state *st, const struct job *j, int type, int *out)
{
    int n = 0;

    for (int i = 0; i < st->n_running && n < NEIGHBOURS_MAX; i++) {
        const struct job *other = st->jobs[st->running[i]];
        bool is_own = other->spec.kind == JOB_REPLICA && other->spec.service == j->id;
        if (!is_own && other->n_held > 0 && st->gpus[other->gpus[0]].type == type &&
            !gpus_have(out, n, other->spec.workload))
            out[n++] = other->spec.workload;
    }
    return n;
}

static void put_neighbours(struct api_text *t, const struct service *s, const struct job *j,
                           int type)
{
    int beside[NEIGHBOURS_MAX];
    int n = neighbours_on(state_of(s), j, type, beside);

    api_put_open(t, "beside", '[');
    for (int i = 0; i < n; i++) {
        double holds = services_capacity(&s->cycle, j->id, type, beside[i]);
        api_put_open(t, NULL, '{');
        api_put_text(t, "workload", s->base.catalog.workloads[beside[i]].name);
        api_put_number(t, "capacity", holds);
        api_put_text(t, "verdict",
                     isnan(holds)           ? "nothing is believed of it yet"
                     : holds > 0            ? "may be a neighbour"
                     : j->spec.is_exclusive ? "refused: it shares its GPUs with nobody"
                                            : "refused: 99 of 100 would not be in time beside it");
        api_put_close(t, '}');
    }
    api_put_close(t, ']');
}

static void say_verdict(char *out, size_t size, const struct job *j, int type, double holds,
                        double demand, int n_here, int n_left, int n_up)
{
    if (!job_allows(&j->spec, type))
        snprintf(out, size, "not among the types it may use");
    else if (isnan(holds))
        snprintf(out, size, "nothing is believed of it yet");
    else if (!(holds > 0))
        snprintf(out, size, "too slow: a request alone would be late there");
    else if (n_here > 0)
        snprintf(out, size, "chosen: %d here", n_here);
    else if (n_up == 0)
        snprintf(out, size, "no such GPU is up");
    else if (n_left == 0)
        snprintf(out, size, "all are taken: only beside a neighbour");
    else if (holds * n_left < demand)
        snprintf(out, size, "the %d free hold %.3g of %.3g", n_left, holds * n_left, demand);
    else
        snprintf(out, size, "would do with %.0f; the plan found others cheaper",
                 fmax(ceil(demand / holds), 1));
}

static void put_place(struct api_text *t, const struct service *s, const struct job *j,
                      const struct replicas *r, int type, double demand)
{
    const struct estimator *est = &s->cycle.estimator;
    const struct state *st = state_of(s);
    double holds = services_capacity(&s->cycle, j->id, type, -1);
    int n_up, n_left = n_free(st, type, &n_up), n_here = n_there(st, j, r, type);
    double watts =
        isnan(holds) ? (double)NAN : (double)estimate_cell(est, j->spec.workload, type, -1).watts;
    char verdict[200];

    say_verdict(verdict, sizeof verdict, j, type, holds, demand, n_here, n_left, n_up);
    api_put_open(t, NULL, '{');
    api_put_text(t, "type", s->base.catalog.types[type].name);
    api_put_whole(t, "gpus", n_up);
    api_put_whole(t, "free", n_left);
    api_put_whole(t, "replicas", n_here);
    api_put_number(t, "capacity", holds);
    api_put_number(t, "needed", holds > 0 ? ceil(demand / holds) : (double)NAN);
    api_put_number(t, "watts", watts);
    api_put_number(t, "joules_per_1000_requests", holds > 0 ? 1000 * watts / holds : (double)NAN);
    api_put_text(t, "verdict", verdict);
    put_neighbours(t, s, j, type);
    api_put_close(t, '}');
}

/* Types of the cluster, in the catalog's order. */
static void put_places(struct api_text *t, const struct service *s, const struct job *j,
                       const struct replicas *r, double demand)
{
    const struct state *st = state_of(s);

    api_put_open(t, "places", '[');
    for (int type = 0; type < s->base.catalog.n_types && !job_is_over(j); type++) {
        bool is_here = false;
        for (int g = 0; g < st->n_gpus && !is_here; g++)
            is_here = st->gpus[g].type == type;
        if (is_here)
            put_place(t, s, j, r, type, demand);
    }
    api_put_close(t, ']');
}

/* ---- the object ---- */

static double said(double v)
{
    return v > 0 ? v : (double)NAN;
}

static void put_asked(struct api_text *t, const struct service *s, const struct job *j)
{
    const struct service_terms *terms = j->spec.terms;

    api_put_text(t, "workload", s->base.catalog.workloads[j->spec.workload].name);
    api_put_number(t, "promised_rate", j->spec.rate);
    api_put_number(t, "p99_s", said(terms->latency_s));
    api_put_number(t, "ttft_s", said(terms->ttft_s));
    api_put_number(t, "tpot_s", said(terms->tpot_s));
    api_put_whole(t, "max_batch", service_batch(terms));
    api_put_whole(t, "max_gpus", j->spec.max_gpus);
    api_put_flag(t, "no_move", terms->is_unmoved);
    api_put_time(t, "submit_s", j->spec.submit_s);
}

static void put_seen(struct api_text *t, const struct service_now *n,
                     const struct replica_sums *sums)
{
    static const char *const sources[] = { "careful", "metrics", "replay" };

    api_put_number(t, "rate", n->rate);
    api_put_number(t, "demand", n->demand);
    api_put_number(t, "capacity", n->held);
    api_put_whole(t, "ready", n->n_ready);
    api_put_whole(t, "starting", n->n_starting);
    api_put_whole(t, "draining", n->n_draining);
    api_put_number(t, "requests", n->n_requests);
    api_put_number(t, "late", n->n_late);
    api_put_number(t, "late_share", n->n_requests > 0 ? n->n_late / n->n_requests : (double)NAN);
    api_put_null(t, "p99_seen_s");    // reports have counts of late requests only
    api_put_number(t, "watts", sums->watts);
    api_put_number(t, "joules", sums->joules);
    double requests = fmax(sums->requests, n->n_requests);    // the first may be told later
    api_put_number(t, "joules_per_1000_requests",
                   requests > 0 ? 1000 * sums->joules / requests : (double)NAN);
    api_put_text(t, "capacity_from", sources[n->source]);
    api_put_whole(t, "hours", n->n_hours);
    api_put_number(t, "load_s", said(n->load_s));
    api_put_whole(t, "failures", n->n_failures);
    api_put_time(t, "heard_s", n->heard_s);
}

void service_put(struct api_text *t, const char *key, const struct service *s, const struct job *j,
                 const struct replicas *r, bool is_whole, double now_s)
{
    struct service_now n = now_of(s, j);

    api_put_open(t, key, '{');
    api_put_whole(t, "id", j->id);
    api_put_text(t, "name", j->spec.name);
    api_put_text(t, "owner", j->spec.owner);
    api_put_text(t, "state", service_standing(s, j));
    put_asked(t, s, j);
    put_seen(t, &n, &r->sums[index_of(state_of(s), j->id)]);
    put_replicas(t, s, j, r);
    put_warnings(t, &n, j, now_s);
    put_why(t, s, &n, j, now_s);
    if (is_whole)
        put_places(t, s, j, r, isnan(n.demand) ? j->spec.rate : n.demand);
    api_put_close(t, '}');
}

/* ---- endpoints ---- */

void service_put_endpoints(struct api_text *t, const struct service *s, const struct job *j,
                           const struct replicas *r)
{
    const struct state *st = state_of(s);

    api_put_open(t, NULL, '{');
    api_put_text(t, "service", j->spec.name);
    api_put_whole(t, "id", j->id);
    api_put_whole(t, "version", 0);
    api_put_open(t, "endpoints", '[');
    for (int i = 0; i < r->n_live; i++) {
        const struct job *one = st->jobs[r->live[i]];
        if (one->spec.service != j->id)
            continue;
        api_put_open(t, NULL, '{');
        api_put_whole(t, "replica", one->spec.replica);
        api_put_text(t, "host", endpoints_host(s, gpu_of(one)));
        api_put_whole(t, "port", one->spec.port);
        api_put_number(t, "weight", weight_of(s, one));
        api_put_text(t, "state", one->state == JOB_WAITING ? "starting" : replica_state(one));
        api_put_close(t, '}');
    }
    api_put_close(t, ']');
    api_put_close(t, '}');
}

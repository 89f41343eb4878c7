#include "catalog/cluster/snapshot.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

static void copy_job(struct arena *a, const struct job *j, double now_s, struct snapshot_job *out)
{
    bool is_running = j->state == JOB_RUNNING;
    int *gpus = ARENA_ARRAY(a, int, (size_t)j->n_held);

    memcpy(gpus, j->gpus, (size_t)j->n_held * sizeof *gpus);
    *out = (struct snapshot_job){
        .id = j->id,
        .spec = &j->spec,
        .workload = j->spec.workload,
        .need = job_need(j, now_s),
        .remaining = job_remaining(j, now_s),
        .time_left_s = job_time_left_s(j, now_s),
        .is_running = is_running,
        .n_held = j->n_held,
        .gpus = gpus,
        .limit_w = j->limit_w,
        .waited_s = is_running ? 0 : now_s - j->changed_s,
        .ran_s = is_running ? now_s - j->changed_s : 0,
    };
}

/* ---- services ---- */

static const struct service_view *view_of(const struct state *s, struct snapshot_marks marks,
                                          const struct job *j)
{
    int id = j->spec.kind == JOB_REPLICA ? j->spec.service : j->id;

    for (int i = 0; i < s->n_services && marks.services; i++)
        if (s->services[i] == id)
            return marks.services + i;
    return NULL;
}

/* May a plan let this replica go, or put it elsewhere? */
static bool is_loose(const struct state *s, struct snapshot_marks marks, const struct job *j,
                     double now_s)
{
    const struct service_view *v = j->spec.kind == JOB_REPLICA ? view_of(s, marks, j) : NULL;

    return v && job_serves_now(j) && now_s - j->ready_s >= v->hold_s &&
           s->jobs[j->spec.service]->state == JOB_WAITING;
}

/* Its loose replicas and their GPUs; true: it has some. */
static bool copy_service(struct arena *a, const struct state *s, struct snapshot_marks marks,
                         int service, double now_s, struct snapshot_job *out)
{
    const struct job *j = s->jobs[service];
    int *gpus = ARENA_ARRAY(a, int, SERVICE_GPUS_MOST);
    int *replicas = ARENA_ARRAY(a, int, SERVICE_GPUS_MOST);
    int n = 0;

    copy_job(a, j, now_s, out);
    for (int i = 0; i < s->n_running && n < SERVICE_GPUS_MOST; i++) {
        const struct job *r = s->jobs[s->running[i]];
        if (r->spec.terms && r->spec.service == service && is_loose(s, marks, r, now_s)) {
            gpus[n] = r->gpus[0];
            replicas[n++] = r->id;
        }
    }
    out->service = view_of(s, marks, j);
    out->n_held = n;
    out->gpus = gpus;
    out->replicas = replicas;
    out->is_running = n > 0;
    out->ran_s = n > 0 ? now_s - j->changed_s : 0;
    return n > 0;
}

/* Those with loose replicas to the running jobs, the others behind them; returns how many. */
static int copy_services(struct arena *a, const struct state *s, struct snapshot_marks marks,
                         double now_s, struct snapshot_job *jobs, int *n_running)
{
    int n = 0;
    struct snapshot_job *later = ARENA_ARRAY(a, struct snapshot_job, (size_t)s->n_services);

    for (int i = 0; i < s->n_services && marks.services; i++)
        if (s->jobs[s->services[i]]->state == JOB_WAITING) {
            bool has_loose = copy_service(a, s, marks, s->services[i], now_s, &later[n]);
            if (has_loose)
                jobs[(*n_running)++] = later[n];
            n += !has_loose;
        }
    for (int i = 0; i < n; i++)
        jobs[*n_running + i] = later[i];
    return n;
}

bool snapshot_is_so(const struct snapshot_job *seen, const struct state *now)
{
    const struct job *j = now->jobs[seen->id];

    if (j->spec.kind != JOB_SERVICE)
        return j->state == (seen->is_running ? JOB_RUNNING : JOB_WAITING) &&
               gpus_same(j->gpus, j->n_held, seen->gpus, seen->n_held);
    for (int i = 0; i < seen->n_held; i++)
        if (!job_serves_now(now->jobs[seen->replicas[i]]))
            return false;
    return j->state == JOB_WAITING;
}

/* The front of the queue, parked jobs left out, into 'ids'; returns how many. */
static int front_of_queue(const struct state *s, struct snapshot_marks marks, int *ids)
{
    int n = 0;

    for (int i = s->first_waiting; i >= 0 && n < SNAPSHOT_WAITING_MAX; i = s->jobs[i]->next_waiting)
        if (!marks.is_parked || i >= marks.n_parked || !marks.is_parked[i])
            ids[n++] = i;
    return n;
}

static void copy_gpus(const struct state *s, struct snapshot_marks marks, struct snapshot_gpu *gpus)
{
    const bool *is_busy = marks.is_busy;
    const double *wake_s = marks.wake_s;

    for (int g = 0; g < s->n_gpus; g++) {
        const struct gpu *from = &s->gpus[g];
        gpus[g] = (struct snapshot_gpu){ .type = from->type,
                                         .node = from->node,
                                         .may_start = s->nodes[from->node].state == NODE_UP &&
                                                      !(is_busy && is_busy[g]),
                                         .wake_s = wake_s && wake_s[g] > 0 ? wake_s[g] : 0 };
    }
}

void snapshot_take(struct arena *a, const struct state *s, const struct catalog *c, double now_s,
                   int theta, struct snapshot_marks marks, struct snapshot *out)
{
    int waiting[SNAPSHOT_WAITING_MAX], n_running = 0;
    int n_waiting = front_of_queue(s, marks, waiting);
    struct snapshot_job *jobs =
        ARENA_ARRAY(a, struct snapshot_job, (size_t)(s->n_running + s->n_services + n_waiting));
    struct snapshot_gpu *gpus = ARENA_ARRAY(a, struct snapshot_gpu, (size_t)s->n_gpus);
    struct node *nodes = ARENA_ARRAY(a, struct node, (size_t)s->n_nodes);

    assert(theta >= 1 && theta <= THETA_MAX);
    for (int i = 0; i < s->n_nodes; i++)
        nodes[i] = s->nodes[i];
    copy_gpus(s, marks, gpus);
    for (int i = 0; i < s->n_running; i++) {
        const struct job *j = s->jobs[s->running[i]];
        if (is_loose(s, marks, j, now_s))
            continue;
        copy_job(a, j, now_s, &jobs[n_running]);
        if (j->spec.terms) {
            jobs[n_running].service = view_of(s, marks, j);
            jobs[n_running].is_leaving = !isnan(j->drain_s);
        }
        n_running++;
    }
    int n_services = copy_services(a, s, marks, now_s, jobs, &n_running);
    for (int i = 0; i < n_waiting; i++)
        copy_job(a, s->jobs[waiting[i]], now_s, &jobs[n_running + n_services + i]);
    for (int i = 0; i < n_running; i++)
        for (int k = 0; k < jobs[i].n_held; k++) {
            struct snapshot_gpu *g = &gpus[jobs[i].gpus[k]];
            g->jobs[g->n_jobs++] = i;
        }
    *out = (struct snapshot){
        .now_s = now_s,
        .catalog = c,
        .theta = theta,
        .n_gpus = s->n_gpus,
        .gpus = gpus,
        .n_jobs = n_running + n_services + n_waiting,
        .n_running = n_running,
        .jobs = jobs,
        .n_behind = s->n_waiting - n_waiting,
        .nodes = nodes,
        .n_nodes = s->n_nodes,
    };
}

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
    int waiting[SNAPSHOT_WAITING_MAX];
    int n_waiting = front_of_queue(s, marks, waiting);
    struct snapshot_job *jobs =
        ARENA_ARRAY(a, struct snapshot_job, (size_t)(s->n_running + n_waiting));
    struct snapshot_gpu *gpus = ARENA_ARRAY(a, struct snapshot_gpu, (size_t)s->n_gpus);
    struct node *nodes = ARENA_ARRAY(a, struct node, (size_t)s->n_nodes);

    assert(theta >= 1 && theta <= THETA_MAX);
    for (int i = 0; i < s->n_nodes; i++)
        nodes[i] = s->nodes[i];
    copy_gpus(s, marks, gpus);
    for (int i = 0; i < s->n_running; i++)
        copy_job(a, s->jobs[s->running[i]], now_s, &jobs[i]);
    for (int i = 0; i < n_waiting; i++)
        copy_job(a, s->jobs[waiting[i]], now_s, &jobs[s->n_running + i]);
    for (int i = 0; i < s->n_running; i++)
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
        .n_jobs = s->n_running + n_waiting,
        .n_running = s->n_running,
        .jobs = jobs,
        .n_behind = s->n_waiting - n_waiting,
        .nodes = nodes,
        .n_nodes = s->n_nodes,
    };
}

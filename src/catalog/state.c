#include "catalog/state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/text.h"

void state_init(struct state *s)
{
    *s = (struct state){ .first_waiting = -1, .last_waiting = -1 };
    arena_init(&s->arena);
    map_init(&s->node_by_name);
    map_init(&s->job_by_name);
}

void state_release(struct state *s)
{
    free(s->nodes);
    free(s->gpus);
    free(s->jobs);
    free(s->running);
    map_release(&s->node_by_name);
    map_release(&s->job_by_name);
    arena_release(&s->arena);
}

int state_find_node(const struct state *s, const char *name)
{
    return map_get(&s->node_by_name, name);
}

int state_find_job(const struct state *s, const char *name)
{
    return map_get(&s->job_by_name, name);
}

int state_find_gpu(const struct state *s, const char *node, int slot)
{
    int n = state_find_node(s, node);

    if (n < 0 || slot < 0 || slot >= s->nodes[n].n_gpus)
        return -1;
    return s->nodes[n].first_gpu + slot;
}

/* ---- the queue: higher priority first, then the older job ---- */

static bool goes_before(const struct job *a, const struct job *b)
{
    if (a->spec.priority != b->spec.priority)
        return a->spec.priority > b->spec.priority;
    return a->id < b->id;
}

static void queue_insert_after(struct state *s, struct job *j, int before)
{
    int after = before < 0 ? s->first_waiting : s->jobs[before]->next_waiting;

    j->prev_waiting = before;
    j->next_waiting = after;
    if (before < 0)
        s->first_waiting = j->id;
    else
        s->jobs[before]->next_waiting = j->id;
    if (after < 0)
        s->last_waiting = j->id;
    else
        s->jobs[after]->prev_waiting = j->id;
    s->n_waiting++;
}

/* Newcomers belong at the end and returning jobs near the front: look there first. */
static void queue_add(struct state *s, struct job *j)
{
    int before = s->last_waiting;

    if (s->first_waiting >= 0 && goes_before(j, s->jobs[s->first_waiting]))
        before = -1;
    while (before >= 0 && goes_before(j, s->jobs[before]))
        before = s->jobs[before]->prev_waiting;
    queue_insert_after(s, j, before);
}

static void queue_remove(struct state *s, struct job *j)
{
    if (j->prev_waiting < 0)
        s->first_waiting = j->next_waiting;
    else
        s->jobs[j->prev_waiting]->next_waiting = j->next_waiting;
    if (j->next_waiting < 0)
        s->last_waiting = j->prev_waiting;
    else
        s->jobs[j->next_waiting]->prev_waiting = j->prev_waiting;
    j->next_waiting = j->prev_waiting = -1;
    s->n_waiting--;
}

/* ---- who runs where ---- */

/* Where 'id' stands among the running, or would stand. */
static int running_place(const struct state *s, int id)
{
    int low = 0, high = s->n_running;

    while (low < high) {
        int middle = (low + high) / 2;
        if (s->running[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void running_add(struct state *s, struct job *j)
{
    int *at = s->running + running_place(s, j->id);

    memmove(at + 1, at, (size_t)(s->running + s->n_running++ - at) * sizeof *at);
    *at = j->id;
}

static void running_remove(struct state *s, struct job *j)
{
    int *at = s->running + running_place(s, j->id);

    assert(at < s->running + s->n_running && *at == j->id);
    memmove(at, at + 1, (size_t)(s->running + --s->n_running - at) * sizeof *at);
}

static void gpu_drop(struct gpu *g, int job)
{
    for (int i = 0; i < g->n_jobs; i++) {
        if (g->jobs[i] == job) {
            g->jobs[i] = g->jobs[--g->n_jobs];
            return;
        }
    }
    assert(!"a job holds a GPU that does not know it");
}

static void gpus_leave(struct state *s, struct job *j)
{
    for (int i = 0; i < j->n_held; i++)
        gpu_drop(&s->gpus[j->gpus[i]], j->id);
    j->n_held = 0;
    j->limit_w = 0;
}

static void gpus_take(struct state *s, struct job *j, const struct event *ev)
{
    for (int i = 0; i < ev->n_gpus; i++) {
        struct gpu *g = &s->gpus[ev->gpus[i]];
        g->jobs[g->n_jobs++] = j->id;
        j->gpus[i] = ev->gpus[i];
    }
    j->n_held = ev->n_gpus;
    j->limit_w = ev->limit_w;
}

/* ---- events ---- */

static int node_add(struct state *s, const struct event *ev, struct err *e)
{
    if (!text_is_name(slice_of(ev->node)))
        return err_set(e, EINVAL, "names of nodes are 1 to 200 printable bytes of UTF-8");
    if (state_find_node(s, ev->node) >= 0)
        return err_set(e, EINVAL, "node %s is there already", ev->node);
    GROW(s->nodes, s->n_nodes, s->cap_nodes);
    struct node *n = &s->nodes[s->n_nodes];
    *n = (struct node){ .name = arena_strdup(&s->arena, ev->node),
                        .state = NODE_UP,
                        .first_gpu = s->n_gpus,
                        .n_gpus = ev->n_gpus };
    for (int i = 0; i < ev->n_gpus; i++) {
        GROW(s->gpus, s->n_gpus, s->cap_gpus);
        s->gpus[s->n_gpus++] =
            (struct gpu){ .node = s->n_nodes, .slot = i, .type = ev->gpu_types[i] };
    }
    map_set(&s->node_by_name, n->name, s->n_nodes++);
    return 0;
}

static int node_change(struct state *s, const struct event *ev, struct err *e)
{
    int n = state_find_node(s, ev->node);

    if (n < 0)
        return err_set(e, EINVAL, "there is no node %s", ev->node);
    s->nodes[n].state = ev->node_state;
    return 0;
}

static bool is_live(const struct job *j)
{
    return j->state == JOB_WAITING || j->state == JOB_HELD || j->state == JOB_RUNNING;
}

static void jobs_grow(struct state *s)
{
    GROW_BESIDE(s->running, s->n_jobs, s->cap_jobs);
    GROW(s->jobs, s->n_jobs, s->cap_jobs);
}

static int job_submit(struct state *s, const struct event *ev, struct err *e)
{
    int rc = job_spec_check(ev->spec, e);

    if (rc < 0)
        return err_prefix(e, "job %s", ev->spec->name ? ev->spec->name : "without a name");
    int known = state_find_job(s, ev->spec->name);
    if (known >= 0 && is_live(s->jobs[known]))
        return err_set(e, EINVAL, "job %s is there already; choose another name", ev->spec->name);
    jobs_grow(s);
    struct job *j = ARENA_NEW(&s->arena, struct job);
    *j = (struct job){ .spec = *ev->spec, .id = s->n_jobs, .state = JOB_WAITING };
    j->spec.name = arena_strdup(&s->arena, ev->spec->name);
    j->spec.owner = ev->spec->owner ? arena_strdup(&s->arena, ev->spec->owner) : NULL;
    j->gpus = ARENA_ARRAY(&s->arena, int, (size_t)ev->spec->max_gpus);
    j->started_s = NAN;
    j->changed_s = j->heard_s = ev->time_s;
    s->jobs[s->n_jobs++] = j;
    map_set(&s->job_by_name, j->spec.name, j->id);
    queue_add(s, j);
    return 0;
}

/* May 'j' take exactly these GPUs? Its own present ones count as free for it. */
static int gang_check(const struct state *s, const struct job *j, const struct event *ev,
                      struct err *e)
{
    if (ev->n_gpus < j->spec.n_gpus || ev->n_gpus > j->spec.max_gpus)
        return err_set(e, EINVAL, "job %s asked for %d to %d GPUs, not %d", j->spec.name,
                       j->spec.n_gpus, j->spec.max_gpus, ev->n_gpus);
    for (int i = 0; i < ev->n_gpus; i++) {
        int g = ev->gpus[i];
        if (g < 0 || g >= s->n_gpus)
            return err_set(e, EINVAL, "job %s: there is no GPU %d", j->spec.name, g);
        for (int k = 0; k < i; k++)
            if (ev->gpus[k] == g)
                return err_set(e, EINVAL, "job %s: GPU %d twice", j->spec.name, g);
        int others = s->gpus[g].n_jobs;
        for (int k = 0; k < j->n_held; k++)
            others -= j->gpus[k] == g;
        if (others >= THETA_MAX)
            return err_set(e, EINVAL, "job %s: GPU %d is full", j->spec.name, g);
    }
    return 0;
}

/* A start where it runs already: another power limit, and no move. */
static bool is_relimit(const struct job *j, const struct event *ev)
{
    bool is_same =
        ev->kind == EVENT_JOB_STARTED && j->state == JOB_RUNNING && j->n_held == ev->n_gpus;

    for (int i = 0; i < ev->n_gpus && is_same; i++) {
        int k = 0;
        while (k < j->n_held && j->gpus[k] != ev->gpus[i])
            k++;
        is_same = k < j->n_held;
    }
    return is_same;
}

static int job_start(struct state *s, struct job *j, const struct event *ev, struct err *e)
{
    int rc = gang_check(s, j, ev, e);

    if (rc < 0)
        return rc;
    if (is_relimit(j, ev)) {
        j->limit_w = ev->limit_w;
        return 0;
    }
    if (j->state == JOB_RUNNING) {
        gpus_leave(s, j);
        j->n_moves++;
    } else {
        queue_remove(s, j);
        running_add(s, j);
        j->state = JOB_RUNNING;
    }
    gpus_take(s, j, ev);
    if (isnan(j->started_s))
        j->started_s = ev->time_s;
    return 0;
}

static void job_leave(struct state *s, struct job *j)
{
    if (j->state == JOB_RUNNING) {
        gpus_leave(s, j);
        running_remove(s, j);
    } else if (j->state == JOB_WAITING) {
        queue_remove(s, j);
    }
}

static int job_end(struct state *s, struct job *j, enum job_state how)
{
    job_leave(s, j);
    j->state = how;
    s->n_ended++;
    return 0;
}

/* Which states an event may find a job in; anything else is an arrow not drawn. */
static const unsigned allowed_from[EVENT_KINDS] = {
    [EVENT_JOB_STARTED] = 1 << JOB_WAITING | 1 << JOB_RUNNING,
    [EVENT_JOB_PROGRESSED] = 1 << JOB_RUNNING,
    [EVENT_JOB_STOPPED] = 1 << JOB_RUNNING,
    [EVENT_JOB_FINISHED] = 1 << JOB_RUNNING,
    [EVENT_JOB_FAILED] = 1 << JOB_RUNNING,
    [EVENT_JOB_CANCELLED] = 1 << JOB_WAITING | 1 << JOB_HELD | 1 << JOB_RUNNING,
    [EVENT_JOB_HELD] = 1 << JOB_WAITING,
    [EVENT_JOB_RELEASED] = 1 << JOB_HELD,
};

bool state_expects(const struct state *s, enum event_kind kind, int job)
{
    return job >= 0 && job < s->n_jobs && (allowed_from[kind] & 1u << s->jobs[job]->state);
}

static int job_change(struct state *s, struct job *j, const struct event *ev, struct err *e)
{
    switch (ev->kind) {
    case EVENT_JOB_STARTED:
        return job_start(s, j, ev, e);
    case EVENT_JOB_PROGRESSED:
        return 0;
    case EVENT_JOB_STOPPED:
        job_leave(s, j);
        j->state = JOB_WAITING;
        queue_add(s, j);
        return 0;
    case EVENT_JOB_FINISHED:
        return job_end(s, j, JOB_FINISHED);
    case EVENT_JOB_FAILED:
        return job_end(s, j, JOB_FAILED);
    case EVENT_JOB_CANCELLED:
        return job_end(s, j, JOB_CANCELLED);
    case EVENT_JOB_HELD:
        job_leave(s, j);
        j->state = JOB_HELD;
        return 0;
    case EVENT_JOB_RELEASED:
        j->state = JOB_WAITING;
        queue_add(s, j);
        return 0;
    default:
        assert(!"not an event of a job");
        return 0;
    }
}

/* How far it is, and how fast it went since the last time it was heard in this place. */
static void hear(struct job *j, const struct event *ev)
{
    double since_s = ev->time_s - j->heard_s;
    double steps = ev->steps_done - j->steps_done;

    if (ev->kind != EVENT_JOB_PROGRESSED)
        j->pace = 0;
    else if (since_s > 0 && steps >= 0)
        j->pace = steps / since_s;
    j->steps_done = fmax(j->steps_done, ev->steps_done);
    j->heard_s = ev->time_s;
}

static int job_apply(struct state *s, const struct event *ev, struct err *e)
{
    if (ev->job < 0 || ev->job >= s->n_jobs)
        return err_set(e, EINVAL, "%s: there is no job %d", event_kind_name(ev->kind), ev->job);
    struct job *j = s->jobs[ev->job];
    if (!state_expects(s, ev->kind, ev->job))
        return err_set(e, EINVAL, "%s: job %s is %s", event_kind_name(ev->kind), j->spec.name,
                       job_state_name(j->state));
    enum job_state was = j->state;
    bool stays = is_relimit(j, ev);
    int rc = job_change(s, j, ev, e);
    if (rc < 0)
        return rc;
    hear(j, ev);
    if (j->state != was || (ev->kind == EVENT_JOB_STARTED && !stays))
        j->changed_s = ev->time_s;
    return 0;
}

int state_apply(struct state *s, const struct event *ev, struct err *e)
{
    int rc;

    if (!isfinite(ev->time_s))
        return err_set(e, EINVAL, "%s: when? its time is not finite", event_kind_name(ev->kind));
    if (ev->kind == EVENT_NODE_ADDED)
        rc = node_add(s, ev, e);
    else if (ev->kind == EVENT_NODE_CHANGED)
        rc = node_change(s, ev, e);
    else if (ev->kind == EVENT_JOB_SUBMITTED)
        rc = job_submit(s, ev, e);
    else
        rc = job_apply(s, ev, e);
    if (rc == 0 && ev->kind != EVENT_JOB_PROGRESSED)
        s->version++;
    if (rc == 0 && (ev->kind == EVENT_NODE_ADDED || ev->kind == EVENT_NODE_CHANGED))
        s->node_version++;
    return rc;
}

int state_restore_job(struct state *s, const struct job *as, struct err *e)
{
    struct event submit = { .kind = EVENT_JOB_SUBMITTED, .spec = &as->spec };
    struct event start = {
        .kind = EVENT_JOB_STARTED, .gpus = as->gpus, .n_gpus = as->n_held, .limit_w = as->limit_w
    };

    if (as->id != s->n_jobs)
        return err_set(e, EINVAL, "job %s has id %d where %d is next", as->spec.name, as->id,
                       s->n_jobs);
    int rc = state_apply(s, &submit, e);
    if (rc < 0)
        return rc;
    struct job *j = s->jobs[as->id];
    if (as->state == JOB_RUNNING)
        rc = job_start(s, j, &start, e);
    else if (as->state != JOB_WAITING)
        queue_remove(s, j);
    if (rc < 0)
        return rc;
    j->state = as->state;
    s->n_ended += !is_live(j);
    j->steps_done = as->steps_done;
    j->heard_s = as->heard_s;
    j->pace = as->pace;
    j->changed_s = as->changed_s;
    j->started_s = as->started_s;
    j->n_moves = as->n_moves;
    return 0;
}

static int gpu_holds(const struct gpu *g, int job)
{
    int n = 0;

    for (int i = 0; i < g->n_jobs; i++)
        n += g->jobs[i] == job;
    return n;
}

void state_assert(const struct state *s)
{
    int n_waiting = 0, n_running = 0, n_ended = 0, n_held = 0;

    for (int i = 0; i < s->n_jobs; i++) {
        const struct job *j = s->jobs[i];
        n_running += j->state == JOB_RUNNING;
        n_ended += !is_live(j);
        assert((j->state == JOB_RUNNING) == (j->n_held > 0));
        assert(j->state != JOB_RUNNING || s->running[running_place(s, i)] == i);
        for (int k = 0; k < j->n_held; k++)
            assert(gpu_holds(&s->gpus[j->gpus[k]], i) == 1);
        n_held += j->n_held;
    }
    for (int g = 0; g < s->n_gpus; g++)
        n_held -= s->gpus[g].n_jobs;
    for (int i = s->first_waiting; i >= 0; i = s->jobs[i]->next_waiting) {
        int next = s->jobs[i]->next_waiting;
        assert(s->jobs[i]->state == JOB_WAITING);
        assert(next < 0 || goes_before(s->jobs[i], s->jobs[next]));
        n_waiting++;
    }
    assert(n_held == 0 && n_waiting == s->n_waiting);
    assert(n_running == s->n_running && n_ended == s->n_ended);
}

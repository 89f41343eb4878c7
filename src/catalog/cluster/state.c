#include "catalog/cluster/state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/text/text.h"
#include "catalog/cluster/terms.h"

void state_init(struct state *s)
{
    *s = (struct state){ .first_waiting = -1, .last_waiting = -1 };
    arena_init(&s->arena);
    arena_init(&s->past);
}

void state_release(struct state *s)
{
    free(s->nodes);
    free(s->gpus);
    free(s->jobs);
    free(s->running);
    free(s->services);
    map_release(&s->node_by_name);
    map_release(&s->job_by_name);
    map_release(&s->job_by_key);
    arena_release(&s->arena);
    free(s->changes);
    arena_release(&s->past);
}

/* The maps never forget: what they find may be gone (state_undo), or be somebody else by now. */
int state_find_node(const struct state *s, const char *name)
{
    int n = map_get(&s->node_by_name, name);

    return n >= 0 && n < s->n_nodes && strcmp(s->nodes[n].name, name) == 0 ? n : -1;
}

int state_find_job(const struct state *s, const char *name)
{
    int j = map_get(&s->job_by_name, name);

    return j >= 0 && j < s->n_jobs && strcmp(s->jobs[j]->spec.name, name) == 0 ? j : -1;
}

int state_find_key(const struct state *s, const char *key)
{
    int j = map_get(&s->job_by_key, key);
    const char *has = j >= 0 && j < s->n_jobs ? s->jobs[j]->spec.key : NULL;

    return has && strcmp(has, key) == 0 ? j : -1;
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

/* A service has no place of its own, and a replica has one from the beginning. */
static bool is_queued(const struct job *j)
{
    return j->state == JOB_WAITING && !j->spec.terms;
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

static int node_add_check(const struct state *s, const struct event *ev, struct err *e)
{
    if (!text_is_name(slice_of(ev->node)))
        return err_set(e, EINVAL, "names of nodes are 1 to 200 printable bytes of UTF-8");
    if (state_find_node(s, ev->node) >= 0)
        return err_set(e, EINVAL, "node %s is there already", ev->node);
    return 0;
}

static void node_add(struct state *s, const struct event *ev)
{
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
}

static int submit_check(const struct state *s, const struct job_spec *spec, struct err *e)
{
    struct err why = { 0 };

    if (job_spec_check(spec, &why) < 0)
        return err_set(e, EINVAL, "job %s: %s", spec->name ? spec->name : "without a name",
                       why.text);
    int known = state_find_job(s, spec->name);
    if (known >= 0 && !job_is_over(s->jobs[known]))
        return err_set(e, EINVAL, "job %s is there already; choose another name", spec->name);
    if (spec->key && state_find_key(s, spec->key) >= 0)
        return err_set(e, EINVAL, "job %s: another one was submitted with the same key",
                       spec->name);
    return 0;
}

/* A replica's service is one, and lives. */
static int replica_check(const struct state *s, const struct job_spec *spec, struct err *e)
{
    const struct job *of = spec->service < s->n_jobs ? s->jobs[spec->service] : NULL;

    if (!of || of->spec.kind != JOB_SERVICE || job_is_over(of))
        return err_set(e, EINVAL, "job %s: there is no service %d", spec->name, spec->service);
    if (spec->gpu < 0 || spec->gpu >= s->n_gpus)
        return err_set(e, EINVAL, "job %s: there is no GPU %d", spec->name, spec->gpu);
    return 0;
}

/* A new job that waits, but not in the queue yet. */
static struct job *job_make(struct state *s, const struct job_spec *spec)
{
    struct job *j = ARENA_NEW(&s->arena, struct job);

    GROW_BESIDE(s->running, s->n_jobs, s->cap_jobs);
    GROW(s->jobs, s->n_jobs, s->cap_jobs);
    *j = (struct job){ .spec = *spec,
                       .id = s->n_jobs,
                       .state = JOB_WAITING,
                       .started_s = NAN,
                       .ready_s = NAN,
                       .drain_s = NAN,
                       .next_waiting = -1,
                       .prev_waiting = -1 };
    j->spec.name = arena_strdup(&s->arena, spec->name);
    j->spec.owner = arena_strdup(&s->arena, spec->owner);
    j->spec.command = arena_strdup(&s->arena, spec->command);
    j->spec.key = arena_strdup(&s->arena, spec->key);
    j->spec.digest = arena_strdup(&s->arena, spec->digest);
    j->spec.terms = terms_copy(&s->arena, spec->terms);
    j->gpus = ARENA_ARRAY(&s->arena, int, (size_t)spec->max_gpus);
    if (spec->kind == JOB_SERVICE) {
        GROW(s->services, s->n_services, s->cap_services);
        s->services[s->n_services++] = j->id;
    }
    s->jobs[s->n_jobs++] = j;
    map_set(&s->job_by_name, j->spec.name, j->id);
    if (j->spec.key)
        map_set(&s->job_by_key, j->spec.key, j->id);
    return j;
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
        if (gpus_have(ev->gpus, i, g))
            return err_set(e, EINVAL, "job %s: GPU %d twice", j->spec.name, g);
        if (s->gpus[g].n_jobs - gpus_have(j->gpus, j->n_held, g) >= GPU_JOBS_MAX)
            return err_set(e, EINVAL, "job %s: GPU %d is full", j->spec.name, g);
    }
    return 0;
}

/* A start where it runs already: another power limit, and no move. */
static bool is_relimit(const struct job *j, const struct event *ev)
{
    return ev->kind == EVENT_JOB_STARTED && j->state == JOB_RUNNING &&
           gpus_same(j->gpus, j->n_held, ev->gpus, ev->n_gpus);
}

/* Out of the queue, off its GPUs, or no longer ended: wherever its state has it. */
static void job_leave(struct state *s, struct job *j)
{
    if (j->state == JOB_RUNNING) {
        gpus_leave(s, j);
        running_remove(s, j);
    } else if (is_queued(j)) {
        queue_remove(s, j);
    }
    s->n_ended -= job_is_over(j);
}

/* And in again, by its new state; one that runs, on the GPUs of 'ev'. */
static void job_enter(struct state *s, struct job *j, const struct event *ev)
{
    if (j->state == JOB_RUNNING) {
        gpus_take(s, j, ev);
        running_add(s, j);
    } else if (is_queued(j)) {
        queue_add(s, j);
    }
    s->n_ended += job_is_over(j);
}

/* The arrows of job.h: the states an event may find a job in, and where it leads. */
static const struct {
    unsigned from;
    enum job_state to;
} arrows[EVENT_KINDS] = {
    [EVENT_JOB_STARTED] = { 1 << JOB_WAITING | 1 << JOB_RUNNING, JOB_RUNNING },
    [EVENT_JOB_PROGRESSED] = { 1 << JOB_RUNNING, JOB_RUNNING },
    [EVENT_JOB_STOPPED] = { 1 << JOB_RUNNING, JOB_WAITING },
    [EVENT_JOB_FINISHED] = { 1 << JOB_RUNNING, JOB_FINISHED },
    [EVENT_JOB_FAILED] = { 1 << JOB_RUNNING, JOB_FAILED },
    [EVENT_JOB_CANCELLED] = { 1 << JOB_WAITING | 1 << JOB_HELD | 1 << JOB_RUNNING, JOB_CANCELLED },
    [EVENT_JOB_HELD] = { 1 << JOB_WAITING, JOB_HELD },
    [EVENT_JOB_RELEASED] = { 1 << JOB_HELD, JOB_WAITING },
    [EVENT_SERVICE_SCALED] = { 1 << JOB_WAITING | 1 << JOB_HELD, JOB_WAITING },
    [EVENT_REPLICA_READY] = { 1 << JOB_RUNNING, JOB_RUNNING },
    [EVENT_REPLICA_DRAINING] = { 1 << JOB_RUNNING, JOB_RUNNING },
};

/* The kind of job that an event is for alone; -1: any. */
static int kind_for(enum event_kind k)
{
    return k == EVENT_SERVICE_SCALED                                 ? JOB_SERVICE
           : k == EVENT_REPLICA_READY || k == EVENT_REPLICA_DRAINING ? JOB_REPLICA
                                                                     : -1;
}

/* A service runs nowhere itself. */
static bool is_for(const struct job *j, enum event_kind k)
{
    if (j->spec.kind == JOB_SERVICE && k == EVENT_JOB_STARTED)
        return false;
    return kind_for(k) < 0 || kind_for(k) == (int)j->spec.kind;
}

bool state_expects(const struct state *s, enum event_kind kind, int job)
{
    return job >= 0 && job < s->n_jobs && (arrows[kind].from & 1u << s->jobs[job]->state) &&
           is_for(s->jobs[job], kind);
}

/* A start that is no relimit: on GPUs that gang_check has found free for it. */
static void note_start(struct job *j, const struct event *ev)
{
    j->n_moves += j->state == JOB_RUNNING || (j->reason && strcmp(j->reason, JOB_MOVING) == 0);
    if (isnan(j->started_s))
        j->started_s = ev->time_s;
    j->ready_s = j->drain_s = NAN;
}

static void job_change(struct state *s, struct job *j, const struct event *ev)
{
    if (ev->kind == EVENT_JOB_PROGRESSED)
        return;
    if (is_relimit(j, ev)) {
        j->limit_w = ev->limit_w;
        return;
    }
    if (ev->kind == EVENT_JOB_STARTED)
        note_start(j, ev);
    job_leave(s, j);
    j->state = arrows[ev->kind].to;
    job_enter(s, j, ev);
}

/* Is it the first count of its run? A start is heard as it changes the job; 0 is no count. */
static bool is_first_count(const struct job *j, const struct event *ev)
{
    return j->state == JOB_RUNNING && j->heard_s == j->changed_s && ev->steps_done > 0 &&
           (ev->kind == EVENT_JOB_PROGRESSED || ev->kind == EVENT_JOB_STOPPED ||
            ev->kind == EVENT_JOB_FINISHED);
}

/* How far it is, and how fast it went since the last time it was heard in this place. The first
 * count of a run may be less than the last one's: its checkpoint is older.
 */
static void hear(struct state *s, struct job *j, const struct event *ev, bool is_first)
{
    double since_s = ev->time_s - j->heard_s;
    double steps = ev->steps_done - j->steps_done;

    if (ev->kind != EVENT_JOB_PROGRESSED)
        j->pace = 0;
    else if (since_s > 0 && steps >= 0)
        j->pace = steps / since_s;
    j->steps_done = is_first ? ev->steps_done : fmax(j->steps_done, ev->steps_done);
    j->heard_s = ev->time_s;
    if (ev->kind != EVENT_JOB_PROGRESSED)
        j->reason = arena_strdup(&s->arena, ev->reason);
}

static int job_check(const struct state *s, const struct event *ev, struct err *e)
{
    if (ev->job < 0 || ev->job >= s->n_jobs)
        return err_set(e, EINVAL, "%s: there is no job %d", event_kind_name(ev->kind), ev->job);
    const struct job *j = s->jobs[ev->job];
    if (!is_for(j, ev->kind))
        return err_set(e, EINVAL, "%s: job %s is %s, and %s", event_kind_name(ev->kind),
                       j->spec.name, job_state_name(j->state),
                       j->spec.kind == JOB_SERVICE        ? "a service, which runs nowhere itself"
                       : ev->kind == EVENT_SERVICE_SCALED ? "no service"
                                                          : "no replica");
    if (!state_expects(s, ev->kind, ev->job))
        return err_set(e, EINVAL, "%s: job %s is %s", event_kind_name(ev->kind), j->spec.name,
                       job_state_name(j->state));
    if (ev->kind == EVENT_SERVICE_SCALED &&
        !(ev->rate >= 0 && ev->rate < 1e9 && ev->max_gpus >= 0 &&
          ev->max_gpus <= SERVICE_GPUS_MOST))
        return err_set(e, EINVAL, "a service is scaled to a rate > 0 and 1 to %d GPUs",
                       SERVICE_GPUS_MOST);
    return ev->kind == EVENT_JOB_STARTED ? gang_check(s, j, ev, e) : 0;
}

/* What does not move a job from where it stands. */
static void terms_apply(struct state *s, const struct event *ev)
{
    struct job *j = s->jobs[ev->job];

    if (ev->kind == EVENT_REPLICA_READY)
        j->ready_s = ev->time_s;
    else if (ev->kind == EVENT_REPLICA_DRAINING)
        j->drain_s = ev->time_s;
    else {
        j->spec.rate = ev->rate > 0 ? ev->rate : j->spec.rate;
        j->spec.max_gpus = ev->max_gpus > 0 ? ev->max_gpus : j->spec.max_gpus;
    }
}

static void job_apply(struct state *s, const struct event *ev)
{
    struct job *j = s->jobs[ev->job];
    enum job_state was = j->state;
    bool stays = is_relimit(j, ev), is_first = is_first_count(j, ev);

    job_change(s, j, ev);
    hear(s, j, ev, is_first);
    if (j->state != was || (ev->kind == EVENT_JOB_STARTED && !stays))
        j->changed_s = ev->time_s;
}

int state_check(const struct state *s, const struct event *ev, struct err *e)
{
    if (!isfinite(ev->time_s))
        return err_set(e, EINVAL, "%s: when? its time is not finite", event_kind_name(ev->kind));
    if (ev->kind == EVENT_NODE_ADDED)
        return node_add_check(s, ev, e);
    if (ev->kind == EVENT_JOB_SUBMITTED) {
        int rc = submit_check(s, ev->spec, e);
        return rc == 0 && ev->spec->kind == JOB_REPLICA ? replica_check(s, ev->spec, e) : rc;
    }
    if (ev->kind != EVENT_NODE_CHANGED)
        return job_check(s, ev, e);
    return state_find_node(s, ev->node) >= 0 ? 0
                                             : err_set(e, EINVAL, "there is no node %s", ev->node);
}

static void remember(struct state *s, const struct event *ev);

int state_apply(struct state *s, const struct event *ev, struct err *e)
{
    bool is_of_node = ev->kind == EVENT_NODE_ADDED || ev->kind == EVENT_NODE_CHANGED;
    int rc = state_check(s, ev, e);

    if (rc < 0)
        return rc;
    if (s->is_marked)
        remember(s, ev);
    if (ev->kind == EVENT_NODE_ADDED) {
        node_add(s, ev);
    } else if (ev->kind == EVENT_NODE_CHANGED) {
        s->nodes[state_find_node(s, ev->node)].state = ev->node_state;
    } else if (ev->kind == EVENT_JOB_SUBMITTED) {
        struct job *j = job_make(s, ev->spec);
        j->changed_s = j->heard_s = ev->time_s;
        if (is_queued(j))
            queue_add(s, j);
    } else if (kind_for(ev->kind) >= 0) {
        terms_apply(s, ev);
    } else {
        job_apply(s, ev);
    }
    s->version += ev->kind != EVENT_JOB_PROGRESSED;
    s->node_version += is_of_node;
    return 0;
}

/* ---- taking events back ---- */

struct undo_step {
    enum event_kind kind;
    int index;       // of the job or node
    int namesake;    // who had a new job's name before; -1: nobody
    struct job was;
    int *gpus;    // (was.n_held) in 'past'
    enum node_state node_state;
};

static void remember(struct state *s, const struct event *ev)
{
    GROW(s->changes, s->n_changes, s->cap_changes);
    struct undo_step *c = &s->changes[s->n_changes++];

    *c = (struct undo_step){ .kind = ev->kind, .namesake = -1 };
    if (ev->kind == EVENT_NODE_CHANGED) {
        c->index = state_find_node(s, ev->node);
        c->node_state = s->nodes[c->index].state;
    } else if (ev->kind == EVENT_JOB_SUBMITTED) {
        c->index = s->n_jobs;
        c->namesake = state_find_job(s, ev->spec->name);
    } else if (ev->kind != EVENT_NODE_ADDED) {
        c->index = ev->job;
        c->was = *s->jobs[ev->job];
        c->gpus = ARENA_ARRAY(&s->past, int, (size_t)c->was.n_held);
        memcpy(c->gpus, c->was.gpus, (size_t)c->was.n_held * sizeof *c->gpus);
    }
}

static void job_unmake(struct state *s, const struct undo_step *c)
{
    struct job *j = s->jobs[c->index];

    assert(c->index == s->n_jobs - 1);
    if (is_queued(j))
        queue_remove(s, j);
    s->n_services -= j->spec.kind == JOB_SERVICE;
    if (c->namesake >= 0)
        map_set(&s->job_by_name, s->jobs[c->namesake]->spec.name, c->namesake);
    s->n_jobs--;
}

static void job_put_back(struct state *s, const struct undo_step *c)
{
    struct job *j = s->jobs[c->index];
    struct event start = { .gpus = c->gpus, .n_gpus = c->was.n_held, .limit_w = c->was.limit_w };

    job_leave(s, j);
    *j = c->was;
    job_enter(s, j, &start);
}

static void change_undo(struct state *s, const struct undo_step *c)
{
    if (c->kind == EVENT_NODE_ADDED)
        s->n_gpus -= s->nodes[--s->n_nodes].n_gpus;
    else if (c->kind == EVENT_NODE_CHANGED)
        s->nodes[c->index].state = c->node_state;
    else if (c->kind == EVENT_JOB_SUBMITTED)
        job_unmake(s, c);
    else
        job_put_back(s, c);
}

void state_mark(struct state *s)
{
    state_keep(s);
    s->is_marked = true;
}

void state_keep(struct state *s)
{
    s->is_marked = false;
    s->n_changes = 0;
    arena_reset(&s->past);
}

void state_undo(struct state *s)
{
    assert(s->is_marked);
    while (s->n_changes > 0)
        change_undo(s, &s->changes[--s->n_changes]);
    s->version++;
    s->node_version++;
    state_keep(s);
}

/* ---- from rows ---- */

int state_restore_job(struct state *s, const struct job *as, struct err *e)
{
    struct event start = {
        .kind = EVENT_JOB_STARTED, .gpus = as->gpus, .n_gpus = as->n_held, .limit_w = as->limit_w
    };
    struct job nowhere = { .spec = as->spec };    // it does not hold its GPUs yet

    if (as->id != s->n_jobs)
        return err_set(e, EINVAL, "job %s has id %d where %d is next", as->spec.name, as->id,
                       s->n_jobs);
    int rc = submit_check(s, &as->spec, e);
    if (rc == 0 && as->state == JOB_RUNNING)
        rc = gang_check(s, &nowhere, &start, e);
    else if (rc == 0 && as->n_held > 0)
        rc = err_set(e, EINVAL, "job %s holds GPUs and does not run", as->spec.name);
    if (rc < 0)
        return rc;
    struct job *j = job_make(s, &as->spec);
    j->state = as->state;
    j->steps_done = as->steps_done;
    j->heard_s = as->heard_s;
    j->pace = as->pace;
    j->changed_s = as->changed_s;
    j->started_s = as->started_s;
    j->n_moves = as->n_moves;
    j->ready_s = as->ready_s;
    j->drain_s = as->drain_s;
    j->reason = arena_strdup(&s->arena, as->reason);
    s->version++;
    if (j->state != JOB_WAITING)    // those line up when all are there
        job_enter(s, j, &start);
    return 0;
}

static int by_turn(const void *a, const void *b)
{
    const struct job *const *x = a, *const *y = b;

    return goes_before(*x, *y) ? -1 : goes_before(*y, *x);
}

/* Sorted once: to put each in its place as it comes would be quadratic. */
void state_line_up(struct state *s)
{
    struct job **waiting = heap_array((size_t)s->n_jobs, sizeof(struct job *));
    int n = 0;

    assert(s->n_waiting == 0);
    for (int i = 0; i < s->n_jobs; i++)
        if (is_queued(s->jobs[i]))
            waiting[n++] = s->jobs[i];
    qsort(waiting, (size_t)n, sizeof(struct job *), by_turn);
    for (int i = 0; i < n; i++)
        queue_insert_after(s, waiting[i], s->last_waiting);
    free(waiting);
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
        n_ended += job_is_over(j);
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

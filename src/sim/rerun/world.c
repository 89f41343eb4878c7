/* world.c - the simulated world carries out a recorded run's orders, and draws watts. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "sim/rerun/inner.h"
#include "sim/world/truth.h"
#include "sim/world/world.h"

/* A GPU counts as long as the daemon knows it and its node is not down. */
struct gpu_account {
    bool is_here;
    double from_j;    // what the world's had drawn when it came
    double joules;    // drawn here, up to when it left
};

struct replayed_world {
    struct rerun_part *part;    // the last one
    const struct rerun_entries *all;
    const struct truth *truth;
    struct world *world;
    struct executor order;
    struct gpu_account *gpus;    // (n_gpus)
    struct rerun_type *types;    // the result's
    int n_gpus;
    int n_jobs;    // submitted
    int n_known_gpus;
    bool *is_down;         // (n_nodes)
    double *finished_s;    // (n_jobs of the state) in the cluster; NaN: it did not
    struct arena scratch;
};

/* ---- making ---- */

static int make_world(struct replayed_world *st, struct err *e)
{
    struct rerun_part *p = st->part;
    const struct rerun_begin *b = st->all->at->begin;
    const struct state *s = &p->ledger.state;
    const size_t n = (size_t)s->n_gpus;
    int *types = ARENA_ARRAY(p->arena, int, n), *nodes = ARENA_ARRAY(p->arena, int, n);
    const struct gpu_type **figures = ARENA_ARRAY(p->arena, const struct gpu_type *, n);

    for (int g = 0; g < s->n_gpus; g++) {
        figures[g] = &p->catalog.types[s->gpus[g].type];
        types[g] = truth_find_type(st->truth, figures[g]->name);
        nodes[g] = s->gpus[g].node;
        if (types[g] < 0)
            return err_set(e, EINVAL, "the truth has no GPU type '%s': import measurements of it",
                           figures[g]->name);
    }
    st->world = world_create(&(struct world_setup){ .truth = st->truth,
                                                    .settings = &b->settings,
                                                    .n_gpus = s->n_gpus,
                                                    .types = types,
                                                    .figures = figures,
                                                    .nodes = nodes,
                                                    .is_always_on = !b->can_sleep });
    st->order = world_executor(st->world);
    st->n_gpus = s->n_gpus;
    st->gpus = ARENA_ARRAY(p->arena, struct gpu_account, n);
    return 0;
}

/* The next job of the state comes, with 'done' of its steps behind it. */
static int submit(struct replayed_world *st, double done, struct err *e)
{
    const struct job_spec *spec = &st->part->ledger.state.jobs[st->n_jobs]->spec;
    const char *name = st->part->catalog.workloads[spec->workload].name;
    int workload = truth_find_workload(st->truth, name);

    if (workload < 0)
        return err_set(e, EINVAL,
                       "job %s: the truth has no workload '%s': import measurements of it",
                       spec->name, name);
    world_submit(st->world, &(struct world_job_spec){
                                .workload = workload,
                                .is_inference = spec->kind == JOB_INFERENCE,
                                .steps = fmax(spec->steps - done, 1),
                                .rate = spec->rate,
                                .duration_s = spec->duration_s,
                                .reference_speed = 1,
                                .max_gpus = spec->max_gpus,
                            });
    st->n_jobs++;
    return 0;
}

/* ---- who counts ---- */

static void come(struct replayed_world *st, int gpu)
{
    struct gpu_account *c = &st->gpus[gpu];

    if (c->is_here)
        return;
    c->is_here = true;
    c->from_j = world_gpu_now(st->world, gpu).energy_j;
}

static void go(struct replayed_world *st, int gpu)
{
    struct gpu_account *c = &st->gpus[gpu];

    if (c->is_here)
        c->joules += world_gpu_now(st->world, gpu).energy_j - c->from_j;
    c->is_here = false;
}

static void node_changed(struct replayed_world *st, const struct event *ev)
{
    const struct state *s = &st->part->ledger.state;
    int node = state_find_node(s, ev->node);

    if (node < 0)
        return;
    st->is_down[node] = ev->node_state == NODE_DOWN;
    for (int g = 0; g < st->n_known_gpus; g++) {
        if (s->gpus[g].node != node)
            continue;
        if (st->is_down[node])
            go(st, g);
        else
            come(st, g);
    }
}

/* ---- what happens ---- */

static void start(struct replayed_world *st, const struct rerun_placement *at)
{
    struct placement p = {
        .job = at->job, .n_gpus = at->n_gpus, .gpus = at->gpus, .limit_w = at->limit_w
    };
    struct err e = { 0 };

    /* A job that runs elsewhere is moved, one that does not is started, as the world has it; one
     * that has ended there already is left alone.
     */
    if (st->order.start(st->order.self, &p, &e) == 0 || st->order.move(st->order.self, &p, &e) == 0)
        return;
    log_debug("t %.1f s: %s", world_now_s(st->world), e.text);
}

/* Jobs end in the world as its truth has it; what nobody could foresee is taken as it came: a
 * crash, a lost node, a cancellation, the end of a job whose steps were a guess.
 */
static int happen(struct replayed_world *st, const struct rerun_entry *at, struct err *e)
{
    const struct state *s = &st->part->ledger.state;
    struct event ev;
    struct err ignored;
    int rc = event_decode(&st->scratch, at->event, s, &st->part->catalog, &ev, e);

    if (rc < 0)
        return rc;
    switch (ev.kind) {
    case EVENT_JOB_SUBMITTED:
        return submit(st, 0, e);
    case EVENT_JOB_STARTED:    // as ordered, and then it is there already; or somebody else's doing
        start(st, &(struct rerun_placement){
                      .job = ev.job, .n_gpus = ev.n_gpus, .gpus = ev.gpus, .limit_w = ev.limit_w });
        return 0;
    case EVENT_JOB_STOPPED:
        if (ev.reason && strcmp(ev.reason, JOB_MOVING) == 0)
            return 0;    // half of a move, which the world makes whole and in its own time
        return st->order.stop(st->order.self, ev.job, e);
    case EVENT_JOB_FINISHED:
        st->finished_s[ev.job] = at->time_s;
        if (!s->jobs[ev.job]->spec.is_guess)
            return 0;
        return st->order.cancel(st->order.self, ev.job, e);
    case EVENT_JOB_FAILED:
    case EVENT_JOB_CANCELLED:
        st->order.cancel(st->order.self, ev.job, &ignored);
        return 0;
    case EVENT_NODE_ADDED:
        for (int i = 0; i < ev.n_gpus; i++)
            come(st, st->n_known_gpus++);
        return 0;
    case EVENT_NODE_CHANGED:
        node_changed(st, &ev);
        return 0;
    default:
        return 0;
    }
}

static int check_order(const struct replayed_world *st, const struct rerun_placement *at,
                       struct err *e)
{
    bool is_there = at->job < st->n_jobs;

    for (int i = 0; i < at->n_gpus; i++)
        is_there = is_there && at->gpus[i] < st->n_gpus;
    return is_there ? 0 : err_set(e, EINVAL, "an order for a job or GPU that is not there");
}

static int act(struct replayed_world *st, const struct rerun_entry *at, struct err *e)
{
    struct err ignored;
    int rc = check_order(st, at->order, e);

    if (rc < 0)
        return rc;
    if (at->what == RERUN_STOP)
        st->order.stop(st->order.self, at->order->job, &ignored);
    else if (at->what == RERUN_CANCEL)
        st->order.cancel(st->order.self, at->order->job, &ignored);
    else
        start(st, at->order);
    return 0;
}

static int one(struct replayed_world *st, const struct rerun_entry *at, struct err *e)
{
    const double t_s = at->time_s - st->all->at->time_s;
    int rc = 0;

    if (t_s > world_now_s(st->world))
        world_advance(st->world, t_s);
    if (at->what == RERUN_EVENT)
        rc = happen(st, at, e);
    else if (at->what == RERUN_START || at->what == RERUN_MOVE || at->what == RERUN_STOP ||
             at->what == RERUN_CANCEL)
        rc = act(st, at, e);
    if (st->scratch.used > 0)
        arena_reset(&st->scratch);
    return rc;
}

/* Those of before: where the daemon found them when it was first started. */
static int set_stage(struct replayed_world *st, const struct state *before, struct err *e)
{
    struct err ignored;
    int rc = 0;

    st->n_known_gpus = before->n_gpus;
    for (int i = 0; i < before->n_nodes; i++)
        st->is_down[i] = before->nodes[i].state == NODE_DOWN;
    for (int i = 0; i < before->n_jobs && rc == 0; i++) {
        const struct job *j = before->jobs[i];

        rc = submit(st, j->steps_done, e);
        if (rc == 0 && job_is_over(j))
            st->order.cancel(st->order.self, i, &ignored);
        if (rc == 0 && j->state == JOB_RUNNING)
            start(st, &(struct rerun_placement){ .job = i, .n_gpus = j->n_held, .gpus = j->gpus });
    }
    return rc;
}

/* ---- what it adds up to ---- */

/* In the order of GPUs; there is room for all of the catalog's. */
static struct rerun_type *type_of(struct replayed_world *st, int gpu)
{
    struct rerun_part *p = st->part;
    struct rerun_result *r = p->result;
    const char *name = p->catalog.types[p->ledger.state.gpus[gpu].type].name;
    int i = 0;

    while (i < r->n_types && strcmp(st->types[i].name, name) != 0)
        i++;
    if (i == r->n_types)
        st->types[r->n_types++].name = arena_strdup(p->arena, name);
    return &st->types[i];
}

/* The daemon's last word on joules before it ended: until it is started again nobody counts. */
static void add_joules(struct replayed_world *st, const struct rerun_entry *at, double began_s)
{
    struct rerun_result *r = st->part->result;

    for (int g = 0; g < at->energy.n && g < st->n_gpus; g++) {
        struct rerun_type *t = type_of(st, g);

        go(st, g);
        t->cluster_j += at->energy.joules[g];
        t->sim_j += st->gpus[g].joules;
        r->cluster_j += at->energy.joules[g];
        r->sim_j += st->gpus[g].joules;
        st->gpus[g].joules = 0;
    }
    r->seconds += at->time_s - began_s;
}

/* Is it the last of its part? */
static bool is_last_energy(const struct rerun_entries *all, int i)
{
    if (all->at[i].what != RERUN_ENERGY)
        return false;
    for (i++; i < all->n && all->at[i].what != RERUN_BEGIN; i++)
        if (all->at[i].what == RERUN_ENERGY)
            return false;
    return true;
}

/* A start of the daemon: it counts what every GPU that is up draws from now on. */
static void begin_part(struct replayed_world *st)
{
    const struct state *s = &st->part->ledger.state;

    for (int g = 0; g < st->n_known_gpus; g++) {
        st->gpus[g] = (struct gpu_account){ 0 };
        if (!st->is_down[s->gpus[g].node])
            come(st, g);
    }
}

static int play(struct replayed_world *st, struct err *e)
{
    const struct rerun_entries *all = st->all;
    double began_s = 0;

    for (int i = 0; i < all->n; i++) {
        const struct rerun_entry *at = &all->at[i];
        struct err why = { 0 };
        int rc = one(st, at, &why);

        if (rc < 0)
            return err_set(e, -rc, "%s:%d: %s", st->part->name, at->line, why.text);
        if (at->what == RERUN_BEGIN) {
            began_s = at->time_s;
            begin_part(st);
        }
        if (is_last_energy(all, i))
            add_joules(st, at, began_s);
    }
    return 0;
}

/* Jobs that end a little later than there do end: the world goes on for a tenth of the record. */
static void add_ends(struct replayed_world *st)
{
    struct rerun_result *r = st->part->result;
    const double now_s = world_now_s(st->world);
    double sum = 0;
    struct world_outcome f;

    world_advance(st->world, 1.1 * now_s);
    for (int i = 0; i < st->n_jobs; i++) {
        double took_s = st->finished_s[i] - st->all->at->time_s;

        if (isnan(took_s))
            continue;
        r->n_finished++;
        world_job_outcome(st->world, i, &f);
        if (!f.is_finished)
            continue;
        r->n_finished_sim++;
        sum += (f.end_s - f.submit_s) / (took_s - f.submit_s) - 1;
    }
    r->jct_off = sum / r->n_finished_sim;    // NaN: nobody did
}

int rerun_world(struct rerun_part *last, const struct state *before,
                const struct rerun_entries *all, const struct truth *t, struct err *e)
{
    struct replayed_world st = { .part = last, .all = all, .truth = t };
    const struct state *s = &last->ledger.state;
    int rc = make_world(&st, e);

    if (rc < 0)
        return rc;
    arena_init(&st.scratch);
    st.is_down = ARENA_ARRAY(last->arena, bool, (size_t)s->n_nodes);
    st.finished_s = ARENA_ARRAY(last->arena, double, (size_t)s->n_jobs);
    for (int i = 0; i < s->n_jobs; i++)
        st.finished_s[i] = NAN;
    st.types = ARENA_ARRAY(last->arena, struct rerun_type, (size_t)last->catalog.n_types);
    last->result->types = st.types;
    for (int g = 0; g < s->n_gpus; g++)
        type_of(&st, g)->n_gpus++;
    rc = set_stage(&st, before, e);
    if (rc == 0)
        rc = play(&st, e);
    if (rc == 0)
        add_ends(&st);
    world_destroy(st.world);
    arena_release(&st.scratch);
    return rc;
}

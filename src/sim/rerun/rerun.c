#include "sim/rerun/rerun.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/act.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/grow.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/event.h"
#include "catalog/cluster/snapshot.h"
#include "optimize/model/lower.h"
#include "optimize/prices/kept.h"
#include "estimate/model/model.h"
#include "sim/ground.h"
#include "sim/hindsight.h"
#include "sim/rerun/inner.h"
#include "sim/world/truth.h"
#include "store/store.h"

/* A day of a busy cluster is some tens of megabytes. */
#define RECORD_MAX ((size_t)1 << 30)

/* A look that waits for its plan, which comes some entries later. */
struct pending_view {
    struct pending_view *next;
    double look_s;
    struct arena arena;
    struct snapshot snapshot;
    struct lowered asked;
    struct plan plan;
    bool is_fallback;
    struct err failed;    // code 0: it did not
};

struct rerun_state {
    struct rerun_part *part;
    struct pending_view *first;
    struct model **models;    // (n_models) that came into use on the way
    int n_models, cap_models;
    struct kept_prices *priced;    // that were being found beside; NULL: none
    struct arena scratch;
};

/* ---- the doors ---- */

static int accept_placement(void *self, const struct placement *p, struct err *e)
{
    (void)self;
    (void)p;
    (void)e;
    return 0;
}

static int accept_job(void *self, int job, struct err *e)
{
    (void)self;
    (void)job;
    (void)e;
    return 0;
}

static bool was_busy(void *self, int gpu)
{
    const struct rerun_part *p = self;

    return p->looking && gpus_have(p->looking->busy, p->looking->n_busy, gpu);
}

static bool was_under_way(void *self, int job)
{
    const struct rerun_part *p = self;

    return p->looking && gpus_have(p->looking->under_way, p->looking->n_under_way, job);
}

static double was_asleep_s(void *self, int gpu)
{
    const struct rerun_part *p = self;

    for (int i = 0; p->looking && i < p->looking->n_asleep; i++)
        if (p->looking->asleep[i] == gpu)
            return p->looking->wake_s[i];
    return 0;
}

/* As recorded of one job; nothing where the record has none of it. */
static struct engine_job rules_of(struct rerun_part *p, struct arena *a, int job)
{
    const struct rerun_view *l = p->looking;
    const int n_nodes = p->ledger.state.n_nodes;
    unsigned char *barred = ARENA_ARRAY(a, unsigned char, (size_t)n_nodes);

    for (int i = 0; i < l->n_ruled; i++) {
        const int *at = l->ruled[i].at;

        if (at[0] != job)
            continue;
        for (int n = 0; n < n_nodes && n + 5 < l->ruled[i].n; n++)
            barred[n] = at[n + 5] < ENGINE_RULES ? (unsigned char)at[n + 5] : ENGINE_REFUSED;
        return (struct engine_job){ .cpus = at[1],
                                    .mem_mib = at[2],
                                    .device = at[3],
                                    .is_bound = at[4],
                                    .barred = l->ruled[i].n > 5 ? barred : NULL };
    }
    return (struct engine_job){ 0 };
}

static bool was_ruled(void *self, struct arena *a, const int *jobs, int n_jobs,
                      struct engine_rules *out)
{
    struct rerun_part *p = self;
    const struct rerun_view *l = p->looking;
    const struct state *s = &p->ledger.state;
    struct engine_job *ruled = ARENA_ARRAY(a, struct engine_job, (size_t)n_jobs);
    struct engine_node *nodes = ARENA_ARRAY(a, struct engine_node, (size_t)s->n_nodes);
    bool *unlimited = ARENA_ARRAY(a, bool, (size_t)s->n_gpus);

    if (!l || !l->has_rules)
        return false;
    for (int i = 0; i < n_jobs; i++)
        ruled[i] = rules_of(p, a, jobs[i]);
    for (int n = 0; 2 * n + 1 < l->n_nodes && n < s->n_nodes; n++)
        nodes[n] = (struct engine_node){
            l->nodes[2 * n] < INT_MAX ? l->nodes[2 * n] : LONG_MAX,
            l->nodes[2 * n + 1] < INT_MAX ? l->nodes[2 * n + 1] : LONG_MAX,
        };
    for (int g = 0; g < l->n_unlimited && g < s->n_gpus; g++)
        unlimited[g] = l->unlimited[g];
    *out = (struct engine_rules){ .nodes = l->n_nodes ? nodes : NULL,
                                  .devices = l->n_devices == s->n_gpus ? l->devices : NULL,
                                  .unlimited = l->n_unlimited ? unlimited : NULL,
                                  .jobs = ruled };
    return true;
}

/* What came of orders is in the record; which GPUs were busy or asleep, and which jobs on
 * their way, at a look, too. */
static struct executor recorded_executor(struct rerun_part *p)
{
    return (struct executor){
        .self = p,
        .start = accept_placement,
        .stop = accept_job,
        .move = accept_placement,
        .cancel = accept_job,
        .job_is_busy = was_under_way,
        .gpu_is_busy = was_busy,
        .gpu_wake_s = was_asleep_s,
        .rules = was_ruled,
    };
}

/* ---- opening ---- */

/* What a service's plans follow from (arrivals, tables) is in no record. */
static int refuse_services(const struct state *s, struct err *e)
{
    for (int i = 0; i < s->n_services; i++)
        if (!job_is_over(s->jobs[s->services[i]]))
            return err_set(e, ENOTSUP,
                           "service '%s' runs in this record, and plans with services are not made "
                           "again; replay a record of a time without them",
                           s->jobs[s->services[i]]->spec.name);
    return 0;
}

static int load_store(struct rerun_part *p, struct err *e)
{
    const char *path = arena_printf(p->arena, "%s%s", p->dir, p->at->begin->store);
    int rc = store_open(path, STORE_READ, &p->store, e);

    if (rc < 0)
        return rc;
    catalog_init(&p->catalog);
    rc = catalog_load(&p->catalog, p->store, e);
    if (rc == 0)
        rc = ledger_open(&p->ledger, &p->catalog, p->store, e);
    if (rc < 0) {
        catalog_release(&p->catalog);
        return rc;
    }
    p->is_loaded = true;
    p->ledger.store = NULL;    // the copy stays as it is
    p->catalog.store = NULL;
    return refuse_services(&p->ledger.state, e);
}

/* As the daemon opens its own, and believes for the first time. */
static int open_cycle(struct rerun_part *p, struct err *e)
{
    const struct rerun_begin *b = p->at->begin;
    struct cycle *c = &p->cycle;
    struct snapshot unused;
    int rc = model_open(b->model, p->store, &p->model, e);

    if (rc < 0)
        return rc;
    p->clock.t_s = p->at->time_s;
    c->clock = clock_manual(&p->clock);
    c->executor = recorded_executor(p);
    c->ledger = &p->ledger;
    c->catalog = &p->catalog;
    c->options = solve_defaults;
    c->theta = b->settings.theta;
    c->kind = b->estimator;
    cycle_init(c);
    p->has_cycle = true;
    cycle_use(c, p->model);
    rc = cycle_look(c, &c->arena, &unused, e);
    arena_reset(&c->arena);
    return rc;
}

static void part_close(struct rerun_part *p)
{
    if (p->has_cycle)
        cycle_release(&p->cycle);
    if (p->is_loaded) {
        ledger_close(&p->ledger);
        catalog_release(&p->catalog);
    }
    model_destroy(p->model);
    store_close(p->store);
}

/* ---- what happened ---- */

static int take_event(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    struct rerun_part *p = w->part;
    struct event ev;
    int rc = event_decode(&w->scratch, at->event, &p->ledger.state, &p->catalog, &ev, e);

    if (rc == 0)
        rc = ledger_append(&p->ledger, &ev, 1, e);
    if (rc == 0 && ev.kind == EVENT_JOB_SUBMITTED && ev.spec->kind == JOB_SERVICE)
        rc = refuse_services(&p->ledger.state, e);
    arena_reset(&w->scratch);
    p->result->n_events++;
    return rc;
}

static int take_measurement(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    struct rerun_part *p = w->part;
    const struct rerun_measurement *seen = at->measurement;
    struct measurement m = seen->is;

    m.key.workload = catalog_find_workload(&p->catalog, seen->workload);
    m.key.gpu_type = catalog_find_type(&p->catalog, seen->gpu_type);
    if (seen->neighbour)
        m.key.neighbour = catalog_find_workload(&p->catalog, seen->neighbour);
    if (m.key.workload < 0 || m.key.gpu_type < 0 || (seen->neighbour && m.key.neighbour < 0))
        return err_set(e, EINVAL, "a workload or GPU type that was not there yet was measured");
    p->result->n_measurements++;
    return refine_take(&p->cycle.refiner, &m, e);
}

static int take_profile(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    struct catalog *c = &w->part->catalog;
    int workload = catalog_find_workload(c, at->profile->workload);

    if (workload < 0)
        return err_set(e, EINVAL, "a workload that was not there yet was seen alone");
    return catalog_take_profile(c, workload, &at->profile->is, e);
}

static int take_model(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    struct rerun_part *p = w->part;
    struct model *m = NULL;
    int rc = model_read(arena_printf(p->arena, "%s%s", p->dir, at->file), &m, e);

    if (rc < 0)
        return rc;
    GROW(w->models, w->n_models, w->cap_models);
    w->models[w->n_models++] = m;
    cycle_use(&p->cycle, m);
    return 0;
}

/* ---- looking and planning anew ---- */

static void looked_free(struct pending_view *l)
{
    arena_release(&l->arena);
    free(l);
}

static int look(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    struct rerun_part *p = w->part;
    struct pending_view *l = heap_array(1, sizeof *l);
    struct solver solver;

    if (at->look->has_options)
        p->cycle.options = at->look->options;
    p->clock.t_s = at->time_s;
    p->looking = at->look;
    l->look_s = at->time_s;
    arena_init(&l->arena);
    l->next = w->first;
    w->first = l;
    int rc = solver_by_name(at->look->policy, at->look->seed, &solver, e);
    if (rc == 0)
        rc = cycle_look(&p->cycle, &l->arena, &l->snapshot, e);
    if (rc < 0 || !at->look->has_plan)
        return rc;
    p->cycle.solver = solver;    // its prices are kept from look to look, as they were
    if (cycle_plan(&p->cycle, &l->arena, &solver, &l->snapshot, &l->asked, &l->plan,
                   &l->is_fallback, &l->failed) == 0)
        l->failed.code = 0;    // it may say why greedy stood in
    return 0;
}

/* Where one is in a recorded plan, going through our own. */
struct cursor {
    int run, wait;
};

/* The recorded place of the next job of ours; NULL: it is not the next one there. */
static const struct rerun_placement *place_next(const struct rerun_plan *plan, struct cursor *c,
                                                int job)
{
    if (c->run < plan->n_run && plan->places[c->run].job == job)
        return &plan->places[c->run++];
    if (c->wait < plan->n && plan->places[c->wait].job == job)
        return &plan->places[c->wait++];
    return NULL;
}

static const char *show_place(struct arena *a, int n_gpus, const int *gpus, int limit_w)
{
    const char *text = n_gpus ? "on" : "waiting";

    for (int i = 0; i < n_gpus; i++)
        text = arena_printf(a, "%s%s%d", text, i ? "+" : " GPU ", gpus[i]);
    return limit_w ? arena_printf(a, "%s at %d W", text, limit_w) : text;
}

/* NULL, or what differs. */
static const char *compare(struct arena *a, const struct pending_view *l,
                           const struct rerun_plan *was)
{
    struct cursor c = { .wait = was->n_run };

    if (l->failed.code)
        return arena_printf(a, "no plan: %s", l->failed.text);
    if (l->plan.n_jobs != was->n)
        return arena_printf(a, "a plan of %d jobs, now of %d", was->n, l->plan.n_jobs);
    if (l->is_fallback != was->is_fallback)
        return l->is_fallback ? "greedy stands in now" : "greedy stood in then";
    for (int j = 0; j < l->plan.n_jobs; j++) {
        const struct plan_job *pj = &l->plan.jobs[j];
        const int job = l->snapshot.jobs[j].id;
        const struct rerun_placement *then = place_next(was, &c, job);

        if (!then)
            return arena_printf(a, "job %d was not in it, or elsewhere in the queue", job);
        if (pj->limit_w != then->limit_w ||
            !gpus_same(pj->gpus, pj->n_gpus, then->gpus, then->n_gpus))
            return arena_printf(a, "job %d was %s, now %s", job,
                                show_place(a, then->n_gpus, then->gpus, then->limit_w),
                                show_place(a, pj->n_gpus, pj->gpus, pj->limit_w));
    }
    return NULL;
}

/* Go on with what was carried out then, whatever we would have done. */
static void follow(struct pending_view *l, const struct rerun_plan *was)
{
    struct plan *p = &l->plan;
    struct cursor c = { .wait = was->n_run };

    p->n_jobs = l->snapshot.n_jobs;
    p->jobs = ARENA_ARRAY(&l->arena, struct plan_job, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++) {
        const struct rerun_placement *then = place_next(was, &c, l->snapshot.jobs[j].id);

        p->jobs[j] = (struct plan_job){ .reason = WAIT_CAPACITY };
        if (then)
            p->jobs[j] = (struct plan_job){ .n_gpus = then->n_gpus,
                                            .gpus = then->gpus,
                                            .limit_w = then->limit_w,
                                            .reason = then->reason };
    }
}

static struct pending_view *take_looked(struct rerun_state *w, double look_s)
{
    struct pending_view **at = &w->first;

    while (*at && (*at)->look_s != look_s)
        at = &(*at)->next;
    struct pending_view *found = *at;
    assert(found);    // rerun_read has seen it
    *at = NULL;
    for (struct pending_view *older = found->next, *next; older; older = next) {
        next = older->next;
        looked_free(older);    // nothing came of them
    }
    return found;
}

static bool is_there(const struct rerun_part *p, const struct rerun_plan *plan)
{
    const struct state *s = &p->ledger.state;

    for (int i = 0; i < plan->n; i++)
        for (int k = 0; k < plan->places[i].n_gpus; k++)
            if (plan->places[i].gpus[k] >= s->n_gpus)
                return false;
    return true;
}

static int judge(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    struct rerun_part *p = w->part;
    struct rerun_result *r = p->result;
    struct pending_view *l = take_looked(w, at->plan->look_s);
    const char *differs = compare(p->arena, l, at->plan);
    struct act_report unused;

    r->n_decisions++;
    r->n_same += !differs;
    if (differs && !r->differs)
        r->differs = arena_printf(p->arena, "%s:%d: at %.3f s: %s", p->name, at->line,
                                  at->plan->look_s - p->at->time_s, differs);
    if (!differs && at->plan->watts > 0)
        r->watts_off = fmax(r->watts_off, fabs(l->plan.watts / at->plan->watts - 1));
    int rc = is_there(p, at->plan) ? 0 : err_set(e, EINVAL, "a GPU that is not there");
    if (rc == 0 && at->plan->is_repriced) {
        w->priced = w->priced ? w->priced : kept_create();
        rc = cycle_price(&p->cycle, &l->arena, &l->snapshot, w->priced, e);
    }
    if (rc == 0 && at->plan->is_acted) {
        if (differs)
            follow(l, at->plan);
        cycle_act(&p->cycle, &l->snapshot, &l->plan, &unused);
        arena_reset(&p->cycle.arena);
    }
    looked_free(l);
    return rc;
}

/* Those that were found beside are in use from here on. */
static int take_prices(struct rerun_state *w, struct err *e)
{
    if (!w->priced)
        return err_set(e, EINVAL, "prices: nobody was finding any");
    kept_destroy(w->part->cycle.kept);
    w->part->cycle.kept = w->priced;
    w->priced = NULL;
    return 0;
}

static int step(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    int index;

    switch (at->what) {
    case RERUN_EVENT:
        return take_event(w, at, e);
    case RERUN_MEASUREMENT:
        return take_measurement(w, at, e);
    case RERUN_PROFILE:
        return take_profile(w, at, e);
    case RERUN_WORKLOAD:
        return catalog_add_workload(&w->part->catalog, at->workload, &index, e);
    case RERUN_GPU_TYPE:
        return at->type->is_described
                   ? catalog_set_type(&w->part->catalog, &at->type->is, &index, e)
                   : catalog_add_type(&w->part->catalog, &at->type->is, &index, e);
    case RERUN_MODEL:
        return take_model(w, at, e);
    case RERUN_LOOK:
        return look(w, at, e);
    case RERUN_PLAN:
        return judge(w, at, e);
    case RERUN_PRICES:
        return take_prices(w, e);
    case RERUN_CUT:
        w->part->result->n_cut++;
        return 0;
    default:
        return 0;    // the world's
    }
}

/* The same, but for plans. */
static int step_over(struct rerun_state *w, const struct rerun_entry *at, struct err *e)
{
    switch (at->what) {
    case RERUN_MODEL:
    case RERUN_LOOK:
    case RERUN_PLAN:
    case RERUN_PRICES:
    case RERUN_CUT:
        return 0;
    default:
        return step(w, at, e);
    }
}

/* ---- a part, and all of them ---- */

/* All that is believed by now. */
static int believe_all(struct rerun_part *p, struct truth *t, struct err *e)
{
    estimate_refresh(&p->cycle.estimator);
    return truth_from_beliefs(t, &p->catalog, &p->cycle.estimator, e);
}

static void walk_end(struct rerun_state *w)
{
    for (struct pending_view *l = w->first, *next; l; l = next) {
        next = l->next;
        looked_free(l);
    }
    cycle_use(&w->part->cycle, w->part->model);
    for (int i = 0; i < w->n_models; i++)
        model_destroy(w->models[i]);
    free(w->models);
    kept_destroy(w->priced);
    arena_release(&w->scratch);
}

typedef int step_f(struct rerun_state *w, const struct rerun_entry *at, struct err *e);

static int walk_part(struct rerun_part *p, step_f *take, struct err *e)
{
    struct rerun_state w = { .part = p };
    struct err why = { 0 };
    int rc = 0;

    arena_init(&w.scratch);
    for (int i = 0; i < p->n && rc == 0; i++) {
        rc = take(&w, &p->at[i], &why);
        if (rc < 0)
            rc = err_set(e, -rc, "%s:%d: %s", p->name, p->at[i].line, why.text);
    }
    walk_end(&w);
    return rc;
}

static int run_part(struct rerun_part *p, step_f *take, struct err *e)
{
    int rc = load_store(p, e);

    if (rc == 0)
        rc = open_cycle(p, e);
    if (rc == 0)
        rc = walk_part(p, take, e);
    p->result->n_parts++;
    return rc;
}

static const char *dir_of(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? arena_strndup(a, path, (size_t)(slash - path) + 1) : "";
}

/* Joules, once all plans are made: 'last' is the part that knows all that ever was there. */
static int draw(struct rerun_part *last, const struct rerun_entries *all, const struct truth *told,
                struct err *e)
{
    struct rerun_part *first = ARENA_NEW(last->arena, struct rerun_part);
    struct truth believed = { 0 };

    *first = (struct rerun_part){ .arena = last->arena, .dir = last->dir, .at = all->at };
    int rc = load_store(first, e);
    if (rc == 0 && !told)
        rc = believe_all(last, &believed, e);
    if (rc == 0)
        rc = rerun_world(last, &first->ledger.state, all, told ? told : &believed, e);
    truth_release(&believed);
    part_close(first);
    return rc;
}

static int run_parts(struct rerun_part *p, const struct rerun_entries *all,
                     const struct truth *told, struct err *e)
{
    const struct rerun_part empty = *p;
    int rc = 0, to;

    assert(all->n > 0 && all->at);    // a record without a beginning is refused
    for (int from = 0; from < all->n && rc == 0; from = to) {
        for (to = from + 1; to < all->n && all->at[to].what != RERUN_BEGIN;)
            to++;
        part_close(p);
        *p = empty;
        p->at = &all->at[from];
        p->n = to - from;
        rc = run_part(p, step, e);
    }
    if (rc == 0)
        rc = draw(p, all, told, e);
    part_close(p);
    return rc;
}

int rerun(struct arena *a, const struct rerun_options *o, struct rerun_result *out, struct err *e)
{
    struct rerun_entries all = { 0 };
    struct ground ground;
    const char *text = NULL;
    size_t len = 0;
    int rc = file_read(a, o->record, NULL, RECORD_MAX, &text, &len, e);

    *out = (struct rerun_result){ .jct_off = NAN };
    if (rc == 0)
        rc = rerun_read(a, o->record, text, len, &all, e);
    if (rc == 0 && o->truth)
        rc = ground_open(&ground, o->truth, NULL, NULL, e);
    if (rc < 0)
        return rc;
    struct rerun_part *part = ARENA_NEW(a, struct rerun_part);
    *part = (struct rerun_part){
        .arena = a, .name = o->record, .dir = dir_of(a, o->record), .result = out
    };
    rc = run_parts(part, &all, o->truth ? &ground.truth : NULL, e);
    if (o->truth)
        ground_close(&ground);
    out->difference = out->sim_j / out->cluster_j - 1;    // NaN for 0 / 0: nothing was accounted
    return rc;
}

/* What the part began with, and what its last look was told to do. */
static struct cluster_settings settings_of(const struct rerun_part *p)
{
    struct cluster_settings set = p->at->begin->settings;

    for (int i = 0; i < p->n; i++) {
        const struct rerun_view *l = p->at[i].what == RERUN_LOOK ? p->at[i].look : NULL;

        if (!l || !l->has_options)
            continue;
        set.price_w = l->options.price_w;
        set.delay_w = l->options.delay_w;
        set.promise_w = l->options.promise_w;
        set.power_cap_w = l->options.power_cap_w;
        set.power_limits = l->options.may_limit;
    }
    return set;
}

int rerun_end(struct arena *a, const char *record, rerun_end_f *on_end, void *self, struct err *e)
{
    struct rerun_part *p = ARENA_NEW(a, struct rerun_part);
    struct rerun_entries all = { 0 };
    struct rerun_result unused;
    const char *text = NULL;
    size_t len = 0;
    int last = 0, rc = file_read(a, record, NULL, RECORD_MAX, &text, &len, e);

    if (rc == 0)
        rc = rerun_read(a, record, text, len, &all, e);
    if (rc < 0)
        return rc;
    assert(all.n > 0 && all.at);    // a record without a beginning is refused
    for (int i = 0; i < all.n; i++)
        last = all.at[i].what == RERUN_BEGIN ? i : last;    // whose store has what was before
    unused = (struct rerun_result){ 0 };
    *p = (struct rerun_part){ .arena = a,
                              .name = record,
                              .dir = dir_of(a, record),
                              .at = all.at + last,
                              .n = all.n - last,
                              .result = &unused };
    struct cluster_settings set = settings_of(p);
    rc = run_part(p, step_over, e);
    if (rc == 0) {
        estimate_refresh(&p->cycle.estimator);
        rc = on_end(self,
                    &(struct rerun_site){ .state = &p->ledger.state,
                                          .catalog = &p->catalog,
                                          .model = p->model,
                                          .kind = p->at->begin->estimator,
                                          .est = &p->cycle.estimator,
                                          .settings = &set },
                    e);
    }
    part_close(p);
    return rc;
}

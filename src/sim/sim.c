#include "sim/inner.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/ledger.h"
#include "cycle/cycle.h"
#include "estimate/prior/power.h"
#include "refine/trainer.h"
#include "sim/world/truth.h"
#include "sim/world/world.h"

/* ---- making ---- */

static double reference_speed(const struct truth *t, int workload, int reference)
{
    int type = truth_counted_on(t, workload, reference);

    return type >= 0 ? truth_speed(t, workload, type) : 1;    // fits nowhere: never does a step
}

/* One of the trace's workloads, looked up once; its index, or -EINVAL. */
static int find_workload(struct sim *s, struct map *seen, const char *name, int line,
                         const char *who, struct err *e)
{
    const struct trace *t = s->options.trace;
    int known = map_get(seen, name);

    if (known >= 0)
        return known;
    int truth = truth_find_workload(s->options.truth, name);
    if (truth < 0)
        return err_set(e, EINVAL,
                       "%s:%d: %s: the ground truth knows no workload '%s': import measurements of "
                       "it, or change the trace",
                       t->name ? t->name : "trace", line, who, name);
    int reference = truth_reference(s->options.truth, s->options.reference);
    s->workloads[s->n_workloads] = (struct sim_workload){ .truth = truth,
                                                          .belief = -1,
                                                          .reference_speed = reference_speed(
                                                              s->options.truth, truth, reference) };
    map_set(seen, name, s->n_workloads);
    return s->n_workloads++;
}

/* What the trace's jobs and services run. */
static int find_workloads(struct sim *s, struct err *e)
{
    const struct trace *t = s->options.trace;
    struct map seen = { 0 };
    int rc = 0;

    if (truth_reference(s->options.truth, s->options.reference) < 0)
        return err_set(e, EINVAL, "the ground truth has no GPU type '%s': choose another reference",
                       s->options.reference);
    s->workload_of = ARENA_ARRAY(&s->arena, int, (size_t)t->n_jobs);
    s->service_workloads = ARENA_ARRAY(&s->arena, int, (size_t)t->n_services);
    s->ids = ARENA_ARRAY(&s->arena, int, (size_t)t->n_jobs);
    s->workloads = ARENA_ARRAY(&s->arena, struct sim_workload, (size_t)(t->n_jobs + t->n_services));
    for (int i = 0; i < t->n_jobs && rc >= 0; i++)
        rc = s->workload_of[i] =
            find_workload(s, &seen, t->jobs[i].workload, t->jobs[i].line,
                          arena_printf(&s->arena, "job %s", t->jobs[i].name), e);
    for (int i = 0; i < t->n_services && rc >= 0; i++)
        rc = s->service_workloads[i] =
            find_workload(s, &seen, t->services[i].workload, t->services[i].line,
                          arena_printf(&s->arena, "service %s", t->services[i].name), e);
    map_release(&seen);
    return rc < 0 ? rc : 0;
}

/* "v100,a100" as bits. Types that the cluster lacks are left out; none left is an error. */
static int find_allowed(struct sim *s, struct err *e)
{
    const struct trace *t = s->options.trace;

    s->allowed = ARENA_ARRAY(&s->arena, uint64_t, (size_t)t->n_jobs);
    for (int i = 0; i < t->n_jobs; i++) {
        const struct trace_job *j = &t->jobs[i];
        const char *list = j->types != NULL ? j->types : "";
        struct slice name;

        while (slice_next(&list, ',', &name)) {
            int type =
                catalog_find_type_alike(&s->belief, arena_strndup(&s->arena, name.at, name.len));

            if (type >= 0 && type < 64)
                s->allowed[i] |= (uint64_t)1 << type;
        }
        if (j->types != NULL && s->allowed[i] == 0)
            return err_set(e, EINVAL,
                           "%s:%d: job %s may only run on '%s', and the cluster has none of these",
                           t->name, j->line, j->name, j->types);
    }
    return 0;
}

/* A cell of another catalog: one measurement that weighs as much as all of its own and, where
 * nothing else is known of it, all that these added up to. 'types' and 'workloads' have the indices
 * in 'to' of those there; -1: what that workload takes part in is left out. 'campaign' is the one
 * it belongs to in 'to'.
 */
static int copy_cell(struct catalog *to, const struct cell *c, const int *types,
                     const int *workloads, int campaign, struct err *e)
{
    struct measurement m = {
        .key = c->key,
        .fits = c->n_speed > 0 || c->n_unfit == 0,
        .throughput = c->n_speed > 0 ? exp(c->ln_speed) : (double)NAN,
        .watts = c->n_watts > 0 ? exp(c->ln_watts) : (double)NAN,
        .duration_s = NAN,
        .noise = c->n_speed > 0 ? sqrt(cell_variance(c)) : (double)NAN,
    };
    const bool is_pair = c->key.neighbour >= 0;

    m.key.gpu_type = types[c->key.gpu_type];
    m.key.workload = workloads[c->key.workload];
    m.key.campaign = campaign;
    m.key.neighbour = is_pair ? workloads[c->key.neighbour] : -1;
    if ((c->n_speed == 0 && c->n_unfit == 0 && c->n_watts == 0) || m.key.workload < 0 ||
        (is_pair && m.key.neighbour < 0))
        return 0;
    const bool is_new = catalog_cell(to, m.key) == NULL;
    int rc = catalog_record(to, &m, 0, e);
    if (rc == 0 && is_new) {
        struct cell *is = &to->cells[catalog_cell(to, m.key) - to->cells];
        *is = *c;
        is->key = m.key;
        is->last_s = is->drift_s = 0;    // of another time
    }
    return rc;
}

/* The indices that types and workloads of 'from' have in 'to', where they are added; -1: of the
 * family that is left out.
 */
static int adopt_names(struct catalog *to, const struct catalog *from, const char *family,
                       int *types, int *workloads, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < from->n_types && rc == 0; i++) {
        /* A site's own types have been here before; those of one catalog stay apart. */
        types[i] = family == NULL ? catalog_find_type_alike(to, from->types[i].name) : -1;
        if (types[i] < 0)
            rc = catalog_add_type(to, &from->types[i], &types[i], e);
    }
    for (int i = 0; i < from->n_workloads && rc == 0; i++) {
        const struct workload *w = &from->workloads[i];

        workloads[i] = -1;
        if (family == NULL || w->family == NULL || strcmp(w->family, family) != 0)
            rc = catalog_add_workload(to, w, &workloads[i], e);
    }
    return rc;
}

int sim_adopt(struct catalog *to, const struct catalog *from, const char *family, struct err *e)
{
    struct arena scratch;
    int rc = catalog_begin(to, e);

    if (rc < 0)
        return rc;
    arena_init(&scratch);
    int *types = ARENA_ARRAY(&scratch, int, (size_t)from->n_types);
    int *workloads = ARENA_ARRAY(&scratch, int, (size_t)from->n_workloads);
    rc = adopt_names(to, from, family, types, workloads, e);
    int *campaigns = ARENA_ARRAY(&scratch, int, (size_t)from->n_campaigns);
    for (int i = 0; i < from->n_campaigns && rc == 0; i++)
        rc = catalog_add_campaign(to, from->campaigns[i], from->campaign_sharing[i], &campaigns[i],
                                  e);
    for (int i = 0; i < from->n_cells && rc == 0; i++)
        rc = copy_cell(to, &from->cells[i], types, workloads,
                       campaigns[from->cells[i].key.campaign], e);
    arena_release(&scratch);
    return catalog_end(to, rc, e);
}

/* ---- knowing the truth ---- */

static bool is_oracle(const char *policy)
{
    return strcmp(policy, "gogh-oracle") == 0;
}

/* How surely an oracle knows, as sd of logarithms: far less than any decision could notice. */
#define ORACLE_SD CATALOG_NOISE_MIN

/* How fast 'w' runs beside 'n', relative to alone: their slowdown, and where both together want
 * more than the cap, what falling clocks take. 0: they do not fit.
 */
static double true_share(const struct sim *s, const struct sim_workload *w, int truth_type,
                         int type, const struct sim_workload *n)
{
    const struct truth *t = s->options.truth;
    const double share[] = { truth_slowdown(t, w->truth, truth_type, n->truth),
                             truth_slowdown(t, n->truth, truth_type, w->truth) };
    const double alone_w[] = { truth_watts(t, w->truth, truth_type),
                               truth_watts(t, n->truth, truth_type) };

    if (share[0] <= 0 || share[1] <= 0)
        return 0;
    return share[0] * power_drawn((enum power_model)s->options.cluster->settings.power_model,
                                  &s->belief.types[type], alone_w, share, 2)
                          .speed;
}

/* What is true of 'w' on a type (indices of truth and belief) beside 'n' (NULL: alone), as a
 * measurement, which says whether it fits.
 */
static int reveal_cell(struct sim *s, const struct sim_workload *w, int truth_type, int type,
                       const struct sim_workload *n, struct err *e)
{
    const struct truth *t = s->options.truth;
    double speed = truth_speed(t, w->truth, truth_type) *
                   (n == NULL ? 1 : true_share(s, w, truth_type, type, n));
    struct measurement m = {
        .key = { .workload = w->belief,
                 .gpu_type = type,
                 .neighbour = n == NULL ? -1 : n->belief,
                 .n_gpus = 1 },
        .fits = speed > 0,
        .throughput = speed > 0 ? speed : (double)NAN,
        .watts = NAN,
        .duration_s = NAN,
        .noise = ORACLE_SD,
    };

    if (m.fits && n == NULL)
        m.watts = truth_watts(t, w->truth, truth_type);
    return catalog_record(&s->belief, &m, 0, e);
}

static int reveal_workload(struct sim *s, const struct sim_workload *w, struct err *e)
{
    int rc = 0;

    for (int type = 0; type < s->belief.n_types; type++) {
        int truth_type = truth_find_type(s->options.truth, s->belief.types[type].name);

        if (truth_type < 0)
            continue;    // of 'known', and not of this cluster
        if (rc == 0)
            rc = reveal_cell(s, w, truth_type, type, NULL, e);
        for (int n = 0; n < s->n_workloads && rc == 0; n++)
            rc = reveal_cell(s, w, truth_type, type, &s->workloads[n], e);
    }
    return rc;
}

/* What was revealed is known, and not estimated. */
static void tell_truth(struct sim *s)
{
    const struct catalog *c = &s->belief;

    for (int i = 0; i < s->n_workloads; i++) {
        const struct sim_workload *w = &s->workloads[i];

        for (int at = c->first_cell[w->belief]; at >= 0; at = c->next_cell[at]) {
            const struct cell *cell = &c->cells[at];
            struct told_cell is = { cell->ln_speed, ORACLE_SD, NAN, NAN, limit_law };

            int type = truth_find_type(s->options.truth, c->types[cell->key.gpu_type].name);

            if (cell->n_speed == 0 || !cell_key_is_plain(&cell->key) || type < 0)
                continue;    // or of 'known', and not of this cluster
            if (cell->key.neighbour < 0) {
                is.ln_watts = cell->ln_watts;
                is.watts_sd = ORACLE_SD;
                is.bend = truth_bend(s->options.truth, w->truth, type);
                is.bend.loss_sd = ORACLE_SD;
            }
            estimate_tell(&s->cycle.estimator, w->belief, cell->key.gpu_type, cell->key.neighbour,
                          &is);
        }
    }
}

static int reveal_gangs(struct sim *s, struct err *e)
{
    const struct catalog *c = s->options.truth->catalog;
    int *types = ARENA_ARRAY(&s->arena, int, (size_t)c->n_types);
    int *workloads = ARENA_ARRAY(&s->arena, int, (size_t)c->n_workloads);
    int rc = 0;

    for (int i = 0; i < c->n_types; i++)
        types[i] = catalog_find_type_alike(&s->belief, c->types[i].name);
    for (int i = 0; i < c->n_workloads; i++)
        workloads[i] = -1;
    for (int i = 0; i < s->n_workloads; i++)
        workloads[s->workloads[i].truth] = s->workloads[i].belief;
    for (int i = 0; i < c->n_cells && rc == 0; i++) {
        const struct cell_key *k = &c->cells[i].key;

        if (k->campaign == CATALOG_SITE && k->n_gpus > 1 && k->neighbour < 0 && k->limit_w == 0 &&
            c->cells[i].n_speed > 0 && types[k->gpu_type] >= 0 && workloads[k->workload] >= 0)
            rc = copy_cell(&s->belief, &c->cells[i], types, workloads, CATALOG_SITE, e);
    }
    return rc;
}

/* All workloads of the trace are known at once, and everything about them. */
static int reveal(struct sim *s, struct err *e)
{
    int rc = catalog_begin(&s->belief, e);

    if (rc < 0)
        return rc;
    for (int i = 0; i < s->n_workloads && rc == 0; i++) {
        struct sim_workload *w = &s->workloads[i];

        rc = catalog_add_workload(&s->belief, &s->options.truth->catalog->workloads[w->truth],
                                  &w->belief, e);
    }
    for (int i = 0; i < s->n_workloads && rc == 0; i++)
        rc = reveal_workload(s, &s->workloads[i], e);
    if (rc == 0)
        rc = reveal_gangs(s, e);
    return catalog_end(&s->belief, rc, e);
}

/* ---- doors ---- */

static int make_world(struct sim *s, struct err *e)
{
    const struct cluster *cl = s->options.cluster;
    const struct state *state = &s->ledger.state;
    const size_t n = (size_t)state->n_gpus;
    int *types = ARENA_ARRAY(&s->arena, int, n), *nodes = ARENA_ARRAY(&s->arena, int, n);
    const struct gpu_type **figures = ARENA_ARRAY(&s->arena, const struct gpu_type *, n);
    int gpu = 0;

    for (int i = 0; i < cl->n_nodes; i++) {
        for (int k = 0; k < cl->nodes[i].n_gpus; k++, gpu++) {
            figures[gpu] = &cl->types[cl->nodes[i].types[k]];
            types[gpu] = truth_find_type(s->options.truth, figures[gpu]->name);
            nodes[gpu] = i;
            if (types[gpu] < 0)
                return err_set(e, EINVAL,
                               "the ground truth has no GPU type '%s' of the cluster: "
                               "import measurements of it, or simulate without --truth",
                               figures[gpu]->name);
        }
    }
    assert(gpu == state->n_gpus);
    s->world = world_create(&(struct world_setup){
        .truth = s->options.truth,
        .settings = &cl->settings,
        .n_gpus = gpu,
        .types = types,
        .figures = figures,
        .nodes = nodes,
        .seed = s->options.seed,
        .is_always_on = (s->options.without & 1U << LEVER_SLEEP) != 0,
    });
    return 0;
}

/* A training is done after this much simulated time, however long it takes: what is decided
 * meanwhile must not depend on the machine. Some cycles; a training takes seconds.
 */
#define SETTLE_S 600

static int make_cycle(struct sim *s, struct err *e)
{
    const struct cluster_settings *set = &s->options.cluster->settings;
    const bool knows_truth = is_oracle(s->options.policy);
    int rc = solver_by_name(knows_truth ? "gogh" : s->options.policy, s->options.seed,
                            &s->cycle.solver, e);

    if (rc < 0)
        return rc;
    s->cycle.clock = clock_manual(&s->clock);
    s->cycle.executor = world_executor(s->world);
    s->cycle.sensor = world_sensor(s->world);
    s->cycle.ledger = &s->ledger;
    s->cycle.catalog = &s->belief;
    s->cycle.on_plan = s->options.on_plan;
    s->cycle.owner = s->options.owner;
    s->cycle.theta = set->theta;
    s->cycle.options = solve_defaults;
    s->cycle.options.price_w = set->price_w;
    s->cycle.options.delay_w = set->delay_w;
    s->cycle.options.promise_w = set->promise_w;
    s->cycle.probe.share = set->probe_share;
    s->cycle.options.may_probe = set->probe_share > 0;
    s->cycle.options.settle_s = set->settle_s;
    s->cycle.options.power_cap_w = set->power_cap_w;
    s->cycle.options.may_limit = set->power_limits != 0;
    s->cycle.options.move_s = set->move_s + set->restart_s;
    for (int l = 0; l < LEVERS; l++)
        if (s->options.without & 1U << l)
            lever_take(&s->cycle.options, (enum lever)l);
    s->cycle.kind = s->options.estimator;
    cycle_init(&s->cycle);
    if (knows_truth)
        tell_truth(s);
    s->is_cycle_ready = true;
    cycle_use(&s->cycle, s->options.model);
    if (s->options.is_learning && !knows_truth) {
        struct trainer_options learning = trainer_defaults;

        learning.seed = s->options.seed;
        cycle_learn(&s->cycle, &learning, SETTLE_S);
    }
    return 0;
}

static int build(struct sim *s, struct err *e)
{
    const struct sim_options *o = &s->options;
    int rc = 0;

    if (o->journal != NULL)
        rc = catalog_load(&s->belief, o->journal, e);
    if (rc == 0)
        rc = ledger_open(&s->ledger, &s->belief, o->journal, e);
    s->is_ledger_open = rc == 0;
    if (rc == 0 && s->ledger.last_seq > 0)
        rc = err_set(e, EEXIST, "the journal holds another run already; give a new file");
    if (rc == 0)
        rc = cluster_install(o->cluster, &s->belief, &s->ledger, 0, e);
    if (rc == 0 && o->known != NULL)
        rc = sim_adopt(&s->belief, o->known, NULL, e);
    if (rc == 0)
        rc = find_workloads(s, e);
    if (rc == 0 && is_oracle(o->policy))
        rc = reveal(s, e);
    if (rc == 0)
        rc = find_allowed(s, e);
    if (rc == 0)
        rc = make_world(s, e);
    if (rc == 0)
        rc = make_cycle(s, e);
    if (rc == 0)
        rc = sim_services_open(s, e);
    s->decided_version = s->ledger.state.version;
    return rc;
}

int sim_create(const struct sim_options *o, struct sim **out, struct err *e)
{
    struct sim *s = heap_array(1, sizeof *s);
    int rc;

    s->options = *o;
    s->decided_s = -INFINITY;
    arena_init(&s->arena);
    catalog_init(&s->belief);
    rc = build(s, e);
    if (rc < 0)
        sim_destroy(s);
    else
        *out = s;
    return rc;
}

void sim_destroy(struct sim *s)
{
    if (s == NULL)
        return;
    if (s->is_cycle_ready)
        cycle_release(&s->cycle);
    world_destroy(s->world);
    if (s->is_ledger_open)
        ledger_close(&s->ledger);
    catalog_release(&s->belief);
    arena_release(&s->arena);
    free(s);
}

/* ---- running ---- */

static void submit_to_world(struct sim *s, const struct trace_job *j, const struct sim_workload *w)
{
    world_submit(s->world, &(struct world_job_spec){
                               .workload = w->truth,
                               .is_inference = j->is_inference,
                               .steps = j->steps,
                               .rate = j->rate,
                               .duration_s = j->duration_s,
                               .promise = trace_job_promise(j),
                               .reference_speed = w->reference_speed,
                               .max_gpus = j->max_gpus,
                           });
}

static int submit_to_state(struct sim *s, int i, int workload, struct err *e)
{
    const struct trace_job *j = &s->options.trace->jobs[i];
    const struct job_spec spec = {
        .name = j->name,
        .owner = j->owner != NULL ? j->owner : "trace",
        .kind = j->is_inference ? JOB_INFERENCE : JOB_TRAINING,
        .workload = workload,
        .submit_s = s->clock.t_s,
        .steps = j->steps,
        .rate = j->rate,
        .duration_s = j->duration_s,
        .min_throughput = j->min_throughput,
        .deadline_s = s->clock.t_s + j->deadline_s,
        .n_gpus = j->n_gpus,
        .max_gpus = j->max_gpus,
        .priority = j->priority,
        .urgency = j->urgency,
        .is_exclusive = j->is_exclusive,
        .n_nodes = j->n_nodes,
        .allowed_types = s->allowed[i],
    };
    const struct event ev = {
        .kind = EVENT_JOB_SUBMITTED,
        .time_s = s->clock.t_s,
        .job = -1,
        .spec = &spec,
    };

    return ledger_append(&s->ledger, &ev, 1, e);
}

/* Its descriptor becomes known, nothing measured. */
int sim_meet_workload(struct sim *s, struct sim_workload *w, struct err *e)
{
    const struct workload *described = &s->options.truth->catalog->workloads[w->truth];
    int rc = catalog_begin(&s->belief, e);

    if (rc == 0)
        rc = catalog_end(&s->belief, catalog_add_workload(&s->belief, described, &w->belief, e), e);
    return rc;
}

static int arrive(struct sim *s, int i, struct err *e)
{
    struct sim_workload *w = &s->workloads[s->workload_of[i]];
    int rc = w->belief < 0 ? sim_meet_workload(s, w, e) : 0;

    if (rc == 0)
        rc = submit_to_state(s, i, w->belief, e);
    if (rc == 0)
        submit_to_world(s, &s->options.trace->jobs[i], w);
    s->ids[i] = s->ledger.state.n_jobs - 1;
    return rc;
}

/* When a decision that was put off is due; INFINITY: none was. */
static double decision_due_s(const struct sim *s)
{
    if (s->cycle.wants_more)
        return s->decided_s;
    if (s->ledger.state.version == s->decided_version && !services_want(&s->cycle))
        return INFINITY;
    return s->decided_s + s->options.cluster->settings.decide_s;
}

static double next_s(struct sim *s)
{
    const struct trace *t = s->options.trace;
    double next = fmin(world_next_s(s->world), fmax(decision_due_s(s), s->clock.t_s));

    if (s->next_arrival < t->n_jobs)
        next = fmin(next, fmax(t->jobs[s->next_arrival].at_s, s->clock.t_s));
    return t->n_services > 0 ? fmin(next, sim_services_next_s(s)) : next;
}

/* Everything of time 't_s': the world, arrivals, what is told, and a decision when due. */
static int turn(struct sim *s, double t_s, struct err *e)
{
    const struct trace *t = s->options.trace;
    int rc = 0;

    s->clock.t_s = t_s;
    world_advance(s->world, t_s);
    while (s->next_arrival < t->n_jobs && t->jobs[s->next_arrival].at_s <= t_s && rc == 0)
        rc = arrive(s, s->next_arrival++, e);
    if (rc == 0 && world_has_news(s->world))
        rc = cycle_listen(&s->cycle, INT_MAX, e);
    if (rc >= 0)
        rc = sim_services_turn(s, e);
    if (s->cycle.append)
        cycle_is_safe(&s->cycle);
    if (rc < 0 || decision_due_s(s) > t_s)
        return rc < 0 ? rc : 0;
    rc = cycle_run(&s->cycle, e);
    if (s->cycle.append)
        cycle_is_safe(&s->cycle);
    s->decided_s = t_s;
    s->decided_version = s->ledger.state.version;
    return rc < 0 ? rc : 0;
}

/* Nothing will ever happen again but GPUs falling asleep. */
static bool is_over(struct sim *s)
{
    return s->next_arrival == s->options.trace->n_jobs && !sim_services_live(s) &&
           world_counts(s->world).n_placed == 0 &&
           (world_counts(s->world).n_ended == s->options.trace->n_jobs || isinf(decision_due_s(s)));
}

static int stop_at(struct sim *s, double t_s)
{
    if (t_s > s->clock.t_s) {
        s->clock.t_s = t_s;
        world_advance(s->world, t_s);
    }
    s->is_over = s->options.until_s > 0 && t_s >= s->options.until_s;
    return s->is_over ? 0 : 1;
}

int sim_advance(struct sim *s, double until_s, struct err *e)
{
    const double limit_s = s->options.until_s > 0 ? fmin(until_s, s->options.until_s) : until_s;

    while (!s->is_over) {
        double t_s = next_s(s);
        int rc;

        if (t_s > limit_s)
            return stop_at(s, limit_s);
        rc = turn(s, t_s, e);
        if (rc < 0)
            return rc;
        s->is_over = is_over(s);
    }
    return 0;
}

/* ---- figures ---- */

struct promise_totals {
    double promised_s, kept_s, last_end_s;
    struct samples jct_s;
};

static void count_job(const struct sim *s, int job, struct sim_result *out,
                      struct promise_totals *t)
{
    struct world_outcome f;
    double end_s;

    world_job_outcome(s->world, job, &f);
    if (f.is_serving)
        return;
    end_s = isnan(f.end_s) ? s->clock.t_s : f.end_s;
    out->work_s += f.work_s;
    if (f.has_promise) {
        t->promised_s += end_s - f.submit_s;
        t->kept_s += f.kept_s;
    }
    if (isnan(f.end_s))
        return;
    out->n_finished += f.is_finished;
    out->n_failed += !f.is_finished;
    t->last_end_s = fmax(t->last_end_s, f.end_s);
    if (f.is_finished)
        samples_add(&t->jct_s, f.end_s - f.submit_s);
}

/* A job that was in no plan yet waits for its turn to be looked at. */
static enum wait_reason why_waiting(const struct sim *s, int job)
{
    enum wait_reason why = cycle_why(&s->cycle, job);

    return why == WAIT_NOT ? WAIT_TURN : why;
}

static struct plan_gap gap_at(struct cycle *c, double q)
{
    return (struct plan_gap){ .watts = samples_quantile(&c->gap_w, q),
                              .ratio = samples_quantile(&c->gap_ratio, q),
                              .varying_ratio = samples_quantile(&c->gap_varying_ratio, q) };
}

static struct plan_gap gap_mean(const struct cycle *c)
{
    return (struct plan_gap){ .watts = samples_mean(&c->gap_w),
                              .ratio = samples_mean(&c->gap_ratio),
                              .varying_ratio = samples_mean(&c->gap_varying_ratio) };
}

#define DAY_S 86400.0

static void count_services(struct sim *s, struct sim_result *out)
{
    struct world_service_figures f;
    const double nothing = NAN;

    world_services_now(s->world, &f);
    out->service_hours_kept = f.n_hours > 0 ? (double)f.n_kept / f.n_hours : nothing;
    out->late_share = f.n_requests > 0 ? f.n_late / f.n_requests : nothing;
    out->p99_s = f.p99_s;
    out->interruptions = f.n_hours > 0 ? f.n_interruptions : nothing;
    out->starts_per_service_day = f.lived_s > 0 ? f.n_starts / (f.lived_s / DAY_S) : nothing;
    out->training_work = f.n_hours > 0 ? sim_training_work(s) : nothing;
}

void sim_result(struct sim *s, struct sim_result *out)
{
    const struct trace *trace = s->options.trace;
    const struct state *state = &s->ledger.state;
    struct promise_totals t = { .last_end_s = NAN };
    const double nothing = NAN;

    *out = (struct sim_result){
        .n_jobs = trace->n_jobs,
        .n_submitted = s->next_arrival,
        .energy_j = world_energy_j(s->world),
        .gpu_s = world_gpu_s(s->world),
        .n_moves = s->cycle.n_moves,
        .n_models = s->cycle.n_models,
        .n_decisions = s->cycle.n_decisions,
        .n_fallbacks = s->cycle.n_fallbacks,
        .n_events = world_counts(s->world).n_events,
        .n_measurements = (long)s->cycle.refiner.n_measurements,
        .prediction_error = NAN,
        .coverage90 = NAN,
        .decision_p50_s = samples_quantile(&s->cycle.decision_s, 0.5),
        .decision_p99_s = samples_quantile(&s->cycle.decision_s, 0.99),
        .n_repricings = (long)s->cycle.repricing_s.n,
        .gap_mean = gap_mean(&s->cycle),
        .gap_worst = gap_at(&s->cycle, 1),
    };
    if (out->n_repricings > 0)
        out->repricing_s = samples_mean(&s->cycle.repricing_s) * (double)out->n_repricings;
    if (out->n_measurements > 0) {
        out->prediction_error = s->cycle.refiner.sum_abs_error / (double)out->n_measurements;
        out->coverage90 = (double)s->cycle.refiner.n_covered / (double)out->n_measurements;
    }
    for (int i = 0; i < out->n_submitted; i++)
        count_job(s, s->ids[i], out, &t);
    count_services(s, out);
    out->energy_j = world_energy_j(s->world);    // now that all requests until now were played
    for (int j = state->first_waiting; j >= 0; j = state->jobs[j]->next_waiting)
        out->n_waiting[why_waiting(s, j)]++;
    out->promise_attainment = t.promised_s > 0 ? t.kept_s / t.promised_s : nothing;
    out->mean_jct_s = samples_mean(&t.jct_s);
    out->p95_jct_s = samples_quantile(&t.jct_s, 0.95);
    out->makespan_s = trace->n_jobs > 0 ? t.last_end_s - trace->jobs[0].at_s : nothing;
    out->allocation_efficiency = out->gpu_s > 0 ? out->work_s / out->gpu_s : nothing;
    samples_release(&t.jct_s);
}

bool sim_job_outcome(const struct sim *s, int i, struct world_outcome *out)
{
    if (i < 0 || i >= s->next_arrival)
        return false;
    world_job_outcome(s->world, s->ids[i], out);
    return true;
}

const char *sim_job_reason(const struct sim *s, int i)
{
    struct world_outcome outcome;

    if (!sim_job_outcome(s, i, &outcome))
        return "";
    if (!isnan(outcome.end_s))
        return outcome.is_finished ? "" : "out of memory";    // nothing else fails in this world
    if (s->ledger.state.jobs[s->ids[i]]->state == JOB_RUNNING)
        return "running";
    return wait_reason_name(why_waiting(s, s->ids[i]));
}

double sim_now_s(const struct sim *s)
{
    return s->clock.t_s;
}

const struct world *sim_world(const struct sim *s)
{
    return s->world;
}

const struct state *sim_state(const struct sim *s)
{
    return &s->ledger.state;
}

const struct catalog *sim_catalog(const struct sim *s)
{
    return &s->belief;
}

const struct estimator *sim_estimator(const struct sim *s)
{
    return &s->cycle.estimator;
}

void sim_learning(const struct sim *s, double *sum_abs_error, long *n)
{
    *sum_abs_error = s->cycle.refiner.sum_abs_error;
    *n = s->cycle.refiner.n_measurements;
}

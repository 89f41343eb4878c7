/* Whatever happens between a look and the orders that follow from it: no order breaks a rule. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "act/act.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rng.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/cycle.h"
#include "estimate/prior/limits.h"
#include "optimize/model/lower.h"
#include "unit/suite.h"
#include "unit/support.h"

enum { NODES = 4, GPUS_MOST = 16, JOBS_MOST = 1000, ORDERS_MOST = 64 };

/* 'large' fits beside nobody and on no k80. */
static const char cluster[] =
    "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=149 idle=30 sleep=10\n"
    "type whole=v100 share_max=1\n"
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n"
    "workload x params=1e6 bytes_per_sample=1e6 batch=1\n"
    "workload large params=1e6 bytes_per_sample=1e6 batch=1\n"
    "speed w v100 10\nwatts w v100 200\nspeed w k80 4\nwatts w k80 100\nspeed w whole 10\n"
    "speed x v100 20\nwatts x v100 100\nspeed x k80 5\nwatts x k80 80\nspeed x whole 9\n"
    "speed large v100 10\nspeed large k80 4\nspeed large whole 10\npairs 0.7\n"
    "unfit large k80\nunfit large v100 beside=w\nunfit large v100 beside=x\n"
    "unfit large v100 beside=large\n"
    "node n0 v100 v100 k80\nnode n1 v100 k80 v100\nnode n2 k80 k80\nnode n3 whole v100\n";

struct order {
    int job, n_gpus, gpus[GPUS_MOST], limit_w;    // n_gpus 0: stop
};

struct scene {
    struct rng r;
    struct world w;
    struct cycle cycle;
    struct clock_manual clock;
    struct order orders[ORDERS_MOST];
    int n_orders;
    bool job_is_busy[JOBS_MOST], gpu_is_busy[GPUS_MOST];
    int n_changes, n_given;
    bool has_rules;
    struct engine_node nodes[NODES];
    unsigned char barred[NODES];    // for every fourth job
};

/* ---- the doors ---- */

static int cpus_of(int job)
{
    return job % 3;
}

static void write_down(struct scene *s, int job, int n, const int *gpus, int limit_w)
{
    struct order *o = &s->orders[s->n_orders++];

    ck_assert_int_le(s->n_orders, ORDERS_MOST);
    *o = (struct order){ .job = job, .n_gpus = n, .limit_w = limit_w };
    if (n > 0)
        memcpy(o->gpus, gpus, (size_t)n * sizeof *gpus);
}

/* Now and then an order is refused, and nothing comes of it. */
static int place(void *self, const struct placement *p, struct err *e)
{
    struct scene *s = self;

    if (rng_below(&s->r, 10) == 0)
        return err_set(e, EBUSY, "not now");
    write_down(s, p->job, p->n_gpus, p->gpus, p->limit_w);
    return 0;
}

static int stop(void *self, int job, struct err *e)
{
    struct scene *s = self;

    if (rng_below(&s->r, 10) == 0)
        return err_set(e, EBUSY, "not now");
    write_down(s, job, 0, NULL, 0);
    return 0;
}

static bool job_is_busy(void *self, int job)
{
    return ((struct scene *)self)->job_is_busy[job];
}

static bool gpu_is_busy(void *self, int gpu)
{
    return ((struct scene *)self)->gpu_is_busy[gpu];
}

/* Nodes have few CPUs, and keep some jobs away; both change. */
static bool rules(void *self, struct arena *a, const int *jobs, int n_jobs,
                  struct engine_rules *out)
{
    struct scene *s = self;
    struct engine_job *of = ARENA_ARRAY(a, struct engine_job, (size_t)n_jobs);
    struct engine_node *nodes = ARENA_ARRAY(a, struct engine_node, NODES);
    unsigned char *barred = ARENA_ARRAY(a, unsigned char, NODES);

    memcpy(nodes, s->nodes, sizeof s->nodes);
    memcpy(barred, s->barred, sizeof s->barred);
    for (int i = 0; i < n_jobs; i++)
        of[i] = (struct engine_job){ .cpus = cpus_of(jobs[i]),
                                     .barred = jobs[i] % 4 == 0 ? barred : NULL };
    *out = (struct engine_rules){ .nodes = nodes, .jobs = of };
    return s->has_rules;
}

static int nothing_seen(void *self, struct observation *out)
{
    (void)self, (void)out;
    return 0;
}

/* ---- by chance ---- */

static int below(struct scene *s, int n)
{
    return (int)rng_below(&s->r, (uint64_t)n);
}

/* What the state refuses does not happen. */
static void happen(struct scene *s, struct event *ev)
{
    struct err e = { 0 };

    ev->time_s = s->clock.t_s;
    if (ledger_append(&s->w.ledger, ev, 1, &e) == 0)
        s->n_changes++;
}

static void submit(struct scene *s)
{
    char name[16];
    const struct state *now = &s->w.ledger.state;

    if (now->n_jobs == JOBS_MOST)
        return;
    snprintf(name, sizeof name, "j%d", now->n_jobs);
    struct job_spec spec = spec_of(name, below(s, 3));
    spec.min_throughput = below(s, 2) ? 1 + below(s, 9) : 0;
    spec.n_gpus = below(s, 3) ? 1 : 1 + below(s, 3);
    spec.max_gpus = spec.n_gpus + below(s, 2);
    spec.is_exclusive = below(s, 5) == 0;
    spec.n_nodes = spec.n_gpus == 2 && spec.max_gpus == 2 ? below(s, 3) : below(s, 2);
    spec.allowed_types = below(s, 4) ? 0 : 1u + (unsigned)below(s, 7);
    happen(s, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
}

static void change_node(struct scene *s)
{
    static const enum node_state states[] = { NODE_UP, NODE_UP, NODE_DRAINED, NODE_DOWN };
    char name[8];

    snprintf(name, sizeof name, "n%d", below(s, 4));
    happen(s, &(struct event){
                  .kind = EVENT_NODE_CHANGED, .node = name, .node_state = states[below(s, 4)] });
}

/* Somebody comes to a GPU that nobody planned for: lawful or not. */
static void start_anywhere(struct scene *s, int job)
{
    const struct state *now = &s->w.ledger.state;
    int gpus[GPUS_MOST], n = 0, first = below(s, now->n_gpus);

    for (int i = 0; i < now->n_gpus && n < now->jobs[job]->spec.n_gpus; i++)
        if (now->gpus[(first + i) % now->n_gpus].n_jobs < 2)
            gpus[n++] = (first + i) % now->n_gpus;
    if (n == now->jobs[job]->spec.n_gpus)
        happen(s,
               &(struct event){ .kind = EVENT_JOB_STARTED, .job = job, .gpus = gpus, .n_gpus = n });
}

static void change_job(struct scene *s)
{
    static const enum event_kind kinds[] = { EVENT_JOB_STOPPED, EVENT_JOB_FINISHED,
                                             EVENT_JOB_FAILED,  EVENT_JOB_CANCELLED,
                                             EVENT_JOB_HELD,    EVENT_JOB_RELEASED };
    const struct state *now = &s->w.ledger.state;

    if (now->n_jobs == 0)
        return;
    int job = below(s, 4) && now->n_running ? now->running[below(s, now->n_running)]
                                            : below(s, now->n_jobs);
    if (below(s, 4) == 0)
        start_anywhere(s, job);
    else
        happen(s, &(struct event){ .kind = kinds[below(s, 6)], .job = job });
}

static void change_orders(struct scene *s)
{
    const struct state *now = &s->w.ledger.state;

    if (now->n_jobs)
        s->job_is_busy[below(s, now->n_jobs)] ^= true;
    s->gpu_is_busy[below(s, now->n_gpus)] ^= true;
    s->barred[below(s, NODES)] ^= ENGINE_FEATURE;
    s->nodes[below(s, NODES)].cpus = below(s, 6);
    s->n_changes++;
}

static void change(struct scene *s)
{
    switch (below(s, 7)) {
    case 0:
    case 1:
        submit(s);
        break;
    case 2:
        change_node(s);
        break;
    case 3:
        change_orders(s);
        break;
    default:
        change_job(s);
    }
}

/* ---- the rules, once more ---- */

/* Who is where once the orders are carried out, and which GPUs somebody came to. A limit is the
 * GPU's: the one that was ordered, though its neighbour's order for the same was refused.
 */
struct outcome {
    int n[GPUS_MOST], jobs[GPUS_MOST][8], limit_w[GPUS_MOST];
    bool is_new[GPUS_MOST], is_ordered[GPUS_MOST];
};

static const struct order *order_of(const struct scene *s, int job)
{
    for (int i = 0; i < s->n_orders; i++)
        if (s->orders[i].job == job)
            return &s->orders[i];
    return NULL;
}

static bool is_among(const int *gpus, int n, int gpu)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

static void carry_out(const struct scene *s, bool with_orders, struct outcome *out)
{
    const struct state *now = &s->w.ledger.state;

    *out = (struct outcome){ 0 };
    for (int j = 0; j < now->n_jobs; j++) {
        const struct job *job = now->jobs[j];
        const struct order *o = with_orders ? order_of(s, j) : NULL;
        const int *gpus = o ? o->gpus : job->gpus;
        int n = o ? o->n_gpus : job->n_held;
        for (int i = 0; i < n; i++) {
            int g = gpus[i];
            ck_assert_int_lt(out->n[g], 8);
            out->jobs[g][out->n[g]++] = j;
            if (o || !out->is_ordered[g])
                out->limit_w[g] = o ? o->limit_w : job->limit_w;
            out->is_ordered[g] |= o != NULL;
            out->is_new[g] |= o && !is_among(job->gpus, job->n_held, g);
        }
    }
}

static struct limited drawn(const struct scene *s, const struct outcome *o, int gpu)
{
    const struct state *now = &s->w.ledger.state;
    int workloads[8];
    double rates[8];

    for (int i = 0; i < o->n[gpu]; i++) {
        workloads[i] = now->jobs[o->jobs[gpu][i]]->spec.workload;
        rates[i] = job_serves(&now->jobs[o->jobs[gpu][i]]->spec);
    }
    return estimate_limited(&s->cycle.estimator, now->gpus[gpu].type, workloads, rates, o->n[gpu],
                            o->limit_w[gpu]);
}

static double drawn_w(const struct scene *s, const struct outcome *o)
{
    const struct state *now = &s->w.ledger.state;
    double sum_w = 0;

    for (int g = 0; g < now->n_gpus; g++)
        sum_w += o->n[g] ? drawn(s, o, g).watts : s->w.catalog.types[now->gpus[g].type].idle_w;
    return sum_w;
}

/* CPUs that jobs use of a node. */
static int used_cpus(const struct scene *s, const struct outcome *o, int node)
{
    const struct state *now = &s->w.ledger.state;
    int sum = 0;

    for (int g = 0; g < now->n_gpus; g++)
        for (int i = 0; i < o->n[g] && now->gpus[g].node == node; i++)
            sum += cpus_of(o->jobs[g][i]);
    return sum;
}

#define MUST(claim, ...)                                                \
    do {                                                                \
        if (!(claim))                                                   \
            ck_abort_msg("after %d changes: " #claim ": " __VA_ARGS__); \
    } while (0)

/* A GPU that somebody came to. */
static void check_gpu(const struct scene *s, const struct outcome *o, int gpu)
{
    const struct state *now = &s->w.ledger.state;
    const struct gpu_type *type = &s->w.catalog.types[now->gpus[gpu].type];
    int workloads[8], n = o->n[gpu], at = s->n_changes;

    MUST(n <= gpu_type_theta(type, s->cycle.theta) || n == 1, "%d jobs on GPU %d", at, n, gpu);
    MUST(now->nodes[now->gpus[gpu].node].state == NODE_UP, "GPU %d", at, gpu);
    MUST(!s->gpu_is_busy[gpu], "GPU %d", at, gpu);
    for (int i = 0; i < n; i++) {
        const struct job_spec *spec = &now->jobs[o->jobs[gpu][i]]->spec;
        const struct order *other = order_of(s, o->jobs[gpu][i]);
        int n_gpus = other ? other->n_gpus : now->jobs[o->jobs[gpu][i]]->n_held;
        workloads[i] = spec->workload;
        MUST(n == 1 || (!spec->is_exclusive && n_gpus == 1), "%s shares GPU %d", at, spec->name,
             gpu);
    }
    double unfit = estimate_unfit(&s->cycle.estimator, now->gpus[gpu].type, workloads, n);
    MUST(unfit <= (n > 1 ? s->cycle.options.unfit_max : s->cycle.options.alone_unfit_max),
         "GPU %d, chance %g", at, gpu, unfit);
}

/* A place that a job is given. */
static void check_order(const struct scene *s, const struct order *o)
{
    const struct state *now = &s->w.ledger.state;
    const struct job *j = now->jobs[o->job];
    int n_here[4] = { 0 }, n_nodes = 0, at = s->n_changes;

    MUST(j->state == JOB_RUNNING || (j->state == JOB_WAITING && o->n_gpus > 0), "%s", at,
         j->spec.name);
    MUST(!s->job_is_busy[o->job], "%s", at, j->spec.name);
    bool stays = o->n_gpus == j->n_held;
    for (int i = 0; i < o->n_gpus; i++)
        stays = stays && is_among(j->gpus, j->n_held, o->gpus[i]);
    if (o->n_gpus == 0 || stays)
        return;
    MUST(o->n_gpus >= j->spec.n_gpus && o->n_gpus <= j->spec.max_gpus, "%s", at, j->spec.name);
    for (int i = 0; i < o->n_gpus; i++) {
        bool is_barred = s->has_rules && o->job % 4 == 0 && s->barred[now->gpus[o->gpus[i]].node];
        MUST(!is_barred || is_among(j->gpus, j->n_held, o->gpus[i]), "%s", at, j->spec.name);
        MUST(job_allows(&j->spec, now->gpus[o->gpus[i]].type), "%s", at, j->spec.name);
        MUST(now->gpus[o->gpus[i]].type == now->gpus[o->gpus[0]].type, "%s", at, j->spec.name);
        n_nodes += n_here[now->gpus[o->gpus[i]].node]++ == 0;
    }
    for (int n = 0; n < 4 && j->spec.n_nodes > 0; n++)
        MUST(n_here[n] == 0 || n_here[n] * j->spec.n_nodes == o->n_gpus, "%s", at, j->spec.name);
    MUST(j->spec.n_nodes == 0 || n_nodes == j->spec.n_nodes, "%s", at, j->spec.name);
}

static void check_all(const struct scene *s)
{
    struct outcome before, after;
    double cap_w = s->cycle.options.power_cap_w;

    carry_out(s, false, &before);
    carry_out(s, true, &after);
    for (int i = 0; i < s->n_orders; i++)
        check_order(s, &s->orders[i]);
    for (int g = 0; g < s->w.ledger.state.n_gpus; g++)
        if (after.is_new[g])
            check_gpu(s, &after, g);
    for (int n = 0; n < NODES && s->has_rules; n++) {
        int was = used_cpus(s, &before, n), is = used_cpus(s, &after, n);
        MUST(is <= s->nodes[n].cpus || is <= was, "node %d: %d CPUs, then %d", s->n_changes, n, was,
             is);
    }
    double was_w = drawn_w(s, &before), is_w = drawn_w(s, &after);
    MUST(cap_w <= 0 || is_w <= fmax(cap_w, was_w) * (1 + 1e-6), "%g W, then %g, cap %g",
         s->n_changes, was_w, is_w, cap_w);
}

/* ---- the walk ---- */

static void scene_open(struct scene *s, uint64_t seed)
{
    static const char *const policies[] = { "greedy", "gogh", "pack" };
    struct err e = { 0 };

    *s = (struct scene){ 0 };
    rng_init(&s->r, seed, "changes");
    world_init(&s->w, cluster);
    s->clock.t_s = 10;
    s->cycle = (struct cycle){ .clock = clock_manual(&s->clock),
                               .executor = { .self = s,
                                             .start = place,
                                             .stop = stop,
                                             .move = place,
                                             .job_is_busy = job_is_busy,
                                             .gpu_is_busy = gpu_is_busy,
                                             .rules = rules },
                               .sensor = { .next = nothing_seen },
                               .ledger = &s->w.ledger,
                               .catalog = &s->w.catalog,
                               .options = solve_defaults,
                               .theta = 2 };
    s->cycle.options.may_limit = seed % 2;
    s->has_rules = seed % 5 < 2;
    for (int n = 0; n < NODES; n++)
        s->nodes[n] = (struct engine_node){ below(s, 6), LONG_MAX };
    ck_assert_int_eq(solver_by_name(policies[seed % 3], seed, &s->cycle.solver, &e), 0);
    cycle_init(&s->cycle);
    for (int i = 0; i < 12; i++)
        submit(s);
}

/* What was ordered comes true. */
static void come_true(struct scene *s)
{
    int n_changes = s->n_changes;

    for (int i = 0; i < s->n_orders; i++) {
        const struct order *o = &s->orders[i];
        if (s->w.ledger.state.jobs[o->job]->state == JOB_RUNNING)
            happen(s, &(struct event){ .kind = EVENT_JOB_STOPPED, .job = o->job });
    }
    for (int i = 0; i < s->n_orders; i++) {
        const struct order *o = &s->orders[i];
        if (o->n_gpus > 0)
            happen(s, &(struct event){ .kind = EVENT_JOB_STARTED,
                                       .job = o->job,
                                       .gpus = o->gpus,
                                       .n_gpus = o->n_gpus,
                                       .limit_w = o->limit_w });
    }
    s->n_changes = n_changes;    // these are no surprise
}

static void decide(struct scene *s, int n_between)
{
    struct snapshot seen;
    struct lowered asked;
    struct plan plan;
    struct act_report acted;
    bool is_fallback;
    struct err e = { 0 };

    s->cycle.theta = 1 + below(s, 3);
    s->cycle.options.power_cap_w = below(s, 2) ? 0 : 300 + below(s, 1500);
    if (cycle_look(&s->cycle, &s->cycle.arena, &seen, &e) == 0) {
        int rc = cycle_plan(&s->cycle, &s->cycle.arena, &s->cycle.solver, &seen, &asked, &plan,
                            &is_fallback, &e);
        ck_assert_msg(rc == 0 && !is_fallback, "%s", e.text);
        for (int i = 0; i < n_between; i++)
            change(s);
        if (below(s, 8) == 0) {    // and the configuration is read again
            s->cycle.options.power_cap_w *= 0.6;
            s->cycle.settings++;
        }
        s->clock.t_s += 30;
        s->n_orders = 0;
        cycle_act(&s->cycle, &seen, &plan, &acted);
        check_all(s);
        s->n_given += s->n_orders;
        come_true(s);
    }
    arena_reset(&s->cycle.arena);
}

/* 15,000 changes over all seeds; in test-all 100,000. */
enum { CHANGES = 1000 };

TIMES(no_order_breaks_a_rule, suite_size(15, 100))
{
    static struct scene s;

    log_set_level(LOG_ERROR);
    scene_open(&s, (uint64_t)_i);
    while (s.n_changes < CHANGES) {
        s.clock.t_s += below(&s, 400);
        decide(&s, 1 + below(&s, 40));
    }
    ck_assert_int_gt(s.n_given, 5);
    state_assert(&s.w.ledger.state);
    cycle_release(&s.cycle);
    world_release(&s.w);
}

#include "cycle/inner.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "act/act.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "monitor/monitor.h"
#include "nn/gp.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"
#include "optimize/prices/kept.h"
#include "estimate/model/model.h"
#include "refine/trainer.h"

void cycle_init(struct cycle *c)
{
    nn_init();
    arena_init(&c->arena);
    arena_init(&c->unsafe_arena);
    estimator_init(&c->estimator, c->catalog, 1);
    refiner_init(&c->refiner, c->catalog, &c->estimator);
    c->n_decisions = c->n_fallbacks = c->n_moves = 0;
    c->kept = kept_create();
    c->services = services_create();
}

void cycle_release(struct cycle *c)
{
    trainer_destroy(c->trainer);    // first: its worker may be asking the model
    estimator_release(&c->estimator);
    model_destroy(c->trained);
    samples_release(&c->decision_s);
    samples_release(&c->repricing_s);
    samples_release(&c->gap_w);
    samples_release(&c->gap_ratio);
    samples_release(&c->gap_varying_ratio);
    kept_destroy(c->kept);
    services_destroy(c->services);
    free(c->why);
    free(c->is_parked);
    free(c->unsafe);
    free(c->refusals);
    arena_release(&c->unsafe_arena);
    arena_release(&c->arena);
}

/* ---- learning anew ---- */

void cycle_use(struct cycle *c, const struct model *m)
{
    c->model = m;
    estimate_use(&c->estimator, m, c->kind);
}

void cycle_learn(struct cycle *c, const struct trainer_options *o, double settle_s)
{
    trainer_destroy(c->trainer);
    c->trainer = trainer_create(o, c->model ? c->model->n_measurements : 0);
    c->settle_s = settle_s;
}

static void tell_comparison(const struct comparison *d, double now_s)
{
    if (isnan(d->champion) || isnan(d->challenger))
        log_info("t %.0f s: a new model is in use: it had nobody to beat", now_s);
    else
        log_info("t %.0f s: a new model %s: error %.4f against %.4f", now_s,
                 d->is_won ? "won" : "lost", d->challenger, d->champion);
}

/* The new model stands in for the old one, or is kept for comparison only. A store that cannot
 * keep it is no reason to plan with a worse one.
 */
static void judge(struct cycle *c, struct model *m, double now_s)
{
    struct store *s = c->catalog->store;
    struct model *loser = m->comparison.is_won ? c->trained : m;
    const char *name = m->comparison.is_won ? MODEL_CHAMPION : MODEL_CHALLENGER;
    struct err e = { 0 };

    tell_comparison(&m->comparison, now_s);
    if (s && model_keep(m, s, name, now_s, &e) < 0)
        log_warn("the new model is not kept, a restart will lose it: %s", e.text);
    if (m->comparison.is_won) {
        cycle_use(c, m);
        c->trained = m;
        c->n_models++;
    }
    model_destroy(loser);    // nobody asks it any more
}

void cycle_renew(struct cycle *c)
{
    double now_s = clock_now_s(&c->clock);
    struct model *m = NULL;

    if (!c->trainer)
        return;
    if (isnan(c->settle_s))
        m = trainer_take(c->trainer);
    else if (now_s >= c->training_s + c->settle_s)
        m = trainer_wait(c->trainer);
    if (m)
        judge(c, m, now_s);
    if (trainer_offer(c->trainer, c->catalog, c->model))
        c->training_s = now_s;
}

/* A plan from the solver, or the greedy one, which always exists. Whoever made it, it must
 * be feasible before it touches a machine.
 */
int cycle_plan(const struct cycle *c, struct arena *a, const struct solver *solver,
               const struct snapshot *s, struct lowered *asked, struct plan *out, bool *is_fallback,
               struct err *why)
{
    struct solver mine = *solver;
    struct err worse = { 0 };
    int rc = solver_lower(solver, a, s, &c->estimator, &c->options, asked, why);

    *is_fallback = false;
    if (rc < 0)
        return rc;
    mine.kept =
        strcmp(solver->name, c->solver.name) == 0 ? c->kept : NULL;    // of that policy only
    *is_fallback = solver_plan(&mine, a, asked, out, why) < 0;
    if (!*is_fallback)
        return 0;
    rc = solver_plan(&solver_greedy, a, asked, out, &worse);
    if (rc < 0)
        *why = worse;
    return rc;
}

int cycle_price(const struct cycle *c, struct arena *a, const struct snapshot *s,
                struct kept_prices *out, struct err *e)
{
    struct lowered asked;
    int rc = solver_lower(&c->solver, a, s, &c->estimator, &c->options, &asked, e);

    if (rc == 0)
        kept_find(out, &asked.problem);
    return rc;
}

/* Nothing that happens to other jobs will let it run. */
static bool is_hopeless(enum wait_reason why)
{
    return why == WAIT_MEMORY || why == WAIT_TYPE || why == WAIT_GANG;
}

/* Jobs that cannot run here step aside, so that those behind them are looked at; they get another
 * chance when nodes come or go, or have more left for them, when a description is filled in or
 * something fits after all, and now and then, since estimates of what fits may have changed.
 */
#define PARKED_SWEEPS 256

static void unpark(struct cycle *c)
{
    uint64_t now = c->ledger->state.node_version + c->catalog->descriptions + c->catalog->n_refits +
                   c->n_sweeps / PARKED_SWEEPS + c->budgets;

    if (c->wants_more)    // in the middle of a sweep, which must come to its end
        return;
    for (int i = 0; i < c->n_why && now != c->parked_for; i++)
        c->is_parked[i] = false;
    c->parked_for = now;
}

void cycle_note_reasons(struct cycle *c, const struct snapshot *s, const struct plan *p)
{
    int n_parked = 0;

    for (; c->n_why < c->ledger->state.n_jobs; c->n_why++) {
        GROW_BESIDE(c->is_parked, c->n_why, c->cap_why);
        GROW(c->why, c->n_why, c->cap_why);
        c->why[c->n_why] = WAIT_NOT;
        c->is_parked[c->n_why] = false;
    }
    for (int j = 0; j < s->n_jobs; j++) {
        int id = s->jobs[j].id;
        c->why[id] = (unsigned char)p->jobs[j].reason;
        c->is_parked[id] = is_hopeless(p->jobs[j].reason);
        n_parked += c->is_parked[id];
    }
    c->wants_more = n_parked > 0 && s->n_behind > 0;
    c->n_sweeps += !c->wants_more;
}

enum wait_reason cycle_why(const struct cycle *c, int job)
{
    return job < c->n_why ? (enum wait_reason)c->why[job] : WAIT_NOT;
}

bool cycle_leaves_alone(const struct cycle *c, int job)
{
    return executor_job_is_busy(&c->executor, job) || (c->is_ending && c->is_ending(c->owner, job));
}

const bool *cycle_busy_gpus(const struct cycle *c, struct arena *a)
{
    const struct state *s = &c->ledger->state;
    bool *is_busy = ARENA_ARRAY(a, bool, (size_t)s->n_gpus);

    for (int g = 0; g < s->n_gpus; g++)
        is_busy[g] = executor_gpu_is_busy(&c->executor, g);
    for (int i = 0; i < s->n_running; i++) {
        const struct job *j = s->jobs[s->running[i]];
        for (int k = 0; k < j->n_held && cycle_leaves_alone(c, j->id); k++)
            is_busy[j->gpus[k]] = true;
    }
    services_reserve(c, is_busy);
    return is_busy;
}

/* How long each GPU takes to wake; NULL: all are awake. */
static const double *sleeping_gpus(const struct cycle *c, struct arena *a)
{
    const struct state *s = &c->ledger->state;

    if (!c->executor.gpu_wake_s)
        return NULL;
    double *wake_s = ARENA_ARRAY(a, double, (size_t)s->n_gpus);
    for (int g = 0; g < s->n_gpus; g++)
        wake_s[g] = executor_wake_s(&c->executor, g);
    return wake_s;
}

/* Waiting jobs that are not to be planned for (by job id, '*n' long): those that cannot run here,
 * and those that are on their way to a place already.
 */
static const bool *not_now(const struct cycle *c, struct arena *a, int *n)
{
    const struct state *s = &c->ledger->state;

    *n = c->n_why;
    if (!c->executor.job_is_busy)
        return c->is_parked;
    bool *is_out = ARENA_ARRAY(a, bool, (size_t)s->n_jobs);
    for (int i = 0; i < c->n_why; i++)
        is_out[i] = c->is_parked[i];
    for (int i = s->first_waiting; i >= 0; i = s->jobs[i]->next_waiting)
        is_out[i] = is_out[i] || executor_job_is_busy(&c->executor, i);
    *n = s->n_jobs;
    return is_out;
}

/* For a moment more jobs may be known on a GPU than can share it: one has come, and of the one
 * that left it is not told yet.
 */
static bool is_between(const struct state *s)
{
    for (int g = 0; g < s->n_gpus; g++)
        if (s->gpus[g].n_jobs > THETA_MAX)
            return true;
    return false;
}

static uint64_t sum_of_budgets(const struct snapshot *s)
{
    uint64_t sum = 0;

    for (int n = 0; n < s->n_nodes && s->engine && s->engine->nodes; n++)
        sum = (sum ^ (uint64_t)s->engine->nodes[n].cpus) * 0x9E3779B97F4A7C15U +
              (uint64_t)s->engine->nodes[n].mem_mib;
    return sum;
}

int cycle_look(struct cycle *c, struct arena *a, struct snapshot *out, struct err *e)
{
    if (is_between(&c->ledger->state))
        return err_set(e, EAGAIN, "jobs are changing places");

    /* 1. What exists right now? */
    unpark(c);
    struct snapshot_marks marks = { 0 };
    marks.is_parked = not_now(c, a, &marks.n_parked);
    marks.is_busy = cycle_busy_gpus(c, a);
    marks.wake_s = sleeping_gpus(c, a);
    marks.services = services_views(c, a);
    snapshot_take(a, &c->ledger->state, c->catalog, clock_now_s(&c->clock), c->theta, marks, out);
    out->settings = c->settings;
    out->engine = cycle_rules(c, a, out);
    c->budgets = sum_of_budgets(out);

    /* 2. How well would each job run on each type, alone and beside each neighbour? */
    estimate_refresh(&c->estimator);
    return 0;
}

/* How good is the plan? Prices that it shows to be out of date are found anew, for the next ones.
 */
static void look_at_gap(struct cycle *c, const struct snapshot *s, const struct plan *p)
{
    struct plan_gap gap = plan_gap(p);
    double began_s = clock_stopwatch_s();
    struct err e = { 0 };

    if (!isnan(gap.watts)) {
        samples_add(&c->gap_w, gap.watts);
        samples_add(&c->gap_ratio, gap.ratio);
        samples_add(&c->gap_varying_ratio, gap.varying_ratio);
    }
    if (!kept_count(c->kept, gap.ratio))
        return;
    if (cycle_price(c, &c->arena, s, c->kept, &e) < 0)
        log_warn("the prices stay as they are: %s", e.text);
    samples_add(&c->repricing_s, clock_stopwatch_s() - began_s);
}

int cycle_run(struct cycle *c, struct err *e)
{
    double began_s = clock_stopwatch_s();
    struct snapshot s;
    struct lowered asked;
    struct plan plan;
    struct act_report acted;
    bool is_fallback = false;
    struct err why = { 0 };

    /* 1. and 2. What exists, and how well would it go? */
    cycle_renew(c);
    int rc = cycle_look(c, &c->arena, &s, e);

    /* 3. Who should run where? 4. And is that so? */
    if (rc == 0) {
        rc = cycle_plan(c, &c->arena, &c->solver, &s, &asked, &plan, &is_fallback, &why);
        if (is_fallback)
            log_warn("%s: %s; using the greedy plan", c->solver.name, why.text);
        if (rc < 0)
            *e = why;
    }
    samples_add(&c->decision_s, clock_stopwatch_s() - began_s);
    c->n_decisions++;
    c->n_fallbacks += is_fallback;

    /* 5. Make it happen. */
    if (rc == 0 && c->on_plan)
        c->on_plan(c->owner, &asked, &plan);
    if (rc == 0) {
        look_at_gap(c, &s, &plan);
        cycle_act(c, &s, &plan, &acted);
    }

    /* 6. and 7. What came of it, and what does that teach? Everything above dies here. */
    arena_reset(&c->arena);
    return rc < 0 ? rc : cycle_listen(c, INT_MAX, e);
}

/* ---- listening ---- */

/* The next thing to take in: once more what was undone, then what the sensor has. */
static int next_seen(struct cycle *c, struct observation *out)
{
    if (c->next_again == c->n_unsafe)
        return c->sensor.next(c->sensor.self, out);
    *out = c->unsafe[c->next_again];
    return 1;
}

/* That a replica is ready; what it served has been counted. */
static const struct served *only_ready(struct arena *a, const struct served *seen)
{
    struct served *s = ARENA_NEW(a, struct served);

    *s = (struct served){ .is_ready = true,
                          .from_s = seen->to_s,
                          .to_s = seen->to_s,
                          .n_requests = NAN,
                          .n_late = NAN,
                          .n_batches = NAN,
                          .busy_s = NAN,
                          .n_queued = NAN };
    return s;
}

/* Windows may be lost, starts and ends must not. */
static void keep_until_safe(struct cycle *c, const struct observation *seen)
{
    struct arena *a = &c->unsafe_arena;

    if (seen->kind == OBS_WINDOW || (seen->kind == OBS_SERVED && !seen->served->is_ready))
        return;
    GROW(c->unsafe, c->n_unsafe, c->cap_unsafe);
    struct observation *kept = &c->unsafe[c->n_unsafe++];
    int *gpus = ARENA_ARRAY(a, int, (size_t)seen->n_gpus);
    for (int i = 0; i < seen->n_gpus; i++)
        gpus[i] = seen->gpus[i];
    *kept = *seen;
    kept->gpus = gpus;
    kept->reason = seen->reason ? arena_strdup(a, seen->reason) : NULL;
    if (seen->kind == OBS_SERVED)
        kept->served = only_ready(a, seen->served);
    c->next_again = c->n_unsafe;
}

static void confirm(struct cycle *c, const struct observation *seen)
{
    if (c->next_again < c->n_unsafe) {
        c->next_again++;
        return;
    }
    if (c->append)
        keep_until_safe(c, seen);
    c->sensor.done(c->sensor.self);
}

void cycle_is_safe(struct cycle *c)
{
    assert(c->next_again == c->n_unsafe);
    c->n_unsafe = c->next_again = 0;
    arena_reset(&c->unsafe_arena);
}

void cycle_is_undone(struct cycle *c)
{
    services_undone(c);
    c->next_again = 0;
}

int cycle_append(struct cycle *c, const struct event *ev, struct err *e)
{
    return c->append ? c->append(c->owner, ev, e) : ledger_append(c->ledger, ev, 1, e);
}

static int journal(struct cycle *c, const struct event *ev, struct err *e)
{
    int rc = cycle_append(c, ev, e);

    if (rc != -EINVAL)
        return rc;
    log_warn("%s; left out", e->text);    // asking again would change nothing
    return 0;
}

/* What was measured, and how well it had been foreseen. */
static int learn_from(struct cycle *c, const struct finding *f, struct err *e)
{
    const struct refiner *r = &c->refiner;
    long n = r->n_measurements, n_covered = r->n_covered;
    double sum = r->sum_abs_error;
    int rc = f->has_measurement ? refine_take(&c->refiner, &f->measurement, e) : 0;
    bool is_foreseen = r->n_measurements > n;

    if (rc == 0 && f->has_profile)
        rc = catalog_take_profile(c->catalog, f->measurement.key.workload, &f->profile, e);
    if (rc == 0 && c->on_finding)
        c->on_finding(c->owner, f, is_foreseen ? r->sum_abs_error - sum : (double)NAN,
                      r->n_covered > n_covered);
    return rc;
}

int cycle_listen(struct cycle *c, int n_most, struct err *e)
{
    struct observation seen;
    struct finding found;
    int n = 0, rc = 0;

    while (rc == 0 && n < n_most && next_seen(c, &seen)) {
        monitor_read(&seen, &c->ledger->state, &found);
        if (found.has_event)
            rc = journal(c, &found.event, e);
        if (rc < 0)
            break;    // the sensor keeps it for the next time
        if (found.has_served)
            found.has_measurement = services_hear(c, seen.job, found.served, &found.measurement);
        confirm(c, &seen);
        rc = learn_from(c, &found, e);
        n++;
    }
    return rc < 0 ? rc : n;
}

#include "cycle/cycle.h"

#include <math.h>

#include "act/act.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/ledger.h"
#include "catalog/snapshot.h"
#include "monitor/monitor.h"
#include "nn/gauss.h"
#include "optimize/plan.h"
#include "refine/model.h"
#include "refine/trainer.h"

void cycle_init(struct cycle *c)
{
    nn_init();
    arena_init(&c->arena);
    samples_init(&c->decision_s);
    estimator_init(&c->estimator, c->catalog, c->confidence_z);
    refiner_init(&c->refiner, c->catalog, &c->estimator);
    c->n_decisions = c->n_fallbacks = c->n_moves = 0;
}

void cycle_release(struct cycle *c)
{
    trainer_destroy(c->trainer);    // first: its worker may be asking the model
    refiner_release(&c->refiner);
    estimator_release(&c->estimator);
    model_destroy(c->trained);
    samples_release(&c->decision_s);
    free(c->why);
    free(c->is_parked);
    arena_release(&c->arena);
}

/* ---- learning anew ---- */

void cycle_use(struct cycle *c, const struct model *m)
{
    c->model = m;
    estimate_use(&c->estimator, m ? m->p1 : NULL);
    refine_use(&c->refiner, m ? m->p2 : NULL);
}

void cycle_learn(struct cycle *c, const struct trainer_options *o, double settle_s)
{
    trainer_destroy(c->trainer);
    c->trainer = trainer_create(o, c->model ? c->model->n_measurements : 0);
    c->settle_s = settle_s;
}

static void tell_duel(const struct duel *d, double now_s)
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
    struct model *loser = m->duel.is_won ? c->trained : m;
    const char *name = m->duel.is_won ? MODEL_CHAMPION : MODEL_CHALLENGER;
    struct err e = { 0 };

    tell_duel(&m->duel, now_s);
    if (s && model_keep(m, s, name, now_s, &e) < 0)
        log_warn("the new model is not kept, a restart will lose it: %s", e.text);
    if (m->duel.is_won) {
        cycle_use(c, m);
        c->trained = m;
        c->n_models++;
    }
    model_destroy(loser);    // nobody asks it any more
}

static void learn(struct cycle *c)
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

/* Estimates of all workloads, newcomers included: what the others have learned is carried
 * over to the cells beside them.
 */
static int estimate_all(struct cycle *c, struct err *e)
{
    estimate_meet(&c->estimator);
    int n = refine_settle(&c->refiner, e);
    estimate_refresh(&c->estimator);
    return n < 0 ? n : 0;
}

/* A plan from the solver, or the greedy one, which always exists. Whoever made it, it must
 * be feasible before it touches a machine.
 */
static int plan_of(struct cycle *c, const struct snapshot *s, struct plan *out, struct err *e)
{
    enum verdict verdict = VERDICT_NONE;
    int rc =
        c->solver.solve(&c->solver, &c->arena, s, &c->estimator, &c->options, out, &verdict, e);

    if (rc == 0 && verdict != VERDICT_NONE)
        rc = plan_check(&c->arena, out, s, &c->estimator, &c->options, e);
    if (rc == 0 && verdict != VERDICT_NONE)
        return 0;
    log_warn("%s: %s; using the greedy plan", c->solver.name, rc < 0 ? e->text : "no plan");
    c->n_fallbacks++;
    solver_greedy.solve(&solver_greedy, &c->arena, s, &c->estimator, &c->options, out, &verdict, e);
    return plan_check(&c->arena, out, s, &c->estimator, &c->options, e);
}

/* Nothing that happens to other jobs will let it run. */
static bool is_hopeless(enum wait_reason why)
{
    return why == WAIT_MEMORY || why == WAIT_TYPE || why == WAIT_GANG;
}

/* Jobs that cannot run here step aside, so that those behind them are looked at; they get
 * another chance when nodes come or go, when a description is filled in, and now and then,
 * since estimates of what fits may have changed.
 */
#define PARKED_SWEEPS 256

static void unpark(struct cycle *c)
{
    uint64_t now =
        c->ledger->state.node_version + c->catalog->descriptions + c->n_sweeps / PARKED_SWEEPS;

    if (c->wants_more)    // in the middle of a sweep, which must come to its end
        return;
    for (int i = 0; i < c->n_why && now != c->parked_for; i++)
        c->is_parked[i] = false;
    c->parked_for = now;
}

static void note_reasons(struct cycle *c, const struct snapshot *s, const struct plan *p)
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

bool cycle_wants_more(const struct cycle *c)
{
    return c->wants_more;
}

enum wait_reason cycle_why(const struct cycle *c, int job)
{
    return job < c->n_why ? (enum wait_reason)c->why[job] : WAIT_NOT;
}

int cycle_run(struct cycle *c, struct err *e)
{
    struct snapshot s;
    struct plan plan;
    struct act_report acted = { 0 };
    double began_s = clock_stopwatch_s();

    learn(c);

    /* 1. What exists right now? */
    unpark(c);
    snapshot_take(&c->arena, &c->ledger->state, c->catalog, clock_now_s(&c->clock), c->theta,
                  c->is_parked, c->n_why, &s);

    /* 2. How well would each job run on each type, alone and beside each neighbour? */
    int rc = estimate_all(c, e);

    /* 3. Who should run where? 4. And is that so? */
    if (rc == 0)
        rc = plan_of(c, &s, &plan, e);
    samples_add(&c->decision_s, clock_stopwatch_s() - began_s);
    c->n_decisions++;

    /* 5. Make it happen. */
    if (rc == 0) {
        note_reasons(c, &s, &plan);
        act_commit(&c->executor, &s, &plan, &acted);
    }
    c->n_moves += acted.n_moved;
    log_debug("t %.0f s: %d placed, %d waiting, %d short; started %d, moved %d, stopped %d, "
              "refused %d",
              s.now_s, rc == 0 ? plan.n_placed : 0, rc == 0 ? plan.n_waiting : 0,
              rc == 0 ? plan.n_short : 0, acted.n_started, acted.n_moved, acted.n_stopped,
              acted.n_refused);

    /* 6. and 7. What came of it, and what does that teach? Everything above dies here. */
    arena_reset(&c->arena);
    return rc < 0 ? rc : cycle_listen(c, e);
}

int cycle_listen(struct cycle *c, struct err *e)
{
    struct observation seen;
    struct finding found;
    int n = 0, rc = 0;

    while (rc == 0 && c->sensor.next(c->sensor.self, &seen)) {
        monitor_read(&seen, &c->ledger->state, &found);
        if (found.has_event)
            rc = ledger_append(c->ledger, &found.event, 1, e);
        if (rc < 0)
            break;    // the sensor keeps it for the next time
        c->sensor.done(c->sensor.self);
        if (found.has_measurement)
            rc = refine_take(&c->refiner, &found.measurement, e);
        n++;
    }
    return rc < 0 ? rc : n;
}

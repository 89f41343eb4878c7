/* decisions.c - when to decide, and what becomes of it. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/act.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/grow.h"
#include "daemon/service/decide.h"
#include "daemon/service/record.h"
#include "daemon/service/inner.h"
#include "monitor/watch.h"
#include "optimize/explain/explain.h"
#include "optimize/model/options.h"
#include "optimize/prices/kept.h"

/* Bytes of explanations recorded per decision; who is left out has its turn with the next ones. A
 * box starts a handful of jobs at a time, and one takes 3 kB, or 30 where there are many kinds of
 * neighbours; 2 MB are written in some 20 ms (`gogh bench serve --rows memory`).
 */
#define EXPLAIN_BYTES (2u << 20)

/* Orders that were refused are given again after this long, unless there is news before. */
#define REFUSED_S 10

/* Without any news, think again after this long: time alone changes what deadlines need. */
#define THINK_AGAIN_S 60

/* Prices of 10,000 GPUs take a second or two. */
#define PRICING_S 60

/* The engine places, and we look on: our own plans are made, told and not acted on. */
static bool only_watches(const struct service *s)
{
    return s->cycle.executor.only_watches;
}

/* ---- in the child: why ---- */

static bool is_placed_as_before(const struct snapshot_job *j, const struct plan_job *pj)
{
    return j->is_running && plan_job_stays(pj, j) && j->limit_w == pj->limit_w;
}

static bool is_worth_telling(const struct service *s, const struct decision *d, int j)
{
    const struct snapshot_job *seen = &d->snapshot.jobs[j];
    const struct plan_job *pj = &d->plan.jobs[j];

    if (executor_job_is_busy(&s->cycle.executor, seen->id))
        return false;    // an earlier plan is being carried out for it, and this one will not be
    if (pj->n_gpus)
        return !is_placed_as_before(seen, pj);
    return seen->is_running || seen->id >= s->inner->n_explained ||
           s->inner->explained[seen->id] != pj->reason + 1;
}

/* In shadow mode: what our own plan would draw on the same snapshot. */
static double our_watts(const struct service *s, const struct decision *d)
{
    struct arena a;
    struct lowered asked;
    struct plan ours;
    bool is_fallback;
    struct err e = { 0 };

    arena_init(&a);
    int rc =
        cycle_plan(&s->cycle, &a, &s->cycle.solver, &d->snapshot, &asked, &ours, &is_fallback, &e);
    double watts = rc == 0 ? ours.watts : (double)NAN;
    arena_release(&a);
    return watts;
}

/* How explanations come back: as text, each with this in front. */
struct explained {
    int job;
    int reason;    // why it waits; WAIT_NOT: it does not
    size_t len;    // with its NUL
};

static void explain_one(const struct decision *d, struct arena *a, int j)
{
    struct explained head = { .job = d->snapshot.jobs[j].id,
                              .reason = (int)d->plan.jobs[j].reason };
    struct explanation x;

    explain_job(a, &d->asked, &d->plan, j, &x);
    json_t *one = explain_json(&x, &d->asked, &d->plan);
    char *body = json_dumps(one, JSON_COMPACT | JSON_REAL_PRECISION(15));
    if (body) {
        head.len = strlen(body) + 1;
        buf_append(d->raw, &head, sizeof head);
        buf_append(d->raw, body, head.len);
    }
    free(body);
    json_decref(one);
}

/* First of those that get or lose a place, then of those that wait. */
static json_t *tell_why(void *self, struct service *s, const struct decision *d)
{
    const int n = d->snapshot.n_jobs;
    struct arena a;

    (void)self;
    arena_init(&a);
    for (int i = 0; i < 2 * n && d->raw->len < EXPLAIN_BYTES; i++) {
        const int j = i % n;
        const bool waits = !d->snapshot.jobs[j].is_running && !d->plan.jobs[j].n_gpus;

        if (waits != (i >= n) || !is_worth_telling(s, d, j))
            continue;
        explain_one(d, &a, j);
        arena_reset(&a);
    }
    arena_release(&a);
    if (!s->acting_policy && !only_watches(s))
        return NULL;
    return json_pack("{s:f}", "our_w", only_watches(s) ? d->plan.watts : our_watts(s, d));
}

/* ---- in another child: prices ---- */

static json_t *find_prices(void *self, struct service *s, struct buf *raw, struct err *e)
{
    struct kept_prices *found = kept_create();
    struct arena a;

    (void)self;
    arena_init(&a);
    int rc = cycle_price(&s->cycle, &a, s->inner->priced, found, e);
    if (rc == 0)
        kept_write(found, raw);
    arena_release(&a);
    kept_destroy(found);
    return rc < 0 ? NULL : json_null();
}

/* ---- in the parent ---- */

static void on_priced(void *self, json_t *result, const struct buf *raw, const struct err *failed)
{
    struct service *s = self;

    s->inner->is_pricing = false;
    if (result && kept_read(s->cycle.kept, buf_text(raw), raw->len)) {
        histogram_add(&s->metrics.repricing_s, clock_stopwatch_s() - s->inner->pricing_s);
        record_prices(s->record);
    } else if (!s->is_stopping) {
        log_warn("the prices stay as they are: %s", failed ? failed->text : "they are cut off");
    }
}

bool service_reprice(struct service *s, const struct decision *d)
{
    struct service_inner *in = s->inner;
    struct err e = { 0 };

    if (!kept_count(s->cycle.kept, plan_gap(&d->plan).ratio) || in->is_pricing)
        return false;
    in->priced = &d->snapshot;
    in->pricing_s = clock_stopwatch_s();
    in->is_pricing = decider_work(s->decider, PRICING_S, find_prices, on_priced, s, &e) == 0;
    if (!in->is_pricing)
        log_debug("prices are not found anew now: %s", e.text);
    return in->is_pricing;
}

/* Remember what was explained, so that it is not again. */
static void note_explained(struct service_inner *in, int n_jobs, const struct explained *t)
{
    if (in->explained_of != in->generation && in->n_explained)
        memset(in->explained, 0, (size_t)in->n_explained);
    in->explained_of = in->generation;
    if (in->n_explained < n_jobs) {
        RESIZE(in->explained, n_jobs);
        memset(in->explained + in->n_explained, 0, (size_t)(n_jobs - in->n_explained));
        in->n_explained = n_jobs;
    }
    in->explained[t->job] = (unsigned char)(t->reason + 1);
}

/* What was decided and why is on disk before it happens. */
static void record(struct service *s, const struct decision *d)
{
    const char *at = buf_text(d->raw), *end = at + d->raw->len;
    struct err e = { 0 };
    int rc = at < end ? service_begin(s, &e) : 0;

    while (at < end && rc == 0) {
        struct explained head;

        memcpy(&head, at, sizeof head);
        at += sizeof head;
        rc = store_put_decision(s->base.store, head.job, d->time_s, at, &e);
        note_explained(s->inner, s->base.ledger.state.n_jobs, &head);
        at += head.len;
    }
    if (rc < 0)
        service_undo(s, &e);
}

double service_watts(const struct service *s)
{
    double watts = 0;

    for (int g = 0; g < s->base.ledger.state.n_gpus; g++)
        watts += watch_gpu_w(s->watch, g);
    return watts;
}

double service_delay_w(const struct service *s)
{
    const struct state *st = &s->base.ledger.state;
    double said_w = s->cycle.options.delay_w, sum_w = 0;
    int n = 0;

    for (int g = 0; g < st->n_gpus; g++) {
        double cap_w = s->base.catalog.types[st->gpus[g].type].cap_w;
        sum_w += cap_w > 0 ? cap_w : 0;
        n += cap_w > 0;
    }
    return said_w >= 0 ? said_w : options_usual_delay_w(sum_w, n);
}

static void count(struct service *s, const struct decision *d, const struct act_report *r)
{
    struct metrics *m = &s->metrics;
    json_t *ours = json_object_get(d->said, "our_w");
    struct plan_gap gap = plan_gap(&d->plan);

    m->n_decisions++;
    m->n_fallbacks += d->is_fallback;
    m->n_starts += (uint64_t)r->n_started;
    m->n_moves += (uint64_t)r->n_moved;
    m->n_stops += (uint64_t)r->n_stopped;
    m->n_refused += (uint64_t)r->n_refused;
    histogram_add(&m->decision_s, d->seconds);
    m->last_s = d->seconds;
    if (!isnan(gap.watts)) {
        m->n_certified++;
        m->gap = gap;
    }
    s->last_decision_s = d->time_s;
    if (json_is_real(ours)) {
        s->acting_w = only_watches(s) ? service_watts(s) : d->plan.watts;
        s->shadow_w = json_real_value(ours);
    }
}

/* Who has done all his steps is about to end: a stop now would make him do some of them again. */
static bool is_ending(void *self, int job)
{
    const struct service *s = self;
    const struct job_spec *spec = &s->base.ledger.state.jobs[job]->spec;
    struct watch_job w;

    return spec->kind == JOB_TRAINING && !spec->is_guess && watch_job(s->watch, job, &w) &&
           w.steps >= spec->steps;
}

static void carry_out(struct service *s, struct decision *d)
{
    struct act_report acted = { 0 };

    if (d->is_fallback)
        log_warn("%s: %s; using the greedy plan", s->cycle.solver.name, d->why);
    record(s, d);
    service_commit(s);
    if (s->broken)
        return;
    record_plan(s->record, d, !only_watches(s), service_reprice(s, d));
    if (!only_watches(s))
        cycle_act(&s->cycle, &d->snapshot, &d->plan, &acted);
    arena_reset(&s->cycle.arena);
    count(s, d, &acted);
    if (s->cycle.wants_more)
        service_wake(s);
    else if (acted.n_refused)
        loop_timer_set(&s->inner->decide, REFUSED_S);
}

static void on_decided(void *self, struct decision *d, const struct err *failed)
{
    struct service *s = self;
    struct service_inner *in = s->inner;

    in->is_deciding = false;
    if (s->is_stopping)
        return;
    if (!d) {
        log_error("no decision: %s; %s", failed->text,
                  in->use_greedy ? "trying again" : "the greedy policy stands in");
        in->use_greedy = true;
        record_cut(s->record, failed->text);
        s->metrics.n_solver_deaths++;
        service_wake(s);
        return;
    }
    in->use_greedy = false;
    if (in->asked_of == in->generation && !s->broken)
        carry_out(s, d);
    else
        service_wake(s);    // the state was made anew meanwhile: the plan is of another one
    if (in->wants_decision)
        service_wake(s);
}

static void on_decide(void *self)
{
    struct service *s = self;
    struct service_inner *in = s->inner;
    struct err e = { 0 };

    loop_timer_set(&in->decide, THINK_AGAIN_S);
    if (s->is_stopping || in->is_deciding || s->broken)
        return;           // its end, or the store's recovery, wakes us
    service_commit(s);    // a new model is kept in a transaction of its own
    cycle_renew(&s->cycle);
    in->wants_decision = false;
    in->decided_s = clock_stopwatch_s();
    in->asked_of = in->generation;
    in->is_deciding = true;
    const char *policy = in->use_greedy ? "greedy" : s->acting_policy;
    int rc = decider_ask(s->decider, policy, tell_why, on_decided, s, &e);
    if (rc < 0) {
        in->is_deciding = false;
        loop_timer_set(&in->decide, 1);
        log_line(rc == -EAGAIN ? LOG_DEBUG : LOG_WARN, "no decision now: %s", e.text);
    }
}

void service_wake(struct service *s)
{
    struct service_inner *in = s->inner;

    in->wants_decision = true;
    if (!s->decider || in->is_deciding)
        return;
    double at_s = in->decided_s + s->config.decide_s;
    if (!(in->decide.due_s <= fmax(at_s, clock_stopwatch_s())))
        loop_timer_set(&in->decide, at_s - clock_stopwatch_s());
}

void service_decide_open(struct service *s)
{
    s->inner->decided_s = -(double)INFINITY;
    loop_timer_init(&s->inner->decide, s->loop, "decision", on_decide, s);
    s->cycle.is_ending = is_ending;
}

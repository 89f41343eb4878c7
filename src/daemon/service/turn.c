/* turn.c - a turn of the loop as a transaction: what is written, heard and answered in it.
 *
 *     handlers, decisions --> service_append --> (open) -> turn's end --> commit --> answers leave,
 *     sensor --> cycle_listen -----'                                        |        orders go out
 *                                                                           '--> undone: 503
 *
 * Whatever must not happen unless the turn is on disk waits in service_inner until turn_is_safe.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/service/feed.h"
#include "daemon/http/http.h"
#include "daemon/service/record.h"
#include "daemon/service/inner.h"
#include "daemon/service/upkeep.h"
#include "daemon/submit/submit.h"
#include "estimate/serving.h"
#include "monitor/energy.h"
#include "monitor/monitor.h"
#include "monitor/watch.h"

/* Observations taken in per turn, so that a flood of them does not hold the loop: an event costs 6
 * to 15 us to journal (catalog/ledger), a measurement more.
 */
#define LISTEN_MOST 512

/* A store that failed is tried again after this long. */
#define RETRY_S 1.0

/* ---- opening, committing, undoing ---- */

int service_begin(struct service *s, struct err *e)
{
    int rc = s->is_turn_open ? 0 : ledger_begin(&s->base.ledger, e);

    if (rc == 0 && !s->is_turn_open) {
        s->is_turn_open = true;
        if (s->http)
            http_hold(s->http);
    }
    return rc;
}

void service_undo(struct service *s, const struct err *e)
{
    struct service_inner *in = s->inner;

    if (!s->broken)
        log_error("the store cannot be written: %s; submissions are refused until it can", e->text);
    ledger_undo(&s->base.ledger);
    in->broken = *e;
    s->broken = &in->broken;
    in->generation++;
    in->n_done = in->n_changes = 0;
    s->is_turn_open = false;
    s->metrics.n_commit_failures++;
    cycle_is_undone(&s->cycle);
    executor_committed(&s->cycle.executor, false);
    record_undo(s->record);
    in->has_news = true;
    if (s->http)
        http_flush(s->http, e);
    loop_timer_set(&in->retry, RETRY_S);
}

/* The engine hears of what happened to jobs, in that order. */
static void tell_engine(struct service *s)
{
    const struct executor *x = &s->cycle.executor;
    struct service_inner *in = s->inner;
    struct err e = { 0 };

    for (int i = 0; i < in->n_changes; i++) {
        const struct placement p = { .job = in->changes[i].job };

        if (in->changes[i].change != JOB_IS_CANCELLED)
            executor_job_is(x, p.job, in->changes[i].change);
        else if (executor_give(x, ORDER_CANCEL, &p, &e) < 0)
            log_warn("job %s: %s", s->base.ledger.state.jobs[p.job]->spec.name, e.text);
    }
    in->n_changes = 0;
}

static void book_steps(struct service *s)
{
    struct service_inner *in = s->inner;

    for (int i = 0; i < in->n_done; i++)
        energy_steps(s->energy, in->done[i].job, in->done[i].gpu_type, in->done[i].time_s,
                     in->done[i].steps);
    in->n_done = 0;
}

static void turn_is_safe(struct service *s)
{
    if (s->broken) {
        log_info("the store can be written again");
        service_wake(s);
    }
    s->broken = NULL;
    s->is_turn_open = false;
    s->metrics.n_commits++;
    cycle_is_safe(&s->cycle);
    record_commit(s->record);
    executor_committed(&s->cycle.executor, true);
    tell_engine(s);
    book_steps(s);
    upkeep_is_safe(s->inner->upkeep);
    if (s->http)
        http_flush(s->http, NULL);
    if (s->feed)
        feed_committed(s->feed, s->base.ledger.last_seq);
}

void service_commit(struct service *s)
{
    struct err e = { 0 };
    double began_s = clock_stopwatch_s();

    if (!s->is_turn_open)
        return;
    int rc = ledger_commit(&s->base.ledger, &e);
    histogram_add(&s->metrics.commit_s, clock_stopwatch_s() - began_s);
    if (rc < 0)
        service_undo(s, &e);
    else
        turn_is_safe(s);
}

/* The state's refusal concerns whoever asked; any other failure is the store's, has undone the
 * whole turn, and looks the same to everybody.
 */
static int turn_result(struct service *s, int rc, struct err *e)
{
    if (rc == 0 || rc == -EINVAL || rc == -EOVERFLOW)    // the state's or the catalog's refusal
        return rc;
    if (e->code != ENOSPC && e->code != EROFS)
        e->code = EIO;
    service_undo(s, e);
    return -e->code;
}

/* ---- what may be written ---- */

/* What a job did since it was last heard of; booked when that is safe. */
static void note_steps(struct service *s, const struct event *ev)
{
    const struct state *st = &s->base.ledger.state;
    struct service_inner *in = s->inner;

    if (!state_expects(st, ev->kind, ev->job) || ev->kind == EVENT_JOB_STARTED)
        return;
    const struct job *j = st->jobs[ev->job];
    double steps = ev->steps_done - j->steps_done;
    if (!(steps > 0))
        return;
    GROW(in->done, in->n_done, in->cap_done);
    in->done[in->n_done++] =
        (struct done_steps){ .job = ev->job,
                             .gpu_type = j->n_held ? st->gpus[j->gpus[0]].type : -1,
                             .time_s = ev->time_s,
                             .steps = steps };
}

/* One line for whoever reads the log, of everything that happens to jobs and nodes. */
static void tell_log(const struct service *s, const struct event *ev)
{
    const struct state *st = &s->base.ledger.state;
    char where[128] = "";

    if (ev->kind == EVENT_JOB_PROGRESSED)
        return;
    if (ev->kind == EVENT_NODE_ADDED || ev->kind == EVENT_NODE_CHANGED) {
        log_info("%s: %s", event_kind_name(ev->kind), ev->node);
        return;
    }
    int job = ev->kind == EVENT_JOB_SUBMITTED ? st->n_jobs - 1 : ev->job;
    for (int i = 0; i < ev->n_gpus && ev->kind == EVENT_JOB_STARTED; i++) {
        const struct gpu *g = &st->gpus[ev->gpus[i]];
        size_t n = strlen(where);
        snprintf(where + n, sizeof where - n, " %s/%d", st->nodes[g->node].name, g->slot);
    }
    const struct job_spec *spec = &st->jobs[job]->spec;
    log_info("%s: %d '%s' of %s%s%s%s%s", event_kind_name(ev->kind), job, spec->name,
             spec->owner ? spec->owner : "nobody", where[0] ? " on" : "", where,
             ev->reason ? ": " : "", ev->reason ? ev->reason : "");
}

static void note_change(struct service *s, int job, enum job_change change)
{
    struct service_inner *in = s->inner;

    GROW(in->changes, in->n_changes, in->cap_changes);
    in->changes[in->n_changes++] = (struct engine_change){ .change = change, .job = job };
}

static bool is_kind(const struct service *s, int job, enum job_kind kind)
{
    return s->base.ledger.state.jobs[job]->spec.kind == kind;
}

/* What the engine has to hear of, once it is on disk. */
static void note_for_engine(struct service *s, const struct event *ev)
{
    if (ev->kind != EVENT_JOB_SUBMITTED && ev->kind >= EVENT_JOB_SUBMITTED &&
        is_kind(s, ev->job, JOB_SERVICE))
        return;    // it runs nowhere
    if (ev->kind == EVENT_JOB_SUBMITTED)
        note_change(s, s->base.ledger.state.n_jobs - 1, JOB_IS_NEW);
    else if (ev->kind == EVENT_JOB_HELD)
        note_change(s, ev->job, JOB_IS_HELD);
    else if (ev->kind == EVENT_JOB_RELEASED)
        note_change(s, ev->job, JOB_IS_RELEASED);
    else if (ev->kind == EVENT_JOB_CANCELLED && is_kind(s, ev->job, JOB_REPLICA))
        note_change(s, ev->job, JOB_IS_CANCELLED);
}

int service_append(struct service *s, const struct event *ev, struct err *e)
{
    int rc = service_begin(s, e);

    if (rc < 0)
        return turn_result(s, rc, e);
    note_steps(s, ev);
    rc = ledger_add(&s->base.ledger, ev, e);
    if (rc == 0) {
        record_event(s->record, ev);
        tell_log(s, ev);
        note_for_engine(s, ev);
    }
    if (rc == 0 && ev->kind != EVENT_JOB_PROGRESSED)
        service_wake(s);
    return turn_result(s, rc, e);
}

int service_add_workload(struct service *s, const struct workload *w, int *index, struct err *e)
{
    int rc = service_begin(s, e);

    if (rc == 0)
        rc = catalog_add_workload(&s->base.catalog, w, index, e);
    if (rc == 0) {
        record_workload(s->record, w);
        service_wake(s);
    }
    return turn_result(s, rc, e);
}

/* Batches of a server at which its steps will be measured. */
static int meet_server(struct service *s, int workload, struct err *e)
{
    int n = s->base.catalog.n_workloads, rc = service_begin(s, e);

    if (rc == 0)
        rc = serving_meet(&s->base.catalog, workload, e);
    for (; n < s->base.catalog.n_workloads; n++)
        record_workload(s->record, &s->base.catalog.workloads[n]);
    return turn_result(s, rc, e);
}

int service_install(struct service *s, const struct cluster *cl, struct err *e)
{
    service_commit(s);
    const int64_t before = s->base.ledger.last_seq;
    if (s->broken)
        return err_set(e, s->broken->code, "%s", s->broken->text);
    int rc = cluster_install(cl, &s->base.catalog, &s->base.ledger, clock_now_s(&s->clock), e);
    if (rc == 0)
        record_installed(s->record, cl, before);
    service_wake(s);
    return rc;
}

int service_submit(struct service *s, struct submit *want, int *job, struct err *e)
{
    int rc = 0;

    if (want->is_new_workload)
        rc = service_add_workload(s, &want->workload, &want->spec.workload, e);
    if (rc >= 0 && want->spec.kind == JOB_SERVICE)
        rc = meet_server(s, want->spec.workload, e);
    if (rc < 0)
        return rc;
    struct event ev = { .kind = EVENT_JOB_SUBMITTED,
                        .time_s = want->spec.submit_s,
                        .spec = &want->spec };
    rc = service_append(s, &ev, e);
    if (rc < 0)
        return rc;
    *job = s->base.ledger.state.n_jobs - 1;
    if (!want->is_held)
        return 0;
    ev = (struct event){ .kind = EVENT_JOB_HELD, .time_s = want->spec.submit_s, .job = *job };
    return service_append(s, &ev, e);
}

int service_measure(struct service *s, const struct measurement *m, struct err *e)
{
    int rc = service_begin(s, e);

    if (rc == 0)
        rc = refine_take(&s->cycle.refiner, m, e);
    if (rc == 0)
        record_measure(s->record, m);
    if (rc == 0)
        service_wake(s);
    return turn_result(s, rc, e);
}

/* The order goes out when the event is on disk. */
int service_cancel(struct service *s, int job, struct err *e)
{
    struct event ev = { .kind = EVENT_JOB_CANCELLED,
                        .time_s = clock_now_s(&s->clock),
                        .job = job,
                        .steps_done = s->base.ledger.state.jobs[job]->steps_done };
    int rc = service_append(s, &ev, e);

    if (rc == 0 && !s->base.ledger.state.jobs[job]->spec.terms)
        note_change(s, job, JOB_IS_CANCELLED);
    return rc;
}

/* ---- listening ---- */

static int append_for_cycle(void *self, const struct event *ev, struct err *e)
{
    return service_append(self, ev, e);
}

static void on_finding(void *self, const struct finding *f, double abs_error, bool is_covered)
{
    struct service *s = self;

    if (f->has_measurement)
        record_measure(s->record, &f->measurement);
    if (f->has_profile)
        record_profile(s->record, f->measurement.key.workload, &f->profile, f->event.time_s);
    if (f->has_served && !f->served->is_false)
        energy_served(s->energy, f->event.job, f->event.time_s, f->served->n_requests,
                      f->served->n_late);
    if (isnan(abs_error))
        return;
    s->metrics.n_measurements++;
    s->metrics.sum_abs_error += abs_error;
    s->metrics.n_covered += is_covered;
    energy_surprise(s->energy, f->event.job, f->measurement.key.gpu_type, f->event.time_s,
                    abs_error, is_covered);
    service_wake(s);
}

void service_on_news(void *self)
{
    struct service *s = self;

    s->inner->has_news = true;
    if (!watch_only_serves(s->watch))
        service_wake(s);    // an order may have been carried out that a decision waits for
}

/* A disk that is full still takes a transaction without content: so something is written. */
static void on_retry(void *self)
{
    struct service *s = self;
    struct err e = { 0 };
    int rc = service_begin(s, &e);

    if (rc == 0)
        rc = store_mark_applied(s->base.store, s->base.ledger.last_seq, &e);
    if (rc < 0)
        service_undo(s, &e);    // sets this timer again; otherwise the turn's end commits
    s->inner->has_news = true;
}

void service_turn_open(struct service *s)
{
    loop_timer_init(&s->inner->retry, s->loop, "retry of the store", on_retry, s);
    s->cycle.append = append_for_cycle;
    s->cycle.on_finding = on_finding;
    s->cycle.owner = s;
}

/* What users did to their jobs by the engine's own commands. */
static void listen_to_engine(struct service *s)
{
    static const enum event_kind kinds[] = { [JOB_IS_HELD] = EVENT_JOB_HELD,
                                             [JOB_IS_RELEASED] = EVENT_JOB_RELEASED,
                                             [JOB_IS_CANCELLED] = EVENT_JOB_CANCELLED };
    const struct state *st = &s->base.ledger.state;
    struct engine_change c;
    struct err e = { 0 };

    while (!s->broken && executor_next_change(&s->cycle.executor, &c)) {
        if (!state_expects(st, kinds[c.change], c.job))
            continue;    // GOGH knew, or the job has ended meanwhile
        const struct event ev = { .kind = kinds[c.change],
                                  .time_s = c.time_s,
                                  .job = c.job,
                                  .steps_done = st->jobs[c.job]->steps_done,
                                  .reason = c.reason };
        if (service_append(s, &ev, &e) < 0)
            log_warn("job %d: %s", c.job, e.text);
    }
}

static void listen_to_sensor(struct service *s)
{
    struct err e = { 0 };

    if (!s->inner->has_news || (s->broken && !s->is_turn_open))
        return;
    s->inner->has_news = false;
    int n = cycle_listen(&s->cycle, LISTEN_MOST, &e);
    if (n == LISTEN_MOST)
        s->inner->has_news = true;
    if (n < 0 && s->is_turn_open)
        service_undo(s, &e);
}

static void nothing(void *self)
{
    (void)self;
}

void service_turn_end(void *self)
{
    struct service *s = self;

    listen_to_engine(s);
    listen_to_sensor(s);
    service_commit(s);
    if (s->inner->has_news && !s->broken)
        loop_post(s->loop, "more news", nothing, s);    // another turn at once
}

/* What the state of a managed job asks for: to be submitted, held, pinned, put back, cancelled.
 * Asked again before Slurm has answered, nothing more is asked.
 */
#include "act/slurm/inner.h"

#include <math.h>
#include <signal.h>

#include "base/log.h"

#define SHUT_S 60.0      // GPUs of a node that does not wake are left alone
#define NOTE_S 10.0      // jobs get a note of their own when they wait for that long
#define NOTED_MAX 4      // such notes after a view
#define WAIT_S 60.0      // whoever is in the way of a start may take that long beyond his grace
#define REQUEUE_S 1.5    // Slurm 22.05 fails a job that is released 1.2 s after its requeue

/* ---- leaving ---- */

/* Save first: then it exits by itself, or is put back when its grace is over. The note tells a
 * daemon after us that an exit of this run is no end.
 */
static void ask_to_save(struct slurm *x, struct managed *m)
{
    const double grace_s = isnan(m->grace_s) ? x->setup.grace_s : m->grace_s;

    if (!ask_may_note(x))
        return;
    ask_note(x, m, m->last.run);
    ask_batch(x, m, BATCH_SIGNAL);
    m->asked_run = m->last.run;
    m->due_s = slurm_now_s(x) + grace_s;
}

/* It moves to a node that sleeps, and works on until that is awake; true: not yet. One that does
 * not wake is not moved to.
 */
static bool works_on(struct slurm *x, struct managed *m)
{
    const double now_s = slurm_now_s(x);

    if (m->state != MANAGED_MOVING || m->last.state != SLURM_RUNNING || managed_is_asked(m) ||
        nodes_are_awake(x, &m->next))
        return false;
    if (isinf(m->due_s))
        m->due_s = now_s + x->setup.wake_s + x->setup.patience_s;
    if (now_s > m->due_s) {
        log_warn("job %s: the node that it was to move to did not wake; it stays",
                 managed_name(x, m));
        nodes_shut(x, &m->next, SHUT_S);
        gpu_set_clear(&m->next);
        managed_update(x, m, ON_STAYS);
    }
    return true;
}

/* A requeue changes the submit_s that a user's job is known by: it has a token before. */
static void put_back(struct slurm *x, struct managed *m)
{
    if (m->has_token || m->is_noteless || !managed_is_users(x, m))
        ask_batch(x, m, BATCH_REQUEUE);
    else if (ask_may_note(x))
        ask_note(x, m, managed_is_asked(m) ? m->last.run : -1);
}

static void ask_leave(struct slurm *x, struct managed *m)
{
    const bool is_for_good = m->state == MANAGED_CANCELLING || m->state == MANAGED_RETIRING;

    if (!ask_may(x, m) || works_on(x, m))
        return;
    if (is_for_good) {
        if (!slurm_has_ended(m->last.state))
            ask_batch(x, m, BATCH_CANCEL);
    } else if (m->last.state == SLURM_PENDING) {
        if (m->last.held == HOLD_NONE)
            ask_batch(x, m, BATCH_HOLD);
    } else if (m->last.state == SLURM_RUNNING && m->checkpoint_signal == SIGUSR1 &&
               !managed_is_asked(m)) {
        ask_to_save(x, m);
    } else if (m->last.state == SLURM_RUNNING && managed_is_asked(m) && slurm_now_s(x) < m->due_s) {
        return;
    } else if (m->last.state == SLURM_STARTING || m->last.state == SLURM_RUNNING ||
               (slurm_has_ended(m->last.state) && m->last.state != SLURM_CANCELLED &&
                managed_is_asked(m))) {
        put_back(x, m);
    }
}

/* ---- starting ---- */

/* Does anybody hold one of these GPUs who is about to let it go, or may yet come to it? */
static bool must_wait(const struct slurm *x, const struct managed *m)
{
    for (int i = 0; i < x->n_active; i++) {
        const struct managed *o = x->active[i];

        if (o == m || !managed_is_going(o))
            continue;
        for (int g = 0; g < m->next.n_gpus; g++)
            if (gpu_set_has(&o->at, m->next.gpus[g]) &&
                !(o->state == MANAGED_MOVING && gpu_set_has(&o->next, m->next.gpus[g])))
                return true;
    }
    return false;
}

/* Others do not leave, or Slurm does not settle: let the next plan see to it. */
static void wait_on(struct slurm *x, struct managed *m)
{
    const double now_s = slurm_now_s(x);

    m->due_s = (double)INFINITY;
    if (isnan(m->wait_s))
        m->wait_s = now_s;
    if (now_s > m->wait_s + x->setup.patience_s + x->setup.grace_s + WAIT_S)
        managed_give_up(x, m, "who was to make room for it does not leave");
}

static void ask_start(struct slurm *x, struct managed *m)
{
    const double now_s = slurm_now_s(x);

    if (!managed_may_run(x, m)) {    // held or cancelled since
        gpu_set_clear(&m->next);
        x->n_busy = -1;
    } else if (m->has_old || must_wait(x, m) || nodes_are_settling(x)) {
        wait_on(x, m);
    } else if (m->last.run > 0 && now_s < m->pending_s + REQUEUE_S) {
        look_soon(x);
    } else if (nodes_are_awake(x, &m->next)) {
        ask_pin(x, m);
    } else if (isinf(m->due_s)) {
        m->due_s = now_s + x->setup.wake_s + x->setup.patience_s;
    } else if (now_s > m->due_s) {
        nodes_shut(x, &m->next, SHUT_S);
        managed_give_up(x, m, "its node did not wake");
        m->due_s = (double)INFINITY;
    }
}

/* Nobody but us may let it run. */
static void ask_hold(struct slurm *x, struct managed *m)
{
    if (m->last.held == HOLD_NONE || (m->last.held == HOLD_USER && m->hold < USER_HOLDS))
        ask_batch(x, m, BATCH_HOLD);
}

/* Users' jobs that run get their token at once, since somebody may put them back. Those that wait
 * for long, too: ours have it in their comment, which others may change. The first pin brings it
 * otherwise.
 */
static bool needs_note(const struct slurm *x, const struct managed *m)
{
    if (m->has_token || m->is_noteless || m->next.n_gpus > 0 || !isnan(m->doubt_s) ||
        managed_is_over(x, m) || !ask_may(x, m))
        return false;
    if (m->state == MANAGED_RUNNING)
        return managed_is_users(x, m) && m->last.state == SLURM_RUNNING;
    return m->state == MANAGED_HELD && slurm_now_s(x) > m->pending_s + NOTE_S;
}

static void ask_notes(struct slurm *x, enum managed_state phase)
{
    for (int i = 0; i < x->n_active && ask_may_note(x) && x->n_noted < NOTED_MAX; i++)
        if (x->active[i]->state == phase && needs_note(x, x->active[i]))
            ask_note(x, x->active[i], -1);
}

/* ---- all ---- */

void managed_action(struct slurm *x, struct managed *m)
{
    if (m->state == MANAGED_ABSENT && !managed_is_over(x, m) && !m->is_in_flight)
        ask_submit(x, m);
    else if (managed_is_leaving(m))
        ask_leave(x, m);
    else if (managed_has_ended(m) && m->state != MANAGED_TAKEN && managed_is_over(x, m) &&
             m->last.state == SLURM_PENDING && m->last.held == HOLD_NONE && ask_may(x, m))
        ask_batch(x, m, BATCH_HOLD);    // see see_risen
    else if (m->state == MANAGED_HELD && m->next.n_gpus > 0 && ask_may(x, m))
        ask_start(x, m);
    if (m->state == MANAGED_HELD && ask_may(x, m))
        ask_hold(x, m);
}

/* Ask 'devices' for those whose place is not known otherwise. */
static void ask_places(struct slurm *x)
{
    for (int i = 0; i < x->n_active; i++) {
        struct managed *m = x->active[i];

        if (m->lookup == LOOKUP_ASKED && !m->is_in_flight && m->now && x->is_up)
            ask_batch(x, m, BATCH_DEVICES);
    }
}

void slurm_pass(void *self)
{
    struct slurm *x = self;

    if (!x->is_up || !link_is_up(x->link) || !x->has_view)
        return;
    x->n_noted = x->is_believing ? 0 : x->n_noted;
    if (!x->setup.only_watches) {
        for (int i = 0; i < x->n_active; i++)
            managed_action(x, x->active[i]);
        ask_refusals(x);
        ask_notes(x, MANAGED_RUNNING);
        ask_notes(x, MANAGED_HELD);
        nodes_wake(x);
        nodes_sleep(x);
    }
    ask_places(x);
    ask_flush(x);
}

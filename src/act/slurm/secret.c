/* What is next for each ward: to be submitted, held, pinned, put back, cancelled. */
#include "act/slurm/inner.h"

#include <math.h>
#include <signal.h>

#include "base/log.h"
#include "catalog/cluster/state.h"

#define SHUT_S 60.0      // GPUs of a node that does not wake are left alone
#define NOTE_S 10.0      // jobs get a note of their own when they wait for that long
#define NOTED_MAX 4      // such notes after a view
#define WAIT_S 60.0      // whoever is in the way of a start may take that long beyond his grace
#define REQUEUE_S 1.5    // Slurm 22.05 fails a job that is released 1.2 s after its requeue

/* ---- leaving ---- */

/* Save first: then it exits by itself, or is put back when its grace is over. The note tells a
 * daemon after us that an exit of this run is no end.
 */
static void ask_to_save(struct slurm *x, struct ward *w)
{
    const double grace_s = isnan(w->grace_s) ? x->setup.grace_s : w->grace_s;

    if (!ask_may_note(x))
        return;
    ask_note(x, w, w->run);
    ask_batch(x, w, BATCH_SIGNAL);
    w->asked_run = w->run;
    w->due_s = slurm_now_s(x) + grace_s;
}

/* It moves to a node that sleeps, and works on until that is awake; true: not yet. One that does
 * not wake is not moved to.
 */
static bool works_on(struct slurm *x, struct ward *w)
{
    const double now_s = slurm_now_s(x);

    if (w->leave != LEAVE_MOVE || w->state != SLURM_RUNNING || ward_is_asked(w) ||
        nodes_are_awake(x, &w->next))
        return false;
    if (isinf(w->due_s))
        w->due_s = now_s + x->setup.wake_s + x->setup.patience_s;
    if (now_s > w->due_s) {
        log_warn("job %s: the node that it was to move to did not wake; it stays", ward_name(x, w));
        nodes_shut(x, &w->next, SHUT_S);
        w->has_next = w->is_move = false;
        ward_set_phase(x, w, WARD_RUNNING);
    }
    return true;
}

/* A requeue changes the submit_s that a user's job is known by: it has a token before. */
static void put_back(struct slurm *x, struct ward *w)
{
    if (w->has_token || w->is_noteless || !ward_is_users(x, w))
        ask_batch(x, w, BATCH_REQUEUE);
    else if (ask_may_note(x))
        ask_note(x, w, ward_is_asked(w) ? w->run : -1);
}

static void ask_leave(struct slurm *x, struct ward *w)
{
    const bool is_for_good = w->leave == LEAVE_CANCEL || w->leave == LEAVE_SERVED;

    if (!ask_may(x, w) || works_on(x, w))
        return;
    if (is_for_good) {
        if (!slurm_has_ended(w->state))
            ask_batch(x, w, BATCH_CANCEL);
    } else if (w->state == SLURM_PENDING) {
        if (w->held == HOLD_NONE)
            ask_batch(x, w, BATCH_HOLD);
    } else if (w->state == SLURM_RUNNING && w->checkpoint_signal == SIGUSR1 && !ward_is_asked(w)) {
        ask_to_save(x, w);
    } else if (w->state == SLURM_RUNNING && ward_is_asked(w) && slurm_now_s(x) < w->due_s) {
        return;
    } else if (w->state == SLURM_STARTING || w->state == SLURM_RUNNING ||
               (slurm_has_ended(w->state) && w->state != SLURM_CANCELLED && ward_is_asked(w))) {
        put_back(x, w);
    }
}

/* ---- starting ---- */

/* Does anybody hold one of these GPUs who is about to let it go, or may yet come to it? */
static bool must_wait(const struct slurm *x, const struct ward *w)
{
    for (int i = 0; i < x->n_active; i++) {
        const struct ward *o = x->active[i];
        const bool is_going = o->phase == WARD_LEAVING ||
                              (o->phase == WARD_RUNNING && o->state == SLURM_ENDING) ||
                              (o->phase == WARD_HELD && !isnan(o->doubt_s) && o->pin_gres);

        if (o == w || !is_going)
            continue;
        for (int g = 0; g < w->next.n_gpus; g++)
            if (spot_has(&o->at, w->next.gpus[g]) &&
                !(o->phase == WARD_LEAVING && o->leave == LEAVE_MOVE &&
                  spot_has(&o->next, w->next.gpus[g])))
                return true;
    }
    return false;
}

/* Others do not leave, or Slurm does not settle: let the next plan see to it. */
static void wait_on(struct slurm *x, struct ward *w)
{
    const double now_s = slurm_now_s(x);

    w->due_s = (double)INFINITY;
    if (isnan(w->wait_s))
        w->wait_s = now_s;
    if (now_s > w->wait_s + x->setup.patience_s + x->setup.grace_s + WAIT_S)
        ward_give_up(x, w, "who was to make room for it does not leave");
}

static void ask_start(struct slurm *x, struct ward *w)
{
    const double now_s = slurm_now_s(x);

    if (!ward_may_run(x, w)) {    // held or cancelled since
        w->has_next = w->is_move = false;
        x->n_busy = -1;
    } else if (w->has_old || must_wait(x, w) || nodes_are_settling(x)) {
        wait_on(x, w);
    } else if (w->run > 0 && now_s < w->pending_s + REQUEUE_S) {
        look_soon(x);
    } else if (nodes_are_awake(x, &w->next)) {
        ask_pin(x, w);
    } else if (isinf(w->due_s)) {
        w->due_s = now_s + x->setup.wake_s + x->setup.patience_s;
    } else if (now_s > w->due_s) {
        nodes_shut(x, &w->next, SHUT_S);
        ward_give_up(x, w, "its node did not wake");
        w->due_s = (double)INFINITY;
    }
}

/* Nobody but us may let it run. */
static void ask_hold(struct slurm *x, struct ward *w)
{
    if (w->held == HOLD_NONE || (w->held == HOLD_USER && !w->is_user_held))
        ask_batch(x, w, BATCH_HOLD);
}

/* Users' jobs that run get their token at once, since somebody may put them back. Those that wait
 * for long, too: ours have it in their comment, which others may change. The first pin brings it
 * otherwise.
 */
static bool needs_note(const struct slurm *x, const struct ward *w)
{
    if (w->has_token || w->is_noteless || w->has_next || !isnan(w->doubt_s) || ward_is_over(x, w) ||
        !ask_may(x, w))
        return false;
    if (w->phase == WARD_RUNNING)
        return ward_is_users(x, w) && w->state == SLURM_RUNNING;
    return w->phase == WARD_HELD && slurm_now_s(x) > w->pending_s + NOTE_S;
}

static void ask_notes(struct slurm *x, enum ward_phase phase)
{
    for (int i = 0; i < x->n_active && ask_may_note(x) && x->n_noted < NOTED_MAX; i++)
        if (x->active[i]->phase == phase && needs_note(x, x->active[i]))
            ask_note(x, x->active[i], -1);
}

/* ---- all ---- */

static void ask_next(struct slurm *x, struct ward *w)
{
    if (w->phase == WARD_ABSENT && !ward_is_over(x, w) && !w->is_in_flight)
        ask_submit(x, w);
    else if (w->phase == WARD_LEAVING)
        ask_leave(x, w);
    else if (w->phase == WARD_ENDED && ward_is_over(x, w) && w->state == SLURM_PENDING &&
             w->held == HOLD_NONE && !w->is_taken && ask_may(x, w))
        ask_batch(x, w, BATCH_HOLD);    // see see_risen
    else if (w->phase == WARD_HELD && w->has_next && ask_may(x, w))
        ask_start(x, w);
    if (w->phase == WARD_HELD && ask_may(x, w))
        ask_hold(x, w);
}

/* Ask 'devices' for those whose place is not known otherwise. */
static void ask_places(struct slurm *x)
{
    for (int i = 0; i < x->n_active; i++) {
        struct ward *w = x->active[i];

        if (w->found == FOUND_ASKED && !w->is_in_flight && w->is_there && x->is_up)
            ask_batch(x, w, BATCH_DEVICES);
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
            ask_next(x, x->active[i]);
        ask_refusals(x);
        ask_notes(x, WARD_RUNNING);
        ask_notes(x, WARD_HELD);
        nodes_wake(x);
        nodes_sleep(x);
    }
    ask_places(x);
    ask_flush(x);
}

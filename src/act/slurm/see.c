/* What a view means to one ward. Only beliefs change here, and what is told; what is to be asked of
 * Slurm follows from them (slurm_ask.c).
 */
#include "act/slurm/inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/slurm_out.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define DOUBT_S 10.0    // what was not answered is carried out by then, or never
#define SETTLE_S 2.0    // a hold that is still seen so soon after a pin is an old one
#define SHUT_S 60.0     // GPUs on which Slurm does not start anything are left alone
#define LIMIT_S 10.0    // what a limit keeps from starting is taken back soon

/* ---- remembering ---- */

static void keep_out(struct ward *w, const char *out)
{
    if (!*out || (w->out && strcmp(w->out, out) == 0))
        return;
    free(w->out);
    w->out = strdup(out);
    assert(w->out);    // out of memory: stop
}

/* What it asks for: learned anew from each view, since somebody else may have set it. */
static void keep_gres(struct ward *w, const char *gres)
{
    if (w->gres && strcmp(w->gres, gres) == 0)
        return;
    free(w->gres);
    w->gres = *gres ? strdup(gres) : NULL;
    assert(w->gres || !*gres);    // out of memory: stop
}

/* What its user asked for, as the gate wrote it down: the site may want to know one day. */
static void keep_request(struct slurm *x, struct ward *w, const struct slurm_note *note)
{
    if (w->request || !*note->gres)
        return;
    w->request = strdup(note->n_nodes > 0 ? arena_printf(&x->scratch, " gres=%s nodes=%d",
                                                         note->gres, note->n_nodes)
                                          : arena_printf(&x->scratch, " gres=%s", note->gres));
    assert(w->request);    // out of memory: stop
}

static void remember(struct slurm *x, struct ward *w)
{
    const struct slurm_job *j = w->now;
    struct slurm_note note;

    slurm_note_read(&x->scratch, j->comment, j->admin, &note);
    w->has_token = strncmp(j->admin, "gogh1", 5) == 0 && *note.token && !note.is_new;
    if (note.n_failures > w->n_failures)
        w->n_failures = note.n_failures;
    if (j->state != w->state || j->run != w->run)
        w->again_s = 0;    // something came of what was asked
    w->id = j->id;
    match_number(j, w->number, sizeof w->number);
    w->run = j->run;
    w->state = j->state;
    w->held = j->held;
    w->exit_code = j->exit_code;
    w->signal = j->signal;
    w->submit_s = j->submit_s;
    w->start_s = j->start_s;
    w->end_s = j->end_s;
    w->seen_s = x->view.asked_s;
    if (isnan(w->first_s))
        w->first_s = w->seen_s;
    if (j->state == SLURM_STARTING || j->state == SLURM_RUNNING)
        w->is_run_held = j->held == HOLD_USER;
    w->absent_s = (double)NAN;
    if (j->state != SLURM_PENDING)
        w->pending_s = (double)NAN;
    else if (isnan(w->pending_s))
        w->pending_s = slurm_now_s(x);
    keep_out(w, slurm_out_path(&x->scratch, j, x->setup.state->jobs[w->job]->spec.owner));
    keep_gres(w, j->gres);
    keep_request(x, w, &note);
}

/* ---- pending ---- */

/* Who held it: whoever has Slurm's commands is heard as if he had asked GOGH. */
static void see_hold(struct slurm *x, struct ward *w, bool is_first)
{
    if (w->held == HOLD_NONE && w->is_user_held) {
        w->is_user_held = w->is_hold_told = false;
        tell_deed(x, w, DEED_RELEASED, NULL);
    }
    if (w->held == HOLD_USER && is_first && ward_is_held(x, w))
        w->is_user_held = true;
    if (!w->is_user_held)
        return;
    if (ward_is_held(x, w))
        w->is_hold_told = true;
    else if (w->is_hold_told)    // released through GOGH
        w->is_user_held = w->is_hold_told = false;
    else
        tell_deed(x, w, DEED_HELD, NULL);
}

static const char *lost_node(struct slurm *x, const struct ward *w)
{
    for (int i = 0; i < w->at.n_gpus; i++) {
        const int node = x->setup.state->gpus[w->at.gpus[i]].node, n = nodes_find(x, node);

        if (n < 0 || x->view.nodes[n].flags & SLURM_NODE_DOWN)
            return arena_printf(&x->scratch, "node %s was lost", x->setup.state->nodes[node].name);
    }
    return "it was put back into Slurm's queue";
}

/* Slurm was killed, and what it is now is from before it took our last pin. */
static void see_reborn(struct slurm *x)
{
    x->reborn_s = slurm_now_s(x);
    x->wants_nodes = true;
}

/* Slurm has forgotten that it was started. Its slurmd has not: it takes the same number for a
 * second copy, and Slurm drains a node that says so. Ours is submitted anew, a user's goes to
 * another node.
 */
static void start_anew(struct slurm *x, struct ward *w)
{
    see_reborn(x);
    w->has_next = w->is_move = false;
    w->doubt_s = (double)NAN;
    if (ward_is_users(x, w)) {
        spot_set(&w->shunned, w->at.gpus, w->at.n_gpus, 0);
        ward_set_phase(x, w, WARD_HELD);
        return;
    }
    log_warn("job %s: Slurm has forgotten that it started job %s; submitted again", ward_name(x, w),
             w->number);
    ward_renew(x, w);
    x->n_resubmits++;
}

/* It ran, and nobody of us has asked it to stop. A requeue would have been counted: where it was
 * not, Slurm has forgotten that it ran, and whoever holds it was us.
 */
static void see_fallen(struct slurm *x, struct ward *w)
{
    const bool is_forgotten = w->run <= w->told_run;

    tell_end(x, w, NOTICE_STOPPED, is_forgotten ? "Slurm has forgotten it" : lost_node(x, w));
    if (is_forgotten) {
        start_anew(x, w);
        return;
    }
    w->has_next = w->is_move = false;
    w->is_user_held = w->held == HOLD_USER || w->is_run_held;
    w->is_run_held = false;
    ward_set_phase(x, w, WARD_HELD);
    x->wants_nodes = true;
}

static bool begins_with_any(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* It waits for its node; any other reason is its own. */
static bool is_nodes_reason(const char *reason)
{
    static const char *const words[] = { "Resources", "Priority", "ReqNodeNotAvail", "Nodes",
                                         "None" };

    return !*reason || begins_with_any(reason, words, sizeof words / sizeof *words);
}

/* It waits for something that no node has, and that may take long. */
static bool is_limit(const char *reason)
{
    static const char *const words[] = { "JobArrayTaskLimit",
                                         "QOS",
                                         "Assoc",
                                         "Max",
                                         "Licenses",
                                         "BadConstraints",
                                         "PartitionTimeLimit",
                                         "PartitionNodeLimit",
                                         "Dependency",
                                         "Invalid",
                                         "AccountNotAllowed" };

    return begins_with_any(reason, words, sizeof words / sizeof *words);
}

/* Slurm has not started it in time. GPUs are left alone once; if it fails elsewhere, too, it is the
 * job.
 */
static void lose_patience(struct slurm *x, struct ward *w)
{
    const char *why = arena_printf(&x->scratch, "Slurm did not start it on %s: %s",
                                   place_nodes(x, &w->at, NULL), w->now->reason);

    log_warn("job %s: %s; taken back", ward_name(x, w), why);
    ward_say_why(w, why);
    if (nodes_are_away(x, &w->at))
        x->n_busy = -1;    // nobody is sent there
    else if (is_nodes_reason(w->now->reason) && w->n_shut++ == 0)
        nodes_shut(x, &w->at, SHUT_S);
    else
        ward_pause(x, w, why);
    x->wants_nodes = true;
    ward_leave(x, w, LEAVE_STOP);
}

/* Seen held after a pin: is Slurm another one than that which took it? */
static bool is_pin_forgotten(struct slurm *x, const struct ward *w)
{
    const char *note = place_note(x, w, &w->at, -1);
    const double pinned_s = slurm_wall_s(x) - (slurm_now_s(x) - w->pinned_s);

    if (strncmp(w->now->admin, note, strlen(note)) == 0 || !isnan(w->doubt_s))
        return w->pinned_s < x->reborn_s && !(x->boot_s < pinned_s - 1);
    return true;    // what we had written there is gone
}

/* It was pinned and released, and waits. */
static void see_wanted(struct slurm *x, struct ward *w)
{
    if (w->run > w->pin_run) {    // it ran between two views
        see_fallen(x, w);
    } else if (w->held != HOLD_NONE && is_pin_forgotten(x, w)) {
        tell_end(x, w, NOTICE_STOPPED, "Slurm has forgotten it");
        start_anew(x, w);
    } else if (w->held != HOLD_NONE && !isnan(w->doubt_s)) {    // the pin was lost
        spot_set(&w->next, w->at.gpus, w->at.n_gpus, w->at.limit_w);
        w->has_next = true;
        ward_set_phase(x, w, WARD_HELD);
    } else if (w->held != HOLD_NONE && is_limit(w->now->reason)) {    // Slurm's own doing
        ward_set_phase(x, w, WARD_HELD);
        ward_pause(x, w, arena_printf(&x->scratch, "Slurm does not start it: %s", w->now->reason));
        ward_give_up(x, w, NULL);
    } else if (w->held != HOLD_NONE && slurm_now_s(x) > w->pinned_s + SETTLE_S) {
        ward_set_phase(x, w, WARD_HELD);
        w->is_user_held = true;
        ward_give_up(x, w, "somebody holds it in Slurm");
    } else if (slurm_now_s(x) > w->due_s ||
               (nodes_are_away(x, &w->at) && slurm_now_s(x) > w->pinned_s + SETTLE_S) ||
               (is_limit(w->now->reason) && slurm_now_s(x) > w->pinned_s + LIMIT_S)) {
        lose_patience(x, w);
    }
}

/* It was told to leave, and has. */
static void see_left(struct slurm *x, struct ward *w)
{
    if (w->leave == LEAVE_CANCEL || w->leave == LEAVE_SERVED || w->held == HOLD_NONE)
        return;
    if (w->is_run_held) {    // its user's hold counts from now on
        w->is_user_held = true;
        w->is_run_held = w->has_next = w->is_move = false;
    }
    if (w->leave == LEAVE_MOVE && w->has_next)
        tell_end(x, w, NOTICE_STOPPED, JOB_MOVING);
    else
        tell_end(x, w, NOTICE_STOPPED, w->why ? w->why : "stopped as planned");
    ward_set_phase(x, w, WARD_HELD);
}

/* A late copy of ours that never ran: nobody misses it. */
static bool is_unused(const struct slurm *x, const struct ward *w)
{
    return !ward_is_users(x, w) && w->held != HOLD_NONE && w->run == 0 && !*w->now->pin;
}

/* It is over in GOGH and alive in Slurm. Only what GOGH has cancelled is cancelled: others may have
 * been given up for lost, or put back by their users. They run on, or wait held.
 */
static void see_risen(struct slurm *x, struct ward *w, bool is_doomed)
{
    if (is_doomed) {
        ward_leave(x, w, LEAVE_CANCEL);
        return;
    }
    ward_set_phase(x, w, WARD_ENDED);
    if (!w->is_grumbled)
        log_warn(
            "job %s has ended for GOGH, and Slurm has it as job %s; left alone: submit it anew, or "
            "cancel it there",
            ward_name(x, w), w->number);
    w->is_grumbled = true;
}

static void see_pending(struct slurm *x, struct ward *w, bool is_first)
{
    if (ward_is_over(x, w)) {
        see_risen(x, w, ward_is_doomed(x, w) || is_unused(x, w));
        return;
    }
    switch (w->phase) {
    case WARD_WANTED:
        see_wanted(x, w);
        break;
    case WARD_RUNNING:
        see_fallen(x, w);
        break;
    case WARD_LEAVING:
        see_left(x, w);
        break;
    default:
        if (w->phase != WARD_HELD && told_running(x, w))
            tell_end(x, w, NOTICE_STOPPED, lost_node(x, w));
        if (w->phase != WARD_HELD)
            loop_timer_set(&x->news, 0);    // it may be planned from now on
        ward_set_phase(x, w, WARD_HELD);
    }
    if (w->phase == WARD_HELD)
        see_hold(x, w, is_first);
}

/* ---- running ---- */

/* Has it got what it was to get? A listing without its gres says nothing. */
static bool has_pinned_gres(struct slurm *x, const struct ward *w)
{
    return !*w->now->gres || (w->pin_gres ? gres_is_same(w->now->gres, w->pin_gres)
                                          : place_has_gres(x, &w->at, w->now->gres));
}

/* It begins where it was sent, or elsewhere: its owner may have changed what it asks for. */
static void see_arrival(struct slurm *x, struct ward *w)
{
    if (!place_is_on(x, &w->at, w->now->nodes)) {
        log_warn("job %s: it was sent to %s and runs on %s; stopped", ward_name(x, w),
                 place_nodes(x, &w->at, NULL), w->now->nodes);
        ward_leave(x, w, LEAVE_STOP);
    } else if (!has_pinned_gres(x, w)) {
        log_warn("job %s: it was sent to %s for %s and has %s; stopped", ward_name(x, w),
                 w->now->nodes, w->pin_gres ? w->pin_gres : "other GPUs", w->now->gres);
        ward_leave(x, w, LEAVE_STOP);
    } else if (w->state == SLURM_RUNNING) {
        ward_set_phase(x, w, WARD_RUNNING);
        ward_say_why(w, NULL);
        w->pause_s = w->paused_s = w->n_shut = 0;
        tell_started(x, w);
    } else if (slurm_now_s(x) > w->due_s) {
        lose_patience(x, w);
    }
}

/* The state would have refused its start: it is not to run there. */
static bool is_refused(const struct slurm *x, const struct ward *w)
{
    return w->told_run == w->run && w->n_notices == 0 && !told_running(x, w);
}

static bool is_known_there(const struct slurm *x, const struct ward *w)
{
    const struct job *j = x->setup.state->jobs[w->job];

    return told_running(x, w) &&
           (w->n_notices > 0 ? w->told_run == w->run : spot_is(&w->at, j->gpus, j->n_held));
}

static void see_at(struct slurm *x, struct ward *w, struct spot *at)
{
    spot_move(&w->at, at);
    if (w->state == SLURM_STARTING) {
        w->pin_run = w->run;
        ward_set_phase(x, w, WARD_WANTED);
        if (!x->setup.only_watches)
            w->due_s = slurm_now_s(x) + x->setup.patience_s + x->setup.wake_s;
        return;
    }
    ward_set_phase(x, w, WARD_RUNNING);
    if (is_known_there(x, w))
        w->told_run = w->run;
    else if (!is_refused(x, w))
        tell_started(x, w);
    else
        ward_leave(x, w, LEAVE_STOP);
}

/* Nobody can say on which GPUs: where its user has let it go, he had his reasons. */
static void see_nowhere(struct slurm *x, struct ward *w)
{
    const bool stays = ward_is_users(x, w) || x->setup.only_watches;

    if (stays) {
        spot_set(&w->at, NULL, 0, 0);
        ward_set_phase(x, w, WARD_RUNNING);
    }
    if (!w->is_grumbled)
        log_warn("job %s: it runs on %s, and on which GPUs cannot be told; %s", ward_name(x, w),
                 w->now->nodes, stays ? "left alone" : "stopped");
    if (!stays)
        ward_leave(x, w, LEAVE_STOP);
    w->is_grumbled = true;
}

/* It runs without an order of ours: an old one's, whose end nobody heard of, or nobody's. */
static void see_stranger(struct slurm *x, struct ward *w)
{
    struct spot at = { 0 };

    w->has_next = w->is_move = false;
    if (place_find(x, w, &at)) {
        see_at(x, w, &at);
    } else if (w->found == FOUND_YES && w->found_run == w->run) {
        see_nowhere(x, w);
    }
}

static bool is_at_home(struct slurm *x, const struct ward *w)
{
    return w->phase == WARD_RUNNING && w->told_run == w->run && !is_refused(x, w) &&
           place_is_on(x, &w->at, w->now->nodes) && place_has_gres(x, &w->at, w->now->gres);
}

static void see_running(struct slurm *x, struct ward *w)
{
    w->doubt_s = (double)NAN;
    w->is_user_held = w->is_hold_told = false;
    if (ward_is_over(x, w)) {
        see_risen(x, w, ward_is_doomed(x, w));
        return;
    }
    if (w->phase == WARD_LEAVING)
        return;
    if (w->phase == WARD_WANTED) {
        see_arrival(x, w);
    } else if (!is_at_home(x, w)) {
        see_stranger(x, w);
    } else if (ward_has_served(x, w)) {
        ward_leave(x, w, LEAVE_SERVED);
    }
    if (w->n_notices == 0 && ward_is_held(x, w))
        ward_leave(x, w, LEAVE_STOP);
}

/* ---- any ---- */

/* A daemon before us has asked this run to save and exit: if it has, it stopped, not finished. */
static void take_over(struct slurm *x, struct ward *w)
{
    struct slurm_note note;

    slurm_note_read(&x->scratch, w->now->comment, w->now->admin, &note);
    if (note.asked_run != w->run || w->state == SLURM_PENDING || w->state == SLURM_CANCELLED ||
        w->phase == WARD_LEAVING)
        return;
    ward_leave(x, w, LEAVE_STOP);
    w->asked_run = w->run;
    w->due_s = slurm_now_s(x) + (isnan(w->grace_s) ? x->setup.grace_s : w->grace_s);
}

/* In the partition that is ours, perhaps among others? */
static bool is_ours(const struct slurm *x, const struct slurm_job *j)
{
    const size_t n = strlen(x->partition);

    if (!*j->partition)
        return true;
    for (const char *at = j->partition; *at; at += *at == ',') {
        const size_t len = strcspn(at, ",");

        if (len == n && strncmp(at, x->partition, n) == 0)
            return true;
        at += len;
    }
    return false;
}

/* Somebody has moved it to another partition: it is his from now on. Nothing is asked about it. */
static void see_taken(struct slurm *x, struct ward *w)
{
    w->has_next = w->is_move = false;
    w->is_taken = true;
    ward_set_phase(x, w, WARD_ENDED);
    if (ward_is_over(x, w))
        ward_set_active(x, w, false);
    else
        tell_deed(x, w, DEED_CANCELLED, WARD_TAKEN);
}

void see_ward(struct slurm *x, struct ward *w)
{
    const bool is_first = !w->was_seen;

    if (!ward_is_fresh(x, w))
        return;
    if (x->view.asked_s >= w->doubt_s + DOUBT_S)
        w->doubt_s = (double)NAN;
    if (!w->now) {
        end_missed(x, w);
        return;
    }
    remember(x, w);
    w->was_seen = true;
    if (!is_ours(x, w->now)) {
        see_taken(x, w);
        return;
    }
    if (is_first && !x->setup.only_watches)
        take_over(x, w);
    if (w->state == SLURM_PENDING)
        see_pending(x, w, is_first);
    else if (w->state == SLURM_STARTING || w->state == SLURM_RUNNING)
        see_running(x, w);
    else if (slurm_has_ended(w->state))
        end_ward(x, w);
    x->n_busy = -1;
}

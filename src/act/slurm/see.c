/* What a view means to one managed job: the event that leads it on, and what is told of that. What
 * is to be asked of Slurm follows from its state (action.c).
 */
#include "act/slurm/inner.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "catalog/cluster/state.h"

#define DOUBT_S 10.0    // what was not answered is carried out by then, or never
#define SETTLE_S 2.0    // a hold that is still seen so soon after a pin is an old one
#define SHUT_S 60.0     // GPUs on which Slurm does not start anything are left alone
#define LIMIT_S 10.0    // what a limit keeps from starting is taken back soon

/* ---- remembering ---- */

/* What its user asked for, as the gate wrote it down: the site may want to know one day. */
static void keep_gate_request(struct slurm *x, struct managed *m, const struct slurm_note *note)
{
    if (m->gate_request || !*note->gres)
        return;
    keep_text(&m->gate_request,
              note->n_nodes > 0
                  ? arena_printf(&x->scratch, " gres=%s nodes=%d", note->gres, note->n_nodes)
                  : arena_printf(&x->scratch, " gres=%s", note->gres));
}

static void remember(struct slurm *x, struct managed *m)
{
    const struct slurm_job *j = m->now;
    const char *out = slurm_out_path(&x->scratch, j, managed_job(x, m)->spec.owner);
    struct slurm_note note;

    slurm_note_read(&x->scratch, j->comment, j->admin, &note);
    m->has_token = strncmp(j->admin, "gogh1", 5) == 0 && *note.token && !note.is_new;
    if (note.n_failures > m->n_failures)
        m->n_failures = note.n_failures;
    if (j->state != m->last.state || j->run != m->last.run)
        m->again_s = 0;    // something came of what was asked
    m->last = *j;
    slurm_number(j, m->number, sizeof m->number);
    m->seen_s = x->view.asked_s;
    if (isnan(m->first_s))
        m->first_s = m->seen_s;
    if (j->state == SLURM_STARTING || j->state == SLURM_RUNNING)
        m->hold = j->held == HOLD_USER ? USER_HELD_RUN : USER_HOLDS_NOT;
    m->absent_s = (double)NAN;
    if (j->state != SLURM_PENDING)
        m->pending_s = (double)NAN;
    else if (isnan(m->pending_s))
        m->pending_s = slurm_now_s(x);
    if (*out)
        keep_text(&m->out, out);
    keep_text(&m->gres, j->gres);    // somebody else may have set it
    keep_gate_request(x, m, &note);
}

/* ---- pending ---- */

/* Who held it: whoever has Slurm's commands is heard as if he had asked GOGH. */
static void see_hold(struct slurm *x, struct managed *m, bool is_first)
{
    if (m->last.held == HOLD_NONE && m->hold >= USER_HOLDS) {
        m->hold = USER_HOLDS_NOT;
        tell_change(x, m, JOB_IS_RELEASED, NULL);
    }
    if (m->last.held == HOLD_USER && is_first && managed_is_held(x, m))
        m->hold = USER_HOLDS;
    if (m->hold < USER_HOLDS)
        return;
    if (managed_is_held(x, m))
        m->hold = USER_HOLD_KNOWN;
    else if (m->hold == USER_HOLD_KNOWN)    // released through GOGH
        m->hold = USER_HOLDS_NOT;
    else
        tell_change(x, m, JOB_IS_HELD, NULL);
}

static const char *lost_node(struct slurm *x, const struct managed *m)
{
    for (int i = 0; i < m->at.n_gpus; i++) {
        const int node = x->setup.state->gpus[m->at.gpus[i]].node, n = nodes_find(x, node);

        if (n < 0 || x->view.nodes[n].flags & SLURM_NODE_DOWN)
            return arena_printf(&x->scratch, "node %s was lost", x->setup.state->nodes[node].name);
    }
    return "it was put back into Slurm's queue";
}

/* Slurm was killed, and has forgotten that it started this. Its slurmd has not: it takes the same
 * number for a second copy, and Slurm drains a node that says so. Ours is submitted anew, a user's
 * goes to another node.
 */
static void start_anew(struct slurm *x, struct managed *m)
{
    x->reborn_s = slurm_now_s(x);
    x->wants_nodes = true;
    gpu_set_clear(&m->next);
    m->doubt_s = (double)NAN;
    if (managed_is_users(x, m)) {
        gpu_set_copy(&m->shunned, m->at.gpus, m->at.n_gpus);
        managed_update(x, m, ON_PENDING);
        return;
    }
    log_warn("job %s: Slurm has forgotten that it started job %s; submitted again",
             managed_name(x, m), m->number);
    managed_replace(x, m);
    x->n_resubmits++;
}

/* It ran, and nobody of us has asked it to stop. A requeue would have been counted: where it was
 * not, Slurm has forgotten that it ran, and whoever holds it was us.
 */
static void see_fallen(struct slurm *x, struct managed *m)
{
    const bool is_forgotten = m->last.run <= m->told_run;

    tell_end(x, m, NOTICE_STOPPED, is_forgotten ? "Slurm has forgotten it" : lost_node(x, m));
    if (is_forgotten) {
        start_anew(x, m);
        return;
    }
    gpu_set_clear(&m->next);
    m->hold = m->last.held == HOLD_USER || m->hold == USER_HELD_RUN ? USER_HOLDS : USER_HOLDS_NOT;
    managed_update(x, m, ON_PENDING);
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
static void lose_patience(struct slurm *x, struct managed *m)
{
    const char *why = arena_printf(&x->scratch, "Slurm did not start it on %s: %s",
                                   place_nodes(x, &m->at, NULL), m->now->reason);

    log_warn("job %s: %s; taken back", managed_name(x, m), why);
    keep_text(&m->why, why);
    if (nodes_are_away(x, &m->at))
        x->n_busy = -1;    // nobody is sent there
    else if (is_nodes_reason(m->now->reason) && m->n_shut++ == 0)
        nodes_shut(x, &m->at, SHUT_S);
    else
        managed_pause(x, m, why);
    if (managed_is_replica(x, m) && !managed_is_paused(x, m))
        managed_pause(x, m, why);    // its service looks for another place
    x->wants_nodes = true;
    managed_leave(x, m, ON_UNWANTED);
}

/* Seen held after a pin: is Slurm another one than that which took it? */
static bool is_pin_forgotten(struct slurm *x, const struct managed *m)
{
    const char *note = place_note(x, m, &m->at, -1);
    const double pinned_s = slurm_wall_s(x) - (slurm_now_s(x) - m->pinned_s);

    if (strncmp(m->now->admin, note, strlen(note)) == 0 || !isnan(m->doubt_s))
        return m->pinned_s < x->reborn_s && !(x->boot_s < pinned_s - 1);
    return true;    // what we had written there is gone
}

/* It was pinned and released, and waits. */
static void see_pinned(struct slurm *x, struct managed *m)
{
    const double since_s = slurm_now_s(x) - m->pinned_s;
    const bool is_held = m->last.held != HOLD_NONE;

    if (m->last.run > m->pin_run) {    // it ran between two views
        see_fallen(x, m);
    } else if (is_held && is_pin_forgotten(x, m)) {
        tell_end(x, m, NOTICE_STOPPED, "Slurm has forgotten it");
        start_anew(x, m);
    } else if (is_held && !isnan(m->doubt_s)) {    // the pin was lost
        gpu_set_copy(&m->next, m->at.gpus, m->at.n_gpus);
        managed_update(x, m, ON_PENDING);
    } else if (is_held && is_limit(m->now->reason)) {    // Slurm's own doing
        managed_update(x, m, ON_PENDING);
        managed_pause(x, m,
                      arena_printf(&x->scratch, "Slurm does not start it: %s", m->now->reason));
        managed_give_up(x, m, NULL);
    } else if (is_held && since_s > SETTLE_S) {
        managed_update(x, m, ON_PENDING);
        m->hold = USER_HOLDS;
        managed_give_up(x, m, "somebody holds it in Slurm");
    } else if (slurm_now_s(x) > m->due_s || (nodes_are_away(x, &m->at) && since_s > SETTLE_S) ||
               (is_limit(m->now->reason) && since_s > LIMIT_S)) {
        lose_patience(x, m);
    }
}

/* It was told to leave, and has. */
static void see_left(struct slurm *x, struct managed *m)
{
    const bool is_move =
        m->state == MANAGED_MOVING && m->next.n_gpus > 0 && m->hold != USER_HELD_RUN;

    if (m->last.held == HOLD_NONE || !managed_update(x, m, ON_PENDING))
        return;
    if (m->hold == USER_HELD_RUN) {    // its user's hold counts from now on
        m->hold = USER_HOLDS;
        gpu_set_clear(&m->next);
    }
    tell_end(x, m, NOTICE_STOPPED, is_move ? JOB_MOVING : m->why ? m->why : "stopped as planned");
}

/* A late copy of ours that never ran: nobody misses it. */
static bool is_unused(const struct slurm *x, const struct managed *m)
{
    return !managed_is_users(x, m) && m->last.held != HOLD_NONE && m->last.run == 0 &&
           !*m->now->pin;
}

/* It is over in GOGH and alive in Slurm. Only what GOGH has cancelled is cancelled: others may have
 * been given up for lost, or put back by their users. They run on, or wait held.
 */
static void see_risen(struct slurm *x, struct managed *m, bool is_doomed)
{
    if (is_doomed) {
        managed_leave(x, m, ON_RISEN);
        return;
    }
    managed_update(x, m, ON_ENDED);
    if (!m->is_logged)
        log_warn(
            "job %s has ended for GOGH, and Slurm has it as job %s; left alone: submit it anew, or "
            "cancel it there",
            managed_name(x, m), m->number);
    m->is_logged = true;
}

static void see_pending(struct slurm *x, struct managed *m, bool is_first)
{
    if (managed_is_over(x, m)) {
        see_risen(x, m, managed_is_doomed(x, m) || is_unused(x, m));
        return;
    }
    if (m->state == MANAGED_PINNED) {
        see_pinned(x, m);
    } else if (m->state == MANAGED_RUNNING) {
        see_fallen(x, m);
    } else if (managed_is_leaving(m)) {
        see_left(x, m);
    } else if (managed_update(x, m, ON_PENDING)) {
        if (told_running(x, m))
            tell_end(x, m, NOTICE_STOPPED, lost_node(x, m));
        notices_tell(&x->notices);    // it may be planned from now on
    }
    if (m->state == MANAGED_HELD)
        see_hold(x, m, is_first);
}

/* ---- running ---- */

/* Has it got what it was to get? A listing without its gres says nothing. */
static bool has_pinned_gres(struct slurm *x, const struct managed *m)
{
    return !*m->now->gres || (m->pin_gres ? gres_is_same(m->now->gres, m->pin_gres)
                                          : place_has_gres(x, &m->at, m->now->gres));
}

/* It begins where it was sent, or elsewhere: its owner may have changed what it asks for. */
static void see_arrival(struct slurm *x, struct managed *m)
{
    if (!place_is_on(x, &m->at, m->now->nodes)) {
        log_warn("job %s: it was sent to %s and runs on %s; stopped", managed_name(x, m),
                 place_nodes(x, &m->at, NULL), m->now->nodes);
        managed_leave(x, m, ON_UNWANTED);
    } else if (!has_pinned_gres(x, m)) {
        log_warn("job %s: it was sent to %s for %s and has %s; stopped", managed_name(x, m),
                 m->now->nodes, m->pin_gres ? m->pin_gres : "other GPUs", m->now->gres);
        managed_leave(x, m, ON_UNWANTED);
    } else if (m->last.state == SLURM_RUNNING) {
        managed_update(x, m, ON_RUNNING);
        keep_text(&m->why, NULL);
        m->pause_s = m->paused_s = m->n_shut = 0;
        tell_started(x, m);
    } else if (slurm_now_s(x) > m->due_s) {
        lose_patience(x, m);
    }
}

/* The state would have refused its start: it is not to run there. */
static bool is_refused(const struct slurm *x, const struct managed *m)
{
    return m->told_run == m->last.run && m->n_notices == 0 && !told_running(x, m);
}

static bool is_known_there(const struct slurm *x, const struct managed *m)
{
    const struct job *j = managed_job(x, m);

    return told_running(x, m) &&
           (m->n_notices > 0 ? m->told_run == m->last.run : gpu_set_is(&m->at, j->gpus, j->n_held));
}

static void see_at(struct slurm *x, struct managed *m, struct gpu_set *at)
{
    gpu_set_take(&m->at, at);
    if (m->last.state == SLURM_STARTING) {
        m->pin_run = m->last.run;
        managed_update(x, m, ON_STARTING);
        if (!x->setup.only_watches)
            m->due_s = slurm_now_s(x) + x->setup.patience_s + x->setup.wake_s;
        return;
    }
    managed_update(x, m, ON_RUNNING);
    if (is_known_there(x, m))
        m->told_run = m->last.run;
    else if (!is_refused(x, m))
        tell_started(x, m);
    else
        managed_leave(x, m, ON_UNWANTED);
}

/* Nobody can say on which GPUs: where its user has let it go, he had his reasons. */
static void see_nowhere(struct slurm *x, struct managed *m)
{
    const bool stays = managed_is_users(x, m) || x->setup.only_watches;

    if (stays) {
        gpu_set_clear(&m->at);
        managed_update(x, m, ON_RUNNING);
    }
    if (!m->is_logged)
        log_warn("job %s: it runs on %s, and on which GPUs cannot be told; %s", managed_name(x, m),
                 m->now->nodes, stays ? "left alone" : "stopped");
    if (!stays)
        managed_leave(x, m, ON_UNWANTED);
    m->is_logged = true;
}

/* It runs without an order of ours: an old one's, whose end nobody heard of, or nobody's. */
static void see_stranger(struct slurm *x, struct managed *m)
{
    struct gpu_set at = { 0 };

    gpu_set_clear(&m->next);
    if (place_find(x, m, &at)) {
        see_at(x, m, &at);
    } else if (m->lookup == LOOKUP_DONE && m->lookup_run == m->last.run) {
        see_nowhere(x, m);
    }
}

static bool is_at_home(struct slurm *x, const struct managed *m)
{
    return m->state == MANAGED_RUNNING && m->told_run == m->last.run && !is_refused(x, m) &&
           place_is_on(x, &m->at, m->now->nodes) && place_has_gres(x, &m->at, m->now->gres);
}

/* GOGH holds it, and knows that it runs. */
static bool must_stop(const struct slurm *x, const struct managed *m)
{
    return m->n_notices == 0 && managed_is_held(x, m);
}

/* Slurm has begun a replica anew between two views: it does not serve as those think who send it
 * requests.
 */
static bool is_second_run(const struct slurm *x, const struct managed *m)
{
    return managed_is_replica(x, m) && m->state == MANAGED_RUNNING && m->told_run >= 0 &&
           m->told_run != m->last.run;
}

static void see_running(struct slurm *x, struct managed *m)
{
    m->doubt_s = (double)NAN;
    if (managed_is_over(x, m)) {
        see_risen(x, m, managed_is_doomed(x, m));
        return;
    }
    if (managed_is_leaving(m))
        return;
    if (m->state == MANAGED_PINNED) {
        see_arrival(x, m);
    } else if (is_second_run(x, m)) {
        keep_text(&m->why, "Slurm has begun it anew");
        managed_leave(x, m, ON_UNWANTED);
    } else if (!is_at_home(x, m)) {
        see_stranger(x, m);
    } else if (managed_has_served(x, m) && !must_stop(x, m)) {
        managed_leave(x, m, ON_SERVED);
    }
    if (must_stop(x, m))
        managed_leave(x, m, ON_UNWANTED);
}

/* ---- any ---- */

/* A daemon before us has asked this run to save and exit: if it has, it stopped, not finished. */
static void take_over(struct slurm *x, struct managed *m)
{
    struct slurm_note note;

    slurm_note_read(&x->scratch, m->now->comment, m->now->admin, &note);
    if (note.asked_run != m->last.run || m->last.state == SLURM_PENDING ||
        m->last.state == SLURM_CANCELLED || managed_is_leaving(m))
        return;
    managed_leave(x, m, ON_RETRY);
    m->asked_run = m->last.run;
    m->due_s = slurm_now_s(x) + (isnan(m->grace_s) ? x->setup.grace_s : m->grace_s);
}

/* In the partition that is ours, perhaps among others? */
static bool is_ours(const struct slurm *x, const struct slurm_job *j)
{
    const char *list = j->partition;

    for (struct slice one; slice_next(&list, ',', &one);)
        if (slice_is(one, x->setup.partition))
            return true;
    return !*j->partition;
}

/* Somebody has moved it to another partition: it is his from now on. Nothing is asked about it. */
static void see_taken(struct slurm *x, struct managed *m)
{
    gpu_set_clear(&m->next);
    managed_update(x, m, ON_TAKEN);
    if (managed_is_over(x, m))
        managed_set_active(x, m, false);
    else
        tell_change(x, m, JOB_IS_CANCELLED, REASON_TAKEN);
}

void see_managed(struct slurm *x, struct managed *m)
{
    const bool is_first = isnan(m->seen_s);

    if (!managed_is_fresh(x, m))
        return;
    if (x->view.asked_s >= m->doubt_s + DOUBT_S)
        m->doubt_s = (double)NAN;
    if (!m->now) {
        end_missed(x, m);
        return;
    }
    remember(x, m);
    if (!is_ours(x, m->now)) {
        see_taken(x, m);
        return;
    }
    if (is_first && !x->setup.only_watches)
        take_over(x, m);
    if (m->last.state == SLURM_PENDING)
        see_pending(x, m, is_first);
    else if (m->last.state == SLURM_STARTING || m->last.state == SLURM_RUNNING)
        see_running(x, m);
    else if (slurm_has_ended(m->last.state))
        end_managed(x, m);
    x->n_busy = -1;
}

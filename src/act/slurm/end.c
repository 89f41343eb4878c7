/* How jobs end: as Slurm says, or without a word. */
#include "act/slurm/inner.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "catalog/cluster/state.h"

#define LOST_S 10.0    // between the first and the last view without a job that is lost
#define PARKED "may have run while GOGH was away: release it, or cancel it"
#define CRASH_S 10.0    // Slurm forgets at most so much of its past when it is killed

/* ---- as Slurm says ---- */

static const char *how_it_ended(struct slurm *x, const struct ward *w)
{
    if (w->state == SLURM_TIMEOUT)
        return "Slurm's time limit";
    if (w->signal > 0)
        return arena_printf(&x->scratch, "signal %d (%s)", w->signal, strsignal(w->signal));
    if (w->exit_code > 0 || !w->now || !*w->now->reason)
        return arena_printf(&x->scratch, "exit %d", w->exit_code);
    return arena_printf(&x->scratch, "Slurm: %s", w->now->reason);
}

static void finish(struct slurm *x, struct ward *w)
{
    tell_end(x, w, NOTICE_FINISHED, NULL);
    ward_set_phase(x, w, WARD_ENDED);
}

/* Once more, from the queue: Slurm takes ended jobs back, too, as long as it remembers them. */
static void try_again(struct slurm *x, struct ward *w, const char *why)
{
    ward_say_why(w, why);
    tell_end(x, w, NOTICE_STOPPED, why);
    ward_leave(x, w, LEAVE_STOP);
    w->asked_run = w->run;
}

static void fail(struct slurm *x, struct ward *w)
{
    const char *why = how_it_ended(x, w);

    if (w->failed_run != w->run)
        w->n_failures++;
    w->failed_run = w->run;
    if (w->n_failures > w->retries || ward_is_users(x, w) || x->setup.only_watches) {
        tell_end(x, w, NOTICE_FAILED, why);
        ward_set_phase(x, w, WARD_ENDED);
        return;
    }
    if (!told_running(x, w))
        tell_started(x, w);
    try_again(
        x, w,
        arena_printf(&x->scratch, "%s; try %d of %d", why, w->n_failures + 1, w->retries + 1));
}

/* Where a run was whose start nobody heard of; false: it cannot be told. */
static bool find_place(struct slurm *x, struct ward *w)
{
    struct spot at = { 0 };

    if (told_running(x, w) ||
        (w->at.n_gpus > 0 &&
         (w->phase == WARD_WANTED || w->phase == WARD_RUNNING || w->phase == WARD_LEAVING)))
        return true;
    if (!w->now)
        return w->at.n_gpus > 0;
    if (!place_find(x, w, &at))
        return false;
    spot_move(&w->at, &at);
    return true;
}

/* 'devices' is asked where it was; after that, any GPU of its node will do. */
static bool guess_place(struct slurm *x, struct ward *w)
{
    struct spot at = { 0 };

    if (x->setup.state->jobs[w->job]->spec.n_gpus != 1 || !w->now ||
        !place_guess(x, w->now->nodes, &at))
        return false;
    spot_move(&w->at, &at);
    return true;
}

static void end_as_told(struct slurm *x, struct ward *w)
{
    const bool is_cancelled = w->state == SLURM_CANCELLED && !ward_has_served(x, w);
    const bool is_found = is_cancelled || find_place(x, w);

    if (!is_found && w->now && *w->now->nodes && w->found == FOUND_ASKED)
        return;    // that is being asked
    if (is_cancelled || (!is_found && !guess_place(x, w))) {
        tell_deed(x, w, DEED_CANCELLED,
                  is_cancelled ? NULL : "it has ended in Slurm, and where it ran is not known");
        ward_set_phase(x, w, WARD_ENDED);
    } else if (w->state == SLURM_COMPLETED || w->state == SLURM_CANCELLED) {
        finish(x, w);
    } else if (w->state != SLURM_NODE_FAILED) {
        fail(x, w);
    } else if (x->setup.only_watches) {
        tell_end(x, w, NOTICE_STOPPED, "Slurm took its node away");
    } else {
        try_again(x, w, "Slurm took its node away");
    }
}

/* It was asked to end, and did, and will be put back; one that its user cancelled will not. */
static bool is_put_back(const struct ward *w)
{
    return w->phase == WARD_LEAVING && w->leave != LEAVE_SERVED && ward_is_asked(w) &&
           w->state != SLURM_CANCELLED;
}

void end_ward(struct slurm *x, struct ward *w)
{
    if (ward_is_over(x, w)) {
        ward_set_phase(x, w, WARD_ENDED);
        ward_set_active(x, w, false);
        return;
    }
    if (w->is_end_told)
        return;    // heard already
    if (is_put_back(w))
        return;
    if (ward_is_held(x, w)) {    // other ends are heard of once it is released
        if (w->state == SLURM_CANCELLED)
            tell_deed(x, w, DEED_CANCELLED, NULL);
        ward_set_phase(x, w, WARD_ENDED);
        return;
    }
    if (w->phase == WARD_LEAVING && w->leave == LEAVE_SERVED)
        finish(x, w);
    else
        end_as_told(x, w);
}

/* ---- without a word ---- */

/* Did Slurm lose it in a crash, or did it end while nobody looked? A job that was seen lately
 * cannot have ended and been forgotten; of one that was not, it is known when it started and
 * when slurmctld did.
 */
static bool is_crash(const struct slurm *x, const struct ward *w)
{
    const struct job *j = x->setup.state->jobs[w->job];
    const double age_s = x->boot_s - j->changed_s;

    if (w->was_seen)
        return x->view.asked_s - w->seen_s < x->min_job_age_s;
    return age_s >= 0 && age_s <= CRASH_S && w->away_s <= x->min_job_age_s;
}

static void end_unseen(struct slurm *x, struct ward *w, const char *why)
{
    const struct job *j = x->setup.state->jobs[w->job];
    const bool is_done =
        j->spec.kind == JOB_TRAINING && !j->spec.is_guess && j->steps_done >= j->spec.steps;

    if (is_done || ward_has_served(x, w))
        tell_end(x, w, NOTICE_FINISHED, NULL);
    else
        tell_end(x, w, NOTICE_FAILED, why);
    ward_set_phase(x, w, WARD_ENDED);
}

/* A start is only on disk once it was seen: one that nobody has looked after for longer than Slurm
 * remembers may have been started, and have run to its end.
 */
static bool may_have_run(const struct slurm *x, const struct ward *w)
{
    const bool was_wanted = w->phase == WARD_WANTED || w->phase == WARD_LEAVING;

    if (w->was_seen)
        return was_wanted && x->view.asked_s - w->seen_s > x->min_job_age_s;
    return w->was_before && w->away_s > x->min_job_age_s;
}

/* Its user knows whether it has; until he says so, nobody runs it again. */
static void park(struct slurm *x, struct ward *w)
{
    const char *reason = x->setup.state->jobs[w->job]->reason;

    if (ward_is_held(x, w)) {
        w->is_parked = reason && strcmp(reason, PARKED) == 0;    // else: it is, once released
        return;
    }
    if (!w->is_grumbled)
        log_error(
            "job %s: nobody has looked at Slurm for %.0f s, and Slurm does not know the job: it "
            "may have run, so it is held; release it to run it (again), or cancel it",
            ward_name(x, w), w->was_seen ? x->view.asked_s - w->seen_s : w->away_s);
    w->is_grumbled = true;
    w->has_next = w->is_move = false;
    tell_deed(x, w, DEED_HELD, PARKED);
}

static void lose(struct slurm *x, struct ward *w)
{
    const bool is_users = ward_is_users(x, w), is_lost = is_crash(x, w);

    if (told_running(x, w) && (is_users || !is_lost)) {
        end_unseen(x, w,
                   is_lost ? "Slurm has forgotten it"
                           : "ended while GOGH was away, and Slurm has forgotten how (MinJobAge)");
    } else if (is_users) {
        tell_deed(x, w, DEED_CANCELLED, WARD_LOST);
        ward_set_phase(x, w, WARD_ENDED);
    } else if (!x->setup.only_watches && (w->is_parked ? ward_is_held(x, w) : may_have_run(x, w))) {
        park(x, w);
    } else {
        log_warn("job %s: it is not in Slurm; submitted%s", ward_name(x, w),
                 w->was_seen ? " again" : "");
        w->has_next = w->is_move = false;
        tell_end(x, w, NOTICE_STOPPED, "Slurm lost it");
        ward_forget_run(w);
        ward_set_phase(x, w, WARD_ABSENT);
        x->n_resubmits++;
    }
}

void end_missed(struct slurm *x, struct ward *w)
{
    if (ward_is_over(x, w)) {
        ward_set_phase(x, w, WARD_ENDED);
        ward_set_active(x, w, false);
    } else if (slurm_has_ended(w->state) && w->state != SLURM_NODE_FAILED && !is_put_back(w)) {
        end_ward(x, w);    // it was seen, and Slurm has forgotten it since
    } else if (w->phase == WARD_ENDED) {
        if (!w->is_end_told)
            tell_deed(x, w, DEED_CANCELLED, NULL);
    } else if (w->phase != WARD_ABSENT && x->view.is_whole && !look_is_unread(x, w)) {
        if (isnan(w->absent_s))
            w->absent_s = x->view.asked_s;
        if (x->view.asked_s >= w->absent_s + LOST_S)
            lose(x, w);
    }
}

/* How jobs end: as Slurm says, or without a word. */
#include "act/slurm/inner.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "catalog/cluster/state.h"

#define LOST_S 10.0    // between the first and the last view without a job that is lost
#define PARKED "may have run while GOGH was away: release it, or cancel it"
#define NODE_TAKEN "Slurm took its node away"
#define CRASH_S 10.0    // Slurm forgets at most so much of its past when it is killed

/* ---- as Slurm says ---- */

static const char *how_it_ended(struct slurm *x, const struct managed *m)
{
    if (m->last.state == SLURM_TIMEOUT)
        return "Slurm's time limit";
    if (m->last.state == SLURM_NODE_FAILED)
        return NODE_TAKEN;
    if (m->last.state == SLURM_CANCELLED)
        return "cancelled by Slurm's commands";
    if (m->last.signal > 0)
        return arena_printf(&x->scratch, "signal %d (%s)", m->last.signal,
                            strsignal(m->last.signal));
    if (m->last.exit_code > 0 || m->last.state == SLURM_COMPLETED || !m->now || !*m->now->reason)
        return arena_printf(&x->scratch, "exit %d", m->last.exit_code);
    return arena_printf(&x->scratch, "Slurm: %s", m->now->reason);
}

static void finish(struct slurm *x, struct managed *m)
{
    tell_end(x, m, NOTICE_FINISHED, NULL);
    managed_update(x, m, ON_REPORTED);
}

/* Once more, from the queue: Slurm takes ended jobs back, too, as long as it remembers them. */
static void try_again(struct slurm *x, struct managed *m, const char *why)
{
    keep_text(&m->why, why);
    tell_end(x, m, NOTICE_STOPPED, why);
    managed_leave(x, m, ON_RETRY);
    m->asked_run = m->last.run;
}

static void fail(struct slurm *x, struct managed *m)
{
    const char *why = how_it_ended(x, m);

    if (m->failed_run != m->last.run)
        m->n_failures++;
    m->failed_run = m->last.run;
    if (m->n_failures > m->retries || managed_is_users(x, m) || managed_is_replica(x, m) ||
        x->setup.only_watches) {
        tell_end(x, m, NOTICE_FAILED, why);
        managed_update(x, m, ON_REPORTED);
        return;
    }
    if (!told_running(x, m))
        tell_started(x, m);
    try_again(
        x, m,
        arena_printf(&x->scratch, "%s; try %d of %d", why, m->n_failures + 1, m->retries + 1));
}

/* Where a run was whose start nobody heard of; false: it cannot be told. */
static bool find_place(struct slurm *x, struct managed *m)
{
    struct gpu_set at = { 0 };

    if (told_running(x, m) ||
        (m->at.n_gpus > 0 &&
         (m->state == MANAGED_PINNED || m->state == MANAGED_RUNNING || managed_is_leaving(m))))
        return true;
    if (!m->now)
        return m->at.n_gpus > 0;
    if (!place_find(x, m, &at))
        return false;
    gpu_set_take(&m->at, &at);
    return true;
}

/* 'devices' is asked where it was; after that, any GPU of its node will do. */
static bool guess_place(struct slurm *x, struct managed *m)
{
    struct gpu_set at = { 0 };

    if (managed_job(x, m)->spec.n_gpus != 1 || !m->now || !place_guess(x, m->now->nodes, &at))
        return false;
    gpu_set_take(&m->at, &at);
    return true;
}

static void end_as_told(struct slurm *x, struct managed *m)
{
    const bool is_lost = managed_is_replica(x, m) && told_running(x, m);    // nobody told it to end
    const bool is_cancelled =
        m->last.state == SLURM_CANCELLED && !managed_has_served(x, m) && !is_lost;
    const bool is_found = is_cancelled || find_place(x, m);

    if (!is_found && m->now && *m->now->nodes && m->lookup == LOOKUP_ASKED)
        return;    // that is being asked
    if (is_cancelled || (!is_found && !guess_place(x, m))) {
        tell_change(x, m, JOB_IS_CANCELLED,
                    is_cancelled ? NULL : "it has ended in Slurm, and where it ran is not known");
        managed_update(x, m, ON_ENDED);
    } else if (!managed_is_replica(x, m) &&
               (m->last.state == SLURM_COMPLETED || m->last.state == SLURM_CANCELLED)) {
        finish(x, m);
    } else if (managed_is_replica(x, m) || m->last.state != SLURM_NODE_FAILED) {
        fail(x, m);
    } else if (x->setup.only_watches) {
        tell_end(x, m, NOTICE_STOPPED, NODE_TAKEN);
    } else {
        try_again(x, m, NODE_TAKEN);
    }
}

/* It was asked to end, and did, and will be put back; one that its user cancelled will not. */
static bool is_put_back(const struct managed *m)
{
    return managed_is_leaving(m) && m->state != MANAGED_RETIRING && managed_is_asked(m) &&
           m->last.state != SLURM_CANCELLED;
}

void end_managed(struct slurm *x, struct managed *m)
{
    if (managed_is_over(x, m)) {
        managed_update(x, m, ON_ENDED);
        managed_set_active(x, m, false);
        return;
    }
    if (m->state == MANAGED_REPORTED || is_put_back(m))
        return;
    if (managed_is_held(x, m)) {    // other ends are heard of once it is released
        if (m->last.state == SLURM_CANCELLED)
            tell_change(x, m, JOB_IS_CANCELLED, NULL);
        managed_update(x, m, ON_ENDED);
        return;
    }
    if (m->state == MANAGED_RETIRING)
        finish(x, m);
    else
        end_as_told(x, m);
}

/* ---- without a word ---- */

/* Did Slurm lose it in a crash, or did it end while nobody looked? A job that was seen lately
 * cannot have ended and been forgotten; of one that was not, it is known when it started and
 * when slurmctld did.
 */
static bool is_crash(const struct slurm *x, const struct managed *m)
{
    const struct job *j = managed_job(x, m);
    const double age_s = x->boot_s - j->changed_s;

    if (!isnan(m->seen_s))
        return x->view.asked_s - m->seen_s < x->min_job_age_s;
    return age_s >= 0 && age_s <= CRASH_S && m->away_s <= x->min_job_age_s;
}

static void end_unseen(struct slurm *x, struct managed *m, const char *why)
{
    const struct job *j = managed_job(x, m);
    const bool is_done =
        j->spec.kind == JOB_TRAINING && !j->spec.is_guess && j->steps_done >= j->spec.steps;

    if (is_done || managed_has_served(x, m))
        tell_end(x, m, NOTICE_FINISHED, NULL);
    else
        tell_end(x, m, NOTICE_FAILED, why);
    managed_update(x, m, ON_REPORTED);
}

/* A start is only on disk once it was seen: one that nobody has looked after for longer than Slurm
 * remembers may have been started, and have run to its end.
 */
static bool may_have_run(const struct slurm *x, const struct managed *m)
{
    const bool was_wanted = m->state == MANAGED_PINNED || managed_is_leaving(m);

    if (!isnan(m->seen_s))
        return was_wanted && x->view.asked_s - m->seen_s > x->min_job_age_s;
    return m->away_s > x->min_job_age_s;
}

/* Its user knows whether it has; until he says so, nobody runs it again. */
static void park(struct slurm *x, struct managed *m)
{
    const char *reason = managed_job(x, m)->reason;

    if (managed_is_held(x, m)) {
        if (reason && strcmp(reason, PARKED) == 0)    // else: it is, once released
            managed_update(x, m, ON_PARKED);
        return;
    }
    if (!m->is_logged)
        log_error(
            "job %s: nobody has looked at Slurm for %.0f s, and Slurm does not know the job: it "
            "may have run, so it is held; release it to run it (again), or cancel it",
            managed_name(x, m), !isnan(m->seen_s) ? x->view.asked_s - m->seen_s : m->away_s);
    m->is_logged = true;
    gpu_set_clear(&m->next);
    tell_change(x, m, JOB_IS_HELD, PARKED);
}

static void lose(struct slurm *x, struct managed *m)
{
    const bool is_users = managed_is_users(x, m), is_lost = is_crash(x, m);
    const bool is_replica = managed_is_replica(x, m);

    if (told_running(x, m) && (is_users || is_replica || !is_lost)) {
        end_unseen(x, m,
                   is_lost ? "Slurm has forgotten it"
                           : "ended while GOGH was away, and Slurm has forgotten how (MinJobAge)");
    } else if (is_users || is_replica) {    // a replica that comes back is cancelled
        tell_change(x, m, JOB_IS_CANCELLED, is_users ? REASON_LOST : "Slurm lost it");
        managed_update(x, m, ON_ENDED);
    } else if (!x->setup.only_watches &&
               (m->state == MANAGED_PARKED ? managed_is_held(x, m) : may_have_run(x, m))) {
        park(x, m);
    } else {
        log_warn("job %s: it is not in Slurm; submitted%s", managed_name(x, m),
                 !isnan(m->seen_s) ? " again" : "");
        gpu_set_clear(&m->next);
        tell_end(x, m, NOTICE_STOPPED, "Slurm lost it");
        managed_forget_run(m);
        m->away_s = (double)NAN;
        managed_update(x, m, ON_LOST);
        x->n_resubmits++;
    }
}

void end_missed(struct slurm *x, struct managed *m)
{
    if (managed_is_over(x, m)) {
        managed_update(x, m, ON_ENDED);
        managed_set_active(x, m, false);
    } else if (slurm_has_ended(m->last.state) && m->last.state != SLURM_NODE_FAILED &&
               !is_put_back(m)) {
        end_managed(x, m);    // it was seen, and Slurm has forgotten it since
    } else if (managed_has_ended(m)) {
        if (m->state != MANAGED_REPORTED)
            tell_change(x, m, JOB_IS_CANCELLED, NULL);
    } else if (m->state != MANAGED_ABSENT && x->view.is_whole && !look_is_unread(x, m)) {
        if (isnan(m->absent_s))
            m->absent_s = x->view.asked_s;
        if (x->view.asked_s >= m->absent_s + LOST_S)
            lose(x, m);
    }
}

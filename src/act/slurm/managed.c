/* The jobs that are managed: who they are, and what may be said of each. */
#include "act/slurm/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define PAUSE_MIN_S 30.0
#define PAUSE_MAX_S 600.0

const struct job *managed_job(const struct slurm *x, const struct managed *m)
{
    return x->setup.state->jobs[m->job];
}

bool managed_is_over(const struct slurm *x, const struct managed *m)
{
    return job_is_over(managed_job(x, m));
}

/* Whoever GOGH gave up for lost, and comes back, is not GOGH's to end. */
bool managed_is_doomed(const struct slurm *x, const struct managed *m)
{
    const struct job *j = managed_job(x, m);
    const char *reason = j->reason;

    return j->state == JOB_CANCELLED && m->state != MANAGED_TAKEN &&
           !(reason && (strcmp(reason, REASON_LOST) == 0 || strcmp(reason, REASON_TAKEN) == 0));
}

bool managed_may_run(const struct slurm *x, const struct managed *m)
{
    return job_may_run(managed_job(x, m));
}

bool managed_is_held(const struct slurm *x, const struct managed *m)
{
    return managed_job(x, m)->state == JOB_HELD;
}

bool managed_is_users(const struct slurm *x, const struct managed *m)
{
    return slurm_is_users(&managed_job(x, m)->spec);
}

/* Its service asks for another one, elsewhere perhaps, whatever becomes of it. */
bool managed_is_replica(const struct slurm *x, const struct managed *m)
{
    return managed_job(x, m)->spec.kind == JOB_REPLICA;
}

const char *managed_name(const struct slurm *x, const struct managed *m)
{
    return managed_job(x, m)->spec.name;
}

bool slurm_has_ended(enum slurm_state s)
{
    return s >= SLURM_COMPLETED;
}

bool managed_is_asked(const struct managed *m)
{
    return m->asked_run == m->last.run;
}

bool managed_has_served(const struct slurm *x, const struct managed *m)
{
    const struct job *j = managed_job(x, m);

    return j->spec.kind == JOB_INFERENCE && j->spec.duration_s > 0 && !isnan(j->started_s) &&
           job_time_left_s(j, slurm_wall_s(x)) <= 0;
}

bool managed_is_under_way(const struct managed *m)
{
    return m->next.n_gpus > 0 || m->state == MANAGED_PINNED || managed_is_leaving(m);
}

bool managed_is_going(const struct managed *m)
{
    return managed_is_leaving(m) ||
           (m->state == MANAGED_RUNNING && m->last.state == SLURM_ENDING) ||
           (m->state == MANAGED_HELD && !isnan(m->doubt_s) && m->pin_gres);
}

bool managed_is_fresh(const struct slurm *x, const struct managed *m)
{
    return x->has_view && x->view_seq > m->seq;
}

struct managed *managed_find(const struct slurm *x, int job)
{
    const int i = map_u64_get(&x->by_job, (uint64_t)job);

    return i < 0 ? NULL : x->managed[i];
}

/* Of "slurm:12_3:1700000000" the "12_3", for those that come back with another submit_s. */
static void learn_number(struct slurm *x, int job)
{
    const char *key = x->setup.state->jobs[job]->spec.key + sizeof SLURM_KEY - 1;
    const char *number = arena_strndup(&x->names, key, strcspn(key, ":"));

    if (map_get(&x->by_number, number) < job)
        map_set(&x->by_number, number, job);
}

/* Whether it was submitted by somebody who died just then is not known: as if it had been. */
struct managed *managed_get(struct slurm *x, int job)
{
    const struct job *j = x->setup.state->jobs[job];
    struct managed *m = managed_find(x, job);

    if (m)
        return m;
    m = heap_array(1, sizeof *m);
    *m = (struct managed){ .job = job,
                           .state = MANAGED_SUBMITTED,
                           .first_s = (double)NAN,
                           .seen_s = (double)NAN,
                           .absent_s = (double)NAN,
                           .pending_s = (double)NAN,
                           .away_s = (double)NAN,
                           .wait_s = (double)NAN,
                           .doubt_s = slurm_now_s(x),
                           .due_s = (double)INFINITY,
                           .told_run = -1,
                           .asked_run = -1,
                           .failed_run = -1,
                           .stuck_run = -1,
                           .active = -1 };
    if (j->state == JOB_RUNNING)
        gpu_set_copy(&m->at, j->gpus, j->n_held);
    submit_learn(x, m);
    GROW(x->managed, x->n_managed, x->cap_managed);
    x->managed[x->n_managed] = m;
    map_u64_set(&x->by_job, (uint64_t)job, x->n_managed++);
    if (managed_is_users(x, m))
        learn_number(x, job);
    return m;
}

void managed_free(struct managed *m)
{
    free(m->at.gpus);
    free(m->next.gpus);
    free(m->lookup_gpus.gpus);
    free(m->shunned.gpus);
    free(m->out);
    free(m->why);
    free(m->pin_gres);
    free(m->gres);
    free(m->gate_request);
    free(m);
}

void managed_set_active(struct slurm *x, struct managed *m, bool is_active)
{
    if (is_active == (m->active >= 0))
        return;
    x->n_busy = -1;
    if (is_active) {
        GROW(x->active, x->n_active, x->cap_active);
        m->active = x->n_active;
        x->active[x->n_active++] = m;
        return;
    }
    x->active[m->active] = x->active[--x->n_active];
    x->active[m->active]->active = m->active;
    m->active = -1;
}

void keep_text(char **to, const char *text)
{
    if (*to && text && strcmp(*to, text) == 0)
        return;
    char *copy = text && *text ? heap_text(text) : NULL;
    free(*to);
    *to = copy;
}

/* For a reason of its own: its nodes are free for others, and it is not planned for a while. */
void managed_pause(struct slurm *x, struct managed *m, const char *why)
{
    m->pause_s = fmin(fmax(2 * m->pause_s, PAUSE_MIN_S), PAUSE_MAX_S);
    m->paused_s = slurm_now_s(x) + m->pause_s;
    keep_text(&m->why, why);
    log_warn("job %s: %s; it pauses for %.0f s", managed_name(x, m), why, m->pause_s);
}

bool managed_is_paused(const struct slurm *x, const struct managed *m)
{
    return slurm_now_s(x) < m->paused_s;
}

void managed_forget_run(struct managed *m)
{
    m->last.run = m->pin_run = 0;
    m->told_run = m->asked_run = m->failed_run = m->stuck_run = -1;
    m->last.state = SLURM_PENDING;
    m->lookup = LOOKUP_NONE;
    m->first_s = (double)NAN;
    m->has_token = m->is_noteless = false;
    m->hold = m->hold == USER_HELD_RUN ? USER_HOLDS_NOT : m->hold;
    keep_text(&m->pin_gres, NULL);
    keep_text(&m->gres, NULL);
}

/* The old one is held, and cancelled once the new one is seen: not before, so that somebody who
 * begins after us finds one of them.
 */
void managed_replace(struct slurm *x, struct managed *m)
{
    m->old_id = m->last.id;
    m->old_submit_s = m->last.submit_s;
    m->has_old = true;
    m->is_old_cancelled = false;
    m->now = NULL;
    m->doubt_s = (double)NAN;
    managed_forget_run(m);
    managed_update(x, m, ON_REPLACED);
    slurm_pass_soon(x);
}

void managed_leave(struct slurm *x, struct managed *m, enum managed_event e)
{
    if (x->setup.only_watches || managed_next(m->state, e) == m->state)
        return;
    if (e != ON_MOVE)
        gpu_set_clear(&m->next);
    managed_update(x, m, e);
    if (m->state == MANAGED_CANCELLING)
        m->again_s = 0;
    if (managed_is_leaving(m))
        look_soon(x);
}

void managed_give_up(struct slurm *x, struct managed *m, const char *why)
{
    if (why && managed_is_replica(x, m))
        managed_pause(x, m, why);    // its service looks for another place
    else if (why)
        log_warn("job %s: %s; it waits", managed_name(x, m), why);
    gpu_set_clear(&m->next);
    x->n_busy = -1;
    tell_end(x, m, NOTICE_STOPPED, why ? why : "stopped as planned");
}

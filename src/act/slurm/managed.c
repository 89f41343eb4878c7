/* The list of wards: who is in our charge, and how far each is. */
#include "act/slurm/inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define PAUSE_MIN_S 30.0
#define PAUSE_MAX_S 600.0

static enum job_state state_of(const struct slurm *x, const struct ward *w)
{
    return x->setup.state->jobs[w->job]->state;
}

bool ward_is_over(const struct slurm *x, const struct ward *w)
{
    const enum job_state s = state_of(x, w);

    return s == JOB_FINISHED || s == JOB_FAILED || s == JOB_CANCELLED;
}

/* Whoever GOGH gave up for lost, and comes back, is not GOGH's to end. */
bool ward_is_doomed(const struct slurm *x, const struct ward *w)
{
    const char *reason = x->setup.state->jobs[w->job]->reason;

    return state_of(x, w) == JOB_CANCELLED && !w->is_taken &&
           !(reason && (strcmp(reason, WARD_LOST) == 0 || strcmp(reason, WARD_TAKEN) == 0));
}

bool ward_may_run(const struct slurm *x, const struct ward *w)
{
    const enum job_state s = state_of(x, w);

    return s == JOB_WAITING || s == JOB_RUNNING;
}

bool ward_is_held(const struct slurm *x, const struct ward *w)
{
    return state_of(x, w) == JOB_HELD;
}

bool ward_is_users(const struct slurm *x, const struct ward *w)
{
    return slurm_is_users(&x->setup.state->jobs[w->job]->spec);
}

const char *ward_name(const struct slurm *x, const struct ward *w)
{
    return x->setup.state->jobs[w->job]->spec.name;
}

bool slurm_has_ended(enum slurm_state s)
{
    return s >= SLURM_COMPLETED;
}

bool ward_is_asked(const struct ward *w)
{
    return w->asked_run == w->run;
}

bool ward_has_served(const struct slurm *x, const struct ward *w)
{
    const struct job *j = x->setup.state->jobs[w->job];

    return j->spec.kind == JOB_INFERENCE && j->spec.duration_s > 0 && !isnan(j->started_s) &&
           job_time_left_s(j, slurm_wall_s(x)) <= 0;
}

bool ward_is_under_way(const struct ward *w)
{
    return w->has_next || w->phase == WARD_WANTED || w->phase == WARD_LEAVING;
}

bool ward_is_fresh(const struct slurm *x, const struct ward *w)
{
    return x->has_view && x->view_seq > w->seq;
}

struct ward *ward_find(const struct slurm *x, int job)
{
    const int i = map_u64_get(&x->by_job, (uint64_t)job);

    return i < 0 ? NULL : x->wards[i];
}

/* Of "slurm:12_3:1700000000" the "12_3", for those that come back with another submit_s. */
static void learn_number(struct slurm *x, struct ward *w)
{
    const char *key = x->setup.state->jobs[w->job]->spec.key + sizeof SLURM_KEY - 1;
    int before;

    w->key_number = strndup(key, strcspn(key, ":"));
    assert(w->key_number);    // out of memory: stop
    before = map_get(&x->by_number, w->key_number);
    if (before < w->job)
        map_set(&x->by_number, w->key_number, w->job);
}

/* Whether it was submitted by somebody who died just then is not known: as if it had been. */
struct ward *ward_get(struct slurm *x, int job)
{
    const struct job *j = x->setup.state->jobs[job];
    struct ward *w = ward_find(x, job);

    if (w)
        return w;
    w = heap_array(1, sizeof *w);
    *w = (struct ward){ .job = job,
                        .phase = WARD_ASKED,
                        .absent_s = (double)NAN,
                        .pending_s = (double)NAN,
                        .first_s = (double)NAN,
                        .wait_s = (double)NAN,
                        .doubt_s = slurm_now_s(x),
                        .due_s = (double)INFINITY,
                        .told_run = -1,
                        .asked_run = -1,
                        .failed_run = -1,
                        .stuck_run = -1,
                        .active = -1 };
    if (j->state == JOB_RUNNING)
        spot_set(&w->at, j->gpus, j->n_held, j->limit_w);
    submit_learn(x, w);
    GROW(x->wards, x->n_wards, x->cap_wards);
    x->wards[x->n_wards] = w;
    map_u64_set(&x->by_job, (uint64_t)job, x->n_wards++);
    if (ward_is_users(x, w))
        learn_number(x, w);
    return w;
}

void ward_free(struct ward *w)
{
    free(w->at.gpus);
    free(w->next.gpus);
    free(w->spare.gpus);
    free(w->shunned.gpus);
    free(w->out);
    free(w->why);
    free(w->pin_gres);
    free(w->gres);
    free(w->key_number);
    free(w->request);
    free(w);
}

void ward_set_active(struct slurm *x, struct ward *w, bool is_active)
{
    if (is_active == (w->active >= 0))
        return;
    x->n_busy = -1;
    if (is_active) {
        GROW(x->active, x->n_active, x->cap_active);
        w->active = x->n_active;
        x->active[x->n_active++] = w;
        return;
    }
    x->active[w->active] = x->active[--x->n_active];
    x->active[w->active]->active = w->active;
    w->active = -1;
}

void ward_set_phase(struct slurm *x, struct ward *w, enum ward_phase phase)
{
    x->n_busy = -1;
    if (w->phase == phase)
        return;
    if (phase != WARD_LEAVING)
        w->asked_run = -1;
    w->phase = phase;
    w->again_s = 0;
    w->due_s = (double)INFINITY;
    w->is_grumbled = false;
}

void ward_say_why(struct ward *w, const char *why)
{
    char *copy = why ? strdup(why) : NULL;

    assert(copy || !why);    // out of memory: stop
    free(w->why);
    w->why = copy;
}

/* For a reason of its own: its nodes are free for others, and it is not planned for a while. */
void ward_pause(struct slurm *x, struct ward *w, const char *why)
{
    w->pause_s = fmin(fmax(2 * w->pause_s, PAUSE_MIN_S), PAUSE_MAX_S);
    w->paused_s = slurm_now_s(x) + w->pause_s;
    ward_say_why(w, why);
    log_warn("job %s: %s; it pauses for %.0f s", ward_name(x, w), why, w->pause_s);
}

bool ward_is_paused(const struct slurm *x, const struct ward *w)
{
    return slurm_now_s(x) < w->paused_s;
}

void ward_forget_run(struct ward *w)
{
    w->run = w->pin_run = 0;
    w->told_run = w->asked_run = w->failed_run = w->stuck_run = -1;
    w->state = SLURM_PENDING;
    w->found = FOUND_NOT;
    w->first_s = (double)NAN;
    w->is_end_told = w->is_run_held = w->has_token = w->is_noteless = false;
    free(w->pin_gres);
    free(w->gres);
    w->pin_gres = w->gres = NULL;
}

/* The old one is held, and cancelled once the new one is seen: not before, so that somebody who
 * begins after us finds one of them.
 */
void ward_renew(struct slurm *x, struct ward *w)
{
    w->forgotten_id = w->id;
    w->forgotten_s = w->submit_s;
    w->has_old = true;
    w->is_old_cancelled = false;
    w->is_there = false;
    w->doubt_s = (double)NAN;
    ward_forget_run(w);
    ward_set_phase(x, w, WARD_ABSENT);
    slurm_pass_soon(x);
}

void ward_leave(struct slurm *x, struct ward *w, enum ward_leave leave)
{
    if (x->setup.only_watches || (w->phase == WARD_LEAVING && w->leave == leave))
        return;
    if (leave != LEAVE_MOVE)
        w->has_next = w->is_move = false;
    if (leave == LEAVE_CANCEL)
        w->again_s = 0;
    w->leave = leave;
    ward_set_phase(x, w, WARD_LEAVING);
    look_soon(x);
}

void ward_give_up(struct slurm *x, struct ward *w, const char *why)
{
    if (why)
        log_warn("job %s: %s; it waits", ward_name(x, w), why);
    w->has_next = w->is_move = false;
    x->n_busy = -1;
    tell_end(x, w, NOTICE_STOPPED, why ? why : "stopped as planned");
}

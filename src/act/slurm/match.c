/* Which Slurm job is which of ours: by the token that it carries and the user whose it is, never by
 * its number alone, which is given out again after a crash.
 */
#include "act/slurm/inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define STRAY_S 3.0    // between two requests to cancel what was submitted twice

bool slurm_is_users(const struct job_spec *s)
{
    return s->key && strncmp(s->key, SLURM_KEY, sizeof SLURM_KEY - 1) == 0;
}

/* The job that a token names; -1: another site's, or none. Its last digits tell a store that was
 * put back from a backup, and gives numbers out again; older tokens have none.
 */
static int job_of_token(struct slurm *x, const char *token)
{
    const int job = slurm_token_job(token, x->setup.site, x->n_safe);
    const char *mark = job < 0 ? NULL : strchr(token + 17, '-');

    if (mark && strcmp(token, place_token(x, job)) != 0)
        return -1;
    return job;
}

/* A user's job without a token that was put back: Slurm gave it another submit_s with that. */
static int find_requeued(const struct slurm *x, const struct slurm_job *j)
{
    char number[48];
    const char *key, *colon;
    int job;

    if (j->run < 1)
        return -1;
    slurm_number(j, number, sizeof number);
    job = map_get(&x->by_number, number);
    if (job < 0)
        return -1;
    key = x->setup.state->jobs[job]->spec.key;
    colon = strrchr(key, ':');
    return colon && strtod(colon + 1, NULL) < j->submit_s ? job : -1;
}

int slurm_find_job(struct slurm *x, const struct slurm_job *j)
{
    struct slurm_note note;
    struct managed *m;
    char key[100];
    int job;

    slurm_note_read(&x->scratch, j->comment, j->admin, &note);
    job = *note.token ? job_of_token(x, note.token) : -1;
    if (job < 0) {
        slurm_key(j, key, sizeof key);
        job = state_find_key(x->setup.state, key);
        if (job < 0 && !*note.token)
            job = find_requeued(x, j);
    }
    if (job < 0 || job >= x->n_safe)    // who came in this turn may yet be undone
        return -1;
    m = managed_get(x, job);
    return m->uid == j->uid ? job : -1;
}

/* ---- several with one token ---- */

/* One that has run to its end is the job; a copy that waits held beside it is a late submission. */
static int rank(const struct slurm_job *j)
{
    if (j->state == SLURM_COMPLETED || j->state == SLURM_FAILED || j->state == SLURM_TIMEOUT)
        return 2;
    if (slurm_has_ended(j->state))
        return 0;
    if (j->state != SLURM_PENDING)
        return 4;
    return j->held == HOLD_NONE && *j->pin ? 3 : 1;
}

/* Does 'j' count rather than 'than'? The one that runs, was released or has run; the one that we
 * know; the first.
 */
static bool is_better(const struct managed *m, const struct slurm_job *j,
                      const struct slurm_job *than)
{
    if (rank(j) != rank(than))
        return rank(j) > rank(than);
    if ((j->id == m->last.id) != (than->id == m->last.id))
        return j->id == m->last.id;
    return slurm_has_ended(j->state) ? j->id > than->id : j->id < than->id;
}

static void count_stray(struct slurm *x, const struct managed *m, const struct slurm_job *j)
{
    if (map_u64_get(&x->strays, (uint64_t)j->id) >= 0)
        return;
    map_u64_set(&x->strays, (uint64_t)j->id, 0);
    x->n_strays++;
    log_warn("job %s: Slurm's job %ld has its token, too, besides %ld; left alone",
             managed_name(x, m), j->id, m->now->id);
}

/* Another has taken its place. After a crash, that may have its number. */
static bool is_forgotten(const struct managed *m, const struct slurm_job *j)
{
    return j->id == m->old_id && (j->run > 0 || !(j->submit_s > m->old_submit_s));
}

static void match_one(struct slurm *x, const struct slurm_job *j)
{
    const int job = slurm_find_job(x, j);
    struct managed *m = job < 0 ? NULL : managed_find(x, job);

    if (m && m->state == MANAGED_TAKEN && managed_is_over(x, m))
        m = NULL;    // its user's alone
    x->managed_of[j - x->view.jobs] = m;
    if (!m || (m->active < 0 && managed_is_over(x, m) && slurm_has_ended(j->state)))
        return;
    if (is_forgotten(m, j) && !m->is_old_cancelled &&
        !(j->state == SLURM_PENDING && j->held != HOLD_NONE))
        m->old_id = 0;    // somebody has let it go: it counts after all
    if (is_forgotten(m, j))
        m->has_old |= !slurm_has_ended(j->state);
    else if (m->active < 0 || !m->now || is_better(m, j, m->now))
        m->now = j;
    managed_set_active(x, m, true);
}

void match_view(struct slurm *x)
{
    arena_reset(&x->scratch);
    free(x->managed_of);
    x->managed_of = heap_array((size_t)x->view.n_jobs, sizeof(struct managed *));
    for (int i = 0; i < x->n_active; i++) {
        x->active[i]->now = NULL;
        x->active[i]->has_old = false;
    }
    for (int i = 0; i < x->view.n_jobs; i++)
        match_one(x, &x->view.jobs[i]);
}

/* Submitted by us and waiting, or given up by us: nobody misses it. */
static bool is_spare(const struct slurm *x, const struct managed *m, const struct slurm_job *j)
{
    return !managed_is_users(x, m) && (j->state == SLURM_PENDING || is_forgotten(m, j));
}

void match_strays(struct slurm *x)
{
    const char **numbers = ARENA_ARRAY(&x->scratch, const char *, (size_t)x->view.n_jobs);
    int n = 0;

    for (int i = 0; i < x->view.n_jobs; i++) {
        const struct slurm_job *j = &x->view.jobs[i];
        struct managed *m = slurm_has_ended(j->state) ? NULL : x->managed_of[i];

        if (!m || m->now == j || !m->now)
            continue;
        m->has_old = true;    // nothing is pinned beside it
        if (is_spare(x, m, j) && !x->setup.only_watches) {
            char *number = arena_alloc(&x->scratch, 48);

            slurm_number(j, number, 48);
            numbers[n++] = number;
            m->is_old_cancelled |= is_forgotten(m, j);
        } else {
            count_stray(x, m, j);
        }
    }
    if (n > 0 && slurm_now_s(x) >= x->stray_s + STRAY_S) {
        x->stray_s = slurm_now_s(x);
        ask_strays(x, numbers, n);
    }
}

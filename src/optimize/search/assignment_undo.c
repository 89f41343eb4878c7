#include "optimize/search/assignment_inner.h"

#include <assert.h>

#include "base/grow.h"

void assignment_mark(struct assignment *d)
{
    struct assignment_undo_log *n = d->journal;

    assert(!n->is_open);
    n->is_open = true;
    n->epoch++;
    n->cost_w = d->cost_w;
    n->room_w = d->room_w;
    n->n_gpus = n->n_jobs = n->n_rooms = n->n_job_gpus = 0;
}

void assignment_keep(struct assignment *d)
{
    assert(d->journal->is_open);
    d->journal->is_open = false;
}

void journal_gpu(struct assignment *d, int gpu)
{
    struct assignment_undo_log *n = d->journal;

    if (!n->is_open || d->gpus[gpu].epoch == n->epoch)
        return;
    d->gpus[gpu].epoch = n->epoch;
    GROW(n->gpus, n->n_gpus, n->cap_gpus);
    n->gpus[n->n_gpus++] = (struct saved_gpu){ gpu, d->gpus[gpu] };
}

void journal_job(struct assignment *d, int job)
{
    struct assignment_undo_log *n = d->journal;
    const struct assignment_job *j = &d->jobs[job];

    if (!n->is_open || j->epoch == n->epoch)
        return;
    d->jobs[job].epoch = n->epoch;
    GROW(n->jobs, n->n_jobs, n->cap_jobs);
    n->jobs[n->n_jobs++] = (struct saved_job){ job, n->n_job_gpus, *j };
    for (int i = 0; i < j->n_gpus; i++) {
        GROW(n->job_gpus, n->n_job_gpus, n->cap_job_gpus);
        n->job_gpus[n->n_job_gpus++] = d->job_gpus[j->first + i];
    }
}

void journal_room(struct assignment *d, int rack)
{
    struct assignment_undo_log *n = d->journal;

    if (!n->is_open)
        return;
    GROW(n->rooms, n->n_rooms, n->cap_rooms);
    n->rooms[n->n_rooms++] = (struct saved_room){ rack, d->rack_room_w[rack] };
}

void assignment_undo(struct assignment *d)
{
    struct assignment_undo_log *n = d->journal;

    assert(n->is_open);
    n->is_open = false;
    for (int i = 0; i < n->n_gpus; i++) {
        lists_leave(d, n->gpus[i].gpu);
        nodes_use(d, n->gpus[i].gpu, 1);
    }
    for (int i = 0; i < n->n_jobs; i++) {
        const struct saved_job *s = &n->jobs[i];
        d->jobs[s->job] = s->was;
        for (int k = 0; k < s->was.n_gpus; k++)
            d->job_gpus[s->was.first + k] = n->job_gpus[s->job_gpus + k];
    }
    for (int i = 0; i < n->n_gpus; i++) {
        d->gpus[n->gpus[i].gpu] = n->gpus[i].was;
        nodes_use(d, n->gpus[i].gpu, -1);
    }
    for (int i = n->n_gpus; i-- > 0;)
        lists_join(d, n->gpus[i].gpu);
    for (int i = n->n_rooms; i-- > 0;)
        d->rack_room_w[n->rooms[i].rack] = n->rooms[i].was;
    d->cost_w = n->cost_w;
    d->room_w = n->room_w;
}

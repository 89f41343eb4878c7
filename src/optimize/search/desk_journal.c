#include "optimize/search/desk_inner.h"

#include <assert.h>

#include "base/grow.h"

void desk_mark(struct desk *d)
{
    struct desk_journal *n = d->journal;

    assert(!n->is_open);
    n->is_open = true;
    n->epoch++;
    n->cost_w = d->cost_w;
    n->room_w = d->room_w;
    n->n_gpus = n->n_jobs = n->n_rooms = n->n_seats = 0;
}

void desk_keep(struct desk *d)
{
    assert(d->journal->is_open);
    d->journal->is_open = false;
}

void journal_gpu(struct desk *d, int gpu)
{
    struct desk_journal *n = d->journal;

    if (!n->is_open || d->gpus[gpu].epoch == n->epoch)
        return;
    d->gpus[gpu].epoch = n->epoch;
    GROW(n->gpus, n->n_gpus, n->cap_gpus);
    n->gpus[n->n_gpus++] = (struct saved_gpu){ gpu, d->gpus[gpu] };
}

void journal_job(struct desk *d, int job)
{
    struct desk_journal *n = d->journal;
    const struct desk_job *j = &d->jobs[job];

    if (!n->is_open || j->epoch == n->epoch)
        return;
    d->jobs[job].epoch = n->epoch;
    GROW(n->jobs, n->n_jobs, n->cap_jobs);
    n->jobs[n->n_jobs++] = (struct saved_job){ job, n->n_seats, *j };
    for (int i = 0; i < j->n_gpus; i++) {
        GROW(n->seats, n->n_seats, n->cap_seats);
        n->seats[n->n_seats++] = d->seats[j->first + i];
    }
}

void journal_room(struct desk *d, int rack)
{
    struct desk_journal *n = d->journal;

    if (!n->is_open)
        return;
    GROW(n->rooms, n->n_rooms, n->cap_rooms);
    n->rooms[n->n_rooms++] = (struct saved_room){ rack, d->rack_room_w[rack] };
}

void desk_undo(struct desk *d)
{
    struct desk_journal *n = d->journal;

    assert(n->is_open);
    n->is_open = false;
    for (int i = 0; i < n->n_gpus; i++)
        lists_leave(d, n->gpus[i].gpu);
    for (int i = 0; i < n->n_jobs; i++) {
        const struct saved_job *s = &n->jobs[i];
        d->jobs[s->job] = s->was;
        for (int k = 0; k < s->was.n_gpus; k++)
            d->seats[s->was.first + k] = n->seats[s->seats + k];
    }
    for (int i = 0; i < n->n_gpus; i++)
        d->gpus[n->gpus[i].gpu] = n->gpus[i].was;
    for (int i = n->n_gpus; i-- > 0;)
        lists_join(d, n->gpus[i].gpu);
    for (int i = n->n_rooms; i-- > 0;)
        d->rack_room_w[n->rooms[i].rack] = n->rooms[i].was;
    d->cost_w = n->cost_w;
    d->room_w = n->room_w;
}

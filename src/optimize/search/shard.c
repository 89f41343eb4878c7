#include "optimize/search/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* ---- who belongs to it ---- */

static bool crosses(const struct shard *s, int job)
{
    const int *gpus = assignment_gpus(s->whole, job);

    for (int i = 1; i < s->whole->jobs[job].n_gpus; i++)
        if (s->shard_of[gpus[i]] != s->shard_of[gpus[0]])
            return true;
    return false;
}

static bool gpu_belongs(const struct shard *s, int gpu)
{
    const struct assignment_gpu *g = &s->whole->gpus[gpu];

    if (s->shard_of[gpu] != s->index)
        return false;
    for (int i = 0; i < g->n_jobs; i++)
        if (crosses(s, g->jobs[i]))
            return false;
    return true;
}

static void take_gpus(struct shard *s)
{
    const struct problem *p = s->whole->problem;
    int n = 0;

    s->local = ARENA_ARRAY(&s->arena, int, (size_t)p->n_gpus);
    for (int g = 0; g < p->n_gpus; g++) {
        s->local[g] = gpu_belongs(s, g) ? n : -1;
        n += s->local[g] >= 0;
    }
    s->problem.n_gpus = n;
    s->problem.gpus = ARENA_ARRAY(&s->arena, struct problem_gpu, (size_t)n);
    s->gpu_of = ARENA_ARRAY(&s->arena, int, (size_t)n);
    for (int g = 0; g < p->n_gpus; g++)
        if (s->local[g] >= 0) {
            s->problem.gpus[s->local[g]] = p->gpus[g];
            s->gpu_of[s->local[g]] = g;
        }
}

/* How many of a job's GPUs are in the shard. */
static int n_here(const struct shard *s, const int *gpus, int n)
{
    int here = 0;

    for (int i = 0; i < n; i++)
        here += s->local[gpus[i]] >= 0;
    return here;
}

static bool job_belongs(const struct shard *s, int job)
{
    const struct assignment_job *j = &s->whole->jobs[job];

    if (!s->whole->problem->jobs[job].name)
        return false;
    if (j->n_gpus == 0)
        return ((uint64_t)job + s->turn) % (uint64_t)s->n_shards == (uint64_t)s->index;
    return n_here(s, assignment_gpus(s->whole, job), j->n_gpus) > 0;
}

/* Its present GPUs as the shard has them. */
static void translate_present(struct shard *s, struct problem_job *j)
{
    int *here = ARENA_ARRAY(&s->arena, int, (size_t)j->n_present), n = 0;

    for (int i = 0; i < j->n_present; i++)
        if (s->local[j->present[i]] >= 0)
            here[n++] = s->local[j->present[i]];
    j->present = here;
    j->n_present = n;
}

static void take_jobs(struct shard *s)
{
    const struct problem *p = s->whole->problem;
    int n = 0;

    for (int j = 0; j < p->n_jobs; j++)
        n += job_belongs(s, j);
    s->problem.jobs = ARENA_ARRAY(&s->arena, struct problem_job, (size_t)n);
    s->job_of = ARENA_ARRAY(&s->arena, int, (size_t)n);
    for (int j = 0; j < p->n_jobs; j++) {
        if (!job_belongs(s, j))
            continue;
        struct problem_job *mine = &s->problem.jobs[s->problem.n_jobs];
        s->job_of[s->problem.n_jobs++] = j;
        *mine = p->jobs[j];
        translate_present(s, mine);
    }
}

/* ---- who is where in it ---- */

/* A job as it stands; what it has elsewhere is held there, and then it does not move here. */
static void place_job(struct shard *s, int job)
{
    const struct assignment *whole = s->whole;
    int global = s->job_of[job], n = 0, gpus[GANG_MAX];
    const struct assignment_job *j = &whole->jobs[global];
    struct assignment_job *mine = &s->assignment->jobs[job];

    mine->is_away = s->problem.jobs[job].n_present < whole->problem->jobs[global].n_present;
    for (int i = 0; i < j->n_gpus; i++) {
        int gpu = whole->job_gpus[j->first + i];
        if (s->local[gpu] >= 0) {
            gpus[n++] = s->local[gpu];
            continue;
        }
        int slot = 0;
        while (whole->gpus[gpu].jobs[slot] != global)
            slot++;
        mine->away = held_add(mine->away, whole->gpus[gpu].held[slot]);
        s->problem.jobs[job].is_fixed = true;
    }
    if (n > 0)
        assignment_force(s->assignment, job, gpus, n, 0);
}

/* What the caps leave is divided, by GPUs, among those that are in any shard. */
static void share_rooms(struct shard *s)
{
    const struct assignment *whole = s->whole;
    const struct problem *p = whole->problem;

    if (!whole->has_caps || s->problem.n_gpus == 0)
        return;
    int n = 0;
    for (int g = 0; g < p->n_gpus; g++)
        n += s->shard_of[g] >= 0;
    s->assignment->room_w = whole->room_w * s->problem.n_gpus / n;
    if (!whole->rack_room_w)
        return;
    int *all = ARENA_ARRAY(&s->arena, int, (size_t)p->n_racks);
    int *mine = ARENA_ARRAY(&s->arena, int, (size_t)p->n_racks);
    for (int g = 0; g < p->n_gpus; g++) {
        all[p->gpus[g].rack] += s->shard_of[g] >= 0;
        mine[p->gpus[g].rack] += s->local[g] >= 0;
    }
    for (int r = 0; r < p->n_racks; r++)
        s->assignment->rack_room_w[r] = mine[r] ? whole->rack_room_w[r] * mine[r] / all[r] : 0;
}

/* What nodes have left likewise, where a node is in several. */
static void share_nodes(struct shard *s)
{
    const struct assignment *whole = s->whole;
    const struct problem *p = whole->problem;

    if (!whole->node_room)
        return;
    int *all = ARENA_ARRAY(&s->arena, int, (size_t)p->n_nodes);
    int *mine = ARENA_ARRAY(&s->arena, int, (size_t)p->n_nodes);
    for (int g = 0; g < p->n_gpus; g++) {
        all[p->gpus[g].node] += s->shard_of[g] >= 0;
        mine[p->gpus[g].node] += s->local[g] >= 0;
    }
    for (int n = 0; n < p->n_nodes; n++) {
        const struct engine_node *left = &whole->node_room[n];
        bool is_whole = mine[n] == all[n];
        s->assignment->node_room[n].cpus = is_whole ? left->cpus : left->cpus / all[n] * mine[n];
        s->assignment->node_room[n].mem_mib =
            is_whole ? left->mem_mib : left->mem_mib / all[n] * mine[n];
    }
}

struct shard *shard_create(const struct assignment *whole, const int *shard_of, int n_shards,
                           int index, uint64_t turn)
{
    struct shard *s = heap_array(1, sizeof *s);

    *s = (struct shard){
        .whole = whole, .shard_of = shard_of, .n_shards = n_shards, .index = index, .turn = turn
    };
    s->problem = *whole->problem;
    s->problem.n_gpus = s->problem.n_jobs = 0;
    take_gpus(s);
    take_jobs(s);
    s->assignment = assignment_create_with(&s->problem, whole->tables);
    for (int j = 0; j < s->problem.n_jobs; j++)
        place_job(s, j);
    for (int g = 0; g < s->problem.n_gpus; g++)
        if (s->assignment->gpus[g].n_jobs > 0)
            assignment_force_limit(s->assignment, g, whole->gpus[s->gpu_of[g]].limit);
    share_rooms(s);
    share_nodes(s);
    return s;
}

void shard_destroy(struct shard *s)
{
    if (!s)
        return;
    assignment_destroy(s->assignment);
    arena_release(&s->arena);
    free(s);
}

/* ---- bringing it home ---- */

/* In the same order, too: the whole becomes exactly what the shard has. */
static bool sits_the_same(const struct assignment *whole, const struct shard *s, int job)
{
    const struct assignment_job *theirs = &whole->jobs[s->job_of[job]],
                                *mine = &s->assignment->jobs[job];

    if (theirs->n_gpus != mine->n_gpus)
        return false;
    for (int i = 0; i < mine->n_gpus; i++)
        if (whole->job_gpus[theirs->first + i] !=
            s->gpu_of[s->assignment->job_gpus[mine->first + i]])
            return false;
    return true;
}

void shard_apply(struct assignment *whole, const struct shard *s)
{
    bool *moved = heap_array((size_t)s->problem.n_jobs, sizeof *moved);

    for (int j = 0; j < s->problem.n_jobs; j++) {
        moved[j] = !s->problem.jobs[j].is_fixed && !sits_the_same(whole, s, j);
        if (moved[j] && whole->jobs[s->job_of[j]].n_gpus > 0)
            assignment_force_away(whole, s->job_of[j]);
    }
    for (int j = 0; j < s->problem.n_jobs; j++) {
        int gpus[GANG_MAX], n = s->assignment->jobs[j].n_gpus;
        for (int i = 0; moved[j] && i < n; i++)
            gpus[i] = s->gpu_of[assignment_gpus(s->assignment, j)[i]];
        if (moved[j] && n > 0)
            assignment_force(whole, s->job_of[j], gpus, n, 0);
    }
    for (int g = 0; g < s->problem.n_gpus; g++)
        if (s->assignment->gpus[g].n_jobs > 0)
            assignment_force_limit(whole, s->gpu_of[g], s->assignment->gpus[g].limit);
    free(moved);
}

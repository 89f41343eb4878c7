#include "study/stays.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "catalog/cluster/job.h"
#include "catalog/cluster/state.h"
#include "study/run.h"

void stays_init(struct stays *s)
{
    *s = (struct stays){ 0 };
}

void stays_release(struct stays *s)
{
    free(s->list);
    stays_init(s);
}

static bool goes_on(const struct run_stay *stay, const struct state *state)
{
    const struct gpu *g = &state->gpus[stay->gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        if (g->jobs[i] == stay->job)
            return state->jobs[stay->job]->limit_w == stay->limit_w;
    }
    return false;
}

static bool is_open(const struct stays *s, int gpu, int job)
{
    for (int i = s->first_open; i < s->n; i++) {
        const struct run_stay *stay = &s->list[i];

        if (stay->gpu == gpu && stay->job == job && isnan(stay->to_s))
            return true;
    }
    return false;
}

static void open_stay(struct stays *s, const struct state *state, int gpu, int job, double now_s)
{
    GROW(s->list, s->n, s->cap);
    s->list[s->n++] = (struct run_stay){
        .gpu = gpu,
        .job = job,
        .limit_w = state->jobs[job]->limit_w,
        .from_s = now_s,
        .to_s = NAN,
    };
}

void stays_look(struct stays *s, const struct state *state, double now_s)
{
    for (int i = s->first_open; i < s->n; i++) {
        if (isnan(s->list[i].to_s) && !goes_on(&s->list[i], state))
            s->list[i].to_s = now_s;
    }
    while (s->first_open < s->n && !isnan(s->list[s->first_open].to_s))
        s->first_open++;
    for (int g = 0; g < state->n_gpus; g++) {
        for (int i = 0; i < state->gpus[g].n_jobs; i++) {
            if (!is_open(s, g, state->gpus[g].jobs[i]))
                open_stay(s, state, g, state->gpus[g].jobs[i], now_s);
        }
    }
}

static int by_gpu_then_time(const void *a, const void *b)
{
    const struct run_stay *x = a, *y = b;

    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->from_s != y->from_s)
        return x->from_s < y->from_s ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

void stays_end(struct stays *s, double now_s, struct arena *a, struct run_result *out)
{
    for (int i = s->first_open; i < s->n; i++) {
        if (isnan(s->list[i].to_s))
            s->list[i].to_s = now_s;
    }
    out->n_stays = s->n;
    out->stays = ARENA_ARRAY(a, struct run_stay, (size_t)s->n);
    if (s->n == 0)
        return;
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_gpu_then_time);
    memcpy(out->stays, s->list, (size_t)s->n * sizeof *s->list);
}

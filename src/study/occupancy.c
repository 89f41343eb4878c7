#include "study/occupancy.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "catalog/cluster/job.h"
#include "catalog/cluster/state.h"
#include "study/run.h"

static bool goes_on(const struct study_interval *interval, const struct state *state)
{
    const struct gpu *g = &state->gpus[interval->gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        if (g->jobs[i] == interval->job)
            return state->jobs[interval->job]->limit_w == interval->limit_w;
    }
    return false;
}

static bool is_open(const struct occupancy *s, int gpu, int job)
{
    for (int i = s->first_open; i < s->n; i++) {
        const struct study_interval *interval = &s->list[i];

        if (interval->gpu == gpu && interval->job == job && isnan(interval->to_s))
            return true;
    }
    return false;
}

static void open_interval(struct occupancy *s, const struct state *state, int gpu, int job,
                          double now_s)
{
    ARENA_GROW(s->arena, s->list, s->n, s->cap);
    s->list[s->n++] = (struct study_interval){
        .gpu = gpu,
        .job = job,
        .limit_w = state->jobs[job]->limit_w,
        .from_s = now_s,
        .to_s = NAN,
    };
}

void occupancy_update(struct occupancy *s, const struct state *state, double now_s)
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
                open_interval(s, state, g, state->gpus[g].jobs[i], now_s);
        }
    }
}

static int by_gpu_then_time(const void *a, const void *b)
{
    const struct study_interval *x = a, *y = b;

    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->from_s != y->from_s)
        return x->from_s < y->from_s ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

void occupancy_end(struct occupancy *s, double now_s, struct study_result *out)
{
    for (int i = s->first_open; i < s->n; i++) {
        if (isnan(s->list[i].to_s))
            s->list[i].to_s = now_s;
    }
    if (s->n > 0)
        qsort(s->list, (size_t)s->n, sizeof *s->list, by_gpu_then_time);
    out->n_intervals = s->n;
    out->intervals = s->list;
}

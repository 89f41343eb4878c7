#include "optimize/files/problem_split.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/model/problem.h"

struct split {
    struct arena *arena;
    struct problem *p;
    int n_old;
    struct problem_kind *kinds;    // the old ones first
    int *of;                       // (n) which old one it was made of
    int *next;                     // (n) the next that was made of the same; -1: the last
    int n;
};

/* The kind like 'kind' at this price; made where there is none. */
static int kind_at(struct split *s, int kind, double time_w)
{
    int k = kind, last = kind;

    for (; k >= 0; k = s->next[k]) {
        if (s->kinds[k].time_w == time_w)
            return k;
        last = k;
    }
    k = s->n++;
    s->kinds[k] = s->kinds[kind];
    s->kinds[k].time_w = time_w;
    s->kinds[k].name = arena_printf(s->arena, "%s at %.15g W", s->kinds[kind].name, time_w);
    s->of[k] = kind;
    s->next[k] = -1;
    s->next[last] = k;
    return k;
}

/* A table of cells, by what the kinds were. */
static float *widen(const struct split *s, const float *from)
{
    const struct problem *p = s->p;
    size_t n = (size_t)s->n, width = n + 1;
    float *to = ARENA_ARRAY(s->arena, float, (size_t)p->n_types *n *width);

    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < s->n; k++) {
            const float *row = from + ((long)t * s->n_old + s->of[k]) * (s->n_old + 1);
            float *out = to + ((size_t)t * n + (size_t)k) * width;
            out[0] = row[0];
            for (int b = 0; b < s->n; b++)
                out[b + 1] = row[s->of[b] + 1];
        }
    return to;
}

static float *widen_watts(const struct split *s)
{
    float *to = ARENA_ARRAY(s->arena, float, (size_t)s->p->n_types *(size_t)s->n);

    for (int t = 0; t < s->p->n_types; t++)
        for (int k = 0; k < s->n; k++)
            to[t * s->n + k] = s->p->watts[t * s->n_old + s->of[k]];
    return to;
}

const int *problem_split(struct arena *a, struct problem *p, const double *time_w, long cells_most)
{
    size_t most = (size_t)p->n_kinds + (size_t)p->n_jobs;
    struct split s = { .arena = a, .p = p, .n_old = p->n_kinds, .n = p->n_kinds };
    int *kind_of = ARENA_ARRAY(a, int, (size_t)p->n_jobs);

    s.kinds = ARENA_ARRAY(a, struct problem_kind, most);
    s.of = ARENA_ARRAY(a, int, most);
    s.next = ARENA_ARRAY(a, int, most);
    memcpy(s.kinds, p->kinds, (size_t)p->n_kinds * sizeof *s.kinds);
    for (int k = 0; k < p->n_kinds; k++) {
        s.of[k] = k;
        s.next[k] = -1;
    }
    for (int j = 0; j < p->n_jobs; j++) {
        kind_of[j] = p->jobs[j].kind;
        if (p->jobs[j].name && !isnan(time_w[j]))
            kind_of[j] = kind_at(&s, p->jobs[j].kind, time_w[j]);
    }
    if ((double)p->n_types * s.n * (s.n + 1) > (double)cells_most)
        return NULL;
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].kind = kind_of[j];
    p->speed = widen(&s, p->speed);
    p->low = widen(&s, p->low);
    p->watts = widen_watts(&s);
    p->kinds = s.kinds;
    p->n_kinds = s.n;
    return s.of;
}

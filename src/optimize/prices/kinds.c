#include "optimize/prices/kinds.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/model/problem.h"

/* Neighbours by whom slowdowns are compared: all of them when there are few. */
#define NEIGHBOURS 24

/* A cell where a kind never runs, as a logarithm: far from every other. */
#define NEVER (-60.0F)

struct shapes {
    int n_features;
    float *feature;    // (n_kinds, n_features) logarithms
    float *level;      // (n_kinds) mean ln speed, taken out of its shape
};

static float ln_or_never(double x)
{
    return x > 0 ? (float)log(x) : NEVER;
}

static bool fits(const struct problem *p, int type, int kind)
{
    return p->speed[problem_cell(p, type, kind, -1)] > 0 &&
           p->kinds[kind].mem_gib <= p->types[type].mem_gib;
}

/* What a kind that fits holds alone there; where nothing of it is certain, hardly anything. */
static double held(const struct problem *p, int type, int kind)
{
    long cell = problem_cell(p, type, kind, -1);

    return p->low[cell] > 0 ? (double)p->low[cell] : 1e-30 * (double)p->speed[cell];
}

/* Mean ln speed over the types where it runs. */
static float level_of(const struct problem *p, int kind)
{
    double sum = 0;
    int n = 0;

    for (int t = 0; t < p->n_types; t++)
        if (fits(p, t, kind)) {
            sum += log(held(p, t, kind));
            n++;
        }
    return n ? (float)(sum / n) : 0;
}

static float slowdown(const struct problem *p, int type, int kind, int beside)
{
    double alone = (double)p->speed[problem_cell(p, type, kind, -1)];
    double both = p->kinds[kind].mem_gib + p->kinds[beside].mem_gib;

    if (both > p->types[type].mem_gib || !(alone > 0))
        return NEVER;
    return ln_or_never((double)p->low[problem_cell(p, type, kind, beside)] / alone);
}

/* Speeds but for the level, watts, what a step is worth, and slowdowns both ways. */
static void describe(const struct problem *p, int kind, const int *near, int n_near, float *out,
                     float level)
{
    *out++ = p->kinds[kind].value_j > 0 ? (float)log(p->kinds[kind].value_j) + level : NEVER;
    *out++ = p->kinds[kind].rate > 0 ? (float)log(p->kinds[kind].rate) - level : NEVER;
    for (int t = 0; t < p->n_types; t++) {
        bool does = fits(p, t, kind);
        *out++ = does ? (float)log(held(p, t, kind)) - level : NEVER;
        *out++ = does ? ln_or_never((double)p->watts[t * p->n_kinds + kind]) : NEVER;
        for (int i = 0; i < n_near; i++) {
            *out++ = does ? slowdown(p, t, kind, near[i]) : NEVER;
            *out++ = does ? slowdown(p, t, near[i], kind) : NEVER;
        }
    }
}

static void shapes_make(struct arena *a, const struct problem *p, const int *live, int n_live,
                        struct shapes *s)
{
    int n_near = n_live < NEIGHBOURS ? n_live : NEIGHBOURS;
    int near[NEIGHBOURS];

    for (int i = 0; i < n_near; i++)
        near[i] = live[(long)i * n_live / n_near];
    s->n_features = 2 + p->n_types * (2 + 2 * n_near);
    s->feature = ARENA_ARRAY(a, float, (size_t)n_live *(size_t)s->n_features);
    s->level = ARENA_ARRAY(a, float, (size_t)n_live);
    for (int i = 0; i < n_live; i++) {
        s->level[i] = level_of(p, live[i]);
        describe(p, live[i], near, n_near, s->feature + (long)i * s->n_features, s->level[i]);
    }
}

/* The largest difference of two shapes. */
static float apart(const struct shapes *s, int i, int k)
{
    const float *x = s->feature + (long)i * s->n_features;
    const float *y = s->feature + (long)k * s->n_features;
    float most = 0;

    for (int f = 0; f < s->n_features; f++)
        most = fmaxf(most, fabsf(x[f] - y[f]));
    return most;
}

static int live_kinds(struct arena *a, const struct problem *p, int **out)
{
    bool *has = ARENA_ARRAY(a, bool, (size_t)p->n_kinds);
    int n = 0;

    *out = ARENA_ARRAY(a, int, (size_t)p->n_kinds);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            has[p->jobs[j].kind] = true;
    for (int k = 0; k < p->n_kinds; k++)
        if (has[k])
            (*out)[n++] = k;
    return n;
}

/* Farthest first: whoever is worst represented gets a cluster of his own (Gonzalez 1985). */
void kinds_cluster(struct arena *a, const struct problem *p, double tolerance, int most,
                   struct kinds *out)
{
    struct shapes s;
    int *live, n_live = live_kinds(a, p, &live);
    float *far = ARENA_ARRAY(a, float, (size_t)n_live);
    int *leader = ARENA_ARRAY(a, int, (size_t)n_live);    // index into live
    int *leads = ARENA_ARRAY(a, int, (size_t)n_live);     // the cluster it leads

    *out = (struct kinds){ .rep = ARENA_ARRAY(a, int, (size_t)n_live),
                           .of = ARENA_ARRAY(a, int, (size_t)p->n_kinds),
                           .scale = ARENA_ARRAY(a, double, (size_t)p->n_kinds) };
    memset(out->of, -1, (size_t)p->n_kinds * sizeof *out->of);
    shapes_make(a, p, live, n_live, &s);
    for (int i = 0; i < n_live; i++)
        far[i] = INFINITY;
    for (int next = 0; n_live && out->n < most;) {
        leads[next] = out->n;
        out->rep[out->n++] = live[next];
        int worst = 0;
        for (int i = 0; i < n_live; i++) {
            float d = far[i] > 0 ? apart(&s, i, next) : 0;
            if (d < far[i] || i == next) {
                far[i] = i == next ? 0 : d;
                leader[i] = next;
            }
            if (far[i] > far[worst])
                worst = i;
        }
        out->spread = exp((double)far[worst]) - 1;
        if ((double)far[worst] <= log1p(tolerance))
            break;
        next = worst;
    }
    for (int i = 0; i < n_live; i++) {
        out->of[live[i]] = leads[leader[i]];
        out->scale[live[i]] = exp((double)(s.level[i] - s.level[leader[i]]));
        if (leader[i] == i)
            out->scale[live[i]] = 1;
    }
}

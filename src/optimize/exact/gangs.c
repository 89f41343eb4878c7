/* Columns of the exact program for gangs: how many GPUs, and where from. */
#include "optimize/exact/program.h"

#include <math.h>

#include "base/clock.h"

/* Where its GPUs may come from. Those of one node are neighbours in the list. */
struct mustering {
    struct program *x;
    struct wish *w;
    struct column column;
    int type;
    int n_sources, *sources;    // places
    double least_price_w;       // of a GPU there, waking included
    int part;                   // GPUs on each node; 0: as it comes
};

static double gpu_w(const struct mustering *s, const struct place *place)
{
    return place->gpu_w + place->watt_w * s->column.over_w;
}

/* And what waking it for the gang costs. */
static double wake_w(const struct mustering *s, const struct place *place)
{
    return problem_wake_w(s->x->p, &s->x->p->jobs[s->column.job], place->gpu);
}

/* 'left' more GPUs from sources from 'from' on; 'here' are taken on 'node'. */
static void gang_take(struct mustering *s, int from, int left, int here, int node, double reduced_w)
{
    struct program *x = s->x;
    struct column *c = &s->column;

    if (left == 0)
        wish_show(s->w, c, reduced_w);
    if (left == 0 || reduced_w + left * s->least_price_w > s->w->most_w)
        return;
    x->is_cut_short |= clock_stopwatch_s() > x->until_s || c->n_shares == SHARE_MAX;
    for (int i = from; i < s->n_sources && !x->is_cut_short; i++) {
        const struct place *place = &x->places[s->sources[i]];
        int n_there = place->node == node ? here : 0, most = s->part ? s->part - n_there : left;
        if (s->part && place->node != node && here > 0 && here < s->part)
            return;    // nodes get equal parts
        double woken_w = wake_w(s, place), price_w = gpu_w(s, place) + woken_w;
        for (int m = 1; m <= most && m <= left && m <= place->n; m++) {
            c->shares[c->n_shares].place = s->sources[i];
            c->shares[c->n_shares++].n = m;
            c->cost_w += m * woken_w;
            gang_take(s, i + 1, left - m, n_there + m, place->node, reduced_w + m * price_w);
            c->cost_w -= m * woken_w;
            c->n_shares--;
        }
    }
}

/* What a gang of this size costs so; its places come on top. False: it must not run so. */
static bool gang_begin(struct mustering *s, bool is_near, double *reduced_w)
{
    const struct program *x = s->x;
    struct column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    struct yield y;

    if (!problem_gang_yield(x->p, s->type, c->limit, j->kind, c->n, is_near, &y))
        return false;
    c->cost_w = y.cost_w + problem_short_w(j, y.low[0]) + (c->stays ? 0 : job_fee_w(j));
    c->over_w = (y.watts / c->n - x->p->types[s->type].idle_w) * x->p->watts_margin;
    *reduced_w = c->cost_w - x->dual[c->job];
    return true;
}

static void source_add(struct mustering *s, int at)
{
    const struct place *place = &s->x->places[at];
    int i = s->n_sources++;

    for (; i > 0 && s->x->places[s->sources[i - 1]].node > place->node; i--)
        s->sources[i] = s->sources[i - 1];
    s->sources[i] = at;
    s->least_price_w = fmin(s->least_price_w, gpu_w(s, place) + wake_w(s, place));
}

/* Any GPUs of the type, or equal parts of rooms; and those it holds that take nobody new. */
static void gang_go(struct mustering *s, bool is_near, int n_nodes)
{
    const struct program *x = s->x;
    const struct problem_job *j = &x->p->jobs[s->column.job];
    double reduced_w;

    s->column.stays = false;
    if (!gang_begin(s, is_near, &reduced_w))
        return;
    s->part = n_nodes ? s->column.n / n_nodes : 0;
    s->n_sources = 0;
    s->least_price_w = HUGE_VAL;
    for (int i = 0; i < x->n_places; i++) {
        const struct place *place = &x->places[i];
        if (place->type == s->type && place->level == (n_nodes > 0 ? PLACE_ROOM : PLACE_GROUP))
            source_add(s, i);
    }
    for (int i = 0; i < j->n_present; i++)
        if (x->p->gpus[j->present[i]].type == s->type && !x->p->gpus[j->present[i]].may_start)
            source_add(s, x->place_of[PLACE_GPU][j->present[i]]);
    gang_take(s, 0, s->column.n, 0, -1, reduced_w);
}

static void gang_stay(struct mustering *s)
{
    const struct problem *p = s->x->p;
    const struct problem_job *j = &p->jobs[s->column.job];
    double reduced_w;

    if (j->n_present < 2 || p->gpus[j->present[0]].type != s->type)
        return;
    s->column.n = j->n_present;
    s->column.stays = true;
    if (!gang_begin(s, problem_stands(p, j->present, j->n_present, 1), &reduced_w))
        return;
    for (int i = 0; i < j->n_present; i++)
        reduced_w += gpu_w(s, &s->x->places[s->x->place_of[PLACE_GPU][j->present[i]]]);
    wish_show(s->w, &s->column, reduced_w);
}

/* One type, one setting: it stays, or takes any size. */
static void gang_on(struct mustering *s)
{
    const struct problem *p = s->x->p;
    const struct problem_job *j = &p->jobs[s->column.job];

    gang_stay(s);
    for (int n = j->n_min > 2 ? j->n_min : 2; n <= j->n_max && !j->is_fixed; n++) {
        s->column.n = n;
        if (j->n_nodes == 1 || (j->n_nodes == 0 && p->gang_near[n] != p->gang_far[n]))
            gang_go(s, true, 1);
        if (j->n_nodes != 1)
            gang_go(s, false, j->n_nodes);
    }
}

void program_gang(struct program *x, int job, struct wish *w)
{
    const struct problem_job *j = &x->p->jobs[job];
    struct mustering s = { .x = x, .w = w, .sources = x->sources };

    if (!j->name || j->form != FORM_GANG || j->n_max < 2)
        return;
    for (s.type = 0; s.type < x->p->n_types; s.type++)
        for (int limit = 0; limit < x->p->types[s.type].n_limits; limit++) {
            if (!problem_allows(j, s.type))
                continue;
            s.column = (struct column){ .form = COLUMN_GANG, .job = job, .limit = limit };
            gang_on(&s);
        }
}

/* Columns of the exact program for gangs: how many GPUs, and where from. */
#include "optimize/exact/program.h"

#include <math.h>

#include "base/clock.h"

/* Where its GPUs may come from. Those of one node are neighbours in the list. */
struct gang_pricing {
    struct exact_program *x;
    struct column_filter *w;
    struct exact_column column;
    int type;
    int n_sources, *sources;    // places
    double least_price_w;       // of a GPU there, waking included
    int part;                   // GPUs on each node; 0: as it comes
};

static double gpu_w(const struct gang_pricing *s, const struct gpu_group *group)
{
    return group->gpu_w + group->watt_w * s->column.over_w;
}

/* And what waking it for the gang costs. */
static double wake_w(const struct gang_pricing *s, const struct gpu_group *group)
{
    return problem_come_w(s->x->p, &s->x->p->jobs[s->column.job], group->gpu);
}

/* 'left' more GPUs from sources from 'from' on; 'here' are taken on 'node'. */
static void gang_take(struct gang_pricing *s, int from, int left, int here, int node,
                      double reduced_w)
{
    struct exact_program *x = s->x;
    struct exact_column *c = &s->column;

    if (left == 0)
        filter_offer(s->w, c, reduced_w);
    if (left == 0 || reduced_w + left * s->least_price_w > s->w->most_w)
        return;
    x->is_cut_short |= clock_stopwatch_s() > x->until_s || c->n_shares == SHARE_MAX;
    for (int i = from; i < s->n_sources && !x->is_cut_short; i++) {
        const struct gpu_group *group = &x->groups[s->sources[i]];
        int n_there = group->node == node ? here : 0, most = s->part ? s->part - n_there : left;
        if (s->part && group->node != node && here > 0 && here < s->part)
            return;    // nodes get equal parts
        double woken_w = wake_w(s, group), price_w = gpu_w(s, group) + woken_w;
        for (int m = 1; m <= most && m <= left && m <= group->n; m++) {
            c->shares[c->n_shares].group = s->sources[i];
            c->shares[c->n_shares++].n = m;
            c->cost_w += m * woken_w;
            gang_take(s, i + 1, left - m, n_there + m, group->node, reduced_w + m * price_w);
            c->cost_w -= m * woken_w;
            c->n_shares--;
        }
    }
}

/* What a gang of this size costs so; its places come on top. False: it must not run so. */
static bool gang_begin(struct gang_pricing *s, bool is_near, double *reduced_w)
{
    const struct exact_program *x = s->x;
    struct exact_column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    struct yield y;

    if (!problem_gang_yield(x->p, s->type, c->limit, j->kind, c->n, is_near, &y))
        return false;
    c->cost_w = y.cost_w + problem_short_w(x->p, j, y.held[0]) + (c->stays ? 0 : job_fee_w(j));
    c->over_w = (y.watts / c->n - x->p->types[s->type].idle_w) * x->p->watts_margin;
    *reduced_w = c->cost_w - x->dual[c->job];
    return true;
}

static void source_add(struct gang_pricing *s, int at)
{
    const struct gpu_group *group = &s->x->groups[at];
    int i = s->n_sources++;

    for (; i > 0 && s->x->groups[s->sources[i - 1]].node > group->node; i--)
        s->sources[i] = s->sources[i - 1];
    s->sources[i] = at;
    s->least_price_w = fmin(s->least_price_w, gpu_w(s, group) + wake_w(s, group));
}

/* Any GPUs of the type, or equal parts of rooms; and those it holds that take nobody new. */
static void gang_go(struct gang_pricing *s, bool is_near, int n_nodes)
{
    const struct exact_program *x = s->x;
    const struct problem_job *j = &x->p->jobs[s->column.job];
    double reduced_w;

    s->column.stays = false;
    if (!gang_begin(s, is_near, &reduced_w))
        return;
    s->part = n_nodes ? s->column.n / n_nodes : 0;
    s->n_sources = 0;
    s->least_price_w = HUGE_VAL;
    for (int i = 0; i < x->n_groups; i++) {
        const struct gpu_group *group = &x->groups[i];
        if (group->type == s->type && group->level == (n_nodes > 0 ? GROUP_NODE : GROUP_TYPE))
            source_add(s, i);
    }
    for (int i = 0; i < j->n_present; i++)
        if (x->p->gpus[j->present[i]].type == s->type && !x->p->gpus[j->present[i]].may_start)
            source_add(s, x->group_of[GROUP_GPU][j->present[i]]);
    gang_take(s, 0, s->column.n, 0, -1, reduced_w);
}

static void gang_stay(struct gang_pricing *s)
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
        reduced_w += gpu_w(s, &s->x->groups[s->x->group_of[GROUP_GPU][j->present[i]]]);
    filter_offer(s->w, &s->column, reduced_w);
}

/* One type, one setting: it stays, or takes any size. */
static void gang_on(struct gang_pricing *s)
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

void program_gang(struct exact_program *x, int job, struct column_filter *w)
{
    const struct problem_job *j = &x->p->jobs[job];
    struct gang_pricing s = { .x = x, .w = w, .sources = x->sources };

    if (!j->name || j->form != FORM_GANG || j->n_max < 2)
        return;
    for (s.type = 0; s.type < x->p->n_types; s.type++)
        for (int limit = 0; limit < x->p->types[s.type].n_limits; limit++) {
            if (!problem_allows(j, s.type))
                continue;
            s.column = (struct exact_column){ .form = COLUMN_GANG, .job = job, .limit = limit };
            gang_on(&s);
        }
}

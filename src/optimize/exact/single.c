/* Columns of the exact program on one GPU: who shares it, and under which setting. */
#include "optimize/exact/program.h"

#include <math.h>

#include "base/clock.h"

struct single_pricing {
    struct exact_program *x;
    struct column_filter *w;
    const struct gpu_group *group;
    struct exact_column column;
    int kinds[THETA_MAX];
    int n_own;    // of those chosen; the others come
};

/* What a resident pays by itself on a GPU of a group: waking it; and what it misses and its move,
 * for which classes and spread jobs have columns of their own.
 */
static double resident_w(const struct exact_program *x, const struct gpu_group *group,
                         const struct resident *resident, double low)
{
    const struct problem_job *j = &x->p->jobs[resident->job];
    double w = resident->stays ? 0 : problem_come_w(x->p, j, group->gpu);

    if (resident->class >= 0 || is_spread(j))
        return w;
    return w + problem_least_short_w(j, low) + (resident->stays ? 0 : job_fee_w(j));
}

/* What it brings there at the present duals, less that; -HUGE_VAL: it is not there. */
static double resident_worth(const struct exact_program *x, const struct gpu_group *group,
                             const struct resident *resident, double low)
{
    double w = -resident_w(x, group, resident, low), need = x->p->jobs[resident->job].need;
    const struct promise_row *h = program_promises(x, resident->job);

    if (resident->class >= 0) {
        int n = class_levels(&x->classes[resident->class], low);
        return n > 0 ? w + x->classes[resident->class].worth[n - 1] : -HUGE_VAL;
    }
    if (resident->is_short && low >= need)
        return -HUGE_VAL;
    for (int i = 0; i < x->n_promises[resident->job]; i++)
        w += x->dual[h[i].row] * promise_part(&h[i], low, need);
    return w + x->dual[resident->row];
}

static bool has_job(const struct exact_column *c, int n, int job)
{
    for (int i = 0; i < n; i++)
        if (c->residents[i].class < 0 && c->residents[i].job == job)
            return true;
    return false;
}

/* May the resident be the i-th, of n? No job is there twice. */
static bool may_join(const struct single_pricing *s, const struct resident *resident, int i, int n)
{
    const struct problem_job *j = &s->x->p->jobs[resident->job];
    int same = 0;

    if ((j->is_exclusive && n > 1) || !problem_allows(j, s->group->type))
        return false;
    if (resident->class < 0)
        return !has_job(&s->column, i, resident->job);
    for (int k = 0; k < i; k++)
        same += s->column.residents[k].class == resident->class;
    return same < s->x->classes[resident->class].n;
}

static bool is_alone(const struct single_pricing *s, int i)
{
    return s->x->p->jobs[s->column.residents[i].job].is_exclusive;
}

static void single_offer(struct single_pricing *s, const struct yield *y, int n, double reduced_w)
{
    struct exact_column *c = &s->column;

    c->n = n;
    c->cost_w = y->cost_w;
    c->over_w = (y->watts - s->x->p->types[s->group->type].idle_w) * s->x->p->watts_margin;
    for (int i = 0; i < n; i++) {
        c->low[i] = y->held[i].mean;
        c->cost_w += resident_w(s->x, s->group, &c->residents[i], y->held[i].mean);
    }
    filter_offer(s->w, c, reduced_w);
}

/* Fill the GPU from the i-th on; best[i] is the most that those from i on can bring. */
static void single_fill(struct single_pricing *s, const struct yield *y, int i, int n, int from,
                        double reduced_w, const double *best)
{
    const struct exact_program *x = s->x;

    if (i == n) {
        single_offer(s, y, n, reduced_w);
        return;
    }
    if (i == s->n_own || s->kinds[i] != s->kinds[i - 1])
        from = x->first_resident[s->kinds[i]];
    for (int k = from; k < x->first_resident[s->kinds[i] + 1]; k++) {
        double rest_w = reduced_w - resident_worth(x, s->group, &x->residents[k], y->held[i].mean);
        if (rest_w - best[i + 1] > s->w->most_w || !may_join(s, &x->residents[k], i, n))
            continue;
        s->column.residents[i] = x->residents[k];
        single_fill(s, y, i + 1, n, k, rest_w, best);
    }
}

/* The most that anybody of the kind can bring. */
static double kind_worth(const struct single_pricing *s, int kind, double low)
{
    const struct exact_program *x = s->x;
    double most = -HUGE_VAL;

    for (int k = x->first_resident[kind]; k < x->first_resident[kind + 1]; k++)
        most = fmax(most, resident_worth(x, s->group, &x->residents[k], low));
    return most;
}

/* These kinds, whoever they are. */
static void single_of_kinds(struct single_pricing *s, const struct yield *y, int n)
{
    double best[THETA_MAX + 1] = { 0 };
    double over_w = (y->watts - s->x->p->types[s->group->type].idle_w) * s->x->p->watts_margin;
    double reduced_w = y->cost_w + s->group->gpu_w + s->group->watt_w * over_w;

    for (int i = 0; i < s->n_own; i++)
        reduced_w -= resident_worth(s->x, s->group, &s->column.residents[i], y->held[i].mean);
    for (int i = n - 1; i >= s->n_own; i--)
        best[i] = best[i + 1] + kind_worth(s, s->kinds[i], y->held[i].mean);
    if (reduced_w - best[s->n_own] <= s->w->most_w)
        single_fill(s, y, s->n_own, n, 0, reduced_w, best);
}

/* With n kinds so far, and any more from 'from' on. What must not run together must not do so with
 * another beside it.
 */
static void single_with(struct single_pricing *s, int n, int from)
{
    struct exact_program *x = s->x;
    struct yield y;

    if (n > 0 && !problem_yield(x->p, s->group->type, s->column.limit, s->kinds, n, &y))
        return;
    if (n > 0)
        single_of_kinds(s, &y, n);
    if (n >= x->p->theta || !x->p->gpus[s->group->gpu].may_start || (s->n_own && is_alone(s, 0)))
        return;
    x->is_cut_short |= clock_stopwatch_s() > x->until_s;
    for (int k = from; k < x->p->n_kinds && !x->is_cut_short; k++) {
        if (x->first_resident[k] == x->first_resident[k + 1])
            continue;
        s->kinds[n] = k;
        single_with(s, n + 1, k);
    }
}

/* Some of those who may be here only because they are now; false: they must not be together. */
static bool choose_own(struct single_pricing *s, unsigned mask)
{
    bool is_any_alone = false;

    s->n_own = 0;
    for (int i = 0; i < s->group->n_own; i++) {
        const struct resident *own = &s->group->own[i];
        if (!(mask >> i & 1))
            continue;
        if (s->n_own == s->x->p->theta || has_job(&s->column, s->n_own, own->job))
            return false;
        s->column.residents[s->n_own] = *own;
        s->kinds[s->n_own] = s->x->p->jobs[own->job].kind;
        is_any_alone |= is_alone(s, s->n_own++);
    }
    return s->n_own < 2 || !is_any_alone;
}

void program_single(struct exact_program *x, int group, struct column_filter *w)
{
    struct single_pricing s = { .x = x, .w = w, .group = &x->groups[group] };

    if (s.group->level == GROUP_NODE)
        return;    // only gangs
    s.column = (struct exact_column){ .form = COLUMN_SINGLE, .job = -1, .n_shares = 1 };
    s.column.shares[0].group = group;
    s.column.shares[0].n = 1;
    for (int limit = 0; limit < x->p->types[s.group->type].n_limits; limit++) {
        s.column.limit = limit;
        for (unsigned mask = s.group->level == GROUP_GPU; mask < 1U << s.group->n_own; mask++)
            if (choose_own(&s, mask))
                single_with(&s, s.n_own, 0);
    }
}

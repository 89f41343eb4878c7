/* Patterns: which slots a spread job takes, one for each part. */
#include "optimize/exact/exact_inner.h"

#include <math.h>

#include "base/arena.h"

/* Patterns of one job: shown, and looked at. A job with more is handled loosely. */
#define SHOWN_MOST 300
#define SEEN_MOST 2000000

/* What one part may hold, and what that costs. */
struct offer {
    int n;
    double *low, *worth;    // (n) ascending both
};

struct weaving {
    struct exact *x;
    const struct column_wish *w;
    struct column column;
    const struct offer *offers;    // of each part when it stays; of every part when it goes
    const struct problem_job *job;
    double base_w;    // moving, less what the job is worth
    double lows[GANG_MAX];
    int index[GANG_MAX];
    double best_lows[GANG_MAX];
    struct column best;
    double least_w, best_w;
    bool is_trial;    // only count
    int n_shown;
    long n_seen;
    bool is_over;    // too many
};

static const struct offer *offer_of(const struct weaving *s, int part)
{
    return s->column.is_stay ? &s->offers[part] : s->offers;
}

/* A pattern that keeps the promise is of use only if no part could do with less. */
static bool is_lean(const struct weaving *s, int n, double sum)
{
    if (sum < s->job->need)
        return true;
    for (int i = 0; i < n; i++) {
        const struct offer *o = offer_of(s, i);
        int at = s->index[i];
        if (at > 0 && sum - o->low[at] + o->low[at - 1] >= s->job->need)
            return false;
    }
    return true;
}

static void pattern_show(struct weaving *s, int n, double sum, double price)
{
    double short_w = problem_short_w(s->job, sum);
    double reduced_w = s->base_w + short_w + price;

    s->least_w = fmin(s->least_w, reduced_w);
    if (reduced_w > s->w->most_w || (s->w->is_best_only && reduced_w >= s->best_w))
        return;
    if (!s->w->is_best_only && !is_lean(s, n, sum))
        return;
    s->is_over |= ++s->n_shown > SHOWN_MOST && s->is_trial;
    if (s->is_trial)
        return;
    s->column.n = n;
    s->column.cost_w = short_w + (s->column.is_stay ? 0 : exact_move_w(s->job));
    s->column.lows = s->lows;
    if (!s->w->is_best_only) {
        s->w->show(s->w->self, &s->column, reduced_w);
        return;
    }
    s->best_w = reduced_w;
    s->best = s->column;
    for (int i = 0; i < n; i++)
        s->best_lows[i] = s->lows[i];
}

/* The least that the parts from the k-th on can cost. */
static double rest_w(const struct weaving *s, int k)
{
    double sum = 0;

    if (!s->column.is_stay)
        return (s->job->n_max - k) * fmin(s->offers->worth[0], 0);
    for (; k < s->job->n_present; k++)
        sum += s->offers[k].worth[0];
    return sum;
}

/* The most that the parts from the k-th on can hold, when that one holds its i-th. */
static double rest_low(const struct weaving *s, int k, int i)
{
    double sum = 0;

    if (!s->column.is_stay)
        return (s->job->n_max - k) * s->offers->low[i];
    sum = s->offers[k].low[i];
    for (k++; k < s->job->n_present; k++)
        sum += s->offers[k].low[s->offers[k].n - 1];
    return sum;
}

/* The k-th part on; parts that go anywhere come in falling order. */
static void pattern_extend(struct weaving *s, int k, double sum, double price)
{
    int n_most = s->column.is_stay ? s->job->n_present : s->job->n_max;

    if (k == n_most || (k > 0 && !s->column.is_stay))
        pattern_show(s, k, sum, price);
    if (k == n_most)
        return;
    const struct offer *o = offer_of(s, k);
    int last = k > 0 && !s->column.is_stay ? s->index[k - 1] : o->n - 1;
    for (int i = 0; i <= last && !s->is_over; i++) {
        double most_w = s->w->is_best_only ? fmin(s->best_w, 0) : fmax(s->w->most_w, 0);
        double least_w = s->base_w + price + o->worth[i] + rest_w(s, k + 1);
        if (least_w > most_w)
            break;
        if (least_w + problem_short_w(s->job, sum + rest_low(s, k, i)) > most_w)
            continue;
        s->is_over |= ++s->n_seen > SEEN_MOST;
        s->index[k] = i;
        s->lows[k] = o->low[i];
        pattern_extend(s, k + 1, sum + o->low[i], price + o->worth[i]);
    }
}

/* All that a family's slots may hold; of those that cost the same only the best, when one best
 * pattern is all that is asked for.
 */
static struct offer offer_make(struct exact *x, const struct family *f, bool is_best_only)
{
    struct offer o = { .low = ARENA_ARRAY(x->arena, double, (size_t)f->n_lows),
                       .worth = ARENA_ARRAY(x->arena, double, (size_t)f->n_lows) };

    for (int i = 0, k = 0; i < f->n_lows; i++) {
        while (k + 1 < f->n_levels && f->level[k + 1] <= f->low[i])
            k++;
        if (is_best_only && o.n > 0 && o.worth[o.n - 1] == f->worth[k])
            o.n--;
        o.low[o.n] = f->low[i];
        o.worth[o.n++] = f->worth[k];
    }
    return o;
}

/* Any number of slots, and the shortfall as it comes. */
static void show_loose(const struct weaving *s, int first)
{
    struct column c = s->column;

    s->x->is_loose[first] = true;
    c.cost_w = c.is_stay ? 0 : exact_move_w(s->job);
    c.form = COLUMN_LOOSE;
    for (c.n = c.is_stay ? s->job->n_present : 1;
         c.n <= (c.is_stay ? s->job->n_present : s->job->n_max); c.n++)
        s->w->show(s->w->self, &c, 0);
    c.form = COLUMN_SHORT;
    c.n = 0;
    c.cost_w = s->job->short_w;
    s->w->show(s->w->self, &c, 0);
}

/* The best pattern, or all of them when they are not too many. */
static void show_all(struct weaving *s, int first)
{
    if (s->w->is_best_only) {
        pattern_extend(s, 0, 0, 0);
        s->x->is_cut_short |= s->is_over;
        s->best.lows = s->best_lows;
        if (s->best_w <= s->w->most_w)
            s->w->show(s->w->self, &s->best, s->best_w);
        return;
    }
    s->is_trial = true;
    pattern_extend(s, 0, 0, 0);
    s->is_trial = false;
    s->n_seen = 0;
    if (s->is_over)
        show_loose(s, first);
    else
        pattern_extend(s, 0, 0, 0);
}

static double weave(struct exact *x, const struct column_wish *w, int job, bool is_stay)
{
    const struct problem_job *j = &x->p->jobs[job];
    int first = is_stay ? x->stay_first[job] : x->family_of[job];
    struct offer offers[GANG_MAX] = { { 0 } };
    struct weaving s = { .x = x, .w = w, .job = j, .offers = offers, .best_w = HUGE_VAL };

    x->is_loose[first] = false;
    for (int i = 0; i < (is_stay ? j->n_present : 1); i++) {
        offers[i] = offer_make(x, &x->families[first + i], w->is_best_only);
        if (offers[i].n == 0)
            return 0;
    }
    s.column = (struct column){
        .form = COLUMN_PATTERN, .job = job, .place = -1, .node = -1, .is_stay = is_stay
    };
    s.base_w = (is_stay ? 0 : exact_move_w(j)) - x->dual[x->cover[job]];
    show_all(&s, first);
    return s.least_w;
}

double exact_patterns(struct exact *x, const struct column_wish *w)
{
    double sum = 0;

    for (int job = 0; job < x->p->n_jobs; job++) {
        double least_w = 0;
        if (!x->p->jobs[job].name || !exact_is_spread(&x->p->jobs[job]))
            continue;
        if (x->family_of[job] >= 0)
            least_w = weave(x, w, job, false);
        if (x->stay_first[job] >= 0)
            least_w = fmin(least_w, weave(x, w, job, true));
        sum += least_w;
    }
    return sum;
}

/* What each job would choose at given prices, and what that costs it.
 *
 * A job that takes slots chooses one (a spread job up to n_max) among its class's bins: those that
 * keep its promise, or those that do not, with its shortfall; a gang one of its options, paying for
 * each GPU what that type is worth; or it waits. Who runs now pays move_w for all but staying as a
 * gang: what staying on a shared GPU saves is granted on the side of the GPUs (certificate.c).
 *
 * The sum of costs is the jobs' part of the bound; to the ascent and the master program choices are
 * demand.
 */
#include "optimize/prices/dual.h"

#include <math.h>
#include <stdint.h>

#include "base/arena.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/fork_join.h"

/* Sums of slots are kept this fine; and roughly, with frontiers thinned out. */
#define CELLS 2048
#define CELLS_ROUGH 192
#define FRONTIER_ROUGH 48
#define FRONTIER_FINE 256

#define FRONTIERS_MOST 8    // numbers of parts remembered for one class

/* Slots, or sums of slots, that are worth a look: each holds more than the one before and costs
 * more.
 */
struct frontier {
    int n;
    double *low, *price;
    int *a, *b;    // what it is the sum of: in 'of_a' and 'of_b'; a bin where they are NULL
    const struct frontier *of_a, *of_b;    // b -1: nothing
};

/* What jobs of one class with up to 'parts' slots choose from: one of 'big' and one, or nothing, of
 * 'small'.
 */
struct choice_set {
    int parts;
    const struct frontier *big, *small;
    double *best;    // (small.n) scratch
    int *best_at;
};

/* What choices are asked for. */
struct choice_task {
    struct arena *arenas;
    const struct columns *c;
    const struct dual *u;
    bool is_rough;
    struct job_choice *out;
};

struct chooser {
    const struct choice_task *ask;
    struct arena *results, scratch;    // 'scratch' is reset with every class
    double cell_low[CELLS], cell_price[CELLS];
    int cell_a[CELLS], cell_b[CELLS];
    const struct frontier *one;
    int n_below;          // slots of 'one' below the need of the last job
    int n_hull, *hull;    // those of them on the hull
    int n_choice_sets;
    struct choice_set choice_sets[FRONTIERS_MOST];
};

/* ---- frontiers ---- */

/* Room for n sums of these two; NULL: for slots, or for what is one of the first. */
static struct frontier *frontier_new(struct chooser *x, int n, const struct frontier *of_a,
                                     const struct frontier *of_b)
{
    struct frontier *f = ARENA_NEW(&x->scratch, struct frontier);

    *f = (struct frontier){ .low = ARENA_ARRAY(&x->scratch, double, (size_t)n),
                            .price = ARENA_ARRAY(&x->scratch, double, (size_t)n),
                            .a = ARENA_ARRAY(&x->scratch, int, (size_t)n),
                            .b = ARENA_ARRAY(&x->scratch, int, (size_t)n),
                            .of_a = of_a,
                            .of_b = of_b };
    return f;
}

static void frontier_add(struct frontier *f, double low, double price, int a, int b)
{
    f->low[f->n] = low;
    f->price[f->n] = price;
    f->a[f->n] = a;
    f->b[f->n++] = b;
}

/* One slot of the class: of bins that cost the same the one that holds most. */
static const struct frontier *frontier_slots(struct chooser *x, const struct job_class *k)
{
    struct frontier *f = frontier_new(x, k->n_bins, NULL, NULL);

    for (int b = 0; b < k->n_bins; b++) {
        double price = x->ask->u->slot_w[k->first_bin + b];
        if (k->top[b] < 0)
            continue;
        if (f->n && f->price[f->n - 1] >= price)
            f->n--;
        frontier_add(f, k->top[b], price, k->first_bin + b, -1);
    }
    return f;
}

/* Fewer of them: of neighbours the least price and the most throughput count. */
static const struct frontier *frontier_thin(struct chooser *x, const struct frontier *f)
{
    bool is_rough = x->ask->is_rough;
    int most = is_rough ? FRONTIER_ROUGH : FRONTIER_FINE;

    if (f->n <= most)
        return f;
    struct frontier *to = frontier_new(x, most, f->of_a, f->of_b);
    for (int i = 0; i < most; i++) {
        int from = (int)((long)i * f->n / most), last = (int)((long)(i + 1) * f->n / most) - 1;
        frontier_add(to, f->low[last], f->price[is_rough ? last : from], f->a[last], f->b[last]);
    }
    return to;
}

static const struct frontier *frontier_or_nothing(struct chooser *x, const struct frontier *f)
{
    struct frontier *to = frontier_new(x, f->n + 1, f, NULL);

    if (f->n == 0 || f->price[0] > 0)    // else nothing would hold less and cost more
        frontier_add(to, 0, 0, -1, -1);
    for (int i = 0; i < f->n; i++)
        frontier_add(to, f->low[i], f->price[i], i, -1);
    return to;
}

/* One of 'a' and one of 'b'. Sums are kept by cells of low: within a cell the least price and the
 * most throughput count, which is optimistic by no more than the cell is wide.
 */
static const struct frontier *frontier_join(struct chooser *x, const struct frontier *a,
                                            const struct frontier *b)
{
    int n_cells = x->ask->is_rough ? CELLS_ROUGH : CELLS, n = 0;
    double all = a->n ? a->low[a->n - 1] + b->low[b->n - 1] : 0, best = HUGE_VAL;
    double scale = all > 0 ? (n_cells - 1) / all : 0;

    for (int i = 0; i < n_cells; i++) {
        x->cell_price[i] = HUGE_VAL;
        x->cell_low[i] = 0;
    }
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            double low = a->low[i] + b->low[k], price = a->price[i] + b->price[k];
            int cell = (int)(low * scale);
            if (low > x->cell_low[cell])
                x->cell_low[cell] = low;
            if (price >= x->cell_price[cell])
                continue;
            x->cell_price[cell] = price;
            x->cell_a[cell] = i;
            x->cell_b[cell] = k;
        }
    for (int i = n_cells - 1; i >= 0; i--) {    // from the most: who is cheaper than all above?
        bool is_cheaper = x->cell_price[i] < best;
        best = is_cheaper ? x->cell_price[i] : best;
        x->cell_price[i] = is_cheaper ? best : HUGE_VAL;
        n += is_cheaper;
    }
    struct frontier *to = frontier_new(x, n, a, b);
    for (int i = 0; i < n_cells; i++)
        if (x->cell_price[i] < HUGE_VAL)
            frontier_add(to, x->cell_low[i], x->cell_price[i], x->cell_a[i], x->cell_b[i]);
    return to;
}

/* At least one and at most n slots. */
static const struct frontier *frontier_parts(struct chooser *x, int n)
{
    if (n <= 1)
        return x->one;
    const struct frontier *big = frontier_thin(x, frontier_parts(x, (n + 1) / 2));
    const struct frontier *small = n % 2 ? frontier_thin(x, frontier_parts(x, n / 2)) : big;
    return frontier_join(x, big, frontier_or_nothing(x, small));
}

/* The bins behind an entry, appended to 'bins'. */
static int frontier_bins(const struct frontier *f, int at, int *bins)
{
    if (at < 0)
        return 0;
    if (!f->of_a) {
        *bins = f->a[at];
        return 1;
    }
    int n = frontier_bins(f->of_a, f->a[at], bins);
    return f->of_b ? n + frontier_bins(f->of_b, f->b[at], bins + n) : n;
}

static struct choice_set *choice_set_of(struct chooser *x, int parts)
{
    for (int i = 0; i < x->n_choice_sets; i++)
        if (x->choice_sets[i].parts == parts)
            return &x->choice_sets[i];
    struct choice_set *m = &x->choice_sets[x->n_choice_sets < FRONTIERS_MOST ? x->n_choice_sets++
                                                                             : FRONTIERS_MOST - 1];
    m->parts = parts;
    m->big = frontier_parts(x, (parts + 1) / 2);
    m->small = frontier_or_nothing(x, frontier_parts(x, parts / 2));
    m->best = ARENA_ARRAY(&x->scratch, double, (size_t)m->small->n);
    m->best_at = ARENA_ARRAY(&x->scratch, int, (size_t)m->small->n);
    return m;
}

/* ---- one job ---- */

/* The slot before last on the hull is never the best of three. */
static bool is_above(const struct frontier *f, int a, int b, int c)
{
    return (f->price[b] - f->price[a]) * (f->low[c] - f->low[a]) >=
           (f->price[c] - f->price[a]) * (f->low[b] - f->low[a]);
}

/* Slots that hold less than 'need' too: on the hull are those that some shortfall is worth. */
static void raise_need(struct chooser *x, double need)
{
    const struct frontier *f = x->one;

    for (; x->n_below < f->n && f->low[x->n_below] < need; x->n_below++) {
        while (x->n_hull > 1 &&
               is_above(f, x->hull[x->n_hull - 2], x->hull[x->n_hull - 1], x->n_below))
            x->n_hull--;
        x->hull[x->n_hull++] = x->n_below;
    }
}

/* Of the slots that hold too little, the one where price and shortfall are least; -1: none. */
static int best_below(const struct chooser *x, double short_w, double need)
{
    const struct frontier *f = x->one;
    int from = 0, n = x->n_hull - 1;    // steps of the hull, the flattest first

    while (n > 0) {
        int half = n / 2, a = x->hull[from + half], b = x->hull[from + half + 1];
        bool pays = (f->price[b] - f->price[a]) * need < short_w * (f->low[b] - f->low[a]);
        from += pays ? half + 1 : 0;
        n = pays ? n - half - 1 : half;
    }
    return x->n_hull > 0 ? x->hull[from] : -1;
}

/* One slot. Returns its index in the frontier, -1: none is cheaper than '*best'. Jobs come by
 * rising need.
 */
static int choose_one(struct chooser *x, const struct chooser_job *j, double *best)
{
    const struct frontier *f = x->one;
    int at = -1;

    raise_need(x, j->need);
    if (x->n_below < f->n && f->price[x->n_below] < *best) {
        at = x->n_below;
        *best = f->price[at];
    }
    int below = best_below(x, j->short_w, j->need);
    double w = below < 0 ? HUGE_VAL : f->price[below] + j->short_w * (1 - f->low[below] / j->need);
    if (w < *best) {
        *best = w;
        at = below;
    }
    return at;
}

/* One of 'big' and one of 'small': as the first holds more the second may hold less; below the
 * need, shortfall is linear and each one's part of it its own.
 */
static bool choose_two(struct choice_set *m, double need, double short_w, double *best, int at[2])
{
    const struct frontier *a = m->big, *b = m->small;
    double slope = need > 0 ? short_w / need : 0;
    double all_w = short_w * (1 - 1e-14);    // rounding must not raise what is left of it
    int enough = b->n;                       // the first of 'b' that holds enough with a's i-th
    bool found = false;

    for (int k = 0; k < b->n; k++) {
        double w = b->price[k] - slope * b->low[k];
        bool is_less = k == 0 || w < m->best[k - 1];
        m->best[k] = is_less ? w : m->best[k - 1];
        m->best_at[k] = is_less ? k : m->best_at[k - 1];
    }
    for (int i = 0; i < a->n; i++) {
        while (enough > 0 && a->low[i] + b->low[enough - 1] >= need)
            enough--;
        if (enough < b->n && a->price[i] + b->price[enough] < *best) {
            *best = a->price[i] + b->price[enough];
            at[0] = i, at[1] = enough, found = true;
        }
        double w =
            enough > 0 ? a->price[i] + all_w - slope * a->low[i] + m->best[enough - 1] : HUGE_VAL;
        if (w < *best) {
            *best = w;
            at[0] = i, at[1] = m->best_at[enough - 1], found = true;
        }
        if (enough == 0)
            break;    // beyond, the first holds more and costs more for nothing
    }
    return found;
}

static void choose_slots(struct chooser *x, const struct chooser_job *j, struct job_choice *out)
{
    int at[2] = { -1, -1 };
    double best = out->cost_w - j->fee_w;

    if (j->parts == 1) {
        at[0] = choose_one(x, j, &best);
        if (at[0] >= 0)
            *out = (struct job_choice){ best + j->fee_w, -1, 1, x->one->a[at[0]], &out->one };
        return;
    }
    struct choice_set *m = choice_set_of(x, j->parts);
    if (!choose_two(m, j->need, j->short_w, &best, at))
        return;
    int *bins = ARENA_ARRAY(x->results, int, (size_t)j->parts);
    int n = frontier_bins(m->big, at[0], bins);
    n += frontier_bins(m->small, at[1], bins + n);
    *out = (struct job_choice){ best + j->fee_w, -1, n, -1, bins };
}

static void choose_gang(const struct chooser *x, const struct chooser_job *j,
                        struct job_choice *out)
{
    for (int w = j->first_gang; w < j->first_gang + j->n_gangs; w++) {
        const struct gang_option *option = &x->ask->c->gangs[w];
        double cost_w = option->cost_w +
                        (option->m - option->n_drained) * x->ask->u->type_w[option->type] +
                        dual_watt_price(x->ask->u, option->type) * (double)option->draw_w;
        if (cost_w < out->cost_w)
            *out = (struct job_choice){ cost_w, w, 0, -1, NULL };
    }
}

static void choose(struct chooser *x, const struct chooser_job *j, struct job_choice *out)
{
    *out = (struct job_choice){ j->wait_w, -1, 0, -1, NULL };
    if (j->parts > 0)
        choose_slots(x, j, out);
    choose_gang(x, j, out);
}

/* ---- all ---- */

/* Classes in turn, their jobs as listed by class; then those without one. */
static void choose_part(void *self, int part, int n_parts)
{
    const struct choice_task *ask = self;
    const struct columns *c = ask->c;
    struct chooser *x = ARENA_NEW(&ask->arenas[part], struct chooser);

    x->ask = ask;
    x->results = &ask->arenas[part];
    arena_init(&x->scratch);
    for (int k = part; k <= c->n_classes; k += n_parts) {
        arena_reset(&x->scratch);
        x->n_choice_sets = x->n_below = x->n_hull = 0;
        if (k < c->n_classes) {
            x->one = frontier_slots(x, &c->classes[k]);
            x->hull = ARENA_ARRAY(&x->scratch, int, (size_t)x->one->n);
        }
        for (int i = c->first_job[k]; i < c->first_job[k + 1]; i++)
            choose(x, &c->choosers[i], &ask->out[c->jobs[i]]);
    }
    arena_release(&x->scratch);
}

void choices_make(struct arena *arenas, const struct columns *c, const struct dual *u,
                  bool is_rough, int threads, struct job_choice *out)
{
    struct choice_task ask = { arenas, c, u, is_rough, out };

    for (int j = 0; j < c->p->n_jobs; j++)
        out[j] = (struct job_choice){ .gang = -1 };
    fork_join(threads, choose_part, &ask);
}

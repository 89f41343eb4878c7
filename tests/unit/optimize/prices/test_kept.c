/* Prices that are kept serve the next problem: the same one as well as before, another one validly. */
#include <math.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "optimize/files/problem_make.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/optimize.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/kept.h"
#include "optimize/prices/prices.h"
#include "unit/suite.h"

struct fixture {
    struct arena arena;
    struct problem p;
    struct kept_prices *kept;
};

static void set_up(struct fixture *f, uint64_t seed)
{
    struct make_options o = make_defaults;

    arena_init(&f->arena);
    o.seed = seed;
    o.standing = 0;
    problem_make(&f->arena, &o, &f->p);
    f->kept = kept_create();
}

static void tear_down(struct fixture *f)
{
    kept_destroy(f->kept);
    arena_release(&f->arena);
}

static struct prices *find(const struct problem *p, const struct kept_prices *kept)
{
    return prices_find(p, &(struct prices_options){ .threads = 1, .kept = kept });
}

TEST(nothing_is_kept_at_first)
{
    struct fixture f;

    set_up(&f, 1);
    ck_assert(kept_is_empty(f.kept));
    ck_assert(!kept_count(f.kept, 1));
    struct prices *u = find(&f.p, f.kept), *v = find(&f.p, NULL);
    ck_assert(u->bound_w == v->bound_w);
    prices_destroy(u);
    prices_destroy(v);
    tear_down(&f);
}

SPAN(the_same_problem_has_the_same_bound_again, 1, 4)
{
    struct fixture f;

    set_up(&f, (uint64_t)_i);
    struct prices *u = find(&f.p, NULL);
    kept_take(f.kept, u);
    struct prices *again = find(&f.p, f.kept);
    ck_assert_double_eq(again->bound_w, u->bound_w);
    prices_destroy(u);
    prices_destroy(again);
    tear_down(&f);
}

/* One job in fifty is gone: the bound falls by little more than what those cost. */
SPAN(they_serve_when_some_jobs_have_gone, 1, 4)
{
    struct fixture f;

    set_up(&f, (uint64_t)_i);
    struct prices *u = find(&f.p, NULL);
    kept_take(f.kept, u);
    for (int j = 0; j < f.p.n_jobs; j += 50)
        f.p.jobs[j].name = NULL;
    struct prices *kept = find(&f.p, f.kept), *anew = find(&f.p, NULL);
    double all_w = fabs(anew->bound_w) + problem_base_w(&f.p);
    ck_assert_double_ge(kept->bound_w, anew->bound_w - 0.02 * all_w);
    prices_destroy(u);
    prices_destroy(kept);
    prices_destroy(anew);
    tear_down(&f);
}

/* Bins that no slot falls into have any price; where other needs make other bins, it is nobody's. */
static void spoil_empty_bins(struct prices *u)
{
    for (int k = 0; k < u->columns->n_classes; k++) {
        const struct job_class *class = &u->columns->classes[k];
        bool is_below = false;
        for (int b = class->n_bins - 1; b >= 0; b--) {
            is_below |= class->top[b] >= 0;
            if (is_below && class->top[b] < 0)
                u->u.slot_w[class->first_bin + b] = -1e6;
        }
    }
}

SPAN(prices_of_what_nobody_offers_are_forgotten, 1, 4)
{
    struct fixture f;

    set_up(&f, (uint64_t)_i);
    struct prices *u = find(&f.p, NULL);
    spoil_empty_bins(u);
    kept_take(f.kept, u);
    for (int j = 0; j < f.p.n_jobs; j += 2)
        f.p.jobs[j].name = NULL;
    struct prices *kept = find(&f.p, f.kept), *anew = find(&f.p, NULL);
    double all_w = fabs(anew->bound_w) + problem_base_w(&f.p);
    ck_assert_double_ge(kept->bound_w, anew->bound_w - 0.5 * all_w);
    prices_destroy(u);
    prices_destroy(kept);
    prices_destroy(anew);
    tear_down(&f);
}

TEST(bytes_hold_all_of_them)
{
    struct kept_prices *copy = kept_create();
    struct fixture f;
    struct buf bytes;

    set_up(&f, 3);
    struct prices *u = find(&f.p, NULL);
    kept_take(f.kept, u);
    buf_init(&bytes, 1 << 24);
    kept_write(f.kept, &bytes);
    ck_assert(!kept_read(copy, bytes.data, bytes.len - 1));
    ck_assert(kept_is_empty(copy));
    ck_assert(kept_read(copy, bytes.data, bytes.len));
    struct prices *v = find(&f.p, copy);
    ck_assert_double_eq(v->bound_w, u->bound_w);
    prices_destroy(u);
    prices_destroy(v);
    kept_destroy(copy);
    buf_release(&bytes);
    tear_down(&f);
}

/* A job stands where the plan has it, if all its GPUs have one setting. */
static void stand(struct problem_job *j, const struct plan *x, int job)
{
    const struct plan_job *at = &x->jobs[job];

    j->n_present = 0;
    for (int i = 0; i < at->n_gpus; i++)
        if (x->limit[at->gpus[i]] != x->limit[at->gpus[0]])
            return;
    j->n_present = at->n_gpus;
    j->present = at->gpus;
    j->present_limit = at->n_gpus ? x->limit[at->gpus[0]] : 0;
}

/* Gaps of one decision after the other, and whether prices are to be found anew after the last. */
static const struct {
    const char *name;
    int n;
    double gaps[4];
    bool is_due;
} counts[] = {
    { "a small gap is as good as none", 2, { 0, 0.005 }, false },
    { "they were never better than this", 2, { 0.03, 0.05 }, false },
    { "the gap is more than twice what it was", 2, { 0.02, 0.041 }, true },
    { "the least of all that there were counts", 3, { 0.05, 0.02, 0.045 }, true },
    { "a plan that knows no gap says nothing", 2, { 0.02, NAN }, false },
    { "they are poor, and were for a while", 32, { 0.03, 0.03, 0.03, 0.03 }, true },
    { "they are poor, and others came to nothing just now", 31, { 0.03, 0.03, 0.03, 0.03 }, false },
    { "they have served for long", 256, { 0.001, 0.001, 0.001, 0.001 }, true },
    { "they have served for a while", 255, { 0.001, 0.001, 0.001, 0.001 }, false },
};

EACH(the_gap_says_when_they_serve_no_longer, counts)
{
    struct fixture f;
    bool is_due = false;

    set_up(&f, 1);
    kept_find(f.kept, &f.p);
    for (int i = 0; i < counts[_i].n; i++)
        is_due = kept_count(f.kept, counts[_i].gaps[i % 4]);
    ck_assert_msg(is_due == counts[_i].is_due, "%s", counts[_i].name);
    tear_down(&f);
}

/* A decision after the other: each plan is judged and has a finite bound below its cost, and only the
 * first finds prices.
 */
SPAN(standing_plans_know_how_good_they_are, 1, 4)
{
    struct optimize_options o = optimize_defaults;
    struct optimize_report report;
    struct fixture f;
    struct plan x;
    struct err e = { 0 };

    set_up(&f, (uint64_t)_i);
    o.method = METHOD_STANDING;
    o.kept = f.kept;
    o.nodes = 500;
    o.threads = 1;
    for (int turn = 0; turn < 6; turn++) {
        ck_assert_msg(optimize_run(&f.arena, &f.p, &o, &x, &report, &e) == 0, "%s", e.text);
        ck_assert_str_eq(report.method, turn == 0 ? "fast" : "standing");
        ck_assert(isfinite(x.bound_w) && x.bound_w <= x.cost_w + 1e-6 * fabs(x.cost_w));
        for (int j = 0; j < f.p.n_jobs; j++) {
            stand(&f.p.jobs[j], &x, j);
            if (j % 40 == turn)
                f.p.jobs[j].name = NULL;
        }
    }
    tear_down(&f);
}

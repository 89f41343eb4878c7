/* The bound is one: below the true optimum of thousands of tiny problems, whatever the prices. */
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/dual.h"
#include "optimize/prices/master.h"
#include "optimize/prices/prices.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

#define NODES 20000000L

static double pick(struct rng *r, const double *from, int n)
{
    return from[rng_below(r, (uint64_t)n)];
}

/* Any prices that never fall within a class; some below 0. */
static void random_class(struct rng *r, const struct job_class *k, struct dual *u)
{
    static const double rises[] = { 0, 0, 1, 10, 50, 100, 400 };
    double w = rng_below(r, 4) ? pick(r, rises, 7) : -pick(r, rises, 7);

    for (int b = 0; b < k->n_bins; b++) {
        u->slot_w[k->first_bin + b] = w;
        w += pick(r, rises, 7);
    }
}

static void random_prices(struct rng *r, const struct columns *c, struct dual *u)
{
    static const double caps[] = { 0, 0.25, 1, 3 };

    for (int k = 0; k < c->n_classes; k++)
        random_class(r, &c->classes[k], u);
    u->cap_price = c->room_w < HUGE_VAL ? pick(r, caps, 4) : 0;
    for (int t = 0; t < c->p->n_types; t++)
        u->rack_price[t] = c->rack_room_w[t] < HUGE_VAL ? pick(r, caps, 4) : 0;
}

static double bound(const struct columns *c, struct dual *u, int threads)
{
    struct arena a[3];

    for (int i = 0; i < 3; i++)
        arena_init(&a[i]);
    struct job_choice *choices = ARENA_ARRAY(&a[2], struct job_choice, (size_t)c->p->n_jobs);
    double w = certificate_bound(a, c, u, threads, choices);
    for (int i = 0; i < 3; i++)
        arena_release(&a[i]);
    return w;
}

/* Change one class, or a price of watts; keep what raises the bound. Returns the best bound. */
static double climb(struct arena *a, struct rng *r, const struct columns *c, struct dual *u,
                    int steps)
{
    double best_w = bound(c, u, 1);
    struct dual was;

    dual_init(a, c, &was);
    for (int i = 0; i < steps; i++) {
        dual_copy(c, u, &was);
        if (c->n_classes == 0 || rng_below(r, 8) == 0)
            *(rng_below(r, 2) ? &u->cap_price
                              : &u->rack_price[rng_below(r, (uint64_t)c->p->n_types)]) *=
                rng_between(r, 0, 2);
        else
            random_class(r, &c->classes[i % c->n_classes], u);
        double w = bound(c, u, 1);
        if (w < best_w)
            dual_copy(c, &was, u);
        best_w = fmax(best_w, w);
    }
    return best_w;
}

struct solved {
    struct arena arena;
    struct problem p;
    struct plan best;
};

static void solve(struct solved *s, uint64_t seed, int jobs, int gpus)
{
    struct err e = { 0 };

    arena_init(&s->arena);
    tiny_make(&s->arena, seed, jobs, gpus, &s->p);
    if (seed % 3 == 0)
        tiny_doubts(&s->arena, seed, &s->p);
    ck_assert_msg(problem_check(&s->p, &e) == 0, "seed %d: %s", (int)seed, e.text);
    ck_assert_msg(brute_solve(&s->arena, &s->p, NODES, &s->best), "seed %d: too large", (int)seed);
    ck_assert_msg(plan_check(&s->arena, &s->p, &s->best, &e) == 0, "seed %d: %s", (int)seed,
                  e.text);
}

static void check_bound(const struct solved *s, double w, uint64_t seed, const char *what)
{
    ck_assert_msg(w <= s->best.cost_w + 1e-9 * fabs(s->best.cost_w),
                  "seed %d, %s: a bound of %.9g above an optimum of %.9g", (int)seed, what, w,
                  s->best.cost_w);
}

/* A problem, its optimum, and several prices, made good. Returns how near they came. */
static double check_seed(uint64_t seed, int jobs, int gpus)
{
    struct solved s;
    struct dual u;
    struct rng r;
    double nearest_w = -HUGE_VAL;

    solve(&s, seed, jobs, gpus);
    struct columns *c = columns_make(&s.p, seed % 2 ? 512 : 2, 1);
    dual_init(&s.arena, c, &u);
    rng_init(&r, seed, "prices");
    for (int i = 0; i < 3; i++) {
        random_prices(&r, c, &u);
        double w = climb(&s.arena, &r, c, &u, 40);
        check_bound(&s, w, seed, "random prices");
        ck_assert(bound(c, &u, 2) == bound(c, &u, 1));
        nearest_w = fmax(nearest_w, w);
    }
    columns_destroy(c);
    arena_release(&s.arena);
    return s.best.cost_w - nearest_w;
}

/* And the test means something: of many problems, some are met exactly. */
TIMES(no_prices_give_a_bound_above_the_optimum, 5)
{
    int n = suite_size(50, 400), n_met = 0;

    for (int seed = 1; seed <= n; seed++)
        n_met += check_seed((uint64_t)(_i * 1000 + seed), 2 + _i, 1 + _i) < 1e-3;
    ck_assert_msg(n_met >= n / 20, "%d of %d", n_met, n);
}

/* Of many problems the prices that are found prove half of them to within a percent. */
TIMES(prices_that_are_found_prove_most, 4)
{
    int n = suite_size(30, 200), n_near = 0;

    for (int seed = 1; seed <= n; seed++) {
        struct prices_options o = { .wants_vertex = true, .threads = 1 };
        struct solved s;
        solve(&s, (uint64_t)(_i * 1000 + seed), 3 + _i, 2 + _i);
        struct prices *u = prices_find(&s.p, &o);
        check_bound(&s, u->bound_w, (uint64_t)(_i * 1000 + seed), "found prices");
        double scale_w = fabs(s.best.cost_w) + problem_base_w(&s.p) + 1;
        n_near += s.best.cost_w - u->bound_w < 0.01 * scale_w;
        prices_destroy(u);
        arena_release(&s.arena);
    }
    ck_assert_msg(n_near >= n / 3, "%d of %d", n_near, n);
}

SPAN(two_threads_find_the_same_prices, 1, 1 + suite_size(10, 40))
{
    struct arena a;
    struct problem p;

    arena_init(&a);
    tiny_make(&a, (uint64_t)_i, 8, 6, &p);
    struct prices *one = prices_find(&p, &(struct prices_options){ .threads = 1 });
    struct prices *two = prices_find(&p, &(struct prices_options){ .threads = 2 });
    ck_assert(one->bound_w == two->bound_w);
    for (int b = 0; b < one->columns->n_bins; b++)
        ck_assert(one->u.slot_w[b] == two->u.slot_w[b]);
    prices_destroy(one);
    prices_destroy(two);
    arena_release(&a);
}

/* Its job may take another GPU beside the one that takes nobody new. */
TEST(a_gang_may_grow_from_a_gpu_that_takes_nobody_new)
{
    const int here[] = { 0 };
    float speed[] = { 2, 2 }, low[] = { 2, 2 }, watts[] = { 100 };
    struct problem_type type = { "type", 0, 0, 200, 16, 1, { { 0 } } };
    struct problem_kind kind = { .name = "kind", .mem_gib = 1 };
    struct problem_gpu gpus[] = { { .may_start = false }, { .may_start = true } };
    struct problem_job job = { .name = "job",
                               .n_min = 1,
                               .n_max = 2,
                               .need = 3,
                               .short_w = 3000,
                               .wait_w = 3000,
                               .n_present = 1,
                               .present = here };
    struct problem p = { .theta = 1,
                         .watts_margin = 1,
                         .n_types = 1,
                         .n_kinds = 1,
                         .n_gpus = 2,
                         .n_jobs = 1,
                         .types = &type,
                         .kinds = &kind,
                         .gpus = gpus,
                         .jobs = &job,
                         .speed = speed,
                         .held = low,
                         .watts = watts };

    p.n_racks = 1;
    p.gang_near[2] = p.gang_far[2] = 1.75;
    struct prices *u = prices_find(&p, &(struct prices_options){ .threads = 1 });
    ck_assert_double_le(u->bound_w, 200);
    prices_destroy(u);
}

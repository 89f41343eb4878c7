/* The bound is one: below the true optimum of thousands of tiny problems, whatever the prices. */
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "optimize/model/plan.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

#define NODES 20000000L

static double pick(struct rng *r, const double *from, int n)
{
    return from[rng_below(r, (uint64_t)n)];
}

/* Steps at random throughputs, or exactly where slots stand. */
static void random_class(struct arena *a, struct rng *r, int kind, int size, struct slot_class *c)
{
    static const double rises[] = { 0, 1, 10, 50, 100, 400 };
    static const double lows[] = { 0.25, 0.5, 0.75, 1, 1.5, 2, 2.625, 3, 3.5, 4 };
    int n = (int)rng_below(r, 9);
    double *from = ARENA_ARRAY(a, double, 8), *price = ARENA_ARRAY(a, double, 8);
    double at = 0, w = rng_below(r, 4) ? 0 : -pick(r, rises, 6);

    *c = (struct slot_class){ .kind = kind, .size = size, .from = from, .price = price };
    for (int i = 0; i < n; i++) {
        double next = rng_below(r, 2) ? pick(r, lows, 10) : rng_between(r, 0, 4);
        if (next < at)
            continue;
        at = next;
        w += pick(r, rises, 6);
        from[c->n_steps] = at;
        price[c->n_steps++] = w;
    }
}

static void random_prices(struct arena *a, struct rng *r, const struct problem *p, struct prices *u)
{
    static const double caps[] = { 0, 0.25, 1, 3 };
    int sizes[] = { SLOT_SHARED, SLOT_ALONE, 2, 3, 4, 5 };

    *u = (struct prices){ .cap_price = pick(r, caps, 4) };
    u->classes = ARENA_ARRAY(a, struct slot_class, (size_t)p->n_kinds * 6);
    u->first = ARENA_ARRAY(a, int, (size_t)p->n_kinds + 1);
    for (int k = 0; k < p->n_kinds; k++) {
        u->first[k] = u->n_classes;
        for (int i = 0; i < 6; i++)
            if (rng_below(r, 10) < 8)
                random_class(a, r, k, sizes[i], &u->classes[u->n_classes++]);
        u->first[k + 1] = u->n_classes;
    }
}

/* Change one class, or the cap's price; keep what raises the bound. Returns the best bound. */
static double climb(struct arena *a, struct rng *r, const struct problem *p, struct prices *u,
                    int steps)
{
    double best_w = certificate_bound(a, p, u, 1, NULL);

    for (int i = 0; i < steps; i++) {
        struct prices was = *u;
        struct slot_class none = { 0 }, *c = u->n_classes ? &u->classes[i % u->n_classes] : &none;
        struct slot_class class_was = *c;
        if (rng_below(r, 8) == 0)
            u->cap_price *= rng_between(r, 0, 2);
        else
            random_class(a, r, c->kind, c->size, c);
        double bound_w = certificate_bound(a, p, u, 1, NULL);
        if (bound_w < best_w) {
            *u = was;
            *c = class_was;
        }
        best_w = fmax(best_w, bound_w);
    }
    return best_w;
}

/* A problem, its optimum, and several prices, made good. Returns how near they came. */
static double check_seed(uint64_t seed, int jobs, int gpus)
{
    struct arena a;
    struct problem p;
    struct plan best;
    struct prices u;
    struct err e = { 0 };
    struct rng r;
    double nearest_w = -HUGE_VAL;

    arena_init(&a);
    tiny_make(&a, seed, jobs, gpus, &p);
    ck_assert_msg(problem_check(&p, &e) == 0, "seed %d: %s", (int)seed, e.text);
    ck_assert_msg(brute_solve(&a, &p, NODES, &best), "seed %d: too large", (int)seed);
    ck_assert_msg(plan_check(&a, &p, &best, &e) == 0, "seed %d: %s", (int)seed, e.text);
    rng_init(&r, seed, "prices");
    for (int i = 0; i < 3; i++) {
        random_prices(&a, &r, &p, &u);
        double bound_w = climb(&a, &r, &p, &u, 60);
        ck_assert_msg(bound_w <= best.cost_w + 1e-9 * fabs(best.cost_w),
                      "seed %d: a bound of %.9g above an optimum of %.9g", (int)seed, bound_w,
                      best.cost_w);
        ck_assert(certificate_bound(&a, &p, &u, 2, NULL) == certificate_bound(&a, &p, &u, 1, NULL));
        nearest_w = fmax(nearest_w, bound_w);
    }
    arena_release(&a);
    return best.cost_w - nearest_w;
}

/* And the test means something: of many problems, some are met exactly. */
START_TEST(no_prices_give_a_bound_above_the_optimum)
{
    int n = 500, n_met = 0;

    for (int seed = 1; seed <= n; seed++)
        n_met += check_seed((uint64_t)(_i * 1000 + seed), 2 + _i, 1 + _i) < 1e-3;
    ck_assert_msg(n_met >= n / 20, "%d of %d", n_met, n);
}
END_TEST

static int n_usable(const struct problem *p, int type)
{
    int n = 0;

    for (int g = 0; g < p->n_gpus; g++) {
        bool is_held = false;
        for (int j = 0; j < p->n_jobs; j++)
            for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++)
                is_held |= p->jobs[j].present[i] == g;
        n += p->gpus[g].type == type && (p->gpus[g].may_start || is_held);
    }
    return n;
}

START_TEST(the_bound_is_what_jobs_pay_less_what_gpus_earn)
{
    struct arena a;
    struct problem p;
    struct prices u;
    struct rng r;

    arena_init(&a);
    tiny_make(&a, (uint64_t)_i, 8, 6, &p);
    rng_init(&r, (uint64_t)_i, "prices");
    random_prices(&a, &r, &p, &u);
    u.cap_price = 0;
    for (int g = 0; g < p.n_gpus; g++)
        p.gpus[g].may_start = true;    // those that do not take part earn less
    double *type_w = ARENA_ARRAY(&a, double, (size_t)p.n_types), sum_w = 0, scale_w = 1;
    double bound_w = certificate_bound(&a, &p, &u, 1, type_w);
    for (int j = 0; j < p.n_jobs; j++) {
        double w = certificate_job_w(&p, &u, j);
        sum_w += w;
        scale_w += fabs(w);
    }
    for (int t = 0; t < p.n_types; t++) {
        sum_w -= n_usable(&p, t) * type_w[t];
        scale_w += n_usable(&p, t) * type_w[t];
    }
    ck_assert_double_le(fabs(sum_w - bound_w), 1e-8 * (scale_w + fabs(bound_w)));
    arena_release(&a);
}
END_TEST

/* May share a GPU of the type? */
static bool may_share(const struct problem_job *j, int type)
{
    bool is_small = j->form == FORM_SPREAD || j->n_min == 1;

    return j->name && is_small && !j->is_exclusive && problem_allows(j, type);
}

/* The cheapest slot for a job beside these others, under any setting. */
static double cheapest_beside(const struct problem *p, const struct prices *u, int job, int type,
                              const int *others, int n_others)
{
    const struct problem_job *j = &p->jobs[job];
    int kinds[THETA_MAX] = { j->kind };
    double best_w = HUGE_VAL;
    struct yield y;

    for (int i = 0; i < n_others; i++)
        kinds[i + 1] = p->jobs[others[i]].kind;
    for (int limit = 0; limit < p->types[type].n_limits; limit++)
        if (problem_yield(p, type, limit, kinds, n_others + 1, &y))
            best_w = fmin(best_w, price_of(u, j->kind, SLOT_SHARED, y.low[0]) +
                                      problem_short_w(j, y.low[0]));
    return best_w;
}

/* For a job that takes part of one GPU and does not run yet: try all others beside it. */
static double cheapest_choice(const struct problem *p, const struct prices *u, int job)
{
    double best_w = p->jobs[job].wait_w;

    for (int t = 0; t < p->n_types; t++) {
        if (!problem_allows(&p->jobs[job], t) || n_usable(p, t) == 0)
            continue;
        best_w = fmin(best_w, cheapest_beside(p, u, job, t, NULL, 0));
        for (int i = 0; i < p->n_jobs && p->theta > 1; i++) {
            if (i == job || !may_share(&p->jobs[i], t))
                continue;
            best_w = fmin(best_w, cheapest_beside(p, u, job, t, &i, 1));
            for (int k = 0; k < i && p->theta > 2; k++)
                if (k != job && may_share(&p->jobs[k], t))
                    best_w = fmin(best_w, cheapest_beside(p, u, job, t, (int[]){ i, k }, 2));
        }
    }
    return best_w;
}

/* Returns how many jobs there were to look at. */
static int check_choices(const struct problem *p, const struct prices *u, int seed)
{
    int n = 0;

    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *job = &p->jobs[j];
        if (!job->name || job->n_max > 1 || job->is_exclusive || job->n_present)
            continue;
        double want_w = cheapest_choice(p, u, j), w = certificate_job_w(p, u, j);
        ck_assert_msg(fabs(w - want_w) <= 1e-9 * (1 + fabs(want_w)),
                      "seed %d, job %d: %.9g, want %.9g", seed, j, w, want_w);
        n++;
    }
    return n;
}

START_TEST(a_job_on_one_gpu_pays_for_the_cheapest_slot_there_is)
{
    int n = 0;

    for (int seed = 1; seed <= 1000; seed++) {
        struct arena a;
        struct problem p;
        struct prices u;
        struct rng r;
        arena_init(&a);
        tiny_make(&a, (uint64_t)seed, 8, 6, &p);
        rng_init(&r, (uint64_t)seed, "prices");
        for (int i = 0; i < 10; i++) {
            random_prices(&a, &r, &p, &u);
            n += check_choices(&p, &u, seed);
        }
        arena_release(&a);
    }
    ck_assert_int_gt(n, 5000);
}
END_TEST

/* Its job may take another GPU beside the one that takes nobody new: what a gang of two pays, both
 * of them earn.
 */
START_TEST(a_gang_may_grow_from_a_gpu_that_takes_nobody_new)
{
    const double from[] = { 0 };
    double price[] = { 500 };
    const int here[] = { 0 };
    int first[] = { 0, 1 };
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
                         .low = low,
                         .watts = watts };
    struct slot_class classes[] = { { 0, 2, 1, from, price } };
    struct prices u = { .n_classes = 1, .classes = classes, .first = first };
    struct arena a;

    arena_init(&a);
    p.n_racks = 1;
    p.gang_near[2] = p.gang_far[2] = 1.75;
    ck_assert_double_le(certificate_bound(&a, &p, &u, 1, NULL), 200);
    arena_release(&a);
}
END_TEST

static const double steps_from[] = { 1, 2 };
static double steps_price[] = { 10, 30 }, steps_below[] = { -5, 30 };

static const struct {
    const char *name;
    int size;
    double low, want;
} price_cases[] = {
    { "below the first step a slot is free", SLOT_SHARED, 0.5, 0 },
    { "on a step it has its price", SLOT_SHARED, 1, 10 },
    { "between steps it has the lower one's price", SLOT_SHARED, 1.9, 10 },
    { "above all steps it has the last price", SLOT_SHARED, 9, 30 },
    { "a hair below a step counts as on it", SLOT_SHARED, 2 - 1e-12, 30 },
    { "below a first price under 0 it has that price", SLOT_ALONE, 0.5, -5 },
    { "a class that is missing costs nothing", 2, 9, 0 },
};

START_TEST(a_slot_has_the_price_of_its_step)
{
    struct slot_class classes[] = {
        { 0, SLOT_SHARED, 2, steps_from, steps_price },
        { 0, SLOT_ALONE, 2, steps_from, steps_below },
    };
    int first[] = { 0, 2 };
    struct prices u = { .n_classes = 2, .classes = classes, .first = first };

    ck_assert_msg(price_of(&u, 0, price_cases[_i].size, price_cases[_i].low) ==
                      price_cases[_i].want,
                  "%s", price_cases[_i].name);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("certificate");
    TCase *c = tcase_create("bound");

    tcase_add_loop_test(c, no_prices_give_a_bound_above_the_optimum, 0, 5);
    tcase_add_loop_test(c, the_bound_is_what_jobs_pay_less_what_gpus_earn, 1, 200);
    tcase_add_test(c, a_gang_may_grow_from_a_gpu_that_takes_nobody_new);
    tcase_add_test(c, a_job_on_one_gpu_pays_for_the_cheapest_slot_there_is);
    tcase_add_loop_test(c, a_slot_has_the_price_of_its_step, 0,
                        (int)(sizeof(price_cases) / sizeof(price_cases[0])));
    suite_add_tcase(s, c);
    return suite_run(s);
}

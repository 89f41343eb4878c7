/* The search: never worse than its start, near the optimum, the same on one and two threads. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/search/assignment.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "optimize/search/search.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

static struct assignment *start(const struct problem *p)
{
    struct assignment *d = assignment_create(p);

    assignment_lay_present(d);
    for (int j = 0; j < p->n_jobs; j++)
        assignment_insert(d, j);
    return d;
}

/* What the search makes of a problem; checked. */
static void solve(struct arena *a, const struct problem *p, long nodes, int threads,
                  struct plan *out)
{
    struct search_options o = search_defaults;
    struct err e = { 0 };
    struct assignment *d = start(p);

    o.nodes = nodes;
    o.threads = threads;
    double before_w = assignment_cost(d);
    search_run(d, NULL, &o);
    ck_assert(assignment_cost(d) <= before_w + 1e-9 * fabs(before_w));
    assignment_plan(d, a, out);
    ck_assert_msg(plan_check(a, p, out, &e) == 0, "%s", e.text);
    ck_assert(fabs(out->cost_w - assignment_cost(d)) <= 1e-9 * (1 + fabs(out->cost_w)));
    assignment_destroy(d);
}

TEST(tiny_problems_are_solved_as_if_by_brute_force)
{
    const uint64_t n_tiny = (uint64_t)suite_size(20, 120);
    int n_same = 0, n_sure = 0;

    for (uint64_t seed = 1; seed <= n_tiny; seed++) {
        struct arena a;
        struct problem p;
        struct plan best, x;
        arena_init(&a);
        tiny_any(&a, seed, 5, 4, &p);
        solve(&a, &p, 2000, 1, &x);
        bool is_sure = brute_solve(&a, &p, 30000, &best);
        double hair = 1e-9 * (1 + fabs(best.cost_w));
        ck_assert_msg(!is_sure || x.cost_w >= best.cost_w - hair, "seed %llu: below the optimum",
                      (unsigned long long)seed);
        n_sure += is_sure;
        n_same += is_sure && x.cost_w <= best.cost_w + hair;
        arena_release(&a);
    }
    ck_assert_int_gt(n_sure, (int)n_tiny / 2);
    ck_assert_msg(n_same >= n_sure * 97 / 100, "only %d of %d", n_same, n_sure);
}

static bool same_bytes(const struct plan *x, const struct plan *y)
{
    for (int j = 0; j < x->n_jobs; j++)
        if (x->jobs[j].n_gpus != y->jobs[j].n_gpus ||
            memcmp(x->jobs[j].gpus, y->jobs[j].gpus, (size_t)x->jobs[j].n_gpus * sizeof(int)) != 0)
            return false;
    return memcmp(x->limit, y->limit, (size_t)x->n_gpus) == 0 &&
           memcmp(&x->cost_w, &y->cost_w, sizeof x->cost_w) == 0;
}

static const struct {
    const char *name;
    int n_jobs, n_gpus, theta;
    long nodes;
    bool has_rules;
} sizes[] = {
    { "chains over the whole", 50, 30, 2, 4000, false },
    { "shards", 700, 500, 2, 6000, false },
    { "shards, combinations of three", 600, 320, 3, 4000, false },
    { "shards, an engine's rules", 700, 500, 2, 6000, true },
};

EACH(threads_make_no_difference, sizes)
{
    struct make_options o = make_defaults;
    struct arena a;
    struct problem p;
    struct plan x[3];

    arena_init(&a);
    o.n_jobs = sizes[_i].n_jobs;
    o.n_gpus = sizes[_i].n_gpus;
    o.theta = sizes[_i].theta;
    problem_make(&a, &o, &p);
    if (sizes[_i].has_rules)
        tiny_rules(&a, 2, &p);
    ck_assert(!sizes[_i].has_rules || p.nodes);
    for (int i = 0; i < 3; i++)
        solve(&a, &p, sizes[_i].nodes, 1 + i % 2, &x[i]);
    ck_assert_msg(same_bytes(&x[0], &x[1]), "%s: two threads differ", sizes[_i].name);
    ck_assert_msg(same_bytes(&x[0], &x[2]), "%s: a second run differs", sizes[_i].name);
    arena_release(&a);
}

TEST(it_ends_when_its_time_is_over)
{
    struct clock_manual m = { .t_s = 10 };
    struct clock c = clock_manual(&m);
    struct search_options o = search_defaults;
    struct arena a;
    struct problem p;

    arena_init(&a);
    problem_make(&a, &make_defaults, &p);
    struct assignment *d = start(&p);
    o.nodes = 0;
    o.clock = &c;
    o.until_s = 9;
    double before_w = assignment_cost(d);
    ck_assert_int_eq(search_run(d, NULL, &o), 0);
    ck_assert(assignment_cost(d) <= before_w + 1e-9 * fabs(before_w));
    assignment_destroy(d);
    arena_release(&a);
}

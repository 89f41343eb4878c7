/* The assignment: what it allows is what the judge allows, and its cost is the judge's at all
 * times. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "optimize/model/plan.h"
#include "optimize/search/assignment.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

static int below(struct rng *r, int n)
{
    return (int)rng_below(r, (uint64_t)n);
}

static void must_be_true(struct assignment *d, uint64_t seed)
{
    struct arena a;
    struct plan x;
    struct err e = { 0 };

    arena_init(&a);
    assignment_plan(d, &a, &x);
    ck_assert_msg(plan_check(&a, d->problem, &x, &e) == 0, "seed %llu: %s",
                  (unsigned long long)seed, e.text);
    ck_assert_msg(fabs(x.cost_w - assignment_cost(d)) <= 1e-9 * (1 + fabs(x.cost_w)),
                  "seed %llu: %.12g W, but the assignment says %.12g W", (unsigned long long)seed,
                  x.cost_w, assignment_cost(d));
    arena_release(&a);
}

/* Caps may be below what all GPUs draw awake; then an empty assignment is no answer. */
static bool may_be_empty(const struct assignment *d)
{
    bool may = !(d->room_w < 0);

    for (int r = 0; d->rack_room_w && r < d->problem->n_racks; r++)
        may &= d->rack_room_w[r] >= 0;
    return may;
}

/* Some distinct GPUs, in any order; returns how many. */
static int some_gpus(struct rng *r, const struct problem *p, int most, int *gpus)
{
    int want = 1 + below(r, most), n = 0;

    for (int tries = 0; tries < 4 * want && n < want; tries++) {
        int g = below(r, p->n_gpus), k = 0;
        while (k < n && gpus[k] != g)
            k++;
        if (k == n)
            gpus[n++] = g;
    }
    return n;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* What the judge says of the assignment's answer with one more job placed. */
static bool judge_allows(struct assignment *d, int job, const int *gpus, int n, int limit)
{
    struct arena a;
    struct plan x;
    struct err e = { 0 };
    int sorted[GANG_MAX];

    arena_init(&a);
    assignment_plan(d, &a, &x);
    memcpy(sorted, gpus, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_number);
    for (int i = 0; i < n; i++)
        x.limit[gpus[i]] = (unsigned char)limit;
    x.jobs[job] = (struct plan_job){ .n_gpus = n, .gpus = sorted };
    plan_price(&a, d->problem, &x);
    bool allowed = plan_check(&a, d->problem, &x, &e) == 0;
    arena_release(&a);
    return allowed;
}

static bool has_limit(const struct problem *p, const int *gpus, int n, int limit)
{
    for (int i = 0; i < n; i++)
        if (limit >= p->types[p->gpus[gpus[i]].type].n_limits)
            return false;
    return true;
}

static int waiting_job(struct rng *r, const struct assignment *d)
{
    int job = below(r, d->problem->n_jobs);

    return d->problem->jobs[job].name && d->jobs[job].n_gpus == 0 ? job : -1;
}

TEST(it_allows_exactly_what_the_judge_allows)
{
    int n_yes = 0, n_no = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct arena a;
        struct problem p;
        struct rng r;
        arena_init(&a);
        tiny_any(&a, seed, 6, 5, &p);
        rng_init(&r, seed, "assignment");
        struct assignment *d = assignment_create(&p);
        for (int i = 0; i < 40 && p.n_jobs > 0 && p.n_gpus > 0 && may_be_empty(d); i++) {
            int gpus[GANG_MAX], job = waiting_job(&r, d), limit = below(&r, LIMITS_MAX);
            int n = some_gpus(&r, &p, 3, gpus);
            if (job < 0 || !has_limit(&p, gpus, n, limit))
                continue;
            bool may = assignment_may(d, job, gpus, n, limit),
                 should = judge_allows(d, job, gpus, n, limit);
            ck_assert_msg(may == should, "seed %llu, step %d: assignment says %d, judge %d",
                          (unsigned long long)seed, i, may, should);
            ck_assert_int_eq(assignment_put(d, job, gpus, n, limit), may);
            must_be_true(d, seed);
            n_yes += may;
            n_no += !may;
        }
        assignment_destroy(d);
        arena_release(&a);
    }
    ck_assert_int_gt(n_yes, 300);
    ck_assert_int_gt(n_no, 300);
}

/* One change of any sort; most are refused now and then. */
static void push(struct assignment *d, struct rng *r)
{
    const struct problem *p = d->problem;
    int job = below(r, p->n_jobs), gpus[GANG_MAX];
    bool is_placed = d->jobs[job].n_gpus > 0;

    switch (below(r, 7)) {
    case 0:
    case 1:
        if (is_placed && !p->jobs[job].is_fixed)
            assignment_take(d, job);
        break;
    case 2:
    case 3:
        assignment_insert(d, job);
        break;
    case 4:
        assignment_set_limit(d, below(r, p->n_gpus), below(r, LIMITS_MAX));
        break;
    case 5:
        assignment_relimit(d, below(r, p->n_gpus));
        break;
    default:
        if (p->jobs[job].form == FORM_SPREAD && is_placed && below(r, 2))
            assignment_add_part(d, job, below(r, p->n_gpus));
        else if (!is_placed)
            assignment_put(d, job, gpus, some_gpus(r, p, 2, gpus), -1);
    }
}

static void push_around(const struct problem *p, uint64_t seed, int n_pushes, int check_every)
{
    struct rng r;
    struct assignment *d = assignment_create(p);

    rng_init(&r, seed, "push");
    if (!may_be_empty(d) || below(&r, 2))
        assignment_lay_present(d);
    must_be_true(d, seed);
    for (int i = 0; i < n_pushes && p->n_jobs > 0 && p->n_gpus > 0; i++) {
        double before_w = assignment_cost(d);
        bool is_marked = below(&r, 2);
        if (is_marked)
            assignment_mark(d);
        for (int k = 0; k < 4; k++)
            push(d, &r);
        if (is_marked && below(&r, 2)) {
            assignment_undo(d);
            ck_assert(assignment_cost(d) == before_w);
        } else if (is_marked) {
            assignment_keep(d);
        }
        if (i % check_every == 0)
            must_be_true(d, seed);
    }
    must_be_true(d, seed);
    assignment_destroy(d);
}

TEST(its_cost_is_the_judges_after_any_change)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct arena a;
        struct problem p;
        arena_init(&a);
        tiny_any(&a, seed, 6, 5, &p);
        push_around(&p, seed, 30, 1);
        arena_release(&a);
    }
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct arena a;
        struct problem p;
        struct make_options o = make_defaults;
        arena_init(&a);
        o.seed = seed;
        o.theta = (int)seed + 1;
        problem_make(&a, &o, &p);
        push_around(&p, seed, 2000, 100);
        arena_release(&a);
    }
}

TEST(inserting_everybody_beats_letting_everybody_wait)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct arena a;
        struct problem p;
        arena_init(&a);
        tiny_any(&a, seed, 6, 5, &p);
        struct assignment *d = assignment_create(&p);
        if (!may_be_empty(d))
            assignment_lay_present(d);
        for (int j = 0; j < p.n_jobs; j++) {
            double before_w = assignment_cost(d);
            bool placed = assignment_insert(d, j);
            double change_w = assignment_cost(d) - before_w, hair = 1e-9 * (1 + fabs(before_w));
            ck_assert_msg(placed ? change_w < hair : fabs(change_w) < hair,
                          "seed %llu, job %d: placed %d, %.12g W more", (unsigned long long)seed, j,
                          placed, change_w);
        }
        must_be_true(d, seed);
        assignment_destroy(d);
        arena_release(&a);
    }
}

/* ---- why a job waits ---- */

/* One kind, two types with two GPUs each on a node; the second type is small. */
static void two_types(struct arena *a, struct problem *p)
{
    static float speed[] = { 10, 0, 5, 0 }, watts[] = { 200, 100 };
    *p = (struct problem){ .theta = 1,
                           .watts_margin = 1,
                           .n_types = 2,
                           .n_kinds = 1,
                           .n_gpus = 4,
                           .n_jobs = 1,
                           .n_racks = 1,
                           .speed = speed,
                           .held = speed,
                           .watts = watts };
    for (int m = 0; m <= GANG_MAX; m++)
        p->gang_near[m] = p->gang_far[m] = m;
    p->types = ARENA_ARRAY(a, struct problem_type, 2);
    p->types[0] = (struct problem_type){ "big", 5, 20, 300, 40, 1, { { 0 } } };
    p->types[1] = (struct problem_type){ "small", 5, 20, 200, 10, 1, { { 0 } } };
    p->kinds = ARENA_ARRAY(a, struct problem_kind, 1);
    p->kinds[0] = (struct problem_kind){ .name = "k", .mem_gib = 8 };
    p->gpus = ARENA_ARRAY(a, struct problem_gpu, 4);
    for (int g = 0; g < 4; g++)
        p->gpus[g] = (struct problem_gpu){ .type = g / 2, .node = g / 2, .may_start = true };
    p->jobs = ARENA_ARRAY(a, struct problem_job, 2);
    for (int j = 0; j < 2; j++)
        p->jobs[j] = (struct problem_job){
            .name = "j", .n_min = 1, .n_max = 1, .need = 4, .short_w = 1000, .wait_w = 1000
        };
}

/* On the big type 195 W, on the small one 95 W; which sleeps, and for how long, decides. */
static const struct {
    const char *name;
    double wake_s[2];    // by type
    int n_min, n_nodes, gpu;
} wakings[] = {
    { "the cheaper GPU", { 0, 0 }, 1, 0, 2 },
    { "even if it sleeps, where that costs less than the other", { 0, 90 }, 1, 0, 2 },
    { "the other, where it costs more", { 0, 110 }, 1, 0, 0 },
    { "a gang likewise", { 0, 90 }, 2, 0, 2 },
    { "or not", { 0, 110 }, 2, 1, 0 },
};

EACH(an_insertion_counts_what_it_wakes, wakings)
{
    struct arena a;
    struct problem p;

    arena_init(&a);
    two_types(&a, &p);
    for (int g = 0; g < p.n_gpus; g++)
        p.gpus[g].wake_s = wakings[_i].wake_s[p.gpus[g].type];
    p.jobs[0].n_min = p.jobs[0].n_max = wakings[_i].n_min;
    p.jobs[0].n_nodes = wakings[_i].n_nodes;
    p.jobs[0].wake_rate = 1. / 40;    // of 20 W
    p.jobs[0].late_w = 0.5;
    struct assignment *d = assignment_create(&p);
    ck_assert(assignment_insert(d, 0));
    ck_assert_msg(p.gpus[assignment_gpus(d, 0)[0]].type == p.gpus[wakings[_i].gpu].type,
                  "%s: GPU %d", wakings[_i].name, assignment_gpus(d, 0)[0]);
    assignment_destroy(d);
    arena_release(&a);
}

static void has_place(struct problem *p)
{
    p->jobs[0].need = 10;
}
static void allows_none(struct problem *p)
{
    p->jobs[0].allowed_types = 4;
}
static void is_too_large(struct problem *p)
{
    p->kinds[0].mem_gib = 50;
}
static void is_too_many(struct problem *p)
{
    p->jobs[0].n_min = p->jobs[0].n_max = 3;
}
static void promises_too_much(struct problem *p)
{
    p->jobs[0].need = 100;
    p->jobs[0].wait_w = 500;
}
static void draws_too_much(struct problem *p)
{
    p->power_cap_w = 130;
}
static void costs_too_much(struct problem *p)
{
    p->jobs[0].wait_w = 50;
}

static const struct {
    const char *name;
    void (*given)(struct problem *p);
    enum wait_reason want;
} reasons[] = {
    { "a job that fits is placed", has_place, WAIT_NOT },
    { "no GPU of an allowed type", allows_none, WAIT_TYPE },
    { "too large for every GPU", is_too_large, WAIT_MEMORY },
    { "more GPUs than there are of one type", is_too_many, WAIT_GANG },
    { "a promise no place could hold", promises_too_much, WAIT_PROMISE },
    { "the cap leaves no room", draws_too_much, WAIT_POWER },
    { "nothing that is worth it", costs_too_much, WAIT_CAPACITY },
};

EACH(who_waits_is_told_why, reasons)
{
    struct arena a;
    struct problem p;
    struct plan x;

    arena_init(&a);
    two_types(&a, &p);
    reasons[_i].given(&p);
    struct assignment *d = assignment_create(&p);
    assignment_insert(d, 0);
    assignment_plan(d, &a, &x);
    ck_assert_msg(x.jobs[0].reason == reasons[_i].want, "%s: got '%s'", reasons[_i].name,
                  wait_reason_name(x.jobs[0].reason));
    assignment_destroy(d);
    arena_release(&a);
}

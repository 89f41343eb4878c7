/* The generator: sound, repeatable, and as realistic as its header says. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"
#include "optimize/files/problem_make.h"
#include "unit/suite.h"

static const struct {
    const char *claim;
    int n_jobs, n_gpus, n_types, n_kinds, theta;
    double overload, standing;
} sizes[] = {
    { "nothing at all", 0, 0, 1, 0, 2, 1, 0.6 },
    { "jobs and no GPU", 6, 0, 3, 0, 2, 1, 0.6 },
    { "GPUs and no job", 0, 5, 2, 0, 2, 1, 0.6 },
    { "one of each", 1, 1, 1, 1, 1, 1, 1 },
    { "the brute-force size", 6, 5, 2, 4, 2, 1, 0.6 },
    { "the exact size", 50, 30, 6, 0, 2, 1, 0.6 },
    { "three together", 60, 30, 6, 0, 3, 1, 0.6 },
    { "four together, all of them standing", 60, 30, 6, 0, 4, 1, 1 },
    { "overload", 90, 30, 6, 0, 2, 3, 0.6 },
    { "as many types as there can be", 30, 80, 64, 0, 2, 1, 0.6 },
    { "more kinds than jobs", 20, 30, 4, 60, 2, 1, 0.6 },
    { "nobody stands", 70, 50, 6, 0, 2, 1, 0 },
    { "a medium one", 350, 250, 6, 0, 2, 1, 0.6 },
};

static struct make_options options_of(int i, uint64_t seed)
{
    struct make_options o = make_defaults;

    o.n_jobs = sizes[i].n_jobs;
    o.n_gpus = sizes[i].n_gpus;
    o.n_types = sizes[i].n_types;
    o.n_kinds = sizes[i].n_kinds;
    o.theta = sizes[i].theta;
    o.overload = sizes[i].overload;
    o.standing = sizes[i].standing;
    o.joules = seed % 2 == 0;
    o.seed = seed;
    return o;
}

EACH(every_problem_passes_the_check, sizes)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct make_options o = options_of(_i, seed);
        struct err e = { 0 };
        struct problem p;
        struct arena a;

        arena_init(&a);
        problem_make(&a, &o, &p);
        ck_assert_msg(problem_check(&p, &e) == 0, "%s: %s", sizes[_i].claim, e.text);
        ck_assert_int_eq(p.n_jobs, o.n_jobs);
        ck_assert_int_eq(p.n_gpus, o.n_gpus);
        arena_release(&a);
    }
}

static void write_one(const struct make_options *o, struct buf *out)
{
    struct err e = { 0 };
    struct problem p;
    struct arena a;

    arena_init(&a);
    problem_make(&a, o, &p);
    ck_assert_msg(problem_write(&p, out, &e) == 0, "%s", e.text);
    arena_release(&a);
}

TEST(the_same_seed_gives_the_same_bytes_and_another_others)
{
    struct make_options o = make_defaults;
    struct buf one, two;

    buf_init(&one, PROBLEM_BYTES_MAX);
    buf_init(&two, PROBLEM_BYTES_MAX);
    write_one(&o, &one);
    write_one(&o, &two);
    ck_assert_str_eq(buf_text(&one), buf_text(&two));
    buf_clear(&two);
    o.seed = 2;
    write_one(&o, &two);
    ck_assert_str_ne(buf_text(&one), buf_text(&two));
    buf_release(&one);
    buf_release(&two);
}

/* ---- realism, on a medium problem ---- */

struct census {
    int n_standing, n_promised, n_gang, n_whole, n_spread, n_exclusive, n_picky, n_one_node;
    int n_drained, n_limited, n_unfit, n_pairs_unfit, n_pairs;
    double least_slowdown, most_slowdown, least_w, most_w;
};

static void count_jobs(const struct problem *p, struct census *c)
{
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        c->n_standing += j->n_present > 0;
        c->n_promised += j->need > 0;
        c->n_gang += j->form == FORM_GANG && j->n_max > 1;
        c->n_whole += j->n_min > 1;
        c->n_spread += j->form == FORM_SPREAD;
        c->n_exclusive += j->is_exclusive;
        c->n_picky += j->allowed_types != 0;
        c->n_one_node += j->n_nodes == 1;
        c->n_limited += j->present_limit > 0;
    }
    for (int g = 0; g < p->n_gpus; g++)
        c->n_drained += !p->gpus[g].may_start;
}

static void count_cells(const struct problem *p, struct census *c)
{
    c->least_slowdown = c->least_w = INFINITY;
    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < p->n_kinds; k++) {
            double alone = (double)p->speed[problem_cell(p, t, k, -1)];
            double watts = (double)p->watts[t * p->n_kinds + k];
            c->n_unfit += !(alone > 0);
            c->least_w = fmin(c->least_w, watts);
            c->most_w = fmax(c->most_w, watts);
            for (int n = 0; n < p->n_kinds && alone > 0; n++) {
                double r = (double)p->speed[problem_cell(p, t, k, n)] / alone;
                c->n_pairs++;
                c->n_pairs_unfit += !(r > 0);
                if (r > 0)
                    c->least_slowdown = fmin(c->least_slowdown, r);
                c->most_slowdown = fmax(c->most_slowdown, r);
            }
        }
}

TEST(it_is_as_its_header_says)
{
    struct make_options o = make_defaults;
    struct census c = { 0 };
    struct problem p;
    struct arena a;

    o.n_jobs = 1400;
    o.n_gpus = 1000;
    arena_init(&a);
    problem_make(&a, &o, &p);
    count_jobs(&p, &c);
    count_cells(&p, &c);
    ck_assert_int_eq(p.n_kinds, 50);
    ck_assert(c.n_standing > 0.5 * o.n_jobs && c.n_standing <= 0.6 * o.n_jobs);
    ck_assert(c.n_promised > 0.92 * o.n_jobs && c.n_promised < 0.98 * o.n_jobs);
    ck_assert(c.n_spread > 0.12 * o.n_jobs && c.n_spread < 0.22 * o.n_jobs);
    ck_assert(c.n_gang > 0.05 * o.n_jobs && c.n_gang < 0.12 * o.n_jobs);
    ck_assert(c.n_whole > 0 && c.n_whole < c.n_gang && c.n_one_node > 0 && c.n_limited > 0);
    ck_assert(c.n_exclusive > 0 && c.n_picky > 0 && c.n_drained > 0 && c.n_unfit > 0);
    ck_assert(c.n_pairs_unfit > 0.01 * c.n_pairs && c.n_pairs_unfit < 0.3 * c.n_pairs);
    ck_assert(c.least_slowdown >= 0.299 && c.least_slowdown < 0.4 && c.most_slowdown <= 1.0001);
    ck_assert(c.least_w >= 59.9 && c.most_w <= 400);
    ck_assert(p.power_cap_w > 0 && p.n_racks > 25);
    arena_release(&a);
}

/* What each job that runs holds, summed over its GPUs. */
static void sum_held(const struct problem *p, double *low)
{
    int kinds[200][THETA_MAX], who[200][THETA_MAX], n[200] = { 0 };
    struct yield y;

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < p->jobs[j].n_present; i++) {
            int g = p->jobs[j].present[i];
            kinds[g][n[g]] = p->jobs[j].kind;
            who[g][n[g]++] = j;
        }
    for (int g = 0; g < p->n_gpus; g++) {
        if (n[g] == 0)
            continue;
        ck_assert(problem_yield(p, p->gpus[g].type, p->jobs[who[g][0]].present_limit, kinds[g],
                                n[g], &y));
        for (int i = 0; i < n[g]; i++)
            low[who[g][i]] += y.held[i].mean;
    }
}

TEST(nearly_all_who_stand_keep_their_promise_on_gpus_that_were_open_to_them)
{
    int n_standing = 0, n_short = 0;

    for (uint64_t seed = 0; seed < 4; seed++) {
        struct make_options o = make_defaults;
        double low[200] = { 0 };
        struct problem p;
        struct arena a;

        arena_init(&a);
        o.seed = seed;
        problem_make(&a, &o, &p);
        sum_held(&p, low);
        for (int j = 0; j < p.n_jobs; j++) {
            const struct problem_job *job = &p.jobs[j];
            if (job->form == FORM_GANG && job->n_present > 1)
                low[j] *= p.gang_near[job->n_present] / job->n_present;
            n_standing += job->n_present > 0;
            n_short += job->n_present > 0 && low[j] < job->need * (1 - 1e-9);
            for (int i = 0; i < job->n_present; i++)
                ck_assert(p.gpus[job->present[i]].may_start);
        }
        arena_release(&a);
    }
    ck_assert_msg(n_standing > 200 && n_short < 0.05 * n_standing, "%d of %d fall short", n_short,
                  n_standing);
}

/* Over the decisions of a run: nothing is better than the chosen place without a reason. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/cluster/cluster.h"
#include "optimize/explain/explain.h"
#include "optimize/model/lower.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/trace/generate.h"
#include "unit/suite.h"

static const char mixed[] = "node old-[1-2] k80:4\nnode mid-1 p100:4\nnode new-1 v100:2 a100:2\n";

enum { DECISIONS = 500 };

struct tally {
    int n_decisions, n_jobs;
    int n_passed_over;    // places that cost less, and nothing says why they were not taken
    double worst;         // by so many watts
    int n_seen[CANDIDATE_VERDICTS];
};

static void look_at(void *self, const struct lowered *asked, const struct plan *p)
{
    struct tally *t = self;
    struct arena a;

    if (t->n_decisions++ >= DECISIONS)
        return;
    arena_init(&a);
    for (int j = 0; j < p->n_jobs; j++) {
        struct explanation x;
        explain_job(&a, asked, p, j, &x);
        double most_w = p->jobs[j].n_gpus ? x.candidates[0].cost.cost_w : x.wait_w;
        bool is_passed = false;
        for (int i = 0; i < x.n_candidates; i++) {
            const struct candidate *c = &x.candidates[i];
            t->n_seen[c->verdict]++;
            if (c->verdict != CANDIDATE_PASSED_OVER)
                continue;
            is_passed = true;
            t->worst = fmax(t->worst, most_w - c->cost.cost_w);
        }
        t->n_passed_over += is_passed;
        t->n_jobs++;
        arena_reset(&a);
    }
    arena_release(&a);
}

/* Jobs for the mixed cluster, by chance, run by 'policy' until there were enough decisions. */
static void run(const char *policy, uint64_t seed, struct tally *t)
{
    const struct trace_generate jobs = {
        .n_jobs = 300, .load = 0.8, .inference = 0.2, .seed = seed
    };
    struct trace_draw draw;
    struct cluster cl;
    struct ground g;
    struct trace tr;
    struct sim *s = NULL;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", mixed, strlen(mixed), &cl, &e), 0);
    ck_assert_int_eq(ground_builtin(&g, &cl, NULL, NULL, 1, &e), 0);
    ck_assert_int_eq(trace_draw_init(&draw, &a, &g.truth, &cl, NULL, seed, &e), 0);
    ck_assert_int_eq(trace_generate(&a, &jobs, &draw, &cl, &tr, &e), 0);
    *t = (struct tally){ 0 };
    const struct sim_options o = { .cluster = &cl,
                                   .trace = &tr,
                                   .truth = &g.truth,
                                   .policy = policy,
                                   .seed = 1,
                                   .on_plan = look_at,
                                   .owner = t };
    ck_assert_msg(sim_create(&o, &s, &e) == 0, "%s", e.text);
    for (double at_s = 0; t->n_decisions < DECISIONS && sim_advance(s, at_s, &e) > 0;)
        at_s += 600;
    sim_destroy(s);
    ground_close(&g);
    arena_release(&a);
}

SPAN(nothing_that_costs_less_goes_without_a_reason, 3, 3 + suite_size(1, 3))
{
    struct tally t;

    run("gogh", (uint64_t)_i, &t);
    ck_assert_int_ge(t.n_decisions, DECISIONS);
    ck_assert_msg(t.n_passed_over == 0, "%d of %d jobs passed over a place that costs %g W less",
                  t.n_passed_over, t.n_jobs, t.worst);
    ck_assert_int_gt(t.n_seen[CANDIDATE_BREAKS_PROMISE], 0);
    ck_assert_int_gt(t.n_seen[CANDIDATE_BREAKS_NEIGHBOUR], 0);
    ck_assert_int_gt(t.n_seen[CANDIDATE_MOVE_COSTS], 0);
    ck_assert_int_gt(t.n_seen[CANDIDATE_TRIED_LESS], 0);
}

#include "optimize/search/search.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/fork_join.h"
#include "optimize/prices/prices.h"
#include "optimize/search/inner.h"

/* Up to so many GPUs a problem is walked as a whole, several times. */
#define WHOLE_MAX 300
#define N_CHAINS 4

#define SHARD_GPUS 2500    // about, in a shard
#define N_SHARDS_MAX 16
#define N_ROUNDS 12
#define N_ROUNDS_LEAST 3
#define ROUND_S 0.03    // in less a round spends most of its time on cutting

/* Of large problems two rounds in three, the first ones too, are spent on GPUs that lose more than
 * this, up to so many in a shard.
 */
#define BAD_W 1.0
#define WORST_MAX 600

const struct search_options search_defaults = { .seed = 1, .nodes = 100000, .threads = 1 };

/* ---- walks at the same time ---- */

struct walk_task {
    struct shard *shard;
    struct walk_plan plan;
    uint64_t stream;
    long nodes;
};

struct workers {
    struct assignment *d;
    const struct search_options *o;
    const struct prices *u;
    struct reduced_costs *reduced;
    struct walk_task *tasks;
    int n_tasks, n_threads;
    double slice_s;    // of each walk, where time is limited
    atomic_int next;
    long nodes;    // done
};

static void run_task(struct workers *c, struct walk_task *t)
{
    struct shard *s = t->shard;
    double *job_w = NULL;

    if (c->u) {
        job_w = heap_array((size_t)s->problem.n_jobs, sizeof *job_w);
        for (int j = 0; j < s->problem.n_jobs; j++)
            job_w[j] = c->u->job_w[s->job_of[j]];
    }
    if (c->o->clock) {
        t->plan.clock = c->o->clock;
        t->plan.from_s = clock_now_s(c->o->clock);
        t->plan.until_s = fmin(t->plan.from_s + c->slice_s, c->o->until_s);
    }
    struct search_walk *w = walk_create(s->assignment, c->u, job_w, c->o->seed, t->stream);
    w->reduced = c->reduced;
    walk_run(w, &t->plan);
    t->nodes = w->nodes;
    walk_destroy(w);
    free(job_w);
}

/* One after the other, by whoever has time. */
static void run_tasks(void *workers, int part, int n_parts)
{
    struct workers *c = workers;

    (void)part, (void)n_parts;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < c->n_tasks;)
        run_task(c, &c->tasks[i]);
}

/* ---- cutting ---- */

/* GPUs by node. */
static struct key_index on_nodes(struct arena *a, const struct problem *p)
{
    int *node = ARENA_ARRAY(a, int, (size_t)p->n_gpus);

    for (int g = 0; g < p->n_gpus; g++)
        node[g] = p->gpus[g].node;
    return key_index_make(a, node, p->n_gpus, problem_n_nodes(p));
}

/* Put the neighbours of a node, by jobs that stand on both, at the end of the queue. */
static void queue_related(const struct assignment *d, const struct key_index *on, int node,
                          bool *is_seen, int *queue, int *n)
{
    for (int i = on->first[node]; i < on->first[node + 1]; i++) {
        const struct assignment_gpu *g = &d->gpus[on->items[i]];
        for (int k = 0; k < g->n_jobs; k++) {
            int job = g->jobs[k];
            for (int m = 0; d->jobs[job].n_gpus > 1 && m < d->jobs[job].n_gpus; m++) {
                int other = d->problem->gpus[assignment_gpus(d, job)[m]].node;
                if (!is_seen[other])
                    queue[(*n)++] = other;
                is_seen[other] = true;
            }
        }
    }
}

/* Cut nodes into shards of about the same size, so that few jobs stand in several. */
static void cut(const struct assignment *d, const struct key_index *on, struct rng *rng,
                int n_shards, int *shard_of)
{
    const int n_nodes = problem_n_nodes(d->problem);
    int n = 0, head = 0, done = 0;
    struct arena scratch;

    arena_init(&scratch);
    int *order = ARENA_ARRAY(&scratch, int, (size_t)n_nodes);
    int *queue = ARENA_ARRAY(&scratch, int, (size_t)n_nodes);
    bool *is_seen = ARENA_ARRAY(&scratch, bool, (size_t)n_nodes);

    for (int i = 0; i < n_nodes; i++) {
        int k = (int)rng_below(rng, (uint64_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (int next = 0; done < d->problem->n_gpus;) {
        if (head == n) {
            while (is_seen[order[next]])
                next++;
            is_seen[order[next]] = true;
            queue[n++] = order[next];
        }
        int node = queue[head++];
        for (int i = on->first[node]; i < on->first[node + 1]; i++, done++)
            shard_of[on->items[i]] = (int)((long)done * n_shards / d->problem->n_gpus);
        queue_related(d, on, node, is_seen, queue, &n);
    }
    /* A node may have been cut in two at a border: it goes with its first GPU. */
    for (int g = 0; g < d->problem->n_gpus; g++)
        shard_of[g] = shard_of[on->items[on->first[d->problem->gpus[g].node]]];
    arena_release(&scratch);
}

/* ---- where most is lost ---- */

/* A GPU goes into a shard, and with it those on which its jobs stand too. */
static int take_along(const struct assignment *d, int gpu, int shard, int *shard_of)
{
    int n = shard_of[gpu] < 0;

    shard_of[gpu] = shard_of[gpu] < 0 ? shard : shard_of[gpu];
    for (int i = 0; i < d->gpus[gpu].n_jobs; i++) {
        int job = d->gpus[gpu].jobs[i];
        for (int k = 0; k < d->jobs[job].n_gpus; k++) {
            int other = assignment_gpus(d, job)[k];
            n += shard_of[other] < 0;
            shard_of[other] = shard_of[other] < 0 ? shard : shard_of[other];
        }
    }
    return n;
}

/* Shards of the GPUs that lose most, and of some that do not and have room to give; the others
 * (-1) are left alone.
 */
static void cut_worst(struct assignment *d, const struct workers *c, struct rng *rng, int n_shards,
                      int *shard_of)
{
    int n_gpus = d->problem->n_gpus, n = 0, n_bad = 0;
    struct ranked_index *losses = heap_array((size_t)n_gpus, sizeof *losses);
    struct search_walk *w = walk_create(d, c->u, c->u->job_w, 0, 0);

    for (int g = 0; g < n_gpus; g++) {
        losses[g] = (struct ranked_index){ walk_loss(w, g), g };
        n_bad += losses[g].by > BAD_W;
        shard_of[g] = -1;
    }
    walk_destroy(w);
    qsort(losses, (size_t)n_gpus, sizeof *losses, ranked_most_first);
    int most = n_shards * WORST_MAX;
    n_bad = n_bad < most ? n_bad : most;
    for (int i = 0; i < n_bad && n < most; i++)
        n += take_along(d, (int)losses[i].which, (int)rng_below(rng, (uint64_t)n_shards), shard_of);
    for (int i = 0, fill = n / 2 + 50; i < fill; i++)
        take_along(d, (int)rng_below(rng, (uint64_t)n_gpus),
                   (int)rng_below(rng, (uint64_t)n_shards), shard_of);
    free(losses);
}

static long share(long nodes, int n)
{
    return (nodes + n - 1) / n;
}

/* ---- small: several walks, the best counts ---- */

static void run_chains(struct workers *c, double heat_w)
{
    struct assignment *d = c->d;
    struct walk_task tasks[N_CHAINS] = { 0 };
    int *shard_of = heap_array((size_t)d->problem->n_gpus, sizeof *shard_of);
    const int n = N_CHAINS;
    int best = 0;

    for (int i = 0; i < n; i++) {
        tasks[i].shard = shard_create(d, shard_of, 1, 0, 0);
        tasks[i].plan = (struct walk_plan){ .nodes = share(c->o->nodes, n), .heat_w = heat_w };
        tasks[i].stream = (uint64_t)i;
    }
    c->tasks = tasks;
    c->n_tasks = n;
    if (c->o->clock)
        c->slice_s = (c->o->until_s - clock_now_s(c->o->clock)) * c->n_threads / n;
    fork_join(c->n_threads, run_tasks, c);
    for (int i = 0; i < n; i++) {
        c->nodes += tasks[i].nodes;
        if (tasks[i].shard->assignment->cost_w < tasks[best].shard->assignment->cost_w)
            best = i;
    }
    shard_apply(d, tasks[best].shard);
    for (int i = 0; i < n; i++)
        shard_destroy(tasks[i].shard);
    free(shard_of);
}

/* ---- large: shards, cut anew each round ---- */

/* From 'heat_w' to 'cool_w'; 'on' (nodes) NULL: on the GPUs that lose most. */
static void run_round(struct workers *c, const struct key_index *on, struct rng *rng, int n_shards,
                      double heat_w, double cool_w)
{
    struct assignment *d = c->d;
    struct walk_task tasks[N_SHARDS_MAX] = { 0 };
    int *shard_of = heap_array((size_t)d->problem->n_gpus, sizeof *shard_of);
    uint64_t turn = rng_u64(rng) >> 8;

    if (on)
        cut(d, on, rng, n_shards, shard_of);
    else
        cut_worst(d, c, rng, n_shards, shard_of);
    for (int i = 0; i < n_shards; i++) {
        tasks[i].shard = shard_create(d, shard_of, n_shards, i, turn);
        tasks[i].plan = (struct walk_plan){ .nodes = share(c->o->nodes, N_ROUNDS * n_shards),
                                            .heat_w = heat_w,
                                            .cool_w = cool_w };
        tasks[i].stream = rng_u64(rng);
    }
    c->tasks = tasks;
    c->n_tasks = n_shards;
    atomic_store(&c->next, 0);
    fork_join(c->n_threads, run_tasks, c);
    for (int i = 0; i < n_shards; i++) {
        shard_apply(d, tasks[i].shard);
        c->nodes += tasks[i].nodes;
        shard_destroy(tasks[i].shard);
    }
    free(shard_of);
}

/* With little time, few. */
static int rounds_for(const struct search_options *o)
{
    double most = o->clock ? (o->until_s - clock_now_s(o->clock)) / ROUND_S : N_ROUNDS;

    return (int)fmin(fmax(most, N_ROUNDS_LEAST), N_ROUNDS);
}

static void run_shards(struct workers *c, double heat_w)
{
    const struct problem *p = c->d->problem;
    const int n_rounds = rounds_for(c->o);
    int n_shards = p->n_gpus / SHARD_GPUS;
    struct arena scratch;
    struct rng rng;

    n_shards = n_shards < 2 ? 2 : n_shards > N_SHARDS_MAX ? N_SHARDS_MAX : n_shards;
    rng_init(&rng, c->o->seed, "shards");
    arena_init(&scratch);
    const struct key_index on = on_nodes(&scratch, p);
    for (int round = 0; round < n_rounds; round++) {
        double from_w = heat_w * pow(0.3, round), to_w = from_w * 0.3;
        bool is_worst = c->u && round % 3 < 2;
        int n_cut = is_worst ? 2 : n_shards;
        if (c->o->clock) {
            double left_s = c->o->until_s - clock_now_s(c->o->clock);
            if (left_s <= 0)
                break;
            c->slice_s = left_s / (n_rounds - round) * c->n_threads / n_cut;
        }
        run_round(c, is_worst ? NULL : &on, &rng, n_cut, from_w, round < n_rounds - 1 ? to_w : 0);
    }
    arena_release(&scratch);
}

/* ---- all ---- */

static double typical_w(const struct assignment *d)
{
    double sum = 0;
    int n = 1;

    for (int g = 0; g < d->problem->n_gpus; g++)
        if (d->gpus[g].n_jobs > 0) {
            sum += d->gpus[g].watts;
            n++;
        }
    return sum / n;
}

/* A step takes about 2 us on a small problem. */
#define STEPS_A_SECOND 450000.0

/* How much worse a step may be at first, as a share of what a used GPU costs: a walk with time to
 * spare begins hot. Measured against the best of all heats: eight problems of
 * 50 jobs and 30 GPUs with 16,000 steps a GPU end 0.001 % above it with heat 0.1 and 0.25 % with
 * 0.01; four of 140 jobs and 100 GPUs with 4,000 steps a GPU 0.17 % and 0.04 %.
 */
static double heat_for(const struct assignment *d, const struct prices *u,
                       const struct search_options *o)
{
    double nodes = (double)o->nodes;

    if (o->clock) {
        double most = (o->until_s - clock_now_s(o->clock)) * STEPS_A_SECOND * o->threads;
        nodes = o->nodes > 0 ? fmin(nodes, most) : most;
    }
    double each = nodes / (d->problem->n_gpus + 1), hot = u ? 12000 : 4000;
    double mild = each < 300 ? 0 : u ? 0.005 : 0.02;    // with little time, downhill at once
    return each >= hot ? 0.1 : each <= hot / 2 ? mild : mild * pow(0.1 / mild, 2 * each / hot - 1);
}

long search_run(struct assignment *d, const struct prices *u, const struct search_options *o)
{
    struct workers c = { .d = d, .o = o, .u = u, .n_threads = o->threads > 1 ? 2 : 1 };
    double heat = heat_for(d, u, o);

    assert(o->nodes > 0 || o->clock);
    if (u && d->tables->pairs)
        c.reduced = reduced_costs_create(d, u);
    if (d->problem->n_gpus > 0 && d->problem->n_jobs > 0) {
        if (d->problem->n_gpus <= WHOLE_MAX)
            run_chains(&c, heat * typical_w(d));
        else
            run_shards(&c, heat * typical_w(d));
    }
    reduced_costs_destroy(c.reduced);
    d->job_price_w = NULL;
    return c.nodes;
}

/* A plan that stands is not disturbed for less, as a part of what a GPU draws, for each job. */
#define STEP_LEAST 0.0015

void search_around(struct assignment *d, const struct prices *u,
                   const struct reduced_costs *reduced, uint64_t seed, int nodes)
{
    const struct problem *p = d->problem;
    struct search_walk *w = walk_create(d, u, u->job_w, seed, 0);

    w->least_w = STEP_LEAST * typical_w(d);
    w->reduced = d->tables->pairs ? reduced : NULL;
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name && p->jobs[j].n_present == 0 && d->jobs[j].n_gpus > 0)
            walk_notice(w, assignment_gpus(d, j)[0]);
    if (p->n_gpus > 0 && p->n_jobs > 0)
        walk_slice(w, nodes);
    walk_destroy(w);
    d->job_price_w = NULL;
}

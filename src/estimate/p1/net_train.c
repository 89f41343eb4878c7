/* net_train.c - how a network learns: batches from examples, steps, and when to stop. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "estimate/p1/examples.h"
#include "estimate/p1/net_inner.h"
#include "nn/adam.h"

/* A workload is read with its kin in the context and without: as a job like one we know, and as
 * one of a family nobody has seen.
 */
enum { WITH_KIN, WITHOUT_KIN, READINGS };

/* Chosen on Gavel by held-out error, coarsely: with seven families finer differences are noise
 * (docs/experiments.md).
 */
struct schedule {
    int n_steps, n_warm;
    double rate;               // the cosine's peak
    float decay;               // of the weights
    float jitter[READINGS];    // of the logarithms in a descriptor: users' are wrong by 1.4 times
    float noise[READINGS];     // of its shares and fractions
    float forget;              // chance that a token of the context is missing
    int check_every, patience;    // of the stopping loss: steps, checks
};
static const struct schedule schedule = {
    .n_steps = 500,
    .n_warm = 10,
    .rate = 1e-2,
    .decay = 0.1f,
    .jitter = { 0.2f, 0.6f },
    .noise = { 0, 0.2f },
    .forget = 0.15f,
    .check_every = 10,
    .patience = 8,
};

/* Workloads on types in one step: all of Gavel's 78, and few enough that a step over a large
 * catalog stays at some milliseconds.
 */
enum { ROWS_MAX = 192 };

struct net_trainer {
    const struct examples *x;
    const struct holdout *v;
    const bool *is_kept_back;
    int n_rows;
    int *row;                                 // (n_workloads, n_types); -1: nothing is known there
    struct net_question read[READINGS];       // (n_rows) each
    struct net_targets learn[NET_TARGETS];    // by rows of the questions
    struct net_targets check[NET_TARGETS];
    bool *is_stranger;         // (n_rows) how it is read in a check
    int *slot;                 // (n_rows) where it is in the batch; -1: not
    int *taken, n_taken;       // (ROWS_MAX) which rows are in the batch
    struct net_batch batch;    // readings side by side, ROWS_MAX apart at most
    struct net_pass pass;
};

/* ---- what there is to learn ---- */

static bool is_kept(const struct net_trainer *t, const struct example *e)
{
    return t->is_kept_back &&
           (t->is_kept_back[e->workload] || (e->neighbour >= 0 && t->is_kept_back[e->neighbour]));
}

static int row_claim(struct net_trainer *t, int workload, int type)
{
    int *row = &t->row[workload * t->x->n_types + type];

    if (*row < 0)
        *row = t->n_rows++;
    return *row;
}

/* Is a workload, of those kept back, one of a family that nobody else is shown of? */
static bool is_stranger(const struct net_trainer *t, int workload)
{
    if (!t->is_kept_back || !t->is_kept_back[workload])
        return false;
    for (int w = 0; w < t->x->n_workloads; w++)
        if (t->x->family[w] == t->x->family[workload] && !t->is_kept_back[w] && !t->v->is_held[w])
            return false;
    return true;
}

/* Sort examples that are shown into those to learn from and those to check by. */
static void sort_out(struct arena *a, struct net_trainer *t, int kind, int n,
                     const struct example *list)
{
    struct net_targets *learn = &t->learn[kind], *check = &t->check[kind];

    learn->list = ARENA_ARRAY(a, struct net_target, (size_t)n);
    check->list = ARENA_ARRAY(a, struct net_target, (size_t)n);
    for (int i = 0; i < n; i++) {
        const struct example *e = &list[i];
        const bool is_pair = kind == NET_PAIRS;
        struct net_targets *to = is_kept(t, e) ? check : learn;
        if (!holdout_shows(t->v, e->workload, e->gpu_type, e->neighbour))
            continue;
        int row = row_claim(t, e->workload, e->gpu_type);
        to->list[to->n++] = (struct net_target){
            .row = row,
            .beside = is_pair ? row_claim(t, e->neighbour, e->gpu_type) : -1,
            .value = is_pair ? expf(e->value / 2) : e->value,
        };
    }
}

static void take_lessons(struct arena *a, struct net_trainer *t)
{
    const struct examples *x = t->x;
    size_t n = (size_t)x->n_workloads * (size_t)x->n_types;

    t->row = ARENA_ARRAY(a, int, n);
    for (size_t i = 0; i < n; i++)
        t->row[i] = -1;
    sort_out(a, t, NET_ALONE, x->n_alone, x->alone);
    sort_out(a, t, NET_WATTS, x->n_watts, x->watts);
    sort_out(a, t, NET_PAIRS, x->n_pairs, x->pairs);
}

/* What is asked of each row; and which are read as of a family nobody has seen when the network is
 * checked.
 */
static void take_questions(struct arena *a, struct net_trainer *t, const struct memory *m)
{
    const struct examples *x = t->x;
    struct identity *who = ARENA_ARRAY(a, struct identity, (size_t)t->n_rows);
    struct features *on = ARENA_ARRAY(a, struct features, (size_t)t->n_rows);

    t->is_stranger = ARENA_ARRAY(a, bool, (size_t)t->n_rows);
    for (int w = 0; w < x->n_workloads; w++)
        for (int g = 0; g < x->n_types; g++) {
            int row = t->row[w * x->n_types + g];
            if (row < 0)
                continue;
            who[row] = x->who[w];
            on[row] = *examples_at(x, w, g);
            t->is_stranger[row] = is_stranger(t, w);
        }
    net_ask(a, m, t->n_rows, who, on, false, &t->read[WITH_KIN]);
    net_ask(a, m, t->n_rows, who, on, true, &t->read[WITHOUT_KIN]);
}

static void make_room(struct arena *a, struct net_trainer *t, const struct net *net)
{
    size_t rows = ROWS_MAX * READINGS;

    t->slot = ARENA_ARRAY(a, int, (size_t)t->n_rows);
    t->taken = ARENA_ARRAY(a, int, ROWS_MAX);
    t->batch.q.inputs = ARENA_ARRAY(a, float, rows *NET_INPUTS);
    t->batch.q.tokens = ARENA_ARRAY(a, float, rows *NET_CONTEXT *NET_TOKEN);
    t->batch.q.is_there = ARENA_ARRAY(a, bool, rows *NET_CONTEXT);
    for (int k = 0; k < NET_TARGETS; k++) {
        int n = t->learn[k].n > t->check[k].n ? t->learn[k].n : t->check[k].n;
        t->batch.of[k].list = ARENA_ARRAY(a, struct net_target, (size_t)n * READINGS);
    }
    net_pass_init(a, net, ROWS_MAX * READINGS, &t->pass);
}

/* ---- a batch ---- */

static void shuffle(struct net_targets *of, struct rng *r)
{
    for (int k = 0; k < NET_TARGETS; k++)
        for (int i = of[k].n - 1; i > 0; i--) {
            int j = (int)rng_below(r, (uint64_t)i + 1);
            struct net_target swap = of[k].list[i];
            of[k].list[i] = of[k].list[j];
            of[k].list[j] = swap;
        }
}

/* The place of a row in the batch; -1 when 'cap' places are taken by others. */
static int slot_claim(struct net_trainer *t, int row, int cap)
{
    if (t->slot[row] < 0 && t->n_taken < cap) {
        t->slot[row] = t->n_taken;
        t->taken[t->n_taken++] = row;
    }
    return t->slot[row];
}

static void copy_row(const struct net_question *from, int row, struct net_question *to, int at)
{
    const size_t f = (size_t)row, g = (size_t)at, token = NET_CONTEXT * NET_TOKEN;

    memcpy(to->inputs + g * NET_INPUTS, from->inputs + f * NET_INPUTS, NET_INPUTS * sizeof(float));
    memcpy(to->tokens + g * token, from->tokens + f * token, token * sizeof(float));
    memcpy(to->is_there + g * NET_CONTEXT, from->is_there + f * NET_CONTEXT,
           NET_CONTEXT * sizeof(bool));
}

/* Targets of one kind, as long as there is room for their rows. */
static void take(struct net_trainer *t, const struct net_targets *from, int cap,
                 struct net_targets *to)
{
    to->n = 0;
    for (int i = 0; i < from->n; i++) {
        struct net_target it = from->list[i];
        bool is_pair = it.beside >= 0;
        it.row = slot_claim(t, it.row, cap);
        it.beside = is_pair && it.row >= 0 ? slot_claim(t, it.beside, cap) : -1;
        if (it.row >= 0 && is_pair == (it.beside >= 0))
            to->list[to->n++] = it;
    }
}

/* All of the lesson where there is room, else as much of it as comes first. Both readings of the
 * rows stand in the batch one after the other; targets point into the first.
 */
static void batch_take(struct net_trainer *t, const struct net_targets *from)
{
    struct net_batch *b = &t->batch;
    int cap = t->n_rows > ROWS_MAX ? ROWS_MAX / 4 : ROWS_MAX;

    t->n_taken = 0;
    for (int i = 0; i < t->n_rows; i++)
        t->slot[i] = -1;
    for (int k = 0; k < NET_TARGETS; k++)
        take(t, &from[k], k == NET_PAIRS ? ROWS_MAX : cap, &b->of[k]);
    b->q.n = t->n_taken * READINGS;
    for (int reading = 0; reading < READINGS; reading++)
        for (int i = 0; i < t->n_taken; i++)
            copy_row(&t->read[reading], t->taken[i], &b->q, reading * t->n_taken + i);
}

/* To learn from: single targets in both readings; of a pair, one at a time is the stranger, or
 * none.
 */
static void read_for_learning(struct net_trainer *t, struct rng *r)
{
    const struct net_targets *pairs = &t->batch.of[NET_PAIRS];

    for (int k = 0; k < NET_PAIRS; k++) {
        struct net_targets *of = &t->batch.of[k];
        for (int i = 0, n = of->n; i < n; i++) {
            of->list[of->n] = of->list[i];
            of->list[of->n++].row += t->n_taken;
        }
    }
    for (int i = 0; i < pairs->n; i++) {
        uint64_t stranger = rng_below(r, 3);
        pairs->list[i].row += stranger == 1 ? t->n_taken : 0;
        pairs->list[i].beside += stranger == 2 ? t->n_taken : 0;
    }
}

/* To be checked: as it will be asked of those that are kept back. */
static void read_for_check(struct net_trainer *t)
{
    for (int k = 0; k < NET_TARGETS; k++)
        for (int i = 0; i < t->batch.of[k].n; i++) {
            struct net_target *it = &t->batch.of[k].list[i];
            it->row += t->is_stranger[t->taken[it->row]] ? t->n_taken : 0;
            if (it->beside >= 0)
                it->beside += t->is_stranger[t->taken[it->beside]] ? t->n_taken : 0;
        }
}

/* Descriptors are guesses; those of a family that nobody has seen more so, or the network learns
 * workloads by heart.
 */
static void blur(float *inputs, int reading, struct rng *r)
{
    const float jitter = schedule.jitter[reading], noise = schedule.noise[reading];
    float sum = 0, blurred = 0;

    for (int i = 0; i < FEATURE_SHARES; i++) {
        sum += inputs[IN_SHARES + i];
        inputs[IN_SHARES + i] *= expf(jitter * (float)rng_normal(r));
        blurred += inputs[IN_SHARES + i];
    }
    for (int i = 0; i < FEATURE_SHARES; i++) {
        inputs[IN_SHARES + i] *= blurred > 0 ? sum / blurred : 1;
        inputs[IN_ROOTS + i] = sqrtf(fmaxf(inputs[IN_SHARES + i], 0));
    }
    for (int i = IN_LN_BATCH; i <= IN_LN_PARAMS; i++)
        inputs[i] += jitter / 3 * (float)rng_normal(r);
    for (int i = IN_KINDS; i < IN_FIGURES; i++)
        inputs[i] += noise * (float)rng_normal(r);
    for (int i = IN_MEM_SHARE; i <= IN_KNOWN; i++)
        inputs[i] += noise * (float)rng_normal(r);
}

/* What the network is shown in one step is a little wrong, and some of it missing. */
static void disturb(struct net_question *q, struct rng *r)
{
    for (int row = 0; row < q->n; row++) {
        float *inputs = q->inputs + (size_t)row * NET_INPUTS;
        float *tokens = q->tokens + (size_t)row * NET_CONTEXT * NET_TOKEN;
        bool *is_there = q->is_there + (size_t)row * NET_CONTEXT;

        for (int i = 0; i < NET_CONTEXT; i++)
            if (rng_uniform(r) < (double)schedule.forget) {
                is_there[i] = false;
                memset(tokens + i * NET_TOKEN, 0, NET_TOKEN * sizeof *tokens);
            }
        net_base(tokens, is_there, inputs);
        blur(inputs, row >= q->n / READINGS, r);
    }
}

/* ---- steps ---- */

static double check_loss(struct net_trainer *t, const struct net *net)
{
    batch_take(t, t->check);
    read_for_check(t);
    return net_loss(net, &t->batch, &t->pass, NULL);
}

static bool is_empty(const struct net_targets *of)
{
    return of[NET_ALONE].n + of[NET_WATTS].n + of[NET_PAIRS].n == 0;
}

static void take_step(struct net_trainer *t, struct net *net, int step, struct adam *adam,
                      struct rng *r)
{
    if (t->n_rows > ROWS_MAX)
        shuffle(t->learn, r);
    batch_take(t, t->learn);
    read_for_learning(t, r);
    disturb(&t->batch.q, r);
    params_clear(&net->p);
    net_loss(net, &t->batch, &t->pass, net->p.grad);
    adam_step(adam, &net->p,
              adam_cosine(step, schedule.n_steps, schedule.n_warm, schedule.rate, 0));
}

/* Ends with the weights of the best check, where there is something to check by. */
static void walk(struct arena *a, struct net_trainer *t, struct net *net, uint64_t seed)
{
    size_t bytes = (size_t)net->p.n * sizeof *net->p.w;
    float *best_w = arena_alloc(a, bytes);
    double best = (double)INFINITY;
    int n_worse = 0;    // checks since the best
    struct adam adam;
    struct rng r;

    rng_init(&r, seed, "network batches");
    adam_init(&adam, net->p.n);
    adam.decay = schedule.decay;
    shuffle(t->check, &r);
    for (int step = 0; step < schedule.n_steps && n_worse < schedule.patience; step++) {
        take_step(t, net, step, &adam, &r);
        if (is_empty(t->check) || (step + 1) % schedule.check_every != 0)
            continue;
        double loss = check_loss(t, net);
        n_worse = isfinite(loss) && loss < best ? 0 : n_worse + 1;
        if (n_worse > 0)
            continue;
        best = loss;
        memcpy(best_w, net->p.w, bytes);
    }
    if (isfinite(best))
        memcpy(net->p.w, best_w, bytes);
    adam_release(&adam);
}

struct net *net_train(const struct examples *x, const struct holdout *v, const struct memory *m,
                      const bool *is_kept_back, enum net_kind kind, uint64_t seed)
{
    struct net_trainer t = { .x = x, .v = v, .is_kept_back = is_kept_back };
    struct net *net = net_create(kind, seed);
    struct arena a;

    arena_init(&a);
    take_lessons(&a, &t);
    if (!is_empty(t.learn)) {
        take_questions(&a, &t, m);
        make_room(&a, &t, net);
        walk(&a, &t, net, seed);
    }
    arena_release(&a);
    return net;
}

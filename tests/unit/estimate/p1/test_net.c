#include "estimate/p1/net.h"

#include <errno.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "estimate/p1/examples.h"
#include "estimate/p1/memory.h"
#include "estimate/p1/net_inner.h"
#include "nn/gp.h"
#include "nn/weights.h"
#include "unit/estimate/synthetic.h"
#include "unit/suite.h"

static struct arena arena;
static struct examples examples;
static bool is_held[WORKLOADS], is_kept[WORKLOADS];
static struct holdout view;
static struct memory memory;

static void set_up(void)
{
    nn_init();
    arena_init(&arena);
    synthetic_examples(&arena, 3, &examples);
    memset(is_held, 0, sizeof is_held);
    memset(is_kept, 0, sizeof is_kept);
    view = (struct holdout){ is_held, NULL };
    memory_make(&arena, &examples, &view, &memory);
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static void hold_family(int family, bool *list)
{
    for (int w = 0; w < WORKLOADS; w++)
        list[w] = examples.family[w] == family;
}

static struct net_word *words_of(const struct net *net, bool no_kin)
{
    struct identity *who = ARENA_ARRAY(&arena, struct identity, WORKLOADS * TYPES);
    struct net_word *out = ARENA_ARRAY(&arena, struct net_word, WORKLOADS * TYPES);
    struct net_question q;

    for (int i = 0; i < WORKLOADS * TYPES; i++)
        who[i] = examples.who[i / TYPES];
    net_ask(&arena, &memory, WORKLOADS * TYPES, who, examples.at, no_kin, &q);
    net_answer(net, &q, out);
    return out;
}

/* ---- gradients ---- */

/* A batch that has everything: single targets, pairs, rows with and without kin, lost tokens. */
static void batch_of(struct net_batch *b)
{
    static struct net_target alone[WORKLOADS], watts[WORKLOADS], pairs[WORKLOADS];
    static struct identity who[WORKLOADS];
    static struct features on[WORKLOADS];

    for (int w = 0; w < WORKLOADS; w++) {
        who[w] = examples.who[w];
        on[w] = *examples_at(&examples, w, w % TYPES);
        alone[w] = (struct net_target){ w, -1, 0.2f * (float)(w % 5) - 0.3f };
        watts[w] = (struct net_target){ w, -1, 2 };    // on the straight part of the loss
        pairs[w] = (struct net_target){ w, (w + 5) % WORKLOADS, 0.6f };
    }
    *b = (struct net_batch){ .of = { [NET_ALONE] = { alone, WORKLOADS },
                                     [NET_WATTS] = { watts, WORKLOADS },
                                     [NET_PAIRS] = { pairs, WORKLOADS } } };
    net_ask(&arena, &memory, WORKLOADS, who, on, false, &b->q);
    for (int i = 0; i < NET_CONTEXT; i++)
        b->q.is_there[i] = false;
    b->q.is_there[NET_CONTEXT + 1] = false;
}

static double loss_moved(struct net *net, const struct net_batch *b, struct net_pass *pass, int at,
                         int n, const float *way, float by)
{
    float kept[64];

    memcpy(kept, net->p.w + at, (size_t)n * sizeof *kept);
    for (int i = 0; i < n; i++)
        net->p.w[at + i] += by * way[i];
    double loss = net_loss(net, b, pass, NULL);
    memcpy(net->p.w + at, kept, (size_t)n * sizeof *kept);
    return loss;
}

/* Along its own gradient a loss must rise as fast as the gradient is long: 64 weights at a time,
 * so that none is left out.
 */
TIMES(gradients_match_finite_differences, N_NET_KINDS)
{
    struct net *net = net_create((enum net_kind)_i, 5);
    struct net_batch b;
    struct net_pass pass;
    struct rng r;

    rng_init(&r, 9, "weights");
    for (int i = 0; i < net->p.n; i++)
        net->p.w[i] += 0.1f * (float)rng_normal(&r);
    /* No pair near its fold, where a difference across it is no slope. */
    for (int k = 1; k < NET_WIDTH; k++)
        net->p.w[net->head.at + NET_HIDDEN * NET_OUTPUTS + OUT_JOB + k] = k % 2 ? 3 : -3;
    batch_of(&b);
    net_pass_init(&arena, net, b.q.n, &pass);
    params_clear(&net->p);
    net_loss(net, &b, &pass, net->p.grad);
    for (int at = 0; at < net->p.n; at += 64) {
        int n = net->p.n - at < 64 ? net->p.n - at : 64;
        const float *grad = net->p.grad + at;
        float way[64];
        double length = 0;

        for (int i = 0; i < n; i++)
            length += (double)grad[i] * (double)grad[i];
        length = sqrt(length);
        for (int i = 0; i < n; i++)
            way[i] = length > 0 ? (float)((double)grad[i] / length) : 0;
        double up = loss_moved(net, &b, &pass, at, n, way, 2e-3f);
        double down = loss_moved(net, &b, &pass, at, n, way, -2e-3f);
        ck_assert_double_eq_tol((up - down) / 4e-3, length, 1e-3 + 0.02 * length);
    }
    net_destroy(net);
}

/* ---- learning ---- */

struct score {
    double alone, pair, mean_alone, mean_pair;
};

/* Errors on one held-out family, and those of the means over all others. */
static void score_family(const struct net *net, struct score *s)
{
    struct net_word *words = words_of(net, true);
    double mean = 0;
    int n = 0, n_pairs = 0;

    for (int i = 0; i < examples.n_alone; i++)
        mean += is_held[examples.alone[i].workload] ? 0 : (double)examples.alone[i].value;
    mean /= (WORKLOADS - SIBLINGS) * TYPES;
    for (int i = 0; i < examples.n_alone; i++) {
        const struct example *e = &examples.alone[i];
        if (!is_held[e->workload])
            continue;
        s->alone += fabs((double)(words[e->workload * TYPES + e->gpu_type].alone - e->value));
        s->mean_alone += fabs(mean - (double)e->value);
        n++;
    }
    for (int i = 0; i < examples.n_pairs; i++) {
        const struct example *e = &examples.pairs[i];
        const struct net_word *job = &words[e->workload * TYPES + e->gpu_type];
        const struct net_word *neighbour = &words[e->neighbour * TYPES + e->gpu_type];
        double truth = exp((double)e->value / 2);
        float said = 0;

        if (!is_held[e->workload] || is_held[e->neighbour])
            continue;
        net_pairs(net, job->as_job, 1, neighbour->as_neighbour, NET_WIDTH, 1, &said);
        s->pair += fabs((double)said - truth);
        s->mean_pair += fabs((double)memory.mean_s[0] - truth);
        n_pairs++;
    }
    ck_assert(n > 0 && n_pairs > 0);
}

TIMES(each_kind_learns_a_family_nobody_has_seen_better_than_the_mean, N_NET_KINDS)
{
    struct score s = { 0 };

    for (int f = 0; f < FAMILIES; f++) {
        hold_family(f, is_held);
        hold_family((f + 1) % FAMILIES, is_kept);
        memory_make(&arena, &examples, &view, &memory);
        struct net *net = net_train(&examples, &view, &memory, is_kept, (enum net_kind)_i, 1);
        score_family(net, &s);
        net_destroy(net);
    }
    ck_assert_double_lt(s.alone, 0.8 * s.mean_alone);
    ck_assert_double_lt(s.pair, 0.8 * s.mean_pair);
}

TIMES(the_same_seed_gives_the_same_weights_and_another_does_not, N_NET_KINDS)
{
    enum net_kind kind = (enum net_kind)_i;
    struct net *a = net_train(&examples, &view, &memory, NULL, kind, 1);
    struct net *b = net_train(&examples, &view, &memory, NULL, kind, 1);
    struct net *c = net_train(&examples, &view, &memory, NULL, kind, 2);
    size_t bytes = (size_t)a->p.n * sizeof(float);

    ck_assert_mem_eq(a->p.w, b->p.w, bytes);
    ck_assert_mem_ne(a->p.w, c->p.w, bytes);
    net_destroy(a);
    net_destroy(b);
    net_destroy(c);
}

static struct net *train_without_family(int family)
{
    hold_family(family, is_held);
    hold_family((family + 1) % FAMILIES, is_kept);
    memory_make(&arena, &examples, &view, &memory);
    return net_train(&examples, &view, &memory, is_kept, NET_FEED_FORWARD, 1);
}

TEST(nothing_of_a_held_out_family_reaches_the_weights)
{
    struct net *clean = train_without_family(2);

    for (int i = 0; i < examples.n_alone; i++)
        if (is_held[examples.alone[i].workload])
            examples.alone[i].value = examples.watts[i].value = i % 2 ? NAN : 1e9f;
    for (int i = 0; i < examples.n_pairs; i++)
        if (is_held[examples.pairs[i].workload] || is_held[examples.pairs[i].neighbour])
            examples.pairs[i].value = i % 2 ? NAN : 1e9f;
    for (int i = 0; i < WORKLOADS * TYPES; i++)
        if (is_held[i / TYPES])
            examples.at[i].ln_step_s = examples.at[i].busy = examples.at[i].share[0] = 1e9f;
    struct net *poisoned = train_without_family(2);
    ck_assert_mem_eq(clean->p.w, poisoned->p.w, (size_t)clean->p.n * sizeof(float));
    net_destroy(clean);
    net_destroy(poisoned);
}

TIMES(with_nothing_to_learn_a_network_says_what_its_context_says, N_NET_KINDS)
{
    memset(is_held, 1, sizeof is_held);
    memory_make(&arena, &examples, &view, &memory);
    struct net *net = net_train(&examples, &view, &memory, NULL, (enum net_kind)_i, 1);
    struct net_word *words = words_of(net, false);
    float s = 0;

    ck_assert(words[0].alone == 0);
    ck_assert(words[0].watts == 0);
    net_pairs(net, words[0].as_job, 1, words[2].as_neighbour, NET_WIDTH, 1, &s);
    ck_assert(fabsf(s - (float)MEMORY_S_UNKNOWN) < 1e-6f);
    net_destroy(net);
}

/* ---- asking ---- */

TEST(pairs_in_a_row_are_the_pairs_one_by_one)
{
    struct net *net = net_train(&examples, &view, &memory, NULL, NET_FEED_FORWARD, 1);
    struct net_word *words = words_of(net, false);
    const size_t stride = sizeof *words / sizeof(float);
    float row[WORKLOADS], one[WORKLOADS] = { 0 };

    for (int n = 0; n < WORKLOADS; n++)
        row[n] = one[n] = (float)n;
    net_pairs(net, words[0].as_job, WORKLOADS, words[0].as_neighbour, stride, 0.5f, row);
    for (int n = 0; n < WORKLOADS; n++)
        net_pairs(net, words[0].as_job, 1, words[n].as_neighbour, stride, 0.5f, &one[n]);
    ck_assert_mem_eq(row, one, sizeof row);
    ck_assert(row[0] > 0.05f && row[0] < 0.6f);    // half of a square root
    net_destroy(net);
}

TIMES(a_network_travels_through_bytes_unchanged, N_NET_KINDS)
{
    enum net_kind kind = (enum net_kind)_i;
    struct net *net = net_create(kind, 4), *back = NULL;
    struct weights sent, got;
    struct buf bytes;
    struct err e;

    weights_init(&sent, &arena);
    net_save(net, "first", &sent);
    buf_init(&bytes, WEIGHTS_BYTES_MAX);
    ck_assert_int_eq(weights_encode(&sent, &bytes, &e), 0);
    ck_assert_int_eq(weights_decode(&arena, bytes.data, bytes.len, &got, &e), 0);
    ck_assert_int_eq(net_load(&got, "first", &back, &e), 0);
    ck_assert_mem_eq(words_of(net, false), words_of(back, false),
                     WORKLOADS * TYPES * sizeof(struct net_word));
    ck_assert_int_eq(net_load(&got, "second", &back, &e), -ENOENT);
    buf_release(&bytes);
    net_destroy(net);
    net_destroy(back);
}

/* A file from another build: one array of it is not what it should be. */
static const struct {
    const char *name, *kind;
    int n_shape, too_few;
    float first;
    float number;    // the first of its numbers
} strange[] = {
    { "a kind nobody knows", "p1-oracle", 7, 0, NET_INPUTS, 0 },
    { "inputs of another width", "p1-recurrent", 7, 0, NET_INPUTS + 1, 0 },
    { "a shape of another length", "p1-recurrent", 6, 0, NET_INPUTS, 0 },
    { "too few numbers", "p1-recurrent", 7, 1, NET_INPUTS, 0 },
    { "a number that no training ends with", "p1-recurrent", 7, 0, NET_INPUTS, 1e6f },
};

EACH(a_strange_network_is_refused, strange)
{
    float shape[] = { strange[_i].first, NET_TOKEN, NET_CONTEXT, NET_HIDDEN,
                      NET_STATE,         NET_HEADS, NET_WIDTH };
    struct net *made = net_create(NET_RECURRENT, 1), *net = NULL;
    struct weights w;
    struct err e;

    made->p.w[0] = strange[_i].number;
    weights_init(&w, &arena);
    weights_put_text(&w, "x.kind", strange[_i].kind);
    weights_put(&w, "x.shape", 1, strange[_i].n_shape, shape);
    weights_put(&w, "x.numbers", 1, made->p.n - strange[_i].too_few, made->p.w);
    ck_assert_msg(net_load(&w, "x", &net, &e) == -EINVAL, "%s", strange[_i].name);
    ck_assert_ptr_null(net);
    net_destroy(made);
}

#include "estimate/p1/net.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "estimate/p1/net_inner.h"
#include "nn/activation.h"
#include "nn/weights.h"

const char *const net_names[N_NET_KINDS] = {
    [NET_FEED_FORWARD] = "p1-feed-forward",
    [NET_RECURRENT] = "p1-recurrent",
    [NET_ATTENTION] = "p1-attention",
};

/* Rows that go through a network together: their numbers stay in the cache. */
#define ROWS_AT_ONCE 128

/* ---- building ---- */

int net_context_width(enum net_kind kind)
{
    return kind == NET_FEED_FORWARD ? NET_CONTEXT * NET_TOKEN : NET_STATE;
}

/* At first a network says what its context says, and where it never hears of something (watts,
 * pairs) it goes on doing so: what leads straight to a word begins at zero, and so do the folds.
 */
static void silence(struct net *net)
{
    static const int spoken[] = { OUT_ALONE, OUT_WATTS, OUT_JOB, OUT_NEIGHBOUR };

    for (size_t i = 0; i < sizeof spoken / sizeof *spoken; i++)
        memset(net->p.w + net->head.at + spoken[i] * NET_HIDDEN, 0, NET_HIDDEN * sizeof(float));
}

struct net *net_create(enum net_kind kind, uint64_t seed)
{
    struct net *net = calloc(1, sizeof *net);
    struct rng r;

    assert(net);    // out of memory: stop; restart replays the journal
    rng_init(&r, seed, net_names[kind]);
    net->kind = kind;
    params_init(&net->p);
    if (kind == NET_RECURRENT)
        gru_init(&net->gru, &net->p, NET_TOKEN, NET_STATE, &r);
    if (kind == NET_ATTENTION)
        attention_init(&net->attention, &net->p, NET_INPUTS, NET_TOKEN, NET_STATE, NET_HEADS, &r);
    dense_init(&net->first, &net->p, NET_INPUTS + net_context_width(kind), NET_HIDDEN, &r);
    dense_init(&net->second, &net->p, NET_HIDDEN, NET_HIDDEN, &r);
    dense_init(&net->head, &net->p, NET_HIDDEN, NET_OUTPUTS, &r);
    net->bend = params_claim(&net->p, NET_WIDTH);
    silence(net);
    return net;
}

void net_destroy(struct net *n)
{
    if (n)
        params_release(&n->p);
    free(n);
}

/* ---- forward ---- */

void net_pass_init(struct arena *a, const struct net *net, int cap, struct net_pass *out)
{
    size_t n = (size_t)cap, context = (size_t)net_context_width(net->kind);
    size_t scratch = net->kind == NET_RECURRENT ? gru_scratch(&net->gru, cap, NET_CONTEXT)
                     : net->kind == NET_ATTENTION
                         ? attention_scratch(&net->attention, cap, NET_CONTEXT)
                         : 0;

    *out = (struct net_pass){
        .cap = cap,
        .context = ARENA_ARRAY(a, float, n *context),
        .wide = ARENA_ARRAY(a, float, n *(NET_INPUTS + context)),
        .sum1 = ARENA_ARRAY(a, float, n *NET_HIDDEN),
        .bent1 = ARENA_ARRAY(a, float, n *NET_HIDDEN),
        .sum2 = ARENA_ARRAY(a, float, n *NET_HIDDEN),
        .bent2 = ARENA_ARRAY(a, float, n *NET_HIDDEN),
        .y = ARENA_ARRAY(a, float, n *NET_OUTPUTS),
        .scratch = ARENA_ARRAY(a, float, scratch),
        .dy = ARENA_ARRAY(a, float, n *NET_OUTPUTS),
        .dbent = ARENA_ARRAY(a, float, n *NET_HIDDEN),
        .dsum = ARENA_ARRAY(a, float, n *NET_HIDDEN),
        .dwide = ARENA_ARRAY(a, float, n *(NET_INPUTS + context)),
        .dcontext = ARENA_ARRAY(a, float, n *context),
    };
}

/* What the context alone says is the beginning; a job's first number also takes the type's
 * mean of sqrt(r).
 */
static void add_base(int n, const float *inputs, float *y)
{
    for (int row = 0; row < n; row++, inputs += NET_INPUTS, y += NET_OUTPUTS) {
        y[OUT_ALONE] += inputs[IN_BASE + REMEMBERED_ALONE];
        y[OUT_WATTS] += inputs[IN_BASE + REMEMBERED_WATTS];
        y[OUT_JOB] += inputs[IN_MEAN_S] + inputs[IN_BASE + REMEMBERED_AS_JOB];
        y[OUT_NEIGHBOUR] += inputs[IN_BASE + REMEMBERED_AS_NEIGHBOUR];
    }
}

void net_forward(const struct net *net, const struct net_question *q, struct net_pass *pass)
{
    const size_t context = (size_t)net_context_width(net->kind), n = (size_t)q->n;
    const struct tokens in = { q->n, NET_CONTEXT, q->tokens, q->is_there };
    const float *w = net->p.w, *read = pass->context;

    assert(q->n <= pass->cap);
    if (net->kind == NET_RECURRENT)
        gru_forward(&net->gru, w, &in, NULL, pass->context, pass->scratch);
    else if (net->kind == NET_ATTENTION)
        attention_forward(&net->attention, w, q->inputs, &in, pass->context, pass->scratch);
    else
        read = q->tokens;
    for (size_t row = 0; row < n; row++) {
        float *to = pass->wide + row * (NET_INPUTS + context);
        memcpy(to, q->inputs + row * NET_INPUTS, NET_INPUTS * sizeof *to);
        memcpy(to + NET_INPUTS, read + row * context, context * sizeof *to);
    }
    dense_forward(&net->first, w, q->n, pass->wide, pass->sum1);
    silu_forward(n * NET_HIDDEN, pass->sum1, pass->bent1);
    dense_forward(&net->second, w, q->n, pass->bent1, pass->sum2);
    silu_forward(n * NET_HIDDEN, pass->sum2, pass->bent2);
    dense_forward(&net->head, w, q->n, pass->bent2, pass->y);
    add_base(q->n, q->inputs, pass->y);
}

void net_answer(const struct net *net, const struct net_question *q, struct net_word *out)
{
    struct arena a;
    struct net_pass pass;

    arena_init(&a);
    net_pass_init(&a, net, q->n < ROWS_AT_ONCE ? q->n : ROWS_AT_ONCE, &pass);
    for (int done = 0; done < q->n; done += ROWS_AT_ONCE) {
        size_t at = (size_t)done;
        struct net_question part = {
            .n = q->n - done < ROWS_AT_ONCE ? q->n - done : ROWS_AT_ONCE,
            .inputs = q->inputs + at * NET_INPUTS,
            .tokens = q->tokens + at * NET_CONTEXT * NET_TOKEN,
            .is_there = q->is_there + at * NET_CONTEXT,
        };
        net_forward(net, &part, &pass);
        for (int i = 0; i < part.n; i++) {
            const float *y = pass.y + (size_t)i * NET_OUTPUTS;
            struct net_word *word = &out[done + i];
            word->alone = y[OUT_ALONE];
            word->watts = y[OUT_WATTS];
            memcpy(word->as_job, y + OUT_JOB, sizeof word->as_job);
            memcpy(word->as_neighbour, y + OUT_NEIGHBOUR, sizeof word->as_neighbour);
        }
    }
    arena_release(&a);
}

/* ---- pairs ---- */

/* sqrt(r) = j0 + n0 + sum of c_k |j_k + n_k|: a bend is a straight part and a fold, and all
 * straight parts are in the first numbers. Sums are kept in eight lanes, which gcc -O3 makes
 * vectors of; their order is the same on every machine.
 */
enum { LANES = 8 };

void net_pairs(const struct net *net, const float *as_job, int n, const float *as_neighbour,
               size_t stride, float weight, float *s)
{
    float c[NET_WIDTH], job[NET_WIDTH];

    memcpy(c, net->p.w + net->bend, sizeof c);
    memcpy(job, as_job, sizeof job);
    c[0] = 0;
    for (int i = 0; i < n; i++) {
        const float *neighbour = as_neighbour + (size_t)i * stride;
        float lane[LANES] = { 0 };

        for (int k = 0; k < NET_WIDTH; k += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] += c[k + l] * fabsf(job[k + l] + neighbour[k + l]);
        float folds = ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
                      ((lane[2] + lane[6]) + (lane[3] + lane[7]));
        s[i] += weight * (job[0] + neighbour[0] + folds);
    }
}

/* ---- files ---- */

/* Weights are of order 1. Beyond this a few layers might end at infinity. */
#define NUMBER_MAX 1e3f

/* Everything a network's shape rests on; a file made by another shape is refused. */
static const float shape[] = { NET_INPUTS, NET_TOKEN, NET_CONTEXT, NET_HIDDEN,
                               NET_STATE,  NET_HEADS, NET_WIDTH };
enum { SHAPE_COLS = sizeof shape / sizeof *shape };

void net_save(const struct net *n, const char *name, struct weights *to)
{
    weights_put_text(to, arena_printf(to->a, "%s.kind", name), net_names[n->kind]);
    weights_put(to, arena_printf(to->a, "%s.shape", name), 1, SHAPE_COLS, shape);
    weights_put(to, arena_printf(to->a, "%s.numbers", name), 1, n->p.n, n->p.w);
}

int net_load(const struct weights *from, const char *name, struct net **out, struct err *e)
{
    struct arena *a = from->a;
    struct weights_reader in = { from, e, 0 };
    const char *kind_name = weights_text(&in, arena_printf(a, "%s.kind", name));
    const float *made = weights_floats(&in, arena_printf(a, "%s.shape", name), 1, SHAPE_COLS);
    enum net_kind kind = 0;

    if (in.rc < 0)
        return in.rc;
    while (kind < N_NET_KINDS && strcmp(kind_name, net_names[kind]) != 0)
        kind++;
    if (kind == N_NET_KINDS)
        return err_set(e, EINVAL, "%s: no network is called '%s'", name, kind_name);
    bool is_same = true;
    for (int i = 0; i < SHAPE_COLS; i++)
        is_same = is_same && made[i] == shape[i];
    if (!is_same)
        return err_set(e, EINVAL, "%s: a network of another shape; train again", name);
    struct net *net = net_create(kind, 0);
    const float *numbers = weights_floats(&in, arena_printf(a, "%s.numbers", name), 1, net->p.n);
    if (in.rc == 0 && !weights_within(numbers, (size_t)net->p.n, NUMBER_MAX))
        in.rc = err_set(e, EINVAL, "%s: a number that no training ends with; train again", name);
    if (in.rc < 0) {
        net_destroy(net);
        return in.rc;
    }
    memcpy(net->p.w, numbers, (size_t)net->p.n * sizeof *numbers);
    *out = net;
    return 0;
}

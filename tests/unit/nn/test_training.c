/* Whole networks: they learn small things, and the same seed learns the same bytes. */
#include "nn/activation.h"
#include "nn/adam.h"
#include "nn/dense.h"
#include "nn/gp.h"
#include "nn/multihead.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

enum { ROWS = 64, IN = 10, WIDTH = 16, EPOCHS = 400 };
enum kind { FLAT, ATTENTIVE, N_KINDS };

/* x -> a layer, and with attention what its rows gather from a set of all rows -> silu -> mean and
 * log-sd.
 */
struct net {
    enum kind kind;
    struct params p;
    struct dense first, head;
    struct multihead ask;
};

enum { HEADS = 2, N_KEYS = (1 + ROWS) * 2 * WIDTH };

/* A pass over all rows, kept for the way back. */
struct pass {
    float first[ROWS * WIDTH], body[ROWS * WIDTH], bent[ROWS * WIDTH];
    float keys[N_KEYS], bias[HEADS * ROWS * ROWS], *scratch;
    float out[ROWS * 2], dout[ROWS * 2], d[ROWS * WIDTH];
};

struct task {
    float x[ROWS * IN], target[ROWS];
};

static void net_init(struct net *n, enum kind kind, uint64_t seed)
{
    struct rng r;

    rng_init(&r, seed, "net");
    n->kind = kind;
    params_init(&n->p);
    dense_init(&n->first, &n->p, IN, WIDTH, &r);
    multihead_init(&n->ask, &n->p, WIDTH, HEADS, &r);
    dense_init(&n->head, &n->p, WIDTH, 2, &r);
}

static struct pass *pass_create(const struct net *n)
{
    struct pass *k = calloc(1, sizeof *k);

    k->scratch = malloc(multihead_scratch(&n->ask, ROWS, ROWS) * sizeof *k->scratch);
    return k;
}

static void pass_destroy(struct pass *k)
{
    free(k->scratch);
    free(k);
}

/* The mean of sines of every other number. */
static void task_init(struct task *t, uint64_t seed)
{
    struct rng r;

    rng_init(&r, seed, "task");
    draw_normal(&r, ROWS * IN, t->x);
    for (int row = 0; row < ROWS; row++) {
        t->target[row] = 0;
        for (int i = 0; i < IN; i += 2)
            t->target[row] += sinf(t->x[row * IN + i]) * 2 / IN;
    }
}

static void body_forward(const struct net *n, const float *w, const struct task *t, struct pass *k)
{
    const struct multihead_set set = { ROWS, k->keys, k->bias };

    dense_forward(&n->first, w, ROWS, t->x, k->first);
    if (n->kind == FLAT) {
        memcpy(k->body, k->first, sizeof k->body);
        return;
    }
    multihead_keys(&n->ask, w, ROWS, k->first, k->keys);
    multihead_forward(&n->ask, w, ROWS, k->first, &set, k->body, k->scratch);
    for (int i = 0; i < ROWS * WIDTH; i++)
        k->body[i] += k->first[i];
}

static void body_backward(struct net *n, const struct task *t, struct pass *k)
{
    const struct multihead_set set = { ROWS, k->keys, k->bias };
    static float dbias[HEADS * ROWS * ROWS], dx[ROWS * WIDTH], dkeys[N_KEYS];

    if (n->kind == ATTENTIVE) {
        memset(dkeys, 0, sizeof dkeys);
        multihead_backward(&n->ask, n->p.w, ROWS, k->first, &set, k->d,
                           &(struct multihead_slopes){ dx, dkeys, dbias }, n->p.grad, k->scratch);
        for (int i = 0; i < ROWS * WIDTH; i++)
            k->d[i] += dx[i];
        multihead_keys_backward(&n->ask, n->p.w, ROWS, k->first, dkeys, dx, n->p.grad);
        for (int i = 0; i < ROWS * WIDTH; i++)
            k->d[i] += dx[i];
    }
    dense_backward(&n->first, n->p.w, ROWS, t->x, k->d, NULL, n->p.grad);
}

/* How unlikely the targets are, on average, and the slope of that for each output. */
static double mean_loss(struct pass *k, const struct task *t)
{
    double sum = 0;

    for (int row = 0; row < ROWS; row++) {
        float log_sd = k->out[2 * row + 1], z = (t->target[row] - k->out[2 * row]) * expf(-log_sd);

        sum += (0.5 * (double)(z * z) + (double)log_sd + 0.9189) / ROWS;
        k->dout[2 * row] = -z * expf(-log_sd) / ROWS;
        k->dout[2 * row + 1] = (1 - z * z) / ROWS;
    }
    return sum;
}

static double net_forward(const struct net *n, const float *w, const struct task *t, struct pass *k)
{
    body_forward(n, w, t, k);
    silu_forward(ROWS * WIDTH, k->body, k->bent);
    dense_forward(&n->head, w, ROWS, k->bent, k->out);
    return mean_loss(k, t);
}

static void net_backward(struct net *n, const struct task *t, struct pass *k)
{
    params_clear(&n->p);
    dense_backward(&n->head, n->p.w, ROWS, k->bent, k->dout, k->d, n->p.grad);
    silu_backward(ROWS * WIDTH, k->body, k->d, k->d);
    body_backward(n, t, k);
}

static double mean_error(const struct pass *k, const struct task *t)
{
    double sum = 0;

    for (int row = 0; row < ROWS; row++)
        sum += fabs((double)k->out[2 * row] - (double)t->target[row]) / ROWS;
    return sum;
}

/* Train; returns the loss of the best weights, which the net then has. */
static double net_train(struct net *n, const struct task *t, struct pass *k)
{
    struct adam a;
    double best = (double)INFINITY;
    size_t bytes = (size_t)n->p.n * sizeof *n->p.w;
    float *best_w = malloc(bytes);

    adam_init(&a, n->p.n);
    a.clip = 5;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double loss = net_forward(n, n->p.w, t, k);
        if (loss < best)
            memcpy(best_w, n->p.w, bytes);
        best = fmin(best, loss);
        net_backward(n, t, k);
        adam_step(&a, &n->p, adam_cosine(epoch, EPOCHS, 10, 0.01, 1e-4));
    }
    memcpy(n->p.w, best_w, bytes);
    ck_assert(net_forward(n, n->p.w, t, k) == best);
    adam_release(&a);
    free(best_w);
    return best;
}

TIMES(a_network_learns_a_small_function, N_KINDS)
{
    struct task t;
    struct net n;

    nn_init();
    task_init(&t, 1);
    net_init(&n, (enum kind)_i, 1);
    struct pass *k = pass_create(&n);
    double before = net_forward(&n, n.p.w, &t, k), after = net_train(&n, &t, k);
    double error = mean_error(k, &t);
    ck_assert_msg(after < -0.5 && after < before - 1 && error < 0.1,
                  "kind %d: loss %.3f to %.3f, error %.3f", _i, before, after, error);
    params_release(&n.p);
    pass_destroy(k);
}

TIMES(the_same_seed_learns_the_same_bytes_and_another_seed_others, N_KINDS)
{
    struct task t;
    struct net n[3];

    nn_init();
    task_init(&t, 1);
    for (int i = 0; i < 3; i++) {
        net_init(&n[i], (enum kind)_i, i == 2 ? 5 : 4);
        struct pass *k = pass_create(&n[i]);
        net_train(&n[i], &t, k);
        pass_destroy(k);
    }
    ck_assert_mem_eq(n[0].p.w, n[1].p.w, (size_t)n[0].p.n * sizeof(float));
    ck_assert_mem_ne(n[0].p.w, n[2].p.w, (size_t)n[0].p.n * sizeof(float));
    for (int i = 0; i < 3; i++)
        params_release(&n[i].p);
}

/* All layers in a row: an error in how they are joined shows only here. */
struct probe {
    struct net n;
    struct task t;
    struct pass *k;
};

static double probe_value(void *self)
{
    struct probe *p = self;

    return net_forward(&p->n, p->n.p.w, &p->t, p->k);
}

TIMES(gradients_of_a_whole_network_are_those_of_differences, N_KINDS)
{
    struct probe *p = calloc(1, sizeof *p);

    nn_init();
    task_init(&p->t, 2);
    net_init(&p->n, (enum kind)_i, 2);
    p->k = pass_create(&p->n);
    probe_value(p);
    net_backward(&p->n, &p->t, p->k);
    assert_gradient("w", probe_value, p, p->n.p.n, p->n.p.w, p->n.p.grad);
    params_release(&p->n.p);
    pass_destroy(p->k);
    free(p);
}

/* Attention: against torch, with absent tokens, and against differences. */
#include "nn/attention.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

TEST(outputs_and_gradients_are_torchs)
{
    struct attention t;
    struct vectors v;
    struct params p;
    float y[24], dquery[24], dtokens[60];

    vectors_open(&v, "attention");
    params_init(&p);
    attention_init(&t, &p, 6, 3, 6, 2, NULL);
    const float *w = vectors_get(&v, "w", p.n), *query = vectors_get(&v, "query", 24);
    const float *tokens = vectors_get(&v, "tokens", 60), *dy = vectors_get(&v, "dy", 24);
    const bool *there = vectors_get_flags(&v, "there", 20);
    float *scratch = ARENA_ARRAY(&v.arena, float, attention_scratch(&t, 4, 5));
    attention_forward(&t, w, query, &(struct tokens){ 4, 5, tokens, there }, y, scratch);
    assert_close("y", 24, y, vectors_get(&v, "y", 24), 2e-6);
    attention_backward(&t, w, query, &(struct tokens){ 4, 5, tokens, there }, dy, dquery, dtokens,
                       p.grad, scratch);
    assert_close("dquery", 24, dquery, vectors_get(&v, "dquery", 24), 2e-6);
    assert_close("dtokens", 60, dtokens, vectors_get(&v, "dtokens", 60), 2e-6);
    assert_close("grad", p.n, p.grad, vectors_get(&v, "grad", p.n), 2e-6);
    params_release(&p);
    vectors_close(&v);
}

enum { ROWS = 3, LEN = 4, QUERY = 5, TOKEN = 2, MODEL = 6, HEADS = 3 };
enum { N_Q = ROWS * QUERY, N_T = ROWS * LEN * TOKEN, N_Y = ROWS * MODEL };

struct probe {
    struct attention t;
    struct params p;
    float query[N_Q], tokens[N_T], dy[N_Y];
    bool there[ROWS * LEN];
    float *scratch;    // exactly as large as promised: past it the sanitizer watches
};

static void probe_init(struct probe *k)
{
    static const bool there[ROWS * LEN] = { 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0 };
    struct rng r;

    rng_init(&r, 1, "attention");
    params_init(&k->p);
    params_claim(&k->p, 5);
    attention_init(&k->t, &k->p, QUERY, TOKEN, MODEL, HEADS, &r);
    for (int i = 0; i < k->p.n; i++)
        k->p.w[i] += (float)(0.3 * rng_normal(&r));
    draw_normal(&r, N_Q, k->query);
    draw_normal(&r, N_T, k->tokens);
    draw_normal(&r, N_Y, k->dy);
    memcpy(k->there, there, sizeof there);
    k->scratch = malloc(attention_scratch(&k->t, ROWS, LEN) * sizeof *k->scratch);
}

static void probe_release(struct probe *k)
{
    params_release(&k->p);
    free(k->scratch);
}

static double probe_value(void *self)
{
    struct probe *k = self;
    float y[N_Y];

    attention_forward(&k->t, k->p.w, k->query, &(struct tokens){ ROWS, LEN, k->tokens, k->there },
                      y, k->scratch);
    return dot(N_Y, y, k->dy);
}

TEST(gradients_are_those_of_differences)
{
    float dquery[N_Q], dtokens[N_T];
    struct probe k;

    probe_init(&k);
    probe_value(&k);
    attention_backward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, LEN, k.tokens, k.there }, k.dy,
                       dquery, dtokens, k.p.grad, k.scratch);
    assert_gradient("query", probe_value, &k, N_Q, k.query, dquery);
    assert_gradient("tokens", probe_value, &k, N_T, k.tokens, dtokens);
    assert_gradient("w", probe_value, &k, k.p.n, k.p.w, k.p.grad);
    probe_release(&k);
}

TEST(a_row_without_tokens_gives_zeros_and_teaches_nothing)
{
    float y[N_Y], dquery[N_Q], dtokens[N_T];
    struct probe k;

    probe_init(&k);
    memset(k.there, 0, sizeof k.there);
    attention_forward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, LEN, k.tokens, k.there }, y,
                      k.scratch);
    attention_backward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, LEN, k.tokens, k.there }, k.dy,
                       dquery, dtokens, k.p.grad, k.scratch);
    for (int i = 0; i < N_Y; i++)
        ck_assert(y[i] == 0);
    for (int i = 0; i < k.p.n; i++)
        ck_assert(k.p.grad[i] == 0);
    for (int i = 0; i < N_Q; i++)
        ck_assert(dquery[i] == 0);
    attention_forward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, 0, NULL, NULL }, y, k.scratch);
    attention_backward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, 0, NULL, NULL }, k.dy, dquery,
                       NULL, k.p.grad, k.scratch);
    for (int i = 0; i < N_Y; i++)
        ck_assert(y[i] == 0);
    probe_release(&k);
}

TEST(what_stands_in_place_of_an_absent_token_does_not_matter)
{
    float y[N_Y], again[N_Y], dtokens[N_T];
    struct probe k;

    probe_init(&k);
    attention_forward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, LEN, k.tokens, k.there }, y,
                      k.scratch);
    for (int i = 0; i < N_T; i++)
        if (!k.there[i / TOKEN])
            k.tokens[i] = i % 2 ? 1e6f : -1e6f;
    attention_forward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, LEN, k.tokens, k.there }, again,
                      k.scratch);
    assert_close("y", N_Y, again, y, 0);
    attention_backward(&k.t, k.p.w, k.query, &(struct tokens){ ROWS, LEN, k.tokens, k.there }, k.dy,
                       NULL, dtokens, NULL, k.scratch);
    for (int i = 0; i < N_T; i++)
        ck_assert((dtokens[i] == 0) == !k.there[i / TOKEN]);
    probe_release(&k);
}

/* One head of one number: a token is its key and its value. */
static const struct {
    const char *name;
    float query, tokens[3][2];
    bool there[3];
    double want;
} scores[] = {
    { "equal keys share", 1, { { 2, 3 }, { 2, 4 }, { 2, 8 } }, { 1, 1, 1 }, 5 },
    { "a key ahead by ln 3 gets three parts of four",
      1,
      { { 1.0986123f, 8 }, { 0, 4 }, { 9, 9 } },
      { 1, 1, 0 },
      7 },
    { "scores of thousands keep their difference",
      1000,
      { { 9, 8 }, { 8.9989014f, 4 }, { 0, 9 } },
      { 1, 1, 1 },
      7 },
    { "an absent token's score, however large, lowers no other",
      1000,
      { { 9, 8 }, { 8.9989014f, 4 }, { 50, 9 } },
      { 1, 1, 0 },
      7 },
    { "far apart, the first takes all", -1000, { { -1, 2 }, { 0, 4 }, { 1, 9 } }, { 1, 1, 1 }, 2 },
};

EACH(shares_worked_out_by_hand, scores)
{
    static const float w[] = { 1, 0, 1, 0, 0, 1, 0, 0, 1, 0 };    // all pass what they get
    struct attention t;
    struct params p;
    float y, again, scratch[64];

    params_init(&p);
    attention_init(&t, &p, 1, 2, 1, 1, NULL);
    ck_assert_int_eq(p.n, sizeof w / sizeof *w);
    ck_assert_uint_le(attention_scratch(&t, 1, 3), 64);
    attention_forward(&t, w, &scores[_i].query,
                      &(struct tokens){ 1, 3, scores[_i].tokens[0], scores[_i].there }, &y,
                      scratch);
    ck_assert_msg(fabs((double)y - scores[_i].want) < 5e-3, "%s: %g", scores[_i].name, (double)y);
    if (scores[_i].there[2]) {    // no mask is all tokens
        attention_forward(&t, w, &scores[_i].query,
                          &(struct tokens){ 1, 3, scores[_i].tokens[0], NULL }, &again, scratch);
        ck_assert(again == y);
    }
    params_release(&p);
}

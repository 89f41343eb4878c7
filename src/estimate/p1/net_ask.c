/* net_ask.c - a workload on a GPU type and its context, as numbers. */
#include <math.h>

#include "base/arena.h"
#include "estimate/p1/net_inner.h"

/* Logarithms by their usual spread: e^3 is twenty times more. */
#define LN_SCALE (1 / 3.0f)

static void put_features(const struct features *on, float *to)
{
    for (int i = 0; i < FEATURE_SHARES; i++) {
        to[IN_SHARES + i] = on->share[i];
        to[IN_ROOTS + i] = sqrtf(fmaxf(on->share[i], 0));
    }
    for (int i = 0; i < FEATURE_KINDS; i++)
        to[IN_KINDS + i] = on->kind[i];
    for (int i = 0; i < FEATURE_FIGURES; i++)
        to[IN_FIGURES + i] = on->figure[i];
    to[IN_LN_BATCH] = (on->ln_batch - 4) * LN_SCALE;
    to[IN_LN_STEP] = (on->ln_step_s + 2) * LN_SCALE;         // a tenth of a second
    to[IN_LN_KERNEL] = (on->ln_kernel_s + 10) * LN_SCALE;    // 50 us
    to[IN_LN_PARAMS] = on->ln_params * LN_SCALE;
    to[IN_MEM_SHARE] = on->mem_share;
    to[IN_BUSY] = on->busy;
    to[IN_KNOWN] = on->known;
}

/* A family's name as signs: nothing is alike in two of them but by chance. */
static void put_family(uint64_t family, float *to)
{
    family *= 0x9e3779b97f4a7c15u;    // so that the highest bits depend on all
    for (int i = 0; i < NET_SIGNS; i++)
        to[IN_FAMILY + i] = family >> (63 - i) & 1 ? 0.5f : -0.5f;
}

static void put_token(const struct identity *who, const struct features *on,
                      const struct remembered *it, float similarity, float *to)
{
    to[TOKEN_SIMILARITY] = similarity;
    to[TOKEN_KIN] = (float)identity_kin(who, &it->who);
    to[TOKEN_SAME_TYPE] = (float)features_same_type(on, &it->on);
    for (int i = 0; i < FEATURE_SHARES; i++)
        to[TOKEN_SHARES + i] = on->share[i] - it->on.share[i];
    to[TOKEN_LN_BATCH] = (on->ln_batch - it->on.ln_batch) * LN_SCALE;
    to[TOKEN_LN_STEP] = (on->ln_step_s - it->on.ln_step_s) * LN_SCALE;
    to[TOKEN_LN_KERNEL] = (on->ln_kernel_s - it->on.ln_kernel_s) * LN_SCALE;
    to[TOKEN_LN_PARAMS] = (on->ln_params - it->on.ln_params) * LN_SCALE;
    for (int i = 0; i < REMEMBERED_ANYTHING; i++) {
        float value = it->value[i];
        to[TOKEN_VALUES + i] = isnan(value) ? 0 : value;
        to[TOKEN_KNOWN + i] = isnan(value) ? 0 : 1;
    }
    to[TOKEN_VALUES + REMEMBERED_AS_JOB] *= TOKEN_PAIR_SCALE;
    to[TOKEN_VALUES + REMEMBERED_AS_NEIGHBOUR] *= TOKEN_PAIR_SCALE;
}

void net_base(const float *tokens, const bool *is_there, float *inputs)
{
    float sum[REMEMBERED_ANYTHING] = { 0 }, weight[REMEMBERED_ANYTHING] = { 0 }, all = 0;

    for (int i = 0; i < NET_CONTEXT; i++) {
        const float *token = tokens + i * NET_TOKEN;
        if (!is_there[i])
            continue;
        all += token[TOKEN_SIMILARITY];
        for (int j = 0; j < REMEMBERED_ANYTHING; j++) {
            float known = token[TOKEN_SIMILARITY] * token[TOKEN_KNOWN + j];
            sum[j] += known * token[TOKEN_VALUES + j];
            weight[j] += known;
        }
    }
    for (int j = 0; j < REMEMBERED_ANYTHING; j++)
        inputs[IN_BASE + j] = sum[j] / (weight[j] + (float)MEMORY_HALF_BELIEVED);
    inputs[IN_BASE + REMEMBERED_AS_JOB] /= TOKEN_PAIR_SCALE;
    inputs[IN_BASE + REMEMBERED_AS_NEIGHBOUR] /= TOKEN_PAIR_SCALE;
    inputs[IN_WEIGHT] = all;
}

void net_ask(struct arena *a, const struct memory *m, int n, const struct identity *who,
             const struct features *on, bool no_kin, struct net_question *out)
{
    size_t rows = (size_t)n;

    *out = (struct net_question){
        .n = n,
        .inputs = ARENA_ARRAY(a, float, rows *NET_INPUTS),
        .tokens = ARENA_ARRAY(a, float, rows *NET_CONTEXT *NET_TOKEN),
        .is_there = ARENA_ARRAY(a, bool, rows *NET_CONTEXT),
    };
    for (size_t row = 0; row < rows; row++) {
        float *inputs = out->inputs + row * NET_INPUTS;
        float *tokens = out->tokens + row * NET_CONTEXT * NET_TOKEN;
        bool *is_there = out->is_there + row * NET_CONTEXT;
        struct similar best[NET_CONTEXT];
        struct memory_query q = { &who[row], &on[row], no_kin, REMEMBERED_ANYTHING };
        int k = memory_nearest(m, &q, NET_CONTEXT, best);

        for (int i = 0; i < k; i++) {
            int at = NET_CONTEXT - 1 - i;
            put_token(&who[row], &on[row], &m->items[best[i].item], best[i].similarity,
                      tokens + at * NET_TOKEN);
            is_there[at] = true;
        }
        put_features(&on[row], inputs);
        if (k > 0 && tokens[(NET_CONTEXT - 1) * NET_TOKEN + TOKEN_KIN] > 0)
            put_family(who[row].family, inputs);
        inputs[IN_MEAN_S] = (float)memory_mean_s(m, &on[row]);
        net_base(tokens, is_there, inputs);
    }
}

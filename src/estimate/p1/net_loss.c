/* net_loss.c - how wrong a network is on a batch, and in which direction to go. */
#include <math.h>
#include <string.h>

#include "estimate/p1/net_inner.h"
#include "nn/activation.h"

/* A residual that is off by more than this (in logarithms) pulls no harder: some workloads are
 * strange, and there are few.
 */
#define HUBER_DELTA 0.5f

/* sqrt(r) is off by tenths where residuals are off by thirds: this makes both weigh alike. */
#define PAIR_WEIGHT 10.0f

/* Of targets that are one column of 'y'. */
static double loss_column(const struct net_targets *of, int column, const float *y, float *dy)
{
    const struct net_target *t = of->list;
    const int n = of->n;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)t[i].row * NET_OUTPUTS + (size_t)column;
        float off = y[at] - t[i].value, size = fabsf(off);
        float pull = fminf(size, HUBER_DELTA);

        sum += (double)(pull * (size - pull / 2));
        dy[at] += copysignf(pull, off) / (float)n;
    }
    return n > 0 ? sum / n : 0;
}

/* One pair: see net_pairs for the form. Returns how far it is off. */
static float pair_forward(const float *c, const float *job, const float *neighbour, float target)
{
    float sum = job[0] + neighbour[0];

    for (int k = 1; k < NET_WIDTH; k++)
        sum += c[k] * fabsf(job[k] + neighbour[k]);
    return sum - target;
}

static void pair_backward(const float *c, const float *job, const float *neighbour, float slope,
                          float *dc, float *djob, float *dneighbour)
{
    djob[0] += slope;
    dneighbour[0] += slope;
    for (int k = 1; k < NET_WIDTH; k++) {
        float x = job[k] + neighbour[k];
        float pull = slope * c[k], d = x < 0 ? -pull : pull;

        dc[k] += slope * fabsf(x);
        djob[k] += d;
        dneighbour[k] += d;
    }
}

static double loss_pairs(const struct net *net, const struct net_targets *of, const float *y,
                         float *dy, float *grad)
{
    const struct net_target *t = of->list;
    const int n = of->n;
    const float *c = net->p.w + net->bend;
    const float scale = n > 0 ? PAIR_WEIGHT / (float)n : 0;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        size_t job = (size_t)t[i].row * NET_OUTPUTS + OUT_JOB;
        size_t neighbour = (size_t)t[i].beside * NET_OUTPUTS + OUT_NEIGHBOUR;
        float off = pair_forward(c, y + job, y + neighbour, t[i].value);

        sum += (double)(off * off) / 2;
        if (grad)
            pair_backward(c, y + job, y + neighbour, off * scale, grad + net->bend, dy + job,
                          dy + neighbour);
    }
    return sum * (double)scale;
}

static void backward(const struct net *net, const struct net_question *q, struct net_pass *pass,
                     float *grad)
{
    const size_t context = (size_t)net_context_width(net->kind), n = (size_t)q->n;
    const struct tokens in = { q->n, NET_CONTEXT, q->tokens, q->is_there };
    const float *w = net->p.w;

    dense_backward(&net->head, w, q->n, pass->bent2, pass->dy, pass->dbent, grad);
    silu_backward(n * NET_HIDDEN, pass->sum2, pass->dbent, pass->dsum);
    dense_backward(&net->second, w, q->n, pass->bent1, pass->dsum, pass->dbent, grad);
    silu_backward(n * NET_HIDDEN, pass->sum1, pass->dbent, pass->dsum);
    if (net->kind == NET_FEED_FORWARD) {
        dense_backward(&net->first, w, q->n, pass->wide, pass->dsum, NULL, grad);
        return;
    }
    dense_backward(&net->first, w, q->n, pass->wide, pass->dsum, pass->dwide, grad);
    for (size_t row = 0; row < n; row++)
        memcpy(pass->dcontext + row * context,
               pass->dwide + row * (NET_INPUTS + context) + NET_INPUTS, context * sizeof(float));
    if (net->kind == NET_RECURRENT)
        gru_backward(&net->gru, w, &in, pass->dcontext, NULL, NULL, grad, pass->scratch);
    else
        attention_backward(&net->attention, w, q->inputs, &in, pass->dcontext, NULL, NULL, grad,
                           pass->scratch);
}

double net_loss(const struct net *net, const struct net_batch *b, struct net_pass *pass,
                float *grad)
{
    double loss = 0;

    net_forward(net, &b->q, pass);
    memset(pass->dy, 0, (size_t)b->q.n * NET_OUTPUTS * sizeof *pass->dy);
    for (int k = 0; k < NET_PAIRS; k++)
        loss += loss_column(&b->of[k], k, pass->y, pass->dy);
    loss += loss_pairs(net, &b->of[NET_PAIRS], pass->y, pass->dy, grad);
    if (grad)
        backward(net, &b->q, pass, grad);
    return loss;
}

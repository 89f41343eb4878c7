/* The loss of a lesson, and the way back through the layers. */
#include <math.h>
#include <string.h>

#include "estimate/network/inner.h"
#include "estimate/network/worlds.h"
#include "nn/activation.h"

/* A lesson on its way. Rows are first tokens, then states: the workloads on types that are asked
 * for, each once.
 */
struct pass {
    const struct network *n;
    struct arena *a;
    const struct site *s;
    const struct lesson *e;
    struct base base;
    int n_tokens, n_states, n_rows;
    struct reading *rows;
    int (*state)[2];        // (n_asked) of the job, and of the neighbour (-1)
    relation *relations;    // (n_rows, n_tokens)
    float *table;
    struct entry entry;
    float *x[LAYERS + 1];    // (n_rows, WIDTH) before each layer, and at last
    struct layer_pass layers[LAYERS];
    struct states out;
    float *mixed, *cell;    // (n_asked, MIXED), (n_asked, CELL)
};

static int state_of(struct pass *p, int type, int workload)
{
    for (int i = p->n_tokens; i < p->n_rows; i++)
        if (p->rows[i].type == type && p->rows[i].job == workload)
            return i - p->n_tokens;
    p->rows[p->n_rows++] = (struct reading){ READ_ALONE, type, workload, -1, 0, 0 };
    return p->n_states++;
}

static void rows_gather(struct pass *p)
{
    const struct lesson *e = p->e;

    p->base = base_of(e->known, e->n_known);
    p->n_rows = p->n_tokens = e->n_known;
    p->rows = ARENA_ARRAY(p->a, struct reading, (size_t)(e->n_known + 2 * e->n_asked));
    p->state = arena_array(p->a, (size_t)e->n_asked, sizeof *p->state);
    memcpy(p->rows, e->known, (size_t)e->n_known * sizeof *p->rows);
    for (int i = 0; i < e->n_asked; i++) {
        const struct reading *q = &e->asked[i];

        p->state[i][0] = state_of(p, q->type, q->job);
        p->state[i][1] = q->neighbour < 0 ? -1 : state_of(p, q->type, q->neighbour);
    }
    p->relations = ARENA_ARRAY(p->a, relation, (size_t)p->n_rows * (size_t)p->n_tokens);
    for (int i = 0; i < p->n_rows; i++)
        for (int j = 0; j < p->n_tokens; j++)
            p->relations[i * p->n_tokens + j] = row_relation(p->s, &p->rows[i], &p->rows[j]);
}

/* After the last layer nobody asks tokens any more, so there only states go on. */
static int first_row(const struct pass *p, int layer)
{
    return layer == LAYERS - 1 ? p->n_tokens : 0;
}

static void layers_forward(struct pass *p)
{
    const float *w = p->n->p.w;

    for (int i = 0; i < LAYERS; i++) {
        const struct layer *l = &p->n->layers[i];
        struct layer_pass *k = &p->layers[i];
        const int first = first_row(p, i), n = p->n_rows - first;
        float *bias = floats(p->a, HEADS * n, p->n_tokens);

        p->x[i + 1] = floats(p->a, p->n_rows, WIDTH);
        k->normed = floats(p->a, p->n_rows, WIDTH);
        k->keys = floats(p->a, 1 + p->n_tokens, 2 * WIDTH);
        norm_forward(&l->before, w, p->n_rows, p->x[i], k->normed);
        multihead_keys(&l->attend, w, p->n_tokens, k->normed, k->keys);
        relations_look_up(p->table, i, (size_t)n * (size_t)p->n_tokens,
                          p->relations + first * p->n_tokens, bias);
        layer_forward(l, w, p->a, n, p->x[i] + first * WIDTH, k->normed + first * WIDTH,
                      &(struct multihead_set){ p->n_tokens, k->keys, bias }, k,
                      p->x[i + 1] + first * WIDTH);
    }
}

static void pass_forward(struct pass *p)
{
    const struct lesson *e = p->e;

    rows_gather(p);
    p->table = floats(p->a, 1, BIASES);
    relations_table(p->n, p->table);
    p->x[0] = floats(p->a, p->n_rows, WIDTH);
    rows_enter(p->n, p->a, p->s, p->n_rows, p->rows, &p->entry, p->x[0]);
    tokens_enter(p->n, p->a, p->n_tokens, p->rows, &p->base, &p->entry, p->x[0]);
    questions_enter(p->n, p->n_states, p->x[0] + p->n_tokens * WIDTH);
    layers_forward(p);
    states_leave(p->n, p->a, p->n_states, p->x[LAYERS] + p->n_tokens * WIDTH, &p->out);
    p->mixed = floats(p->a, e->n_asked, MIXED);
    p->cell = floats(p->a, e->n_asked, CELL);
    for (int i = 0; i < e->n_asked; i++)
        if (p->state[i][1] >= 0)
            cell_mix(p->out.as_job + p->state[i][0] * STATE,
                     p->out.as_neighbour + p->state[i][1] * STATE, p->mixed + i * MIXED);
    dense_forward(&p->n->cell, p->n->p.w, e->n_asked, p->mixed, p->cell);
}

/* ---- the way back ---- */

/* Slopes by what was put out for one question. */
static double question_loss(const struct pass *p, int i, float weight, float *dalone, float *dcell)
{
    const struct reading *q = &p->e->asked[i];
    const float *alone = p->out.alone + p->state[i][0] * ALONE, *cell = p->cell + i * CELL;
    const struct student b = student_of(&p->base, q->of, alone, cell);
    const float z = (q->value - b.mean) / b.scale, pull = (FREEDOM + 1) * z / (FREEDOM + z * z);
    const float dmean = -weight * pull / b.scale;
    const int at = q->of == READ_SLOWDOWN ? CELL_LN_SCALE : CELL_PACKED_LN_SCALE;
    const float ln = q->of == READ_ALONE ? alone[ALONE_LN_SCALE] : cell[at];
    const bool is_bounded = ln < LN_SCALE_LEAST || ln > LN_SCALE_MOST;

    if (q->of != READ_SLOWDOWN)
        dalone[ALONE_MEAN] += dmean * reading_scale[READ_ALONE];
    if (q->of != READ_ALONE)
        dcell[CELL_MEAN] = dmean * reading_scale[READ_SLOWDOWN];
    if (q->of == READ_PACKED)
        dcell[CELL_PACKED] = dmean * reading_scale[READ_SLOWDOWN];
    *(q->of == READ_ALONE ? &dalone[ALONE_LN_SCALE] : &dcell[at]) +=
        is_bounded ? 0 : weight * (1 - z * pull);
    return log((double)(b.scale / reading_scale[q->of])) +
           (double)(FREEDOM + 1) / 2 * log1p((double)(z * z / FREEDOM));
}

static void cell_mix_backward(const float *as_job, const float *as_neighbour, const float *du,
                              float *djob, float *dneighbour)
{
    for (int i = 0; i < STATE; i++)
        if (as_job[i] + as_neighbour[i] > 0) {
            djob[i] += du[i];
            dneighbour[i] += du[i];
        }
    for (int i = 0; i < PRODUCTS; i++) {
        djob[i] += du[STATE + i] * as_neighbour[STATE - PRODUCTS + i];
        dneighbour[STATE - PRODUCTS + i] += du[STATE + i] * as_job[i];
    }
}

/* From slopes by cells and by what is alone to those by the rows that left the layers. */
static void states_backward(struct pass *p, const float *dalone, const float *dcell, float *dx,
                            float *grad)
{
    const struct network *n = p->n;
    const float *w = n->p.w;
    const int m = p->n_states, asked = p->e->n_asked;
    float *djob = floats(p->a, m, STATE), *dneighbour = floats(p->a, m, STATE);
    float *dmixed = floats(p->a, asked, MIXED), *dhidden = floats(p->a, m, WIDTH);
    float *part = floats(p->a, m, WIDTH);

    dense_backward(&n->cell, w, asked, p->mixed, dcell, dmixed, grad);
    for (int i = 0; i < asked; i++) {
        const int job = p->state[i][0] * STATE, neighbour = p->state[i][1] * STATE;

        if (neighbour >= 0)
            cell_mix_backward(p->out.as_job + job, p->out.as_neighbour + neighbour,
                              dmixed + i * MIXED, djob + job, dneighbour + neighbour);
    }
    dense_backward(&n->alone, w, m, p->out.bent, dalone, dhidden, grad);
    silu_backward((size_t)m * WIDTH, p->out.hidden, dhidden, dhidden);
    dense_backward(&n->alone_hidden, w, m, p->out.normed, dhidden, dx, grad);
    dense_backward(&n->as_job, w, m, p->out.normed, djob, part, grad);
    for (int i = 0; i < m * WIDTH; i++)
        dx[i] += part[i];
    dense_backward(&n->as_neighbour, w, m, p->out.normed, dneighbour, part, grad);
    for (int i = 0; i < m * WIDTH; i++)
        dx[i] += part[i];
    norm_backward(&n->last, w, m, p->x[LAYERS] + p->n_tokens * WIDTH, dx, dx, grad);
}

/* Slopes by a layer's output become those by its input, in place; (n_rows, WIDTH). */
static void layer_backward(struct pass *p, int i, float *dx, float *dtable, float *grad)
{
    const struct layer *l = &p->n->layers[i];
    const struct layer_pass *k = &p->layers[i];
    const float *w = p->n->p.w;
    const int first = first_row(p, i), n = p->n_rows - first, m = p->n_tokens;
    float *dmiddle = dx + first * WIDTH, *dwide = floats(p->a, n, WIDER);
    float *part = floats(p->a, n, WIDTH), *dnormed = floats(p->a, p->n_rows, WIDTH);
    float *dtokens = floats(p->a, m, WIDTH), *dkeys = floats(p->a, 1 + m, 2 * WIDTH);
    float *dbias = floats(p->a, HEADS * n, m);

    dense_backward(&l->narrow, w, n, k->bent, dmiddle, dwide, grad);
    silu_backward((size_t)n * WIDER, k->wide, dwide, dwide);
    dense_backward(&l->widen, w, n, k->settled, dwide, part, grad);
    norm_backward(&l->between, w, n, k->middle, part, part, grad);
    for (int j = 0; j < n * WIDTH; j++)
        dmiddle[j] += part[j];
    multihead_backward(&l->attend, w, n, k->normed + first * WIDTH,
                       &(struct multihead_set){ m, k->keys, NULL }, dmiddle,
                       &(struct multihead_slopes){ dnormed + first * WIDTH, dkeys, dbias }, grad,
                       k->scratch);
    relations_add(dtable, i, (size_t)n * (size_t)m, p->relations + first * m, dbias);
    multihead_keys_backward(&l->attend, w, m, k->normed, dkeys, dtokens, grad);
    for (int j = 0; j < m * WIDTH; j++)
        dnormed[j] += dtokens[j];
    norm_backward(&l->before, w, p->n_rows, p->x[i], dnormed, dnormed, grad);
    for (int j = 0; j < p->n_rows * WIDTH; j++)
        dx[j] += dnormed[j];
}

static void pass_backward(struct pass *p, const float *dalone, const float *dcell, float *grad)
{
    const struct network *n = p->n;
    float *dx = floats(p->a, p->n_rows, WIDTH), *dtable = floats(p->a, 1, BIASES);
    float *dbent = floats(p->a, p->n_rows, WIDTH);

    states_backward(p, dalone, dcell, dx + p->n_tokens * WIDTH, grad);
    for (int i = LAYERS - 1; i >= 0; i--)
        layer_backward(p, i, dx, dtable, grad);
    relations_backward(n, dtable, grad);
    for (int i = p->n_tokens; i < p->n_rows; i++)
        for (int j = 0; j < WIDTH; j++)
            grad[n->question_at + j] += dx[i * WIDTH + j];
    dense_backward(&n->value, n->p.w, p->n_tokens, p->entry.values, dx, NULL, grad);
    dense_backward(&n->reread, n->p.w, p->n_rows, p->entry.bent, dx, dbent, grad);
    silu_backward((size_t)p->n_rows * WIDTH, p->entry.first, dbent, dbent);
    dense_backward(&n->read, n->p.w, p->n_rows, p->entry.x, dbent, NULL, grad);
}

double lesson_loss(const struct network *n, struct arena *a, const struct site *s,
                   const struct lesson *e, float weight, float *grad)
{
    struct pass p = { .n = n, .a = a, .s = s, .e = e };
    double sum = 0;

    pass_forward(&p);
    float *dalone = floats(a, p.n_states, ALONE), *dcell = floats(a, e->n_asked, CELL);
    for (int i = 0; i < e->n_asked; i++)
        sum += question_loss(&p, i, weight / (float)e->n_asked, dalone + p.state[i][0] * ALONE,
                             dcell + i * CELL);
    if (grad != NULL)
        pass_backward(&p, dalone, dcell, grad);
    return sum / e->n_asked;
}

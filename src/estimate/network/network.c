/* What a network is made of, and what its rows and relations are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "estimate/network/inner.h"
#include "nn/activation.h"

const float reading_scale[READINGS] = { 0.5f, 0.2f, 0.5f };

struct network *network_create(struct rng *r)
{
    struct network *n = heap_array(1, sizeof *n);
    struct params *p = &n->p;

    params_init(p);
    dense_init(&n->read, p, INPUTS, WIDTH, r);
    dense_init(&n->reread, p, WIDTH, WIDTH, r);
    dense_init(&n->value, p, VALUES, WIDTH, r);
    n->question_at = params_claim(p, WIDTH);
    n->relations_at = params_claim(p, (RELATIONS + CROSSED) * LAYERS * HEADS);
    params_draw(p, n->relations_at, (RELATIONS + CROSSED) * LAYERS * HEADS, 100, 100, r);
    for (int i = 0; i < LAYERS; i++) {
        struct layer *l = &n->layers[i];

        norm_init(&l->before, p, WIDTH);
        multihead_init(&l->attend, p, WIDTH, HEADS, r);
        norm_init(&l->between, p, WIDTH);
        dense_init(&l->widen, p, WIDTH, WIDER, r);
        dense_init(&l->narrow, p, WIDER, WIDTH, r);
    }
    norm_init(&n->last, p, WIDTH);
    dense_init(&n->alone_hidden, p, WIDTH, WIDTH, r);
    dense_init(&n->alone, p, WIDTH, 2, r);
    dense_init(&n->as_job, p, WIDTH, STATE, r);
    dense_init(&n->as_neighbour, p, WIDTH, STATE, r);
    dense_init(&n->cell, p, MIXED, CELL, r);
    return n;
}

void network_destroy(struct network *n)
{
    if (n == NULL)
        return;
    params_release(&n->p);
    free(n);
}

const char *network_about(const struct network *n)
{
    return n->about;
}

int network_n_weights(const struct network *n)
{
    return n->p.n;
}

/* ---- rows ---- */

/* Where a site with few readings begins: alone over the roofline, slowdown, both; with the weight
 * of so many readings.
 */
#define BASE_WEIGHT 2
static const float base_prior[] = { -0.4f, 0 };

struct base base_of(const struct reading *known, int n)
{
    float sum[2] = { BASE_WEIGHT * base_prior[0], BASE_WEIGHT * base_prior[1] };
    float count[2] = { BASE_WEIGHT, BASE_WEIGHT };

    for (int i = 0; i < n; i++)
        if (known[i].of != READ_PACKED) {
            sum[known[i].of] += known[i].value;
            count[known[i].of]++;
        }
    const float alone = sum[0] / count[0], slowdown = sum[1] / count[1];
    return (struct base){ { alone, slowdown, alone + slowdown } };
}

static float *put_on(const struct site *s, int workload, int type, float *x)
{
    const struct site_on *on = site_on(s, workload, type);

    memcpy(x, on->x, sizeof on->x);
    x[SITE_JOB] = on->busy;
    x[SITE_JOB + 1] = on->traffic;
    return x + ON;
}

void row_inputs(const struct site *s, const struct reading *c, float *x)
{
    memset(x, 0, INPUTS * sizeof *x);
    x[c->of] = 1;
    memcpy(x + READINGS, s->gpu[c->type], sizeof s->gpu[c->type]);
    x = put_on(s, c->job, c->type, x + READINGS + SITE_GPU);
    if (c->neighbour >= 0)
        *put_on(s, c->neighbour, c->type, x) = 1;
}

/* No value is let further out than this many times its kind's size: it is odd, or a mistake. */
#define VALUE_MOST 6
#define USUAL_NOISE 0.05f

void row_values(const struct reading *c, const struct base *b, float *v)
{
    float value = (c->value - b->of[c->of]) / reading_scale[c->of];

    memset(v, 0, VALUES * sizeof *v);
    v[c->of] = fminf(fmaxf(value, -VALUE_MOST), VALUE_MOST);
    v[READINGS] = fminf(c->noise / USUAL_NOISE, VALUE_MOST);
}

/* 0 strangers (or nobody), 1 of one family, 2 the same. */
static int kinship(const struct site *s, int a, int b)
{
    if (a < 0 || b < 0)
        return 0;
    return (a == b) + (s->family[a] == s->family[b]);
}

relation row_relation(const struct site *s, const struct reading *a, const struct reading *b)
{
    int same = (int)a->of * READINGS + (int)b->of;

    same = same * 2 + (a->type == b->type);
    same = same * 3 + kinship(s, a->job, b->job);
    same = same * 3 + kinship(s, a->neighbour, b->neighbour);
    return (relation)(same * CROSSED + kinship(s, a->job, b->neighbour) * 3 +
                      kinship(s, a->neighbour, b->job));
}

void relations_table(const struct network *n, float *table)
{
    const float *own = n->p.w + n->relations_at, *crossed = own + RELATIONS * LAYERS * HEADS;

    for (int k = 0; k < LAYERS * HEADS; k++)
        for (int i = 0; i < RELATIONS; i++)
            for (int j = 0; j < CROSSED; j++)
                *table++ = own[i * LAYERS * HEADS + k] + crossed[j * LAYERS * HEADS + k];
}

void relations_backward(const struct network *n, const float *dtable, float *grad)
{
    float *own = grad + n->relations_at, *crossed = own + RELATIONS * LAYERS * HEADS;

    for (int k = 0; k < LAYERS * HEADS; k++)
        for (int i = 0; i < RELATIONS; i++)
            for (int j = 0; j < CROSSED; j++, dtable++) {
                own[i * LAYERS * HEADS + k] += *dtable;
                crossed[j * LAYERS * HEADS + k] += *dtable;
            }
}

void relations_look_up(const float *table, int layer, size_t n, const relation *r, float *bias)
{
    table += (size_t)layer * HEADS * RELATIONS * CROSSED;
    for (int head = 0; head < HEADS; head++, table += RELATIONS * CROSSED)
        for (size_t i = 0; i < n; i++)
            *bias++ = table[r[i]];
}

void relations_add(float *dtable, int layer, size_t n, const relation *r, const float *dbias)
{
    dtable += (size_t)layer * HEADS * RELATIONS * CROSSED;
    for (int head = 0; head < HEADS; head++, dtable += RELATIONS * CROSSED)
        for (size_t i = 0; i < n; i++)
            dtable[r[i]] += *dbias++;
}

/* ---- the way forward, of learning and of asking ---- */

void rows_enter(const struct network *n, struct arena *a, const struct site *s, int n_rows,
                const struct reading *rows, struct entry *k, float *out)
{
    const float *w = n->p.w;

    k->x = floats(a, n_rows, INPUTS);
    k->first = floats(a, n_rows, WIDTH);
    k->bent = floats(a, n_rows, WIDTH);
    for (int i = 0; i < n_rows; i++)
        row_inputs(s, &rows[i], k->x + (size_t)i * INPUTS);
    dense_forward(&n->read, w, n_rows, k->x, k->first);
    silu_forward((size_t)n_rows * WIDTH, k->first, k->bent);
    dense_forward(&n->reread, w, n_rows, k->bent, out);
}

void tokens_enter(const struct network *n, struct arena *a, int n_tokens,
                  const struct reading *tokens, const struct base *b, struct entry *k, float *rows)
{
    float *read = floats(a, n_tokens, WIDTH);

    k->values = floats(a, n_tokens, VALUES);
    for (int i = 0; i < n_tokens; i++)
        row_values(&tokens[i], b, k->values + (size_t)i * VALUES);
    dense_forward(&n->value, n->p.w, n_tokens, k->values, read);
    for (int i = 0; i < n_tokens * WIDTH; i++)
        rows[i] += read[i];
}

void questions_enter(const struct network *n, int n_rows, float *rows)
{
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < WIDTH; j++)
            rows[i * WIDTH + j] += n->p.w[n->question_at + j];
}

void layer_forward(const struct layer *l, const float *w, struct arena *a, int n, const float *x,
                   const float *normed, const struct multihead_set *set, struct layer_pass *k,
                   float *out)
{
    k->scratch = floats(a, 1, (int)multihead_scratch(&l->attend, n, set->n_tokens));
    k->middle = floats(a, n, WIDTH);
    k->settled = floats(a, n, WIDTH);
    k->wide = floats(a, n, WIDER);
    k->bent = floats(a, n, WIDER);
    multihead_forward(&l->attend, w, n, normed, set, k->middle, k->scratch);
    for (int i = 0; i < n * WIDTH; i++)
        k->middle[i] += x[i];
    norm_forward(&l->between, w, n, k->middle, k->settled);
    dense_forward(&l->widen, w, n, k->settled, k->wide);
    silu_forward((size_t)n * WIDER, k->wide, k->bent);
    dense_forward(&l->narrow, w, n, k->bent, out);
    for (int i = 0; i < n * WIDTH; i++)
        out[i] += k->middle[i];
}

void states_leave(const struct network *n, struct arena *a, int n_states, const float *rows,
                  struct states *k)
{
    const float *w = n->p.w;

    k->normed = floats(a, n_states, WIDTH);
    k->hidden = floats(a, n_states, WIDTH);
    k->bent = floats(a, n_states, WIDTH);
    k->alone = floats(a, n_states, ALONE);
    k->as_job = floats(a, n_states, STATE);
    k->as_neighbour = floats(a, n_states, STATE);
    norm_forward(&n->last, w, n_states, rows, k->normed);
    dense_forward(&n->alone_hidden, w, n_states, k->normed, k->hidden);
    silu_forward((size_t)n_states * WIDTH, k->hidden, k->bent);
    dense_forward(&n->alone, w, n_states, k->bent, k->alone);
    dense_forward(&n->as_job, w, n_states, k->normed, k->as_job);
    dense_forward(&n->as_neighbour, w, n_states, k->normed, k->as_neighbour);
}

void cell_mix(const float *as_job, const float *as_neighbour, float *u)
{
    for (int i = 0; i < STATE; i++) {
        float both = as_job[i] + as_neighbour[i];

        u[i] = both > 0 ? both : 0;
    }
    for (int i = 0; i < PRODUCTS; i++)
        u[STATE + i] = as_job[i] * as_neighbour[STATE - PRODUCTS + i];
}

struct student student_of(const struct base *b, enum reading_of of, const float *alone,
                          const float *cell)
{
    float mean = b->of[of], ln;

    if (of != READ_SLOWDOWN)
        mean += alone[ALONE_MEAN] * reading_scale[READ_ALONE];
    if (of != READ_ALONE)
        mean += cell[CELL_MEAN] * reading_scale[READ_SLOWDOWN];
    if (of == READ_PACKED)
        mean += cell[CELL_PACKED] * reading_scale[READ_SLOWDOWN];
    ln = of == READ_ALONE ? alone[ALONE_LN_SCALE]
                          : cell[of == READ_SLOWDOWN ? CELL_LN_SCALE : CELL_PACKED_LN_SCALE];
    ln = fminf(fmaxf(ln, LN_SCALE_LEAST), LN_SCALE_MOST);
    return (struct student){ mean, reading_scale[of] * expf(ln) };
}

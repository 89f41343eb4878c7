/* A network at a site: what is known, computed once; states, kept as they are asked for. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "estimate/network/inner.h"

/* A workload on a type. */
struct kept_state {
    float alone[ALONE], as_job[STATE], as_neighbour[STATE];
};

struct network_site {
    const struct network *n;
    const struct site *s;
    int n_tokens;
    struct reading tokens[NETWORK_TOKENS];
    struct base base;
    float *table;                 // (BIASES)
    bool is_settled;              // what is below is of these tokens
    struct arena kept;            // keys live here
    struct arena passing;         // what a pass needs, until the next
    float *keys[LAYERS];          // (1 + n_tokens, 2 WIDTH)
    int cap;                      // workloads that there is room for
    struct kept_state *states;    // (cap, n_types)
    bool *has_states;             // (cap)
};

struct network_site *network_site_create(const struct network *n, const struct site *s)
{
    struct network_site *k = heap_array(1, sizeof *k);

    k->n = n;
    k->s = s;
    k->table = heap_array(BIASES, sizeof *k->table);
    arena_init(&k->kept);
    arena_init(&k->passing);
    relations_table(n, k->table);
    return k;
}

void network_site_destroy(struct network_site *k)
{
    if (k == NULL)
        return;
    arena_release(&k->kept);
    arena_release(&k->passing);
    free(k->table);
    free(k->states);
    free(k->has_states);
    free(k);
}

/* ---- which readings are tokens ---- */

struct ranked {
    int distance;    // 0 of the focus, 1 of its family, 2 of others
    int turn;        // how many of its sort (kind, type, family) came later
    int index;
};

static int by_merit(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->distance != b->distance)
        return a->distance - b->distance;
    return a->turn != b->turn ? a->turn - b->turn : b->index - a->index;
}

static int distance_of(const struct site *s, int focus, const struct reading *r)
{
    if (focus < 0)
        return 2;
    if (r->job == focus || r->neighbour == focus)
        return 0;
    return s->family[r->job] != s->family[focus] &&
                   (r->neighbour < 0 || s->family[r->neighbour] != s->family[focus])
               ? 2
               : 1;
}

static void tokens_choose(struct network_site *k, int focus, const struct reading *readings, int n)
{
    const struct site *s = k->s;
    struct ranked *list = ARENA_ARRAY(&k->passing, struct ranked, (size_t)n);
    int *later =
        ARENA_ARRAY(&k->passing, int, (size_t)READINGS *(size_t)s->n_types *(size_t)s->n_families);

    for (int i = n - 1; i >= 0; i--) {
        const struct reading *r = &readings[i];
        int sort = ((int)r->of * s->n_types + r->type) * s->n_families + s->family[r->job];

        list[i] = (struct ranked){ distance_of(s, focus, r), later[sort]++, i };
    }
    qsort(list, (size_t)n, sizeof *list, by_merit);
    for (int i = 0; i < NETWORK_TOKENS; i++)
        k->tokens[i] = readings[list[i].index];
}

void network_read(struct network_site *k, int focus, const struct reading *readings, int n)
{
    arena_reset(&k->passing);
    k->n_tokens = n < NETWORK_TOKENS ? n : NETWORK_TOKENS;
    if (n > NETWORK_TOKENS)
        tokens_choose(k, focus, readings, n);
    else if (n > 0)
        memcpy(k->tokens, readings, (size_t)n * sizeof *readings);
    k->is_settled = false;
}

/* ---- the context and the states ---- */

/* Of n rows to all tokens. */
static const relation *relations_of(struct network_site *k, int n, const struct reading *rows)
{
    relation *out = ARENA_ARRAY(&k->passing, relation, (size_t)n * (size_t)k->n_tokens);

    for (int row = 0; row < n; row++)
        for (int t = 0; t < k->n_tokens; t++)
            out[row * k->n_tokens + t] = row_relation(k->s, &rows[row], &k->tokens[t]);
    return out;
}

/* Rows that ask the tokens, or tokens each other, through one layer. */
static void ask_layer(struct network_site *k, int i, int n, const relation *relations,
                      const float *x, const float *normed, float *out)
{
    float *bias = floats(&k->passing, HEADS * n, k->n_tokens);
    struct layer_pass pass;

    relations_look_up(k->table, i, (size_t)n * (size_t)k->n_tokens, relations, bias);
    layer_forward(&k->n->layers[i], k->n->p.w, &k->passing, n, x, normed,
                  &(struct multihead_set){ k->n_tokens, k->keys[i], bias }, &pass, out);
}

static void settle(struct network_site *k)
{
    const float *w = k->n->p.w;
    const int n = k->n_tokens;
    struct entry entry;

    arena_reset(&k->passing);
    arena_reset(&k->kept);
    float *x = floats(&k->passing, n, WIDTH), *normed = floats(&k->passing, n, WIDTH);
    const relation *relations = relations_of(k, n, k->tokens);
    k->base = base_of(k->tokens, n);
    rows_enter(k->n, &k->passing, k->s, n, k->tokens, &entry, x);
    tokens_enter(k->n, &k->passing, n, k->tokens, &k->base, &entry, x);
    for (int i = 0; i < LAYERS; i++) {
        const struct layer *l = &k->n->layers[i];

        k->keys[i] = floats(&k->kept, 1 + n, 2 * WIDTH);
        norm_forward(&l->before, w, n, x, normed);
        multihead_keys(&l->attend, w, n, normed, k->keys[i]);
        if (i < LAYERS - 1) {
            float *next = floats(&k->passing, n, WIDTH);

            ask_layer(k, i, n, relations, x, normed, next);
            x = next;
        }
    }
    if (k->cap > 0)
        memset(k->has_states, 0, (size_t)k->cap * sizeof *k->has_states);
    k->is_settled = true;
}

static void states_make_room(struct network_site *k)
{
    const int n = k->s->n_workloads;

    if (n <= k->cap)
        return;
    RESIZE(k->states, (size_t)(2 * n) * (size_t)k->s->n_types);
    RESIZE(k->has_states, 2 * n);
    memset(k->has_states + k->cap, 0, (size_t)(2 * n - k->cap) * sizeof *k->has_states);
    k->cap = 2 * n;
}

/* A workload on all types at once. */
static void states_fill(struct network_site *k, int workload)
{
    const int n = k->s->n_types;
    struct entry entry;
    struct states out;

    arena_reset(&k->passing);
    float *x = floats(&k->passing, n, WIDTH), *normed = floats(&k->passing, n, WIDTH);
    struct reading *rows = ARENA_ARRAY(&k->passing, struct reading, (size_t)n);
    for (int t = 0; t < n; t++)
        rows[t] = (struct reading){ READ_ALONE, t, workload, -1, 0, 0 };
    const relation *relations = relations_of(k, n, rows);
    rows_enter(k->n, &k->passing, k->s, n, rows, &entry, x);
    questions_enter(k->n, n, x);
    for (int i = 0; i < LAYERS; i++) {
        float *next = floats(&k->passing, n, WIDTH);

        norm_forward(&k->n->layers[i].before, k->n->p.w, n, x, normed);
        ask_layer(k, i, n, relations, x, normed, next);
        x = next;
    }
    states_leave(k->n, &k->passing, n, x, &out);
    for (int t = 0; t < n; t++) {
        struct kept_state *to = &k->states[workload * n + t];

        memcpy(to->alone, out.alone + t * ALONE, sizeof to->alone);
        memcpy(to->as_job, out.as_job + t * STATE, sizeof to->as_job);
        memcpy(to->as_neighbour, out.as_neighbour + t * STATE, sizeof to->as_neighbour);
    }
    k->has_states[workload] = true;
}

static const struct kept_state *state_of(struct network_site *k, int type, int workload)
{
    assert(0 <= workload && workload < k->s->n_workloads && 0 <= type && type < k->s->n_types);
    if (!k->is_settled)
        settle(k);
    states_make_room(k);
    if (!k->has_states[workload])
        states_fill(k, workload);
    return &k->states[workload * k->s->n_types + type];
}

/* In eight sums side by side, which one instruction adds to. */
static float dot(const float *a, const float *b)
{
    float sum[8] = { 0 };

    for (int i = 0; i < MIXED; i += 8)
        for (int j = 0; j < 8; j++)
            sum[j] += a[i + j] * b[i + j];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

void network_ask(struct network_site *k, enum reading_of of, int type, int job, int neighbour,
                 float *mean, float *sd)
{
    const float *w = k->n->p.w + k->n->cell.at, *bias = w + CELL * MIXED;
    const struct kept_state *one = state_of(k, type, job);
    float u[MIXED], cell[CELL] = { 0 };

    if (of != READ_ALONE) {
        const int n = of == READ_SLOWDOWN ? CELL_PACKED : CELL;    // those of both come last

        cell_mix(one->as_job, state_of(k, type, neighbour)->as_neighbour, u);
        for (int i = 0; i < n; i++)
            cell[i] = dot(u, w + i * MIXED) + bias[i];
    }
    struct student b = student_of(&k->base, of, one->alone, cell);
    *mean = b.mean;
    *sd = b.scale * sqrtf(FREEDOM / (FREEDOM - 2));
}

/* inner.h - what the files of this folder share.
 *
 * A pass takes rows (tokens, and workloads on types that ask them) through the layers. Its numbers
 * live in an arena of the caller's; those that the way back needs are kept in the structs below.
 */
#ifndef ESTIMATE_NETWORK_INNER_H
#define ESTIMATE_NETWORK_INNER_H

#include <stddef.h>

#include "base/arena.h"
#include "estimate/network/network.h"
#include "nn/dense.h"
#include "nn/multihead.h"
#include "nn/norm.h"
#include "nn/params.h"

struct lesson;
struct rng;

enum {
    WIDTH = 48,    // of a row in the layers
    WIDER = 96,    // and between their two dense ones
    LAYERS = 3,
    HEADS = 4,
    ON = SITE_JOB + 2,                            // of a workload on a type, with its activities
    INPUTS = READINGS + SITE_GPU + 2 * ON + 1,    // kind, type, job, neighbour, is there one
    VALUES = READINGS + 1,                        // what was read, at the place of its kind; noise
    STATE = 64,                                   // of a workload on a type, in either role
    PRODUCTS = 32,
    MIXED = STATE + PRODUCTS,    // what a cell is decoded from
    RELATIONS = 162,             // kinds of both, same type?, kinship of jobs and of neighbours
    CROSSED = 9,                 // kinship of one's job and the other's neighbour, both ways
};

/* What is put out, in units of reading_scale and before bounds. */
enum { ALONE_MEAN, ALONE_LN_SCALE, ALONE };
enum { CELL_MEAN, CELL_LN_SCALE, CELL_PACKED, CELL_PACKED_LN_SCALE, CELL };
#define LN_SCALE_LEAST (-4.0f)
#define LN_SCALE_MOST 2.0f

enum { NETWORK_ABOUT = 128 };    // bytes; a longer text is cut

struct layer {
    struct norm before, between;
    struct multihead attend;
    struct dense widen, narrow;
};

struct network {
    struct params p;
    char about[NETWORK_ABOUT];
    struct dense read, reread;    // INPUTS -> WIDTH -> WIDTH
    struct dense value;           // what was read, added to a token
    int question_at;              // (WIDTH) added to a row that asks
    int relations_at;             // (RELATIONS + CROSSED, LAYERS * HEADS)
    struct layer layers[LAYERS];
    struct norm last;
    struct dense alone_hidden, alone;     // WIDTH -> WIDTH -> ALONE
    struct dense as_job, as_neighbour;    // WIDTH -> STATE
    struct dense cell;                    // MIXED -> CELL
};

/* Weights drawn by 'r'; NULL: zeros. */
struct network *network_create(struct rng *r);

/* Errors are of about this size. */
extern const float reading_scale[READINGS];

/* The means of what is known, which values are taken over. */
struct base {
    float of[READINGS];
};
struct base base_of(const struct reading *known, int n);

static inline float *floats(struct arena *a, int rows, int cols)
{
    return ARENA_ARRAY(a, float, (size_t)rows *(size_t)cols);
}

/* ---- rows and how they are related ---- */

void row_inputs(const struct site *s, const struct reading *c, float *x);    // (INPUTS)
void row_values(const struct reading *c, const struct base *b, float *v);    // (VALUES)

/* Of a row to a token: which bias it has, in 0 .. RELATIONS * CROSSED - 1. */
typedef uint16_t relation;
relation row_relation(const struct site *s, const struct reading *a, const struct reading *b);

/* The biases of all relations (BIASES), and their slopes added to 'grad'. */
enum { BIASES = LAYERS * HEADS * RELATIONS * CROSSED };
void relations_table(const struct network *n, float *table);
void relations_backward(const struct network *n, const float *dtable, float *grad);

/* Biases (HEADS, n) of n relations in a layer, and their slopes added to 'dtable'. */
void relations_look_up(const float *table, int layer, size_t n, const relation *r, float *bias);
void relations_add(float *dtable, int layer, size_t n, const relation *r, const float *dbias);

/* ---- passes ---- */

struct entry {
    float *x;               // (rows, INPUTS)
    float *first, *bent;    // (rows, WIDTH)
    float *values;          // (tokens, VALUES)
};

/* Rows to what enters the first layer (n_rows, WIDTH); then what tokens say, what others ask. */
void rows_enter(const struct network *n, struct arena *a, const struct site *s, int n_rows,
                const struct reading *rows, struct entry *k, float *out);
void tokens_enter(const struct network *n, struct arena *a, int n_tokens,
                  const struct reading *tokens, const struct base *b, struct entry *k, float *rows);
void questions_enter(const struct network *n, int n_rows, float *rows);

struct layer_pass {
    float *normed;              // (all rows, WIDTH)
    float *keys;                // (1 + n_tokens, 2 WIDTH)
    float *scratch;             // of the attention
    float *middle, *settled;    // (rows that ask, WIDTH) after it, and normed
    float *wide, *bent;         // (rows that ask, WIDER)
};

/* n rows x, and the same normed, ask a set -> out (n, WIDTH). */
void layer_forward(const struct layer *l, const float *w, struct arena *a, int n, const float *x,
                   const float *normed, const struct multihead_set *set, struct layer_pass *k,
                   float *out);

struct states {
    float *normed, *hidden, *bent;    // (n, WIDTH)
    float *alone;                     // (n, ALONE)
    float *as_job, *as_neighbour;     // (n, STATE)
};

void states_leave(const struct network *n, struct arena *a, int n_states, const float *rows,
                  struct states *k);

/* What two states tell of a cell: u (MIXED). */
void cell_mix(const float *as_job, const float *as_neighbour, float *u);

/* Student's t around the mean, with this scale. 'cell' (CELL) is not read of READ_ALONE, 'alone'
 * not of READ_SLOWDOWN.
 */
struct student {
    float mean, scale;
};
struct student student_of(const struct base *b, enum reading_of of, const float *alone,
                          const float *cell);

/* Degrees of freedom: sites have odd cells. */
#define FREEDOM 5.0f

/* The mean loss over what is asked, in logarithms of density; with 'grad', its slopes times
 * 'weight' are added there. learn.c.
 */
double lesson_loss(const struct network *n, struct arena *a, const struct site *s,
                   const struct lesson *e, float weight, float *grad);

#endif

/* reference.h - what the layers are held against: numbers from torch, and differences.
 *
 * Vectors are text files in tests/data/nn, written by tools/nn-vectors: a line
 * "gogh-nn-vectors 1", then arrays as "array NAME ROWS COLS" and their rows. Anything
 * unexpected fails the test that asked.
 */
#ifndef TESTS_UNIT_NN_REFERENCE_H
#define TESTS_UNIT_NN_REFERENCE_H

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/rng.h"
#include "base/text/text.h"

struct vectors {
    struct arena arena;
    const char *at;    // the text, after its first line
};

static inline void vectors_open(struct vectors *v, const char *name)
{
    static const char head[] = "gogh-nn-vectors 1\n";
    const char *src = getenv("SRC"), *text;
    struct err e = { 0 };
    size_t len;

    arena_init(&v->arena);
    ck_assert_msg(src != NULL, "SRC must name the source root");
    const char *path = arena_printf(&v->arena, "%s/tests/data/nn/%s.txt", src, name);
    int rc = file_read_text(&v->arena, path, NULL, 1 << 20, &text, &len, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_msg(strncmp(text, head, strlen(head)) == 0, "%s: not of version 1", path);
    v->at = text + strlen(head);
}

static inline void vectors_close(struct vectors *v)
{
    arena_release(&v->arena);
}

/* The word at '*at', which is left behind. */
static inline struct slice word_next(const char **at)
{
    const char *begin = *at + strspn(*at, " \n");
    struct slice s = { begin, strcspn(begin, " \n") };

    *at = begin + s.len;
    return s;
}

/* The 'n' numbers of array 'name', in the vectors' arena. */
static inline float *vectors_get(struct vectors *v, const char *name, int n)
{
    const char *head = arena_printf(&v->arena, "array %s ", name), *at = strstr(v->at, head);
    float *out = ARENA_ARRAY(&v->arena, float, (size_t)n);
    long rows, cols;

    ck_assert_msg(at != NULL, "no array '%s'", name);
    at += strlen(head);
    ck_assert_int_eq(text_to_long(word_next(&at), 1, 1000, &rows), 0);
    ck_assert_int_eq(text_to_long(word_next(&at), 1, 1000, &cols), 0);
    ck_assert_msg(rows * cols == n, "'%s' is %ld x %ld, want %d numbers", name, rows, cols, n);
    for (int i = 0; i < n; i++) {
        double value;

        ck_assert_int_eq(text_to_double(word_next(&at), &value), 0);
        out[i] = (float)value;
    }
    return out;
}

/* The same for flags. */
static inline bool *vectors_get_flags(struct vectors *v, const char *name, int n)
{
    const float *numbers = vectors_get(v, name, n);
    bool *out = ARENA_ARRAY(&v->arena, bool, (size_t)n);

    for (int i = 0; i < n; i++)
        out[i] = numbers[i] != 0;
    return out;
}

/* Every number within 'tolerance', relative where it is above 1. */
static inline void assert_close(const char *what, int n, const float *got, const float *want,
                                double tolerance)
{
    for (int i = 0; i < n; i++) {
        double off = fabs((double)got[i] - (double)want[i]);

        ck_assert_msg(off <= tolerance * fmax(1, fabs((double)want[i])),
                      "%s[%d]: got %.9g, want %.9g", what, i, (double)got[i], (double)want[i]);
    }
}

static inline void draw_normal(struct rng *r, int n, float *out)
{
    for (int i = 0; i < n; i++)
        out[i] = (float)rng_normal(r);
}

/* sum of y dy: a loss whose gradient by y is dy. */
static inline double dot(int n, const float *y, const float *dy)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (double)y[i] * (double)dy[i];
    return sum;
}

typedef double (*value_f)(void *self);

/* Is 'grad' (n) the gradient of f by the 'n' numbers at 'v'? Central differences of the
 * fourth order, whose own error is far below the tolerance for the smooth functions here
 * and h = 0.01: rounding of floats, 1e-7 / h, is what remains.
 */
static inline void assert_gradient(const char *what, value_f f, void *self, int n, float *v,
                                   const float *grad)
{
    const double h = 0.01;

    for (int i = 0; i < n; i++) {
        const float keep = v[i];
        double d[2];

        for (int k = 0; k < 2; k++) {
            const float high = (float)((double)keep + (k + 1) * h);
            const float low = (float)((double)keep - (k + 1) * h);

            v[i] = high;
            d[k] = f(self);
            v[i] = low;
            d[k] = (d[k] - f(self)) / ((double)high - (double)low);
        }
        v[i] = keep;
        double want = (4 * d[0] - d[1]) / 3, off = fabs((double)grad[i] - want);
        ck_assert_msg(off <= 5e-4 * fmax(1, fabs(want)), "d/d%s[%d]: got %.6g, differences %.6g",
                      what, i, (double)grad[i], want);
    }
}

#endif

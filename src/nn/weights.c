#include "nn/weights.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <sha2.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"

#define VERSION 1

/* As PNG's: a byte above 127 shows a path that is not 8-bit clean, the line end one that
 * translates them.
 */
static const unsigned char magic[8] = { 0x89, 'G', 'O', 'G', 'H', 'N', 'N', '\n' };

enum { HEAD = 16, ARRAY_HEAD = 12, DIGEST = SHA256_DIGEST_LENGTH };

static const char *const kind_names[] = { "", "floats", "doubles", "text" };

static size_t kind_bytes(enum weights_kind kind)
{
    return kind == WEIGHTS_FLOATS ? 4 : kind == WEIGHTS_DOUBLES ? 8 : 1;
}

/* -- the bag -- */

void weights_init(struct weights *w, struct arena *a)
{
    *w = (struct weights){ .a = a };
}

const struct weights_array *weights_find(const struct weights *w, const char *name)
{
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->arrays[i].name, name) == 0)
            return &w->arrays[i];
    return NULL;
}

/* Add one; its name and data are in the arena already. */
static void add(struct weights *w, struct weights_array array)
{
    ARENA_GROW(w->a, w->arrays, w->n, w->cap);
    w->arrays[w->n++] = array;
}

static void put(struct weights *w, const char *name, enum weights_kind kind, int rows, int cols,
                const void *data)
{
    assert(rows >= 0 && cols >= 0 && w->n < WEIGHTS_ARRAYS_MAX);
    assert(text_is_name(slice_of(name)) && weights_find(w, name) == NULL);
    size_t n = (size_t)rows * (size_t)cols * kind_bytes(kind);
    char *copy = arena_alloc(w->a, n + 1);    // and a text's NUL

    if (n > 0)
        memcpy(copy, data, n);
    add(w, (struct weights_array){ arena_strdup(w->a, name), kind, rows, cols, copy });
}

void weights_put(struct weights *w, const char *name, int rows, int cols, const float *data)
{
    put(w, name, WEIGHTS_FLOATS, rows, cols, data);
}

void weights_put_doubles(struct weights *w, const char *name, int rows, int cols,
                         const double *data)
{
    put(w, name, WEIGHTS_DOUBLES, rows, cols, data);
}

void weights_put_text(struct weights *w, const char *name, const char *text)
{
    assert(strlen(text) <= WEIGHTS_BYTES_MAX);
    put(w, name, WEIGHTS_TEXT, 1, (int)strlen(text), text);
}

/* The data of an array; NULL, and why, if it is not there as wanted or an earlier one was not. */
static const void *take(struct weights_reader *r, const char *name, enum weights_kind kind,
                        int rows, int cols)
{
    const struct weights_array *array = weights_find(r->from, name);

    if (r->rc < 0)
        return NULL;
    if (array == NULL)
        r->rc = err_set(r->e, ENOENT, "weights: there is no array '%s'", name);
    else if (array->kind != kind)
        r->rc = err_set(r->e, EINVAL, "weights: '%s' is %s, want %s", name, kind_names[array->kind],
                        kind_names[kind]);
    else if ((rows != -1 && rows != array->rows) || (cols != -1 && cols != array->cols))
        r->rc = err_set(r->e, EINVAL, "weights: '%s' is %d x %d, want %d x %d (-1: any)", name,
                        array->rows, array->cols, rows, cols);
    return r->rc < 0 ? NULL : array->data;
}

const float *weights_floats(struct weights_reader *r, const char *name, int rows, int cols)
{
    return take(r, name, WEIGHTS_FLOATS, rows, cols);
}

const double *weights_doubles(struct weights_reader *r, const char *name, int rows, int cols)
{
    return take(r, name, WEIGHTS_DOUBLES, rows, cols);
}

const char *weights_text(struct weights_reader *r, const char *name)
{
    return take(r, name, WEIGHTS_TEXT, -1, -1);
}

bool weights_within(const float *x, size_t n, float most)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= most))
            return false;
    return true;
}

bool weights_within_doubles(const double *x, size_t n, double most)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= most))
            return false;
    return true;
}

/* -- numbers as bytes, the least significant first, on every machine -- */

static void bytes_put(unsigned char *to, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t bytes_get(const unsigned char *from, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)from[i] << (8 * i);
    return v;
}

/* Numbers are kept as their IEEE 754 bits: 'n' of them from this machine's order, or back to it. */
static void bytes_turn(char *bytes, size_t n, size_t width)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return;
    for (char *end = bytes + n * width; bytes < end; bytes += width)
        for (size_t i = 0; i < width / 2; i++) {
            char first = bytes[i];
            bytes[i] = bytes[width - 1 - i];
            bytes[width - 1 - i] = first;
        }
}

/* The content must be finite, or be text; the same rule on the way out and in. */
static int array_check(const struct weights_array *array, struct err *e)
{
    size_t n = (size_t)array->rows * (size_t)array->cols, bad;

    if (array->kind == WEIGHTS_TEXT) {
        if (!text_is_utf8(array->data, n, &bad))
            return err_set(e, EILSEQ, "weights: text '%s' is not UTF-8 at byte %zu", array->name,
                           bad);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (array->kind == WEIGHTS_FLOATS ? !isfinite(((const float *)array->data)[i])
                                          : !isfinite(((const double *)array->data)[i]))
            return err_set(e, EDOM, "weights: number %zu of '%s' is not finite", i, array->name);
    return 0;
}

/* -- writing -- */

static int array_encode(const struct weights_array *array, struct buf *out)
{
    size_t n = (size_t)array->rows * (size_t)array->cols, width = kind_bytes(array->kind);
    size_t name_len = strlen(array->name);
    unsigned char head[ARRAY_HEAD];
    int rc;

    bytes_put(head, name_len, 2);
    bytes_put(head + 2, array->kind, 2);
    bytes_put(head + 4, (uint64_t)array->rows, 4);
    bytes_put(head + 8, (uint64_t)array->cols, 4);
    rc = buf_append(out, head, sizeof head);
    if (rc == 0)
        rc = buf_append(out, array->name, name_len);
    size_t at = out->len;
    if (rc == 0)
        rc = buf_append(out, array->data, n * width);
    if (rc == 0)
        bytes_turn(out->data + at, n, width);
    return rc;
}

static void digest_of(const void *bytes, size_t len, unsigned char out[DIGEST])
{
    SHA2_CTX ctx;

    SHA256Init(&ctx);
    SHA256Update(&ctx, bytes, len);
    SHA256Final(out, &ctx);
}

int weights_encode(const struct weights *w, struct buf *out, struct err *e)
{
    unsigned char head[HEAD], digest[DIGEST];
    int rc;

    buf_clear(out);
    memcpy(head, magic, sizeof magic);
    bytes_put(head + 8, VERSION, 4);
    bytes_put(head + 12, (uint64_t)w->n, 4);
    rc = buf_append(out, head, sizeof head);
    for (int i = 0; i < w->n && rc == 0; i++) {
        rc = array_check(&w->arrays[i], e);
        if (rc < 0)
            return rc;
        rc = array_encode(&w->arrays[i], out);
    }
    if (rc == 0) {
        digest_of(out->data, out->len, digest);
        rc = buf_append(out, digest, sizeof digest);
    }
    if (rc < 0 || out->len > WEIGHTS_BYTES_MAX)
        return err_set(e, EFBIG, "weights: the arrays need more than %zu bytes",
                       out->max < WEIGHTS_BYTES_MAX ? out->max : WEIGHTS_BYTES_MAX);
    return 0;
}

/* -- reading -- */

struct rest {
    const unsigned char *at, *end;    // what is left; without the digest
};

static size_t left(const struct rest *r)
{
    return (size_t)(r->end - r->at);
}

/* Magic, version, checksum: from here on the bytes are what somebody wrote. */
static int frame_check(const unsigned char *bytes, size_t len, struct err *e)
{
    unsigned char digest[DIGEST];

    if (len > WEIGHTS_BYTES_MAX)
        return err_set(e, EINVAL, "weights: %zu bytes, at most %zu are read", len,
                       WEIGHTS_BYTES_MAX);
    if (len < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return err_set(e, EINVAL, "weights: this is no weight file (it does not begin as one)");
    if (len < HEAD + DIGEST)
        return err_set(e, EINVAL, "weights: cut short after %zu bytes", len);
    uint64_t version = bytes_get(bytes + 8, 4);
    if (version > VERSION)
        return err_set(e, ENOTSUP,
                       "weights: version %u is newer than this program, which reads version %d",
                       (unsigned)version, VERSION);
    if (version < VERSION)
        return err_set(e, EINVAL, "weights: there never was a version %u", (unsigned)version);
    digest_of(bytes, len - DIGEST, digest);
    if (memcmp(digest, bytes + len - DIGEST, DIGEST) != 0)
        return err_set(e, EINVAL, "weights: damaged or cut short (the checksum differs)");
    return 0;
}

/* The 12 bytes before an array's name and data; what they promise must be there. */
static int head_decode(struct rest *r, int i, struct weights_array *out, size_t *name_len,
                       size_t *n, struct err *e)
{
    if (left(r) < ARRAY_HEAD)
        return err_set(e, EINVAL, "weights: array %d: cut short", i);
    *name_len = bytes_get(r->at, 2);
    uint64_t kind = bytes_get(r->at + 2, 2);
    uint64_t rows = bytes_get(r->at + 4, 4), cols = bytes_get(r->at + 8, 4);
    r->at += ARRAY_HEAD;

    if (kind < WEIGHTS_FLOATS || kind > WEIGHTS_TEXT)
        return err_set(e, EINVAL, "weights: array %d: there is no kind %u", i, (unsigned)kind);
    if (rows > WEIGHTS_BYTES_MAX || cols > WEIGHTS_BYTES_MAX)
        return err_set(e, EINVAL, "weights: array %d: too large", i);
    if (kind == WEIGHTS_TEXT && rows != 1)
        return err_set(e, EINVAL, "weights: array %d: a text has one row", i);
    *n = rows * cols;    // neither is above 2^26
    if (*name_len > left(r) || *n > (left(r) - *name_len) / kind_bytes((enum weights_kind)kind))
        return err_set(e, EINVAL, "weights: array %d: cut short", i);
    *out = (struct weights_array){ .kind = (enum weights_kind)kind,
                                   .rows = (int)rows,
                                   .cols = (int)cols };
    return 0;
}

/* 'n' numbers or bytes of 'kind' as this machine has them. */
static const void *data_decode(struct arena *a, struct rest *r, enum weights_kind kind, size_t n)
{
    size_t width = kind_bytes(kind);
    char *data = arena_alloc(a, n * width + 1);

    memcpy(data, r->at, n * width);
    bytes_turn(data, n, width);
    r->at += n * width;
    return data;
}

static int array_decode(struct weights *w, struct rest *r, int i, struct err *e)
{
    struct weights_array array;
    size_t name_len, n;
    int rc = head_decode(r, i, &array, &name_len, &n, e);

    if (rc < 0)
        return rc;
    if (!text_is_name((struct slice){ (const char *)r->at, name_len }))
        return err_set(e, EINVAL, "weights: array %d: its name is no name", i);
    array.name = arena_strndup(w->a, (const char *)r->at, name_len);
    r->at += name_len;
    if (weights_find(w, array.name) != NULL)
        return err_set(e, EINVAL, "weights: array '%s' is there twice", array.name);
    array.data = data_decode(w->a, r, array.kind, n);
    rc = array_check(&array, e);
    if (rc == 0)
        add(w, array);
    return rc;
}

int weights_decode(struct arena *a, const void *bytes, size_t len, struct weights *out,
                   struct err *e)
{
    const unsigned char *b = bytes;
    int rc = frame_check(b, len, e);

    if (rc < 0)
        return rc;
    struct rest r = { b + HEAD, b + len - DIGEST };
    uint64_t n = bytes_get(b + 12, 4);
    if (n > WEIGHTS_ARRAYS_MAX)
        return err_set(e, EINVAL, "weights: %u arrays, at most %d are read", (unsigned)n,
                       WEIGHTS_ARRAYS_MAX);
    weights_init(out, a);
    for (int i = 0; i < (int)n && rc == 0; i++)
        rc = array_decode(out, &r, i, e);
    if (rc == 0 && left(&r) > 0)
        rc = err_set(e, EINVAL, "weights: %zu bytes too many after the last array", left(&r));
    return rc;
}

#include "base/text/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"

void buf_init(struct buf *b, size_t max)
{
    assert(max < SIZE_MAX / 2);
    *b = (struct buf){ .max = max };
}

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data != NULL)
        b->data[0] = '\0';
}

/* Make room for 'n' more bytes and the NUL, doubling up to the ceiling. */
static int buf_grow(struct buf *b, size_t n)
{
    size_t cap;

    if (n > b->max - b->len)
        return -ENOSPC;
    if (b->data != NULL && b->len + n < b->cap)
        return 0;
    cap = b->cap < 128 ? 256 : b->cap * 2;
    if (cap > b->max + 1)
        cap = b->max + 1;
    if (cap < b->len + n + 1)
        cap = b->len + n + 1;
    RESIZE(b->data, cap);
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *bytes, size_t n)
{
    int rc = buf_grow(b, n);

    if (rc < 0)
        return rc;
    if (n > 0)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    int n, rc;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(n >= 0);
    rc = buf_grow(b, (size_t)n);
    if (rc < 0)
        return rc;
    va_start(args, format);
    vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
    return 0;
}

const char *buf_text(const struct buf *b)
{
    return b->data == NULL ? "" : b->data;
}

const char *buf_keep(struct buf *b, struct arena *a)
{
    const char *text = arena_strdup(a, buf_text(b));

    buf_release(b);
    return text;
}

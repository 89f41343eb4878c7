#include "base/arena.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first block; each following one is twice as large, so that a cycle settles
 * on one block that arena_reset() keeps. Past BLOCK_MAX the doubling would waste
 * more than it saves.
 */
#define BLOCK_MIN ((size_t)16 << 10)
#define BLOCK_MAX ((size_t)16 << 20)

struct arena_block {
    struct arena_block *older;
    size_t size, filled;    // bytes after this header
    alignas(max_align_t) char data[];
};

static _Noreturn void stop(size_t n)
{
    fprintf(stderr, "gogh: error: out of memory (%zu bytes asked)\n", n);
    abort();
}

static void block_add(struct arena *a, size_t need)
{
    size_t size = a->head == NULL ? BLOCK_MIN : a->head->size * 2;
    struct arena_block *b;

    if (size > BLOCK_MAX)
        size = BLOCK_MAX;
    if (size < need)
        size = need;
    if (size > SIZE_MAX - sizeof *b)
        stop(size);
    b = malloc(sizeof *b + size);
    if (b == NULL)
        stop(size);
    b->older = a->head;
    b->size = size;
    b->filled = 0;
    a->head = b;
}

void arena_init(struct arena *a)
{
    *a = (struct arena){ 0 };
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = NULL;

    for (struct arena_block *b = a->head, *older; b != NULL; b = older) {
        older = b->older;
        if (keep == NULL || b->size > keep->size) {
            free(keep);
            keep = b;
        } else {
            free(b);
        }
    }
    if (keep != NULL) {
        keep->older = NULL;
        keep->filled = 0;
    }
    a->head = keep;
    a->used = 0;
}

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->head, *older; b != NULL; b = older) {
        older = b->older;
        free(b);
    }
    arena_init(a);
}

void *arena_alloc(struct arena *a, size_t n)
{
    const size_t unit = alignof(max_align_t);
    void *at;

    if (n > PTRDIFF_MAX)
        stop(n);
    n = n == 0 ? unit : (n + unit - 1) / unit * unit;
    if (a->head == NULL || a->head->size - a->head->filled < n)
        block_add(a, n);
    at = a->head->data + a->head->filled;
    a->head->filled += n;
    a->used += n;
    return memset(at, 0, n);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        stop(SIZE_MAX);
    return arena_alloc(a, bytes);
}

void *arena_grow(struct arena *a, void *array, int n, int *cap, size_t size)
{
    void *bigger;

    if (n < *cap)
        return array;
    assert(*cap <= INT_MAX / 2);
    *cap = *cap ? 2 * *cap : 16;
    bigger = arena_array(a, (size_t)*cap, size);
    if (n > 0)
        memcpy(bigger, array, (size_t)n * size);
    return bigger;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);

    return memcpy(arena_alloc(a, len + 1), s, len);
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    char *s;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(n >= 0);
    s = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(s, (size_t)n + 1, format, args);
    va_end(args);
    return s;
}

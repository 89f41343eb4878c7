/* grow.h - arrays on the heap, that double where they grow; no memory stops the process. */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* 'array' with room for 'n' elements, which may be fewer; what is new in it is not set. */
static inline void *heap_resize(void *array, size_t n, size_t size)
{
    void *resized = reallocarray(array, n ? n : 1, size);

    assert(resized);    // out of memory: stop; restart replays the journal
    return resized;
}

/* Make room in 'array' (heap, 'size' bytes an element, 'n' used of '*cap') for one
 * more; returns the array, which may have moved.
 */
static inline void *grow(void *array, int n, int *cap, size_t size)
{
    if (n < *cap)
        return array;
    assert(*cap <= INT_MAX / 2);
    *cap = *cap ? 2 * *cap : 16;
    return heap_resize(array, (size_t)*cap, size);
}

/* The same for an array that grows in step with others, the last of which keeps 'cap'. */
static inline void *grow_beside(void *array, int n, int cap, size_t size)
{
    return grow(array, n, &cap, size);
}

/* Room for 'n' zeroed elements on the heap, or the process stops. Owned. */
static inline void *heap_array(size_t n, size_t size)
{
    void *a = calloc(n ? n : 1, size);

    assert(a);    // out of memory: stop; restart replays the journal
    return a;
}

/* A copy of 'text', or NULL of NULL. Owned. */
static inline char *heap_text(const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    assert(copy || !text);    // out of memory: stop; restart replays the journal
    return copy;
}

#define RESIZE(array, n) ((array) = heap_resize((array), (size_t)(n), sizeof *(array)))
#define GROW(array, n, cap) ((array) = grow((array), (n), &(cap), sizeof *(array)))
#define GROW_BESIDE(array, n, cap) ((array) = grow_beside((array), (n), (cap), sizeof *(array)))

#endif

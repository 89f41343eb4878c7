/* arena.h - memory with one lifetime: allocate freely, let go of everything at once.
 *
 * Three lifetimes, three arenas: process, cycle, request. A function that makes
 * something takes the arena to put it in as its first argument. Nothing from an
 * arena meets free(). Memory that cannot be had stops the process: all durable
 * state is in the store, and restart replays the journal.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head;    // the block being filled; older blocks hang behind it
    size_t used;                 // bytes handed out since the last reset, for metrics
};

/* Make 'a' empty. No memory is taken before the first allocation. */
void arena_init(struct arena *a);

/* Forget all allocations but keep the largest block for reuse. */
void arena_reset(struct arena *a);

/* Give all memory back; 'a' is empty and usable again. */
void arena_release(struct arena *a);

/* 'n' zeroed bytes aligned for any type; n == 0 gives a valid pointer. Never NULL. */
void *arena_alloc(struct arena *a, size_t n);

/* Room for 'n' zeroed elements of 'size' bytes; stops the process on overflow. */
void *arena_array(struct arena *a, size_t n, size_t size);

/* 'array' of the arena, of which 'n' of '*cap' elements are used, with room for one more; what it
 * outgrows dies with the arena.
 */
void *arena_grow(struct arena *a, void *array, int n, int *cap, size_t size);

/* Copies of strings, always terminated. Of NULL: NULL. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_array((a), (n), sizeof(type)))
#define ARENA_GROW(a, array, n, cap) \
    ((array) = arena_grow((a), (array), (n), &(cap), sizeof *(array)))

#endif

/* heap.h - what happens next: a min-heap of (time, sequence) with a payload.
 *
 * Equal times come out in the order they went in, so a simulation repeats exactly.
 * Empty when zeroed; owns heap memory, so release when done.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_item {
    double at_s;
    uint64_t seq;      // set by heap_push
    uint32_t kind;     // the owner's
    int32_t index;     // the owner's
    uint32_t stamp;    // the owner's: to recognise items that became stale
};

struct heap {
    struct heap_item *items;
    int n_items, cap;
    uint64_t next_seq;
};

void heap_release(struct heap *h);
void heap_push(struct heap *h, double at_s, uint32_t kind, int32_t index, uint32_t stamp);

/* The earliest item, or NULL when empty. Borrowed until the next change. */
const struct heap_item *heap_top(const struct heap *h);
struct heap_item heap_pop(struct heap *h);    // the heap must not be empty

#endif

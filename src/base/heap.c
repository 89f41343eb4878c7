#include "base/heap.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Four children: half the levels of two, and brothers share cache lines, which is
 * what a pop costs.
 */
#define CHILDREN 4

void heap_init(struct heap *h)
{
    *h = (struct heap){ 0 };
}

void heap_release(struct heap *h)
{
    free(h->items);
    heap_init(h);
}

static bool comes_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->seq < b->seq);
}

void heap_push(struct heap *h, double at_s, uint32_t kind, int32_t index, uint32_t stamp)
{
    const struct heap_item item = { at_s, h->next_seq++, kind, index, stamp };
    size_t i = h->n_items;

    assert(!isnan(at_s));
    if (h->n_items == h->cap) {
        h->cap = h->cap == 0 ? 64 : h->cap * 2;
        h->items = reallocarray(h->items, h->cap, sizeof *h->items);
        if (h->items == NULL)
            abort();
    }
    h->n_items++;
    while (i > 0) {
        const size_t parent = (i - 1) / CHILDREN;

        if (!comes_before(&item, &h->items[parent]))
            break;
        h->items[i] = h->items[parent];
        i = parent;
    }
    h->items[i] = item;
}

const struct heap_item *heap_top(const struct heap *h)
{
    return h->n_items == 0 ? NULL : &h->items[0];
}

/* The earliest of the children of 'i', or n_items when it has none. */
static size_t first_child(const struct heap *h, size_t i)
{
    const size_t begin = i * CHILDREN + 1;
    const size_t end = begin + CHILDREN < h->n_items ? begin + CHILDREN : h->n_items;
    size_t best = begin;

    if (begin >= h->n_items)
        return h->n_items;
    for (size_t c = begin + 1; c < end; c++) {
        if (comes_before(&h->items[c], &h->items[best]))
            best = c;
    }
    return best;
}

struct heap_item heap_pop(struct heap *h)
{
    struct heap_item top, last;
    size_t i = 0;

    assert(h->n_items > 0);
    top = h->items[0];
    last = h->items[--h->n_items];
    for (;;) {
        const size_t child = first_child(h, i);

        if (child == h->n_items || !comes_before(&h->items[child], &last))
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return top;
}

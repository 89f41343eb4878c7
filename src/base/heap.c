#include "base/heap.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/grow.h"

/* Four children: half the levels of two, and brothers share cache lines, which is
 * what a pop costs.
 */
#define CHILDREN 4

void heap_release(struct heap *h)
{
    free(h->items);
    *h = (struct heap){ 0 };
}

static bool comes_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->seq < b->seq);
}

void heap_push(struct heap *h, double at_s, uint32_t kind, int32_t index, uint32_t stamp)
{
    const struct heap_item item = { at_s, h->next_seq++, kind, index, stamp };
    int i = h->n_items;

    assert(!isnan(at_s));
    GROW(h->items, h->n_items, h->cap);
    h->n_items++;
    while (i > 0) {
        const int parent = (i - 1) / CHILDREN;

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
static int first_child(const struct heap *h, int i)
{
    const int begin = i * CHILDREN + 1;
    const int end = begin + CHILDREN < h->n_items ? begin + CHILDREN : h->n_items;
    int best = begin;

    if (begin >= h->n_items)
        return h->n_items;
    for (int c = begin + 1; c < end; c++) {
        if (comes_before(&h->items[c], &h->items[best]))
            best = c;
    }
    return best;
}

struct heap_item heap_pop(struct heap *h)
{
    struct heap_item top, last;
    int i = 0;

    assert(h->n_items > 0);
    top = h->items[0];
    last = h->items[--h->n_items];
    for (;;) {
        const int child = first_child(h, i);

        if (child == h->n_items || !comes_before(&h->items[child], &last))
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return top;
}

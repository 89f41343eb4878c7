/* What happens next, and in which order. */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/rng.h"
#include "unit/suite.h"

TEST(earlier_comes_first_and_equal_times_in_the_order_they_went_in)
{
    static const double at_s[] = { 3, 1, 2, 1, 3, 1, -INFINITY, INFINITY, 0.0, -0.0 };
    static const int want[] = { 6, 8, 9, 1, 3, 5, 2, 0, 4, 7 };
    struct heap h = { 0 };

    ck_assert_ptr_null(heap_top(&h));
    for (int i = 0; i < 10; i++)
        heap_push(&h, at_s[i], (uint32_t)(100 + i), i, (uint32_t)(200 + i));
    for (int i = 0; i < 10; i++) {
        struct heap_item item;

        ck_assert_int_eq(heap_top(&h)->index, want[i]);
        item = heap_pop(&h);
        ck_assert_int_eq(item.index, want[i]);
        ck_assert_uint_eq(item.kind, 100 + (uint32_t)want[i]);
        ck_assert_uint_eq(item.stamp, 200 + (uint32_t)want[i]);
        ck_assert(item.at_s == at_s[want[i]]);
    }
    ck_assert_ptr_null(heap_top(&h));
    heap_release(&h);
}

static bool follows(const struct heap_item *b, const struct heap_item *a)
{
    return b->at_s > a->at_s || (b->at_s == a->at_s && b->seq > a->seq);
}

/* Pushes and pops at random, with many ties: what comes out is never earlier than
 * what came out before, as long as nothing earlier was pushed in between.
 */
TEST(a_simulation_s_worth_of_items_comes_out_in_order)
{
    struct rng r;
    struct heap h = { 0 };
    struct heap_item last = { .at_s = -1 };
    bool is_ordered = true;
    size_t n = 0;

    rng_init(&r, 1, "heap");
    for (int i = 0; i < 200000; i++) {
        if (h.n_items == 0 || rng_below(&r, 5) < 3) {
            heap_push(&h, fmax(last.at_s, 0) + (double)rng_below(&r, 4), 0, i, 0);
            n++;
        } else {
            struct heap_item item = heap_pop(&h);

            is_ordered &= follows(&item, &last);
            last = item;
            n--;
        }
        is_ordered &= h.n_items == (int)n;
    }
    while (h.n_items > 0) {
        struct heap_item item = heap_pop(&h);

        is_ordered &= follows(&item, &last);
        last = item;
    }
    ck_assert(is_ordered);
    heap_release(&h);
}

ABORT(taking_from_an_empty_heap_stops_the_process)
{
    struct heap h = { 0 };

    heap_pop(&h);
}

ABORT(a_time_that_is_no_number_stops_the_process)
{
    struct heap h = { 0 };

    heap_push(&h, (double)NAN, 0, 0, 0);
}

#include "optimize/prices/kept.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/prices.h"

/* Prices serve for so many decisions at most; where the gap is more than this part of the cost for
 * fewer, and no longer than it is less than so many times the least that it has been with them.
 */
#define AGE_MOST 256
#define AGE_POOR 32
#define GAP_MOST 0.006
#define GAP_GROWS 2.0

struct kept_class {
    uint64_t kind;    // a hash of what the kind is
    uint64_t types;
    int is_exclusive;
    int first, n;    // its steps
};

struct kept_step {
    double from, price;
};

/* What is written as it is. */
struct kept_head {
    int n_types, n_classes, n_steps, age;    // n_classes 0: nothing is kept
    double cap_price, gap;                   // the least so far
};

struct kept_prices {
    struct kept_head head;
    struct kept_class *classes;    // (head.n_classes)
    struct kept_step *steps;       // (head.n_steps)
    double *rack_price;            // (head.n_types)
};

struct kept_prices *kept_create(void)
{
    return heap_array(1, sizeof(struct kept_prices));
}

void kept_destroy(struct kept_prices *k)
{
    if (!k)
        return;
    free(k->classes);
    free(k->steps);
    free(k->rack_price);
    free(k);
}

/* For as much as the head says, and so many steps. */
static void make_room(struct kept_prices *k, int n_steps)
{
    free(k->classes);
    free(k->steps);
    free(k->rack_price);
    k->classes = heap_array((size_t)k->head.n_classes, sizeof *k->classes);
    k->steps = heap_array((size_t)n_steps, sizeof *k->steps);
    k->rack_price = heap_array((size_t)k->head.n_types, sizeof *k->rack_price);
}

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_kind(const struct problem_kind *k)
{
    uint64_t h = hash(UINT64_C(0xcbf29ce484222325), k->name, strlen(k->name));

    h = hash(h, &k->rate, sizeof k->rate);
    return hash(h, &k->time_w, sizeof k->time_w);
}

/* Steps of a class where its price changes. A bin without slots has any price; it is kept as a part
 * of the next one that has some, for in the next problem, with other edges, it may have some too.
 */
static void take_class(struct kept_prices *k, const struct columns *c, const struct dual *u,
                       int class)
{
    const struct job_class *from = &c->classes[class];
    struct kept_class *to = &k->classes[class];

    *to = (struct kept_class){ .kind = hash_kind(&c->p->kinds[from->kind]),
                               .types = from->types,
                               .is_exclusive = from->is_exclusive,
                               .first = k->head.n_steps };
    for (int b = 0, at = 0; b < from->n_bins; b++) {
        for (at = at < b ? b : at; at + 1 < from->n_bins && from->top[at] < 0;)
            at++;
        double price = u->slot_w[from->first_bin + at];
        if (to->n > 0 && k->steps[k->head.n_steps - 1].price == price)
            continue;
        k->steps[k->head.n_steps++] = (struct kept_step){ from->edge[b], price };
        to->n++;
    }
}

void kept_take(struct kept_prices *k, const struct prices *u)
{
    const struct columns *c = u->columns;

    k->head = (struct kept_head){ .n_types = c->p->n_types,
                                  .n_classes = c->n_classes,
                                  .cap_price = u->u.cap_price,
                                  .gap = INFINITY };
    make_room(k, c->n_bins);
    memcpy(k->rack_price, u->u.rack_price, (size_t)c->p->n_types * sizeof *k->rack_price);
    for (int class = 0; class < c->n_classes; class ++)
        take_class(k, c, &u->u, class);
}

void kept_find(struct kept_prices *k, const struct problem *p)
{
    struct prices_options o = { .wants_vertex = true, .threads = 1 };
    struct prices *u = prices_find(p, &o);

    kept_take(k, u);
    prices_destroy(u);
}

/* The class with these types, or another one of the kind; NULL: none is known. */
static const struct kept_class *find(const struct kept_prices *k, const struct columns *c,
                                     int class)
{
    const struct job_class *want = &c->classes[class];
    uint64_t kind = hash_kind(&c->p->kinds[want->kind]);
    const struct kept_class *like = NULL;

    for (int i = 0; i < k->head.n_classes; i++) {
        const struct kept_class *x = &k->classes[i];
        if (x->kind != kind || x->is_exclusive != want->is_exclusive)
            continue;
        if (x->types == want->types)
            return x;
        like = like ? like : x;
    }
    return like;
}

bool kept_give(const struct kept_prices *k, const struct columns *c, struct dual *u)
{
    dual_guess(c, u);
    if (kept_is_empty(k) || k->head.n_types != c->p->n_types)
        return false;
    for (int class = 0; class < c->n_classes; class ++) {
        const struct job_class *to = &c->classes[class];
        const struct kept_class *from = find(k, c, class);
        for (int b = 0, s = 0; from && from->n > 0 && b < to->n_bins; b++) {
            while (s + 1 < from->n && k->steps[from->first + s + 1].from <= to->edge[b])
                s++;
            u->slot_w[to->first_bin + b] = k->steps[from->first + s].price;
        }
    }
    u->cap_price = c->room_w < HUGE_VAL ? k->head.cap_price : 0;
    for (int t = 0; t < c->p->n_types; t++)
        u->rack_price[t] = c->rack_room_w[t] < HUGE_VAL ? k->rack_price[t] : 0;
    return true;
}

bool kept_is_empty(const struct kept_prices *k)
{
    return k->head.n_classes == 0;
}

bool kept_count(struct kept_prices *k, double gap)
{
    struct kept_head *h = &k->head;

    h->age += h->age < INT_MAX;
    h->gap = fmin(h->gap, gap);
    bool is_poor = gap > GAP_MOST && (h->age >= AGE_POOR || gap > GAP_GROWS * h->gap);
    return !kept_is_empty(k) && (is_poor || h->age >= AGE_MOST);
}

/* ---- bytes ---- */

void kept_write(const struct kept_prices *k, struct buf *out)
{
    buf_append(out, &k->head, sizeof k->head);
    buf_append(out, k->classes, (size_t)k->head.n_classes * sizeof *k->classes);
    buf_append(out, k->steps, (size_t)k->head.n_steps * sizeof *k->steps);
    buf_append(out, k->rack_price, (size_t)k->head.n_types * sizeof *k->rack_price);
}

bool kept_read(struct kept_prices *k, const void *bytes, size_t n)
{
    struct kept_head head;

    if (n < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.n_classes < 0 || head.n_steps < 0 || head.n_types < 0)
        return false;
    size_t n_classes = (size_t)head.n_classes * sizeof *k->classes;
    size_t n_steps = (size_t)head.n_steps * sizeof *k->steps;
    size_t n_types = (size_t)head.n_types * sizeof *k->rack_price;
    if (n != sizeof head + n_classes + n_steps + n_types)
        return false;
    k->head = head;
    make_room(k, head.n_steps);
    const char *at = (const char *)bytes + sizeof head;
    memcpy(k->classes, at, n_classes);
    memcpy(k->steps, at + n_classes, n_steps);
    memcpy(k->rack_price, at + n_classes + n_steps, n_types);
    return true;
}

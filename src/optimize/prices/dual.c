#include "optimize/prices/dual.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/prices/columns.h"

void dual_init(struct arena *a, const struct columns *c, struct dual *u)
{
    u->slot_w = ARENA_ARRAY(a, double, (size_t)c->n_bins);
    u->type_w = ARENA_ARRAY(a, double, (size_t)c->p->n_types);
    u->rack_price = ARENA_ARRAY(a, double, (size_t)c->p->n_types);
    u->cap_price = 0;
}

static void copy_types(const struct columns *c, const struct dual *from, struct dual *to)
{
    memcpy(to->type_w, from->type_w, (size_t)c->p->n_types * sizeof *to->type_w);
    memcpy(to->rack_price, from->rack_price, (size_t)c->p->n_types * sizeof *to->rack_price);
    to->cap_price = from->cap_price;
}

void dual_copy(const struct columns *c, const struct dual *from, struct dual *to)
{
    memcpy(to->slot_w, from->slot_w, (size_t)c->n_bins * sizeof *to->slot_w);
    copy_types(c, from, to);
}

void dual_convert(const struct columns *from_grid, const struct dual *from, const struct columns *c,
                  struct dual *to)
{
    for (int k = 0; k < c->n_classes; k++) {
        const struct job_class *of = &from_grid->classes[k], *class = &c->classes[k];
        for (int b = 0; b < class->n_bins; b++)
            to->slot_w[class->first_bin + b] = from->slot_w[columns_slot(of, class->edge[b])];
    }
    copy_types(c, from, to);
}

/* What a GPU alone costs at least that holds the bin's edge, for each bin. */
void dual_guess(const struct columns *c, struct dual *u)
{
    for (int k = 0; k < c->n_classes; k++) {
        const struct job_class *class = &c->classes[k];
        double *w = u->slot_w + class->first_bin, last = HUGE_VAL;
        for (int b = 0; b < class->n_bins; b++)
            w[b] = HUGE_VAL;
        for (int t = 0; t < c->p->n_types; t++)
            for (int l = 0; l < c->p->types[t].n_limits && class->types >> t & 1; l++) {
                struct yield y;
                if (!problem_yield(c->p, t, l, &class->kind, 1, &y))
                    break;
                int b = columns_bin(class, yield_low(c->p, &y, 0));
                w[b] = fmin(w[b], y.cost_w);
            }
        for (int b = class->n_bins - 1; b >= 0; b--)
            w[b] = last = fmin(last, w[b]);
        for (int b = 1; b < class->n_bins; b++)    // above what there is: as the most there is
            w[b] = w[b] < HUGE_VAL ? w[b] : w[b - 1];
    }
}

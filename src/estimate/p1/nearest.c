#include "estimate/p1/nearest.h"

#include <math.h>
#include <stddef.h>

#include "estimate/p1/memory.h"

/* Nobody is so unlike that his word weighs nothing, when there is no other. */
#define LEAST_WEIGHT 1e-6

struct weighted_sum {
    double sum, weight;
    int n;
};

static struct weighted_sum ask(const struct memory *m, const struct identity *who,
                               const struct features *on, bool no_kin, enum remembered_what what,
                               int k)
{
    struct similar best[MEMORY_NEAREST_MAX];
    struct weighted_sum o = { 0 };

    o.n = memory_nearest(m, who, on, no_kin, what, k, best);
    for (int i = 0; i < o.n; i++) {
        double weight = (double)best[i].similarity + LEAST_WEIGHT;
        o.sum += weight * (double)remembered_value(&m->items[best[i].item], what);
        o.weight += weight;
    }
    return o;
}

/* Over everything that may be looked at: never the one who asks. */
static double overall_mean(const struct memory *m, const struct identity *who)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        float value = m->items[i].alone;
        if (isnan(value) || m->items[i].who.name == who->name)
            continue;
        sum += (double)value;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

int nearest_alone(const struct memory *m, const struct identity *who, const struct features *on,
                  bool no_kin, int k, float *ln_residual)
{
    struct weighted_sum o = ask(m, who, on, no_kin, REMEMBERED_ALONE, k);

    *ln_residual = (float)(o.n > 0 ? o.sum / o.weight : overall_mean(m, who));
    return o.n;
}

static float deviation(const struct weighted_sum *o)
{
    return (float)(o->sum / (o->weight + NEAREST_HALF_BELIEVED));
}

float nearest_as_job(const struct memory *m, const struct identity *who, const struct features *on,
                     bool no_kin, int k)
{
    struct weighted_sum o = ask(m, who, on, no_kin, REMEMBERED_AS_JOB, k);

    return deviation(&o);
}

float nearest_as_neighbour(const struct memory *m, const struct identity *who,
                           const struct features *on, bool no_kin, int k, bool include_self)
{
    const struct remembered *self = include_self ? memory_find(m, who, on) : NULL;

    if (self && !isnan(self->as_neighbour))
        return self->as_neighbour;
    struct weighted_sum o = ask(m, who, on, no_kin, REMEMBERED_AS_NEIGHBOUR, k);
    return deviation(&o);
}

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

static struct weighted_sum ask(const struct memory *m, const struct memory_query *q, int k)
{
    struct similar best[MEMORY_NEAREST_MAX];
    struct weighted_sum o = { .n = memory_nearest(m, q, k, best) };

    for (int i = 0; i < o.n; i++) {
        double weight = (double)best[i].similarity + LEAST_WEIGHT;
        o.sum += weight * (double)m->items[best[i].item].value[q->what];
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
        float value = m->items[i].value[REMEMBERED_ALONE];
        if (isnan(value) || m->items[i].who.name == who->name)
            continue;
        sum += (double)value;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

float nearest_alone(const struct memory *m, const struct identity *who, const struct features *on,
                    bool no_kin, int k)
{
    struct weighted_sum o = ask(m, &(struct memory_query){ who, on, no_kin, REMEMBERED_ALONE }, k);

    return (float)(o.n > 0 ? o.sum / o.weight : overall_mean(m, who));
}

static float deviation(const struct memory *m, const struct identity *who,
                       const struct features *on, enum remembered_what what, int k)
{
    struct weighted_sum o = ask(m, &(struct memory_query){ who, on, false, what }, k);

    return (float)(o.sum / (o.weight + NEAREST_HALF_BELIEVED));
}

float nearest_as_job(const struct memory *m, const struct identity *who, const struct features *on,
                     int k)
{
    return deviation(m, who, on, REMEMBERED_AS_JOB, k);
}

float nearest_as_neighbour(const struct memory *m, const struct identity *who,
                           const struct features *on, int k)
{
    const struct remembered *self = memory_find(m, who, on);

    if (self && !isnan(self->value[REMEMBERED_AS_NEIGHBOUR]))
        return self->value[REMEMBERED_AS_NEIGHBOUR];
    return deviation(m, who, on, REMEMBERED_AS_NEIGHBOUR, k);
}

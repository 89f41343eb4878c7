#include "sim/world/serving.h"

#include <math.h>

#include "catalog/catalog.h"
#include "estimate/prior/roofline.h"
#include "estimate/serving.h"
#include "sim/world/truth.h"

static double batch_of(const struct truth *t, int workload)
{
    const double batch = t->catalog->workloads[workload].batch;

    return isnan(batch) ? 1 : batch;
}

/* How much of a step at the workload's own batch is there whatever the batch, as odds. */
static double fixed_odds(const struct truth *t, int workload, int type)
{
    struct workload one = t->catalog->workloads[workload], two;
    struct roofline at_one, at_two;

    two = one;
    one.batch = 1;
    two.batch = 2;
    roofline(&one, &t->catalog->types[type], &at_one);
    roofline(&two, &t->catalog->types[type], &at_two);
    const double each = at_two.step_s - at_one.step_s;
    const double share =
        1 - each * batch_of(t, workload) / (at_one.step_s + each * (batch_of(t, workload) - 1));

    const double sure = fmin(fmax(share, 0.05), 0.95);    // of unknown descriptors, too
    return sure / (1 - sure);
}

struct batch_time truth_serving(const struct truth *t, int workload, int type)
{
    const double step_s = 1 / truth_speed(t, workload, type);
    const double odds = fixed_odds(t, workload, type) *
                        exp(SERVING_TILT_SD * truth_hidden(t, "serving", workload, type, -1));

    const double prefill_s =
        serving_prefill_s(&t->catalog->workloads[workload], &t->catalog->types[type]);

    return (struct batch_time){
        .t0_s = step_s * odds / (1 + odds),
        .a_s = step_s / (1 + odds) / batch_of(t, workload),
        .c_s = prefill_s * exp(SERVING_PREFILL_SD * truth_hidden(t, "prefill", workload, type, -1)),
        .tail = 1
    };
}

void serving_beside(const struct truth *t, int workload, int type, int neighbour, double busy,
                    int is_training, struct batch_time *s)
{
    const double slower = 1 / truth_slowdown(t, workload, type, neighbour);
    const double work_s = s->a_s * batch_of(t, workload), step_s = s->t0_s + work_s;
    const double a_factor = fmin((step_s * slower - s->t0_s) / work_s, slower * slower);
    const double t0_factor = (step_s * slower - work_s * a_factor) / s->t0_s;

    s->t0_s *= 1 + (t0_factor - 1) * busy;
    s->a_s *= 1 + (a_factor - 1) * busy;
    s->c_s *= 1 + (a_factor - 1) * busy;
    if (is_training)
        s->tail *= fmax(SERVING_TAIL * exp(SERVING_TAIL_SD *
                                           truth_hidden(t, "tail", workload, type, neighbour)),
                        1);
}

#include "optimize/model/place.h"

#include <math.h>

#include "catalog/cluster/snapshot.h"
#include "estimate/estimate.h"
#include "estimate/serving.h"
#include "serve/capacity.h"

/* Step times: seconds without a request, for each of a batch, and for each token of a prompt. */
struct steps {
    double t0_s, a_s, c_s;
};

static struct steps steps_of(const struct serving_estimate *s, double z)
{
    struct steps t = { .c_s = isnan(s->ln_prefill) ? 0 : exp(s->ln_prefill + z * s->prefill_sd) };

    serving_cautious(s, z, &t.t0_s, &t.a_s);
    return t;
}

/* Of whole requests: those of a language model that run together take a step for each token of
 * their answers, and the time of their prompts.
 */
static struct steps whole(const struct capacity *c, struct steps t)
{
    if (c->spec.is_llm) {
        t.a_s = c->output * t.a_s + c->prompt * t.c_s;
        t.t0_s *= c->output;
    }
    return t;
}

/* As people do who go by utilisation: a free server takes what is there, so that it is busy for
 * this part of the time with requests one by one; of a language model it is how many run.
 */
static double by_busy_share(const struct service_view *v, struct steps t)
{
    const struct serving *s = &v->capacity->spec;
    const struct steps w = whole(v->capacity, t);
    int n = s->is_llm ? s->max_running : 1;

    return t.t0_s + t.a_s <= s->latency_s ? v->busy_most * n / (w.t0_s + w.a_s * n) : 0;
}

double place_capacity(const struct estimator *e, const struct service_view *v, int workload,
                      int type, int neighbour)
{
    const struct capacity *c = v->capacity;
    struct serving_estimate s = estimate_serving(e, workload, type, neighbour);
    struct steps t = steps_of(&s, v->z);
    double mu = v->busy_most > 0 ? by_busy_share(v, t)
                : c->spec.is_llm ? capacity_mu_llm(c, t.t0_s, t.a_s, t.c_s)
                                 : capacity_mu(c, t.t0_s, t.a_s);

    if (neighbour < 0 || !(mu > 0))
        return mu;
    return serving_is_safe(e, workload, type, neighbour, c->spec.latency_s, NAN, SERVING_Z) ? mu
                                                                                            : 0;
}

#define TRIAL_SHARE 1e-4

double place_trial(const struct estimator *e, const struct service_view *v, int workload, int type)
{
    struct serving_estimate s = estimate_serving(e, workload, type, -1);
    struct steps t = whole(v->capacity, steps_of(&s, 0));

    return TRIAL_SHARE / (t.t0_s + t.a_s);
}

/* Batches grow with the load, as long as they can. */
double place_busy(const struct estimator *e, const struct service_view *v, int workload, int type,
                  double rate)
{
    struct serving_estimate s = estimate_serving(e, workload, type, -1);
    struct steps t = whole(v->capacity, steps_of(&s, 0));
    double batch =
        fmin(fmax(rate * t.t0_s / fmax(1 - rate * t.a_s, 1e-3), 1), v->capacity->spec.max_batch);

    return fmin(rate * (t.a_s + t.t0_s / batch), 1);
}

#include "estimate/estimate.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"
#include "estimate/prior/power.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"
#include "estimate/serving.h"

/* ---- cells that were asked for ---- */

/* A place for each of the keys that share its hash: the last one that was asked for has it. */
enum { SLOTS = 1 << 16 };

struct cell_slot {
    uint64_t key;
    uint32_t age;    // the estimator's then; 0: empty
    struct cell_estimate is;
};

static uint64_t key_of(int workload, int type, int neighbour)
{
    return ((uint64_t)type << 48) | ((uint64_t)workload << 24) | (uint64_t)(neighbour + 1);
}

static struct cell_slot *slot_of(const struct estimator *e, uint64_t key)
{
    return &e->slots[(key * 0x9E3779B97F4A7C15u) >> 48];    // the golden ratio; SLOTS are 16 bits
}
static_assert(SLOTS == 1 << 16, "slot_of takes 16 bits");

void estimator_init(struct estimator *e, const struct catalog *c, double z)
{
    *e = (struct estimator){ .catalog = c, .z = z, .age = 1 };
    e->slots = heap_array(SLOTS, sizeof *e->slots);
    e->beliefs = heap_array(1, sizeof *e->beliefs);
    e->shared = heap_array(1, sizeof *e->shared);
    e->serving = serving_create();
    beliefs_init(e->beliefs, c);
}

void estimator_release(struct estimator *e)
{
    beliefs_release(e->beliefs);
    bends_release(&e->bends);
    shared_release(e->shared);
    free(e->shared);
    serving_destroy(e->serving);
    map_u64_release(&e->told_by_key);
    free(e->beliefs);
    free(e->told);
    free(e->slots);
    free(e->on);
}

void estimate_use(struct estimator *e, const struct model *m, enum estimator_kind kind)
{
    beliefs_use(e->beliefs, m, kind);
    e->n_workloads = 0;    // until a refresh there is nobody to ask about
    e->age++;
}

void estimate_tell(struct estimator *e, int workload, int type, int neighbour,
                   const struct told_cell *is)
{
    GROW(e->told, e->n_told, e->cap_told);
    e->told[e->n_told] = *is;
    map_u64_set(&e->told_by_key, key_of(workload, type, neighbour), e->n_told++);
    e->age++;
}

const struct told_cell *estimate_told(const struct estimator *e, int workload, int type,
                                      int neighbour)
{
    int i = e->n_told ? map_u64_get(&e->told_by_key, key_of(workload, type, neighbour)) : -1;

    return i >= 0 ? &e->told[i] : NULL;
}

/* ---- keeping up with the catalog ---- */

static void meet(struct estimator *e)
{
    const struct catalog *c = e->catalog;

    if (c->n_types != e->n_types || c->descriptions != e->descriptions)
        e->n_workloads = 0;
    e->n_types = c->n_types;
    e->descriptions = c->descriptions;
    if (c->n_workloads > e->n_on || e->n_workloads == 0) {
        e->n_on = 2 * c->n_workloads + 16;
        RESIZE(e->on, (size_t)e->n_on * (size_t)c->n_types);
    }
    for (; e->n_workloads < c->n_workloads; e->n_workloads++)
        for (int type = 0; type < c->n_types; type++)
            roofline(&c->workloads[e->n_workloads], &c->types[type],
                     &e->on[e->n_workloads * c->n_types + type]);
}

static void keep_up(struct estimator *e, bool is_other)
{
    meet(e);
    e->age += is_other;
    if (is_other)
        shared_learn(e, e->shared);
}

void estimate_meet(struct estimator *e)
{
    bends_meet(&e->bends, e->catalog);
    keep_up(e, beliefs_meet(e->beliefs, &e->bends));
}

void estimate_refresh(struct estimator *e)
{
    bends_meet(&e->bends, e->catalog);
    keep_up(e, beliefs_refresh(e->beliefs, &e->bends));
}

/* ---- one cell ---- */

/* Has it been seen to fit, or not to? Otherwise memory decides, and what it was built for. */
static double unfit_of(const struct estimator *e, int w, int type, int neighbour)
{
    const struct catalog *c = e->catalog;
    struct cell_key key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 };
    const struct cell *seen = catalog_cell(c, key);
    double bytes = e->on[w * e->n_types + type].mem_bytes;

    if (seen && (seen->n_speed || seen->n_unfit))
        return seen->n_speed ? 0 : 1;
    if (!workload_may_run(&c->workloads[w], &c->types[type]))
        return 1;
    if (neighbour >= 0)
        bytes += e->on[neighbour * e->n_types + type].mem_bytes;
    return prior_unfit(bytes, c->types[type].mem_bytes, neighbour < 0 ? 1 : 2);
}

static struct cell_belief speed_of(const struct estimator *e, int w, int type, int neighbour)
{
    const struct told_cell *told = estimate_told(e, w, type, neighbour);

    if (told)
        return (struct cell_belief){ told->ln_speed, told->sd };
    struct cell_belief is = beliefs_speed(e->beliefs, type, w, neighbour);
    if (neighbour >= 0 && !estimate_told(e, w, type, -1) &&
        !beliefs_has_read(e->beliefs, type, w, neighbour))
        is.mean = fmin(is.mean, (double)estimate_cell(e, w, type, -1).mean);
    return is;
}

static struct cell_belief watts_of(const struct estimator *e, int w, int type)
{
    const struct told_cell *told = estimate_told(e, w, type, -1);

    if (told && !isnan(told->ln_watts))
        return (struct cell_belief){ told->ln_watts, told->watts_sd };
    return beliefs_watts(e->beliefs, type, w);
}

static struct cell_estimate make_cell(const struct estimator *e, int w, int type, int neighbour)
{
    struct cell_belief is = speed_of(e, w, type, neighbour);
    struct cell_belief watts =
        neighbour < 0 ? watts_of(e, w, type) : (struct cell_belief){ NAN, NAN };
    double speed = exp(is.mean - is.sd * is.sd / 2);

    return (struct cell_estimate){
        .mean = (float)is.mean,
        .sd = (float)is.sd,
        .speed = (float)speed,
        .low = (float)fmin(exp(is.mean - e->z * is.sd), speed),
        .unfit = (float)unfit_of(e, w, type, neighbour),
        .watts = (float)exp(watts.mean),
        .watts_sd = (float)watts.sd,
    };
}

struct cell_estimate estimate_cell(const struct estimator *e, int workload, int type, int neighbour)
{
    uint64_t key = key_of(workload, type, neighbour);
    struct cell_slot *slot = slot_of(e, key);

    assert(workload < e->n_workloads && neighbour < e->n_workloads && type < e->n_types);
    if (slot->key != key || slot->age != e->age) {
        struct cell_estimate is = make_cell(e, workload, type, neighbour);
        *slot = (struct cell_slot){ key, e->age, is };
        return is;
    }
    return slot->is;
}

void estimate_warm(const struct estimator *e, int workload)
{
    for (int type = 0; type < e->n_types; type++) {
        estimate_cell(e, workload, type, -1);
        estimate_cell(e, workload, type, workload);
    }
}

void estimate_warm_pairs(const struct estimator *e)
{
    posterior_warm(e->beliefs->posterior[LEARN_SPEEDS]);
}

struct limit_bend estimate_bend(const struct estimator *e, int workload, int type)
{
    const struct told_cell *told = estimate_told(e, workload, type, -1);

    return told && told->bend.loss > 0 ? told->bend
                                       : bends_of(&e->bends, e->catalog, workload, type);
}

/* ---- questions ---- */

double estimate_speed(const struct estimator *e, int workload, int type, const int *others, int n,
                      double *low)
{
    struct cell_estimate alone = estimate_cell(e, workload, type, -1);
    struct cell_estimate one = n == 1 ? estimate_cell(e, workload, type, others[0]) : alone;
    double speed = (double)one.speed;
    double held = n > 1 ? speed : (double)one.low;

    for (int i = 0; i < n && n > 1; i++) {
        struct cell_estimate beside = estimate_cell(e, workload, type, others[i]);
        speed *= fmin((double)(beside.speed / alone.speed), 1);
        held *= fmin((double)(beside.low / alone.speed), 1);
    }
    if (low)
        *low = held;
    return speed;
}

double estimate_gang_speed(const struct estimator *e, int workload, int type, int n_gpus,
                           int is_spread, double *low)
{
    struct cell_key key = { .workload = workload,
                            .gpu_type = type,
                            .neighbour = -1,
                            .n_gpus = n_gpus,
                            .is_spread = is_spread };
    struct cell_estimate alone = estimate_cell(e, workload, type, -1);
    const struct cell *seen = n_gpus > 1 ? catalog_cell(e->catalog, key) : NULL;
    double speed = (double)alone.speed, held = (double)alone.low;

    if (seen && seen->n_speed) {
        speed = exp(seen->ln_speed);
        held = speed * exp(-e->z * sqrt(cell_variance(seen)));
    } else if (n_gpus > 1) {
        speed *= roofline_gang(n_gpus, is_spread);
        held *= roofline_gang(n_gpus, is_spread);
    }
    if (low)
        *low = held;
    return speed;
}

double estimate_unfit(const struct estimator *e, int type, const int *workloads, int n)
{
    double worst = 0, bytes = 0;

    for (int i = 0; i < n; i++) {
        bytes += e->on[workloads[i] * e->n_types + type].mem_bytes;
        worst = fmax(worst, unfit_of(e, workloads[i], type, -1));
        for (int k = 0; k < n; k++)
            if (k != i)
                worst = fmax(worst, unfit_of(e, workloads[i], type, workloads[k]));
    }
    if (n > 2)    // no cell knows of three: memory decides
        worst = fmax(worst, prior_unfit(bytes, e->catalog->types[type].mem_bytes, n));
    return worst;
}

double estimate_mem_share(const struct estimator *e, int workload, int type)
{
    return e->on[workload * e->n_types + type].mem_bytes / e->catalog->types[type].mem_bytes;
}

double estimate_mem_share_max(double unfit_max)
{
    return prior_share_max(unfit_max);
}

/* What each of them draws alone, and how fast it runs here relative to that. */
static void shares_of(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n, double *alone_w, double *share)
{
    int others[THETA_MAX];

    assert(n <= THETA_MAX);
    for (int i = 0; i < n; i++) {
        int n_others = 0;
        for (int k = 0; k < n; k++)
            if (k != i)
                others[n_others++] = workloads[k];
        double alone = (double)estimate_cell(e, workloads[i], type, -1).speed;
        double speed = estimate_speed(e, workloads[i], type, others, n_others, NULL);
        if (rates && rates[i] > 0)
            speed = fmin(speed, rates[i]);
        alone_w[i] = (double)estimate_cell(e, workloads[i], type, -1).watts;
        share[i] = fmin(speed / alone, 1);
    }
}

double estimate_shared(const struct estimator *e, int type, const int *workloads, int n)
{
    return n == 2 ? shared_factor(e, type, workloads[0], workloads[1]) : 1;
}

double estimate_watts(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n)
{
    const struct gpu_type *g = &e->catalog->types[type];
    double alone_w[THETA_MAX], share[THETA_MAX];

    if (n == 0)
        return fmax(g->sleep_w, 0);    // of NaN and 0, 0
    shares_of(e, type, workloads, rates, n, alone_w, share);
    return power_shared_w(g, alone_w, share, n, estimate_shared(e, type, workloads, n));
}

struct limited estimate_limited(const struct estimator *e, int type, const int *workloads,
                                const double *rates, int n, int limit_w)
{
    const struct gpu_type *g = &e->catalog->types[type];
    double alone_w[THETA_MAX], share[THETA_MAX];
    struct limit_bend bend[THETA_MAX];

    if (n == 0)
        return (struct limited){ .watts = fmax(g->sleep_w, 0), .speed = 1, .low = 1 };
    shares_of(e, type, workloads, rates, n, alone_w, share);
    double w0 = power_shared_w(g, alone_w, share, n, estimate_shared(e, type, workloads, n));
    for (int i = 0; i < n; i++) {
        bend[i] = estimate_bend(e, workloads[i], type);
        share[i] = power_dynamic_w(g, alone_w[i], share[i]);
    }
    struct limit_bend mean = limit_bend_mean(bend, share, n);
    struct limited out = limits_bent(g, limit_w, w0, mean);
    double from = fabs(log(limits_apply(g, limit_w, w0).speed) - mean.at);
    out.low = out.speed * exp(-e->z * mean.loss_sd * from);
    return out;
}

/* What is known so well that it may be limited: as after a measurement or two. */
#define WATTS_SURE_SD 0.12
#define SPEED_SURE_SD 0.1

int estimate_may_limit(const struct estimator *e, int type, const int *workloads,
                       const double *rates, int n)
{
    for (int i = 0; i < n; i++) {
        bool serves = rates && rates[i] > 0;
        struct cell_estimate alone = estimate_cell(e, workloads[i], type, -1);
        if (!((double)alone.watts_sd <= WATTS_SURE_SD) ||
            (serves && (double)alone.sd > SPEED_SURE_SD))
            return 0;
    }
    return 1;
}

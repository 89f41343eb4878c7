#include "estimate/network/worlds.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* A smooth roofline is what nobody reaches: exp of this is typical of measured over it. */
#define ALONE_TYPICAL (-0.4)

/* Where the time of a step goes. */
enum { COMPUTE, MEMORY, LAUNCH, HOST, PARTS };

struct figures {
    double peak, half_peak, bandwidth, launch_s;    // FLOP/s, FLOP/s, bytes/s, seconds
};

/* Of devices that are sold, from their data sheets: TFLOP/s in fp32 and fp16, GB/s; microseconds a
 * launch as measured by many.
 */
static const double devices[][4] = {
    { 4.37, 4.37, 240, 10 }, { 5.5, 5.5, 192, 10 },   { 9.3, 18.7, 732, 10 },
    { 14, 112, 900, 6 },     { 8.1, 65, 320, 6 },     { 13.4, 53.8, 616, 6 },
    { 16.3, 130.5, 672, 6 }, { 37.4, 149.7, 696, 4 }, { 35.6, 71.2, 936, 4 },
    { 19.5, 312, 1555, 4 },  { 19.5, 312, 1935, 4 },  { 23.1, 184.6, 1229, 8 },
    { 22.6, 181, 1638, 6 },  { 66.9, 989, 3350, 4 },  { 30.3, 121, 300, 4 },
    { 11.3, 11.3, 484, 10 }, { 12.1, 12.1, 547, 10 }, { 13.8, 110, 653, 6 },
};
enum { N_DEVICES = sizeof devices / sizeof *devices };

/* A model; flop and bytes are of one sample. */
struct recipe {
    double flop, bytes, params, kernels;
    double host_sample_s, host_step_s;
    double kind[4];
    bool is_inference;
    int n_batches;
    double first_batch;
};

struct making {
    struct rng *r;
    int n_types, n_families;
    struct figures types[WORLD_TYPES];
    struct recipe models[WORLD_FAMILIES];
    double batch[WORLD_WORKLOADS], flop[WORLD_WORKLOADS];
    bool is_half[WORLD_WORKLOADS];
    double parts[WORLD_WORKLOADS][WORLD_TYPES][PARTS];    // seconds, as a roofline has them
    double true_parts[WORLD_WORKLOADS][WORLD_TYPES][PARTS];
    double true_step_s[WORLD_WORKLOADS][WORLD_TYPES];
};

static double power_of_ten(struct rng *r, double low, double high)
{
    return pow(10, rng_between(r, low, high));
}

static bool happens(struct rng *r, double chance)
{
    return rng_uniform(r) < chance;
}

static double normal(struct rng *r, double sd)
{
    return sd * rng_normal(r);
}

/* How large an effect is at this site: around 'typical'. */
static double spread(struct rng *r, double typical)
{
    return typical * rng_between(r, 0.3, 1.5);
}

static double clip(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

static int one_of(struct rng *r, int n, const double *chances)
{
    double at = rng_uniform(r);

    for (int i = 0; i < n - 1; i++) {
        if (at < chances[i])
            return i;
        at -= chances[i];
    }
    return n - 1;
}

/* ---- what there is ---- */

static void types_draw(struct making *d)
{
    bool is_taken[N_DEVICES] = { false };

    for (int t = 0; t < d->n_types; t++) {
        uint64_t i;
        double jitter[4];

        do {
            i = rng_below(d->r, N_DEVICES);
        } while (is_taken[i]);
        is_taken[i] = true;
        for (int k = 0; k < 4; k++)
            jitter[k] = devices[i][k] * exp(normal(d->r, 0.1));
        d->types[t] = (struct figures){ 1e12 * jitter[0], 1e12 * jitter[1], 1e9 * jitter[2],
                                        1e-6 * jitter[3] };
    }
}

/* From a perceptron to a large language model. */
static struct recipe recipe_draw(struct rng *r, double inference_chance)
{
    static const double kinds[4] = { 0.45, 0.35, 0.1, 0.1 };    // conv, gemm, rnn, sparse
    struct recipe m = { .flop = power_of_ten(r, 6, 12) };

    m.bytes = fmax(m.flop / exp(3.7 + normal(r, 1.2)), 1e3);    // some 40 FLOP a byte
    m.params = exp(rng_between(r, 13.5, 20));
    m.kernels = power_of_ten(r, 1.8, 3.9);
    m.host_sample_s = happens(r, 0.3) ? 0 : 1e-3 * power_of_ten(r, -3, 1);
    m.host_step_s = happens(r, 0.5) ? 1e-5 * m.kernels : 1e-3 * power_of_ten(r, -0.3, 1.7);
    m.kind[one_of(r, 4, kinds)] = 1;
    if (happens(r, 0.3))
        m.kind[rng_below(r, 4)] = 0.5;
    m.is_inference = happens(r, inference_chance);
    m.n_batches = 1 + (int)rng_below(r, WORLD_BATCHES);
    /* A step is to keep a GPU busy for a while. */
    m.first_batch = clip(power_of_ten(r, 9.5, 12.5) / m.flop, 1, 4096);
    return m;
}

static void workloads_draw(struct making *d, struct synthetic_world *w)
{
    double inference = happens(d->r, 0.3) ? 0.4 : 0, half = happens(d->r, 0.5) ? 0.25 : 0;
    struct site *s = &w->site;

    for (int f = 0; f < d->n_families; f++) {
        const struct recipe m = d->models[f] = recipe_draw(d->r, inference);

        for (int b = 0; b < m.n_batches; b++) {
            const int i = s->n_workloads++, doublings = b - m.n_batches / 2;

            s->family[i] = f;
            d->batch[i] = fmax(1, m.first_batch * exp2(doublings));
            d->flop[i] = m.flop * d->batch[i];
            d->is_half[i] = happens(d->r, half);
        }
    }
    s->n_families = d->n_families;
}

/* ---- what estimators see of it ---- */

static double step_of(const double *t, double sharpness)
{
    return pow(pow(t[COMPUTE] + t[MEMORY], sharpness) + pow(t[LAUNCH], sharpness) +
                   pow(t[HOST], sharpness),
               1 / sharpness);
}

/* As estimate/site has it of real workloads. */
static void describe(struct making *d, int i, int t, struct site *s)
{
    const struct recipe *m = &d->models[s->family[i]];
    const struct figures *g = &d->types[t];
    struct site_on *on = &s->on[i * s->n_types + t];
    double *part = d->parts[i][t], *x = (double[SITE_JOB]){ 0 };
    double bytes = m->bytes * d->batch[i] * (d->is_half[i] ? 0.5 : 1) +
                   (m->is_inference ? 4 : 24) * m->params;    // weights; gradients, moments

    part[COMPUTE] = 1.5 * d->flop[i] / (d->is_half[i] ? sqrt(g->peak * g->half_peak) : g->peak);
    part[MEMORY] = 0.5 * bytes / g->bandwidth;
    part[LAUNCH] = m->kernels * g->launch_s;
    part[HOST] = m->host_sample_s * d->batch[i] + m->host_step_s;
    for (int k = 0; k < PARTS; k++)
        part[k] += 1e-7;
    double step_s = step_of(part, 2);
    for (int k = 0; k < PARTS; k++)
        x[k] = clip(log(part[k] / step_s), -6, 0.3) / 2 + 1;
    x[4] = log(step_s) / 3 + 1;
    x[5] = (log(d->flop[i] / bytes) - 4) / 3;
    x[6] = log(d->batch[i]) / 3 - 1;
    x[7] = log(m->params) / 4 - 4;
    memcpy(x + 8, m->kind, sizeof m->kind);
    x[12] = d->is_half[i];
    x[13] = m->is_inference;
    for (int k = 0; k < SITE_JOB; k++)
        on->x[k] = (float)x[k];
    on->ln_reference = (float)-log(step_s);
    on->busy = (float)clip((part[COMPUTE] + part[MEMORY] + 0.5 * part[LAUNCH]) / step_s, 0, 1);
    on->traffic = (float)clip(2 * part[MEMORY] / step_s, 0, 1);
}

static void site_fill(struct arena *a, struct making *d, struct synthetic_world *w)
{
    struct site *s = &w->site;

    s->n_types = d->n_types;
    s->gpu = arena_array(a, (size_t)s->n_types, sizeof *s->gpu);
    s->sharing = ARENA_ARRAY(a, enum sharing, (size_t)s->n_types);    // nobody told
    s->family = ARENA_ARRAY(a, int, WORLD_WORKLOADS);
    workloads_draw(d, w);
    s->on = ARENA_ARRAY(a, struct site_on, (size_t)(s->n_workloads * s->n_types));
    for (int t = 0; t < s->n_types; t++) {
        const struct figures *g = &d->types[t];

        s->gpu[t][0] = (float)(log(g->peak / 1e12) - 2.5);
        s->gpu[t][1] = (float)(log(g->half_peak / g->peak) - 1);
        s->gpu[t][2] = (float)(log(g->bandwidth / 1e9) - 6.3);
        s->gpu[t][3] = (float)(log(g->launch_s / 1e-6) - 1.8);
        for (int i = 0; i < s->n_workloads; i++)
            describe(d, i, t, s);
    }
}

/* ---- the truth of jobs alone ---- */

/* Each part of a step takes longer or shorter than the figures say: at this site, on this type, for
 * this family.
 */
static void parts_distort(struct making *d, const struct site *s)
{
    double site[PARTS], type[WORLD_TYPES][PARTS], family[WORLD_FAMILIES][PARTS], kind[4];
    double site_sd = spread(d->r, 0.4), type_sd = spread(d->r, 0.2), family_sd = spread(d->r, 0.4);
    double kind_sd = spread(d->r, 0.3), half = normal(d->r, 0.3);
    /* Small kernels do not fill a device; workers of the loader hide the host. */
    double small_flop = power_of_ten(d->r, 8.5, 10.5), hidden = 0, small = 0;

    if (happens(d->r, 0.5))
        small = rng_between(d->r, 0, 0.7);
    if (happens(d->r, 0.3))
        hidden = rng_between(d->r, 0, 3);
    for (int k = 0; k < PARTS; k++) {
        site[k] = normal(d->r, site_sd);
        kind[k] = normal(d->r, kind_sd);
        for (int t = 0; t < s->n_types; t++)
            type[t][k] = normal(d->r, type_sd);
        for (int f = 0; f < s->n_families; f++)
            family[f][k] = normal(d->r, family_sd);
    }
    for (int i = 0; i < s->n_workloads; i++) {
        const int f = s->family[i];
        double compute = d->is_half[i] ? half : 0;

        for (int k = 0; k < 4; k++)
            compute += kind[k] * d->models[f].kind[k];
        compute += small * log1p(small_flop / d->flop[i]);
        for (int t = 0; t < s->n_types; t++)
            for (int k = 0; k < PARTS; k++) {
                double ln = site[k] + type[t][k] + family[f][k];

                ln += k == COMPUTE ? compute : k == HOST ? -hidden : 0;
                d->true_parts[i][t][k] = d->parts[i][t][k] * exp(ln);
            }
    }
}

/* Effects of families and of workloads, each common to all types and of one type. */
struct world_effects {
    double family, workload, family_on_type, workload_on_type;    // standard deviations
};

/* One after the other: an initialiser has no order. */
static struct world_effects effects_draw(struct rng *r, double family, double workload,
                                         double family_on_type, double workload_on_type)
{
    struct world_effects sd;

    sd.family = spread(r, family);
    sd.workload = spread(r, workload);
    sd.family_on_type = spread(r, family_on_type);
    sd.workload_on_type = spread(r, workload_on_type);
    return sd;
}

static void effects_add(struct rng *r, const struct site *s, const struct world_effects *sd,
                        float out[][WORLD_TYPES])
{
    double family[WORLD_FAMILIES][WORLD_TYPES];

    for (int f = 0; f < s->n_families; f++) {
        double all = normal(r, sd->family);

        for (int t = 0; t < s->n_types; t++)
            family[f][t] = all + normal(r, sd->family_on_type);
    }
    for (int i = 0; i < s->n_workloads; i++) {
        double all = normal(r, sd->workload);

        for (int t = 0; t < s->n_types; t++)
            out[i][t] += (float)(family[s->family[i]][t] + all + normal(r, sd->workload_on_type));
    }
}

static void alone_draw(struct making *d, struct synthetic_world *w)
{
    const struct site *s = &w->site;
    double sharpness = rng_between(d->r, 1, 5), site = normal(d->r, spread(d->r, 0.2));
    double type_sd = spread(d->r, 0.2);
    struct world_effects sd = effects_draw(d->r, 0.3, 0.08, 0.2, 0.06);

    for (int t = 0; t < s->n_types; t++) {
        double type = normal(d->r, type_sd), odd[WORLD_FAMILIES] = { 0 };

        for (int f = 0; f < s->n_families; f++)    // a kernel that is missing for this type
            odd[f] = happens(d->r, 0.04) ? normal(d->r, 0.8) : 0;
        for (int i = 0; i < s->n_workloads; i++) {
            double step_s = d->true_step_s[i][t] = step_of(d->true_parts[i][t], sharpness);

            w->alone[i][t] =
                (float)(ALONE_TYPICAL - log(step_s) - (double)site_on(s, i, t)->ln_reference +
                        site + type + odd[s->family[i]]);
        }
    }
    effects_add(d->r, s, &sd, w->alone);
}

/* ---- the truth of jobs that share ---- */

/* What is true of a whole site. */
struct activity_habits {
    double launch;      // part of launching in which the device is busy
    double bend;        // of what is called busy
    double traffic;     // of memory, over what the roofline has of it
    double shown;       // of this; counters do not see all
    double filled_s;    // kernels of this length half fill a device; 0: all fill it
    double room;        // how much of what they leave others can use
};

static struct activity activity_of(const struct making *d, const struct activity_habits *h, int i,
                                   int t, double kernels)
{
    const double *part = d->true_parts[i][t], step_s = d->true_step_s[i][t];
    double kernel_s = (part[COMPUTE] + part[MEMORY]) / kernels;
    double busy = (part[COMPUTE] + part[MEMORY] + h->launch * part[LAUNCH]) / step_s;
    double filled = pow(kernel_s / (kernel_s + h->filled_s), h->room);

    return (struct activity){
        .busy = (float)pow(clip(clip(busy, 0.02, 1) * filled, 0.02, 1), h->bend),
        .traffic = (float)clip(h->traffic * part[MEMORY] / step_s, 0.01, 1),
        .ln_kernel_s = (float)log(kernel_s),
    };
}

static void activity_draw(struct making *d, struct synthetic_world *w)
{
    struct rng *r = d->r;
    const bool is_profiled = happens(r, 0.5);
    struct activity_habits h;

    h.launch = rng_uniform(r);
    h.bend = rng_between(r, 0.3, 1.5);
    h.traffic = rng_between(r, 1, 3);
    h.shown = rng_between(r, 0.5, 1);
    h.filled_s = power_of_ten(r, -5.5, -3.5);
    h.room = rng_between(r, 0.3, 1);
    if (happens(r, 0.5))
        h.filled_s = 0;
    for (int i = 0; i < w->site.n_workloads; i++) {
        double busy_off = normal(r, 0.06), traffic_off = normal(r, 0.05);

        for (int t = 0; t < w->site.n_types; t++) {
            struct activity is = activity_of(d, &h, i, t, d->models[w->site.family[i]].kernels);
            struct site_on *on = &w->site.on[i * w->site.n_types + t];

            w->activity[i][t] = is;
            if (!is_profiled)
                continue;
            on->busy = (float)clip((double)is.busy + busy_off, 0, 1);
            on->traffic = (float)clip(h.shown * (double)is.traffic + traffic_off, 0, 1);
        }
    }
}

static void contention_draw(struct rng *r, struct contention *c)
{
    static const double chances[CONTENTIONS] = { 0.35, 0.3, 0.2, 0.15 };
    static const struct {
        double low, high;
    } range[CONTENTIONS][CONTENTION_NUMBERS] = {
        [CONTEND_OVERLAP] = { [COST] = { 0, 0.15 },
                              [STRENGTH] = { 0, 0.9 },
                              [ROOM] = { 0.5, 1.3 },
                              [OTHER_BEND] = { 0, 1.5 },
                              [TRAFFIC] = { 0, 0.8 },
                              [TRAFFIC_ROOM] = { 0.2, 1.2 },
                              [TRAFFIC_BEND] = { 0, 1 } },
        [CONTEND_SLICES] = { [STRENGTH] = { 0, 1.3 },
                             [OTHER_BEND] = { 0.1, 2 },
                             [OWN_BEND] = { -0.3, 1.5 },
                             [TRAFFIC] = { 0, 0.6 },
                             [TURN] = { -0.4, 0.4 } },
        [CONTEND_SERVER] = { [COST] = { 0, 0.1 },
                             [STRENGTH] = { 0.3, 1.2 },
                             [TRAFFIC] = { 0, 0.6 } },
        [CONTEND_FLAT] = { [COST] = { 0, 0.9 } },
    };

    c->rule = (enum contention_rule)one_of(r, CONTENTIONS, chances);
    for (int k = 0; k < CONTENTION_NUMBERS; k++)
        c->p[k] = rng_between(r, range[c->rule][k].low, range[c->rule][k].high);
}

static double contention_ln(const struct contention *c, const struct activity *job,
                            const struct activity *other)
{
    const double *p = c->p, busy = (double)job->busy, other_busy = (double)other->busy;
    double traffic = (double)job->traffic, other_traffic = (double)other->traffic;
    double longer = (double)(other->ln_kernel_s - job->ln_kernel_s), lost, turns;

    switch (c->rule) {
    case CONTEND_OVERLAP:    // what is above the device is lost
        lost = p[COST] +
               p[STRENGTH] * fmax(busy + other_busy - p[ROOM], 0) * pow(other_busy, p[OTHER_BEND]) +
               p[TRAFFIC] * fmax(traffic + other_traffic - p[TRAFFIC_ROOM], 0) *
                   pow(traffic, p[TRAFFIC_BEND]);
        return log(clip(1 - lost, 0.1, 1));
    case CONTEND_SLICES:    // a turn of the other's for each turn
        turns = p[STRENGTH] * exp(clip(fmax(p[TURN], 0) * longer, -1.5, 1.5)) *
                pow(other_busy + 0.05, p[OTHER_BEND]) * pow(busy + 0.05, p[OWN_BEND]);
        return -log(1 + turns + p[TRAFFIC] * traffic * other_traffic);
    case CONTEND_SERVER:    // kernels side by side, as MPS does it
        return -fmax(0, p[STRENGTH] * log(fmax(busy + other_busy, 0.3))) -
               p[TRAFFIC] * traffic * other_traffic - p[COST];
    default:    // whoever it is
        return -p[COST];
    }
}

static void beside_draw(struct making *d, struct synthetic_world *w)
{
    struct rng *r = d->r;
    const struct site *s = &w->site;
    const bool types_differ = happens(r, 0.35);
    double strength = exp(normal(r, 0.3)), type_sd = spread(r, 0.25), shift_sd = spread(r, 0.08);
    double pair_sd = spread(r, 0.06);
    struct world_effects sd = effects_draw(r, 0.12, 0.05, 0.08, 0);
    struct contention common;

    contention_draw(r, &common);
    for (int t = 0; t < s->n_types; t++) {
        w->contention[t] = common;
        if (types_differ && happens(r, 0.6))
            contention_draw(r, &w->contention[t]);
        w->contention[t].scale = strength * exp(normal(r, type_sd));
        w->contention[t].shift = fabs(normal(r, shift_sd));
        for (int f = 0; f < s->n_families; f++)
            for (int g = 0; g < s->n_families; g++) {
                double odd = happens(r, 0.04) ? normal(r, 0.25) : 0;

                w->families[t][f][g] = (float)(odd + normal(r, pair_sd));
            }
    }
    effects_add(r, s, &sd, w->as_job);
    effects_add(r, s, &sd, w->as_neighbour);
    w->cell_sd = (float)rng_between(r, 0.01, 0.07);
    w->top = (float)rng_between(r, 0, 0.05);
    w->only_alike = happens(r, 0.2);
    w->seed = rng_u64(r);
}

static double beside_ln(const struct synthetic_world *w, int t, int i, int j)
{
    const struct contention *s = &w->contention[t];
    const int *family = w->site.family;
    struct rng chance;
    double ln = contention_ln(s, &w->activity[i][t], &w->activity[j][t]);

    rng_init(&chance, w->seed + (uint64_t)((t * WORLD_WORKLOADS + i) * WORLD_WORKLOADS + j),
             "cell");
    ln = ln * s->scale - s->shift + (double)(w->as_job[i][t] + w->as_neighbour[j][t]);
    ln += (double)w->families[t][family[i]][family[j]] + normal(&chance, (double)w->cell_sd);
    return clip(ln, log(0.1), (double)w->top);
}

void synthetic_make(struct arena *a, struct rng *r, struct synthetic_world *out)
{
    struct making *d = ARENA_NEW(a, struct making);

    *out = (struct synthetic_world){ 0 };
    d->r = r;
    d->n_types = 1 + (int)rng_below(r, WORLD_TYPES);
    d->n_families = 3 + (int)rng_below(r, WORLD_FAMILIES - 2);
    types_draw(d);
    site_fill(a, d, out);
    parts_distort(d, &out->site);
    alone_draw(d, out);
    activity_draw(d, out);
    beside_draw(d, out);
}

float synthetic_value(const struct synthetic_world *w, enum reading_of of, int type, int job,
                      int neighbour)
{
    double alone = (double)w->alone[job][type];

    if (of == READ_ALONE)
        return (float)alone;
    return (float)(beside_ln(w, type, job, neighbour) + (of == READ_PACKED ? alone : 0));
}

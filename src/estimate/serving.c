#include "estimate/serving.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/map.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/prior/roofline.h"
#include "estimate/serving_line.h"

/* ---- what is kept ---- */

enum { SLOTS = 1 << 12 };

struct serving_slot {
    uint64_t key;
    uint32_t age;    // the estimator's then; 0: empty
    struct serving_estimate is;
};

/* Of p99 over what t0 and a say: sum of ln factors by their precision, and that. */
struct tail {
    double sum, weight;
};

struct serving_cache {
    struct serving_slot slots[SLOTS];
    struct map_u64 tail_by_key;
    struct tail *tails;    // (n_tails)
    int n_tails, cap_tails;
};

struct serving_cache *serving_create(void)
{
    return heap_array(1, sizeof(struct serving_cache));
}

void serving_destroy(struct serving_cache *s)
{
    if (!s)
        return;
    map_u64_release(&s->tail_by_key);
    free(s->tails);
    free(s);
}

static uint64_t key_of(int workload, int type, int neighbour)
{
    return ((uint64_t)type << 48) | ((uint64_t)workload << 24) | (uint64_t)(neighbour + 1);
}

/* ---- rungs ---- */

static int n_rungs(const struct workload *w)
{
    int n = 1;

    while (n < SERVING_RUNGS && (double)(1 << n) <= w->batch)    // no batch: false
        n++;
    return n;
}

int serving_meet(struct catalog *c, int workload, struct err *e)
{
    struct arena a;
    int rc = 0, n = n_rungs(&c->workloads[workload]);

    arena_init(&a);
    for (int i = 0; i < n && rc == 0 && !isnan(c->workloads[workload].batch); i++) {
        struct workload w = c->workloads[workload];
        double batch;
        int index;
        struct slice model = workload_name_split(w.name, &batch);
        w.name = workload_name(&a, arena_printf(&a, "%.*s", (int)model.len, model.at), 1 << i);
        w.batch = 1 << i;
        workload_forget_profile(&w);
        if (c->workloads[workload].batch != w.batch && catalog_find_workload(c, w.name) < 0)
            rc = catalog_add_workload(c, &w, &index, e);
    }
    arena_release(&a);
    return rc;
}

/* The workload of a rung; -1: nobody has added it. */
static int rung_of(const struct estimator *e, int workload, int rung)
{
    const struct workload *w = &e->catalog->workloads[workload];
    char name[512];
    double batch;
    struct slice model = workload_name_split(w->name, &batch);

    if (w->batch == 1 << rung || isnan(w->batch))
        return workload;
    if (model.len > sizeof name - 32)
        return -1;
    snprintf(name, sizeof name, "%.*s (batch size %d)", (int)model.len, model.at, 1 << rung);
    int found = catalog_find_workload(e->catalog, name);
    return found < e->n_workloads ? found : -1;
}

/* Whom a rung of a server has beside it. */
static int beside_of(const struct estimator *e, int neighbour, int rung)
{
    const struct workload *w = neighbour < 0 ? NULL : &e->catalog->workloads[neighbour];

    if (!w || !w->is_inference)
        return neighbour;
    int top = n_rungs(w) - 1, by = rung_of(e, neighbour, rung < top ? rung : top);
    return by < 0 ? neighbour : by;
}

/* By how much the roofline alone misses what another batch does, in ln tau. */
#define UNMET_SD 0.3

/* ln of the seconds of a rung that is no workload, over those of the workload's own batch. */
static double ln_scale(const struct estimator *e, int workload, int type, int rung)
{
    struct workload w = e->catalog->workloads[workload];
    struct roofline own, there;

    roofline(&w, &e->catalog->types[type], &own);
    w.batch = 1 << rung;
    roofline(&w, &e->catalog->types[type], &there);
    return log(there.step_s / own.step_s);
}

static struct serving_point ask_rung(const struct estimator *e, int workload, int type,
                                     int neighbour, int rung)
{
    int at = rung_of(e, workload, rung), by = beside_of(e, neighbour, rung);
    struct cell_estimate is = estimate_cell(e, at < 0 ? workload : at, type, by);
    double batch = isnan(e->catalog->workloads[workload].batch) ? 1 : 1 << rung;

    if (at >= 0)
        return (struct serving_point){ batch, -(double)is.mean, (double)is.sd };
    return (struct serving_point){ batch, -(double)is.mean + ln_scale(e, workload, type, rung),
                                   hypot((double)is.sd, UNMET_SD) };
}

/* Is it to be asked: an end, the middle, or measured itself? */
static bool is_asked(const struct estimator *e, int workload, int type, int neighbour, int rung,
                     int n, int *n_more)
{
    if (rung == 0 || rung == n - 1 || rung == n / 2)
        return true;
    int at = *n_more > 0 ? rung_of(e, workload, rung) : -1;
    bool is = at >= 0 && beliefs_has_read(e->beliefs, type, at, beside_of(e, neighbour, rung));
    *n_more -= is;
    return is;
}

/* ---- prompts ---- */

/* A token of a prompt is as many FLOP as one that is written, and many of them fill the device: the
 * time between tokens of dense models on an H100, in ML.ENERGY's chats, grows by newcomers as if
 * their prompts of some 200 tokens ran at half of the peak; by mixtures of experts, and by models
 * with few layers of attention, two to ten times as much.
 */
#define PREFILL_REACHED 0.5
#define PREFILL_SD 0.7

double serving_prefill_s(const struct workload *w, const struct gpu_type *g)
{
    enum precision p = w->precision == PRECISION_UNKNOWN ? PRECISION_FP16 : w->precision;
    double peak = gpu_type_peak(g, p);

    if (!w->task || strcmp(w->task, "text-generation") != 0 || !(peak > 0) ||
        !(w->flop_per_sample > 0))
        return NAN;
    return w->flop_per_sample / (PREFILL_REACHED * peak);
}

/* ---- tails ---- */

/* ln of what p99 grows by beyond the mean, and its standard deviation. Beside training (published,
 * A100 with MPS): p99 of a server of 4 ms grows 2.2 to 11.8 times where its mean grows 1.5 to 4.1.
 */
static struct cell_belief tail_before(const struct estimator *e, int neighbour)
{
    if (neighbour < 0)
        return (struct cell_belief){ 0, 0.1 };
    return e->catalog->workloads[neighbour].is_inference ? (struct cell_belief){ 0, 0.2 }
                                                         : (struct cell_belief){ log(2.9), 0.5 };
}

/* As sure as an hour of requests makes it. */
#define TAIL_SURE_SD 0.2

static void ask_tail(const struct estimator *e, uint64_t key, int neighbour,
                     struct serving_estimate *out)
{
    int i = map_u64_get(&e->serving->tail_by_key, key);
    struct tail seen = i >= 0 ? e->serving->tails[i] : (struct tail){ 0, 0 };
    struct cell_belief before = tail_before(e, neighbour);
    double own = 1 / (before.sd * before.sd);

    out->tail = exp((own * before.mean + seen.sum) / (own + seen.weight));
    out->is_tail_measured = seen.weight * TAIL_SURE_SD * TAIL_SURE_SD >= 1;
}

void serving_note_tail(struct estimator *e, int workload, int type, int neighbour, double factor,
                       double noise)
{
    struct serving_cache *s = e->serving;
    uint64_t key = key_of(workload, type, neighbour);
    int i = map_u64_get(&s->tail_by_key, key);

    assert(factor > 0 && noise > 0);
    if (i < 0) {
        GROW(s->tails, s->n_tails, s->cap_tails);
        i = s->n_tails++;
        s->tails[i] = (struct tail){ 0, 0 };
        map_u64_set(&s->tail_by_key, key, i);
    }
    s->tails[i].sum += log(factor) / (noise * noise);
    s->tails[i].weight += 1 / (noise * noise);
    e->age++;
}

/* ---- asking ---- */

static struct serving_estimate make(const struct estimator *e, int workload, int type,
                                    int neighbour)
{
    const struct catalog *c = e->catalog;
    struct serving_estimate out = { .n = 0 };
    int n = n_rungs(&c->workloads[workload]), n_more = SERVING_POINTS - 3;

    for (int i = 0; i < n; i++)
        if (is_asked(e, workload, type, neighbour, i, n, &n_more))
            out.at[out.n++] = ask_rung(e, workload, type, neighbour, i);
    serving_line_of(&out);
    out.ln_prefill = log(serving_prefill_s(&c->workloads[workload], &c->types[type]));
    out.prefill_sd = isnan(out.ln_prefill) ? (double)NAN : PREFILL_SD;
    ask_tail(e, key_of(workload, type, neighbour), neighbour, &out);
    out.unfit = (double)estimate_cell(e, workload, type, neighbour).unfit;
    return out;
}

struct serving_estimate estimate_serving(const struct estimator *e, int workload, int type,
                                         int neighbour)
{
    uint64_t key = key_of(workload, type, neighbour);
    struct serving_slot *slot = &e->serving->slots[(key * 0x9E3779B97F4A7C15u) >> 52];

    static_assert(SLOTS == 1 << 12, "12 bits of a product with the golden ratio");
    if (slot->key != key || slot->age != e->age)
        *slot = (struct serving_slot){ key, e->age, make(e, workload, type, neighbour) };
    return slot->is;
}

/* ---- what was seen ---- */

/* The standard deviation of ln tau that one batch has. */
#define BATCH_SD 0.3

/* What another batch does is known by the line: so much of the way is in doubt. */
#define WAY_SD 0.2

/* A neighbour that is at work for less than this part of the time tells little of itself. */
#define BUSY_LEAST 0.3

static double step_s(const struct serving_estimate *is, double batch)
{
    return exp(is->ln_t0) + exp(is->ln_a) * batch;
}

bool serving_measure(const struct estimator *e, int workload, int type, int neighbour,
                     const struct serving_seen *seen, struct measurement *out)
{
    double batch = seen->n_requests / seen->n_batches, tau_s = seen->busy_s / seen->n_batches;
    double busy = neighbour < 0 ? 1 : fmin(seen->beside_busy, 1);

    if (!(seen->n_batches >= SERVING_BATCHES_LEAST) || !(tau_s > 0) || !isfinite(tau_s) ||
        !(batch >= 1 && batch < 1e6) || !(busy >= BUSY_LEAST))
        return false;
    if (busy < 1) {
        struct serving_estimate alone = estimate_serving(e, workload, type, -1);
        double alone_s = step_s(&alone, batch);
        tau_s = fmax(alone_s + (tau_s - alone_s) / busy, tau_s / 2);
    }
    int last = n_rungs(&e->catalog->workloads[workload]) - 1, rung = (int)lround(log2(batch));
    rung = rung < last ? rung : last;
    int at = rung_of(e, workload, rung);
    if (at < 0)
        return false;
    struct serving_estimate is = estimate_serving(e, workload, type, neighbour);
    double way = log(step_s(&is, 1 << rung) / step_s(&is, batch));
    *out = (struct measurement){
        .key = { .workload = at,
                 .gpu_type = type,
                 .neighbour = beside_of(e, neighbour, rung),
                 .n_gpus = 1 },
        .fits = true,
        .throughput = 1 / (tau_s * exp(way)),
        .watts = NAN,
        .noise = hypot(hypot(READING_NOISE, BATCH_SD / sqrt(seen->n_batches)), WAY_SD * way) / busy,
    };
    return true;
}

/* ---- neighbours ---- */

#define STEPS 2.0                // the one that is running, and the request's own
#define TRAINING_P99_LEAST 12    // times p99 alone: see tail_before

double serving_two_steps_s(const struct serving_estimate *is)
{
    return STEPS * step_s(is, 1);
}

bool serving_is_safe(const struct estimator *e, int workload, int type, int neighbour,
                     double within_s, double p99_alone_s, double z)
{
    struct serving_estimate is = estimate_serving(e, workload, type, neighbour);
    bool trains = neighbour >= 0 && !e->catalog->workloads[neighbour].is_inference;
    double t0, a;

    if (trains && !is.is_tail_measured) {
        struct serving_estimate alone = estimate_serving(e, workload, type, -1);
        serving_cautious(&alone, z, &t0, &a);
        if (!(within_s >= TRAINING_P99_LEAST * (p99_alone_s > 0 ? p99_alone_s : STEPS * (t0 + a))))
            return false;
    }
    serving_cautious(&is, z, &t0, &a);
    return STEPS * (t0 + a) * is.tail <= within_s;
}

#include "estimate/site/site.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "catalog/catalog.h"
#include "estimate/prior/roofline.h"

/* What the roofline assumes is reached of the peaks is shared out anew here: compute nearer to its
 * peak, traffic mostly hidden behind it; so residuals over campaigns are smallest.
 */
#define COMPUTE_PART 0.6
#define MEMORY_PART 0.2

static double clip(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* FNV-1a, 64 bits: a handful of names, no enemies. */
static uint64_t digest(const char *text)
{
    uint64_t h = 14695981039346656037u;

    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return text ? h : 0;
}

/* Figures that are unknown stand as a V100's. */
static double ln_over(double value, double middle)
{
    return value > 0 ? log(value / middle) : 0;
}

void site_init(struct site *s, const struct gpu_type *types, int n_types)
{
    *s = (struct site){ .n_types = n_types };
    s->gpu = heap_array((size_t)n_types, sizeof *s->gpu);
    s->sharing = heap_array((size_t)n_types, sizeof *s->sharing);
    for (int i = 0; i < n_types; i++) {
        const struct gpu_type *g = &types[i];
        double tensor = g->peak_fp32_flops > 0 && g->peak_fp16_flops > 0
                            ? log(g->peak_fp16_flops / g->peak_fp32_flops)
                            : log(8.0);
        s->gpu[i][0] = (float)(ln_over(g->peak_fp32_flops, 14e12) + 0.14);
        s->gpu[i][1] = (float)(tensor - 1);
        s->gpu[i][2] = (float)(ln_over(g->bandwidth_bytes_s, 900e9) + 0.5);
        s->gpu[i][3] = (float)ln_over(g->launch_s, 6e-6);
        s->sharing[i] = g->sharing;
    }
}

void site_release(struct site *s)
{
    free(s->gpu);
    free(s->sharing);
    free(s->on);
    free(s->family);
    free(s->family_digest);
    *s = (struct site){ 0 };
}

static double known_or(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* Activity by where the step's time goes: a device that waits for launches is half idle. */
static void guess_activity(const double *t, double total, struct site_on *out)
{
    out->busy = (float)clip((t[0] + t[1] + 0.5 * t[2]) / total, 0, 1);
    out->traffic = (float)clip(2 * t[1] / total, 0, 1);
}

/* Each feature that had to be assumed makes ln speed this much less sure. */
#define UNKNOWN_SD 0.25

static void describe(const struct workload *w, const struct gpu_type *g, struct site_on *out)
{
    struct workload_step step = workload_step(w);
    struct roofline r;

    roofline(w, g, &r);
    const double t[4] = { COMPUTE_PART * r.compute_s + 1e-7, MEMORY_PART * r.memory_s + 1e-7,
                          r.launch_s + 1e-7, r.host_s + 1e-7 };
    const double kind[4] = { w->conv, w->gemm, w->rnn, w->sparse };
    double total = sqrt((t[0] + t[1]) * (t[0] + t[1]) + t[2] * t[2] + t[3] * t[3]);
    float *x = out->x;

    for (int i = 0; i < 4; i++)
        *x++ = (float)(clip(log(t[i] / total), -6, 0.3) / 2 + 1);
    *x++ = (float)(log(total) / 3 + 1);
    *x++ = (float)((log(clip(known_or(step.flop / step.bytes, 100), 1e-3, 1e6)) - 4) / 3);
    *x++ = (float)(log(clip(known_or(w->batch, 32), 1, 1e6)) / 3 - 1);
    *x++ = (float)(log(clip(known_or(w->params, 2e7), 1e3, 1e13)) / 4 - 4);
    for (int i = 0; i < 4; i++)
        *x++ = (float)known_or(kind[i], 0);
    *x++ = w->precision >= PRECISION_FP16;
    *x = w->is_inference;
    out->ln_reference = (float)-log(total);
    out->ln_watts = (float)log(roofline_watts(&r, g));
    out->doubt = (float)(r.n_unknown * UNKNOWN_SD * UNKNOWN_SD);
    guess_activity(t, total, out);
    if (!isnan(w->gpu_activity))
        out->busy = (float)w->gpu_activity;
    if (!isnan(w->mem_activity))
        out->traffic = (float)w->mem_activity;
}

static int family_of(struct site *s, const char *name)
{
    uint64_t key = digest(name);

    for (int f = 0; f < s->n_families && key; f++)
        if (s->family_digest[f] == key)
            return f;
    s->family_digest[s->n_families] = key;
    return s->n_families++;
}

int site_add(struct site *s, const struct workload *w, const struct gpu_type *types)
{
    if (s->n_workloads == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 32;
        RESIZE(s->on, (size_t)s->cap * (size_t)s->n_types);
        RESIZE(s->family, s->cap);
        RESIZE(s->family_digest, s->cap);
    }
    for (int g = 0; g < s->n_types; g++)
        describe(w, &types[g], &s->on[s->n_workloads * s->n_types + g]);
    s->family[s->n_workloads] = family_of(s, w->family);
    return s->n_workloads++;
}

/* ---- readings ---- */

static double noise_of(const struct cell *c)
{
    return hypot(sqrt(cell_variance(c)), READING_NOISE);
}

/* A reading that is farther than this from the reference, e^3 times, is less sure by as much as it
 * is farther: one wrong number must not move a whole site. Of whom nothing is known the reference
 * may be off by anything.
 */
#define FAR 3.0F
#define FAR_UNKNOWN 30.0F    // for each unit of doubt
#define FARTHEST 40.0        // nothing is

bool site_read(const struct site *s, const struct cell *cell, bool watts, struct reading *out)
{
    const struct cell_key *k = &cell->key;

    *out = (struct reading){ .of = k->neighbour < 0 ? READ_ALONE : READ_PACKED,
                             .type = k->gpu_type,
                             .job = k->workload,
                             .neighbour = k->neighbour };
    if (!cell_key_is_default(k) ||
        (watts ? k->neighbour >= 0 || cell->n_watts == 0 : cell->n_speed == 0))
        return false;
    const struct site_on *on = site_on(s, out->job, out->type);
    double value =
        watts ? cell->ln_watts - (double)on->ln_watts : cell->ln_speed - (double)on->ln_reference;
    out->value = (float)clip(value, -FARTHEST, FARTHEST);
    out->noise = (float)(watts ? CATALOG_NOISE / sqrt(cell->n_watts) : noise_of(cell));
    out->noise = hypotf(out->noise, fmaxf(fabsf(out->value) - FAR - FAR_UNKNOWN * on->doubt, 0));
    return true;
}

/* Of a packed job its slowdown, where its speed alone is known. */
static void read_slowdown(const struct catalog *c, const struct cell *cell, struct reading *r)
{
    struct cell_key alone = cell->key;

    alone.neighbour = -1;
    const struct cell *own = r->of == READ_PACKED ? catalog_cell(c, alone) : NULL;
    if (!own || own->n_speed == 0)
        return;
    r->of = READ_SLOWDOWN;
    r->noise = (float)hypot((double)r->noise, noise_of(own));
    r->value = (float)clip(cell->ln_speed - own->ln_speed, log(SLOWDOWN_LEAST), log(SLOWDOWN_MOST));
}

static int n_of(const struct catalog *c, int campaign)
{
    int n = 0;

    for (int i = 0; i < c->n_cells; i++)
        n += c->cells[i].key.campaign == campaign;
    return n;
}

static int read_all(struct arena *a, const struct catalog *c, const struct site *s, int campaign,
                    bool watts, struct reading **out)
{
    struct reading r;
    int n = 0;

    *out = ARENA_ARRAY(a, struct reading, (size_t)n_of(c, campaign));
    for (int beside = 0; beside < 2; beside++)
        for (int i = 0; i < c->n_cells; i++) {
            const struct cell *cell = &c->cells[i];
            if (cell->key.campaign != campaign || (cell->key.neighbour >= 0) != beside ||
                !site_read(s, cell, watts, &r))
                continue;
            read_slowdown(c, cell, &r);
            (*out)[n++] = r;
        }
    return n;
}

int site_readings(struct arena *a, const struct catalog *c, const struct site *s, int campaign,
                  struct reading **out)
{
    return read_all(a, c, s, campaign, false, out);
}

int site_watts(struct arena *a, const struct catalog *c, const struct site *s, int campaign,
               struct reading **out)
{
    return read_all(a, c, s, campaign, true, out);
}

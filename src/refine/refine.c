#include "refine/refine.h"

#include <math.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"

void refiner_init(struct refiner *r, struct catalog *c, struct estimator *e)
{
    *r = (struct refiner){ .catalog = c, .estimator = e };
}

static double noise_of(const struct measurement *m)
{
    return isnan(m->noise) ? CATALOG_NOISE : m->noise;
}

/* How good the belief was. */
static void note_surprise(struct refiner *r, const struct measurement *m)
{
    const struct cell_key *k = &m->key;

    if (!cell_key_is_plain(k) || isnan(m->throughput))
        return;
    struct cell_estimate believed =
        estimate_cell(r->estimator, k->workload, k->gpu_type, k->neighbour);
    double surprise = log(m->throughput) - (double)believed.mean;
    r->n_measurements++;
    r->sum_abs_error += fabs(m->throughput / (double)believed.speed - 1);
    r->n_covered += fabs(surprise) <= 1.645 * hypot(noise_of(m), (double)believed.sd);
}

/* ---- what limits do ---- */

static void note_speed(const struct measurement *seen, struct limit_reading *out)
{
    const struct cell_key *k = &seen->key;

    if (k->neighbour >= 0 || k->n_gpus != 1 || !seen->fits || !(seen->throughput > 0))
        return;
    out->ln_speed = log(seen->throughput);
    out->noise = hypot(noise_of(seen), READING_NOISE);
}

/* What it drew under a limit, of what it is believed to draw without one: nobody is limited of whom
 * that was not measured.
 */
static void note_draw(const struct refiner *r, const struct measurement *seen,
                      struct limit_reading *out)
{
    const struct cell_key *k = &seen->key;

    if (k->neighbour >= 0 || k->n_gpus != 1 || !(k->limit_w > 0) || !(seen->watts > 0) ||
        !estimate_may_limit(r->estimator, k->gpu_type, &k->workload, NULL, 1))
        return;
    struct cell_estimate is = estimate_cell(r->estimator, k->workload, k->gpu_type, -1);
    double w0 = (double)is.watts;
    double law_w = limits_apply(&r->catalog->types[k->gpu_type], k->limit_w, w0).watts;
    if (!(law_w < w0))
        return;
    out->ln_law_w = log(law_w / w0);
    out->ln_watts = log(seen->watts / w0);
    out->watts_noise = hypot(READING_NOISE, (double)is.watts_sd);
}

/* Under a deep limit everybody draws the limit. Watts tell what would be drawn without it only
 * where that would show: a tenth more in a fortieth.
 */
#define TELLING 0.25

static bool watts_tell(const struct gpu_type *g, int limit_w, double w0, struct limit_bend b)
{
    double more = limits_bent(g, limit_w, 1.1 * w0, b).watts / limits_bent(g, limit_w, w0, b).watts;

    return w0 < g->cap_w && log(more) > TELLING * log(1.1);
}

/* What was seen under a power limit, as it would have been without: by its own watts where they
 * tell, and otherwise by those that are believed. Those of a pair never do: what limits do to it is
 * not known well enough, and the same error in every reading would pass for what the pair draws.
 * The law's error comes on top of the noise.
 */
static struct measurement unlimited(const struct refiner *r, const struct measurement *seen)
{
    const struct estimator *est = r->estimator;
    struct measurement m = *seen;
    int both[] = { m.key.workload, m.key.neighbour }, n = m.key.neighbour < 0 ? 1 : 2;

    if (m.key.limit_w <= 0 || !m.fits || isnan(m.throughput))
        return m;
    const struct gpu_type *type = &r->catalog->types[m.key.gpu_type];
    struct limit_bend bend = limit_law;
    if (n == 1)
        bend = estimate_bend(est, both[0], m.key.gpu_type);
    double w0 = isnan(m.watts) ? (double)NAN : limits_undo_bent(type, m.key.limit_w, m.watts, bend);
    if (n == 2 || !(w0 > 0 && watts_tell(type, m.key.limit_w, w0, bend))) {
        w0 = estimate_watts(est, m.key.gpu_type, both, NULL, n);
        m.watts = NAN;
    }
    double pace = limits_bent(type, m.key.limit_w, w0, bend).speed;
    if (n == 2)
        pace = estimate_limited(est, m.key.gpu_type, both, NULL, n, m.key.limit_w).speed;
    m.ln_pace = log(limits_apply(type, m.key.limit_w, w0).speed);
    m.ln_undone = -log(pace);
    m.throughput /= pace;
    m.watts = isnan(m.watts) ? m.watts : w0;
    m.noise = hypot(noise_of(&m), LIMITS_ERROR * (1 - pace));
    m.key.limit_w = 0;
    return m;
}

int refine_take(struct refiner *r, const struct measurement *seen, struct err *e)
{
    struct refiner judged = *r;

    estimate_meet(r->estimator);    // who is new, whether or not somebody has asked since
    struct measurement m = unlimited(r, seen);
    note_speed(seen, &m.seen);
    note_draw(r, seen, &m.seen);
    note_surprise(&judged, &m);    // by what is believed before it is recorded
    int rc = catalog_begin(r->catalog, e);
    if (rc == 0)
        rc = catalog_end(r->catalog, catalog_record(r->catalog, &m, 0, e), e);
    if (rc < 0)
        return rc;
    *r = judged;
    return 0;
}

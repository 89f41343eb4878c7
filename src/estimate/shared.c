#include "estimate/shared.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/prior/power.h"

/* By how much pairs differ from the law, in ln of watts above idle: types, and pairs of a type. */
#define TYPE_SD 0.15
#define PAIR_SD 0.15

/* Fewer watts above idle than this tell nothing of a factor. */
#define TELLING_W 5.0

void shared_release(struct shared_watts *s)
{
    free(s->ln_type);
}

static const struct cell *cell_of(const struct estimator *e, int type, int workload, int neighbour)
{
    struct cell_key key = {
        .workload = workload, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1
    };

    return catalog_cell(e->catalog, key);
}

/* ln of a speed: as it was measured, and as it is believed where it was not. */
static double speed_of(const struct estimator *e, int type, int workload, int neighbour)
{
    const struct cell *seen = cell_of(e, type, workload, neighbour);

    return seen && seen->n_speed > 0 ? seen->ln_speed
                                     : (double)estimate_cell(e, workload, type, neighbour).mean;
}

/* Watts above idle that the law gives to two of them. */
static double law_w(const struct estimator *e, int type, const int *both)
{
    const struct gpu_type *g = &e->catalog->types[type];
    double sum = 0;

    for (int i = 0; i < 2; i++) {
        double ln = speed_of(e, type, both[i], both[1 - i]) - speed_of(e, type, both[i], -1);
        double alone_w = (double)estimate_cell(e, both[i], type, -1).watts;
        sum += power_dynamic_w(g, alone_w, fmin(exp(ln), 1));
    }
    return sum;
}

/* What a measured pair says: ln of the factor, and its precision; 0: nothing. A GPU at its cap
 * says nothing: both would draw more.
 */
static double said(const struct estimator *e, const struct cell *cell, double *ln)
{
    const struct gpu_type *g = &e->catalog->types[cell->key.gpu_type];
    const int both[] = { cell->key.workload, cell->key.neighbour };
    double watts = exp(cell->ln_watts), above_w = watts - fmax(g->idle_w, 0);
    double law = law_w(e, cell->key.gpu_type, both);
    double noise = CATALOG_NOISE / sqrt(cell->n_watts) * watts / above_w;

    if (!(above_w > TELLING_W) || !(law > TELLING_W) || watts > 0.97 * g->cap_w)
        return 0;
    *ln = log(above_w / law);
    return 1 / (noise * noise);
}

static bool is_measured_pair(const struct cell *c)
{
    return c->key.neighbour >= 0 && cell_key_is_plain(&c->key) && c->n_watts > 0;
}

/* Of each type the mean over its pairs, drawn towards the law. */
void shared_learn(const struct estimator *e, struct shared_watts *s)
{
    const struct catalog *c = e->catalog;
    double *trust;

    s->n_types = e->n_types;
    s->is_known = false;
    RESIZE(s->ln_type, s->n_types);
    trust = heap_array((size_t)s->n_types, sizeof *trust);
    for (int t = 0; t < s->n_types; t++) {
        trust[t] = 1 / (TYPE_SD * TYPE_SD);
        s->ln_type[t] = 0;
    }
    for (int i = 0; i < c->n_cells; i++) {
        double ln = 0, sure = is_measured_pair(&c->cells[i]) ? said(e, &c->cells[i], &ln) : 0;
        if (sure == 0)
            continue;
        double weight = 1 / (1 / sure + PAIR_SD * PAIR_SD);
        s->is_known = true;
        s->ln_type[c->cells[i].key.gpu_type] += weight * ln;
        trust[c->cells[i].key.gpu_type] += weight;
    }
    for (int t = 0; t < s->n_types; t++)
        s->ln_type[t] /= trust[t];
    free(trust);
}

double shared_factor(const struct estimator *e, int type, int workload, int neighbour)
{
    double mean, trust = 1 / (PAIR_SD * PAIR_SD);

    if (!e->shared->is_known)
        return 1;
    mean = e->shared->ln_type[type] * trust;
    for (int i = 0; i < (workload == neighbour ? 1 : 2); i++) {
        const struct cell *cell =
            cell_of(e, type, i ? neighbour : workload, i ? workload : neighbour);
        double ln = 0, sure = cell && cell->n_watts > 0 ? said(e, cell, &ln) : 0;
        if (sure == 0)
            continue;
        mean += sure * ln;
        trust += sure;
    }
    return exp(mean / trust);
}

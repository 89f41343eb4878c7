/* P1 as named arrays, and back. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "estimate/p1/inner.h"
#include "nn/weights.h"

/* Everything that is a number by itself, in one row. */
enum {
    HEAD_FAVOURITE,
    HEAD_NETS,
    HEAD_TYPES,
    HEAD_CROSS,
    HEAD_WEIGHTS = HEAD_CROSS + REGIMES,
    HEAD_SCORES = HEAD_WEIGHTS + 2 * REGIMES * P1_MEMBERS,
    HEAD_NUMBERS = HEAD_SCORES + 2 * REGIMES * P1_MEMBERS
};

enum { TYPE_NUMBERS = REGIMES * (sizeof(struct type_spread) / sizeof(double)) };

/* No spread, in logarithms or as a scale, is near this. */
#define SPREAD_MAX 1e3

/* A score that there was nothing to make from is NaN, which no file holds. */
static double or_none(double x)
{
    return x >= 0 ? x : -1;
}

static double or_nan(double x)
{
    return x >= 0 ? x : (double)NAN;
}

static void save_head(const struct p1 *p, struct weights *to)
{
    double head[HEAD_NUMBERS] = { p->favourite, p->n_nets, p->n_types };
    double *weight = head + HEAD_WEIGHTS, *score = head + HEAD_SCORES;

    memcpy(head + HEAD_CROSS, p->cross, sizeof p->cross);
    for (int r = 0; r < REGIMES; r++)
        for (int m = 0; m < P1_MEMBERS; m++) {
            *weight++ = p->alone_weight[r][m];
            *weight++ = p->pair_weight[r][m];
            *score++ = or_none(p->scores[m].alone[r]);
            *score++ = or_none(p->scores[m].pair[r]);
        }
    weights_put_doubles(to, "p1", 1, HEAD_NUMBERS, head);
}

static void save_type(const struct trained_type *k, const char *name, struct weights *to)
{
    struct kernel_point figures = { .on = k->on };
    double row[TYPE_NUMBERS];

    memcpy(row, k->spread, sizeof row);
    weights_put_doubles(to, name, 1, TYPE_NUMBERS, row);
    points_save(&figures, 1, arena_printf(to->a, "%s.on", name), to);
    if (k->beside.gp.n > 0)
        beside_save(&k->beside, name, to);
}

int p1_save(const struct p1 *p, struct weights *to, struct err *e)
{
    int n_pairs = 0;

    for (int t = 0; t < p->n_types; t++)
        n_pairs += p->types[t].beside.gp.n;
    if (n_pairs > EXAMPLES_PAIRS_MAX || p->alone.gp.n > EXAMPLES_PAIRS_MAX ||
        p->watts.gp.n > EXAMPLES_PAIRS_MAX)
        return err_set(e, E2BIG, "learned from more than %d examples: keep fewer of them",
                       EXAMPLES_PAIRS_MAX);
    save_head(p, to);
    memory_save(&p->memory, to);
    fit_save(&p->fit, to);
    process_save(&p->alone, "alone", to);
    process_save(&p->ridge, "ridge", to);
    process_save(&p->watts, "watts", to);
    for (int t = 0; t < p->n_types; t++)
        save_type(&p->types[t], arena_printf(to->a, "type%d", t), to);
    for (int i = 0; i < p->n_nets; i++)    // the others were for comparison
        net_save(p->nets[p->favourite][i], arena_printf(to->a, "net%d", i), to);
    return 0;
}

static int load_head(struct p1 *p, const struct weights *from, struct err *e)
{
    struct weights_reader in = { from, e, 0 };
    const double *head = weights_doubles(&in, "p1", 1, HEAD_NUMBERS);

    if (in.rc < 0)
        return in.rc;
    if (!(head[HEAD_FAVOURITE] >= 0 && head[HEAD_FAVOURITE] < N_NET_KINDS && head[HEAD_NETS] >= 0 &&
          head[HEAD_NETS] <= NETS_MAX && head[HEAD_TYPES] >= 0 && head[HEAD_TYPES] <= TYPES_MAX))
        return err_set(e, EINVAL, "p1: counts that no model has");
    p->favourite = (enum net_kind)head[HEAD_FAVOURITE];
    p->n_nets = (int)head[HEAD_NETS];
    p->n_types = (int)head[HEAD_TYPES];
    for (int i = HEAD_CROSS; i < HEAD_SCORES; i++)    // correlations and weights
        if (!(head[i] >= (i < HEAD_WEIGHTS ? -1 : 0) && head[i] <= 1))
            return err_set(e, EINVAL, "p1: number %d is %g, which no weight is", i, head[i]);
    memcpy(p->cross, head + HEAD_CROSS, sizeof p->cross);
    const double *weight = head + HEAD_WEIGHTS, *score = head + HEAD_SCORES;
    for (int r = 0; r < REGIMES; r++)
        for (int m = 0; m < P1_MEMBERS; m++) {
            p->alone_weight[r][m] = *weight++;
            p->pair_weight[r][m] = *weight++;
            p->scores[m].alone[r] = or_nan(*score++);
            p->scores[m].pair[r] = or_nan(*score++);
        }
    return 0;
}

static int load_type(struct p1 *p, const struct weights *from, const char *name,
                     struct trained_type *k, struct err *e)
{
    struct weights_reader in = { from, e, 0 };
    const double *row = weights_doubles(&in, name, 1, TYPE_NUMBERS);
    const char *points = arena_printf(&p->arena, "%s.points", name);
    struct kernel_point *figures;
    int n = 0, rc = in.rc;

    if (rc == 0)
        rc = points_load(&p->arena, from, arena_printf(&p->arena, "%s.on", name), &figures, &n, e);
    if (rc == 0 && n != 1)
        rc = err_set(e, EINVAL, "%s: figures of %d types", name, n);
    if (rc < 0)
        return rc;
    for (int i = 0; i < TYPE_NUMBERS; i++)
        if (!(row[i] > 0 && row[i] <= SPREAD_MAX))
            return err_set(e, EINVAL, "%s: a spread of %g", name, row[i]);
    k->on = figures[0].on;
    memcpy(k->spread, row, sizeof k->spread);
    if (!weights_find(from, points) &&
        !weights_find(from, arena_printf(&p->arena, "%s.pairs", name)))
        return beside_fit(&p->arena, &(struct examples){ 0 }, 0, NULL, &k->beside, e);
    return beside_load(&p->arena, from, name, &k->beside, e);
}

static int load_parts(struct p1 *p, const struct weights *from, struct err *e)
{
    int n_pairs = 0, rc = memory_load(&p->arena, from, &p->memory, e);

    if (rc == 0)
        rc = fit_load(&p->arena, from, &p->fit, e);
    if (rc == 0)
        rc = process_load(&p->arena, kernel_alone, from, "alone", &p->alone, e);
    if (rc == 0)
        rc = process_load(&p->arena, kernel_ridge, from, "ridge", &p->ridge, e);
    if (rc == 0)
        rc = process_load(&p->arena, kernel_alone, from, "watts", &p->watts, e);
    p->types = ARENA_ARRAY(&p->arena, struct trained_type, (size_t)p->n_types);
    for (int t = 0; t < p->n_types && rc == 0; t++) {
        rc = load_type(p, from, arena_printf(&p->arena, "type%d", t), &p->types[t], e);
        n_pairs += p->types[t].beside.gp.n;
        if (rc == 0 && n_pairs > EXAMPLES_PAIRS_MAX)
            rc = err_set(e, EINVAL, "type%d: %d pairs are more than are learned from", t, n_pairs);
    }
    for (int i = 0; i < p->n_nets && rc == 0; i++)
        rc = net_load(from, arena_printf(&p->arena, "net%d", i), &p->nets[p->favourite][i], e);
    return rc;
}

int p1_load(const struct weights *from, struct p1 **out, struct err *e)
{
    struct p1 *p = calloc(1, sizeof *p);

    assert(p);    // out of memory: stop
    arena_init(&p->arena);
    int rc = load_head(p, from, e);
    if (rc == 0)
        rc = load_parts(p, from, e);
    if (rc < 0) {
        p1_destroy(p);
        p = NULL;
    }
    *out = p;
    return rc;
}

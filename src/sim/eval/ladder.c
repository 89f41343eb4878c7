#include "sim/eval/ladder.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/catalog.h"

/* Does a workload of the model before it stand for it already? */
static bool is_same_model(const struct catalog *c, int a, int b)
{
    double batch;
    struct slice one = workload_name_split(c->workloads[a].name, &batch);
    struct slice other = workload_name_split(c->workloads[b].name, &batch);

    return one.len == other.len && memcmp(one.at, other.at, one.len) == 0;
}

static double seconds(const struct catalog *c, int campaign, int workload, int type, int neighbour)
{
    const struct cell_key key = { .workload = workload,
                                  .gpu_type = type,
                                  .neighbour = neighbour,
                                  .n_gpus = 1,
                                  .campaign = campaign };
    const struct cell *cell = catalog_cell(c, key);

    return cell && cell->n_speed > 0 ? exp(-cell->ln_speed) : (double)NAN;
}

/* The workloads of a model by their batches; the one of the largest, -1: another has been taken. */
static int find_rungs(const struct catalog *c, int workload, int *at)
{
    int top = workload;

    for (int i = 0; i < SERVING_RUNGS; i++)
        at[i] = -1;
    for (int w = 0; w < c->n_workloads; w++) {
        double batch = c->workloads[w].batch;
        if (!is_same_model(c, w, workload))
            continue;
        if (w < workload)
            return -1;
        for (int i = 0; i < SERVING_RUNGS; i++)
            at[i] = batch == 1 << i ? w : at[i];
        top = batch > c->workloads[top].batch ? w : top;
    }
    return top;
}

static bool measure(const struct catalog *c, int campaign, struct ladder *l)
{
    int n = 0;

    l->first = l->last = l->last_beside = -1;
    for (int i = 0; i < SERVING_RUNGS; i++) {
        int w = l->at[i];
        l->alone[i] = w < 0 ? (double)NAN : seconds(c, campaign, w, l->type, -1);
        l->beside[i] = w < 0 ? (double)NAN : seconds(c, campaign, w, l->type, w);
        if (isnan(l->alone[i]))
            continue;
        l->first = l->first < 0 ? i : l->first;
        l->last = i;
        l->last_beside = isnan(l->beside[i]) ? l->last_beside : i;
        n++;
    }
    return n >= 3;
}

int ladders_take(struct arena *a, const struct catalog *c, int campaign, const struct ladder **out)
{
    struct ladder *list =
        ARENA_ARRAY(a, struct ladder, (size_t)c->n_workloads * (size_t)c->n_types + 1);
    int n = 0;

    for (int w = 0; w < c->n_workloads; w++) {
        int at[SERVING_RUNGS];
        int top = c->workloads[w].is_inference ? find_rungs(c, w, at) : -1;
        for (int type = 0; type < c->n_types && top >= 0; type++) {
            struct ladder *l = &list[n];
            *l = (struct ladder){ .top = top, .type = type };
            memcpy(l->at, at, sizeof at);
            n += measure(c, campaign, l);
        }
    }
    *out = list;
    return n;
}

struct serving_estimate ladder_line(const double tau[SERVING_RUNGS])
{
    double w = 0, x = 0, xx = 0, y = 0, xy = 0;

    for (int i = 0; i < SERVING_RUNGS; i++) {
        double b = 1 << i, by = isnan(tau[i]) ? 0 : 1 / (tau[i] * tau[i]);
        w += by;
        x += by * b;
        xx += by * b * b;
        y += by > 0 ? by * tau[i] : 0;
        xy += by > 0 ? by * b * tau[i] : 0;
    }
    double a = (w * xy - x * y) / (w * xx - x * x), t0 = (y - a * x) / w;
    return (struct serving_estimate){ .ln_t0 = log(fmax(t0, 1e-9)), .ln_a = log(fmax(a, 1e-12)) };
}

/* Seconds beside the copy, of a batch up to that of the last rung. */
static double beside_s(const struct ladder *l, double batch)
{
    int low = l->first;

    for (int i = l->first; i <= l->last_beside && 1 << i <= batch; i++)
        low = isnan(l->beside[i]) ? low : i;
    int high = low + 1;
    while (high <= l->last_beside && isnan(l->beside[high]))
        high++;
    if (high > l->last_beside)
        return l->beside[low];
    double part = (batch - (1 << low)) / ((1 << high) - (1 << low));
    return l->beside[low] + part * (l->beside[high] - l->beside[low]);
}

bool ladder_holds(const struct ladder *l, double rate, double within_s)
{
    for (int batch = 1 << l->first; batch <= 1 << l->last_beside; batch++) {
        double tau = beside_s(l, batch);
        if (batch / tau >= rate)
            return 2 * tau <= within_s;
    }
    return false;
}

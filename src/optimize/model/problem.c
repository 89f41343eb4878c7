#include "optimize/model/problem.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#include "base/arena.h"

/* ---- what a combination does ---- */

/* What a setting does to a GPU. */
struct pace {
    double watts, speed;    // drawn; factor of every job's
    double doubt;           // about that
};

/* As the type's curve has it. */
static struct pace limited(const struct problem_type *t, int limit, double w0)
{
    const struct limit_curve *c = &t->limits[limit];

    if (limit == 0)
        return (struct pace){ w0, 1, 0 };
    double at = (w0 - t->idle_w) / (t->cap_w - t->idle_w) * (c->n_points - 1);
    int i = at <= 0 ? 0 : at >= c->n_points - 1 ? c->n_points - 2 : (int)at;
    double rest = fmin(fmax(at - i, 0), 1);    // of the way to the next point
    double speed = c->speed[i] + rest * (c->speed[i + 1] - c->speed[i]);
    return (struct pace){ c->watts[i] + rest * (c->watts[i + 1] - c->watts[i]), speed, 0 };
}

/* And as those on it differ from that; 'own_w' is what each of them adds. */
static void bend(const struct problem *p, int type, int limit, const int *kinds,
                 const double *own_w, int n, double w0, struct pace *x)
{
    const struct problem_type *t = &p->types[type];
    double loss = 0, draw = 0, doubt = 0, at = 0, all_w = 0;

    for (int i = 0; i < n; i++)
        all_w += own_w[i];
    for (int i = 0; i < n && all_w > 0; i++) {
        const struct problem_bend *b = &p->bends[type * p->n_kinds + kinds[i]];
        loss += own_w[i] / all_w * (double)b->loss;
        draw += own_w[i] / all_w * (double)b->draw;
        doubt += own_w[i] / all_w * (double)b->doubt;
        at += own_w[i] / all_w * (double)b->at;
    }
    if (all_w <= 0)
        return;
    double ln = log(x->speed), law_w = x->watts;
    x->speed = exp(loss * ln);
    x->doubt = doubt * fabs(ln - at);
    if (law_w < w0)
        x->watts = fmax(fmin(w0 * pow(law_w / w0, draw), fmax(law_w, t->limits[limit].limit_w)),
                        t->idle_w);
}

static double doubt_of(const struct problem *p, long cell)
{
    return p->doubt ? (double)p->doubt[cell] : 0;
}

/* Speed, what is held and the variance of that of the i-th of n kinds beside the others; false:
 * never. Beside several each neighbour adds its own doubt.
 */
static bool beside(const struct problem *p, int type, const int *kinds, int n, int i,
                   struct yield *out, double *variance)
{
    long alone = problem_cell(p, type, kinds[i], -1);
    long one = n == 2 ? problem_cell(p, type, kinds[i], kinds[1 - i]) : alone;
    double speed = (double)p->speed[one], held = (double)(n > 2 ? p->speed : p->held)[one];
    double sure = doubt_of(p, alone) * doubt_of(p, alone);

    *variance = doubt_of(p, one) * doubt_of(p, one);
    for (int k = 0; k < n && n > 2; k++) {
        if (k == i)
            continue;
        long cell = problem_cell(p, type, kinds[i], kinds[k]);
        if (!((double)p->speed[cell] > 0))
            return false;
        speed *= fmin((double)p->speed[cell] / (double)p->speed[alone], 1);
        held *= fmin((double)p->held[cell] / (double)p->speed[alone], 1);
        *variance += fmax(doubt_of(p, cell) * doubt_of(p, cell) - sure, 0);
    }
    out->speed[i] = speed;
    out->held[i].mean = held;
    return speed > 0;
}

/* Do they fit together? Added up from the smallest on, whatever their order: the same jobs always
 * fit or never do.
 */
static bool fits(const struct problem *p, int type, const int *kinds, int n)
{
    double gib[THETA_MAX], sum_gib = 0;

    for (int i = 0; i < n; i++) {
        double own = p->kinds[kinds[i]].mem_gib;
        int at = i;
        for (; at > 0 && gib[at - 1] > own; at--)
            gib[at] = gib[at - 1];
        gib[at] = own;
    }
    for (int i = 0; i < n; i++)
        sum_gib += gib[i];
    return sum_gib <= p->types[type].mem_gib;
}

bool problem_yield(const struct problem *p, int type, int limit, const int *kinds, int n,
                   struct yield *out)
{
    const struct problem_type *t = &p->types[type];
    double watts = t->idle_w, own_w[THETA_MAX], variance[THETA_MAX];

    if (!fits(p, type, kinds, n))
        return false;

    for (int i = 0; i < n; i++) {
        const struct problem_kind *k = &p->kinds[kinds[i]];
        double alone = (double)p->speed[problem_cell(p, type, kinds[i], -1)];
        double alone_w = (double)p->watts[type * p->n_kinds + kinds[i]] - t->idle_w;
        if (!(alone > 0) || !beside(p, type, kinds, n, i, out, &variance[i]))
            return false;
        if (limit > 0 && p->bends && p->bends[type * p->n_kinds + kinds[i]].is_free)
            return false;
        own_w[i] = fmax(alone_w, 0) * fmin(problem_done(k, out->speed[i]) / alone, 1);
        watts += own_w[i];
    }
    if (n == 2 && p->shared)
        watts = t->idle_w + (watts - t->idle_w) * (double)p->shared[problem_pair(p, type, kinds)];
    watts = fmin(watts, t->cap_w);
    struct pace x = limited(t, limit, watts);
    if (p->bends)
        bend(p, type, limit, kinds, own_w, n, watts, &x);
    out->watts = x.watts;
    out->cost_w = x.watts - t->sleep_w + p->price_w;
    for (int i = 0; i < n; i++) {
        const struct problem_kind *k = &p->kinds[kinds[i]];
        out->speed[i] *= x.speed;
        out->held[i].mean *= x.speed;
        out->held[i].dev = out->held[i].mean * sqrt(variance[i] + x.doubt * x.doubt);
        out->cost_w -= k->value_j * problem_done(k, out->speed[i]);
    }
    return true;
}

bool problem_yield_of(const struct problem *p, int type, int limit, const int *jobs, int n,
                      struct yield *out)
{
    int kinds[THETA_MAX];

    for (int i = 0; i < n; i++)
        kinds[i] = p->jobs[jobs[i]].kind;
    return problem_yield(p, type, limit, kinds, n, out);
}

void problem_make_gang(const struct problem *p, int type, int kind, int m, bool is_near,
                       struct yield *y)
{
    const struct problem_kind *k = &p->kinds[kind];
    double factor = is_near ? p->gang_near[m] : p->gang_far[m];

    y->watts *= m;
    y->speed[0] *= factor;
    y->held[0] = held_times(y->held[0], factor);
    y->cost_w = y->watts + m * (p->price_w - p->types[type].sleep_w) -
                k->value_j * problem_done(k, y->speed[0]);
}

bool problem_gang_yield(const struct problem *p, int type, int limit, int kind, int m, bool is_near,
                        struct yield *out)
{
    if (!problem_yield(p, type, limit, &kind, 1, out))
        return false;
    problem_make_gang(p, type, kind, m, is_near, out);
    return true;
}

struct residents *problem_residents(struct arena *a, const struct problem *p)
{
    struct residents *list = ARENA_ARRAY(a, struct residents, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++) {
            struct residents *on = &list[p->jobs[j].present[i]];
            assert(on->n < THETA_MAX);
            on->jobs[on->n++] = j;
        }
    return list;
}

int problem_n_nodes(const struct problem *p)
{
    int n = 0;

    for (int g = 0; g < p->n_gpus; g++)
        n = p->gpus[g].node >= n ? p->gpus[g].node + 1 : n;
    return n;
}

bool problem_has_fees(const struct problem *p)
{
    for (int g = 0; g < p->n_gpus; g++)
        if (p->gpus[g].wake_s > 0)
            return true;
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].start_w > 0)
            return true;
    return false;
}

bool problem_stands(const struct problem *p, const int *gpus, int n, int n_nodes)
{
    for (int i = 0; i < n && n_nodes > 0; i++) {
        int n_here = 0;
        for (int k = 0; k < n; k++)
            n_here += p->gpus[gpus[k]].node == p->gpus[gpus[i]].node;
        if (n_here * n_nodes != n)
            return false;
    }
    return true;
}

int problem_node_fits(const struct engine_node *left, const struct problem_job *j,
                      enum engine_rule *why)
{
    long by_cpus = j->engine.cpus > 0 ? left->cpus / j->engine.cpus : INT_MAX;
    long by_memory = j->engine.mem_mib > 0 ? left->mem_mib / j->engine.mem_mib : INT_MAX;
    long least = by_cpus <= by_memory ? by_cpus : by_memory;

    *why = by_cpus <= by_memory ? ENGINE_CPUS : ENGINE_MEMORY;
    return least < INT_MAX ? (int)least : INT_MAX;
}

struct engine_node *problem_node_room(struct arena *a, const struct problem *p)
{
    if (!p->nodes)
        return NULL;
    struct engine_node *room = ARENA_ARRAY(a, struct engine_node, (size_t)p->n_nodes);
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++)
            problem_use_node(p, j, p->jobs[j].present[i], 1, room);
    for (int n = 0; n < p->n_nodes; n++) {
        const struct engine_node *has = &p->nodes[n];
        room[n].cpus = room[n].cpus > has->cpus ? room[n].cpus : has->cpus;
        room[n].mem_mib = room[n].mem_mib > has->mem_mib ? room[n].mem_mib : has->mem_mib;
    }
    return room;
}

bool problem_devices_match(const struct problem *p, const int *gpus, int n)
{
    for (int i = 0; i < n; i++) {
        const struct problem_gpu *one = &p->gpus[gpus[i]];
        for (int k = 0; k < n && one->device; k++) {
            int more = 0;    // of this device on its node than on the other's
            for (int m = 0; m < n; m++) {
                const struct problem_gpu *g = &p->gpus[gpus[m]];
                if (g->device == one->device)
                    more += (g->node == one->node) - (g->node == p->gpus[gpus[k]].node);
            }
            if (more != 0)
                return false;
        }
    }
    return true;
}

bool problem_has_doubt(const struct problem *p)
{
    bool has = p->doubt != NULL || p->miss > 0;

    for (int i = 0; p->bends && i < p->n_types * p->n_kinds && !has; i++)
        has = p->bends[i].doubt > 0;
    return has;
}

bool problem_has_rules(const struct problem *p)
{
    bool has = p->nodes != NULL;

    for (int g = 0; g < p->n_gpus && !has; g++)
        has = p->gpus[g].device != 0;
    for (int j = 0; j < p->n_jobs && !has; j++)
        has = p->jobs[j].engine.barred != NULL || p->jobs[j].engine.device != 0;
    return has;
}

double problem_best_joules(const struct problem *p, int kind)
{
    double best = INFINITY;

    for (int type = 0; type < p->n_types; type++)
        for (int limit = 0; limit < p->types[type].n_limits; limit++) {
            struct yield y;
            if (!problem_yield(p, type, limit, &kind, 1, &y))
                continue;
            double cost_w = y.watts - p->types[type].sleep_w + p->price_w + p->kinds[kind].time_w;
            best = fmin(best, cost_w / problem_done(&p->kinds[kind], y.speed[0]));
        }
    return isfinite(best) ? best : 0;
}

double problem_base_w(const struct problem *p)
{
    double sum_w = 0;

    for (int i = 0; i < p->n_jobs; i++)
        if (p->jobs[i].name)
            sum_w += p->kinds[p->jobs[i].kind].value_j * p->jobs[i].need;
    return sum_w;
}

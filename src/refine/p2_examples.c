#include "refine/p2_inner.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* ---- who plays a newcomer ---- */

/* Everybody; then those with kin once more, without their family, as strangers. */
static void fill_scene(struct arena *a, const struct examples *x, const struct p1 *p1,
                       struct p2_examples *out)
{
    out->context = p1_context_create(p1, x->n_types);
    out->list = ARENA_ARRAY(a, struct p2_example, 2 * (size_t)x->n_workloads);
    for (int w = 0; w < x->n_workloads; w++)
        p1_context_add(out->context, &x->who[w], examples_at(x, w, 0));
    for (int w = 0; w < x->n_workloads; w++) {
        enum regime r = p1_alone(out->context, w, 0).regime;
        out->list[out->n++] =
            (struct p2_example){ .workload = w, .family = x->family[w], .at = w, .regime = r };
        if (r != REGIME_KIN)
            continue;
        struct identity stranger = { .name = x->who[w].name };
        int at = p1_context_add(out->context, &stranger, examples_at(x, w, 0));
        out->list[out->n++] = (struct p2_example){
            .workload = w, .family = x->family[w], .at = at, .regime = REGIME_STRANGER
        };
    }
    p2_estimates_make(a, x->n_types, x->n_workloads, false, &out->everyone);
    out->everyone.context = out->context;
}

/* ---- what P1 was wrong in ---- */

/* The sd that P1 states of what it is wrong in. */
static float stated_sd(const struct p1_context *s, int workload, enum p1_target of, int type,
                       int other)
{
    struct p1_alone alone = p1_alone(s, workload, type);
    float ln_r, sd = of == P1_WATTS ? alone.ln_watts_sd : alone.ln_speed_sd;

    if (of == P1_OWN)
        p1_beside(s, workload, type, other, other + 1, &ln_r, &sd);
    if (of == P1_PARTNER)
        p1_partner(s, workload, type, other, other + 1, &ln_r, &sd);
    return sd;
}

static void take_errors(struct arena *a, const struct p2_examples *l, const struct examples *x,
                        const struct p1_errors *errors, struct p2_example *it)
{
    const struct example *list[P1_TARGETS] = { x->alone, x->pairs, x->pairs, x->watts };
    const int n[P1_TARGETS] = { x->n_alone, x->n_pairs, x->n_pairs, x->n_watts };

    for (enum p1_target k = 0; k < P1_TARGETS; k++)
        for (int i = 0; i < n[k]; i++) {
            const struct example *e = &list[k][i];
            int who = k == P1_PARTNER ? e->neighbour : e->workload;
            int other = k == P1_PARTNER ? e->workload : e->neighbour;
            float error = errors->of[k][it->regime][i];
            if (who != it->workload || !isfinite(error))
                continue;
            float sd = stated_sd(l->context, it->at, k, e->gpu_type, other);
            if (!isfinite(sd) || !(sd > 0))
                continue;
            struct target_errors *to = &it->of[k];
            ARENA_GROW(a, to->list, to->n, to->cap);
            to->list[to->n++] = (struct p1_error){ e->gpu_type, other, error, sd };
        }
}

/* The same as a table, with what is believed: episodes are cut from it. */
static void make_table(struct arena *a, const struct p2_examples *l, struct p2_example *it)
{
    const struct target_errors *alone = &it->of[P1_ALONE], *own = &it->of[P1_OWN];
    int *column = ARENA_ARRAY(a, int, (size_t)l->everyone.n_neighbours);
    int n = 0, n_types = l->everyone.n_types;

    memset(column, -1, (size_t)l->everyone.n_neighbours * sizeof *column);
    for (int i = 0; i < own->n; i++)
        if (column[own->list[i].other] < 0)
            column[own->list[i].other] = n++;
    p2_estimates_make(a, n_types, n, false, &it->believed);
    for (int w = 0; w < l->everyone.n_neighbours; w++)
        if (column[w] >= 0)
            it->believed.neighbour[column[w]] = w;
    p2_estimates_from_p1(l->context, it->at, &it->believed);
    it->alone_error = ARENA_ARRAY(a, float, (size_t)n_types);
    it->own_error = ARENA_ARRAY(a, float, (size_t)(n_types * n));
    for (int g = 0; g < n_types; g++)
        it->alone_error[g] = NAN;
    for (int c = 0; c < n_types * n; c++)
        it->own_error[c] = NAN;
    for (int i = 0; i < alone->n; i++)
        it->alone_error[alone->list[i].type] = alone->list[i].error;
    for (int i = 0; i < own->n; i++)
        it->own_error[own->list[i].type * n + column[own->list[i].other]] = own->list[i].error;
}

void p2_examples_make(struct arena *a, const struct examples *x, const struct p1 *p1,
                      struct p2_examples *out)
{
    const struct p1_errors *errors = p1_held_out(p1);

    *out = (struct p2_examples){ 0 };
    if (!errors || x->n_workloads == 0 || x->n_types == 0)
        return;
    fill_scene(a, x, p1, out);
    for (int i = 0; i < out->n; i++) {
        struct p2_example *it = &out->list[i];
        take_errors(a, out, x, errors, it);
        make_table(a, out, it);
    }
    relations_look(out);
}

void p2_examples_release(struct p2_examples *l)
{
    p1_context_destroy(l->context);
}

/* ---- episodes ---- */

/* Neighbours of one episode: enough to tell cells apart, few enough to be quick. */
#define EPISODE_CELLS 48
#define EPISODE_NEIGHBOURS 12

/* Share of measurements that see a job alone. */
#define ALONE_SHARE 0.3

/* Noise of what an episode sees. */
#define EPISODE_NOISE 0.03

static void shuffle(int n, int *list, struct rng *chance)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_below(chance, (uint64_t)i + 1), kept = list[i];
        list[i] = list[j];
        list[j] = kept;
    }
}

/* Some columns of the example's table. */
static void cut(struct arena *a, const struct p2_example *of, struct rng *chance,
                struct episode *out)
{
    const struct p2_estimates *all = &of->believed;
    int n_types = all->n_types, m = all->n_neighbours;
    int most = EPISODE_CELLS / n_types < 6 ? 6 : EPISODE_CELLS / n_types;
    int *column = ARENA_ARRAY(a, int, (size_t)m);

    most = most > EPISODE_NEIGHBOURS ? EPISODE_NEIGHBOURS : most;
    int n = m < most ? m : most;
    for (int j = 0; j < m; j++)
        column[j] = j;
    shuffle(m, column, chance);
    p2_estimates_make(a, n_types, n, false, &out->b);
    out->b.context = all->context;
    out->b.workload = all->workload;
    out->b.regime = of->regime;
    out->alone_error = ARENA_ARRAY(a, float, (size_t)(n_types * (1 + n)));
    out->own_error = out->alone_error + n_types;
    memcpy(out->alone_error, of->alone_error, (size_t)n_types * sizeof(float));
    for (int g = 0; g < n_types; g++) {
        out->b.alone[g] = all->alone[g];
        out->b.alone_sd[g] = all->alone_sd[g];
        for (int j = 0; j < n; j++) {
            int from = g * m + column[j], to = g * n + j;
            out->b.neighbour[j] = all->neighbour[column[j]];
            out->b.own[to] = all->own[from];
            out->b.own_sd[to] = all->own_sd[from];
            out->b.pair_sd[to] = all->pair_sd[from];
            out->own_error[to] = of->own_error[from];
        }
    }
}

/* Targets whose truth is known: types alone, then pairs. */
static int known_cells(struct arena *a, const struct episode *ep, int **out, int *n_alone)
{
    int n_types = ep->b.n_types, n_cells = n_types * ep->b.n_neighbours, n = 0;

    *out = ARENA_ARRAY(a, int, (size_t)(n_types + n_cells));
    for (int g = 0; g < n_types; g++)
        if (isfinite(ep->alone_error[g]))
            (*out)[n++] = g;
    *n_alone = n;
    for (int c = 0; c < n_cells; c++)
        if (isfinite(ep->own_error[c]) && isfinite(ep->alone_error[c / ep->b.n_neighbours]))
            (*out)[n++] = n_types + c;
    return n;
}

static void see(struct episode *ep, int target)
{
    const struct p2_estimates *b = &ep->b;
    int cell = target - b->n_types, type = cell < 0 ? target : cell / b->n_neighbours;
    double speed = (double)(b->alone[type] + ep->alone_error[type]);

    if (cell >= 0)
        speed += (double)(b->own[cell] + ep->own_error[cell]);
    ep->is_seen[target] = true;
    ep->seen[ep->n_seen++] =
        (struct p2_observation){ .type = type,
                                 .neighbour = cell < 0 ? -1 : cell % b->n_neighbours,
                                 .ln_speed = speed,
                                 .ln_speed_var = EPISODE_NOISE * EPISODE_NOISE,
                                 .ln_r_partner = NAN,
                                 .ln_watts = NAN };
}

bool episode_make(struct arena *a, const struct p2_example *of, int n_max, struct rng *chance,
                  struct episode *out)
{
    int *known, n_alone;

    *out = (struct episode){ 0 };
    cut(a, of, chance, out);
    int n = known_cells(a, out, &known, &n_alone);
    out->seen = ARENA_ARRAY(a, struct p2_observation, (size_t)n_max);
    out->is_seen = ARENA_ARRAY(a, bool, (size_t)(out->b.n_types * (1 + out->b.n_neighbours)));
    shuffle(n_alone, known, chance);
    shuffle(n - n_alone, known + n_alone, chance);
    for (int i = 0, j = n_alone; out->n_seen < n_max && out->n_seen + 1 < n;) {
        bool is_alone = i < n_alone && (j == n || rng_uniform(chance) < ALONE_SHARE);
        see(out, known[is_alone ? i++ : j++]);
    }
    return out->n_seen > 0;
}

double episode_error(struct arena *a, const struct p2 *p, enum p2_way way, const struct episode *ep)
{
    struct p2_estimates b;
    int n_types = ep->b.n_types, n = ep->b.n_neighbours, n_errors = 0;
    double sum = 0;

    p2_estimates_copy(a, &ep->b, &b);
    if (p2_refine(a, p, way, &(struct p2_sightings){ ep->n_seen, ep->seen }, &b, NULL) < 0)
        return (double)NAN;
    for (int g = 0; g < n_types; g++) {
        double alone = (double)(b.alone[g] - ep->b.alone[g] - ep->alone_error[g]);
        if (isfinite(alone) && !ep->is_seen[g]) {
            sum += fabs(alone);
            n_errors++;
        }
        for (int c = g * n; c < (g + 1) * n; c++) {
            double pair = alone + (double)(b.own[c] - ep->b.own[c] - ep->own_error[c]);
            if (isfinite(pair) && !ep->is_seen[n_types + c]) {
                sum += fabs(pair);
                n_errors++;
            }
        }
    }
    return sum / n_errors;
}

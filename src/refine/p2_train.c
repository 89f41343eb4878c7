#include "refine/p2.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "nn/adam.h"
#include "nn/weights.h"
#include "refine/p2_inner.h"

/* How long and how boldly the network is trained; chosen for being quick. */
#define STEPS 400
#define BATCH 16
#define RATE_PEAK 3e-3
#define RATE_LAST 1e-4
#define SIGHTINGS_MAX 5

/* Some episodes are drawn from the covariance itself, where the closed form is right: as many as
 * if there were so many examples more. It keeps the network at home where data are few.
 */
#define DRAWN_LESSONS 30.0

/* Weights in the loss: of how well variances fit, and of gains for being bent at all. */
#define WIDTH_WEIGHT 0.1
#define BEND_WEIGHT 0.1

/* An error is a line from here on. */
#define ROUND_ERROR 0.02

/* Groups of families in the contest; with more families they share groups. */
#define GROUPS_MAX 6
#define FAMILIES_MIN 3
#define CONTEST_ROUNDS 4

/* By how much, and in which share of the groups, the network has to win. With few families there
 * are few groups, and chance wins most of them often enough: then it has to win all.
 */
#define WIN_MEAN 0.01
#define WIN_GROUPS (2.0 / 3)
#define FAMILIES_FEW 6

/* ---- errors drawn from the prior ---- */

/* 'n' numbers with covariance 'k' (n, n; its lower half, used up), times what 'noise' (n) drew:
 * Cholesky.
 */
static void correlate(int n, double *k, const double *noise, float *out)
{
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j <= i; j++) {
            double left = k[i * n + j];
            for (int m = 0; m < j; m++)
                left -= k[i * n + m] * k[j * n + m];
            k[i * n + j] = i == j ? sqrt(fmax(left, 0)) : left / fmax(k[j * n + j], 1e-9);
            sum += k[i * n + j] * noise[j];
        }
        out[i] = (float)sum;
    }
}

/* What the errors of one episode have in common, worked out once. */
struct shared_errors {
    const struct relations *r;
    const struct p2_estimates *b;
    double cross;
    double *same;    // (n_types, n_types)
    double *like;    // (n_neighbours, n_neighbours)
};

static void shared_errors_make(struct arena *a, const struct relations *r,
                               const struct p2_estimates *b, struct shared_errors *out)
{
    int n_types = b->n_types, n = b->n_neighbours;

    *out = (struct shared_errors){ .r = r,
                                   .b = b,
                                   .cross = p2_coupling(r, b),
                                   .same = ARENA_ARRAY(a, double, (size_t)(n_types * n_types)),
                                   .like = ARENA_ARRAY(a, double, (size_t)(n * n)) };
    for (int i = 0; i < n_types * n_types; i++)
        out->same[i] = p2_same(b, i / n_types, i % n_types);
    for (int i = 0; i < n * n; i++)
        out->like[i] = p2_like(b, i / n, i % n);
}

/* The covariance of errors 'i' >= 'j' (types alone, then cells), as evidence_of_speeds has it. */
static double covariance(const struct shared_errors *f, int i, int j)
{
    const struct p2_estimates *b = f->b;
    const struct effect *own = &f->r->own;
    int n = b->n_neighbours, cell = i - b->n_types, other = j - b->n_types;
    int type = cell < 0 ? i : cell / n, other_type = other < 0 ? j : other / n;
    double same = f->same[type * b->n_types + other_type];
    double sd = (double)b->alone_sd[i], other_sd = (double)b->alone_sd[j];

    if (cell < 0)
        return sd * other_sd * p2_mix(f->r->alone, same);
    if (other < 0)
        return sd * other_sd * f->cross * same;
    double shared = own->common + own->like * f->like[cell % n * n + other % n];
    return sd * other_sd * (p2_mix(own->types, same) * shared + (i == j ? own->cell : 0));
}

/* Replace the episode's errors, and what is seen of them. */
static void draw_errors(struct arena *a, const struct relations *r, struct episode *ep,
                        struct rng *chance)
{
    const struct p2_estimates *b = &ep->b;
    int n_types = b->n_types, n = b->n_neighbours, m = n_types + n_types * n;
    double *k = ARENA_ARRAY(a, double, (size_t)m *(size_t)m);
    double *noise = ARENA_ARRAY(a, double, (size_t)m);
    struct shared_errors kin;

    shared_errors_make(a, r, b, &kin);
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++)
            k[i * m + j] = covariance(&kin, i, j);
    for (int i = 0; i < m; i++)
        noise[i] = rng_normal(chance);
    correlate(m, k, noise, ep->alone_error);
    for (int i = 0; i < ep->n_seen; i++) {
        struct p2_observation *seen = &ep->seen[i];
        int cell = seen->type * n + seen->neighbour;
        seen->ln_speed = (double)(b->alone[seen->type] + ep->alone_error[seen->type]) +
                         sqrt(seen->ln_speed_var) * rng_normal(chance);
        if (seen->neighbour >= 0)
            seen->ln_speed += (double)(b->own[cell] + ep->own_error[cell]);
    }
}

/* ---- the loss ---- */

/* What one episode pulls at: gradients by the correction of each target, and by delta. */
struct episode_gradient {
    double *shift;     // (n_targets) the correction, as the network has it
    double *dshift;    // (n_targets)
    float *ddelta;     // (n_targets)
    double *drop;      // (n_types), then (n_types, n_neighbours): of whole cells
    double scale;
};

static void gradient_make(struct arena *a, const struct evidence *v, const struct p2_estimates *b,
                          const struct gain_pass *pass, struct episode_gradient *out)
{
    size_t n = (size_t)v->n_targets;

    *out = (struct episode_gradient){ .shift = ARENA_ARRAY(a, double, n),
                                      .dshift = ARENA_ARRAY(a, double, n),
                                      .ddelta = ARENA_ARRAY(a, float, n),
                                      .drop = ARENA_ARRAY(a, double, n) };
    for (int o = 0; o < v->n; o++) {
        const double *white = v->white + (size_t)o * n;
        for (size_t t = 0; t < n; t++) {
            size_t at = (size_t)o * n + t;
            double whole = p2_whole(b, white, (int)t);
            out->shift[t] += v->gain[at] * (1 + (double)pass->gamma[at]) * v->y[o];
            out->drop[t] += whole * whole;
        }
    }
}

/* One cell that was not seen: its error, and the variance that the closed form leaves. */
static void gradient_cell(double error, double var, float delta, int type, int target,
                          struct episode_gradient *p)
{
    double steep = -error / hypot(error, ROUND_ERROR) * p->scale;
    double wide = (var + ROUND_ERROR * ROUND_ERROR) * exp((double)delta);

    p->dshift[type] += steep;
    if (target != type)
        p->dshift[target] += steep;
    p->ddelta[target] +=
        (float)(WIDTH_WEIGHT * p->scale * 0.5 * (1 - fmin(error * error / wide, 9)));
}

static void gradient_cells(const struct episode *ep, const struct gain_pass *pass,
                           struct episode_gradient *p)
{
    const struct p2_estimates *b = &ep->b;
    int n = b->n_neighbours;
    double sum = 0;

    for (int g = 0; g < b->n_types; g++)
        sum += (double)b->alone_sd[g] / b->n_types;
    p->scale = 1 / (sum * b->n_types * (n + 1));
    for (int g = 0; g < b->n_types; g++) {
        double alone = (double)ep->alone_error[g] - p->shift[g];
        double var = (double)b->alone_sd[g] * (double)b->alone_sd[g];
        if (isfinite(alone) && !ep->is_seen[g])
            gradient_cell(alone, fmax(var - p->drop[g], 0), pass->delta[g], g, g, p);
        for (int c = g * n; c < (g + 1) * n; c++) {
            int t = b->n_types + c;
            double pair = alone + (double)ep->own_error[c] - p->shift[t];
            double both = (double)b->pair_sd[c] * (double)b->pair_sd[c];
            if (isfinite(pair) && !ep->is_seen[t])
                gradient_cell(pair, fmax(both - p->drop[t], 0), pass->delta[t], g, t, p);
        }
    }
}

/* The very steps of p2_refine, doubt included: it widens the episode's beliefs. */
static void learn_episode(struct arena *a, const struct relations *r, struct episode *ep,
                          struct gain_net *net)
{
    double doubt;
    struct evidence v;
    struct gain_pass pass;
    struct episode_gradient pull;

    evidence_of_speeds(a, r, &(struct p2_sightings){ ep->n_seen, ep->seen }, &ep->b, &v);
    if (evidence_doubt(a, &v, &doubt, NULL) < 0 || evidence_weigh(a, &v, NULL) < 0)
        return;
    p2_estimates_widen(&ep->b, (float)sqrt(doubt));
    size_t n = (size_t)v.n * (size_t)v.n_targets;
    float *dgamma = ARENA_ARRAY(a, float, n);
    gain_net_forward(a, net, &v, &ep->b, &pass);
    gradient_make(a, &v, &ep->b, &pass, &pull);
    gradient_cells(ep, &pass, &pull);
    for (size_t at = 0; at < n; at++) {
        size_t o = at / (size_t)v.n_targets, t = at % (size_t)v.n_targets;
        dgamma[at] = (float)(pull.dshift[t] * v.gain[at] * v.y[o]) +
                     (float)(2 * BEND_WEIGHT / (double)n) * pass.gamma[at];
    }
    gain_net_backward(a, net, &v, &pass, dgamma, pull.ddelta, net->params.grad);
}

/* ---- training ---- */

static bool is_held(const bool *held, const struct p2_example *it)
{
    return held && held[it->family];
}

/* Can something be seen of it, and something else be wrong? */
static bool may_teach(const struct p2_example *it)
{
    return it->of[P1_ALONE].n + it->of[P1_OWN].n > 1;
}

static int open_lessons(struct arena *a, const struct p2_examples *l, const bool *held, int **out)
{
    int n = 0;

    *out = ARENA_ARRAY(a, int, (size_t)l->n);
    for (int i = 0; i < l->n; i++)
        if (!is_held(held, &l->list[i]) && may_teach(&l->list[i]))
            (*out)[n++] = i;
    return n;
}

void gain_net_train(const struct p2_examples *l, const bool *held,
                    const struct relations of[REGIMES], uint64_t seed, struct gain_net *net)
{
    struct arena a, lasting;
    struct rng chance;
    struct adam adam;
    int *open;

    arena_init(&a);
    arena_init(&lasting);
    rng_init(&chance, seed, "p2");
    gain_net_init(net, &chance);
    adam_init(&adam, net->params.n);
    adam.clip = 1;
    int n = open_lessons(&lasting, l, held, &open);
    for (int step = 0; step < STEPS && n > 0; step++) {
        params_clear(&net->params);
        for (int i = 0; i < BATCH; i++) {
            const struct p2_example *it = &l->list[open[rng_below(&chance, (uint64_t)n)]];
            struct episode ep;
            bool is_drawn = rng_uniform(&chance) < DRAWN_LESSONS / (DRAWN_LESSONS + n);
            arena_reset(&a);
            if (!episode_make(&a, it, 1 + (int)rng_below(&chance, SIGHTINGS_MAX), &chance, &ep))
                continue;
            if (is_drawn)
                draw_errors(&a, &of[it->regime], &ep, &chance);
            learn_episode(&a, &of[it->regime], &ep, net);
        }
        adam_step(&adam, &net->params, adam_cosine(step, STEPS, STEPS / 10, RATE_PEAK, RATE_LAST));
    }
    adam_release(&adam);
    arena_release(&lasting);
    arena_release(&a);
}

/* ---- the contest ---- */

struct score {
    double closed_form, network;    // sums
    int n;
};

/* Both on the same episodes of the held families. */
static struct score compare(const struct p2_examples *l, const bool *held, const struct p2 *p,
                            uint64_t seed)
{
    struct score sum = { 0 };
    struct arena a;
    struct rng chance;

    arena_init(&a);
    rng_init(&chance, seed, "p2 contest");
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < SIGHTINGS_MAX * CONTEST_ROUNDS && is_held(held, &l->list[i]); k++) {
            struct episode ep;
            arena_reset(&a);
            if (!episode_make(&a, &l->list[i], 1 + k % SIGHTINGS_MAX, &chance, &ep))
                continue;
            double closed = episode_error(&a, p, P2_CLOSED, &ep);
            double network = episode_error(&a, p, P2_NETWORK, &ep);
            if (!isfinite(closed) || !isfinite(network))
                continue;
            sum.closed_form += closed;
            sum.network += network;
            sum.n++;
        }
    arena_release(&a);
    return sum;
}

/* Which group each family with a example is in (-1: none); how many families these are. */
static int deal(struct arena *a, const struct p2_examples *l, int n_families, int **group)
{
    int n = 0;

    *group = ARENA_ARRAY(a, int, (size_t)n_families);
    for (int f = 0; f < n_families; f++)
        (*group)[f] = -1;
    for (int i = 0; i < l->n; i++) {
        const struct p2_example *it = &l->list[i];
        if ((*group)[it->family] < 0 && may_teach(it))
            (*group)[it->family] = n++ % GROUPS_MAX;
    }
    return n;
}

static struct p2_contest hold_contest(struct arena *a, const struct p2_examples *l, int n_families,
                                      uint64_t seed)
{
    struct p2_contest out = { .closed_form = (double)NAN, .network = (double)NAN };
    bool *held = ARENA_ARRAY(a, bool, (size_t)n_families);
    struct score all = { 0 };
    int *group, n_groups, n_won = 0;

    out.n_families = deal(a, l, n_families, &group);
    n_groups = out.n_families < GROUPS_MAX ? out.n_families : GROUPS_MAX;
    if (out.n_families < FAMILIES_MIN)
        return out;
    for (int g = 0; g < n_groups; g++) {
        struct p2 p = { 0 };
        for (int f = 0; f < n_families; f++)
            held[f] = group[f] == g;
        relations_learn(l, held, p.of);
        gain_net_train(l, held, p.of, seed, &p.net);
        struct score one = compare(l, held, &p, seed);
        all.closed_form += one.closed_form;
        all.network += one.network;
        all.n += one.n;
        n_won += one.network < one.closed_form;
        gain_net_release(&p.net);
    }
    out.closed_form = all.closed_form / all.n;
    out.network = all.network / all.n;
    double n_needed = out.n_families < FAMILIES_FEW ? n_groups : WIN_GROUPS * n_groups;
    out.is_promoted = out.network < (1 - WIN_MEAN) * out.closed_form && n_won >= n_needed;
    return out;
}

struct p2 *p2_train(const struct examples *x, const struct p1 *p1, uint64_t seed)
{
    struct p2 *p = calloc(1, sizeof *p);
    struct p2_examples examples;
    struct arena a;

    assert(p);
    arena_init(&a);
    p2_examples_make(&a, x, p1, &examples);
    p->contest = hold_contest(&a, &examples, x->n_families, seed);
    relations_learn(&examples, NULL, p->of);
    gain_net_train(&examples, NULL, p->of, seed, &p->net);
    p2_examples_release(&examples);
    arena_release(&a);
    return p;
}

void p2_destroy(struct p2 *p)
{
    if (p)
        gain_net_release(&p->net);
    free(p);
}

struct p2_contest p2_contest(const struct p2 *p)
{
    if (!p)
        return (struct p2_contest){ .closed_form = (double)NAN, .network = (double)NAN };
    return p->contest;
}

/* ---- bytes ---- */

enum { RELATION_NUMBERS = sizeof(struct relations) / sizeof(double) };
static_assert(sizeof(struct relations) == 10 * sizeof(double), "all numbers, side by side");

void p2_save(const struct p2 *p, struct weights *to)
{
    bool was_held = isfinite(p->contest.closed_form);
    double contest[4] = { was_held ? p->contest.closed_form : -1,
                          was_held ? p->contest.network : -1, p->contest.n_families,
                          p->contest.is_promoted };
    double numbers[REGIMES * RELATION_NUMBERS];

    memcpy(numbers, p->of, sizeof numbers);
    weights_put_doubles(to, "p2 relations", REGIMES, RELATION_NUMBERS, numbers);
    weights_put_doubles(to, "p2 contest", 1, 4, contest);
    weights_put(to, "p2 network", 1, p->net.params.n, p->net.params.w);
}

int p2_load(const struct weights *from, struct p2 **out, struct err *e)
{
    struct weights_reader in = { from, e, 0 };
    struct p2 *p = calloc(1, sizeof *p);

    assert(p);
    gain_net_init(&p->net, NULL);
    const double *numbers = weights_doubles(&in, "p2 relations", REGIMES, RELATION_NUMBERS);
    const double *contest = weights_doubles(&in, "p2 contest", 1, 4);
    const float *net = weights_floats(&in, "p2 network", 1, p->net.params.n);
    if (in.rc == 0) {
        memcpy(p->of, numbers, sizeof p->of);
        memcpy(p->net.params.w, net, (size_t)p->net.params.n * sizeof *net);
        p->contest = (struct p2_contest){
            .closed_form = contest[0] < 0 ? (double)NAN : contest[0],
            .network = contest[1] < 0 ? (double)NAN : contest[1],
            .n_families = (int)fmin(fmax(contest[2], 0), 1e9),
            .is_promoted = contest[3] > 0,
        };
    }
    for (int r = 0; r < REGIMES && in.rc == 0; r++)
        if (!relations_are_sound(&p->of[r]))
            in.rc = err_set(e, EINVAL, "p2 relations: row %d is no correlation; train again", r);
    if (in.rc < 0) {
        p2_destroy(p);
        return in.rc;
    }
    *out = p;
    return 0;
}

#include "refine/p2.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "refine/p2_inner.h"

const char *const p2_way_names[P2_WAYS] = {
    [P2_NONE] = "no update", [P2_SHIFT] = "shift",   [P2_CLOSED] = "closed form",
    [P2_NETWORK] = "p2",     [P2_CHAMPION] = "gogh",
};

/* ---- what is believed before ---- */

/* All numbers stand in one row, those of P2's targets first. */
static size_t count_numbers(int n_types, int n_neighbours, bool with_partner)
{
    return (size_t)n_types * (4 + (with_partner ? 5 : 3) * (size_t)n_neighbours);
}

void p2_estimates_make(struct arena *a, int n_types, int n_neighbours, bool with_partner,
                       struct p2_estimates *out)
{
    size_t n = (size_t)n_types, n_cells = n * (size_t)n_neighbours;

    float *at = ARENA_ARRAY(a, float, count_numbers(n_types, n_neighbours, with_partner));

    *out = (struct p2_estimates){
        .n_types = n_types,
        .n_neighbours = n_neighbours,
        .neighbour = ARENA_ARRAY(a, int, (size_t)n_neighbours),
        .alone = at,
        .own = at + n,
        .alone_sd = at + n + n_cells,
        .own_sd = at + 2 * n + n_cells,
        .pair_sd = at + 2 * n + 2 * n_cells,
        .watts = at + 2 * n + 3 * n_cells,
        .watts_sd = at + 3 * n + 3 * n_cells,
        .partner = with_partner ? at + 4 * n + 3 * n_cells : NULL,
        .partner_sd = with_partner ? at + 4 * n + 4 * n_cells : NULL,
    };
    for (int j = 0; j < n_neighbours; j++)
        out->neighbour[j] = j;
}

void p2_estimates_copy(struct arena *a, const struct p2_estimates *from, struct p2_estimates *out)
{
    p2_estimates_make(a, from->n_types, from->n_neighbours, from->partner, out);
    out->context = from->context;
    out->workload = from->workload;
    out->regime = from->regime;
    memcpy(out->neighbour, from->neighbour, (size_t)from->n_neighbours * sizeof *out->neighbour);
    memcpy(out->alone, from->alone,
           count_numbers(from->n_types, from->n_neighbours, from->partner) * sizeof *out->alone);
}

/* p1_beside, or the other way round p1_partner. */
typedef void ask_f(const struct p1_context *s, int workload, int type, int from, int to,
                   float *ln_r, float *sd);

/* All neighbours on one type; runs of them in one question. */
static void ask_all(ask_f *ask, const struct p2_estimates *b, int type, float *ln_r, float *sd)
{
    int last;

    for (int j = 0; j < b->n_neighbours; j = last) {
        int from = b->neighbour[j];
        for (last = j + 1; last < b->n_neighbours && b->neighbour[last] == from + last - j;)
            last++;
        ask(b->context, b->workload, type, from, from + last - j, ln_r + j, sd + j);
    }
}

void p2_estimates_from_p1(const struct p1_context *s, int workload, struct p2_estimates *out)
{
    int n = out->n_neighbours;

    out->context = s;
    out->workload = workload;
    for (int g = 0; g < out->n_types; g++) {
        struct p1_alone alone = p1_alone(s, workload, g);
        out->regime = alone.regime;
        out->alone[g] = alone.ln_speed;
        out->alone_sd[g] = alone.ln_speed_sd;
        out->watts[g] = alone.ln_watts;
        out->watts_sd[g] = alone.ln_watts_sd;
        ask_all(p1_beside, out, g, out->own + g * n, out->own_sd + g * n);
        if (out->partner)
            ask_all(p1_partner, out, g, out->partner + g * n, out->partner_sd + g * n);
        float cross = (float)p1_cross(s, alone.regime);
        for (int c = g * n; c < (g + 1) * n; c++) {
            float z = out->alone_sd[g], r = out->own_sd[c];
            out->pair_sd[c] = sqrtf(z * z + r * r + 2 * cross * z * r);
        }
    }
}

/* ---- what is said of targets ---- */

/* Corrections of all targets, and the part of their variances that is gone; of a pair, where
 * there are pairs, of the sum of both parts.
 */
struct correction {
    double *shift;    // (n_targets)
    double *drop;     // (n_targets)
    float *delta;     // (n_targets) ln of what the network makes of a variance; NULL: nothing
};

static void correction_make(struct arena *a, const struct evidence *v, struct correction *out)
{
    *out = (struct correction){ .shift = ARENA_ARRAY(a, double, (size_t)v->n_targets),
                                .drop = ARENA_ARRAY(a, double, (size_t)v->n_targets) };
}

/* The sum of gains times surprises; gains are bent by 'gamma', where there is a network. */
static void conclude(struct arena *a, const struct evidence *v, const struct gain_pass *bent,
                     struct correction *out)
{
    size_t n = (size_t)v->n_targets;

    correction_make(a, v, out);
    for (int o = 0; o < v->n; o++)
        for (size_t t = 0; t < n; t++) {
            size_t at = (size_t)o * n + t;
            double bend = bent ? 1 + (double)bent->gamma[at] : 1;
            out->shift[t] += v->gain[at] * bend * v->y[o];
            out->drop[t] += v->white[at] * v->white[at];
        }
    out->delta = bent ? bent->delta : NULL;
}

/* The mean surprise everywhere. What remains of a variance is what the covariance says of the
 * difference; at most what was.
 */
static void conclude_shift(struct arena *a, const struct evidence *v, struct correction *out)
{
    double mean = 0, var = 0;
    size_t n = (size_t)v->n_targets;

    correction_make(a, v, out);
    for (int o = 0; o < v->n; o++)
        mean += v->y[o] / v->n;
    for (int i = 0; i < v->n * v->n; i++)
        var += v->k_oo[i] / (v->n * v->n);
    for (size_t t = 0; t < n; t++) {
        double with = 0;
        for (int o = 0; o < v->n; o++)
            with += v->k[(size_t)o * n + t] / v->n;
        out->shift[t] = mean;
        out->drop[t] = 2 * with - var;
    }
}

static float remaining_sd(double sd, double drop, const float *delta)
{
    double var = fmax(sd * sd - drop, 0) * (delta ? exp((double)*delta) : 1);

    return (float)fmin(sqrt(var), sd);
}

static void apply(const struct correction *v, int n, float *mean, float *sd)
{
    for (int t = 0; t < n; t++) {
        mean[t] += (float)v->shift[t];
        sd[t] = remaining_sd((double)sd[t], v->drop[t], v->delta ? &v->delta[t] : NULL);
    }
}

/* ---- speeds ---- */

static void apply_pairs(const struct evidence *v, const struct correction *what,
                        struct p2_estimates *b)
{
    for (int t = b->n_types; t < v->n_targets; t++) {
        float *sd = &b->pair_sd[t - b->n_types];
        double drop = 0;
        for (int o = 0; o < v->n; o++) {
            double whole = p2_whole(b, v->white + (size_t)o * (size_t)v->n_targets, t);
            drop += whole * whole;
        }
        *sd = remaining_sd((double)*sd, drop, what->delta ? &what->delta[t] : NULL);
    }
}

/* With one shift for all, what a neighbour does stays as it was. */
static void shift_speeds(struct arena *a, const struct evidence *v, struct p2_estimates *b)
{
    struct correction what;

    conclude_shift(a, v, &what);
    for (int g = 0; g < b->n_types; g++)
        for (int c = g * b->n_neighbours; c < (g + 1) * b->n_neighbours; c++) {
            double with = 0;
            for (int o = 0; o < v->n; o++)
                with += v->k[(size_t)o * (size_t)v->n_targets + (size_t)(b->n_types + c)] / v->n;
            b->pair_sd[c] = remaining_sd((double)b->pair_sd[c], what.drop[g] + 2 * with, NULL);
        }
    apply(&what, b->n_types, b->alone, b->alone_sd);
}

void p2_estimates_widen(struct p2_estimates *b, float by)
{
    for (int g = 0; g < b->n_types; g++)
        b->alone_sd[g] *= by;
    for (int c = 0; c < b->n_types * b->n_neighbours; c++) {
        b->own_sd[c] *= by;
        b->pair_sd[c] *= by;
    }
}

static int refine_speeds(struct arena *a, const struct p2 *p, enum p2_way way,
                         const struct p2_sightings *seen, struct p2_estimates *b, struct err *e)
{
    struct evidence v;
    struct correction what;
    struct gain_pass bent;

    evidence_of_speeds(a, p2_relations(p, b), seen, b, &v);
    if (v.n == 0)
        return 0;
    if (way == P2_SHIFT) {
        shift_speeds(a, &v, b);
        return 0;
    }
    double doubt = 1;
    int rc = b->context ? evidence_doubt(a, &v, &doubt, e) : 0;    // the roofline was never sure
    if (rc == 0)
        rc = evidence_weigh(a, &v, e);
    if (rc < 0)
        return rc;
    p2_estimates_widen(b, (float)sqrt(doubt));
    bool is_bent = way == P2_NETWORK && p && b->context;
    if (is_bent)
        gain_net_forward(a, &p->net, &v, b, &bent);
    conclude(a, &v, is_bent ? &bent : NULL, &what);
    apply_pairs(&v, &what, b);
    apply(&what, v.n_targets, b->alone, b->alone_sd);
    return 0;
}

/* ---- the others ---- */

static int refine_others(struct arena *a, enum p2_way way, struct evidence *v, float *mean,
                         float *sd, struct err *e)
{
    struct correction what;
    int rc = v->n && way != P2_SHIFT ? evidence_weigh(a, v, e) : 0;

    if (v->n == 0 || rc < 0)
        return rc;
    if (way == P2_SHIFT)
        conclude_shift(a, v, &what);
    else
        conclude(a, v, NULL, &what);
    apply(&what, v->n_targets, mean, sd);
    return 0;
}

/* Nobody runs faster for having a neighbour; only where it was seen is it left standing. */
static void clip(struct arena *a, const struct p2_estimates *b, const struct p2_sightings *seen,
                 bool is_partner, float *ln_r)
{
    int n_cells = b->n_types * b->n_neighbours;
    bool *is_seen = ARENA_ARRAY(a, bool, (size_t)n_cells);

    for (int i = 0; i < seen->n; i++) {
        const struct p2_observation *it = &seen->list[i];
        if (it->neighbour >= 0 && !isnan(is_partner ? it->ln_r_partner : it->ln_speed))
            is_seen[it->type * b->n_neighbours + it->neighbour] = true;
    }
    for (int c = 0; c < n_cells; c++)
        if (!is_seen[c])
            ln_r[c] = fminf(ln_r[c], 0);
}

int p2_refine(struct arena *a, const struct p2 *p, enum p2_way way, const struct p2_sightings *seen,
              struct p2_estimates *b, struct err *e)
{
    const struct relations *r = p2_relations(p, b);
    struct evidence v;

    if (way == P2_NONE || seen->n == 0)
        return 0;
    if (way == P2_CHAMPION)
        way = p && p->contest.is_promoted ? P2_NETWORK : P2_CLOSED;
    evidence_of_watts(a, r, seen, b, &v);
    int rc = refine_others(a, way, &v, b->watts, b->watts_sd, e);
    if (rc == 0 && b->partner) {
        evidence_of_partners(a, r, seen, b, &v);
        rc = refine_others(a, way, &v, b->partner, b->partner_sd, e);
    }
    if (rc == 0)
        rc = refine_speeds(a, p, way, seen, b, e);
    if (rc == 0 && b->context)
        clip(a, b, seen, false, b->own);
    if (rc == 0 && b->context && b->partner)
        clip(a, b, seen, true, b->partner);
    return rc;
}

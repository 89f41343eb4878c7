#include "sim/eval/fold.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/hierarchical/posterior.h"
#include "sim/eval/cells.h"
#include "sim/eval/lowrank.h"
#include "sim/eval/score.h"

const char *eval_method_name(int method)
{
    if (method < P1_MEMBERS)
        return p1_member_names[method];
    if (method == EVAL_HIERARCHICAL)
        return "hierarchical";
    return method == EVAL_LOW_RANK ? "low-rank" : p2_way_names[method - P1_MEMBERS];
}

/* A fold while it runs. */
struct fold_run {
    const struct eval_setting *s;
    const struct eval_fold *fold;
    struct eval_part *out;
    struct arena arena;       // as long as the fold
    struct arena newcomer;    // as long as one workload
    struct arena scratch;     // as long as one method's answer
    struct holdout view;
    struct p1 *p1;
    struct p2 *p2;
    struct p1_context *context;
    struct lowrank own, partner;    // rows: the workload; the one that does it to others
    struct posterior *posterior[EVAL_READS];    // of what the training may see
};

/* The workload that is scored, and what is revealed of it. */
struct newcomer {
    int workload;
    const struct eval_cells *cells;
    struct p2_estimates prior;
    struct p2_observation
        *seen;      // (n_known + n_at) known ones, then revealed ones; the newest last
    int n_known;    // on other types, when a type is held out
    int *at;        // (n_at) indices of the revealed cells, in order
    int n_at;
    bool *is_out;    // (cells->n) revealed by now
};

/* ---- training ---- */

bool eval_fold_scores(const struct eval_setting *s, const struct eval_fold *fold, int w)
{
    const struct eval_cells *c = &s->cells[w];

    if ((fold->workload >= 0 && w != fold->workload) ||
        (fold->family >= 0 && s->x.family[w] != fold->family))
        return false;
    for (int i = 0; i < c->n; i++)
        if (c->cell[i].neighbour < 0 && eval_cell_counts(&c->cell[i], fold->type))
            return true;
    return false;
}

static void hide(struct fold_run *r)
{
    const struct examples *x = &r->s->x;
    bool *is_held = ARENA_ARRAY(&r->arena, bool, (size_t)x->n_workloads);
    bool *is_held_type = ARENA_ARRAY(&r->arena, bool, (size_t)x->n_types);

    for (int w = 0; w < x->n_workloads; w++)
        is_held[w] = w == r->fold->workload || x->family[w] == r->fold->family;
    if (r->fold->type >= 0)
        is_held_type[r->fold->type] = true;
    r->view = (struct holdout){ is_held, is_held_type };
}

static int learn(struct fold_run *r, struct err *e)
{
    const struct examples *x = &r->s->x;
    struct p1_options o = { .seed = r->s->o->seed, .n_nets = r->s->o->n_nets, .all_members = true };
    int rc = p1_train(x, &r->view, &o, &r->p1, e);

    if (rc < 0)
        return rc;
    r->p2 = p2_train(x, r->p1, r->s->o->seed);
    r->context = p1_context_create(r->p1, x->n_types);
    for (int w = 0; w < x->n_workloads; w++) {
        int index = p1_context_add(r->context, &x->who[w], examples_at(x, w, 0));
        assert(index == w);
    }
    return 0;
}

/* ---- low rank ---- */

static int column_of(const struct fold_run *r, int type, int neighbour)
{
    return type * (r->s->x.n_workloads + 1) + neighbour + 1;
}

static int n_columns(const struct fold_run *r)
{
    return r->s->x.n_types * (r->s->x.n_workloads + 1);
}

/* Add the cells of 'w' that the training may see: to 'own' its speeds, to 'partner' what it does
 * to others.
 */
static void take_entries(const struct fold_run *r, int w, struct lowrank_entry *own, int *n_own,
                         struct lowrank_entry *partner, int *n_partner)
{
    const struct eval_cells *cells = &r->s->cells[w];

    for (int i = 0; i < cells->n; i++) {
        const struct eval_cell *c = &cells->cell[i];
        int column = column_of(r, c->type, c->neighbour);
        if (!holdout_shows(&r->view, w, c->type, c->neighbour))
            continue;
        if (!isnan(c->ln_speed))
            own[(*n_own)++] = (struct lowrank_entry){ w, column, c->ln_speed };
        if (!isnan(c->ln_r_partner))
            partner[(*n_partner)++] = (struct lowrank_entry){ w, column, c->ln_r_partner };
    }
}

static void learn_low_rank(struct fold_run *r)
{
    const struct examples *x = &r->s->x;
    int(*group)[2] = arena_array(&r->arena, (size_t)n_columns(r), sizeof *group);
    size_t n = 0;
    int n_own = 0, n_partner = 0;

    for (int w = 0; w < x->n_workloads; w++)
        n += (size_t)r->s->cells[w].n;
    struct lowrank_entry *own = ARENA_ARRAY(&r->arena, struct lowrank_entry, n),
                         *partner = ARENA_ARRAY(&r->arena, struct lowrank_entry, n);
    for (int c = 0; c < n_columns(r); c++) {
        int type = c / (x->n_workloads + 1), beside = c % (x->n_workloads + 1);
        group[c][0] = 2 * type + (beside > 0);    // the same type, alone or not
        group[c][1] = beside;                     // the same neighbour
    }
    for (int w = 0; w < x->n_workloads; w++)
        take_entries(r, w, own, &n_own, partner, &n_partner);
    lowrank_fit(&r->arena, x->n_workloads, n_columns(r), group, own, n_own, r->s->o->seed, &r->own);
    lowrank_fit(&r->arena, x->n_workloads, n_columns(r), group, partner, n_partner, r->s->o->seed,
                &r->partner);
}

/* Beliefs without uncertainty: means only. */
static void p2_estimates_bare(struct arena *a, const struct p2_estimates *like,
                              struct p2_estimates *out)
{
    size_t n = (size_t)like->n_types * (size_t)like->n_neighbours;

    *out = (struct p2_estimates){ .n_types = like->n_types, .n_neighbours = like->n_neighbours };
    out->alone = ARENA_ARRAY(a, float, (size_t)like->n_types);
    out->own = ARENA_ARRAY(a, float, n);
    out->partner = ARENA_ARRAY(a, float, n);
}

static void ask_low_rank(struct fold_run *r, const struct newcomer *n, int n_seen,
                         struct p2_estimates *b)
{
    struct arena *a = &r->scratch;
    struct lowrank_entry *own = ARENA_ARRAY(a, struct lowrank_entry, (size_t)n_seen),
                         *partner = ARENA_ARRAY(a, struct lowrank_entry, (size_t)n_seen);
    double *speed = ARENA_ARRAY(a, double, (size_t)n_columns(r)),
           *ln_r = ARENA_ARRAY(a, double, (size_t)n_columns(r));
    int n_partner = 0;

    for (int i = 0; i < n_seen; i++) {
        const struct p2_observation *s = &n->seen[i];
        int column = column_of(r, s->type, s->neighbour);
        own[i] = (struct lowrank_entry){ 0, column, s->ln_speed };
        if (!isnan(s->ln_r_partner))
            partner[n_partner++] = (struct lowrank_entry){ 0, column, s->ln_r_partner };
    }
    lowrank_complete(&r->own, own, n_seen, speed);
    lowrank_complete(&r->partner, partner, n_partner, ln_r);
    p2_estimates_bare(a, &n->prior, b);
    for (int g = 0; g < b->n_types; g++) {
        double alone = speed[column_of(r, g, -1)];
        b->alone[g] = (float)alone;
        for (int i = 0; i < b->n_neighbours; i++) {
            b->own[g * b->n_neighbours + i] = (float)fmin(speed[column_of(r, g, i)] - alone, 0);
            b->partner[g * b->n_neighbours + i] = (float)fmin(ln_r[column_of(r, g, i)], 0);
        }
    }
}

/* ---- the hierarchical model ---- */

static int learn_readings(struct fold_run *r, int what, struct err *e)
{
    const struct campaign_readings *all = &r->s->read[what];
    struct reading *list = ARENA_ARRAY(&r->arena, struct reading, (size_t)all->n);
    struct campaign_readings shown = { .site = all->site, .list = list };
    struct hyper h;
    struct hyper_scale scale;

    for (int i = 0; i < all->n; i++) {
        const struct reading *read = &all->list[i];
        if (holdout_shows(&r->view, read->job, read->type, read->neighbour))
            list[shown.n++] = *read;
    }
    int rc = hyper_refit(&r->s->hyper[what], &shown, r->s->o->seed, &h, e);
    if (rc == 0)
        rc = hyper_calibrate(&h, &shown, &scale, e);
    if (rc == 0)
        rc = posterior_create(all->site, &h, scale, list, shown.n, &r->posterior[what], e);
    return rc;
}

static int learn_hierarchical(struct fold_run *r, struct err *e)
{
    int rc = 0;

    for (int what = 0; what < EVAL_READS && rc == 0; what++)
        rc = learn_readings(r, what, e);
    return rc;
}

static double noise_of(double variance)
{
    return hypot(sqrt(variance), READING_NOISE);
}

/* What was seen of a newcomer as readings: its own speed, what it does to its neighbour, watts. */
static int read_off(struct fold_run *r, int workload, const struct p2_observation *seen,
                    struct err *e)
{
    const struct site_on *on = site_on(&r->s->site, workload, seen->type);
    struct reading own = { .of = seen->neighbour < 0 ? READ_ALONE : READ_PACKED,
                           .type = seen->type,
                           .job = workload,
                           .neighbour = seen->neighbour,
                           .value = (float)(seen->ln_speed - (double)on->ln_reference),
                           .noise = (float)noise_of(seen->ln_speed_var) };
    const struct reading partner = { .of = READ_SLOWDOWN,
                                     .type = seen->type,
                                     .job = seen->neighbour,
                                     .neighbour = workload,
                                     .value = (float)seen->ln_r_partner,
                                     .noise = (float)noise_of(seen->ln_r_partner_var) };
    int rc = posterior_add(r->posterior[EVAL_SPEEDS], &own, e);

    if (rc == 0 && !isnan(seen->ln_r_partner))
        rc = posterior_add(r->posterior[EVAL_SPEEDS], &partner, e);
    if (rc == 0 && seen->neighbour < 0 && !isnan(seen->ln_watts)) {
        own.value = (float)(seen->ln_watts - (double)on->ln_watts);
        own.noise = (float)CATALOG_NOISE;
        rc = posterior_add(r->posterior[EVAL_WATTS_ALONE], &own, e);
    }
    return rc;
}

static void ask_pairs(struct fold_run *r, const struct newcomer *n, struct p2_estimates *b)
{
    struct posterior *p = r->posterior[EVAL_SPEEDS];
    int w = n->workload;

    for (int i = 0; i < n->cells->n; i++) {
        const struct eval_cell *c = &n->cells->cell[i];
        int at = c->type * b->n_neighbours + c->neighbour;
        if (c->neighbour < 0)
            continue;
        struct cell_belief own = posterior_ask(p, READ_SLOWDOWN, c->type, w, c->neighbour);
        struct cell_belief partner = posterior_ask(p, READ_SLOWDOWN, c->type, c->neighbour, w);
        b->own[at] = (float)fmin(own.mean, 0);
        b->own_sd[at] = (float)own.sd;
        b->pair_sd[at] = (float)posterior_ask(p, READ_PACKED, c->type, w, c->neighbour).sd;
        b->partner[at] = (float)fmin(partner.mean, 0);
        b->partner_sd[at] = (float)partner.sd;
    }
}

static void ask_hierarchical(struct fold_run *r, const struct newcomer *n, struct p2_estimates *b)
{
    bool has_watts = r->s->read[EVAL_WATTS_ALONE].n > 0;

    p2_estimates_make(&r->scratch, r->s->x.n_types, r->s->x.n_workloads, true, b);
    for (int g = 0; g < b->n_types; g++) {
        const struct site_on *on = site_on(&r->s->site, n->workload, g);
        struct cell_belief alone =
            posterior_ask(r->posterior[EVAL_SPEEDS], READ_ALONE, g, n->workload, -1);
        struct cell_belief watts =
            posterior_ask(r->posterior[EVAL_WATTS_ALONE], READ_ALONE, g, n->workload, -1);
        b->alone[g] = (float)((double)on->ln_reference + alone.mean);
        b->alone_sd[g] = (float)alone.sd;
        b->watts[g] = (float)((double)on->ln_watts + watts.mean);
        b->watts_sd[g] = (float)watts.sd;
    }
    b->watts = has_watts ? b->watts : NULL;
    ask_pairs(r, n, b);
}

/* With what was revealed; on a type that is held out, what was measured on others is known from the
 * beginning.
 */
static int refine_hierarchical(struct fold_run *r, const struct newcomer *n, int n_seen,
                               struct p2_estimates *b, struct err *e)
{
    int n_before[EVAL_READS], rc = 0;

    for (int i = 0; i < EVAL_READS; i++)
        n_before[i] = posterior_n(r->posterior[i]);
    for (int i = n->n_known; i < n_seen && rc == 0; i++)
        rc = read_off(r, n->workload, &n->seen[i], e);
    if (rc == 0)
        ask_hierarchical(r, n, b);
    for (int i = 0; i < EVAL_READS; i++)
        posterior_truncate(r->posterior[i], n_before[i]);
    return rc < 0 ? rc : 1;
}

/* ---- what each method believes ---- */

/* A member that knows nothing of neighbours leaves NaN there. */
static bool ask_member(struct fold_run *r, const struct newcomer *n, enum p1_member m,
                       struct p2_estimates *b)
{
    p2_estimates_bare(&r->scratch, &n->prior, b);
    for (int g = 0; g < b->n_types; g++)
        if (!p1_ask_alone(r->context, m, n->workload, g, &b->alone[g]))
            return false;
    for (int i = 0; i < n->cells->n; i++) {
        const struct eval_cell *c = &n->cells->cell[i];
        int g = c->type, at = g * b->n_neighbours + c->neighbour;
        if (c->neighbour < 0)
            continue;
        if (!p1_ask_beside(r->context, m, n->workload, g, c->neighbour, &b->own[at]))
            b->own[at] = NAN;
        if (!p1_ask_beside(r->context, m, c->neighbour, g, n->workload, &b->partner[at]))
            b->partner[at] = NAN;
    }
    return true;
}

/* Of the first 'n_seen' sightings those that the daemon would correct by, as refine.c chooses
 * them: the lonely ones, then the newest. '*count' gets how many.
 */
#define SEEN_MAX 48

static const struct p2_observation *that_tell(struct arena *a, const struct newcomer *n, int n_seen,
                                              int *count)
{
    struct p2_observation *out;

    *count = n_seen;
    if (n_seen <= SEEN_MAX)
        return n->seen;
    *count = 0;
    out = ARENA_ARRAY(a, struct p2_observation, SEEN_MAX);
    for (int is_alone = 1; is_alone >= 0; is_alone--)
        for (int i = n_seen - 1; i >= 0 && *count < SEEN_MAX; i--)
            if ((n->seen[i].neighbour < 0) == is_alone)
                out[(*count)++] = n->seen[i];
    return out;
}

/* What 'method' believes after 'k' measurements, in the scratch arena. 1: so; 0: the method has
 * nothing to say here, as a member after a measurement, or an update before one.
 */
static int believe(struct fold_run *r, const struct newcomer *n, int method, int k,
                   struct p2_estimates *b, struct err *e)
{
    int n_seen = n->n_known + (k < n->n_at ? k : n->n_at);
    enum p2_way way = (enum p2_way)(method - P1_MEMBERS);

    if (method < P1_ENSEMBLE)
        return k == 0 && ask_member(r, n, (enum p1_member)method, b);
    if (method == EVAL_LOW_RANK) {
        ask_low_rank(r, n, n_seen, b);
        return 1;
    }
    if (method == EVAL_HIERARCHICAL)
        return refine_hierarchical(r, n, n_seen, b, e);
    if (method == P1_ENSEMBLE ? k > 0 : k == 0 && r->fold->type < 0 && way != P2_CHAMPION)
        return 0;
    p2_estimates_copy(&r->scratch, &n->prior, b);
    if (method == P1_ENSEMBLE || n_seen == 0)
        return 1;
    const struct p2_observation *seen = that_tell(&r->scratch, n, n_seen, &n_seen);
    int rc = p2_refine(&r->scratch, r->p2, way, &(struct p2_sightings){ n_seen, seen }, b, e);
    return rc < 0 ? rc : 1;
}

/* ---- predictions and their scores ---- */

struct prediction_list {
    struct eval_prediction *at;
    int n;
    struct eval_prediction like;    // what all have in common
};

/* 'ln' (NaN: nothing) and 'sd' (NULL: none) are what is believed of the logarithm; predicted is
 * the median, whoever predicts.
 */
static void predict(struct prediction_list *l, enum eval_quantity q, double ln_truth, double ln,
                    const float *sd)
{
    struct eval_prediction p = l->like;

    if (isnan(ln_truth) || isnan(ln))
        return;
    p.quantity = q;
    p.truth = exp(ln_truth);
    p.mean = exp(ln);
    p.sd = sd ? (double)*sd : (double)NAN;
    l->at[l->n++] = p;
}

static void predict_cell(const struct eval_cell *c, const struct p2_estimates *b,
                         struct prediction_list *l)
{
    int g = c->type, at = g * b->n_neighbours + c->neighbour;

    l->like.type = g;
    l->like.neighbour = c->neighbour;
    if (c->neighbour < 0) {
        predict(l, EVAL_ISOLATED, c->ln_speed, (double)b->alone[g],
                b->alone_sd ? &b->alone_sd[g] : NULL);
        if (b->watts)
            predict(l, EVAL_WATTS, c->ln_watts, (double)b->watts[g], &b->watts_sd[g]);
        return;
    }
    predict(l, EVAL_PAIR, c->ln_speed, (double)b->alone[g] + (double)b->own[at],
            b->pair_sd ? &b->pair_sd[at] : NULL);
    predict(l, EVAL_SLOWDOWN, c->ln_r, (double)b->own[at], b->own_sd ? &b->own_sd[at] : NULL);
    predict(l, EVAL_PARTNER, c->ln_r_partner, (double)b->partner[at],
            b->partner_sd ? &b->partner_sd[at] : NULL);
}

static void score(struct fold_run *r, const struct prediction_list *l, int at_k, int method)
{
    struct eval_part *out = r->out;

    eval_sum_add(&r->scratch, l->at, l->n, &r->out->sums[at_k][method]);
    for (int i = 0; i < l->n && r->s->o->keeps_predictions; i++) {
        GROW(out->predictions, out->n_predictions, out->cap_predictions);
        out->predictions[out->n_predictions++] = l->at[i];
    }
}

static int score_methods(struct fold_run *r, struct newcomer *n, int sequence, int at_k,
                         struct err *e)
{
    int k = r->s->o->k[at_k], rc = 0;

    memset(n->is_out, 0, (size_t)n->cells->n * sizeof *n->is_out);
    for (int i = 0; i < k && i < n->n_at; i++)
        n->is_out[n->at[i]] = true;
    for (int m = 0; m < EVAL_METHODS && rc >= 0; m++) {
        struct p2_estimates b;
        struct prediction_list l = { .like = { .workload = n->workload,
                                               .sequence = sequence,
                                               .k = k,
                                               .method = eval_method_name(m) } };
        arena_reset(&r->scratch);
        rc = believe(r, n, m, k, &b, e);
        if (rc <= 0)
            continue;
        l.at = ARENA_ARRAY(&r->scratch, struct eval_prediction, 3 * (size_t)n->cells->n);
        for (int i = 0; i < n->cells->n; i++)
            if (!n->is_out[i] && (r->fold->type < 0 || n->cells->cell[i].type == r->fold->type))
                predict_cell(&n->cells->cell[i], &b, &l);
        score(r, &l, at_k, m);
    }
    return rc < 0 ? rc : 0;
}

/* ---- what is revealed ---- */

/* The neighbour's slowdown is seen with the pair where its speed alone is known. Of two of a kind
 * there is but one number.
 */
static struct p2_observation sighting_of(const struct fold_run *r, int w, const struct eval_cell *c)
{
    bool with_partner = c->neighbour >= 0 && c->neighbour != w &&
                        holdout_shows(&r->view, c->neighbour, c->type, -1);

    return (struct p2_observation){
        .type = c->type,
        .neighbour = c->neighbour,
        .ln_speed = c->ln_speed,
        .ln_speed_var = c->ln_speed_var,
        .ln_r_partner = with_partner ? c->ln_r_partner : (double)NAN,
        .ln_r_partner_var = with_partner ? c->ln_r_partner_var : (double)NAN,
        .ln_watts = c->ln_watts,
    };
}

/* The most informative of the cells on offer; one alone always stays to be scored. */
static int choose(struct fold_run *r, const struct newcomer *n, const bool *is_offered, int *chosen,
                  struct err *e)
{
    const struct eval_cells *cells = n->cells;
    struct p2_observation *allowed;
    int *at, n_alone = 0, n_allowed = 0, n_seen;

    arena_reset(&r->scratch);
    allowed = ARENA_ARRAY(&r->scratch, struct p2_observation, (size_t)cells->n);
    at = ARENA_ARRAY(&r->scratch, int, (size_t)cells->n);
    for (int i = 0; i < cells->n; i++)
        n_alone += !n->is_out[i] && cells->cell[i].neighbour < 0 &&
                   eval_cell_counts(&cells->cell[i], r->fold->type);
    for (int i = 0; i < cells->n; i++) {
        if (!is_offered[i] || n->is_out[i] || (cells->cell[i].neighbour < 0 && n_alone < 2))
            continue;
        allowed[n_allowed] = (struct p2_observation){ .type = cells->cell[i].type,
                                                      .neighbour = cells->cell[i].neighbour };
        at[n_allowed++] = i;
    }
    const struct p2_observation *seen = that_tell(&r->scratch, n, n->n_known + n->n_at, &n_seen);
    int best = p2_choose(&r->scratch, r->p2, &n->prior, &(struct p2_sightings){ n_seen, seen },
                         &(struct p2_sightings){ n_allowed, allowed }, NULL, e);
    *chosen = best < 0 ? -1 : at[best];
    return best < -1 ? best : 0;
}

/* The sequence's measurements, as many as the largest k. */
static int reveal(struct fold_run *r, struct newcomer *n, int sequence, struct err *e)
{
    const struct eval_options *o = r->s->o;
    bool *is_offered = ARENA_ARRAY(&r->newcomer, bool, (size_t)n->cells->n);
    const char *purpose = arena_printf(&r->newcomer, "eval %s %d",
                                       r->s->catalog->workloads[n->workload].name, sequence);
    struct rng chance;
    int at, rc = 0;

    rng_init(&chance, o->seed, purpose);
    memset(n->is_out, 0, (size_t)n->cells->n * sizeof *n->is_out);
    if (o->choice == EVAL_ACTIVE)
        eval_cells_halve(&r->newcomer, n->cells, r->fold->type, &chance, is_offered);
    for (n->n_at = 0; n->n_at < o->k[o->n_k - 1]; n->n_at++) {
        if (o->choice == EVAL_ACTIVE)
            rc = choose(r, n, is_offered, &at, e);
        else
            at = eval_cells_draw(n->cells, r->s->x.n_types, r->fold->type, n->is_out, &chance);
        if (rc < 0 || at < 0)
            return rc;
        n->is_out[at] = true;
        n->at[n->n_at] = at;
        n->seen[n->n_known + n->n_at] = sighting_of(r, n->workload, &n->cells->cell[at]);
    }
    return 0;
}

/* ---- one workload, one fold ---- */

static void ask_fits(struct fold_run *r, const struct newcomer *n)
{
    struct eval_part *out = r->out;

    for (int i = 0; i < n->cells->n; i++) {
        const struct eval_cell *c = &n->cells->cell[i];
        if (c->neighbour < 0 || !(eval_cell_counts(c, -1) || c->is_unfit) ||
            (r->fold->type >= 0 && c->type != r->fold->type))
            continue;
        GROW_BESIDE(out->chance, out->n_fits, out->cap_fits);
        GROW(out->is_unfit, out->n_fits, out->cap_fits);
        out->chance[out->n_fits] = p1_unfit(r->context, n->workload, c->type, c->neighbour);
        out->is_unfit[out->n_fits++] = c->is_unfit;
    }
}

/* All of the newcomer that was measured on other types, the oldest first. */
static void take_known(struct fold_run *r, struct newcomer *n)
{
    const struct eval_cell *cells = n->cells->cell;
    int *at = ARENA_ARRAY(&r->newcomer, int, (size_t)n->cells->n);

    for (int i = 0; i < n->cells->n; i++) {
        if (cells[i].type == r->fold->type || !eval_cell_counts(&cells[i], -1))
            continue;
        int to = n->n_known++;
        for (; to > 0 && cells[at[to - 1]].last_s > cells[i].last_s; to--)
            at[to] = at[to - 1];
        at[to] = i;
    }
    for (int i = 0; i < n->n_known; i++)
        n->seen[i] = sighting_of(r, n->workload, &cells[at[i]]);
}

static void meet(struct fold_run *r, int w, struct newcomer *n)
{
    const struct eval_options *o = r->s->o;
    const struct examples *x = &r->s->x;
    struct arena *a = &r->newcomer;
    int most = o->k[o->n_k - 1];

    arena_reset(a);
    *n = (struct newcomer){ .workload = w, .cells = &r->s->cells[w] };
    n->seen = ARENA_ARRAY(a, struct p2_observation, (size_t)n->cells->n + (size_t)most);
    n->at = ARENA_ARRAY(a, int, (size_t)most);
    n->is_out = ARENA_ARRAY(a, bool, (size_t)n->cells->n);
    p2_estimates_make(a, x->n_types, x->n_workloads, true, &n->prior);
    p2_estimates_from_p1(r->context, w, &n->prior);
    if (r->fold->type >= 0)
        take_known(r, n);
}

static int score_workload(struct fold_run *r, int w, struct err *e)
{
    const struct eval_options *o = r->s->o;
    struct newcomer n;
    int rc = 0;

    meet(r, w, &n);
    ask_fits(r, &n);
    for (int sequence = 0; sequence < o->n_sequences && rc == 0; sequence++) {
        rc = reveal(r, &n, sequence, e);
        for (int i = 0; i < o->n_k && rc == 0; i++)
            if (o->k[i] > 0 || sequence == 0)    // before the first they are all alike
                rc = score_methods(r, &n, sequence, i, e);
    }
    return rc;
}

int eval_fold_run(const struct eval_setting *s, const struct eval_fold *fold, struct eval_part *out,
                  struct err *e)
{
    struct fold_run r = { .s = s, .fold = fold, .out = out };

    arena_init(&r.arena);
    arena_init(&r.newcomer);
    arena_init(&r.scratch);
    hide(&r);
    int rc = learn(&r, e);
    if (rc == 0)
        rc = learn_hierarchical(&r, e);
    if (rc == 0)
        learn_low_rank(&r);
    for (int w = 0; w < s->x.n_workloads && rc == 0; w++)
        if (eval_fold_scores(s, fold, w))
            rc = score_workload(&r, w, e);
    for (int i = 0; i < EVAL_READS; i++)
        posterior_destroy(r.posterior[i]);
    p1_context_destroy(r.context);
    p2_destroy(r.p2);
    p1_destroy(r.p1);
    arena_release(&r.scratch);
    arena_release(&r.newcomer);
    arena_release(&r.arena);
    return rc;
}

void eval_part_init(struct eval_part *p, int n_k)
{
    *p = (struct eval_part){ 0 };
    p->sums = heap_array((size_t)n_k, sizeof *p->sums);
}

void eval_part_release(struct eval_part *p)
{
    free(p->sums);
    free(p->predictions);
    free(p->chance);
    free(p->is_unfit);
}

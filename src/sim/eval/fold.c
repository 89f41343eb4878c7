#include "sim/eval/fold.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/hierarchical/choose.h"
#include "sim/eval/cells.h"

/* Of a campaign held out, all of a newcomer's cells alone are scored, and so many pairs. */
enum { PAIRS_MOST = 60 };

/* A fold while it runs. */
struct fold_run {
    const struct eval_fold *fold;
    const struct eval_site *s;
    struct eval_part *out;
    struct arena arena;       // as long as what is known of the site
    struct arena newcomer;    // as long as one workload
    struct arena scratch;     // as long as one method's answers
    struct known known;
    int sequence;
};

bool eval_has(const struct eval_options *o, enum eval_method m)
{
    return (o->methods == 0 || (o->methods >> m & 1)) &&
           (m != EVAL_NEAREST || o->split == EVAL_GPU);
}

bool eval_fold_scores(const struct eval_fold *fold, int w)
{
    const struct eval_cells *c = &fold->site->cells[w];

    if ((fold->workload >= 0 && w != fold->workload) ||
        (fold->family >= 0 && fold->site->site->family[w] != fold->family))
        return false;
    for (int i = 0; i < c->n; i++)
        if (c->cell[i].neighbour < 0 && eval_cell_counts(&c->cell[i], fold->type))
            return true;
    return false;
}

/* ---- what is revealed of the site ---- */

static bool is_held(const struct eval_fold *fold, int w)
{
    return w >= 0 && (w == fold->workload || fold->site->site->family[w] == fold->family);
}

static bool is_hidden(const struct eval_fold *fold, int type, int job, int neighbour)
{
    return type == fold->type || is_held(fold, job) || is_held(fold, neighbour);
}

static const char *family_name(const struct fold_run *r)
{
    const struct catalog *c = r->s->catalog;
    int w = 0;

    while (r->s->site->family[w] != r->fold->family)
        w++;
    return c->workloads[w].family ? c->workloads[w].family : c->workloads[w].name;
}

static const struct reading *watts_at(const struct eval_site *s, int type, int job)
{
    const struct campaign_readings *watts = &s->read[LEARN_WATTS];

    for (int i = 0; i < watts->n; i++)
        if (watts->list[i].type == type && watts->list[i].job == job)
            return &watts->list[i];
    return NULL;
}

/* A cell alone shows its watts too. */
static void show(struct fold_run *r, const struct reading *x)
{
    const struct reading *watts = x->neighbour < 0 ? watts_at(r->s, x->type, x->job) : NULL;

    known_show(&r->known, LEARN_SPEEDS, x);
    if (watts)
        known_show(&r->known, LEARN_WATTS, watts);
}

/* 'n' cells without repetition, of both kinds, which 'left' lists; those of a smaller 'n' are among
 * those of a larger one.
 */
static void show_some(struct fold_run *r, const struct reading **left[2], int n_left[2], int n)
{
    struct rng chance;

    rng_init(&chance, r->s->o->seed,
             arena_printf(&r->arena, "eval site %s %s %d", r->s->catalog->campaigns[r->s->campaign],
                          family_name(r), r->sequence));
    for (; n > 0 && n_left[0] + n_left[1] > 0; n--) {
        int kind = rng_uniform(&chance) >= EVAL_ALONE_SHARE;
        kind = n_left[kind] > 0 ? kind : !kind;
        int at = (int)rng_below(&chance, (uint64_t)n_left[kind]);
        show(r, left[kind][at]);
        left[kind][at] = left[kind][--n_left[kind]];
    }
}

/* So many of the site's cells (-1: all, those alone first), and what they make of the model. */
static int meet_site(struct fold_run *r, int n, struct err *e)
{
    const struct eval_options *o = r->s->o;
    const struct campaign_readings *speed = &r->s->read[LEARN_SPEEDS];
    const struct reading **left[2];
    int n_left[2] = { 0, 0 };

    arena_reset(&r->arena);
    known_init(&r->known, &r->arena, r->s->site, r->s->network, speed->n + 2 * o->k[o->n_k - 1]);
    for (int kind = 0; kind < 2; kind++) {
        left[kind] = ARENA_ARRAY(&r->arena, const struct reading *, (size_t)speed->n);
        for (int i = 0; i < speed->n; i++) {
            const struct reading *x = &speed->list[i];
            if ((x->neighbour >= 0) == kind && !is_hidden(r->fold, x->type, x->job, x->neighbour))
                left[kind][n_left[kind]++] = x;
        }
    }
    if (n >= 0)
        show_some(r, left, n_left, n);
    else
        for (int i = 0; i < n_left[0] + n_left[1]; i++)
            show(r, i < n_left[0] ? left[0][i] : left[1][i - n_left[0]]);
    return known_settle(&r->known, &r->arena, r->s->hyper, o->seed, e);
}

/* ---- what is revealed of the newcomer ---- */

/* The workload that is scored. */
struct newcomer {
    int workload;
    const struct eval_cells *cells;
    bool *is_out;        // (cells->n) revealed by now
    bool *is_offered;    // (cells->n) could be chosen
    int *at;             // (n_at) cells in the order in which they are revealed, if drawn
    int n_at, n_out;
    int *order;    // (n_order) cells in the order in which they are scored
    int n_order;
};

static void draw_cells(struct fold_run *r, struct newcomer *n, struct rng *chance)
{
    const struct eval_options *o = r->s->o;
    int most = o->k[o->n_k - 1], at;

    n->at = ARENA_ARRAY(&r->newcomer, int, (size_t)most);
    while (n->n_at < most && (at = eval_cells_draw(n->cells, r->s->site->n_types, r->fold->type,
                                                   n->is_out, chance)) >= 0) {
        n->is_out[at] = true;
        n->at[n->n_at++] = at;
    }
    memset(n->is_out, 0, (size_t)n->cells->n * sizeof *n->is_out);
}

/* Chance of a workload and sequence, at each site another. */
static void begin_sequence(struct fold_run *r, int w, struct rng *chance)
{
    const struct catalog *c = r->s->catalog;
    const char *at = r->s->o->split < EVAL_PARTS
                         ? ""
                         : arena_printf(&r->newcomer, "newcomer %s ", c->campaigns[r->s->campaign]);

    rng_init(chance, r->s->o->seed,
             arena_printf(&r->newcomer, "eval %s%s %d", at, c->workloads[w].name, r->sequence));
}

static void meet(struct fold_run *r, int w, struct newcomer *out)
{
    const struct eval_options *o = r->s->o;
    struct arena *a = &r->newcomer;
    struct rng chance;

    arena_reset(a);
    *out = (struct newcomer){ .workload = w, .cells = &r->s->cells[w] };
    out->is_out = ARENA_ARRAY(a, bool, (size_t)out->cells->n);
    out->is_offered = ARENA_ARRAY(a, bool, (size_t)out->cells->n);
    out->order = ARENA_ARRAY(a, int, (size_t)out->cells->n);
    begin_sequence(r, w, &chance);
    if (o->choice == EVAL_ACTIVE)
        eval_cells_halve(a, out->cells, r->fold->type, &chance, out->is_offered);
    else
        draw_cells(r, out, &chance);
    for (int i = 0; i < out->cells->n; i++) {
        const struct eval_cell *c = &out->cells->cell[i];
        if ((isnan(c->ln_speed) && isnan(c->ln_r_partner)) ||
            (r->fold->type >= 0 && c->type != r->fold->type))
            continue;
        int to = (int)rng_below(&chance, (uint64_t)out->n_order + 1);
        out->order[out->n_order++] = out->order[to];
        out->order[to] = i;
    }
}

/* A newcomer's own speed in a cell. */
static struct reading cell_of(int workload, const struct eval_cell *c)
{
    return (struct reading){ .of = c->neighbour < 0 ? READ_ALONE : READ_PACKED,
                             .type = c->type,
                             .job = workload,
                             .neighbour = c->neighbour };
}

/* One more cell: its speed, alone with its watts; beside a neighbour also what that one suffers,
 * where it is known alone. Of two of a kind there is but one number.
 */
static int reveal_cell(struct fold_run *r, const struct newcomer *n, const struct eval_cell *c,
                       struct err *e)
{
    const struct reading *watts = c->neighbour < 0 ? watts_at(r->s, c->type, n->workload) : NULL;
    struct reading x = cell_of(n->workload, c);

    x.value = (float)(c->ln_speed - (double)site_on(r->s->site, x.job, x.type)->ln_reference);
    x.noise = (float)hypot(sqrt(c->ln_speed_var), READING_NOISE);
    int rc = known_add(&r->known, LEARN_SPEEDS, &x, e);
    if (rc == 0 && watts)
        rc = known_add(&r->known, LEARN_WATTS, watts, e);
    if (rc < 0 || c->neighbour < 0 || isnan(c->ln_r_partner) ||
        is_hidden(r->fold, c->type, c->neighbour, -1))
        return rc;
    x = (struct reading){ READ_SLOWDOWN, c->type, c->neighbour, n->workload, 0, 0 };
    x.value = (float)fmin(fmax(c->ln_r_partner, log(SLOWDOWN_LEAST)), log(SLOWDOWN_MOST));
    x.noise = (float)hypot(sqrt(c->ln_r_partner_var), READING_NOISE);
    return known_add(&r->known, LEARN_SPEEDS, &x, e);
}

/* Pairs among the cells that a choice is to make known. */
enum { TARGET_PAIRS = 64 };

/* What is to be known of the newcomer: all cells alone, and of its pairs some that were drawn. */
static int list_targets(const struct newcomer *n, struct reading *out)
{
    int n_pairs = 0, n_out = 0;

    for (int i = n->n_order - 1; i >= 0; i--) {    // those that are scored stand first
        const struct eval_cell *c = &n->cells->cell[n->order[i]];
        if (!isnan(c->ln_speed) && (c->neighbour < 0 || n_pairs++ < TARGET_PAIRS))
            out[n_out++] = cell_of(n->workload, c);
    }
    return n_out;
}

/* The most informative of the cells on offer; one alone always stays to be scored. */
static int choose(struct fold_run *r, const struct newcomer *n)
{
    const struct eval_cells *cells = n->cells;
    struct reading *candidates, *targets;
    int *at, n_alone = 0, n_candidates = 0;

    arena_reset(&r->scratch);
    candidates = ARENA_ARRAY(&r->scratch, struct reading, (size_t)cells->n);
    targets = ARENA_ARRAY(&r->scratch, struct reading, (size_t)cells->n);
    at = ARENA_ARRAY(&r->scratch, int, (size_t)cells->n);
    for (int i = 0; i < cells->n; i++)
        n_alone += !n->is_out[i] && cells->cell[i].neighbour < 0 &&
                   eval_cell_counts(&cells->cell[i], r->fold->type);
    for (int i = 0; i < cells->n; i++) {
        if (!n->is_offered[i] || n->is_out[i] || (cells->cell[i].neighbour < 0 && n_alone < 2))
            continue;
        candidates[n_candidates] = cell_of(n->workload, &cells->cell[i]);
        candidates[n_candidates].noise = (float)hypot(CATALOG_NOISE, READING_NOISE);
        at[n_candidates++] = i;
    }
    int best = posterior_choose(r->known.of[LEARN_SPEEDS].posterior, candidates, n_candidates,
                                targets, list_targets(n, targets), NULL);
    return best < 0 ? -1 : at[best];
}

/* The next cell to be revealed; -1: nothing is left. */
static int next_cell(struct fold_run *r, const struct newcomer *n)
{
    if (r->s->o->choice == EVAL_ACTIVE)
        return choose(r, n);
    return n->n_out < n->n_at ? n->at[n->n_out] : -1;
}

static int reveal_newcomer(struct fold_run *r, struct newcomer *n, int k, struct err *e)
{
    int at, rc = 0;

    for (; n->n_out < k && rc == 0 && (at = next_cell(r, n)) >= 0; n->n_out++) {
        n->is_out[at] = true;
        rc = reveal_cell(r, n, &n->cells->cell[at], e);
    }
    return rc;
}

/* ---- predictions and their scores ---- */

struct prediction_list {
    struct eval_prediction *at;
    int n;
    struct eval_prediction like;    // what all have in common
};

/* Medians, whatever the method. 'ln_reference' is what the belief is over. */
static void predict(struct prediction_list *l, enum eval_quantity q, double ln_truth,
                    struct cell_belief b, double ln_reference)
{
    struct eval_prediction p = l->like;

    if (isnan(ln_truth) || isnan(b.mean))
        return;
    p.quantity = q;
    p.truth = exp(ln_truth);
    p.mean = exp(b.mean + ln_reference);
    p.sd = b.sd;
    l->at[l->n++] = p;
}

/* Nobody is believed to run faster beside another. */
static struct cell_belief ask_slowdown(const struct known *k, enum eval_method m, int type, int job,
                                       int by)
{
    const struct reading cell = { READ_SLOWDOWN, type, job, by, 0, 0 };
    struct cell_belief b = known_ask(k, m, LEARN_SPEEDS, &cell);

    b.mean = b.mean > 0 ? 0 : b.mean;    // NaN stays
    return b;
}

static void predict_cell(const struct known *k, enum eval_method m, int w,
                         const struct eval_cell *c, struct prediction_list *l)
{
    const struct site_on *on = site_on(k->site, w, c->type);
    const struct reading alone = { READ_ALONE, c->type, w, -1, 0, 0 };
    const struct reading packed = { READ_PACKED, c->type, w, c->neighbour, 0, 0 };
    struct cell_belief speed = known_ask(k, m, LEARN_SPEEDS, &alone);
    double reference = (double)on->ln_reference;

    l->like.type = c->type;
    l->like.neighbour = c->neighbour;
    if (c->neighbour < 0) {
        predict(l, EVAL_ISOLATED, c->ln_speed, speed, reference);
        if (!isnan(c->ln_watts))
            predict(l, EVAL_WATTS, c->ln_watts, known_ask(k, m, LEARN_WATTS, &alone),
                    (double)on->ln_watts);
        return;
    }
    struct cell_belief own = ask_slowdown(k, m, c->type, w, c->neighbour);
    struct cell_belief pair = { speed.mean + own.mean, known_ask(k, m, LEARN_SPEEDS, &packed).sd };
    predict(l, EVAL_PAIR, c->ln_speed, pair, reference);
    predict(l, EVAL_SLOWDOWN, c->ln_r, own, 0);
    predict(l, EVAL_PARTNER, c->ln_r_partner, ask_slowdown(k, m, c->type, c->neighbour, w), 0);
}

static void score(struct fold_run *r, const struct prediction_list *l, struct eval_sum *sum)
{
    struct eval_part *out = r->out;
    double figure[EVAL_FIGURES];

    eval_score(&r->scratch, l->at, l->n, figure);
    eval_sum_add(sum, figure);
    for (int i = 0; i < l->n && r->s->o->keeps_predictions; i++) {
        GROW(out->predictions, out->n_predictions, out->cap_predictions);
        out->predictions[out->n_predictions++] = l->at[i];
    }
}

static void score_method(struct fold_run *r, const struct newcomer *n, int at_n, int at_k,
                         enum eval_method m)
{
    const struct eval_options *o = r->s->o;
    struct prediction_list l = { .like = { .workload = n->workload,
                                           .sequence = r->s->at * o->n_sequences + r->sequence,
                                           .n = o->n[at_n],
                                           .k = o->k[at_k],
                                           .method = eval_method_names[m] } };
    int n_pairs = 0, most = o->n[at_n] < 0 ? INT_MAX : PAIRS_MOST;

    arena_reset(&r->scratch);
    l.at = ARENA_ARRAY(&r->scratch, struct eval_prediction, 3 * (size_t)n->cells->n);
    for (int i = 0; i < n->n_order; i++) {
        const struct eval_cell *c = &n->cells->cell[n->order[i]];
        if (!n->is_out[n->order[i]] && (c->neighbour < 0 || n_pairs++ < most))
            predict_cell(&r->known, m, n->workload, c, &l);
    }
    score(r, &l, &r->out->sums[at_n * o->n_k + at_k][m]);
}

/* ---- one workload, one fold ---- */

static int score_workload(struct fold_run *r, int w, int at_n, struct err *e)
{
    const struct eval_options *o = r->s->o;
    struct newcomer n;
    int rc = 0;

    meet(r, w, &n);
    for (int i = 0; i < o->n_k && rc == 0; i++) {
        rc = reveal_newcomer(r, &n, o->k[i], e);
        if (rc < 0 || (r->sequence > 0 && o->n[at_n] <= 0 && o->k[i] == 0))
            continue;    // with nothing drawn sequences are alike
        if (eval_has(o, EVAL_MEAN) || eval_has(o, EVAL_RIDGE))
            known_fit_rivals(&r->known, &r->newcomer);
        if (r->s->network)
            known_read(&r->known);
        for (int m = 0; m < EVAL_METHODS; m++)
            if (eval_has(o, (enum eval_method)m))
                score_method(r, &n, at_n, i, (enum eval_method)m);
    }
    known_forget(&r->known);
    return rc;
}

static int run_sequence(struct fold_run *r, struct err *e)
{
    const struct eval_options *o = r->s->o;
    int rc = 0;

    for (int i = 0; i < o->n_n && rc == 0; i++) {
        if (o->n[i] >= 0 || r->sequence == 0)    // all of the site is the same in all
            rc = meet_site(r, o->n[i], e);
        for (int w = 0; w < r->s->site->n_workloads && rc == 0; w++)
            if (eval_fold_scores(r->fold, w))
                rc = score_workload(r, w, i, e);
    }
    return rc;
}

int eval_fold_run(const struct eval_fold *fold, struct eval_part *out, struct err *e)
{
    struct fold_run r = { .fold = fold, .s = fold->site, .out = out };
    int rc = 0;

    arena_init(&r.arena);
    arena_init(&r.newcomer);
    arena_init(&r.scratch);
    for (; r.sequence < r.s->o->n_sequences && rc == 0; r.sequence++)
        rc = run_sequence(&r, e);
    known_release(&r.known);
    arena_release(&r.scratch);
    arena_release(&r.newcomer);
    arena_release(&r.arena);
    return rc;
}

void eval_part_init(struct eval_part *p, const struct eval_options *o)
{
    *p = (struct eval_part){ 0 };
    p->sums = heap_array((size_t)o->n_n * (size_t)o->n_k, sizeof *p->sums);
}

void eval_part_release(struct eval_part *p)
{
    free(p->sums);
    free(p->predictions);
}

#include "sim/eval/sites_fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/hierarchical/posterior.h"
#include "sim/eval/cells.h"
#include "sim/eval/rivals.h"
#include "sim/eval/score.h"

const char *const eval_site_method_names[SITES_METHODS] = {
    "roofline", "none", "mean", "ridge", "hierarchical", "gogh",
};

/* Of the site's cells so many are alone, as of a newcomer's. */
#define ALONE_SHARE 0.3

/* Of a newcomer all cells alone are scored, and so many pairs. */
enum { PAIRS_MOST = 60 };

/* Readings of speeds, or of watts, that are revealed: the site's in the order of their draw, then
 * the newcomer's; and what is made of them.
 */
struct revealed {
    struct reading *list;
    int n_site, n;    // known by now
    double ridge[RIVAL_PARTS];
    struct rival rival[2];
    struct posterior *posterior;
};

/* A fold while it runs. */
struct site_run {
    const struct eval_site *s;
    int family;
    struct eval_site_part *out;
    struct arena arena;              // as long as one sequence
    struct arena newcomer;           // as long as one workload
    struct arena scratch;            // as long as one method's answers
    const struct reading **drawn;    // (n_drawn) of the site, in order
    int n_drawn;
    struct revealed known[EVAL_READS];
    int sequence;
};

bool eval_site_scores(const struct eval_site *s, int w)
{
    return s->cells[w].n_isolated > 0;
}

/* ---- what is revealed of the site ---- */

static bool is_of_others(const struct site_run *r, const struct reading *x)
{
    const int *family = r->s->site->family;

    return family[x->job] != r->family && (x->neighbour < 0 || family[x->neighbour] != r->family);
}

static const char *family_name(const struct site_run *r)
{
    const struct catalog *c = r->s->catalog;
    int w = 0;

    while (r->s->site->family[w] != r->family)
        w++;
    return c->workloads[w].family ? c->workloads[w].family : c->workloads[w].name;
}

/* The order in which the site's cells are revealed, of both kinds and without repetition. */
static void draw_site(struct site_run *r)
{
    const struct eval_options *o = r->s->o;
    const struct campaign_readings *speed = &r->s->read[EVAL_SPEEDS];
    const struct reading **left[2];
    int n_left[2] = { 0, 0 }, most = o->n[o->n_n - 1];
    struct rng chance;

    rng_init(&chance, o->seed,
             arena_printf(&r->arena, "eval site %s %s %d", r->s->catalog->campaigns[r->s->campaign],
                          family_name(r), r->sequence));
    for (int kind = 0; kind < 2; kind++) {
        left[kind] = ARENA_ARRAY(&r->arena, const struct reading *, (size_t)speed->n);
        for (int i = 0; i < speed->n; i++)
            if ((speed->list[i].neighbour >= 0) == kind && is_of_others(r, &speed->list[i]))
                left[kind][n_left[kind]++] = &speed->list[i];
    }
    r->drawn = ARENA_ARRAY(&r->arena, const struct reading *, (size_t)most);
    for (r->n_drawn = 0; r->n_drawn < most && n_left[0] + n_left[1] > 0;) {
        int kind = rng_uniform(&chance) >= ALONE_SHARE;
        kind = n_left[kind] > 0 ? kind : !kind;
        int at = (int)rng_below(&chance, (uint64_t)n_left[kind]);
        r->drawn[r->n_drawn++] = left[kind][at];
        left[kind][at] = left[kind][--n_left[kind]];
    }
}

static const struct reading *watts_at(const struct eval_site *s, int type, int job)
{
    const struct campaign_readings *watts = &s->read[EVAL_WATTS_ALONE];

    for (int i = 0; i < watts->n; i++)
        if (watts->list[i].type == type && watts->list[i].job == job)
            return &watts->list[i];
    return NULL;
}

static void reveal(struct revealed *to, struct reading what)
{
    to->list[to->n++] = what;
}

static void reveal_site(struct site_run *r, int n)
{
    const struct eval_options *o = r->s->o;
    size_t room = (size_t)o->n[o->n_n - 1] + 2 * (size_t)o->k[o->n_k - 1];

    for (int what = 0; what < EVAL_READS; what++)
        r->known[what] = (struct revealed){ .list = ARENA_ARRAY(&r->arena, struct reading, room) };
    for (int i = 0; i < n && i < r->n_drawn; i++) {
        const struct reading *x = r->drawn[i];
        const struct reading *w = x->neighbour < 0 ? watts_at(r->s, x->type, x->job) : NULL;
        reveal(&r->known[EVAL_SPEEDS], *x);
        if (w)
            reveal(&r->known[EVAL_WATTS_ALONE], *w);
    }
    for (int what = 0; what < EVAL_READS; what++)
        r->known[what].n_site = r->known[what].n;
}

/* What the site's own cells make of one model. */
static int settle(struct site_run *r, int what, struct err *e)
{
    struct revealed *known = &r->known[what];
    const struct campaign_readings own = { r->s->site, known->list, known->n };
    struct hyper_scale scale = { 1, 1 };
    struct hyper h;

    rival_choose(&r->arena, r->s->site, known->list, known->n, known->ridge);
    int rc = hyper_refit(&r->s->hyper[what], &own, r->s->o->seed, &h, e);
    if (rc == 0 && known->n > 0)
        rc = hyper_calibrate(&h, &own, &scale, e);
    if (rc == 0)
        rc = posterior_create(r->s->site, &h, scale, known->list, known->n, &known->posterior, e);
    return rc;
}

static void unsettle(struct site_run *r)
{
    for (int what = 0; what < EVAL_READS; what++) {
        posterior_destroy(r->known[what].posterior);
        r->known[what].posterior = NULL;
    }
}

/* ---- what is revealed of the newcomer ---- */

/* The workload that is scored. */
struct site_newcomer {
    int workload;
    const struct eval_cells *cells;
    bool *is_out;    // (cells->n) revealed by now
    int *at;         // (n_at) cells in the order in which they are revealed
    int n_at, n_out;
    int *order;    // (n_order) cells in the order in which they are scored
    int n_order;
};

static void meet(struct site_run *r, int w, struct site_newcomer *out)
{
    const struct eval_options *o = r->s->o;
    struct arena *a = &r->newcomer;
    struct rng chance;
    int most = o->k[o->n_k - 1], at;

    arena_reset(a);
    *out = (struct site_newcomer){ .workload = w, .cells = &r->s->cells[w] };
    out->is_out = ARENA_ARRAY(a, bool, (size_t)out->cells->n);
    out->at = ARENA_ARRAY(a, int, (size_t)most);
    out->order = ARENA_ARRAY(a, int, (size_t)out->cells->n);
    rng_init(&chance, o->seed,
             arena_printf(a, "eval newcomer %s %s %d", r->s->catalog->campaigns[r->s->campaign],
                          r->s->catalog->workloads[w].name, r->sequence));
    while (out->n_at < most &&
           (at = eval_cells_draw(out->cells, r->s->site->n_types, -1, out->is_out, &chance)) >= 0) {
        out->is_out[at] = true;
        out->at[out->n_at++] = at;
    }
    memset(out->is_out, 0, (size_t)out->cells->n * sizeof *out->is_out);
    for (int i = 0; i < out->cells->n; i++) {
        const struct eval_cell *c = &out->cells->cell[i];
        if (isnan(c->ln_speed) && isnan(c->ln_r_partner))
            continue;
        int to = (int)rng_below(&chance, (uint64_t)out->n_order + 1);
        out->order[out->n_order++] = out->order[to];
        out->order[to] = i;
    }
}

static int learn(struct revealed *to, struct reading what, struct err *e)
{
    reveal(to, what);
    return posterior_add(to->posterior, &what, e);
}

/* One more cell: its speed, alone with its watts; beside a neighbour also what that one suffers,
 * where it is known alone. Of two of a kind there is but one number.
 */
static int reveal_cell(struct site_run *r, const struct site_newcomer *n, const struct eval_cell *c,
                       struct err *e)
{
    const struct site *s = r->s->site;
    const struct reading *watts = c->neighbour < 0 ? watts_at(r->s, c->type, n->workload) : NULL;
    struct reading x = { .of = c->neighbour < 0 ? READ_ALONE : READ_PACKED,
                         .type = c->type,
                         .job = n->workload,
                         .neighbour = c->neighbour };

    x.value = (float)(c->ln_speed - (double)site_on(s, x.job, x.type)->ln_reference);
    x.noise = (float)hypot(sqrt(c->ln_speed_var), READING_NOISE);
    int rc = learn(&r->known[EVAL_SPEEDS], x, e);
    if (rc == 0 && watts)
        rc = learn(&r->known[EVAL_WATTS_ALONE], *watts, e);
    if (rc < 0 || c->neighbour < 0 || isnan(c->ln_r_partner) ||
        s->family[c->neighbour] == r->family)
        return rc;
    x = (struct reading){ READ_SLOWDOWN, c->type, c->neighbour, n->workload, 0, 0 };
    x.value = (float)fmin(fmax(c->ln_r_partner, log(SLOWDOWN_LEAST)), log(SLOWDOWN_MOST));
    x.noise = (float)hypot(sqrt(c->ln_r_partner_var), READING_NOISE);
    return learn(&r->known[EVAL_SPEEDS], x, e);
}

static int reveal_newcomer(struct site_run *r, struct site_newcomer *n, int k, struct err *e)
{
    int rc = 0;

    for (; n->n_out < k && n->n_out < n->n_at && rc == 0; n->n_out++) {
        int at = n->at[n->n_out];
        n->is_out[at] = true;
        rc = reveal_cell(r, n, &n->cells->cell[at], e);
    }
    return rc;
}

static void forget_newcomer(struct site_run *r)
{
    for (int what = 0; what < EVAL_READS; what++) {
        struct revealed *known = &r->known[what];
        known->n = known->n_site;
        posterior_truncate(known->posterior, known->n);
    }
}

/* ---- what each method believes ---- */

static const struct cell_belief silent = { NAN, NAN };

/* Of a reading, over the reference. */
static struct cell_belief ask(struct site_run *r, int what, enum eval_site_method m,
                              enum reading_of of, int type, int job, int neighbour)
{
    const struct revealed *known = &r->known[what];

    switch (m) {
    case SITES_ROOFLINE:
        return of == READ_ALONE ? (struct cell_belief){ 0, NAN } : silent;
    case SITES_NONE:
        return of == READ_SLOWDOWN ? (struct cell_belief){ 0, NAN } : silent;
    case SITES_MEAN:
    case SITES_RIDGE:
        return (struct cell_belief){
            rival_ask(&known->rival[m == SITES_RIDGE], of, type, job, neighbour), NAN
        };
    case SITES_HIERARCHICAL:
    case SITES_GOGH:
    case SITES_METHODS:
        break;
    }
    return posterior_ask(known->posterior, of, type, job, neighbour);
}

/* ---- predictions and their scores ---- */

struct site_predictions {
    struct eval_prediction *at;
    int n;
    struct eval_prediction like;    // what all have in common
};

/* Medians, whatever the method. 'ln_reference' is what the belief is over. */
static void predict(struct site_predictions *l, enum eval_quantity q, double ln_truth,
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

static double at_most_0(double x)
{
    return x > 0 ? 0 : x;    // NaN stays
}

/* Nobody is believed to run faster beside another. */
static void predict_cell(struct site_run *r, enum eval_site_method m, int w,
                         const struct eval_cell *c, struct site_predictions *l)
{
    const struct site_on *on = site_on(r->s->site, w, c->type);
    double reference = (double)on->ln_reference;
    int g = c->type, by = c->neighbour;

    l->like.type = g;
    l->like.neighbour = by;
    if (by < 0) {
        predict(l, EVAL_ISOLATED, c->ln_speed, ask(r, EVAL_SPEEDS, m, READ_ALONE, g, w, -1),
                reference);
        if (!isnan(c->ln_watts))
            predict(l, EVAL_WATTS, c->ln_watts, ask(r, EVAL_WATTS_ALONE, m, READ_ALONE, g, w, -1),
                    (double)on->ln_watts);
        return;
    }
    struct cell_belief pair = ask(r, EVAL_SPEEDS, m, READ_PACKED, g, w, by);
    struct cell_belief own = ask(r, EVAL_SPEEDS, m, READ_SLOWDOWN, g, w, by);
    struct cell_belief partner = ask(r, EVAL_SPEEDS, m, READ_SLOWDOWN, g, by, w);
    own.mean = at_most_0(own.mean);
    partner.mean = at_most_0(partner.mean);
    pair.mean = ask(r, EVAL_SPEEDS, m, READ_ALONE, g, w, -1).mean + own.mean;
    predict(l, EVAL_PAIR, c->ln_speed, pair, reference);
    predict(l, EVAL_SLOWDOWN, c->ln_r, own, 0);
    predict(l, EVAL_PARTNER, c->ln_r_partner, partner, 0);
}

static void score(struct site_run *r, const struct site_predictions *l, struct eval_sum *sum)
{
    struct eval_site_part *out = r->out;

    eval_sum_add(&r->scratch, l->at, l->n, sum);
    for (int i = 0; i < l->n && r->s->o->keeps_predictions; i++) {
        GROW(out->predictions, out->n_predictions, out->cap_predictions);
        out->predictions[out->n_predictions++] = l->at[i];
    }
}

static void score_methods(struct site_run *r, const struct site_newcomer *n, int at_n, int at_k)
{
    const struct eval_options *o = r->s->o;

    for (int what = 0; what < EVAL_READS; what++) {
        struct revealed *known = &r->known[what];
        for (int way = 0; way < 2; way++)
            rival_fit(&r->newcomer, way == 0 ? RIVAL_MEAN : RIVAL_RIDGE, r->s->site, known->ridge,
                      known->list, known->n, &known->rival[way]);
    }
    for (int m = 0; m < SITES_METHODS; m++) {
        struct site_predictions l = { .like = { .workload = n->workload,
                                                .sequence = r->s->at * o->n_sequences + r->sequence,
                                                .n = o->n[at_n],
                                                .k = o->k[at_k],
                                                .method = eval_site_method_names[m] } };
        int n_pairs = 0;
        arena_reset(&r->scratch);
        l.at = ARENA_ARRAY(&r->scratch, struct eval_prediction, 3 * (size_t)n->cells->n);
        for (int i = 0; i < n->n_order; i++) {
            const struct eval_cell *c = &n->cells->cell[n->order[i]];
            if (!n->is_out[n->order[i]] && (c->neighbour < 0 || n_pairs++ < PAIRS_MOST))
                predict_cell(r, m, n->workload, c, &l);
        }
        score(r, &l, &r->out->sums[at_n * o->n_k + at_k][m]);
    }
}

/* ---- one workload, one fold ---- */

static int score_workload(struct site_run *r, int w, int at_n, struct err *e)
{
    const struct eval_options *o = r->s->o;
    struct site_newcomer n;
    int rc = 0;

    meet(r, w, &n);
    for (int i = 0; i < o->n_k && rc == 0; i++) {
        rc = reveal_newcomer(r, &n, o->k[i], e);
        if (rc == 0 && (r->sequence == 0 || o->n[at_n] > 0 || o->k[i] > 0))
            score_methods(r, &n, at_n, i);    // before anything is known sequences are alike
    }
    forget_newcomer(r);
    return rc;
}

static int run_sequence(struct site_run *r, struct err *e)
{
    const struct eval_options *o = r->s->o;
    int rc = 0;

    arena_reset(&r->arena);
    draw_site(r);
    for (int i = 0; i < o->n_n && rc == 0; i++) {
        reveal_site(r, o->n[i]);
        for (int what = 0; what < EVAL_READS && rc == 0; what++)
            rc = settle(r, what, e);
        for (int w = 0; w < r->s->site->n_workloads && rc == 0; w++)
            if (r->s->site->family[w] == r->family && eval_site_scores(r->s, w))
                rc = score_workload(r, w, i, e);
        unsettle(r);
    }
    return rc;
}

int eval_site_fold_run(const struct eval_site *s, int family, struct eval_site_part *out,
                       struct err *e)
{
    struct site_run r = { .s = s, .family = family, .out = out };
    int rc = 0;

    arena_init(&r.arena);
    arena_init(&r.newcomer);
    arena_init(&r.scratch);
    for (; r.sequence < s->o->n_sequences && rc == 0; r.sequence++)
        rc = run_sequence(&r, e);
    arena_release(&r.scratch);
    arena_release(&r.newcomer);
    arena_release(&r.arena);
    return rc;
}

void eval_site_part_init(struct eval_site_part *p, const struct eval_options *o)
{
    *p = (struct eval_site_part){ 0 };
    p->sums = heap_array((size_t)o->n_n * (size_t)o->n_k, sizeof *p->sums);
}

void eval_site_part_release(struct eval_site_part *p)
{
    free(p->sums);
    free(p->predictions);
}

#include "estimate/p1/p1.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "catalog/workload.h"
#include "estimate/p1/inner.h"

const char *const p1_member_names[P1_MEMBERS] = { "mean",         "nearest",      "nearest3",
                                                  "ridge",        "gp",           "p1-feed-forward",
                                                  "p1-recurrent", "p1-attention", "p1" };

/* Without a measured type like this one, all speak for it a little. */
#define STRANGE_TYPE 0.02

/* What a type that nothing was learned on adds to the sd of ln speed and of ln r. Leaving each of
 * Gavel's types out, intervals without it hold two cells of three instead of nine of ten.
 */
#define STRANGE_TYPE_SD 0.4
#define STRANGE_TYPE_BESIDE_SD 0.25

/* Each number of the descriptor that had to be assumed makes the speed this much less sure. */
#define UNKNOWN_SD 0.25

void p1_destroy(struct p1 *p)
{
    if (!p)
        return;
    for (int k = 0; k < N_NET_KINDS; k++)
        for (int i = 0; i < p->n_nets; i++)
            net_destroy(p->nets[k][i]);
    arena_release(&p->arena);
    free(p);
}

const struct p1_errors *p1_held_out(const struct p1 *p)
{
    return p->has_errors ? &p->errors : NULL;
}

struct p1_score p1_score_of(const struct p1 *p, enum p1_member m)
{
    return p->scores[m];
}

double p1_weight_of(const struct p1 *p, enum p1_member m, enum regime r, bool is_pair)
{
    return is_pair ? p->pair_weight[r][m] : p->alone_weight[r][m];
}

void p1_lean_on(const struct p1 *p, const struct features *on, bool for_pairs, double *share)
{
    double sum = 0, most = 0;

    for (int t = 0; t < p->n_types; t++) {
        const struct trained_type *k = &p->types[t];
        int n = for_pairs ? k->beside.gp.n : 30;
        share[t] = (STRANGE_TYPE + features_same_type(on, &k->on)) * n / (n + 30.0);
        most = fmax(most, share[t]);
    }
    for (int t = 0; t < p->n_types; t++) {
        if (share[t] < 0.25 * most)    // a type of its own needs no help from a cousin
            share[t] = 0;
        sum += share[t];
    }
    for (int t = 0; t < p->n_types && sum > 0; t++)
        share[t] /= sum;
}

float p1_ln_r(float s)
{
    return 2 * logf(fminf(fmaxf(s, 0.15f), 1));
}

/* ---- the context ---- */

/* What one type needs to be asked about. */
struct context_type {
    double *lean;    // (p1->n_types) on which known types, for pairs
    double *lean_alone;
    int width;    // of the vectors of the process over pairs
    double beside_sd[REGIMES][REGIMES];
    double strange_sd;               // of ln speed, because nothing was learned on a type like it
    float *fresh, *full, *beside;    // (cap, width) as a new job, as a known one, as a neighbour
    struct net_word *words[NETS_MAX];    // (cap) of the favourite networks
};

/* One workload on one type. */
struct context_cell {
    struct kernel_point at;
    struct p1_alone alone;
    float fresh, full;    // constants of the process over pairs
    enum regime known;    // its regime where its own measurements count: as the other of a pair
};

struct p1_context {
    const struct p1 *p1;
    int n_types, n, cap;
    struct context_type *types;    // (n_types)
    struct context_cell *cells;    // (cap, n_types)
    struct arena arena, scratch;
};

struct p1_context *p1_context_create(const struct p1 *p, int n_types)
{
    struct p1_context *s = calloc(1, sizeof *s);

    assert(s);    // out of memory: stop
    s->p1 = p;
    s->n_types = n_types;
    arena_init(&s->arena);
    arena_init(&s->scratch);
    s->types = ARENA_ARRAY(&s->arena, struct context_type, (size_t)n_types);
    return s;
}

void p1_context_destroy(struct p1_context *s)
{
    if (!s)
        return;
    for (int g = 0; g < s->n_types; g++) {
        free(s->types[g].fresh);
        free(s->types[g].full);
        free(s->types[g].beside);
        for (int i = 0; i < NETS_MAX; i++)
            free(s->types[g].words[i]);
    }
    free(s->cells);
    arena_release(&s->arena);
    arena_release(&s->scratch);
    free(s);
}

static const struct context_cell *card(const struct p1_context *s, int workload, int type)
{
    return &s->cells[(size_t)workload * (size_t)s->n_types + (size_t)type];
}

/* How much unlike all known types one is, 0..1. Figures that are unknown pass for a V100's, but
 * nobody knows that they are.
 */
static double strangeness(const struct p1 *p, const struct features *on)
{
    double alike = 0;

    for (int t = 0; t < p->n_types; t++)
        alike = fmax(alike, features_same_type(on, &p->types[t].on));
    return fmax(1 - alike, 1 - (double)on->figures_known);
}

static void spread_beside(const struct p1 *p, struct context_type *type, double strange)
{
    for (int r = 0; r < REGIMES; r++)
        for (int other = 0; other < REGIMES; other++) {
            double sd = 0, all = 0;
            for (int t = 0; t < p->n_types; t++) {
                sd += type->lean[t] * p->types[t].spread[r].beside_sd[other];
                all += type->lean[t];
            }
            if (all <= 0)
                sd = BESIDE_SD_UNKNOWN;
            type->beside_sd[r][other] = hypot(sd, strange * STRANGE_TYPE_BESIDE_SD);
        }
}

static void lay_out(struct p1_context *s, const struct features *on)
{
    const struct p1 *p = s->p1;

    for (int g = 0; g < s->n_types; g++) {
        struct context_type *type = &s->types[g];
        double strange = p->n_types ? strangeness(p, &on[g]) : 0;
        type->lean = ARENA_ARRAY(&s->arena, double, (size_t)p->n_types);
        type->lean_alone = ARENA_ARRAY(&s->arena, double, (size_t)p->n_types);
        p1_lean_on(p, &on[g], true, type->lean);
        p1_lean_on(p, &on[g], false, type->lean_alone);
        for (int t = 0; t < p->n_types; t++)
            if (type->lean[t] > 0)
                type->width += p->types[t].beside.n_who;
        spread_beside(p, type, strange);
        type->strange_sd = strange * STRANGE_TYPE_SD;
    }
}

static void make_room(struct p1_context *s)
{
    if (s->n < s->cap)
        return;
    s->cap = s->cap ? 2 * s->cap : 32;
    size_t rows = (size_t)s->cap * (size_t)s->n_types;
    RESIZE(s->cells, rows);
    for (int g = 0; g < s->n_types; g++) {
        struct context_type *type = &s->types[g];
        size_t n = (size_t)s->cap * (size_t)type->width;
        RESIZE(type->fresh, n);
        RESIZE(type->full, n);
        RESIZE(type->beside, n);
        for (int i = 0; i < s->p1->n_nets; i++)
            RESIZE(type->words[i], s->cap);
    }
}

/* ---- one workload on one type ---- */

/* Mean of what the favourite networks say. */
static float nets_alone(const struct p1_context *s, int workload, int type, bool is_watts)
{
    float sum = 0;

    for (int i = 0; i < s->p1->n_nets; i++) {
        const struct net_word *word = &s->types[type].words[i][workload];
        sum += is_watts ? word->watts : word->alone;
    }
    return s->p1->n_nets ? sum / (float)s->p1->n_nets : 0;
}

static double mixed_scale(const struct p1_context *s, int type, enum regime r, bool is_watts)
{
    const double *lean = s->types[type].lean_alone;
    double sum = 0, all = 0;

    for (int t = 0; t < s->p1->n_types; t++) {
        const struct type_spread *k = &s->p1->types[t].spread[r];
        sum += lean[t] * (is_watts ? k->watts_scale : k->alone_scale);
        all += lean[t];
    }
    return all > 0 ? sum : 1;
}

enum { SAID_ALONE, SAID_RIDGE, SAID_WATTS, SAID };

/* What the processes say of a workload on all types: (n_types) each. */
struct process_answers {
    double *mean[SAID], *sd[SAID];
    const double **fresh;    // (p1->n_types) see beside_forget; NULL: not asked yet
};

static void ask_processes(struct p1_context *s, const struct context_cell *cells,
                          struct process_answers *out)
{
    const struct process *all[SAID] = { &s->p1->alone, &s->p1->ridge, &s->p1->watts };
    size_t n = (size_t)s->n_types;
    struct kernel_point *at = ARENA_ARRAY(&s->scratch, struct kernel_point, n);
    struct err e = { 0 };

    for (size_t g = 0; g < n; g++)
        at[g] = cells[g].at;
    out->fresh = ARENA_ARRAY(&s->scratch, const double *, (size_t)s->p1->n_types);
    for (int i = 0; i < SAID; i++) {
        out->mean[i] = ARENA_ARRAY(&s->scratch, double, n);
        out->sd[i] = i == SAID_RIDGE ? NULL : ARENA_ARRAY(&s->scratch, double, n);
        int rc = process_ask_all(&s->scratch, all[i], s->n_types, at, out->mean[i], out->sd[i], &e);
        assert(rc == 0);    // blocks of positive definite matrices
    }
}

static void believe_alone(struct p1_context *s, int w, int g, enum regime r,
                          const struct process_answers *said, struct context_cell *c)
{
    const struct p1 *p = s->p1;
    const struct features *on = &c->at.on;
    const double *weight = p->alone_weight[r];
    double sd = said->sd[SAID_ALONE][g];

    float mean = (float)said->mean[SAID_ALONE][g] * (float)weight[P1_GP];
    mean += (float)said->mean[SAID_RIDGE][g] * (float)weight[P1_RIDGE];
    mean += memory_alone(&p->memory, &c->at.who, on, false, 3) * (float)weight[P1_NEAREST3];
    mean += nets_alone(s, w, g, false) * (float)weight[p1_net_member(p->favourite)];
    double scale = mixed_scale(s, g, r, false), strange_sd = s->types[g].strange_sd;
    double unknown_var = (1 - (double)on->known) * WORKLOAD_NUMBERS * UNKNOWN_SD * UNKNOWN_SD;
    c->alone = (struct p1_alone){
        .ln_speed = (float)on->ln_roofline + mean,
        .ln_speed_sd = (float)sqrt(sd * sd * scale * scale + unknown_var + strange_sd * strange_sd),
        .ln_watts = (float)on->ln_watts + (float)said->mean[SAID_WATTS][g],
        .ln_watts_sd = (float)(said->sd[SAID_WATTS][g] * mixed_scale(s, g, r, true)),
        .mem_share = (float)fit_share(&p->fit, &c->at.who, on),
        .regime = r,
    };
}

/* What the process over pairs of one known type says: parts of a row of 'full', 'fresh' and
 * 'beside', and of the card's constants.
 */
static void believe_pairs(struct p1_context *s, int known, float lean, const double **fresh_alpha,
                          struct context_cell *c, float *full, float *fresh, float *near)
{
    const struct beside *b = &s->p1->types[known].beside;
    struct err e = { 0 };
    float constant, fresh_constant;

    if (!*fresh_alpha) {
        int rc = beside_forget(&s->scratch, b, &c->at.who, fresh_alpha, &e);
        assert(rc == 0);    // a block of a positive definite matrix
    }
    rows_ask(&s->scratch, &b->rows, &c->at, near);
    beside_as_job(&s->scratch, b, b->gp.alpha, near, &constant, full);
    cblas_sscal(b->n_who, lean, full, 1);
    if (*fresh_alpha == b->gp.alpha) {    // nothing of its own to forget
        fresh_constant = constant;
        memcpy(fresh, full, (size_t)b->n_who * sizeof *fresh);
    } else {
        beside_as_job(&s->scratch, b, *fresh_alpha, near, &fresh_constant, fresh);
        cblas_sscal(b->n_who, lean, fresh, 1);
    }
    c->full += lean * constant;
    c->fresh += lean * fresh_constant;
}

static void believe_beside(struct p1_context *s, int w, int g, const struct process_answers *said,
                           struct context_cell *c)
{
    const struct context_type *type = &s->types[g];
    size_t row = (size_t)w * (size_t)type->width;
    size_t at = 0;

    c->fresh = c->full = 0;
    for (int t = 0; t < s->p1->n_types; t++) {
        float lean = (float)type->lean[t];
        if (lean <= 0)
            continue;
        believe_pairs(s, t, lean, &said->fresh[t], c, type->full + row + at, type->fresh + row + at,
                      type->beside + row + at);
        at += (size_t)s->p1->types[t].beside.n_who;
    }
    if (at == 0)
        c->fresh = c->full = (float)BESIDE_MEAN;
}

static void ask_nets(struct p1_context *s, int w, const struct identity *who,
                     const struct features *on)
{
    const struct p1 *p = s->p1;
    struct identity *same = ARENA_ARRAY(&s->scratch, struct identity, (size_t)s->n_types);
    struct net_word *words = ARENA_ARRAY(&s->scratch, struct net_word, (size_t)s->n_types);
    struct net_question question;

    for (int g = 0; g < s->n_types; g++)
        same[g] = *who;
    if (p->n_nets)
        net_ask(&s->scratch, &p->memory, s->n_types, same, on, false, &question);
    for (int i = 0; i < p->n_nets; i++) {
        net_answer(p->nets[p->favourite][i], &question, words);
        for (int g = 0; g < s->n_types; g++)
            s->types[g].words[i][w] = words[g];
    }
}

int p1_context_add(struct p1_context *s, const struct identity *who, const struct features *on)
{
    struct process_answers said;

    if (s->n == 0)
        lay_out(s, on);
    make_room(s);
    struct context_cell *cells = &s->cells[(size_t)s->n * (size_t)s->n_types];
    for (int g = 0; g < s->n_types; g++)
        cells[g] = (struct context_cell){ .at = { *who, on[g] } };
    enum regime r = memory_has_kin(&s->p1->memory, who) ? REGIME_KIN : REGIME_STRANGER;
    enum regime known = memory_knows(&s->p1->memory, who) ? REGIME_KIN : r;
    ask_nets(s, s->n, who, on);
    ask_processes(s, cells, &said);
    for (int g = 0; g < s->n_types; g++) {
        believe_alone(s, s->n, g, r, &said, &cells[g]);
        cells[g].known = known;
        believe_beside(s, s->n, g, &said, &cells[g]);
    }
    arena_reset(&s->scratch);
    return s->n++;
}

/* ---- asking ---- */

struct p1_alone p1_alone(const struct p1_context *s, int workload, int type)
{
    return card(s, workload, type)->alone;
}

const struct features *p1_features(const struct p1_context *s, int workload, int type)
{
    return &card(s, workload, type)->at.on;
}

static float pair_weight(const struct p1_context *s, enum regime r, bool is_net)
{
    return (float)s->p1->pair_weight[r][is_net ? p1_net_member(s->p1->favourite) : P1_GP];
}

static enum regime either(enum regime a, enum regime b)
{
    return a == REGIME_STRANGER || b == REGIME_STRANGER ? REGIME_STRANGER : REGIME_KIN;
}

/* What the networks say of sqrt(r), all weighing the same. */
static void nets_beside(const struct p1_context *s, int workload, int type, int from, int to,
                        float *out)
{
    size_t stride = sizeof(struct net_word) / sizeof(float);
    int n = s->p1->n_nets;

    for (int i = 0; i < n; i++) {
        const struct net_word *words = s->types[type].words[i];
        net_pairs(s->p1->nets[s->p1->favourite][i], words[workload].as_job, to - from,
                  words[from].as_neighbour, stride, 1 / (float)n, out);
    }
}

void p1_beside(const struct p1_context *s, int workload, int type, int from, int to, float *ln_r,
               float *sd)
{
    const struct context_type *g = &s->types[type];
    const struct context_cell *job = card(s, workload, type);
    enum { CHUNK = 256 };
    float net[CHUNK];

    for (int at = from; at < to; at += CHUNK) {
        int n = to - at < CHUNK ? to - at : CHUNK;
        float *out = ln_r + (at - from);
        for (int i = 0; i < n; i++) {
            out[i] = job->fresh;
            net[i] = 0;
        }
        if (g->width)
            cblas_sgemv(CblasRowMajor, CblasNoTrans, n, g->width, 1,
                        g->beside + (size_t)at * (size_t)g->width, g->width,
                        g->fresh + (size_t)workload * (size_t)g->width, 1, 1, out, 1);
        nets_beside(s, workload, type, at, at + n, net);
        for (int i = 0; i < n; i++) {
            enum regime other = card(s, at + i, type)->known;
            enum regime r = either(job->alone.regime, other);
            out[i] = p1_ln_r(pair_weight(s, r, false) * out[i] + pair_weight(s, r, true) * net[i]);
            sd[at - from + i] = (float)g->beside_sd[job->alone.regime][other];
        }
    }
}

void p1_partner(const struct p1_context *s, int workload, int type, int from, int to, float *ln_r,
                float *sd)
{
    const struct context_type *g = &s->types[type];
    const struct context_cell *neighbour = card(s, workload, type);
    const float *as_neighbour = g->beside + (size_t)workload * (size_t)g->width;

    for (int job = from; job < to; job++) {
        const struct context_cell *c = card(s, job, type);
        enum regime r = either(c->known, neighbour->alone.regime);
        float known = c->full, net = 0;
        if (g->width)
            known +=
                cblas_sdot(g->width, g->full + (size_t)job * (size_t)g->width, 1, as_neighbour, 1);
        nets_beside(s, job, type, workload, workload + 1, &net);
        ln_r[job - from] =
            p1_ln_r(pair_weight(s, r, false) * known + pair_weight(s, r, true) * net);
        sd[job - from] = (float)g->beside_sd[c->known][neighbour->alone.regime];
    }
}

double p1_unfit_together(const struct p1_context *s, int type, const int *workloads, int n)
{
    double share = 0;

    for (int i = 0; i < n; i++)
        share += (double)card(s, workloads[i], type)->alone.mem_share;
    return fit_unfit(&s->p1->fit, share);
}

double p1_unfit(const struct p1_context *s, int workload, int type, int neighbour)
{
    const int both[] = { workload, neighbour };

    return p1_unfit_together(s, type, both, neighbour < 0 ? 1 : 2);
}

double p1_share_max(const struct p1_context *s, double unfit_max)
{
    return fit_share_max(&s->p1->fit, unfit_max);
}

double p1_like(const struct p1_context *s, int type, int neighbour, int other)
{
    if (neighbour == other)
        return 1;
    return kernel_beside(&card(s, neighbour, type)->at, &card(s, other, type)->at) / 1.05;
}

bool p1_knows(const struct p1_context *s, int workload)
{
    return memory_knows(&s->p1->memory, &card(s, workload, 0)->at.who);
}

double p1_cross(const struct p1_context *s, enum regime r)
{
    return s->p1->cross[r];
}

/* ---- asking one member ---- */

static bool kind_of(enum p1_member m, enum net_kind *k)
{
    *k = (enum net_kind)((int)m - (int)P1_FEED_FORWARD);
    return m >= P1_FEED_FORWARD && m <= P1_ATTENTION;
}

static struct net_question ask_of(struct p1_context *s, const struct kernel_point *at)
{
    struct net_question q;

    net_ask(&s->scratch, &s->p1->memory, 1, &at->who, &at->on, false, &q);
    return q;
}

static float process_mean(struct p1_context *s, const struct process *p,
                          const struct kernel_point *at)
{
    struct err e = { 0 };
    double mean;
    int rc = process_ask(&s->scratch, p, at, &mean, &e);

    assert(rc == 0);    // a block of a positive definite matrix
    return (float)mean;
}

bool p1_ask_alone(struct p1_context *s, enum p1_member m, int workload, int type, float *ln_speed)
{
    const struct p1 *p = s->p1;
    const struct context_cell *c = card(s, workload, type);
    float z = 0;
    enum net_kind kind;

    if (m == P1_ENSEMBLE) {
        *ln_speed = c->alone.ln_speed;
        return true;
    }
    if (m == P1_MEAN)
        z = (float)p->alone.mean;
    else if (m == P1_NEAREST || m == P1_NEAREST3)
        z = memory_alone(&p->memory, &c->at.who, &c->at.on, false, m == P1_NEAREST ? 1 : 3);
    else if (m == P1_RIDGE || m == P1_GP)
        z = process_mean(s, m == P1_GP ? &p->alone : &p->ridge, &c->at);
    else if (kind_of(m, &kind)) {
        if (!p->n_nets || !p->nets[kind][0])
            return false;
        struct net_question q = ask_of(s, &c->at);
        for (int i = 0; i < p->n_nets; i++) {
            struct net_word word;
            net_answer(p->nets[kind][i], &q, &word);
            z += word.alone / (float)p->n_nets;
        }
    }
    arena_reset(&s->scratch);
    *ln_speed = (float)c->at.on.ln_roofline + z;
    return true;
}

bool p1_ask_beside(struct p1_context *s, enum p1_member m, int workload, int type, int neighbour,
                   float *ln_r)
{
    const struct p1 *p = s->p1;
    const struct context_type *g = &s->types[type];
    const struct context_cell *c = card(s, workload, type), *n = card(s, neighbour, type);
    float v = 0, sd;
    enum net_kind kind;

    if (m == P1_ENSEMBLE) {
        p1_beside(s, workload, type, neighbour, neighbour + 1, ln_r, &sd);
        return true;
    }
    if (m == P1_RIDGE)
        return false;
    if (kind_of(m, &kind) && (!p->n_nets || !p->nets[kind][0]))
        return false;
    if (m == P1_MEAN || m == P1_NEAREST || m == P1_NEAREST3)
        v = (float)memory_mean_s(&p->memory, &c->at.on);
    if (m == P1_NEAREST || m == P1_NEAREST3) {
        int k = m == P1_NEAREST ? 1 : 3;
        v += memory_as_job(&p->memory, &c->at.who, &c->at.on, k);
        v += memory_as_neighbour(&p->memory, &n->at.who, &n->at.on, k);
    } else if (m == P1_GP) {
        v = c->fresh;
        if (g->width)
            v += cblas_sdot(g->width, g->fresh + (size_t)workload * (size_t)g->width, 1,
                            g->beside + (size_t)neighbour * (size_t)g->width, 1);
    } else if (kind_of(m, &kind)) {
        struct net_question of_job = ask_of(s, &c->at), of_other = ask_of(s, &n->at);
        for (int i = 0; i < p->n_nets; i++) {
            struct net_word job, other;
            net_answer(p->nets[kind][i], &of_job, &job);
            net_answer(p->nets[kind][i], &of_other, &other);
            net_pairs(p->nets[kind][i], job.as_job, 1, other.as_neighbour, NET_WIDTH,
                      1 / (float)p->n_nets, &v);
        }
    }
    arena_reset(&s->scratch);
    *ln_r = p1_ln_r(v);
    return true;
}

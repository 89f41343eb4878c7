/* How P1 learns: each member from what the view shows, then what each of them says of workloads
 * and families it has not seen, from that their weights, and from what is left the uncertainty.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "estimate/p1/nearest.h"
#include "estimate/p1/inner.h"

/* Networks of each kind and regime. Each never sees another part of the workloads (or of the
 * families), so that together they have a held-out word on everything. Those for strangers stop
 * by a further part; those for kin do better when they learn to the end.
 */
#define NETS_OF_REGIME 6

/* The kind that did best on held-out families; docs/experiments.md has the table. */
#define FAVOURITE NET_ATTENTION

/* Variance that no kernel explains, of ln speed and of ln watts. */
#define ALONE_NOISE 0.003
#define WATTS_NOISE 0.001

/* How strongly weights are drawn towards being equal, in units of the best member's squared error
 * over the number of workloads (or families) held out: among a handful of them the member that
 * looks best may be lucky.
 */
#define EVEN_WEIGHTS 1.0

/* An sd that few examples speak for is drawn towards that of all, as by this many more. */
#define SHRINK 10.0

/* And that of all towards the process's own, as by this many: a handful that agree may be lucky. */
#define FEW 2.0

/* What is being trained, and what members said when they could not know. */
struct training {
    struct p1 *p;
    const struct examples *x;
    const struct holdout *v;
    const struct p1_options *o;
    struct arena *scratch;
    struct example *alone, *watts, *pairs;    // what the view shows
    int n_alone, n_watts, n_pairs;
    int *alone_at, *watts_at, *pairs_at;         // positions in x
    float *said_alone[P1_MEMBERS][REGIMES];      // (n_alone)
    float *said_own[P1_MEMBERS][REGIMES];        // (n_pairs) sqrt(r), the job held out
    float *said_partner[P1_MEMBERS][REGIMES];    // (n_pairs) the neighbour held out
    double *alone_sd[REGIMES];                   // (n_alone) the process's own
    double *watts_sd[REGIMES];
    float *said_watts[REGIMES];
    bool *has_kin;           // (n_workloads) the view shows something of another of its family
    int *order[REGIMES];     // (n_workloads) its number, and its family's, among those shown
    int n_shown[REGIMES];    // workloads, and families
    struct net_question asked[REGIMES];    // of every workload on every type, with kin and without
};

/* ---- what the view shows ---- */

static int show(struct training *t, const struct example *from, int n, struct example **out,
                int **at)
{
    int kept = 0;

    *out = ARENA_ARRAY(t->scratch, struct example, (size_t)n);
    *at = ARENA_ARRAY(t->scratch, int, (size_t)n);
    for (int i = 0; i < n; i++)
        if (holdout_shows(t->v, from[i].workload, from[i].gpu_type, from[i].neighbour)) {
            (*at)[kept] = i;
            (*out)[kept++] = from[i];
        }
    return kept;
}

static float *floats(struct training *t, int n)
{
    float *f = ARENA_ARRAY(t->scratch, float, (size_t)n);

    for (int i = 0; i < n; i++)
        f[i] = NAN;
    return f;
}

static void find_kin(struct training *t)
{
    const struct examples *x = t->x;
    int *first = ARENA_ARRAY(t->scratch, int, (size_t)x->n_families);    // workload + 1

    t->has_kin = ARENA_ARRAY(t->scratch, bool, (size_t)x->n_workloads);
    for (int i = 0; i < t->n_alone + t->n_watts; i++) {
        int w = i < t->n_alone ? t->alone[i].workload : t->watts[i - t->n_alone].workload;
        int *other = &first[x->family[w]];
        if (*other && *other != w + 1)
            t->has_kin[w] = t->has_kin[*other - 1] = true;
        *other = *other ? *other : w + 1;
    }
}

/* Does holding out 'w' show what this regime is about? A workload without kin is a stranger. */
static bool counts(const struct training *t, enum regime r, int w)
{
    return r == REGIME_STRANGER || t->has_kin[w];
}

/* Number the workloads that something is shown of, and their families. */
static void number_shown(struct training *t)
{
    const struct examples *x = t->x;
    bool *is_shown = ARENA_ARRAY(t->scratch, bool, (size_t)x->n_workloads);
    int *family = ARENA_ARRAY(t->scratch, int, (size_t)x->n_families);    // its number + 1

    for (int i = 0; i < t->n_alone; i++)
        is_shown[t->alone[i].workload] = true;
    for (int i = 0; i < t->n_watts; i++)
        is_shown[t->watts[i].workload] = true;
    for (int i = 0; i < t->n_pairs; i++)
        is_shown[t->pairs[i].workload] = is_shown[t->pairs[i].neighbour] = true;
    for (int r = 0; r < REGIMES; r++)
        t->order[r] = ARENA_ARRAY(t->scratch, int, (size_t)x->n_workloads);
    for (int w = 0; w < x->n_workloads; w++) {
        if (!is_shown[w])
            continue;
        int *number = &family[x->family[w]];
        if (!*number)
            *number = ++t->n_shown[REGIME_STRANGER];
        t->order[REGIME_STRANGER][w] = *number - 1;
        t->order[REGIME_KIN][w] = t->n_shown[REGIME_KIN]++;
    }
}

static void look(struct training *t)
{
    t->n_alone = show(t, t->x->alone, t->x->n_alone, &t->alone, &t->alone_at);
    t->n_watts = show(t, t->x->watts, t->x->n_watts, &t->watts, &t->watts_at);
    t->n_pairs = show(t, t->x->pairs, t->x->n_pairs, &t->pairs, &t->pairs_at);
    find_kin(t);
    number_shown(t);
    for (int r = 0; r < REGIMES; r++) {
        t->alone_sd[r] = ARENA_ARRAY(t->scratch, double, (size_t)t->n_alone);
        t->watts_sd[r] = ARENA_ARRAY(t->scratch, double, (size_t)t->n_watts);
        t->said_watts[r] = floats(t, t->n_watts);
        for (int m = 0; m < P1_MEMBERS; m++) {
            t->said_alone[m][r] = floats(t, t->n_alone);
            t->said_own[m][r] = floats(t, t->n_pairs);
            t->said_partner[m][r] = floats(t, t->n_pairs);
        }
    }
}

/* Is workload 'w' out when 'held' is: itself, or one of its family? */
static bool is_out(const struct training *t, enum regime r, int held, int w)
{
    return r == REGIME_KIN ? w == held : t->x->family[w] == t->x->family[held];
}

/* ---- processes ---- */

static int train_processes(struct training *t, struct err *e)
{
    struct p1 *p = t->p;
    int rc =
        process_fit(&p->arena, kernel_alone, ALONE_NOISE, t->x, t->n_alone, t->alone, &p->alone, e);

    if (rc == 0)
        rc = process_fit(&p->arena, kernel_ridge, RIDGE_NOISE, t->x, t->n_alone, t->alone,
                         &p->ridge, e);
    if (rc == 0)
        rc = process_fit(&p->arena, kernel_alone, WATTS_NOISE, t->x, t->n_watts, t->watts,
                         &p->watts, e);
    return rc;
}

/* Leave each workload (or family) out of a process once. */
static int hold_out(struct training *t, const struct process *p, enum regime r,
                    const struct example *list, int n, float *said, double *sd, struct err *e)
{
    double *mean = ARENA_ARRAY(t->scratch, double, (size_t)n);
    double *spread = ARENA_ARRAY(t->scratch, double, (size_t)n);
    bool *is_done = ARENA_ARRAY(t->scratch, bool, (size_t)n);
    int *block = ARENA_ARRAY(t->scratch, int, (size_t)n);
    struct arena once;
    int rc = 0;

    arena_init(&once);
    for (int i = 0; i < n && rc == 0; i++) {
        int m = 0;
        if (is_done[i])
            continue;
        for (int k = i; k < n; k++)
            if (is_out(t, r, list[i].workload, list[k].workload)) {
                block[m++] = k;
                is_done[k] = true;
            }
        arena_reset(&once);
        rc = process_leave_out(&once, p, m, block, mean, spread, e);
    }
    arena_release(&once);
    for (int i = 0; i < n && rc == 0; i++) {
        said[i] = (float)mean[i];
        if (sd)
            sd[i] = spread[i];
    }
    return rc;
}

static int hold_out_processes(struct training *t, struct err *e)
{
    int rc = 0;

    for (int r = 0; r < REGIMES && rc == 0; r++) {
        enum regime regime = (enum regime)r;
        rc = hold_out(t, &t->p->alone, regime, t->alone, t->n_alone, t->said_alone[P1_GP][r],
                      t->alone_sd[r], e);
        if (rc == 0)
            rc = hold_out(t, &t->p->ridge, regime, t->alone, t->n_alone, t->said_alone[P1_RIDGE][r],
                          NULL, e);
        if (rc == 0)
            rc = hold_out(t, &t->p->watts, regime, t->watts, t->n_watts, t->said_watts[r],
                          t->watts_sd[r], e);
    }
    return rc;
}

/* ---- pairs ---- */

/* Types beyond TYPES_MAX are learned from, but not known: those like them speak for them. */
static void know_types(struct training *t)
{
    const struct examples *x = t->x;
    struct p1 *p = t->p;

    p->types = ARENA_ARRAY(&p->arena, struct trained_type, (size_t)x->n_types);
    for (int g = 0; g < x->n_types && p->n_types < TYPES_MAX; g++) {
        bool is_seen = false;
        for (int i = 0; i < t->n_alone && !is_seen; i++)
            is_seen = t->alone[i].gpu_type == g;
        for (int i = 0; i < t->n_pairs && !is_seen; i++)
            is_seen = t->pairs[i].gpu_type == g;
        for (int i = 0; i < t->n_watts && !is_seen; i++)
            is_seen = t->watts[i].gpu_type == g;
        if (is_seen)
            p->types[p->n_types++].on = *examples_at(x, 0, g);
    }
}

static int known_type_of(const struct p1 *p, const struct features *on)
{
    for (int k = 0; k < p->n_types; k++)
        if (features_are_of_one_type(&p->types[k].on, on))
            return k;
    return -1;
}

/* The pairs on known type 'k': their positions in t->pairs. */
static int pairs_on(const struct training *t, int k, int *at)
{
    int n = 0;

    for (int i = 0; i < t->n_pairs; i++)
        if (known_type_of(t->p, examples_at(t->x, t->pairs[i].workload, t->pairs[i].gpu_type)) == k)
            at[n++] = i;
    return n;
}

/* Leave each workload (or family) out of the process over pairs once, in both roles. */
static int hold_out_pairs(struct training *t, const struct beside *b, enum regime r, int n,
                          const int *at, struct err *e)
{
    double *s = ARENA_ARRAY(t->scratch, double, (size_t)n);
    int *block = ARENA_ARRAY(t->scratch, int, (size_t)n);
    bool *is_done = ARENA_ARRAY(t->scratch, bool, (size_t)t->x->n_workloads);
    struct arena once;
    int rc = 0;

    arena_init(&once);
    for (int w = 0; w < t->x->n_workloads && rc == 0; w++) {
        int m = 0;
        if (is_done[w] || t->v->is_held[w])
            continue;
        for (int i = 0; i < n; i++)
            if (is_out(t, r, w, t->pairs[at[i]].workload) ||
                is_out(t, r, w, t->pairs[at[i]].neighbour))
                block[m++] = i;
        for (int k = w; k < t->x->n_workloads; k++)
            is_done[k] = is_done[k] || is_out(t, r, w, k);
        arena_reset(&once);
        rc = beside_leave_out(&once, b, m, block, s, e);
        for (int i = 0; i < m && rc == 0; i++) {
            const struct example *pair = &t->pairs[at[block[i]]];
            if (is_out(t, r, w, pair->workload))
                t->said_own[P1_GP][r][at[block[i]]] = (float)s[i];
            if (is_out(t, r, w, pair->neighbour))
                t->said_partner[P1_GP][r][at[block[i]]] = (float)s[i];
        }
    }
    arena_release(&once);
    return rc;
}

static int train_pairs(struct training *t, struct err *e)
{
    struct example *list = ARENA_ARRAY(t->scratch, struct example, (size_t)t->n_pairs);
    int *at = ARENA_ARRAY(t->scratch, int, (size_t)t->n_pairs);
    int rc = 0;

    for (int k = 0; k < t->p->n_types && rc == 0; k++) {
        struct trained_type *type = &t->p->types[k];
        int n = pairs_on(t, k, at);
        for (int i = 0; i < n; i++)
            list[i] = t->pairs[at[i]];
        rc = beside_fit(&t->p->arena, t->x, n, list, &type->beside, e);
        for (int r = 0; r < REGIMES && rc == 0; r++)
            rc = hold_out_pairs(t, &type->beside, (enum regime)r, n, at, e);
    }
    return rc;
}

/* ---- nearest ---- */

static void hold_out_nearest(struct training *t)
{
    for (int r = 0; r < REGIMES; r++)
        for (int i = 0; i < t->n_alone; i++) {
            const struct example *x = &t->alone[i];
            nearest_alone(&t->p->memory, &t->x->who[x->workload],
                          examples_at(t->x, x->workload, x->gpu_type), r == REGIME_STRANGER, 3,
                          &t->said_alone[P1_NEAREST3][r][i]);
        }
}

/* ---- networks ---- */

/* One part to learn from, one to stop by, one to be held out. */
enum { PARTS_MIN = 3 };

/* The workloads of one part, as even as they come. Of no more parts than there is something for:
 * then some networks have theirs in common.
 */
static void take_part(const struct training *t, enum regime r, int part, int n_parts, bool *out)
{
    if (n_parts > t->n_shown[r])
        n_parts = t->n_shown[r] > PARTS_MIN ? t->n_shown[r] : PARTS_MIN;
    for (int w = 0; w < t->x->n_workloads; w++)
        out[w] = !t->v->is_held[w] && t->order[r][w] % n_parts == part % n_parts;
}

/* What is put to every network alike. */
static void ask_once(struct training *t)
{
    const struct examples *x = t->x;
    size_t n = (size_t)x->n_workloads * (size_t)x->n_types;
    struct identity *who = ARENA_ARRAY(t->scratch, struct identity, n);

    for (size_t i = 0; i < n; i++)
        who[i] = x->who[i / (size_t)x->n_types];
    for (int r = 0; r < REGIMES; r++)
        net_ask(t->scratch, &t->p->memory, (int)n, who, x->at, r == REGIME_STRANGER, &t->asked[r]);
}

/* What network 'net' says of the part that it did not learn from. */
static void hold_out_net(struct training *t, const struct net *net, enum p1_member m, enum regime r,
                         const bool *is_unseen)
{
    const struct examples *x = t->x;
    size_t n = (size_t)x->n_workloads * (size_t)x->n_types;
    struct arena once;

    arena_init(&once);
    struct net_word *known = ARENA_ARRAY(&once, struct net_word, n);
    struct net_word *fresh = ARENA_ARRAY(&once, struct net_word, n);
    net_answer(net, &t->asked[REGIME_KIN], known);
    net_answer(net, &t->asked[r], fresh);
    for (int i = 0; i < t->n_alone; i++)
        if (is_unseen[t->alone[i].workload])
            t->said_alone[m][r][i] =
                fresh[t->alone[i].workload * x->n_types + t->alone[i].gpu_type].alone;
    for (int i = 0; i < t->n_pairs; i++) {
        const struct example *pair = &t->pairs[i];
        int job = pair->workload * x->n_types + pair->gpu_type;
        int other = pair->neighbour * x->n_types + pair->gpu_type;
        bool job_out = is_unseen[pair->workload], other_out = is_unseen[pair->neighbour];
        float s = 0;
        if (!job_out && !other_out)
            continue;
        net_pairs(net, (job_out ? fresh : known)[job].as_job, 1,
                  (other_out ? fresh : known)[other].as_neighbour, NET_WIDTH, 1, &s);
        if (job_out)
            t->said_own[m][r][i] = s;
        if (other_out)
            t->said_partner[m][r][i] = s;
    }
    arena_release(&once);
}

static void train_kind(struct training *t, enum net_kind kind, int n_parts)
{
    size_t n = (size_t)t->x->n_workloads;
    bool *is_unseen = ARENA_ARRAY(t->scratch, bool, n);
    bool *is_kept_back = ARENA_ARRAY(t->scratch, bool, n);
    bool *is_held = ARENA_ARRAY(t->scratch, bool, n);
    struct holdout rest = { is_held, t->v->is_held_type };

    for (int i = 0; i < 2 * n_parts; i++) {
        enum regime r = i < n_parts ? REGIME_KIN : REGIME_STRANGER;
        take_part(t, r, i, n_parts, is_unseen);
        take_part(t, r, i + 1, n_parts, is_kept_back);
        for (size_t w = 0; w < n; w++)
            is_held[w] = t->v->is_held[w] || is_unseen[w];
        struct net *net =
            net_train(t->x, &rest, &t->p->memory, r == REGIME_STRANGER ? is_kept_back : NULL, kind,
                      t->o->seed * 64 + (uint64_t)i);
        t->p->nets[kind][i] = net;
        hold_out_net(t, net, p1_net_member(kind), r, is_unseen);
    }
}

/* A network needs something to learn and something to keep back. */
static void train_nets(struct training *t)
{
    int n_parts = t->o->n_nets > 0 ? t->o->n_nets : NETS_OF_REGIME;

    if (n_parts < PARTS_MIN)
        n_parts = PARTS_MIN;
    t->p->favourite = FAVOURITE;
    if (t->n_alone < 8)
        return;
    assert(2 * n_parts <= NETS_MAX);
    t->p->n_nets = 2 * n_parts;
    ask_once(t);
    for (int k = 0; k < N_NET_KINDS; k++)
        if (t->o->all_members || k == (int)t->p->favourite)
            train_kind(t, (enum net_kind)k, n_parts);
}

/* ---- weights ---- */

/* What was said of strangers says nothing of kin. */
static void forget_strangers(struct training *t)
{
    const enum regime r = REGIME_KIN;

    for (int m = 0; m < P1_MEMBERS; m++) {
        for (int i = 0; i < t->n_alone; i++)
            if (!counts(t, r, t->alone[i].workload))
                t->said_alone[m][r][i] = NAN;
        for (int i = 0; i < t->n_pairs; i++) {
            if (!counts(t, r, t->pairs[i].workload))
                t->said_own[m][r][i] = NAN;
            if (!counts(t, r, t->pairs[i].neighbour))
                t->said_partner[m][r][i] = NAN;
        }
    }
    for (int i = 0; i < t->n_watts; i++)
        if (!counts(t, r, t->watts[i].workload))
            t->said_watts[r][i] = NAN;
}

/* Weights of n members, at least 0 and together 1, that make the least squared error of their
 * mean, given the mean products of their errors (n, n): by projected gradient, because n is a
 * handful. 'products' gets the drawing towards even weights on its diagonal. A member that was
 * never wrong gets all.
 */
static void even_out(double *products, int n, int n_groups, double *weight)
{
    double best = products[0];
    int at = 0;

    for (int i = 0; i < n; i++) {
        if (products[i * n + i] < best)
            at = i;
        best = fmin(best, products[i * n + i]);
        weight[i] = 1.0 / n;
    }
    for (int i = 0; i < n && !(best > 0); i++)
        weight[i] = i == at;
    for (int i = 0; i < n; i++)
        products[i * n + i] += EVEN_WEIGHTS * best / (n_groups > 0 ? n_groups : 1);
    for (int step = 0; step < 2000 && best > 0; step++) {
        double slope[P1_MEMBERS] = { 0 }, least = INFINITY, sum = 0;
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < n; k++)
                slope[i] += products[i * n + k] * weight[k];
            least = fmin(least, slope[i]);
        }
        for (int i = 0; i < n; i++) {    // stays positive, and not all vanish at once
            weight[i] = fmax(weight[i] * exp(-0.1 * (slope[i] - least) / best), 1e-12);
            sum += weight[i];
        }
        for (int i = 0; i < n; i++)
            weight[i] /= sum;
    }
}

struct member_answers {
    enum p1_member member;
    const float *value[2];    // own and partner, or alone and NULL
};

/* Error of what was said of example i; NaN where nothing was. Pairs are compared as ln r. */
static double error_of(const struct example *list, const float *said, int i, bool is_pair)
{
    if (isnan(said[i]))
        return NAN;
    return (double)(list[i].value - (is_pair ? p1_ln_r(said[i]) : said[i]));
}

static void weigh(const struct member_answers *said, int n, const struct example *list, int n_list,
                  bool is_pair, int n_groups, double *weight, struct p1_score *scores,
                  enum regime r)
{
    double products[P1_MEMBERS * P1_MEMBERS] = { 0 }, w[P1_MEMBERS] = { 0 };
    int used = 0;

    for (int part = 0; part < 1 + is_pair; part++)
        for (int i = 0; i < n_list; i++) {
            double error[P1_MEMBERS] = { 0 };
            bool is_whole = true;
            for (int m = 0; m < n; m++) {
                error[m] = error_of(list, said[m].value[part], i, is_pair);
                is_whole = is_whole && !isnan(error[m]);
            }
            used += is_whole;
            for (int m = 0; m < n * n && is_whole; m++)
                products[m] += error[m / n] * error[m % n];
        }
    for (int m = 0; m < n * n; m++)
        products[m] /= used ? used : 1;
    for (int m = 0; m < n; m++)
        *(is_pair ? &scores[said[m].member].pair[r] : &scores[said[m].member].alone[r]) =
            used ? sqrt(products[m * n + m]) : (double)NAN;
    even_out(products, n, n_groups, w);
    for (int m = 0; m < n; m++)    // nothing to go by: the process, which then says its prior
        weight[said[m].member] = used ? w[m] : said[m].member == P1_GP;
}

/* Workloads, or families, that something was measured of. */
static int n_groups(struct training *t, enum regime r)
{
    bool *is_seen = ARENA_ARRAY(t->scratch, bool, (size_t)(t->x->n_workloads + t->x->n_families));
    int n = 0;

    for (int i = 0; i < t->n_alone; i++) {
        int w = t->alone[i].workload;
        if (!counts(t, r, w))
            continue;
        int group = r == REGIME_KIN ? w : t->x->n_workloads + t->x->family[w];
        n += !is_seen[group];
        is_seen[group] = true;
    }
    return n;
}

static void weigh_members(struct training *t)
{
    struct p1 *p = t->p;

    for (int r = 0; r < REGIMES; r++) {
        struct member_answers alone[P1_MEMBERS] = { { P1_NEAREST3,
                                                      { t->said_alone[P1_NEAREST3][r] } },
                                                    { P1_RIDGE, { t->said_alone[P1_RIDGE][r] } },
                                                    { P1_GP, { t->said_alone[P1_GP][r] } } };
        struct member_answers pairs[P1_MEMBERS] = {
            { P1_GP, { t->said_own[P1_GP][r], t->said_partner[P1_GP][r] } }
        };
        int n = 3, n_pairs = 1, groups = n_groups(t, (enum regime)r);
        if (p->n_nets) {
            enum p1_member m = p1_net_member(p->favourite);
            alone[n++] = (struct member_answers){ m, { t->said_alone[m][r] } };
            pairs[n_pairs++] =
                (struct member_answers){ m, { t->said_own[m][r], t->said_partner[m][r] } };
        }
        weigh(alone, n, t->alone, t->n_alone, false, groups, p->alone_weight[r], p->scores,
              (enum regime)r);
        weigh(pairs, n_pairs, t->pairs, t->n_pairs, true, groups, p->pair_weight[r], p->scores,
              (enum regime)r);
    }
}

/* What all together said; NaN where a member with weight said nothing. */
static float together(float *said[P1_MEMBERS][REGIMES], const double *weight, int r, int i)
{
    float sum = 0;

    for (int m = 0; m < P1_MEMBERS; m++)
        if (weight[m] > 0)
            sum += (float)weight[m] * said[m][r][i];
    return sum;
}

/* ---- errors and uncertainty ---- */

static float *errors_for(struct p1 *p, int n)
{
    float *f = ARENA_ARRAY(&p->arena, float, (size_t)n);

    for (int i = 0; i < n; i++)
        f[i] = NAN;
    return f;
}

static double rms(double sum, double n)
{
    return n > 0 ? sqrt(sum / n) : (double)NAN;
}

static void take_errors(struct training *t)
{
    struct p1 *p = t->p;
    struct p1_errors *out = &p->errors;

    p->has_errors = true;
    for (int r = 0; r < REGIMES; r++) {
        double alone = 0, pair = 0;
        int n_alone = 0, n_pair = 0;
        out->alone[r] = errors_for(p, t->x->n_alone);
        out->own[r] = errors_for(p, t->x->n_pairs);
        out->partner[r] = errors_for(p, t->x->n_pairs);
        out->watts[r] = errors_for(p, t->x->n_watts);
        for (int i = 0; i < t->n_alone; i++) {
            float error = t->alone[i].value - together(t->said_alone, p->alone_weight[r], r, i);
            out->alone[r][t->alone_at[i]] = error;
            alone += isnan(error) ? 0 : (double)(error * error);
            n_alone += !isnan(error);
        }
        for (int i = 0; i < t->n_pairs; i++) {
            float own = together(t->said_own, p->pair_weight[r], r, i);
            float partner = together(t->said_partner, p->pair_weight[r], r, i);
            float own_error = isnan(own) ? NAN : t->pairs[i].value - p1_ln_r(own);
            float partner_error = isnan(partner) ? NAN : t->pairs[i].value - p1_ln_r(partner);
            out->own[r][t->pairs_at[i]] = own_error;
            out->partner[r][t->pairs_at[i]] = partner_error;
            pair += isnan(own) ? 0 : (double)(own_error * own_error);
            pair += isnan(partner) ? 0 : (double)(partner_error * partner_error);
            n_pair += !isnan(own) + !isnan(partner);
        }
        for (int i = 0; i < t->n_watts; i++)
            out->watts[r][t->watts_at[i]] = t->watts[i].value - t->said_watts[r][i];
        p->scores[P1_ENSEMBLE].alone[r] = rms(alone, n_alone);
        p->scores[P1_ENSEMBLE].pair[r] = rms(pair, n_pair);
    }
}

/* Of errors in units of the process's own sd: by how much it should be larger, on each type. */
static void scale_sd(struct training *t, enum regime r, const struct example *list, int n,
                     const int *at, const float *errors, const double *sd, bool is_watts)
{
    struct p1 *p = t->p;
    double *sum = ARENA_ARRAY(t->scratch, double, (size_t)p->n_types + 1);
    int *count = ARENA_ARRAY(t->scratch, int, (size_t)p->n_types + 1);

    for (int i = 0; i < n; i++) {
        int k = known_type_of(p, examples_at(t->x, list[i].workload, list[i].gpu_type));
        double u = (double)errors[at[i]] / sd[i];
        if (isnan(u) || k < 0)
            continue;
        sum[k] += u * u;
        sum[p->n_types] += u * u;
        count[k]++;
        count[p->n_types]++;
    }
    double all = (sum[p->n_types] + FEW) / (count[p->n_types] + FEW);
    for (int k = 0; k < p->n_types; k++) {
        double scale = sqrt((sum[k] + SHRINK * all) / (count[k] + SHRINK));
        *(is_watts ? &p->types[k].watts_scale[r] : &p->types[k].alone_scale[r]) = scale;
    }
}

static double shrunk_rms(double sum, int n, double all)
{
    return sqrt((sum + SHRINK * all * all) / (n + SHRINK));
}

/* sd of ln r on each type, by who is new: nobody's family, the job's, the neighbour's. */
static void spread_pairs(struct training *t)
{
    struct p1 *p = t->p;

    for (int k = 0; k < p->n_types; k++) {
        double sum[REGIMES][2] = { { 0 } };
        int n[REGIMES][2] = { { 0 } };
        for (int i = 0; i < t->n_pairs; i++) {
            const struct example *x = &t->pairs[i];
            if (known_type_of(p, examples_at(t->x, x->workload, x->gpu_type)) != k)
                continue;
            for (int r = 0; r < REGIMES; r++) {
                float error[2] = { p->errors.own[r][t->pairs_at[i]],
                                   p->errors.partner[r][t->pairs_at[i]] };
                for (int role = 0; role < 2; role++)
                    if (!isnan(error[role])) {
                        sum[r][role] += (double)(error[role] * error[role]);
                        n[r][role]++;
                    }
            }
        }
        double(*sd)[REGIMES] = p->types[k].beside_sd;
        double unknown = BESIDE_SD_UNKNOWN;
        sd[0][0] = shrunk_rms(sum[0][0] + sum[0][1], n[0][0] + n[0][1], unknown);
        sd[1][0] = shrunk_rms(sum[1][0], n[1][0], unknown);
        sd[0][1] = shrunk_rms(sum[1][1], n[1][1], unknown);
        sd[1][1] = fmax(sd[1][0], sd[0][1]) * 1.1;
    }
}

/* Of the product of two errors in units of their sds, by workload: the mean, as if CROSS_NONE
 * workloads without any correlation had been seen too.
 */
#define CROSS_NONE 3.0
#define CROSS_MAX 0.35    // more, and 'refine' might find no covariance that has it

static double cross_of(struct training *t, enum regime r)
{
    const struct examples *x = t->x;
    size_t n = (size_t)x->n_workloads * (size_t)x->n_types;
    float *alone = ARENA_ARRAY(t->scratch, float, n);
    double product = 0, alone2 = 0, own2 = 0;
    int count = 0;

    for (size_t i = 0; i < n; i++)
        alone[i] = NAN;
    for (int i = 0; i < t->n_alone; i++)
        alone[t->alone[i].workload * x->n_types + t->alone[i].gpu_type] =
            t->p->errors.alone[r][t->alone_at[i]];
    for (int i = 0; i < t->n_pairs; i++) {
        const struct example *pair = &t->pairs[i];
        int k = known_type_of(t->p, examples_at(x, pair->workload, pair->gpu_type));
        double sd = k < 0 ? (double)NAN : t->p->types[k].beside_sd[r][REGIME_KIN];
        double z = (double)alone[pair->workload * x->n_types + pair->gpu_type];
        double own = (double)t->p->errors.own[r][t->pairs_at[i]] / sd;
        if (isnan(z) || isnan(own))
            continue;
        product += z * own;
        alone2 += z * z;
        own2 += own * own;
        count++;
    }
    double groups = n_groups(t, r), share = groups / (groups + CROSS_NONE);
    double cross = count && alone2 > 0 && own2 > 0 ? share * product / sqrt(alone2 * own2) : 0;
    return fmin(fmax(cross, -CROSS_MAX), CROSS_MAX);
}

static void measure_spread(struct training *t)
{
    for (int r = 0; r < REGIMES; r++) {
        scale_sd(t, (enum regime)r, t->alone, t->n_alone, t->alone_at, t->p->errors.alone[r],
                 t->alone_sd[r], false);
        scale_sd(t, (enum regime)r, t->watts, t->n_watts, t->watts_at, t->p->errors.watts[r],
                 t->watts_sd[r], true);
    }
    spread_pairs(t);
    for (int r = 0; r < REGIMES; r++)
        t->p->cross[r] = cross_of(t, (enum regime)r);
}

/* Scores of networks that are not in the ensemble, for the table. */
static void score_others(struct training *t)
{
    struct p1 *p = t->p;

    for (int k = 0; k < N_NET_KINDS; k++) {
        enum p1_member m = p1_net_member((enum net_kind)k);
        double none[P1_MEMBERS];
        if (k == (int)p->favourite || !p->n_nets || !p->nets[k][0])
            continue;
        for (int r = 0; r < REGIMES; r++) {
            struct member_answers alone = { m, { t->said_alone[m][r] } };
            struct member_answers pairs = { m, { t->said_own[m][r], t->said_partner[m][r] } };
            weigh(&alone, 1, t->alone, t->n_alone, false, 1, none, p->scores, (enum regime)r);
            weigh(&pairs, 1, t->pairs, t->n_pairs, true, 1, none, p->scores, (enum regime)r);
        }
    }
}

int p1_train(const struct examples *x, const struct holdout *v, const struct p1_options *o,
             struct p1 **out, struct err *e)
{
    struct p1 *p = calloc(1, sizeof *p);
    struct arena scratch;

    assert(p);    // out of memory: stop
    arena_init(&p->arena);
    arena_init(&scratch);
    for (int m = 0; m < P1_MEMBERS; m++)
        for (int r = 0; r < REGIMES; r++)
            p->scores[m].alone[r] = p->scores[m].pair[r] = NAN;
    struct training t = { .p = p, .x = x, .v = v, .o = o, .scratch = &scratch };
    look(&t);
    know_types(&t);
    memory_make(&p->arena, x, v, &p->memory);
    fit_learn(&p->arena, x, v, &p->fit);
    int rc = train_processes(&t, e);
    if (rc == 0)
        rc = hold_out_processes(&t, e);
    if (rc == 0)
        rc = train_pairs(&t, e);
    if (rc == 0) {
        hold_out_nearest(&t);
        train_nets(&t);
        forget_strangers(&t);
        weigh_members(&t);
        take_errors(&t);
        measure_spread(&t);
        score_others(&t);
    }
    arena_release(&scratch);
    if (rc < 0) {
        p1_destroy(p);
        p = NULL;
    }
    *out = p;
    return rc;
}

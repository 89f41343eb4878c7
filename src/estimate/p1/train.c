/* How P1 learns: each member from what the view shows, then what each of them says of workloads
 * and families it has not seen, from that their weights, and from what is left the uncertainty.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
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

/* The examples of one target that are not held out. */
struct shown {
    struct example *list;    // (n)
    int *at;                 // (n) positions in the examples
    int n;
};

/* What is being trained, and what members said when they could not know. */
struct training {
    struct p1 *p;
    const struct examples *x;
    const struct holdout *v;
    const struct p1_options *o;
    struct arena *scratch;
    struct shown of[P1_TARGETS];                     // both targets of pairs have the same
    float *said[P1_TARGETS][P1_MEMBERS][REGIMES];    // (n) as the example's value; of pairs sqrt(r)
    double *sd[P1_TARGETS][REGIMES];                 // (n) the process's own; not of pairs
    bool *has_kin;           // (n_workloads) the view shows something of another of its family
    int *order[REGIMES];     // (n_workloads) its number, and its family's, among those shown
    int n_shown[REGIMES];    // workloads, and families
    struct net_question asked[REGIMES];    // of every workload on every type, with kin and without
};

static bool is_of_pairs(enum p1_target k)
{
    return k == P1_OWN || k == P1_PARTNER;
}

/* The workload that an example tells of when it is held out. */
static int held_of(enum p1_target k, const struct example *e)
{
    return k == P1_PARTNER ? e->neighbour : e->workload;
}

/* ---- what the view shows ---- */

static struct shown show(struct training *t, const struct example *from, int n)
{
    struct shown out = { .list = ARENA_ARRAY(t->scratch, struct example, (size_t)n),
                         .at = ARENA_ARRAY(t->scratch, int, (size_t)n) };

    for (int i = 0; i < n; i++)
        if (holdout_shows(t->v, from[i].workload, from[i].gpu_type, from[i].neighbour)) {
            out.at[out.n] = i;
            out.list[out.n++] = from[i];
        }
    return out;
}

static float *unsaid(struct arena *a, int n)
{
    float *f = ARENA_ARRAY(a, float, (size_t)n);

    for (int i = 0; i < n; i++)
        f[i] = NAN;
    return f;
}

static void find_kin(struct training *t)
{
    const struct examples *x = t->x;
    int *first = ARENA_ARRAY(t->scratch, int, (size_t)x->n_families);    // workload + 1

    t->has_kin = ARENA_ARRAY(t->scratch, bool, (size_t)x->n_workloads);
    const struct shown *alone = &t->of[P1_ALONE], *watts = &t->of[P1_WATTS];
    for (int i = 0; i < alone->n + watts->n; i++) {
        int w = i < alone->n ? alone->list[i].workload : watts->list[i - alone->n].workload;
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

    for (enum p1_target k = 0; k < P1_TARGETS; k++)
        for (int i = 0; i < t->of[k].n; i++)
            is_shown[held_of(k, &t->of[k].list[i])] = true;
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
    t->of[P1_ALONE] = show(t, t->x->alone, t->x->n_alone);
    t->of[P1_OWN] = t->of[P1_PARTNER] = show(t, t->x->pairs, t->x->n_pairs);
    t->of[P1_WATTS] = show(t, t->x->watts, t->x->n_watts);
    find_kin(t);
    number_shown(t);
    for (enum p1_target k = 0; k < P1_TARGETS; k++)
        for (int r = 0; r < REGIMES; r++) {
            t->sd[k][r] = ARENA_ARRAY(t->scratch, double, (size_t)t->of[k].n);
            for (int m = 0; m < P1_MEMBERS; m++)
                t->said[k][m][r] = unsaid(t->scratch, t->of[k].n);
        }
}

/* Is workload 'w' out when 'held' is: itself, or one of its family? */
static bool is_out(const struct training *t, enum regime r, int held, int w)
{
    return r == REGIME_KIN ? w == held : t->x->family[w] == t->x->family[held];
}

/* ---- processes ---- */

/* Leave each workload (or family) out of a process once. */
static int hold_out(struct training *t, const struct process *p, enum p1_target k, enum p1_member m,
                    enum regime r, struct err *e)
{
    const struct example *list = t->of[k].list;
    int n = t->of[k].n, rc = 0;
    double *mean = ARENA_ARRAY(t->scratch, double, (size_t)n);
    double *sd = ARENA_ARRAY(t->scratch, double, (size_t)n);
    bool *is_done = ARENA_ARRAY(t->scratch, bool, (size_t)n);
    int *block = ARENA_ARRAY(t->scratch, int, (size_t)n);
    struct arena once;

    arena_init(&once);
    for (int i = 0; i < n && rc == 0; i++) {
        int n_block = 0;
        if (is_done[i])
            continue;
        for (int j = i; j < n; j++)
            if (is_out(t, r, list[i].workload, list[j].workload)) {
                block[n_block++] = j;
                is_done[j] = true;
            }
        arena_reset(&once);
        rc = process_leave_out(&once, p, n_block, block, mean, sd, e);
    }
    arena_release(&once);
    for (int i = 0; i < n; i++)
        t->said[k][m][r][i] = (float)mean[i];
    if (m == P1_GP)
        memcpy(t->sd[k][r], sd, (size_t)n * sizeof *sd);
    return rc;
}

static int train_processes(struct training *t, struct err *e)
{
    struct p1 *p = t->p;
    const struct {
        struct process *process;
        enum p1_target target;
        enum p1_member member;
        kernel_f *kernel;
        double noise;
    } all[] = {
        { &p->alone, P1_ALONE, P1_GP, kernel_alone, ALONE_NOISE },
        { &p->ridge, P1_ALONE, P1_RIDGE, kernel_ridge, RIDGE_NOISE },
        { &p->watts, P1_WATTS, P1_GP, kernel_alone, WATTS_NOISE },
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == 0; i++) {
        const struct shown *of = &t->of[all[i].target];
        rc = process_fit(&p->arena, all[i].kernel, all[i].noise, t->x, of->n, of->list,
                         all[i].process, e);
        for (enum regime r = 0; r < REGIMES && rc == 0; r++)
            rc = hold_out(t, all[i].process, all[i].target, all[i].member, r, e);
    }
    return rc;
}

/* ---- pairs ---- */

/* Types beyond TYPES_MAX are learned from, but not known: those like them speak for them. */
static void know_types(struct training *t)
{
    const struct examples *x = t->x;
    struct p1 *p = t->p;
    bool *is_seen = ARENA_ARRAY(t->scratch, bool, (size_t)x->n_types);

    for (enum p1_target k = 0; k < P1_TARGETS; k++)
        for (int i = 0; i < t->of[k].n; i++)
            is_seen[t->of[k].list[i].gpu_type] = true;
    p->types = ARENA_ARRAY(&p->arena, struct trained_type, (size_t)x->n_types);
    for (int g = 0; g < x->n_types && p->n_types < TYPES_MAX; g++)
        if (is_seen[g])
            p->types[p->n_types++].on = *examples_at(x, 0, g);
}

/* The known type that an example is on; -1: none. */
static int known_type_of(const struct training *t, const struct example *e)
{
    const struct features *on = examples_at(t->x, e->workload, e->gpu_type);

    for (int k = 0; k < t->p->n_types; k++)
        if (features_are_of_one_type(&t->p->types[k].on, on))
            return k;
    return -1;
}

/* Leave each workload (or family) out of the process over pairs once, in both roles. */
static int hold_out_pairs(struct training *t, const struct beside *b, enum regime r, int n,
                          const int *at, struct err *e)
{
    double *s = ARENA_ARRAY(t->scratch, double, (size_t)n);
    int *block = ARENA_ARRAY(t->scratch, int, (size_t)n);
    bool *is_done = ARENA_ARRAY(t->scratch, bool, (size_t)t->x->n_workloads);
    const struct example *pairs = t->of[P1_OWN].list;
    struct arena once;
    int rc = 0;

    arena_init(&once);
    for (int w = 0; w < t->x->n_workloads && rc == 0; w++) {
        int m = 0;
        if (is_done[w] || t->v->is_held[w])
            continue;
        for (int i = 0; i < n; i++)
            if (is_out(t, r, w, pairs[at[i]].workload) || is_out(t, r, w, pairs[at[i]].neighbour))
                block[m++] = i;
        for (int k = w; k < t->x->n_workloads; k++)
            is_done[k] = is_done[k] || is_out(t, r, w, k);
        arena_reset(&once);
        rc = beside_leave_out(&once, b, m, block, s, e);
        for (int i = 0; i < m && rc == 0; i++) {
            for (enum p1_target k = P1_OWN; k <= P1_PARTNER; k++)
                if (is_out(t, r, w, held_of(k, &pairs[at[block[i]]])))
                    t->said[k][P1_GP][r][at[block[i]]] = (float)s[i];
        }
    }
    arena_release(&once);
    return rc;
}

static int train_pairs(struct training *t, struct err *e)
{
    const struct shown *pairs = &t->of[P1_OWN];
    struct example *list = ARENA_ARRAY(t->scratch, struct example, (size_t)pairs->n);
    int *at = ARENA_ARRAY(t->scratch, int, (size_t)pairs->n);
    int rc = 0;

    for (int k = 0; k < t->p->n_types && rc == 0; k++) {
        struct trained_type *type = &t->p->types[k];
        int n = 0;
        for (int i = 0; i < pairs->n; i++)
            if (known_type_of(t, &pairs->list[i]) == k) {
                at[n] = i;
                list[n++] = pairs->list[i];
            }
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
        for (int i = 0; i < t->of[P1_ALONE].n; i++) {
            const struct example *x = &t->of[P1_ALONE].list[i];
            t->said[P1_ALONE][P1_NEAREST3][r][i] =
                memory_alone(&t->p->memory, &t->x->who[x->workload],
                             examples_at(t->x, x->workload, x->gpu_type), r == REGIME_STRANGER, 3);
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
    for (int i = 0; i < t->of[P1_ALONE].n; i++) {
        const struct example *alone = &t->of[P1_ALONE].list[i];
        if (is_unseen[alone->workload])
            t->said[P1_ALONE][m][r][i] =
                fresh[alone->workload * x->n_types + alone->gpu_type].alone;
    }
    for (int i = 0; i < t->of[P1_OWN].n; i++) {
        const struct example *pair = &t->of[P1_OWN].list[i];
        int job = pair->workload * x->n_types + pair->gpu_type;
        int other = pair->neighbour * x->n_types + pair->gpu_type;
        bool job_out = is_unseen[pair->workload], other_out = is_unseen[pair->neighbour];
        float s = 0;
        if (!job_out && !other_out)
            continue;
        net_pairs(net, (job_out ? fresh : known)[job].as_job, 1,
                  (other_out ? fresh : known)[other].as_neighbour, NET_WIDTH, 1, &s);
        if (job_out)
            t->said[P1_OWN][m][r][i] = s;
        if (other_out)
            t->said[P1_PARTNER][m][r][i] = s;
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
    if (t->of[P1_ALONE].n < 8)
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
    for (enum p1_target k = 0; k < P1_TARGETS; k++)
        for (int i = 0; i < t->of[k].n; i++)
            for (int m = 0; m < P1_MEMBERS; m++)
                if (!counts(t, REGIME_KIN, held_of(k, &t->of[k].list[i])))
                    t->said[k][m][REGIME_KIN][i] = NAN;
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

/* How far example i of a target is from what was 'said' of it; NaN: nothing was. Pairs are compared
 * as ln r.
 */
static float error_of(const struct training *t, enum p1_target k, int i, float said)
{
    if (isnan(said))
        return NAN;
    return t->of[k].list[i].value - (is_of_pairs(k) ? p1_ln_r(said) : said);
}

/* Weights of n members by their errors: of speeds alone, or of pairs in both roles. */
static void weigh(const struct training *t, enum regime r, bool is_pair, int n,
                  const enum p1_member *members, int n_groups, double *weight)
{
    const enum p1_target first = is_pair ? P1_OWN : P1_ALONE;
    const enum p1_target last = is_pair ? P1_PARTNER : P1_ALONE;
    double products[P1_MEMBERS * P1_MEMBERS] = { 0 }, w[P1_MEMBERS] = { 0 };
    int used = 0;

    for (enum p1_target k = first; k <= last; k++)
        for (int i = 0; i < t->of[k].n; i++) {
            double error[P1_MEMBERS] = { 0 };
            bool is_whole = true;
            for (int m = 0; m < n; m++) {
                error[m] = (double)error_of(t, k, i, t->said[k][members[m]][r][i]);
                is_whole = is_whole && !isnan(error[m]);
            }
            used += is_whole;
            for (int m = 0; m < n * n && is_whole; m++)
                products[m] += error[m / n] * error[m % n];
        }
    for (int m = 0; m < n * n; m++)
        products[m] /= used ? used : 1;
    for (int m = 0; m < n; m++) {
        struct p1_score *score = &t->p->scores[members[m]];
        *(is_pair ? &score->pair[r] : &score->alone[r]) =
            used ? sqrt(products[m * n + m]) : (double)NAN;
    }
    even_out(products, n, n_groups, w);
    for (int m = 0; m < n; m++)    // nothing to go by: the process, which then says its prior
        weight[members[m]] = used ? w[m] : members[m] == P1_GP;
}

/* Workloads, or families, that something was measured of. */
static int n_groups(struct training *t, enum regime r)
{
    bool *is_seen = ARENA_ARRAY(t->scratch, bool, (size_t)(t->x->n_workloads + t->x->n_families));
    int n = 0;

    for (int i = 0; i < t->of[P1_ALONE].n; i++) {
        int w = t->of[P1_ALONE].list[i].workload;
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
    enum p1_member favourite = p1_net_member(p->favourite);
    const enum p1_member alone[] = { P1_NEAREST3, P1_RIDGE, P1_GP, favourite };
    const enum p1_member pairs[] = { P1_GP, favourite };
    int has_nets = p->n_nets > 0;

    for (enum regime r = 0; r < REGIMES; r++) {
        int groups = n_groups(t, r);
        weigh(t, r, false, 3 + has_nets, alone, groups, p->alone_weight[r]);
        weigh(t, r, true, 1 + has_nets, pairs, groups, p->pair_weight[r]);
    }
}

/* What all together said; NaN where a member with weight said nothing. */
static float together(const struct training *t, enum p1_target k, enum regime r, int i)
{
    const double *weight = is_of_pairs(k) ? t->p->pair_weight[r] : t->p->alone_weight[r];
    float sum = 0;

    if (k == P1_WATTS)
        return t->said[k][P1_GP][r][i];
    for (int m = 0; m < P1_MEMBERS; m++)
        if (weight[m] > 0)
            sum += (float)weight[m] * t->said[k][m][r][i];
    return sum;
}

/* ---- errors and uncertainty ---- */

/* Root mean square of the errors that are known, of targets first .. last; NaN: of nothing. */
static double rms(const struct training *t, enum p1_target first, enum p1_target last,
                  enum regime r)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < t->of[first].n; i++)
        for (enum p1_target k = first; k <= last; k++) {
            float error = t->p->errors.of[k][r][t->of[k].at[i]];
            sum += isnan(error) ? 0 : (double)(error * error);
            n += !isnan(error);
        }
    return n > 0 ? sqrt(sum / n) : (double)NAN;
}

static void take_errors(struct training *t)
{
    struct p1 *p = t->p;
    const int n[P1_TARGETS] = { t->x->n_alone, t->x->n_pairs, t->x->n_pairs, t->x->n_watts };

    p->has_errors = true;
    for (enum regime r = 0; r < REGIMES; r++) {
        for (enum p1_target k = 0; k < P1_TARGETS; k++) {
            float *out = p->errors.of[k][r] = unsaid(&p->arena, n[k]);
            for (int i = 0; i < t->of[k].n; i++)
                out[t->of[k].at[i]] = error_of(t, k, i, together(t, k, r, i));
        }
        p->scores[P1_ENSEMBLE].alone[r] = rms(t, P1_ALONE, P1_ALONE, r);
        p->scores[P1_ENSEMBLE].pair[r] = rms(t, P1_OWN, P1_PARTNER, r);
    }
}

/* Of errors in units of the process's own sd: by how much it should be larger, on each type. */
static void scale_sd(struct training *t, enum regime r, enum p1_target of)
{
    struct p1 *p = t->p;
    const struct shown *shown = &t->of[of];
    double *sum = ARENA_ARRAY(t->scratch, double, (size_t)p->n_types + 1);
    int *count = ARENA_ARRAY(t->scratch, int, (size_t)p->n_types + 1);

    for (int i = 0; i < shown->n; i++) {
        int k = known_type_of(t, &shown->list[i]);
        double u = (double)p->errors.of[of][r][shown->at[i]] / t->sd[of][r][i];
        if (isnan(u) || k < 0)
            continue;
        sum[k] += u * u;
        sum[p->n_types] += u * u;
        count[k]++;
        count[p->n_types]++;
    }
    double all = (sum[p->n_types] + FEW) / (count[p->n_types] + FEW);
    for (int k = 0; k < p->n_types; k++) {
        struct type_spread *spread = &p->types[k].spread[r];
        double scale = sqrt((sum[k] + SHRINK * all) / (count[k] + SHRINK));
        *(of == P1_WATTS ? &spread->watts_scale : &spread->alone_scale) = scale;
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
    const struct shown *pairs = &t->of[P1_OWN];

    for (int k = 0; k < p->n_types; k++) {
        double sum[REGIMES][2] = { { 0 } };
        int n[REGIMES][2] = { { 0 } };
        for (int i = 0; i < pairs->n; i++) {
            if (known_type_of(t, &pairs->list[i]) != k)
                continue;
            for (int r = 0; r < REGIMES; r++)
                for (int role = 0; role < 2; role++) {
                    float error = p->errors.of[P1_OWN + role][r][pairs->at[i]];
                    sum[r][role] += isnan(error) ? 0 : (double)(error * error);
                    n[r][role] += !isnan(error);
                }
        }
        struct type_spread *of = p->types[k].spread;
        double unknown = BESIDE_SD_UNKNOWN;
        of[0].beside_sd[0] = shrunk_rms(sum[0][0] + sum[0][1], n[0][0] + n[0][1], unknown);
        of[1].beside_sd[0] = shrunk_rms(sum[1][0], n[1][0], unknown);
        of[0].beside_sd[1] = shrunk_rms(sum[1][1], n[1][1], unknown);
        of[1].beside_sd[1] = fmax(of[1].beside_sd[0], of[0].beside_sd[1]) * 1.1;
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
    const struct shown *lone = &t->of[P1_ALONE], *pairs = &t->of[P1_OWN];
    float *alone = unsaid(t->scratch, x->n_workloads * x->n_types);
    double product = 0, alone2 = 0, own2 = 0;
    int count = 0;

    for (int i = 0; i < lone->n; i++)
        alone[lone->list[i].workload * x->n_types + lone->list[i].gpu_type] =
            t->p->errors.of[P1_ALONE][r][lone->at[i]];
    for (int i = 0; i < pairs->n; i++) {
        const struct example *pair = &pairs->list[i];
        int k = known_type_of(t, pair);
        double sd = k < 0 ? (double)NAN : t->p->types[k].spread[r].beside_sd[REGIME_KIN];
        double z = (double)alone[pair->workload * x->n_types + pair->gpu_type];
        double own = (double)t->p->errors.of[P1_OWN][r][pairs->at[i]] / sd;
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
    for (enum regime r = 0; r < REGIMES; r++) {
        scale_sd(t, r, P1_ALONE);
        scale_sd(t, r, P1_WATTS);
    }
    spread_pairs(t);
    for (enum regime r = 0; r < REGIMES; r++)
        t->p->cross[r] = cross_of(t, r);
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
        for (enum regime r = 0; r < REGIMES; r++) {
            weigh(t, r, false, 1, &m, 1, none);
            weigh(t, r, true, 1, &m, 1, none);
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

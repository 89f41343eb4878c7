#include "estimate/p1/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "estimate/p1/examples.h"
#include "nn/weights.h"

/* What likeness is made of: how much of it descriptors can give, and how much kin; within a
 * family it fades with the batch, to e^-1/2 over two units of its logarithm.
 */
#define BY_FEATURES 0.4
#define BY_KIN 0.6
#define BATCH_SCALE 2.0

/* Two GPU types that are this alike are the same: figures travel through files as they are. */
#define SAME_TYPE 0.9999

/* Nobody is so unlike that his word weighs nothing, when there is no other. */
#define LEAST_WEIGHT 1e-6

/* Scales of the distance to choose from; of equal ones the first. */
static const double scales[] = { 1, 0.5, 2 };

/* ---- likeness ---- */

/* Where a workload stands among others: one unit is far. */
static void place_of(const struct features *on, double *place)
{
    for (int i = 0; i < FEATURE_SHARES; i++)
        *place++ = sqrt(fmax((double)on->share[i], 0)) / 0.7;
    for (int i = 0; i < FEATURE_KINDS; i++)
        *place++ = (double)on->kind[i] / 1.4;
    *place++ = (double)on->ln_step_s / 2.8;
    *place++ = (double)on->ln_kernel_s / 2.8;
}

static double likeness(const struct memory *m, const struct identity *who,
                       const struct features *on, const double *place, int item)
{
    const struct remembered *it = &m->items[item];
    const double *there = m->place + (size_t)item * MEMORY_PLACE;
    double kin = identity_kin(who, &it->who), sum = 0, related = 0;

    for (int i = 0; i < MEMORY_PLACE; i++)
        sum += (place[i] - there[i]) * (place[i] - there[i]);
    if (kin > 0) {
        double d = (double)(on->ln_batch - it->on.ln_batch) / BATCH_SCALE;
        related = kin * exp(-d * d / 2);
    }
    return BY_FEATURES * exp(-sum / (2 * m->scale * m->scale)) + BY_KIN * related;
}

static bool is_wanted(const struct memory_query *q, const struct remembered *it)
{
    if (q->who->name == it->who.name)
        return false;
    if (q->no_kin && identity_kin(q->who, &it->who) > 0)
        return false;
    return q->what == REMEMBERED_ANYTHING || !isnan(it->value[q->what]);
}

struct search {
    const struct memory *m;
    const struct memory_query *q;
    double place[MEMORY_PLACE];
    int k, n;               // wanted, and found so far
    struct similar *out;    // (n) the best of these
    double score[MEMORY_NEAREST_MAX];
};

/* Put an item among the best. The score is kept apart, for items so unlike that a float calls them
 * equal.
 */
static void keep_best(struct search *s, int item, double similarity)
{
    int at = s->n;

    while (at > 0 && s->score[at - 1] < similarity)
        at--;
    if (at == s->k)
        return;
    s->n += s->n < s->k;
    memmove(s->out + at + 1, s->out + at, (size_t)(s->n - 1 - at) * sizeof *s->out);
    memmove(s->score + at + 1, s->score + at, (size_t)(s->n - 1 - at) * sizeof *s->score);
    s->out[at] = (struct similar){ item, (float)similarity };
    s->score[at] = similarity;
}

/* The best of the items on one type, which is 'same' like the wanted one. */
static void scan(struct search *s, int type, double same)
{
    const struct memory *m = s->m;

    for (int i = m->first[type]; i < m->first[type + 1]; i++)
        if (is_wanted(s->q, &m->items[i]))
            keep_best(s, i, same * likeness(m, s->q->who, s->q->on, s->place, i));
}

static double sameness(const struct memory *m, int type, const struct features *on)
{
    return features_same_type(on, &m->items[m->first[type]].on);
}

int memory_nearest(const struct memory *m, const struct memory_query *q, int k, struct similar *out)
{
    struct search s = { .m = m, .q = q, .k = k, .out = out };

    assert(0 < k && k <= MEMORY_NEAREST_MAX);
    place_of(q->on, s.place);
    for (int t = 0; t < m->n_types && s.n == 0; t++)
        if (sameness(m, t, q->on) > SAME_TYPE)
            scan(&s, t, 1);
    bool is_strange = s.n == 0;
    for (int t = 0; t < m->n_types && is_strange; t++)
        scan(&s, t, sameness(m, t, q->on));
    return s.n;
}

bool memory_has_kin(const struct memory *m, const struct identity *who)
{
    for (int i = 0; i < m->n; i++)
        if (who->name != m->items[i].who.name && identity_kin(who, &m->items[i].who) > 0)
            return true;
    return false;
}

bool memory_knows(const struct memory *m, const struct identity *who)
{
    for (int i = 0; i < m->n; i++)
        if (who->name == m->items[i].who.name)
            return true;
    return false;
}

double memory_mean_s(const struct memory *m, const struct features *on)
{
    double sum = 0, weight = 0;

    for (int t = 0; t < m->n_types; t++) {
        double same = sameness(m, t, on);
        if (isnan(m->mean_s[t]))
            continue;
        if (same > SAME_TYPE)
            return (double)m->mean_s[t];
        sum += (same + 1e-6) * (double)m->mean_s[t];
        weight += same + 1e-6;
    }
    return weight > 0 ? sum / weight : MEMORY_S_UNKNOWN;
}

/* ---- what the nearest say ---- */

struct weighted_sum {
    double sum, weight;
    int n;
};

static struct weighted_sum ask_nearest(const struct memory *m, const struct memory_query *q, int k)
{
    struct similar best[MEMORY_NEAREST_MAX];
    struct weighted_sum o = { .n = memory_nearest(m, q, k, best) };

    for (int i = 0; i < o.n; i++) {
        double weight = (double)best[i].similarity + LEAST_WEIGHT;
        o.sum += weight * (double)m->items[best[i].item].value[q->what];
        o.weight += weight;
    }
    return o;
}

/* Over everything that may be looked at: never the one who asks. */
static double overall_mean(const struct memory *m, const struct identity *who)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        float value = m->items[i].value[REMEMBERED_ALONE];
        if (isnan(value) || m->items[i].who.name == who->name)
            continue;
        sum += (double)value;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

float memory_alone(const struct memory *m, const struct identity *who, const struct features *on,
                   bool no_kin, int k)
{
    struct weighted_sum o =
        ask_nearest(m, &(struct memory_query){ who, on, no_kin, REMEMBERED_ALONE }, k);

    return (float)(o.n > 0 ? o.sum / o.weight : overall_mean(m, who));
}

static float deviation(const struct memory *m, const struct identity *who,
                       const struct features *on, enum remembered_what what, int k)
{
    struct weighted_sum o = ask_nearest(m, &(struct memory_query){ who, on, false, what }, k);

    return (float)(o.sum / (o.weight + MEMORY_HALF_BELIEVED));
}

float memory_as_job(const struct memory *m, const struct identity *who, const struct features *on,
                    int k)
{
    return deviation(m, who, on, REMEMBERED_AS_JOB, k);
}

const struct remembered *memory_find(const struct memory *m, const struct identity *who,
                                     const struct features *on)
{
    for (int i = 0; i < m->n; i++)
        if (who->name == m->items[i].who.name &&
            features_same_type(on, &m->items[i].on) > SAME_TYPE)
            return &m->items[i];
    return NULL;
}

float memory_as_neighbour(const struct memory *m, const struct identity *who,
                          const struct features *on, int k)
{
    const struct remembered *self = memory_find(m, who, on);

    if (self && !isnan(self->value[REMEMBERED_AS_NEIGHBOUR]))
        return self->value[REMEMBERED_AS_NEIGHBOUR];
    return deviation(m, who, on, REMEMBERED_AS_NEIGHBOUR, k);
}

/* ---- making one ---- */

/* Sums over what is shown of each (type, workload), all workloads of a type side by side. */
struct sums {
    double sum[REMEMBERED_ANYTHING];
    int n[REMEMBERED_ANYTHING];
};

static void add(struct sums *s, enum remembered_what what, double value)
{
    s->sum[what] += value;
    s->n[what]++;
}

static void sum_alone(const struct examples *x, const struct holdout *v, int n,
                      const struct example *list, enum remembered_what what, struct sums *all)
{
    for (int i = 0; i < n; i++)
        if (holdout_shows(v, list[i].workload, list[i].gpu_type, -1))
            add(&all[list[i].gpu_type * x->n_workloads + list[i].workload], what,
                (double)list[i].value);
}

static void sum_up(const struct examples *x, const struct holdout *v, struct sums *all)
{
    sum_alone(x, v, x->n_alone, x->alone, REMEMBERED_ALONE, all);
    sum_alone(x, v, x->n_watts, x->watts, REMEMBERED_WATTS, all);
    for (int i = 0; i < x->n_pairs; i++) {
        const struct example *e = &x->pairs[i];
        struct sums *s = &all[e->gpu_type * x->n_workloads];
        if (holdout_shows(v, e->workload, e->gpu_type, e->neighbour)) {
            double root = exp((double)e->value / 2);
            add(&s[e->workload], REMEMBERED_AS_JOB, root);
            add(&s[e->neighbour], REMEMBERED_AS_NEIGHBOUR, root);
        }
    }
}

/* All that is known on one type; its items end up side by side. */
static void remember_type(const struct examples *x, int type, const struct sums *s,
                          struct memory *out)
{
    double sum = 0;
    int n_pairs = 0, first = out->n;

    for (int w = 0; w < x->n_workloads; w++) {
        sum += s[w].sum[REMEMBERED_AS_JOB];
        n_pairs += s[w].n[REMEMBERED_AS_JOB];
    }
    double mean = n_pairs > 0 ? sum / n_pairs : 0;
    for (int w = 0; w < x->n_workloads; w++) {
        struct remembered it = { .who = x->who[w], .on = *examples_at(x, w, type) };
        bool is_known = false;
        for (int i = 0; i < REMEMBERED_ANYTHING; i++) {
            double less = i < REMEMBERED_AS_JOB ? 0 : mean;
            it.value[i] = s[w].n[i] > 0 ? (float)(s[w].sum[i] / s[w].n[i] - less) : NAN;
            is_known = is_known || s[w].n[i] > 0;
        }
        if (is_known)
            out->items[out->n++] = it;
    }
    if (out->n == first)
        return;
    out->mean_s[out->n_types] = n_pairs > 0 ? (float)mean : NAN;
    out->first[out->n_types++] = first;
    out->first[out->n_types] = out->n;
}

static void make_room(struct arena *a, int n, int n_types, struct memory *out)
{
    *out = (struct memory){
        .items = ARENA_ARRAY(a, struct remembered, (size_t)n),
        .place = ARENA_ARRAY(a, double, (size_t)n *MEMORY_PLACE),
        .first = ARENA_ARRAY(a, int, (size_t)n_types + 1),
        .mean_s = ARENA_ARRAY(a, float, (size_t)n_types),
        .scale = scales[0],
    };
}

static void find_places(struct memory *m)
{
    for (int i = 0; i < m->n; i++)
        place_of(&m->items[i].on, m->place + (size_t)i * MEMORY_PLACE);
}

/* How far the nearest three are off, of what the mean would be; each item as if it were new. */
static double scale_error(const struct memory *m, enum remembered_what what)
{
    double off = 0, spread = 0, mean = 0;
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        float value = m->items[i].value[what];
        mean += isnan(value) ? 0 : (double)value;
        n += !isnan(value);
    }
    mean /= n > 0 ? n : 1;
    for (int i = 0; i < m->n; i++) {
        const struct remembered *it = &m->items[i];
        struct similar best[3];
        double sum = 0, weight = 1e-9;

        if (isnan(it->value[what]))
            continue;
        int k =
            memory_nearest(m, &(struct memory_query){ &it->who, &it->on, false, what }, 3, best);
        for (int j = 0; j < k; j++) {
            sum += (double)best[j].similarity * (double)m->items[best[j].item].value[what];
            weight += (double)best[j].similarity;
        }
        off += fabs(sum / weight - (double)it->value[what]);
        spread += fabs(mean - (double)it->value[what]);
    }
    return spread > 0 ? off / spread : 0;
}

static void choose_scale(struct memory *m)
{
    double best = INFINITY, chosen = scales[0];

    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        double error = 0;

        m->scale = scales[i];
        for (int what = REMEMBERED_ALONE; what < REMEMBERED_ANYTHING; what++)
            error += scale_error(m, (enum remembered_what)what);
        if (error < best) {
            best = error;
            chosen = m->scale;
        }
    }
    m->scale = chosen;
}

void memory_make(struct arena *a, const struct examples *x, const struct holdout *v,
                 struct memory *out)
{
    int n = x->n_workloads * x->n_types;
    struct arena scratch;

    arena_init(&scratch);
    struct sums *all = ARENA_ARRAY(&scratch, struct sums, (size_t)n);
    make_room(a, n, x->n_types, out);
    sum_up(x, v, all);
    for (int t = 0; t < x->n_types; t++)
        remember_type(x, t, all + t * x->n_workloads, out);
    find_places(out);
    choose_scale(out);
    arena_release(&scratch);
}

/* ---- files ---- */

/* Digests as halves, which a double holds exactly; what is not known is masked. */
enum { WHO_COLS = 6, VALUE_COLS = REMEMBERED_ANYTHING };

/* Residuals are logarithms and roots: none is near this. */
#define VALUE_MAX 1e3f

static void halve(uint64_t digest, double *to)
{
    to[0] = (double)(digest >> 32);
    to[1] = (double)(digest & 0xffffffffu);
}

static bool join(const double *from, uint64_t *digest)
{
    uint64_t half[2];

    for (int i = 0; i < 2; i++) {
        if (!(from[i] >= 0 && from[i] <= 0xffffffffu) || from[i] != floor(from[i]))
            return false;
        half[i] = (uint64_t)from[i];
    }
    *digest = half[0] << 32 | half[1];
    return true;
}

static void put_masked(struct weights *to, const char *name, const char *mask_name, int rows,
                       int cols, const float *values)
{
    size_t n = (size_t)rows * (size_t)cols;
    float *value = ARENA_ARRAY(to->a, float, n), *mask = ARENA_ARRAY(to->a, float, n);

    for (size_t i = 0; i < n; i++) {
        mask[i] = isnan(values[i]) ? 0 : 1;
        value[i] = isnan(values[i]) ? 0 : values[i];
    }
    weights_put(to, name, rows, cols, value);
    weights_put(to, mask_name, rows, cols, mask);
}

void memory_save(const struct memory *m, struct weights *to)
{
    size_t n = (size_t)m->n;
    double *who = ARENA_ARRAY(to->a, double, n *WHO_COLS);
    double *on = ARENA_ARRAY(to->a, double, n *FEATURE_NUMBERS);
    double *first = ARENA_ARRAY(to->a, double, (size_t)m->n_types + 1);
    float *values = ARENA_ARRAY(to->a, float, n *VALUE_COLS);

    for (size_t i = 0; i < n; i++) {
        halve(m->items[i].who.name, who + i * WHO_COLS);
        halve(m->items[i].who.family, who + i * WHO_COLS + 2);
        halve(m->items[i].who.dataset, who + i * WHO_COLS + 4);
        features_write(&m->items[i].on, on + i * FEATURE_NUMBERS);
        memcpy(values + i * VALUE_COLS, m->items[i].value, sizeof m->items[i].value);
    }
    for (int t = 0; t <= m->n_types; t++)
        first[t] = (double)m->first[t];
    weights_put_doubles(to, "memory.who", m->n, WHO_COLS, who);
    weights_put_doubles(to, "memory.features", m->n, FEATURE_NUMBERS, on);
    put_masked(to, "memory.values", "memory.known", m->n, VALUE_COLS, values);
    put_masked(to, "memory.mean-s", "memory.mean-s-known", 1, m->n_types, m->mean_s);
    weights_put_doubles(to, "memory.first", 1, m->n_types + 1, first);
    weights_put_doubles(to, "memory.scale", 1, 1, &m->scale);
}

/* In 'a'; NaN where the mask is 0. */
static float *get_masked(struct arena *a, struct weights_reader *in, const char *name,
                         const char *mask_name, int rows, int cols)
{
    size_t n = (size_t)rows * (size_t)cols;
    float *out = ARENA_ARRAY(a, float, n);
    const float *value = weights_floats(in, name, rows, cols);
    const float *mask = weights_floats(in, mask_name, rows, cols);

    if (in->rc == 0 && !weights_within(value, n, VALUE_MAX))
        in->rc = err_set(in->e, EINVAL, "%s: a number that nothing measured is", name);
    for (size_t i = 0; in->rc == 0 && i < n; i++)
        out[i] = mask[i] > 0 ? value[i] : NAN;
    return out;
}

static int load_items(struct arena *a, struct weights_reader *in, struct memory *m)
{
    const double *who = weights_doubles(in, "memory.who", m->n, WHO_COLS);
    const double *on = weights_doubles(in, "memory.features", m->n, FEATURE_NUMBERS);
    const float *value = get_masked(a, in, "memory.values", "memory.known", m->n, VALUE_COLS);

    for (int i = 0; in->rc == 0 && i < m->n;
         i++, who += WHO_COLS, on += FEATURE_NUMBERS, value += VALUE_COLS) {
        struct remembered *it = &m->items[i];

        if (!join(who, &it->who.name) || !join(who + 2, &it->who.family) ||
            !join(who + 4, &it->who.dataset))
            return err_set(in->e, EINVAL, "memory.who: row %d is not made of digests", i + 1);
        if (!weights_within_doubles(on, FEATURE_NUMBERS, FEATURE_MAX))
            return err_set(in->e, EINVAL, "memory.features: row %d is beyond any feature", i + 1);
        features_read(on, &it->on);
        memcpy(it->value, value, sizeof it->value);
    }
    return in->rc;
}

/* Where each type's items begin: each has some, all are in order. */
static int load_types(struct arena *a, struct weights_reader *in, struct memory *m)
{
    const double *first = weights_doubles(in, "memory.first", 1, m->n_types + 1);
    const double *scale = weights_doubles(in, "memory.scale", 1, 1);
    struct err *e = in->e;

    m->mean_s = get_masked(a, in, "memory.mean-s", "memory.mean-s-known", 1, m->n_types);
    if (in->rc < 0)
        return in->rc;
    if (first[0] != 0 || first[m->n_types] != m->n)
        return err_set(e, EINVAL, "memory.first: want to begin at 0 and to end at %d", m->n);
    for (int t = 0; t <= m->n_types; t++) {
        if (first[t] != floor(first[t]) || (t > 0 && !(first[t] > first[t - 1])))
            return err_set(e, EINVAL, "memory.first: type %d has no items", t);
        m->first[t] = (int)first[t];
    }
    if (!(*scale >= 1e-3 && *scale <= 1e3))
        return err_set(e, EINVAL, "memory.scale: want a number between 0.001 and 1000");
    m->scale = *scale;
    return 0;
}

int memory_load(struct arena *a, const struct weights *from, struct memory *out, struct err *e)
{
    struct weights_reader in = { from, e, 0 };

    weights_doubles(&in, "memory.who", -1, WHO_COLS);
    weights_doubles(&in, "memory.first", 1, -1);
    if (in.rc < 0)    // only now is there a number behind every row that room is made for
        return in.rc;
    int n = weights_find(from, "memory.who")->rows;
    int n_firsts = weights_find(from, "memory.first")->cols;
    if (n_firsts < 1)
        return err_set(e, EINVAL, "memory.first: want where at least one type begins");
    make_room(a, n, n_firsts - 1, out);
    out->n = n;
    out->n_types = n_firsts - 1;
    int rc = load_types(a, &in, out);
    if (rc == 0)
        rc = load_items(a, &in, out);
    if (rc == 0)
        find_places(out);
    return rc;
}

#include "optimize/prices/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/stats.h"
#include "optimize/prices/fork_join.h"

/* Levels of slots that differ by less are one edge, for jobs that add up several slots. */
#define LEVEL_STEP 1.001

/* Patterns that are listed, at 25 bytes each (more with caps); beyond, combinations of fewer jobs
 * are.
 */
#define PATTERNS_MOST 8e6

/* Those who take slots add levels as edges while there are fewer pairs than this. */
#define LEVELS_PAIRS_MOST 200000

/* ---- classes ---- */

/* Types on which a job of the kind runs alone. */
static uint64_t types_of(const struct columns *c, const struct problem_job *j)
{
    uint64_t types = 0;
    struct yield y;

    for (int t = 0; t < c->p->n_types; t++)
        if (problem_allows(j, t) && problem_yield(c->p, t, 0, &j->kind, 1, &y))
            types |= UINT64_C(1) << t;
    return types;
}

/* The class of a job, known or new; last[kind] is the last class of its kind. */
static int class_for(struct columns *c, const struct problem_job *j, uint64_t types, int *last,
                     int *cap)
{
    int k = last[j->kind];

    while (k >= 0 &&
           (c->classes[k].types != types || c->classes[k].is_exclusive != j->is_exclusive))
        k = c->classes[k].before;
    if (k >= 0)
        return k;
    GROW(c->classes, c->n_classes, *cap);
    c->classes[c->n_classes] = (struct job_class){
        .kind = j->kind, .types = types, .is_exclusive = j->is_exclusive, .before = last[j->kind]
    };
    return last[j->kind] = c->n_classes++;
}

static void make_classes(struct columns *c)
{
    const struct problem *p = c->p;
    int *last = heap_array((size_t)p->n_kinds, sizeof *last), cap = 0;

    for (int k = 0; k < p->n_kinds; k++)
        last[k] = -1;
    c->class_of = ARENA_ARRAY(&c->arena, int, (size_t)p->n_jobs);
    c->like = ARENA_ARRAY(&c->arena, int, (size_t)p->n_jobs);
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        c->class_of[i] = c->like[i] = -1;
        if (!j->name || !job_takes_slots(j) || (j->is_fixed && p->theta < 3))
            continue;
        uint64_t types = types_of(c, j);
        if (!types)
            continue;
        int k = class_for(c, j, types, last, &cap);
        c->classes[k].n_jobs++;
        *(j->is_fixed ? &c->like[i] : &c->class_of[i]) = k;
    }
    free(last);
}

static int class_or_last(const struct columns *c, int job)
{
    return c->class_of[job] < 0 ? c->n_classes : c->class_of[job];
}

static int by_class(const void *a, const void *b, void *self)
{
    const struct columns *c = self;
    int i = *(const int *)a, k = *(const int *)b;
    double x = c->p->jobs[i].need, y = c->p->jobs[k].need;

    if (c->class_of[i] != c->class_of[k])
        return class_or_last(c, i) - class_or_last(c, k);
    return x != y && c->class_of[i] >= 0 ? (x < y ? -1 : 1) : i - k;
}

/* Jobs by class and rising need; those that may move without one come last. */
static void list_jobs(struct columns *c)
{
    int n = 0;

    c->jobs = ARENA_ARRAY(&c->arena, int, (size_t)c->p->n_jobs);
    c->first_job = ARENA_ARRAY(&c->arena, int, (size_t)c->n_classes + 2);
    for (int j = 0; j < c->p->n_jobs; j++)
        if (c->p->jobs[j].name && !c->p->jobs[j].is_fixed) {
            c->jobs[n++] = j;
            c->first_job[class_or_last(c, j) + 1]++;
        }
    for (int k = 0; k <= c->n_classes; k++)
        c->first_job[k + 1] += c->first_job[k];
    qsort_r(c->jobs, (size_t)n, sizeof *c->jobs, by_class, c);
}

int ranked_least_first(const void *a, const void *b)
{
    const struct ranked_index *x = a, *y = b;

    return x->by != y->by ? (x->by < y->by ? -1 : 1)
                          : (x->which > y->which) - (x->which < y->which);
}

int ranked_most_first(const void *a, const void *b)
{
    const struct ranked_index *x = a, *y = b;

    return x->by != y->by ? (x->by > y->by ? -1 : 1)
                          : (x->which > y->which) - (x->which < y->which);
}

struct key_index key_index_make(struct arena *a, const int *keys, int n, int n_keys)
{
    struct key_index x = { .first = ARENA_ARRAY(a, int, (size_t)n_keys + 2) };

    for (int i = 0; i < n; i++)
        if (keys[i] >= 0)
            x.first[keys[i] + 2]++;
    for (int k = 0; k < n_keys; k++)
        x.first[k + 2] += x.first[k + 1];
    x.items = ARENA_ARRAY(a, int, (size_t)x.first[n_keys + 1]);
    for (int i = 0; i < n; i++)
        if (keys[i] >= 0)
            x.items[x.first[keys[i] + 1]++] = i;
    return x;
}

/* ---- all combinations of classes on a type ---- */

struct combination {
    int n, classes[THETA_MAX];
    int limit;
    struct yield y;
    double low[THETA_MAX];    // yield_low
};

typedef void visit_f(void *self, int type, const struct combination *x);

/* Visit 'x' under every setting; false: it must not run. */
static bool visit_settings(const struct columns *c, int type, struct combination *x, visit_f *visit,
                           void *self)
{
    int kinds[THETA_MAX];
    bool runs = false;

    for (int i = 0; i < x->n; i++)
        kinds[i] = c->classes[x->classes[i]].kind;
    for (x->limit = 0; x->limit < c->p->types[type].n_limits; x->limit++) {
        if (!problem_yield(c->p, type, x->limit, kinds, x->n, &x->y))
            break;
        runs = true;
        for (int i = 0; i < x->n; i++)
            x->low[i] = yield_low(c->p, &x->y, i);
        visit(self, type, x);
    }
    return runs;
}

static const struct combination nobody;

/* 'x' and one more, of a class not before the last; and so on, up to 'most'. */
static void visit_larger(const struct columns *c, int type, const struct combination *x, int most,
                         visit_f *visit, void *self)
{
    for (int k = x->n ? x->classes[x->n - 1] : 0; k < c->n_classes; k++) {
        const struct job_class *class = &c->classes[k];
        struct combination more = *x;
        int same = 0;
        while (same < x->n && x->classes[x->n - 1 - same] == k)
            same++;
        if (!(class->types >> type & 1) || (x->n > 0 && class->is_exclusive) ||
            same >= class->n_jobs)
            continue;
        more.classes[more.n++] = k;
        if (visit_settings(c, type, &more, visit, self) && more.n < most && !class->is_exclusive)
            visit_larger(c, type, &more, most, visit, self);
    }
}

/* ---- bins ---- */

struct edges {
    int n, cap;
    double *at;
    bool wants_levels;    // some job adds up several slots
};

static void edge_add(struct edges *e, double at)
{
    GROW(e->at, e->n, e->cap);
    e->at[e->n++] = at;
}

static void add_level(void *self, int type, const struct combination *x)
{
    struct edges *edges = self;

    (void)type;
    for (int i = 0; i < x->n; i++)
        if (edges[x->classes[i]].wants_levels)
            edge_add(&edges[x->classes[i]], x->low[i]);
}

/* The needs of a class's jobs, or what a part of a spread one has to hold where all are alike. */
static void add_needs(const struct columns *c, struct edges *edges)
{
    for (int i = 0; i < c->p->n_jobs; i++) {
        const struct problem_job *j = &c->p->jobs[i];
        if (c->class_of[i] < 0)
            continue;
        struct edges *e = &edges[c->class_of[i]];
        int parts = j->form == FORM_SPREAD ? j->n_max : 1;
        e->wants_levels |= parts > 1;
        for (int q = 1; q <= parts && j->need > 0; q++)
            edge_add(e, j->need / q);
    }
}

/* Sorted, each once, not too many; the first is 0. */
static int thin_out(struct edges *e, int most)
{
    int n = 0;

    edge_add(e, 0);
    qsort(e->at, (size_t)e->n, sizeof *e->at, by_number);
    for (int i = 0; i < e->n; i++)
        if (n == 0 || e->at[i] > e->at[n - 1] * (e->wants_levels ? LEVEL_STEP : 1))
            e->at[n++] = e->at[i];
    if (n <= most)
        return n;
    for (int i = 0; i < most; i++)
        e->at[i] = e->at[(long)i * n / most];
    return most;
}

static void name_bins(struct columns *c)
{
    c->class_of_bin = ARENA_ARRAY(&c->arena, int, (size_t)c->n_bins);
    for (int k = 0; k < c->n_classes; k++)
        for (int b = 0; b < c->classes[k].n_bins; b++)
            c->class_of_bin[c->classes[k].first_bin + b] = k;
}

/* So many bins for a class, with no slots in them. */
static void give_bins(struct columns *c, struct job_class *k, int n)
{
    k->first_bin = c->n_bins;
    k->n_bins = n;
    k->edge = ARENA_ARRAY(&c->arena, double, (size_t)n);
    k->top = ARENA_ARRAY(&c->arena, double, (size_t)n);
    for (int b = 0; b < n; b++)
        k->top[b] = -1;
    c->n_bins += n;
}

static void make_bins(struct columns *c, int bins_most)
{
    struct edges *edges = heap_array((size_t)c->n_classes, sizeof *edges);
    double pairs = 0.5 * c->n_classes * c->n_classes * c->p->n_types;

    add_needs(c, edges);
    for (int t = 0; t < c->p->n_types && pairs < LEVELS_PAIRS_MOST; t++)
        visit_larger(c, t, &nobody, c->theta < 2 ? c->theta : 2, add_level, edges);
    c->n_bins = 1;
    for (int k = 0; k < c->n_classes; k++) {
        struct job_class *class = &c->classes[k];
        give_bins(c, class, thin_out(&edges[k], bins_most));
        memcpy(class->edge, edges[k].at, (size_t) class->n_bins * sizeof *class->edge);
        free(edges[k].at);
    }
    free(edges);
    name_bins(c);
}

long columns_n_patterns(const struct columns *c)
{
    long n = 0;

    for (int t = 0; t < c->p->n_types; t++)
        n += c->patterns[t].n;
    return n;
}

int columns_bin(const struct job_class *k, double low)
{
    int from = 0, n = k->n_bins;    // the first above 'low' is among from .. from + n

    while (n > 0) {
        int half = n / 2;
        bool is_below = k->edge[from + half] <= low;
        from += is_below ? half + 1 : 0;
        n = is_below ? n - half - 1 : half;
    }
    return from > 0 ? from - 1 : 0;
}

int columns_bin_for(const struct job_class *k, double need)
{
    int b = columns_bin(k, need);

    while (b < k->n_bins && k->top[b] < need)
        b++;
    return b;
}

/* A slot of the class may hold so much; returns its bin. */
static int raise_top(const struct job_class *k, double low)
{
    int bin = columns_bin(k, low);

    k->top[bin] = fmax(k->top[bin], low);
    return k->first_bin + bin;
}

/* ---- patterns ---- */

static void patterns_grow(struct patterns *to, bool has_cap, bool has_gpu)
{
    if (to->n < to->cap)
        return;
    to->cap = to->cap ? 2 * to->cap : 1024;
    size_t n = (size_t)to->cap;
    RESIZE(to->bin, n * (size_t)to->theta);
    RESIZE(to->cost_w, n);
    RESIZE(to->limit, n);
    if (has_cap)
        RESIZE(to->draw_w, n);
    if (has_gpu)
        RESIZE(to->gpu_w, n);
}

static void add_pattern(void *self, int type, const struct combination *x)
{
    const struct columns *c = self;
    const struct problem_type *t = &c->p->types[type];
    struct patterns *to = &c->patterns[type];
    double *top = c->tops + (long)type * c->n_bins;

    patterns_grow(to, fmin(c->room_w, c->rack_room_w[type]) < HUGE_VAL, c->theta < c->p->theta);
    int *bin = to->bin + to->n * to->theta;
    for (int i = 0; i < to->theta; i++) {
        bin[i] = 0;
        if (i >= x->n)
            continue;
        bin[i] = columns_slot(&c->classes[x->classes[i]], x->low[i]);
        top[bin[i]] = fmax(top[bin[i]], x->low[i]);
    }
    to->cost_w[to->n] = x->y.cost_w;
    to->limit[to->n] = (unsigned char)x->limit;
    if (to->draw_w)
        to->draw_w[to->n] = (float)((x->y.watts - t->idle_w) * c->p->watts_margin);
    if (to->gpu_w)
        to->gpu_w[to->n] = (float)(x->y.watts - t->sleep_w + c->p->price_w);
    to->n++;
}

static void list_types(void *self, int part, int n_parts)
{
    struct columns *c = self;

    for (int t = part; t < c->p->n_types; t += n_parts) {
        c->patterns[t].theta = c->theta;
        if (c->n_usable[t] > 0)
            visit_larger(c, t, &nobody, c->theta, add_pattern, c);
    }
}

static void make_patterns(struct columns *c, int threads)
{
    long n_types = c->p->n_types, n = n_types * c->n_bins;

    c->tops = heap_array((size_t)n, sizeof *c->tops);
    c->patterns = ARENA_ARRAY(&c->arena, struct patterns, (size_t)n_types);
    for (long i = 0; i < n; i++)
        c->tops[i] = -1;
    fork_join(threads, list_types, c);
    for (long i = 0; i < n; i++)
        if (i % c->n_bins && c->tops[i] >= 0)
            raise_top(&c->classes[c->class_of_bin[i % c->n_bins]], c->tops[i]);
    free(c->tops);
    c->tops = NULL;
}

/* Types to two threads, so that both have about as many patterns. */
static void divide_types(struct columns *c)
{
    long load[2] = { 0 };
    int n = c->p->n_types;

    c->part_of = ARENA_ARRAY(&c->arena, unsigned char, (size_t)n);
    memset(c->part_of, 2, (size_t)n);    // nobody's yet
    for (int i = 0; i < n; i++) {
        int most = -1;
        for (int t = 0; t < n; t++)
            if (c->part_of[t] == 2 && (most < 0 || c->patterns[t].n > c->patterns[most].n))
                most = t;
        c->part_of[most] = load[1] < load[0];
        load[c->part_of[most]] += c->patterns[most].n;
    }
}

/* Combinations of n of the classes on all types under all settings, roughly. */
static double about_patterns(const struct columns *c, int n)
{
    double all = 0, of_size = 1;

    for (int i = 1; i <= n; i++) {
        of_size *= (double)(c->n_classes + i - 1) / i;
        all += of_size;
    }
    int n_settings = 0;
    for (int t = 0; t < c->p->n_types; t++)
        n_settings += c->p->types[t].n_limits;
    return all * n_settings;
}

/* ---- GPUs and gangs ---- */

double *caps_room_w(struct arena *a, const struct problem *p, const struct residents *residents)
{
    double *room_w = ARENA_ARRAY(a, double, 1 + (size_t)p->n_racks);
    double *idle_w = ARENA_ARRAY(a, double, 1 + (size_t)p->n_racks);

    for (int g = 0; g < p->n_gpus; g++) {
        const struct residents *on = &residents[g];
        struct yield y = { .watts = p->types[p->gpus[g].type].idle_w };
        const int at[] = { 0, 1 + p->gpus[g].rack };
        for (int i = 0; i < 1 + (p->rack_cap_w != NULL); i++)
            idle_w[at[i]] += y.watts;
        if (on->n > 0)
            problem_yield_of(p, p->gpus[g].type, p->jobs[on->jobs[0]].present_limit, on->jobs,
                             on->n, &y);
        for (int i = 0; i < 1 + (p->rack_cap_w != NULL); i++)
            room_w[at[i]] += y.watts;
    }
    for (int r = -1; r < p->n_racks; r++) {
        double cap_w = r < 0 ? p->power_cap_w : p->rack_cap_w ? p->rack_cap_w[r] : 0;
        room_w[1 + r] =
            cap_w > 0 ? fmax(cap_w / p->watts_margin, room_w[1 + r]) - idle_w[1 + r] : HUGE_VAL;
    }
    return room_w;
}

int columns_residents(const struct columns *c, int gpu, int *jobs, int *n_fixed)
{
    const struct residents *all = &c->residents[gpu];
    int n = 0;

    for (int i = 0; i < all->n; i++)
        if (c->p->jobs[all->jobs[i]].is_fixed)
            jobs[n++] = all->jobs[i];
    *n_fixed = n;
    for (int i = 0; i < all->n; i++)
        if (c->class_of[all->jobs[i]] >= 0)
            jobs[n++] = all->jobs[i];
    return n;
}

static void make_gpus(struct columns *c)
{
    const struct problem *p = c->p;

    c->residents = problem_residents(&c->arena, p);
    c->is_held = ARENA_ARRAY(&c->arena, bool, (size_t)p->n_gpus);
    c->n_open = ARENA_ARRAY(&c->arena, int, (size_t)p->n_types);
    c->n_usable = ARENA_ARRAY(&c->arena, int, (size_t)p->n_types);
    for (int g = 0; g < p->n_gpus; g++) {
        const struct residents *on = &c->residents[g];
        for (int i = 0; i < on->n; i++)
            c->is_held[g] |= p->jobs[on->jobs[i]].is_fixed;
        c->n_open[p->gpus[g].type] += p->gpus[g].may_start && !c->is_held[g];
        c->n_usable[p->gpus[g].type] += p->gpus[g].may_start || on->n > 0;
    }
}

double type_below_idle_w(const struct problem_type *t)
{
    double least_w = t->idle_w;

    for (int l = 1; l < t->n_limits; l++)
        for (int i = 0; i < t->limits[l].n_points; i++)
            least_w = fmin(least_w, t->limits[l].watts[i]);
    return t->idle_w - least_w;
}

/* Racks have prices by the types that stand in them: GPUs of a type draw no more than all racks
 * with such GPUs have room for, and what others there may draw less than idle.
 */
static void find_room(struct columns *c)
{
    const struct problem *p = c->p;
    double *room_w = caps_room_w(&c->arena, p, c->residents);
    double *most_w = ARENA_ARRAY(&c->arena, double, (size_t)p->n_types);
    uint64_t *types_in = ARENA_ARRAY(&c->arena, uint64_t, (size_t)p->n_racks);

    c->room_w = room_w[0];
    c->rack_room_w = ARENA_ARRAY(&c->arena, double, (size_t)p->n_types);
    for (int g = 0; p->rack_cap_w && g < p->n_gpus; g++) {
        const struct problem_type *t = &p->types[p->gpus[g].type];
        types_in[p->gpus[g].rack] |= (uint64_t)1 << p->gpus[g].type;
        most_w[p->gpus[g].type] += t->cap_w - t->idle_w;
        room_w[1 + p->gpus[g].rack] += type_below_idle_w(t);
    }
    for (int t = 0; t < p->n_types; t++) {
        for (int r = 0; p->rack_cap_w && r < p->n_racks; r++)
            c->rack_room_w[t] += types_in[r] >> t & 1 ? room_w[1 + r] : 0;
        if (c->rack_room_w[t] >= most_w[t])
            c->rack_room_w[t] = HUGE_VAL;
    }
}

/* The most GPUs of each type on one node that jobs could have. */
static int *most_on_node(struct columns *c)
{
    const struct problem *p = c->p;
    int *most = ARENA_ARRAY(&c->arena, int, (size_t)p->n_types);
    int *n = heap_array((size_t)problem_n_nodes(p) * (size_t)p->n_types, sizeof *n);

    for (int g = 0; g < p->n_gpus; g++) {
        int type = p->gpus[g].type, *here = &n[(long)p->gpus[g].node * p->n_types + type];
        if (!p->gpus[g].may_start && c->residents[g].n == 0)
            continue;
        ++*here;
        most[type] = *here > most[type] ? *here : most[type];
    }
    free(n);
    return most;
}

/* A gang like 'g' under each setting. */
static void add_gangs(struct columns *c, const struct problem_job *j, struct gang_option g,
                      bool is_near, int *cap)
{
    const struct problem *p = c->p;

    for (int limit = 0; limit < p->types[g.type].n_limits; limit++) {
        struct yield y;
        if (!problem_gang_yield(p, g.type, limit, j->kind, g.m, is_near, &y))
            break;
        double fee_w = g.is_home ? 0 : job_fee_w(j);
        g.cost_w = y.cost_w + problem_short_w(p, j, y.held[0]) + fee_w;
        g.draw_w = (float)((y.watts - g.m * p->types[g.type].idle_w) * p->watts_margin);
        g.limit = (unsigned char)limit;
        GROW(c->gangs, c->n_gangs, *cap);
        c->gangs[c->n_gangs++] = g;
    }
}

/* GPUs of a type on which the job stands and nobody else may come: it pays for none of them. */
static int own_drained(const struct problem *p, const struct problem_job *j, int type)
{
    int n = 0;

    for (int i = 0; i < j->n_present; i++)
        n += p->gpus[j->present[i]].type == type && !p->gpus[j->present[i]].may_start;
    return n;
}

static void make_gangs(struct columns *c)
{
    const struct problem *p = c->p;
    const int *on_node = most_on_node(c);
    int cap = 0;

    c->first_gang = ARENA_ARRAY(&c->arena, int, (size_t)p->n_jobs + 1);
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        c->first_gang[i] = c->n_gangs;
        if (!j->name || j->is_fixed || j->form == FORM_SPREAD)
            continue;
        if (j->n_present > 1) {
            struct gang_option home = { .type = (short)p->gpus[j->present[0]].type,
                                        .m = (short)j->n_present,
                                        .is_home = true };
            home.n_drained = own_drained(p, j, home.type);
            add_gangs(c, j, home, problem_stands(p, j->present, j->n_present, 1), &cap);
        }
        for (int t = 0; t < p->n_types; t++) {
            int n_own = own_drained(p, j, t);
            for (int m = j->n_min > 2 ? j->n_min : 2; m <= j->n_max && problem_allows(j, t); m++) {
                struct gang_option g = { .type = (short)t, .m = (short)m };
                bool is_near = j->n_nodes <= 1 && on_node[t] >= m;
                g.n_drained = n_own < m ? n_own : m;
                if (c->n_open[t] + n_own >= m && (is_near || j->n_nodes != 1))
                    add_gangs(c, j, g, is_near, &cap);
            }
        }
    }
    c->first_gang[p->n_jobs] = c->n_gangs;
}

static void make_choosers(struct columns *c)
{
    int n = c->first_job[c->n_classes + 1];

    c->choosers = ARENA_ARRAY(&c->arena, struct chooser_job, (size_t)n);
    for (int i = 0; i < n; i++) {
        int job = c->jobs[i];
        const struct problem_job *j = &c->p->jobs[job];
        double fee_w = job_fee_w(j);
        int parts = c->class_of[job] < 0 ? 0 : j->form == FORM_SPREAD ? j->n_max : 1;
        c->choosers[i] = (struct chooser_job){ j->need,
                                               j->short_w,
                                               j->wait_w + fee_w,
                                               fee_w,
                                               parts,
                                               c->first_gang[job],
                                               c->first_gang[job + 1] - c->first_gang[job] };
    }
}

/* ---- slots beside those who stay ---- */

/* What some of a GPU's residents would hold there together. */
static void add_stayers(struct columns *c, int gpu, const int *jobs, int n)
{
    int type = c->p->gpus[gpu].type;
    struct yield y;

    for (int limit = 0; limit < c->p->types[type].n_limits; limit++) {
        if (!problem_yield_of(c->p, type, limit, jobs, n, &y))
            break;
        for (int i = 0; i < n; i++)
            if (c->class_of[jobs[i]] >= 0)
                raise_top(&c->classes[c->class_of[jobs[i]]], yield_low(c->p, &y, i));
    }
}

/* On GPUs that take nobody, or where fixed jobs stand, there may be slots that no pattern has. */
static void make_stayers(struct columns *c)
{
    for (int g = 0; g < c->p->n_gpus; g++) {
        const struct residents *on = &c->residents[g];
        bool is_closed = c->is_held[g] || !c->p->gpus[g].may_start;
        int some[THETA_MAX];
        for (unsigned mask = 1; is_closed && mask < 1U << on->n; mask++)
            add_stayers(c, g, some, subset(on->jobs, on->n, mask, some));
    }
}

/* ---- neighbours for fixed jobs ---- */

/* Fixed jobs on a GPU, and one of a class beside them (NULL: nobody), under every setting. */
static void add_fixed(struct columns *c, int gpu, const int *fixed, int n_fixed,
                      const struct job_class *beside, int *cap)
{
    const struct problem *p = c->p;
    int type = p->gpus[gpu].type, kinds[THETA_MAX] = { 0 }, n = n_fixed;

    for (int i = 0; i < n_fixed; i++)
        kinds[i] = p->jobs[fixed[i]].kind;
    if (beside)
        kinds[n++] = beside->kind;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct yield y;
        if (!problem_yield(p, type, limit, kinds, n, &y))
            break;
        for (int i = 0; i < n_fixed; i++)
            if (p->jobs[fixed[i]].n_present == 1)
                y.cost_w += problem_short_w(p, &p->jobs[fixed[i]], y.held[i]);
        if (!beside) {
            c->held_w[gpu] = fmin(c->held_w[gpu], y.cost_w);
            continue;
        }
        float draw_w = (float)((y.watts - p->types[type].idle_w) * p->watts_margin);
        int bin = raise_top(beside, yield_low(p, &y, n_fixed));
        GROW(c->fixed, c->n_fixed, *cap);
        c->fixed[c->n_fixed++] =
            (struct fixed_pattern){ gpu, bin, y.cost_w, draw_w, (unsigned char)limit };
    }
}

static void make_fixed(struct columns *c)
{
    const struct problem *p = c->p;
    int cap = 0;

    c->held_w = ARENA_ARRAY(&c->arena, double, (size_t)p->n_gpus);
    for (int g = 0; g < p->n_gpus; g++) {
        int fixed[THETA_MAX], n, type = p->gpus[g].type;
        columns_residents(c, g, fixed, &n);
        bool has_room = p->gpus[g].may_start && n > 0 && n < p->theta;
        for (int i = 0; i < n; i++) {
            const struct problem_job *j = &p->jobs[fixed[i]];
            has_room &= !j->is_exclusive && (j->form == FORM_SPREAD || j->n_present == 1);
        }
        if (!has_room)
            continue;
        c->held_w[g] = HUGE_VAL;
        add_fixed(c, g, fixed, n, NULL, &cap);
        for (int k = 0; k < c->n_classes; k++)
            if (c->classes[k].types >> type & 1 && !c->classes[k].is_exclusive)
                add_fixed(c, g, fixed, n, &c->classes[k], &cap);
    }
}

/* ---- all ---- */

static double unit_w(const struct columns *c)
{
    double sum_w = 0;
    long n = 0;

    for (int t = 0; t < c->p->n_types; t++) {
        sum_w += c->n_open[t] * (c->p->types[t].cap_w + c->p->price_w);
        n += c->n_open[t];
    }
    return n > 0 && sum_w > 0 ? sum_w / (double)n : 1;
}

struct columns *columns_make(const struct problem *p, int bins_most, int threads)
{
    struct columns *c = heap_array(1, sizeof *c);

    c->p = p;
    arena_init(&c->arena);
    make_gpus(c);
    find_room(c);
    c->unit_w = unit_w(c);
    make_classes(c);
    list_jobs(c);
    c->theta = p->theta;
    while (c->theta > 2 && about_patterns(c, c->theta) > PATTERNS_MOST)
        c->theta--;
    make_bins(c, bins_most);
    make_patterns(c, threads);
    divide_types(c);
    make_gangs(c);
    make_choosers(c);
    make_stayers(c);
    make_fixed(c);
    return c;
}

/* ---- on fewer bins ---- */

/* Some of a class's bins, and where the others are among them: 'to' is by bins of the finer one. */
static void coarse_class(struct columns *c, struct job_class *k, int bins_most, int *to)
{
    struct job_class fine = *k;

    give_bins(c, k, fine.n_bins < bins_most ? fine.n_bins : bins_most);
    for (int b = 0; b < k->n_bins; b++) {
        int from = (int)((long)b * fine.n_bins / k->n_bins);
        int end = (int)((long)(b + 1) * fine.n_bins / k->n_bins);
        k->edge[b] = fine.edge[from];
        for (int i = from; i < end; i++) {
            to[fine.first_bin + i] = k->first_bin + b;
            k->top[b] = fmax(k->top[b], fine.top[i]);
        }
    }
}

struct columns *columns_coarse(const struct columns *fine, int bins_most)
{
    struct columns *c = heap_array(1, sizeof *c);
    int *to = heap_array((size_t)fine->n_bins, sizeof *to);

    *c = *fine;
    arena_init(&c->arena);
    c->is_coarse = true;
    c->n_bins = 1;
    c->classes = heap_array((size_t)c->n_classes, sizeof *c->classes);
    for (int k = 0; k < c->n_classes; k++) {
        c->classes[k] = fine->classes[k];
        coarse_class(c, &c->classes[k], bins_most, to);
    }
    name_bins(c);
    c->patterns = ARENA_ARRAY(&c->arena, struct patterns, (size_t)c->p->n_types);
    for (int t = 0; t < c->p->n_types; t++) {
        struct patterns *x = &c->patterns[t];
        *x = fine->patterns[t];
        x->bin = heap_array((size_t)(x->n * x->theta), sizeof *x->bin);
        for (long i = 0; i < x->n * x->theta; i++)
            x->bin[i] = to[fine->patterns[t].bin[i]];
    }
    c->fixed = heap_array((size_t)c->n_fixed, sizeof *c->fixed);
    for (int i = 0; i < c->n_fixed; i++) {
        c->fixed[i] = fine->fixed[i];
        c->fixed[i].bin = to[fine->fixed[i].bin];
    }
    free(to);
    return c;
}

void columns_destroy(struct columns *c)
{
    if (!c)
        return;
    for (int t = 0; t < c->p->n_types; t++) {
        free(c->patterns[t].bin);
        if (c->is_coarse)
            continue;
        free(c->patterns[t].cost_w);
        free(c->patterns[t].draw_w);
        free(c->patterns[t].gpu_w);
        free(c->patterns[t].limit);
    }
    if (!c->is_coarse)
        free(c->gangs);
    free(c->classes);
    free(c->fixed);
    arena_release(&c->arena);
    free(c);
}

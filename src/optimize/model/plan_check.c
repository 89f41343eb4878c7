/* The judge of every answer. Shares nothing with those whom it checks: it lays the plan out again
 * for itself and does the arithmetic of problem.h, problem_yield and all, from the raw tables.
 */
#include "optimize/model/plan.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/problem.h"

/* ---- what a combination does, again ---- */

/* Two ways to the same number may differ by this factor. */
#define RECOMPUTE_SAME 1e-9

enum recompute_why {
    RECOMPUTE_RUNS,
    RECOMPUTE_MEMORY,
    RECOMPUTE_NEVER,    // the tables say so
};

/* What runs on a GPU: its watts, and each job's speed, what it holds and the doubt about that. */
struct recomputed {
    double watts;
    double speed[THETA_MAX], held[THETA_MAX], doubt[THETA_MAX];
    double part_w[THETA_MAX];    // of the watts, at the default setting
};

/* fmin is a call, for the sake of NaN; this is met too often. */
static double recompute_least(double a, double b)
{
    return a < b ? a : b;
}

static double recompute_cell(const struct problem *p, const float *table, int type, int kind,
                             int beside)
{
    long row = (long)type * p->n_kinds + kind;

    return (double)table[row * (p->n_kinds + 1) + beside + 1];
}

/* What a kind does in a second of its 'speed'. */
static double recompute_paced(const struct problem_kind *k, double speed)
{
    return k->rate > 0 && speed > k->rate ? k->rate : speed;
}

/* The i-th of n kinds beside the others: from the table for two, by the product of what each
 * leaves for more.
 */
static bool recompute_one(const struct problem *p, int type, const int *kinds, int n, int i,
                          double alone, struct recomputed *r)
{
    double speed = alone, held = n == 1 ? recompute_cell(p, p->held, type, kinds[i], -1) : alone;
    double own = p->doubt ? recompute_cell(p, p->doubt, type, kinds[i], -1) : 0, sum = own * own;
    bool may_run = alone > 0;

    for (int k = 0; k < n; k++) {
        if (k == i)
            continue;
        double with = recompute_cell(p, p->speed, type, kinds[i], kinds[k]);
        double part = recompute_cell(p, p->held, type, kinds[i], kinds[k]);
        double doubt = p->doubt ? recompute_cell(p, p->doubt, type, kinds[i], kinds[k]) : 0;
        may_run &= with > 0;
        speed = n == 2 ? with : speed * recompute_least(with / alone, 1);
        held = n == 2 ? part : held * recompute_least(part / alone, 1);
        sum = n == 2 ? doubt * doubt : doubt > own ? sum + doubt * doubt - own * own : sum;
    }
    r->speed[i] = speed;
    r->held[i] = held;
    r->doubt[i] = sqrt(sum);
    return may_run && speed > 0;
}

/* These kinds on a GPU of 'type' at its default setting. */
static enum recompute_why recompute_run(const struct problem *p, int type, const int *kinds, int n,
                                        struct recomputed *r)
{
    const struct problem_type *t = &p->types[type];
    double mem_gib = 0, watts = t->idle_w;
    long both = type;    // of two, where what they share is

    for (int i = 0; i < n; i++)
        mem_gib += p->kinds[kinds[i]].mem_gib;
    if (mem_gib > t->mem_gib * (1 + RECOMPUTE_SAME))
        return RECOMPUTE_MEMORY;
    for (int i = 0; i < n; i++) {
        double alone = recompute_cell(p, p->speed, type, kinds[i], -1);
        double own_w = (double)p->watts[type * p->n_kinds + kinds[i]] - t->idle_w;
        if (!recompute_one(p, type, kinds, n, i, alone, r))
            return RECOMPUTE_NEVER;
        both = both * p->n_kinds + kinds[i];
        double share = recompute_paced(&p->kinds[kinds[i]], r->speed[i]) / alone;
        r->part_w[i] = own_w > 0 ? own_w * recompute_least(share, 1) : 0;
        watts += r->part_w[i];
    }
    if (n == 2 && p->shared)
        watts = t->idle_w + (watts - t->idle_w) * (double)p->shared[both];
    r->watts = recompute_least(watts, t->cap_w);
    return RECOMPUTE_RUNS;
}

/* A type's curve: fewer watts; returns the factor of all speeds. */
static double recompute_curve(const struct problem_type *t, int limit, struct recomputed *r)
{
    const struct limit_curve *c = &t->limits[limit];
    int last = c->n_points - 2, i = 0;

    double at = (r->watts - t->idle_w) * (c->n_points - 1) / (t->cap_w - t->idle_w);
    while (i < last && at >= i + 1)
        i++;
    double rest = at - i > 0 ? recompute_least(at - i, 1) : 0;
    r->watts = (1 - rest) * c->watts[i] + rest * c->watts[i + 1];
    return (1 - rest) * c->speed[i] + rest * c->speed[i + 1];
}

/* How those on it differ from the curve, each as much as it adds to the watts 'w0'. Returns the
 * doubt that this adds.
 */
static double recompute_bend(const struct problem *p, int type, int limit, const int *kinds, int n,
                             double w0, double *factor, struct recomputed *r)
{
    double sum_w = 0, loss = 0, draw = 0, doubt = 0, from = 0, ln = log(*factor);

    for (int i = 0; i < n; i++) {
        const struct problem_bend *b = &p->bends[type * p->n_kinds + kinds[i]];
        sum_w += r->part_w[i];
        loss += r->part_w[i] * (double)b->loss;
        draw += r->part_w[i] * (double)b->draw;
        doubt += r->part_w[i] * (double)b->doubt;
        from += r->part_w[i] * (double)b->at;
    }
    if (!(sum_w > 0))
        return 0;
    *factor = exp(loss / sum_w * ln);
    if (r->watts < w0) {
        double limit_w = p->types[type].limits[limit].limit_w, idle_w = p->types[type].idle_w;
        double bent_w = w0 * exp(draw / sum_w * log(r->watts / w0));
        bent_w = recompute_least(bent_w, r->watts > limit_w ? r->watts : limit_w);
        r->watts = bent_w > idle_w ? bent_w : idle_w;
    }
    return doubt / sum_w * fabs(ln - from / sum_w);
}

/* The same under another setting: fewer watts, all speeds by a factor. False: not allowed. */
static bool recompute_limit(const struct problem *p, int type, int limit, const int *kinds, int n,
                            struct recomputed *r)
{
    const struct problem_type *t = &p->types[type];
    double w0 = r->watts, factor = limit == 0 ? 1 : recompute_curve(t, limit, r);
    for (int k = 0; k < n && limit > 0 && p->bends; k++)
        if (p->bends[type * p->n_kinds + kinds[k]].is_free)
            return false;
    double doubt = p->bends ? recompute_bend(p, type, limit, kinds, n, w0, &factor, r) : 0;

    for (int k = 0; k < n; k++) {
        r->speed[k] *= factor;
        r->held[k] *= factor;
        r->doubt[k] = hypot(r->doubt[k], doubt);
    }
    return true;
}

/* ---- a plan ---- */

/* Go on unless it is so; else say what is wrong, in the 'e' of the caller's 'c'. */
#define REJECT_IF(is_so, ...)                    \
    do {                                         \
        if (is_so) {                             \
            err_fill(c->e, EINVAL, __VA_ARGS__); \
            return false;                        \
        }                                        \
    } while (0)

/* What a job gets, as the judge has it. */
struct job_yield {
    double speed, low;              // believed
    double held, dev;               // and what is held of it, and the deviation
    double counted, counted_dev;    // the same with trust: promises are priced by this
    double paced;                   // of the speed, with trust
};

struct check {
    const struct problem *p;
    const struct plan *x;
    struct residents *residents;    // (n_gpus) who is on each GPU
    struct residents *present;      // (n_gpus) who is there now
    struct job_yield *yields;       // (n_jobs)
    double *drawn_w;                // (n_gpus) awake, used or not
    struct plan sums;               // the totals, as the judge has them
    double scale_w;    // of the numbers that were added up: what rounding is measured by
    struct err *e;
};

static bool is_same(double said, double is, double scale)
{
    return fabs(said - is) <= RECOMPUTE_SAME * scale;
}

static bool falls_short(const struct problem_job *j, double low)
{
    return low < j->need * (1 - PROMISE_SHORT);
}

/* ---- each job's place ---- */

/* The rule that keeps the job from a GPU, others on the node aside. */
static enum engine_rule barring(const struct check *c, const struct problem_job *j,
                                const struct problem_gpu *g)
{
    if (j->engine.device != 0 && g->device != j->engine.device)
        return ENGINE_PINNING;
    return j->engine.barred && g->node < c->p->n_nodes ? (enum engine_rule)j->engine.barred[g->node]
                                                       : ENGINE_CAN;
}

/* One GPU of one job: does it exist, may it be used, is there room? */
static bool check_gpu(struct check *c, int job, int i)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];
    int gpu = to->gpus[i];

    REJECT_IF(gpu < 0 || gpu >= c->p->n_gpus, "job %s: there is no GPU %d", j->name, gpu);
    REJECT_IF(i > 0 && gpu <= to->gpus[i - 1], "job %s: GPU %d after GPU %d, they must rise",
              j->name, gpu, to->gpus[i - 1]);
    const struct problem_gpu *g = &c->p->gpus[gpu];
    REJECT_IF(!g->may_start && !gpus_have(j->present, j->n_present, gpu),
              "job %s: GPU %d takes nobody new", j->name, gpu);
    REJECT_IF(j->allowed_types != 0 && !(j->allowed_types >> g->type & 1),
              "job %s: does not allow GPU type %s", j->name, c->p->types[g->type].name);
    enum engine_rule rule = barring(c, j, g);
    REJECT_IF(rule != ENGINE_CAN && !gpus_have(j->present, j->n_present, gpu),
              "job %s: its engine cannot give it GPU %d (%s)", j->name, gpu,
              engine_rule_name(rule));
    struct residents *on = &c->residents[gpu];
    REJECT_IF(on->n >= c->p->theta, "GPU %d: more than %d jobs", gpu, c->p->theta);
    on->jobs[on->n++] = job;
    return true;
}

/* On as many nodes as asked, as many GPUs on each. */
static bool stands_as_asked(const struct check *c, const struct plan_job *to, int n_nodes)
{
    for (int i = 0; i < to->n_gpus && n_nodes > 0; i++) {
        int n_here = 0;
        for (int k = 0; k < to->n_gpus; k++)
            n_here += c->p->gpus[to->gpus[k]].node == c->p->gpus[to->gpus[i]].node;
        if (n_here * n_nodes != to->n_gpus)
            return false;
    }
    return true;
}

static bool stays(const struct problem_job *j, const struct plan_job *to)
{
    return (to->n_gpus <= 0 || to->gpus) &&
           gpus_same(j->present, j->n_present, to->gpus, to->n_gpus);
}

/* GPUs of the gang that are on this node, and the sum of what stands for their devices. */
static uint64_t devices_on(const struct check *c, const struct plan_job *to, int node)
{
    uint64_t sum = 0;

    for (int i = 0; i < to->n_gpus; i++) {
        const struct problem_gpu *g = &c->p->gpus[to->gpus[i]];
        uint64_t x = (uint64_t)g->device * 0x9E3779B97F4A7C15U;
        sum += g->node == node ? (x ^ x >> 31) * 0xBF58476D1CE4E5B9U : 0;
    }
    return sum;
}

/* More than one GPU of a gang: one type, one setting, as many nodes as asked. */
static bool check_gang(const struct check *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];
    const struct problem_gpu *first = &c->p->gpus[to->gpus[0]];
    bool is_same = true;

    for (int i = 1; i < to->n_gpus; i++) {
        const struct problem_gpu *g = &c->p->gpus[to->gpus[i]];
        is_same &= devices_on(c, to, g->node) == devices_on(c, to, first->node);
        REJECT_IF(g->type != first->type, "job %s: its gang has GPUs of two types", j->name);
        REJECT_IF(c->x->limit[to->gpus[i]] != c->x->limit[to->gpus[0]],
                  "job %s: its gang has two settings", j->name);
    }
    REJECT_IF(!is_same && !stays(j, to), "job %s: its engine gives the same of each node (%s)",
              j->name, engine_rule_name(ENGINE_DEVICES));
    bool is_wrong = !stands_as_asked(c, to, j->n_nodes);
    REJECT_IF(is_wrong && j->n_nodes == 1, "job %s: its gang must stand on one node", j->name);
    REJECT_IF(is_wrong, "job %s: its gang must stand on %d nodes in equal parts", j->name,
              j->n_nodes);
    return true;
}

static bool check_placed(struct check *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];
    int least = j->form == FORM_GANG ? j->n_min : 1;

    REJECT_IF(!to->gpus, "job %s: %d GPUs, and the plan does not say which", j->name, to->n_gpus);
    REJECT_IF(to->n_gpus < least || to->n_gpus > j->n_max,
              "job %s: %d GPUs where %d to %d were asked", j->name, to->n_gpus, least, j->n_max);
    REJECT_IF(to->reason != WAIT_NOT, "job %s: is placed, and has a reason to wait", j->name);
    for (int i = 0; i < to->n_gpus; i++)
        if (!check_gpu(c, job, i))
            return false;
    return j->form != FORM_GANG || check_gang(c, job);
}

/* One that nobody plans for: it stays as it is, or waits for the reason given. */
static bool check_unplanned(struct check *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];
    const struct problem_frozen *f = j->frozen;

    REJECT_IF(!f && to->n_gpus != 0, "entry %d has %d GPUs, and its job is gone", job, to->n_gpus);
    REJECT_IF(!f && to->reason != j->cannot,
              "entry %d waits for another reason than that it cannot run", job);
    REJECT_IF(f && (!stays(j, to) || to->limit_w != f->limit_w || to->reason != WAIT_NOT),
              "entry %d is frozen and does not stay as it is", job);
    REJECT_IF(
        f && (to->speed != f->speed || to->low != f->low || to->is_short != falls_short(j, f->low)),
        "entry %d is frozen, and its speed is another", job);
    c->sums.n_placed += f != NULL;
    c->sums.n_waiting += j->cannot != WAIT_NOT;
    c->sums.n_short += to->is_short;
    return true;
}

static bool check_place(struct check *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];

    if (!j->name)
        return check_unplanned(c, job);
    REJECT_IF(j->is_fixed && !stays(j, to), "job %s is fixed and leaves its place", j->name);
    if (to->n_gpus > 0)
        return check_placed(c, job);
    REJECT_IF(to->n_gpus < 0, "job %s: %d GPUs", j->name, to->n_gpus);
    REJECT_IF((int)to->reason <= WAIT_NOT || to->reason >= WAIT_REASONS,
              "job %s waits and the plan does not say why", j->name);
    REJECT_IF(to->speed != 0 || to->low != 0 || to->short_w != 0 || to->kept != 0 || to->is_short,
              "job %s waits; it has no speed, no chance and no shortfall", j->name);
    return true;
}

/* ---- each GPU ---- */

static bool stands_in_gang(const struct check *c, int job)
{
    return c->p->jobs[job].form == FORM_GANG && c->x->jobs[job].n_gpus > 1;
}

static void add_cost(struct check *c, double w)
{
    c->sums.cost_w += w;
    c->scale_w += fabs(w);
}

/* What is counted on of a type, or of a pair, so that it gets tried. */
static double hoped(const struct check *c, int job, int gpu)
{
    const struct residents *on = &c->residents[gpu];

    if (!c->p->hope || on->n > 2)
        return 1;
    int other = on->n > 1 ? c->p->jobs[on->jobs[on->jobs[0] == job]].kind : -1;
    return recompute_cell(c->p, c->p->hope, c->p->gpus[gpu].type, c->p->jobs[job].kind, other);
}

/* A place at that speed would cost so much more without. */
static void add_hope(struct check *c, int job, int gpu, double speed)
{
    c->sums.hope_w +=
        c->p->kinds[c->p->jobs[job].kind].value_j * speed * (1 - 1 / hoped(c, job, gpu));
}

/* What a job gets from one GPU more: as it was counted on, and as it is believed. */
static void add_yield(struct check *c, int job, int gpu, double speed, double held, double doubt)
{
    struct job_yield *y = &c->yields[job];

    y->paced += speed;
    y->counted += held;
    y->counted_dev += held * doubt;
    speed /= hoped(c, job, gpu);
    if (c->p->trust) {
        const struct problem_trust *t =
            &c->p->trust[c->p->gpus[gpu].type * c->p->n_kinds + c->p->jobs[job].kind];
        speed /= (double)t->speed;
        held /= (double)(c->residents[gpu].n > 1 ? t->beside : t->held);
    }
    y->speed += speed;
    y->low += recompute_least(held * exp(-doubt - doubt * doubt / 2), speed);
    y->held += held;
    y->dev += held * doubt;
}

/* Those on one GPU: may they run so, what do they draw, what does each get? A gang's value
 * depends on all of its GPUs and is added with the job.
 */
static bool check_running(struct check *c, int gpu)
{
    int type = c->p->gpus[gpu].type;
    const struct problem_type *t = &c->p->types[type];
    const struct residents *on = &c->residents[gpu];
    int kinds[THETA_MAX];
    struct recomputed r;

    for (int i = 0; i < on->n; i++)
        kinds[i] = c->p->jobs[on->jobs[i]].kind;
    enum recompute_why why = recompute_run(c->p, type, kinds, on->n, &r);
    REJECT_IF(why != RECOMPUTE_RUNS, "GPU %d: its jobs %s", gpu,
              why == RECOMPUTE_MEMORY ? "do not fit its memory" : "must not run so");
    REJECT_IF(!recompute_limit(c->p, type, c->x->limit[gpu], kinds, on->n, &r),
              "GPU %d: its jobs must not be limited", gpu);
    c->drawn_w[gpu] = r.watts;
    c->sums.watts += r.watts;
    add_cost(c, r.watts - t->sleep_w + c->p->price_w);
    for (int i = 0; i < on->n; i++) {
        const struct problem_kind *k = &c->p->kinds[kinds[i]];
        add_yield(c, on->jobs[i], gpu, r.speed[i], r.held[i], r.doubt[i]);
        if (stands_in_gang(c, on->jobs[i]))
            continue;
        add_hope(c, on->jobs[i], gpu, r.speed[i]);
        add_cost(c, -k->value_j * recompute_paced(k, r.speed[i]));
    }
    return true;
}

static bool check_one_gpu(struct check *c, int gpu)
{
    const struct problem_type *t = &c->p->types[c->p->gpus[gpu].type];
    const struct residents *on = &c->residents[gpu];

    if (on->n == 0) {
        c->drawn_w[gpu] = t->idle_w;
        c->sums.watts += c->p->gpus[gpu].held_w > 0 ? c->p->gpus[gpu].held_w : t->sleep_w;
        REJECT_IF(c->x->limit[gpu] != 0, "GPU %d has a setting, and nobody is on it", gpu);
        return true;
    }
    REJECT_IF(c->x->limit[gpu] >= t->n_limits, "GPU %d: its type %s has no setting %d", gpu,
              t->name, c->x->limit[gpu]);
    for (int i = 0; i < on->n && on->n > 1; i++) {
        const struct problem_job *j = &c->p->jobs[on->jobs[i]];
        REJECT_IF(j->is_exclusive, "job %s is exclusive and shares GPU %d", j->name, gpu);
        REJECT_IF(stands_in_gang(c, on->jobs[i]), "job %s: its gang shares GPU %d", j->name, gpu);
    }
    return check_running(c, gpu);
}

/* ---- what each job gets ---- */

/* All members of a gang run alike, so its speed is the sum over them, brought down to what the
 * size leaves.
 */
static void gather_gang(struct check *c, int job)
{
    const struct plan_job *to = &c->x->jobs[job];
    const struct problem_kind *k = &c->p->kinds[c->p->jobs[job].kind];
    bool is_near = true;

    for (int i = 1; i < to->n_gpus; i++)
        is_near &= c->p->gpus[to->gpus[i]].node == c->p->gpus[to->gpus[0]].node;
    double factor = (is_near ? c->p->gang_near : c->p->gang_far)[to->n_gpus] / to->n_gpus;
    c->yields[job].speed *= factor;
    c->yields[job].low *= factor;
    c->yields[job].held *= factor;
    c->yields[job].dev *= factor;
    c->yields[job].counted *= factor;
    c->yields[job].counted_dev *= factor;
    add_hope(c, job, to->gpus[0], factor * c->yields[job].paced);
    add_cost(c, -k->value_j * recompute_paced(k, factor * c->yields[job].paced));
}

/* The chance that a log-normal speed is below the need, and the part of a promise that it is
 * expected to miss (promise.h).
 */
static double recompute_below(double need, double held, double dev)
{
    if (!(dev > 0))
        return held < need * (1 - PROMISE_SHORT) ? 1 : 0;
    return 0.5 * erfc((log(held / need) * held / dev - dev / held / 2) / M_SQRT2);
}

static double recompute_missed(const struct check *c, double need, double held, double dev)
{
    if (!(held > 0))
        return 1 + c->p->miss;
    double below = recompute_below(need, held, dev), sd = dev / held, ln = log(held / need);
    if (!(dev > 0))
        return held < need ? 1 - held / need + c->p->miss * below : 0;
    double part = 0.5 * erfc((ln / sd + sd / 2) / M_SQRT2);
    double missed = below - held / need * part + c->p->miss * below;
    return missed > 0 && ln / sd - sd / 2 <= PROMISE_CERTAIN ? missed : 0;
}

/* What it says of a placed job. 'low' may differ from ours in its last digits; whether that is
 * a shortfall goes by what is said, what it costs by what was counted on.
 */
static bool check_promise(struct check *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];

    if (stands_in_gang(c, job))
        gather_gang(c, job);
    const struct job_yield *y = &c->yields[job];
    REJECT_IF(!is_same(to->speed, y->speed, y->speed) || !is_same(to->low, y->low, y->low),
              "job %s: the plan says %.9g (%.9g) steps/s, it is %.9g (%.9g)", j->name, to->speed,
              to->low, y->speed, y->low);
    REJECT_IF(to->is_short != falls_short(j, to->low),
              "job %s: needs %.9g steps/s, %.9g is held, and that is %s", j->name, j->need, to->low,
              to->is_short ? "no shortfall" : "a shortfall the plan does not name");
    double dev = y->counted_dev * c->p->lasting;
    double short_w = j->need > 0 ? j->short_w * recompute_missed(c, j->need, y->counted, dev) : 0;
    double kept = j->need > 0 ? 1 - recompute_below(j->need, y->held, y->dev) : 1;
    REJECT_IF(!is_same(to->kept, kept, 1),
              "job %s: the plan says its promise holds with a chance of %.9g, it is %.9g", j->name,
              to->kept, kept);
    REJECT_IF(!is_same(to->short_w, short_w, j->short_w),
              "job %s: the plan says it misses %.9g W, it is %.9g", j->name, to->short_w, short_w);
    const struct problem_gpu *first = &c->p->gpus[to->gpus[0]];
    REJECT_IF(to->limit_w != c->p->types[first->type].limits[c->x->limit[to->gpus[0]]].limit_w,
              "job %s: the plan says a limit of %d W, and its GPU has another", j->name,
              to->limit_w);
    c->sums.n_placed++;
    c->sums.n_short += to->is_short;
    c->sums.short_w += short_w;
    add_cost(c, short_w);
    return true;
}

static bool check_job(struct check *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];
    const struct plan_job *to = &c->x->jobs[job];

    if (!j->name)
        return true;
    if (to->n_gpus == 0) {
        c->sums.n_waiting++;
        c->sums.wait_w += j->wait_w;
        add_cost(c, j->wait_w);
    }
    if (j->n_present > 0 && !stays(j, to)) {
        c->sums.n_moves++;
        c->sums.move_w += j->move_w;
        add_cost(c, j->move_w);
    }
    for (int i = 0; i < to->n_gpus && !stays(j, to); i++) {
        double wake_s = c->p->gpus[to->gpus[i]].wake_s;
        double idle_w = c->p->types[c->p->gpus[to->gpus[i]].type].idle_w;
        bool had = gpus_have(j->present, j->n_present, to->gpus[i]);
        double w =
            wake_s * (j->late_w + j->wake_rate * (idle_w + c->p->price_w)) + (had ? 0 : j->start_w);
        c->sums.move_w += w;
        add_cost(c, w);
    }
    return to->n_gpus == 0 || check_promise(c, job);
}

/* ---- caps ---- */

/* What a GPU draws now; who is gone draws nothing. */
static double present_w(const struct check *c, int gpu)
{
    const struct residents *on = &c->present[gpu];
    const struct problem_type *t = &c->p->types[c->p->gpus[gpu].type];
    int kinds[THETA_MAX];
    struct recomputed r;

    if (on->n == 0)
        return t->idle_w;
    for (int i = 0; i < on->n; i++)
        kinds[i] = c->p->jobs[on->jobs[i]].kind;
    if (recompute_run(c->p, c->p->gpus[gpu].type, kinds, on->n, &r) != RECOMPUTE_RUNS)
        return t->idle_w;
    recompute_limit(c->p, c->p->gpus[gpu].type, c->p->jobs[on->jobs[0]].present_limit, kinds, on->n,
                    &r);
    return r.watts;
}

static void lay_out_present(struct arena *a, struct check *c)
{
    c->present = ARENA_ARRAY(a, struct residents, (size_t)c->p->n_gpus);
    for (int j = 0; j < c->p->n_jobs; j++) {
        const struct problem_job *job = &c->p->jobs[j];
        for (int i = 0; job->name && i < job->n_present; i++) {
            struct residents *on = &c->present[job->present[i]];
            if (on->n < THETA_MAX)
                on->jobs[on->n++] = j;
        }
    }
}

/* What runs already may stand above a cap that was lowered; nothing may be added. */
static bool check_cap(const struct check *c, const char *what, int index, double cap_w,
                      double drawn_w, double now_w)
{
    double margin = c->p->watts_margin, most_w = fmax(cap_w, now_w * margin);

    REJECT_IF(!(cap_w <= 0 || drawn_w * margin <= most_w * (1 + RECOMPUTE_SAME)),
              "%s %d: %.6g W with margin are above the cap of %.6g W", what, index,
              drawn_w * margin, most_w);
    return true;
}

static bool check_power(struct arena *a, struct check *c)
{
    const struct problem *p = c->p;
    double drawn_w = 0, now_w = 0;
    double *rack_w = ARENA_ARRAY(a, double, (size_t)p->n_racks);
    double *rack_now_w = ARENA_ARRAY(a, double, (size_t)p->n_racks);

    if (p->power_cap_w <= 0 && !p->rack_cap_w)
        return true;
    lay_out_present(a, c);
    for (int g = 0; g < p->n_gpus; g++) {
        double w = present_w(c, g);
        drawn_w += c->drawn_w[g];
        now_w += w;
        if (!p->rack_cap_w)
            continue;
        rack_w[p->gpus[g].rack] += c->drawn_w[g];
        rack_now_w[p->gpus[g].rack] += w;
    }
    bool is_good = check_cap(c, "cluster", 0, p->power_cap_w, drawn_w, now_w);
    for (int r = 0; r < p->n_racks && p->rack_cap_w && is_good; r++)
        is_good = check_cap(c, "rack", r, p->rack_cap_w[r], rack_w[r], rack_now_w[r]);
    return is_good;
}

/* ---- nodes ---- */

static void add_use(const struct check *c, int job, const int *gpus, int n,
                    struct engine_node *used)
{
    const struct engine_job *of = &c->p->jobs[job].engine;

    for (int i = 0; i < n; i++) {
        used[c->p->gpus[gpus[i]].node].cpus += of->cpus;
        used[c->p->gpus[gpus[i]].node].mem_mib += of->mem_mib;
    }
}

/* As with caps: what runs already may stay. */
static bool check_nodes(struct arena *a, const struct check *c)
{
    const struct problem *p = c->p;
    struct engine_node *used = ARENA_ARRAY(a, struct engine_node, (size_t)p->n_nodes);
    struct engine_node *now = ARENA_ARRAY(a, struct engine_node, (size_t)p->n_nodes);

    if (!p->nodes)
        return true;
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name) {
            add_use(c, j, c->x->jobs[j].gpus, c->x->jobs[j].n_gpus, used);
            add_use(c, j, p->jobs[j].present, p->jobs[j].n_present, now);
        }
    for (int n = 0; n < p->n_nodes; n++) {
        REJECT_IF(used[n].cpus > p->nodes[n].cpus && used[n].cpus > now[n].cpus,
                  "node %d: its jobs take %ld CPUs, and it has %ld (%s)", n, used[n].cpus,
                  p->nodes[n].cpus, engine_rule_name(ENGINE_CPUS));
        REJECT_IF(used[n].mem_mib > p->nodes[n].mem_mib && used[n].mem_mib > now[n].mem_mib,
                  "node %d: its jobs take %ld MiB, and it has %ld (%s)", n, used[n].mem_mib,
                  p->nodes[n].mem_mib, engine_rule_name(ENGINE_MEMORY));
    }
    return true;
}

/* ---- the whole ---- */

static bool check_totals(const struct check *c)
{
    const struct plan *x = c->x;
    const struct plan *s = &c->sums;
    const struct {
        const char *what;
        double said, is, scale;
    } rows[] = {
        { "its shortfall", x->short_w, s->short_w, c->scale_w },
        { "its waiting", x->wait_w, s->wait_w, s->wait_w },
        { "its moves", x->move_w, s->move_w, s->move_w },
        { "its hopes", x->hope_w, s->hope_w, c->scale_w },
        { "its GPUs", x->watts, s->watts, s->watts },
        { "all", x->cost_w, s->cost_w, c->scale_w },
    };

    REJECT_IF(x->n_placed != s->n_placed || x->n_waiting != s->n_waiting ||
                  x->n_short != s->n_short || x->n_moves != s->n_moves,
              "the plan counts %d placed, %d waiting, %d short, %d moves; it is %d, %d, %d, %d",
              x->n_placed, x->n_waiting, x->n_short, x->n_moves, s->n_placed, s->n_waiting,
              s->n_short, s->n_moves);
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++)
        REJECT_IF(!is_same(rows[i].said, rows[i].is, rows[i].scale),
                  "the plan says %.9g W for %s, it is %.9g", rows[i].said, rows[i].what,
                  rows[i].is);
    return true;
}

int plan_check(struct arena *a, const struct problem *p, const struct plan *x, struct err *e)
{
    struct check c = { .p = p, .x = x, .e = e };
    bool is_good = true;

    if (x->n_jobs != p->n_jobs || x->n_gpus != p->n_gpus)
        return err_set(e, EINVAL, "the plan is for %d jobs and %d GPUs, the problem has %d and %d",
                       x->n_jobs, x->n_gpus, p->n_jobs, p->n_gpus);
    c.residents = ARENA_ARRAY(a, struct residents, (size_t)p->n_gpus);
    c.yields = ARENA_ARRAY(a, struct job_yield, (size_t)p->n_jobs);
    c.drawn_w = ARENA_ARRAY(a, double, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs && is_good; j++)
        is_good = check_place(&c, j);
    for (int g = 0; g < p->n_gpus && is_good; g++)
        is_good = check_one_gpu(&c, g);
    for (int j = 0; j < p->n_jobs && is_good; j++)
        is_good = check_job(&c, j);
    is_good = is_good && check_nodes(a, &c) && check_power(a, &c) && check_totals(&c);
    return is_good ? 0 : -EINVAL;
}

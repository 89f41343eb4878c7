/* optimize.c - `gogh bench optimize`: how near the planner comes, how fast, in how much
 * memory; event by event; as it grows; and beside what others do.
 */
#include "bench/optimize.h"

#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/stats.h"
#include "bench/bench.h"
#include "bench/changes.h"
#include "optimize/model/plan.h"
#include "optimize/exact/exact.h"
#include "optimize/optimize.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "optimize/prices/kept.h"

#define N_TYPES 6
#define EXACT_S 60.0       // for the optimum of a small instance
#define PROVE_JOBS 1000    // up to this many the exact method finds better bounds

/* Of a row's budget the planner is told this share, so that judge and all end within it. */
#define BUDGET_SHARE 0.96

/* ---- what the parts share ---- */

double bench_above(double cost_w, double than_w)
{
    return 100 * (cost_w - than_w) / fabs(than_w);
}

void bench_tell(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "gogh bench: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
}

bool bench_wants(const char *list, const char *name)
{
    bool is_wanted = !list;

    for (struct slice one; !is_wanted && slice_next(&list, ',', &one);)
        is_wanted = slice_is(one, name);
    return is_wanted;
}

struct plan_task {
    const struct problem *p;
    const struct optimize_options *how;
};

static int plan(const void *self, void *to, struct err *e)
{
    const struct plan_task *task = self;
    struct bench_plan *out = to;
    struct optimize_report report = { 0 };
    struct plan x;
    struct arena a;

    arena_init(&a);
    int rc = optimize_run(&a, task->p, task->how, &x, &report, e);
    *out = (struct bench_plan){ .cost_w = report.cost_w,
                                .bound_w = report.bound_w,
                                .seconds = report.seconds,
                                .is_proven = report.status == STATUS_OPTIMAL };
    return rc;    // the child ends here; there is nothing to tidy
}

int bench_plan(const struct problem *p, const struct optimize_options *how, struct bench_plan *out,
               struct err *e)
{
    struct plan_task task = { p, how };
    double more_bytes;

    malloc_trim(0);    // what is free here would not count as the child's
    int rc = bench_child(plan, &task, 0, out, sizeof *out, &more_bytes, e);
    if (rc == 0)
        out->more_bytes = more_bytes;
    return rc;
}

/* ---- instances of one make, one seed after the other ---- */

/* Percent at the mean, percent at worst, seconds; 0: nothing said. */
struct row_goal {
    double percent, worst, s;
};

struct figure_row {
    const char *name;
    int n_jobs, n_gpus, n_kinds, theta, seeds;
    bool is_exact;      // compared with the optimum, not with the best bound
    bool is_changed;    // a whole plan stands, 1 % of its jobs changed; prices kept
    double budget_s;    // 0: the nodes that suit its size
    struct row_goal must, aim;
};

/* name, jobs, GPUs, kinds, theta, seeds, exact?, changed?, budget; must; aim */
static const struct figure_row rows[] = {
    { "small30", 50, 30, 0, 2, 30, true, false, 0.5, { 0.2, 1, 0.5 }, { 0.05, 0.5, 0.5 } },
    { "small100", 140, 100, 0, 2, 30, true, false, 0.5, { 0.2, 1, 0.5 }, { 0.05, 0.5, 0.5 } },
    { "500", 700, 500, 0, 2, 13, false, false, 0.5, { 0.4, 0, 0.5 }, { 0.15, 0, 0.5 } },
    { "10000", 14000, 10000, 50, 2, 13, false, false, 1.5, { 0.3, 0, 1.5 }, { 0.1, 0, 0.5 } },
    { "changed", 14000, 10000, 50, 2, 13, false, true, 0.2, { 0.35, 0, 0.2 }, { 0.15, 0, 0.1 } },
    { "50000", 70000, 50000, 50, 2, 3, false, false, 8, { 0.4, 0, 8 }, { 0.1, 0, 2 } },
    { "1000kinds", 14000, 10000, 1000, 2, 3, false, false, 10, { 8, 0, 10 }, { 1, 0, 5 } },
    { "three", 20000, 10000, 50, 3, 3, false, false, 5, { 6, 0, 5 }, { 1, 0, 2 } },
    { "overload", 20000, 10000, 50, 2, 3, false, false, 3, { 0.8, 0, 3 }, { 0.3, 0, 1 } },
};

static const int growth[] = { 1000, 2500, 5000, 10000, 25000, 50000 };

/* What the seeds of a row gave, in the row's budget, and again in the aim's where that is less. */
struct row_samples {
    struct row_try {
        struct samples gaps, seconds;
    } ours, aim;
    double more_bytes;
    int n_kinds, n_proven;
};

static void row_try_add(struct row_try *t, const struct bench_plan *x, double than_w)
{
    samples_add(&t->gaps, bench_above(x->cost_w, than_w));
    samples_add(&t->seconds, x->seconds);
}

static void row_try_release(struct row_try *t)
{
    samples_release(&t->gaps);
    samples_release(&t->seconds);
}

/* What to compare with: the optimum as far as it is proven, otherwise the best of all bounds, of
 * which ours are looked at later: that of the exact search, or of a plan without a limit.
 */
static int reference_w(const struct problem *p, bool is_exact, double *out, bool *is_proven,
                       struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct bench_plan best;

    how.exact = exact_run;
    how.method = is_exact ? METHOD_EXACT : METHOD_FAST;
    how.time_s = is_exact ? EXACT_S : 0;
    how.nodes = is_exact ? 0 : 1;
    int rc = bench_plan(p, &how, &best, e);
    *is_proven = rc == 0 && best.is_proven;
    *out = *is_proven ? best.cost_w : best.bound_w;
    return rc;
}

/* An instance; and, where its row says so, the prices of what it was before it changed. */
struct instance {
    struct changes c;
    struct kept_prices *kept;
    bool wants_exact;    // what it is compared with is the exact method's
};

/* Half of the changed jobs end, as many arrive. */
static int row_change(struct instance *in, int n, struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct optimize_report report;
    struct plan x;

    how.method = METHOD_FAST;
    how.kept = in->kept = kept_create();
    int rc = optimize_run(changes_arena(&in->c), &in->c.p, &how, &x, &report, e);
    if (rc < 0)
        return rc;
    changes_settle(&in->c, &x);
    for (int i = 0; i < n; i++)
        changes_end(&in->c);
    for (int i = 0; i < n; i++)
        changes_arrive(&in->c);
    return 0;
}

static int row_make(const struct figure_row *r, uint64_t seed, struct instance *out, struct err *e)
{
    struct make_options o = make_defaults;
    int n_changed = r->is_changed ? (r->n_jobs + 199) / 200 : 0;

    o.n_jobs = r->n_jobs;
    o.n_gpus = r->n_gpus;
    o.n_types = N_TYPES;
    o.n_kinds = r->n_kinds;
    o.theta = r->theta;
    o.seed = seed;
    changes_init(&out->c, &o, n_changed);
    return n_changed > 0 ? row_change(out, n_changed, e) : 0;
}

static void instance_release(struct instance *in)
{
    changes_release(&in->c);
    kept_destroy(in->kept);
}

static int row_plan(const struct figure_row *r, const struct instance *in, double budget_s,
                    struct bench_plan *out, struct err *e)
{
    struct optimize_options how = optimize_defaults;

    how.exact = exact_run;
    how.method = r->is_exact ? METHOD_AUTO : in->kept ? METHOD_STANDING : METHOD_FAST;
    how.kept = in->kept;
    how.time_s = BUDGET_SHARE * budget_s;
    return bench_plan(&in->c.p, &how, out, e);
}

static int row_seed(const struct figure_row *r, const struct instance *in, struct row_samples *t,
                    struct err *e)
{
    struct bench_plan ours, aim;
    double than_w = NAN;
    bool is_proven = false;

    int rc = row_plan(r, in, r->budget_s, &ours, e);
    if (rc == 0)
        rc = reference_w(&in->c.p, in->wants_exact, &than_w, &is_proven, e);
    if (rc < 0)
        return rc;
    aim = ours;
    if (r->aim.s < r->budget_s && (rc = row_plan(r, in, r->aim.s, &aim, e)) < 0)
        return rc;
    than_w = fmax(than_w, fmax(ours.bound_w, aim.bound_w));
    row_try_add(&t->ours, &ours, than_w);
    row_try_add(&t->aim, &aim, than_w);
    t->more_bytes = fmax(t->more_bytes, ours.more_bytes);
    t->n_kinds = in->c.p.n_kinds;
    t->n_proven += is_proven || ours.is_proven;
    return 0;
}

/* Are the mean (and the worst, where that is asked for) and the mean time within the goal? */
static bool is_met(struct row_try *t, const struct row_goal *g)
{
    return samples_mean(&t->gaps) <= g->percent &&
           (g->worst <= 0 || samples_quantile(&t->gaps, 1) <= g->worst) &&
           samples_mean(&t->seconds) <= g->s;
}

/* null where the table says nothing. */
static json_t *above_zero(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

static json_t *goals_json(const struct figure_row *r, struct row_samples *t)
{
    return json_pack(
        "{s:f, s:o, s:f, s:b, s:f, s:o, s:f, s:o, s:o, s:o, s:b}", "must_percent", r->must.percent,
        "must_worst_percent", above_zero(r->must.worst), "must_s", r->must.s, "must_met",
        is_met(&t->ours, &r->must), "aim_percent", r->aim.percent, "aim_worst_percent",
        above_zero(r->aim.worst), "aim_s", r->aim.s, "aim_gap_mean_percent",
        json_number_or_null(samples_mean(&t->aim.gaps)), "aim_gap_worst_percent",
        json_number_or_null(samples_quantile(&t->aim.gaps, 1)), "aim_seconds_mean",
        json_number_or_null(samples_mean(&t->aim.seconds)), "aim_met", is_met(&t->aim, &r->aim));
}

static json_t *row_json(const struct figure_row *r, struct row_samples *t)
{
    struct samples *gaps = &t->ours.gaps, *seconds = &t->ours.seconds;
    const double gap = samples_mean(gaps), s = samples_mean(seconds);    // before they are sorted
    json_t *o = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:I}", "name", r->name,
        "jobs", r->n_jobs, "gpus", r->n_gpus, "kinds", t->n_kinds, "theta", r->theta, "seeds",
        r->seeds, "against", r->is_exact ? "optimum" : "bound", "proven", t->n_proven, "budget_s",
        above_zero(r->budget_s), "gap_mean_percent", json_number_or_null(gap), "gap_worst_percent",
        json_number_or_null(samples_quantile(gaps, 1)), "seconds_mean", json_number_or_null(s),
        "seconds_worst", json_number_or_null(samples_quantile(seconds, 1)), "rss_bytes",
        (json_int_t)t->more_bytes);

    if (r->must.percent > 0)
        json_object_update_new(o, goals_json(r, t));
    return o;
}

static int run_row(struct figure_row r, const struct bench_options *o, json_t *list, struct err *e)
{
    struct row_samples t = { 0 };
    int rc = 0;

    r.n_jobs /= (int)o->scale;
    r.n_gpus /= (int)o->scale;
    r.seeds = o->seeds > 0 ? (int)o->seeds : r.seeds;
    for (int s = 1; s <= r.seeds && rc == 0; s++) {
        struct instance in = { .wants_exact =
                                   r.is_exact || (o->is_proving && r.n_jobs <= PROVE_JOBS) };

        bench_tell("%s: %d jobs on %d GPUs, seed %d of %d", r.name, r.n_jobs, r.n_gpus, s, r.seeds);
        rc = row_make(&r, (uint64_t)s, &in, e);
        if (rc == 0)
            rc = row_seed(&r, &in, &t, e);
        instance_release(&in);
    }
    if (rc == 0)
        json_array_append_new(list, row_json(&r, &t));
    row_try_release(&t.ours);
    row_try_release(&t.aim);
    return rc;
}

static int run_growth(const struct bench_options *o, json_t *list, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof growth / sizeof *growth && rc == 0; i++) {
        struct figure_row r = { "growth", growth[i] * 7 / 5, growth[i], 50, 2, .seeds = 1 };

        rc = run_row(r, o, list, e);
    }
    return rc;
}

/* ---- tables ---- */

struct figure_column {
    const char *key, *title;
    int width;
    double scale;    // what is shown is the value times this; 0: text, or a whole number
    int digits;
};

static void print_cell(const json_t *row, const struct figure_column *c)
{
    const json_t *v = json_object_get(row, c->key);

    if (json_is_string(v))
        printf(" %*s", c->width, json_string_value(v));
    else if (json_is_boolean(v))
        printf(" %*s", c->width, json_is_true(v) ? "yes" : "NO");
    else if (json_is_number(v))
        printf(" %*.*f", c->width, c->digits,
               json_number_value(v) * (c->scale != 0 ? c->scale : 1));
    else
        printf(" %*s", c->width, "-");
}

static void print_table(const char *title, const json_t *list, const struct figure_column *columns,
                        int n)
{
    size_t i;
    json_t *row;

    if (json_array_size(list) == 0)
        return;
    printf("%s\n", title);
    for (int c = 0; c < n; c++)
        printf(" %*s", columns[c].width, columns[c].title);
    printf("\n");
    json_array_foreach(list, i, row)
    {
        for (int c = 0; c < n; c++)
            print_cell(row, &columns[c]);
        printf("\n");
    }
    printf("\n");
}

static const struct figure_column row_columns[] = {
    { "name", "name", 9, 0, 0 },
    { "jobs", "jobs", 6, 0, 0 },
    { "gpus", "GPUs", 6, 0, 0 },
    { "kinds", "kinds", 5, 0, 0 },
    { "theta", "theta", 5, 0, 0 },
    { "seeds", "seeds", 5, 0, 0 },
    { "against", "against", 7, 0, 0 },
    { "proven", "proven", 6, 0, 0 },
    { "gap_mean_percent", "gap %", 7, 1, 3 },
    { "gap_worst_percent", "worst", 7, 1, 3 },
    { "seconds_mean", "s", 6, 1, 2 },
    { "seconds_worst", "worst", 6, 1, 2 },
    { "rss_bytes", "MB", 5, 1e-6, 0 },
    { "must_percent", "must %", 6, 1, 2 },
    { "must_s", "s", 4, 1, 1 },
    { "must_met", "met", 4, 0, 0 },
    { "aim_percent", "aim %", 6, 1, 2 },
    { "aim_s", "s", 4, 1, 1 },
    { "aim_gap_mean_percent", "gap %", 7, 1, 3 },
    { "aim_seconds_mean", "s", 6, 1, 2 },
    { "aim_met", "met", 4, 0, 0 },
};
#define N_GROWTH_COLUMNS 13    // those of a row that do not speak of goals

static const struct figure_column reference_columns[] = {
    { "name", "reference", 10, 0, 0 },
    { "jobs", "jobs", 6, 0, 0 },
    { "gpus", "GPUs", 6, 0, 0 },
    { "columns", "columns", 8, 0, 0 },
    { "seconds", "s", 8, 1, 3 },
    { "objective", "objective W", 13, 1, 1 },
    { "gap_percent", "gap %", 9, 1, 3 },
    { "ours_seconds", "ours s", 8, 1, 3 },
    { "ours_objective", "objective W", 13, 1, 1 },
    { "ours_gap_percent", "gap %", 9, 1, 3 },
    { "note", "note", 4, 0, 0 },
};

static const struct figure_column event_columns[] = {
    { "name", "name", 9, 0, 0 },
    { "events", "events", 6, 0, 0 },
    { "gap_mean_percent", "gap %", 7, 1, 3 },
    { "gap_worst_percent", "worst", 7, 1, 3 },
    { "must_percent", "must", 5, 1, 1 },
    { "aim_percent", "aim", 5, 1, 1 },
    { "seconds_p99", "p99 ms", 7, 1e3, 0 },
    { "must_s", "must", 5, 1e3, 0 },
    { "arrival_p99_us", "arrival us", 10, 1, 0 },
    { "must_arrival_us", "must", 5, 1, 0 },
    { "aim_arrival_us", "aim", 5, 1, 0 },
    { "moves_per_event", "moves", 6, 1, 1 },
    { "must_moves", "must", 5, 1, 0 },
    { "pricings", "pricings", 8, 0, 0 },
};

/* Those rows that have events, alone. */
static void print_events(const json_t *rows_of)
{
    json_t *some = json_array(), *row;
    size_t i;

    json_array_foreach(rows_of, i, row)
    {
        if (json_object_get(row, "events"))
            json_array_append(some, row);
    }
    print_table(
        "events (against a bound found from nothing every 250; decisions; one arrival's place)",
        some, event_columns, sizeof event_columns / sizeof *event_columns);
    json_decref(some);
}

static void print_all(const json_t *o)
{
    print_table("rows (gap against the optimum or the bound; MB beyond the input)",
                json_object_get(o, "rows"), row_columns, sizeof row_columns / sizeof *row_columns);
    print_events(json_object_get(o, "rows"));
    print_table("growth", json_object_get(o, "growth"), row_columns, N_GROWTH_COLUMNS);
    print_table("references (the same instance planned by others, and by us)",
                json_object_get(o, "references"), reference_columns,
                sizeof reference_columns / sizeof *reference_columns);
}

/* ---- the whole ---- */

bool bench_optimize_knows(struct slice name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_is(name, rows[i].name))
            return true;
    return slice_is(name, "events") || slice_is(name, "growth") || bench_references_know(name);
}

static int run_parts(const struct bench_options *how, json_t *o, struct err *e)
{
    json_t *list = json_array(), *grown = json_array(), *references = json_array();
    int rc = 0;

    json_object_set_new(o, "rows", list);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == 0; i++)
        if (bench_wants(how->names, rows[i].name))
            rc = run_row(rows[i], how, list, e);
    if (rc == 0 && bench_wants(how->names, "events"))
        rc = bench_events(how->seeds > 0 ? (int)how->seeds : 1, (int)how->scale, list, e);
    json_object_set_new(o, "growth", grown);
    if (rc == 0 && bench_wants(how->names, "growth"))
        rc = run_growth(how, grown, e);
    json_object_set_new(o, "references", references);
    if (rc == 0)
        rc = bench_references(how->names, references, e);
    return rc;
}

int bench_optimize(const struct bench_options *how, struct err *e)
{
    json_t *o = json_pack("{s:s}", "version", GOGH_VERSION);
    int rc = run_parts(how, o, e);

    if (rc == 0 && how->is_json) {
        json_print(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        return 0;
    }
    if (rc == 0)
        print_all(o);
    json_decref(o);
    return rc;
}

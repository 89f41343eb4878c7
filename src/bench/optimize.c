/* optimize.c - `gogh bench optimize`: how near the planner comes, how fast, in how much
 * memory; event by event; as it grows; and beside what others do.
 */
#include "bench/optimize.h"

#include <errno.h>
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
    size_t n = strlen(name);

    if (!list)
        return true;
    for (const char *at = n > 0 ? list : NULL; at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == '\0' || at[n] == ','))
            return true;
    return false;
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

struct figure_row {
    const char *name;
    int n_jobs, n_gpus, n_kinds, theta;
    double overload;    // 0: as generated
    int seeds;
    bool is_exact;                      // compared with the optimum, not with the best bound
    bool is_changed;                    // a whole plan stands, 1 % of its jobs changed; prices kept
    double budget_s;                    // 0: the nodes that suit its size
    double must, must_worst, must_s;    // percent, percent, seconds; 0: nothing said
    double aim, aim_worst, aim_s;
    bool wants_proof;    // the bound to compare with is the exact method's
};

/* name, jobs, GPUs, kinds, theta, overload, seeds, exact?, changed?, budget; must: mean, worst,
 * seconds; aim; to be proven?
 */
static const struct figure_row rows[] = {
    { "small30", 50, 30, 0, 2, 0, 30, true, false, 0.5, 0.2, 1, 0.5, 0.05, 0.5, 0.5, false },
    { "small100", 140, 100, 0, 2, 0, 30, true, false, 0.5, 0.2, 1, 0.5, 0.05, 0.5, 0.5, false },
    { "500", 700, 500, 0, 2, 0, 13, false, false, 0.5, 0.4, 0, 0.5, 0.15, 0, 0.5, false },
    { "10000", 14000, 10000, 50, 2, 0, 13, false, false, 1.5, 0.3, 0, 1.5, 0.1, 0, 0.5, false },
    { "changed", 14000, 10000, 50, 2, 0, 13, false, true, 0.2, 0.35, 0, 0.2, 0.15, 0, 0.1, false },
    { "50000", 70000, 50000, 50, 2, 0, 3, false, false, 8, 0.4, 0, 8, 0.1, 0, 2, false },
    { "1000kinds", 14000, 10000, 1000, 2, 0, 3, false, false, 10, 8, 0, 10, 1, 0, 5, false },
    { "three", 20000, 10000, 50, 3, 0, 3, false, false, 5, 6, 0, 5, 1, 0, 2, false },
    { "overload", 20000, 10000, 50, 2, 0, 3, false, false, 3, 0.8, 0, 3, 0.3, 0, 1, false },
};

static const int growth[] = { 1000, 2500, 5000, 10000, 25000, 50000 };

/* What the seeds of a row gave, in the row's budget, and again in the aim's where that is less. */
struct row_samples {
    struct samples gaps, seconds;
    struct samples aim_gaps, aim_seconds;
    double more_bytes;
    int n_kinds, n_proven;
};

static void row_samples_init(struct row_samples *t)
{
    *t = (struct row_samples){ 0 };
    samples_init(&t->gaps);
    samples_init(&t->seconds);
    samples_init(&t->aim_gaps);
    samples_init(&t->aim_seconds);
}

static void row_samples_release(struct row_samples *t)
{
    samples_release(&t->gaps);
    samples_release(&t->seconds);
    samples_release(&t->aim_gaps);
    samples_release(&t->aim_seconds);
}

/* What to compare with: the optimum as far as it is proven, otherwise the best of all bounds, of
 * which ours are looked at later: that of the exact search, or of a plan without a limit.
 */
static int reference_w(const struct figure_row *r, const struct problem *p, double *out,
                       bool *is_proven, struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct bench_plan best;
    bool is_exact = r->is_exact || r->wants_proof;

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
    o.overload = r->overload > 0 ? r->overload : 1;
    changes_init(&out->c, &o, n_changed);
    out->kept = NULL;
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
        rc = reference_w(r, &in->c.p, &than_w, &is_proven, e);
    if (rc < 0)
        return rc;
    aim = ours;
    if (r->aim_s < r->budget_s && (rc = row_plan(r, in, r->aim_s, &aim, e)) < 0)
        return rc;
    than_w = fmax(than_w, fmax(ours.bound_w, aim.bound_w));
    samples_add(&t->gaps, bench_above(ours.cost_w, than_w));
    samples_add(&t->seconds, ours.seconds);
    samples_add(&t->aim_gaps, bench_above(aim.cost_w, than_w));
    samples_add(&t->aim_seconds, aim.seconds);
    t->more_bytes = fmax(t->more_bytes, ours.more_bytes);
    t->n_kinds = in->c.p.n_kinds;
    t->n_proven += is_proven || ours.is_proven;
    return 0;
}

/* Are the mean (and the worst, where that is asked for) and the mean time within the goal? */
static bool is_met(struct samples *gaps, const struct samples *seconds, double percent,
                   double worst, double within_s)
{
    return samples_mean(gaps) <= percent && (worst <= 0 || samples_quantile(gaps, 1) <= worst) &&
           samples_mean(seconds) <= within_s;
}

/* null where the table says nothing. */
static json_t *above_zero(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

static void add_goals(json_t *o, const struct figure_row *r, struct row_samples *t)
{
    bool must = is_met(&t->gaps, &t->seconds, r->must, r->must_worst, r->must_s);
    bool aim = is_met(&t->aim_gaps, &t->aim_seconds, r->aim, r->aim_worst, r->aim_s);

    json_object_set_new(o, "must_percent", json_real(r->must));
    json_object_set_new(o, "must_worst_percent", above_zero(r->must_worst));
    json_object_set_new(o, "must_s", json_real(r->must_s));
    json_object_set_new(o, "must_met", json_boolean(must));
    json_object_set_new(o, "aim_percent", json_real(r->aim));
    json_object_set_new(o, "aim_worst_percent", above_zero(r->aim_worst));
    json_object_set_new(o, "aim_s", json_real(r->aim_s));
    json_object_set_new(o, "aim_gap_mean_percent", json_number_or_null(samples_mean(&t->aim_gaps)));
    json_object_set_new(o, "aim_gap_worst_percent",
                        json_number_or_null(samples_quantile(&t->aim_gaps, 1)));
    json_object_set_new(o, "aim_seconds_mean", json_number_or_null(samples_mean(&t->aim_seconds)));
    json_object_set_new(o, "aim_met", json_boolean(aim));
}

static json_t *row_json(const struct figure_row *r, struct row_samples *t)
{
    json_t *o =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "name", r->name, "jobs", r->n_jobs, "gpus",
                  r->n_gpus, "kinds", t->n_kinds, "theta", r->theta, "seeds", r->seeds);

    json_object_set_new(o, "against", json_string(r->is_exact ? "optimum" : "bound"));
    json_object_set_new(o, "proven", json_integer(t->n_proven));
    json_object_set_new(o, "budget_s", above_zero(r->budget_s));
    json_object_set_new(o, "gap_mean_percent", json_number_or_null(samples_mean(&t->gaps)));
    json_object_set_new(o, "gap_worst_percent", json_number_or_null(samples_quantile(&t->gaps, 1)));
    json_object_set_new(o, "seconds_mean", json_number_or_null(samples_mean(&t->seconds)));
    json_object_set_new(o, "seconds_worst", json_number_or_null(samples_quantile(&t->seconds, 1)));
    json_object_set_new(o, "rss_bytes", json_integer((json_int_t)t->more_bytes));
    if (r->must > 0)
        add_goals(o, r, t);
    return o;
}

static int run_row(const struct figure_row *r, json_t *list, struct err *e)
{
    struct instance in;
    struct row_samples t;
    int rc = 0;

    row_samples_init(&t);
    for (int s = 1; s <= r->seeds && rc == 0; s++) {
        bench_tell("%s: %d jobs on %d GPUs, seed %d of %d", r->name, r->n_jobs, r->n_gpus, s,
                   r->seeds);
        rc = row_make(r, (uint64_t)s, &in, e);
        if (rc == 0)
            rc = row_seed(r, &in, &t, e);
        instance_release(&in);
    }
    if (rc == 0)
        json_array_append_new(list, row_json(r, &t));
    row_samples_release(&t);
    return rc;
}

static struct figure_row row_for(struct figure_row r, const struct bench_options *o)
{
    r.n_jobs /= o->scale;
    r.n_gpus /= o->scale;
    r.seeds = o->seeds > 0 ? o->seeds : r.seeds;
    r.wants_proof = o->is_proving && r.n_jobs <= PROVE_JOBS;
    return r;
}

static int run_growth(const struct bench_options *o, json_t *list, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof growth / sizeof *growth && rc == 0; i++) {
        struct figure_row r = { "growth", growth[i] * 7 / 5, growth[i], 50, 2, .seeds = 1 };
        r = row_for(r, o);
        rc = run_row(&r, list, e);
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

static bool is_part(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0)
            return true;
    return bench_wants("events,growth", name) || bench_wants(bench_reference_names, name);
}

bool bench_optimize_knows(const char *names)
{
    struct arena a;
    bool is_known = true;

    arena_init(&a);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        is_known = is_known && is_part(arena_strndup(&a, at, strcspn(at, ",")));
    arena_release(&a);
    return is_known;
}

static int run_parts(const struct bench_options *how, json_t *o, struct err *e)
{
    json_t *list = json_array(), *grown = json_array(), *references = json_array();
    int rc = 0;

    json_object_set_new(o, "rows", list);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == 0; i++) {
        const struct figure_row r = row_for(rows[i], how);
        if (bench_wants(how->names, r.name))
            rc = run_row(&r, list, e);
    }
    if (rc == 0 && bench_wants(how->names, "events"))
        rc = bench_events(how->seeds > 0 ? how->seeds : 1, how->scale, list, e);
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

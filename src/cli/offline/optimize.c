/* optimize.c - `gogh optimize`: one problem in, one checked plan out; problems by chance; and
 * the judge for other people's plans.
 */
#include "cli/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "optimize/model/plan.h"
#include "optimize/files/plan_file.h"
#include "optimize/exact/exact.h"
#include "optimize/optimize.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"
#include "optimize/files/problem_make.h"

static const char help[] =
    "Plan one problem (docs/formats/problem.md): which jobs run on which GPUs, under which power\n"
    "limits, for the least energy. The plan has passed an independent judge, and comes with a\n"
    "bound that no plan can beat, if there is time for one.\n"
    "\n"
    "  optimize PROBLEM.json     '-' reads standard input\n"
    "      --exact                  until it is proven that nothing is better, 300 s if no time "
    "is\n"
    "                               given; without it small problems get 10 s for that\n"
    "      --fast                   without trying to prove it; default: as suits the size\n"
    "      --time S                 the best plan after about S seconds; with too little of it\n"
    "                               there is no bound\n"
    "      --nodes N                N steps of search: repeatable, unlike --time\n"
    "      --threads N              1 or 2; the plan is the same\n"
    "      --seed N                 chance in the search; 1\n"
    "      --out PLAN.json          write the plan there (docs/formats/plan.md)\n"
    "  optimize PROBLEM.json --check PLAN.json\n"
    "                            is somebody's plan feasible, and does it say what it costs?\n"
    "  optimize --generate JOBS GPUS TYPES SEED\n"
    "                            write a made-up problem\n"
    "      --kinds N                different kinds of job; as suits JOBS, 8 to 50\n"
    "      --theta N                jobs that may share a GPU, 1 to 4; 2\n"
    "      --overload F             multiply every promise; 1\n"
    "      --standing F             share of the jobs that run already; 0.6\n"
    "      --watts                  minimise watts instead of joules to finish\n"
    "      --out FILE               write there instead of standard output\n"
    "\n"
    "  --json                    the summary as JSON\n"
    "\n"
    "Exit status 1: the problem is none, or a plan that was to be checked does not hold.\n"
    "\n"
    "Examples:\n"
    "  gogh optimize --generate 140 100 6 1 --out p.json\n"
    "  gogh optimize p.json --time 1 --out plan.json\n"
    "  gogh optimize p.json --check plan.json\n";

#define NAMES_SHOWN 5    // jobs named in a summary for people

static struct options {
    bool is_json, is_exact, is_fast, is_generate, in_watts;
    double time_s, overload, standing;
    long nodes, threads, seed, n_kinds, theta;
    const char *out, *check;
} given = { .seed = -1, .standing = -1 };

static const struct cmd_option options[] = {
    CMD_FLAG("exact", given.is_exact),
    CMD_FLAG("fast", given.is_fast),
    CMD_NUMBER("time", given.time_s, 1e-3, 1e6),
    CMD_WHOLE("nodes", given.nodes, 1, 1e15),
    CMD_WHOLE("threads", given.threads, 1, 2),
    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_TEXT("out", given.out),
    CMD_TEXT("check", given.check),
    CMD_FLAG("json", given.is_json),
    CMD_FLAG("generate", given.is_generate),
    CMD_WHOLE("kinds", given.n_kinds, 1, 5000),
    CMD_WHOLE("theta", given.theta, 1, THETA_MAX),
    CMD_NUMBER("overload", given.overload, 0.01, 100),
    CMD_NUMBER("standing", given.standing, 0, 1),
    CMD_FLAG("watts", given.in_watts),
};

/* ---- the line ---- */

/* Was an option of the other use given? NULL, or its name. */
static const char *misplaced(const struct options *o)
{
    bool is_plan = !o->is_generate && !o->check;

    if (!is_plan && (o->is_exact || o->is_fast || o->time_s > 0 || o->nodes > 0 || o->threads > 0))
        return "--exact, --fast, --time, --nodes and --threads are for planning";
    if (!is_plan && o->seed >= 0)
        return o->is_generate ? "the seed is the fourth number after --generate"
                              : "--seed is for planning";
    if (!o->is_generate && (o->n_kinds > 0 || o->theta > 0 || o->overload > 0 || o->in_watts))
        return "--kinds, --theta, --overload and --watts are for --generate";
    if (!o->is_generate && o->standing >= 0)
        return "--standing is for --generate";
    if (o->is_generate && (o->check || o->is_json))
        return "--generate writes a problem; --check and --json are for plans";
    if (o->check && o->out)
        return "--check writes no plan; leave --out away";
    if (o->is_exact && o->is_fast)
        return "--exact and --fast exclude each other";
    return NULL;
}

static int check(const struct cmd_call *call)
{
    const char *const *words = call->words, *why = misplaced(&given);

    if (why)
        return cmd_misuse(call->cmd, "%s", why);
    if (!given.is_generate && words[0] && words[1])
        return cmd_misuse(call->cmd, "unexpected argument '%s'", words[1]);
    if (!words[0] || (given.is_generate && !words[3]))
        return cmd_misuse(call->cmd, given.is_generate ? "--generate wants JOBS GPUS TYPES SEED"
                                                       : "say which problem: a file, or '-'");
    return 0;
}

/* ---- a problem by chance ---- */

static int take_sizes(const struct cmd_call *call, struct make_options *out)
{
    const struct options *o = &given;
    static const struct {
        const char *name;
        double low, high;
    } wants[] = {
        { "JOBS", 0, 2e6 }, { "GPUS", 0, 2e6 }, { "TYPES", 1, 64 }, { "SEED", 0, CMD_SEED_MAX }
    };
    long v[4];

    for (int i = 0; i < 4; i++)
        if (text_to_long(slice_of(call->words[i]), (long)wants[i].low, (long)wants[i].high, &v[i]) <
            0)
            return cmd_misuse(call->cmd, "%s wants a whole number from %.0f to %.0f, not '%s'",
                              wants[i].name, wants[i].low, wants[i].high, call->words[i]);
    *out = make_defaults;
    out->n_jobs = (int)v[0];
    out->n_gpus = (int)v[1];
    out->n_types = (int)v[2];
    out->seed = (uint64_t)v[3];
    out->n_kinds = (int)o->n_kinds;
    out->theta = o->theta > 0 ? (int)o->theta : out->theta;
    out->overload = o->overload > 0 ? o->overload : out->overload;
    out->standing = o->standing >= 0 ? o->standing : out->standing;
    out->joules = !o->in_watts;
    return 0;
}

static int generate(const struct cmd_call *call, struct err *e)
{
    struct make_options how;
    struct problem p;
    struct buf b;
    int rc = take_sizes(call, &how);

    if (rc != 0)
        return rc;
    problem_make(call->arena, &how, &p);
    buf_init(&b, PROBLEM_BYTES_MAX);
    return cmd_write(given.out, &b, problem_write(&p, &b, e), e);
}

/* ---- a summary ---- */

/* An answer and what is known of it. 'report' is NULL for somebody else's. */
struct result {
    const struct problem *p;
    const struct plan *x;
    const struct optimize_report *report;
    double cost_w;     // with problem_base_w, as everywhere that costs are shown
    double bound_w;    // likewise; NAN: not known
    int n_jobs;        // that are not gone
    int n_running;     // now
    int n_used;        // GPUs with somebody on them
};

#define GAP_NONE 1e-9    // of the cost: what is left of a proof by rounding

static double gap_percent(const struct result *r)
{
    double gap_w = r->cost_w - r->bound_w;

    return gap_w <= GAP_NONE * fabs(r->cost_w) ? 0 : 100 * gap_w / fabs(r->cost_w);
}

static void count(struct arena *a, struct result *r)
{
    const struct problem *p = r->p;
    const struct plan *x = r->x;
    bool *is_used = ARENA_ARRAY(a, bool, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++) {
        if (!p->jobs[j].name)
            continue;
        r->n_jobs++;
        r->n_running += p->jobs[j].n_present > 0;
        for (int i = 0; i < x->jobs[j].n_gpus; i++)
            is_used[x->jobs[j].gpus[i]] = true;
    }
    for (int g = 0; g < p->n_gpus; g++)
        r->n_used += is_used[g];
    r->cost_w = x->cost_w + problem_base_w(p);
}

/* The most memory that this process had. */
static json_int_t rss_bytes(void)
{
    struct rusage u = { 0 };

    getrusage(RUSAGE_SELF, &u);
    return (json_int_t)u.ru_maxrss * 1024;    // Linux counts in KiB
}

/* What both a plan of ours and somebody else's have. */
static json_t *result_json(const struct result *r)
{
    const struct plan *x = r->x;

    return json_pack("{s:f, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:I}",
                     "objective", r->cost_w, "bound", json_number_or_null(r->bound_w),
                     "gap_percent", json_number_or_null(gap_percent(r)), "jobs", r->n_jobs, "gpus",
                     r->p->n_gpus, "gpus_used", r->n_used, "unserved", x->n_waiting, "shortfalls",
                     x->n_short, "moves", x->n_moves, "watts", x->watts, "short_w", x->short_w,
                     "wait_w", x->wait_w, "move_w", x->move_w, "rss_bytes", rss_bytes());
}

static const char *status_name(const struct optimize_report *r)
{
    return r->status == STATUS_OPTIMAL ? "optimal" : "feasible";
}

static json_t *report_json(const struct optimize_report *r, uint64_t seed)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "seconds",
        json_number_or_null(r->seconds), "lp_bound", json_number_or_null(r->lp_bound_w), "lp_s",
        json_number_or_null(r->lp_s), "round_s", json_number_or_null(r->round_s), "search_s",
        json_number_or_null(r->search_s), "exact_s", json_number_or_null(r->exact_s), "nodes",
        (json_int_t)r->nodes, "lp_rows", (json_int_t)r->lp_rows, "lp_columns",
        (json_int_t)r->lp_columns, "lp_rounds", (json_int_t)r->lp_rounds, "seed", (json_int_t)seed);
}

static void print_json(json_t *j)
{
    json_print(j, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
}

/* ---- the same for people ---- */

static void print_short(const struct result *r)
{
    int shown = 0;

    if (r->x->n_short == 0)
        return;
    printf("%d fall short of their promise:", r->x->n_short);
    for (int j = 0; j < r->p->n_jobs && shown < NAMES_SHOWN; j++) {
        const struct plan_job *to = &r->x->jobs[j];
        double need = r->p->jobs[j].need;
        if (r->p->jobs[j].name && to->n_gpus > 0 && to->low < need)
            printf("%s %s by %.2g %%", shown++ > 0 ? "," : "", r->p->jobs[j].name,
                   100 * (1 - to->low / need));
    }
    if (r->x->n_short > shown)
        printf(", and %d more", r->x->n_short - shown);
    printf("\n");
}

static void print_waiting(const struct result *r)
{
    int shown = 0;

    if (r->x->n_waiting == 0)
        return;
    printf("%d wait:", r->x->n_waiting);
    for (int j = 0; j < r->p->n_jobs && shown < NAMES_SHOWN; j++)
        if (r->p->jobs[j].name && r->x->jobs[j].n_gpus == 0)
            printf("%s %s (%s)", shown++ > 0 ? "," : "", r->p->jobs[j].name,
                   wait_reason_name(r->x->jobs[j].reason));
    if (r->x->n_waiting > shown)
        printf(", and %d more", r->x->n_waiting - shown);
    printf("\n");
}

static void print_cost(const struct result *r)
{
    const struct plan *x = r->x;

    printf("placed %d of %d jobs on %d of %d GPUs, which together draw %.1f W\n", x->n_placed,
           r->n_jobs, r->n_used, r->p->n_gpus, x->watts);
    printf("objective %.2f W, of which shortfalls %.2f, waiting %.2f, moves %.2f\n", r->cost_w,
           x->short_w, x->wait_w, x->move_w);
    if (!isfinite(r->bound_w)) {
        printf("there was no time for a bound; more --time gives one\n");
        return;
    }
    if (!r->report)
        printf("it claims that no plan costs less than %.2f W, which is not proven here\n",
               r->bound_w);
    else if (r->report->status == STATUS_OPTIMAL)
        printf("no plan costs less than %.2f W: this is proven\n", r->bound_w);
    else if (gap_percent(r) > 100)
        printf("the bound, %.2f W, says nothing; more --time gives a better one\n", r->bound_w);
    else
        printf("no plan costs less than %.2f W: at most %.3g %% could be saved\n", r->bound_w,
               gap_percent(r));
    if (r->report && problem_has_rules(r->p))
        printf("bounds and proofs know nothing of CPUs, memory, devices and barred nodes\n");
}

static void print_result(const struct result *r, const struct options *o)
{
    print_cost(r);
    print_short(r);
    print_waiting(r);
    if (r->n_running > 0)
        printf("%d of %d running jobs move\n", r->x->n_moves, r->n_running);
    if (r->report)
        printf("%s, %s; %.3f s, %ld steps of search\n", status_name(r->report), r->report->method,
               r->report->seconds, r->report->nodes);
    if (r->report && o->out)
        printf("written to %s\n", o->out);
}

/* ---- planning ---- */

static int write_plan(const struct options *o, const struct result *r, struct err *e)
{
    const struct plan_claims c = {
        .made_by = "gogh " GOGH_VERSION,
        .status = status_name(r->report),
        .objective_w = r->cost_w,
        .bound_w = r->bound_w,
    };
    struct buf b;

    if (!o->out)
        return 0;
    buf_init(&b, PROBLEM_BYTES_MAX);
    return cmd_write(o->out, &b, plan_write(r->p, r->x, &c, &b, e), e);
}

static int plan(const struct options *o, struct arena *a, const struct problem *p, struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct optimize_report report = { 0 };
    struct plan x;

    how.exact = exact_run;
    how.method = o->is_exact ? METHOD_EXACT : o->is_fast ? METHOD_FAST : METHOD_AUTO;
    how.time_s = o->time_s;
    how.nodes = o->nodes;
    how.threads = (int)o->threads;
    how.seed = o->seed >= 0 ? (uint64_t)o->seed : how.seed;
    if (optimize_run(a, p, &how, &x, &report, e) < 0)
        return -e->code;
    struct result r = { .p = p, .x = &x, .report = &report, .bound_w = report.bound_w };
    count(a, &r);
    if (write_plan(o, &r, e) < 0)
        return -e->code;
    if (!o->is_json) {
        print_result(&r, o);
        return 0;
    }
    json_t *j = json_pack("{s:s, s:s}", "method", report.method, "status", status_name(&report));
    json_object_update_new(j, result_json(&r));
    json_object_update_new(j, report_json(&report, how.seed));
    print_json(j);
    return 0;
}

/* ---- judging ---- */

/* Does the plan say the truth about its cost, and nothing impossible about its bound? */
static int check_claims(const char *file, const struct result *r, const struct plan_claims *c,
                        struct err *e)
{
    double much = 1e-6 * fmax(fabs(r->cost_w), 1);

    if (fabs(c->objective_w - r->cost_w) > much)
        return err_set(e, EINVAL, "%s: objective: it says %.9g W, and costs %.9g W", file,
                       c->objective_w, r->cost_w);
    if (c->bound_w > r->cost_w + much)
        return err_set(e, EINVAL, "%s: bound: %.9g W is above what the plan costs, %.9g W", file,
                       c->bound_w, r->cost_w);
    return 0;
}

static int judge(const struct options *o, struct arena *a, const struct problem *p, struct err *e)
{
    struct plan_claims c;
    struct plan x;

    if (plan_read(a, p, o->check, &x, &c, e) < 0)
        return -e->code;
    if (plan_check(a, p, &x, e) < 0)
        return err_prefix(e, "%s", o->check);
    struct result r = { .p = p, .x = &x, .bound_w = c.bound_w };
    count(a, &r);
    if (check_claims(o->check, &r, &c, e) < 0)
        return -e->code;
    if (!o->is_json) {
        printf("%s holds%s%s\n", o->check, c.made_by ? "; made by " : "",
               c.made_by ? c.made_by : "");
        print_result(&r, o);
        return 0;
    }
    json_t *j = json_pack("{s:b, s:s?}", "holds", true, "made_by", c.made_by);
    json_object_update_new(j, result_json(&r));
    print_json(j);
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    struct problem p;

    if (given.is_generate)
        return generate(call, e);
    if (problem_read(call->arena, call->words[0], &p, e) < 0)
        return -e->code;
    return given.check ? judge(&given, call->arena, &p, e) : plan(&given, call->arena, &p, e);
}

const struct cmd cmd_optimize = {
    .name = "optimize",
    .synopsis = "optimize PROBLEM.json [--exact | --fast] [--time S] [--nodes N] [--threads N] "
                "[--seed N] [--out PLAN.json] [--json] | "
                "optimize PROBLEM.json --check PLAN.json [--json] | "
                "optimize --generate JOBS GPUS TYPES SEED [--out FILE]",
    .summary = "plan one problem, with a bound; check a plan; make up a problem",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 4,
    .check = check,
    .run = run,
};

/* What the page says in words: assumptions, definitions, how to do it again. */
#include "study/report/inner.h"

#include <string.h>

#include "optimize/policy/solver.h"

/* ---- assumptions ---- */

/* Does the results show the same under two power models? */
static bool has_two_models(const struct report *r)
{
    for (int i = 1; i < r->n_scenarios; i++)
        if (strcmp(scenario_power_model(r->scenarios[i].scenario),
                   scenario_power_model(r->scenarios[0].scenario)) != 0)
            return true;
    return false;
}

void report_assumptions(struct report *r)
{
    PUT(r->out,
        "<div class=\"box\">\n<h3>What is assumed</h3>\n<ul>\n"
        "<li><b>Everything is simulated.</b> Speeds alone and slowdowns beside a neighbour are "
        "the ground truth named with each scenario; no policy sees them unless it is an "
        "oracle.</li>\n"
        "<li><b>Watts are modelled</b>, not measured together with those speeds. What GPUs draw "
        "that are shared follows the power model named with each scenario; %s.</li>\n"
        "<li><b>Sleep</b> of empty GPUs is the same for every policy, unless a scenario says that "
        "nobody sleeps or a lever was taken away.</li>\n"
        "<li><b>Power limits</b> are offered to every policy where the column says so. How speed "
        "and watts fall with a limit is a law fitted to Zeus's measurements.</li>\n"
        "<li><b>A promise</b> is a least speed. Waiting counts as breaking it.</li>\n"
        "<li><b>A second of a job's time has a price</b> in decisions, and a broken promise, the "
        "same for every policy that weighs costs or chooses power limits; they are not part of any "
        "energy shown here.</li>\n"
        "<li><b>Energy per unit of work</b> is taken over the steady window: from 20&nbsp;%% to "
        "100&nbsp;%% of the arrival period. A unit is one second alone on the reference GPU "
        "(P100 unless the scenario names another).</li>\n"
        "<li>GPUs only: processors, memory, fans and cooling are not counted.</li>\n"
        "</ul>\n</div>\n",
        has_two_models(r) ? "the comparison is made under two of them"
                          : "this study has no second one to hold it against");
}

/* Of a cluster that comes with its trace. */
static void put_types(struct report *r, const struct study_result *res)
{
    for (int t = 0; t < res->n_types; t++) {
        PUT(r->out, "%s%s %s", t > 0 ? ", " : "", plot_fixed(res->types[t].n_gpus, 0).text,
            html(r, res->types[t].name));
    }
    PUT(r->out, "%s", res->n_types > 0 ? " (with their built-in figures)" : "the trace's own");
}

static void put_cluster(struct report *r, const struct scenario_results *s)
{
    const struct cluster *c = &s->cluster;

    if (!s->has_cluster) {
        put_types(r, &s->groups[0].rows[0]->result);
        return;
    }
    for (int t = 0; t < c->n_types; t++) {
        int n = 0;

        for (int i = 0; i < c->n_nodes; i++)
            for (int g = 0; g < c->nodes[i].n_gpus; g++)
                n += c->nodes[i].types[g] == t;
        PUT(r->out, "%s%d %s (%g W idle, %g W asleep, %g W at most)", t > 0 ? ", " : "", n,
            html(r, c->types[t].name), c->types[t].idle_w, c->types[t].sleep_w, c->types[t].cap_w);
    }
}

static const char *truth_text(const struct scenario *s)
{
    if (s->truth == TRUTH_STORE)
        return "measurements of a store, the same for every seed; what nobody measured is fitted "
               "to them";
    if (s->truth == TRUTH_GAVEL)
        return "Gavel's measurements: speeds alone on the physical cluster, slowdowns from the "
               "simulation file; watts by workload and type are a model";
    return "the built-in tables, off by hidden factors drawn from the seed";
}

static const char *jobs_text(const struct scenario *s)
{
    static const char *const texts[] = {
        [JOBS_DRAWN] = "training jobs, workloads and lengths drawn, Poisson arrivals",
        [JOBS_SERVED] = "drawn training jobs, and services whose rates rise and fall over the day",
        [JOBS_MSR] = "Gavel's MSR traces, thinned to the load",
        [JOBS_PHILLY] =
            "arrivals and lengths of Philly's trace, thinned to the load; workloads drawn",
        [JOBS_ALIBABA] =
            "all pods of Alibaba's 2023 list, each with the part of a GPU that it asked for",
        [JOBS_TRACE] = "a trace of one's own",
        [JOBS_SACCT] = "what Slurm's accounting tells of, with the work that by the truth was done",
    };

    return texts[s->jobs];
}

static void put_seeds(struct report *r, const struct scenario_results *s)
{
    int low = s->groups[0].rows[0]->key.seed, high = low;
    const int most = scenario_seeds(s);

    for (int i = 0; i < s->n_groups; i++) {
        for (int k = 0; k < s->groups[i].n; k++) {
            const int seed = s->groups[i].rows[k]->key.seed;

            low = seed < low ? seed : low;
            high = seed > high ? seed : high;
        }
    }
    if (most == 1)
        PUT(r->out, "one seed (%d): nothing here is sure", low);
    else
        PUT(r->out, "%d seeds (%d to %d)", most, low, high);
}

static void put_price(struct report *r, const struct cluster *cl)
{
    PUT(r->out, "A second of a job's time is priced at %.4g&nbsp;J in decisions%s. ",
        study_delay_w(cl), cl->settings.delay_w >= 0 ? "" : ", by the GPUs' caps (auto)");
}

static void put_settings(struct report *r, const struct scenario_results *s)
{
    const struct cluster_settings *set = &s->cluster.settings;

    if (s->scenario->is_always_on)
        PUT(r->out, "No GPU ever sleeps. ");
    else if (s->has_cluster)
        PUT(r->out, "Empty GPUs sleep after %g&nbsp;s and take %g&nbsp;s to wake. ",
            set->sleep_after_s, set->wake_s);
    else
        PUT(r->out, "Empty GPUs sleep. ");
    if (s->has_cluster)
        PUT(r->out, "A move loses %g&nbsp;s. ", set->move_s);
    if (s->has_cluster)
        put_price(r, &s->cluster);
}

void report_scenario_assumptions(struct report *r, const struct scenario_results *s)
{
    const struct scenario *sc = s->scenario;
    const bool has_range = sc->promise_high > 0;

    PUT(r->out, "<p class=\"note\"><b>GPUs:</b> ");
    put_cluster(r, s);
    if (sc->reference != NULL)
        PUT(r->out, ". <b>Reference GPU:</b> %s", html(r, sc->reference));
    PUT(r->out, ". <b>Truth:</b> %s. <b>Power model where shared:</b> %s. <b>Jobs:</b> %s; ",
        truth_text(sc), html(r, scenario_power_model(sc)), jobs_text(sc));
    if (sc->n_jobs > 0)
        PUT(r->out, "%s%s%s; ", sc->jobs == JOBS_DRAWN ? "" : "at most ",
            plot_fixed(sc->n_jobs, 0).text, sc->jobs == JOBS_SERVED ? " that train" : " of them");
    if (scenario_is_site(sc))
        PUT(r->out,
            "promises as they were. Seed %d has the jobs as they came; other seeds draw blocks of "
            "a day or an eighth of the time, with replacement, until there are as many, so that "
            "intervals tell how much hangs on these very jobs. ",
            sc->first_seed);
    else if (sc->jobs == JOBS_ALIBABA)
        PUT(r->out, "promises in proportion. ");
    else
        PUT(r->out,
            "promises of training %g to %g of the speed on the reference GPU, for one job in ten "
            "a speed that only the fastest type reaches, if there is one. ",
            has_range ? sc->promise_low : 0.3, has_range ? sc->promise_high : 0.9);
    put_settings(r, s);
    PUT(r->out, "<b>At the start, policies know:</b> ");
    for (int i = 0; i < s->n_knows; i++)
        PUT(r->out, "%s%s", i > 0 ? ", or " : "", knowledge_title(s->knows[i]));
    if (sc->history_jobs > 0)
        PUT(r->out, " (%s of the same cluster and load)", plot_fixed(sc->history_jobs, 0).text);
    PUT(r->out, "%s; ", s->n_knows == 0 ? "the truth" : "");
    put_seeds(r, s);
    PUT(r->out, ".</p>\n");
}

/* ---- the end of the page ---- */

static void put_term(struct report *r, const char *term, const char *meaning)
{
    PUT(r->out, "<dt>%s</dt><dd>%s</dd>\n", html(r, term), html(r, meaning));
}

static void put_terms(struct report *r, const char *const terms[][2], int n)
{
    PUT(r->out, "<dl>\n");
    for (int i = 0; i < n; i++)
        put_term(r, terms[i][0], terms[i][1]);
    PUT(r->out, "</dl>\n");
}

/* As docs/experiments.md, "The policies", in a line each, in its order. */
static void put_policies(struct report *r)
{
    static const char *const names[] = { "slurm",  "fifo-random", "fifo-fastest", "fifo-promise",
                                         "pack",   "gavel",       "gavel-cost",   "eaco",
                                         "greedy", "watts",       "gogh" };
    struct solver s = { 0 };

    PUT(r->out, "<h3>Policies</h3>\n<dl>\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)solver_by_name(names[i], 0, &s, NULL);
        put_term(r, s.name, s.about);
    }
    put_term(r, "gogh-oracle", "gogh that is told true speeds and watts");
    put_term(r, "bound",
             "a linear program over GPU-seconds with true speeds and watts: no schedule uses less; "
             "order, arrivals and moves are left out, so it may be out of reach");
    PUT(r->out, "</dl>\n");
}

static void put_levers(struct report *r)
{
    static const char *const levers[][2] = {
        { "types", "which type of GPU suits a job is part of the choice" },
        { "sharing", "two or more jobs may share a GPU" },
        { "moving", "running jobs may be moved to another GPU" },
        { "sleep", "empty GPUs sleep" },
        { "limits", "the power of a GPU may be limited" },
        { "joules", "the joules until a job is done are sought; without it, the least watts now" },
    };

    PUT(r->out, "<h3>Levers</h3>\n");
    put_terms(r, levers, (int)(sizeof levers / sizeof levers[0]));
}

void report_definitions(struct report *r)
{
    static const char *const intervals[][2] = {
        { "± and ..",
          "±: half the width of the 95 % confidence interval of the mean over seeds (Student's t), "
          "from four seeds on; a..b: the smallest and the largest of fewer seeds, or an interval "
          "that ends where a figure cannot go beyond; changes are computed seed by seed first, on "
          "the same jobs" },
    };
    static const char *const terms[][2] = {
        { "Load", "offered work over the capacity of all GPUs, each busy with one job" },
        { "Energy per unit of work",
          "joules of all GPUs, also idle and asleep, over the work done, both from 20 % to 100 % "
          "of "
          "the arrival period; work is counted in seconds alone on the reference GPU" },
        { "Energy to completion",
          "kWh of all GPUs from the first arrival until the last job has ended" },
        { "Promises kept",
          "over all jobs with a promise: time during which the promised speed was reached, over "
          "the time from submission to end; waiting, starting and moving count as broken" },
        { "Power model additive",
          "a shared GPU draws its idle watts plus each job's part above idle, scaled by how much "
          "slower it runs there; at the cap, clocks fall" },
        { "Power model saturating",
          "each job takes its part of what the others leave of the room between idle and cap" },
        { "JCT", "job completion time, from submission to end; p95: 95 of 100 jobs take less" },
        { "Queueing", "from submission to the first start, mean over jobs" },
        { "Allocation efficiency",
          "work over GPU-seconds held by somebody, in the steady window; above 1 where GPUs are "
          "faster than the reference or shared well" },
        { "Moves", "times that a running job was stopped and continued on another GPU" },
        { "GPU-hours held", "hours during which GPUs of a type had a job, added up" },
        { "Points", "difference of two percentages" },
    };

    put_terms(r, terms, (int)(sizeof terms / sizeof terms[0]));
    if (report_seeds(r) > 1)
        put_terms(r, intervals, (int)(sizeof intervals / sizeof intervals[0]));
    put_policies(r);
    put_levers(r);
}

static bool has_policy(const struct scenario_results *s, const char *policy)
{
    for (int i = 0; i < s->n_groups; i++)
        if (strcmp(s->groups[i].key.policy, policy) == 0)
            return true;
    return false;
}

static bool has_all_policies(const struct scenario_results *s)
{
    for (int i = 0; i < s->scenario->n_policies; i++)
        if (!has_policy(s, s->scenario->policies[i]))
            return false;
    return true;
}

static bool has_all_loads(const struct scenario_results *s)
{
    return s->n_loads >= s->scenario->n_loads;
}

/* Can it stand in one command with others? */
static bool is_usual(const struct report *r, const struct scenario_results *s)
{
    const struct scenario *sc = s->scenario;

    return has_all_policies(s) && has_all_loads(s) && scenario_seeds(s) == sc->n_seeds &&
           strcmp(sc->command, arena_printf(r->a, "--scenario %s", sc->name)) == 0;
}

/* The policies, or loads, where not all that the scenario has are there. */
static void put_policy_option(struct report *r, const struct scenario_results *s)
{
    const char *between = " --policy ";

    for (int i = 0; i < s->scenario->n_policies && !has_all_policies(s); i++) {
        if (!has_policy(s, s->scenario->policies[i]))
            continue;
        PUT(r->out, "%s%s", between, html(r, s->scenario->policies[i]));
        between = ",";
    }
}

static void put_load_option(struct report *r, const struct scenario_results *s)
{
    for (int i = 0; i < s->n_loads && !has_all_loads(s); i++)
        PUT(r->out, "%s%g", i == 0 ? " --load " : ",", s->loads[i]);
}

static void put_command(struct report *r, const struct scenario_results *s, double load)
{
    PUT(r->out, "gogh study %s", html(r, s->scenario->command));
    put_policy_option(r, s);
    if (load > 0 && s->scenario->n_loads > 1)
        PUT(r->out, " --load %g", load);
    else
        put_load_option(r, s);
    if (scenario_seeds(s) != s->scenario->n_seeds)
        PUT(r->out, " --seeds %d", scenario_seeds(s));
    PUT(r->out, " --out DIR");
}

void report_put_command(struct report *r, const struct scenario_results *s, double load)
{
    PUT(r->out, "<p class=\"command\"><code>");
    put_command(r, s, load);
    PUT(r->out, "</code></p>\n");
}

/* One command for the scenarios that are as usual, one more for each of the others. */
void report_command(struct report *r)
{
    const char *between = "gogh study --scenario ";

    PUT(r->out, "<p>The same program, data and command give the same figures; a study that was "
                "stopped goes on where it was.</p>\n<pre><code>");
    for (int i = 0; i < r->n_scenarios; i++) {
        if (!is_usual(r, &r->scenarios[i]))
            continue;
        PUT(r->out, "%s%s", between, html(r, r->scenarios[i].scenario->name));
        between = ",";
    }
    PUT(r->out, "%s", between[0] == ',' ? " --out DIR\n" : "");
    for (int i = 0; i < r->n_scenarios; i++) {
        if (is_usual(r, &r->scenarios[i]))
            continue;
        put_command(r, &r->scenarios[i], -1);
        PUT(r->out, "\n");
    }
    PUT(r->out, "</code></pre>\n"
                "<p>The figures of each run stand in <code>results.json</code> and "
                "<code>runs.csv</code> beside this page, the curves in <code>slices.csv</code>, "
                "GPU-hours and energy by type in <code>types.csv</code>, who was on which GPU in "
                "<code>stays.csv</code>.</p>\n");
}

#include "study/report/inner.h"

#include <math.h>
#include <string.h>

#include "base/text/words.h"

const char *load_title(struct arena *a, double load)
{
    return load > 0 ? arena_printf(a, "load %s", words_number(a, load)) : "trace as it is";
}

const char *knowledge_title(enum knowledge k)
{
    static const char *const titles[] = {
        [KNOWS_NOTHING] = "an empty catalog",
        [KNOWS_PRETRAINED] = "the pretrained model",
        [KNOWS_OTHERS] = "a catalog without one family",
        [KNOWS_HISTORY] = "a history of other jobs",
        [KNOWS_MODEL] = "a model of the site",
        [KNOWS_TRUTH] = "the truth",
    };

    return titles[k];
}

const char *report_group_title(const struct report *r, const struct scenario_results *s,
                               const struct study_run *k)
{
    const char *title = k->policy;

    if (k->delay_w != NULL)
        title = arena_printf(r->a, "%s at %s W", title, words_number(r->a, *k->delay_w));
    if (k->promise_w != NULL)
        title =
            arena_printf(r->a, "%s, promises at %s W", title, words_number(r->a, *k->promise_w));
    if (s->n_knows > 1 && !scenario_is_oracle(k->policy))
        title = arena_printf(r->a, "%s, %s", title, knowledge_title(k->knows));
    return title;
}

/* ---- rows to scenarios ---- */

/* Rows of a scenario, so that arrays have no more room than they can need. */
static size_t count_rows(const struct results *b, const struct scenario *s)
{
    size_t n = 0;

    for (int i = 0; i < b->n_rows; i++)
        n += b->rows[i].key.scenario == s;
    return n;
}

/* NaN is the cluster's own, as no list is. */
static const double *shown_price(const double *prices_w, int n)
{
    for (int i = 0; i < n; i++)
        if (isnan(prices_w[i]))
            return NULL;
    for (int i = 0; i < n; i++) {
        int n_below = 0, n_up_to = 0;
        for (int k = 0; k < n; k++) {
            n_below += prices_w[k] < prices_w[i];
            n_up_to += prices_w[k] <= prices_w[i];
        }
        if (n_below <= n / 2 && n / 2 < n_up_to)
            return &prices_w[i];
    }
    return NULL;
}

bool scenario_shows(const struct scenario_results *s, const struct study_run *k)
{
    return (!study_run_minds_delay(k) || price_is_same(k->delay_w, s->delay_w)) &&
           (!study_run_minds_promise(k) || price_is_same(k->promise_w, s->promise_w));
}

void report_put_prices(struct report *r, const struct scenario_results *s)
{
    if (s->delay_w != NULL)
        PUT(r->out, ", with a second of a job's time at %s&nbsp;J",
            words_number(r->a, *s->delay_w));
    if (s->promise_w != NULL)
        PUT(r->out, "%s a broken promise at %s&nbsp;W", s->delay_w != NULL ? " and" : ", with",
            words_number(r->a, *s->promise_w));
}

static struct scenario_results *results_of(struct report *r, const struct scenario *s)
{
    const size_t n_rows = count_rows(r->results, s);
    struct scenario_results *more = &r->scenarios[r->n_scenarios];

    for (int i = 0; i < r->n_scenarios; i++)
        if (r->scenarios[i].scenario == s)
            return &r->scenarios[i];
    more->scenario = s;
    more->delay_w = shown_price(s->delays_w, s->n_delays);
    more->promise_w = shown_price(s->promises_w, s->n_promises);
    more->groups = ARENA_ARRAY(r->a, struct run_group, n_rows);
    more->loads = ARENA_ARRAY(r->a, double, n_rows);
    more->knows = ARENA_ARRAY(r->a, enum knowledge, n_rows);
    more->has_cluster =
        s->cluster != NULL &&
        cluster_parse(r->a, s->name, s->cluster, strlen(s->cluster), &more->cluster, NULL) == 0;
    r->n_scenarios++;
    return more;
}

static struct run_group *group_of(struct report *r, struct scenario_results *s,
                                  const struct study_run *k)
{
    struct run_group *more = &s->groups[s->n_groups];

    for (int i = 0; i < s->n_groups; i++)
        if (study_run_is_alike(&s->groups[i].key, k))
            return &s->groups[i];
    more->key = *k;
    more->rows = ARENA_ARRAY(r->a, const struct results_row *, count_rows(r->results, k->scenario));
    s->n_groups++;
    return more;
}

static void add_load(struct scenario_results *s, double load)
{
    for (int i = 0; i < s->n_loads; i++)
        if (s->loads[i] == load)
            return;
    s->loads[s->n_loads++] = load;
}

static void add_knowledge(struct scenario_results *s, const struct study_run *k)
{
    if (scenario_is_oracle(k->policy))
        return;
    for (int i = 0; i < s->n_knows; i++)
        if (s->knows[i] == k->knows)
            return;
    s->knows[s->n_knows++] = k->knows;
}

static void add_types(struct report *r, struct scenario_results *s, const struct study_result *res)
{
    if (s->n_types > 0 || res->n_types == 0)
        return;
    s->types = ARENA_ARRAY(r->a, const char *, (size_t)res->n_types);
    for (int i = 0; i < res->n_types; i++)
        s->types[s->n_types++] = res->types[i].name;
}

void report_sort(struct report *r)
{
    const struct results *b = r->results;

    r->scenarios = ARENA_ARRAY(r->a, struct scenario_results, (size_t)b->n_rows);
    for (int i = 0; i < b->n_rows; i++) {
        const struct results_row *row = &b->rows[i];
        struct scenario_results *s = results_of(r, row->key.scenario);
        struct run_group *c = group_of(r, s, &row->key);

        c->rows[c->n++] = row;
        add_load(s, row->key.load);
        add_knowledge(s, &row->key);
        add_types(r, s, &row->result);
    }
}

static bool is_asked(const struct group_query *w, int knows, const struct study_run *k)
{
    return k->load == w->load && strcmp(k->policy, w->policy) == 0 &&
           k->has_limits == w->has_limits && strcmp(k->without, w->without) == 0 &&
           (knows < 0 || (int)k->knows == knows);
}

static const struct run_group *find(const struct scenario_results *s, const struct group_query *w,
                                    int knows)
{
    for (int i = 0; i < s->n_groups; i++) {
        const struct study_run *k = &s->groups[i].key;

        if (is_asked(w, knows, k) && scenario_shows(s, k))
            return &s->groups[i];
    }
    return NULL;
}

const struct run_group *scenario_group(const struct scenario_results *s, struct group_query w)
{
    const struct run_group *c = find(s, &w, w.knows);

    return c != NULL || strcmp(w.policy, "gogh") == 0 ? c : find(s, &w, -1);
}

int scenario_seeds(const struct scenario_results *s)
{
    int most = 0;

    for (int i = 0; i < s->n_groups; i++)
        most = s->groups[i].n > most ? s->groups[i].n : most;
    return most;
}

int report_seeds(const struct report *r)
{
    int most = 0;

    for (int i = 0; i < r->n_scenarios; i++)
        most = scenario_seeds(&r->scenarios[i]) > most ? scenario_seeds(&r->scenarios[i]) : most;
    return most;
}

bool scenario_footing(const struct scenario_results *s, double load)
{
    int ours[2] = { 0, 0 }, theirs[2] = { 0, 0 };

    for (int i = 0; i < s->n_groups; i++) {
        const struct study_run *k = &s->groups[i].key;

        if (k->load != load || k->without[0] != '\0' || scenario_is_oracle(k->policy))
            continue;
        if (strcmp(k->policy, "gogh") == 0)
            ours[k->has_limits]++;
        else
            theirs[k->has_limits]++;
    }
    return (ours[1] > 0 && theirs[1] > 0) || ours[0] + theirs[0] == 0;
}

/* ---- figures ---- */

/* A value is 'times' the result's 'over' something. */
static const struct {
    size_t at;    // offset
    double times, over;
    bool is_share;
} figures[] = {
#define OF(member) offsetof(struct study_result, member)
    [REPORT_ENERGY] = { OF(energy_j_per_work), 1, 1, false },
    [REPORT_KWH] = { OF(energy_kwh), 1, 1, false },
    [REPORT_ATTAINMENT] = { OF(promise_attainment), 100, 1, true },
    [REPORT_JCT_H] = { OF(mean_jct_s), 1, 3600, false },
    [REPORT_JCT95_H] = { OF(p95_jct_s), 1, 3600, false },
    [REPORT_QUEUE_MIN] = { OF(mean_queue_s), 1, 60, false },
    [REPORT_EFFICIENCY] = { OF(allocation_efficiency), 1, 1, false },
    [REPORT_FIRST] = { OF(first_100_attainment), 100, 1, true },
    [REPORT_NEXT] = { OF(next_attainment), 100, 1, true },
    [REPORT_ERROR] = { OF(prediction_error), 100, 1, false },
    [REPORT_COVERAGE] = { OF(coverage90), 100, 1, true },
    [REPORT_MOVES] = { OF(moves), 1, 1, false },
    [REPORT_MOVES_PER_JOB] = { OF(moves), 1, 1, false },
#undef OF
};

static double value_of(const struct study_result *r, enum report_figure f)
{
    if (f == REPORT_MOVES || f == REPORT_MOVES_PER_JOB) {
        const double over = f == REPORT_MOVES ? 1 : r->jobs;

        return isnan(r->mean_jct_s) ? (double)NAN
                                    : (double)r->moves / over;    // a bound runs nobody
    }
    const void *at = (const char *)r + figures[f].at;
    return figures[f].times * *(const double *)at / figures[f].over;
}

struct spread group_spread(const struct report *r, const struct run_group *c, enum report_figure f)
{
    double *v = ARENA_ARRAY(r->a, double, (size_t)c->n);

    for (int i = 0; i < c->n; i++)
        v[i] = value_of(&c->rows[i]->result, f);
    return spread_within(spread_of(v, c->n), 0, figures[f].is_share ? 100 : INFINITY);
}

struct unfinished group_unfinished(const struct run_group *c)
{
    struct unfinished u = { 0 };

    if (strcmp(c->key.policy, "bound") == 0)
        return u;
    for (int i = 0; i < c->n; i++) {
        const struct study_result *res = &c->rows[i]->result;

        u.n += res->jobs - res->finished;
        u.jobs += res->jobs;
        u.failed += res->failed;
    }
    return u;
}

static const struct results_row *row_of_seed(const struct run_group *c, int seed)
{
    for (int i = 0; i < c->n; i++)
        if (c->rows[i]->key.seed == seed)
            return c->rows[i];
    return NULL;
}

/* Change in percent, or the plain difference, seed by seed. */
static struct spread paired(const struct report *r, const struct run_group *ours,
                            const struct run_group *theirs, enum report_figure f, bool is_change)
{
    double *v = ARENA_ARRAY(r->a, double, (size_t)ours->n);
    int n = 0;

    for (int i = 0; i < ours->n; i++) {
        const struct results_row *other = row_of_seed(theirs, ours->rows[i]->key.seed);
        double a, b;

        if (other == NULL)
            continue;
        a = value_of(&ours->rows[i]->result, f);
        b = value_of(&other->result, f);
        v[n++] = is_change ? 100 * (a / b - 1) : a - b;
    }
    return spread_of(v, n);
}

struct spread group_change(const struct report *r, const struct run_group *ours,
                           const struct run_group *theirs, enum report_figure f)
{
    return paired(r, ours, theirs, f, true);
}

struct spread group_difference(const struct report *r, const struct run_group *ours,
                               const struct run_group *theirs, enum report_figure f)
{
    return paired(r, ours, theirs, f, false);
}

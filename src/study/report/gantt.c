/* Who shared which GPU: gogh beside fifo-fastest, of one scenario and load. */
#include "study/report/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Spans drawn of one strip; a page shall interval small. */
#define SPANS_MAX 4000

/* The run of a policy whose intervals were kept; NULL: none. */
static const struct results_row *row_with_intervals(const struct scenario_results *s, double load,
                                                    const char *policy, bool has_limits)
{
    const struct group_query w = { load, policy, has_limits, "", -1 };
    const struct run_group *c = scenario_group(s, w);

    for (int i = 0; c != NULL && i < c->n; i++)
        if (c->rows[i]->result.n_intervals > 0)
            return c->rows[i];
    return NULL;
}

struct gantt_runs {
    const struct scenario_results *results;
    const struct results_row *rows[2];
    int n;
};

/* Its highest load that has intervals of gogh. */
static struct gantt_runs choose(const struct scenario_results *s)
{
    struct gantt_runs c = { .results = s };

    for (int l = s->n_loads - 1; l >= 0 && c.n == 0; l--) {
        const double load = s->loads[l];
        const bool has_limits = scenario_footing(s, load);

        c.rows[0] = row_with_intervals(s, load, "gogh", has_limits);
        c.rows[1] = row_with_intervals(s, load, "fifo-fastest", has_limits);
        if (c.rows[0] != NULL)
            c.n = c.rows[1] != NULL ? 2 : 1;
    }
    return c;
}

bool report_has_gantt(const struct report *r, const struct scenario_results *s)
{
    (void)r;
    return choose(s).n > 0;
}

/* ---- rows: GPUs by type ---- */

struct gpu_rows {
    int n;
    int *of_gpu;    // (n) row of each GPU
    const char **names;
    int *bundles;    // types
};

static int highest_gpu(const struct gantt_runs *c)
{
    int highest = -1;

    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->rows[i]->result.n_intervals; k++)
            if (c->rows[i]->result.intervals[k].gpu > highest)
                highest = c->rows[i]->result.intervals[k].gpu;
    return highest;
}

/* Types of GPUs in the order of the cluster's nodes; -1 beyond them. */
static int *gpu_types(const struct report *r, const struct scenario_results *s, int n)
{
    int *types = ARENA_ARRAY(r->a, int, (size_t)n);
    int at = 0;

    for (int i = 0; i < n; i++)
        types[i] = -1;
    for (int i = 0; s->has_cluster && i < s->cluster.n_nodes; i++)
        for (int g = 0; g < s->cluster.nodes[i].n_gpus && at < n; g++)
            types[at++] = s->cluster.nodes[i].types[g];
    return types;
}

static struct gpu_rows gpu_rows_make(const struct report *r, const struct gantt_runs *c)
{
    const struct scenario_results *s = c->results;
    const int known = s->has_cluster ? s->cluster.n_gpus : 0, seen = highest_gpu(c) + 1;
    struct gpu_rows l = { .n = 0 };
    const int n = known > seen ? known : seen;
    const int *types = gpu_types(r, s, n);

    l.of_gpu = ARENA_ARRAY(r->a, int, (size_t)n);
    l.names = ARENA_ARRAY(r->a, const char *, (size_t)n);
    l.bundles = ARENA_ARRAY(r->a, int, (size_t)n);
    for (int t = -1; t < (s->has_cluster ? s->cluster.n_types : 0); t++)
        for (int g = 0; g < n; g++) {
            if (types[g] != t)
                continue;
            l.of_gpu[g] = l.n;
            l.bundles[l.n] = t;
            l.names[l.n++] =
                arena_printf(r->a, "%s %d", t < 0 ? "GPU" : s->cluster.types[t].name, g);
        }
    return l;
}

/* ---- spans: intervals ---- */

static int by_row(const void *a, const void *b)
{
    const struct plot_span *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->from < y->from || x->from > y->from)
        return x->from < y->from ? -1 : 1;
    return strcmp(x->text, y->text);
}

static struct plot_span span_of(const struct report *r, const struct study_interval *interval,
                                const struct gpu_rows *l)
{
    const char *limit = interval->limit_w > 0
                            ? arena_printf(r->a, "limited to %d W", interval->limit_w)
                            : "no power limit";

    return (struct plot_span){
        .row = l->of_gpu[interval->gpu],
        .from = interval->from_s / 3600,
        .to = interval->to_s / 3600,
        .colour = interval->job % PLOT_SERIES_MAX,
        .is_marked = interval->limit_w > 0,
        .text = arena_printf(r->a, "job %d, GPU %d, %.2f to %.2f h, %s", interval->job,
                             interval->gpu, interval->from_s / 3600, interval->to_s / 3600, limit),
    };
}

static void put_timeline(struct report *r, const struct scenario_results *s,
                         const struct results_row *row, const struct gpu_rows *l)
{
    const struct study_result *res = &row->result;
    const int n = res->n_intervals < SPANS_MAX ? res->n_intervals : SPANS_MAX;
    struct plot_span *spans = ARENA_ARRAY(r->a, struct plot_span, (size_t)n);
    const char *limits = row->key.has_limits ? "with power limits" : "without power limits";
    struct plot_timeline p = {
        .title = arena_printf(r->a, "Who was on which GPU: %s, %s, %s", s->scenario->name,
                              row->key.policy, limits),
        .description = "One lane a GPU, grouped by type; each bar is a job's stay.",
        .width = 1120,
        .x = { .label = "hours since the first arrival",
               .low = res->intervals_from_s / 3600,
               .high = res->intervals_to_s / 3600 },
        .n_rows = l->n,
        .rows = l->names,
        .bundles = l->bundles,
        .n_spans = n,
        .spans = spans,
    };

    for (int i = 0; i < n; i++)
        spans[i] = span_of(r, &res->intervals[i], l);
    qsort(spans, (size_t)n, sizeof *spans, by_row);
    PUT(r->out,
        "<figure class=\"scroll\" tabindex=\"0\"><figcaption><b>%s</b>, %s, seed %d</figcaption>\n",
        html(r, row->key.policy), limits, row->key.seed);
    plot_timeline(r->out, &p);
    report_put_command(r, s, row->key.load);
    PUT(r->out, "</figure>\n");
}

void report_gantt(struct report *r)
{
    struct gantt_runs c = { .n = 0 };
    struct gpu_rows l;

    for (int i = 0; i < r->n_scenarios && c.n == 0; i++)    // the first that has any
        c = choose(&r->scenarios[i]);
    assert(c.n > 0 && c.results != NULL);    // report_has_gantt
    l = gpu_rows_make(r, &c);
    PUT(r->out,
        "<p>Scenario %s, %s, %s, some hours in the middle. One lane a GPU, grouped by type. Two "
        "bars above one another share the GPU; an empty lane idles or sleeps. Paler, with a "
        "border: the GPU's power was limited. Colours tell neighbours apart and repeat. Hover for "
        "job, times and limit.</p>\n",
        html(r, c.results->scenario->name), load_title(r->a, c.rows[0]->key.load),
        c.rows[0]->key.has_limits ? "all may limit power" : "nobody limits power");
    for (int i = 0; i < c.n; i++)
        put_timeline(r, c.results, c.rows[i], &l);
}

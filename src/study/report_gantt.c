/* Who shared which GPU: gogh beside fifo-fastest, of one scenario and load. */
#include "study/report/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Spans drawn of one strip; a page shall stay small. */
#define SPANS_MAX 4000

/* The run of a policy whose stays were kept; NULL: none. */
static const struct book_row *row_with_stays(const struct sheet *s, double load, const char *policy,
                                             bool has_limits)
{
    const struct wanted w = { load, policy, has_limits, "", -1 };
    const struct lot *c = sheet_find(s, w);

    for (int i = 0; c != NULL && i < c->n; i++)
        if (c->rows[i]->result.n_stays > 0)
            return c->rows[i];
    return NULL;
}

struct chosen {
    const struct sheet *sheet;
    const struct book_row *rows[2];
    int n;
};

/* The first scenario and its highest load that has stays of gogh. */
static struct chosen choose(const struct report *r)
{
    for (int i = 0; i < r->n_sheets; i++)
        for (int l = r->sheets[i].n_loads - 1; l >= 0; l--) {
            const struct sheet *s = &r->sheets[i];
            const double load = s->loads[l];
            const bool has_limits = sheet_footing(s, load);
            const struct book_row *ours = row_with_stays(s, load, "gogh", has_limits);
            const struct book_row *theirs = row_with_stays(s, load, "fifo-fastest", has_limits);
            struct chosen c = { .sheet = s };

            if (ours == NULL)
                continue;
            c.rows[c.n++] = ours;
            if (theirs != NULL)
                c.rows[c.n++] = theirs;
            return c;
        }
    return (struct chosen){ 0 };
}

bool report_has_gantt(const struct report *r)
{
    return choose(r).n > 0;
}

/* ---- lanes: GPUs by type ---- */

struct lanes {
    int n;
    int *of_gpu;    // (n) lane of each GPU
    const char **names;
    int *bundles;    // types
};

static int highest_gpu(const struct chosen *c)
{
    int highest = -1;

    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->rows[i]->result.n_stays; k++)
            if (c->rows[i]->result.stays[k].gpu > highest)
                highest = c->rows[i]->result.stays[k].gpu;
    return highest;
}

/* Types of GPUs in the order of the cluster's nodes; -1 beyond them. */
static int *gpu_types(const struct report *r, const struct sheet *s, int n)
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

static struct lanes lanes_make(const struct report *r, const struct chosen *c)
{
    const struct sheet *s = c->sheet;
    const int known = s->has_cluster ? s->cluster.n_gpus : 0, seen = highest_gpu(c) + 1;
    struct lanes l = { .n = 0 };
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

/* ---- spans: stays ---- */

static int by_lane(const void *a, const void *b)
{
    const struct plot_span *x = a, *y = b;

    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->from < y->from || x->from > y->from)
        return x->from < y->from ? -1 : 1;
    return strcmp(x->text, y->text);
}

static struct plot_span span_of(const struct report *r, const struct run_stay *stay,
                                const struct lanes *l)
{
    const char *limit =
        stay->limit_w > 0 ? arena_printf(r->a, "limited to %d W", stay->limit_w) : "no power limit";

    return (struct plot_span){
        .lane = l->of_gpu[stay->gpu],
        .from = stay->from_s / 3600,
        .to = stay->to_s / 3600,
        .colour = stay->job % PLOT_SERIES_MAX,
        .is_marked = stay->limit_w > 0,
        .text = arena_printf(r->a, "job %d, GPU %d, %.2f to %.2f h, %s", stay->job, stay->gpu,
                             stay->from_s / 3600, stay->to_s / 3600, limit),
    };
}

static void put_strip(struct report *r, const struct sheet *s, const struct book_row *row,
                      const struct lanes *l)
{
    const struct run_result *res = &row->result;
    const int n = res->n_stays < SPANS_MAX ? res->n_stays : SPANS_MAX;
    struct plot_span *spans = ARENA_ARRAY(r->a, struct plot_span, (size_t)n);
    const char *limits = row->key.has_limits ? "with power limits" : "without power limits";
    struct plot_strip p = {
        .title = arena_printf(r->a, "Who was on which GPU: %s, %s, %s", s->scenario->name,
                              row->key.policy, limits),
        .description = "One lane a GPU, grouped by type; each bar is a job's stay.",
        .width = 1120,
        .x = { .label = "hours since the first arrival",
               .low = res->stays_from_s / 3600,
               .high = res->stays_to_s / 3600 },
        .n_lanes = l->n,
        .lanes = l->names,
        .bundles = l->bundles,
        .n_spans = n,
        .spans = spans,
    };

    for (int i = 0; i < n; i++)
        spans[i] = span_of(r, &res->stays[i], l);
    qsort(spans, (size_t)n, sizeof *spans, by_lane);
    PUT(r->out, "<figure class=\"scroll\" tabindex=\"0\"><figcaption><b>");
    plot_escape(r->out, row->key.policy);
    PUT(r->out, "</b>, %s, seed %d</figcaption>\n", limits, row->key.seed);
    plot_strip(r->out, &p);
    PUT(r->out, "</figure>\n");
}

void report_gantt(struct report *r)
{
    const struct chosen c = choose(r);
    struct lanes l;

    assert(c.n > 0 && c.sheet != NULL);    // report_has_gantt
    l = lanes_make(r, &c);
    PUT(r->out, "<p>Scenario ");
    plot_escape(r->out, c.sheet->scenario->name);
    PUT(r->out,
        ", %s, %s, some hours in the middle. One lane a GPU, grouped by type. Two bars above one "
        "another share "
        "the GPU; an empty lane idles or sleeps. Paler, with a border: the GPU's power was "
        "limited. Colours tell neighbours apart and repeat. Hover for job, times and "
        "limit.</p>\n",
        load_title(r->a, c.rows[0]->key.load),
        c.rows[0]->key.has_limits ? "all may limit power" : "nobody limits power");
    for (int i = 0; i < c.n; i++)
        put_strip(r, c.sheet, c.rows[i], &l);
}

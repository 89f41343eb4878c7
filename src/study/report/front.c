/* The front: energy against time, gogh along its prices, rivals as points. */
#include "study/report/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points of one line at most: prices that somebody tries. */
#define POINTS_MAX 64

/* The cluster's own price comes first. */
static double price_of(const double *price_w)
{
    return price_w != NULL ? *price_w : -1;
}

/* By what a second of delay costs, then by what a broken promise does. */
static int by_price(const void *a, const void *b)
{
    const struct run_group *x = *(const struct run_group *const *)a;
    const struct run_group *y = *(const struct run_group *const *)b;
    const double dx = price_of(x->key.delay_w), dy = price_of(y->key.delay_w);
    const double px = price_of(x->key.promise_w), py = price_of(y->key.promise_w);

    if (dx < dy || dx > dy)
        return dx < dy ? -1 : 1;
    return (px > py) - (px < py);
}

static bool is_on_front(const struct scenario_results *s, const struct run_group *c, double load)
{
    return c->key.load == load && c->key.without[0] == '\0' &&
           c->key.has_limits == scenario_footing(s, load) && strcmp(c->key.policy, "bound") != 0;
}

/* gogh's groups at a load that begin with the same, with a price of their own, in order. */
static int line_of(const struct report *r, const struct scenario_results *s, double load,
                   enum knowledge knows, const struct run_group ***out)
{
    int n = 0;

    *out = ARENA_ARRAY(r->a, const struct run_group *, (size_t)s->n_groups);
    for (int i = 0; i < s->n_groups && n < POINTS_MAX; i++) {
        const struct run_group *c = &s->groups[i];

        if (is_on_front(s, c, load) && c->key.knows == knows &&
            strcmp(c->key.policy, "gogh") == 0 &&
            (c->key.delay_w != NULL || c->key.promise_w != NULL))
            (*out)[n++] = c;
    }
    qsort(*out, (size_t)n, sizeof **out, by_price);
    return n;
}

bool report_has_front(const struct report *r, const struct scenario_results *s)
{
    const struct run_group **line;

    for (int l = 0; l < s->n_loads; l++)
        for (int k = 0; k < s->n_knows; k++)
            if (line_of(r, s, s->loads[l], s->knows[k], &line) > 1)
                return true;
    return false;
}

/* ---- charts ---- */

static const struct front_panel {
    const char *title, *label;
    enum report_figure figure;
} panels[] = {
    { "mean completion time", "hours, mean completion", REPORT_JCT_H },
    { "completion time of the slowest", "hours, 95 of 100 jobs take less", REPORT_JCT95_H },
    { "promises", "% of promises kept", REPORT_ATTAINMENT },
    { "moves", "moves a job", REPORT_MOVES_PER_JOB },
};
#define N_PANELS ((int)(sizeof panels / sizeof panels[0]))

/* "60 W"; "" of who goes by the cluster's prices. */
static const char *price_label(const struct report *r, const struct study_run *k)
{
    const double *price_w = k->delay_w != NULL ? k->delay_w : k->promise_w;

    return price_w != NULL ? arena_printf(r->a, "%g W", *price_w) : "";
}

static struct plot_series series_of(const struct report *r, const struct run_group *const *groups,
                                    int n, enum report_figure f, const char *name)
{
    const char **labels = ARENA_ARRAY(r->a, const char *, (size_t)n);
    double *v = ARENA_ARRAY(r->a, double, 2 * (size_t)n);

    for (int i = 0; i < n; i++) {
        labels[i] = price_label(r, &groups[i]->key);
        v[i] = group_spread(r, groups[i], f).mean;
        v[n + i] = group_spread(r, groups[i], REPORT_ENERGY).mean;
    }
    return (struct plot_series){ .name = name, .n = n, .x = v, .y = v + n, .labels = labels };
}

/* Lines of gogh, one for each beginning, then everybody else as a point. */
static int all_series(const struct report *r, const struct scenario_results *s, double load,
                      enum report_figure f, struct plot_series out[PLOT_SERIES_MAX])
{
    const struct run_group **line;
    int n = 0;

    for (int k = 0; k < s->n_knows && n < PLOT_SERIES_MAX; k++) {
        const int n_line = line_of(r, s, load, s->knows[k], &line);
        const char *name =
            s->n_knows > 1 ? arena_printf(r->a, "gogh, %s", knowledge_title(s->knows[k])) : "gogh";

        if (n_line > 0)
            out[n++] = series_of(r, line, n_line, f, name);
    }
    for (int i = 0; i < s->n_groups && n < PLOT_SERIES_MAX; i++) {
        const struct run_group *c = &s->groups[i];

        if (is_on_front(s, c, load) && c->key.delay_w == NULL && c->key.promise_w == NULL)
            out[n++] = series_of(r, &c, 1, f, report_group_title(r, s, &c->key));
    }
    return n;
}

static void put_panel(struct report *r, const struct scenario_results *s, double load,
                      const struct front_panel *panel)
{
    struct plot_series series[PLOT_SERIES_MAX];
    const int n = all_series(r, s, load, panel->figure, series);
    const struct plot_lines p = {
        .title = arena_printf(r->a, "Energy against %s, %s, %s", panel->title, s->scenario->name,
                              load_title(r->a, load)),
        .description = "A line joins gogh's runs in the order of their prices; a point is a policy "
                       "that goes by none.",
        .width = 556,
        .height = 250,
        .x = { .label = panel->label, .low = (double)NAN, .high = (double)NAN },
        .y = { .label = "J per unit of work", .low = (double)NAN, .high = (double)NAN },
        .n_series = n,
        .series = series,
    };

    PUT(r->out, "<figure><figcaption>Energy against %s, %s</figcaption>\n", panel->title,
        load_title(r->a, load));
    plot_lines(r->out, &p);
    report_put_command(r, s, load);
    PUT(r->out, "</figure>\n");
}

/* ---- the table ---- */

static void put_row(struct report *r, const struct scenario_results *s, const struct run_group *c)
{
    const bool is_ours = strcmp(c->key.policy, "gogh") == 0;

    PUT(r->out, "<tr%s><th scope=\"row\">%s</th>", is_ours ? " class=\"ours\"" : "",
        html(r, report_group_title(r, s, &c->key)));
    report_put_spread(r->out, group_spread(r, c, REPORT_ENERGY), -1);
    report_put_spread(r->out, group_spread(r, c, REPORT_JCT_H), 2);
    report_put_spread(r->out, group_spread(r, c, REPORT_JCT95_H), 2);
    report_put_spread(r->out, group_spread(r, c, REPORT_ATTAINMENT), 1);
    report_put_spread(r->out, group_spread(r, c, REPORT_MOVES_PER_JOB), 2);
    PUT(r->out, "</tr>\n");
}

static void put_table(struct report *r, const struct scenario_results *s, double load)
{
    const struct run_group **line;

    PUT(r->out,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s, %s</caption>\n"
        "<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">energy per work, J</th>"
        "<th scope=\"col\">mean JCT, h</th><th scope=\"col\">p95 JCT, h</th>"
        "<th scope=\"col\">promises kept, %%</th><th scope=\"col\">moves a job</th></tr></thead>\n"
        "<tbody>\n",
        html(r, s->scenario->name), load_title(r->a, load));
    for (int k = 0; k < s->n_knows; k++) {
        const int n = line_of(r, s, load, s->knows[k], &line);

        for (int i = 0; i < n; i++)
            put_row(r, s, line[i]);
    }
    for (int i = 0; i < s->n_groups; i++) {
        const struct run_group *c = &s->groups[i];

        if (is_on_front(s, c, load) && (strcmp(c->key.policy, "gogh") != 0 ||
                                        (c->key.delay_w == NULL && c->key.promise_w == NULL)))
            put_row(r, s, c);
    }
    PUT(r->out, "</tbody></table></div>\n");
}

void report_front(struct report *r)
{
    PUT(r->out,
        "<p>What a second of a job's time is worth, in watts, is gogh's one knob between energy "
        "and time: each point of its line is one price, from cheap to dear. To the left and below "
        "is better, of promises to the right. Who lies left of the line and below it beats "
        "gogh.</p>\n");
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario_results *s = &r->scenarios[i];

        if (!report_has_front(r, s))
            continue;
        PUT(r->out, "<h3>%s</h3>\n", html(r, s->scenario->name));
        for (int l = 0; l < s->n_loads; l++) {
            PUT(r->out, "<div class=\"charts\">\n");
            for (int p = 0; p < N_PANELS; p++)
                put_panel(r, s, s->loads[l], &panels[p]);
            PUT(r->out, "</div>\n");
            put_table(r, s, s->loads[l]);
        }
    }
}

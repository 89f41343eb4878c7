/* The front: energy against time, a line for each policy along its prices. */
#include "study/report/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"

/* ---- lines ---- */

/* Groups of one policy that differ in one price, from cheap to dear. */
struct front_line {
    int n;
    const struct run_group **groups;    // (n)
};

static bool is_along_delay(const struct scenario *s)
{
    return s->n_delays > 1;
}

/* What a broken promise costs where nothing was tried. */
static double usual_promise_w(const struct scenario_results *s)
{
    struct cluster_settings usual;

    cluster_defaults(&usual);
    return s->has_cluster ? s->cluster.settings.promise_w : usual.promise_w;
}

static double price_of(const struct scenario_results *s, const struct run_group *c)
{
    const double usual_w = c->rows[0]->result.effective_delay_w;

    if (!is_along_delay(s->scenario))
        return c->key.promise_w != NULL ? *c->key.promise_w : usual_promise_w(s);
    return c->key.delay_w != NULL ? *c->key.delay_w : isfinite(usual_w) ? usual_w : 0;
}

static bool is_on_front(const struct scenario_results *s, const struct run_group *c, double load)
{
    return c->key.load == load && c->key.without[0] == '\0' &&
           c->key.has_limits == scenario_footing(s, load) && strcmp(c->key.policy, "bound") != 0;
}

static bool is_one_line(const struct study_run *a, const struct study_run *b)
{
    return strcmp(a->policy, b->policy) == 0 && a->knows == b->knows &&
           (!is_along_delay(a->scenario) || price_is_same(a->promise_w, b->promise_w));
}

/* Among those that are there already, in their order. */
static void insert(const struct scenario_results *s, struct front_line *l,
                   const struct run_group *c)
{
    int at = l->n++;

    for (; at > 0 && price_of(s, l->groups[at - 1]) > price_of(s, c); at--)
        l->groups[at] = l->groups[at - 1];
    l->groups[at] = c;
}

static void add_group(const struct report *r, const struct scenario_results *s,
                      const struct run_group *c, struct front_line *lines, int *n)
{
    int i = 0;

    while (i < *n && !is_one_line(&lines[i].groups[0]->key, &c->key))
        i++;
    if (i == *n)
        lines[(*n)++].groups = ARENA_ARRAY(r->a, const struct run_group *, (size_t)s->n_groups);
    insert(s, &lines[i], c);
}

/* gogh's first, then everybody else's. Returns how many. */
static int lines_of(const struct report *r, const struct scenario_results *s, double load,
                    struct front_line **out)
{
    int n = 0;

    *out = ARENA_ARRAY(r->a, struct front_line, (size_t)s->n_groups);
    for (int is_other = 0; is_other < 2; is_other++)
        for (int i = 0; i < s->n_groups; i++)
            if (is_on_front(s, &s->groups[i], load) &&
                (strcmp(s->groups[i].key.policy, "gogh") != 0) == is_other)
                add_group(r, s, &s->groups[i], *out, &n);
    return n;
}

bool report_has_front(const struct report *r, const struct scenario_results *s)
{
    struct front_line *lines;

    for (int l = 0; l < s->n_loads; l++)
        for (int i = lines_of(r, s, s->loads[l], &lines); i > 0; i--)
            if (lines[i - 1].n > 1)
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

/* "60 W", "auto"; "" of who does not mind. */
static const char *price_label(const struct report *r, const struct study_run *k)
{
    const bool is_delay = is_along_delay(k->scenario);
    const double *price_w = is_delay ? k->delay_w : k->promise_w;

    if (price_w != NULL)
        return arena_printf(r->a, "%s W", words_number(r->a, *price_w));
    return (is_delay ? study_run_minds_delay(k) : study_run_minds_promise(k)) ? "auto" : "";
}

/* What all points of the line have. */
static const char *line_title(const struct report *r, const struct scenario_results *s,
                              const struct front_line *l)
{
    struct study_run k = l->groups[0]->key;

    if (is_along_delay(s->scenario))
        k.delay_w = NULL;
    else
        k.promise_w = NULL;
    return report_group_title(r, s, &k);
}

static struct plot_series series_of(const struct report *r, const struct scenario_results *s,
                                    const struct front_line *l, enum report_figure f)
{
    const char **labels = ARENA_ARRAY(r->a, const char *, (size_t)l->n);
    double *v = ARENA_ARRAY(r->a, double, 2 * (size_t)l->n);

    for (int i = 0; i < l->n; i++) {
        labels[i] = price_label(r, &l->groups[i]->key);
        v[i] = group_spread(r, l->groups[i], f).mean;
        v[l->n + i] = group_spread(r, l->groups[i], REPORT_ENERGY).mean;
    }
    return (struct plot_series){
        .name = line_title(r, s, l), .n = l->n, .x = v, .y = v + l->n, .labels = labels
    };
}

static void put_panel(struct report *r, const struct scenario_results *s, double load,
                      const struct front_panel *panel)
{
    struct plot_series series[PLOT_SERIES_MAX];
    struct front_line *lines;
    int n = lines_of(r, s, load, &lines);

    n = n < PLOT_SERIES_MAX ? n : PLOT_SERIES_MAX;
    for (int i = 0; i < n; i++)
        series[i] = series_of(r, s, &lines[i], panel->figure);
    const struct plot_lines p = {
        .title = arena_printf(r->a, "Energy against %s, %s, %s", panel->title, s->scenario->name,
                              load_title(r->a, load)),
        .description = "A line joins a policy's runs in the order of their prices; a point is a "
                       "policy that goes by none.",
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
    struct front_line *lines;
    const int n = lines_of(r, s, load, &lines);

    PUT(r->out,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>%s, %s</caption>\n"
        "<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">energy per work, J</th>"
        "<th scope=\"col\">mean JCT, h</th><th scope=\"col\">p95 JCT, h</th>"
        "<th scope=\"col\">promises kept, %%</th><th scope=\"col\">moves a job</th></tr></thead>\n"
        "<tbody>\n",
        html(r, s->scenario->name), load_title(r->a, load));
    for (int l = 0; l < n; l++)
        for (int i = 0; i < lines[l].n; i++)
            put_row(r, s, lines[l].groups[i]);
    PUT(r->out, "</tbody></table></div>\n");
}

void report_front(struct report *r)
{
    PUT(r->out,
        "<p>What a second of a job's time is worth, in watts, is the one knob between energy and "
        "time, and everybody whose plans it changes was run at the same prices: each point of a "
        "line is one of them, from cheap to dear. To the left and below is better, of promises to "
        "the right. Who lies left of gogh's line and below it beats gogh.</p>\n");
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

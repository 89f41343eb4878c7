/* Every figure of every group. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

const char *html(const struct report *r, const char *text)
{
    struct buf b;

    buf_init(&b, 16 * strlen(text) + 16);
    plot_escape(&b, text);
    const char *copy = arena_strdup(r->a, buf_text(&b));
    buf_release(&b);
    return copy;
}

void report_put_around(struct buf *out, struct spread s, int decimals)
{
    if (spread_is_even(&s))
        PUT(out, " <small>±%s</small>", plot_fixed(s.half, decimals).text);
    else if (s.n > 1)
        PUT(out, "<br><small>%s..%s</small>", plot_fixed(s.from, decimals).text,
            plot_fixed(s.to, decimals).text);
}

void report_put_spread(struct buf *out, struct spread s, int decimals)
{
    const int n = decimals >= 0 ? decimals : plot_decimals(s.mean);

    PUT(out, "<td>%s", plot_fixed(s.mean, n).text);
    report_put_around(out, s, n);
    PUT(out, "</td>");
}

void report_put_sign(struct buf *out, double v)
{
    const struct plot_number n = plot_fixed(v, 1);

    PUT(out, "%s%s", v > 0 && strpbrk(n.text, "123456789") != NULL ? "+" : "", n.text);
}

void report_put_signed(struct buf *out, struct spread s, const char *unit)
{
    PUT(out, "<td>");
    report_put_sign(out, s.mean);
    PUT(out, "%s", unit);
    report_put_around(out, s, 1);
    PUT(out, "</td>");
}

/* ---- policies ---- */

static const struct column {
    const char *title, *unit;
    enum report_figure figure;
    int decimals;
} columns[] = {
    { "energy per work", "J", REPORT_ENERGY, -1 },
    { "to completion", "kWh", REPORT_KWH, -1 },
    { "promises kept", "%", REPORT_ATTAINMENT, 1 },
    { "mean JCT", "h", REPORT_JCT_H, 2 },
    { "p95 JCT", "h", REPORT_JCT95_H, 2 },
    { "queueing", "min", REPORT_QUEUE_MIN, 1 },
    { "allocation efficiency", "", REPORT_EFFICIENCY, 3 },
    { "moves", "", REPORT_MOVES, 0 },
    { "moves a job", "", REPORT_MOVES_PER_JOB, 2 },
};
#define N_COLUMNS ((int)(sizeof columns / sizeof columns[0]))

static struct spread type_hours(const struct report *r, const struct run_group *c, const char *type)
{
    double *v = ARENA_ARRAY(r->a, double, (size_t)c->n);

    for (int i = 0; i < c->n; i++) {
        const struct study_result *res = &c->rows[i]->result;

        v[i] = (double)NAN;
        for (int t = 0; t < res->n_types; t++)
            if (strcmp(res->types[t].name, type) == 0)
                v[i] = res->types[t].gpu_hours;
    }
    return spread_within(spread_of(v, c->n), 0, INFINITY);
}

static void put_policy_head(struct report *r, const struct scenario_results *s)
{
    PUT(r->out, "<thead><tr><th scope=\"col\" rowspan=\"2\">policy</th>"
                "<th scope=\"col\" rowspan=\"2\">power limits</th>");
    if (s->n_knows > 1)
        PUT(r->out, "<th scope=\"col\" rowspan=\"2\">knows</th>");
    for (int i = 0; i < N_COLUMNS; i++)
        PUT(r->out, "<th scope=\"col\" rowspan=\"2\">%s%s%s</th>", columns[i].title,
            columns[i].unit[0] != '\0' ? ", " : "", columns[i].unit);
    if (s->n_types > 0)
        PUT(r->out, "<th scope=\"colgroup\" colspan=\"%d\">GPU-hours held</th>", s->n_types);
    PUT(r->out, "</tr>\n<tr>");
    for (int i = 0; i < s->n_types; i++) {
        PUT(r->out, "<th scope=\"col\">%s</th>", html(r, s->types[i]));
    }
    PUT(r->out, "</tr></thead>\n");
}

/* The policy with its prices; what it begins with has a column of its own. */
static const char *priced_title(const struct report *r, const struct run_group *c)
{
    const struct scenario_results alone = { .n_knows = 1 };

    return report_group_title(r, &alone, &c->key);
}

static void put_policy_row(struct report *r, const struct scenario_results *s,
                           const struct run_group *c)
{
    const bool is_ours = strcmp(c->key.policy, "gogh") == 0;

    PUT(r->out, "<tr%s><th scope=\"row\">%s</th><td class=\"word\">%s</td>",
        is_ours ? " class=\"ours\"" : "", html(r, priced_title(r, c)),
        c->key.has_limits ? "yes" : "no");
    if (s->n_knows > 1)
        PUT(r->out, "<td class=\"word\">%s</td>", knowledge_title(c->key.knows));
    for (int i = 0; i < N_COLUMNS; i++)
        report_put_spread(r->out, group_spread(r, c, columns[i].figure), columns[i].decimals);
    for (int i = 0; i < s->n_types; i++) {
        const struct spread hours = type_hours(r, c, s->types[i]);

        report_put_spread(r->out, hours, hours.mean >= 100 ? 0 : 1);
    }
    PUT(r->out, "</tr>\n");
}

/* Those that belong into the table of policies. */
static bool is_whole(const struct run_group *c, double load)
{
    return c->key.load == load && c->key.without[0] == '\0';
}

/* Jobs that did not finish change what every other figure means. */
void report_put_unfinished(struct report *r, const struct scenario_results *s,
                           const struct run_group *c)
{
    const struct unfinished u = group_unfinished(c);

    PUT(r->out, "%s, %s, %s power limits%s%s", html(r, priced_title(r, c)),
        load_title(r->a, c->key.load), c->key.has_limits ? "with" : "without",
        c->key.without[0] != '\0' ? ", without " : "", c->key.without);
    if (s->n_knows > 1 && !scenario_is_oracle(c->key.policy))
        PUT(r->out, ", from %s", knowledge_title(c->key.knows));
    PUT(r->out, ": %d of %d jobs did not finish (%d failed)", u.n, u.jobs, u.failed);
}

/* What stands beside the means of a table. */
static const char *around_title(const struct scenario_results *s)
{
    if (scenario_seeds(s) >= SPREAD_INTERVAL)
        return "Mean over seeds, ± half the 95&nbsp;% confidence interval; shares that it would "
               "take beyond 0 or 100&nbsp;%: from..to";
    return scenario_seeds(s) > 1 ? "Mean over seeds, smallest..largest"
                                 : "One seed: nothing here is sure";
}

void report_policies(struct report *r, const struct scenario_results *s)
{
    const int n_columns = 2 + (s->n_knows > 1) + N_COLUMNS + s->n_types;

    PUT(r->out,
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"policies\"><caption>%s</caption>\n",
        around_title(s));
    put_policy_head(r, s);
    for (int l = 0; l < s->n_loads; l++) {
        PUT(r->out,
            "<tbody>\n<tr><th scope=\"rowgroup\" class=\"group\" colspan=\"%d\">%s</th></tr>\n",
            n_columns, load_title(r->a, s->loads[l]));
        for (int i = 0; i < s->n_groups; i++)
            if (is_whole(&s->groups[i], s->loads[l]))
                put_policy_row(r, s, &s->groups[i]);
        PUT(r->out, "</tbody>\n");
    }
    PUT(r->out, "</table></div>\n");
    for (int i = 0; i < s->n_groups; i++) {
        if (group_unfinished(&s->groups[i]).n == 0)
            continue;
        PUT(r->out, "<p class=\"note\">");
        report_put_unfinished(r, s, &s->groups[i]);
        PUT(r->out, ".</p>\n");
    }
}

/* What each lever is worth: gogh with all of them against gogh less one. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

/* The group that has all levers, of one that lacks one; NULL: it lacks none, or is not shown. */
static const struct run_group *lever_base(const struct scenario_results *s,
                                          const struct run_group *less)
{
    const struct group_query w = { less->key.load, "gogh", true, "", (int)less->key.knows };

    if (less->key.without[0] == '\0' || !scenario_shows(s, &less->key))
        return NULL;
    return scenario_group(s, w);
}

bool report_has_levers(const struct report *r, const struct scenario_results *s)
{
    (void)r;
    for (int i = 0; i < s->n_groups; i++)
        if (lever_base(s, &s->groups[i]) != NULL)
            return true;
    return false;
}

/* Levers that were taken away, in the order of the results. */
static int levers_of(const struct report *r, const struct scenario_results *s, const char ***out)
{
    int n = 0;

    *out = ARENA_ARRAY(r->a, const char *, (size_t)s->n_groups);
    for (int i = 0; i < s->n_groups; i++) {
        bool is_new = lever_base(s, &s->groups[i]) != NULL;

        for (int k = 0; k < n; k++)
            is_new = is_new && strcmp((*out)[k], s->groups[i].key.without) != 0;
        if (is_new)
            (*out)[n++] = s->groups[i].key.without;
    }
    return n;
}

static const char *lever_title(const char *lever)
{
    static const struct {
        const char *name, *title;
    } titles[] = {
        { "types", "type choice" },   { "sharing", "sharing" },
        { "moving", "moving" },       { "sleep", "sleep" },
        { "limits", "power limits" }, { "joules", "joules (least watts instead)" },
    };

    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(titles[i].name, lever) == 0)
            return titles[i].title;
    return lever;
}

static const struct run_group *without(const struct scenario_results *s, double load,
                                       const char *lever)
{
    for (int i = 0; i < s->n_groups; i++)
        if (s->groups[i].key.load == load && strcmp(s->groups[i].key.without, lever) == 0 &&
            scenario_shows(s, &s->groups[i].key))
            return &s->groups[i];
    return NULL;
}

static void put_lever_bars(struct report *r, const struct scenario_results *s)
{
    const char **levers;
    const int n = levers_of(r, s, &levers);
    const char **titles = ARENA_ARRAY(r->a, const char *, (size_t)n);
    struct plot_series series[PLOT_SERIES_MAX];
    int n_series = 0;

    for (int i = 0; i < n; i++)
        titles[i] = lever_title(levers[i]);
    for (int l = 0; l < s->n_loads && n_series < PLOT_SERIES_MAX; l++) {
        struct report_column c = report_column(r->a, n);

        for (int i = 0; i < n; i++) {
            const struct run_group *less = without(s, s->loads[l], levers[i]);

            if (less != NULL && lever_base(s, less) != NULL)
                report_column_set(&c, i, group_change(r, less, lever_base(s, less), REPORT_ENERGY));
        }
        series[n_series++] = report_column_series(&c, n, load_title(r->a, s->loads[l]));
    }
    const struct plot_bars p = {
        .title = "What each lever brings",
        .description = arena_printf(r->a,
                                    "Percent more energy per unit of work when a lever is taken "
                                    "away, by load; %s",
                                    report_whiskers(s)),
        .width = 556,
        .groups = titles,
        .n_groups = n,
        .value = { .label = "% more energy without it", .low = (double)NAN, .high = (double)NAN },
        .n_series = n_series,
        .series = series,
    };
    PUT(r->out, "<figure><figcaption>What each lever brings</figcaption>\n");
    plot_bars(r->out, &p);
    report_put_command(r, s, -1);
    PUT(r->out, "</figure>\n");
}

static void put_lever_row(struct report *r, const struct scenario_results *s, const char *lever)
{
    PUT(r->out, "<tr><th scope=\"row\">%s</th>", html(r, lever_title(lever)));
    for (int f = 0; f < 2; f++)
        for (int l = 0; l < s->n_loads; l++) {
            const struct run_group *less = without(s, s->loads[l], lever);
            const struct run_group *base = less != NULL ? lever_base(s, less) : NULL;

            if (base == NULL)
                PUT(r->out, "<td>–</td>");
            else if (f == 0)
                report_put_signed(r->out, group_change(r, less, base, REPORT_ENERGY), "&nbsp;%");
            else
                report_put_signed(r->out, group_difference(r, less, base, REPORT_ATTAINMENT), "");
        }
    PUT(r->out, "</tr>\n");
}

static void put_lever_table(struct report *r, const struct scenario_results *s)
{
    const char **levers;
    const int n = levers_of(r, s, &levers);

    PUT(r->out,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>Taken away from the full "
        "system</caption>\n"
        "<thead><tr><th scope=\"col\" rowspan=\"2\">lever</th>"
        "<th scope=\"colgroup\" colspan=\"%d\">energy per work</th>"
        "<th scope=\"colgroup\" colspan=\"%d\">promises kept, points</th></tr>\n<tr>",
        s->n_loads, s->n_loads);
    for (int f = 0; f < 2; f++)
        for (int l = 0; l < s->n_loads; l++)
            PUT(r->out, "<th scope=\"col\">%s</th>", load_title(r->a, s->loads[l]));
    PUT(r->out, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < n; i++)
        put_lever_row(r, s, levers[i]);
    PUT(r->out, "</tbody></table></div>\n");
}

void report_levers(struct report *r)
{
    PUT(r->out,
        "<p>Gogh with everything it may use, less one lever at a time: percent more energy "
        "per unit of work than with all of them, paired by seed. A negative number is a "
        "lever that costs more than it brings. %s</p>\n",
        report_seeds(r) == 1 ? "One seed: nothing here is sure." : "");
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario_results *s = &r->scenarios[i];

        if (!report_has_levers(r, s))
            continue;
        PUT(r->out, "<h3>%s</h3>\n<div class=\"charts\">\n", html(r, s->scenario->name));
        put_lever_bars(r, s);
        put_lever_table(r, s);
        PUT(r->out, "</div>\n");
    }
}

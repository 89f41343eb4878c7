/* What it is worth to know something when a run begins. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

static bool begins_with(const struct scenario_results *s, enum knowledge k)
{
    for (int i = 0; i < s->n_knows; i++)
        if (s->knows[i] == k)
            return true;
    return false;
}

/* What the others are held against. */
static enum knowledge base_of(const struct scenario_results *s)
{
    return begins_with(s, KNOWS_PRETRAINED) ? KNOWS_PRETRAINED : KNOWS_NOTHING;
}

static void put_knowledge_row(struct report *r, const struct scenario_results *s,
                              const struct run_group *c)
{
    const struct group_query w = { c->key.load, "gogh", c->key.has_limits, "", (int)base_of(s) };
    const struct run_group *base = scenario_group(s, w);
    static const enum report_figure figures[] = { REPORT_FIRST, REPORT_NEXT, REPORT_ERROR,
                                                  REPORT_COVERAGE };

    PUT(r->out, "<tr><th scope=\"row\">%s</th><td class=\"word\">%s</td><td class=\"word\">%s</td>",
        knowledge_title(c->key.knows), load_title(r->a, c->key.load),
        c->key.has_limits ? "yes" : "no");
    report_put_spread(r->out, group_spread(r, c, REPORT_ENERGY), -1);
    if (base != NULL && base != c)
        report_put_signed(r->out, group_change(r, c, base, REPORT_ENERGY), "&nbsp;%");
    else
        PUT(r->out, "<td>–</td>");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        report_put_spread(r->out, group_spread(r, c, figures[i]), 1);
    PUT(r->out, "</tr>\n");
}

/* gogh with all of its levers; of several prices, the one that stands for it. */
static bool is_plain_gogh(const struct scenario_results *s, const struct run_group *c)
{
    const struct group_query w = { c->key.load, "gogh", c->key.has_limits, "", (int)c->key.knows };

    return strcmp(c->key.policy, "gogh") == 0 && scenario_group(s, w) == c;
}

static void put_knowledge_table(struct report *r, const struct scenario_results *s)
{
    PUT(r->out,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption><b>%s</b>: gogh by what it knows "
        "when a run begins</caption>\n<thead><tr><th scope=\"col\">begins with</th><th "
        "scope=\"col\">load</th><th scope=\"col\">power limits</th><th scope=\"col\">energy per "
        "work, J</th><th scope=\"col\">against %s</th><th scope=\"col\">promises kept, "
        "jobs 1–100, %%</th><th scope=\"col\">later jobs, %%</th><th scope=\"col\">prediction "
        "error, %%</th><th scope=\"col\">in the 90&nbsp;%% interval, "
        "%%</th></tr></thead>\n<tbody>\n",
        html(r, s->scenario->name), knowledge_name(base_of(s)));
    for (int i = 0; i < s->n_groups; i++)
        if (is_plain_gogh(s, &s->groups[i]))
            put_knowledge_row(r, s, &s->groups[i]);
    PUT(r->out, "</tbody></table></div>\n");
}

/* What the beginnings are. */
static void put_beginnings(struct report *r, const struct scenario_results *s)
{
    PUT(r->out, "<p>");
    if (begins_with(s, KNOWS_NOTHING))
        PUT(r->out, "<b>An empty catalog</b>: descriptors of jobs and GPUs alone. ");
    if (begins_with(s, KNOWS_PRETRAINED))
        PUT(r->out,
            "<b>The pretrained model</b> ships with gogh and has seen Gavel's "
            "measurements, those of its simulation file%s. ",
            s->scenario->truth == TRUTH_GAVEL
                ? ": speeds alone there differ from those of the physical cluster, which are the "
                  "truth here, but the slowdowns of pairs are the same"
                : "");
    if (begins_with(s, KNOWS_OTHERS))
        PUT(r->out, "<b>A catalog without one family</b> (<code>others</code> in names of runs): "
                    "all that is true but what one family of workloads takes part in; seeds in a "
                    "row hold out one family after the other. ");
    if (begins_with(s, KNOWS_HISTORY))
        PUT(r->out,
            "<b>A history of other jobs</b>: each policy has lived through %s jobs of the same "
            "cluster and load, drawn with another seed, and kept what it measured. ",
            plot_fixed(s->scenario->history_jobs, 0).text);
    if (begins_with(s, KNOWS_MODEL))
        PUT(r->out, "<b>A model of the site</b>: what <code>gogh train</code> learned before. ");
    PUT(r->out, "</p>\n");
}

/* Does it help to have been trained on others' measurements? By load and limits. */
static void put_pretrained(struct report *r, const struct scenario_results *s,
                           const struct run_group *c)
{
    const struct group_query w = { c->key.load, "gogh", c->key.has_limits, "", KNOWS_NOTHING };
    const struct run_group *empty = scenario_group(s, w);
    struct spread energy, points;

    if (c->key.knows != KNOWS_PRETRAINED || empty == NULL)
        return;
    energy = group_change(r, c, empty, REPORT_ENERGY);
    points = group_difference(r, c, empty, REPORT_ATTAINMENT);
    if (!isfinite(energy.mean))
        return;
    PUT(r->out, "<li>%s, %s power limits: ", load_title(r->a, c->key.load),
        c->key.has_limits ? "with" : "without");
    if (energy.mean >= REPORT_LEVEL)
        PUT(r->out, "<b class=\"tag\">pretrained does worse than empty</b>, ");
    report_put_sign(r->out, energy.mean);
    PUT(r->out, "&nbsp;%% energy, ");
    report_put_sign(r->out, points.mean);
    PUT(r->out, " points of promises%s</li>\n",
        points.mean <= -REPORT_LEVEL ? ": it keeps fewer than from empty" : "");
}

void report_knowledge(struct report *r)
{
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario_results *s = &r->scenarios[i];

        if (s->n_knows < 2)
            continue;
        put_beginnings(r, s);
        if (begins_with(s, KNOWS_PRETRAINED) && begins_with(s, KNOWS_NOTHING)) {
            PUT(r->out, "<p>From the pretrained model, against from an empty catalog:</p>\n<ul>\n");
            for (int k = 0; k < s->n_groups; k++)
                if (is_plain_gogh(s, &s->groups[k]))
                    put_pretrained(r, s, &s->groups[k]);
            PUT(r->out, "</ul>\n");
        }
        put_knowledge_table(r, s);
    }
}

/* Gogh against everybody else: the losses first, then a table a scenario. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

/* Who may limit the power of GPUs. */
static const struct variant {
    const char *title;
    bool we_limit, they_limit;
} variants[] = {
    { "nobody limits power", false, false },
    { "only gogh limits power", true, false },
    { "everybody limits power", true, true },
};
#define N_VARIANTS ((int)(sizeof variants / sizeof variants[0]))

/* Do all have the same means? Else nothing is counted. */
static bool is_even(const struct variant *v)
{
    return v->we_limit == v->they_limit;
}

/* Points of promises that may be lost, and percent that jobs may take longer on average, without
 * being called a loss.
 */
#define POINTS_LOST 1.0
#define PERCENT_LATER 3.0

struct policy_comparison {
    const struct run_group *ours, *theirs;
    struct spread change;    // of J per unit of work, percent
    struct spread points;    // of promises kept
    struct spread later;     // of mean completion times, percent
};

enum outcome {
    SAVES,
    SAVES_PERHAPS,    // the interval has 0 in it, or there is none
    LEVEL,
    LOSES_PERHAPS,
    LOSES,
};

static enum outcome outcome_of(const struct policy_comparison *c)
{
    const double mean = c->change.mean;
    const bool is_sure = fabs(mean) > c->change.half;    // false where half is NaN

    if (fabs(mean) < REPORT_LEVEL)
        return LEVEL;
    if (mean < 0)
        return is_sure ? SAVES : SAVES_PERHAPS;
    return is_sure ? LOSES : LOSES_PERHAPS;
}

static bool breaks_promises(const struct policy_comparison *c)
{
    return c->points.mean < -POINTS_LOST;
}

/* Jobs that finish there are left undone here. */
static bool leaves_jobs(const struct policy_comparison *c)
{
    return group_unfinished(c->ours).n > 0 && group_unfinished(c->theirs).n == 0;
}

static bool is_late(const struct policy_comparison *c)
{
    return c->later.mean > PERCENT_LATER;
}

static bool is_loss(const struct policy_comparison *c)
{
    return outcome_of(c) >= LOSES_PERHAPS || breaks_promises(c) || leaves_jobs(c) || is_late(c);
}

/* False: there is nothing to compare. */
static bool compare(const struct report *r, const struct scenario_results *s, double load,
                    const char *policy, const struct variant *v, enum knowledge knows,
                    struct policy_comparison *out)
{
    const struct group_query ours = { load, "gogh", v->we_limit, "", (int)knows };
    const struct group_query theirs = { load, policy, v->they_limit, "", (int)knows };

    *out = (struct policy_comparison){ .ours = scenario_group(s, ours),
                                       .theirs = scenario_group(s, theirs) };
    if (out->ours == NULL || out->theirs == NULL)
        return false;
    out->change = group_change(r, out->ours, out->theirs, REPORT_ENERGY);
    out->points = group_difference(r, out->ours, out->theirs, REPORT_ATTAINMENT);
    out->later = group_change(r, out->ours, out->theirs, REPORT_JCT_H);
    return isfinite(out->change.mean);
}

/* ---- which policies, loads and variants there are ---- */

static bool has_variant(const struct report *r, const struct scenario_results *s,
                        const struct variant *v, const char *policy, enum knowledge knows)
{
    struct policy_comparison c;

    for (int i = 0; i < s->n_loads; i++)
        if (compare(r, s, s->loads[i], policy, v, knows, &c))
            return true;
    return false;
}

static bool is_against_anybody(const struct report *r, const struct scenario_results *s,
                               const char *policy, enum knowledge knows)
{
    for (int v = 0; v < N_VARIANTS; v++)
        if (has_variant(r, s, &variants[v], policy, knows))
            return true;
    return false;
}

/* Policies besides gogh in the order of the results; oracles or others. Returns how many. */
static int others_of(const struct report *r, const struct scenario_results *s, bool are_oracles,
                     enum knowledge knows, const char ***out)
{
    int n = 0;

    *out = ARENA_ARRAY(r->a, const char *, (size_t)s->n_groups);
    for (int i = 0; i < s->n_groups; i++) {
        const char *policy = s->groups[i].key.policy;
        bool is_new = strcmp(policy, "gogh") != 0 && scenario_is_oracle(policy) == are_oracles;

        for (int k = 0; k < n; k++)
            is_new = is_new && strcmp((*out)[k], policy) != 0;
        if (is_new && is_against_anybody(r, s, policy, knows))
            (*out)[n++] = policy;
    }
    return n;
}

static bool has_rivals(const struct report *r, const struct scenario_results *s,
                       enum knowledge knows)
{
    for (int i = 0; i < s->n_groups; i++)
        if (strcmp(s->groups[i].key.policy, "gogh") != 0 &&
            is_against_anybody(r, s, s->groups[i].key.policy, knows))
            return true;
    return false;
}

/* Jobs that did not finish, of all runs. */
static struct unfinished all_unfinished(const struct report *r)
{
    struct unfinished all = { 0 };

    for (int i = 0; i < r->n_scenarios; i++)
        for (int k = 0; k < r->scenarios[i].n_groups; k++) {
            const struct unfinished u = group_unfinished(&r->scenarios[i].groups[k]);

            all.n += u.n;
            all.jobs += u.jobs;
            all.failed += u.failed;
        }
    return all;
}

bool report_has_summary(const struct report *r, const struct scenario_results *s)
{
    for (int i = 0; i < s->n_groups; i++)
        if (group_unfinished(&s->groups[i]).n > 0)
            return true;
    for (int k = 0; k < s->n_knows; k++)
        if (has_rivals(r, s, s->knows[k]))
            return true;
    return false;
}

/* ---- the head: how often, and where not ---- */

struct outcome_counts {
    int n, by_outcome[LOSES + 1], broken, left, lost;
    int n_later, n_timed;    // who finish jobs later, of those whose times are known
    double least, most;      // change of mean completion times, percent
    bool is_listing;         // on the second pass losses are written, on the first counted
};

static void put_loss(struct report *r, const struct scenario_results *s, const struct variant *v,
                     const struct policy_comparison *c)
{
    const struct study_run *k = &c->theirs->key;
    const enum outcome o = outcome_of(c);
    const char *between = "";

    PUT(r->out, "<li>%s, %s, %s%s%s, against %s: ", html(r, s->scenario->name),
        load_title(r->a, k->load), v->title, s->n_knows > 1 ? ", from " : "",
        s->n_knows > 1 ? knowledge_title(c->ours->key.knows) : "", html(r, k->policy));
    if (o >= LOSES_PERHAPS) {
        PUT(r->out, "+%s&nbsp;%% energy%s", plot_fixed(c->change.mean, 1).text,
            o == LOSES ? "" : " (not surely)");
        between = ", ";
    }
    if (breaks_promises(c)) {
        PUT(r->out, "%s%s points of promises", between, plot_fixed(c->points.mean, 1).text);
        between = ", ";
    }
    if (is_late(c)) {
        PUT(r->out, "%smean completion time +%s&nbsp;%%", between,
            plot_fixed(c->later.mean, 1).text);
        between = ", ";
    }
    if (leaves_jobs(c))
        PUT(r->out, "%s%d job%s did not finish, there all did", between,
            group_unfinished(c->ours).n, group_unfinished(c->ours).n == 1 ? "" : "s");
    PUT(r->out, "</li>\n");
}

static void count_comparison(struct report *r, const struct scenario_results *s,
                             const struct variant *v, const struct policy_comparison *c,
                             struct outcome_counts *t)
{
    const enum outcome o = outcome_of(c);

    if (t->is_listing && is_loss(c))
        put_loss(r, s, v, c);
    t->n++;
    t->by_outcome[o]++;
    t->broken += breaks_promises(c);
    t->left += leaves_jobs(c);
    t->lost += is_loss(c);
    if (!isfinite(c->later.mean))
        return;
    t->least = t->n_timed == 0 ? c->later.mean : fmin(t->least, c->later.mean);
    t->most = t->n_timed == 0 ? c->later.mean : fmax(t->most, c->later.mean);
    t->n_timed++;
    t->n_later += c->later.mean >= REPORT_LEVEL;
}

static void count_scenario(struct report *r, const struct scenario_results *s, enum knowledge knows,
                           struct outcome_counts *t)
{
    const char **names;
    const int n = others_of(r, s, false, knows, &names);
    struct policy_comparison c;

    for (int v = 0; v < N_VARIANTS; v++)
        for (int p = 0; p < n; p++)
            for (int l = 0; l < s->n_loads; l++)
                if (is_even(&variants[v]) &&
                    compare(r, s, s->loads[l], names[p], &variants[v], knows, &c))
                    count_comparison(r, s, &variants[v], &c, t);
}

static void count_all(struct report *r, struct outcome_counts *t)
{
    for (int i = 0; i < r->n_scenarios; i++)
        for (int k = 0; k < r->scenarios[i].n_knows; k++)
            count_scenario(r, &r->scenarios[i], r->scenarios[i].knows[k], t);
}

/* "(surely in 3)", where there is more than one seed. */
static void put_sure(struct report *r, int n)
{
    if (report_seeds(r) > 1)
        PUT(r->out, " (surely in %d)", n);
}

static void put_counts(struct report *r, const struct outcome_counts *t)
{
    const int *n = t->by_outcome;

    if (report_seeds(r) == 1)
        PUT(r->out, "<p><b>One seed: nothing here is sure.</b></p>\n");
    PUT(r->out,
        "<p>In %d comparisons of <b>gogh</b> with a baseline (a scenario, a load; nobody limits "
        "power, or everybody may), gogh uses <b>less energy per unit of work in %d</b>",
        t->n, n[SAVES] + n[SAVES_PERHAPS]);
    put_sure(r, n[SAVES]);
    PUT(r->out, ", about the same (less than %g&nbsp;%% apart) in %d, and <b>more in %d</b>",
        REPORT_LEVEL, n[LEVEL], n[LOSES] + n[LOSES_PERHAPS]);
    put_sure(r, n[LOSES]);
    PUT(r->out, ". It keeps more than one point fewer promises in %d", t->broken);
    if (t->left > 0)
        PUT(r->out, ", and leaves jobs undone that the other finishes in %d", t->left);
    PUT(r->out, ".%s</p>\n",
        report_seeds(r) > 1 ? " Surely: the 95&nbsp;% confidence interval over seeds does not "
                              "reach 0."
                            : "");
    if (t->n_timed == 0)
        return;
    PUT(r->out,
        "<p><b>Jobs finish later under gogh in %d of %d</b>: mean completion times change "
        "by ",
        t->n_later, t->n_timed);
    report_put_sign(r->out, t->least);
    PUT(r->out, "&nbsp;%% to ");
    report_put_sign(r->out, t->most);
    PUT(r->out, "&nbsp;%%. A promise is a least speed, not an early end.</p>\n");
}

/* The losses first, then how often what came out. */
static void put_losses(struct report *r)
{
    struct outcome_counts t = { 0 }, listed = { .is_listing = true };
    const int n_seeds = report_seeds(r);

    count_all(r, &t);
    if (t.n == 0)
        return;
    if (t.lost > 0) {
        PUT(r->out, "<h3>Where gogh loses</h3>\n<ul class=\"losses\">\n");
        count_all(r, &listed);
        PUT(r->out, "</ul>\n");
    } else if (n_seeds < SPREAD_INTERVAL) {
        PUT(r->out, "<p>With %s gogh lost none of these comparisons.</p>\n",
            n_seeds == 1 ? "this one seed" : "so few seeds");
    } else {
        PUT(r->out, "<p>There is no comparison that gogh loses in energy, promises or time.</p>\n");
    }
    put_counts(r, &t);
}

static void put_unfinished(struct report *r)
{
    const struct unfinished all = all_unfinished(r);

    if (all.n == 0)
        return;
    PUT(r->out,
        "<h3>Jobs that did not finish</h3>\n<p>%s of the %s jobs of all runs (%d failed):</p>\n"
        "<ul class=\"undone\">\n",
        plot_fixed(all.n, 0).text, plot_fixed(all.jobs, 0).text, all.failed);
    for (int i = 0; i < r->n_scenarios; i++)
        for (int k = 0; k < r->scenarios[i].n_groups; k++) {
            if (group_unfinished(&r->scenarios[i].groups[k]).n == 0)
                continue;
            PUT(r->out, "<li>%s: ", html(r, r->scenarios[i].scenario->name));
            report_put_unfinished(r, &r->scenarios[i], &r->scenarios[i].groups[k]);
            PUT(r->out, "</li>\n");
        }
    PUT(r->out, "</ul>\n");
}

/* ---- the tables ---- */

static void put_change(struct report *r, const struct policy_comparison *c)
{
    report_put_sign(r->out, c->change.mean);
    PUT(r->out, "&nbsp;%%");
    report_put_around(r->out, c->change, 1);
    if (isfinite(c->points.mean)) {
        PUT(r->out, "<br><small>");
        report_put_sign(r->out, c->points.mean);
        PUT(r->out, " pt</small>");
    }
    if (isfinite(c->later.mean)) {
        PUT(r->out, "<br><small>JCT ");
        report_put_sign(r->out, c->later.mean);
        PUT(r->out, "&nbsp;%%</small>");
    }
}

static void put_comparison(struct report *r, const struct policy_comparison *c, bool is_rival)
{
    const enum outcome o = outcome_of(c);

    PUT(r->out, is_rival && is_loss(c) ? "<td class=\"lost\">" : "<td>");
    put_change(r, c);
    if (is_rival && o >= LOSES_PERHAPS)
        PUT(r->out, "<br><b class=\"tag\">%s</b>", o == LOSES ? "loses" : "loses?");
    if (is_rival && breaks_promises(c))
        PUT(r->out, "<br><b class=\"tag\">promises</b>");
    if (is_rival && is_late(c))
        PUT(r->out, "<br><b class=\"tag\">later</b>");
    if (is_rival && leaves_jobs(c))
        PUT(r->out, "<br><b class=\"tag\">jobs</b>");
    PUT(r->out, "</td>");
}

/* Variants of a table, as bits. */
static unsigned variants_of(const struct report *r, const struct scenario_results *s,
                            enum knowledge knows)
{
    unsigned bits = 0;

    for (int v = 0; v < N_VARIANTS; v++)
        for (int i = 0; i < s->n_groups; i++)
            if (strcmp(s->groups[i].key.policy, "gogh") != 0 &&
                has_variant(r, s, &variants[v], s->groups[i].key.policy, knows))
                bits |= 1u << v;
    return bits;
}

static void put_rows(struct report *r, const struct scenario_results *s, enum knowledge knows,
                     bool are_oracles)
{
    const unsigned bits = variants_of(r, s, knows);
    const char **names;
    const int n = others_of(r, s, are_oracles, knows, &names);
    struct policy_comparison c;

    for (int p = 0; p < n; p++) {
        PUT(r->out, "<tr><th scope=\"row\">%s</th>", html(r, names[p]));
        for (int v = 0; v < N_VARIANTS; v++) {
            /* Oracles under other rules than ours tell nothing. */
            const bool is_fair = !are_oracles || is_even(&variants[v]);

            for (int l = 0; (bits >> v & 1) != 0 && l < s->n_loads; l++) {
                if (is_fair && compare(r, s, s->loads[l], names[p], &variants[v], knows, &c))
                    put_comparison(r, &c, !are_oracles);
                else
                    PUT(r->out, "<td>–</td>");
            }
        }
        PUT(r->out, "</tr>\n");
    }
}

static void put_head(struct report *r, const struct scenario_results *s, unsigned bits)
{
    PUT(r->out, "<thead><tr><th rowspan=\"2\" scope=\"col\">against</th>");
    for (int v = 0; v < N_VARIANTS; v++)
        if ((bits >> v & 1) != 0)
            PUT(r->out, "<th colspan=\"%d\" scope=\"colgroup\">%s%s</th>", s->n_loads,
                variants[v].title,
                is_even(&variants[v]) ? "" : "<br><small>unlike footing, not counted</small>");
    PUT(r->out, "</tr>\n<tr>");
    for (int v = 0; v < N_VARIANTS; v++)
        for (int l = 0; (bits >> v & 1) != 0 && l < s->n_loads; l++)
            PUT(r->out, "<th scope=\"col\">%s</th>", load_title(r->a, s->loads[l]));
    PUT(r->out, "</tr></thead>\n");
}

static void put_table(struct report *r, const struct scenario_results *s, enum knowledge knows)
{
    const unsigned bits = variants_of(r, s, knows);
    const char **names;

    PUT(r->out, "<div class=\"scroll\" tabindex=\"0\"><table><caption><b>%s</b>: %s",
        html(r, s->scenario->name), html(r, s->scenario->title));
    if (s->n_knows > 1)
        PUT(r->out, "; from %s", knowledge_title(knows));
    report_put_prices(r, s);
    PUT(r->out, "</caption>\n");
    put_head(r, s, bits);
    PUT(r->out, "<tbody>\n");
    put_rows(r, s, knows, false);
    PUT(r->out, "</tbody>\n");
    if (others_of(r, s, true, knows, &names) > 0) {
        PUT(r->out, "<tbody class=\"oracles\">\n");
        put_rows(r, s, knows, true);
        PUT(r->out, "</tbody>\n");
    }
    PUT(r->out, "</table></div>\n");
}

/* What an entry of the tables is. */
static void put_legend(struct report *r)
{
    const int n_seeds = report_seeds(r);

    PUT(r->out,
        "<h3>Gogh against each policy</h3>\n"
        "<p>Each entry: change in energy per unit of work, gogh against the row's policy%s; below "
        "it the difference in promises kept, in points, and the change in mean job completion "
        "time (JCT). Negative energy is a saving, a positive JCT means that jobs finish later. "
        "<b class=\"tag\">loses</b>: gogh uses more; <b class=\"tag\">loses?</b>: more, but %s; "
        "<b class=\"tag\">promises</b>: gogh keeps more than one point fewer; "
        "<b class=\"tag\">later</b>: jobs take more than 3&nbsp;%% longer on average; "
        "<b class=\"tag\">jobs</b>: gogh left jobs undone where the other finished all. The last "
        "rows, <i>gogh-oracle</i> and <i>bound</i>, know the truth: nobody is expected to reach "
        "them, and the entry is the distance to them.</p>\n",
        n_seeds == 1 ? ""
        : n_seeds < SPREAD_INTERVAL
            ? ", paired by seed, and that of the smallest and largest seed"
            : ", paired by seed, with its 95&nbsp;% confidence interval (of two or three seeds: "
              "smallest..largest)",
        n_seeds == 1 ? "one seed cannot be sure" : "not surely");
}

void report_summary(struct report *r)
{
    bool has_any = false;

    put_losses(r);
    put_unfinished(r);
    for (int i = 0; i < r->n_scenarios; i++)
        for (int k = 0; k < r->scenarios[i].n_knows; k++) {
            if (!has_rivals(r, &r->scenarios[i], r->scenarios[i].knows[k]))
                continue;
            if (!has_any)
                put_legend(r);
            has_any = true;
            put_table(r, &r->scenarios[i], r->scenarios[i].knows[k]);
        }
}

/* The finding: gogh against the strongest rival, in a sentence. */
#include "study/report/inner.h"

#include <math.h>
#include <string.h>

/* A rival that keeps fewer promises than gogh by more than so many points is not a strong one. */
#define POINTS_BEHIND 1.0

/* A scenario as the sentence has it: one footing, one beginning. */
struct rivalry {
    const struct scenario_results *s;
    const char *rival;
    bool is_weak;    // it keeps fewer promises than gogh, as everybody does
    enum knowledge knows;
};

static const struct run_group *group_at(const struct rivalry *f, double load, const char *policy)
{
    const struct group_query w = { load, policy, scenario_footing(f->s, load), "", (int)f->knows };

    return scenario_group(f->s, w);
}

/* Over all loads: percent that gogh is above the rival in energy, and points in promises; NaN where
 * there is nothing to compare.
 */
static double mean_over_loads(const struct report *r, const struct rivalry *f,
                              enum report_figure figure)
{
    double sum = 0;
    int n = 0;

    for (int l = 0; l < f->s->n_loads; l++) {
        const struct run_group *ours = group_at(f, f->s->loads[l], "gogh");
        const struct run_group *theirs = group_at(f, f->s->loads[l], f->rival);
        double v = (double)NAN;

        if (ours != NULL && theirs != NULL)
            v = figure == REPORT_ATTAINMENT ? group_difference(r, ours, theirs, figure).mean
                                            : group_change(r, ours, theirs, figure).mean;
        if (!isfinite(v))
            continue;
        sum += v;
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* The one that uses the least energy of those that keep as many promises as gogh, but for a point;
 * where nobody does, of all. False: gogh has no rival here.
 */
static bool find_rival(const struct report *r, struct rivalry *f)
{
    const char *best[2] = { NULL, NULL };
    double least[2] = { -INFINITY, -INFINITY };

    for (int i = 0; i < f->s->n_groups; i++) {
        const struct study_run *k = &f->s->groups[i].key;

        if (strcmp(k->policy, "gogh") == 0 || scenario_is_oracle(k->policy))
            continue;
        f->rival = k->policy;
        const double energy = mean_over_loads(r, f, REPORT_ENERGY);
        const double points = mean_over_loads(r, f, REPORT_ATTAINMENT);
        const int is_weak = points > POINTS_BEHIND;

        if (isfinite(energy) && energy > least[is_weak]) {
            least[is_weak] = energy;
            best[is_weak] = k->policy;
        }
    }
    f->rival = best[0] != NULL ? best[0] : best[1];
    f->is_weak = best[0] == NULL;
    return f->rival != NULL;
}

/* "−4.5 % (−6.1..−2.9)". */
static void put_percent(struct report *r, struct spread s)
{
    report_put_sign(r->out, s.mean);
    PUT(r->out, "&nbsp;%%");
    if (s.n > 1) {
        PUT(r->out, " (");
        report_put_sign(r->out, s.from);
        PUT(r->out, "..");
        report_put_sign(r->out, s.to);
        PUT(r->out, ")");
    }
}

static void put_changes(struct report *r, const struct rivalry *f, enum report_figure figure)
{
    const char *between = "";

    for (int l = 0; l < f->s->n_loads; l++) {
        const struct run_group *ours = group_at(f, f->s->loads[l], "gogh");
        const struct run_group *theirs = group_at(f, f->s->loads[l], f->rival);

        if (ours == NULL || theirs == NULL)
            continue;
        PUT(r->out, "%s", between);
        put_percent(r, group_change(r, ours, theirs, figure));
        between = " / ";
    }
}

static void put_promises(struct report *r, const struct rivalry *f, const char *policy)
{
    const char *between = "";

    for (int l = 0; l < f->s->n_loads; l++) {
        const struct run_group *c = group_at(f, f->s->loads[l], policy);

        if (c == NULL)
            continue;
        PUT(r->out, "%s%s", between,
            plot_fixed(group_spread(r, c, REPORT_ATTAINMENT).mean, 1).text);
        between = " / ";
    }
}

static void put_where(struct report *r, const struct rivalry *f)
{
    const struct scenario_results *s = f->s;

    PUT(r->out, "<b>%s</b>", html(r, s->scenario->name));
    for (int l = 0; l < s->n_loads && s->loads[0] > 0; l++)
        PUT(r->out, "%s%g",
            l > 0            ? " / "
            : s->n_loads > 1 ? " at loads "
                             : " at load ",
            s->loads[l]);
    if (s->n_knows > 1)
        PUT(r->out, ", from %s", knowledge_title(f->knows));
    if (scenario_footing(s, s->loads[0]))
        PUT(r->out, ", everybody with power limits");
    report_put_prices(r, s);
}

static bool is_named_before(const struct scenario_results *s, int group)
{
    for (int i = 0; i < group; i++)
        if (strcmp(s->groups[i].key.policy, s->groups[group].key.policy) == 0)
            return true;
    return false;
}

/* Whoever else uses less energy, over all loads. */
static void put_losses(struct report *r, const struct rivalry *f)
{
    struct rivalry other = *f;
    const char *between = " <b>It uses more energy than</b> ";

    for (int i = 0; i < f->s->n_groups; i++) {
        other.rival = f->s->groups[i].key.policy;
        if (strcmp(other.rival, "gogh") == 0 || scenario_is_oracle(other.rival) ||
            strcmp(other.rival, f->rival) == 0 || is_named_before(f->s, i))
            continue;
        const double energy = mean_over_loads(r, &other, REPORT_ENERGY);
        if (!(energy > 0))
            continue;
        PUT(r->out, "%s%s (+%s&nbsp;%% energy, ", between, html(r, other.rival),
            plot_fixed(energy, 1).text);
        report_put_sign(r->out, mean_over_loads(r, &other, REPORT_JCT_H));
        PUT(r->out, "&nbsp;%% time, ");
        report_put_sign(r->out, mean_over_loads(r, &other, REPORT_ATTAINMENT));
        PUT(r->out, " points of promises)");
        between = ", ";
    }
    PUT(r->out, between[0] == ',' ? "." : "");
}

/* Figures of a policy under which jobs never finish are of the others. */
static void put_unfinished(struct report *r, const struct rivalry *f)
{
    for (int l = 0; l < f->s->n_loads; l++) {
        const struct run_group *both[] = { group_at(f, f->s->loads[l], "gogh"),
                                           group_at(f, f->s->loads[l], f->rival) };
        for (int i = 0; i < 2; i++) {
            const struct unfinished u =
                both[i] != NULL ? group_unfinished(both[i]) : (struct unfinished){ 0 };
            if (u.n > 0)
                PUT(r->out, " <b>Of %d jobs under %s %d did not finish</b>: they are missing here.",
                    u.jobs, html(r, both[i]->key.policy), u.n);
        }
    }
}

/* One sentence, with intervals over seeds where there are several. */
static void put_sentence(struct report *r, const struct rivalry *f)
{
    const int n_seeds = scenario_seeds(f->s);

    put_where(r, f);
    PUT(r->out, ": against %s, the strongest rival (%s), gogh changes energy per unit of work by ",
        html(r, f->rival),
        f->is_weak ? "the least energy; nobody keeps as many promises as gogh"
                   : "the least energy of those that keep as many promises, but for a point");
    put_changes(r, f, REPORT_ENERGY);
    PUT(r->out, " and mean completion time by ");
    put_changes(r, f, REPORT_JCT_H);
    PUT(r->out, ", and keeps ");
    put_promises(r, f, "gogh");
    PUT(r->out, "&nbsp;%% of promises (%s: ", html(r, f->rival));
    put_promises(r, f, f->rival);
    PUT(r->out, "); %s",
        n_seeds == 1                ? "one seed: nothing here is sure."
        : n_seeds < SPREAD_INTERVAL ? "in brackets the smallest and largest seed."
                                    : "in brackets 95&nbsp;% intervals over seeds.");
    put_losses(r, f);
    put_unfinished(r, f);
}

void report_finding(struct report *r)
{
    int n = 0;

    for (int i = 0; i < r->n_scenarios; i++)
        for (int k = 0; k < r->scenarios[i].n_knows; k++) {
            struct rivalry f = { .s = &r->scenarios[i], .knows = r->scenarios[i].knows[k] };

            if (!find_rival(r, &f))
                continue;
            if (n == 1)
                PUT(r->out, "<ul class=\"findings\">\n");
            PUT(r->out, n == 0 ? "<p class=\"finding\">" : "<li>");
            put_sentence(r, &f);
            PUT(r->out, n == 0 ? "</p>\n" : "</li>\n");
            n++;
        }
    PUT(r->out, n > 1 ? "</ul>\n" : "");
}

/* whatif_page.c - what `gogh whatif` says: JSON, or a page. */
#include "cli/study/whatif.h"

#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/text/json.h"
#include "cli/table.h"
#include "cli/when.h"
#include "study/whatif/change.h"

/* The lines of the page and the keys: a figure, times what. */
enum row_by { BY_NOTHING, BY_PRICE, BY_CO2 };

static const struct row {
    const char *key, *label;
    enum whatif_figure figure;
    enum row_by by;
    enum { SHOWN_NUMBER, SHOWN_SHARE, SHOWN_HOURS } way;
} rows[] = {
    { "kwh_year", "energy, kWh a year", WHATIF_KWH, BY_NOTHING, SHOWN_NUMBER },
    { "money_year", "money a year", WHATIF_KWH, BY_PRICE, SHOWN_NUMBER },
    { "co2_kg_year", "CO2, kg a year", WHATIF_KWH, BY_CO2, SHOWN_NUMBER },
    { "promises", "promises kept, %", WHATIF_PROMISES, BY_NOTHING, SHOWN_SHARE },
    { "mean_jct_s", "completion, mean, h", WHATIF_MEAN_JCT, BY_NOTHING, SHOWN_HOURS },
    { "p95_jct_s", "completion, 95 %, h", WHATIF_P95_JCT, BY_NOTHING, SHOWN_HOURS },
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static double factor(const struct whatif_options *o, const struct row *r)
{
    return r->by == BY_PRICE ? o->price : r->by == BY_CO2 ? o->co2_kg : 1;
}

static struct spread scaled(struct spread s, double by)
{
    s.mean *= by;
    s.from *= by;
    s.to *= by;
    return s;
}

static struct spread figure(const struct whatif_past *s, const struct whatif *w,
                            const struct whatif_variant *v, const struct row *r, bool is_difference)
{
    struct spread of =
        is_difference ? whatif_difference(w, v, r->figure) : whatif_spread(w, v, r->figure);

    return scaled(of, factor(s->options, r));
}

/* What would change, as it was asked for. */
static const char *listed(struct arena *a, const char *text, const char *option,
                          const struct cmd_list *l)
{
    for (int i = 0; i < l->n; i++)
        text = arena_printf(a, "%s%s%.*s", text, i == 0 ? option : ",", (int)l->words[i].len,
                            l->words[i].at);
    return text;
}

static const char *change_text(struct arena *a, const struct whatif_options *o)
{
    const char *text = listed(a, "", " --remove ", &o->removed);

    text = listed(a, text, " --add ", &o->added);
    if (o->power_cap != NULL)
        text = arena_printf(a, "%s --power-cap %s", text, o->power_cap);
    if (o->delay != NULL)
        text = arena_printf(a, "%s --delay-w %s", text, o->delay);
    if (isfinite(o->promise_w))
        text = arena_printf(a, "%s --promise-w %g", text, o->promise_w);
    text = listed(a, text, " --policy ", &o->policies);
    return text + (text[0] == ' ');
}

/* ---- JSON ---- */

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *figures_json(const struct whatif_past *s, const struct whatif *w,
                            const struct whatif_variant *v, bool is_difference)
{
    json_t *all = json_object();

    for (int i = 0; i < N_ROWS; i++) {
        struct spread of = figure(s, w, v, &rows[i], is_difference);

        json_object_set_new(all, rows[i].key,
                            json_pack("{s:o, s:o, s:o}", "mean", number(of.mean), "low",
                                      number(of.from), "high", number(of.to)));
    }
    return all;
}

static json_t *left_out_json(const struct whatif *w, const struct whatif_variant *v)
{
    return json_pack("{s:i, s:i, s:s?, s:o}", "jobs", v->n_cannot, "of", w->n_jobs, "first",
                     v->cannot, "unfinished", number(v->n_unfinished));
}

static json_t *retired_json(const struct whatif_past *s, const struct whatif *w,
                            const struct whatif_variant *v)
{
    json_t *row = figures_json(s, w, v, true);

    json_object_set_new(row, "type", json_string(v->type));
    json_object_set_new(row, "count", json_integer(v->count));
    json_object_set_new(row, "cost_kwh_year", number(whatif_cost_kwh(w, v)));
    json_object_set_new(row, "cannot_run", left_out_json(w, v));
    return row;
}

static json_t *site_json(const struct whatif_past *s, const struct whatif *w)
{
    return json_pack("{s:s, s:i, s:f, s:i, s:i, s:I, s:s, s:f}", "source", s->source, "jobs",
                     w->n_jobs, "period_s", w->period_s, "gpus", s->cluster.n_gpus, "seeds",
                     w->n_seeds, "first_seed", (json_int_t)w->first_seed, "policy",
                     w->variants[0].policy, "delay_w", w->delay_w);
}

void whatif_print_json(const struct whatif_past *s, const struct whatif *w)
{
    json_t *all = json_object();

    json_object_set_new(all, "site", site_json(s, w));
    json_object_set_new(all, "change", json_string(change_text(s->arena, s->options)));
    json_object_set_new(all, "before", figures_json(s, w, &w->variants[0], false));
    if (s->options->is_retire) {
        json_t *list = json_array();

        for (int v = 1; v < w->n_variants; v++)
            json_array_append_new(list, retired_json(s, w, &w->variants[v]));
        json_object_set_new(all, "retire", list);
    } else {
        json_object_set_new(all, "after", figures_json(s, w, &w->variants[1], false));
        json_object_set_new(all, "difference", figures_json(s, w, &w->variants[1], true));
        json_object_set_new(all, "cannot_run", left_out_json(w, &w->variants[1]));
    }
    json_print(all, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
}

/* ---- the page ---- */

static const char *value(struct arena *a, const struct row *r, double v, bool has_sign)
{
    const char *sign = v < 0 ? "-" : has_sign ? "+" : "";

    if (!isfinite(v))
        return "-";
    if (r->way == SHOWN_SHARE)
        return arena_printf(a, "%s%.2f", sign, fabs(100 * v));
    if (r->way == SHOWN_HOURS)
        v /= 3600;
    return arena_printf(a, "%s%s", sign, cell_value(a, fabs(v)));
}

/* "1234 (1200 to 1270)" */
static const char *interval(struct arena *a, const struct row *r, struct spread of, bool has_sign)
{
    const char *mean = value(a, r, of.mean, has_sign);

    return isfinite(of.from)
               ? arena_printf(a, "%s (%s to %s)", mean, value(a, r, of.from, has_sign),
                              value(a, r, of.to, has_sign))
               : mean;
}

static void print_site(const struct whatif_past *s, const struct whatif *w)
{
    printf("%d jobs of %s on %d GPUs; %d worlds, from seed %llu on; %s plans%s%s\n\n", w->n_jobs,
           when_text(s->arena, w->period_s), s->cluster.n_gpus, w->n_seeds,
           (unsigned long long)w->first_seed, w->variants[0].policy,
           s->options->policies.n == 2 ? ", and then " : "",
           s->options->policies.n == 2 ? w->variants[1].policy : "");
}

static void print_notes(const struct whatif_past *s, const struct whatif *w)
{
    const struct whatif_variant *v = &w->variants[0];

    if (v->n_cannot > 0)
        printf("\n%d of %d jobs fit no GPU of the site and are left out, %s first.\n", v->n_cannot,
               w->n_jobs, cell_clean(s->arena, v->cannot));
    if (v->n_unfinished > 0)
        printf("\nAs it is, %.1f jobs a world never finish.\n", v->n_unfinished);
    if (isnan(s->options->price) || isnan(s->options->co2_kg))
        printf("\nNot told: --price and --co2 of a kWh.\n");
    printf(
        "\nOf GPUs only: no hosts, no cooling, nothing for buying. In brackets: the 95 %% interval "
        "of the\nmean over worlds (below %d of them the least and the most).\n",
        SPREAD_INTERVAL);
}

static void print_after(const struct whatif_past *s, const struct whatif *w)
{
    const struct whatif_variant *now = &w->variants[0], *then = &w->variants[1];
    struct arena *a = s->arena;
    struct table t;

    printf("As it would be:\n  %s\n\n", cell_clean(a, change_text(a, s->options)));
    table_init(&t, a, "|>as it is|>as it would be|>difference");
    table_put(&t, "GPUs");
    table_put(&t, arena_printf(a, "%d", now->cluster->n_gpus));
    table_put(&t, arena_printf(a, "%d", then->cluster->n_gpus));
    table_put(&t, arena_printf(a, "%+d", then->cluster->n_gpus - now->cluster->n_gpus));
    for (int i = 0; i < N_ROWS; i++) {
        table_put(&t, rows[i].label);
        table_put(&t, interval(a, &rows[i], figure(s, w, now, &rows[i], false), false));
        table_put(&t, interval(a, &rows[i], figure(s, w, then, &rows[i], false), false));
        table_put(&t, interval(a, &rows[i], figure(s, w, then, &rows[i], true), true));
    }
    table_print(&t, stdout);
    if (then->n_cannot > now->n_cannot)
        printf("\n%d of %d jobs could not run any more: they fit no GPU that would be left (%s "
               "first).\nThe energy that they take is missing on the right, and is no saving.\n",
               then->n_cannot, w->n_jobs, cell_clean(a, then->cannot));
    if (then->n_unfinished > 0)
        printf(
            "\nAs it would be, %.1f jobs a world never finish: their promises are broken, and they "
            "have\nno completion time; the energy that they would take is missing on the right, "
            "and is no saving.\n",
            then->n_unfinished);
}

static void print_retired(const struct whatif_past *s, const struct whatif *w)
{
    struct arena *a = s->arena;
    struct table t;

    table_init(&t, a,
               arena_printf(a,
                            "without|>GPUs|>kWh a year%s%s|>promises|>mean, h|>95 %%, h|>cannot run"
                            "|>unfinished",
                            isnan(s->options->price) ? "" : "|>money",
                            isnan(s->options->co2_kg) ? "" : "|>CO2, kg"));
    for (int v = 1; v < w->n_variants; v++) {
        const struct whatif_variant *is = &w->variants[v];

        table_put(&t, cell_clean(a, is->type));
        table_put(&t, arena_printf(a, "%d", is->count));
        for (int i = 0; i < N_ROWS; i++) {
            struct spread of = figure(s, w, is, &rows[i], true);

            if (isnan(factor(s->options, &rows[i])))
                continue;    // nobody told the price
            table_put(&t,
                      i == 0 ? interval(a, &rows[i], of, true) : value(a, &rows[i], of.mean, true));
        }
        table_put(&t, arena_printf(a, "%d", is->n_cannot));
        table_put(&t, arena_printf(a, "%.3g", is->n_unfinished));
    }
    table_print(&t, stdout);
    printf(
        "\nMore (+) or less (-) than the site as it is: %s kWh a year, %s %% of promises kept, jobs\n"
        "completed in %s h. The best to retire first, by energy and by jobs' time at %s W; then\n"
        "those without which a point of promises or more is lost, and those without which jobs\n"
        "cannot run, or more of them a world never finish.\n",
        value(a, &rows[0], whatif_spread(w, &w->variants[0], WHATIF_KWH).mean, false),
        value(a, &rows[3], whatif_spread(w, &w->variants[0], WHATIF_PROMISES).mean, false),
        value(a, &rows[4], whatif_spread(w, &w->variants[0], WHATIF_MEAN_JCT).mean, false),
        cell_value(a, w->delay_w));
}

void whatif_print_page(const struct whatif_past *s, const struct whatif *w)
{
    print_site(s, w);
    if (s->options->is_retire)
        print_retired(s, w);
    else
        print_after(s, w);
    print_notes(s, w);
}

#include "cli/offline/eval_serving.h"

#include <stdio.h>

#include "base/text/json.h"
#include "catalog/catalog.h"
#include "sim/eval/serving.h"

static const char *held_name(const struct serving_row *r)
{
    return r->is_family_held ? "family" : "model";
}

static const char *known_name(const struct serving_row *r)
{
    return r->is_alone_known ? "alone" : "nothing";
}

static json_t *row_json(const struct catalog *c, const struct serving_row *r)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "campaign",
                          c->campaigns[r->campaign], "held", held_name(r), "known", known_name(r),
                          "alone", r->n_alone, "beside", r->n_beside, "asked", r->n_asked,
                          "admitted", r->n_admitted, "broken", r->n_broken);

    for (int f = 0; f < SERVING_FIGURES; f++)
        json_object_set_new(j, serving_figure_names[f], json_number_or_null(r->figure[f]));
    return j;
}

static void print_json(const struct catalog *c, const struct serving_eval_options *o,
                       const char *model, const struct serving_result *r)
{
    json_t *rows = json_array();

    for (int i = 0; i < r->n_rows; i++)
        json_array_append_new(rows, row_json(c, &r->rows[i]));
    json_t *all = json_pack("{s:s, s:s, s:I, s:f, s:o}", "split", "serving", "model", model, "seed",
                            (json_int_t)o->seed, "z", o->z, "rows", rows);
    json_print(all, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
}

static void print_table(const struct catalog *c, const struct serving_result *r)
{
    printf("%-22s %-7s %-8s", "campaign", "held", "known");
    for (int f = 0; f < SERVING_FIGURES; f++)
        printf(" %17s", serving_figure_names[f]);
    printf(" %6s %9s %7s\n", "asked", "admitted", "broken");
    for (int i = 0; i < r->n_rows; i++) {
        const struct serving_row *row = &r->rows[i];
        printf("%-22s %-7s %-8s", c->campaigns[row->campaign], held_name(row), known_name(row));
        for (int f = 0; f < SERVING_FIGURES; f++)
            printf(" %17.3f", row->figure[f]);
        printf(" %6d %9d %7d\n", row->n_asked, row->n_admitted, row->n_broken);
    }
}

int eval_serving(const struct catalog *c, const struct serving_eval_options *o, const char *model,
                 bool is_json, struct err *e)
{
    struct serving_result r;
    int rc = serving_eval(c, o, &r, e);

    if (rc == 0 && is_json)
        print_json(c, o, model, &r);
    else if (rc == 0)
        print_table(c, &r);
    serving_eval_release(&r);
    return rc;
}

#include "catalog/import/columns.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

#include "base/err.h"
#include "base/progress.h"
#include "base/text/csv.h"
#include "catalog/import/draft.h"

#define TEXT_BYTES_MAX 100    // two of them and a batch size still make a name

static int read_text(struct draft *d, const struct csv *c, const struct column_rule *rule,
                     struct slice s, const char **out, struct err *e)
{
    if (!(s.len == 0 && rule->may_be_empty) && (!text_is_name(s) || s.len > TEXT_BYTES_MAX))
        return err_set(e, EINVAL, "%s:%d: %s: want 1 to %d printable bytes of UTF-8", c->name,
                       c->line, rule->name, TEXT_BYTES_MAX);
    *out = arena_strndup(&d->arena, s.at, s.len);
    return 0;
}

static int read_number(const struct csv *c, const struct column_rule *rule, int at, double *out,
                       struct err *e)
{
    int rc = csv_number(c, at, rule->may_be_empty, out, e);

    if (rc < 0 || isnan(*out))
        return rc;
    if (*out < rule->low || *out > rule->high)
        return err_set(e, EINVAL, "%s:%d: %s: %g is not within %g to %g; wrong unit?", c->name,
                       c->line, rule->name, *out, rule->low, rule->high);
    if (rule->is_whole && floor(*out) != *out)
        return err_set(e, EINVAL, "%s:%d: %s: want a whole number, not %g", c->name, c->line,
                       rule->name, *out);
    return 0;
}

static int read_fields(struct draft *d, const struct csv *c, const struct column_rule *rules,
                       int n_rules, const int *at, struct columns_row *r, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < n_rules && rc == 0; i++)
        rc = rules[i].high == 0 ? read_text(d, c, &rules[i], c->field[at[i]], &r->text[i], e)
                                : read_number(c, &rules[i], at[i], &r->number[i], e);
    return rc;
}

int columns_read(struct draft *d, const struct draft_text *in, const struct column_rule *rules,
                 int n_rules, columns_row_f *f, void *self, struct progress *p, struct err *e)
{
    int at[COLUMNS_MAX], first_row = d->n_rows;
    struct columns_row row = { 0 };
    struct csv csv;
    int rc = csv_open(&csv, &d->arena, in->name, in->text, in->len, e);

    assert(n_rules <= COLUMNS_MAX);
    for (int i = 0; i < n_rules && rc == 0; i++)
        rc = csv_require(&csv, rules[i].name, &at[i], e);
    while (rc == 0 && (rc = csv_next(&csv, e)) > 0) {
        rc = read_fields(d, &csv, rules, n_rules, at, &row, e);
        if (rc == 0 && (rc = f(d, self, &row, e)) < 0 && e != NULL)
            err_prefix(e, "%s:%d", csv.name, csv.line);
        if (csv.line % 1024 == 0)
            progress_step(p, (double)(csv.at - in->text), (double)in->len);
    }
    if (rc == 0 && d->n_rows == first_row)
        rc = err_set(e, EINVAL, "%s: not one measurement in it", in->name);
    return rc;
}

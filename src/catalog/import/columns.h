/* columns.h - a published table, row by row: the columns that count, checked.
 *
 * What the importers of other people's CSV files have in common. Each states its columns once, with
 * the range that refuses slips of unit, and a function that makes measurements of a row. Lives for
 * one reading.
 */
#ifndef CATALOG_IMPORT_COLUMNS_H
#define CATALOG_IMPORT_COLUMNS_H

#include <stdbool.h>

struct draft;
struct draft_text;
struct err;
struct progress;

enum { COLUMNS_MAX = 16 };

/* A text of 1 to 100 printable bytes where 'high' is 0, else a number within [low, high]. */
struct column_rule {
    const char *name;
    double low, high;
    bool may_be_empty;    // then "" or NaN
    bool is_whole;
};

/* By the position of the column's rule. */
struct columns_row {
    const char *text[COLUMNS_MAX];
    double number[COLUMNS_MAX];
};

/* 0 or a negative errno value; errors get file and line in front of them. */
typedef int columns_row_f(struct draft *d, void *self, const struct columns_row *r, struct err *e);

/* Hand each row of 'in' to 'f'. -EINVAL: a column is missing, a field is not as its rule says, or
 * no row made a measurement. Columns without a rule are not looked at.
 */
int columns_read(struct draft *d, const struct draft_text *in, const struct column_rule *rules,
                 int n_rules, columns_row_f *f, void *self, struct progress *p, struct err *e);

#endif

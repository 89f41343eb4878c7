/* csv.h - comma-separated values: header by name, quotes, comments, line numbers.
 *
 * RFC 4180 with two additions people need: lines that begin with '#' are comments
 * and blank lines are skipped. Fields come unquoted, and without the blanks around
 * them unless those are quoted. Knows where it is, so that an error can say so.
 */
#ifndef BASE_TEXT_CSV_H
#define BASE_TEXT_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

struct arena;
struct err;

#define CSV_COLUMNS_MAX 64    // wider input is a mistake, not a table

struct csv {
    struct arena *arena;     // unquoted fields live here
    const char *name;        // for messages: the file's name
    const char *at, *end;    // what is left to read
    int line;                // of the record last read, 1-based
    int next_line;
    int n_columns;
    struct slice column[CSV_COLUMNS_MAX];    // the header
    struct slice field[CSV_COLUMNS_MAX];     // the record last read
};

/* Read the header of 'text' (kept, not copied). -EINVAL: no header, a column
 * twice, too many columns.
 */
int csv_open(struct csv *c, struct arena *a, const char *name, const char *text, size_t len,
             struct err *e);

/* The next record. Returns 1, 0 at the end, or -EINVAL: wrong number of fields,
 * an unclosed quote.
 */
int csv_next(struct csv *c, struct err *e);

/* The index of a column, -1 when absent. csv_require sets an error naming it. */
int csv_column(const struct csv *c, const char *name);
int csv_require(const struct csv *c, const char *name, int *column, struct err *e);

/* Field 'column' of the record as a finite number. An empty field gives NaN when
 * 'may_be_empty'. -EINVAL names file, line and column.
 */
int csv_number(const struct csv *c, int column, bool may_be_empty, double *out, struct err *e);

#endif

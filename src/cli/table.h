/* table.h - what the daemon says, as aligned columns of text.
 *
 * Cells come from JSON by key: "-" for what is null or absent. Nothing that a terminal would
 * obey gets through. Texts live in the arena; a table as long as the arena.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text/json.h"

struct arena;
struct buf;

#define TABLE_COLUMNS_MAX 16

struct table {
    struct arena *arena;
    int n_columns;
    bool is_right[TABLE_COLUMNS_MAX];
    int n_cells, cap;      // the heading's included
    const char **cells;    // row by row
};

/* Headings with '|' between; one that begins with '>' is for numbers and stands to the right. */
void table_init(struct table *t, struct arena *a, const char *headings);
void table_put(struct table *t, const char *cell);    // the next one of the row

/* The next cells, of the fields of 'o' that 'keys' names with blanks between: as text, or, behind a
 * '#', as a number, behind '*', joules as kWh, behind '%', a share in percent, behind '+', a list.
 */
void table_put_fields(struct table *t, const json_t *o, const char *keys);
void table_print(const struct table *t, FILE *out);

/* Cells. */
int cell_width(const char *text);    // characters, as far as each takes one place
const char *cell_clean(struct arena *a, const char *text);    // control characters as '?'; NULL "-"
const char *cell_text(struct arena *a, const json_t *o, const char *key);
const char *cell_list(struct arena *a, const json_t *o, const char *key);    // "a,b"
const char *cell_value(struct arena *a, double v);    // three digits, more of large numbers
const char *cell_number(struct arena *a, const json_t *o, const char *key);
const char *cell_scaled(struct arena *a, const json_t *o, const char *key, double by);    // no 1e-5
const char *cell_percent(struct arena *a, const json_t *o, const char *key);    // of a share
const char *cell_since(struct arena *a, const json_t *o, const char *key, double now_s);

#define KWH_J 3.6e6

/* A field of CSV, in quotes. */
void csv_quote(struct buf *out, const char *text);

/* A buffer's text to standard output, and its end. */
void table_show(struct buf *b);

#endif

#include "base/text/csv.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

static bool at_line_end(const struct csv *c)
{
    return c->at == c->end || *c->at == '\n' ||
           (*c->at == '\r' && (c->at + 1 == c->end || c->at[1] == '\n'));
}

static void skip_line_end(struct csv *c)
{
    if (c->at < c->end && *c->at == '\r')
        c->at++;
    if (c->at < c->end && *c->at == '\n')
        c->at++;
    c->next_line++;
}

static void skip_blanks(struct csv *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
        c->at++;
}

/* Go to the first line that is neither blank nor a comment; false at the end. */
static bool find_record(struct csv *c)
{
    while (c->at < c->end) {
        const char *begin = c->at;

        if (*c->at == '#') {
            while (!at_line_end(c))
                c->at++;
        }
        skip_blanks(c);
        if (!at_line_end(c)) {
            c->at = begin;
            c->line = c->next_line;
            return true;
        }
        if (c->at < c->end)
            skip_line_end(c);
    }
    return false;
}

/* "raw" with its doubled quotes made single. */
static struct slice unquote(struct arena *a, const char *raw, size_t len, size_t n_doubled)
{
    char *to;
    size_t n = 0;

    if (n_doubled == 0)
        return (struct slice){ raw, len };
    to = arena_alloc(a, len - n_doubled);
    for (size_t i = 0; i < len; i++) {
        to[n++] = raw[i];
        if (raw[i] == '"')
            i++;
    }
    assert(n == len - n_doubled);
    return (struct slice){ to, n };
}

static int read_quoted(struct csv *c, struct slice *field, struct err *e)
{
    const char *begin = ++c->at;
    size_t n_doubled = 0;

    for (;; c->at++) {
        if (c->at == c->end)
            return err_set(e, EINVAL, "%s:%d: a quote is never closed; end the field with '\"'",
                           c->name, c->line);
        if (*c->at == '\n')
            c->next_line++;
        if (*c->at != '"')
            continue;
        if (c->at + 1 == c->end || c->at[1] != '"')
            break;
        n_doubled++;
        c->at++;
    }
    *field = unquote(c->arena, begin, (size_t)(c->at - begin), n_doubled);
    c->at++;
    skip_blanks(c);
    if (!at_line_end(c) && *c->at != ',')
        return err_set(e, EINVAL,
                       "%s:%d: text after a closing quote; inside a field write a quote as '\"\"'",
                       c->name, c->next_line);
    return 0;
}

static int read_plain(struct csv *c, struct slice *field, struct err *e)
{
    const char *begin = c->at;

    while (!at_line_end(c) && *c->at != ',' && *c->at != '"')
        c->at++;
    if (!at_line_end(c) && *c->at == '"')
        return err_set(e, EINVAL, "%s:%d: a quote inside a field; put the whole field in quotes",
                       c->name, c->line);
    *field = slice_trim((struct slice){ begin, (size_t)(c->at - begin) });
    return 0;
}

/* Read one record into 'fields'. Returns how many fields it has, of which at most
 * CSV_COLUMNS_MAX are stored, or -EINVAL.
 */
static int read_record(struct csv *c, struct slice *fields, struct err *e)
{
    struct slice spill;
    int n = 0;

    for (;;) {
        struct slice *field = n < CSV_COLUMNS_MAX ? &fields[n] : &spill;
        int rc;

        skip_blanks(c);
        if (c->at < c->end && *c->at == '"')
            rc = read_quoted(c, field, e);
        else
            rc = read_plain(c, field, e);
        if (rc < 0)
            return rc;
        n++;
        if (at_line_end(c))
            break;
        c->at++;    // the comma
    }
    skip_line_end(c);
    return n;
}

static int check_header(const struct csv *c, struct err *e)
{
    for (int i = 0; i < c->n_columns; i++) {
        const struct slice name = c->column[i];

        if (name.len == 0)
            return err_set(e, EINVAL, "%s:%d: column %d has no name; name it or remove it", c->name,
                           c->line, i + 1);
        for (int k = 0; k < i; k++) {
            if (c->column[k].len == name.len && memcmp(c->column[k].at, name.at, name.len) == 0)
                return err_set(e, EINVAL, "%s:%d: column '%.*s' is there twice; remove one",
                               c->name, c->line, slice_shown(name), name.at);
        }
    }
    return 0;
}

int csv_open(struct csv *c, struct arena *a, const char *name, const char *text, size_t len,
             struct err *e)
{
    int n;

    *c = (struct csv){ .arena = a, .name = name, .at = text, .end = text + len, .next_line = 1 };
    if (!find_record(c))
        return err_set(e, EINVAL, "%s: empty; the first line must name the columns", name);
    n = read_record(c, c->column, e);
    if (n < 0)
        return n;
    if (n > CSV_COLUMNS_MAX)
        return err_set(e, EINVAL, "%s:%d: %d columns; at most %d are read", name, c->line, n,
                       CSV_COLUMNS_MAX);
    c->n_columns = n;
    return check_header(c, e);
}

int csv_next(struct csv *c, struct err *e)
{
    int n;

    if (!find_record(c))
        return 0;
    n = read_record(c, c->field, e);
    if (n < 0)
        return n;
    if (n != c->n_columns)
        return err_set(e, EINVAL, "%s:%d: %d fields, and the header names %d; quote commas in text",
                       c->name, c->line, n, c->n_columns);
    return 1;
}

int csv_column(const struct csv *c, const char *name)
{
    for (int i = 0; i < c->n_columns; i++) {
        if (slice_is(c->column[i], name))
            return i;
    }
    return -1;
}

int csv_require(const struct csv *c, const char *name, int *column, struct err *e)
{
    *column = csv_column(c, name);
    if (*column < 0)
        return err_set(e, EINVAL, "%s: no column '%s'; add it to the header", c->name, name);
    return 0;
}

int csv_number(const struct csv *c, int column, bool may_be_empty, double *out, struct err *e)
{
    struct slice field, name;
    int rc;

    assert(column >= 0 && column < c->n_columns);
    field = c->field[column];
    name = c->column[column];
    if (field.len == 0 && may_be_empty) {
        *out = (double)NAN;
        return 0;
    }
    rc = text_to_double(field, out);
    if (rc == -ERANGE)
        return err_set(e, EINVAL, "%s:%d: column '%.*s': '%.*s' is too large a number", c->name,
                       c->line, slice_shown(name), name.at, slice_shown(field), field.at);
    if (rc < 0)
        return err_set(e, EINVAL, "%s:%d: column '%.*s': want a number, got '%.*s'", c->name,
                       c->line, slice_shown(name), name.at, slice_shown(field), field.at);
    return 0;
}

#include "optimize/files/doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

json_t *doc_open(struct doc *f, const char *text, size_t len)
{
    json_error_t where;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);

    if (root == NULL) {
        err_fill(f->e, EINVAL, "%s:%d: no JSON: %s", f->name, where.line, where.text);
        return NULL;
    }
    if (json_is_object(root))
        return root;
    json_decref(root);
    err_fill(f->e, EINVAL, "%s: want one JSON object: {...}", f->name);
    return NULL;
}

int doc_wrong(struct doc *f, const struct doc_at *at, const char *key, const char *format, ...)
{
    char text[300], place[100] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at->index >= 0)
        snprintf(place, sizeof place, "%s[%d]%s", at->list, at->index, key ? "." : "");
    return err_set(f->e, EINVAL, "%s: %s%.60s%s%s", f->name, place, key ? key : "",
                   key || at->index >= 0 ? ": " : "", text);
}

const char *doc_looks(struct doc *f, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL:
        return "null";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_STRING:
        return arena_printf(f->arena, "\"%.40s\"", json_string_value(v));
    case JSON_INTEGER:
        return arena_printf(f->arena, "%lld", (long long)json_integer_value(v));
    case JSON_REAL:
        return arena_printf(f->arena, "%g", json_real_value(v));
    case JSON_ARRAY:
        return "a list";
    case JSON_OBJECT:
        return "an object";
    }
    return "?";
}

/* The known key that is nearest to a stranger, or NULL when none is near. */
static const char *nearest(const char *key, const char *const *known)
{
    const char *best = NULL;
    int least = 3;

    for (int i = 0; known[i] != NULL; i++) {
        int d = text_distance(key, known[i]);
        if (d < least) {
            least = d;
            best = known[i];
        }
    }
    return best;
}

int doc_keys(struct doc *f, const struct doc_at *at, const char *const *known)
{
    const char *key;
    json_t *value;

    if (!json_is_object(at->object))
        return doc_wrong(f, at, NULL, "want an object, not %s", doc_looks(f, at->object));
    json_object_foreach(at->object, key, value)
    {
        int i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] != NULL)
            continue;
        const char *meant = nearest(key, known);
        return meant ? doc_wrong(f, at, key, "no such key; did you mean '%s'?", meant)
                     : doc_wrong(f, at, key, "no such key; leave it out");
    }
    return 0;
}

int doc_number(struct doc *f, const struct doc_at *at, const char *key, double *out)
{
    json_t *v = json_object_get(at->object, key);

    if (v == NULL)
        return 0;
    if (!json_is_number(v))
        return doc_wrong(f, at, key, "want a number, not %s", doc_looks(f, v));
    *out = json_number_value(v);
    return 0;
}

int doc_whole(struct doc *f, const struct doc_at *at, const char *key, int low, int high, int *out)
{
    json_t *v = json_object_get(at->object, key);

    if (v == NULL)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high)
        return doc_wrong(f, at, key, "want a whole number from %d to %d, not %s", low, high,
                         doc_looks(f, v));
    *out = (int)json_integer_value(v);
    return 0;
}

int doc_flag(struct doc *f, const struct doc_at *at, const char *key, bool *out)
{
    json_t *v = json_object_get(at->object, key);

    if (v == NULL)
        return 0;
    if (!json_is_boolean(v))
        return doc_wrong(f, at, key, "want true or false, not %s", doc_looks(f, v));
    *out = json_is_true(v);
    return 0;
}

int doc_name(struct doc *f, const struct doc_at *at, const char *key, const char **out)
{
    json_t *v = json_object_get(at->object, key);

    if (v == NULL)
        return doc_wrong(f, at, NULL, "has no \"%s\"; give it one", key);
    if (!json_is_string(v))
        return doc_wrong(f, at, key, "want a text, not %s", doc_looks(f, v));
    struct slice s = { json_string_value(v), json_string_length(v) };
    if (!text_is_name(s))
        return doc_wrong(f, at, key,
                         "a name has 1 to 200 printable bytes and no blank at its ends");
    *out = arena_strndup(f->arena, s.at, s.len);
    return 0;
}

int doc_list(struct doc *f, const struct doc_at *at, const char *key, json_t **out)
{
    json_t *v = json_object_get(at->object, key);

    *out = v;
    if (v != NULL && !json_is_array(v))
        return doc_wrong(f, at, key, "want a list, not %s", doc_looks(f, v));
    return 0;
}

/* ---- rows of numbers ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A token of a text. The usual one, a few digits around a point, is exact as one division;
 * any other goes the long way.
 */
static int token_value(struct slice s, double *out)
{
    static const double tens[] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11 };
    long digits = 0;
    size_t behind = 0;
    bool has_point = false;

    if (s.len > 11 || s.len == 0 || (s.len == 1 && s.at[0] == '.'))
        return text_to_double(s, out);
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c >= '0' && c <= '9') {
            digits = digits * 10 + (c - '0');
            behind += has_point;
        } else if (c == '.' && !has_point && i > 0 && i + 1 < s.len) {
            has_point = true;
        } else {
            return text_to_double(s, out);
        }
    }
    *out = (double)digits / tens[behind];
    return 0;
}

static int row_of_text(struct doc *f, const struct doc_at *at, const char *what, const json_t *row,
                       double *out, int n)
{
    const char *p = json_string_value(row), *end = p + json_string_length(row);
    int i = 0;

    for (;; i++) {
        while (p < end && is_blank(*p))
            p++;
        if (p == end)
            break;
        const char *from = p;
        while (p < end && !is_blank(*p))
            p++;
        struct slice s = { from, (size_t)(p - from) };
        if (i < n && token_value(s, &out[i]) < 0)
            return doc_wrong(f, at, what, "want numbers between blanks, not '%.*s'",
                             s.len < 30 ? (int)s.len : 30, s.at);
    }
    if (i != n)
        return doc_wrong(f, at, what, "want %d numbers, not %d", n, i);
    return 0;
}

int doc_row(struct doc *f, const struct doc_at *at, const char *what, json_t *row, double *out,
            int n)
{
    if (json_is_string(row))
        return row_of_text(f, at, what, row, out, n);
    if (!json_is_array(row))
        return doc_wrong(f, at, what, "want %d numbers, as a list or between blanks in a text", n);
    if (json_array_size(row) != (size_t)n)
        return doc_wrong(f, at, what, "want %d numbers, not %zu", n, json_array_size(row));
    for (int i = 0; i < n; i++) {
        json_t *v = json_array_get(row, (size_t)i);
        if (!json_is_number(v))
            return doc_wrong(f, at, what, "number %d of the list is %s; want a number", i,
                             doc_looks(f, v));
        out[i] = json_number_value(v);
    }
    return 0;
}

/* ---- writing ---- */

int doc_put_text(struct buf *out, const char *s)
{
    int rc = buf_puts(out, "\"");

    for (; *s != '\0' && rc == 0; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            rc = buf_printf(out, "\\%c", c);
        else if (c < 32)
            rc = buf_printf(out, "\\u%04x", c);
        else
            rc = buf_append(out, s, 1);
    }
    return rc < 0 ? rc : buf_puts(out, "\"");
}

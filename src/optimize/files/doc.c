#include "optimize/files/doc.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"
#include "base/text/words.h"
#include "optimize/model/problem.h"

json_t *doc_open(const struct doc *f, const char *text, size_t len)
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

bool doc_wrong(const struct doc_at *at, const char *key, const char *format, ...)
{
    char text[300], place[100] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at->index >= 0)
        snprintf(place, sizeof place, "%s[%d]%s", at->list, at->index, key ? "." : "");
    err_fill(at->doc->e, EINVAL, "%s: %s%.60s%s%s", at->doc->name, place, key ? key : "",
             key || at->index >= 0 ? ": " : "", text);
    return false;
}

const char *doc_looks(const struct doc_at *at, const json_t *v)
{
    if (json_is_array(v) || json_is_object(v))
        return json_is_array(v) ? "a list" : "an object";
    if (json_is_real(v))
        return arena_printf(at->doc->arena, "%g", json_real_value(v));
    char *text = json_dumps(v, JSON_ENCODE_ANY);
    const char *looks = arena_printf(at->doc->arena, "%.42s", text ? text : "?");
    free(text);
    return looks;
}

bool doc_keys(const struct doc_at *at, const char *const *known)
{
    const char *key;
    json_t *value;

    if (!json_is_object(at->object))
        return doc_wrong(at, NULL, "want an object, not %s", doc_looks(at, at->object));
    json_object_foreach(at->object, key, value)
    {
        int i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] != NULL)
            continue;
        const char *meant = text_nearest(key, known, 2);
        return meant ? doc_wrong(at, key, "no such key; did you mean '%s'?", meant)
                     : doc_wrong(at, key, "no such key; leave it out");
    }
    return true;
}

/* ---- single values ---- */

bool doc_number(const struct doc_at *at, const char *key, double *out)
{
    json_t *v = json_object_get(at->object, key);

    if (json_is_number(v))
        *out = json_number_value(v);
    return !v || json_is_number(v) || doc_wrong(at, key, "want a number, not %s", doc_looks(at, v));
}

bool doc_whole(const struct doc_at *at, const char *key, int low, int high, int *out)
{
    json_t *v = json_object_get(at->object, key);

    if (v == NULL)
        return true;
    if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high)
        return doc_wrong(at, key, "want a whole number from %d to %d, not %s", low, high,
                         doc_looks(at, v));
    *out = (int)json_integer_value(v);
    return true;
}

bool doc_flag(const struct doc_at *at, const char *key, bool *out)
{
    json_t *v = json_object_get(at->object, key);

    if (json_is_boolean(v))
        *out = json_is_true(v);
    return !v || json_is_boolean(v) ||
           doc_wrong(at, key, "want true or false, not %s", doc_looks(at, v));
}

bool doc_either(const struct doc_at *at, const char *key, const char *first, const char *second,
                bool *out)
{
    json_t *v = json_object_get(at->object, key);
    const char *word = v == NULL ? first : json_is_string(v) ? json_string_value(v) : "?";

    *out = strcmp(word, second) == 0;
    return *out || strcmp(word, first) == 0 ||
           doc_wrong(at, key, "want \"%s\" or \"%s\"", first, second);
}

bool doc_fields(const struct doc_at *at, const struct problem_field *fields, void *out)
{
    for (const struct problem_field *f = fields; f->key != NULL; f++) {
        double *x = (double *)(void *)((char *)out + f->at);
        *x = f->absent;
        if (!doc_number(at, f->key, x))
            return false;
        if (isnan(*x))
            return doc_wrong(at, NULL, "has no \"%s\"; give it one", f->key);
    }
    return true;
}

bool doc_name(const struct doc_at *at, const char *key, const char **out)
{
    json_t *v = json_object_get(at->object, key);

    if (v == NULL)
        return doc_wrong(at, NULL, "has no \"%s\"; give it one", key);
    if (!json_is_string(v))
        return doc_wrong(at, key, "want a text, not %s", doc_looks(at, v));
    struct slice s = { json_string_value(v), json_string_length(v) };
    if (!text_is_name(s))
        return doc_wrong(at, key, "a name has 1 to 200 printable bytes and no blank at its ends");
    *out = arena_strndup(at->doc->arena, s.at, s.len);
    return true;
}

bool doc_list(const struct doc_at *at, const char *key, int max, json_t **out, int *n)
{
    json_t *v = json_object_get(at->object, key);

    *out = v;
    *n = 0;
    if (v != NULL && !json_is_array(v))
        return doc_wrong(at, key, "want a list, not %s", doc_looks(at, v));
    if (json_array_size(v) > (size_t)max)
        return doc_wrong(at, key, "%zu are too many; at most %d", json_array_size(v), max);
    *n = (int)json_array_size(v);
    return true;
}

int doc_index(const struct doc_at *at, const char *key, const json_t *v, const char *whose, int n,
              const char *things)
{
    json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;

    if (i >= 0 && i < n)
        return (int)i;
    doc_wrong(at, key, "%s is none of %s %d %s, from 0", doc_looks(at, v), whose, n, things);
    return -1;
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

static bool row_of_text(const struct doc_at *at, const char *what, const json_t *row, double *out,
                        int n)
{
    const char *p = json_string_value(row), *end = p + json_string_length(row);
    int i = 0;

    for (;; i++) {
        while (p < end && is_blank(*p))
            p++;
        if (p == end)
            break;
        struct slice s = { p, 0 };
        while (p < end && !is_blank(*p))
            p++;
        s.len = (size_t)(p - s.at);
        if (i < n && token_value(s, &out[i]) < 0)
            return doc_wrong(at, what, "want numbers between blanks, not '%.*s'",
                             s.len < 30 ? (int)s.len : 30, s.at);
    }
    return i == n || doc_wrong(at, what, "want %d numbers, not %d", n, i);
}

bool doc_row(const struct doc_at *at, const char *what, json_t *row, double *out, int n)
{
    if (json_is_string(row))
        return row_of_text(at, what, row, out, n);
    if (!json_is_array(row))
        return doc_wrong(at, what, "want %d numbers, as a list or between blanks in a text", n);
    if (json_array_size(row) != (size_t)n)
        return doc_wrong(at, what, "want %d numbers, not %zu", n, json_array_size(row));
    for (int i = 0; i < n; i++) {
        json_t *v = json_array_get(row, (size_t)i);
        if (!json_is_number(v))
            return doc_wrong(at, what, "number %d of the list is %s; want a number", i,
                             doc_looks(at, v));
        out[i] = json_number_value(v);
    }
    return true;
}

/* ---- writing ---- */

void doc_put_number(struct doc_out *o, double x)
{
    if (o->rc == 0)
        o->rc = words_put_number(o->buf, x);
}

void doc_put_text(struct doc_out *o, const char *s)
{
    doc_put(o, "\"");
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        doc_put(o, c == '"' || c == '\\' ? "\\%c" : c < 32 ? "\\u%04x" : "%c", c);
    }
    doc_put(o, "\"");
}

void doc_put_pair(struct doc_out *o, const char *key, double x)
{
    doc_put(o, ", \"%s\": ", key);
    doc_put_number(o, x);
}

void doc_put_fields(struct doc_out *o, const struct problem_field *fields, const void *from)
{
    for (const struct problem_field *f = fields; f->key != NULL; f++) {
        double x = *(const double *)(const void *)((const char *)from + f->at);
        if (x > 0 || !f->is_brief)
            doc_put_pair(o, f->key, x);
    }
}

void doc_put_numbers(struct doc_out *o, const char *key, const double *x, int n)
{
    doc_put(o, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        doc_put(o, "%s", i > 0 ? ", " : "");
        doc_put_number(o, x[i]);
    }
    doc_put(o, "]");
}

void doc_put_ints(struct doc_out *o, const char *key, const int *x, int n)
{
    doc_put(o, ", \"%s\": [", key);
    for (int i = 0; i < n; i++)
        doc_put(o, i > 0 ? ", %d" : "%d", x[i]);
    doc_put(o, "]");
}

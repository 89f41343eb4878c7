#include "base/text/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"

void words_open(struct words *w, struct arena *a, const char *name, const char *text, size_t len)
{
    *w = (struct words){ .arena = a, .name = name, .at = text, .end = text + len };
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* A backslash in front of a quote or of another one. */
static bool is_escape(const char *p, const char *end)
{
    return *p == '\\' && p + 1 < end && (p[1] == '"' || p[1] == '\\');
}

/* The quoted text at 'p', which is a quote; its end in '*after', or -1 when it has none. */
static int unquote(struct words *w, const char *p, const char *end, struct slice *out,
                   const char **after)
{
    const char *close = ++p;
    size_t n = 0;
    char *to;

    for (; close < end && *close != '"'; close++) {
        if (is_escape(close, end))
            close++;
    }
    if (close >= end)
        return -1;
    to = arena_alloc(w->arena, (size_t)(close - p));
    for (; p < close; p++) {
        if (is_escape(p, close))
            p++;
        to[n++] = *p;
    }
    *out = (struct slice){ to, n };
    *after = close + 1;
    return 0;
}

static const char *bare_end(const char *p, const char *end, bool stops_at_equals)
{
    while (p < end && !is_blank(*p) && !(stops_at_equals && *p == '='))
        p++;
    return p;
}

/* One word from 'p', which is not a blank. */
static int take_word(struct words *w, const char **at, const char *end, struct word *out,
                     struct err *e)
{
    const char *p = *at, *stop = bare_end(p, end, true);

    *out = (struct word){ 0 };
    if (*p != '"' && stop > p && stop < end && *stop == '=') {
        out->key = (struct slice){ p, (size_t)(stop - p) };
        p = stop + 1;
    }
    if (p < end && *p == '"') {
        if (unquote(w, p, end, &out->value, &stop) < 0)
            return err_set(e, EINVAL, "%s:%d: a quote is opened and not closed: add '\"'", w->name,
                           w->line);
        if (stop < end && !is_blank(*stop))
            return err_set(e, EINVAL, "%s:%d: text follows a closing quote: put a blank between",
                           w->name, w->line);
    } else {
        stop = bare_end(p, end, false);
        out->value = (struct slice){ p, (size_t)(stop - p) };
    }
    *at = stop;
    return 0;
}

static int take_line(struct words *w, const char *p, const char *end, struct err *e)
{
    w->n = 0;
    for (;;) {
        while (p < end && is_blank(*p))
            p++;
        if (p == end || *p == '#')
            return 0;
        if (w->n == WORDS_MAX)
            return err_set(e, EINVAL, "%s:%d: more than %d words: split the line", w->name, w->line,
                           WORDS_MAX);
        if (take_word(w, &p, end, &w->word[w->n], e) < 0)
            return -EINVAL;
        w->n++;
    }
}

int words_next(struct words *w, struct err *e)
{
    while (w->at < w->end) {
        const char *newline = memchr(w->at, '\n', (size_t)(w->end - w->at));
        const char *end = newline != NULL ? newline : w->end;
        const char *begin = w->at;

        w->line++;
        w->at = newline != NULL ? newline + 1 : w->end;
        if (take_line(w, begin, end, e) < 0)
            return -EINVAL;
        if (w->n > 0)
            return 1;
    }
    return 0;
}

const char *words_name(struct words *w, struct slice value)
{
    return text_is_name(value) ? arena_strndup(w->arena, value.at, value.len) : NULL;
}

int words_put(struct buf *out, const char *value)
{
    int rc = 0;

    if (value[0] != '\0' && strpbrk(value, " \t\"=#\\") == NULL)
        return buf_puts(out, value);
    rc = buf_puts(out, "\"");
    for (const char *p = value; *p != '\0' && rc == 0; p++) {
        if (*p == '"' || *p == '\\')
            rc = buf_append(out, "\\", 1);
        if (rc == 0)
            rc = buf_append(out, p, 1);
    }
    return rc < 0 ? rc : buf_puts(out, "\"");
}

static void print_number(char *text, size_t size, double v)
{
    if (v == floor(v) && fabs(v) < 1e15) {    // every digit of a whole number, no exponent
        snprintf(text, size, "%.0f", v);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            return;
    }
}

const char *words_number(struct arena *a, double v)
{
    char text[40];

    print_number(text, sizeof text, v);
    return arena_strdup(a, text);
}

int words_put_number(struct buf *out, double v)
{
    char text[40];

    print_number(text, sizeof text, v);
    return buf_puts(out, text);
}

#include "daemon/http/json_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"

/* Where the next 'n' bytes and a NUL may be written. */
static char *room(struct api_text *t, size_t n)
{
    if (t->cap - t->len <= n) {
        t->cap = 2 * (t->cap + n) + 512;
        assert(t->cap < 2 * API_TEXT_MAX);
        RESIZE(t->data, t->cap);
    }
    return t->data + t->len;
}

static void put(struct api_text *t, const char *bytes, size_t n)
{
    char *at = room(t, n);

    memcpy(at, bytes, n);
    at[n] = '\0';
    t->len += n;
}

/* What needs no escape in one piece, the rest as \u00XX; UTF-8 passes as it is. */
static void put_quoted(struct api_text *t, const char *s)
{
    put(t, "\"", 1);
    while (*s) {
        size_t n = 0;
        while ((unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\')
            n++;
        put(t, s, n);
        s += n;
        if (*s) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*s++);
            put(t, escape, 6);
        }
    }
    put(t, "\"", 1);
}

/* A comma where one belongs, and the key with its colon, in one go. */
static void put_key(struct api_text *t, const char *key)
{
    size_t n = key ? strlen(key) : 0;
    char *at = room(t, n + 4), *begin = at;

    if (t->has_item)
        *at++ = ',';
    t->has_item = true;
    if (key) {
        *at++ = '"';
        memcpy(at, key, n);
        at += n;
        *at++ = '"';
        *at++ = ':';
    }
    *at = '\0';
    t->len += (size_t)(at - begin);
}

void api_put_open(struct api_text *t, const char *key, char bracket)
{
    put_key(t, key);
    put(t, &bracket, 1);
    t->has_item = false;
}

void api_put_close(struct api_text *t, char bracket)
{
    put(t, &bracket, 1);
    t->has_item = true;
}

void api_put_null(struct api_text *t, const char *key)
{
    put_key(t, key);
    put(t, "null", 4);
}

void api_put_text(struct api_text *t, const char *key, const char *value)
{
    if (!value) {
        api_put_null(t, key);
        return;
    }
    put_key(t, key);
    put_quoted(t, value);
}

void api_put_flag(struct api_text *t, const char *key, bool value)
{
    put_key(t, key);
    put(t, value ? "true" : "false", value ? 4 : 5);
}

/* Digits of 'v' from the right, so that they end before 'end'; where they begin. */
static char *digits(char *end, unsigned long long v, int at_least)
{
    while (v || at_least > 0) {
        *--end = (char)('0' + v % 10);
        v /= 10;
        at_least--;
    }
    return end;
}

void api_put_whole(struct api_text *t, const char *key, long long value)
{
    char text[24], *end = text + sizeof text;
    char *at =
        digits(end, value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value, 1);

    put_key(t, key);
    if (value < 0)
        *--at = '-';
    put(t, at, (size_t)(end - at));
}

/* With so many places behind the point, zeros at the end left out. printf is five times slower,
 * and a list of jobs is mostly numbers.
 */
static void put_fixed(struct api_text *t, double value, double scale, int places)
{
    char text[40], *end = text + sizeof text;
    unsigned long long v = (unsigned long long)llround(fabs(value) * scale);
    bool is_negative = value < 0 && v > 0;
    int left = places;

    while (left > 0 && v % 10 == 0) {
        v /= 10;
        left--;
    }
    unsigned long long unit = 1;
    for (int i = 0; i < left; i++)
        unit *= 10;
    char *at = end;
    if (left > 0) {
        at = digits(at, v % unit, left);
        *--at = '.';
    }
    at = digits(at, v / unit, 1);
    if (is_negative)
        *--at = '-';
    put(t, at, (size_t)(end - at));
}

void api_put_time(struct api_text *t, const char *key, double value_s)
{
    if (!(fabs(value_s) < 1e12)) {
        api_put_number(t, key, value_s);
        return;
    }
    put_key(t, key);
    put_fixed(t, value_s, 1e3, 3);
}

void api_put_number(struct api_text *t, const char *key, double value)
{
    char text[40];

    if (!isfinite(value)) {
        api_put_null(t, key);
        return;
    }
    put_key(t, key);
    if (fabs(value) < 1e15 && value == nearbyint(value)) {
        put_fixed(t, value, 1, 0);
    } else if (fabs(value) >= 1e-2 && fabs(value) < 1e3) {
        put_fixed(t, value, 1e6, 6);
    } else {
        int n = snprintf(text, sizeof text, "%.9g", value);
        put(t, text, (size_t)n);
    }
}

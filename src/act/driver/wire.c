#include "act/driver/wire.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"

/* ---- writing ---- */

static bool is_key(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(s.at[i] >= 'a' && s.at[i] <= 'z') && s.at[i] != '_')
            return false;
    return s.len > 0;
}

void wire_begin(struct buf *b, uint64_t seq, const char *verb)
{
    assert(is_key(slice_of(verb)));
    (void)buf_printf(b, "%llu %s", (unsigned long long)seq, verb);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '%' && c != 0x7f;
}

/* Runs of plain bytes at once: nearly all values are one. */
void wire_put(struct buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    assert(is_key(slice_of(key)));
    (void)buf_printf(b, "\t%s=", key);
    while (*value) {
        size_t n = 0;

        while (value[n] && is_plain((unsigned char)value[n]))
            n++;
        (void)buf_append(b, value, n);
        value += n;
        if (*value)
            (void)buf_printf(b, "%%%02X", (unsigned)(unsigned char)*value++);
    }
}

void wire_put_long(struct buf *b, const char *key, long value)
{
    assert(is_key(slice_of(key)));
    (void)buf_printf(b, "\t%s=%ld", key, value);
}

void wire_end(struct buf *b)
{
    (void)buf_append(b, "\n", 1);
}

/* ---- reading ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undo the escapes of 'text', which ends at 'end', in place; it only becomes shorter. */
static int unescape(char *text, const char *end, struct err *e)
{
    char *to = text;

    for (const char *at = text; at < end; at++) {
        int high, low;

        if (is_plain((unsigned char)*at)) {
            *to++ = *at;
            continue;
        }
        high = *at == '%' && end - at > 2 ? hex_digit(at[1]) : -1;
        low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low < 0 || high * 16 + low == 0)
            return err_set(e, EINVAL, "a value has a byte 0x%02x that is not written %%XX",
                           (unsigned)(unsigned char)*at);
        *to++ = (char)(high * 16 + low);
        at += 2;
    }
    *to = '\0';
    return 0;
}

/* The number, at most 19 digits, and the word in front. '*at' is left at what follows. */
static int read_head(char **at, char *end, struct wire_message *out, struct err *e)
{
    char *word = *at, *tab;
    uint64_t seq = 0;
    int n = 0;

    for (; word < end && *word >= '0' && *word <= '9' && n < 19; word++, n++)
        seq = seq * 10 + (uint64_t)(*word - '0');
    if (n == 0 || word == end || *word != ' ')
        return err_set(e, EINVAL, "a line begins with a number and a blank");
    word++;
    tab = memchr(word, '\t', (size_t)(end - word));
    if (!tab)
        tab = end;
    if (!is_key((struct slice){ word, (size_t)(tab - word) }))
        return err_set(e, EINVAL, "a line's second word is one of a-z and _");
    *tab = '\0';
    out->seq = seq;
    out->verb = word;
    *at = tab;
    return 0;
}

static int read_pair(char *at, char *end, struct wire_pair *out, struct err *e)
{
    char *sign = memchr(at, '=', (size_t)(end - at));

    if (!sign || !is_key((struct slice){ at, (size_t)(sign - at) }))
        return err_set(e, EINVAL, "'%.*s' is not key=value", (int)(end - at < 40 ? end - at : 40),
                       at);
    *sign = '\0';
    *out = (struct wire_pair){ at, sign + 1 };
    return unescape(sign + 1, end, e);
}

static int count_tabs(const char *at, const char *end)
{
    int n = 0;

    for (; at < end && n <= WIRE_KEYS_MAX; at++)
        n += *at == '\t';
    return n;
}

/* The byte after the line, its LF in the buffer it came from, is written to as well. */
int wire_read(struct arena *a, char *line, size_t len, struct wire_message *out, struct err *e)
{
    char *at = line, *end = line + len;
    int n, rc;

    *out = (struct wire_message){ .verb = "" };
    if (len >= WIRE_LINE_MAX)
        return err_set(e, EINVAL, "a line has %zu bytes, more than %zu", len, WIRE_LINE_MAX);
    n = count_tabs(line, end);
    if (n > WIRE_KEYS_MAX)
        return err_set(e, EINVAL, "a line has more than %d keys", WIRE_KEYS_MAX);
    rc = read_head(&at, end, out, e);
    if (rc < 0)
        return rc;
    out->pairs = ARENA_ARRAY(a, struct wire_pair, (size_t)n);
    while (at < end) {
        char *from = at + 1;
        char *tab = memchr(from, '\t', (size_t)(end - from));

        at = tab ? tab : end;
        rc = read_pair(from, at, &out->pairs[out->n_pairs], e);
        if (rc < 0)
            return rc;
        out->n_pairs++;
    }
    return 0;
}

const char *wire_get(const struct wire_message *m, const char *key)
{
    for (int i = 0; i < m->n_pairs; i++)
        if (strcmp(m->pairs[i].key, key) == 0)
            return m->pairs[i].value;
    return NULL;
}

long wire_get_long(const struct wire_message *m, const char *key, long otherwise)
{
    const char *value = wire_get(m, key);
    long n = otherwise;

    if (!value || text_to_long(slice_of(value), LONG_MIN, LONG_MAX, &n) < 0)
        return otherwise;
    return n;
}

double wire_get_double(const struct wire_message *m, const char *key)
{
    const char *value = wire_get(m, key);
    double x = (double)NAN;

    if (!value || text_to_double(slice_of(value), &x) < 0)
        return (double)NAN;
    return x;
}

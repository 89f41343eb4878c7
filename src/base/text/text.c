#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct slice slice_of(const char *s)
{
    return (struct slice){ s, strlen(s) };
}

bool slice_is(struct slice s, const char *word)
{
    return strlen(word) == s.len && (s.len == 0 || memcmp(s.at, word, s.len) == 0);
}

int slice_shown(struct slice s)
{
    return s.len < 40 ? (int)s.len : 40;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct slice slice_trim(struct slice s)
{
    while (s.len > 0 && is_blank(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && is_blank(s.at[s.len - 1]))
        s.len--;
    return s;
}

bool slice_next(const char **list, char separator, struct slice *item)
{
    const char *end = strchrnul(*list, separator);

    *item = (struct slice){ *list, (size_t)(end - *list) };
    if (!**list)
        return false;
    *list = end + (*end == separator);
    return true;
}

/* How many digits stand at 'i'. */
static size_t n_digits(struct slice s, size_t i)
{
    size_t n = 0;

    while (i + n < s.len && s.at[i + n] >= '0' && s.at[i + n] <= '9')
        n++;
    return n;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit before or after the point. */
static bool is_decimal(struct slice s)
{
    size_t i = 0, n;

    if (i < s.len && (s.at[i] == '-' || s.at[i] == '+'))
        i++;
    n = n_digits(s, i);
    i += n;
    if (i < s.len && s.at[i] == '.') {
        size_t fraction = n_digits(s, i + 1);

        n += fraction;
        i += 1 + fraction;
    }
    if (n == 0)
        return false;
    if (i < s.len && (s.at[i] == 'e' || s.at[i] == 'E')) {
        i++;
        if (i < s.len && (s.at[i] == '-' || s.at[i] == '+'))
            i++;
        n = n_digits(s, i);
        i += n;
    }
    return n > 0 && i == s.len;
}

/* Longer numbers are not data: a double needs 17 digits, an exponent 4 more. */
#define NUMBER_MAX 127

int text_to_double(struct slice s, double *out)
{
    char copy[NUMBER_MAX + 1];
    double v;

    if (s.len > NUMBER_MAX || !is_decimal(s))
        return -EINVAL;
    memcpy(copy, s.at, s.len);
    copy[s.len] = '\0';
    v = strtod(copy, NULL);
    if (!isfinite(v))
        return -ERANGE;
    *out = v;
    return 0;
}

int text_to_long(struct slice s, long low, long high, long *out)
{
    const bool is_negative = s.len > 0 && s.at[0] == '-';
    const size_t first = s.len > 0 && (is_negative || s.at[0] == '+');
    bool fits = true;
    long v = 0;

    if (n_digits(s, first) == 0 || first + n_digits(s, first) != s.len)
        return -EINVAL;
    for (size_t i = first; i < s.len && fits; i++) {
        const long digit = s.at[i] - '0';

        /* Downwards when negative: LONG_MIN has no positive twin. */
        fits = !__builtin_mul_overflow(v, 10L, &v) &&
               !__builtin_add_overflow(v, is_negative ? -digit : digit, &v);
    }
    if (!fits || v < low || v > high)
        return -ERANGE;
    *out = v;
    return 0;
}

/* The length of the well-formed sequence at 'p' with 'left' bytes, 0 if there is
 * none. The bounds of the second byte keep out overlong forms, surrogates and what
 * lies past U+10FFFF (Unicode 15, table 3-7).
 */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t n;

    if (p[0] < 0x80)
        return p[0] != '\0';
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (left < n || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    }
    return n;
}

bool text_is_utf8(const char *bytes, size_t len, size_t *bad)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_length((const unsigned char *)bytes + i, len - i);
        if (n == 0) {
            if (bad != NULL)
                *bad = i;
            return false;
        }
    }
    return true;
}

#define NAME_MAX_BYTES 200

bool text_is_name(struct slice s)
{
    if (s.len == 0 || s.len > NAME_MAX_BYTES || slice_trim(s).len != s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.at[i];

        /* U+0080 to U+009F, the other control characters, are c2 80 to c2 9f. */
        if (c < 0x20 || c == 0x7f)
            return false;
        if (c == 0xc2 && i + 1 < s.len && (unsigned char)s.at[i + 1] < 0xa0)
            return false;
    }
    return text_is_utf8(s.at, s.len, NULL);
}

/* The next letter that counts, in lower case; NUL at the end. */
static char alike_next(const char **s)
{
    char c;

    while (**s == '-' || **s == '_' || **s == ' ')
        (*s)++;
    c = **s;
    if (c != '\0')
        (*s)++;
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool text_alike(const char *a, const char *b)
{
    for (;;) {
        const char x = alike_next(&a), y = alike_next(&b);

        if (x != y)
            return false;
        if (x == '\0')
            return true;
    }
}

const char *text_unalias(const char *const (*rows)[TEXT_ALIASES], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        for (int k = 1; k < TEXT_ALIASES && rows[i][k]; k++)
            if (text_alike(rows[i][k], name))
                return rows[i][0];
    return name;
}

int text_find(const char *const *words, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

int text_distance(const char *a, const char *b)
{
    enum { LONGEST = 100 };
    int row[LONGEST + 1];
    int n = (int)strnlen(b, LONGEST);

    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; i <= LONGEST && a[i - 1] != '\0'; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= n; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            int best = diagonal + !same;

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

bool text_is_nearer(const char *typed, const char *word, int *limit)
{
    int d = text_distance(typed, word);

    if (d > *limit)
        return false;
    *limit = d - 1;
    return true;
}

const char *text_nearest(const char *typed, const char *const *words, int limit)
{
    const char *best = NULL;

    for (int i = 0; words[i] != NULL; i++)
        if (text_is_nearer(typed, words[i], &limit))
            best = words[i];
    return best;
}

/* sacct_text.c - times, durations and lists of nodes as Slurm writes them. */
#include "sim/history/sacct.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "sim/trace/import.h"

bool sacct_digits(struct slice s, long *out)
{
    if (s.len == 0 || s.len > 9)
        return false;
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!isdigit((unsigned char)s.at[i]))
            return false;
        *out = 10 * *out + (s.at[i] - '0');
    }
    return true;
}

bool sacct_is_nothing(struct slice s)
{
    return s.len == 0 || slice_is(s, "Unknown") || slice_is(s, "None");
}

/* ---- times ---- */

int sacct_time(struct slice s, double *out)
{
    struct tm tm, day;

    *out = NAN;
    if (sacct_is_nothing(s))
        return 0;
    if (s.len >= 9 && s.len <= 11)    // SLURM_TIME_FORMAT=%s
        return text_to_double(s, out) == 0 && *out >= 0 ? 0 : -EINVAL;
    if (!trace_calendar(s, &tm))
        return -EINVAL;
    day = (struct tm){ .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday };
    timegm(&day);    // which makes March of the 30th of February
    if (day.tm_mday != tm.tm_mday)
        return -EINVAL;
    *out = (double)timegm(&tm);
    return 0;
}

int sacct_elapsed(struct slice s, double *out)
{
    struct slice rest = s, part;
    long days = 0, v, sum = 0;
    int n = 0;

    *out = NAN;
    if (s.len > 0 && memchr(s.at, '-', s.len) != NULL && trace_cut(&rest, '-', &part) &&
        !sacct_digits(part, &days))
        return -EINVAL;
    while (trace_cut(&rest, ':', &part)) {
        if (rest.at == NULL) {    // the last one may have a fraction, which nobody needs
            struct slice whole;

            trace_cut(&part, '.', &whole);
            part = whole;
        }
        if (!sacct_digits(part, &v) || ++n > 3)
            return -EINVAL;
        sum = 60 * sum + v;
    }
    if (n < 2 || (days > 0 && n < 3))
        return -EINVAL;
    *out = (double)days * 86400 + (double)sum;
    return 0;
}

/* ---- nodes ---- */

/* Names in the making: each of them gets what comes next. */
struct hosts {
    struct arena *arena;
    const char **names;
    int n;
};

/* The names 'from' on, once for each of [low, high], written as wide as the first number is. */
static int add_range(struct hosts *h, const struct hosts *from, struct slice range)
{
    struct slice first, last = { NULL, 0 };
    long low, high;

    trace_cut(&range, '-', &first);
    if (!sacct_digits(first, &low))
        return -EINVAL;
    high = low;
    if (trace_cut(&range, '-', &last) &&
        (!sacct_digits(last, &high) || range.at != NULL || high < low))
        return -EINVAL;
    if ((high - low + 1) * from->n > SACCT_NODES_MAX - h->n)
        return -EINVAL;
    for (int i = 0; i < from->n; i++) {
        for (long v = low; v <= high; v++)
            h->names[h->n++] = arena_printf(h->arena, "%s%0*ld", from->names[i], (int)first.len, v);
    }
    return 0;
}

/* "gpu[001-003,7]x" as names, added to 'h'. */
static int add_host(struct hosts *h, struct slice s)
{
    struct hosts now = { h->arena, ARENA_ARRAY(h->arena, const char *, 1), 1 };

    now.names[0] = "";
    while (s.len > 0) {
        const char *open = memchr(s.at, '[', s.len);
        const char *close = open != NULL ? memchr(open, ']', (size_t)(s.at + s.len - open)) : NULL;
        size_t plain = open != NULL ? (size_t)(open - s.at) : s.len;
        struct hosts more = { h->arena, NULL, 0 };
        struct slice inner, range;

        if ((open != NULL && close == NULL) || memchr(s.at, ']', plain) != NULL)
            return -EINVAL;
        for (int i = 0; i < now.n; i++)
            now.names[i] = arena_printf(h->arena, "%s%.*s", now.names[i], (int)plain, s.at);
        if (open == NULL)
            break;
        more.names = ARENA_ARRAY(h->arena, const char *, SACCT_NODES_MAX);
        inner = (struct slice){ open + 1, (size_t)(close - open - 1) };
        while (trace_cut(&inner, ',', &range)) {
            if (add_range(&more, &now, range) < 0)
                return -EINVAL;
        }
        now = more;
        s = (struct slice){ close + 1, (size_t)(s.at + s.len - close - 1) };
    }
    if (now.n > SACCT_NODES_MAX - h->n)
        return -EINVAL;
    for (int i = 0; i < now.n; i++) {
        if (!text_is_name(slice_of(now.names[i])))
            return -EINVAL;
        h->names[h->n++] = now.names[i];
    }
    return 0;
}

/* Where the name that begins at 's' ends: at a comma outside brackets. */
static size_t host_length(struct slice s)
{
    bool is_inside = false;

    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] == '[')
            is_inside = true;
        else if (s.at[i] == ']')
            is_inside = false;
        else if (s.at[i] == ',' && !is_inside)
            return i;
    }
    return s.len;
}

int sacct_hosts(struct arena *a, struct slice list, const char *const **names, int *n)
{
    struct hosts h = { a, NULL, 0 };
    struct arena scratch;
    int rc = 0;

    arena_init(&scratch);
    h.arena = &scratch;
    h.names = ARENA_ARRAY(&scratch, const char *, SACCT_NODES_MAX);
    for (bool is_more = true; is_more && rc == 0;) {
        size_t len = host_length(list);

        rc = add_host(&h, (struct slice){ list.at, len });
        is_more = len < list.len;
        if (is_more)
            list = (struct slice){ list.at + len + 1, list.len - len - 1 };
    }
    *n = rc == 0 ? h.n : 0;
    const char **kept = ARENA_ARRAY(a, const char *, (size_t)*n);
    for (int i = 0; i < *n; i++)
        kept[i] = arena_strdup(a, h.names[i]);
    *names = kept;
    arena_release(&scratch);
    return rc;
}

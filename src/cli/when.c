#include "cli/when.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/text.h"

#define TIME_MAX 4e9    // the year 2096; beyond it is a slip

double when_now(void)
{
    struct clock c = clock_real();

    return clock_now_s(&c);
}

/* ---- reading ---- */

/* The unit that 'p' begins with, in seconds, and its length; NaN: none. */
static double unit_of(const char *p, size_t *len)
{
    static const char names[] = "smhd";
    static const double seconds[] = { 1, 60, 3600, 86400 };
    const char *at = *p != '\0' ? strchr(names, *p) : NULL;

    *len = strncmp(p, "ms", 2) == 0 ? 2 : 1;
    if (*len == 2)
        return 1e-3;
    return at != NULL ? seconds[at - names] : (double)NAN;
}

/* Numbers with their units, one after the other; a lone number is in seconds. */
static bool read_duration(const char *p, double *out_s)
{
    double sum = 0;

    if (text_to_double(slice_of(p), out_s) == 0)
        return *out_s >= 0;
    while (*p != '\0') {
        size_t len = strspn(p, "0123456789."), unit_len;
        double v, unit = unit_of(p + len, &unit_len);

        if (text_to_double((struct slice){ p, len }, &v) < 0 || isnan(unit))
            return false;
        sum += v * unit;
        p += len + unit_len;
    }
    *out_s = sum;
    return true;
}

int when_duration(const char *text, double *out_s, struct err *e)
{
    if (text[0] != '\0' && read_duration(text, out_s))
        return 0;
    return err_set(e, EINVAL, "'%s' is no duration; want seconds, or 200ms, 90s, 5m, 2h, 1d12h",
                   text);
}

static double of_parts(struct tm *tm, bool is_utc)
{
    time_t t;

    tm->tm_isdst = -1;
    t = is_utc ? timegm(tm) : mktime(tm);
    return t == (time_t)-1 ? (double)NAN : (double)t;
}

/* "2026-11-16[ 18:00[:30][Z]]"; strptime takes what is there. */
static bool read_date(const char *text, double *out_s)
{
    static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                         "%Y-%m-%dT%H:%M", "%Y-%m-%d" };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = { 0 };
        const char *rest = strptime(text, forms[i], &tm);
        bool is_utc = rest != NULL && strcmp(rest, "Z") == 0;

        if (rest == NULL || (*rest != '\0' && !is_utc))
            continue;
        *out_s = of_parts(&tm, is_utc);
        return !isnan(*out_s);
    }
    return false;
}

/* "18:00" of today, or of tomorrow where it must lie ahead and today's is over. */
static bool read_clock(const char *text, double now_s, bool is_ahead, double *out_s)
{
    time_t now = (time_t)now_s;
    struct tm given = { 0 }, day;
    const char *rest = strptime(text, "%H:%M", &given);

    if (rest != NULL && *rest == ':')
        rest = strptime(text, "%H:%M:%S", &given);
    if (rest == NULL || *rest != '\0' || localtime_r(&now, &day) == NULL)
        return false;
    day.tm_hour = given.tm_hour;
    day.tm_min = given.tm_min;
    day.tm_sec = given.tm_sec;
    *out_s = of_parts(&day, false);
    if (is_ahead && *out_s <= now_s) {
        day.tm_mday++;
        *out_s = of_parts(&day, false);
    }
    return !isnan(*out_s);
}

static bool read_time(const char *text, double now_s, bool is_ahead, double *out_s)
{
    double by_s;

    if (strcmp(text, "now") == 0) {
        *out_s = now_s;
        return true;
    }
    if ((text[0] == '+' || text[0] == '-') && text[1] != '\0' && read_duration(text + 1, &by_s)) {
        *out_s = text[0] == '+' ? now_s + by_s : now_s - by_s;
        return true;
    }
    return read_date(text, out_s) || read_clock(text, now_s, is_ahead, out_s) ||
           (text_to_double(slice_of(text), out_s) == 0 && *out_s >= 1e8);
}

int when_time(const char *text, double now_s, bool is_ahead, double *out_s, struct err *e)
{
    if (read_time(text, now_s, is_ahead, out_s) && *out_s >= 0 && *out_s < TIME_MAX)
        return 0;
    return err_set(e, EINVAL,
                   "'%s' is no time; want \"2026-11-16 18:00\", 18:00, +2h, -7d or seconds since "
                   "1970",
                   text);
}

/* ---- writing ---- */

const char *when_text(struct arena *a, double duration_s)
{
    double s = fabs(duration_s);
    const char *sign = duration_s < 0 ? "-" : "";

    if (!isfinite(s))
        return "-";
    if (s < 9.95)
        return arena_printf(a, "%s%.1f s", sign, s);
    if (s < 59.5)
        return arena_printf(a, "%s%.0f s", sign, s);
    if (s < 3599.5)
        return arena_printf(a, "%s%d min %02d s", sign, (int)round(s) / 60, (int)round(s) % 60);
    if (s < 86370)
        return arena_printf(a, "%s%d h %02d min", sign, (int)round(s / 60) / 60,
                            (int)round(s / 60) % 60);
    return arena_printf(a, "%s%.0f d %02d h", sign, floor(round(s / 3600) / 24),
                        (int)fmod(round(s / 3600), 24));
}

const char *when_clock(struct arena *a, double time_s, double now_s)
{
    char text[64], today[64];
    struct tm tm, now;
    time_t t = (time_t)time_s, n = (time_t)now_s;

    if (!isfinite(time_s) || localtime_r(&t, &tm) == NULL)
        return "-";
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    if (isfinite(now_s) && localtime_r(&n, &now) != NULL) {
        strftime(today, sizeof today, "%Y-%m-%d", &now);
        if (strncmp(text, today, 10) == 0)
            return arena_strdup(a, text + 11);
    }
    return arena_strdup(a, text);
}

#include "monitor/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text/text.h"

/* Up to the next blank or the end; moves '*at' behind the blank. */
static struct slice take_word(const char **at, const char *end)
{
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));
    struct slice word = { *at, (size_t)((blank ? blank : end) - *at) };

    *at = blank ? blank + 1 : end;
    return word;
}

/* A whole number without a sign. */
static bool to_whole(struct slice s, long most, long *out)
{
    return s.len > 0 && s.at[0] >= '0' && text_to_long(s, 0, most, out) == 0;
}

static bool take_whole(const char **at, const char *end, int *out)
{
    long v;

    if (!to_whole(take_word(at, end), INT_MAX, &v))
        return false;
    *out = (int)v;
    return true;
}

/* A job's number, or "s" and the number of a Slurm job. */
static bool take_job(const char **at, const char *end, struct job_report *out)
{
    int slurm_id;

    if (*at == end || **at != 's')
        return take_whole(at, end, &out->job);
    out->job = -1;
    ++*at;
    if (!take_whole(at, end, &slurm_id) || slurm_id == 0)
        return false;
    out->slurm_id = slurm_id;
    return true;
}

static bool is_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
            return false;
    }
    return true;
}

static bool take_secret(const char **at, const char *end, const char **out)
{
    if (end - *at <= REPORT_SECRET_BYTES || (*at)[REPORT_SECRET_BYTES] != ' ' ||
        !is_hex(*at, REPORT_SECRET_BYTES))
        return false;
    *out = *at;
    *at += REPORT_SECRET_BYTES + 1;
    return true;
}

/* Nearly all counts are whole and short: fifteen digits are exact in a double. */
static bool to_steps(struct slice s, double *out)
{
    long v;

    if (s.len <= 15 && to_whole(s, LONG_MAX, &v)) {
        *out = (double)v;
        return true;
    }
    return text_to_double(s, out) == 0 && *out >= 0;
}

static bool take_keys(const char *at, const char *end, struct job_report *out)
{
    while (at < end) {
        struct slice word = take_word(&at, end);
        const char *equals = memchr(word.at, '=', word.len);

        if (!equals || equals == word.at)
            return false;
        if (slice_is(word, "unfit=1"))
            out->is_unfit = true;
    }
    return true;
}

int job_report_parse(const char *bytes, size_t len, struct job_report *out)
{
    static const char form[] = "gogh1 ";
    const size_t n_form = sizeof form - 1;

    *out = (struct job_report){ 0 };
    if (len > 0 && len <= REPORT_BYTES_MAX && bytes[len - 1] == '\n')
        len--;
    if (len > REPORT_BYTES_MAX || len < n_form || memcmp(bytes, form, n_form) != 0)
        return -EINVAL;
    const char *at = bytes + n_form, *end = bytes + len;
    if (!take_job(&at, end, out) || !take_whole(&at, end, &out->run) ||
        !take_secret(&at, end, &out->secret) || !to_steps(take_word(&at, end), &out->steps) ||
        !take_keys(at, end, out))
        return -EINVAL;
    return 0;
}

bool job_report_is_signed(const struct job_report *r, const char *secret)
{
    unsigned char differs = 0;

    for (int i = 0; i < REPORT_SECRET_BYTES; i++)
        differs |= (unsigned char)(r->secret[i] ^ secret[i]);
    return differs == 0;
}

#include "monitor/report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

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

/* ---- keys ---- */

/* "<bin_ms>:<counts>"; the counts are looked at by whoever wants them. */
static bool to_arrivals(struct slice s, struct job_report *out)
{
    const char *colon = memchr(s.at, ':', s.len);
    double bin_ms;

    if (!colon || text_to_double((struct slice){ s.at, (size_t)(colon - s.at) }, &bin_ms) != 0 ||
        !(bin_ms >= 0.1 && bin_ms <= 60e3))
        return false;
    out->bin_s = bin_ms / 1e3;
    out->counts = (struct slice){ colon + 1, (size_t)(s.at + s.len - colon) - 1 };
    return out->counts.len > 0;
}

static bool to_ready(struct slice s, int *out)
{
    *out = slice_is(s, "1");
    return *out || slice_is(s, "0");
}

/* False: a key that we know, with a value that it cannot have. */
static bool take_key(struct slice key, struct slice value, struct job_report *out)
{
    if (slice_is(key, "unfit"))
        out->is_unfit |= slice_is(value, "1");
    else if (slice_is(key, "arr"))
        return to_arrivals(value, out);
    else if (slice_is(key, "late"))
        return to_steps(value, &out->late);
    else if (slice_is(key, "q"))
        return to_steps(value, &out->queued);
    else if (slice_is(key, "b"))
        return to_steps(value, &out->batches);
    else if (slice_is(key, "busy"))
        return to_steps(value, &out->busy_s);
    else if (slice_is(key, "ready"))
        return to_ready(value, &out->ready);
    return true;
}

static bool take_keys(const char *at, const char *end, struct job_report *out)
{
    while (at < end) {
        struct slice word = take_word(&at, end);
        const char *equals = memchr(word.at, '=', word.len);

        if (!equals || equals == word.at)
            return false;
        const size_t n = (size_t)(equals - word.at);
        if (!take_key((struct slice){ word.at, n }, (struct slice){ equals + 1, word.len - n - 1 },
                      out))
            return false;
    }
    return true;
}

bool job_report_serves(const struct job_report *r)
{
    return r->ready >= 0 || r->bin_s > 0 || !isnan(r->late) || !isnan(r->queued) ||
           !isnan(r->batches) || !isnan(r->busy_s);
}

/* Digits up to 'end' or a comma, at most 'most'; -1: no such number. */
static long take_count(const char **at, const char *end, long most)
{
    const char *first = *at;
    long v = 0;

    for (; *at < end && **at >= '0' && **at <= '9' && v <= most; ++*at)
        v = 10 * v + (**at - '0');
    return *at == first || v > most || (*at < end && **at != ',') ? -1 : v;
}

/* "3,0,z12,1": a count a bin, and "z12" for twelve of nothing. */
int job_report_bins(const struct job_report *r, unsigned *out)
{
    const char *at = r->counts.at, *end = at + r->counts.len;
    int n = 0;

    for (; at < end; at++) {
        const bool is_run = *at == 'z';
        at += is_run;
        const long v = take_count(&at, end, is_run ? REPORT_BINS_MAX : REPORT_BIN_MOST);
        const long n_more = is_run ? v : 1;

        if (v < 0 || n_more < 1 || n_more > REPORT_BINS_MAX - n || (at < end && at + 1 == end))
            return -EINVAL;
        for (long i = 0; i < n_more; i++)
            out[n++] = is_run ? 0 : (unsigned)v;
    }
    return n;
}

/* ---- the whole ---- */

int job_report_parse(const char *bytes, size_t len, struct job_report *out)
{
    static const char form[] = "gogh1 ";
    const size_t n_form = sizeof form - 1;

    *out = (struct job_report){
        .ready = -1, .late = NAN, .queued = NAN, .batches = NAN, .busy_s = NAN
    };
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

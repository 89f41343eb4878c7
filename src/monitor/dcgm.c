#include "monitor/dcgm.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/text.h"

enum metric { METRIC_OTHER, METRIC_WATTS, METRIC_MILLIJOULES };

/* One line, taken apart. */
struct sample {
    enum metric metric;
    struct dcgm_gpu of;
    double value;
};

static struct slice rest_of(struct slice s, size_t from)
{
    return (struct slice){ s.at + from, s.len - from };
}

static enum metric take_metric(struct slice *line)
{
    const char *brace = memchr(line->at, '{', line->len);
    struct slice name = { line->at, brace ? (size_t)(brace - line->at) : 0 };

    if (!brace)
        return METRIC_OTHER;
    *line = rest_of(*line, name.len + 1);
    return slice_is(name, "DCGM_FI_DEV_POWER_USAGE")                ? METRIC_WATTS
           : slice_is(name, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION") ? METRIC_MILLIJOULES
                                                                    : METRIC_OTHER;
}

/* 'key="value"' and what parts it from the next; \ keeps a quote inside. False: not of the form. */
static bool take_label(struct slice *line, struct slice *key, struct slice *value)
{
    const char *equals = memchr(line->at, '=', line->len);
    size_t i;

    if (!equals)
        return false;
    *key = slice_trim((struct slice){ line->at, (size_t)(equals - line->at) });
    *line = rest_of(*line, (size_t)(equals - line->at) + 1);
    if (line->len == 0 || line->at[0] != '"')
        return false;
    for (i = 1; i < line->len && line->at[i] != '"'; i++)
        i += line->at[i] == '\\';
    if (i >= line->len)
        return false;
    *value = (struct slice){ line->at + 1, i - 1 };
    *line = slice_trim(rest_of(*line, i + 1));
    if (line->len > 0 && line->at[0] == ',')
        *line = slice_trim(rest_of(*line, 1));
    return true;
}

static bool take_labels(struct slice *line, struct dcgm_gpu *out)
{
    struct slice key, value;
    long index;

    while (line->len > 0 && line->at[0] != '}') {
        if (!take_label(line, &key, &value))
            return false;
        if (slice_is(key, "gpu") && text_to_long(value, 0, INT_MAX, &index) == 0)
            out->index = (int)index;
        else if (slice_is(key, "UUID") && value.len < sizeof out->uuid)
            memcpy(out->uuid, value.at, value.len);
        else if (slice_is(key, "Hostname") && value.len < sizeof out->host)
            memcpy(out->host, value.at, value.len);
    }
    if (line->len == 0)
        return false;
    *line = slice_trim(rest_of(*line, 1));
    return true;
}

static bool read_line(struct slice line, struct sample *out)
{
    *out = (struct sample){ .of = { .index = -1, .watts = NAN, .joules = NAN } };
    out->metric = take_metric(&line);
    if (out->metric == METRIC_OTHER || !take_labels(&line, &out->of))
        return false;
    const char *blank = line.len > 0 ? memchr(line.at, ' ', line.len) : NULL;
    if (blank)    // a time of its own may follow
        line.len = (size_t)(blank - line.at);
    return text_to_double(line, &out->value) == 0 && out->value >= 0 &&
           (out->of.index >= 0 || out->of.uuid[0] != '\0');
}

/* Not every line tells the host. */
static bool is_one_host(const char *a, const char *b)
{
    return !*a || !*b || strcmp(a, b) == 0;
}

static struct dcgm_gpu *find(struct dcgm_gpu *gpus, int n, const struct dcgm_gpu *like)
{
    for (int i = 0; i < n; i++) {
        if (gpus[i].index == like->index && strcmp(gpus[i].uuid, like->uuid) == 0 &&
            is_one_host(gpus[i].host, like->host))
            return &gpus[i];
    }
    return NULL;
}

int dcgm_parse(const char *text, size_t len, struct dcgm_gpu *out, int max)
{
    int n = 0;

    for (size_t at = 0, end; at < len; at = end + 1) {
        const char *newline = memchr(text + at, '\n', len - at);
        struct sample s;

        end = newline ? (size_t)(newline - text) : len;
        if (!read_line((struct slice){ text + at, end - at }, &s))
            continue;
        struct dcgm_gpu *g = find(out, n, &s.of);
        if (!g && n == max)
            continue;
        if (!g) {
            g = &out[n++];
            *g = s.of;
        }
        if (s.metric == METRIC_WATTS && isnan(g->watts))
            g->watts = s.value;
        else if (s.metric == METRIC_MILLIJOULES && isnan(g->joules))
            g->joules = s.value / 1000;
    }
    return n;
}

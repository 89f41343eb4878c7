#include "monitor/dcgm.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/text/text.h"
#include "monitor/pages/exposition.h"

static struct slice rest_of(struct slice s, size_t from)
{
    return (struct slice){ s.at + from, s.len - from };
}

static bool take_labels(struct slice *line, struct dcgm_gpu *out)
{
    struct slice key, value;
    long index;

    while (line->len > 0 && line->at[0] != '}') {
        if (!exposition_label(line, &key, &value))
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

/* What is read, and what makes our units of it. */
static const struct dcgm_metric {
    const char *name;
    size_t offset;    // of a double in struct dcgm_gpu
    double scale;
} metrics[] = {
    { "DCGM_FI_DEV_POWER_USAGE", offsetof(struct dcgm_gpu, watts), 1 },
    { "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", offsetof(struct dcgm_gpu, joules), 1e-3 },
    { "DCGM_FI_DEV_GPU_UTIL", offsetof(struct dcgm_gpu, use.gpu), 1e-2 },
    { "DCGM_FI_DEV_MEM_COPY_UTIL", offsetof(struct dcgm_gpu, use.mem), 1e-2 },
    { "DCGM_FI_DEV_FB_USED", offsetof(struct dcgm_gpu, use.mem_bytes), 1048576 },
};

enum { N_METRICS = sizeof metrics / sizeof *metrics };

static double *figure_of(struct dcgm_gpu *g, int metric)
{
    return (double *)(void *)((char *)g + metrics[metric].offset);
}

static int find_metric(struct slice name)
{
    int i = 0;

    while (i < N_METRICS && !slice_is(name, metrics[i].name))
        i++;
    return i;
}

/* One line, taken apart: of what is told of a GPU, one figure. */
static bool read_line(struct slice line, struct dcgm_gpu *out)
{
    const char *brace = memchr(line.at, '{', line.len);
    struct slice metric = { line.at, brace ? (size_t)(brace - line.at) : 0 };
    const int told = find_metric(metric);
    double value;

    *out = (struct dcgm_gpu){ .index = -1 };
    for (int i = 0; i < N_METRICS; i++)
        *figure_of(out, i) = NAN;
    if (told == N_METRICS)
        return false;
    line = rest_of(line, metric.len + 1);
    if (!take_labels(&line, out))
        return false;
    const char *blank = line.len > 0 ? memchr(line.at, ' ', line.len) : NULL;
    if (blank)    // a time of its own may follow
        line.len = (size_t)(blank - line.at);
    if (text_to_double(line, &value) < 0 || !(value >= 0))
        return false;
    *figure_of(out, told) = value * metrics[told].scale;
    return out->index >= 0 || out->uuid[0] != '\0';
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
        struct dcgm_gpu told;

        end = newline ? (size_t)(newline - text) : len;
        if (!read_line((struct slice){ text + at, end - at }, &told))
            continue;
        struct dcgm_gpu *g = find(out, n, &told);
        if (!g && n < max)
            out[n++] = told;
        if (!g)
            continue;
        for (int i = 0; i < N_METRICS; i++)
            if (isnan(*figure_of(g, i)))
                *figure_of(g, i) = *figure_of(&told, i);
    }
    return n;
}

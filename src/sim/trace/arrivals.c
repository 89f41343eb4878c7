#include "sim/trace/arrivals.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "serve/continuous.h"
#include "serve/traffic.h"
#include "sim/trace/import.h"
#include "sim/trace/trace.h"

#define FILE_MAX ((size_t)1 << 30)    // some 60 million times
#define TOKENS_MAX 100000000          // of a request, as azure_read has it
#define DIURNAL_PEAK_H 14

struct service_arrivals {
    const struct trace_service *service;
    double end_s;    // INFINITY: none
    struct traffic traffic;
    bool is_listed;
    int n, next;
    struct llm_request *requests;    // (n) of a file
};

static struct traffic_spec spec_of(const struct trace_service *s)
{
    struct traffic_spec spec = { .rate = s->rate, .clump = 1, .spell = 1, .client_clump = 1 };
    struct rng r;

    if (strcmp(s->traffic, "diurnal") == 0) {
        spec.day = 0.5;
        spec.peak_h = DIURNAL_PEAK_H;
    } else if (strcmp(s->traffic, "drawn") == 0) {
        rng_init(&r, (uint64_t)s->seed, "traffic of a service");
        spec = traffic_draw(&r, s->rate);
    }
    return spec;
}

/* Where a file is that the trace names. */
static const char *path_of(struct arena *a, const char *trace, const char *file)
{
    const char *slash = strrchr(trace, '/');

    if (file[0] == '/' || slash == NULL)
        return file;
    return arena_printf(a, "%.*s/%s", (int)(slash - trace), trace, file);
}

/* "TIME" or "TIME PROMPT OUTPUT"; false: it is neither. */
static bool read_request(struct slice line, struct llm_request *out)
{
    struct slice word[4];
    long prompt = LLM_PROMPT_USUAL, output = LLM_OUTPUT_USUAL;
    int n = 0;

    while (n < 4 && trace_cut(&line, ' ', &word[n]))
        n++;
    if ((n != 1 && n != 3) || text_to_double(word[0], &out->at_s) < 0 ||
        (n == 3 && (text_to_long(word[1], 1, TOKENS_MAX, &prompt) < 0 ||
                    text_to_long(word[2], 1, TOKENS_MAX, &output) < 0)))
        return false;
    out->prompt = (int)prompt;
    out->output = (int)output;
    return true;
}

/* One request a line, in order, its time from the service's beginning. */
static int read_requests(struct arena *a, const char *path, struct service_arrivals *r,
                         struct err *e)
{
    const char *text;
    double last_s = 0;
    size_t len;
    int cap = 0, line = 0, rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);
    struct slice one;

    while (rc == 0 && slice_next(&text, '\n', &one)) {
        struct llm_request q;

        line++;
        if (one.len == 0)
            continue;
        if (!read_request(one, &q) || q.at_s < last_s || q.at_s > 1e12)
            return err_set(e, EINVAL,
                           "%s:%d: want a time in seconds, not before the one above it, alone or "
                           "with the tokens of prompt and answer: '12.5 900 120'",
                           path, line);
        last_s = q.at_s;
        q.at_s += r->service->at_s;
        ARENA_GROW(a, r->requests, r->n, cap);
        r->requests[r->n++] = q;
    }
    r->end_s = fmin(r->end_s, nextafter(r->service->at_s + last_s, INFINITY));
    return rc;
}

int service_arrivals_open(struct arena *a, const char *trace, const struct trace_service *s,
                          struct service_arrivals **out, struct err *e)
{
    struct service_arrivals *r = ARENA_ARRAY(a, struct service_arrivals, 1);

    *out = r;
    r->service = s;
    r->end_s = isnan(s->end_s) ? (double)INFINITY : s->end_s;
    r->is_listed = s->arrivals != NULL;
    if (r->is_listed)
        return read_requests(a, path_of(a, trace, s->arrivals), r, e);
    const struct traffic_spec spec = spec_of(s);
    traffic_init(&r->traffic, &spec, (uint64_t)s->seed);
    return 0;
}

static struct llm_request draw_request(struct service_arrivals *r)
{
    return (struct llm_request){ traffic_next(&r->traffic), LLM_PROMPT_USUAL, LLM_OUTPUT_USUAL };
}

int service_arrivals_next(void *self, struct llm_request *out, int n)
{
    struct service_arrivals *r = self;
    int got = 0;

    while (got < n) {
        if (r->is_listed && r->next == r->n)
            break;
        const struct llm_request q = r->is_listed ? r->requests[r->next++] : draw_request(r);
        if (q.at_s >= r->end_s) {
            r->is_listed = true;    // and nothing is left of it
            r->next = r->n;
            break;
        }
        if (q.at_s >= r->service->at_s)
            out[got++] = q;
    }
    return got;
}

double service_arrivals_end_s(const struct service_arrivals *r)
{
    return r->end_s;
}

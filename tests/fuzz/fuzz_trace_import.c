/* fuzz_trace_import.c - other people's traces survive any bytes; the first byte says whose. */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "sim/ground.h"
#include "sim/trace/generate.h"
#include "sim/trace/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int import(struct arena *a, char whose, struct trace_import *in, struct trace *t,
                  struct err *e)
{
    switch (whose) {
    case 'p':
        return trace_import_philly(a, in, t, e);
    case 'a':
        return trace_import_alibaba(a, in, t, e);
    default:
        return trace_import_gavel(a, in, t, e);
    }
}

/* What was imported must be a trace that we read ourselves. */
static void read_back(struct arena *a, const struct trace *t)
{
    struct trace again;
    struct buf b;
    struct err e = { 0 };

    buf_init(&b, (size_t)1 << 26);
    assert(trace_write(t, &b) == 0);
    assert(trace_parse(a, "again", buf_text(&b), b.len, &again, &e) == 0);
    assert(again.n_jobs == t->n_jobs);
    buf_release(&b);
}

/* The same of Azure's, whose service is read back. */
static int import_azure(struct arena *a, const struct trace_import *in, struct err *e)
{
    struct trace_service s = { .name = "azure",
                               .workload = "llama-8b",
                               .ttft_s = 2,
                               .tpot_s = 0.1,
                               .max_batch = 32,
                               .max_gpus = 1,
                               .load_s = 120,
                               .arrivals = "requests" };
    struct buf b;

    buf_init(&b, (size_t)1 << 26);
    const int rc = trace_import_azure(a, in, &s, &b, e);
    if (rc == 0)
        read_back(a, &(struct trace){ .n_services = 1, .services = &s });
    buf_release(&b);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ground ground;
    static int is_ready;
    struct trace_import in = { .name = "f", .text = (const char *)data + 1, .len = size - 1 };
    struct trace_draw draw;
    struct arena a;
    struct err e = { 0 };
    struct trace t;
    struct buf b;

    if (size == 0)
        return 0;
    if (!is_ready)
        is_ready = ground_builtin(&ground, NULL, NULL, NULL, 1, &e) == 0;
    arena_init(&a);
    assert(trace_draw_init(&draw, &a, &ground.truth, NULL, "p100", 1, &e) == 0);
    in.draw = &draw;
    if (data[0] == 'n') {
        buf_init(&b, (size_t)1 << 26);
        cluster_import_alibaba(&a, "f", in.text, in.len, &b, &e);
        buf_release(&b);
    } else if (data[0] == 'z') {
        assert(import_azure(&a, &in, &e) == 0 || e.text[0] != '\0');
    } else if (import(&a, (char)data[0], &in, &t, &e) == 0) {
        read_back(&a, &t);
    } else {
        assert(e.text[0] != '\0');
    }
    arena_release(&a);
    return 0;
}

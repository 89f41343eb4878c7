/* fuzz_trace.c - traces survive any bytes, and what was read is written and read again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "sim/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace t, again;
    struct buf first, second;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    buf_init(&first, (size_t)1 << 26);
    buf_init(&second, (size_t)1 << 26);
    if (trace_parse(&a, "f", (const char *)data, size, &t, &e) == 0) {
        assert(trace_write(&t, &first) == 0);
        assert(trace_parse(&a, "f", buf_text(&first), first.len, &again, &e) == 0);
        assert(trace_write(&again, &second) == 0);
        assert(strcmp(buf_text(&first), buf_text(&second)) == 0);
    } else {
        assert(e.text[0] != '\0');
    }
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
    return 0;
}

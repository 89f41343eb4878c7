/* fuzz_slurm_wire.c - any line is refused or read, and what was read is written and read back the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    struct wire_message m, again;
    struct err e = { 0 };
    struct arena a;
    struct buf b;

    if (!line)
        abort();
    arena_init(&a);
    buf_init(&b, 8 * WIRE_LINE_MAX);
    if (size)
        memcpy(line, data, size);
    if (wire_read(&a, line, size, &m, &e) == 0) {
        wire_begin(&b, m.seq, m.verb);
        for (int i = 0; i < m.n_pairs; i++)
            wire_put(&b, m.pairs[i].key, m.pairs[i].value);
        wire_end(&b);
        assert(wire_read(&a, b.data, b.len - 1, &again, &e) == 0);
        assert(again.seq == m.seq && strcmp(again.verb, m.verb) == 0);
        assert(again.n_pairs == m.n_pairs);
        for (int i = 0; i < m.n_pairs; i++)
            assert(strcmp(again.pairs[i].value, m.pairs[i].value) == 0);
    } else {
        assert(e.text[0]);
    }
    buf_release(&b);
    arena_release(&a);
    free(line);
    return 0;
}

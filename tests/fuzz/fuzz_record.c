/* Any bytes as a record of a daemon: read, or refused with a line. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "sim/rerun/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct rerun_entries all;
    struct err e = { 0 };

    arena_init(&a);
    rerun_read(&a, "fuzz", (const char *)data, size, &all, &e);
    arena_release(&a);
    return 0;
}

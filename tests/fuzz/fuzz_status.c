/* fuzz_status.c - the status of a run survives any bytes, and lines that are not whole do not count. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "act/local/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size ? memrchr(text, '\n', size) : NULL;
    struct status all, whole;

    status_parse(text, size, &all);
    status_parse(text, end ? (size_t)(end - text) + 1 : 0, &whole);
    assert(memcmp(&all, &whole, sizeof all) == 0);
    assert(!all.is_taken || (all.keeper_pid > 0 && strlen(all.boot) == BOOT_ID_SIZE - 1));
    assert(!all.is_started || all.pid > 0);
    assert(all.code >= 0 && all.code <= 255 && memchr(all.text, 0, sizeof all.text));
    return 0;
}

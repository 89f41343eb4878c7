/* fuzz_descriptors.c - any bytes as a CSV of workload descriptors. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"
#include "catalog/import/descriptors.h"
#include "catalog/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct descriptors found;
    struct workload w;
    struct arena a;
    struct err e;

    if (!text_is_utf8(text, size, NULL))    // files are read as text: nothing else gets here
        return 0;
    arena_init(&a);
    if (descriptors_read(&a, "input", text, size, &found, &e) == 0)
        descriptors_apply(&a, &found, "ResNet-18 (batch size 16)", &w);
    descriptors_release(&found);
    arena_release(&a);
    return 0;
}

/* fuzz_import_csv.c - any bytes as a CSV of measurements. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text/text.h"
#include "catalog/import/draft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct draft_text in = { "input", (const char *)data, size };
    struct draft d;
    struct err e;

    if (!text_is_utf8(in.text, in.len, NULL))    // files are read as text: nothing else gets here
        return 0;
    draft_init(&d);
    csv_read(&d, &in, NULL, &e);
    draft_release(&d);
    return 0;
}

/* fuzz_import_published.c - any bytes as one of the published data sets; the first says which. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text/text.h"
#include "catalog/import/draft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_any(struct draft *d, char which, const struct draft_text *in, struct err *e)
{
    static draft_read_f *const readers[] = { neusight_read, parvagpu_read,
                                             pollux_read,   pytorch_gpu_benchmark_read,
                                             miso_read,     mlenergy_read };
    const unsigned n = sizeof readers / sizeof *readers;
    unsigned i = (unsigned char)which % (n + 2);

    if (i == n)
        return miso_read_power(d, in, e);
    return i > n ? elasticflow_read(d, "bert", in, e) : readers[i](d, in, NULL, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct draft_text in = { "input", (const char *)data + 1, size - 1 };
    struct draft d;
    struct err e;

    if (size == 0 || !text_is_utf8(in.text, in.len, NULL))    // files are read as text
        return 0;
    draft_init(&d);
    draft_begin_part(&d, "fuzz", "input");
    if (read_any(&d, (char)data[0], &in, &e) == 0)
        draft_check(&d, &e);    // what was read is what a catalog takes
    draft_release(&d);
    return 0;
}

/* fuzz_import_gavel.c - any bytes as Gavel's throughputs, alone and against themselves. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "catalog/import/draft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct draft_text in = { "input", (const char *)data, size };
    struct err e;

    log_set_level(LOG_ERROR);
    for (int round = 0; round < 2; round++) {
        struct draft d;

        draft_init(&d);
        if (gavel_read(&d, &in, round == 1 ? &in : NULL, NULL, &e) == 0) {
            struct import_report report;
            struct catalog c;

            catalog_init(&c);
            draft_begin_part(&d, "fuzz", "input");
            d.part[0].first_row = 0;
            d.part[0].n_rows = d.n_rows;
            draft_commit(&d, &c, 0, NULL, &report, &e);
            catalog_release(&c);
        }
        draft_release(&d);
    }
    return 0;
}

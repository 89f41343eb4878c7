/* Any bytes are a table or an error that says where; never anything else. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/csv.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct err e = { 0 };
    struct csv c;
    int rc, line = 0;

    arena_init(&a);
    rc = csv_open(&c, &a, "fuzz", (const char *)data, size, &e);
    while (rc == 0 && (rc = csv_next(&c, &e)) > 0) {
        assert(c.line > line && c.n_columns >= 1 && c.n_columns <= CSV_COLUMNS_MAX);
        line = c.line;
        for (int i = 0; i < c.n_columns; i++) {
            double v;

            (void)csv_number(&c, i, true, &v, NULL);
            assert(c.field[i].len <= size);
        }
        rc = 0;
    }
    if (rc < 0)
        assert(e.code > 0 && strlen(e.text) > 0);
    arena_release(&a);
    return 0;
}

/* Any bytes are an hour of arrivals or an error; what was taken is saved and loaded the same. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "serve/arrivals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arrivals *a = arrivals_create(1.25), *b = arrivals_create(1.25);
    struct err e = { 0 };
    struct buf first, second;
    double at_s[100], span_s;

    buf_init(&first, 2 << 20);
    buf_init(&second, 2 << 20);
    if (arrivals_load(a, data, size, &e) < 0)
        assert(e.code > 0 && strlen(e.text) > 0);
    else if (arrivals_n_hours(a) > 0) {
        const int n = arrivals_expand(a, 0, at_s, 100, &span_s);

        assert(span_s >= 0 && span_s <= 3600.001);
        for (int i = 0; i < n; i++)
            assert(at_s[i] >= 0 && at_s[i] <= span_s + 1e-6 && (!i || at_s[i] >= at_s[i - 1]));
        assert(arrivals_save(a, 0, &first) == 0);
        assert(arrivals_load(b, first.data, first.len, &e) == 0);
        assert(arrivals_save(b, 0, &second) == 0);
        assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    }
    buf_release(&first);
    buf_release(&second);
    arrivals_destroy(a);
    arrivals_destroy(b);
    return 0;
}

/* fuzz_scrape.c - pages of servers and tables of metrics survive any bytes. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "monitor/servers/scrape.h"
#include "monitor/sensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_page(const struct scrape_page *p)
{
    for (int i = 0; i < SCRAPE_COUNTS; i++)
        assert(isnan(p->counts[i]) || p->counts[i] >= 0);
    for (int i = 0; i < SCRAPE_HISTOGRAMS; i++) {
        const struct scrape_histogram *h = &p->histograms[i];

        assert(h->n >= 0 && h->n <= SCRAPE_BUCKETS_MAX);
        for (int k = 1; k < h->n; k++)
            assert(h->le[k] > h->le[k - 1]);
    }
}

/* The half before a NUL is one page, what is behind it the next. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct scrape_promise promise = { 0.2, 0.5, 0.05 };
    static struct scrape_table table;
    struct scrape_page a, b;
    struct served s;
    const char *text = (const char *)data;
    const char *nul = size > 0 ? memchr(text, '\0', size) : NULL;
    const size_t n = nul ? (size_t)(nul - text) : size;

    (void)scrape_table_read(text, size, "fuzz", &table, NULL);
    assert(table.n >= 0 && table.n <= SCRAPE_ROWS_MAX);
    if (scrape_parse(scrape_table_builtin(), text, n, &a) < 0)
        return 0;
    check_page(&a);
    b = a;
    if (nul && scrape_parse(scrape_table_builtin(), nul + 1, size - n - 1, &b) == 0)
        check_page(&b);
    scrape_between(&a, 0, &b, 1, &promise, &s);
    assert(!(s.n_requests < 0) && !(s.n_late < 0) && !(s.n_late > s.n_requests));
    assert(!s.is_false || (isnan(s.n_requests) && !s.has_lengths));
    return 0;
}

/* fuzz_report.c - datagrams of jobs survive any bytes, and what is taken is of the form. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "monitor/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_count(double v)
{
    return isnan(v) || (isfinite(v) && v >= 0);
}

static void check_served(const struct job_report *r)
{
    static unsigned bins[REPORT_BINS_MAX];

    assert(r->ready >= -1 && r->ready <= 1);
    assert(is_count(r->late) && is_count(r->queued) && is_count(r->batches) && is_count(r->busy_s));
    assert(r->bin_s >= 0 && r->bin_s <= 60 && (r->bin_s > 0) == (r->counts.len > 0));
    if (r->bin_s > 0) {
        assert(job_report_serves(r));
        const int n = job_report_bins(r, bins);
        assert(n == -EINVAL || (n > 0 && n <= REPORT_BINS_MAX));
        for (int i = 0; i < n; i++)
            assert(bins[i] <= REPORT_BIN_MOST);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secret[REPORT_SECRET_BYTES + 1] = "0123456789abcdef0123456789abcdef";
    const char *bytes = (const char *)data;
    struct job_report r;
    int rc = job_report_parse(bytes, size, &r);

    assert(rc == 0 || rc == -EINVAL);
    if (rc < 0)
        return 0;
    assert(size <= REPORT_BYTES_MAX && r.run >= 0);
    assert(r.job >= 0 ? r.slurm_id == 0 : r.job == -1 && r.slurm_id > 0);
    assert(isfinite(r.steps) && r.steps >= 0);
    assert(r.secret >= bytes && r.secret + REPORT_SECRET_BYTES < bytes + size);
    assert(job_report_is_signed(&r, secret) ==
           (memcmp(r.secret, secret, REPORT_SECRET_BYTES) == 0));
    check_served(&r);
    return 0;
}

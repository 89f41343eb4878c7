/* report.h - one datagram of a job: who it is, how far, and what it served.
 *
 * Made by job_report_parse from bytes that anybody may have sent; read by 'watch', which knows the
 * secrets. The secret and the counts are borrowed from the datagram. docs/formats/reports.md has
 * the form.
 */
#ifndef MONITOR_REPORT_H
#define MONITOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

#define REPORT_BYTES_MAX 1400       // fits a packet of 1,500 with its headers
#define REPORT_SECRET_BYTES 32      // hex digits
#define REPORT_BINS_MAX 4096        // of one datagram: four seconds of a millisecond each
#define REPORT_BIN_MOST 1000000L    // arrivals in one bin

struct job_report {
    int job;          // -1: it says which Slurm job it is instead
    long slurm_id;    // 0: it does not
    int run;
    const char *secret;    // (REPORT_SECRET_BYTES), not terminated
    double steps;          // cumulative; finite, not negative
    bool is_unfit;         // ran out of GPU memory

    /* Of those that serve requests. */
    int ready;                               // 1: takes requests; 0: does not; -1: not said
    double late, queued, batches, busy_s;    // NaN: not said
    double bin_s;                            // width of the bins; 0: none
    struct slice counts;                     // of the bins, as they came: job_report_bins
};

/* 0, or -EINVAL: not of the form. Ten thousand of these come in a second: nothing is allocated,
 * and nobody reads a sentence about a datagram, so there is none.
 */
int job_report_parse(const char *bytes, size_t len, struct job_report *out);

/* Does it say anything that only a server says? */
bool job_report_serves(const struct job_report *r);

/* Arrivals by bin into 'out' (REPORT_BINS_MAX): how many bins, or -EINVAL: not of the form, and so
 * not the datagram. Apart from the rest, since it takes ten times as long: whoever sends too many
 * is not listened to any further before.
 */
int job_report_bins(const struct job_report *r, unsigned *out);

/* Does it carry 'secret' (REPORT_SECRET_BYTES and a NUL)? Takes equally long wherever they differ.
 */
bool job_report_is_signed(const struct job_report *r, const char *secret);

#endif

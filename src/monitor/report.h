/* report.h - one datagram of a job: who it is, and how far.
 *
 * Made by job_report_parse from bytes that anybody may have sent; read by 'watch', which knows the
 * secrets. The secret is borrowed from the datagram. docs/formats/reports.md has the form.
 */
#ifndef MONITOR_REPORT_H
#define MONITOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#define REPORT_BYTES_MAX 512
#define REPORT_SECRET_BYTES 32    // hex digits

struct job_report {
    int job;          // -1: it says which Slurm job it is instead
    long slurm_id;    // 0: it does not
    int run;
    const char *secret;    // (REPORT_SECRET_BYTES), not terminated
    double steps;          // cumulative; finite, not negative
    bool is_unfit;         // ran out of GPU memory
};

/* 0, or -EINVAL: not of the form. Ten thousand of these come in a second: nothing is allocated,
 * and nobody reads a sentence about a datagram, so there is none.
 */
int job_report_parse(const char *bytes, size_t len, struct job_report *out);

/* Does it carry 'secret' (REPORT_SECRET_BYTES and a NUL)? Takes equally long wherever they differ.
 */
bool job_report_is_signed(const struct job_report *r, const char *secret);

#endif

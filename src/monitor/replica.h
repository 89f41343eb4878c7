/* replica.h - what a run that serves requests has said, until it is told.
 *
 * Made by 'watch' for a run that says what only servers say; lives as long as the run. Chunks of
 * bins are joined: a chunk begins where the last one ended, as long as that agrees with the time at
 * which it came. What contradicts itself is told as false, and nothing of it is counted; from there
 * on it is counted anew. Pure: times are on the stopwatch of whoever calls.
 */
#ifndef MONITOR_REPLICA_H
#define MONITOR_REPLICA_H

#include <stdbool.h>

#include "monitor/report.h"

struct served;

struct replica_counts {    // cumulative; NaN: never said
    double requests, late, batches, busy_s;
};

struct replica {
    bool is_ready;
    bool is_news;        // something was said since it was told
    bool is_false;       // and contradicts itself
    bool has_counted;    // it has said how many requests there were, once
    bool is_whole;       // all that came is in bins, as far as we know
    struct replica_counts told, last;
    double told_s, heard_s;    // NaN: never
    double queued;             // NaN: never said
    double open;               // came and not answered, as bins and counts have it
    int n_fallen;              // reports in a row whose count was below the last one
    double bin_s;              // 0: no bins yet
    double from_s, ends_s;     // of the bins kept
    int n_bins;
    unsigned counts[REPORT_BINS_MAX];
};

void replica_begin(struct replica *r);

/* Would these bins join those that are kept? Where not, tell the older ones first: they are
 * dropped.
 */
bool replica_joins(const struct replica *r, double bin_s, int n_bins, double at_s);

/* It said so at 'at_s'. 'bins' (n_bins) are those of the report; -1: it had some, which were not
 * looked at.
 */
void replica_hear(struct replica *r, const struct job_report *said, const unsigned *bins,
                  int n_bins, double at_s);

/* What was not told is forgotten, and counted anew from what it says next; ready it stays,
 * and one that counts requests.
 */
void replica_forget(struct replica *r);

/* Has it ever said how many requests there were, beyond that it is there? */
bool replica_counts(const struct replica *r);

/* What is new, once. False: nothing is. The counts are borrowed until it is heard again. */
bool replica_tell(struct replica *r, struct served *out);

/* What says more than a server can do in 'length_s' is false; of what is false nothing is counted.
 */
void served_check(struct served *s, double length_s);

#endif

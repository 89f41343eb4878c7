/* report.h - a study as one page that needs nothing else: DIR/report.html.
 *
 * What the page says is computed from the results's rows and the table of scenarios alone: means
 * over seeds and how far they are to be trusted (spread.h), changes paired by seed. Where gogh
 * loses, or runs are missing, it says so first. The assumptions (truth, power model, sleep,
 * knowledge) are named beside each scenario. Parts that the results has no rows for are left out.
 */
#ifndef STUDY_REPORT_REPORT_H
#define STUDY_REPORT_REPORT_H

#include "study/results.h"

struct buf;
struct err;

/* Room that the page of all scenarios never needs. */
#define REPORT_MAX ((size_t)64 << 20)

/* The page, into 'out' (born with REPORT_MAX); no wall times, so that the same rows give the
 * same bytes.
 */
void report_page(struct arena *a, const struct results *b, struct buf *out);

/* The page into DIR/report.html. */
int report_write(struct arena *a, const struct results *b, struct err *e);

#endif

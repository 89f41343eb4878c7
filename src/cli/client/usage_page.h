/* usage_page.h - `gogh report --html`: what the daemon reports as one page that needs nothing else.
 *
 * Made from the answer of GET /v1/report; tables and charts (study/plot.h), no scripts.
 */
#ifndef CLI_USAGE_PAGE_H
#define CLI_USAGE_PAGE_H

#include <jansson.h>

struct arena;
struct buf;

/* 'out' must have room: some 2 kB a row and 100 bytes an hour. */
void usage_page(struct arena *a, const json_t *report, struct buf *out);

/* The part of a row's promises that was kept, in percent; "-": no promises, or nobody knows, since none of its jobs
 * reported a step.
 */
const char *usage_kept(struct arena *a, const json_t *row);

#endif

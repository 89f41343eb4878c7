/* usage_page.h - `gogh report --html`: what the daemon reports as one page that needs nothing else.
 *
 * Made from the answer of GET /v1/report; tables and charts (study/plot/plot.h), no scripts.
 */
#ifndef CLI_CLIENT_USAGE_PAGE_H
#define CLI_CLIENT_USAGE_PAGE_H

#include <jansson.h>

struct arena;
struct buf;

/* 'out' must have room: some 2 kB a row and 100 bytes an hour. */
void usage_page(struct arena *a, const json_t *report, struct buf *out);

/* A row's figures behind its name: jobs, kWh, of it working and idle, GPU hours, steps, the part of
 * its promises that was kept ("-": none, or nobody knows, since no job reported a step),
 * measurements, their error and coverage.
 */
#define USAGE_CELLS 10
void usage_cells(struct arena *a, const json_t *row, const char *cells[USAGE_CELLS]);

/* What a look back found, as text (shadow.c). */
void shadow_put(struct arena *a, const json_t *s, struct buf *out);

#endif

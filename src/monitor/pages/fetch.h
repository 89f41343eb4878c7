/* fetch.h - pages by HTTP, side by side; for a worker, since it waits.
 *
 * Read by 'meter' (exporters of GPUs) and 'scraper' (servers). A page that hangs holds up nobody's
 * but its own, and is given up after two seconds.
 */
#ifndef MONITOR_PAGES_FETCH_H
#define MONITOR_PAGES_FETCH_H

#include "base/err.h"
#include "base/text/buf.h"

struct fetch {
    const char *url;    // http or https; borrowed
    int rc;             // 0: it came
    struct err why;     // it did not
    struct buf text;    // to be released, whatever came
};

/* Once, on the loop's thread, before any. -ENOMEM: libcurl does not start. */
int fetch_begin(void);

void fetch_all(struct fetch *pages, int n);

#endif

/* exposition.h - pages of figures in Prometheus' text format, taken apart.
 *
 * Read by 'dcgm' and 'scrape'. Pure; what comes out is borrowed from the page.
 */
#ifndef MONITOR_PAGES_EXPOSITION_H
#define MONITOR_PAGES_EXPOSITION_H

#include <stdbool.h>

#include "base/text/text.h"

struct sample {
    struct slice name;
    struct slice labels;    // what is between the braces
    double value;           // finite
};

/* 'key="value"' and what parts it from the next; \ keeps a quote inside. False: not of the form. */
bool exposition_label(struct slice *labels, struct slice *key, struct slice *value);

/* The next sample of the page; '*page' moves behind it. Lines that are none, or have no finite
 * number, are passed over. False: no more.
 */
bool exposition_next(struct slice *page, struct sample *out);

#endif

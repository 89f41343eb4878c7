/* markup.h - how pages and charts are written: into a buffer whose ceiling is known to be enough.
 *
 * A page grows with the table of scenarios, not with anybody's input, so a ceiling that is hit
 * is our fault and stops the process.
 */
#ifndef STUDY_PLOT_MARKUP_H
#define STUDY_PLOT_MARKUP_H

#include <assert.h>

#include "base/text/buf.h"

static inline void put_ok(int rc)
{
    assert(rc == 0);
}

#define PUT(...) put_ok(buf_printf(__VA_ARGS__))

#endif

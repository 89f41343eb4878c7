/* sacct_inner.h - small pieces of text that the reader of accounting takes apart. */
#ifndef SIM_HISTORY_SACCT_INNER_H
#define SIM_HISTORY_SACCT_INNER_H

#include <stdbool.h>

#include "base/text/text.h"

/* The part before the first 'c', which goes, with it, from '*rest'. False: there is none left; a
 * list has a part more than it has separators.
 */
bool sacct_cut(struct slice *rest, char c, struct slice *part);

/* Digits only, at most 9 of them, as a number. */
bool sacct_digits(struct slice s, long *out);

/* Nothing, "Unknown" or "None". */
bool sacct_is_nothing(struct slice s);

#endif

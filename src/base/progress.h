/* progress.h - one line on stderr that says how far long work has come.
 *
 * Silent unless stderr is a terminal (or 'always'), and for work under half a
 * second. Redraws at most ten times a second.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>

struct progress {
    const char *what;    // e.g. "importing"
    bool is_shown;       // may draw
    bool has_drawn;
    double began_s, drawn_s;
};

void progress_begin(struct progress *p, const char *what, bool always);

/* 'done' of 'total' units; total 0 means unknown. Shows percentage and ETA. NULL is fine. */
void progress_step(struct progress *p, double done, double total);

/* Wipe the line. */
void progress_end(struct progress *p);

#endif

#include "base/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SILENT_S 0.5    // shorter work needs no line
#define REDRAW_S 0.1

void progress_begin(struct progress *p, const char *what, bool always)
{
    *p = (struct progress){ .what = what, .is_shown = always || isatty(STDERR_FILENO) };
    p->began_s = p->drawn_s = clock_stopwatch_s();
}

void progress_step(struct progress *p, double done, double total)
{
    double now_s, spent_s;

    if (!p || !p->is_shown)
        return;
    now_s = clock_stopwatch_s();
    spent_s = now_s - p->began_s;
    if (spent_s < SILENT_S || now_s - p->drawn_s < REDRAW_S)
        return;
    p->drawn_s = now_s;
    p->has_drawn = true;
    if (total > 0 && done <= 0)
        fprintf(stderr, "\r\033[K%s   0%%", p->what);
    else if (total > 0 && done <= total)
        fprintf(stderr, "\r\033[K%s %3.0f%%, %.0f s left", p->what, 100 * done / total,
                spent_s * (total - done) / done);
    else
        fprintf(stderr, "\r\033[K%s %.0f, %.0f s", p->what, done, spent_s);
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (!p->has_drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->has_drawn = false;
}

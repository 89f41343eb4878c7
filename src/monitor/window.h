/* window.h - how fast one job goes while nothing around it changes.
 *
 * Fed with what a job says (time, cumulative steps) and with changes of its conditions; tells
 * windows: steps, length and noise, or why it cannot. Pure: no clock, no job, no GPU. Times are
 * seconds of a clock that never jumps. One for each running job; plain data, nothing to release.
 *
 *              change        first count         window_tell
 *     ---------|-- warm-up --|--part--|--part--|--part--|--part-- ...
 *                            '-------- window ----------'
 *
 * A part ends at the first new count after 'part_s', so that edges are steps that were just done
 * and never moments between two. What a job repeats without having done a step is no edge.
 */
#ifndef MONITOR_WINDOW_H
#define MONITOR_WINDOW_H

#include <stdbool.h>

/* Of a window. Twice as many as one is divided into, for those that have to go on for longer. */
#define WINDOW_PARTS_MAX 24

/* Shorter parts show the edges of steps and the moods of the network, not the job. */
#define WINDOW_PART_MIN_S 2.0

struct window_part {
    double length_s;
    double steps;    // > 0
};

struct window {
    double warm_s;                // no edge before this
    double part_s;                // least length of a part
    double from_s;                // the window's beginning; NaN: not yet
    double edge_s, edge_steps;    // where the present part begins
    double last_s, last_steps;    // the newest new count; NaN: none in this run
    int n_parts;
    struct window_part parts[WINDOW_PARTS_MAX];

    /* For a speed to show: the newest count of half a minute's beginnings. */
    double old_s, old_steps, mark_s, mark_steps;
};

enum window_verdict {
    WINDOW_STEADY,      // a measurement
    WINDOW_SHORT,       // parts that count are shorter than asked for
    WINDOW_UNSTABLE,    // parts contradict each other: a trend, or no pace at all
};

struct window_result {
    enum window_verdict verdict;
    double from_s, to_s;    // of the whole
    double length_s;        // of the parts that count
    double steps;           // done in these
    double noise;           // sd of ln (steps / length_s); NaN: not known
    int n_outliers;         // parts that do not count: a pause, a burst
    double outliers_s;      // how long these were
};

/* A run begins at 'now_s'. Windows are meant to take 'report_s'. */
void window_begin(struct window *w, double now_s, double warmup_s, double report_s);

/* Conditions have changed at 'now_s': what was before is over, and a warm-up begins. To hear of the
 * window that ends with it, ask window_tell first.
 */
void window_change(struct window *w, double now_s, double warmup_s);

/* They still change: no window before another warm-up. One that has begun is not touched. */
void window_delay(struct window *w, double now_s, double warmup_s);

/* The job has done 'steps' in all, as of 't_s'. A count that falls, or time that does, is
 * ignored. True: the window begins with this.
 */
bool window_count(struct window *w, double t_s, double steps);

/* Of the parts so far, at least 'min_s' of which must count. */
void window_tell(const struct window *w, double min_s, struct window_result *out);

/* A window was told: the next one begins where its last part ended. */
void window_go_on(struct window *w);

/* How long the parts so far are. */
double window_length_s(const struct window *w);

/* Steps/s over the last 15 to 30 s, or since conditions changed; NaN: unknown. */
double window_speed(const struct window *w, double now_s);

#endif

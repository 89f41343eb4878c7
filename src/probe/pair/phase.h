/* phase.h - how fast one or two programs go while they have a GPU to themselves.
 *
 * Fed with what the programs say; knows no clock, no process and no GPU. Times are on the
 * stopwatch. One for each phase of gogh-pair: the first alone, the second alone, both.
 *
 *     PHASE_WAITING ----------------> PHASE_MEASURING ------------------> PHASE_DONE
 *        |        all have reported          |     windows are long enough
 *        '--------- somebody is silent ------'---> PHASE_SILENT               (phase_look)
 *
 * Windows (monitor/window.h) of all programs begin when the last of them has said its first count,
 * and the warm-up is over. They go on for up to twice the time that was asked for where parts
 * contradict each other.
 */
#ifndef PROBE_PAIR_PHASE_H
#define PROBE_PAIR_PHASE_H

#include <stdbool.h>

#include "monitor/window.h"

enum { PHASE_PROGRAMS = 2 };

struct phase_setup {
    double seconds;    // of a window
    double warmup_s;
    double patience_s;    // longer silence is an error
};

struct phase_program {
    bool is_in;    // takes part
    bool has_reported;
    double heard_s;    // when it last said something new, or began
    struct window window;
};

struct pair_phase {
    struct phase_setup setup;
    double measured_s;    // from when on it is measured; NaN: not yet
    struct phase_program programs[PHASE_PROGRAMS];
};

enum phase_state { PHASE_WAITING, PHASE_MEASURING, PHASE_DONE, PHASE_SILENT };

/* Begin at 'now_s' with the programs whose bits are in 'who'. */
void phase_begin(struct pair_phase *p, const struct phase_setup *setup, unsigned who, double now_s);

/* Program 'i' has done 'steps' in all as of 't_s'. */
void phase_count(struct pair_phase *p, int i, double t_s, double steps);

/* PHASE_SILENT: '*who' says nothing. */
enum phase_state phase_look(const struct pair_phase *p, double now_s, int *who);

/* What was measured; NaN: nothing. */
struct phase_rate {
    double steps_s;
    double noise;      // sd of ln steps_s; NaN: not known
    bool is_steady;    // parts of the window agree
};
struct phase_rate phase_rate(const struct pair_phase *p, int i);

/* Did a program that failed run out of the GPU's memory, by its last words? */
bool phase_is_out_of_memory(const char *words);

#endif

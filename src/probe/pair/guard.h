/* guard.h - a program and all that it starts, ended for certain.
 *
 * Between gogh-pair and each program stands a process of ours, the guard: parent of the program,
 * and of whoever lost his parent among its offspring. It holds the reading end of a pipe. When the
 * other end is closed, because the program is to end or because gogh-pair is gone, however it went,
 * the guard ends the program: SIGTERM to its group, a grace, SIGKILL to all that is left. Then it
 * says how the program ended, and ends. One for each program and phase; plain data.
 */
#ifndef PROBE_PAIR_GUARD_H
#define PROBE_PAIR_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct guard_order {
    char *const *argv, *const *env;
    double grace_s;
    void (*at_orphaned)(void);    // in the guard, at its end, where gogh-pair is gone
};

struct guard {
    pid_t pid;       // of the guard itself; 0: none
    int lifeline;    // -1: closed, the program is being ended
    int status;      // readable once all have ended
    int errors;      // what the program says on its standard error; never waits
};

/* Forks, and the caller must have one thread only. -EAGAIN, -EMFILE, ... */
int guard_start(const struct guard_order *o, struct guard *out, struct err *e);

/* Ask for the end; again is fine. */
void guard_end(struct guard *g);

/* 'status' is readable: how the program ended, as wait(2) says; GUARD_STUCK: it could not be
 * killed, GUARD_LOST: nobody knows, the guard was killed. All descriptors are closed.
 */
enum { GUARD_STUCK = -1, GUARD_LOST = -2 };
int guard_close(struct guard *g);

#endif

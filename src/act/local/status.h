/* status.h - what became of a run, as its keeper writes it down (docs/formats/run.md).
 *
 * A file of lines that only grows: 'taken', 'started', 'stopping', 'ended'. A last line without its
 * newline was torn and does not count; of two 'ended' lines the later one does. Written by
 * the keeper, and by a daemon for a keeper that can no more; read by every daemon.
 */
#ifndef ACT_LOCAL_STATUS_H
#define ACT_LOCAL_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STATUS_BYTES_MAX 8192    // four lines of at most STATUS_LINE_MAX, and torn ones
#define STATUS_LINE_MAX 700
#define BOOT_ID_SIZE 37

enum ended {
    ENDED_NOT,
    ENDED_EXIT,       // code; text: why it cannot run on this GPU, or nothing
    ENDED_SIGNAL,     // likewise
    ENDED_TIMEOUT,    // took longer than it may
    ENDED_STOPPED,    // was asked to, before it ended by itself
    ENDED_SERVED,     // a server whose time is over
    ENDED_FAILED,     // could not be run: text
};

struct status {
    bool is_taken, is_started, is_stopping;
    pid_t keeper_pid, pid;
    uint64_t keeper_start, start;    // ticks since boot, as in /proc/PID/stat
    char boot[BOOT_ID_SIZE];
    double started_s, stopping_s, ended_s;
    enum ended ended;
    int code;
    char text[STATUS_LINE_MAX];    // ENDED_FAILED, and see above
};

/* It ended by itself, since it was not built for such a GPU or its driver: no fault of the job's,
 * nor does it help to try again there. And: it failed, which is a try less.
 */
bool status_is_incapable(const struct status *s);
bool status_is_bad(const struct status *s);

/* The words in what a program wrote last which say so, a literal; NULL: there are none. */
const char *status_incapable_words(const char *text, size_t len);

void status_parse(const char *text, size_t len, struct status *out);

/* Read the status of the run whose directory is open as 'dir'; none yet is no error. -Exxx. */
int status_read(int dir, struct status *out);

/* Open for appending, with room on the disk set aside for all lines. A descriptor or -Exxx. */
int status_open(int dir);

/* Append a line (without its newline) and make it durable. 0 or -Exxx; what a failed write left
 * is a torn line, which the next one ends.
 */
int status_append(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

/* proc.h - processes: started, made another user's, and told apart for good, by pid, start time
 * and boot.
 *
 * A pid alone may long be somebody else's. Reads /proc; signals go through a pidfd that was
 * checked after it was opened, so that nobody else is ever hit.
 */
#ifndef ACT_LOCAL_PROC_H
#define ACT_LOCAL_PROC_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "act/local/status.h"

struct proc {
    pid_t pid, parent, group, session;
    uint64_t start;    // ticks since boot
    char state;        // 'R', 'S', 'Z', ...
};

/* 0, or -ESRCH: there is none. */
int proc_read(pid_t pid, struct proc *out);

/* The kernel's word for this boot; "" where it is not told. */
void proc_boot_id(char out[BOOT_ID_SIZE]);

/* A pidfd of exactly that process; -ESRCH: it is gone; -EMFILE, ... */
int proc_open(pid_t pid, uint64_t start);
int proc_signal(pid_t pid, uint64_t start, int signo);

/* A process to be: it gets no other descriptors of ours, and all signals as by default. */
struct proc_spawn {
    const char *program;
    bool is_searched;    // by PATH
    char *const *argv, *const *env;
    int fd;                     // its standard input and output; -1: all three are /dev/null,
                                // and it leads a session of its own
    const sigset_t *blocked;    // for what comes before it is up; NULL: none
};

/* Its pid, or -errno. */
pid_t proc_spawn(const struct proc_spawn *p);

/* ---- of the calling process ---- */

/* Descriptors 0 to 2 are there, and no others: what a parent forgot to close is not passed on. */
void proc_settle_fds(void);

/* All signals as by default, and none blocked. */
void proc_reset_signals(void);

/* Become that user for good, whose groups were taken before, with no capabilities: these outlive a
 * change between two users who are not root, and pass on by the ambient set. 0 or -errno.
 */
int proc_become(uid_t uid, gid_t gid);

/* Kill the children, which whoever lost his parent among their offspring has become, where the
 * process is a subreaper.
 */
void proc_kill_children(void);

/* Kill what a leader, who is gone, has left: every process of his session, and those of 'uid' whose
 * environment has this 'entry' ("NAME=value"). How many there still were.
 */
int proc_kill_left(pid_t leader, uint64_t start, uid_t uid, const char *entry);

#endif

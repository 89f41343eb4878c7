/* proc.h - processes told apart for good: by pid, start time and boot.
 *
 * A pid alone may long be somebody else's. Reads /proc; signals go through a pidfd that was
 * checked after it was opened, so that nobody else is ever hit.
 */
#ifndef ACT_LOCAL_PROC_H
#define ACT_LOCAL_PROC_H

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

/* Of the calling process. Capabilities outlive a change between two users who are not root, and
 * pass on by the ambient set: whoever becomes another user drops them. 0, or -EPERM: some are left.
 */
int proc_drop_capabilities(void);

/* Kill what a leader, who is gone, has left: every process of his session, and those of 'uid' whose
 * environment has this 'entry' ("NAME=value"). How many there still were.
 */
int proc_kill_left(pid_t leader, uint64_t start, uid_t uid, const char *entry);

#endif

/* mute.h - a socket filter that drops the datagrams of some runs before they take room.
 *
 * The kernel runs it when somebody sends: what it drops costs its sender time, and nobody else the
 * place in a queue of ten datagrams (unix) or four megabytes (UDP). Made by 'inbox' for those that
 * 'watch' names; pure. A run is known by its secret, at the place where its datagrams have it.
 */
#ifndef MONITOR_MUTE_H
#define MONITOR_MUTE_H

#include <linux/filter.h>
#include <stddef.h>

#include "monitor/report.h"

#define MUTED_MAX 64    // runs: 1,217 of the 4,096 instructions that a filter may have

struct muted {
    size_t at;    // where its datagrams have the secret
    char secret[REPORT_SECRET_BYTES + 1];
};

enum { MUTE_EACH = 2 + REPORT_SECRET_BYTES / 2 + 1, MUTE_PROGRAM_MAX = MUTED_MAX * MUTE_EACH + 1 };

/* The filter for 'n' <= MUTED_MAX runs; 'header' bytes come before what was sent (8 for UDP, none
 * for Unix sockets). How many instructions.
 */
int mute_program(const struct muted *list, int n, size_t header,
                 struct sock_filter out[MUTE_PROGRAM_MAX]);

#endif

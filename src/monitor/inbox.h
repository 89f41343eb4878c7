/* inbox.h - where datagrams of jobs come in: a Unix socket, UDP, or both.
 *
 * Made by 'watch'; on the loop's thread. Reads in batches, and gives each datagram with the time
 * at which it arrived, not at which somebody looked: a daemon that was held up must not make jobs
 * look faster or slower.
 */
#ifndef MONITOR_INBOX_H
#define MONITOR_INBOX_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct inbox;
struct loop;
struct muted;

/* 'bytes' are borrowed; one that was longer than REPORT_BYTES_MAX comes with a 'len' that is, too.
 * 'arrived_s' is on the stopwatch, and does not fall.
 */
typedef void inbox_f(void *self, const char *bytes, size_t len, double arrived_s);

/* 'path': made with mode 0666, in the place of an older socket. 'udp': "HOST:PORT". Either may be
 * NULL. -EEXIST: something else is there; -ENAMETOOLONG, -EINVAL, -EADDRINUSE, -EACCES, ...
 */
int inbox_open(struct loop *l, const char *path, const char *udp, inbox_f *f, void *self,
               struct inbox **out, struct err *e);
void inbox_close(struct inbox *b);    // removes the Unix socket; NULL is fine

/* Read what is there, without waiting for the loop's turn. */
void inbox_look(struct inbox *b);

/* Have the kernel drop what these runs send, and nobody else ('n' 0: nobody any more). False where
 * it cannot: they come as ever.
 */
bool inbox_mute(struct inbox *b, const struct muted *list, int n);

/* The port that UDP really has ("HOST:0" takes any); 0: none. */
int inbox_udp_port(const struct inbox *b);

#endif

/* link.h - the daemon's end of the line to the Slurm driver.
 *
 * Starts the driver with a socket as its standard input and output, sends requests, and hands out
 * its answers (docs/formats/slurm-driver.md). A driver that dies, says what it should not, or says
 * nothing for too long is killed and another one started, after a pause that doubles; what it had
 * been asked is then in doubt. Made by act/slurm; on the loop's thread; never waits.
 */
#ifndef ACT_SLURM_LINK_H
#define ACT_SLURM_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct link;
struct loop;
struct wire_message;

enum link_outcome { LINK_DONE, LINK_FAILED, LINK_UNKNOWN };

enum link_kind {
    LINK_NONE,
    LINK_DOWN,       // Slurm cannot be reached; nothing was changed
    LINK_REFUSED,    // Slurm said no
    LINK_GONE,       // Slurm knows no such job
    LINK_MISUSE,     // a request that the driver does not understand
};

/* "down", "refused", ... as 'failed' and 'trouble' lines have it. */
enum link_kind link_kind_of(const char *word);

struct link_end {
    uint64_t seq;
    enum link_outcome outcome;
    enum link_kind kind;
    const char *text;    // never NULL; borrowed
};

/* A line of an answer, or its end. */
typedef void link_line_f(void *self, const struct wire_message *m);
typedef void link_end_f(void *self, const struct link_end *how);

struct link_setup {
    struct loop *loop;
    const char *driver, *commands, *conf;    // borrowed; the last two may be NULL
    double rate;         // calls a second that the driver may make on average; 0: its own default
    double pause_s;      // before one that died is replaced; doubles up to a hundredfold
    double silence_s;    // a driver that owes an answer says something in this time, or dies
    void *self;
    void (*on_up)(void *self);    // a driver is there that has not been asked anything yet
    link_line_f *on_said;         // a line that answers nothing (SEQ 0)

    /* A socket to a driver instead of starting one; negative: none now. NULL: the program. */
    int (*open)(void *self);
    void *open_self;
};

/* The driver is started on the next turn of the loop. */
struct link *link_create(const struct link_setup *s);
void link_destroy(struct link *k);    // answers that are owed are not told; NULL is fine

bool link_is_up(const struct link *k);    // there is a driver to ask
uint64_t link_n_drivers(const struct link *k);
int link_n_pending(const struct link *k);    // answers

/* A request: begin, wire_put into the buffer that comes back, end. Only while it is up. 'line' may
 * be NULL; 'end' is called once for each, in the order of the requests.
 */
struct buf *link_begin(struct link *k, const char *verb);
uint64_t link_ask(struct link *k, link_line_f *line, link_end_f *end, void *self);

#endif

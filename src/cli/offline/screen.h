/* screen.h - two simulations side by side as a page of text: nodes, GPUs and who shares
 * them, watts, promises, and what is saved.
 */
#ifndef CLI_OFFLINE_SCREEN_H
#define CLI_OFFLINE_SCREEN_H

struct buf;
struct catalog;
struct sim;

/* GOGH and the policy it is compared with, on the same jobs. */
struct screen {
    struct sim *ours, *theirs;
    const char *their_name;    // "fifo-fastest"
};

#define SCREEN_COLUMNS 79
#define SCREEN_ROWS 16    // with the seven nodes of the embedded cluster

/* The whole page, as lines. */
void screen_draw(const struct screen *s, struct buf *out);

/* One line, for logs and pipes. */
void screen_line(const struct screen *s, struct buf *out);

/* Share of the energy per unit of work that is saved, 0..1; NaN before both did some. */
double screen_saved(const struct screen *s);

#endif

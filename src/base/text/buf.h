/* buf.h - bytes that grow up to a ceiling given at birth.
 *
 * Owns heap memory; release when done. Content is always followed by a NUL that
 * does not count, so 'data' can be read as a string.
 */
#ifndef BASE_TEXT_BUF_H
#define BASE_TEXT_BUF_H

#include <stddef.h>

struct arena;

struct buf {
    char *data;    // NULL until the first append
    size_t len;
    size_t cap;
    size_t max;    // the ceiling
};

/* Empty, and never to hold more than 'max' bytes. */
void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);

/* Forget the content, keep the memory. */
void buf_clear(struct buf *b);

/* Add bytes. Returns 0, or -ENOSPC past the ceiling with the buffer unchanged. */
int buf_append(struct buf *b, const void *bytes, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The content as a string; "" when empty. Borrowed until the next change. */
const char *buf_text(const struct buf *b);

/* The same in an arena, and the buffer is released. */
const char *buf_keep(struct buf *b, struct arena *a);

#endif

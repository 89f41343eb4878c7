/* wire.h - the lines between the daemon and the Slurm driver (docs/formats/slurm-driver.md).
 *
 * A message is made in a buffer on one side (wire_begin, wire_put, wire_end), and read on the
 * other, where it borrows the bytes it was read from. Both sides read what they are sent as if a
 * stranger had sent it.
 */
#ifndef ACT_DRIVER_WIRE_H
#define ACT_DRIVER_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define WIRE_LINE_MAX ((size_t)1 << 20)
#define WIRE_KEYS_MAX 4096

struct wire_pair {
    const char *key, *value;    // unescaped, terminated
};

struct wire_message {
    uint64_t seq;
    const char *verb;
    struct wire_pair *pairs;    // (n_pairs) in the order they came
    int n_pairs;
};

void wire_begin(struct buf *b, uint64_t seq, const char *verb);
void wire_put(struct buf *b, const char *key, const char *value);    // NULL: nothing is put
void wire_put_long(struct buf *b, const char *key, long value);
void wire_end(struct buf *b);

/* Read one line of 'len' bytes without its LF, in place: 'line' is written to, and so is the byte
 * after it (where the LF was). The pairs are from 'a'. -EINVAL: not of the form.
 */
struct arena;
int wire_read(struct arena *a, char *line, size_t len, struct wire_message *out, struct err *e);

const char *wire_get(const struct wire_message *m, const char *key);    // the first; NULL: none
long wire_get_long(const struct wire_message *m, const char *key, long otherwise);
double wire_get_double(const struct wire_message *m, const char *key);    // NaN: none

#endif

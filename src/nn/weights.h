/* weights.h - a bag of named arrays, and the bytes it travels in.
 *
 * What a trained model is made of: written by whoever trained it, kept as a row of the
 * store or a file, read by whoever runs it. The format is docs/formats/weights.md. Lives
 * in the arena it was made in; arrays given to it are copied, arrays taken from it are
 * borrowed.
 */
#ifndef NN_WEIGHTS_H
#define NN_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buf;
struct err;

#define WEIGHTS_BYTES_MAX ((size_t)64 << 20)    // a thousand times what our networks need
#define WEIGHTS_ARRAYS_MAX 1024                 // they are searched one by one

enum weights_kind { WEIGHTS_FLOATS = 1, WEIGHTS_DOUBLES = 2, WEIGHTS_TEXT = 3 };

struct weights_array {
    const char *name;
    enum weights_kind kind;
    int rows, cols;      // of a text: 1 and its bytes
    const void *data;    // row-major; a text is NUL-terminated
};

struct weights {
    struct arena *a;
    struct weights_array *arrays;    // in the order they were put
    int n, cap;
};

void weights_init(struct weights *w, struct arena *a);

/* Add a copy. A name (see text_is_name) that is there already, or a negative shape, is
 * our own mistake.
 */
void weights_put(struct weights *w, const char *name, int rows, int cols, const float *data);
void weights_put_doubles(struct weights *w, const char *name, int rows, int cols,
                         const double *data);
void weights_put_text(struct weights *w, const char *name, const char *text);

/* The array 'name'; NULL: there is none. */
const struct weights_array *weights_find(const struct weights *w, const char *name);

/* Taking arrays one after the other. The first that is not as wanted ends it: 'rc' and 'e' say why
 * (-ENOENT: there is none; -EINVAL: it is of another kind or shape), and it and all after it are
 * NULL.
 */
struct weights_reader {
    const struct weights *from;
    struct err *e;
    int rc;
};

/* The array 'name' of this kind and shape; -1 for rows or cols that may be any. */
const float *weights_floats(struct weights_reader *r, const char *name, int rows, int cols);
const double *weights_doubles(struct weights_reader *r, const char *name, int rows, int cols);
const char *weights_text(struct weights_reader *r, const char *name);

/* Is none of n numbers beyond 'most', either way? Whatever a file gives passes through products
 * and exponentials, which huge numbers would make infinite.
 */
bool weights_within(const float *x, size_t n, float most);
bool weights_within_doubles(const double *x, size_t n, double most);

/* Write to 'out' (its content is replaced; initialised by the caller). The same bag gives
 * the same bytes. -EDOM: a number is not finite, -EILSEQ: a text is not UTF-8, -EFBIG: too
 * large; 'e' says which array.
 */
int weights_encode(const struct weights *w, struct buf *out, struct err *e);

/* Read into 'a'. -EINVAL: foreign, damaged, cut short; -ENOTSUP: of a newer version; -EDOM and
 * -EILSEQ as above. What is accepted is what weights_encode would write, byte for byte.
 */
int weights_decode(struct arena *a, const void *bytes, size_t len, struct weights *out,
                   struct err *e);

#endif

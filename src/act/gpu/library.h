/* library.h - a library that is opened at run time, and needed neither to build nor to run.
 *
 * For those of GPU drivers, whose functions we declare ourselves. What was opened stays open as
 * long as its user wants it to.
 */
#ifndef ACT_GPU_LIBRARY_H
#define ACT_GPU_LIBRARY_H

#include <stddef.h>

struct err;

/* One function of a library, and where its address goes. */
struct symbol {
    const char *name;
    void **to;
    int is_optional;    // stays NULL where it is missing
};

/* Open 'override' (an environment variable that names a library), or the first of 'names' (ended by
 * NULL) that is there, and look up all symbols. -ENOENT: none is there; -EIO: a symbol is missing.
 */
int library_open(const char *override, const char *const *names, const struct symbol *symbols,
                 size_t n, void **out, struct err *e);

#endif

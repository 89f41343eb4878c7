/* The network as named arrays, and back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "estimate/network/inner.h"
#include "nn/weights.h"

/* No weight of a network that learned anything is near this. */
#define WEIGHT_MOST 1e3f

void network_save(const struct network *n, struct weights *to)
{
    weights_put_text(to, "network.about", n->about);
    weights_put(to, "network", 1, n->p.n, n->p.w);
}

int network_write(const struct network *n, const char *path, struct err *e)
{
    struct arena a;
    struct weights w;
    struct buf b;

    arena_init(&a);
    weights_init(&w, &a);
    buf_init(&b, WEIGHTS_BYTES_MAX);
    network_save(n, &w);
    int rc = weights_encode(&w, &b, e);
    if (rc == 0)
        rc = file_write(path, b.data, b.len, e);
    buf_release(&b);
    arena_release(&a);
    return rc;
}

int network_load(const struct weights *from, struct network **out, struct err *e)
{
    struct network *n = network_create(NULL);
    struct weights_reader in = { from, e, 0 };
    const char *about = weights_text(&in, "network.about");
    const float *w = weights_floats(&in, "network", 1, n->p.n);
    int rc = in.rc;

    if (w != NULL && weights_within(w, (size_t)n->p.n, WEIGHT_MOST)) {
        memcpy(n->p.w, w, (size_t)n->p.n * sizeof *w);
        snprintf(n->about, sizeof n->about, "%s", about);
        *out = n;
        return 0;
    }
    if (w != NULL)
        rc = err_set(e, EINVAL, "network: a weight beyond %g, which no network has",
                     (double)WEIGHT_MOST);
    network_destroy(n);
    return rc;
}

/* pretrained.c - the network that ships with the program: data/network.weights, inside it. */
#include <errno.h>

#include "base/arena.h"
#include "base/embed.h"
#include "base/err.h"
#include "estimate/network/network.h"
#include "estimate/network/network_file.h"    // by the build: where the file is, its digest
#include "nn/weights.h"

EMBED(network, NETWORK_FILE);

int network_pretrained(struct network **out, struct err *e)
{
    // cppcheck-suppress comparePointers ; both are of the one file above
    size_t len = (size_t)(gogh_network_end - gogh_network_begin);
    struct weights from;
    struct arena a;

    *out = NULL;
    if (len == 0)
        return err_set(e, ENOENT, "this build has no network");
    arena_init(&a);
    int rc = weights_decode(&a, gogh_network_begin, len, &from, e);
    if (rc == 0)
        rc = network_load(&from, out, e);
    arena_release(&a);
    if (rc < 0 && e)
        err_prefix(e, "the network that ships with the program");
    return rc;
}

/* fuzz_cluster.c - cluster files survive any bytes. */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/cluster/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cluster c;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    if (cluster_parse(&a, "f", (const char *)data, size, &c, &e) == 0) {
        int n_gpus = 0;

        for (int i = 0; i < c.n_nodes; i++)
            n_gpus += c.nodes[i].n_gpus;
        assert(n_gpus == c.n_gpus && c.n_nodes > 0);
        for (int i = 0; i < c.n_types; i++)
            assert(gpu_type_check(&c.types[i], &e) == 0);
    } else {
        assert(e.text[0] != '\0');
    }
    arena_release(&a);
    return 0;
}

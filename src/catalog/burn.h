/* burn.h - the benchmarks that ship: what one step of each does, and so what it costs.
 *
 * One table. gogh-burn (src/probe/burn) runs its rows, and built-in models have their descriptors
 * from it (workload_table.c). Constants, borrowed by whoever asks.
 *
 * A step of 'batch' samples is, one after the other and nothing at the same time:
 *
 *   layers    products of a (batch, side) matrix with weights of (side, side), each layer its own
 *   triad     a = b + s * c over 'elements' numbers a sample; none with 0
 *   tiny      kernels that do next to nothing: z = z / 2 + 1 over BURN_TINY numbers a sample
 *   host_ms   time that the host computes while the GPU waits
 *
 * in FP32, as an answering network would: weights are read once, and nothing is kept.
 */
#ifndef CATALOG_BURN_H
#define CATALOG_BURN_H

#define BURN_TINY 16

/* Name, usual batch, layers, side, elements, tiny, host_ms, and how much of it is products. Spread
 * over what tells workloads apart: bound by arithmetic with small and large kernels, by memory, by
 * launches, by the host, by a bit of each. A step takes from a fraction of a millisecond to some
 * tens of them on GPUs of the last ten years, and none needs more than a gigabyte.
 */
#define BURNS(X)                                      \
    X("burn-gemm-512", 512, 8, 512, 0, 0, 0, 1)       \
    X("burn-gemm-2048", 2048, 1, 2048, 0, 0, 0, 1)    \
    X("burn-stream", 64, 0, 0, 1048576, 0, 0, 0)      \
    X("burn-launch", 16, 0, 0, 0, 1000, 0, 0)         \
    X("burn-mixed", 256, 4, 1024, 16384, 200, 4, 0.5) \
    X("burn-host", 16, 1, 256, 0, 0, 20, 1)

struct burn {
    const char *name;    // of the built-in model, too
    int batch;           // the usual one
    int layers, side;    // side: a multiple of 64, which the kernel's tiles are wide
    int elements;
    int tiny;
    double host_ms;
};

/* What a step costs, by the row: for the descriptor, which counts bytes that have to move and none
 * that a cache spares.
 */
#define BURN_PARAMS(layers, side) ((double)(layers) * (side) * (side))
#define BURN_FLOP(layers, side, elements, tiny) \
    (2.0 * (layers) * (side) * (side) + 2.0 * (elements) + 2.0 * BURN_TINY * (tiny))
#define BURN_BYTES(layers, side, elements, tiny) \
    (8.0 * (layers) * (side) + 12.0 * (elements) + 8.0 * BURN_TINY * (tiny))
#define BURN_KERNELS(layers, elements, tiny) ((layers) + ((elements) > 0) + (tiny))

const struct burn *burn_all(int *n);

/* By its name, with or without "burn-", as people write it (text_alike); NULL: none. */
const struct burn *burn_find(const char *name);

#endif

/* kernels.h - what runs on the GPU, in OpenCL C 1.2. A constant, compiled by the driver. */
#ifndef PROBE_BURN_KERNELS_H
#define PROBE_BURN_KERNELS_H

/* A group of KERNEL_GROUP x KERNEL_GROUP makes a tile of KERNEL_TILE x KERNEL_TILE of a product;
 * 256 is what every GPU can do.
 */
enum { KERNEL_GROUP = 16, KERNEL_TILE = 64 };

/* fill, product, triad and tiny, with their arguments in its comments. */
extern const char burn_kernels[];

#endif

/* burner.h - one benchmark on one device: its memory, its kernels, a step of it.
 *
 * Made by gogh-burn once; ends with the process, whose driver gives everything back. It counts what
 * it does, so that descriptors can be held against it.
 */
#ifndef PROBE_BURN_BURNER_H
#define PROBE_BURN_BURNER_H

#include <stddef.h>

#include "probe/burn/opencl.h"

struct burn;
struct err;
struct opencl_device;

/* The kernels' buffers: of products x, w, y; of the triad a, b, c; of the tiny ones z. */
enum { BURNER_X, BURNER_W, BURNER_Y, BURNER_A, BURNER_B, BURNER_C, BURNER_Z, BURNER_BUFFERS };

struct burner {
    const struct opencl *cl;
    const struct opencl_device *device;
    const struct burn *burn;
    size_t batch;
    opencl_handle context, queue, fill, product, triad, tiny;
    opencl_handle buffers[BURNER_BUFFERS];    // NULL: it needs none
    size_t n[BURNER_BUFFERS];                 // numbers in it

    double steps, kernels, flop, bytes, host_s;    // done so far
};

/* Take the memory and build the kernels. -ENOMEM: it does not fit; -EIO. */
int burner_open(struct burner *b, const struct opencl *cl, const struct opencl_device *device,
                const struct burn *burn, long batch, struct err *e);

/* One step, from beginning to end. -ENOMEM, -EIO. */
int burner_step(struct burner *b, struct err *e);

/* After steps: are the results right? -EILSEQ says which number is not. */
int burner_check(struct burner *b, struct err *e);

#endif

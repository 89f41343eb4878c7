/* precision.h - in which numbers a program multiplies.
 *
 * Plain values: a workload has one (workload.h), and a GPU type has a rate for each (gpu_type.h).
 */
#ifndef CATALOG_PRECISION_H
#define CATALOG_PRECISION_H

#include "base/text/text.h"

struct err;

enum precision {
    PRECISION_UNKNOWN,
    PRECISION_FP32,    // outside tensor cores
    PRECISION_TF32,    // FP32 in memory, tensor cores
    PRECISION_FP16,    // half or bfloat16 with FP32 accumulation: mixed precision
    PRECISION_FP8,
    PRECISION_INT8,
    PRECISIONS,
};

/* "fp32", "tf32", "fp16", "fp8", "int8"; NULL for an unknown one. */
const char *precision_name(enum precision p);

/* The reverse, with what people call them (bf16, half, mixed and amp are fp16; float is fp32), by
 * text_alike. Nothing is PRECISION_UNKNOWN. -EINVAL lists the names.
 */
int precision_read(struct slice text, enum precision *out, struct err *e);

#endif

/* opencl.h - the few functions of OpenCL 1.2 that are needed, by declarations of our own.
 *
 * libOpenCL is opened at run time ($GOGH_OPENCL_LIB names another): every vendor's driver brings
 * one, and it needs no toolkit. Names, constants and codes as in Khronos' "The OpenCL
 * Specification", version 1.2. Opened once by gogh-burn, never closed: drivers have own threads.
 */
#ifndef PROBE_BURN_OPENCL_H
#define PROBE_BURN_OPENCL_H

#include <stddef.h>
#include <stdint.h>

struct err;

typedef void *opencl_handle;    // a platform, device, context, queue, buffer, program or kernel

enum {
    OPENCL_OK = 0,
    OPENCL_NO_DEVICE = -1,
    OPENCL_ALLOCATION = -4,    // CL_MEM_OBJECT_ALLOCATION_FAILURE
    OPENCL_RESOURCES = -5,     // CL_OUT_OF_RESOURCES
    OPENCL_HOST_MEMORY = -6,
    OPENCL_BUFFER_SIZE = -61,
    OPENCL_NO_PLATFORM = -1001,
};

enum {
    OPENCL_PLATFORM_NAME = 0x0902,
    OPENCL_TYPE = 0x1000,
    OPENCL_VENDOR_ID = 0x1001,
    OPENCL_ALLOC_MAX = 0x1010,
    OPENCL_MEMORY = 0x101F,
    OPENCL_NAME = 0x102B,
    OPENCL_UUID = 0x106A,    // of the extension cl_khr_device_uuid
    OPENCL_BUILD_LOG = 0x1183,
    OPENCL_GROUP_SIZE = 0x11B0,
};

enum { OPENCL_CPU = 2, OPENCL_GPU = 4 };            // bits of OPENCL_TYPE
#define OPENCL_ANY_DEVICE ((uint64_t)0xFFFFFFFF)    // CL_DEVICE_TYPE_ALL
enum { OPENCL_READ_WRITE = 1 };

struct opencl {
    int (*platforms)(unsigned cap, opencl_handle *out, unsigned *n);
    int (*platform_info)(opencl_handle p, unsigned what, size_t size, void *to, size_t *n);
    int (*devices)(opencl_handle p, uint64_t type, unsigned cap, opencl_handle *out, unsigned *n);
    int (*device_info)(opencl_handle d, unsigned what, size_t size, void *to, size_t *n);
    opencl_handle (*context)(const intptr_t *options, unsigned n, const opencl_handle *devices,
                             void (*say)(const char *, const void *, size_t, void *), void *self,
                             int *code);
    opencl_handle (*queue)(opencl_handle context, opencl_handle d, uint64_t options, int *code);
    opencl_handle (*buffer)(opencl_handle context, uint64_t flags, size_t size, void *host,
                            int *code);
    opencl_handle (*program)(opencl_handle context, unsigned n, const char **texts,
                             const size_t *sizes, int *code);
    int (*build)(opencl_handle program, unsigned n, const opencl_handle *devices,
                 const char *options, void (*done)(opencl_handle, void *), void *self);
    int (*build_info)(opencl_handle program, opencl_handle d, unsigned what, size_t size, void *to,
                      size_t *n);
    opencl_handle (*kernel)(opencl_handle program, const char *name, int *code);
    int (*kernel_info)(opencl_handle kernel, opencl_handle d, unsigned what, size_t size, void *to,
                       size_t *n);
    int (*argument)(opencl_handle kernel, unsigned i, size_t size, const void *value);
    int (*run)(opencl_handle queue, opencl_handle kernel, unsigned dims, const size_t *offset,
               const size_t *global, const size_t *local, unsigned n_after,
               const opencl_handle *after, opencl_handle *event);
    int (*read)(opencl_handle queue, opencl_handle buffer, unsigned is_waiting, size_t offset,
                size_t size, void *to, unsigned n_after, const opencl_handle *after,
                opencl_handle *event);
    int (*finish)(opencl_handle queue);
};

/* Open the library. -ENOENT: there is none; -EIO: it lacks a function. Both name the cure. */
int opencl_open(struct opencl *out, struct err *e);

/* A code in words: "out of GPU memory (-4)". Lives until the next call. */
const char *opencl_words(int code);

#endif

/* In front of the OpenCL that is there, what $OPENCL_LIES says: "gpu", a CPU is an NVIDIA GPU;
 * "wrong", what is read back is off by one; "full", buffers cannot be had; "mute", how much memory
 * there is is not told; "name", the device's is no UTF-8. Linked with the real library, so that
 * whoever looks functions up here finds those that are not below in there.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int clGetDeviceInfo(void *d, unsigned what, size_t size, void *to, size_t *n);
int clEnqueueReadBuffer(void *queue, void *buffer, unsigned is_waiting, size_t offset, size_t size,
                        void *to, unsigned n_after, const void *after, void *event);
void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int *code);

static int lies(const char *word)
{
    const char *said = getenv("OPENCL_LIES");

    return said && strcmp(said, word) == 0;
}

static void *real(const char *name)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);

    return dlsym(library, name);
}

int clGetDeviceInfo(void *d, unsigned what, size_t size, void *to, size_t *n)
{
    int (*f)(void *, unsigned, size_t, void *, size_t *);
    int code;

    *(void **)&f = real("clGetDeviceInfo");
    code = f(d, what, size, to, n);
    if (what == 0x1000 && lies("gpu"))
        *(uint64_t *)to = 4;
    if (what == 0x1001 && lies("gpu"))
        *(uint32_t *)to = 0x10de;
    if (what == 0x102b && lies("name") && size >= 5)
        memcpy(to, "\xffGPU", 5);
    return (what == 0x101f || what == 0x1010) && lies("mute") ? -30 : code;
}

int clEnqueueReadBuffer(void *queue, void *buffer, unsigned is_waiting, size_t offset, size_t size,
                        void *to, unsigned n_after, const void *after, void *event)
{
    int (*f)(void *, void *, unsigned, size_t, size_t, void *, unsigned, const void *, void *);
    int code;

    *(void **)&f = real("clEnqueueReadBuffer");
    code = f(queue, buffer, is_waiting, offset, size, to, n_after, after, event);
    if (lies("wrong"))
        *(float *)to += 1;
    return code;
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int *code)
{
    void *(*f)(void *, uint64_t, size_t, void *, int *);

    *(void **)&f = real("clCreateBuffer");
    if (!lies("full"))
        return f(context, flags, size, host, code);
    *code = -4;
    return NULL;
}

#include "probe/burn/opencl.h"

#include <errno.h>
#include <stdio.h>

#include "act/gpu/library.h"
#include "base/err.h"

int opencl_open(struct opencl *out, struct err *e)
{
    static const char *const names[] = { "libOpenCL.so.1", "libOpenCL.so", NULL };
    const struct symbol symbols[] = {
        { "clGetPlatformIDs", (void **)&out->platforms, 0 },
        { "clGetPlatformInfo", (void **)&out->platform_info, 0 },
        { "clGetDeviceIDs", (void **)&out->devices, 0 },
        { "clGetDeviceInfo", (void **)&out->device_info, 0 },
        { "clCreateContext", (void **)&out->context, 0 },
        { "clCreateCommandQueue", (void **)&out->queue, 0 },
        { "clCreateBuffer", (void **)&out->buffer, 0 },
        { "clCreateProgramWithSource", (void **)&out->program, 0 },
        { "clBuildProgram", (void **)&out->build, 0 },
        { "clGetProgramBuildInfo", (void **)&out->build_info, 0 },
        { "clCreateKernel", (void **)&out->kernel, 0 },
        { "clGetKernelWorkGroupInfo", (void **)&out->kernel_info, 0 },
        { "clSetKernelArg", (void **)&out->argument, 0 },
        { "clEnqueueNDRangeKernel", (void **)&out->run, 0 },
        { "clEnqueueReadBuffer", (void **)&out->read, 0 },
        { "clFinish", (void **)&out->finish, 0 },
    };
    struct err why = { 0 };
    void *library;
    int rc = library_open("GOGH_OPENCL_LIB", names, symbols, sizeof symbols / sizeof *symbols,
                          &library, &why);

    if (rc == -ENOENT)
        return err_set(e, ENOENT,
                       "OpenCL is not there (%.200s): install the loader (Debian: "
                       "ocl-icd-libopencl1) and the part of the GPU's driver that speaks it",
                       why.text);
    return rc < 0 ? err_set(e, -rc, "%s", why.text) : 0;
}

const char *opencl_words(int code)
{
    static const struct {
        int code;
        const char *words;
    } known[] = {
        { OPENCL_NO_DEVICE, "no device" },
        { -2, "the device is not available" },
        { -3, "no compiler" },
        { OPENCL_ALLOCATION, "out of GPU memory" },
        { OPENCL_RESOURCES, "out of resources" },
        { OPENCL_HOST_MEMORY, "out of the host's memory" },
        { -11, "the program cannot be built" },
        { -54, "the work group is too large" },
        { OPENCL_BUFFER_SIZE, "larger than a buffer may be" },
        { OPENCL_NO_PLATFORM, "no driver that speaks OpenCL" },
    };
    static char text[80];
    const char *words = "an error";

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            words = known[i].words;
    snprintf(text, sizeof text, "%s (%d)", words, code);
    return text;
}

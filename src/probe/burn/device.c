#include "probe/burn/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/text/text.h"
#include "probe/burn/opencl.h"

enum { PLATFORMS_MAX = 16, VENDOR_NVIDIA = 0x10de, VENDOR_AMD = 0x1002 };

static double number_of(const struct opencl *cl, void *id, unsigned what)
{
    uint64_t v = 0;

    return cl->device_info(id, what, sizeof v, &v, NULL) == OPENCL_OK ? (double)v : 0;
}

/* "GPU-" and the 16 bytes as NVML writes them. Few drivers tell. */
static void read_uuid(const struct opencl *cl, void *id, char out[48])
{
    unsigned char b[16];
    size_t n = 0;

    out[0] = '\0';
    if (cl->device_info(id, OPENCL_UUID, sizeof b, b, &n) != OPENCL_OK || n != sizeof b)
        return;
    snprintf(out, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

/* What is no UTF-8 in a text of the driver's becomes question marks. */
static void clean(char *text)
{
    size_t bad;

    while (!text_is_utf8(text, strlen(text), &bad))
        text[bad] = '?';
}

static void describe(const struct opencl *cl, void *platform, void *id, struct opencl_device *out)
{
    uint64_t type = 0;

    *out = (struct opencl_device){ .id = id };
    (void)cl->platform_info(platform, OPENCL_PLATFORM_NAME, sizeof out->platform - 1, out->platform,
                            NULL);
    (void)cl->device_info(id, OPENCL_NAME, sizeof out->name - 1, out->name, NULL);
    (void)cl->device_info(id, OPENCL_TYPE, sizeof type, &type, NULL);
    (void)cl->device_info(id, OPENCL_VENDOR_ID, sizeof out->vendor, &out->vendor, NULL);
    clean(out->platform);
    clean(out->name);
    out->is_gpu = type & OPENCL_GPU;
    out->is_cpu = type & OPENCL_CPU;
    out->mem_bytes = number_of(cl, id, OPENCL_MEMORY);
    out->alloc_max_bytes = number_of(cl, id, OPENCL_ALLOC_MAX);
    read_uuid(cl, id, out->uuid);
}

int device_list(const struct opencl *cl, struct opencl_device *out, struct err *e)
{
    void *platforms[PLATFORMS_MAX], *ids[DEVICES_MAX];
    unsigned n_platforms = 0;
    int n = 0;
    int code = cl->platforms(PLATFORMS_MAX, platforms, &n_platforms);

    if (code == OPENCL_NO_PLATFORM)
        return 0;
    if (code != OPENCL_OK)
        return err_set(e, EIO, "OpenCL: cannot list its drivers: %s", opencl_words(code));
    for (unsigned p = 0; p < n_platforms && p < PLATFORMS_MAX; p++) {
        unsigned n_here = 0;

        code = cl->devices(platforms[p], OPENCL_ANY_DEVICE, DEVICES_MAX, ids, &n_here);
        if (code != OPENCL_OK)    // a driver without a device; another may have one
            continue;
        for (unsigned i = 0; i < n_here && i < DEVICES_MAX && n < DEVICES_MAX; i++)
            describe(cl, platforms[p], ids[i], &out[n++]);
    }
    return n;
}

static bool is_set(const char *list)
{
    return list && *list;
}

/* Where the driver tells UUIDs and the list has them, they must agree; a beginning suffices. */
static bool is_in(const char *list, const char *uuid)
{
    const size_t n = strcspn(list, ",");

    return !*uuid || strncasecmp(list, "GPU-", 4) != 0 || strncasecmp(list, uuid, n) == 0;
}

static bool is_ruled_out(const struct opencl_device *d, const char *cuda, const char *rocr)
{
    if (d->vendor == VENDOR_NVIDIA && is_set(cuda))
        return !is_in(cuda, d->uuid);
    if (d->vendor == VENDOR_AMD && is_set(rocr))
        return false;
    return is_set(cuda) != is_set(rocr);    // the other vendor's was meant
}

/* Two platforms may show the same GPUs, one of them without a look at the variable. */
static bool is_uncertain(const struct opencl_device *list, int n, const struct opencl_device *d,
                         const char *rocr)
{
    int n_shown = 0, n_named = 1;

    if (d->vendor != VENDOR_AMD || !is_set(rocr))
        return false;
    for (int i = 0; i < n; i++)
        n_shown += list[i].is_gpu && list[i].vendor == VENDOR_AMD &&
                   strcmp(list[i].platform, d->platform) == 0;
    for (const char *at = rocr; *at; at++)
        n_named += *at == ',';
    return n_shown > n_named;
}

int device_choose(const struct opencl_device *list, int n, const char *cuda, const char *rocr,
                  bool may_any)
{
    int none = DEVICE_NONE;

    for (int i = 0; i < n; i++) {
        if (!list[i].is_gpu || is_ruled_out(&list[i], cuda, rocr))
            continue;
        if (!is_uncertain(list, n, &list[i], rocr))
            return i;
        none = DEVICE_UNCERTAIN;
    }
    for (int i = 0; i < n && may_any && none == DEVICE_NONE; i++)
        if (!list[i].is_gpu)
            return i;
    return none;
}

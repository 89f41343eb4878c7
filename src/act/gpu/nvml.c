/* NVIDIA's management library: the few functions that are needed, declared here. Names, units
 * and codes as in NVIDIA's "NVML API Reference Guide"; watts are told in mW, joules in mJ.
 */
#include "act/gpu/inner.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "act/gpu/devices.h"
#include "act/gpu/library.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"

enum {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_GPU_IS_LOST = 15,
};

/* nvmlComputeMode_t, and NVML_DEVICE_MIG_ENABLE. */
enum {
    COMPUTE_EXCLUSIVE_THREAD = 1,
    COMPUTE_PROHIBITED = 2,
    COMPUTE_EXCLUSIVE_PROCESS = 3,
    MIG_ENABLED = 1,
};

typedef void *handle;    // nvmlDevice_t

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_use {
    unsigned gpu, memory;    // percent of the time
};

struct nvml {
    void *library;
    bool has_begun;
    handle *devices;    // (n)
    int n;
    int (*init)(void);
    int (*shut_down)(void);
    const char *(*error_text)(int code);
    int (*count)(unsigned *n);
    int (*device)(unsigned index, handle *out);
    int (*name)(handle d, char *to, unsigned size);
    int (*uuid)(handle d, char *to, unsigned size);
    int (*memory)(handle d, struct nvml_memory *out);
    int (*draw_mw)(handle d, unsigned *out);
    int (*energy_mj)(handle d, unsigned long long *out);
    int (*use)(handle d, struct nvml_use *out);    // NULL: not there, as the next two
    int (*mig_mode)(handle d, unsigned *now, unsigned *pending);
    int (*compute_mode)(handle d, unsigned *out);
    int (*limit_mw)(handle d, unsigned *out);
    int (*default_mw)(handle d, unsigned *out);
    int (*range_mw)(handle d, unsigned *low, unsigned *high);
    int (*set_mw)(handle d, unsigned limit);
};

static int say(const struct nvml *n, int code, int index, const char *what, struct err *e)
{
    int error = EIO;

    if (code == NVML_NOT_SUPPORTED)
        error = ENOTSUP;
    else if (code == NVML_NO_PERMISSION)
        error = EPERM;
    else if (code == NVML_GPU_IS_LOST || code == NVML_NOT_FOUND)
        error = ENODEV;
    return err_set(e, error, "NVML: GPU %d: %s: %s", index, what, n->error_text(code));
}

/* Drivers share by time slices where nobody has told them otherwise. */
static enum sharing sharing_of(const struct nvml *n, int index, const char *name)
{
    handle d = n->devices[index];
    unsigned mode = 0, pending = 0;

    if (sharing_is_slice(name))
        return SHARING_MIG;
    if (n->mig_mode && n->mig_mode(d, &mode, &pending) == NVML_OK && mode == MIG_ENABLED)
        return SHARING_MIG;
    if (!n->compute_mode || n->compute_mode(d, &mode) != NVML_OK)
        return SHARING_TIMESLICE;
    if (mode == COMPUTE_PROHIBITED) {
        log_warn("GPU %d (%s) is in compute mode 'prohibited', and every job fails there; "
                 "'nvidia-smi -i %d -c DEFAULT' ends that",
                 index, name, index);
        return SHARING_UNKNOWN;
    }
    return mode == COMPUTE_EXCLUSIVE_PROCESS || mode == COMPUTE_EXCLUSIVE_THREAD
               ? SHARING_EXCLUSIVE
               : SHARING_TIMESLICE;
}

static int describe(void *self, int index, struct arena *a, struct device *out, struct err *e)
{
    const struct nvml *n = self;
    handle d = n->devices[index];
    char name[96] = "", uuid[96] = "";
    struct nvml_memory memory = { 0 };
    unsigned low = 0, high = 0, limit = 0;
    int code = n->name(d, name, sizeof name);

    if (code == NVML_OK)
        code = n->uuid(d, uuid, sizeof uuid);
    if (code == NVML_OK)
        code = n->memory(d, &memory);
    if (code != NVML_OK)
        return say(n, code, index, "cannot describe it", e);
    out->title = arena_strdup(a, name);
    out->uuid = arena_strdup(a, uuid);
    out->mem_bytes = (double)memory.total;
    out->sharing = sharing_of(n, index, name);
    if (n->range_mw(d, &low, &high) == NVML_OK && n->limit_mw(d, &limit) == NVML_OK) {
        out->limit_low_w = low / 1e3;
        out->limit_w = limit / 1e3;
        out->limit_high_w = high / 1e3;
    }
    return 0;
}

static void use_of(const struct nvml *n, handle d, struct device_use *out)
{
    struct nvml_memory memory = { 0 };
    struct nvml_use use = { 0 };

    if (n->use && n->use(d, &use) == NVML_OK) {
        out->gpu = use.gpu / 100.0;
        out->mem = use.memory / 100.0;
    }
    if (n->memory(d, &memory) == NVML_OK)
        out->mem_bytes = (double)memory.used;
}

static int power(void *self, int index, struct device_power *out, struct err *e)
{
    const struct nvml *n = self;
    unsigned long long mj = 0;
    unsigned mw = 0;
    int code = n->draw_mw(n->devices[index], &mw);

    if (code != NVML_OK)
        return say(n, code, index, "cannot read its power", e);
    out->watts = mw / 1e3;
    if (n->energy_mj(n->devices[index], &mj) == NVML_OK)    // from Volta on
        out->joules = (double)mj / 1e3;
    use_of(n, n->devices[index], &out->use);
    return 0;
}

static int limit(void *self, int index, int watts, struct err *e)
{
    const struct nvml *n = self;
    unsigned mw = (unsigned)watts * 1000;
    int code = NVML_OK;

    if (watts == 0)
        code = n->default_mw(n->devices[index], &mw);
    if (code == NVML_OK)
        code = n->set_mw(n->devices[index], mw);
    return code == NVML_OK ? 0 : say(n, code, index, "cannot set its power limit", e);
}

static void nvml_close(void *self)
{
    struct nvml *n = self;

    if (n->has_begun)
        n->shut_down();
    if (n->library)
        dlclose(n->library);
    free(n->devices);
    free(n);
}

static int load(struct nvml *n, struct err *e)
{
    static const char *const names[] = { "libnvidia-ml.so.1", NULL };
    const struct symbol symbols[] = {
        { "nvmlInit_v2", (void **)&n->init, 0 },
        { "nvmlShutdown", (void **)&n->shut_down, 0 },
        { "nvmlErrorString", (void **)&n->error_text, 0 },
        { "nvmlDeviceGetCount_v2", (void **)&n->count, 0 },
        { "nvmlDeviceGetHandleByIndex_v2", (void **)&n->device, 0 },
        { "nvmlDeviceGetName", (void **)&n->name, 0 },
        { "nvmlDeviceGetUUID", (void **)&n->uuid, 0 },
        { "nvmlDeviceGetMemoryInfo", (void **)&n->memory, 0 },
        { "nvmlDeviceGetPowerUsage", (void **)&n->draw_mw, 0 },
        { "nvmlDeviceGetTotalEnergyConsumption", (void **)&n->energy_mj, 0 },
        { "nvmlDeviceGetUtilizationRates", (void **)&n->use, 1 },
        { "nvmlDeviceGetMigMode", (void **)&n->mig_mode, 1 },
        { "nvmlDeviceGetComputeMode", (void **)&n->compute_mode, 1 },
        { "nvmlDeviceGetPowerManagementLimit", (void **)&n->limit_mw, 0 },
        { "nvmlDeviceGetPowerManagementDefaultLimit", (void **)&n->default_mw, 0 },
        { "nvmlDeviceGetPowerManagementLimitConstraints", (void **)&n->range_mw, 0 },
        { "nvmlDeviceSetPowerManagementLimit", (void **)&n->set_mw, 0 },
    };

    return library_open("GOGH_NVML_LIB", names, symbols, sizeof symbols / sizeof *symbols,
                        &n->library, e);
}

static int begin(struct nvml *n, struct err *e)
{
    unsigned count = 0;
    int code = n->init();

    if (code != NVML_OK)
        return err_set(e, code == NVML_DRIVER_NOT_LOADED ? ENOENT : EIO, "NVML: cannot begin: %s",
                       n->error_text(code));
    n->has_begun = true;
    code = n->count(&count);
    if (code != NVML_OK)
        return err_set(e, EIO, "NVML: cannot count the GPUs: %s", n->error_text(code));
    n->devices = heap_array(count, sizeof *n->devices);
    for (n->n = 0; n->n < (int)count; n->n++) {
        code = n->device((unsigned)n->n, &n->devices[n->n]);
        if (code != NVML_OK)
            return say(n, code, n->n, "cannot be had", e);
    }
    return 0;
}

int nvml_open(struct gpu_library *out, struct err *e)
{
    struct nvml *n = heap_array(1, sizeof *n);
    int rc = load(n, e);

    if (rc == 0)
        rc = begin(n, e);
    if (rc < 0) {
        nvml_close(n);
        return rc;
    }
    *out = (struct gpu_library){ .self = n,
                                 .n_devices = n->n,
                                 .describe = describe,
                                 .power = power,
                                 .limit = limit,
                                 .close = nvml_close };
    return 0;
}

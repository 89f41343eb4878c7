/* AMD's ROCm SMI: the few functions that are needed, declared here. Names, units and codes as in
 * AMD's "ROCm SMI Library" reference; watts are told in uW, joules as a counter and its step in uJ.
 */
#include "act/gpu/inner.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "act/gpu/devices.h"
#include "act/gpu/library.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"

enum { RSMI_OK = 0, RSMI_NOT_SUPPORTED = 2, RSMI_PERMISSION = 4, RSMI_NOT_FOUND = 9 };
enum { RSMI_VRAM = 0 };

struct rocm {
    void *library;
    uint32_t n;
    int (*init)(uint64_t flags);
    int (*shut_down)(void);
    int (*error_text)(int code, const char **out);
    int (*count)(uint32_t *n);
    int (*name)(uint32_t d, char *to, size_t size);
    int (*unique_id)(uint32_t d, uint64_t *out);
    int (*memory)(uint32_t d, int kind, uint64_t *out);
    int (*draw_uw)(uint32_t d, uint32_t sensor, uint64_t *out);    // mean of some milliseconds
    int (*now_uw)(uint32_t d, uint64_t *out, int *kind);           // newer; NULL: not there
    int (*energy)(uint32_t d, uint64_t *counter, float *step_uj, uint64_t *time_ns);
    int (*busy)(uint32_t d, uint32_t *percent);                 // NULL: not there
    int (*memory_busy)(uint32_t d, uint32_t *percent);          // likewise
    int (*memory_used)(uint32_t d, int kind, uint64_t *out);    // likewise
    int (*cap_uw)(uint32_t d, uint32_t sensor, uint64_t *out);
    int (*default_uw)(uint32_t d, uint64_t *out);
    int (*range_uw)(uint32_t d, uint32_t sensor, uint64_t *high, uint64_t *low);
    int (*set_uw)(uint32_t d, uint32_t sensor, uint64_t cap);
};

static const char *error_text(const struct rocm *r, int code)
{
    const char *text = NULL;

    return r->error_text(code, &text) == RSMI_OK && text ? text : "unknown error";
}

static int say(const struct rocm *r, int code, int index, const char *what, struct err *e)
{
    int error = EIO;

    if (code == RSMI_NOT_SUPPORTED)
        error = ENOTSUP;
    else if (code == RSMI_PERMISSION)
        error = EPERM;
    else if (code == RSMI_NOT_FOUND)
        error = ENODEV;
    return err_set(e, error, "ROCm SMI: GPU %d: %s: %s", index, what, error_text(r, code));
}

static int describe(void *self, int index, struct arena *a, struct device *out, struct err *e)
{
    const struct rocm *r = self;
    const uint32_t d = (uint32_t)index;
    uint64_t bytes = 0, id = 0, low = 0, high = 0, cap = 0;
    char name[128] = "";
    int code = r->name(d, name, sizeof name);

    if (code == RSMI_OK)
        code = r->memory(d, RSMI_VRAM, &bytes);
    if (code != RSMI_OK)
        return say(r, code, index, "cannot describe it", e);
    out->title = arena_strdup(a, name);
    out->mem_bytes = (double)bytes;
    if (r->unique_id(d, &id) == RSMI_OK && id != 0)
        out->uuid = arena_printf(a, "GPU-%016" PRIx64, id);    // as ROCR_VISIBLE_DEVICES has it
    if (r->range_uw(d, 0, &high, &low) == RSMI_OK && r->cap_uw(d, 0, &cap) == RSMI_OK) {
        out->limit_low_w = (double)low / 1e6;
        out->limit_w = (double)cap / 1e6;
        out->limit_high_w = (double)high / 1e6;
    }
    return 0;
}

static void use_of(const struct rocm *r, uint32_t d, struct device_use *out)
{
    uint32_t percent = 0;
    uint64_t bytes = 0;

    if (r->busy && r->busy(d, &percent) == RSMI_OK)
        out->gpu = percent / 100.0;
    if (r->memory_busy && r->memory_busy(d, &percent) == RSMI_OK)
        out->mem = percent / 100.0;
    if (r->memory_used && r->memory_used(d, RSMI_VRAM, &bytes) == RSMI_OK)
        out->mem_bytes = (double)bytes;
}

static int power(void *self, int index, struct device_power *out, struct err *e)
{
    const struct rocm *r = self;
    const uint32_t d = (uint32_t)index;
    uint64_t uw = 0, counter = 0, time_ns = 0;
    float step_uj = 0;
    int kind = 0;
    int code = r->draw_uw(d, 0, &uw);

    if (code == RSMI_NOT_SUPPORTED && r->now_uw)
        code = r->now_uw(d, &uw, &kind);
    if (code != RSMI_OK)
        return say(r, code, index, "cannot read its power", e);
    out->watts = (double)uw / 1e6;
    if (r->energy(d, &counter, &step_uj, &time_ns) == RSMI_OK)
        out->joules = (double)counter * (double)step_uj / 1e6;
    use_of(r, d, &out->use);
    return 0;
}

static int limit(void *self, int index, int watts, struct err *e)
{
    const struct rocm *r = self;
    const uint32_t d = (uint32_t)index;
    uint64_t uw = (uint64_t)watts * 1000000;
    int code = RSMI_OK;

    if (watts == 0)
        code = r->default_uw(d, &uw);
    if (code == RSMI_OK)
        code = r->set_uw(d, 0, uw);
    return code == RSMI_OK ? 0 : say(r, code, index, "cannot set its power limit", e);
}

static void rocm_close(void *self)
{
    struct rocm *r = self;

    r->shut_down();
    dlclose(r->library);
    free(r);
}

static int load(struct rocm *r, struct err *e)
{
    static const char *const names[] = { "librocm_smi64.so.7", "librocm_smi64.so.6",
                                         "librocm_smi64.so.5", "librocm_smi64.so.1",
                                         "librocm_smi64.so",   NULL };
    const struct symbol symbols[] = {
        { "rsmi_init", (void **)&r->init, 0 },
        { "rsmi_shut_down", (void **)&r->shut_down, 0 },
        { "rsmi_status_string", (void **)&r->error_text, 0 },
        { "rsmi_num_monitor_devices", (void **)&r->count, 0 },
        { "rsmi_dev_name_get", (void **)&r->name, 0 },
        { "rsmi_dev_unique_id_get", (void **)&r->unique_id, 0 },
        { "rsmi_dev_memory_total_get", (void **)&r->memory, 0 },
        { "rsmi_dev_power_ave_get", (void **)&r->draw_uw, 0 },
        { "rsmi_dev_power_get", (void **)&r->now_uw, 1 },
        { "rsmi_dev_energy_count_get", (void **)&r->energy, 0 },
        { "rsmi_dev_busy_percent_get", (void **)&r->busy, 1 },
        { "rsmi_dev_memory_busy_percent_get", (void **)&r->memory_busy, 1 },
        { "rsmi_dev_memory_usage_get", (void **)&r->memory_used, 1 },
        { "rsmi_dev_power_cap_get", (void **)&r->cap_uw, 0 },
        { "rsmi_dev_power_cap_default_get", (void **)&r->default_uw, 0 },
        { "rsmi_dev_power_cap_range_get", (void **)&r->range_uw, 0 },
        { "rsmi_dev_power_cap_set", (void **)&r->set_uw, 0 },
    };

    return library_open("GOGH_ROCM_LIB", names, symbols, sizeof symbols / sizeof *symbols,
                        &r->library, e);
}

int rocm_open(struct gpu_library *out, struct err *e)
{
    struct rocm *r = heap_array(1, sizeof *r);
    int rc = load(r, e);

    if (rc < 0) {
        free(r);
        return rc;
    }
    int code = r->init(0);
    if (code == RSMI_OK)
        code = r->count(&r->n);
    if (code != RSMI_OK) {
        rc = err_set(e, EIO, "ROCm SMI: cannot begin: %s", error_text(r, code));
        dlclose(r->library);
        free(r);
        return rc;
    }
    *out = (struct gpu_library){ .self = r,
                                 .n_devices = (int)r->n,
                                 .describe = describe,
                                 .power = power,
                                 .limit = limit,
                                 .close = rocm_close };
    return 0;
}

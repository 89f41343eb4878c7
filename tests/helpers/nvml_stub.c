/* A library that speaks NVML and has no GPU: what it says is in the file that $NVML_STUB names, which
 * is read again at each call. One line, one thing:
 *
 *     gpu INDEX NAME UUID BYTES WATTS JOULES LOW_W DEFAULT_W HIGH_W
 *     use INDEX PERCENT MEMORY_PERCENT BYTES_USED
 *     mode INDEX MIG COMPUTE          MIG mode (1: on) and compute mode (3: one process)
 *     fail FUNCTION CODE              that function gives this code
 *     hang FUNCTION                   that function does not return as long as this line is there
 *
 * In a name '_' stands for a blank. Joules below 0: not counted; a HIGH_W of 0: no limits.
 * Limits that are set are appended to it as "set INDEX WATTS"; the last one counts.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu {
    char name[96], uuid[96];
    double bytes, watts, joules, low_w, default_w, high_w, limit_w;
    double use, memory_use, used_bytes;
    unsigned mig, compute;
};

struct memory {
    unsigned long long total, free, used;
};

struct use {
    unsigned gpu, memory;
};

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, GPUS_MAX = 16 };

struct world {
    struct gpu gpus[GPUS_MAX];
    unsigned n;
    int code;          // of the function that asks
    int is_hanging;    // it does
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetName(void *d, char *to, unsigned size);
int nvmlDeviceGetUUID(void *d, char *to, unsigned size);
int nvmlDeviceGetMemoryInfo(void *d, struct memory *out);
int nvmlDeviceGetPowerUsage(void *d, unsigned *out);
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *out);
int nvmlDeviceGetUtilizationRates(void *d, struct use *out);
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *pending);
int nvmlDeviceGetComputeMode(void *d, unsigned *out);
int nvmlDeviceGetPowerManagementLimit(void *d, unsigned *out);
int nvmlDeviceGetPowerManagementDefaultLimit(void *d, unsigned *out);
int nvmlDeviceGetPowerManagementLimitConstraints(void *d, unsigned *low, unsigned *high);
int nvmlDeviceSetPowerManagementLimit(void *d, unsigned mw);

static void take_line(struct world *w, const char *line, const char *function)
{
    struct gpu g = { .bytes = 0 };
    char word[96];
    unsigned i;
    double v;
    int code;

    if (sscanf(line, "gpu %u %95s %95s %lf %lf %lf %lf %lf %lf", &i, g.name, g.uuid, &g.bytes,
               &g.watts, &g.joules, &g.low_w, &g.default_w, &g.high_w) == 9 &&
        i < GPUS_MAX) {
        for (char *c = g.name; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        g.limit_w = g.default_w;
        w->gpus[i] = g;
        w->n = i + 1 > w->n ? i + 1 : w->n;
    } else if (sscanf(line, "use %u %lf %lf %lf", &i, &g.use, &g.memory_use, &g.used_bytes) == 4 &&
               i < GPUS_MAX) {
        w->gpus[i].use = g.use;
        w->gpus[i].memory_use = g.memory_use;
        w->gpus[i].used_bytes = g.used_bytes;
    } else if (sscanf(line, "mode %u %u %u", &i, &g.mig, &g.compute) == 3 && i < GPUS_MAX) {
        w->gpus[i].mig = g.mig;
        w->gpus[i].compute = g.compute;
    } else if (sscanf(line, "set %u %lf", &i, &v) == 2 && i < GPUS_MAX) {
        w->gpus[i].limit_w = v;
    } else if (sscanf(line, "fail %95s %d", word, &code) == 2 && strcmp(word, function) == 0) {
        w->code = code;
    } else if (sscanf(line, "hang %95s", word) == 1 && strcmp(word, function) == 0) {
        w->is_hanging = 1;
    }
}

static struct world look_once(const char *function)
{
    const char *path = getenv("NVML_STUB");
    FILE *f = path ? fopen(path, "re") : NULL;
    struct world w = { .code = f ? OK : 9 };
    char line[512];

    while (f && fgets(line, sizeof line, f))
        take_line(&w, line, function);
    if (f)
        fclose(f);
    return w;
}

static struct world look(const char *function)
{
    struct world w = look_once(function);

    while (w.is_hanging) {
        poll(NULL, 0, 10);
        w = look_once(function);
    }
    return w;
}

/* A handle is the index and one, so that none is NULL. */
static struct gpu *gpu_of(struct world *w, void *d)
{
    const size_t i = (size_t)d - 1;

    return i < w->n ? &w->gpus[i] : NULL;
}

#define LOOK(d)                      \
    struct world w = look(__func__); \
    struct gpu *g = gpu_of(&w, d);   \
    if (w.code != OK)                \
        return w.code;               \
    if (!g)                          \
        return INVALID;

int nvmlInit_v2(void)
{
    return look(__func__).code;
}

int nvmlShutdown(void)
{
    return OK;
}

const char *nvmlErrorString(int code)
{
    return code == 4 ? "Insufficient Permissions" : code == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    struct world w = look(__func__);

    *n = w.n;
    return w.code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    struct world w = look(__func__);

    *out = (char *)0 + index + 1;
    return w.code ? w.code : index < w.n ? OK : INVALID;
}

int nvmlDeviceGetName(void *d, char *to, unsigned size)
{
    LOOK(d)
    snprintf(to, size, "%s", g->name);
    return OK;
}

int nvmlDeviceGetUUID(void *d, char *to, unsigned size)
{
    LOOK(d)
    snprintf(to, size, "%s", g->uuid);
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *d, struct memory *out)
{
    LOOK(d)
    *out = (struct memory){ .total = (unsigned long long)g->bytes,
                            .used = (unsigned long long)g->used_bytes };
    return OK;
}

int nvmlDeviceGetPowerUsage(void *d, unsigned *out)
{
    LOOK(d)
    *out = (unsigned)(g->watts * 1e3);
    return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *out)
{
    LOOK(d)
    *out = (unsigned long long)(g->joules * 1e3);
    return g->joules < 0 ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetUtilizationRates(void *d, struct use *out)
{
    LOOK(d)
    *out = (struct use){ .gpu = (unsigned)g->use, .memory = (unsigned)g->memory_use };
    return OK;
}

int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *pending)
{
    LOOK(d)
    *now = *pending = g->mig;
    return OK;
}

int nvmlDeviceGetComputeMode(void *d, unsigned *out)
{
    LOOK(d)
    *out = g->compute;
    return OK;
}

int nvmlDeviceGetPowerManagementLimit(void *d, unsigned *out)
{
    LOOK(d)
    *out = (unsigned)(g->limit_w * 1e3);
    return OK;
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *d, unsigned *out)
{
    LOOK(d)
    *out = (unsigned)(g->default_w * 1e3);
    return OK;
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *d, unsigned *low, unsigned *high)
{
    LOOK(d)
    *low = (unsigned)(g->low_w * 1e3);
    *high = (unsigned)(g->high_w * 1e3);
    return g->high_w > 0 ? OK : NOT_SUPPORTED;
}

int nvmlDeviceSetPowerManagementLimit(void *d, unsigned mw)
{
    LOOK(d)
    FILE *f = fopen(getenv("NVML_STUB"), "ae");
    if (!f)
        return NOT_SUPPORTED;
    fprintf(f, "set %d %g\n", (int)(g - w.gpus), mw / 1e3);
    fclose(f);
    return OK;
}

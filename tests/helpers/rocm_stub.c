/* A library that speaks ROCm SMI and has no GPU: what it says is in the file that $ROCM_STUB names, read
 * again at each call, in lines
 *
 *     gpu INDEX NAME ID BYTES WATTS JOULES LOW_W DEFAULT_W HIGH_W
 *     fail FUNCTION CODE
 *
 * In a name '_' stands for a blank. Joules below 0: not counted; a HIGH_W of 0: no limits.
 * Limits that are set are appended as "set INDEX WATTS".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu {
    char name[96];
    unsigned long long id;
    double bytes, watts, joules, low_w, default_w, high_w;
};

enum { OK = 0, INVALID = 1, NOT_SUPPORTED = 2, NO_FILE = 3, GPUS_MAX = 16 };

struct world {
    struct gpu gpus[GPUS_MAX];
    uint32_t n;
    int code;
};

int rsmi_init(uint64_t flags);
int rsmi_shut_down(void);
int rsmi_status_string(int code, const char **out);
int rsmi_num_monitor_devices(uint32_t *n);
int rsmi_dev_name_get(uint32_t d, char *to, size_t size);
int rsmi_dev_unique_id_get(uint32_t d, uint64_t *out);
int rsmi_dev_memory_total_get(uint32_t d, int kind, uint64_t *out);
int rsmi_dev_power_ave_get(uint32_t d, uint32_t sensor, uint64_t *out);
int rsmi_dev_power_get(uint32_t d, uint64_t *out, int *kind);
int rsmi_dev_energy_count_get(uint32_t d, uint64_t *counter, float *step_uj, uint64_t *time_ns);
int rsmi_dev_power_cap_get(uint32_t d, uint32_t sensor, uint64_t *out);
int rsmi_dev_power_cap_default_get(uint32_t d, uint64_t *out);
int rsmi_dev_power_cap_range_get(uint32_t d, uint32_t sensor, uint64_t *high, uint64_t *low);
int rsmi_dev_power_cap_set(uint32_t d, uint32_t sensor, uint64_t cap);

static void take_line(struct world *w, const char *line, const char *function)
{
    struct gpu g = { .bytes = 0 };
    char word[96];
    uint32_t i;
    int code;

    if (sscanf(line, "gpu %u %95s %llx %lf %lf %lf %lf %lf %lf", &i, g.name, &g.id, &g.bytes,
               &g.watts, &g.joules, &g.low_w, &g.default_w, &g.high_w) == 9 &&
        i < GPUS_MAX) {
        for (char *c = g.name; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        w->gpus[i] = g;
        w->n = i + 1 > w->n ? i + 1 : w->n;
    } else if (sscanf(line, "fail %95s %d", word, &code) == 2 && strcmp(word, function) == 0) {
        w->code = code;
    }
}

static struct world look(const char *function)
{
    const char *path = getenv("ROCM_STUB");
    FILE *f = path ? fopen(path, "re") : NULL;
    struct world w = { .code = f ? OK : NO_FILE };
    char line[512];

    while (f && fgets(line, sizeof line, f))
        take_line(&w, line, function);
    if (f)
        fclose(f);
    return w;
}

#define LOOK(d)                                    \
    struct world w = look(__func__);               \
    const struct gpu *g = &w.gpus[(d) % GPUS_MAX]; \
    if (w.code != OK || (d) >= w.n)                \
        return w.code ? w.code : INVALID;

static uint64_t micro(double v)
{
    return (uint64_t)(v * 1e6);
}

int rsmi_init(uint64_t flags)
{
    return flags ? INVALID : look(__func__).code;
}

int rsmi_shut_down(void)
{
    return OK;
}

int rsmi_status_string(int code, const char **out)
{
    *out = code == 4 ? "RSMI_STATUS_PERMISSION" : "RSMI_STATUS_SOMETHING";
    return OK;
}

int rsmi_num_monitor_devices(uint32_t *n)
{
    struct world w = look(__func__);

    *n = w.n;
    return w.code;
}

int rsmi_dev_name_get(uint32_t d, char *to, size_t size)
{
    LOOK(d)
    snprintf(to, size, "%s", g->name);
    return OK;
}

int rsmi_dev_unique_id_get(uint32_t d, uint64_t *out)
{
    LOOK(d)
    *out = g->id;
    return OK;
}

int rsmi_dev_memory_total_get(uint32_t d, int kind, uint64_t *out)
{
    LOOK(d)
    *out = (uint64_t)g->bytes;
    return kind == 0 ? OK : INVALID;
}

int rsmi_dev_power_ave_get(uint32_t d, uint32_t sensor, uint64_t *out)
{
    LOOK(d)
    *out = micro(g->watts);
    return sensor == 0 ? OK : INVALID;
}

int rsmi_dev_power_get(uint32_t d, uint64_t *out, int *kind)
{
    LOOK(d)
    *out = micro(g->watts + 1);
    *kind = 1;
    return OK;
}

int rsmi_dev_energy_count_get(uint32_t d, uint64_t *counter, float *step_uj, uint64_t *time_ns)
{
    LOOK(d)
    *counter = micro(g->joules / 16);
    *step_uj = 16;
    *time_ns = 0;
    return g->joules < 0 ? NOT_SUPPORTED : OK;
}

int rsmi_dev_power_cap_get(uint32_t d, uint32_t sensor, uint64_t *out)
{
    LOOK(d)
    *out = micro(g->default_w);
    return sensor == 0 ? OK : INVALID;
}

int rsmi_dev_power_cap_default_get(uint32_t d, uint64_t *out)
{
    LOOK(d)
    *out = micro(g->default_w);
    return OK;
}

int rsmi_dev_power_cap_range_get(uint32_t d, uint32_t sensor, uint64_t *high, uint64_t *low)
{
    LOOK(d)
    *low = micro(g->low_w);
    *high = micro(g->high_w);
    return sensor == 0 && g->high_w > 0 ? OK : NOT_SUPPORTED;
}

int rsmi_dev_power_cap_set(uint32_t d, uint32_t sensor, uint64_t cap)
{
    LOOK(d)
    FILE *f = fopen(getenv("ROCM_STUB"), "ae");
    if (!f || sensor != 0 || cap < micro(g->low_w))
        return INVALID;
    fprintf(f, "set %u %g\n", d, (double)cap / 1e6);
    fclose(f);
    return OK;
}

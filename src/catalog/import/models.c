#include "catalog/import/models.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "catalog/import/draft.h"

int model_workload(struct draft *d, const struct model_use *u)
{
    struct workload w;
    int rc = workload_builtin(&d->arena, u->model, u->batch, &w, NULL);

    assert(rc == 0);
    if (u->family != NULL)
        w.family = u->family;
    if (u->is_synthetic) {
        w.dataset = "synthetic";
        w.cpu_ms_per_sample = 0;
        w.name =
            workload_name(&d->arena, arena_printf(&d->arena, "%s-synthetic", u->model), u->batch);
    }
    workload_to_precision(&d->arena, &w, u->precision);
    int n_before = d->n_workloads, i = draft_workload(d, w.name);
    if (i == n_before) {
        w.name = d->workloads[i].name;
        d->workloads[i] = w;
    }
    return i;
}

const char *model_named(const struct model_name *names, int n, const char *said)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i].said, said) == 0)
            return names[i].model;
    return NULL;
}

const char *model_family(struct draft *d, const char *network, bool is_inference)
{
    size_t len = 0;

    while (isalpha((unsigned char)network[len]) ||
           (network[len] == '_' && isalpha((unsigned char)network[len + 1]) &&
            isalpha((unsigned char)network[len + 2])))    // not a version, as in _v2
        len++;
    len = strstr(network, "_bn") == NULL ? len : strcspn(network, "0123456789_");
    return arena_printf(&d->arena, "%.*s%s%s", (int)len, network,
                        strstr(network, "_bn") != NULL ? "-bn" : "", is_inference ? "-infer" : "");
}

/* Eighths of the memory and its bandwidth, by sevenths of the multiprocessors: NVIDIA
 * Multi-Instance GPU user guide, profiles of the A100 (1g.5gb to 7g.40gb). What a slice draws is
 * told by nobody; its share is taken.
 */
int model_slice(struct draft *d, int n)
{
    static const int eighths[8] = { 0, 1, 2, 4, 4, 0, 0, 8 };
    const struct gpu_type *whole = gpu_type_builtin("a100-40");
    int n_before = d->n_types;
    int i = draft_type(d, arena_printf(&d->arena, "a100-mig-%dg", n));
    struct gpu_type *t = &d->types[i];

    assert(n > 0 && n < 8 && eighths[n] > 0);
    if (i < n_before)
        return i;
    const char *name = t->name;
    *t = *whole;
    t->name = name;
    t->title = arena_printf(&d->arena, "NVIDIA A100 SXM4 40 GB, MIG slice of %d sevenths", n);
    t->source = "NVIDIA Multi-Instance GPU user guide; watts: the slice's share";
    t->peak_fp32_flops *= n / 7.0;
    t->peak_tf32_flops *= n / 7.0;
    t->peak_fp16_flops *= n / 7.0;
    t->peak_int8_flops *= n / 7.0;
    t->bandwidth_bytes_s *= eighths[n] / 8.0;
    t->mem_bytes *= eighths[n] / 8.0;
    t->idle_w *= n / 7.0;
    t->sleep_w *= n / 7.0;
    t->cap_w *= n / 7.0;
    t->limit_low_w = 0;    // limits are of the whole board
    return i;
}

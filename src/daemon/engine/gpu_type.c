#include <stdio.h>
#include <string.h>

#include "act/gpu/devices.h"
#include "base/text/text.h"
#include "catalog/cluster/cluster.h"
#include "daemon/engine/engine.h"

/* The type of that name: as the configuration describes it, else a built-in one; NULL: none. */
static const struct gpu_type *type_named(const char *name, const struct cluster *declared,
                                         bool *is_described)
{
    for (int t = 0; t < declared->n_types; t++) {
        *is_described = declared->is_described[t];
        if (text_alike(declared->types[t].name, name))
            return &declared->types[t];
    }
    *is_described = false;
    return gpu_type_builtin(name);
}

const struct gpu_type *engine_gpu_type(const struct cluster *declared, const char *title,
                                       bool *is_described)
{
    for (const char *from = title; *from; from += strcspn(from, " "), from += strspn(from, " ")) {
        for (size_t len = strlen(from); len > 0; len--) {
            char name[200];
            if (from[len] != '\0' && from[len] != ' ' && from[len] != '-')
                continue;
            snprintf(name, sizeof name, "%.*s", (int)len, from);
            const struct gpu_type *found = type_named(name, declared, is_described);
            if (found)
                return found;
        }
    }
    return NULL;
}

enum sharing engine_slices(enum sharing s)
{
    return s == SHARING_MIG ? SHARING_EXCLUSIVE : s;
}

/* MPS before the compute mode: its clients are one process to a device that takes only one. */
enum sharing engine_sharing(const struct device *d, enum mps_state mps)
{
    if (d->sharing == SHARING_MIG || d->maker != DEVICE_NVIDIA || mps == MPS_OFF)
        return engine_slices(d->sharing);
    return mps == MPS_UP ? SHARING_MPS : SHARING_UNKNOWN;
}

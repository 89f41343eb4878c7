#include "catalog/burn.h"

#include <stddef.h>
#include <string.h>

#include "base/text/text.h"

#define ROW(name, batch, layers, side, elements, tiny, host_ms, gemm) \
    { name, batch, layers, side, elements, tiny, host_ms },

static const struct burn burns[] = { BURNS(ROW) };

enum { N_BURNS = sizeof burns / sizeof *burns };

const struct burn *burn_all(int *n)
{
    *n = N_BURNS;
    return burns;
}

const struct burn *burn_find(const char *name)
{
    for (int i = 0; i < N_BURNS; i++)
        if (text_alike(burns[i].name, name) || text_alike(burns[i].name + strlen("burn-"), name))
            return &burns[i];
    return NULL;
}

#include "act/gpu/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int library_open(const char *override, const char *const *names, const struct symbol *symbols,
                 size_t n, void **out, struct err *e)
{
    const char *named = getenv(override);
    void *lib = named && *named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (named && *named && !lib)
        return err_set(e, ENOENT, "%s: %s", override, dlerror());
    for (; !lib && *names; names++)
        lib = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return err_set(e, ENOENT, "%s: not installed; name it in %s", names[-1], override);
    for (size_t i = 0; i < n; i++) {
        *symbols[i].to = dlsym(lib, symbols[i].name);
        if (*symbols[i].to || symbols[i].is_optional)
            continue;
        dlclose(lib);
        return err_set(e, EIO, "%s: the library has no %s; is it too old?", override,
                       symbols[i].name);
    }
    *out = lib;
    return 0;
}

/* fuzz_config.c - configuration files survive any bytes; what is read prints and reads back. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "daemon/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_twice(struct arena *a, const struct config *c)
{
    struct config again;
    struct buf one, two;
    struct err e = { 0 };

    buf_init(&one, (size_t)64 << 20);
    buf_init(&two, (size_t)64 << 20);
    config_print(c, &one);
    for (int i = 0; i < c->cluster.n_types; i++)
        if (c->cluster.is_described[i])
            goto done;    // their figures are left to the file
    assert(config_parse(a, "f", buf_text(&one), one.len, &again, &e) == 0);
    config_print(&again, &two);
    assert(c->cluster.n_workloads > 0 || strcmp(buf_text(&one), buf_text(&two)) == 0);
    assert(c->cluster.n_workloads > 0 || config_may_reload(c, &again, &e) == 0);
done:
    buf_release(&one);
    buf_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    if (config_parse(&a, "f", (const char *)data, size, &c, &e) == 0)
        print_twice(&a, &c);
    else
        assert(e.text[0] != '\0');
    arena_release(&a);
    return 0;
}

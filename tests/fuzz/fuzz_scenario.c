/* fuzz_scenario.c - scenarios survive any bytes, and what was read is written and read again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "study/scenario/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scenario s, again;
    struct buf first, second;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    buf_init(&first, (size_t)1 << 26);
    buf_init(&second, (size_t)1 << 26);
    if (scenario_parse(&a, "f", (const char *)data, size, &s, &e) == 0) {
        assert(s.n_policies > 0 && s.n_seeds > 0);
        assert(scenario_write(&s, &first) == 0);
        assert(scenario_parse(&a, "f", buf_text(&first), first.len, &again, &e) == 0);
        assert(scenario_write(&again, &second) == 0);
        assert(strcmp(buf_text(&first), buf_text(&second)) == 0);
    } else {
        assert(e.text[0] != '\0');
    }
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
    return 0;
}

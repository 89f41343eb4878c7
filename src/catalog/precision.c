#include "catalog/precision.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

static const char *const names[PRECISIONS] = { NULL, "fp32", "tf32", "fp16", "fp8", "int8" };

static const char *const aliases[][TEXT_ALIASES] = {
    { "fp32", "float32", "float", "single", "full" },
    { "fp16", "float16", "half", "mixed", "amp" },
    { "fp16", "bf16", "bfloat16" },
    { "fp8", "float8" },
};

const char *precision_name(enum precision p)
{
    assert(p >= 0 && p < PRECISIONS);
    return names[p];
}

int precision_read(struct slice text, enum precision *out, struct err *e)
{
    char word[16] = { 0 };

    if (text.len > 0 && text.len < sizeof word) {
        memcpy(word, text.at, text.len);
        const char *name = strlen(word) < text.len
                               ? ""
                               : text_unalias(aliases, sizeof aliases / sizeof *aliases, word);
        for (int p = 1; p < PRECISIONS; p++)
            if (text_alike(names[p], name)) {
                *out = (enum precision)p;
                return 0;
            }
    }
    if (text.len > 0)
        return err_set(e, EINVAL,
                       "precision=%.*s: want fp32, tf32, fp16 (also bf16, half, mixed, amp), fp8 "
                       "or int8, or nothing if unknown",
                       slice_shown(text), text.at);
    *out = PRECISION_UNKNOWN;
    return 0;
}

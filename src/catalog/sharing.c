#include "catalog/sharing.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

static const char *const names[SHARINGS] = { NULL, "exclusive", "timeslice", "mps", "mig" };

static const char *const aliases[][TEXT_ALIASES] = {
    { "exclusive", "none", "exclusive_process" },
    { "timeslice", "time_slices", "time_slicing", "shard" },
};

const char *sharing_name(enum sharing s)
{
    assert(s >= SHARING_TAKEN_BACK && s < SHARINGS);
    return s == SHARING_TAKEN_BACK ? "unknown" : names[s];
}

int sharing_read(struct slice text, enum sharing *out, struct err *e)
{
    char word[24] = { 0 };

    *out = slice_is(text, "unknown") ? SHARING_TAKEN_BACK : SHARING_UNKNOWN;
    if (text.len == 0 || *out == SHARING_TAKEN_BACK)
        return 0;
    if (text.len < sizeof word) {
        memcpy(word, text.at, text.len);
        const char *name = strlen(word) < text.len
                               ? ""
                               : text_unalias(aliases, sizeof aliases / sizeof *aliases, word);
        for (int s = 1; s < SHARINGS; s++)
            if (text_alike(names[s], name)) {
                *out = (enum sharing)s;
                return 0;
            }
    }
    return err_set(e, EINVAL, "sharing=%.*s: want exclusive, timeslice, mps or mig, or unknown",
                   slice_shown(text), text.at);
}

enum sharing sharing_after(enum sharing was, enum sharing said)
{
    if (said == SHARING_TAKEN_BACK)
        return SHARING_UNKNOWN;
    return said != SHARING_UNKNOWN ? said : was;
}

enum sharing sharing_of_number(int number)
{
    return number > 0 && number < SHARINGS ? (enum sharing)number : SHARING_UNKNOWN;
}

/* Of sevenths, and then of memory: "1g.5gb". */
bool sharing_is_slice(const char *name)
{
    for (const char *at = strstr(name, "g."); at; at = strstr(at + 1, "g.")) {
        const char *end = at + 2;
        bool has_sevenths = at > name && isdigit((unsigned char)at[-1]);
        while (isdigit((unsigned char)*end))
            end++;
        if (has_sevenths && end > at + 2 && strncmp(end, "gb", 2) == 0)
            return true;
    }
    return false;
}

/* texts.h - tables of texts: what is given, what is wanted, and a sentence for a name. */
#ifndef TESTS_UNIT_TEXTS_H
#define TESTS_UNIT_TEXTS_H

#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"

struct text_row {
    const char *name, *given, *want;
};

static inline void text_row_check(const struct text_row *row, const char *got)
{
    ck_assert_msg(strcmp(got, row->want) == 0, "%s: got '%s', want '%s'", row->name, got,
                  row->want);
}

/* What was written to 'b', in 'a'; 'b' is released. */
static inline const char *text_taken(struct arena *a, struct buf *b)
{
    const char *text = arena_strdup(a, buf_text(b));

    buf_release(b);
    return text;
}

#endif

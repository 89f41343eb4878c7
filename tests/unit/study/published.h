/* published.h - where tests find published data, if anywhere. */
#ifndef TESTS_STUDY_PUBLISHED_H
#define TESTS_STUDY_PUBLISHED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "study/scenario/scenario.h"

/* $GOGH_DATA, else beside the source tree. NULL, having said so: it lacks what 's' reads. */
static inline const char *published(struct arena *a, const struct scenario *s)
{
    const char *given = getenv("GOGH_DATA"), *src = getenv("SRC");
    const char *data =
        given != NULL ? given : arena_printf(a, "%s/../shared/data", src != NULL ? src : ".");
    struct err e = { 0 };

    if (scenario_has_data(s, data, &e))
        return data;
    printf("skipped: %s\n", e.text);
    return NULL;
}

#endif

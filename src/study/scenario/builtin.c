/* builtin.c - the scenarios that ship with the program: data/scenarios, inside it. */
#include <assert.h>
#include <string.h>

#include "base/embed.h"
#include "base/err.h"
#include "study/scenario/files.h"    // by the build: the files, their digests, a row each
#include "study/scenario/text.h"

static const struct {
    const char *name, *text;    // the text ends with a 0 byte
} files[] = { SCENARIO_ROWS };

#define N_FILES ((int)(sizeof files / sizeof files[0]))

const struct scenario *scenario_all(int *n)
{
    static struct scenario all[N_FILES];
    static struct arena arena;

    *n = N_FILES;
    if (all[0].name != NULL)
        return all;
    arena_init(&arena);
    for (int i = N_FILES - 1; i >= 0; i--) {    // the first one last: it says that all are there
        struct err e = { 0 };
        int rc = scenario_parse(&arena, files[i].name, files[i].text, strlen(files[i].text),
                                &all[i], &e);

        assert(rc == 0);    // the build's own
        all[i].is_builtin = true;
        all[i].command = arena_printf(&arena, "--scenario %s", files[i].name);
        all[i].name = files[i].name;
    }
    return all;
}

const struct scenario *scenario_by_name(const char *name)
{
    int n;
    const struct scenario *all = scenario_all(&n);

    for (int i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

const char *scenario_file(const char *name)
{
    for (int i = 0; i < N_FILES; i++)
        if (strcmp(files[i].name, name) == 0)
            return files[i].text;
    return NULL;
}

/* names.c - what a job ran, from what people call it. */
#include "sim/history/history.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/text/text.h"
#include "catalog/cluster/cluster.h"

const char *history_workload(struct arena *a, const struct cluster *cl, const char *model,
                             double batch)
{
    double of_name;
    struct slice plain = workload_name_split(model, &of_name);
    const char *name = arena_strndup(a, plain.at, plain.len);
    struct workload w;

    if (isnan(batch))
        batch = of_name;
    for (int i = 0; i < cl->n_workloads; i++) {
        struct slice own = workload_name_split(cl->workloads[i].name, &of_name);

        if (text_alike(arena_strndup(a, own.at, own.len), name))
            return isnan(batch) ? cl->workloads[i].name
                                : workload_name(a, arena_strndup(a, own.at, own.len), batch);
    }
    if (workload_builtin(a, name, batch, &w, NULL) == 0 ||
        workload_builtin(a, name, NAN, &w, NULL) == 0)
        return w.name;
    return NULL;
}

/* Pieces of a job's name between other bytes than letters and digits. */
#define PIECES_MAX 12
#define JOINED_MAX 4    // "bert-base-uncased-sentiment140"

static int split_name(const char *name, struct slice *pieces)
{
    int n = 0;

    for (const char *p = name; *p != '\0' && n < PIECES_MAX;) {
        size_t len = 0;

        while (isalnum((unsigned char)p[len]))
            len++;
        if (len > 0)
            pieces[n++] = (struct slice){ p, len };
        p += len > 0 ? len : 1;
    }
    return n;
}

/* The batch that pieces tell: "bs64", "batch64", "bs", "64"; NaN: none. */
static double batch_of(const struct slice *pieces, int n)
{
    static const char *const words[] = { "batchsize", "batch", "bs" };

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) {
            size_t len = strlen(words[k]);
            struct slice digits = { pieces[i].at + len, pieces[i].len - len };
            double v;

            if (pieces[i].len < len || strncasecmp(pieces[i].at, words[k], len) != 0)
                continue;
            if (digits.len == 0 && i + 1 < n)
                digits = pieces[i + 1];
            if (text_to_double(digits, &v) == 0 && v >= 1 && v <= WORKLOAD_BATCH_MAX &&
                floor(v) == v)
                return v;
        }
    }
    return NAN;
}

/* The longest run of pieces that is a model's name; a single letter or two says nothing. */
const char *history_recognise(struct arena *a, const struct cluster *cl, const char *name)
{
    struct slice pieces[PIECES_MAX];
    int n = split_name(name, pieces);
    double batch = batch_of(pieces, n);
    const char *found = NULL;
    size_t longest = 2;

    for (int i = 0; i < n; i++) {
        size_t len = 0;

        for (int k = i; k < n && k < i + JOINED_MAX; k++) {
            const char *end = pieces[k].at + pieces[k].len, *is;

            len += pieces[k].len;
            if (len <= longest)
                continue;
            is = history_workload(
                a, cl, arena_strndup(a, pieces[i].at, (size_t)(end - pieces[i].at)), batch);
            if (is != NULL) {
                found = is;
                longest = len;
            }
        }
    }
    return found;
}

/* changes.c - what measurements changed of what is believed. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/text/json.h"
#include "cli/commission/commission.h"
#include "cli/table.h"

enum { LARGEST = 3 };    // single changes that are told, of speeds and of slowdowns

/* ---- by GPU type ---- */

struct type_sum {
    const char *gpu;
    double before[2], after[2];    // sums of sd: alone, beside
    int n[2];
};

static struct type_sum *sum_of(struct type_sum *sums, int *n, const char *gpu)
{
    int i = 0;

    while (i < *n && strcmp(sums[i].gpu, gpu) != 0)
        i++;
    if (i == *n)
        sums[(*n)++] = (struct type_sum){ .gpu = gpu };
    return &sums[i];
}

static json_t *mean_json(double sum, int n)
{
    return json_number_or_null(n > 0 ? sum / n : (double)NAN);
}

static json_t *types_json(const struct type_sum *sums, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++) {
        const struct type_sum *s = &sums[i];

        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:o, s:o}", "gpu", s->gpu,
                                        "alone_sd_before", mean_json(s->before[0], s->n[0]),
                                        "alone_sd", mean_json(s->after[0], s->n[0]),
                                        "slowdown_sd_before", mean_json(s->before[1], s->n[1]),
                                        "slowdown_sd", mean_json(s->after[1], s->n[1])));
    }
    return list;
}

/* ---- the largest ---- */

struct change {
    size_t target;
    double size;    // |ln after - ln before|
};

static int by_size(const void *x, const void *y)
{
    const struct change *a = x, *b = y;

    if (a->size != b->size)
        return a->size < b->size ? 1 : -1;
    return (a->target > b->target) - (a->target < b->target);
}

static json_t *change_json(const json_t *before, const json_t *after)
{
    return json_pack("{s:s, s:s, s:s?, s:f, s:f, s:f, s:f}", "gpu", json_text_of(before, "gpu"),
                     "workload", json_text_of(before, "workload"), "beside",
                     json_text_of(before, "beside"), "before", json_number_of(before, "mean"),
                     "before_sd", json_number_of(before, "sd"), "after",
                     json_number_of(after, "mean"), "after_sd", json_number_of(after, "sd"));
}

/* Of speeds, or of slowdowns; the changes stand by their size. */
static void put_largest(json_t *list, const json_t *before, const json_t *after,
                        const struct change *changes, size_t n, bool beside)
{
    int n_put = 0;

    for (size_t i = 0; i < n && n_put < LARGEST && changes[i].size > 0; i++) {
        const json_t *was = json_array_get(before, changes[i].target);

        if ((json_text_of(was, "beside") != NULL) != beside)
            continue;
        json_array_append_new(list, change_json(was, json_array_get(after, changes[i].target)));
        n_put++;
    }
}

json_t *changes_between(const json_t *before, const json_t *after)
{
    size_t n = json_array_size(before);
    struct type_sum *sums = heap_array(n, sizeof *sums);
    struct change *changes = heap_array(n, sizeof *changes);
    json_t *largest = json_array();
    int n_types = 0;

    n = n < json_array_size(after) ? n : json_array_size(after);
    for (size_t i = 0; i < n; i++) {
        const json_t *was = json_array_get(before, i), *is = json_array_get(after, i);
        struct type_sum *s = sum_of(sums, &n_types, json_text_of(was, "gpu"));
        int beside = json_text_of(was, "beside") != NULL;

        s->n[beside]++;
        s->before[beside] += json_number_of(was, "sd");
        s->after[beside] += json_number_of(is, "sd");
        changes[i] = (struct change){
            .target = i, .size = fabs(log(json_number_of(is, "mean") / json_number_of(was, "mean")))
        };
    }
    qsort(changes, n, sizeof *changes, by_size);
    for (int beside = 0; beside < 2; beside++)
        put_largest(largest, before, after, changes, n, beside);
    json_t *o = json_pack("{s:o, s:o}", "types", types_json(sums, n_types), "largest", largest);
    free(sums);
    free(changes);
    return o;
}

/* ---- for people ---- */

static void print_one(struct arena *a, const json_t *c)
{
    const char *beside = json_text_of(c, "beside");
    double before = json_number_of(c, "before"), after = json_number_of(c, "after");

    printf("  %s%s%s on %s: %s %s ± %s -> %s ± %s\n", cell_text(a, c, "workload"),
           beside != NULL ? " beside " : "", beside != NULL ? cell_clean(a, beside) : "",
           cell_text(a, c, "gpu"), beside != NULL ? "slowdown" : "steps/s", cell_value(a, before),
           cell_value(a, before * json_number_of(c, "before_sd")), cell_value(a, after),
           cell_value(a, after * json_number_of(c, "after_sd")));
}

void changes_print(struct arena *a, const json_t *changes)
{
    const json_t *types = json_object_get(changes, "types");
    const json_t *largest = json_object_get(changes, "largest");
    struct table t;

    table_init(&t, a, "GPU|>SPEEDS WERE|>ARE|>SLOWDOWNS WERE|>ARE");
    for (size_t i = 0; i < json_array_size(types); i++)
        table_put_fields(&t, json_array_get(types, i),
                         "gpu %alone_sd_before %alone_sd %slowdown_sd_before %slowdown_sd");
    printf("How sure estimates are, as a standard deviation in percent:\n");
    table_print(&t, stdout);
    if (json_array_size(largest) > 0)
        printf("\nWhat changed most:\n");
    for (size_t i = 0; i < json_array_size(largest); i++)
        print_one(a, json_array_get(largest, i));
}

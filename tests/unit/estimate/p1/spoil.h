/* spoil.h - weights as they might come from elsewhere: each row spoils one number. */
#ifndef TESTS_UNIT_ESTIMATE_P1_SPOIL_H
#define TESTS_UNIT_ESTIMATE_P1_SPOIL_H

#include <string.h>

#include "base/arena.h"
#include "nn/weights.h"

struct spoiled_row {
    const char *name, *array;
    int at;
    double value;
};

static inline void spoil(struct arena *a, struct weights *bag, const struct spoiled_row *row)
{
    for (int i = 0; i < bag->n; i++)
        if (strcmp(bag->arrays[i].name, row->array) == 0) {
            size_t n = (size_t)bag->arrays[i].rows * (size_t)bag->arrays[i].cols;
            double *copy = ARENA_ARRAY(a, double, n);
            memcpy(copy, bag->arrays[i].data, n * sizeof *copy);
            copy[row->at] = row->value;
            bag->arrays[i].data = copy;
        }
}

#endif

#include "act/driver/owners.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text/text.h"

void owners_release(struct owners *o)
{
    free(o->list);
    *o = (struct owners){ 0 };
}

void owners_begin(struct owners *o, double asked_s)
{
    o->n = 0;
    o->is_known = true;
    o->asked_s = asked_s;
}

void owners_add(struct owners *o, const struct owner *one)
{
    GROW(o->list, o->n, o->cap);
    o->list[o->n++] = *one;
}

bool owners_are_fresh(const struct owners *o, double now_s)
{
    return o->is_known && now_s - o->asked_s <= OWNERS_AGE_S;
}

/* The array's number may be any of its tasks': they are all one user's. */
bool owners_agree(const struct owners *o, const char *id, long uid)
{
    const size_t n = strcspn(id, "_");
    long number = 0, task = -1;

    if (text_to_long((struct slice){ id, n }, 1, LONG_MAX, &number) < 0 ||
        (id[n] == '_' && text_to_long(slice_of(id + n + 1), 0, LONG_MAX, &task) < 0))
        return false;
    for (int i = 0; i < o->n; i++) {
        const struct owner *x = &o->list[i];

        if (task < 0 ? x->id == number : x->array == number && x->task == task)
            return x->uid == uid;
    }
    return false;
}

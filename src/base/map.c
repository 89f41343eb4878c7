#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SLOTS_MIN 16

void map_u64_release(struct map_u64 *m)
{
    free(m->slots);
    *m = (struct map_u64){ 0 };
}

/* Where a search for 'key' begins. Keys are often packed fields, so high bits must
 * reach the low ones before and after the multiplication.
 */
static size_t first_slot(size_t n_slots, uint64_t key)
{
    key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    return (size_t)(key ^ (key >> 32)) & (n_slots - 1);
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct map_u64_slot *find(const struct map_u64 *m, uint64_t key)
{
    size_t i = first_slot(m->n_slots, key);

    while (m->slots[i].value >= 0 && m->slots[i].key != key)
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

static void enlarge(struct map_u64 *m)
{
    const struct map_u64 old = *m;

    m->n_slots = old.n_slots == 0 ? SLOTS_MIN : old.n_slots * 2;
    m->slots = heap_array(m->n_slots, sizeof *m->slots);
    for (size_t i = 0; i < m->n_slots; i++)
        m->slots[i].value = -1;
    for (size_t i = 0; i < old.n_slots; i++) {
        if (old.slots[i].value >= 0)
            *find(m, old.slots[i].key) = old.slots[i];
    }
    free(old.slots);
}

int map_u64_get(const struct map_u64 *m, uint64_t key)
{
    return m->n_slots == 0 ? -1 : find(m, key)->value;
}

void map_u64_set(struct map_u64 *m, uint64_t key, int value)
{
    struct map_u64_slot *s;

    assert(value >= 0);
    if (m->n_used >= m->n_slots / 3 * 2)    // searches stay short, and end at an empty slot
        enlarge(m);
    s = find(m, key);
    m->n_used += s->value < 0;
    *s = (struct map_u64_slot){ .key = key, .value = value };
}

void map_u64_prefetch(const struct map_u64 *m, uint64_t key)
{
    if (m->n_slots > 0)
        __builtin_prefetch(&m->slots[first_slot(m->n_slots, key)]);
}

/* ---- names ---- */

void map_release(struct map *m)
{
    map_u64_release(&m->by_hash);
    free(m->names);
    *m = (struct map){ 0 };
}

/* FNV-1a; names are short. */
static uint64_t hash_name(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* Where 'name' is, or -1; then '*key' is the hash that nobody has yet. */
static int find_name(const struct map *m, const char *name, uint64_t *key)
{
    for (*key = hash_name(name);; ++*key) {
        int i = map_u64_get(&m->by_hash, *key);

        if (i < 0 || strcmp(m->names[i].name, name) == 0)
            return i;
    }
}

int map_get(const struct map *m, const char *name)
{
    uint64_t key;
    int i = find_name(m, name, &key);

    return i < 0 ? -1 : m->names[i].value;
}

void map_set(struct map *m, const char *name, int value)
{
    uint64_t key;
    int i = find_name(m, name, &key);

    assert(value >= 0);
    if (i < 0) {
        i = m->n++;
        GROW(m->names, i, m->cap);
        m->names[i].name = name;
        map_u64_set(&m->by_hash, key, i);
    }
    m->names[i].value = value;
}

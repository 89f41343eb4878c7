#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 16

void map_init(struct map *m)
{
    *m = (struct map){ 0 };
}

void map_release(struct map *m)
{
    free(m->slots);
    map_init(m);
}

/* FNV-1a; names are short. */
static uint64_t hash_name(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* Where a search for 'hash' begins. Keys are often packed fields, so high bits must
 * reach the low ones before and after the multiplication.
 */
static size_t first_slot(size_t n_slots, uint64_t hash)
{
    hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash ^ (hash >> 32)) & (n_slots - 1);
}

/* At most two thirds full: searches stay short, and end at an empty slot. */
static size_t wanted_slots(size_t n_slots, size_t n_used)
{
    if (n_used < n_slots / 3 * 2)
        return n_slots;
    return n_slots == 0 ? SLOTS_MIN : n_slots * 2;
}

static void *empty_slots(size_t n, size_t size)
{
    void *slots = calloc(n, size);

    if (slots == NULL)
        abort();
    return slots;
}

/* The slot that holds the name, or the empty one where it belongs. */
static struct map_slot *find(const struct map *m, uint64_t hash, const char *name)
{
    size_t i = first_slot(m->n_slots, hash);

    for (;; i = (i + 1) & (m->n_slots - 1)) {
        struct map_slot *s = &m->slots[i];

        if (s->value < 0)
            return s;
        assert(s->name);
        if (s->hash == hash && strcmp(s->name, name) == 0)
            return s;
    }
}

static void resize(struct map *m, size_t n_slots)
{
    const struct map old = *m;

    m->slots = empty_slots(n_slots, sizeof *m->slots);
    m->n_slots = n_slots;
    for (size_t i = 0; i < n_slots; i++)
        m->slots[i].value = -1;
    for (size_t i = 0; i < old.n_slots; i++) {
        if (old.slots[i].value >= 0)
            *find(m, old.slots[i].hash, old.slots[i].name) = old.slots[i];
    }
    free(old.slots);
}

int map_get(const struct map *m, const char *name)
{
    return m->n_slots == 0 ? -1 : find(m, hash_name(name), name)->value;
}

void map_set(struct map *m, const char *name, int value)
{
    size_t n_slots = wanted_slots(m->n_slots, m->n_used);
    uint64_t hash = hash_name(name);
    struct map_slot *s;

    assert(value >= 0);
    if (n_slots != m->n_slots)
        resize(m, n_slots);
    s = find(m, hash, name);
    if (s->value < 0) {
        s->hash = hash;
        s->name = name;
        m->n_used++;
    }
    s->value = value;
}

/* ---- 64-bit keys ---- */

void map_u64_init(struct map_u64 *m)
{
    *m = (struct map_u64){ 0 };
}

void map_u64_release(struct map_u64 *m)
{
    free(m->slots);
    map_u64_init(m);
}

static struct map_u64_slot *find_u64(const struct map_u64 *m, uint64_t key)
{
    size_t i = first_slot(m->n_slots, key);

    while (m->slots[i].value >= 0 && m->slots[i].key != key)
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

static void resize_u64(struct map_u64 *m, size_t n_slots)
{
    const struct map_u64 old = *m;

    m->slots = empty_slots(n_slots, sizeof *m->slots);
    m->n_slots = n_slots;
    for (size_t i = 0; i < n_slots; i++)
        m->slots[i].value = -1;
    for (size_t i = 0; i < old.n_slots; i++) {
        if (old.slots[i].value >= 0)
            *find_u64(m, old.slots[i].key) = old.slots[i];
    }
    free(old.slots);
}

int map_u64_get(const struct map_u64 *m, uint64_t key)
{
    return m->n_slots == 0 ? -1 : find_u64(m, key)->value;
}

void map_u64_set(struct map_u64 *m, uint64_t key, int value)
{
    size_t n_slots = wanted_slots(m->n_slots, m->n_used);
    struct map_u64_slot *s;

    assert(value >= 0);
    if (n_slots != m->n_slots)
        resize_u64(m, n_slots);
    s = find_u64(m, key);
    m->n_used += s->value < 0;
    *s = (struct map_u64_slot){ .key = key, .value = value };
}

void map_u64_prefetch(const struct map_u64 *m, uint64_t key)
{
    if (m->n_slots > 0)
        __builtin_prefetch(&m->slots[first_slot(m->n_slots, key)]);
}

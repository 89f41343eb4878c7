/* map.h - names to small integers, and 64-bit keys to small integers.
 *
 * Open addressing, power-of-two tables, never shrinking, no deletion: made for
 * interning what a run meets. Empty when zeroed; owns heap memory, so release when done.
 * A map of keys holds millions and is searched a million times at start: its slots are as
 * small as can be. A map of names is one of their hashes.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_u64 {
    struct map_u64_slot {
        uint64_t key;
        int value;    // -1: the slot is empty
    } * slots;
    size_t n_slots, n_used;
};

void map_u64_release(struct map_u64 *m);
int map_u64_get(const struct map_u64 *m, uint64_t key);    // -1: none
void map_u64_set(struct map_u64 *m, uint64_t key, int value);

/* Ask for the memory that a get of 'key' will look at. */
void map_u64_prefetch(const struct map_u64 *m, uint64_t key);

struct map {
    struct map_u64 by_hash;    // to the name; one with the same hash as another has the next one
    struct map_name {
        const char *name;
        int value;
    } * names;    // (n)
    int n, cap;
};

void map_release(struct map *m);

/* The value of 'name', or -1. */
int map_get(const struct map *m, const char *name);

/* Set it; 'name' must live as long as the map. 'value' >= 0. */
void map_set(struct map *m, const char *name, int value);

#endif

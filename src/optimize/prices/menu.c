#include "optimize/prices/menu.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/prices/kinds.h"

struct dishes {
    int n, cap;
    struct dish *of;
};

struct kitchen {
    struct arena *arena;
    const struct problem *p;
    const struct kinds *kinds;
    struct menu *menu;
    struct dishes shared, solos;
    bool *is_solo;      // (n_clusters, GANG_MAX + 1) some job asks for it
    uint64_t *types;    // (n_clusters) that some job of it allows
};

/* ---- what jobs may ask for ---- */

static void ask(struct kitchen *k, const struct problem_job *j)
{
    int cluster = k->kinds->of[j->kind];
    bool *solo = k->is_solo + cluster * (GANG_MAX + 1);

    k->types[cluster] |= j->allowed_types ? j->allowed_types : ~UINT64_C(0);
    if (j->form == FORM_SPREAD || j->n_min <= 1) {
        if (j->is_exclusive)
            solo[1] = true;
        else
            k->menu->slots[cluster].is_asked = true;
    }
    for (int m = j->n_min > 2 ? j->n_min : 2; m <= j->n_max && j->form == FORM_GANG; m++)
        solo[m] = true;
}

/* ---- dishes ---- */

static bool beats(const struct dish *x, const struct dish *y)
{
    if (x->cost_w > y->cost_w || x->draw_w > y->draw_w)
        return false;
    for (int i = 0; i < x->n_slots; i++)
        if (x->low[i] < y->low[i])
            return false;
    return true;
}

/* Serve what nothing else of these (the same under other settings) beats; of equals, the first. */
static void serve(struct dishes *to, const struct dish *rivals, int n)
{
    for (int i = 0; i < n; i++) {
        bool is_beaten = false;
        for (int o = 0; o < n && !is_beaten; o++)
            is_beaten = o != i && beats(&rivals[o], &rivals[i]) &&
                        (o < i || !beats(&rivals[i], &rivals[o]));
        if (is_beaten)
            continue;
        GROW(to->of, to->n, to->cap);
        to->of[to->n++] = rivals[i];
    }
}

static void dish_fill(const struct kitchen *k, int type, int limit, int n_gpus, const int *clusters,
                      int n, const struct yield *y, struct dish *out)
{
    const struct problem *p = k->p;

    *out = (struct dish){ .type = (short)type,
                          .limit = (short)limit,
                          .n_gpus = (short)n_gpus,
                          .n_slots = (short)n,
                          .cost_w = y->cost_w };
    out->draw_w = (y->watts - n_gpus * p->types[type].idle_w) * p->watts_margin;
    for (int i = 0; i < n; i++) {
        out->cluster[i] = clusters[i];
        out->low[i] = y->low[i];
    }
}

/* Jobs of these clusters together on one GPU, under every setting. False: they must not. */
static bool cook(struct kitchen *k, struct dishes *to, int type, const int *clusters, int n)
{
    int kinds[DISH_MAX] = { 0 }, n_limits = k->p->types[type].n_limits;
    struct dish dishes[LIMITS_MAX];
    struct yield y;

    for (int i = 0; i < n; i++) {
        kinds[i] = k->kinds->rep[clusters[i]];
        if (!(k->types[clusters[i]] >> type & 1))
            return false;
    }
    int limit = 0;
    for (; limit < n_limits && problem_yield(k->p, type, limit, kinds, n, &y); limit++)
        dish_fill(k, type, limit, 1, clusters, n, &y, &dishes[limit]);
    serve(to, dishes, limit);
    return limit > 0;
}

static void cook_gang(struct kitchen *k, int type, int cluster, int size)
{
    int n_limits = k->p->types[type].n_limits;
    struct dish dishes[LIMITS_MAX];
    struct yield y;

    for (int limit = 0; limit < n_limits; limit++) {
        if (!(k->types[cluster] >> type & 1) ||
            !problem_gang_yield(k->p, type, limit, k->kinds->rep[cluster], size, true, &y))
            return;
        dish_fill(k, type, limit, size, &cluster, 1, &y, &dishes[limit]);
    }
    serve(&k->solos, dishes, n_limits);
}

/* The solos of one size of one cluster, on all types. */
static void cook_solos(struct kitchen *k, int cluster, int size)
{
    struct menu_solos *s = &k->menu->solo[cluster * (GANG_MAX + 1) + size];
    int from = k->solos.n;

    for (int type = 0; type < k->p->n_types; type++) {
        if (size > 1)
            cook_gang(k, type, cluster, size);
        else
            cook(k, &k->solos, type, &cluster, 1);
    }
    s->n = k->solos.n - from;
    s->dish = ARENA_ARRAY(k->arena, int, (size_t)s->n);
    for (int i = 0; i < s->n; i++)
        s->dish[i] = from + i;
}

static void cook_shared(struct kitchen *k, int type)
{
    const struct menu_slots *slots = k->menu->slots;
    int n = k->kinds->n;

    for (int x = 0; x < n; x++) {
        if (!slots[x].is_asked || !cook(k, &k->shared, type, &x, 1) || k->p->theta < 2)
            continue;
        for (int y = x; y < n; y++) {
            int both[DISH_MAX] = { x, y };
            if (slots[y].is_asked)
                cook(k, &k->shared, type, both, 2);
        }
    }
}

/* ---- what slots there are ---- */

struct low_at {
    double low;
    short type;
};

static int by_low(const void *x, const void *y)
{
    const struct low_at *a = x, *b = y;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->type - b->type;
}

static void list_slots(struct kitchen *k, int cluster, struct low_at *scratch)
{
    struct menu_slots *s = &k->menu->slots[cluster];

    qsort(scratch, (size_t)s->n, sizeof *scratch, by_low);
    s->low = ARENA_ARRAY(k->arena, double, (size_t)s->n);
    s->type = ARENA_ARRAY(k->arena, short, (size_t)s->n);
    for (int i = 0; i < s->n; i++) {
        s->low[i] = scratch[i].low;
        s->type[i] = scratch[i].type;
    }
}

static void list_all_slots(struct kitchen *k)
{
    struct menu_slots *slots = k->menu->slots;
    int *first = ARENA_ARRAY(k->arena, int, (size_t)k->kinds->n + 1);
    struct low_at *all = NULL;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < k->shared.n; i++) {
            const struct dish *d = &k->shared.of[i];
            for (int s = 0; s < d->n_slots; s++) {
                int c = d->cluster[s];
                if (pass == 1)
                    all[first[c] + slots[c].n] = (struct low_at){ d->low[s], d->type };
                slots[c].n++;
            }
        }
        for (int c = 0; c < k->kinds->n && pass == 0; c++) {
            first[c + 1] = first[c] + slots[c].n;
            slots[c].n = 0;
        }
        if (pass == 0)
            all = ARENA_ARRAY(k->arena, struct low_at, (size_t)first[k->kinds->n]);
    }
    for (int c = 0; c < k->kinds->n; c++)
        list_slots(k, c, all + first[c]);
}

static struct dish *keep(struct kitchen *k, struct dishes *from)
{
    struct dish *kept = ARENA_ARRAY(k->arena, struct dish, (size_t)from->n);

    if (from->n)
        memcpy(kept, from->of, (size_t)from->n * sizeof *kept);
    free(from->of);
    return kept;
}

void menu_make(struct arena *a, const struct problem *p, const struct kinds *kinds,
               struct menu *out)
{
    struct kitchen k = { .arena = a, .p = p, .kinds = kinds, .menu = out };
    size_t n_sizes = (size_t)kinds->n * (GANG_MAX + 1);

    *out = (struct menu){ .slots = ARENA_ARRAY(a, struct menu_slots, (size_t)kinds->n),
                          .solo = ARENA_ARRAY(a, struct menu_solos, n_sizes) };
    k.is_solo = ARENA_ARRAY(a, bool, n_sizes);
    k.types = ARENA_ARRAY(a, uint64_t, (size_t)kinds->n);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            ask(&k, &p->jobs[j]);
    for (int type = 0; type < p->n_types; type++)
        cook_shared(&k, type);
    for (size_t i = 0; i < n_sizes; i++)
        if (k.is_solo[i])
            cook_solos(&k, (int)(i / (GANG_MAX + 1)), (int)(i % (GANG_MAX + 1)));
    list_all_slots(&k);
    out->n_dishes = k.shared.n;
    out->dishes = keep(&k, &k.shared);
    out->n_solos = k.solos.n;
    out->solos = keep(&k, &k.solos);
}

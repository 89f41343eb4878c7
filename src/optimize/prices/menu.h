/* menu.h - everything a GPU, or a gang of GPUs, could be doing.
 *
 * Made by: menu_make, from a problem and its clusters of kinds. Read by: the class program, which
 * picks from it. A dish is a (type, setting, combination of clusters) with what it costs and the
 * slots it offers; a solo is one for a job that shares with nobody. Those that the same under another
 * setting beats in cost and in every slot are left out.
 */
#ifndef OPTIMIZE_PRICES_MENU_H
#define OPTIMIZE_PRICES_MENU_H

#include "optimize/model/problem.h"

struct arena;
struct kinds;

/* Jobs on a GPU that the class program considers. Three at once make it 10 times as large, and
 * Clp too slow (more than 100 s on 1,000 GPUs); the search puts a third beside two.
 */
#define DISH_MAX 2

struct dish {
    short type;
    short limit;
    short n_gpus;    // 1, or a gang's size
    short n_slots;
    int cluster[DISH_MAX];    // of each job
    double low[DISH_MAX];     // what each slot holds
    double cost_w;
    double draw_w;    // over idle GPUs, with the margin: what the cap minds
};

/* Slots that may be shared, of one cluster: what they hold, and on which type. */
struct menu_slots {
    bool is_asked;    // some job takes such slots
    int n;
    double *low;    // (n) ascending
    short *type;    // (n)
};

/* Dishes for one job that shares with nobody: alone on a GPU, or a gang. */
struct menu_solos {
    int n;
    int *dish;    // (n) in menu.solos
};

struct menu {
    int n_dishes;
    struct dish *dishes;         // of shared slots
    struct menu_slots *slots;    // (n_clusters)
    int n_solos;
    struct dish *solos;
    struct menu_solos *solo;    // (n_clusters, GANG_MAX + 1) by size: 1 is alone
};

void menu_make(struct arena *a, const struct problem *p, const struct kinds *k, struct menu *out);

static inline const struct menu_solos *menu_solo(const struct menu *m, int cluster, int size)
{
    return &m->solo[cluster * (GANG_MAX + 1) + size];
}

#endif

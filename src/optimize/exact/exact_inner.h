/* exact_inner.h - what the files of the exact planner share: its rows, and what can be a column.
 *
 * Made by exact_build, once or twice for each exact_run; lives in its arena.
 *
 * A *place* is a set of GPUs that are alike (of one type; as long to wake; of one rack, where caps
 * of racks are modelled), or one GPU somebody is on now. A *family* offers slots and wants them
 * filled: the single jobs of one kind, where a slot that holds a throughput serves any job that
 * needs no more; or the parts of one spread job, wherever they are; or its part on a GPU where it
 * runs now, for as long as it stays on all of them. An *item* is who sits in a column: a slot of a
 * family, or one job by itself (it stays where it is, it is exclusive, or it falls short here).
 *
 * Rows:   each job once                                          = 1
 *         GPUs of a place                                        <= how many there are
 *         GPUs of a type on a node, where gangs want nodes       <= how many there are
 *         watts                                                  <= what the cap leaves
 *         a family's slots in all, less those taken              = 0
 *         a family's slots at or above a level, less those taken >= 0
 *     or, where its patterns are too many to list, what its slots
 *         hold of the promise, and what is missed                >= 1
 */
#ifndef OPTIMIZE_EXACT_EXACT_INNER_H
#define OPTIMIZE_EXACT_EXACT_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/model/problem.h"

struct arena;
struct plan;
struct prices;

#define PLACE_ROWS 3
#define SHARE_MAX 8         // places a gang's GPUs may come from
#define CAP_UNIT_W 100.0    // watts in rows of caps are counted in these: coefficients near 1

struct family {
    int kind;
    uint64_t allowed;    // types
    bool is_alone;       // shares with nobody
    int job;             // whose parts they are; -1: of single jobs
    int n_members;       // jobs that may take its slots
    int n_levels, cap_levels;
    double *level;    // (n_levels) ascending; what holds less than level[0] is no slot of it
    int *row;         // (n_levels)
    double *worth;    // (n_levels) of a slot that holds level[i], at the present duals
    int n_lows;
    double *low;                 // (n_lows) of a spread job: all that its slots may hold, ascending
    double wake_rate, late_w;    // of all its members, where GPUs sleep
};

struct item {
    int family;    // -1: the job itself
    int job;       // -1: any of the family's
    int kind;
    uint64_t allowed;
    bool is_alone;
    bool is_short;    // only where the promise is missed: elsewhere the family's slot will do
    double move_w;
    double wake_rate, late_w;    // as its job's; 0 for who stays
};

struct place {
    int type, rack;    // rack -1: any
    int gpu;           // -1: any of them
    int n;             // GPUs
    bool may_start;
    double wake_s;
    int n_rows, row[PLACE_ROWS];    // that a column here counts in
    int n_own;
    struct item own[2 * THETA_MAX];    // who may stay; in a column here at least one of them does
};

struct node_room {
    int node, type, place;
    int n, row;
};

enum column_form {
    COLUMN_SEATS,      // who is on one GPU
    COLUMN_GANG,       // a gang of several GPUs
    COLUMN_TAKE,       // a single job takes a slot of its family
    COLUMN_PATTERN,    // a spread job takes slots, one a part
    COLUMN_LOOSE,      // a spread job takes any n slots, where its patterns are too many
    COLUMN_SHORT,      // and how much of its promise that misses
    COLUMN_WAIT,
};

struct seat_item {
    int family, job;
    double low;
};

struct column {
    enum column_form form;
    int job;    // of all but SEATS
    double cost_w;
    double over_w;       // watts with margin above idle, for the caps
    double reduced_w;    // as it was when the column was found
    int limit;
    int place;                            // SEATS; of a GANG of strangers to its GPUs: -1
    int n;                                // items, GPUs or parts
    struct seat_item items[THETA_MAX];    // SEATS
    int node;                             // GANG: index into nodes, -1: not on one node
    uint64_t held;                        // GANG: those of its present GPUs that it is on by name
    int n_shares;                         // GANG: its other GPUs
    struct {
        int place, n;
        int node;    // index into nodes, of a gang over several; -1: anywhere
    } shares[SHARE_MAX];
    bool is_stay;          // GANG, PATTERN, LOOSE, SHORT: it stays where it is
    const double *lows;    // PATTERN: (n) what each part wants, falling; staying: by GPU
};

struct exact {
    const struct problem *p;
    struct arena *arena;
    bool has_racks;    // racks' caps are modelled
    bool has_sleepers;
    int *cover;         // (n_jobs) row, -1: gone
    int *family_of;     // (n_jobs) of a single or spread job, -1: none
    int *stay_first;    // (n_jobs) the first of a spread job's families for staying, -1: none
    int n_places;
    struct place *places;
    int *place_of;    // (n_gpus) the place that is this GPU alone, -1: nobody is there
    int *group_of;    // (n_gpus) the place it is one of, -1: it takes nobody new
    int n_nodes;
    struct node_room *nodes;
    int n_families;
    struct family *families;
    int n_items;
    struct item *items;    // by kind
    int *first_item;       // (n_kinds + 1)
    int cap_row;           // -1: no cap
    int *rack_row;         // (n_racks) -1: none; NULL without racks
    int n_rows;
    double *row_low, *row_high;    // (cap_rows)
    int cap_rows;
    double *dual;         // (cap_rows) of the right sign
    bool *is_loose;       // (n_families) a spread job's first: its patterns were too many to list
    int *held_row;        // (n_families) what the slots of a loose family hold in all; -1: none
    bool is_cut_short;    // more columns than can be looked at: nothing can be proven
};

/* exact_build.c */

void exact_build(struct arena *a, const struct problem *p, bool has_racks, struct exact *x);

/* A spread job takes a pattern of slots; a single job takes one of its family's. */
static inline bool exact_is_spread(const struct problem_job *j)
{
    return j->form == FORM_SPREAD && j->n_max > 1;
}

static inline bool exact_is_single(const struct problem_job *j)
{
    return j->form == FORM_SPREAD ? j->n_max == 1 : j->n_min <= 1;
}

/* May it stay as it is? */
static inline bool exact_may_stay(const struct problem_job *j)
{
    return j->n_present >= (j->form == FORM_GANG ? j->n_min : 1) && j->n_present >= 1 &&
           j->n_present <= j->n_max;
}

static inline double exact_move_w(const struct problem_job *j)
{
    return j->n_present > 0 ? j->move_w : 0;
}

/* The family that the part-th slot of a pattern is from. */
static inline int pattern_family(const struct exact *x, const struct column *c, int part)
{
    return c->is_stay ? x->stay_first[c->job] + part : x->family_of[c->job];
}

/* What an item pays for waking a GPU of a place. */
static inline double exact_wake_w(const struct exact *x, const struct item *item,
                                  const struct place *place)
{
    double idle_w = x->p->types[place->type].idle_w;

    return place->wake_s * (item->wake_rate * (idle_w + x->p->price_w) + item->late_w);
}

/* A row for the slots of a spread job's family that hold 'low' or more; false: it has one. */
bool exact_add_level(struct exact *x, int family, double low);

/* The rows of a loose column's families: what they hold. */
void exact_add_held(struct exact *x, const struct column *c);

/* The same with all levels of spread jobs' families but the first left out, and without duals. */
void exact_drop_levels(const struct exact *x, struct exact *out);

/* ---- columns: exact_columns.c, exact_patterns.c ---- */

/* Shown a column whose reduced cost is small enough; copies what it keeps. */
typedef void (*column_f)(void *self, const struct column *c, double reduced_w);

struct column_wish {
    double most_w;        // reduced cost
    bool is_best_only;    // one of each sort: for column generation
    column_f show;
    void *self;
};

/* Take over the duals of all rows, with their signs put right, and price the levels. */
void exact_take_duals(struct exact *x, const double *dual);

/* Every column on GPUs (SEATS, GANG), and the sum of what negative reduced costs can take off
 * the bound: for each place the least times its GPUs.
 */
double exact_seats(struct exact *x, const struct column_wish *w);
double exact_gangs(struct exact *x, const struct column_wish *w);

/* The same for TAKE and WAIT, and for PATTERN: over each family's 'low's. Unless only the best
 * are wished for, jobs with very many patterns get LOOSE columns instead, whatever their reduced
 * cost.
 */
double exact_choices(struct exact *x, const struct column_wish *w);
double exact_patterns(struct exact *x, const struct column_wish *w);

/* The rows a column is in: pairs of row and coefficient, each row once. Returns how many. */
struct entry {
    int row;
    double value;
};
struct entries {
    int n, cap;
    struct entry *at;    // heap
};
void exact_entries(const struct exact *x, const struct column *c, struct entries *out);

/* Sum of dual * right hand side. */
double exact_dual_w(const struct exact *x);

/* ---- a growing heap of columns ---- */

struct pool {
    int n, cap;
    struct column *columns;
    struct arena *arena;    // for what columns point at
    int most;               // it is full then
    bool is_full;
};

void pool_add(struct pool *pool, const struct column *c, double reduced_w);
int pool_find(const struct pool *pool, const struct column *c);    // -1: not there

/* ---- answers: exact_plan.c ---- */

/* The columns that an answer uses. */
void exact_from_plan(struct exact *x, const struct plan *from, struct pool *pool);

/* The answer of a whole number of each column; false when they do not make one. */
bool exact_to_plan(struct exact *x, const struct pool *pool, const double *value,
                   const struct plan *start, struct plan *out);

/* ---- linear program: exact_lp.c ---- */

/* Column generation, beginning with what 'start' uses and what 'u' (may be NULL) says, until no
 * column is missing or time is up. The duals stay in 'x'. Returns the bound.
 */
double exact_relax(struct exact *x, const struct prices *u, const struct plan *start,
                   double until_s);

#endif

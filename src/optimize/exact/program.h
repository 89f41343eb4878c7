/* program.h - the integer program of a small problem: its rows, and what can be a column.
 *
 * Made by: program_build, once or twice for each exact_run; lives in its arena.
 *
 * A *place* is a set of GPUs that are alike (of one type; as long to wake; of one rack, where caps
 * of racks are modelled), those of them on one node (a *room*), or one GPU somebody is on now. A
 * column says who shares one GPU of a place, or which GPUs a gang takes. A job that is spread
 * over several GPUs is in several columns; one more says how many parts it has, or that it stays.
 *
 * Rows:   each job once                                          = 1
 *         GPUs of a place, of a room                             <= how many there are
 *         watts of all, of a rack, above idle                    <= what the cap leaves
 *         a family's slots in all, less those taken              = 0
 *         a family's slots from a need upwards, less those taken >= 0
 *         a spread job's parts, less those it is said to have    = 0
 *         its part on each present GPU, less whether it stays    = 0
 *         what its parts hold of the promise, and what is missed >= 1, unless it waits
 *     and the last once more, rounded (struct held): parts are whole.
 */
#ifndef OPTIMIZE_EXACT_PROGRAM_H
#define OPTIMIZE_EXACT_PROGRAM_H

#include <stdbool.h>

#include "optimize/prices/columns.h"

struct arena;
struct mip;
struct plan;

/* Jobs and GPUs beyond which not even the linear program ends while anybody waits. */
#define SIZE_MOST 3000

#define SHARE_MAX 8         // places a gang's GPUs may come from
#define HELD_MOST 16        // rows of one spread job's promise
#define CAP_UNIT_W 100.0    // watts in rows of caps are counted in these: coefficients near 1

/* Jobs for one GPU each that are alike but for their needs. A slot on a GPU serves any of them that
 * needs no more than it holds; so slots from each need upwards are counted against jobs.
 */
struct family {
    int job;    // one of them
    int n, n_levels;
    double *level;    // (n_levels) ascending: their needs
    int *row;         // (n_levels)
    double *worth;    // (n_levels) of a slot that holds as much, at the present duals
};

/* Who is on a GPU: any job of a family, a job by itself, or a part of a spread one. */
struct item {
    int family;       // -1: the job itself
    int job;          // for a family, one that speaks for it
    int row;          // for a family, none
    bool stays;       // it keeps exactly the GPUs it has
    bool is_short;    // only where the promise is missed: elsewhere the family's slot will do
};

enum place_level { PLACE_GPU, PLACE_ROOM, PLACE_GROUP, PLACE_LEVELS };

struct place {
    enum place_level level;
    int n;      // GPUs
    int gpu;    // one of them; below, its
    int type, node;
    int n_rows, row[PLACE_LEVELS];    // that a column here counts in
    int n_caps, cap[2];               // and those that its watts above idle count in
    double gpu_w, watt_w;    // at the present duals: what a GPU costs, and a watt above idle
    int n_own;
    struct item own[2 * THETA_MAX];    // who may be here only because he is now
};

/* The promise of a spread job, as parts of it: sum of a(part) + missed >= 1. Counted in units and
 * rounded up as far as is valid for whole parts (mixed-integer rounding), the sum cannot be met by
 * fractions of parts as easily.
 */
struct held {
    int row;
    double unit;           // 0: as it is, not rounded
    double rest;           // of 1 / unit above the whole number below
    double all, missed;    // coefficients of the promise, and of what is missed of it
};

struct helds {
    int n;    // 0: it has no promise
    struct held at[HELD_MOST];
};

enum column_form {
    COLUMN_SEATS,    // who is on one GPU
    COLUMN_GANG,     // a gang of several GPUs
    COLUMN_TAKE,     // a job takes a slot of its family
    COLUMN_PARTS,    // a spread job has so many parts, or stays
    COLUMN_SHORT,    // how much of its promise a spread job misses
    COLUMN_WAIT,
};

struct column {
    enum column_form form;
    int job;    // of all but SEATS
    double cost_w;
    double over_w;       // of each GPU: watts with margin above idle, for the caps
    double reduced_w;    // as it was when the column was found
    int limit;
    int n;         // jobs, GPUs or parts
    bool stays;    // GANG, PARTS: where it is
    struct item items[THETA_MAX];
    double low[THETA_MAX];
    int n_shares;    // where its GPUs are from: of SEATS one, of a GANG that stays none
    struct {
        int place, n;
    } shares[SHARE_MAX];
};

/* The rows a column is in, each once. */
struct entries {
    int n;
    int *row;
    double *value;
    double *sum;    // by row, scratch: 0 but while they are added up
};

struct program {
    const struct problem *p;
    struct arena *arena;
    double until_s;
    bool has_racks;          // racks' caps are modelled
    bool is_cut_short;       // time, or more columns than can be looked at: nothing can be proven
    int n_rows, cap_rows;    // the first are the jobs', one each
    double *row_low, *row_high, *dual;    // (n_rows, of cap_rows)
    int *family_of;                       // (n_jobs) -1: none
    int n_families;
    struct family *families;
    int *parts;             // (n_jobs) row of a spread job's parts; its stay rows
                            // follow, one for each present GPU
    struct helds *helds;    // (n_jobs) of spread ones
    int n_places;
    struct place *places;
    int *place_of[PLACE_LEVELS];    // (n_gpus) its places; -1: none
    struct item *items;             // who may come to any place, by kind
    int *first_item;                // (n_kinds + 1)
    int *cap_row;                   // (1 + n_racks) of all, of each rack; -1: no cap
    struct entries *entries;        // scratch, of the column looked at last
    int *sources;                   // (n_places) scratch, of gangs
};

/* Columns, growing on the heap. */
struct pool {
    int n, cap;
    struct column *columns;
};

/* ---- rows: program.c ---- */

void program_build(struct arena *a, const struct problem *p, bool has_racks, double until_s,
                   struct program *x);

static inline bool is_spread(const struct problem_job *j)
{
    return j->form == FORM_SPREAD && j->n_max > 1;
}

/* Levels of a family that a slot which holds 'low' has. */
int family_levels(const struct family *f, double low);

/* What a part that holds 'low' of 'need' counts. */
double held_of(const struct held *h, double low, double need);

/* One more row for a spread job's promise. */
void program_hold(struct program *x, int job, struct held h);

/* Take over the duals of all rows, with their signs put right. */
void program_take_duals(struct program *x, const double *dual);

/* The rows a column is in; borrowed until the next one's. */
const struct entries *program_entries(const struct program *x, const struct column *c);

/* Columns first .. pool->n - 1 as an integer program, in the arena. */
void program_matrix(const struct program *x, const struct pool *pool, int first, struct mip *out);

/* ---- columns: seats.c, gangs.c, choices in matrix.c ---- */

/* Columns are wanted whose reduced cost is at most 'most_w', in the pool from 'first' on. Once
 * there are 'room' of them only the best remain, and 'most_w' falls accordingly; with 'best' 0 all
 * do, and no more are wanted.
 */
struct wish {
    double most_w;
    double least_w;    // the least reduced cost there was, at most 0
    struct pool *pool;
    int first, best, room;
};

/* Take a column if it is cheap enough. */
void wish_show(struct wish *w, struct column *c, double reduced_w);

/* Let only the best remain. */
void wish_crop(struct wish *w);

/* Every column on one GPU of a place; of a gang. */
void program_seats(struct program *x, int place, struct wish *w);
void program_gang(struct program *x, int job, struct wish *w);

/* All TAKE, PARTS, SHORT and WAIT; who is fixed may wait for 'fixed_w', unless that is 0. */
void program_choices(struct program *x, double fixed_w, struct pool *pool);

/* ---- relax.c ---- */

/* The linear relaxation by column generation, until no column is missing or time is up. The duals
 * stay in 'x'. 'scale_w': watts that are added up. Returns the bound.
 */
double program_relax(struct program *x, double scale_w);

/* ---- answer.c ---- */

/* The plan of a whole number of each column, not priced; false when they do not make one. Who waits
 * does so for the reason that 'start' has.
 */
bool program_answer(struct arena *a, const struct program *x, const struct pool *pool,
                    const double *value, const struct plan *start, struct plan *out);

#endif

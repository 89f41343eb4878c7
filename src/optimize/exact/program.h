/* program.h - the integer program of a small problem: its rows, and what can be a column.
 *
 * Made by: program_build, once or twice for each exact_run; lives in its arena.
 *
 * A *group* is a set of GPUs that are alike (of one type; as long to wake; of one rack, where caps
 * of racks are modelled), those of them on one node, or one GPU somebody is on now. A column says
 * who shares one GPU of a group, or which GPUs a gang takes. A job that is spread over several GPUs
 * is in several columns; one more says how many parts it has, or that it stays.
 *
 * Rows:   each job once                                          = 1
 *         GPUs of a group                                        <= how many there are
 *         watts of all, of a rack, above idle                    <= what the cap leaves
 *         a class's slots in all, less those taken               = 0
 *         a class's slots from a need upwards, less those taken  >= 0
 *         a spread job's parts, less those it is said to have    = 0
 *         its part on each present GPU, less whether it stays    = 0
 *         what its parts hold of the promise, and what is missed >= 1, unless it waits
 *     and the last once more, rounded (struct promise_row): parts are whole.
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

#define SHARE_MAX 8            // groups a gang's GPUs may come from
#define PROMISE_ROWS_MAX 16    // rows of one spread job's promise
#define CAP_UNIT_W 100.0       // watts in rows of caps are counted in these: coefficients near 1

/* A class: jobs for one GPU each that are alike but for their needs. A slot on a GPU serves any of
 * them that needs no more than it holds; so slots from each need upwards are counted against jobs.
 */
struct exact_class {
    int job;    // one of them
    int n, n_levels;
    double *level;    // (n_levels) ascending: their needs
    int *row;         // (n_levels)
    double *worth;    // (n_levels) of a slot that holds as much, at the present duals
};

/* Who is on a GPU: any job of a class, a job by itself, or a part of a spread one. */
struct resident {
    int class;        // -1: the job itself
    int job;          // for a class, one that speaks for it
    int row;          // for a class, none
    bool stays;       // it keeps exactly the GPUs it has
    bool is_short;    // only where the promise is missed: elsewhere the class's slot will do
};

enum group_level { GROUP_GPU, GROUP_NODE, GROUP_TYPE, GROUP_LEVELS };

struct gpu_group {
    enum group_level level;
    int n;      // GPUs
    int gpu;    // one of them; below, its
    int type, node;
    int n_rows, row[GROUP_LEVELS];    // that a column here counts in
    int n_caps, cap[2];               // and those that its watts above idle count in
    double gpu_w, watt_w;    // at the present duals: what a GPU costs, and a watt above idle
    int n_own;
    struct resident own[2 * THETA_MAX];    // who may be here only because he is now
};

/* The promise of a spread job, as parts of it: sum of a(part) + missed >= 1. Counted in units and
 * rounded up as far as is valid for whole parts (mixed-integer rounding), the sum cannot be met by
 * fractions of parts as easily.
 */
struct promise_row {
    int row;
    double unit;           // 0: as it is, not rounded
    double rest;           // of 1 / unit above the whole number below
    double all, missed;    // coefficients of the promise, and of what is missed of it
};

enum column_form {
    COLUMN_SINGLE,    // who is on one GPU
    COLUMN_GANG,      // a gang of several GPUs
    COLUMN_TAKE,      // a job takes a slot of its class
    COLUMN_PARTS,     // a spread job has so many parts, or stays
    COLUMN_SHORT,     // how much of its promise a spread job misses
    COLUMN_WAIT,
};

struct exact_column {
    enum column_form form;
    int job;    // of all but SINGLE
    double cost_w;
    double over_w;       // of each GPU: watts with margin above idle, for the caps
    double reduced_w;    // as it was when the column was found
    int limit;
    int n;         // jobs, GPUs or parts
    bool stays;    // GANG, PARTS: where it is
    struct resident residents[THETA_MAX];
    double low[THETA_MAX];
    int n_shares;    // where its GPUs are from: of SINGLE one, of a GANG that stays none
    struct {
        int group, n;
    } shares[SHARE_MAX];
};

struct exact_program {
    const struct problem *p;
    struct arena *arena;
    double until_s;
    bool has_racks;          // racks' caps are modelled
    bool is_cut_short;       // time, or more columns than can be looked at: nothing can be proven
    int n_rows, cap_rows;    // the first are the jobs', one each
    double *row_low, *row_high, *dual;    // (n_rows, of cap_rows)
    int *class_of;                        // (n_jobs) -1: none
    int n_classes;
    struct exact_class *classes;
    int *parts;         // (n_jobs) row of a spread job's parts; its stay rows
                        // follow, one for each present GPU
    int *n_promises;    // (n_jobs) rows of each job's promise; 0: it is not spread, or has none
    struct promise_row *promises;    // (n_jobs, PROMISE_ROWS_MAX)
    int n_groups;
    struct gpu_group *groups;
    int *group_of[GROUP_LEVELS];    // (n_gpus) its groups; -1: none
    struct resident *residents;     // who may come to any group, by kind
    int *first_resident;            // (n_kinds + 1)
    int *cap_row;                   // (1 + n_racks) of all, of each rack; -1: no cap
    int n_entries, *entry_row;      // of the column looked at last: the rows it is in, each once
    double *entry, *entry_sum;      // (n_entries); by row, 0 but while they are added up
    int *sources;                   // (n_groups) scratch, of gangs
};

/* Columns, growing on the heap. */
struct column_list {
    int n, cap;
    struct exact_column *columns;
};

/* ---- rows: program.c ---- */

void program_build(struct arena *a, const struct problem *p, bool has_racks, double until_s,
                   struct exact_program *x);

static inline bool is_spread(const struct problem_job *j)
{
    return j->form == FORM_SPREAD && j->n_max > 1;
}

/* Levels of a class that a slot which holds 'low' has. */
int class_levels(const struct exact_class *f, double low);

/* What a part that holds 'low' of 'need' counts. */
double promise_part(const struct promise_row *h, double low, double need);

/* The rows of a spread job's promise; one more. */
static inline struct promise_row *program_promises(const struct exact_program *x, int job)
{
    return x->promises + job * (long)PROMISE_ROWS_MAX;
}

void program_add_promise(struct exact_program *x, int job, struct promise_row h);

/* Take over the duals of all rows, with their signs put right. */
void program_take_duals(struct exact_program *x, const double *dual);

/* The rows that a column is in, into 'entry_row' and 'entry'; how many. */
int program_entries(struct exact_program *x, const struct exact_column *c);

/* Columns first .. pool->n - 1 as an integer program, in the arena. */
void program_matrix(struct exact_program *x, const struct column_list *pool, int first,
                    struct mip *out);

/* ---- columns: single.c, gangs.c, choices in matrix.c ---- */

/* Columns are wanted whose reduced cost is at most 'most_w', in the pool from 'first' on. Once
 * there are 'room' of them only the best remain, and 'most_w' falls accordingly; with 'best' 0 all
 * do, and no more are wanted.
 */
struct column_filter {
    double most_w;
    double least_w;    // the least reduced cost there was, at most 0
    struct column_list *pool;
    int first, best, room;
};

/* Take a column if it is cheap enough. */
void filter_offer(struct column_filter *w, struct exact_column *c, double reduced_w);

/* Let only the best remain. */
void filter_crop(struct column_filter *w);

/* Every column on one GPU of a group; of a gang. */
void program_single(struct exact_program *x, int group, struct column_filter *w);
void program_gang(struct exact_program *x, int job, struct column_filter *w);

/* All TAKE, PARTS, SHORT and WAIT; who is fixed may wait for 'fixed_w', unless that is 0. */
void program_choices(struct exact_program *x, double fixed_w, struct column_list *pool);

/* ---- relax.c ---- */

/* The linear relaxation by column generation, until no column is missing or time is up. The duals
 * stay in 'x'. 'scale_w': watts that are added up. Returns the bound.
 */
double program_relax(struct exact_program *x, double scale_w);

/* ---- answer.c ---- */

/* The plan of a whole number of each column, not priced; false when they do not make one. Who waits
 * does so for the reason that 'start' has.
 */
bool program_answer(struct arena *a, const struct exact_program *x, const struct column_list *pool,
                    const double *value, const struct plan *start, struct plan *out);

#endif

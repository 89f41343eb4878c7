/* cells.h - what was measured of each workload, as eval's truth, and the order in which a
 * newcomer's cells are revealed.
 *
 * Made once from the catalog by eval_cells_take; read by every fold. Lives in the arena it was
 * made in and never changes.
 */
#ifndef SIM_EVAL_CELLS_H
#define SIM_EVAL_CELLS_H

#include <stdbool.h>

struct arena;
struct catalog;
struct rng;

/* A workload on a type, alone or beside a neighbour (one GPU, default limit). NaN: not measured. */
struct eval_cell {
    int type, neighbour;    // neighbour -1: alone
    double ln_speed, ln_speed_var;
    double ln_r;                              // its slowdown beside the neighbour
    double ln_r_partner, ln_r_partner_var;    // the neighbour's beside it
    double ln_watts;                          // alone
    bool is_unfit;                            // it was only seen not to fit
};

struct eval_cells {
    int n, n_isolated;    // cells; with a speed alone
    struct eval_cell *cell;
};

/* Those of each workload that a campaign has: (n_workloads). */
struct eval_cells *eval_cells_take(struct arena *a, const struct catalog *c, int campaign);

/* Could it be revealed: has it a speed, and is it on 'only_type' (-1: any)? */
static inline bool eval_cell_counts(const struct eval_cell *c, int only_type)
{
    return c->ln_speed == c->ln_speed && (only_type < 0 || c->type == only_type);
}

/* Of the cells that are drawn so many are alone. */
#define EVAL_ALONE_SHARE 0.3

/* Draw the next cell that is not yet 'is_out' (n): by that chance alone, else beside a neighbour;
 * the type uniformly among those with such a cell, then the cell. A kind of which nothing is left
 * yields to the other. -1: nothing is left.
 */
int eval_cells_draw(const struct eval_cells *c, int n_types, int only_type, const bool *is_out,
                    struct rng *chance);

/* Mark in 'is_offered' (n) a random half, rounded up, of each kind. */
void eval_cells_halve(struct arena *a, const struct eval_cells *c, int only_type,
                      struct rng *chance, bool *is_offered);

#endif

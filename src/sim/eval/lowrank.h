/* lowrank.h - completion of a matrix that has gaps, as a product of two thin ones.
 *
 * A baseline of `gogh eval`: Gavel (Narayanan et al., OSDI 2020) estimates what an unknown job
 * does beside others by completing the matrix of normalised throughputs, a row for each job and
 * a column for each type and neighbour. Ours is in logarithms, with an offset for each row (which
 * stands for the normalisation, so that a newcomer's can be learned too) and for each column:
 *
 *     value = row offset + column offset + row factors . column factors
 *
 * by alternating least squares with ridge. Made by lowrank_fit, in an arena; never changed.
 */
#ifndef SIM_EVAL_LOWRANK_H
#define SIM_EVAL_LOWRANK_H

#include <stdint.h>

struct arena;

enum { LOWRANK = 3, LOWRANK_WIDTH = LOWRANK + 1 };    // factors; an offset goes before them

struct lowrank_entry {
    int row, column;
    double value;
};

struct lowrank {
    int n_columns;
    double (*column)[LOWRANK_WIDTH];    // (n_columns) offset and factors
};

/* From 'n' entries. A column without any takes the mean of those of its first 'group' (n_columns;
 * any numbers), or else of its second, or else 0.
 */
void lowrank_fit(struct arena *a, int n_rows, int n_columns, int (*group)[2],
                 const struct lowrank_entry *entries, int n, uint64_t seed, struct lowrank *out);

/* A new row from 'n' of its entries ('row' is not read): all its values, in 'out' (n_columns).
 * With none these are the columns' offsets, which are their means.
 */
void lowrank_complete(const struct lowrank *m, const struct lowrank_entry *seen, int n,
                      double *out);

#endif

/* inner.h - what posterior.c and columns.c share.
 *
 * With K = L L' the covariance of the readings, k_q that of the readings with a cell q, and
 * s = L^-1 (y - mean): the belief of q has mean m_q + s'v_q and variance k_qq - v_q'v_q, where
 * v_q = L^-1 k_q. k_q is a sum of parts, and so is v_q:
 *
 *   alone(type, job)                                             of its speed alone
 *   job(type, job) + by(type, neighbour)                         of its slowdown,
 *     + sum of joint features x_l times joint_l                  which four columns give,
 *     + weights times crossed effects, of families and batches   where such were read,
 *     + cell(type, job, neighbour)                               where that very cell was
 *
 * Readings under another law (effects.h) have nothing in common with a slowdown: its parts are 0
 * there, and each law that the site has has columns of joint features of its own.
 */
#ifndef ESTIMATE_HIERARCHICAL_INNER_H
#define ESTIMATE_HIERARCHICAL_INNER_H

#include <stdint.h>

#include "base/map.h"
#include "estimate/hierarchical/posterior.h"

enum { JOINTS = BESIDE_X - BESIDE_JOINT };

/* L^-1 of one part of a covariance, in single precision, with its scalar products. */
struct column {
    bool is_made;
    int n;        // readings that it is worked out for
    int first;    // of a crossed effect: before this reading it is 0
    float *v;
    double s, self, joint[JOINTS];    // s'v, v'v, v'joint_l
    double mean, prior;               // of PART_ALONE: before anything was read; its variance
    enum beside_law law;              // whose joint features
};

struct posterior {
    const struct site *site;
    struct hyper h;
    struct hyper_scale scale;
    struct variances v;
    int n, n_made;         // readings; those it was made with, or was cut to
    struct effects *at;    // (n)
    double *factor;        // (n, POSTERIOR_MOST) rows of L
    double *left;          // (n) y - mean
    double *s;             // (n)
    bool is_stale;         // 's' and its sums are not of 'left'
    double *scratch;       // (POSTERIOR_MOST)
    struct column joint[LAWS][JOINTS];
    double joint_joint[LAWS][JOINTS][JOINTS];
    bool has_law[LAWS];               // some type is shared so
    struct column *columns[PARTS];    // (n_columns) by workload and type
    int n_columns;
    struct map_u64 crossed_by_key;
    struct column *crossed;    // (n_crossed)
    int n_crossed, cap_crossed;
    struct map_u64 read_by_key;    // cells and speeds that were read, to the reading
};

/* Room for all workloads that the site has by now: before columns are asked for, which stay where
 * they are until the next call.
 */
void columns_make_room(struct posterior *p);
const struct column *column_of(struct posterior *p, enum effects_part part, int type, int workload);

/* The column of a crossed effect of a pair; NULL: nothing was read that shares it. */
const struct column *column_crossed(struct posterior *p, const struct crossed *q);

/* After readings were added: those of the joint features, and what is new of crossed effects. */
void columns_add(struct posterior *p, int from);

/* After 's' has changed. */
void columns_renew(struct posterior *p);

/* Forget readings from the n-th on. */
void columns_cut(struct posterior *p, int n);
void columns_release(struct posterior *p);

#endif

/* kinds.h - workloads that are nearly alike, taken together.
 *
 * Made by: kinds_cluster. Read by: the class program, whose size grows with the number of
 * clusters and not with that of workloads. A kind is planned with its cluster's cells times its
 * own scale; search, judge and certificate go by the kind's own cells, so that taking together
 * what differs costs quality, and never a promise.
 */
#ifndef OPTIMIZE_PRICES_KINDS_H
#define OPTIMIZE_PRICES_KINDS_H

struct arena;
struct problem;

struct kinds {
    int n;            // clusters
    int *rep;         // (n) the kind whose cells stand for the cluster
    int *of;          // (problem.n_kinds) each kind's cluster; -1: no job has it
    double *scale;    // (problem.n_kinds) its speeds over those of its cluster's kind
    double spread;    // the largest factor by which a cell differs from what stands for it
};

/* Kinds that some job has. Those whose cells (speeds alone but for a scale, watts, slowdowns,
 * memory that fits the same types) differ by less than a factor of 1 + tolerance come together.
 * Clusters are opened farthest first, at most 'most' of them; when those do not suffice for
 * the tolerance, 'spread' says how far apart the kinds in one are then.
 */
void kinds_cluster(struct arena *a, const struct problem *p, double tolerance, int most,
                   struct kinds *out);

#endif

/* choose.h - which reading of a site would teach most.
 *
 * Questions to a posterior about what nobody has read yet; it knows what it knew afterwards. Asked
 * by whoever may choose what is measured next: candidates are what could be, targets what is to be
 * known. Of both only the cell counts, and of candidates their noise. A target that stands twice
 * counts twice.
 */
#ifndef ESTIMATE_HIERARCHICAL_CHOOSE_H
#define ESTIMATE_HIERARCHICAL_CHOOSE_H

#include "estimate/site/site.h"

struct posterior;

/* The candidate of the largest gain, which goes to 'gain' unless that is NULL; of equals the first.
 * The gain is by how much the mean standard deviation of what is believed of targets would fall,
 * were the candidate read; 0: it follows from what is known, or there is no room for one more.
 * -1: there is no candidate.
 */
int posterior_choose(struct posterior *p, const struct reading *candidates, int n_candidates,
                     const struct reading *targets, int n_targets, double *gain);

/* What one measurement reads at once: of two programs on a GPU, each alone and beside the other. */
enum { GROUP_MOST = 4 };
struct reading_group {
    struct reading r[GROUP_MOST];
    int n;
};

/* As if the group had been read, and had said what is believed: of a reading only means depend on
 * its value. What was read before is not read again, and nothing for which there is no room.
 * posterior_truncate forgets it.
 */
void posterior_suppose(struct posterior *p, const struct reading_group *g);

/* As posterior_choose, of groups. */
int posterior_choose_group(struct posterior *p, const struct reading_group *groups, int n_groups,
                           const struct reading *targets, int n_targets, double *gain);

#endif

/* choose.h - which reading of a site would teach most.
 *
 * Questions to a posterior about what nobody has read yet; it knows what it knew afterwards. Asked
 * by whoever may choose what is measured next: candidates are what could be, targets what is to be
 * known. Of both only the cell counts, and of candidates their noise. A target that stands twice
 * counts twice.
 */
#ifndef ESTIMATE_HIERARCHICAL_CHOOSE_H
#define ESTIMATE_HIERARCHICAL_CHOOSE_H

struct posterior;
struct reading;

/* The candidate of the largest gain, which goes to 'gain' unless that is NULL; of equals the first.
 * The gain is by how much the mean standard deviation of what is believed of targets would fall,
 * were the candidate read; 0: it follows from what is known, or there is no room for one more.
 * -1: there is no candidate.
 */
int posterior_choose(struct posterior *p, const struct reading *candidates, int n_candidates,
                     const struct reading *targets, int n_targets, double *gain);

#endif

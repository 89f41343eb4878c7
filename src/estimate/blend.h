/* blend.h - the network's word on slowdowns beside the hierarchical model's.
 *
 * On campaigns left out the network foresees slowdowns better as long as a site has shown few
 * pairs, and the model does once it has shown many; of speeds alone the network has no say
 * (docs/decisions/0023-network.md). Both are asked, and what is believed lies between them. Pure
 * functions; asked by beliefs.h, and by evaluations of them.
 */
#ifndef ESTIMATE_BLEND_H
#define ESTIMATE_BLEND_H

#include "catalog/sharing.h"
#include "estimate/hierarchical/posterior.h"

/* The network's share, 0 to 1, where so many readings beside a neighbour are known, of a type that
 * is shared so: the network does not know how.
 */
double blend_share(int n_beside, enum sharing how);

/* Of a slowdown: that of a mixture of both. Where the model is the surer one the share is less: of
 * workloads that it has met it knows more than the network makes of them.
 */
struct cell_belief blend_slowdown(struct cell_belief model, struct cell_belief network,
                                  double share);

/* Of a packed job's speed, as the model believes it: with the slowdown that is believed instead of
 * the model's.
 */
struct cell_belief blend_packed(struct cell_belief packed, struct cell_belief model,
                                struct cell_belief blended);

#endif

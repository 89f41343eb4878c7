#include "estimate/blend.h"

#include <math.h>

#include "estimate/site/site.h"

/* With so many readings beside a neighbour both count alike. In the mean over the four campaigns
 * that have pairs, each left out, with 0 to 200 of their cells known, 20 and 80 do as well to 0.003
 * of a slowdown. A share below the least is none, and spares the asking.
 */
#define ALIKE 40.0
#define SHARE_LEAST 0.1

/* Where there is a law instead of what campaigns taught: of turns, which the network has met among
 * others, both count alike at first; of slices, which it has not, only the law.
 */
static double share_of_law(enum beside_law law)
{
    return law == LAW_SLICES ? 0 : law == LAW_TURNS ? 0.5 : 1;
}

double blend_share(int n_beside, enum sharing how)
{
    double share = share_of_law(effects_law(how)) * ALIKE / (ALIKE + n_beside);

    return share >= SHARE_LEAST ? share : 0;
}

struct cell_belief blend_slowdown(struct cell_belief model, struct cell_belief network,
                                  double share)
{
    double apart = network.mean - model.mean;
    double own = model.sd * model.sd, its = network.sd * network.sd;

    share *= fmin(1, 2 * own / (own + its));
    return (struct cell_belief){
        model.mean + share * apart,
        sqrt((1 - share) * own + share * its + share * (1 - share) * apart * apart),
    };
}

struct cell_belief blend_packed(struct cell_belief packed, struct cell_belief model,
                                struct cell_belief blended)
{
    double variance = packed.sd * packed.sd - model.sd * model.sd + blended.sd * blended.sd;

    return (struct cell_belief){ packed.mean + blended.mean - model.mean,
                                 sqrt(fmax(variance, READING_NOISE * READING_NOISE)) };
}

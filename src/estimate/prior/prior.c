#include "estimate/prior/prior.h"

#include <math.h>
#include <stddef.h>

#include "estimate/prior/roofline.h"

/* Memory figures are rough (1.4x), so fitting is a matter of chance: a logistic curve in
 * the share of the memory that is asked for. On Gavel, pairs whose estimates add up to 0.6
 * begin to fail and above 1.0 none has ever run. A job alone gets the benefit of the doubt:
 * somebody made it to run on some GPU.
 */
#define PAIR_DOUBTFUL 0.85
#define ALONE_DOUBTFUL 1.25
#define DOUBT_STEEPNESS 12

double prior_unfit(double bytes, double capacity_bytes, int n_jobs)
{
    double share = bytes / capacity_bytes, doubtful = n_jobs > 1 ? PAIR_DOUBTFUL : ALONE_DOUBTFUL;

    if (!isfinite(share))    // nobody told us the GPU's memory
        return 0.5;
    return 1 / (1 + exp(-DOUBT_STEEPNESS * (share - doubtful)));
}

double prior_share_max(double unfit_max)
{
    return fmax(PAIR_DOUBTFUL + log(unfit_max / (1 - unfit_max)) / DOUBT_STEEPNESS, 0);
}

void prior_of(const struct roofline *on, const struct roofline *beside, double capacity_bytes,
              struct prior *out)
{
    double bytes = on->mem_bytes + (beside ? beside->mem_bytes : 0);

    out->ln_speed = -log(on->step_s);
    out->alone_sd = roofline_speed_sd(on);
    out->beside_sd = 0;
    out->unfit = prior_unfit(bytes, capacity_bytes, beside ? 2 : 1);
    if (beside) {
        out->ln_speed += log(roofline_slowdown(on, beside));
        out->beside_sd = ROOFLINE_SLOWDOWN_SD;
    }
    out->sd = hypot(out->alone_sd, out->beside_sd);
}

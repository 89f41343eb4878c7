#include "serve/counted.h"

#include <math.h>

#include "serve/capacity.h"

#define WHILE_S 600.0         // as often as tables are built
#define WHILE_REQUESTS 200    // so that a share of 1 % late is no matter of one or two
#define DAY_S 86400.0

static double rate_of(const struct counted_while *w)
{
    return w->served_s > 0 ? w->n_requests / w->served_s : 0;
}

void counted_add(struct counted *c, double from_s, double to_s, double n_requests, double n_late,
                 double n_queued, const struct lengths *lengths)
{
    struct counted_while *w = &c->now;

    if (!(n_requests >= 0 && to_s > from_s))
        return;
    if (!(w->served_s > 0) || from_s - w->to_s > WHILE_S)
        *w = (struct counted_while){ .from_s = from_s, .to_s = to_s, .is_known = true };
    w->to_s = fmax(w->to_s, to_s);
    w->served_s += to_s - from_s;
    w->n_requests += n_requests;
    w->n_late += isnan(n_late) ? 0 : n_late;
    w->is_known &= !isnan(n_late);
    w->queued_s += (isnan(n_queued) ? 0 : n_queued) * (to_s - from_s);
    if (lengths)
        lengths_join(&w->lengths, lengths);
    if (w->to_s - w->from_s < WHILE_S || w->n_requests < WHILE_REQUESTS)
        return;
    if (rate_of(w) >= rate_of(&c->busiest) || w->to_s - c->busiest.to_s > DAY_S)
        c->busiest = *w;
    *w = (struct counted_while){ 0 };
}

/* How long they waited is asked for only where nobody says who was late: pages count those that are
 * worked on among those that wait.
 */
bool counted_metrics(const struct counted *c, struct serving_metrics *out)
{
    const struct counted_while *w = &c->busiest;
    const double nothing = NAN;

    if (!(w->n_requests > 0))
        return false;
    *out = (struct serving_metrics){ .rate = rate_of(w),
                                     .late_share = nothing,
                                     .p99_s = nothing,
                                     .queue_s = nothing,
                                     .lengths = w->lengths };
    if (w->is_known)
        out->late_share = w->n_late / w->n_requests;
    else
        out->queue_s = w->queued_s / w->n_requests;
    return true;
}

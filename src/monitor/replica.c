#include "monitor/replica.h"

#include <math.h>
#include <string.h>

#include "monitor/sensor.h"

/* A chunk joins the last one where the moment it came at is so much after its end, or before: a
 * sender may be held up for a moment, and a datagram that was lost leaves a gap of about a second.
 * Bins that reach further into the future are more than went by.
 */
#define AFTER_S 0.5
#define BEFORE_S 1.0

/* No server answers more than this: a socket carries some hundred thousand datagrams a second. */
#define REQUESTS_PER_S_MAX 1e6

/* Batches that one GPU may have running at a time. */
#define BATCHES_AT_A_TIME_MAX 64

/* A count that falls once was overtaken on its way; so often in a row, it falls. */
#define FALLEN_MOST 3

/* What bins and counts may differ by: those that were open before the first report, and those that
 * are worked on and so wait in no queue.
 */
#define OPEN_BEFORE_MOST 256
#define OPEN_RUNNING_MOST 1024

void replica_begin(struct replica *r)
{
    *r = (struct replica){ .told = { NAN, NAN, NAN, NAN },
                           .last = { NAN, NAN, NAN, NAN },
                           .told_s = NAN,
                           .heard_s = NAN,
                           .queued = NAN,
                           .ends_s = NAN };
}

void replica_forget(struct replica *r)
{
    const bool is_ready = r->is_ready, has_counted = r->has_counted;

    replica_begin(r);
    r->is_ready = is_ready;
    r->has_counted = has_counted;
}

/* ---- bins ---- */

/* More bins than time went by since the last? */
static bool overflows(const struct replica *r, double bin_s, int n_bins, double at_s)
{
    return r->bin_s > 0 && r->ends_s + n_bins * bin_s > at_s + BEFORE_S + 2 * bin_s;
}

/* Was something lost in between? */
static bool has_gap(const struct replica *r, double bin_s, int n_bins, double at_s)
{
    return at_s - (r->ends_s + n_bins * bin_s) > AFTER_S + 2 * bin_s;
}

bool replica_joins(const struct replica *r, double bin_s, int n_bins, double at_s)
{
    return r->bin_s > 0 && r->bin_s == bin_s && r->n_bins + n_bins <= REPORT_BINS_MAX &&
           !has_gap(r, bin_s, n_bins, at_s) && !overflows(r, bin_s, n_bins, at_s);
}

/* Bins begin anew: what came before is not known to be in them. */
static void begin_bins(struct replica *r, double bin_s, double from_s)
{
    r->is_whole = false;
    r->bin_s = bin_s;
    r->n_bins = 0;
    r->from_s = r->ends_s = from_s;
}

static void take_bins(struct replica *r, double bin_s, const unsigned *bins, int n_bins,
                      double at_s)
{
    double n_came = 0;

    if (overflows(r, bin_s, n_bins, at_s))
        r->is_false = true;
    if (!replica_joins(r, bin_s, n_bins, at_s))
        begin_bins(r, bin_s, at_s - n_bins * bin_s);
    memcpy(r->counts + r->n_bins, bins, (size_t)n_bins * sizeof *bins);
    r->n_bins += n_bins;
    r->ends_s += n_bins * bin_s;
    for (int i = 0; i < n_bins; i++)
        n_came += bins[i];
    r->open += n_came;
    if (n_came > REQUESTS_PER_S_MAX * (n_bins * bin_s + 1))
        r->is_false = true;
}

/* ---- counts ---- */

/* False: it has fallen. What is said for the first time is where counting begins. */
static bool count(double said, double *told, double *last)
{
    const bool falls = said < *last;

    if (isnan(said))
        return true;
    if (falls || isnan(*last))
        *told = said;
    *last = said;
    return !falls;
}

static void count_all(struct replica *r, const struct job_report *said)
{
    bool is_rising = count(said->late, &r->told.late, &r->last.late);

    is_rising &= count(said->batches, &r->told.batches, &r->last.batches);
    is_rising &= count(said->busy_s, &r->told.busy_s, &r->last.busy_s);
    if (!is_rising || said->late > said->steps)
        r->is_false = true;
    if (!isnan(said->queued))
        r->queued = said->queued;
}

static void begin_open(struct replica *r)
{
    r->open = isnan(r->queued) ? 0 : r->queued;
    r->is_whole = true;
}

void replica_hear(struct replica *r, const struct job_report *said, const unsigned *bins,
                  int n_bins, double at_s)
{
    const bool is_first = isnan(r->heard_s);

    r->is_news = true;
    if (!is_first && said->steps < r->last.requests) {
        r->is_false |= ++r->n_fallen >= FALLEN_MOST;
        return;
    }
    r->n_fallen = 0;
    count_all(r, said);
    if (said->ready >= 0)
        r->is_ready = said->ready;
    r->open -= is_first ? 0 : said->steps - r->last.requests;
    (void)count(said->steps, &r->told.requests, &r->last.requests);
    r->heard_s = at_s;
    if (is_first)
        r->told_s = at_s;
    if (n_bins > 0)
        take_bins(r, said->bin_s, bins, n_bins, at_s);
    if (n_bins < 0)
        r->is_whole = false;
    if (is_first)
        begin_open(r);
    r->has_counted |= r->last.requests > 0 || r->bin_s > 0;
}

/* ---- telling ---- */

bool replica_counts(const struct replica *r)
{
    return r->has_counted;
}

/* Do bins and counts speak of the same requests? */
static bool agrees(const struct replica *r)
{
    if (r->bin_s <= 0 || !r->is_whole)
        return true;
    if (r->open < -OPEN_BEFORE_MOST)
        return false;
    return isnan(r->queued) || r->open <= 2 * r->queued + OPEN_RUNNING_MOST;
}

static bool is_possible(const struct served *s, double length_s)
{
    return !(s->n_late > s->n_requests) && !(s->n_requests > REQUESTS_PER_S_MAX * (length_s + 1)) &&
           !(s->busy_s > BATCHES_AT_A_TIME_MAX * (length_s + 1));
}

static void leave_out(struct served *s)
{
    s->n_bins = 0;
    s->bin_s = 0;
    s->counts = NULL;
    s->has_lengths = false;
    s->n_requests = s->n_late = s->n_batches = s->busy_s = s->n_queued = NAN;
}

void served_check(struct served *s, double length_s)
{
    s->is_false |= !is_possible(s, length_s);
    if (s->is_false)
        leave_out(s);
}

bool replica_tell(struct replica *r, struct served *out)
{
    const bool has_bins = r->n_bins > 0;

    if (!r->is_news)
        return false;
    *out = (struct served){ .is_ready = r->is_ready,
                            .from_s = has_bins ? r->from_s : r->told_s,
                            .to_s = has_bins ? r->ends_s : r->heard_s,
                            .bin_s = has_bins ? r->bin_s : 0,
                            .n_bins = r->n_bins,
                            .counts = has_bins ? r->counts : NULL,
                            .n_requests = r->last.requests - r->told.requests,
                            .n_late = r->last.late - r->told.late,
                            .n_batches = r->last.batches - r->told.batches,
                            .busy_s = r->last.busy_s - r->told.busy_s,
                            .n_queued = r->queued };
    out->is_false = r->is_false || !agrees(r);
    served_check(out, r->heard_s - r->told_s);
    if (out->is_false || !r->is_whole)
        begin_open(r);
    r->told = r->last;
    r->told_s = r->heard_s;
    r->n_bins = 0;
    r->from_s = r->ends_s;
    r->is_news = r->is_false = false;
    return true;
}

/* What runs that serve have said, and those that say too much. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "monitor/inbox.h"
#include "monitor/mute.h"
#include "monitor/watch_inner.h"

/* Reports a second of which bins are looked at: bins of half a millisecond need four. */
#define BINS_PER_S_MAX 20

/* Reports a second above which a run is not heard for a while, and for how long. Reading a thousand
 * takes some milliseconds.
 */
#define FLOOD_PER_S 1000
#define MUTED_S 10.0

/* ---- telling ---- */

static struct replica *replica_of(struct watched_run *r)
{
    if (!r->replica) {
        r->replica = heap_array(1, sizeof *r->replica);
        replica_begin(r->replica);
    }
    return r->replica;
}

/* A copy that lives as long as the observation. */
struct served *served_copy(const struct served *s)
{
    struct served *copy = heap_array(1, sizeof *s + (size_t)s->n_bins * sizeof *s->counts);

    *copy = *s;
    if (s->n_bins > 0) {
        unsigned *counts = (unsigned *)(copy + 1);
        memcpy(counts, s->counts, (size_t)s->n_bins * sizeof *counts);
        copy->counts = counts;
    }
    return copy;
}

/* 's' has its times on the stopwatch. */
static void put_served(struct watch *w, struct watched_run *r, const struct served *s)
{
    struct queued *n = watch_put(w, &(struct observation){ .kind = OBS_SERVED,
                                                           .time_s = watch_now_s(w),
                                                           .job = r->job,
                                                           .steps_done = r->steps,
                                                           .watts = NAN,
                                                           .noise = NAN });

    n->served = served_copy(s);
    n->served->from_s = watch_wall_s(w, s->from_s);
    n->served->to_s = watch_wall_s(w, s->to_s);
    n->seen.served = n->served;
    r->is_served_queued = true;
    w->stats.n_false += s->is_false;
}

void served_tell(struct watch *w, struct watched_run *r)
{
    const bool is_muted = r->muted_until_s > 0;
    struct served s;

    if (!r->replica || r->is_served_queued)
        return;
    r->replica->is_news |= is_muted != r->is_flood_told;
    if (!replica_tell(r->replica, &s))
        return;
    if (isnan(s.to_s))
        s.from_s = s.to_s = clock_stopwatch_s();    // all that is left is that it floods
    s.is_flooding = r->is_flood_told = is_muted;
    put_served(w, r, &s);
}

bool watch_served(struct watch *w, int job, const struct served *s)
{
    struct watched_run *r = watched_find(w, job);

    if (!r || r->is_served_queued || (r->replica && replica_counts(r->replica)))
        return false;
    put_served(w, r, s);
    if (w->on_news)
        w->on_news(w->news_self);
    return true;
}

void served_done(struct watch *w, struct queued *n)
{
    struct watched_run *r = watched_find(w, n->seen.job);

    free(w->last_served);
    w->last_served = n->served;
    n->served = NULL;
    if (r)
        r->is_served_queued = false;
}

/* ---- hearing ---- */

bool served_hear(struct watch *w, struct watched_run *r, const struct job_report *said, double at_s)
{
    static unsigned bins[REPORT_BINS_MAX];    // on the loop's thread, like all of this
    int n_bins = said->bin_s > 0 ? -1 : 0;

    if (n_bins < 0 && r->n_said <= BINS_PER_S_MAX && (n_bins = job_report_bins(said, bins)) < 0)
        return false;
    if (!r->replica && !job_report_serves(said))
        return true;
    struct replica *p = replica_of(r);
    if (n_bins > 0 && p->n_bins > 0 && !replica_joins(p, said->bin_s, n_bins, at_s))
        served_tell(w, r);
    replica_hear(p, said, bins, n_bins, at_s);
    return true;
}

/* ---- floods ---- */

/* Let the kernel drop what muted runs send. Where it will not, they are dropped here. */
static void filter(struct watch *w)
{
    struct muted list[MUTED_MAX];
    int n = 0;

    for (int i = 0; i < w->n_runs && n < MUTED_MAX; i++) {
        const struct watched_run *r = w->runs[i];

        if (r->muted_until_s <= 0)
            continue;
        list[n].at = r->secret_at;
        memcpy(list[n++].secret, r->secret, sizeof r->secret);
    }
    inbox_mute(w->inbox, list, n);
}

bool served_is_flood(struct watch *w, struct watched_run *r, size_t secret_at, double at_s)
{
    if (r->muted_until_s > 0)
        return true;
    if (!(at_s - r->said_from_s < 1)) {
        r->said_from_s = at_s;
        r->n_said = 0;
    }
    if (++r->n_said <= FLOOD_PER_S)
        return false;
    log_warn("job %d has sent %d reports within a second; it is not heard for %.0f s", r->job,
             r->n_said, MUTED_S);
    r->muted_until_s = at_s + MUTED_S;
    r->secret_at = secret_at;
    w->stats.n_floods++;
    replica_forget(replica_of(r));
    filter(w);
    return true;
}

void served_unmute(struct watch *w, double now_s)
{
    bool has_changed = false;

    for (int i = 0; i < w->n_runs; i++) {
        struct watched_run *r = w->runs[i];

        if (r->muted_until_s <= 0 || now_s < r->muted_until_s)
            continue;
        r->muted_until_s = 0;
        r->said_from_s = NAN;
        has_changed = true;
    }
    if (has_changed)
        filter(w);
}

void served_forget(struct watch *w, struct watched_run *r)
{
    const bool was_muted = r->muted_until_s > 0;

    free(r->replica);
    r->replica = NULL;
    r->is_flood_told = false;
    r->muted_until_s = 0;
    r->said_from_s = NAN;
    if (was_muted)
        filter(w);
}

/* drift.h - has a speed changed for good? A driver update or a new container does that.
 *
 * Two questions, both answered in the order in which measurements are recorded, so that a store
 * that is read again gives the same answers. Of one cell: a CUSUM of its deviations. Of all that
 * shares a GPU type, or a workload: did several of its cells change within a short run?
 *
 * Part of the catalog's fold over measurements; plain data, lives inside the catalog.
 */
#ifndef CATALOG_DRIFT_H
#define CATALOG_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

/* Sums of what deviations exceed the slack by, upwards and downwards. */
struct cusum {
    float up, down;
    float calm;    // sum of deviations squared, at most CUSUM_CALM^2 each
};

/* In standard deviations. Steady noise then fires once in some 3 million measurements
 * (Siegmund's approximation of the mean run, both sides), two outliers in a row do not, and a
 * step of 3.6 (20 % at a noise of 5 %) does within ten.
 */
#define CUSUM_SLACK 1.0
#define CUSUM_CLIP 4.0    // no single measurement counts for more
#define CUSUM_CALM 2.0
#define CUSUM_LIMIT 7.0

/* Take in one deviation, in standard deviations as stated; 'n' were before it, and they differ
 * 'excess' times (a ratio of variances) more than stated. True: it has changed for good, and all
 * sums start again.
 */
bool cusum_add(struct cusum *c, int n, double excess, double deviation);

/* The last cells that changed, of one GPU type or of one workload. */
enum { DRIFT_CELLS_MAX = 3 };

struct drift_watch {
    uint32_t n_seen;                      // measurements of it
    int n_drifts;                         // times that several cells changed
    double last_s;                        // when that was noticed last
    double since_s;                       // when the first of those cells changed
    int n_cells;                          // of those below
    int other[DRIFT_CELLS_MAX];           // of a type: the workload; of a workload: the type
    uint32_t seen_at[DRIFT_CELLS_MAX];    // n_seen when each changed
    double at_s[DRIFT_CELLS_MAX];         // when that was
};

/* Several cells within this many measurements are no coincidence: two false alarms in
 * one such run are less likely than one in 10,000.
 */
#define DRIFT_RUN 256

/* A cell has changed. True: that makes 'n_needed' with different 'other' ones within DRIFT_RUN,
 * so it is the type or the workload as a whole; then the count starts again.
 */
bool drift_watch_note(struct drift_watch *w, int other, int n_needed, double time_s);

#endif

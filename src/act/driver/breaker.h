/* breaker.h - when to leave Slurm alone: a circuit breaker and a bucket of calls.
 *
 * Two small state machines of the driver's; time is passed in, in seconds of any clock that
 * never goes back. Nothing is owned.
 */
#ifndef ACT_DRIVER_BREAKER_H
#define ACT_DRIVER_BREAKER_H

#include <stdbool.h>

#define BREAKER_PAUSE_MIN_S 1.0
#define BREAKER_PAUSE_MAX_S 8.0

/* A breaker that opens again so soon after it closed goes on with longer pauses: a controller that
 * answers pings and nothing else is not well.
 */
#define BREAKER_STEADY_S 10.0

/*     CLOSED --breaker_failed--> OPEN --its pause is over--> a probe --breaker_succeeded--> CLOSED
 *                                 ^                            |
 *                                 '------ breaker_failed ------'  (twice the pause)
 */
struct breaker {
    bool is_open;
    double pause_s;
    double probe_at_s;     // while open
    double closed_at_s;    // for the last time
};

void breaker_init(struct breaker *b);

/* A call did not reach Slurm, or a probe. True: that has opened it. */
bool breaker_failed(struct breaker *b, double now_s);

/* A call or probe did. True: that has closed it. */
bool breaker_succeeded(struct breaker *b, double now_s);

/* True: it is open, and time to try. */
bool breaker_wants_probe(const struct breaker *b, double now_s);

/* At most 'rate' calls a second on average, and 'burst' at once. */
struct rate_bucket {
    double rate, burst;
    double level;    // calls that may be made now
    double at_s;     // when that was so
};

void rate_bucket_init(struct rate_bucket *b, double rate, double burst, double now_s);

/* Take one. False: none is there; rate_bucket_wait_s tells for how long. */
bool rate_bucket_take(struct rate_bucket *b, double now_s);
double rate_bucket_wait_s(struct rate_bucket *b, double now_s);    // 0: one is there

#endif

/* when.h - times and durations as people write and read them. */
#ifndef CLI_WHEN_H
#define CLI_WHEN_H

#include <stdbool.h>

struct arena;
struct err;

/* "90", "200ms", "90s", "5m", "2h", "1d12h": seconds, of at least 0. */
int when_duration(const char *text, double *out_s, struct err *e);

/* A time as seconds since 1970: "2026-11-16 18:00[:30]" (or with a 'T', a 'Z' at the end for UTC),
 * "2026-11-16", "18:00" (of today; with 'is_ahead' the next one), "+2h", "-7d", "now", or the
 * seconds themselves. The zone is the user's.
 */
int when_time(const char *text, double now_s, bool is_ahead, double *out_s, struct err *e);

/* "12 s", "5 min 03 s", "2 h 05 min", "3 d 04 h"; "-" for NaN. */
const char *when_text(struct arena *a, double duration_s);

/* "2026-11-16 18:00:05"; "18:00:05" when it is of the same day as 'now_s'; "-" for NaN. */
const char *when_clock(struct arena *a, double time_s, double now_s);

/* Seconds since 1970. */
double when_now(void);

#endif

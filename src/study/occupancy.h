/* occupancy.h - who was on which GPU, from looking at the state now and then.
 *
 * Begins with its arena and nothing else. Filled by a run while it goes on; the list goes into the
 * run's result. What begins and ends
 * between two looks is not seen.
 */
#ifndef STUDY_OCCUPANCY_H
#define STUDY_OCCUPANCY_H

struct arena;
struct study_result;
struct study_interval;
struct state;

struct occupancy {
    struct arena *arena;
    struct study_interval *list;    // those that go on have NaN for their end
    int n, cap;
    int first_open;    // all before it have ended
};

/* What the state shows at 'now_s': who has come or got another power limit, and who has gone. */
void occupancy_update(struct occupancy *s, const struct state *state, double now_s);

/* All that go on end at 'now_s'; the list, by GPU, then time, into 'out'. */
void occupancy_end(struct occupancy *s, double now_s, struct study_result *out);

#endif

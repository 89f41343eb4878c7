/* stays.h - who was on which GPU, from looking at the state now and then.
 *
 * Filled by a run while it goes on; the list goes into the run's result. What begins and ends
 * between two looks is not seen.
 */
#ifndef STUDY_STAYS_H
#define STUDY_STAYS_H

struct arena;
struct run_result;
struct run_stay;
struct state;

struct stays {
    struct run_stay *list;    // heap; those that go on have NaN for their end
    int n, cap;
    int first_open;    // all before it have ended
};

void stays_init(struct stays *s);
void stays_release(struct stays *s);

/* What the state shows at 'now_s': who has come or got another power limit, and who has gone. */
void stays_look(struct stays *s, const struct state *state, double now_s);

/* All that go on end at 'now_s'; the list, by GPU, then time, into 'out'. */
void stays_end(struct stays *s, double now_s, struct arena *a, struct run_result *out);

#endif

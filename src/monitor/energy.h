/* energy.h - joules, and whose they are.
 *
 * A GPU's draw above idle belongs to the jobs on it by their share of work (speed over what each
 * would do alone there; equal parts where that is unknown), its idle draw to them in equal parts;
 * an empty GPU's to nobody. The parts add up to the whole, always. Kept in rows by hour, job and
 * GPU type, which the owner writes to the store now and then (usage rows) and takes out.
 */
#ifndef MONITOR_ENERGY_H
#define MONITOR_ENERGY_H

#include <stdbool.h>

#include "store/store.h"

struct catalog;
struct energy;
struct state;

/* Both are borrowed: which GPU is of which type, and where a job is. */
struct energy *energy_create(const struct state *s, const struct catalog *c);
void energy_destroy(struct energy *e);    // NULL is fine

/* From 'now_s' on GPU 'gpu' draws 'watts', 'idle_w' of which it would draw empty; what it drew so
 * far is booked. Time that goes backwards books nothing. Watts that are not known (NaN) are none,
 * and so are idle ones.
 */
void energy_draw(struct energy *e, int gpu, double now_s, double watts, double idle_w);

/* Who is on 'gpu' from now on and their weights: call at every change of who is where, and
 * when speeds change; books what was before. n 0: empty.
 */
struct energy_share {
    int job;
    double weight;    // > 0
};
void energy_share(struct energy *e, int gpu, double now_s, const struct energy_share *who, int n);

/* The clock was set, forward by 'by_s' or back: what is not booked yet is as long as it was. */
void energy_shift(struct energy *e, double by_s);

/* Joules since the process began. */
double energy_gpu_j(const struct energy *e, int gpu);
double energy_job_j(const struct energy *e, int job);
double energy_total_j(const struct energy *e);

/* What a job used before this process began: counts for energy_job_j, and nowhere else. */
void energy_add_past(struct energy *e, int job, double joules);

/* Also kept by hour, job and type: time in which a promise was to be kept, and was. */
void energy_promise(struct energy *e, int job, double from_s, double to_s, bool is_kept);

/* And how well its speed was foreseen. */
void energy_surprise(struct energy *e, int job, int gpu_type, double now_s, double abs_error,
                     bool is_covered);

/* And steps done, on GPUs of which type (-1: not known). */
void energy_steps(struct energy *e, int job, int gpu_type, double now_s, double steps);

/* And what a replica answered, and of it late. */
void energy_served(struct energy *e, int job, double now_s, double requests, double late);

/* Book everything up to 'now_s', and hand over all rows since the last time: 'f' is called
 * for each. 0 or what 'f' gave; then nothing was forgotten, and the next time brings it again.
 */
int energy_take(struct energy *e, double now_s, int (*f)(void *self, const struct row_usage *r),
                void *self);

/* What the last energy_take handed over was not kept after all (a commit failed): bring it again.
 */
void energy_take_back(struct energy *e);

#endif

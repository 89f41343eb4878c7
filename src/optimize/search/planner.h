/* planner.h - the standing plan: kept between events, repaired at once, improved in small slices.
 *
 * Made by: planner_create, from a problem and an answer to begin with. An arrival is placed
 * without moving anybody; a departure, a lost node or a changed estimate leaves a hole or a
 * crowd behind; planner_improve then takes steps around what happened and where most is lost, which
 * the prices of the last class program say. Whatever it decides is taken as done: where a job
 * stands is its present place from then on, and leaving it costs move_w again.
 *
 * Owned. The problem's types, kinds and tables are borrowed and may change between calls (see
 * planner_reestimate); GPUs and jobs are the planner's own.
 */
#ifndef OPTIMIZE_SEARCH_PLANNER_H
#define OPTIMIZE_SEARCH_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct desk;
struct plan;
struct planner;
struct prices;
struct problem;
struct problem_job;

/* Begin with 'x' (NULL: with the present places, the others inserted); no prices yet. */
struct planner *planner_create(const struct problem *p, const struct plan *x, uint64_t seed);
void planner_destroy(struct planner *pl);

/* The problem as it is now: gone jobs have no name; everybody's present place is where he
 * stands. Borrowed, until the next call.
 */
const struct problem *planner_problem(struct planner *pl);
const struct desk *planner_desk(const struct planner *pl);

/* ---- what happens ---- */

/* A job comes and gets its number; it is placed, or waits, and nobody else moves. What 'job' says
 * of a present place is not read; its name is copied.
 */
int planner_arrive(struct planner *pl, const struct problem_job *job);

/* A job is gone; its number may be given again. */
void planner_leave(struct planner *pl, int job);

/* All GPUs of a node are lost: who is there goes elsewhere at once, or waits. Or they are back;
 * those that were drained before stay drained.
 */
void planner_lose_node(struct planner *pl, int node);
void planner_gain_node(struct planner *pl, int node);

/* Cells of a kind have changed in the tables: price it again wherever it stands; who must not
 * be there any more goes elsewhere.
 */
void planner_reestimate(struct planner *pl, int kind);

/* ---- making it better ---- */

/* Grant so many steps. They are saved up and taken at once when there are a few for each GPU (or
 * somebody has no place), so most calls return at once and some take long: call it where nobody
 * waits for it. Returns how many jobs that ran have changed their place.
 */
int planner_improve(struct planner *pl, int nodes);

/* Go by these prices from now on; copied. */
void planner_adopt(struct planner *pl, const struct prices *u);

/* Do the reduced costs say that the prices no longer fit? */
bool planner_wants_prices(const struct planner *pl);

/* From an answer to planner_problem, adopt what pays for its moves, piece by piece; returns how
 * many jobs that ran have changed their place.
 */
int planner_full(struct planner *pl, const struct plan *x);

/* The plan, with reasons and figures; its moves and their cost are 0. */
void planner_plan(struct planner *pl, struct arena *a, struct plan *out);

#endif
